"""The page "Why this token?" through AppTest: what is drawn is `attribution`, and adds up to the logit."""

import json
import re

import numpy as np
import pytest

from gptviz import Edit
from gptviz.analysis import attribution, knock_out, source_tokens
from gptviz.analysis import shares as numbers
from gptviz.analysis.logit_attribution import logit
from gptviz.ui import heads
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.shell import muted
from gptviz.ui.shell.state import DEFAULT_TEXT
from gptviz.ui.views.why.snippet import shares
from tests.pages.test_next_token import given
from tests.specs import charts

TEXT = "The cat sat on the mat. The dog sat on the"
MILL, TOWN = 2958, 1647


def sum_on_screen(at):
    body = next(element.proto.body for element in at.get("html") if "why_sum" in element.proto.body)
    found = dict(re.findall(r'data-(\w+)="([^"]*)"', body))
    return int(found["parts"]), float(found["sum"]), float(found["logit"]), body


def expected(mini, text=TEXT, target=None, against=None, token=-1):
    trace = mini.trace(text)
    if target is None:
        target = int(trace.next_tokens(1, token)["id"][0])
    return trace, target, attribution(trace, mini.model, target, against, token)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"against": 300},
        {"target": 12, "token": 4},
        {"target": 12, "against": 8000, "token": 0, "block": 2, "head": 7},
    ],
)
def test_what_is_drawn_is_attribution(run_page, mini, query):
    at = run_page("why", text=TEXT, **query)
    of_tokens = {name: query[name] for name in ("target", "against", "token") if name in query}
    trace, target, table = expected(mini, **of_tokens)
    position, against = query.get("token", -1) % len(trace), query.get("against")

    parts, total, own, said = sum_on_screen(at)
    assert parts == len(table) and total == pytest.approx(table["contribution"].sum(), abs=1e-9)
    assert own == pytest.approx(logit(trace, target, against, position))
    assert abs(total - own) < 1e-4
    assert said.count(f"{total:.4f}".replace("-", "−")) >= 1

    bars, grid, sources = charts(at)
    steps = numbers.waterfall(table)
    assert np.allclose(bars["data"][0]["x"], [*steps["contribution"], total])
    assert np.allclose(bars["data"][0]["base"], [*steps["start"], 0])
    values, columns = numbers.grid(table, 6, 8)
    assert columns[-2:] == ["attention bias", "feed-forward"]
    assert np.allclose(grid["data"][0]["z"], values, atol=1e-6)

    block, head = query.get("block"), query.get("head")
    if block is None:
        block, head = numbers.strongest_head(table)
    found = source_tokens(trace, mini.model, target, against, position)
    assert np.allclose(sources["data"][0]["z"], found[block, :, : position + 1], atol=1e-6)
    assert np.allclose(sources["data"][1]["y"], found[block, :, : position + 1].sum(0), atol=1e-6)
    chips = given(at, "chips")["shares"]
    assert [chip["share"] for chip in chips[: position + 1]] == pytest.approx(
        found[block, head, : position + 1].tolist()
    )
    assert chips[position + 1 :] == [None] * (len(trace) - position - 1)


def test_the_story_of_mill_against_town_is_said(run_page):
    at = run_page("why", text=DEFAULT_TEXT, against=TOWN)
    parts, total, own, _ = sum_on_screen(at)
    assert (round(total, 4), round(own, 4)) == (8.9311, 8.9311) and parts == 63
    sentence = next(element.value for element in at.markdown if "logit" in element.value)
    assert "**8.93** above that of `·town`" in sentence
    assert "5.17 from the" in sentence and "4.16 of it read from `·mill` (position 7)" in sentence


def test_another_target_and_head_run_no_model(run_page):
    at = run_page("why", text=TEXT)
    passes = []
    handle = models.in_use(Choice()).lm.model.final_norm.register_forward_hook(lambda *_: passes.append(1))
    try:
        at.button(key="target_runner_up").click().run()
        at.number_input(key="head").set_value(2).run()
    finally:
        handle.remove()
    assert not at.exception and not passes
    assert at.query_params["head"] == "2" and "against" in at.query_params


def test_muting_is_knock_out_and_stands_beside_the_direct_share(run_page, mini):
    at = run_page("why", text=TEXT, against=300)
    at.toggle(key="mute").set_value(True).run()
    assert not at.exception and at.query_params["mute"] == "on"
    _, target, table = expected(mini, against=300)
    muted = knock_out(mini, TEXT, (target, 300))
    both = numbers.direct_and_total(table, muted)
    grid, scatter = charts(at)[3:]
    of_heads = both[both["kind"] == "head"]
    assert np.allclose(np.array(grid["data"][0]["z"])[:, :8].ravel(), of_heads["total"], atol=2e-5)
    assert np.allclose(scatter["data"][0]["x"], of_heads["direct"], atol=1e-6)
    assert np.allclose(scatter["data"][0]["y"], of_heads["total"], atol=2e-5)
    assert not [button for button in at.button if button.key == "why_stop"]
    at.session_state["numbers_muting"] = True
    at.run()
    drawn = at.dataframe[0].value
    assert np.allclose(drawn["logit"], muted["logit"], atol=2e-5)
    assert np.allclose(drawn["direct"] - drawn["takes away"], both["direct"] - both["total"], atol=2e-5)


def test_muting_again_comes_from_memory(run_page, monkeypatch):
    run_page("why", text=TEXT, mute="on")
    monkeypatch.setattr(muted, "knock_out", None)
    run_page("why", text=TEXT, mute="on", block=1, head=1)


def test_a_long_texts_attention_is_kept_as_one_row(run_page, mini, monkeypatch):
    text = TEXT + " one two three"  # a text whose attention nobody has kept
    monkeypatch.setattr(heads, "WHOLE_MEGABYTES", 0)
    sources = charts(run_page("why", text=text, block=3, token=8))[2]
    trace = mini.trace(text)
    target = int(trace.next_tokens(1, 8)["id"][0])
    found = source_tokens(trace, mini.model, target, None, 8)[3]
    assert np.allclose(sources["data"][0]["z"], found[:, :9], atol=1e-6)


@pytest.mark.parametrize(
    "text", ["a", "日本語 🦜 é", "<b>**`$x$`**</b>\n\n\t  ", "<|endoftext|>", "word " * 300]
)
def test_any_text_is_explained(run_page, text):
    at = run_page("why", text=text, mute="on" if len(text) < 20 else "off")
    _, total, own, _ = sum_on_screen(at)
    assert abs(total - own) < 1e-4
    assert len(given(at, "chips")["shares"]) == len(given(at, "chips")["tokens"])


def test_block_and_head_that_are_not_there_are_the_last(run_page):
    at = run_page("why", text=TEXT, block=99, head=99, target=10**5, against="x", mute="maybe")
    assert at.number_input(key="block").value == 5 and at.number_input(key="head").value == 7


def test_in_numbers_and_in_code(run_page, mini):
    at = run_page("why", text=TEXT, block=4, head=3)
    for name in ("numbers_why", "numbers_why-block4", "in_code"):
        at.session_state[name] = True
    at.run()
    assert not at.exception
    table, sources = (frame.value for frame in at.dataframe)
    _, target, wanted = expected(mini)
    assert np.allclose(table["contribution"][:-2], wanted["contribution"])
    assert table["part"].tolist()[-2:] == ["sum", "the model's own"]
    assert table["contribution"].iloc[-2] == pytest.approx(table["contribution"].iloc[-1], abs=1e-4)
    of_head = wanted[(wanted["block"] == 4) & (wanted["head"] == 3)]["contribution"].item()
    assert sources["head 3"].iloc[-1] == pytest.approx(of_head, abs=1e-6)
    assert sources["head 3"][:-1].sum() == pytest.approx(of_head, abs=1e-6)
    assert any(f"token={target}" in block.value for block in at.code)


@pytest.mark.parametrize(("against", "position"), [(None, 11), (300, 4)])
def test_the_snippet_gives_what_is_drawn(run_page, mini, capsys, against, position):
    query = {} if against is None else {"against": against}
    at = run_page("why", text=TEXT, target=99, token=position, **query)
    picture = shares(mini, TEXT, position, 99, against, block=5, head=1, muted=True)
    _, total, own, _ = sum_on_screen(at)
    assert picture.sum() == pytest.approx(total, abs=1e-5) and total == pytest.approx(own, abs=1e-4)
    values = np.array(charts(at)[1]["data"][0]["z"])
    assert np.allclose(
        np.sort(picture)[-3:], np.sort([*values.ravel(), *picture[:2], picture[-1]])[-3:], atol=1e-5
    )
    printed = capsys.readouterr().out
    assert f"{own:.4f}" in printed and "probability" in printed


def test_the_same_in_json(run_page):
    """What goes to the browser is plain JSON: no NaN, which no browser reads."""
    at = run_page("why", text="one")
    for chart in at.get("plotly_chart"):
        json.loads(chart.proto.spec, parse_constant=lambda name: pytest.fail(f"{name} in a figure"))


def test_a_changed_logit_stands_beside_the_unchanged_one(run_page, mini):
    edits = "z.5.0+3+4+5+7=zero"
    query = {"text": DEFAULT_TEXT, "target": MILL, "block": 5, "head": 3, "edits": edits}
    at = run_page("why", **query)
    tables = []
    for trace in (mini.trace(DEFAULT_TEXT, edits=[Edit.parse(edits)]), mini.trace(DEFAULT_TEXT)):
        tables.append(attribution(trace, mini.model, MILL))
    _, total, own, said = sum_on_screen(at)
    assert total == pytest.approx(tables[0]["contribution"].sum()) and abs(total - own) < 1e-4
    assert "The changed model's logit" in said
    bars, grid, sources = charts(at)
    steps = numbers.waterfall(tables[0])
    assert np.allclose(bars["data"][0]["x"], [*steps["contribution"], total])
    ghosts, own_before = bars["data"][1], logit(mini.trace(DEFAULT_TEXT), MILL)
    assert ghosts["x"][-1] == pytest.approx(own_before, abs=1e-4)
    assert np.allclose(ghosts["x"][:-1], numbers.beside(steps, tables[1]))
    new, old = (numbers.grid(table, 6, 8)[0] for table in tables)
    assert np.allclose(grid["data"][0]["z"], new - old, atol=1e-5)
    before = source_tokens(mini.trace(DEFAULT_TEXT), mini.model, MILL)[5, 3]
    assert np.allclose(sources["data"][0]["z"][3], -before, atol=1e-5)  # off: nothing is left
    assert any(
        f"the mean over the vocabulary is {own_before:.3g}; **changed,**" in element.value
        for element in at.markdown
    )
    at.session_state["numbers_why"] = True
    at.run()
    frame = at.dataframe[0].value
    assert np.allclose(frame["unchanged contribution"][:-2], tables[1]["contribution"], atol=1e-5)
    assert np.allclose(frame["contribution"][:-2], tables[0]["contribution"], atol=1e-5)


def test_what_the_unchanged_model_says_first_can_be_explained(run_page):
    at = run_page("why", text=DEFAULT_TEXT, edits="z.5.0+3+4+5+7=zero")
    at.button(key="target_unchanged").click().run()
    assert not at.exception and at.query_params["target"] == str(MILL)
    assert "target_unchanged" not in [button.key for button in at.button]


@pytest.mark.parametrize(
    "edits", ["z.4.3=mean", "resid_pre.2@5=zero,final=mean", "tok_emb=shuffle3,attn.1=uniform"]
)
def test_any_change_is_explained(run_page, edits):
    at = run_page("why", text=TEXT, edits=edits, block=4, head=3)
    _, total, own, _ = sum_on_screen(at)
    assert abs(total - own) < 1e-4


def test_a_change_of_later_tokens_cannot_matter(run_page):
    at = run_page("why", text=TEXT, token=3, edits="z.4.3@5=zero")
    assert any("cannot matter for the logit of" in element.value for element in at.markdown)


@pytest.mark.parametrize(
    ("part", "edit"),
    [("head", "z.4.3=zero"), ("feed-forward", "mlp_out.4=zero"), ("attention", "attn_out.4=zero")],
)
def test_a_clicked_part_is_switched_off_for_the_whole_app(run_page, part, edit):
    at = run_page("why", text=TEXT, block=4, head=3, why_part=part)
    at.button(key="change_why_quick").click().run()
    assert not at.exception and at.query_params["edits"] == edit
