"""The Next token page through AppTest: what is drawn is what the model gives."""

import math

import numpy as np
import pytest
import torch

from gptviz.engine.sampling import Sampling, distribution, draw
from gptviz.figures.next_token import probability_text
from gptviz.ui.shell.sampling import SEEDS
from gptviz.ui.words import as_code, show_id
from tests.specs import charts, given, opened, prose

TEXT = "The cat sat on the mat. The dog sat on the"


def drew(seed, lm, token, chances):
    p = probability_text(float(chances.probabilities[token]))
    return f"Seed {seed} drew {as_code(show_id(lm, token))}, which had probability {p}."


def test_what_came_next_is_marked_at_its_real_rank(run_page, mini):
    trace = mini.trace(TEXT, keep=[])
    for position, token in enumerate(trace.tokens[1:]):
        table = trace.next_tokens(8192, position)
        rank = int(table.loc[table["id"] == token.id, "rank"].iloc[0])
        if rank > 10:
            break
    drawn = given(run_page("next_token", text=TEXT, token=position), "candidates")
    came = [row for row in drawn["rows"] if row["came"]]
    assert [(row["id"], row["rank"]) for row in came] == [(token.id, rank)]
    assert len(drawn["rows"]) == 11
    assert drawn["action"] == "Continue with it"
    last = given(run_page("next_token", text=TEXT), "candidates")
    assert not any(row["came"] for row in last["rows"])
    assert last["action"] == "Append"


def test_a_slider_does_not_run_the_model(run_page, passes):
    at = run_page("next_token", text=TEXT)
    passes.clear()
    at.slider(key="temperature").set_value(0.5).run()
    assert "Cut tokens" not in prose(at)  # a temperature alone cuts nothing
    at.number_input(key="top_k").set_value(3).run()
    assert "Cut tokens get 0" in prose(at)
    drawn = given(at, "candidates")
    assert not passes
    assert drawn["heads"]["scaled"] == "÷ 0.5"
    assert [row["filter"] for row in drawn["rows"]] == ["kept"] * 3 + ["top-k"] * 7
    assert drawn["rest"]["out"]


def test_sample_one_draws_with_the_seed_and_takes_the_next(run_page, mini):
    at = run_page("next_token", text=TEXT, seed=41, temperature=1.5)
    at.button(key="next_sample").click().run()
    chances = distribution(mini.trace(TEXT, keep=[]).logits(-1), Sampling(1.5))
    drawn = draw(chances, Sampling(seed=41).points(1)[0])
    trace = given(at, "chips")["tokens"]
    assert [token["id"] for token in trace] == [*mini.encode(TEXT), drawn]
    assert at.number_input(key="seed").value == 42
    assert drew(41, mini, drawn, chances) in prose(at)


def test_the_advanced_seed_stands_in_the_address(run_page, mini):
    at = run_page("next_token", text=TEXT)
    assert "seed" not in at.query_params
    for seed in (1, 2):
        at.button(key="next_sample").click().run()
        assert at.query_params["seed"] == str(seed)
    at.number_input(key="seed").set_value(7).run()
    assert at.query_params["seed"] == "7"
    again = run_page("next_token", **at.query_params)
    assert again.number_input(key="seed").value == 7
    assert given(again, "chips")["tokens"] == given(at, "chips")["tokens"]
    at.number_input(key="seed").set_value(SEEDS - 1).run()
    at.button(key="next_sample").click().run()  # after the last comes the first
    assert at.number_input(key="seed").value == 0 and at.query_params["seed"] == "0"


def test_a_full_prompt_says_so_and_stays(run_page, mini):
    text = "word " * 300
    at = run_page("next_token", text=text)
    at.button(key="next_sample").click().run()
    chances = distribution(mini.trace(mini.encode(text)[:256], keep=[]).logits(-1))
    drawn = draw(chances, Sampling(seed=0).points(1)[0])
    said = prose(at).split(drew(0, mini, drawn, chances))
    assert len(said) == 2 and "256" in said[1].splitlines()[0]
    assert at.session_state["text"] == text


def test_write_on_is_generate(run_page, mini):
    query = {"text": TEXT, "temperature": 0.8, "top_k": 50, "token": 6}
    at = run_page("next_token", **query)
    # it goes to the page Generate, which AppTest does not draw
    at.button(key="next_write").click().run()
    at = run_page(
        "generate", **query, **{name: at.session_state[name] for name in ("written", "seed")}
    )
    expected = mini.generate(mini.encode(TEXT)[:7], 20, 0.8, 50, seed=0)
    assert [token["id"] for token in given(at, "writing")["tokens"]] == [
        step.id for step in expected
    ]


def test_a_piece_of_a_character_cannot_be_appended(run_page, mini):
    at = run_page("next_token", text="日本語 🦜 é", next_rows=100)
    assert any(">日本語 🦜 é</span>" in element.proto.body for element in at.get("html"))
    for row in given(at, "candidates")["rows"]:
        raw = mini.tokenizer.decode_single_token_bytes(row["id"])
        assert row["whole"] == (raw.decode("utf-8", "ignore").encode() == raw)


def test_in_numbers(run_page, mini):
    at = run_page("next_token", text=TEXT, temperature=0.9)
    opened(at, "numbers_next_token", "numbers_entropy")
    table, unsure = (frame.value for frame in at.dataframe)
    assert table["token"].iloc[-1] == "all 8,182 others together"
    assert table["probability"].sum() == pytest.approx(1)
    for row, temperature in zip(unsure.itertuples(), (1, 0.9), strict=True):
        p = mini.trace(TEXT, keep=[]).logits(-1).double().div(temperature).softmax(0)
        assert row.nats == pytest.approx(float(-(p * p.log()).sum()))
        assert row.perplexity == pytest.approx(math.exp(row.nats))


EDITS = ("z.4.3=zero", "z.5.0+3+4+5+7=zero", "attn.0=uniform,mlp_out.2=mean")
STORY = "The little birds sang beside the red mill. The little birds sang beside the red"


@pytest.mark.parametrize(
    ("edits", "query"),
    [
        ("", {"temperature": 0.8, "top_k": 100, "top_p": 0.95, "token": 4, "next_rows": 20}),
        ("", {"temperature": 0.0, "token": 2}),
        (EDITS[0], {}),
        (EDITS[1], {"temperature": 0.7, "top_k": 40}),
        (EDITS[2], {"token": 9}),
    ],
)
def test_the_bars_are_the_distribution_and_of_a_changed_model_the_unchanged_beside_it(
    run_page, mini, edits, query
):
    at = run_page("next_token", text=STORY, edits=edits, **query)
    drawn = given(at, "candidates")
    count = query.get("next_rows", 10)
    rows = drawn["rows"]
    rest = drawn["rest"]
    position = query.get("token", len(mini.encode(STORY)) - 1)
    sampling = Sampling(
        **{name: query[name] for name in ("temperature", "top_k", "top_p") if name in query}
    )
    runs = [
        mini.trace(STORY, keep=["final"], edits=each)
        for each in (edits.split(",") if edits else [], [])
    ]
    now, was = (distribution(run.logits(position), sampling) for run in runs)
    ids = torch.tensor([row["id"] for row in rows])
    assert ids[:count].tolist() == now.order[:count].tolist() and int(was.order[0]) in ids
    assert [row["rank"] for row in rows[:count]] == [*range(1, count + 1)]
    assert np.allclose([row["logit"] for row in rows], runs[0].logits(position)[ids], atol=1e-4)
    assert len(rows) + int(rest["token"].split()[1].replace(",", "")) == mini.config.vocab_size
    for column, expected in (("probability", now), ("ghost", was))[: 1 + bool(edits)]:
        p = expected.probabilities
        assert np.allclose([row[column] for row in rows], p[ids], atol=1e-6)
        assert rest[column] == pytest.approx(float(1 - p[ids].sum()), abs=1e-6)
    if edits:
        (curve,) = charts(at)
        assert [line["name"] for line in curve["data"]] == ["unchanged", "changed"]
        for line, expected in zip(curve["data"], (was, now), strict=True):
            assert line["y"][0] == pytest.approx(float(expected.probabilities.max()), abs=1e-6)


def test_one_token_that_is_kept_is_one(run_page):
    at = run_page("next_token", top_k=1)
    assert any(
        "· 1 of 8,192 tokens can be drawn" in element.proto.body for element in at.get("html")
    )
