"""A class through AppTest: its teacher leads, pupils answer before they see, the wall counts."""

import csv
import io
import re
from types import MappingProxyType

import pytest
import streamlit as st

from gptviz.teach.classroom import Vote, classes as store, written_code
from gptviz.teach.guides import find
from gptviz.ui.teach import classroom, votes
from gptviz.ui.teach.guide_check import keys_of
from tests.pages.conftest import FIRST, run_page
from tests.specs import given, links, prose, put

TOUR = find("tour").steps
WORD = TOUR[0]
NUMBER = TOUR[1]


@pytest.fixture(autouse=True)
def no_class_is_there():
    """Each test has a database of its own, in its folder for caches."""
    for kept in (classroom.classes, classroom._guide_of):
        kept.clear()


def page_of(name, secret, session=MappingProxyType({}), **query):
    """The page as the browser opens it that holds this secret."""
    return run_page(name, {"class_secret": secret, **session}, **query)


def press(at, label):
    return next(button for button in at.button if button.label == label).click().run()


def begun(pages="All pages", guide="tour"):
    """The teacher's page and secret."""
    at = run_page("class", **FIRST)
    at.selectbox(key="class_guide").set_value(guide)
    at.session_state["class_pages"] = pages
    press(at, "Begin a class")
    return at, at.session_state["class_secret"]


def code_of(at):
    return classroom.classes().member(at.session_state["class_secret"]).room.code


def joined(code):
    """A pupil's secret."""
    at = run_page("class", code=code)
    press(at, "Join")
    assert "You are **" in prose(at)
    return at.session_state["class_secret"]


def room(secret):
    return classroom.classes().member(secret).room


def guess(at, word):
    at.text_input(key="guide_given_class_0").input(word)
    return press(at, "That is my guess")


def everything(at):
    """All that a browser is sent."""
    return "".join(str(proto) for side in (at.main, at.sidebar) for proto in protos(side))


def protos(node):
    for child in node.children.values():
        yield getattr(child, "proto", "")
        if hasattr(child, "children"):
            yield from protos(child)


def acts(at, *now):
    switches = next(one for one in at.button_group if one.key.startswith("class_acts_"))
    return switches.set_value(list(now)).run()


def test_a_class_predicts_before_it_sees(monkeypatch):
    teacher, secret = begun()
    code = code_of(teacher)
    otter = joined(code)
    owl = joined(code)
    names = classroom.classes().names(room(secret))
    teacher.run()
    assert all(
        name in everything(teacher) for name in names
    ) and "**2 students** have joined" in prose(teacher)
    classroom.classes().steer(secret, step=0)

    pupil = page_of("next_token", otter)
    assert "Which word does the model think comes next?" in prose(pupil)
    assert given(pupil, "candidates") is None and given(pupil, "chips")["next"] is None
    assert "Next step" not in links(pupil)
    hinted = page_of("next_token", owl)
    for _ in range(3):
        press(hinted, "A hint")
    assert not hinted.text_input(key="guide_given_class_0").value  # alone, the last one fills it in
    guess(pupil, "hot")
    assert "Sent: hot. You can still change your answer" in prose(pupil)
    other = guess(page_of("next_token", owl), "<b>=cmd</b>")
    assert r"Sent: \<b\>=cmd\</b\>" in prose(other)
    seen = everything(pupil)
    assert "This model" not in prose(pupil)
    assert not [one for one in (names[1], secret, owl) if one in seen]
    assert given(pupil, "candidates") is None

    wall = page_of("next_token", secret)
    assert "Answered: **2** of 2 students." in prose(wall) and 'gv-wall"' not in everything(wall)
    acts(wall, "together", "shown")
    assert "&lt;b&gt;=cmd&lt;/b&gt;" in everything(wall) and "<b>" not in everything(wall)
    assert "✓ right" not in everything(wall)
    assert given(wall, "candidates") is None
    acts(wall, "together", "shown", "locked")
    late = page_of("next_token", otter)
    assert "The votes are locked." in prose(late) and "That is my guess" not in str(late.button)
    acts(wall, "together", "shown", "locked", "revealed")
    assert "hot ✓ right" in everything(wall) and given(wall, "candidates") is not None
    for at, mark in ((pupil, ":material/check:"), (other, ":material/close:")):
        at.run()
        assert f"{mark} You said" in prose(at) and "This model: **`·hot`**" in prose(at)
        assert given(at, "candidates") is not None

    with monkeypatch.context() as patch:
        files = []
        patch.setattr(
            st, "download_button", lambda label, data, *names, **options: files.append(data)
        )
        page_of("class", secret)
    rows = [*csv.DictReader(io.StringIO(files[0]))]
    said = [(row["pupil"], row["answer"], row["skipped"]) for row in rows]
    assert said == [(names[0], '"hot"', "False"), (names[1], '"<b>=cmd</b>"', "False")]


def test_while_the_class_predicts_all_have_the_same_run_and_no_page_tells():
    teacher, secret = begun()
    mine = joined(code_of(teacher))
    classroom.classes().steer(secret, step=0)
    place = dict(WORD.place)
    for who in (mine, secret):
        at = page_of("next_token", who, text="a text of my own", token=0)
        assert at.session_state["text"] == place["text"] and at.session_state["token"] != 0
        assert put(at, text="another one").session_state["text"] == place["text"]
    elsewhere = page_of("tokens", mine, {"guide_at": ("class", 0)}, guide="class", text="a b")
    assert "go there" in str(links(elsewhere).keys())
    assert given(elsewhere, "token_cards") is None
    classroom.classes().steer(secret, marks=(0, ["revealed"]))
    put(elsewhere, text="a b")
    assert given(elsewhere, "token_cards") is not None and elsewhere.session_state["text"] == "a b"


def test_a_wall_without_votes_says_so():
    _, secret = begun()
    classroom.classes().steer(secret, step=0)
    assert "No votes yet" not in everything(page_of("next_token", secret))
    classroom.classes().steer(secret, step=0, marks=(0, ["shown"]))
    wall = page_of("next_token", secret)
    assert "No votes yet" in everything(wall) and "gv-wall" not in everything(wall)


def test_the_teacher_sees_the_lessons_name_the_choices_and_all_their_votes():
    teacher, secret = begun()
    assert "Code of **The tour**" in prose(teacher)
    number = next(n for n, step in enumerate(TOUR) if step.ask and step.ask.kind == "choice")
    pupil = joined(code_of(teacher))
    classroom.classes().steer(secret, step=number)
    ballot = page_of(TOUR[number].page, pupil)
    choices = [*ballot.radio[0].options]
    sent = everything(page_of(TOUR[number].page, secret))
    assert len(choices) == 4 and "gv-wall" not in sent  # before the votes are shown, no numbers
    places = [sent.index(f"<li>{choice}</li>") for choice in choices]
    assert places == sorted(places)
    classroom.classes().steer(secret, marks=(number, ["shown"]))
    for given_votes in (0, 1):
        if given_votes:
            ballot.radio[0].set_value(choices[2])
            press(ballot, "That is my guess")
        wall = everything(page_of(TOUR[number].page, secret))
        rows = re.findall(
            r"<th scope=.{1,2}row.{1,2}>([^<]*)</th><td><i [^>]*></i></td><td>(\d+)", wall
        )
        counts = ["0", "0", str(given_votes), "0"]
        assert rows == [*zip(choices, counts, strict=True)]


def test_what_was_found_is_worked_out_by_the_server_and_ranked(mini):
    teacher, secret = begun(guide="games")
    code = code_of(teacher)
    strong = joined(code)
    weak = joined(code)
    cheat = joined(code)
    names = classroom.classes().names(room(secret))
    classroom.classes().steer(secret, step=0, marks=(0, ["shown"]))
    text = "My grandmother keeps two old clocks in the kitchen."
    for who, head in ((weak, (0, 0)), (strong, (4, 3))):
        pupil = page_of("attention", who, text=text, block=head[0], head=head[1])
        assert given(pupil, "matrix_head") is not None  # what is hunted for is found on the page
        press(pupil, "Hand in what my screen shows")
    store_of = classroom.classes()
    store_of.vote(store_of.member(cheat), 0, [text, "99.0+<b>"])
    sent = everything(page_of("attention", secret))
    table = sent[sent.index("data-testid") :]
    places = [table.index(name) for name in (names[0], names[1], names[2])]
    assert places == sorted(places) and "does not count" in table and "<b>" not in table
    assert "block 4, head 3 with 9" in table


def test_a_circuit_that_a_number_describes_is_handed_in_as_its_heads(mini):
    """The address has only how many of the strongest heads are kept; the class wants to know which."""
    teacher, secret = begun(guide="games")
    pupil_of = joined(code_of(teacher))
    classroom.classes().steer(secret, step=1, marks=(1, ["shown"]))
    pupil = page_of("circuit", pupil_of, keep=40).run()
    press(pupil, "Hand in what my screen shows")
    assert "40 heads with" in everything(page_of("circuit", secret))


def test_an_answer_about_a_longer_text_stops_no_wall(tmp_path, monkeypatch):
    step = 'page: loss\nplace: {text: "one two three"}\nask: {kind: token, question: "Which?", key: dearest}'
    (tmp_path / "mine.md").write_text(f"---\ntitle: Mine\n---\n## One\n\n```step\n{step}\n```\n")
    monkeypatch.setenv("GPTVIZ_GUIDES", str(tmp_path))
    teacher, secret = begun(guide="mine")
    store_of = classroom.classes()
    pupil = joined(code_of(teacher))
    store_of.steer(secret, step=0)
    store_of.vote(store_of.member(pupil), 0, 40)
    store_of.steer(secret, marks=(0, ["shown", "revealed"]))
    assert "position 40" in everything(page_of("loss", secret))


@pytest.mark.parametrize(
    ("given", "said"), [(3.0, "3"), (0.125, "0.125"), (1_234_567.0, "1234567")]
)
def test_a_number_is_shown_as_it_was_given(given, said):
    assert votes.shown("number", given, []) == said


def test_a_wall_keeps_the_most_frequent_answers_and_its_bars_are_to_scale():
    """The rare ones are one line, numbers too; a bar is as long as its count says, that line's too."""
    pupils = [number for number in range(20) for _ in range(1 + 3 * (number >= 8))]
    answers = [Vote(f"pupil {i}", 0, given, given, 0, 0, 0.0) for i, given in enumerate(pupils)]
    rows = votes.most_frequent(answers, "number", [])
    assert [value for _, value, _ in rows] == list(range(8, 20))  # by size, and none given once
    table = votes._table(rows, len(answers), {"9": True})
    assert re.findall(r"width:(\d+)%", table) == ["50"] * votes.MOST + ["100"]  # 4 of 8 others
    assert table.count("✓ right") == 1


def test_everybody_follows_or_goes_at_their_own_pace():
    teacher, secret = begun()
    pupil_secret = joined(code_of(teacher))
    classroom.classes().steer(secret, step=0)
    leads = page_of("next_token", secret)
    assert leads.session_state["step"] == 1
    leads = page_of(
        "tokens", secret, {"class_step": 0, "guide_said": ("class", 1)}, guide="class", step=2
    )
    assert room(secret).step == 1 and leads.session_state["step"] == 2
    pupil = page_of("tokens", pupil_secret, guide="class", step=7)
    assert pupil.session_state["step"] == 2 and NUMBER.ask.text in prose(pupil)

    classroom.classes().steer(secret, together=False)
    pupil = page_of("next_token", pupil_secret, guide="class", step=1)
    assert pupil.session_state["step"] == 1
    guess(pupil, "umbrella")
    assert "This model: **`·hot`**" in prose(pupil) and given(pupil, "candidates") is not None
    assert [vote.given for vote in classroom.classes().votes(room(secret))] == ["umbrella"]


def test_screens_stand_still_and_nothing_is_lost():
    teacher, secret = begun()
    pupil = page_of("tokens", joined(code_of(teacher)), text="my own words")
    classroom.classes().steer(secret, frozen=True)
    pupil.run()
    assert (
        "Please look at your teacher" in pupil.info[0].value and given(pupil, "token_cards") is None
    )
    classroom.classes().steer(secret, frozen=False)
    pupil.run()
    assert given(pupil, "token_cards") is not None and pupil.session_state["text"] == "my own words"


def test_a_pupil_sees_the_pages_of_the_class():
    teacher, secret = begun(pages="Only the lesson's pages")
    pupil = page_of("overview", joined(code_of(teacher)))
    assert "Tokens" in links(pupil.sidebar) and "Patching" not in links(pupil.sidebar)
    assert "Patching" in links(page_of("overview", secret).sidebar)


def test_the_class_ends_and_everybody_is_told():
    teacher, _ = begun()
    pupil = page_of("tokens", joined(code_of(teacher)), text="a b")
    press(teacher, "End it now")
    assert "Begin a class" in str(teacher.button)
    pupil.run()
    assert "has ended" in pupil.warning[0].value and given(pupil, "token_cards") is not None
    assert pupil.session_state["class_secret"] == ""


def test_a_link_of_another_class_asks_before_it_takes_a_place_and_both_are_kept():
    teacher, mine = begun()
    mine_code = code_of(teacher)
    stranger, theirs = begun()
    their_code = code_of(stranger)
    pupil = joined(mine_code)
    for own, who in ((mine, "the teacher of"), (pupil, classroom.classes().member(pupil).name)):
        at = page_of("class", own, {"class_offered": theirs})
        said = prose(at).replace("*", "")
        assert (
            f"makes you the teacher of the class {written_code(their_code)}. Now you are {who}"
            in said
        )
        assert at.session_state["class_secret"] == own
        press(at, "Stay here")
        assert at.session_state["class_secret"] == own and "Steer that class" not in str(at.button)
        assert held(at) == own
        at = page_of("tokens", own, {"class_offered": theirs})  # wherever the link was opened
        press(at, "Steer that class")
        assert at.session_state["class_secret"] == theirs and held(at) == f"{theirs}.{own}"
        at = page_of("class", theirs, {"class_others": [own]})
        assert written_code(their_code) in everything(at)
        press(at, f"Go to the class {written_code(mine_code)}")
        assert at.session_state["class_secret"] == own and held(at) == f"{own}.{theirs}"
    press(page_of("class", mine), "End it now")
    at = page_of("class", mine, {"class_others": [theirs], "class_member": "somebody"})
    assert at.session_state["class_secret"] == theirs and "has ended" in at.warning[0].value
    assert held(at) == theirs


def held(at):
    """What the browser is given for its cookie."""
    return given(at, "class_cookie")["secret"]


def test_a_link_with_a_pupils_secret_or_a_dead_one_takes_no_place(monkeypatch):
    teacher, mine = begun()
    pupil = joined(code_of(teacher))
    session = {}
    _, theirs = begun()
    taken = []
    said = []
    monkeypatch.setattr(classroom.st, "session_state", session)
    monkeypatch.setattr(classroom, "become", taken.append)
    monkeypatch.setattr(classroom, "say", said.append)
    for own, link, offered, takes in (
        (mine, pupil, None, []),
        (mine, "nonsense", None, []),
        (mine, theirs, theirs, []),
        ("", theirs, None, [theirs]),
        ("ended", theirs, None, [theirs]),
    ):
        session.clear()
        session["class_secret"] = own
        taken.clear()
        classroom._taught(link)
        assert (session.get("class_offered"), taken) == (offered, takes)
    assert len(said) == 2


def test_a_teacher_takes_a_pupil_out():
    teacher, secret = begun()
    code = code_of(teacher)
    rude = joined(code)
    kind = joined(code)
    names = classroom.classes().names(room(secret))
    at = page_of("class", secret, {"class_out": True})
    at.selectbox(key="class_removed").set_value(names[0])
    press(at, "Remove from the class")
    assert classroom.classes().names(room(secret)) == names[1:]
    pupil = page_of("tokens", rude, {"class_member": "somebody"}, text="a b")
    assert "your teacher removed you" in pupil.warning[0].value
    assert classroom.classes().member(kind) is not None


def test_what_cannot_be_begun_or_joined_is_a_sentence(monkeypatch):
    for code in ("", "<b>nonsense</b>"):
        at = run_page("class", code=code)
        press(at, "Join")
        assert "is no code" in at.warning[0].value and "Begin a class" in str(at.button)
    monkeypatch.setattr(store, "MOST_CLASSES", 0)
    press(at, "Begin a class")
    assert "has to end first" in at.warning[0].value
    monkeypatch.setenv("GPTVIZ_DATABASE", "postgresql+psycopg://nobody:secret@127.0.0.1:1/none")
    classroom.classes.clear()
    at = page_of("tokens", "a secret", text="a b")
    assert "cannot be opened" in at.warning[0].value and "nobody:secret" not in everything(at)
    assert given(at, "token_cards") is not None


def test_the_guide_of_a_class_is_its_own():
    at = run_page("tokens", text="a b", guide="class", step=2)
    assert (
        "join the class on the page Class" in at.warning[0].value
        and given(at, "token_cards") is not None
    )
    assert "guide_tour" in keys_of(run_page("overview").main)
