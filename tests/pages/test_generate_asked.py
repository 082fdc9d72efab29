"""What is asked of a written text on the page /generate: what is drawn against the numbers themselves."""

from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import torch

from gptviz.analysis.decoding_cost import steps
from gptviz.analysis.head_roles import roles
from gptviz.analysis.repetition import share_along
from gptviz.analysis.surgery import Operation, surgery
from gptviz.digits import fixed
from gptviz.engine import beams, generate
from gptviz.engine.beams import beam_search
from gptviz.engine.sampling import Sampling
from gptviz.figures.next_token import probability_text
from gptviz.ui.parts.generate import saves, written
from tests.pages.conftest import run_page
from tests.pages.test_generate import INDUCTION, STORY, by_hand
from tests.specs import charts, given, opened, paragraph, prose, put, table, words

ALL = ("looked", "cache", "surgery", "loops", "beams")


def asking(name, **query):
    return run_page("generate", **({"temperature": 0.0, "text": STORY, "ask": name} | query))


def wrote(lm, count):
    ids = lm.encode(STORY)
    return ids, [step.id for step in lm.generate(ids, count, temperature=0)]


def column(trace, key):
    """What every head gives to a token from the last one, block by block."""
    return torch.cat([trace["attn", block][:, -1, key] for block in range(6)])


def test_unasked_nothing_is_drawn_and_an_address_asks(run_page):
    assert charts(run_page("generate", text=STORY, written=3)) == []
    assert run_page("generate", text=STORY, ask="nonsense").session_state["ask"] is None


@pytest.mark.parametrize("name", ALL)
def test_little_is_written(name):
    asking(name, text="A", written=0)


@pytest.mark.parametrize("name", ["looked", "cache", "surgery"])
def test_the_context_is_full(name):
    at = asking(name, text="once upon a time there was " * 60, written=2)
    assert "The context is full" in words(at) + at.info[0].value and len(charts(at)) == 1


# ---- what it looked at ----


def test_the_row_and_the_map_are_the_steps_own_attention(mini):
    at = asking("looked", written=12, block=5, head=0)
    prompt, new = wrote(mini, 12)
    ids = prompt + new[:11]
    row = mini.trace(ids)["attn", 5][0, -1]
    shown = given(at, "generate_looked")
    assert np.allclose(shown["weights"], row, atol=1e-5)
    key = int(row[:-1].argmax())
    assert shown["highlight"] == {str(key): "key", str(len(ids) - 1): "query"}
    drawn = np.array(charts(at)[0]["data"][0]["z"])
    had = [i for i in range(12) if len(prompt) + i - 1 >= key]
    assert drawn.shape == (48, len(had))
    for place in (0, len(had) - 1):  # each step as the model made it, with nothing after it
        by_hand = column(mini.trace(prompt + new[: had[place]]), key)
        assert np.allclose(drawn[:, place], by_hand, atol=1e-5)


def test_with_a_full_context_the_two_ways_to_count_are_said():
    """The box counts from the text's beginning, 4 tokens before what the model reads."""
    at = asking("looked", text="the" + " the" * 255, written=5)
    box = at.number_input(key="looked")
    assert (box.min, box.max) == (4, 259) and any(", 4 more" in part.value for part in at.caption)
    assert not any("more." in part.value for part in asking("looked", written=5).caption)


def test_where_an_edit_depends_on_the_whole_text_each_step_is_its_own_pass(mini):
    edit = "mlp_out.3=mean"
    at = asking("looked", written=3, edits=edit, looked=2)
    lm = mini.edited(edit)
    prompt, new = wrote(lm, 3)
    for step in range(3):
        by_hand = column(lm.trace(prompt + new[:step], keep=["attn"]), 2)
        assert np.allclose(np.array(charts(at)[0]["data"][0]["z"])[:, step], by_hand, atol=1e-5)
    (link,) = at.get("link_button")
    assert parse_qs(urlsplit(link.proto.url).query)["edits"] == [edit]


# ---- what the cache saves ----


def test_the_work_is_that_of_the_config_and_the_tokens_come_again(mini):
    at = asking("cache", written=12)
    table = steps(mini.config, len(mini.encode(STORY)), 12)
    quick, slow = charts(at)[0]["data"]
    assert np.allclose(slow["y"], table["without_cache"] / 1e6)
    assert np.allclose(quick["y"], table["with_cache"] / 1e6)
    at.button(key="generate_time_again").click().run()
    assert "Every token came out the same again" in words(at)
    both = charts(at)[1]["data"]
    assert [len(one["y"]) for one in both] == [12, 12] and all(min(one["y"]) > 0 for one in both)


def test_a_token_like_a_tag_stands_under_the_curve_as_it_is(monkeypatch):
    monkeypatch.setattr(saves, "show_id", lambda *_: "<b>")
    assert charts(asking("cache", written=2))[0]["layout"]["xaxis"]["ticktext"] == ["&lt;b&gt;"] * 2


def test_without_a_cache_every_pass_reads_all(mini):
    edit = "mlp_out.3=mean"
    at = asking("cache", written=4, edits=edit)
    lm = mini.edited(edit)
    prompt = mini.encode(STORY)
    (work,) = (chart["data"] for chart in charts(at))
    assert len(work) == 1
    assert np.allclose(work[0]["y"], steps(mini.config, len(prompt), 4)["without_cache"] / 1e6)
    said = words(at)
    read = []
    assert "no cache is used" in said and f"all {len(prompt) + 3} tokens" in said
    assert "price is memory" not in said
    handle = mini.model.tok_emb.register_forward_hook(lambda _m, _i, out: read.append(out.shape[1]))
    try:
        assert len(list(lm.generate(prompt, 4, temperature=0))) == 4
    finally:
        handle.remove()
    assert f"for {sum(read)} tokens through the blocks" in said
    at.button(key="generate_time_again").click().run()
    assert "Every token came out the same again" in words(at)
    assert "with the cache" not in words(at)


def test_what_was_measured_belongs_to_the_changes_and_the_draws():
    at = asking("cache", written=3, edits="z.4.3=zero", temperature=0.7)
    at.button(key="generate_time_again").click().run()
    assert len(charts(at)) == 2
    held, _ = at.session_state["generate_measured"]
    assert [str(edit) for edit in held.base.edits] == [
        "z.4.3=zero"
    ] and held.sampling.temperature == 0.7
    assert len(charts(put(at, edits=""))) == 1


# ---- surgery ----


@pytest.mark.parametrize(
    ("query", "operation"),
    [
        ({}, None),
        (
            {"surgery": "Swap values", "surgery_at": 10, "surgery_other": 3},
            Operation("swap values", 10, 3),
        ),
        ({"surgery": "Freeze", "surgery_at": 10, "surgery_other": 9}, None),
    ],
    ids=["delete", "swap values", "freeze"],
)
def test_what_comes_after_an_operation(mini, query, operation):
    at = asking("surgery", written=1, **query)
    ids = mini.encode(STORY)
    trace = mini.trace(ids)
    received = torch.stack([trace["attn", b][:, -1] for b in range(6)]).mean(dim=(0, 1))
    if not query:
        operation = Operation("delete", int(received[:-1].argmax()))
    elif operation is None:
        chosen = next(i for i in trace.next_tokens(12, position=8)["id"] if i != ids[9])
        operation = Operation("freeze", 10, 9, int(chosen))
    found = surgery(mini, ids, operation)
    now, before = charts(at)[0]["data"]
    for bars, logits in ((before, found.cached), (now, found.after)):
        assert np.isclose(max(bars["x"]), logits.softmax(0).max(), atol=1e-4)
    assert "Check." in words(at)


@pytest.mark.parametrize("kind", ["Swap values", "Swap whole"])
def test_the_only_token_in_the_cache_can_be_swapped_with_itself_alone(kind):
    at = asking("surgery", text="The cat", surgery=kind)
    assert words(at).count("(position 0)") == 1
    now, before = charts(at)[0]["data"]
    assert np.allclose(now["x"], before["x"], atol=1e-6)


def test_of_a_changed_model_both_are_said(mini):
    edit = "z.4.3=zero"
    operation = Operation("delete", 0)
    ids = mini.encode(STORY)
    at = asking("surgery", written=1, edits=edit, surgery_at=0)
    changed, plain = (surgery(lm, ids, operation) for lm in (mini.edited(edit), mini))
    for bars, logits in zip(charts(at)[0]["data"], (changed.after, changed.cached), strict=True):
        assert np.isclose(max(bars["x"]), logits.softmax(0).max(), atol=1e-4)
    token = int(changed.cached.argmax())
    for logits in (plain.cached, plain.after):
        assert f"(unchanged {probability_text(float(logits.softmax(0)[token]))})" in words(at)
    refused = asking("surgery", written=1, edits="z.4.3=mean", surgery_at=0)
    assert not charts(refused) and any("give lm.plain" in box.value for box in refused.info)


def test_what_is_frozen_can_matter_and_what_stands_before_the_replaced_token_remembers_nothing():
    at = asking("surgery", written=1, surgery="Freeze")
    shown = given(at, "generate_cached")
    assert shown["highlight"] == {str(shown["selected"]): "key"}
    assert "old one were still" in words(at)
    now, before = charts(at)[0]["data"]
    assert np.abs(np.array(before["x"]) - now["x"]).max() > 1e-3
    for position in (0, 4):
        at = asking("surgery", written=1, surgery="Freeze", surgery_at=position, surgery_other=9)
        said = paragraph(at, "**Frozen")
        assert (
            "to no effect" in said
            and "remembers" not in said
            and ("itself" in said) == (position == 0)
        )


# ---- loops ----


def test_greedy_text_repeats_and_the_head_that_looks_is_named(mini):
    at = asking("loops")
    ids, new = wrote(mini, 60)
    greedy, _ = charts(at)[0]["data"]
    assert np.allclose(greedy["y"], share_along(ids + new, len(ids), 3))
    # from where each token was written, to what had followed before
    looks = charts(at)[1]["data"][0]["y"]
    read = ids + new[:-1]
    rows = mini.trace(ids + new, keep=[("attn", 5)])["attn", 5][0]
    for place in range(len(ids) - 1, len(read)):
        keys = [key + 1 for key in range(place) if read[key] == read[place]]
        given = float(rows[place, keys].sum()) if keys else np.nan
        assert looks[place - len(ids) + 1] == pytest.approx(given, abs=1e-5, nan_ok=True)
    said = words(at)
    assert "repeats itself, always" in said and "induction head" in said
    link = at.get("link_button")[0].proto
    assert link.label == "Block 5, head 0 on the Attention page" and "block=5&head=0" in link.url
    other = words(asking("loops", text="The cat sat on the mat.", loop_tokens=30))
    assert "does not end in a loop" in other


def test_what_is_drawn_through_filters_is_called_by_them():
    greedy, drawn = charts(asking("loops", top_k="1", top_p="0.5", loop_tokens=30))[0]["data"]
    assert (
        greedy["name"] == "temperature 0" and drawn["name"] == "temperature 1, top-k 1, top-p 0.5"
    )
    assert np.array_equal(greedy["y"], drawn["y"])  # of one token the most probable is drawn


def given_to(lm, ids, count):
    """The mean probability of the last so many tokens, from a pass that is written out."""
    logits = torch.stack([lm.trace(ids, keep=["final"]).logits(i) for i in range(len(ids) - 1)])
    p = logits.double().softmax(-1)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]
    return float(p[-count:].mean())


def test_loops_of_a_changed_model_are_its_own_beside_the_unchanged_ones(mini):
    at = asking("loops", edits=INDUCTION)
    changed = mini.edited(INDUCTION)
    ids, new = wrote(changed, 60)
    _, plain = wrote(mini, 60)
    assert new != plain
    drawn = charts(at)[0]["data"]
    named = {}
    for line in drawn:
        named.setdefault(line["name"], line["y"])
    assert np.allclose(named["temperature 0"], share_along(ids + new, len(ids), 3))
    assert np.allclose(named["unchanged"], share_along(ids + plain, len(ids), 3))
    now, was = (fixed(given_to(lm, ids + new, 60), 2) for lm in (changed, mini))
    assert f"instead of {was} → {now}" in words(at)
    silent = {(5, h) for h in (0, 3, 4, 5, 7)}
    heard = [role for row in roles(changed.trace(ids + new, keep=["attn"])) for role in row]
    heard = [role for role in heard if (role.block, role.head) not in silent]
    best = max(heard, key=lambda role: role.shares["induction"])
    link = at.get("link_button")[0].proto
    assert f"block={best.block}&head={best.head}" in link.url
    assert parse_qs(urlsplit(link.url).query)["edits"] == [INDUCTION]


# ---- beams ----


def every_beam(at):
    tables = opened(at, "numbers_generate_beams").dataframe
    return next(table.value for table in tables if "from beam" in table.value)


def test_beams_beside_greedy_and_sampling(mini):
    at = asking("beams", text="The cat sat on the", beams=4, beam_tokens=5, seed=2, temperature=1.0)
    rounds = beam_search(mini, mini.encode("The cat sat on the"), 4, 5)
    shown = every_beam(at)
    every = [beam for found in rounds for beam in (*found.kept, *found.dropped)]
    assert np.allclose(shown["ln p"], [beam.log_probability for beam in every], atol=1e-3)
    assert shown["text"].tolist() == [
        mini.tokenizer.decode(beam.ids, errors="ignore") for beam in every
    ]
    for settings in ({"temperature": 0}, {"seed": 2}):
        ln = sum(
            np.log(s.model_probability) for s in mini.generate("The cat sat on the", 5, **settings)
        )
        assert fixed(ln, 2) in prose(at)
    assert "seed draws" not in prose(asking("beams"))


def test_texts_that_end_early_are_counted_as_long_as_they_are(mini, monkeypatch):
    """The model as if the second token that it writes were its own end of text."""
    text = "Whoever ends early says so: the cat sat on the"
    end = [step.id for step in mini.generate(text, 2, temperature=0)][1]
    for part in (beams, generate, written):
        monkeypatch.setattr(part, "end_of_text", lambda lm: end)
    at = asking("beams", text=text, beams=2, beam_tokens=5, seed=2, temperature=1.0)
    ids = [step.id for step in mini.generate(text, 5, seed=2)]
    drawn = ids.index(end) + 1 if end in ids else len(ids)
    said = words(at)
    assert "(2 tokens), the text drawn with the seed" in said
    assert f"({drawn} tokens). ln p sums over tokens" in said
    assert " of 2 tokens complete a piece" in words(asking("loops", text=text))


def test_beams_of_a_changed_model_are_its_own(mini):
    """One beam is greedy search."""
    at = asking("beams", beams=1, beam_tokens=3, edits=INDUCTION)
    ids = mini.encode(STORY)
    new, _ = by_hand(mini, ids, 3, Sampling(0.0), [INDUCTION])
    plain, _ = by_hand(mini, ids, 3, Sampling(0.0))
    frame = every_beam(at)
    frame = frame[frame["kept"] == "kept"]
    ends = [note["text"] for note in charts(at)[0]["layout"]["annotations"] if "→" in note["text"]]
    for name, edits in (("unchanged ln p", []), ("ln p", [INDUCTION])):
        after = [mini.trace(ids + new[:i], keep=[], edits=edits).logits(-1) for i in range(3)]
        sums = np.cumsum(
            [float(row.double().log_softmax(0)[i]) for row, i in zip(after, new, strict=True)]
        )
        assert np.allclose(frame[name], sums, atol=1e-3)
        assert fixed(sums[-1], 2) in ends[0]
    said = {how: text for how, text, *_ in table(at, "beams")}
    for how, ids in (("1 beam", new), ("greedy", new), ("1 beam, unchanged", plain)):
        assert said[how] == mini.decode(ids)
