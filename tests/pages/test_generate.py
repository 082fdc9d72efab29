"""The Generate page through AppTest: what is written is what `lm.generate` writes, step by step."""

import math

import numpy as np
import pytest
import torch

from gptviz import Run
from gptviz.digits import fixed
from gptviz.engine.generate import steps
from gptviz.engine.sampling import Sampling, distribution, draw
from gptviz.figures.next_token import probability_text
from gptviz.tokenizer import show_token
from gptviz.ui.parts.generate.tree import Branch, Tree
from gptviz.ui.parts.generate.written import Written, log_probability, perplexity, text_of
from gptviz.ui.shell.sampling import name_of
from tests.specs import given, left_by_program, opened, paragraph, prose, tab_labels

TEXT = "The cat sat on the mat. The dog sat on the"


def ids_of(at):
    return [token["id"] for token in given(at, "writing")["tokens"]]


def tree(mini, *branches, text=TEXT, branch=0, step=None):
    return str(Tree(branches, branch, step, name_of(mini.encode(text)[:256])))


def click(at, name):
    return at.button(key=f"generate_{name}").click().run()


@pytest.mark.parametrize(
    "query", [{"seed": 5, "temperature": 0.8, "top_k": 50, "token": 6}, {"temperature": 0.0}]
)
def test_it_writes_what_generate_writes(run_page, mini, query):
    at = run_page("generate", text=TEXT, written=20, **query)
    options = {name: query[name] for name in ("temperature", "top_k", "top_p") if name in query}
    ids = mini.encode(TEXT)[: query.get("token", 99) + 1]
    expected = list(mini.generate(ids, 20, seed=query.get("seed", 1), **options))
    drawn = given(at, "writing")
    assert ids_of(at) == [step.id for step in expected]
    came = [s.probability for s in expected]
    if query.get("temperature") == 0:  # each was certain, so it is the model's own
        came = [float(s.logits.double().softmax(0)[s.id]) for s in expected]
        assert max(came) < 1
    assert np.allclose([t["probability"] for t in drawn["tokens"]], came, atol=1e-6)
    assert (drawn["chosen"], drawn["before"], drawn["delay"]) == (19, mini.decode(ids), None)
    last = expected[-1]
    shown = given(at, "draws")
    assert [row["id"] for row in shown["rows"][:10]] == last.candidates(10)["id"].tolist()
    assert (shown["point"] or {"at": None})["at"] == last.point
    had = " ".join(mini.decode(ids_of(at)[:-1]).split())
    assert shown["saved"]["title"].endswith(f"{had[-40:]}” was written")
    mark = next(row for row in shown["rows"] if row["drawn"])
    assert mark["id"] == last.id and mark["start"] <= (last.point or 0) < mark["stop"]
    log_p = sum(math.log(step.model_probability) for step in expected)
    row = given(at, "branches")["rows"][0]
    assert row["log_probability"] == pytest.approx(log_p, abs=1e-4)
    assert row["value"] == pytest.approx(math.exp(-log_p / 20), abs=1e-3)


def test_forward_back_and_what_the_address_says(run_page, mini, passes):
    at = run_page("generate", text=TEXT)
    expected = [step.id for step in mini.generate(TEXT, 3, seed=1)]
    assert ids_of(at) == [] and "written" not in at.query_params
    comes = next(row for row in given(at, "draws")["rows"] if row["drawn"])
    assert comes["id"] == expected[0]  # said before it is written
    for count in (1, 2, 3):
        click(at, "forward")
        assert ids_of(at) == expected[:count] and given(at, "writing")["chosen"] == count - 1
    passes.clear()
    click(at, "back")
    assert (ids_of(at), given(at, "writing")["chosen"]) == (expected, 1)
    click(at, "forward")
    assert given(at, "writing")["chosen"] == 2 and not passes  # nothing was written anew
    again = run_page("generate", text=TEXT, written=at.query_params["written"])
    assert (ids_of(again), given(again, "writing")["chosen"]) == (expected, 2)
    other = run_page("generate", text="Another text", written=at.query_params["written"])
    assert not other.session_state["generate_step"] > 1  # it is not meant for that one


def test_playing_and_pausing(run_page, mini):
    at = run_page("generate", text=TEXT, speed="5 a second")
    click(at, "play")
    assert len(ids_of(at)) == 1 and given(at, "writing")["delay"] == 200
    assert given(at, "writing")["address"] == {"written": at.query_params["written"]}
    click(at, "pause")
    assert given(at, "writing")["delay"] is None and len(ids_of(at)) == 1
    click(at, "again")
    assert ids_of(at) == []


def test_a_branch_goes_on_with_the_same_random_numbers(run_page, mini):
    ids = mini.encode(TEXT)
    other = 300
    trunk = [step.id for step in mini.generate(TEXT, 6, seed=1)]
    link = tree(mini, Branch(6), Branch(5, 0, 2, other), branch=1, step=2)
    at = run_page("generate", text=TEXT, written=link)
    prefix = [*trunk[:2], other]
    after = [step.id for step in steps(mini, [*ids, *prefix], 2, Sampling(seed=1), skip=3)]
    assert ids_of(at) == prefix + after
    assert [token["put"] for token in given(at, "writing")["tokens"]] == [
        False,
        False,
        True,
        False,
        False,
    ]
    logits = [
        mini.trace([*ids, *(prefix + after)[:n]], keep=[]).logits(-1).double() for n in range(5)
    ]
    log_p = sum(float(row.log_softmax(0)[i]) for row, i in zip(logits, prefix + after, strict=True))
    rows = given(at, "branches")["rows"]
    assert [row["parent"] for row in rows] == [None, 0] and [row["length"] for row in rows] == [
        6,
        5,
    ]
    assert rows[1]["log_probability"] == pytest.approx(log_p, abs=1e-3)
    assert given(at, "draws")["point"] is None  # nothing was drawn here


def test_a_full_context_slides_and_says_so(run_page, mini):
    text = "word " * 300
    at = run_page("generate", text=text, written=3, temperature=0.7)
    ids = mini.encode(text)[:256]
    assert ids_of(at) == [step.id for step in mini.generate(ids, 3, temperature=0.7, seed=1)]
    assert len(at.info) == 1 and "256" in at.info[0].value and "first 2 tokens" in at.info[0].value
    assert not run_page("generate", text=TEXT, written=3).info


def test_the_end_of_text_and_a_stop_string_end_a_branch(run_page, mini):
    end = mini.tokenizer.eot_token
    link = tree(mini, Branch(6), Branch(9, 0, 2, end), branch=1)
    at = run_page("generate", text=TEXT, written=link)
    assert len(ids_of(at)) == 3 and ids_of(at)[-1] == end and not given(at, "writing")["open"]
    assert at.button(key="generate_forward").disabled and "ended its text" in prose(at)
    at = run_page("generate", text=TEXT, written=20, temperature=0.0, stop=" the")
    written = mini.decode(ids_of(at))
    assert " the" in written and " the" not in mini.decode(ids_of(at)[:-1])
    assert at.button(key="generate_forward").disabled
    assert not click(at, "back").button(key="generate_forward").disabled


def test_a_setting_rewrites_the_text_and_what_was_written_goes_into_the_prompt(run_page, mini):
    at = run_page("generate", text=TEXT, written=5)
    at.slider(key="temperature").set_value(0.5).run()  # with the same random numbers
    assert ids_of(at) == [step.id for step in mini.generate(TEXT, 5, temperature=0.5, seed=1)]
    at.slider(key="temperature").set_value(0.0).run()
    said = paragraph(at, "**What to look for.")
    assert "random number lands" not in said and "Seed" not in said
    longer = mini.decode([*mini.encode(TEXT), *ids_of(at)])
    click(at, "keep")
    assert at.session_state["text"] == longer and ids_of(at) == []


STORY = "The little birds sang beside the red mill. The little birds sang beside the red"
INDUCTION = "z.5.0+3+4+5+7=zero"


def by_hand(mini, ids, count, sampling, edits=()):
    """Token after token from whole passes with these edits: ids, and each step's distribution."""
    found = list(ids)
    chances = []
    for point in sampling.points(count):
        chances.append(distribution(mini.trace(found, keep=[], edits=edits).logits(-1), sampling))
        found.append(draw(chances[-1], point))
    return found[len(ids) :], chances


@pytest.mark.parametrize("temperature", [0.8, 0.0])
def test_a_changed_model_writes_with_its_changes_beside_the_unchanged_one(
    run_page, mini, temperature
):
    sampling = Sampling(temperature, seed=3)
    ids = mini.encode(STORY)
    at = run_page(
        "generate", text=STORY, written=6, temperature=temperature, seed=3, edits=INDUCTION
    )
    new, chances = by_hand(mini, ids, 6, sampling, [INDUCTION])
    plain, _ = by_hand(mini, ids, 6, sampling)
    assert ids_of(at) == new != plain
    # the unchanged model, at what the changed one wrote
    read = mini.trace(ids + new, keep=["final"])
    rows = [read.logits(len(ids) - 1 + i) for i in range(6)]
    unchanged = [distribution(row, sampling) for row in rows]
    drawn = given(at, "draws")
    now = chances[-1]
    was = unchanged[-1]
    shown = torch.tensor([row["id"] for row in drawn["rows"]])
    assert drawn["compared"] == ["unchanged", "changed"] and int(was.order[0]) in shown
    for column, expected in (("probability", now), ("ghost", was)):
        p = expected.probabilities
        assert np.allclose([row[column] for row in drawn["rows"]], p[shown], atol=1e-6)
        assert drawn["rest"][column] == pytest.approx(float(1 - p[shown].sum()), abs=1e-6)
    assert show_token(text_of(mini, plain).encode()) in prose(at)
    own = was if temperature else distribution(rows[-1], Sampling())
    given_now = probability_text(float(own.probabilities[new[-1]]))
    assert f"{given_now} → " in prose(at)
    assert f"was then {int(was.rank[new[-1]]) + 1:,}." in prose(at)
    whole = sum(float(row.double().log_softmax(0)[i]) for row, i in zip(rows, new, strict=True))
    (row,) = given(at, "branches")["rows"]
    assert row["unchanged_value"] == pytest.approx(whole, abs=1e-3) and row["unchanged"] == fixed(
        whole, 2
    )
    branch, frame = (f.value for f in opened(at, "numbers_generate", "numbers_branches").dataframe)
    assert branch["unchanged ln p"][0] == pytest.approx(whole, abs=1e-3)
    assert row["log_probability"] == pytest.approx(branch["ln p"][0]) and branch["ln p"][0] > whole
    for column, steps_of in (("unchanged probability", unchanged), ("probability", chances)):
        expected = [float(step.probabilities[i]) for step, i in zip(steps_of, new, strict=True)]
        assert np.allclose(frame[column], expected, atol=1e-6)


def test_a_change_of_a_later_token_is_left_out_and_said(run_page, mini):
    at = run_page(
        "generate", text=STORY, token=5, written=4, seed=2, edits="z.4.3@12=zero,z.5.0=zero"
    )
    new, _ = by_hand(mini, mini.encode(STORY)[:6], 4, Sampling(seed=2), ["z.5.0=zero"])
    assert ids_of(at) == new
    assert "z.4.3@12=zero" in prose(at)


def test_nothing_has_no_perplexity_and_a_step_that_is_not_there_is_refused():
    assert (log_probability(()), perplexity(0, 0)) == (0, None)
    with pytest.raises(ValueError, match="step 3"):
        Written(Run("mini", (7, 8, 9)), (), 3, Sampling(seed=0), context=5)


def test_a_greedy_text_is_what_the_books_own_function_writes(run_page, mini):
    at = run_page("generate", text=TEXT, written=20, temperature=0.0)
    written = mini.encode(TEXT) + ids_of(at)
    assert left_by_program(at, "in_code_book")["picture"].tolist() == [written]
    for query in ({"temperature": 0.7}, {"temperature": 0.0, "edits": "z.4.3=zero"}):
        at = opened(run_page("generate", text=TEXT, written=2, **query), "in_code")
        assert "Code" in tab_labels(at)
        assert "Code: the same, in the book's words" not in tab_labels(at)
