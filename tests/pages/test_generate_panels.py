"""The panels of the page /generate through AppTest: what is drawn against the numbers themselves."""

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import torch

from gptviz.analysis.decoding_cost import steps
from gptviz.analysis.head_roles import roles
from gptviz.analysis.repetition import share_along
from gptviz.analysis.surgery import Operation, surgery
from gptviz.digits import fixed
from gptviz.figures.next_token import probability_text
from gptviz.ui.shell.details import program
from gptviz.ui.views.generate.panels.looked_snippet import last_row
from gptviz.ui.views.generate.panels.loops_snippet import shares
from gptviz.ui.views.generate.panels.saves_snippet import both_ways
from gptviz.ui.views.generate.panels.surgery_snippet import after
from tests.pages.conftest import AppTest, page_file
from tests.pages.test_next_token import given
from tests.pages.test_snapshots import run_program
from tests.specs import charts

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"
ALL = ("looked", "saves", "surgery", "loops")


def open_panels(*names, **query):
    """The page with these panels open."""
    at = AppTest.from_file(str(page_file("generate")), default_timeout=240)
    for key, value in ({"temperature": 0.0, "text": TEXT} | query).items():
        at.query_params[key] = str(value)
    for name in names:
        at.session_state[f"generate_{name}_box"] = True
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    return at


def words_on(at):
    return " ".join(block.value for block in [*at.markdown, *at.caption])


def begins(at, start):
    """The block of words that begins so."""
    return next(block.value for block in at.markdown if block.value.startswith(start))


def written(lm, count, **options):
    ids = lm.encode(TEXT)
    return ids, [step.id for step in lm.generate(ids, count, temperature=0, **options)]


def test_closed_they_draw_nothing():
    assert charts(open_panels(written=3)) == []


def test_the_row_and_the_map_are_the_steps_own_attention(mini):
    at = open_panels("looked", written=12, block=5, head=0)
    prompt, new = written(mini, 12)
    ids = prompt + new[:11]
    row = mini.trace(ids)["attn", 5][0, -1]
    shown = given(at, "generate_looked")
    assert np.allclose(shown["weights"], row, atol=1e-5)
    key = int(row[:-1].argmax())
    assert shown["highlight"] == {str(key): "key", str(len(ids) - 1): "query"}
    drawn = charts(at)[0]["data"][0]["z"]
    had = [i for i in range(12) if len(prompt) + i - 1 >= key]
    assert drawn.shape == (48, len(had))
    for column in (0, len(had) - 1):  # each step as the model made it, with nothing after it
        attn = mini.trace(prompt + new[: had[column]])
        by_hand = torch.cat([attn["attn", b][:, -1, key] for b in range(6)])
        assert np.allclose(drawn[:, column], by_hand, atol=1e-5)


def test_the_work_is_that_of_the_config_and_the_tokens_come_again(mini):
    at = open_panels("saves", written=12)
    table = steps(mini.config, len(mini.encode(TEXT)), 12)
    slow, quick = charts(at)[0]["data"]
    assert np.allclose(slow["y"], table["without_cache"] / 1e6)
    assert np.allclose(quick["y"], table["with_cache"] / 1e6)
    at.button(key="generate_time_again").click().run()
    at.segmented_control(key="generate_way").set_value("Without the cache").run()
    at.button(key="generate_time_again").click().run()
    assert not at.exception
    both = charts(at)[1]["data"]
    assert [len(bars["y"]) for bars in both] == [12, 12] and all((bars["y"] > 0).all() for bars in both)
    assert "Every token came out the same again" in words_on(at)


@pytest.mark.parametrize(
    ("query", "operation"),
    [
        ({}, None),
        ({"surgery": "Swap values", "surgery_at": 10, "surgery_other": 3}, Operation("swap values", 10, 3)),
        ({"surgery": "Freeze", "surgery_at": 10, "surgery_other": 9}, None),
    ],
    ids=["delete", "swap values", "freeze"],
)
def test_what_comes_after_an_operation(mini, query, operation):
    at = open_panels("surgery", written=1, **query)
    ids = mini.encode(TEXT)
    trace = mini.trace(ids)
    received = torch.stack([trace["attn", b][:, -1] for b in range(6)]).mean(dim=(0, 1))
    if not query:
        operation = Operation("delete", int(received[:-1].argmax()))
    elif operation is None:
        names = {mini.tokens([i])[0].text: i for i in mini.trace(ids).next_tokens(12, position=8)["id"]}
        chosen = next(i for i in names.values() if i != ids[9])
        operation = Operation("freeze", 10, 9, int(chosen))
    found = surgery(mini, ids, operation)
    before, now = charts(at)[0]["data"]
    for bars, logits in ((before, found.cached), (now, found.after)):
        assert np.isclose(max(bars["x"]), logits.softmax(0).max(), atol=1e-4)
    assert "Check." in words_on(at)


def test_of_a_changed_model_both_are_said(mini):
    edit, operation = "z.4.3=zero", Operation("delete", 0)
    at = open_panels("surgery", written=1, edits=edit, surgery_at=0)
    ids = mini.encode(TEXT)
    changed, plain = surgery(mini.edited(edit), ids, operation), surgery(mini, ids, operation)
    before, now = charts(at)[0]["data"]
    assert np.isclose(max(before["x"]), changed.cached.softmax(0).max(), atol=1e-4)
    assert np.isclose(max(now["x"]), changed.after.softmax(0).max(), atol=1e-4)
    token = int(changed.cached.argmax())
    unchanged = next(m.value for m in at.markdown if m.value.startswith("**Unchanged**, the model gives"))
    for logits in (plain.cached, plain.after):
        assert probability_text(float(logits.softmax(0)[token])) in unchanged
    refused = open_panels("surgery", written=1, edits="z.4.3=mean", surgery_at=0)
    assert not charts(refused) and any("give lm.plain" in box.value for box in refused.info)


def test_greedy_text_repeats_and_the_head_that_looks_is_named(mini):
    at = open_panels("loops", written=0)
    ids, new = written(mini, 60)
    greedy = charts(at)[0]["data"][0]["y"]
    assert np.allclose(greedy, 100 * share_along(ids + new, len(ids), 3))
    said = words_on(at)
    assert "goes round and round" in said and "induction head" in said
    link = at.get("link_button")[0].proto
    assert link.label == "Block 5, head 0 on the Attention page" and "block=5&head=0" in link.url


INDUCTION = "z.5.0+3+4+5+7=zero"


def given_to(lm, ids, count):
    """The mean probability of the last so many tokens, from a pass that is written out."""
    logits = torch.stack([lm.trace(ids, keep=["final"]).logits(i) for i in range(len(ids) - 1)])
    p = logits.double().softmax(-1)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]
    return float(p[-count:].mean())


def test_loops_of_a_changed_model_are_its_own_beside_the_unchanged_ones(mini):
    at = open_panels("loops", written=0, edits=INDUCTION)
    changed = mini.edited(INDUCTION)
    ids, new = written(changed, 60)
    _, plain = written(mini, 60)
    assert new != plain
    drawn = charts(at)[0]["data"]
    assert np.allclose(drawn[0]["y"], 100 * share_along(ids + new, len(ids), 3))
    ghost = next(line for line in drawn if line["name"] == "unchanged, temperature 0")
    assert np.allclose(ghost["y"], 100 * share_along(ids + plain, len(ids), 3))
    said = words_on(at)
    assert fixed(given_to(changed, ids + new, 60), 2) in said.split("instead of")[1][:6]
    assert f"model gives them {fixed(given_to(mini, ids + new, 60), 2)}" in said
    induction = roles(mini.edited(INDUCTION).trace(ids + new, keep=["attn"]))
    heard = [
        r for row in induction for r in row if (r.block, r.head) not in {(5, h) for h in (0, 3, 4, 5, 7)}
    ]
    best = max(heard, key=lambda role: role.shares["induction"])
    link = at.get("link_button")[0].proto
    assert f"block={best.block}&head={best.head}" in link.url
    assert parse_qs(urlsplit(link.url).query)["edits"] == [INDUCTION]


@pytest.mark.parametrize(
    ("query", "loop"), [({"text": "The cat sat on the mat.", "loop_tokens": 30}, False), ({}, True)]
)
def test_who_makes_it_go_round_is_said_of_a_loop_only(mini, query, loop):
    said = words_on(open_panels("loops", written=0, **query))
    assert ("Who makes it go round" in said) == ("goes round and round" in said) == loop
    assert ("does not end in a loop" in said) == (not loop)


@pytest.mark.parametrize("query", [{"text": "A", "written": 0}, {"text": "A", "written": 1}, {"written": 1}])
def test_little_is_written(query):
    open_panels(*ALL, **query)


@pytest.mark.parametrize("query", [{}, {"surgery_at": 0}], ids=["unasked", "the sink"])
def test_what_is_frozen_by_itself_can_matter(query):
    at = open_panels("surgery", written=1, surgery="Freeze", **query)
    shown = given(at, "generate_cached")
    assert shown["highlight"] == {str(shown["selected"]): "key"}
    assert "old one still stood" in begins(at, "**Frozen:**")
    before, now = charts(at)[0]["data"]
    assert np.abs(np.array(before["x"]) - now["x"]).max() > 1e-3


@pytest.mark.parametrize("position", [0, 4])
def test_what_stands_before_the_replaced_token_remembers_nothing(position):
    at = open_panels("surgery", written=1, surgery="Freeze", surgery_at=position, surgery_other=9)
    said = begins(at, "**Frozen")
    assert "to no effect" in said and "remembers" not in said and ("itself" in said) == (position == 0)


def test_where_an_edit_depends_on_the_whole_text_there_is_no_cache(mini):
    edit = "mlp_out.3=mean"
    at, lm = open_panels("looked", "saves", written=4, edits=edit, looked=2), mini.edited(edit)
    prompt, new = written(lm, 4)
    heat, work = (chart["data"] for chart in charts(at))
    for step in range(4):  # each from its own pass, and so from other numbers
        attn = lm.trace(prompt + new[:step], keep=["attn"])
        by_hand = torch.cat([attn["attn", b][:, -1, 2] for b in range(6)])
        assert np.allclose(heat[0]["z"][:, step], by_hand, atol=1e-5)
    (link,) = at.get("link_button")
    assert parse_qs(urlsplit(link.proto.url).query)["edits"] == [edit]
    passes = steps(mini.config, len(prompt), 4)["without_cache"] / 1e6
    assert len(work) == 1 and np.allclose(work[0]["y"], passes)
    said, read = re.sub("<[^>]+>", "", words_on(at)), []
    assert "no cache is used" in said and f"all {len(prompt) + 3} tokens" in said
    assert "price is memory" not in said
    handle = mini.model.tok_emb.register_forward_hook(lambda _m, _i, out: read.append(out.shape[1]))
    try:
        assert len(list(lm.generate(prompt, 4, temperature=0))) == 4
    finally:
        handle.remove()
    assert f"{sum(read)} tokens went through" in said
    at.button(key="generate_time_again").click().run()
    assert not at.exception and "Every token came out the same again" in words_on(at)
    assert "with the cache" not in words_on(at)


def test_what_was_measured_belongs_to_the_changes_and_the_draws():
    at = open_panels("saves", written=3, edits="z.4.3=zero", temperature=0.7)
    at.button(key="generate_time_again").click().run()
    assert len(charts(at)) == 2
    held = at.session_state["generate_measured"].about
    assert [str(edit) for edit in held.edits] == ["z.4.3=zero"] and held.sampling.temperature == 0.7
    at.session_state["edits"] = ""
    at.run()
    assert not at.exception and len(charts(at)) == 1


def test_the_context_is_full():
    at = open_panels("looked", "saves", "surgery", text="once upon a time there was " * 60, written=2)
    assert "The context is full" in words_on(at)
    assert charts(at)[0]["data"][0]["z"].shape[0] == 48


def test_in_code_is_the_same_picture(mini, capsys):
    prompt, new = written(mini, 4)
    position = len(prompt) - 1
    row = last_row(mini, TEXT, position, 5, 0, 3, new[:3])
    assert torch.equal(row, mini.trace(prompt + new[:3])["attn", 5][0, -1])
    table = both_ways(mini, TEXT, position, new)
    assert table.equals(steps(mini.config, len(prompt), 4))
    found = after(mini, TEXT, position, "swap values", 1, 5, new=new)
    wanted = surgery(mini, prompt + new, Operation("swap values", 1, 5)).after
    assert torch.allclose(found.float(), wanted.softmax(0), atol=1e-5)
    got = shares(
        mini, TEXT, position, 20, 3, 1.0, seed=1, block=5, head=0, muted=((5, 0),), others=(((1, 1),),)
    )
    assert np.array_equal(got, share_along(prompt + written(mini, 20)[1], len(prompt), 3))
    assert "induction" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "code",
    [
        program(
            last_row,
            "gptviz.load('mini', dtype='bfloat16')",
            text=TEXT,
            position=5,
            block=1,
            head=2,
            new=(7, 8),
        ),
        program(both_ways, "gptviz.load('mini', dtype='bfloat16')", text=TEXT, position=5, new=(7, 8, 9)),
        program(after, "gptviz.load('mini', dtype='bfloat16')", text=TEXT, position=5, kind="delete", at=2),
        program(
            shares,
            "gptviz.load('mini', dtype='bfloat16')",
            text=TEXT,
            position=5,
            count=8,
            n=2,
            temperature=1.0,
        ),
    ],
    ids=ALL,
)
def test_it_runs_as_a_file_in_bfloat16(code, tmp_path, capsys):
    assert len(run_program(code, tmp_path)["picture"])
