"""However wrong an address is, and whatever is clicked, a page answers in a sentence: no stack trace, ever.

And what an address says rightly is so on every page, in whatever order they are opened. GPTVIZ_FUZZ says how
many addresses and how many actions each page is tried with: 3 if not set, and 13 are 300 over all pages.
"""

import logging
import os
import random

import pytest

from gptviz.ui.shell.navigation import PAGES
from gptviz.ui.training import mine
from gptviz.ui.training.trainings import Trainings
from tests.conftest import WITHOUT_TEXT
from tests.pages.conftest import run_page, turn, whole_app
from tests.specs import charts, links
from tests.ui.training.test_trainings import Played

EACH = int(os.environ.get("GPTVIZ_FUZZ", "2"))

TEXTS = (
    "",
    " ",
    "a",
    "one two three",
    "東京 🙂",
    "<|endoftext|>",
    "\x00\ufeff\u202e",
    "x = [\n\t1]\n",
)

NUMBERS = (
    "0", "1", "5", "-1", "007", "999999", "9" * 30, "00000000" + "9" * 5000, "0" * 5000, "0.5", "-0.0", "1e9",
    "1e999", "nan", "inf", "١٢", "½", "²", "20_" + "9" * 5000, "²." + "a" * 32, "9" * 5000 + ".a",
)  # fmt: skip
WORDS = (
    "on", "off", "true", "None", "mini", "mini-untrained", "upload:1", "float64", "bfloat16", "cuda", "gpt2",
)  # fmt: skip
CHOICES = (
    "mean", "zero", "sample", "first", "difference", "unchanged", "remove", "add", "both", "text", "model",
    "edits", "z", "q", "attn", "resid_pre", "mlp_out", "noising", "denoising", "probability", "greedy",
)  # fmt: skip
EDITS = (
    "z.4.3=zero",
    "attn.*=hide0,embed@-1=sample",
    "z.9.9=zero",
    "resid_pre.1@0=ids1+2",
    "z.1=mean,,=,z",
)
PATHS = (
    "/etc/passwd",
    "/proc/1/cwd",
    "~root",
    "path:/etc",
    "path:~nobody",
    "/x" * 3000,
    "upload:../..",
)
JUNK = (
    "",
    " ",
    ",",
    "+",
    "%",
    "&=#",
    "[]",
    "{}",
    "..",
    "../../x",
    "\x00",
    "<b>é漢🙂",
    "'--",
    "a" * 3000,
)
ANYTHING = (*NUMBERS, *WORDS, *CHOICES, *EDITS, *PATHS, *JUNK)
ODD = "你好 🙂 é\u200b\n\ttab<|endoftext|>"


def tracebacks(caplog):
    return [
        record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR
    ]


OPTIONS = ("selectbox", "radio", "button_group", "select_slider")
TYPED = ("text_area", "text_input", "chat_input")
SWITCHES = ("checkbox", "toggle")
ACTIONS = ("button", "slider", "number_input", "expander", *OPTIONS, *TYPED, *SWITCHES)
WIDEST = 10**6  # of a number box that has no limits


def act(at, draw):
    """One action that a browser could send now: its kind, its widget's key, its value."""
    kind, widget = draw.choice(
        [
            (kind, widget)
            for kind in ACTIONS
            for widget in at.get(kind)
            if getattr(widget, "key", None) and not getattr(widget, "disabled", False)
        ]
    )
    value = None
    if kind == "button":
        widget.click()
    elif kind == "expander":  # what is in it runs only while it is open
        at.session_state[widget.key] = value = True
    else:
        if kind in OPTIONS:
            value = draw.choice(widget.options)
        elif kind in SWITCHES:
            value = not widget.value
        elif kind in TYPED:
            value = draw.choice((*NUMBERS, *EDITS, *TEXTS, *JUNK))
        else:
            low = widget.min or 0
            high = widget.max or WIDEST
            value = type(low)(draw.choice((low, high, draw.uniform(low, high))))
        widget.set_value(value)
    return kind, widget.key, value


@pytest.fixture
def nothing_leaves(monkeypatch):
    """Runs that are started train for ever, and nothing is downloaded."""
    queue = Trainings(1, 2**30, Played)
    monkeypatch.setattr(mine, "trainings", lambda: queue)
    monkeypatch.setattr("gptviz.ui.models.downloads.Downloads.start", lambda self, name: None)
    yield
    queue.close()


@pytest.mark.parametrize("page", PAGES)
def test_any_text_address_and_action_is_answered(page, caplog, nothing_leaves):
    draw = random.Random(page)
    short = {"base_steps": 50} if page == "baselines" else {}
    at = run_page(page, text="a", present="on", **short)
    charts(at)  # which fails at NaN
    names = [param.name for param in at.session_state["gptviz_params"]]
    for _ in range(EACH):
        query = {name: draw.choice(ANYTHING) for name in names if draw.random() < 0.5}
        # baselines learn for a short time: with a wrong number of steps they would learn ten times as long
        at = run_page(page, **query | short | {"text": draw.choice(TEXTS)})
        assert at.markdown or at.info or at.warning or at.error
    assert not tracebacks(caplog)
    at = run_page(page, text=ODD, **short)
    charts(at)
    assert ("special_on" in {button.key for button in at.button}) == (page not in WITHOUT_TEXT)
    for _ in range(EACH):
        print(*act(at, draw))  # of a failed test it is told what was done
        at.run()
        assert not tracebacks(caplog)


# a choice that is not the default for what more than one page draws, and for one or more of each page
CHOSEN = {
    "text": "one two three one two", "token": "2", "block": "1", "head": "2", "special": "on",
    "edits": "z.1.2=zero", "shown": "unchanged", "target": "40", "against": "41",
    "temperature": "0.7", "top_k": "50", "top_p": "0.9", "seed": "7", "next_rows": "20", "stop": "end",
    "average": "on", "ln_norm": "block 1 · norm2", "ln_quantity": "mean",
    "ff_unit": "3", "lens_colour": "entropy", "mute": "on", "across": "marks", "null": "mean",
    "measure": "logit", "patch_way": "noising", "patch_site": "mlp_out", "others": "zero", "forwards": "off",
    "vs": "text", "vs_text": "one two", "dw_length": "3", "pos_scheme": "rope", "pos_at": "9",
    "hand_way": "weights", "sc_d": "8", "sc_p": "0.3", "base_step": "5", "tr_steps": "50",
}  # fmt: skip


def test_no_choice_changes_when_a_page_is_turned():
    """In one visit through all pages, and then from each to each that draws a widget of the same choice: to
    Streamlit it is another one there, and after a page's first run it holds a choice otherwise than later."""
    at = whole_app(**CHOSEN)
    drawn = {}

    def look_at(name):
        turn(at, name)
        said = {
            key: value[-1] if isinstance(value, list) else value
            for key, value in at.query_params.items()
        }
        assert said == CHOSEN, f"on {name}, after {list(drawn)}"
        by = at.session_state["gptviz_drawn"]  # the page that drew each last
        assert at.title[0].value == PAGES[name].question
        assert f"Next: **{PAGES[PAGES[name].next].name}**" in links(at)
        assert any(PAGES[name].on_next == element.value for element in at.markdown)
        drawn[name] = {choice for choice, page in by.items() if page == by["special"]} - {"special"}

    for name in PAGES:
        look_at(name)
    assert {"temperature", "top_k", "seed"} <= drawn["next_token"] & drawn["generate"]
    names = [*PAGES]
    for place, one in enumerate(names):
        look_at(one)
        for other in names[place + 1 :]:  # there and back
            if drawn[one] & drawn[other]:
                look_at(other)
                look_at(one)
