"""The bar of the five pages that say which part did it: what it asks, by what measure, in whose words."""

import json
import math

import pytest

from gptviz import Run
from gptviz.analysis.asked import asked_of
from gptviz.analysis.patches import value_of
from gptviz.digits import fixed
from gptviz.ui import runs
from gptviz.ui.shell.bench import MEASURES, PARAMS, Question, asked_at
from gptviz.ui.shell.navigation import BENCH
from gptviz.ui.shell.state import UNSAID_TEXT
from gptviz.ui.shell.target import MEAN
from tests.conftest import random_lm
from tests.specs import links, run_app

NAMES = "When Tom and Mary left the garden, Tom gave the flowers to"


def app():
    import streamlit as st

    from gptviz.ui.shell.bench import PARAMS, bar
    from gptviz.ui.shell.page import read_text, start_page, trace
    from gptviz.ui.shell.params import Param

    only = Param("only", str, "")
    usual = Param("usual", str, "zero")
    frame = start_page("Switch parts off", choices=[*PARAMS, only, usual])
    scene = trace(read_text(frame))
    found = bar(scene, usual=usual.value, only=only.value)
    told = {"briefly": found.briefly, "watched": found.watched}
    told |= {"null": found.null, "other": found.other and found.other.text}
    st.json(vars(found) | told | {"run": found.of(scene.run, scene.position)})


def run(**query):
    return run_app(app, **query)


def asked(at):
    return json.loads(at.json[0].value)


@pytest.mark.parametrize(
    ("query", "measure"),
    [
        ({}, "probability"),
        ({"text": NAMES}, "logit"),
        ({"target": 12}, "probability"),
        ({"target": 12, "against": 300}, "logit"),
        ({"target": 12, "against": "mean"}, "logit"),
        ({"text": NAMES, "measure": "loss"}, "loss"),
        ({"measure": "x"}, "probability"),
    ],
)
def test_two_names_and_two_chosen_words_are_measured_by_the_difference_of_logits(
    query, measure, mini
):
    found = asked(run(**query))
    logits = mini.trace(query.get("text", UNSAID_TEXT)).logits(-1).double()
    chance = logits.softmax(0)[found["token"]].item()
    against = found["against"]
    other = logits.mean() if against is None else logits[against]
    by = {
        "logit": float(logits[found["token"]] - other),
        "probability": chance,
        "loss": -math.log(chance),
    }
    assert found["measure"] == measure
    assert found["run"] == pytest.approx(by[measure], abs=1e-5)


def test_of_two_names_the_lead_is_said():
    found = asked(run(text=NAMES))
    assert found["kind"] == "names"
    assert found["briefly"] == "the lead of `·Mary` over `·Tom`"
    assert found["watched"] == "the logit of `·Mary` minus that of `·Tom`"
    mean = asked(run(text=NAMES, against="mean"))
    # the number is a difference here, too
    assert mean["briefly"] == "the logit of `·Mary` minus the mean over the vocabulary"
    assert mean["against_shown"] is None
    assert asked(run(text=NAMES, measure="loss"))["briefly"] == "the loss of `·Mary`"


def test_of_a_changed_model_it_asks_what_the_unchanged_one_is_asked(mini):
    edits = "z.5.0+3+4+5+7=zero"
    wanted = asked_of(mini, UNSAID_TEXT)
    found = asked(run(edits=edits))
    assert (found["token"], found["against"]) == (wanted.answer, wanted.instead)
    logits = mini.edited(edits).trace(UNSAID_TEXT).logits(-1).double()
    assert int(logits.argmax()) != wanted.answer
    assert found["run"] == pytest.approx(float(logits.softmax(0)[wanted.answer]), abs=1e-6)


@pytest.mark.parametrize(
    ("edits", "whose"), [("", "the model"), ("mlp_out.1=zero", "the unchanged model")]
)
def test_it_says_whose_first_choice_the_answer_is(mini, edits, whose):
    text = "The cat sat on the"
    assert asked_of(mini, text).kind == "first two"
    at = run(text=text, edits=edits)
    (hint,) = [one.help for one in at.caption if one.value == "answer"]
    assert f"Opened with {whose}'s first choice." in hint


def test_a_page_that_measures_logits_only_says_so_where_something_else_was_chosen():
    said = "votes add up in logits only"
    for measure, told in ((None, False), ("logit", False), ("probability", True)):
        query = {"only": said} | ({"measure": measure} if measure else {})
        at = run(**query)
        assert asked(at)["measure"] == "logit"
        assert any(said in caption.value for caption in at.caption) == told, measure


def test_what_a_muted_part_gives_is_the_pages_own_until_it_is_chosen():
    assert asked(run())["baseline"] == "zero"
    assert asked(run(usual="sample"))["baseline"] == "sample"
    assert asked(run(usual="sample", null="zero"))["baseline"] == "zero"
    assert asked(run(others="mean"))["baseline"] == "mean"  # as it was called on Circuit
    at = run(usual="sample")
    at.selectbox(key="null").set_value("mean").run()
    assert asked(at)["baseline"] == at.query_params["null"] == "mean"


AGAIN = "When Tom and Mary left the garden, Mary gave the flowers to"
THIRD = "When Tom and Mary left the garden, Jane gave the flowers to"


@pytest.mark.parametrize(("query", "text"), [({}, AGAIN), ({"other": THIRD}, THIRD)])
def test_a_muted_part_gives_its_value_in_the_other_text(mini, query, text):
    at = run(text=NAMES, null="other", **query)
    found = asked(at)
    assert (found["null"], found["other"]) == ("other", text)
    assert found["baseline"] == value_of(mini.encode(text))
    assert any(f"The other text: `{text}`." in caption.value for caption in at.caption)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"text": NAMES, "other": f"{NAMES} the"}, "The other text has 14 tokens, yours 13."),
        ({"text": NAMES, "other": NAMES}, "The other text is the same as yours."),
        (
            {"text": "Tom saw Anna there", "other": "Anna saw Tom there"},
            "at other positions",
        ),
    ],
)
def test_where_no_text_keeps_step_it_says_why_and_what_a_muted_part_gives_instead(query, why):
    for usual, gives in (("zero", "0"), ("sample", "its mean over a sample of text")):
        at = run(null="other", usual=usual, **query)
        assert (asked(at)["null"], asked(at)["other"]) == (usual, None)
        (said,) = [one.value for one in at.caption if "So a part that is off outputs" in one.value]
        assert why in said and said.endswith(f"So a part that is off outputs {gives}.")
        assert at.query_params["null"] == "other"  # with another text it is that again


@pytest.mark.parametrize("measure", MEASURES)
def test_a_number_has_its_unit(measure):
    question = Question(5, 7, "a", "b", "first two", measure, "zero")
    said = {"logit": fixed(0.5, 2), "probability": "50 %", "loss": f"{fixed(0.5, 2)} nats"}
    assert question.number(0.5) == said[measure]


def test_the_tabs_lead_to_all_five_with_what_is_asked():
    query = {"target": 12, "against": 300, "measure": "loss", "null": "other", "text": "one two"}
    query |= {"other": "three", "patch_made": "on"}
    found = links(run(**query).main)
    assert len(BENCH) == 5
    for title in ("Why this token?", "Switch parts off", "Circuit", "Patching"):
        assert found[title].query_string == found["What each head does"].query_string
    said = found["Circuit"].query_string
    assert all(f"{param.name}={query[param.name]}" in said for param in PARAMS)


def test_a_vocabulary_of_one_token_asks_for_it():
    lm = random_lm(vocab_size=1, n_layers=1)
    runs.use("one token", lm)
    found = asked_at(Run("one token", (0, 0), ()), 1)
    assert (found.answer, found.instead) == (0, MEAN)
