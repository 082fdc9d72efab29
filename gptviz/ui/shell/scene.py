"""What a page has in hand, step by step: a Frame (model, light or dark), a Prompt (a text that the model can
read), a Scene (one pass of the model over it).

All three hold names and never a model or a trace: sessions, fragments and callbacks keep them for as long as
their visitor may come back, and a trace of a long text is hundreds of megabytes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz import CaptureError, LanguageModel, Run, Trace
from gptviz.engine.architecture import architecture_of
from gptviz.engine.forward import NoNumbers
from gptviz.engine.reduction import Reduction
from gptviz.engine.tokens import Token
from gptviz.figures import Figure
from gptviz.figures.theme import Mode, Palette, palette
from gptviz.tokenizer import named_bytes, show_token
from gptviz.ui import runs
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.components.chart import chart
from gptviz.ui.components.chips import chips
from gptviz.ui.components.saved import Saved, shortened, stem
from gptviz.ui.runs import Keep, per_run
from gptviz.ui.shell import changes, prompt, state
from gptviz.ui.shell.address import end_page
from gptviz.ui.shell.changes import Change
from gptviz.ui.shell.params import PRESENTED, Param
from gptviz.ui.words import escaped, show_id

ABOVE = "16rem"  # of the screen, for what stands above a picture that is fitted into the rest


@dataclass(frozen=True)
class Frame:
    """A page without a text: `key` names its model among all that are loaded, `plain_load` is the Python that
    gives the same, and pictures `of_model` say it. `seen` is "covered" while a question waits for its answer.
    `reads_text`: it is the first step of a page about a text."""

    key: str
    plain_load: str
    mode: Mode
    params: tuple[Param, ...]
    seen: str
    reads_text: bool
    of_model: bool

    @property
    def lm(self) -> LanguageModel:
        """The model, looked up: keep it in a local variable, and in nothing that lives longer."""
        return runs.model(self.key)

    @property
    def norm(self) -> str:
        """What the model's norms are called, in the glossary as well: LayerNorm or RMSNorm."""
        return architecture_of(self.lm.config).named.norm

    @property
    def load(self) -> str:
        """The Python that gives `lm`, for a program."""
        return self.plain_load

    @property
    def palette(self) -> Palette:
        """The colours of its pictures, light or dark."""
        return palette(self.mode)

    def saved(self, name: str, title: str, *which: object) -> Saved:
        """The name and the words of a picture's file; `which` tells it from others ("block5")."""
        lines: tuple[str, ...] = ()
        if self.of_model:
            lines = (f"Model: {self.lm.name}",)
        return Saved(stem(*name.split("_"), *which), title, lines)

    def chart(
        self,
        fig: Figure,
        key: str,
        alt: str,
        pick: Callable[[Mapping[str, Any]], Any] | None = None,
        which: Iterable[object] = (),
        on_cell: Callable[[int, int], Any] | None = None,
    ) -> None:
        """Draw a figure with its picture downloads, whose title is `alt`; for `which` see `saved`.

        A click on a point is `pick(point)`: its x, y and customdata. One on a cell of the figure's heatmaps,
        which are of one size, is `on_cell(row, column)`.
        """
        fitted = None
        if state.PRESENT.value:
            large = fig.larger(PRESENTED)
            fitted = f"clamp({fig.height:.0f}px, 100vh - {ABOVE}, {large.height:.0f}px)"
            fig = large
        chart(fig, key, alt, pick, self.saved(key, alt, *which), fitted)
        if on_cell is not None:
            cell_clicks(key, *fig.cells, on_cell)


@dataclass(frozen=True)
class Prompt(Frame):
    """A text that the model can read, and what is changed in the model.

    `run` is the pass that the page shows, with these changes; `other` is then the model as it is, to compare
    with, and None where nothing is changed. The tokens are drawn at `place`, what the changes did at
    `changes_place`, what a page asked room for beside the box at `beside`.
    """

    run: Run
    other: Run | None
    text: str
    tokens: tuple[Token, ...]
    position: int
    special: bool
    truncated: bool
    place: DeltaGenerator
    changes: tuple[Change, ...]
    changes_place: DeltaGenerator
    beside: DeltaGenerator | None

    @property
    def lm(self) -> LanguageModel:
        """The model with the run's edits, looked up."""
        return runs.model(self.run)

    @property
    def plain_lm(self) -> LanguageModel:
        """The model without them, looked up."""
        return runs.model(self.key)

    @property
    def load(self) -> str:
        """The Python that gives `lm`, the run's edits included."""
        edits = ", ".join(repr(str(edit)) for edit in self.run.edits)
        return f"{self.plain_load}.edited({edits})" if edits else self.plain_load


@dataclass(frozen=True)
class Scene(Prompt):
    """A text that the model has read, in one pass.

    `keep` lists the sites that the page reads, `reduce` what the pass makes of others; `trace` holds both.
    `files_say` are further lines of its saved pictures.
    """

    keep: Keep
    reduce: tuple[Reduction, ...] = ()
    files_say: tuple[str, ...] = ()

    @property
    def trace(self) -> Trace:
        """The run's trace, looked up: keep it in a local variable, and in nothing that lives longer."""
        return runs.get(self.run, self.keep, self.reduce)

    def get(self, keep: Keep, reduce: Iterable[Reduction] = ()) -> Trace:
        """A trace of the run that holds other sites, or what a pass makes of them on the way.

        Ends the script with a sentence where the model fails. Raises `runs.Busy`, which `navigation` tells.
        """
        try:
            return runs.get(self.run, keep, reduce)
        except (CaptureError, NoNumbers) as error:
            self.place.error(
                f"Nothing can be shown, because the model did not work as it should: {escaped(str(error))}"
            )
            # which follow to every page, and the strip that undoes them is not drawn
            if changes.written():
                self.place.button(
                    "Undo all changes", key="changes_undo_all", on_click=changes.clear
                )
        end_page()

    def saved(self, name: str, title: str, *which: object) -> Saved:
        """The same with the selected token in the file's name, and with it and the text below the title.

        What is changed in the model is in both: no picture of a changed run can be taken for the model's own.
        """
        token = f"Selected: {self.label} (position {self.position})"
        edits = ", ".join(map(str, self.run.edits))
        changed = (f"Changed: {shortened(edits, 80)}",) if edits else ()
        own = super().saved(
            name, title, *which, f"token{self.position}", "changed" if edits else ""
        )
        text = f"Text: {shortened(self.text, 80)}"
        return replace(own, lines=(token, text, *self.files_say, *changed, *own.lines))

    @property
    def unchanged(self) -> "Scene":
        """The same of the model as it is: what a picture of that is saved by."""
        return replace(self, run=self.run.plain, other=None)

    @property
    def labels(self) -> list[str]:
        """The tokens as the screen shows them."""
        return [show_token(token.raw) for token in self.tokens]

    @property
    def label(self) -> str:
        """The selected token as the screen shows it."""
        return show_token(self.tokens[self.position].raw)

    def select(self, position: int) -> None:
        """Select a token; for callbacks, so that the next run shows it."""
        state.TOKEN.set(max(0, min(position, len(self.tokens) - 1)))

    def pick(self, query: int | None, key: int | None) -> None:
        """Select the token that a click on a matrix names: the query's, or else the key's."""
        self.select(query if query is not None else key or 0)

    def append(self, token_id: int) -> None:
        """Extend the prompt by a token's text; for callbacks."""
        refusal = prompt.append(self.lm, list(self.tokens), token_id)
        if refusal:
            st.toast(refusal)

    def write_next(self) -> str | None:
        """Extend the prompt by the run's most probable token; for callbacks. A sentence if that cannot be."""
        token_id = most_probable(self.run)["id"]
        if prompt.ends_the_text(self.lm, token_id):
            name = show_token(named_bytes(self.lm.tokenizer, token_id))
            return f"The model ends the text here: it predicts `{name}`."
        return prompt.append(self.lm, list(self.tokens), token_id)

    def strip(
        self,
        weights: Sequence[float | None] | None = None,
        coloured: bool = False,
        shares: Sequence[float] | None = None,
        most: float = 0.0,
    ) -> None:
        """The prompt's tokens, under the prompt: once a page, by `trace()` unless it leaves that to the page.

        `weights` colour the chips, a number from 0 to 1 each, None for what is masked: attention drawn on the
        text itself. `shares` are signed, of the tokens up to the selected one: what each gave, in full
        colour where it is `most`. `coloured` gives each position its own colour, where the page uses the same ones.
        """
        following = None
        if self.seen == "covered":  # the colours and the guess could tell an answer
            weights = shares = None
        elif not self.truncated:
            following = most_probable(self.run)
        with self.place:
            chips(
                self.tokens,
                self.position,
                self.select,
                weights=weights,
                shares=shares,
                most=most,
                coloured=coloured,
                following=following,
                on_append=self.append,
            )


@per_run
def most_probable(run: Run) -> dict[str, Any]:
    """The most probable next token, for the end of the strip."""
    logits = runs.get(run, ()).logits(-1)
    best = int(logits.argmax())
    probability = float(logits.double().softmax(dim=0)[best])
    return {"shown": show_id(runs.model(run), best), "id": best, "probability": probability}
