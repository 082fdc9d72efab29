"""Every page as it stands: what is written on it in a real run, and that its programs give what it draws.

What stands on a page, with the model as it is and with a change, is one file that a person can read:
`snapshots/NAME.txt`. What only the first has begins with -, what only the second has with +. Where a page is
meant to say something else, `GPTVIZ_WRITE_SNAPSHOTS=1 pytest tests/pages/test_snapshots.py -k NAME` writes it
anew, and the diff is what to read. A number may differ by one in its last digit: processors round otherwise.
"""

import contextlib
import html
import json
import os
import re
import runpy
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from difflib import SequenceMatcher, unified_diff
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gptviz.ui import jobs
from gptviz.ui.shell.navigation import CLASS, PAGES
from tests.pages.conftest import first_look, not_started, open_all, run_page
from tests.specs import charts, decoded, floats

FOLDER = Path(__file__).parent / "snapshots"
WRITE = "GPTVIZ_WRITE_SNAPSHOTS"
CHANGE = "embed@4=mean,z.4.3=zero"
MOST = 12  # sentences of a component


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch):
    """Nothing is measured in the background, but what ships with the bundled model is known."""
    not_started(monkeypatch)
    jobs.queue.clear()


# ---- what is written on a page ----

UNSEEN = {"theme_watch", "prompt", "chips", "chart", "cell_clicks"}  # say nothing of their own


def written(at) -> list[str]:
    """The page's lines, from top to bottom."""
    return [line for line in _lines(at.main, "") if line.strip()]


def _lines(node, margin: str) -> Iterator[str]:
    for child in node.children.values():
        if getattr(child, "key", None) in ("gv_present", "gv_place"):  # every page has it
            continue
        yield from (margin + line.rstrip() for line in _said(child).splitlines())
        if hasattr(child, "children"):
            inside = child.type in ("expander", "popover", "tab")
            yield from _lines(child, margin + "    " if inside else margin)


def _said(element) -> str:
    kind = element.type
    proto = element.proto
    key = getattr(element, "key", None)
    if kind in ("flex_container", "column", "empty", "space"):
        return ""
    if kind == "title":
        return f"# {_text(element.value)}"
    if kind == "subheader":
        return f"## {_text(element.value)}"
    if kind in ("markdown", "html", "caption", "info", "warning", "error", "success"):
        return _prose(
            _text(proto.body).replace("\xa0", " "),
            "" if kind in ("markdown", "html") else f"({kind}) ",
        )
    if kind == "plotly_chart":
        return _chart(key, json.loads(proto.spec), proto.alt)
    if kind == "bidi_component":
        return _component(key, proto.component_name.removeprefix("gptviz."), json.loads(proto.json))
    if kind == "dataframe":
        return f"(table) {len(element.value)} rows: {', '.join(map(str, element.value))}"
    if kind == "code":
        return _program(element.value) if "picture = " in element.value else ""
    return _widget(kind, key, element)


def _widget(kind, key, element) -> str:
    label = f"({kind} {key})" if key else f"({kind})"
    label += " " + _text(getattr(element, "label", "") or getattr(element.proto, "label", ""))
    options = getattr(element, "options", None)
    if options and len(options) <= 12:
        label += f": {', '.join(map(str, options))}"
    value = getattr(element, "value", None)
    return label if value in (None, False, "") or kind.endswith("link") else f"{label} = {value}"


def _prose(text: str, before: str) -> str:
    """A line a sentence; the model's lines are told by the function they are of, wherever it stands."""
    if text.startswith("Shapes in this run"):
        return ""
    text = re.sub(r": (\S+\.py), lines \d+ to \d+$", "", text)
    return before + re.sub(r"(?<=[.:!?]) (?=[A-Z*`])", "\n", text)


def _text(markup: str) -> str:
    """Without its tags: a table's cells are told by |."""
    markup = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", markup, flags=re.DOTALL)
    markup = re.sub(r"</t[hd]>", " | ", markup)
    return html.unescape(
        re.sub(r"</?[a-z][^<>]*>", "", re.sub(r"</tr>|<br>|</div>|</p>", "\n", markup))
    )


def _chart(key: str, spec: dict, alt: str) -> str:
    """What it shows, its axes, and how many numbers of what kind."""
    axes = [
        _text(spec["layout"][axis]["title"]["text"])
        for axis in sorted(spec["layout"])
        if axis[1:].startswith("axis") and spec["layout"][axis].get("title", {}).get("text")
    ]
    traces = [
        f"{trace['type']} {'×'.join(map(str, _drawn(trace).shape))}" for trace in spec["data"]
    ]
    return f"[{key}] {alt}\n  {'; '.join([', '.join(dict.fromkeys(traces)), *axes])}"


def _drawn(trace: dict) -> np.ndarray:
    found = trace.get("z", trace.get("y", trace.get("x", [])))
    return decoded(found) if isinstance(found, dict) else np.asarray(found, dtype=object)


def _component(key: str, name: str, data: dict) -> str:
    """The sentences that it is given, of each kind the first."""
    if name in UNSEEN:
        return ""
    lines = set(data.pop("saved", {}).get("lines", ()))
    said = [
        text for text in _leaves(data, str) if " " in text and len(text) < 400 and text not in lines
    ]
    kinds = {skeleton(text): text for text in reversed(said)}
    return "\n".join(
        [f"[{key}]", *(f"  {_text(text)}" for text in [*reversed(kinds.values())][:MOST])]
    )


def _leaves(data, kind) -> Iterator:
    if isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _leaves(value, kind)
    elif isinstance(data, kind):
        yield data


def _program(code: str) -> str:
    """A short program as it is, of a long one what follows the functions that it defines."""
    lines = code.rstrip().splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith(("def ", "class ", "@"))]
    if not heads:
        return "\n".join(lines)
    first = next(i for i in range(heads[-1] + 1, len(lines)) if lines[i][:1] not in ("", " ", ")"))
    return "\n".join(["(…)", *lines[first:]])


# ---- the same but for rounding ----

NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+| × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?")
PLAIN = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789", ",")
NOISE = 1e-5


def skeleton(line: str) -> str:
    return NUMBER.sub("#", line)


def same(line: str, other: str) -> bool:
    """Whether two lines differ by no more than one in a decimal number's last digit, or in a percentage's."""
    if skeleton(line) != skeleton(other):
        return False
    pairs = zip(NUMBER.finditer(line), NUMBER.finditer(other), strict=True)
    return all(_near(a.group(), b.group(), line[a.end() :].startswith(" %")) for a, b in pairs)


def _near(a: str, b: str, share: bool) -> bool:
    if a == b:
        return True
    a, b = (number.replace(" × 10", "e").translate(PLAIN) for number in (a, b))
    off = abs(float(a) - float(b))
    if "." not in a and "e" not in a:
        return share and off <= 1
    parts = [number.partition("e") for number in (a, b)]
    last = max(
        10.0 ** (int(power or 0) - len(digits.partition(".")[2])) for digits, _, power in parts
    )
    return off <= max(1.01 * last, NOISE)


def all_same(lines: list[str], others: list[str]) -> bool:
    return len(lines) == len(others) and all(map(same, lines, others))


# ---- the file ----


def merged(plain: list[str], changed: list[str]) -> list[str]:
    """Both as one: what only the first has begins with -, what only the second has with +."""
    found = []
    for kind, a, b, c, d in SequenceMatcher(None, plain, changed, autojunk=False).get_opcodes():
        if kind == "equal":
            found += [f"  {line}" for line in plain[a:b]]
        else:
            found += [f"- {line}" for line in plain[a:b]] + [f"+ {line}" for line in changed[c:d]]
    return found


def apart(lines: list[str]) -> tuple[list[str], list[str]]:
    """`merged` undone."""
    return tuple([line[2:] for line in lines if line[0] in (" ", side)] for side in "-+")  # type: ignore


def check(name: str, plain: list[str], changed: list[str]) -> None:
    """The page's file says this; with WRITE set, it is written where it does not."""
    file = FOLDER / f"{name}.txt"
    kept = file.read_text("utf-8").splitlines() if file.exists() else []
    wrong = [
        line
        for before, now in zip(apart(kept), (plain, changed), strict=True)
        if not all_same(before, now)
        for line in unified_diff(before, now, "snapshot", "page", lineterm="", n=1)
    ]
    if wrong and os.environ.get(WRITE) == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(merged(plain, changed)) + "\n", "utf-8")
    else:
        assert not wrong, "\n".join(
            [f"{file.name}; if that is meant, write it with {WRITE}=1:", *wrong]
        )


@pytest.mark.parametrize("name", [name for name in PAGES if name != CLASS])
def test_what_a_first_visit_sees(name):
    """With the model and the text that the app opens with, before anything is opened."""
    lines = written(first_look(name))
    check(f"first/{name}", lines, lines)


# ---- the programs ----


def numbers(found) -> np.ndarray:
    """All numbers in what a program gives, or a page draws, however they are nested."""
    if isinstance(found, pd.DataFrame):
        found = [found[column] for column in found]
    if isinstance(found, pd.Series):
        found = found.to_numpy() if found.dtype.kind in "fiub" else found.tolist()
    if isinstance(found, torch.Tensor):
        found = found.detach().float().numpy()
    if isinstance(found, np.ndarray) and found.dtype.kind in "fiu":
        return found.astype(float).ravel()
    if isinstance(found, bool | str | bytes):
        return np.empty(0)
    if isinstance(found, int | float | np.number):
        return np.array([float(found)])
    if is_dataclass(found):
        found = vars(found)
    if isinstance(found, dict):
        if "base64" in found:
            return floats(found["base64"], "u1" if found.get("dtype") == "uint8" else "<f4").astype(
                float
            )
        found = found.values()
    if isinstance(found, Iterable):
        return np.concatenate([np.empty(0), *(numbers(one) for one in found)])
    return np.empty(0)


def drawn_on(at) -> np.ndarray:
    """All numbers in the page's charts, components and tables."""
    return np.concatenate(
        [
            *(numbers(chart["data"]) for chart in charts(at)),
            *(numbers(json.loads(part.proto.json)) for part in at.get("bidi_component")),
            *(numbers(table.value) for table in at.dataframe),
        ]
    )


def share_drawn(picture: np.ndarray, drawn: np.ndarray) -> float:
    """The share of a program's numbers, whole ones apart, that stand on the page, up to rounding and sign."""
    own, drawn = (np.unique(abs(found[np.isfinite(found)])) for found in (picture, drawn))
    own = own[own != own.round()]
    if not len(own):
        return 1
    at = np.searchsorted(drawn, own).clip(1, len(drawn) - 1)
    off = np.minimum(abs(drawn[at] - own), abs(drawn[at - 1] - own))
    return float((off <= 1e-5 * own + 1e-6).mean())


# the least share where a program gives more than the page draws
SHARES = {
    "overview": 0.005,  # rows of embeddings and units, of which the page has pixels
    "embeddings": 0.1,  # beside a difference, the changed numbers of all tokens
    "generate": 0.5,  # the text that the unchanged model writes, of which the page has the words
    "positions": 0.8,  # all positions of the context
    "logit_lens": 0.2,  # of every cell ten tokens, which the grid has packed
    "residual_stream": 0.8,  # shares of every part, of which the page draws the selected token's
    "heads": 0.95,  # of a trial the losses that its sentence says
    "circuit": 0.9,  # two passes of one text in another batch
    # of a page's second program, what a sentence or a table of the page has in words, with three digits
    "cell": 0.97,
    "worked_out": 0.65,
    "block_at_work": 0.18,
    "training": 0,  # nothing: the program trains, the page waits for a click
}


def programs(at) -> list[str]:
    """What the tabs *Code* show; Train one now with few steps, as all of them take minutes."""
    codes = [code.value for code in at.code if "picture = " in code.value]
    few = {"train_one()": "train_one({'steps': 20})"}
    few["curves('chapter', (123, 124, 125))"] = "curves('chapter', (123,), {'steps': 1})"
    for whole, part in few.items():
        codes = [code.replace(whole, part) for code in codes]
    return codes


def run_program(code: str, folder: Path) -> dict:
    """What a program leaves, saved as a file of this folder and run there."""
    file = folder / "picture.py"
    file.write_text(code, "utf-8")
    with contextlib.chdir(folder), contextlib.redirect_stdout(None):
        found = runpy.run_path(str(file))
    assert is_dataclass(found["picture"]) or len(found["picture"])
    return found


# ---- a page ----

ASKED = [("generate", ask) for ask in ("looked", "cache", "surgery", "loops", "beams")]


@pytest.mark.parametrize(
    ("name", "ask"), [*((name, "") for name in PAGES if name != CLASS), *ASKED]
)
def test_what_stands_on_the_page_and_its_programs(name, ask, tmp_path):
    query = {"ask": ask, "written": 4} if ask else {}
    plain, changed = (
        open_all(run_page(name, **query, **edits)) for edits in ({}, {"edits": CHANGE})
    )
    ran: dict[str, dict] = {}
    for at in (plain, changed):
        assert {"Table", "Code"} <= {tab.label.partition(":")[0] for tab in at.tabs}
        for tab in at.tabs:
            if tab.label.startswith("Table"):
                assert len(tab.dataframe), tab.label
            if tab.label.startswith("Code"):
                assert len(tab.code), tab.label
        for code in programs(at):
            found = ran[code] = ran.get(code) or run_program(code, tmp_path)
            for picture in {"picture", "unchanged"} & found.keys():
                share = share_drawn(numbers(found[picture]), drawn_on(at))
                called = code.rpartition(" = ")[2].partition("(")[0]
                least = SHARES.get(called, SHARES.get(name, 0.99))
                assert share >= least, f"{share:.1%} of {called}'s {picture} stand on the page"
    check(f"{name}_{ask}" if ask else name, written(plain), written(changed))
