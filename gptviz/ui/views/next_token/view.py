"""What comes next, how sure the model is of it, and how temperature, top-k and top-p choose."""

import pandas as pd
import streamlit as st
import torch

from gptviz import Run
from gptviz.analysis.next_token import candidates, curve, surprises
from gptviz.analysis.shapes import run_first_block
from gptviz.figures.candidates import candidate_rows, column_heads
from gptviz.figures.next_token import vocabulary_curve
from gptviz.figures.surprise import surprise_rows
from gptviz.forward import FORWARD_LOCK
from gptviz.model import GPTModel
from gptviz.sampling import Sampling, distribution
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from gptviz.ui.components.candidates import candidate_bars
from gptviz.ui.components.surprise import surprise_chips
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.next_token import sampling, words
from gptviz.ui.views.next_token.continuation import SEED, controls, go_on_with, write_on
from gptviz.ui.views.next_token.headline import headline, uncertainty
from gptviz.ui.views.next_token.sampling import sampling_controls
from gptviz.ui.views.next_token.snippet import bars as bars_in_python
from gptviz.ui.views.next_token.tables import candidate_table, entropy_table, surprise_table
from gptviz.ui.words import is_whole, show_id

PARAMS = (SEED, *sampling.PARAMS)


@per_run
def prompt_surprises(run: Run) -> pd.DataFrame:
    """`analysis.next_token.surprises` of the prompt: the output head at every position, once per text."""
    trace, head = runs.get(run, ("final",)), runs.model(run).model.out_head.weight.detach()
    with FORWARD_LOCK:  # with GPT-2's vocabulary as much work as several forward passes
        return surprises(trace["final"], head, run.ids)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    lm, position, last = scene.lm, scene.position, len(scene.tokens) - 1
    logits = scene.trace.logits(position)  # (V,): the only row of logits that the bars need
    surprise = prompt_surprises(scene.run)
    shown = [show_token(token.raw) for token in scene.tokens]
    chips, legend = surprise_rows(surprise, shown, len(logits), scene.mode)

    def name(token_id: int) -> str:
        return show_id(lm, token_id)

    def whole(token_id: int) -> bool:
        return is_whole(lm, token_id)

    before = b"".join(token.raw for token in scene.tokens[: position + 1])
    came = None if position == last else scene.tokens[position + 1].id
    prose(_sentence(scene, logits, came), "logit", "perplexity")

    @st.fragment
    def bars() -> None:
        """Everything that a slider changes; the forward pass and the surprises stay outside."""
        top = st.container(key="next_headline", horizontal=True, horizontal_alignment="distribute")
        sampling, count = sampling_controls(lm.config.vocab_size)
        found = candidates(logits, count, sampling, also=came)
        top.html(headline(before, found, name(int(found.table["id"][0])), scene.mode))
        top.html(uncertainty(found))

        rows, rest = candidate_rows(found, sampling, name, whole, came)
        action = "Append" if position == last else "Go on with it"
        candidate_bars(
            rows, rest, column_heads(sampling), scene.mode, lambda i: go_on_with(scene, i), action=action
        )
        controls(scene, found.chosen.probabilities, sampling)
        prose(
            words.look_for(len(logits), found.model_entropy, found.entropy, not sampling.changes_nothing),
            *("logit", "vocabulary", "softmax", "entropy", "temperature", "top-k", "top-p"),
        )

        st.markdown("#### Surprise along the prompt")
        prose(
            words.along_the_prompt(len(surprise), surprise["bits"].mean(), surprise["nats"].mean()),
            "surprise",
        )
        surprise_chips(chips, position + 1, legend, scene.mode, scene.select)
        in_numbers(
            lambda: surprise_table(surprise, scene.tokens), "surprise", words.SURPRISES, "the surprise"
        )

        st.markdown("#### The whole vocabulary")
        line = curve(logits, found)
        arrived = None if came is None else (int(found.rank[came]) + 1, name(came))
        scene.chart(
            vocabulary_curve(line, [name(i) for i in line["id"]], found.kept, scene.mode, arrived),
            key="next_curve",
            alt="The probability of every token of the vocabulary by its rank",
        )
        st.markdown(words.CURVE)

        in_numbers(lambda: candidate_table(found, name), "next_token", words.NUMBERS, "the next token")
        in_numbers(lambda: entropy_table(found), "entropy", words.SURE, "how unsure")
        in_code(
            [GPTModel.forward, GPTModel.final_hidden, distribution],
            program(
                bars_in_python,
                scene.load,
                text=scene.text,
                position=position,
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                rows=count,
                came=len(rows) > count,
                special_tokens=scene.special,
            ),
            run=lambda: _run(scene, logits, sampling),
        )

    write_on(scene)
    bars()


def _sentence(scene: Scene, logits: torch.Tensor, came: int | None) -> str:
    """What stands above the bars; the settings change nothing in it."""
    found = candidates(logits, 1, also=came)
    best, token = found.table.iloc[0], show_token(scene.tokens[scene.position].raw)
    predicted, probability = show_id(scene.lm, int(best["id"])), float(best["model_probability"])
    said = words.sentence(token, scene.position, predicted, probability, found.model_entropy)
    if came is None:
        return said
    row = found.table[found.table["id"] == came].iloc[0]
    had, rank = float(row["model_probability"]), int(row["rank"])
    return f"{said} {words.came_next(show_id(scene.lm, came), had, rank)}"


def _run(scene: Scene, logits: torch.Tensor, sampling: Sampling) -> None:
    """What *In code* shows, once, so that its shapes can be taken down."""
    run_first_block(scene.lm, [token.id for token in scene.tokens])
    distribution(logits, sampling)
