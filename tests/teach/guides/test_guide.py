"""A guide's text: what ships can be read; what is wrong is told by its line, whatever it is."""

import inspect
import random
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from gptviz.teach import guides
from gptviz.teach.guides import GuideError, guide, keys, read
from gptviz.teach.guides.printed import printed
from gptviz.teach.handout.guide import led
from gptviz.tokenizer import show_token

TOUR = guides.files()["tour"].read_text("utf-8")
TEXT = "The cat sat on the mat"
SMALL = """---
title: A guide
minutes: 3
---
## One

Read this.

```step
page: attention
place: {token: 2, special: on, edits: "z.4.3=zero"}
look: matrix_head
until: {edits: other}
ask: {kind: token, question: "Which?", key: looked_at, with: {block: 4, head: 3}, hints: [a, b]}
```

It was {truth}.

- and more
"""


def test_a_step_is_what_stands_under_a_heading():
    found = read(SMALL)
    assert (found.title, found.minutes, found.language) == ("A guide", 3, "en")
    (step,) = found.steps
    assert (step.line, step.heading, step.text, step.page) == (5, "One", "Read this.", "attention")
    assert step.place == (("token", "2"), ("special", "on"), ("edits", "z.4.3=zero"))
    assert step.look == "matrix_head" and step.until == (("edits", "other"),)
    assert step.after == "It was {truth}.\n\n- and more"
    assert (step.ask.kind, step.ask.key) == ("token", "looked_at")
    assert step.ask.given == (("block", 4), ("head", 3)) and step.ask.hints == ("a", "b")
    assert read(SMALL.replace("\n", "\r\n")) == found


def test_on_paper_pupils_have_lines_to_write_on_and_the_teacher_what_is_read_after():
    marks = ("class='ask'", "class='line'", "class='truth'", "<li>")
    pupils, teacher = (printed(read(SMALL), notes) for notes in (False, True))
    assert [pupils.count(mark) for mark in marks] == [1, 2, 0, 0]
    # two hints, and the text's own list
    assert [teacher.count(mark) for mark in marks] == [1, 0, 1, 3]
    marked = SMALL.replace("Which?", "Which `x`?").replace("[a, b]", "[a, Click `y`<b>.]")
    teacher = printed(read(marked), notes=True)  # a sentence is written as on the screen
    assert "Which <code>x</code>?" in teacher and "Click <code>y</code>&lt;b&gt;." in teacher


@pytest.mark.parametrize(
    ("old", "new", "left_out"),
    [
        ("page", "page", 0),
        ("until: {edits: other}", "until: {head: other}", 1),
        ("page: attention", "page: why", 1),
        ("token: 2", "token: 2, shown: changed", 1),
        ("z.4.3=zero", "z.4.3=sample", 1),
        ("kind: token, question", "kind: find, question", 1),
    ],
)
def test_a_hand_out_has_the_steps_whose_places_it_can_draw(mini, old, new, left_out):
    last = '## Two\n\nAll tokens.\n\n```step\npage: tokens\nplace: {edits: ""}\n```\n'
    found = led(read(SMALL.replace(old, new) + last), mini, TEXT)
    assert found["missing"] == left_out and len(found["steps"]) == 2 - left_out
    assert found["steps"][-1]["place"]["text"] == TEXT and found["steps"][-1]["ask"] is None
    if not left_out:
        ask = found["steps"][0]["ask"]
        place = found["steps"][0]["place"]
        assert place["edits"] == "z.4.3=zero" and len(ask["hints"]) == 2
        looked_at = mini.edited("z.4.3=zero").trace(TEXT)["attn", 4][3, 2].argmax().item()
        assert show_token(mini.tokens(mini.encode(TEXT))[looked_at].raw) in ask["truth"]


WRONG = [
    ("---\ntitle", "title", 1, "begins with a head"),
    ("title: A guide\n", "", 1, "no title"),
    ("minutes: 3", "minutes: soon", 3, "must be a whole number"),
    ("minutes: 3", "pages: 3", 3, "the head has no 'pages'"),
    ("## One", "# One", 5, "before the first step"),
    ("page: attention\n", "", 9, "names no page"),
    ("look: matrix_head", "looks: matrix_head", 12, "a step has no 'looks'"),
    ("place: {", "place: {{", 12, "no YAML"),
    ("kind: token", "kind: song", 9, "kind is 'song'"),
    ("key: looked_at, ", "", 9, "has no key"),
    ("hints: [a, b]", "between: [5, 1]", 9, "two whole numbers"),
    ("Read this.", "Read <b>this</b>.", 7, "HTML"),
    ("Read this.", "- Read\n  - <b>this</b>.", 7, "HTML"),
    ("Read this.", "![x](http://example.org/x.png)", 7, "a picture"),
    ("Read this.", "[x](http://example.org)", 7, "a link"),
    ("Read this.", "<http://example.org>", 7, "a link"),
    ("Read this.", "> [x]: http://example.org", 7, "a link"),
    ("title: A guide", "title: '![x](http://example.org/x.png)'", 1, "a picture"),
    ("title: A guide", "title: A\nlearnt: '![x](http://example.org/x.png)'", 1, "a picture"),
    ("## One", "## One ![x](http://example.org/x.png)", 5, "a picture"),
    ("Which?", "![x](http://example.org/x.png)", 9, "a picture"),
    ("[a, b]", "['![x](http://example.org/x.png)']", 9, "a picture"),
    ("hints: [a, b]", "options: ['![x](http://example.org/x.png)']", 9, "a picture"),
    ("page: attention", "page: !!str attention", 10, "a tag"),
    ("Read this.", "x" * guide.LONGEST_STEP + "x", 7, "this step has more"),
    ("page: attention", "page: attention #" + "x" * guide.LONGEST_BLOCK, 9, "this one has"),
    ("page: attention", "page: " + "[" * 3000, 10, "deep in one another"),
    ("title: A guide", "title: " + "{" * 3000, 2, "deep in one another"),
    ("token: 2,", "token: &a [2], block: *a,", 10, "alias"),
    ("It was {truth}.", "```step\npage: tokens\n```", 17, "its second"),
    ("- and more", "## Two\n\n```step\nlook: chips\n```", 21, "names no page"),
]


@pytest.mark.parametrize(("old", "new", "line", "said"), WRONG)
def test_what_is_wrong_is_said_with_its_line(old, new, line, said):
    assert old in SMALL
    with pytest.raises(GuideError) as error:
        read(SMALL.replace(old, new, 1))
    assert any(at == line and said in sentence for at, sentence in error.value.faults), (
        error.value.faults
    )


def test_too_much_is_refused():
    with pytest.raises(GuideError, match=f"{guide.LONGEST:,} characters"):
        read(SMALL + "x" * guide.LONGEST)
    with pytest.raises(GuideError, match="61 steps"):
        read(SMALL + "\n## More\n\n```step\npage: tokens\n```\n" * 60)


def test_at_most_twenty_faults_are_named():
    with pytest.raises(GuideError) as error:
        read(SMALL.replace("Read this.", "<b>no</b>\n\n" * 300))
    assert len(error.value.faults) == 20 and str(error.value).endswith("and 280 more")
    with pytest.raises(GuideError, match="and 280 more"):
        read(SMALL.replace("Read this.", "<b>no</b>\n\n" * 300))  # of what is known to be none, too


@pytest.mark.parametrize("opens", ["[", "{", "[{a: ", "- [", "? [", "![", "*a_", "[a](", "`"])
def test_reading_takes_no_more_of_what_opens_and_never_closes(opens):
    """As many lines of Python as there are signs, whatever they are: never their square."""
    taken = []
    for length in (800, 1600):
        before = sys.gettrace()
        steps = [0]

        def count(frame, event, argument, steps=steps):
            steps[0] += event == "line"
            return count

        for where in ("page: attention", "Read this."):
            text = SMALL.replace(where, where[:6] + opens * (length // len(opens)))
            sys.settrace(count)
            try:
                with suppress(GuideError):
                    read(text)
            finally:
                sys.settrace(before)
        taken.append(steps[0])
    assert taken[1] < 2.5 * taken[0]


def test_a_number_of_many_digits_is_a_text():
    for number in ("9" * 3000, "0x" + "f" * 3000, "1:1" * 900, "2024-99-99"):
        assert read(SMALL.replace("A guide", number)).title == number
        with pytest.raises(GuideError, match="must be a whole number"):
            read(SMALL.replace("minutes: 3", f"minutes: {number}"))


PIECES = [
    "<script>",
    "*a",
    "&a [*a]",
    "{" * 99,
    "---",
    "```",
    "## ",
    "\x00",
    "!!python/name:os.system",
]
PIECES += ["\ud800", ": ", "["]


@settings(max_examples=150)
@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_a_hostile_guide_is_a_sentence(draw: random.Random, changes):
    text = TOUR
    for _ in range(changes):
        at, end = sorted(draw.randrange(len(text)) for _ in range(2))
        text = text[:at] + draw.choice(PIECES) * draw.choice((1, 1, 50)) + text[min(end, at + 40) :]
    try:
        found = read(text)
    except GuideError as error:
        assert all(line >= 0 and 5 < len(said) < 400 for line, said in error.faults)
    else:
        assert found.steps and all(step.page for step in found.steps)


def test_the_documents_example_is_a_guide_and_names_every_key():
    text = (Path(__file__).parents[3] / "docs" / "guides.md").read_text("utf-8")
    (example,) = re.findall(r"````markdown\n(.*?)````", text, re.DOTALL)
    (step,) = read(example).steps
    assert keys.arguments(step.ask.key, step.ask.kind, step.ask.given) == (4, 3)
    table = dict(re.findall(r"^`(\w+)` \| [^|]*\| (.*)$", text, re.MULTILINE))
    for name, (kind, function) in keys.KEYS.items():
        takes = ", ".join([*inspect.signature(function).parameters][1:])
        assert f"`{name}`" + (f" ({takes})" if takes else "") in table[kind], name


def test_a_teachers_own_stand_beside_those_that_ship(tmp_path, monkeypatch):
    (tmp_path / "mine.md").write_text(SMALL)
    monkeypatch.setenv(guides.SETTING, str(tmp_path))
    assert guides.find("mine").title == "A guide" and {"tour", "mine"} <= guides.files().keys()
    with pytest.raises(GuideError, match="there is no guide 'none'"):
        guides.find("none")
