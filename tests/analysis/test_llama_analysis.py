"""The analyses of a LlamaModel: identities, and passes that are written out."""

import copy
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz import analysis
from gptviz.analysis import (
    attention,
    copying,
    feed_forward,
    flow,
    machine,
    norms,
    patches,
    stream,
    turning,
)
from gptviz.analysis.activation_patching import patching
from gptviz.analysis.decoding_cost import work
from gptviz.analysis.lens import row_keys, row_names
from gptviz.analysis.logit_attribution import direct_effects, heads_read, logit
from gptviz.analysis.overview import token_table
from gptviz.analysis.patched_paths import path_patching
from gptviz.analysis.reach import unseen
from gptviz.analysis.readings import head_slope, parts, read_by, word_reading
from gptviz.analysis.surgery import Operation, surgery
from gptviz.engine.edits import Edit
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.llama_config import LlamaConfig
from gptviz.engine.sites import sites_of
from gptviz.teach import handout
from gptviz.tokenizer import get_encoding
from tests import asked, llamas
from tests.conftest import random_lm
from tests.llamas import IDS
from tests.test_llama import frequency, written_out

CLOSE = {"atol": 1e-4, "rtol": 1e-4}
FAMILIES = {
    "llama": ("llama", {"num_attention_heads": 6, "num_key_value_heads": 2}),
    "qwen2": ("qwen2", {"num_attention_heads": 4, "num_key_value_heads": 2}),
    "qwen3": ("qwen3", {"num_attention_heads": 4, "num_key_value_heads": 1}),
}
OTHER = [*IDS[:5], 60, *IDS[6:]]


@cache
def lm_of(family) -> LanguageModel:
    name, shape = FAMILIES[family]
    theirs = llamas.random_model(name, 2, num_hidden_layers=2, **shape)
    ours = llamas.ours_of(theirs)
    if name == "qwen2":
        draw = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for block in ours.trf_blocks:
                for layer in (block.att.W_query, block.att.W_key, block.att.W_value):
                    layer.bias.normal_(0, 0.5, generator=draw)
    config = LlamaConfig.from_dict(llamas.book_config(theirs))
    return LanguageModel(ours, get_encoding("mini"), config, family)


@pytest.fixture(params=FAMILIES)
def llama(request) -> LanguageModel:
    return lm_of(request.param)


def by_hand(lm, ids=IDS, change=lambda key, value: value):
    weights = {name: value.double() for name, value in lm.model.state_dict().items()}
    return written_out(weights, lm.config, ids, change)


# ---- attention ----


def test_rows_from_queries_and_keys_are_the_models_weights(llama):
    t = llama.trace(IDS)
    lean = llama.trace(IDS, keep=[*sites_of(llama.config)][4:7])
    positions = torch.tensor([3, 9])
    for block in range(2):
        rows = attention.rows_of_attention(lean, block, positions)
        torch.testing.assert_close(rows, t["attn", block][:, positions, :10], **CLOSE)
        for head in range(llama.config.n_heads):
            steps = attention.steps(llama, t, block, head)
            torch.testing.assert_close(steps.masked.softmax(-1), steps.weights, **CLOSE)
            torch.testing.assert_close(steps.weights @ steps.v, steps.z, **CLOSE)
    cell = attention.cell(llama, t, 1, 3, 9, 4)
    assert cell.weight == pytest.approx(t["attn", 1][3, 9, 4].item(), abs=1e-5)
    assert cell.divisor == llama.config.head_dim**0.5


def test_the_dials_of_a_score_are_its_pairs(llama):
    t = llama.trace(IDS)
    d = llama.config.head_dim
    group = 2 * llama.config.n_kv_groups // llama.config.n_heads
    found = turning.dials(llama, t, 1, 2, 9, 4)
    score = attention.cell(llama, t, 1, 2, 9, 4).score
    assert found["turned"].sum() == pytest.approx(score, abs=1e-4)
    q = t["q", 1][2, 9].double()
    k = t["k", 1][group, 4].double()
    att = llama.model.trf_blocks[1].att
    if att.q_norm is not None:
        with torch.no_grad():
            q, k = (norm(row) for norm, row in ((att.q_norm, q), (att.k_norm, k)))
    assert found["unturned"].sum() == pytest.approx(float(q.double() @ k.double()), abs=1e-4)
    # two real turns of a plane, written out
    f = 10_000.0 ** (-2 * np.arange(d // 2) / d)
    assert found["frequency"].to_numpy() == pytest.approx(f)
    between = np.arctan2(q[d // 2 :], q[: d // 2]) - np.arctan2(k[d // 2 :], k[: d // 2])
    lengths = found["query_length"] * found["key_length"]
    assert found["turned"].to_numpy() == pytest.approx(
        (lengths * np.cos(between.numpy() + 5 * f)).to_numpy(), abs=1e-4
    )
    scores = turning.by_distance(llama, t, 1, 2, 9, 4, 12)
    assert len(scores) == 13 and scores[5] == pytest.approx(score / d**0.5, abs=1e-4)
    assert scores[0] == pytest.approx(found["unturned"].sum() / d**0.5, abs=1e-4)


@pytest.mark.parametrize("n_heads", [4, 32])
def test_where_nothing_is_turned_the_score_is_that_at_every_distance(n_heads):
    lm = random_lm(n_heads=n_heads, emb_dim=96)
    t = lm.trace([5, 6, 7, 5, 1])
    score = attention.cell(lm, t, 1, 2, 4, 1).scaled
    assert turning.by_distance(lm, t, 1, 2, 4, 1, 9) == pytest.approx(score)
    found = turning.dials(lm, t, 1, 2, 4, 1)
    assert (found["turned"] == found["unturned"]).all() and (found["turn"] == np.inf).all()


def test_frequencies_are_those_of_llama_3s_scaling():
    theirs = llamas.random_model("llama", rope_parameters=llamas.LLAMA3)
    config = LlamaConfig.from_dict(llamas.book_config(theirs))
    lm = LanguageModel(llamas.ours_of(theirs), get_encoding("mini"), config, "scaled")
    expected = [frequency(pair, 8, llamas.book_config(theirs)) for pair in range(4)]
    assert turning.frequencies(lm) == pytest.approx(expected)


# ---- the sum behind a logit ----


@pytest.mark.parametrize("edits", [(), ("z.0.1=zero", "v.1.0=x2"), ("resid_mid.0@17=x0.5",)])
def test_contributions_sum_to_the_logit(llama, edits):
    t = llama.trace(IDS, edits=edits)
    table = analysis.attribution(t, llama, 7, 9)
    logits = t.logits(-1)
    assert table["contribution"].sum() == pytest.approx(float(logits[7] - logits[9]), abs=1e-4)
    kinds = table["part"].unique().tolist()
    assert kinds[:3] == ["embedding", "head", "feed-forward"]
    assert kinds[3:] == (["edit"] if edits and "resid" in edits[0] else [])
    # of all tokens at once, what each says of one of them
    heads = table[table["part"] == "head"]["contribution"].to_numpy()
    z = t["z"][:, :, -1]  # (L, H, d)
    writes = []
    for b, block in enumerate(llama.model.trf_blocks):
        matrix = block.att.out_proj.weight.detach().unflatten(1, z.shape[1:])  # (D, H, d)
        writes.append(torch.einsum("hd,Dhd->hD", z[b], matrix))
    moved = direct_effects(t, llama, torch.cat(writes))
    assert (moved[:, 7] - moved[:, 9]).numpy() == pytest.approx(heads, abs=1e-4)


def test_a_heads_contribution_is_the_sum_over_the_tokens_that_it_read(llama):
    t = llama.trace(IDS)
    table = analysis.attribution(t, llama, 7)
    heads = table[table["part"] == "head"]["contribution"].to_numpy().reshape(2, -1)
    of_tokens = t.source_tokens(7)
    assert of_tokens.sum(-1).numpy() == pytest.approx(heads, abs=1e-5)
    assert t.attribution(7)["contribution"].sum() == pytest.approx(logit(t, 7), abs=1e-4)
    for block in range(2):
        read = heads_read(llama, t, block, 7)
        assert read.given == pytest.approx(of_tokens[block].numpy())
        # a value without its bias, through the same weights, is what is not written anyway
        bias = llama.model.trf_blocks[block].att.W_value.bias
        if bias is None:
            assert not read.anyway.any()
            continue
        d = llama.config.head_dim
        size = llama.config.n_heads // llama.config.n_kv_groups
        unbiased = t["v", block] - bias.detach().view(-1, 1, d)
        z = t["attn", block] @ unbiased.repeat_interleave(size, dim=0)
        without = llama.trace(IDS, edits=[Edit("z", block, z)])
        # to the logit directly, the divisor held: by the difference of z alone
        direction = analysis.logit_attribution.reader(t, llama, 7).direction
        out = llama.model.trf_blocks[block].att.out_proj.weight.detach().double()
        moved = (t["z", block] - without["z", block])[:, -1].double()  # (H, d)
        shares = torch.einsum("hd,Dhd,D->h", moved, out.unflatten(1, moved.shape), direction)
        assert read.anyway == pytest.approx(shares.numpy(), abs=1e-5)


def test_the_lens_ends_in_the_models_own_logits(llama):
    t = llama.trace(IDS)
    assert row_keys(llama.config)[0] == ("tok_emb", None) and len(row_names(llama.config)) == 5
    rows = t.logit_lens(4)
    expected = by_hand(llama)
    weights = {name: value.double() for name, value in llama.model.state_dict().items()}
    for row, key in enumerate(row_keys(llama.config)[:-1]):
        x = weights["tok_emb.weight"][IDS[4]] if key[1] is None else expected[key][4]
        root = (x.square().mean() + llama.config.norm_eps).sqrt()
        final = x / root * weights["final_norm.scale"]
        torch.testing.assert_close(rows[row].double(), weights["out_head.weight"] @ final, **CLOSE)
    assert torch.equal(rows[-1], t.logits(4))


# ---- readings: what a part reads ----


def test_the_parts_of_a_reading_sum_to_it(llama):
    t = llama.trace(IDS)
    word = word_reading(t, llama, 7, 9, 12)
    _, values = parts(t, llama, word)
    logits = t.logits(12)
    assert float(values.sum()) == pytest.approx(float(logits[7] - logits[9]), abs=1e-3)
    assert values[-1].abs().max() < 1e-4  # nothing is left over
    head = 2
    own = analysis.source_tokens(t, llama, 7, 9, 12)[1, head]
    by_value = read_by(t, llama, word, 1, head, 12, "V")
    _, values = parts(t, llama, by_value)
    assert values.sum(0).numpy() == pytest.approx(own[:13].numpy(), abs=1e-4)
    # through a head of block 0, inside what the head of block 1 reads
    deeper = read_by(t, llama, by_value, 0, 1, 7, "V")
    names, of_heads = parts(t, llama, by_value)
    place = next(i for i, part in enumerate(names) if (part.kind, part.head) == ("head", 1))
    _, values = parts(t, llama, deeper)
    assert float(values.sum()) == pytest.approx(float(of_heads[place, 7]), abs=1e-4)


def test_what_a_head_reads_by_its_query_and_keys_is_the_gradient_times_them(llama):
    """The slopes times the scores, which are linear in the turned query, and in the turned keys."""
    t = llama.trace(IDS)
    word = word_reading(t, llama, 7, 9, 12)
    for head in range(llama.config.n_heads):
        steps = attention.steps(llama, t, 1, head)
        scores = steps.masked[12, :13]
        slope = head_slope(t, llama, word, 1, head, 12)
        by_key = read_by(t, llama, word, 1, head, 12, "K")
        _, values = parts(t, llama, by_key)
        assert values.sum(0).numpy() == pytest.approx((slope * scores).numpy(), abs=2e-4)
        by_query = read_by(t, llama, word, 1, head, 12, "Q")
        _, values = parts(t, llama, by_query)
        assert values[:, :12].abs().max() == 0
        assert float(values.sum()) == pytest.approx(float(slope @ scores), abs=2e-4)
        # one step further down: a head of block 0, whose output the keys read, at each position its own way
        deeper = read_by(t, llama, by_key, 0, 1, 7, "V")
        names, of_parts = parts(t, llama, by_key)
        place = next(i for i, part in enumerate(names) if (part.kind, part.head) == ("head", 1))
        _, values = parts(t, llama, deeper)
        assert float(values.sum()) == pytest.approx(float(of_parts[place, 7]), abs=1e-4)


def test_a_slope_is_the_derivative_of_what_the_head_writes(llama):
    t = llama.trace(IDS)
    word = word_reading(t, llama, 7, 9, 12)
    found = head_slope(t, llama, word, 1, 2, 12)
    values = attention.of_heads(t, "v", 1)[2, :13].double()
    scores = attention.steps(llama, t, 1, 2).masked[12, :13].double().requires_grad_()
    d = llama.config.head_dim
    out = llama.model.trf_blocks[1].att.out_proj.weight.detach().double()[:, 2 * d : 3 * d]
    written = out @ (scores.softmax(0) @ values) @ word.direction.double()
    (written * word.factors[12]).backward()
    torch.testing.assert_close(found.double(), scores.grad, **CLOSE)


# ---- patches and paths ----


def test_patches_in_batches_are_the_edits_of_whole_passes(llama):
    own, source = (llama.trace(ids) for ids in (IDS, OTHER))
    config = llama.config
    every = patches.patches_of(config, len(IDS))
    groups = [patch for patch in every if patch.site in ("k", "v")]
    assert len(groups) == 2 * 2 * config.n_kv_groups
    found = dict[patches.Patch, torch.Tensor]()
    at = len(IDS) - 1
    for some, finals in patches.batches(llama, own, source, at, every):
        rows = own["final"][at].expand(len(some), -1) if finals is None else finals
        found |= zip(some, rows, strict=True)
    assert set(found) == set(every)
    for patch in every:
        alone = llama.trace(IDS, keep=["final"], edits=[patch.edit(OTHER)])["final"][at]
        torch.testing.assert_close(found[patch], alone, **CLOSE)


def test_patching_says_of_a_group_what_its_edit_does_and_estimates_it(llama):
    table = patching(llama, IDS, OTHER, (7, 9), ("v", "z", "resid_pre"), estimate=True)
    rows = table[(table["site"] == "v") & (table["block"] == 1)]
    assert rows["head"].tolist() == list(range(llama.config.n_kv_groups))
    value = "ids" + "+".join(map(str, IDS))
    logits = llama.trace(OTHER, edits=[f"v.1.0={value}"]).logits(-1)
    assert rows["logit"].iloc[0] == pytest.approx(float(logits[7] - logits[9]), abs=1e-4)
    assert np.isfinite(table["estimate"]).all()


def test_a_path_into_a_groups_keys_is_that_of_three_passes_by_hand(llama):
    table = path_patching(llama, IDS, OTHER, (7, 9), receivers=[("k", 1, 0), ("v", 1, 0)])
    first, second = (llama.trace(ids) for ids in (IDS, OTHER))  # denoising: into the corrupt text
    for head in range(llama.config.n_heads):
        outputs = second["z", 0]
        outputs[head] = first["z", 0][head]
        sent = [Edit("z", 0, outputs), Edit("z", 1, second["z", 1])]
        read = llama.trace(OTHER, edits=sent)
        edits = [Edit(site, 1, read[site, 1], [0]) for site in ("k", "v")]
        logits = llama.trace(OTHER, edits=edits).logits(-1)
        row = table[(table["block"] == 0) & (table["head"] == head)].iloc[0]
        assert row["logit"] == pytest.approx(float(logits[7] - logits[9]), abs=1e-4)
    last = llama.config.n_kv_groups - 1
    with pytest.raises(ValueError, match=f"receivers' group .*from 0 to {last}"):
        path_patching(llama, IDS, OTHER, (7, 9), receivers=[("k", 1, last + 1)])


@given(st.data())
def test_what_is_said_to_be_out_of_reach_is_unchanged_to_the_bit(data):
    lm = lm_of(data.draw(st.sampled_from(sorted(FAMILIES))))
    config = lm.config
    table = sites_of(config)
    site, looked = (data.draw(st.sampled_from(sorted(table))) for _ in range(2))
    blocks = [
        data.draw(st.integers(0, 1)) if table[name].per_block else None for name in (site, looked)
    ]
    heads = None
    if table[site].form != "rows":
        any_head = st.integers(0, table[site].count(config) - 1)
        heads = data.draw(st.none() | st.sets(any_head, min_size=1))
    places = data.draw(st.none() | st.sets(st.integers(-5, 4), min_size=1))
    edit = Edit(site, blocks[0], "uniform" if site == "attn" else "zero", heads, places)
    split = table[looked].form != "rows"
    head = data.draw(st.none() | st.integers(0, config.n_heads - 1)) if split else None
    position = data.draw(st.none() | st.integers(0, 4))
    why = unseen(edit, looked, blocks[1], config, 5, head, position)
    key = looked if blocks[1] is None else (looked, blocks[1])
    before, after = (lm.trace(IDS[:5], keep=[key], edits=edits)[key] for edits in ([], [edit]))
    if head is not None:
        before, after = (v[[table[looked].of_head(head, config)]] for v in (before, after))
    if position is not None:
        before, after = (v[..., position, :] for v in (before, after))
    if why is not None:
        assert torch.equal(before, after), (str(edit), key, head, position, why)


def test_what_is_side_by_side_is_out_of_reach(llama):
    at = {"block": 1, "config": llama.config, "n_tokens": 5}
    assert unseen(Edit.parse("mlp_gate.1=zero"), "mlp_up", **at) == "beside"
    assert unseen(Edit.parse("q.1=zero"), "k_rot", **at) == "beside"
    assert unseen(Edit.parse("q.1=zero"), "q_rot", **at) is None
    last = llama.config.n_heads - 1
    assert unseen(Edit.parse("k.1.0=zero"), "attn", **at, head=0) is None
    if llama.config.n_kv_groups > 1:
        assert unseen(Edit.parse("k.1.0=zero"), "attn", **at, head=last) == "beside"


def test_surgery_on_its_cache(llama):
    swapped = surgery(llama, IDS, Operation("swap", 3, 9))
    assert swapped.agrees
    torch.testing.assert_close(swapped.after, swapped.cached, **CLOSE)
    deleted = surgery(llama, IDS, Operation("delete", 3))
    hidden = llama.trace(IDS, edits=[Edit.parse(f"attn.*@{len(IDS) - 1}=hide3")]).logits(-1)
    torch.testing.assert_close(deleted.after, hidden, **CLOSE)


# ---- the stream, its norms, where it came from ----


def test_the_stream_is_the_sum_of_what_is_written(llama):
    t = llama.trace(IDS)
    found = stream.stream(llama, t)
    assert not found.is_broken and found.shares.sum(0) == pytest.approx(1)
    block = stream.block_at_work(llama, t, 1, 4)
    assert block.difference < 1e-4 and len(block.lines) == 8
    table = token_table(llama, t)
    assert list(table) == [
        "position",
        "token",
        "id",
        "token_norm",
        "first_mean_square",
        "last_mean_square",
    ]
    squares = t["resid_pre", 0].double().square().mean(-1)
    assert table["first_mean_square"].to_numpy() == pytest.approx(squares.numpy(), rel=1e-5)
    lengths = llama.model.tok_emb.weight[IDS].norm(dim=-1)
    assert table["token_norm"].to_numpy() == pytest.approx(lengths.detach().numpy())


def test_the_table_of_norms_says_what_an_rmsnorm_divides_by(llama):
    t = llama.trace(IDS)
    table = norms.norm_table(llama, t)
    assert not [name for name in table if "variance" in name or name in ("mean", "mean_after")]
    final = table[table["norm"] == "final"]
    for column, key in (("mean_square", ("resid_post", 1)), ("mean_square_after", ("final", None))):
        squares = t[key].double().square().mean(-1)
        assert final[column].to_numpy() == pytest.approx(squares.numpy(), rel=1e-5)


def test_the_steps_of_a_norm_are_those_of_the_module(llama):
    t = llama.trace(IDS)
    for name, module, key in (
        ("block 1 · norm2", llama.model.trf_blocks[1].norm2, ("resid_mid", 1)),
        ("final", llama.model.final_norm, ("resid_post", 1)),
    ):
        steps = norms.inside(llama, t, name, 4)
        with torch.no_grad():
            expected = module(t[key][4])
        assert steps.after == pytest.approx(expected.numpy(), abs=1e-5)
        assert steps.mean == 0 and not steps.has_mean and not steps.has_shift
        assert (steps.centred == steps.before).all()
        assert steps.variance == pytest.approx(float((steps.before**2).mean()))
        norms.run_norm(llama.model, name, t)
    lines = norms.worked_out(llama, t, "final", 4, 3)[1]
    assert lines["step"].tolist() == ["mean square", "root", "normalised", "times scale"]
    assert lines["gives"].iloc[-1] == pytest.approx(t["final"][4, 3].item(), abs=1e-5)


def test_shares_of_the_contribution_graph_are_those_of_all_parts_at_once(llama):
    t = llama.trace(IDS)
    positions = torch.tensor([6, 11])
    shares, stays = flow.into_attention(t, llama, 1, positions)
    assert (shares.sum((1, 2)) + stays).numpy() == pytest.approx(1, abs=1e-5)
    values = attention.of_heads(t, "v", 1)
    out = llama.model.trf_blocks[1].att.out_proj.weight.detach().unflatten(1, (len(values), -1))
    parts_of = torch.einsum("hij,hjd,Dhd->ihjD", t["attn", 1], values, out)  # (T, H, T, D)
    for row, position in enumerate(positions.tolist()):
        before = t["resid_pre", 1][position]
        summed = parts_of[position].sum((0, 1)) + before
        torch.testing.assert_close(summed, t["resid_mid", 1][position], **CLOSE)
        seen = parts_of[position][:, : position + 1]
        nearness = flow.proximity(seen, t["resid_mid", 1][position])
        total = nearness.sum() + flow.proximity(before, t["resid_mid", 1][position])
        torch.testing.assert_close(shares[row, :, : position + 1], nearness / total, **CLOSE)
    assert flow.rollout(llama, t).sum(-1).numpy() == pytest.approx(1, abs=1e-5)
    graph = flow.contribution_graph(llama, t)
    assert len(graph.edges) and graph.edges["contribution"].between(0.04, 1).any()


# ---- units, heads by their weights, costs ----


def test_a_unit_has_a_gate_and_what_the_gate_lets_through(llama):
    t = llama.trace(IDS)
    found = feed_forward.units(llama, t, 1, 4)
    assert len(found.before) == llama.config.hidden_dim and found.adds_up
    assert not found.is_replaced and found.difference < 1e-4
    gate = found.before / (1 + np.exp(-found.before))
    assert gate * found.times == pytest.approx(found.after, abs=1e-5)
    assert found.before == pytest.approx(t["mlp_gate", 1][4].numpy())
    table = feed_forward.unit_table(found)
    assert list(table)[:4] == ["unit", "gate", "silu", "up"]
    unit = found.largest(1)[0]
    (moved,) = feed_forward.readings(llama, t, 1, [unit], [found.after[unit]], 3, 4)
    column = llama.model.trf_blocks[1].ff.fc3.weight[:, unit].detach()
    effect = direct_effects(t, llama, column[None], 4)[0] * found.after[unit]
    id_, by = moved.raises[0]
    assert by == pytest.approx(float(effect[id_]), abs=1e-5) and by == pytest.approx(
        float(effect.max()), abs=1e-5
    )


def test_a_heads_circuits_are_those_of_its_group_s_weights(llama):
    """The share of each sign among the eigenvalues of the whole tables, for tokens at one place."""
    table = copying.copying_scores(llama)
    weights = {name: value.double() for name, value in llama.model.state_dict().items()}
    embedding = weights["tok_emb.weight"]
    head = weights["out_head.weight"] * weights["final_norm.scale"]
    head = head - head.mean(dim=0)
    d = llama.config.head_dim
    for _, row in table.iterrows():
        block = int(row["block"])
        h = int(row["head"])
        group = h * llama.config.n_kv_groups // llama.config.n_heads
        path = f"trf_blocks.{block}.att"
        rows, shared = (slice(i * d, (i + 1) * d) for i in (h, group))
        reads = embedding * weights[f"trf_blocks.{block}.norm1.scale"]
        value = reads @ weights[f"{path}.W_value.weight"][shared].T
        ov = value @ weights[f"{path}.out_proj.weight"][:, rows].T @ head.T
        query = reads @ weights[f"{path}.W_query.weight"][rows].T
        key = reads @ weights[f"{path}.W_key.weight"][shared].T
        query = query * weights.get(f"{path}.q_norm.scale", 1)
        key = key * weights.get(f"{path}.k_norm.scale", 1)
        for name, matrix in (("ov_copying", ov), ("qk_matching", query @ key.T)):
            values = torch.linalg.eigvals(matrix)
            expected = float(values.real.sum() / values.abs().sum())
            assert row[name] == pytest.approx(expected, abs=1e-6), (name, block, h)


def test_work_is_counted_in_its_matrices(llama):
    blocks = sum(
        weight.numel() for weight in llama.model.trf_blocks.parameters() if weight.dim() == 2
    )
    heads = llama.config.n_heads * llama.config.head_dim
    head = llama.config.vocab_size * llama.config.emb_dim
    assert work(llama.config, 5, 3) == 5 * blocks + 2 * (2 * 5 * 8 * heads) + head


@pytest.mark.parametrize(
    "address",
    ["", "embedding", "block.1", "block.1.norm1", "block.1.attention", "block.1.head.2",
     "block.1.head.2.cell.6.3", "block.1.feed_forward", "block.1.unit.5", "final_norm", "out_head"],
)  # fmt: skip
def test_every_place_of_the_machine_has_its_numbers(llama, address):
    t = llama.trace(IDS, reduce=machine.LENGTHS)
    level = machine.level(llama, t, address, 7)
    assert level["says"]


# ---- everything else ----


def test_no_hand_out_is_made_of_it(llama):
    with pytest.raises(ValueError, match="is a LlamaModel, and the program in a hand-out computes"):
        handout.handout(llama, "The cat")


@pytest.mark.parametrize("family", FAMILIES)
def test_in_bfloat16_it_writes_alike_with_and_without_a_cache(family):
    own = lm_of(family)
    model = copy.deepcopy(own.model).to(torch.bfloat16)
    lm = LanguageModel(model, own.tokenizer, own.config, "halved")
    t = lm.trace(IDS)
    torch.testing.assert_close(t.logits(), own.trace(IDS).logits(), atol=0.1, rtol=0.1)
    table = analysis.attribution(t, lm, 7, 9)
    logits = t.logits(-1)
    assert table["contribution"].sum() == pytest.approx(float(logits[7] - logits[9]), abs=1e-5)
    assert table["part"].iloc[-1] == "rounding"
    cached, read = (
        [step.id for step in lm.generate(IDS, 8, temperature=0, cache=cache)]
        for cache in (True, False)
    )
    assert cached == read


# what is about a vector that is added for a position
REFUSED = {"positions.pair_scores"}


def test_all_that_can_be_asked_is_answered_or_refused_in_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("GPTVIZ_CACHE_DIR", str(tmp_path))
    tokenizer = get_encoding("mini")
    shape = {"vocab_size": tokenizer.n_vocab, "num_hidden_layers": 2}
    theirs = llamas.random_model("qwen3", 1, **shape, num_attention_heads=4, num_key_value_heads=2)
    config = LlamaConfig.from_dict(llamas.book_config(theirs))
    lm = LanguageModel(llamas.ours_of(theirs), tokenizer, config, "asked")
    t = lm.trace(asked.IDS)
    refused = set()
    for name, function in [*asked.of_trace_itself(t), *asked.of_model(lm, t)]:
        try:
            for path, leaf in asked.leaves(function()):
                whole = not isinstance(leaf, torch.Tensor) or leaf.numel() > 0
                assert whole, (name, path)
        except ValueError as error:
            assert "no site 'pos_emb'" in str(error) or "adds no vector" in str(error), name
            refused.add(name)
    assert refused == REFUSED
