"""The pictures of `t.show` and their arguments, so that an editor can complete them.

The pictures stand in a higher room (`gptviz.ui.notebook.pictures`): tests/ui/notebook/test_pictures.py holds
these signatures to theirs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, overload

from gptviz.engine.above import ask
from gptviz.tokenizer.one import MEAN, Against, OneToken

Mode = Literal["light", "dark"]
Maps = Literal["difference", "changed", "unchanged"]
PageName = Literal[
    "overview",
    "tokens",
    "embeddings",
    "layernorm",
    "attention",
    "feed_forward",
    "next_token",
    "generate",
    "data_windows",
    "positions",
    "anatomy",
    "loss",
    "residual_stream",
    "logit_lens",
    "why",
    "heads",
    "knock_out",
    "circuit",
    "patching",
    "compare",
]


class Shown(Protocol):
    """A picture, as `show` gives it: see `gptviz.ui.notebook.Picture`."""

    @property
    def html(self) -> str: ...

    def to_html(self, path: str | Path) -> Path: ...

    def save(self, path: str | Path, words: bool = True) -> Path: ...

    def _repr_html_(self) -> str: ...

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, str]: ...


class Showing:
    """The pictures of a trace, by their names."""

    @overload
    def show(
        self,
        page: Literal["overview"],
        at: str = "",
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["tokens"],
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["embeddings"],
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["layernorm", "norms"],
        norm: str = "block 0 · norm1",
        quantity: str = "variance",
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["attention", "attn"],
        block: int | None = None,
        head: int | None = None,
        hide_first: bool = False,
        arcs: bool = False,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["feed_forward", "mlp"],
        block: int = -1,
        unit: int | None = None,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["next_token"],
        k: int = 10,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["generate"],
        n: int = 20,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
        **options: Any,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["data_windows"],
        max_length: int = 4,
        stride: int = 4,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["positions"],
        scheme: str = "learned",
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["anatomy"],
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["loss"],
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["residual_stream"],
        block: int | None = None,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["logit_lens", "lens"],
        measure: str = "probability",
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["why"],
        token: OneToken | None = None,
        against: Against = MEAN,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["heads"],
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["knock_out"],
        token: OneToken | None = None,
        against: Against = MEAN,
        baseline: str = "zero",
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["circuit"],
        token: OneToken | None = None,
        against: Against = MEAN,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
        **options: Any,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["patching"],
        other: str | Sequence[int],
        site: str = "resid_pre",
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
        **options: Any,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["compare"],
        other: Any,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: Literal["every_head"] | None = None,
        block: int | None = None,
        head: int | None = None,
        *,
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        whole: Literal[False] = False,
    ) -> Shown: ...

    @overload
    def show(
        self,
        page: PageName,
        *,
        whole: Literal[True],
        position: int = -1,
        mode: Mode | None = None,
        shown: Maps = "difference",
        **choices: Any,
    ) -> Shown: ...

    def show(self, page: str | None = None, *args: Any, **options: Any) -> Any:
        """The picture of one of the app's pages: see `gptviz.ui.notebook.show`, which takes the rest.

        `t.show()` is the tokens and all heads, `t.show("attention", 3, 1)` a head, `t.show("layernorm")`. A
        notebook shows it; `t.show(...).save("head.svg")` writes it as a figure, `.to_html("picture.html")` as
        a file that answers clicks.
        """
        return ask("trace.show", self, page, *args, **options)
