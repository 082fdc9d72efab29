"""What stands on a page while the question of a guide is open: all but what could tell its answer.

A page draws as ever. What it sends goes through a `Cover`: text, tokens, choices and explanations pass; in the place of
a picture, a table, a program or a sentence with a number of the model comes a cover of about its height. None of these
reaches the browser, on any page, but the pictures that the guide's step names in `shows`: they do not tell the answer.
"""

import ast
import html
import json
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import get_script_run_ctx

WHY = "Answer first: then you see what the model says."
WAIT = "Your teacher will show what the model says."  # of who has answered in a class
TEACHES = "Covered until you reveal the answer."

# what a person chooses or presses, and what says that something goes on: nothing of a model
CONTROLS = frozenset(
    [
        "audio_input",
        "button",
        "button_group",
        "camera_input",
        "chat_input",
        "checkbox",
        "color_picker",
        "date_input",
        "empty",
        "exception",
        "feedback",
        "file_uploader",
        "link_button",
        "menu_button",
        "multiselect",
        "number_input",
        "page_link",
        "pagination",
        "radio",
        "selectbox",
        "skeleton",
        "slider",
        "space",
        "spinner",
        "text_area",
        "text_input",
        "time_input",
    ]
)
# components of ours that show nothing of a model, or no more than the text and its tokens
OF_THE_TEXT = frozenset(
    ("chips", "class_cookie", "guide_look", "lazy_section", "prompt", "theme_watch")
)
UNSEEN = frozenset(("empty", "html", "space", "spinner"))  # html that passes is a style, most often
# what hangs on a picture and has no place of its own
ATTACHED = ("_save", "_clicks")

# pixels of a component that draws itself, as it stands on a page 1280 pixels wide
HEIGHTS = {
    "birth": 500,
    "candidates": 380,
    "chips": 41,
    "draws": 387,
    "heads": 400,
    "lens": 438,
    "machine": 492,
    "matrix": 480,
    "merges": 324,
    "path": 500,
    "surprise": 96,
    "token_cards": 222,
    "tokenizer_rows": 349,
    "windows": 358,
    "worksheet": 167,
    "writing": 48,
}
HEIGHT = 240  # of what is not named there
ROW = 36  # of a table
CODE_LINE = 22
TEXT_LINE = 26
LINE_CHARACTERS = 110  # of a sentence on one line

_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_LOOK = re.compile(r' (?:style|class)="[^"]*"')
_NAME = re.compile(r'data-testid="([^"]*)"')
_TELLS = re.compile(r"[\d`]")  # a number, or a token of the model
# what a choice or a door says of the model: tokens, their probabilities, a head
_OFFERS = re.compile(r"[%·`]|\b(?:block|head|position) \d", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+")
SHORTEST = (
    30  # characters of a sentence that is found in a program: a shorter one could be by chance
)
PARTS = Path(__file__).parents[1] / "parts"


class Cover:
    """Passes on what a page sends to the browser, or a cover in its place.

    `script` is the page's. `shows` are the keys of pictures that pass, `hides` those of choices and tokens that do not.
    `answer` is how the screen says it: no sentence has it, not even one that only explains. No sentence has `said_by`.
    `why` says what has to happen before all is seen.
    """

    def __init__(
        self,
        send: Callable[[ForwardMsg], None],
        script: Path,
        shows: Sequence[str],
        hides: Sequence[str],
        answer: str,
        said_by: str = "",
        why: str = WHY,
    ):
        self.send = send
        self.script = script
        self.shows = shows
        self.hides = hides
        self.said_by = said_by
        self.why = why
        self.answer = None
        if answer:
            self.answer = re.compile(rf"(?<![\w.]){re.escape(answer.strip('`'))}(?!\w|\.\d)")
        self.has_begun = False
        self.has_said = False  # why, in a cover before, with nothing to be seen since

    def __call__(self, message: ForwardMsg) -> None:
        """Send this message, covered where it could tell the answer."""
        context = get_script_run_ctx()
        # a part of the guide's own bar runs alone: no part of a covered page does
        if context is None or context.fragment_ids_this_run:
            self.send(message)
            return
        kind = message.WhichOneof("type")
        if kind == "auto_rerun":
            return  # of a part of the page, which would be drawn without its cover
        if kind != "delta" or message.metadata.delta_path[0] != 0:
            self.send(message)  # the sidebar's, say
            return
        sent = ForwardMsg()
        sent.CopyFrom(message)
        # a choice in a part of the page has the whole page run
        sent.delta.fragment_id = ""
        if sent.delta.WhichOneof("type") == "new_element":
            covered = self.covered(sent.delta.new_element)
            if covered is None:
                self.has_said &= sent.delta.new_element.WhichOneof("type") in UNSEEN
            else:
                sent.delta.new_element.Clear()
                sent.delta.new_element.html.body = covered
                sent.delta.new_element.width_config.use_stretch = True
        self.send(sent)

    def covered(self, element: Any) -> str | None:
        """The HTML of the cover of this element; None where it may be seen."""
        kind = element.WhichOneof("type")
        if self._is_shown(element, kind):
            return None
        proto = getattr(element, kind)
        if kind in CONTROLS:
            if _key(proto) in self.hides:
                return self._bar(1)
            offered = (getattr(proto, "label", ""), *getattr(proto, "options", ()))
            if _OFFERS.search("\n".join(map(str, offered))):
                return self._bar(1)
            return None
        if kind == "alert" and proto.format == proto.ERROR:
            return None
        if kind in ("markdown", "heading", "alert"):
            return self._covered_text(proto.body)
        if kind == "html":
            return self._covered_html(proto.body)
        if kind == "plotly_chart":
            return self._place(json.loads(proto.spec)["layout"].get("height") or HEIGHT)
        if kind == "bidi_component":
            name = _component(proto)
            if name.endswith(("cell_clicks", "chart")):
                return ""
            return self._place(HEIGHTS.get(name, HEIGHT))
        if kind == "code":
            return self._place(CODE_LINE * (proto.code_text.count("\n") + 1))
        if kind == "download_button":
            return ""
        return self._place(HEIGHT)

    def _covered_text(self, text: str) -> str | None:
        """A bar for a text with a number or a token of the model; None for one that only explains."""
        words = html.unescape(_TAG.sub("", _STYLE.sub("", text))).replace("\xa0", " ")
        is_told = self.answer is not None and self.answer.search(html.unescape(text))
        if is_told or (self.said_by and self.said_by in words):
            return self._bar(1 + len(words) // LINE_CHARACTERS)
        told = [one for one in _SENTENCE.split(words) if _TELLS.search(one)]
        program = _sentences(self.script)
        if all(len(one) >= SHORTEST and one in program for one in told):
            return None
        return self._bar(1 + len(words) // LINE_CHARACTERS)

    def _covered_html(self, body: str) -> str | None:
        """A cover for what is written as HTML, its attributes included; None for a style."""
        rest = _LOOK.sub("", _STYLE.sub("", body))
        if "<table" in rest:
            return self._place(ROW * rest.count("<tr"))
        if _TELLS.search(rest) is None:
            return None
        return self._bar(1 + len(_TAG.sub("", rest)) // LINE_CHARACTERS)

    def _place(self, height: float) -> str:
        """The place of a picture, with the line that says why it is not there: once for several in a row."""
        line = "" if self.has_said else f"<p>{html.escape(self.why)}</p>"
        self.has_said = self.has_begun = True
        return f'<div class="gv-cover" data-testid="cover" style="min-height: {height:.0f}px">{line}</div>'

    def _bar(self, lines: int) -> str:
        """The place of a sentence or of a choice; the first one of a page says why."""
        line = "" if self.has_begun else f"<p>{html.escape(self.why)}</p>"
        self.has_begun = True
        return (
            '<div class="gv-cover gv-cover-text" data-testid="cover" '
            f'style="min-height: {lines * TEXT_LINE}px">{line}</div>'
        )

    def _is_shown(self, element: Any, kind: str) -> bool:
        """True for a component that shows no more than the text, and for what the step shows."""
        proto = getattr(element, kind)
        name = _key(proto)
        if kind == "bidi_component" and _component(proto) in OF_THE_TEXT:
            return name not in self.hides
        if kind == "html":
            found = _NAME.search(proto.body)
            name = "" if found is None else found[1]
        for ending in ATTACHED:
            name = name.removesuffix(ending)
        return bool(name) and any(fnmatch(name, pattern) for pattern in self.shows)


def begin(script: Path, *what: Any, **how: Any) -> None:
    """Cover what the page of this script draws from here to its end; the rest is as `Cover` takes it."""
    context = get_script_run_ctx()
    if context is not None:
        end()
        # everything that a script draws goes this way, before Streamlit looks whether the browser knows it already
        context.enqueue = Cover(context.enqueue, script, *what, **how)  # type: ignore[assignment,method-assign]


def end() -> None:
    """Cover nothing: the run before may have, and its context lives on."""
    context = get_script_run_ctx()
    if context is not None:
        vars(context).pop("enqueue", None)  # the method is there again


def _key(proto: Any) -> str:
    return str(getattr(proto, "id", "")).rsplit("-", 1)[-1]


def _component(proto: Any) -> str:
    return str(proto.component_name).removeprefix("gptviz.")


@cache
def _sentences(script: Path) -> str:
    """Every text that stands in a page's script and in its parts as it is, whatever the model does."""
    files = [script, *sorted((PARTS / script.stem).glob("*.py"))]
    texts = [
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return "\n".join(texts)
