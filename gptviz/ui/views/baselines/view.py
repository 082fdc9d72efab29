"""Counts, a network that learns them, a small MLP: the models that a GPT has to beat."""

import html
import math

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis.tokens import chapter
from gptviz.figures.baselines import falling_loss, next_bars, pair_table
from gptviz.lessons.bigram import NeuralBigram
from gptviz.lessons.mlp import MLP
from gptviz.tokenizer import show_token
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell import prompt, state
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Frame
from gptviz.ui.views.baselines import derived, further_back, scale, words
from gptviz.ui.views.baselines.derived import KEPT_STEPS, Table
from gptviz.ui.views.baselines.snippet import baselines
from gptviz.ui.views.tokens.comparison import ALICE, PROMPT

SOURCE = Param("base_text", str, ALICE, if_there)
STEP = Param("base_step", int, 20, if_there)
CHARACTER = Param("base_char", str, "h", if_there)
PARAMS = (SOURCE, STEP, CHARACTER, *further_back.PARAMS)

BARS = 12  # characters of a row's bars


def draw(scene: Frame) -> None:
    """The page under its title."""
    text = _text()
    found, place = derived.table(text), st.empty()
    names = [show_token(character.encode()) for character in found.counts.characters]

    @st.fragment
    def tables() -> None:
        _tables(scene, found, names)

    tables()
    mlp = further_back.draw(scene, text)
    compared = scale.measured(scene, text, mlp)
    source = words.CHAPTER if SOURCE.value == ALICE else words.PROMPTED
    with place:
        prose(words.headline(source, len(text), derived.counted_bits(text), compared.model), "token")
    scale.draw(scene, text, mlp, compared)
    _samples(found, mlp)
    _details(found, names, mlp, compared)
    scale.go_on(scene)
    further_back.go_on(mlp)


def _text() -> str:
    """What is learnt from; ends the run with a sentence where nothing can be."""
    SOURCE.within((ALICE, PROMPT))
    source = SOURCE.widget(
        st.segmented_control,
        "Learn from",
        options=[ALICE, PROMPT],
        required=True,
        label_visibility="collapsed",
    )
    if source == ALICE:
        return chapter()
    prompt.box()
    whole = state.current().text
    text = whole[: derived.LONGEST]
    if len(whole) > len(text):
        st.warning(words.cut(derived.LONGEST))
    if len(text) < derived.SHORTEST:
        st.info(words.too_short(len(text), derived.SHORTEST))
        st.stop()
    if len(set(text)) > derived.MOST_CHARACTERS:
        st.info(words.too_many(len(set(text)), derived.MOST_CHARACTERS))
        st.stop()
    return text


# ---- the two tables, and what belongs to them ----


def _tables(scene: Frame, found: Table, names: list[str]) -> None:
    STEP.within(KEPT_STEPS)
    sentence = st.container()
    step = STEP.widget(st.select_slider, "Steps of training, right", options=KEPT_STEPS)
    row = _row(found)
    shown, counts = list(found.shown), found.counts
    best = int(counts.pairs[row].argmax())
    with sentence:
        prose(
            words.look_for(
                step, float(found.losses[step]), counts.loss, names[row], names[best],
                float(counts.probabilities[row, best]),
            ),
            "parameter",
        )  # fmt: skip
    square = np.ix_(shown, shown)
    sides = (
        ("counted", "Counted", counts.probabilities, counts.pairs[square]),
        ("learnt", words.learnt(step), found.learnt[step], None),
    )
    for column, (name, title, probabilities, times) in zip(st.columns(2), sides, strict=True):
        with column:
            st.markdown(f"**{title}**")
            key = f"baselines_{name}"
            scene.chart(
                pair_table(
                    probabilities[square], times, [names[i] for i in shown], shown.index(row), scene.mode
                ),
                key=key,
                which=(() if times is not None else (f"step{step}",)),
                alt=f"{title}: the probability of each character after each other",
            )
            cell_clicks(key, len(shown), len(shown), lambda row, _: _choose(found, row))
    st.caption(words.shown_of(len(shown), len(names)))
    _below(scene, found, names, step, row)


def _row(found: Table) -> int:
    """The character that is followed: the chosen one, where the picture has it."""
    characters = found.counts.characters
    chosen = CHARACTER.value
    row = characters.index(chosen) if chosen in characters else -1
    return row if row in found.shown else max(found.shown, key=lambda i: int(found.counts.firsts[i]))


def _choose(found: Table, place: int) -> None:
    CHARACTER.set(found.counts.characters[found.shown[place]])


def _below(scene: Frame, found: Table, names: list[str], step: int, row: int) -> None:
    counts, losses = found.counts, found.losses
    blind = math.log(len(names))
    left, right = st.columns(2)
    with left:
        prose(words.falling(float(losses[0]), blind, counts.loss, float(losses[-1]), len(losses) - 1))
        scene.chart(
            falling_loss(losses, step, counts.loss, blind, scene.mode),
            key="baselines_loss",
            which=(f"step{step}",),
            alt="The network's loss, step by step, down to the counts' own",
        )
    with right:
        prose(words.after(names[row], int(counts.firsts[row])))
        learnt = found.learnt[step][row]
        order = np.argsort(-np.maximum(counts.probabilities[row], learnt * 1e-3), kind="stable")[:BARS]
        scene.chart(
            next_bars([names[i] for i in order], counts.probabilities[row][order], learnt[order], scene.mode),
            key="baselines_row",
            which=(f"character{row}", f"step{step}"),
            alt=f"The likeliest characters after {names[row]}, counted and learnt",
        )


# ---- samples ----


def _samples(found: Table, mlp: derived.Fit) -> None:
    st.subheader("What they write", anchor=False)
    st.markdown(words.SAMPLES)

    @st.fragment
    def drawn() -> None:
        seed = int(further_back.SEED.widget(st.number_input, "Seed", min_value=0, max_value=9999, width=130))
        for name, text in derived.samples(found, mlp, STEP.value, seed):
            st.markdown(f"**{name}**")
            st.html(
                f'<p data-testid="sample" data-of="{html.escape(name)}" style="white-space: pre-wrap; '
                f'font-family: monospace; margin: 0; overflow-wrap: anywhere">{html.escape(text)}</p>'
            )

    drawn()


# ---- details ----


def _details(found: Table, names: list[str], mlp: derived.Fit, compared: scale.Scale) -> None:
    counts, step = found.counts, STEP.value

    def pairs() -> pd.DataFrame:
        rows, columns = np.indices(counts.pairs.shape).reshape(2, -1)  # (2, V, V) -> (2, V*V)
        return pd.DataFrame(
            {
                "this": [names[i] for i in rows],
                "next": [names[i] for i in columns],
                "counted": counts.pairs.ravel(),
                "share": counts.probabilities.ravel(),
                f"after {step} steps": found.learnt[step].ravel(),
            }
        )

    def losses() -> pd.DataFrame:
        return pd.DataFrame({"step": range(len(found.losses)), "loss": found.losses})

    def learning() -> pd.DataFrame:
        return pd.DataFrame({"step": mlp.steps, "own text": mlp.own, "held-out text": mlp.held_out})

    in_numbers(pairs, "baselines_pairs", words.NUMBERS, "every pair")
    in_numbers(losses, "baselines_losses", words.STEPS, "the network's loss")
    in_numbers(learning, "baselines_mlp", words.LEARNING, "the MLP's loss")
    in_numbers(compared.table, "baselines_scale", words.SCALE, "on one scale")
    text = None if SOURCE.value == ALICE else mlp.text
    in_code(
        [NeuralBigram.loss, NeuralBigram.gradient, MLP.loss_and_gradients],
        program(baselines, text=text, step=step, context=mlp.recipe.context, mlp_steps=mlp.recipe.steps),
    )
