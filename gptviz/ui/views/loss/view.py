"""What this text costs the model: from logits to cross-entropy, position by position."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.next_token import Candidates, candidates, surprises
from gptviz.analysis.shapes import run_first_block
from gptviz.figures import Figure
from gptviz.figures.loss import loss_bars
from gptviz.figures.surprise import surprise_rows
from gptviz.figures.theme import Mode
from gptviz.lessons.loss import (
    NOTEBOOK_CHARACTERS,
    NOTEBOOK_LOSS,
    SLIDE_LOSSES,
    loss_steps,
    uniform_loss,
)
from gptviz.model import GPTModel
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from gptviz.ui.components.surprise import surprise_chips
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.tables import STYLE
from gptviz.ui.views.both import caption
from gptviz.ui.views.loss import tables, words
from gptviz.ui.views.loss.snippet import losses
from gptviz.ui.views.next_token.derived import logits_at, mean_loss, prompt_surprises
from gptviz.ui.words import show_id, unlike_printed

EXAMPLES = ("A copied passage", "A name comes back", "Once upon a time")
NAMED = 3  # of the most expensive positions
ROWS = 5  # of the largest logits


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    st.html(STYLE)
    found = prompt_surprises(scene.run)
    size, label = scene.lm.config.vocab_size, scene.labels
    if len(found) < 2:
        st.markdown(words.no_target(label[0], uniform_loss(size), size))
    else:
        unchanged = None if scene.other is None else prompt_surprises(scene.other)
        was = None if scene.other is None else mean_loss(scene.other)
        said = words.sentence(mean_loss(scene.run), uniform_loss(size), size, label[-1], len(label) - 1, was)
        prose(said, "perplexity", "token")
        _bars(scene)
        if scene.other is not None:
            st.markdown(moved(scene.run))
        prose(costliest(scene.run), "logit")
        _text(scene, found)
        _steps(scene, found, unchanged)
    example_row(*EXAMPLES)
    _seeds()
    _details(scene, found)


# ---- the picture ----


def _bars(scene: Scene) -> None:
    scene.chart(
        bars(scene.run, scene.position, scene.mode, scene.other),
        key="loss_bars",
        alt="The loss of every position that has a target, the mean, and that of a uniform guess",
        on_select=lambda: _pick(scene),
    )


@per_run
def bars(run: Run, position: int, mode: Mode, other: Run | None = None) -> Figure:
    """The picture of a run, with one position selected; `other` has the ghosts."""
    lm = runs.model(run)
    values, says, shown = _losses(run)
    size, chosen = lm.config.vocab_size, position if position < len(values) else None
    mean, guess = mean_loss(run), uniform_loss(size)
    ghosts = None
    if other is not None:
        was, sentences, _ = _losses(other)
        ghosts = was, [f"Unchanged. {said}" for said in sentences]
    return loss_bars(values, shown[1:], says, mean, guess, size, chosen, mode, ghosts)


def _losses(run: Run) -> tuple[np.ndarray, list[str], list[str]]:
    """A loss and its sentence for each position with a target, and all tokens as shown."""
    found, lm = prompt_surprises(run).iloc[1:], runs.model(run)
    shown = [show_token(token.raw) for token in lm.tokens(run.ids)]
    rows = zip(found["probability"], found["rank"], found["nats"], strict=True)
    says = [
        words.bar(shown[i], i, shown[i + 1], float(p), int(rank), float(loss))
        for i, (p, rank, loss) in enumerate(rows)
    ]
    return found["nats"].to_numpy(), says, shown


def _pick(scene: Scene) -> None:
    """A click on a bar selects its position: the token after which its target came."""
    points = st.session_state["loss_bars"].selection.points
    if points:
        scene.select(int(points[0]["x"]))


@per_run
def costliest(run: Run) -> str:
    """Which positions cost most."""
    found, lm = prompt_surprises(run).iloc[1:], runs.model(run)
    shown = [show_token(token.raw) for token in lm.tokens(run.ids)]
    largest = found["nats"].nlargest(NAMED)
    parts = [(shown[i], shown[i - 1], float(loss)) for i, loss in largest.items()]
    return words.costliest(parts, float(found["nats"].sum()), len(found))


@per_run
def moved(run: Run) -> str:
    """Where the changed model paid another price than the unchanged one."""
    now, was = (prompt_surprises(one)["nats"].iloc[1:] for one in (run, run.plain))
    shown = [show_token(token.raw) for token in runs.model(run).tokens(run.ids)]
    gap = (now - was).abs()
    largest = gap[gap > words.STILL].nlargest(NAMED).index
    parts = [(shown[i], shown[i - 1], float(was[i]), float(now[i])) for i in largest]
    return words.moved(parts, int((now - was > words.STILL).sum()), len(now))


# ---- the text itself ----


def _text(scene: Scene, found: pd.DataFrame) -> None:
    chips, legend = chips_of(scene.run, scene.mode, scene.other)
    surprise_chips(
        chips,
        scene.position + 1,
        legend,
        scene.mode,
        scene.select,
        raws=[token.raw for token in scene.tokens],
        key="loss_text",
        saved=scene.saved("loss_text", "What each token cost, in nats"),
    )


@per_run
def chips_of(run: Run, mode: Mode, other: Run | None = None) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The text tinted by its loss, and the legend."""
    lm = runs.model(run)
    shown = [show_token(token.raw) for token in lm.tokens(run.ids)]
    unchanged = None if other is None else prompt_surprises(other)
    return surprise_rows(prompt_surprises(run), shown, lm.config.vocab_size, mode, "nats", unchanged)


# ---- one position ----


@per_run
def largest_at(run: Run, position: int) -> Candidates:
    """The largest logits after a position, and its target's."""
    return candidates(logits_at(run, position), ROWS, also=[run.ids[position + 1]])


def _steps(scene: Scene, found: pd.DataFrame, unchanged: pd.DataFrame | None) -> None:
    """From logits to loss at the selected position; at the most expensive one where that has no target."""
    last, position = len(scene.tokens) - 1, scene.position
    if position == last:
        position = int(found["nats"].iloc[1:].idxmax()) - 1
    label, target = scene.labels[position], scene.labels[position + 1]
    st.markdown(f"#### {words.step_title(label, position, target)}")
    if scene.position == last:
        st.markdown(words.shown_instead(scene.label, last))
    row = found.iloc[position + 1]
    loss = float(row["nats"])
    logit, log_sum, probability = (float(row[name]) for name in ("logit", "log_sum", "probability"))
    lines = words.steps(logit, log_sum, probability, loss, scene.lm.config.vocab_size)
    lines.append(words.mean_line(found["nats"].iloc[1:].tolist(), mean_loss(scene.run)))
    before = None
    if unchanged is not None and scene.other is not None:
        was = unchanged.iloc[position + 1]
        lines.insert(3, words.unchanged_line(float(was["probability"]), float(was["nats"])))
        before = largest_at(scene.other, position)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        prose("\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1)), "softmax", "logit")
    with right:
        largest = largest_at(scene.run, position)
        st.html(
            tables.position_table(
                largest, scene.tokens[position + 1].id, loss, lambda i: show_id(scene.lm, i), before
            )
        )


# ---- below ----


def _seeds() -> None:
    st.markdown("#### The smallest example")
    left, right = st.columns([5, 6], gap="medium")
    with left:
        prose(words.slides(unlike_printed(SLIDE_LOSSES, tables.slide_steps().loss.tolist())), "softmax")
        st.markdown(words.notebook(NOTEBOOK_CHARACTERS, NOTEBOOK_LOSS, uniform_loss(NOTEBOOK_CHARACTERS)))
    with right:
        st.html(tables.slides_table())


def _details(scene: Scene, found: pd.DataFrame) -> None:
    unchanged = None if scene.other is None else prompt_surprises(scene.other)
    said = caption(words.NUMBERS, scene.other)
    in_numbers(lambda: tables.loss_table(found, scene.tokens, unchanged), "loss", said)
    in_code(
        [loss_steps, surprises, GPTModel.forward],
        program(losses, scene.load, text=scene.text, special_tokens=scene.special),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )
