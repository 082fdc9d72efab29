"""The guide bar through AppTest: a question comes before its picture, the truth is the live model's."""

import html
import re
from fnmatch import fnmatch

import pytest

from gptviz import load
from gptviz.models.loading import DEFAULT_MODEL
from gptviz.teach.guides import SETTING, files, find, keys
from gptviz.teach.guides.guide import filled
from gptviz.teach.guides.keys import KEYS
from gptviz.ui.shell.navigation import PAGES
from gptviz.ui.shell.state import DEFAULT_TEXT, UNSAID_TEXT
from gptviz.ui.teach import guide
from gptviz.ui.teach.cover import WHY
from gptviz.ui.teach.guide_check import keys_of as keys_in
from gptviz.ui.teach.question import ANSWERS, HIDES, SAID_BY
from tests.conftest import WITHOUT_TEXT
from tests.pages.conftest import open_all, run_page
from tests.specs import given, links, opened, prose, put

TOUR = find("tour").steps
WRONG = {"word": "umbrella", "number": 77, "choice": 2, "token": 0, "head": (0, 0)}


def at_step(number, **query):
    return run_page(TOUR[number - 1].page, guide="tour", step=number, **query)


@pytest.mark.parametrize("name", ["tour", "workshop"])
def test_the_first_question_cannot_be_read_off_the_page_one_comes_from(name):
    """The first page shows its text, and the word that the model puts after it."""
    lm = load(DEFAULT_MODEL)
    text = dict(find(name).steps[0].place)["text"]
    asked, there = (
        lm.trace(each, keep=[]).next_tokens(k=1)["token"][0].strip()
        for each in (text, DEFAULT_TEXT)
    )
    assert asked not in text and asked not in DEFAULT_TEXT and asked != there


@pytest.mark.parametrize("name", ["tour", "workshop"])
def test_the_hints_of_the_first_question_lead_to_the_answer(name):
    """They say how long the word is, and how it begins."""
    step = find(name).steps[0]
    lm = load(DEFAULT_MODEL)
    best = lm.trace(dict(step.place)["text"], keep=[]).next_tokens(k=1)
    assert best["token"][0] == " hot" and best["probability"][0] > 0.5
    assert step.ask.hints[-1] == "The word has three letters, and begins with an h."


def submit(at):
    return next(b.key for b in at.button if b.label == "That is my guess")


def answer(at, kind, value):
    """Answer as a visitor does; the grid of heads and the strip of tokens are tried in a browser."""
    boxes = (*at.text_input, *at.number_input, *at.slider, *at.radio)
    box = next(box for box in boxes if (box.key or "").startswith("guide_given"))
    box.set_value(box.options[value] if kind == "choice" else value)
    return at.button(key=submit(at)).click().run()


def truth(lm, step, place):
    """The answer of this step's key, worked out anew on the text, token and changes of this place."""
    lm = load(place["model"]) if place.get("model") else lm
    lm = lm.edited(*filter(None, place.get("edits", "").split(",")))
    arguments = keys.arguments(step.ask.key, step.ask.kind, step.ask.given)
    trace = lm.trace(place.get("text", UNSAID_TEXT))
    position = int(place.get("token") or len(trace) - 1)
    return KEYS[step.ask.key][1](lm, trace, position, None, *arguments)


@pytest.fixture
def own_guide(tmp_path, monkeypatch):
    """own_guide(page, key): a teacher's guide of one step, which asks for a token."""

    def write(page, key):
        step = f'page: {page}\nask: {{kind: token, question: "Which?", key: {key}}}'
        (tmp_path / "mine.md").write_text(
            f"---\ntitle: Mine\n---\n## One\n\n```step\n{step}\n```\n"
        )
        monkeypatch.setenv(SETTING, str(tmp_path))

    return write


@pytest.mark.parametrize("number", [n for n, step in enumerate(TOUR, 1) if step.ask is not None])
def test_a_question_comes_before_its_picture_and_the_truth_after_it(mini, number):
    step = TOUR[number - 1]
    expected = truth(mini, step, dict(step.place))
    at = at_step(number)
    assert filled(step.ask.text, expected.facts) in prose(at) and "This model:" not in prose(at)
    for hint in (
        filled(hint, expected.facts | {"truth": expected.shown}) for hint in step.ask.hints
    ):
        assert hint not in prose(at)
        at.button(key="guide_hint").click().run()
        assert hint in prose(at)
    if step.ask.kind in ("word", "number", "choice"):
        wrong = WRONG[step.ask.kind]
        if step.ask.kind == "choice" and at.radio[0].options[wrong] == expected.shown:
            wrong = 0
        told = prose(answer(at_step(number), step.ask.kind, wrong))
        assert (
            ":material/close:" in told
            and f"This model: **{expected.shown}**" in told
            and "{" not in told
        )
        at.button(key=submit(at)).click().run()  # the last hint has filled the box in
        assert ":material/check:" in prose(at)
    else:
        head = step.ask.kind == "head"
        filled_in = given(at, "guide_heads" if head else "guide_chips")
        chosen = (filled_in["block"], filled_in["head"]) if head else filled_in["selected"]
        assert chosen == expected.truth
    skipped = at_step(number)
    skipped.button(key="guide_skip").click().run()
    assert given(skipped, "chips") is not None
    assert f"This model: **{expected.shown}**" in prose(skipped) and "You said" not in prose(
        skipped
    )
    assert given(skipped, "guide_look") is None or given(skipped, "guide_look")["look"] == step.look


@pytest.mark.parametrize("key", SAID_BY)
def test_a_sentence_that_only_explains_waits_if_it_is_the_answer(key):
    name, number, step = next(
        (name, number, step)
        for name in files()
        for number, step in enumerate(find(name).steps, 1)
        if step.ask is not None and step.ask.key == key
    )
    place = dict(step.place) | {"guide": name, "step": str(number)}
    asked = run_page(step.page, **place)
    assert SAID_BY[key] not in prose(asked)
    told = run_page(step.page, {ANSWERS: {(name, number - 1): None}}, **place)
    assert SAID_BY[key] in prose(told) and "The answer: **" in prose(told)


STEPS = [(name, number) for name in files() for number in range(1, len(find(name).steps) + 1)]


@pytest.mark.parametrize(("name", "number"), STEPS)
def test_every_step_that_ships_opens_and_shows_what_it_looks_at(name, number):
    steps = find(name).steps[:number]
    skipped = {ANSWERS: {(name, number - 1): None}}
    step = steps[-1]
    texts = [value for one in steps for key, value in one.place if key == "text"]
    at = run_page(step.page, skipped, guide=name, step=number, text=[UNSAID_TEXT, *texts][-1])
    known = {param.name for param in at.session_state["gptviz_params"]}
    assert {said for said, _ in (*step.place, *step.until)} <= known
    assert not step.look or step.look.split(" > ")[0] in keys_in(at.main)
    told = prose(at)
    assert (step.ask is None) == (re.search(r"(This model|The answer): \*\*", told) is None)
    assert step.ask is not None or step.text in told  # what is to be done is not done yet
    for sentence in re.split(r"(?<=[.!?:])\s", step.after if step.ask else ""):
        # a sentence with a fact that the key does not have would be left out
        if "{given_" not in sentence:
            assert all(piece.strip() in told for piece in re.split(r"\{\w+\}", sentence)), sentence


def test_a_step_takes_its_place_once_and_the_address_wins(mini):
    place = dict(TOUR[0].place)
    at = at_step(1)
    assert at.session_state["text"] == place["text"] and at.query_params["guide"] == "tour"
    other = at_step(1, text="One two three", token=1)
    assert other.session_state["text"] == "One two three" and other.session_state["token"] == 1
    put(at, text="A text of my own")
    assert at.session_state["text"] == "A text of my own"


def test_what_is_to_be_done_is_seen_to_be_done():
    number = next(n for n, step in enumerate(TOUR, 1) if ("edits", "z.4.3=zero") in step.until)
    at = at_step(number)
    assert "guide_next_done" not in keys_in(at.main)
    at.button(key="change_attention_quick").click().run()
    assert at.query_params["edits"] == "z.4.3=zero" and "guide_next_done" in keys_in(at.main)


def test_elsewhere_the_bar_leads_back_and_a_guide_can_be_left():
    at = run_page("overview")
    assert "guide_tour" in keys_in(at.main) and "guide_file" not in keys_in(at.main)
    assert {"guide_begin_lesson1", "guide_file"} <= keys_in(opened(at, "guide_lessons").main)
    at = put(run_page("tokens", text="a b", token=0), **{guide._AT: ("tour", 0), "guide": "tour"})
    assert f"This step is on the page {PAGES[TOUR[0].page].title}: go there" in links(at)
    assert given(at, "chips") is not None  # only the step's own page waits
    at.button(key="guide_leave").click().run()
    assert "Next step" not in links(at) and at.session_state["text"] == "a b"


@pytest.mark.parametrize("name", ["none", "../tour", "x" * 3000, "own"])
def test_a_guide_that_is_not_there_is_a_sentence_at_most(name):
    at = run_page("tokens", text="a b", guide=name, step=3)
    assert given(at, "chips") is not None and "Next step" not in links(at)


def test_a_question_that_cannot_be_asked_says_so_and_the_page_goes_on(own_guide):
    own_guide("next_token", "looked_at, with: {block: 40, head: 0}")
    at = run_page("next_token", text="a b c", guide="mine")
    assert "this model has no head 40.0" in at.info[0].value and given(at, "candidates") is not None


def test_a_teachers_broken_guide_is_said_and_stops_nobody(tmp_path, monkeypatch):
    (tmp_path / "broken.md").write_text(
        "---\ntitle: x\n---\n## One\n\n```step\npage: nowhere\n```\n"
    )
    (tmp_path / "none.md").write_bytes(b"\xff\xfe\x00")
    monkeypatch.setenv(SETTING, str(tmp_path))
    at = opened(run_page("overview", text="a b c"), "guide_lessons")
    told = prose(at)
    assert "broken.md: line 4: there is no page 'nowhere'" in told and "none.md: line 1" in told
    assert any(label.startswith("The tour") for label in links(at))
    at = run_page("tokens", text="a b", guide="broken")
    assert "there is no page 'nowhere'" in at.warning[0].value and given(at, "chips") is not None


def test_an_answer_about_another_text_is_no_error(own_guide):
    own_guide("loss", "dearest")
    at = run_page("loss", {ANSWERS: {("mine", 0): 4}}, text="one two three four five", guide="mine")
    assert "You said" in prose(at)
    put(at, text="one two three")
    assert "position 4 was your answer" in at.info[0].value


# ---- presented, and what stays of a question ----

ASKED = [
    (name, number)
    for name in files()
    for number, step in enumerate(find(name).steps, 1)
    if step.ask is not None and step.page not in WITHOUT_TEXT
]


def text_in_card(at):
    """The text that the card shows, with ‸ for the blank; None where it shows none."""
    bodies = [
        one.proto.body for one in at.get("html") if 'data-testid="asked_text"' in one.proto.body
    ]
    marked = [re.sub(r'<span class="gv-blank".*?</span>', "‸", body) for body in bodies]
    return html.unescape(re.sub("<.*?>", "", marked[0])) if marked else None


@pytest.mark.parametrize(("name", "number"), ASKED)
def test_a_question_that_is_presented_has_its_text(name, number):
    step = find(name).steps[number - 1]
    at = run_page(step.page, guide=name, step=number, present="on")
    shown = text_in_card(at)
    if shown is None:  # then its tokens are there, to be clicked or on the page
        assert given(at, "guide_chips") or given(at, "chips")
        return
    text = at.session_state["text"]
    assert shown.replace("‸", "") == text
    assert ("‸" in shown) == (step.ask.key == "next_word")
    if "‸" in shown and not at.session_state["token"]:
        assert shown == f"{text}‸"


ALL_ASKED = [
    (name, number)
    for name in files()
    for number, step in enumerate(find(name).steps, 1)
    if step.ask is not None and step.ask.kind != "find"  # what is hunted for is found on the page
]
COVER = 'data-testid="cover"'
OF_THE_TEXT = {"prompt", "chips", "hand"}  # a token of the text may be the answer


def below_the_bar(block):
    """The elements of a page, without those of the guide's bar, from top to bottom."""
    for child in block.children.values():
        if not hasattr(child, "children"):
            yield child
        elif "gv_bar" not in getattr(child.proto, "id", ""):
            yield from below_the_bar(child)


def said_by(element):
    """What an element could tell: its words, its label and options, a picture's data."""
    words = [getattr(element.proto, name, "") for name in ("body", "label", "spec", "json", "help")]
    return "\n".join(map(str, (*words, *getattr(element.proto, "options", ()))))


@pytest.mark.parametrize(("name", "number"), ALL_ASKED)
def test_an_open_question_hides_its_answer_and_nothing_else(mini, name, number):
    steps = find(name).steps[:number]
    step = steps[-1]
    place = {key: value for one in steps for key, value in one.place if key in ("text", "model")}
    place |= dict(step.place)
    expected = truth(mini, step, place)
    at = run_page(step.page, guide=name, step=number, text=place.get("text", UNSAID_TEXT))
    assert text_in_card(at) is None  # the box of the page shows the text
    elements = list(below_the_bar(at.main))
    covers = [one for one in elements if one.type == "html" and COVER in one.proto.body]
    assert any(WHY in one.proto.body for one in covers)
    there = [one for one in elements if one.type != "html" or "gv-cover" not in one.proto.body]
    # name and question of the page, ways on, text, tokens, choices
    assert len(there) >= 10 and {"title", "caption"} <= {one.type for one in there}
    if step.page not in WITHOUT_TEXT:
        assert given(at, "prompt") is not None
    strip = given(at, "chips")
    hidden = HIDES.get(step.ask.key, ())
    assert not [one for one in there if one.key in hidden]
    if "chips" in hidden:
        assert strip is None
    elif step.page not in WITHOUT_TEXT or strip is not None:
        assert strip["next"] is strip["weights"] is strip["shares"] is None
    assert not at.dataframe and not at.code and not at.get("download_button")
    answer = re.escape(expected.shown.strip("`"))
    tells = re.compile(rf"(?<![\w.]){answer}(?!\w|\.\d)")
    for element in there:
        if element.key not in OF_THE_TEXT and not is_shown(element, step):
            assert not tells.search(said_by(element)), said_by(element)[:300]
    seen = [one for one in there if is_shown(one, step)]
    if step.page != "heads":  # its trials wait for a process, which is not here
        assert bool(seen) == bool(step.shows)


def is_shown(element, step):
    """True for a picture that the step says does not tell the answer."""
    key = re.sub("_(save|clicks)$", "", element.key or "")
    names = {key, *re.findall('data-testid="([^"]*)"', getattr(element.proto, "body", ""))} - {""}
    return any(fnmatch(one, pattern) for one in names for pattern in step.shows)


@pytest.mark.parametrize("number", [1, 4])
def test_what_is_opened_below_an_open_question_is_covered_too(number):
    at = open_all(at_step(number))
    assert at.tabs  # of Details
    assert not at.dataframe and not at.code and not at.get("download_button")
    at.button(key="guide_skip").click().run()
    assert at.dataframe and at.code and at.get("download_button")


def test_the_blank_stands_behind_the_selected_token_and_a_text_is_text():
    text = "The <b>cat</b> & the dog"
    at = at_step(1, text=text, token=3, present="on")
    before, after = text_in_card(at).split("‸")
    tokens = load("mini").tokens(load("mini").encode(text))
    assert before + after == text and before == "".join(token.text for token in tokens[:4])


@pytest.mark.parametrize("present", ["on", "off"])
def test_a_question_stays_when_its_answer_comes(present):
    at = at_step(1, present=present)
    question = TOUR[0].ask.text
    assert question in prose(at) and question not in [one.value for one in at.caption]
    at.button(key="guide_skip").click().run()
    assert question in [one.value for one in at.caption] and text_in_card(at) is None
    assert "This model: **" in prose(at)
