"""What a notebook's picture is drawn on: a trace and, where something is changed, the unchanged model's."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar

from gptviz.both import Both
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.tokens import Token
from gptviz.engine.trace import Trace
from gptviz.figures import Figure
from gptviz.figures.marks import CHANGED, DIFFERENCE, UNCHANGED
from gptviz.figures.theme import Mode
from gptviz.tokenizer import begins_of, show_token
from gptviz.ui.components.kernel import elsewhere
from gptviz.ui.components.saved import Saved, stem
from gptviz.ui.notebook.frame import Picture

P = ParamSpec("P")
R = TypeVar("R")

SHOWN = (DIFFERENCE, CHANGED, UNCHANGED)


def ignored(*_: Any) -> None:
    """Do nothing about a click: the picture has answered it already."""


@dataclass
class Sheet:
    """A trace `t`, the `position` and the `mode` to draw it in; `shown`: what maps have of a changed run.

    If it `follows` the notebook, it is drawn light, and each part keeps what differs in dark mode.
    """

    t: Trace
    position: int
    mode: Mode
    shown: str
    parts: list[dict[str, Any]] = field(default_factory=list)
    title: str = ""
    follows: bool = False

    @cached_property
    def lm(self) -> LanguageModel:
        return self.t.lm

    @cached_property
    def traces(self) -> Both[Trace]:
        """The trace, and that of the model without its edits, where it has any."""
        if not self.t.edits:
            return Both(self.t)
        return Both(
            self.t, self.lm.plain.trace([token.id for token in self.t.tokens], keep=self.t.sites())
        )

    @cached_property
    def labels(self) -> list[str]:
        return [show_token(token.raw) for token in self.t.tokens]

    def of(
        self,
        numbers: Callable[Concatenate[LanguageModel, Trace, P], R],
        *args: P.args,
        **named: P.kwargs,
    ) -> Both[R]:
        """`numbers(lm, trace, ...)` of both runs."""
        return self.traces.map(lambda t: numbers(t.lm, t, *args, **named))

    def shown_of(self, *numbers: Both[Any]) -> str:
        """What maps of these numbers show: `shown`, or CHANGED if the change did nothing to them."""
        if any(pair.moved for pair in numbers):
            return self.shown
        return CHANGED

    def saved(self, name: str) -> Saved:
        return Saved(stem(name), self.title, self.lines)

    @cached_property
    def typed(self) -> Sequence[Token]:
        """The tokens of the text, without what the tokenizer puts before every text."""
        first = begins_of(self.t.tokenizer)
        if tuple(token.id for token in self.t.tokens[: len(first)]) == first:
            return self.t.tokens[len(first) :]
        return self.t.tokens

    @cached_property
    def text(self) -> str:
        return b"".join(token.raw for token in self.typed).decode("utf-8", "replace")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines below the title: the text, the model, its changes."""
        text = show_token(b"".join(token.raw for token in self.t.tokens)).replace("·", " ")
        line = f"“{text}” · {self.t.name}"
        if self.t.edits:
            edits = ", ".join(map(str, self.t.edits))
            line += f", changed: {edits}"
        return (line,)

    # ---- parts ----

    def take(self, name: str, data: dict[str, Any]) -> None:
        """Keep a component that is drawn while this sheet listens: see `kernel.elsewhere`."""
        self.parts.append({"draw": name, "data": data})

    def figure(self, draw: Callable[[Mode], Figure], name: str, alt: str, title: str = "") -> None:
        """Keep a figure, drawn for a mode; `alt` describes it to those who do not see it."""
        words = {"key": f"{name}_{len(self.parts)}", "alt": alt, "title": title}
        drawn = json.loads(draw(self.mode).to_json())
        self.parts.append({"figure": drawn, "saved": self.saved(name).data(), **words})
        self.when_dark(lambda mode: {"figure": json.loads(draw(mode).to_json())})

    def when_dark(self, draw: Callable[[Mode], dict[str, Any]]) -> None:
        """Keep what differs of the last part in dark mode, if the picture follows the notebook."""
        if self.follows:
            self.parts[-1]["dark"] = draw("dark")

    def drawn(self, draw: Callable[..., None], *args: Any, **options: Any) -> Picture:
        """Call `draw(sheet, ...)` and return its parts as a picture."""
        with elsewhere(self.take, self.mode):
            draw(self, *args, **options)
        for part in self.parts:
            if "draw" in part:
                part["data"]["saved"] = self.saved(part["draw"]).data()
        return Picture(
            self.title, self.lines, tuple(self.parts), None if self.follows else self.mode
        )
