"""Direct logit attribution: the parts sum to logit minus mean, and each is what autograd and einsums say."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st

import gptviz
from gptviz import Edit
from gptviz.analysis import attribution, knock_out, source_tokens
from gptviz.analysis.feed_forward import readings
from gptviz.analysis.logit_attribution import (
    by_depth,
    heads_read,
    logit,
    logit_shares,
    sites,
    spread,
)
from gptviz.analysis.paths import paths
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.analysis.written_out import IDS, by_hand, frozen, weights_of
from tests.conftest import KINDS_OF_MODELS, TEXTS, above, models, random_lm


def total(table):
    return table["contribution"].sum()


def close(got, wanted, scale=1.0):
    assert abs(got - wanted) < 1e-4 * max(1.0, scale), (got, wanted)


@settings(max_examples=25)
@given(models(), TEXTS, st.tuples(st.integers(0, 199), st.none() | st.integers(0, 199)), st.data())
def test_on_any_model_the_parts_sum_and_the_sources_sum_to_the_heads(lm, ids, tokens, data):
    layers = lm.config.n_layers
    heads = lm.config.n_heads
    linear = lm.config.linear_bias
    norm = lm.config.norm_bias
    position = data.draw(st.integers(-len(ids), len(ids) - 1))
    trace = lm.trace(ids, keep=[*sites(lm.config), "q", "k", "v"])
    table = attribution(trace, lm.model, *tokens, position)
    scale = table["contribution"].abs().max()
    close(total(table), logit(trace, *tokens, position), scale)
    of_heads = table[table["part"] == "head"]
    assert of_heads["block"].tolist() == [b for b in range(layers) for _ in range(heads)]
    assert of_heads["head"].tolist() == list(range(heads)) * layers
    found = source_tokens(trace, lm.model, *tokens, position)
    assert found.shape == (layers, heads, len(ids))
    assert not found[..., position % len(ids) + 1 :].any()
    close(0, np.abs(found.sum(-1).flatten().numpy() - of_heads["contribution"]).max(), scale)
    counts = table["part"].value_counts()
    assert (
        counts.get("attention bias", 0) == layers * linear and counts.get("final shift", 0) == norm
    )
    assert counts["feed-forward"] == layers and "edit" not in counts and "rounding" not in counts
    with torch.no_grad():
        wanted = above(lm.model.double()(torch.tensor([ids]))[0, position], *tokens).item()
    assert logit(trace, *tokens, position) == pytest.approx(wanted, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("changes", KINDS_OF_MODELS.values(), ids=KINDS_OF_MODELS)
def test_the_sum_so_far_is_what_the_stream_says_after_each_half_of_a_block(changes):
    """By the final LayerNorm written out, with its divisor of the end, on the streams that a pass has."""
    lm = random_lm(4, **changes)
    t = lm.trace(IDS)
    token = 42
    against = 30
    position = 5
    table = by_depth(attribution(t, lm.model, token, against, position))
    norm = lm.model.final_norm
    head = lm.model.out_head.weight.detach().double()
    end = t["resid_post", lm.config.n_layers - 1][position].double()
    divisor = torch.sqrt(end.var(unbiased=False) + norm.eps)
    streams = [t["embed"]]
    for block in range(lm.config.n_layers):
        streams += [t["resid_mid", block], t["resid_post", block]]
    said = []
    for stream in streams:
        x = stream[position].double()
        hidden = norm.scale.detach().double() * (x - x.mean()) / divisor
        said.append(float((head[token] - head[against]) @ hidden))
    assert table["so_far"].iloc[: len(said)].tolist() == pytest.approx(said, abs=1e-4)
    assert table["so_far"].iloc[-1] == pytest.approx(logit(t, token, against, position), abs=1e-4)
    assert table["own"].sum() == pytest.approx(table["so_far"].iloc[-1])
    wanted = ["embedding", *["attention", "feed-forward"] * lm.config.n_layers]
    assert table["part"].iloc[: len(said)].tolist() == wanted


@pytest.mark.parametrize("tied", [False, True])
def test_what_raises_all_logits_alike_supports_none(tied):
    """A row that is added to every row of the output head leaves the probabilities, and all that is said."""
    lm = random_lm(4, tie_embeddings=tied)
    seen = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        shift = 3 * torch.randn(lm.config.emb_dim)
    for _ in range(2):
        t = lm.trace(IDS)
        units = readings(lm, t, 0, [3, 40], [2.0, -1.0], 5, 4)
        tables = [
            attribution(t, lm.model, 7)["contribution"],
            source_tokens(t, lm.model, 7, "mean", 4).flatten(),
            heads_read(lm, t, 0, 7).anyway,
            knock_out(lm, IDS, 7)[["logit", "probability", "effect"]].to_numpy().ravel(),
            [paths(lm, t, 7).total, paths(lm, t, 7).scale],
            np.ravel([[unit.raises, unit.lowers] for unit in units]),
            t.logits(-1).softmax(0),
        ]
        seen.append(np.concatenate([np.asarray(table, dtype=float) for table in tables]))
        with torch.no_grad():
            rows = lm.model.out_head.weight + shift
        # not tok_emb's any more: the pass is the same
        lm.model.out_head.weight = torch.nn.Parameter(rows)
    assert np.allclose(*seen, atol=5e-4, rtol=1e-4) and len(seen[0]) > 8000


@pytest.mark.parametrize("against", [None, 77], ids=["mean", "another"])
@pytest.mark.parametrize("changes", KINDS_OF_MODELS.values(), ids=KINDS_OF_MODELS)
def test_each_part_is_its_gradient_times_itself(changes, against):
    """What is explained, the LayerNorm frozen, as the module computes it, and differentiated by torch."""
    lm = random_lm(5, **changes)
    position = 4
    token = 123
    trace = lm.trace(IDS)
    model = lm.model
    n_heads = lm.config.n_heads
    table = attribution(trace, model, token, against, position).set_index(["part", "block", "head"])
    parts = {("embedding", pd.NA, pd.NA): trace["tok_emb"][position]}
    parts["position", pd.NA, pd.NA] = trace["pos_emb"][position]
    for b, block in enumerate(model.trf_blocks):
        weight = block.att.out_proj.weight.detach()  # (D, H d)
        for h, part in enumerate(weight.chunk(n_heads, dim=1)):
            parts["head", b, h] = part @ trace["z", b][h, position]
        if block.att.out_proj.bias is not None:
            parts["attention bias", b, pd.NA] = block.att.out_proj.bias.detach()
        parts["feed-forward", b, pd.NA] = trace["mlp_out", b][position]
    leaves = {name: part.double().requires_grad_() for name, part in parts.items()}
    x = sum(leaves.values())
    rows = weights_of(model)["out_head.weight"]
    above(rows @ frozen(model.final_norm, x)(x), token, against).backward()
    for name, leaf in leaves.items():
        wanted = (leaf.grad * leaf.detach()).sum().item()
        assert table.loc[[name], "contribution"].item() == pytest.approx(wanted, abs=1e-4), name
    assert len(table) == len(leaves) + (model.final_norm.shift is not None)


def test_source_tokens_are_a_times_v_times_the_heads_output_matrix():
    """Against the pass written out, whose attention and values are worked out anew."""
    lm = random_lm(11)
    position = 5
    token = 99
    trace = lm.trace(IDS)
    w = weights_of(lm.model)
    heads = lm.config.n_heads
    found = source_tokens(trace, lm.model, token, None, position)
    blocks = by_hand(lm, tuple(IDS))["blocks"]
    read = frozen(lm.model.final_norm, blocks[-1]["post"][position])
    for b, block in enumerate(blocks):
        attention = block["weights"][:, position]  # (H, T)
        # (H, T)
        wanted = above(read(attention[..., None] * block["brings"]) @ w["out_head.weight"].T, token)
        assert np.allclose(found[b], wanted, atol=1e-4)
        att = f"trf_blocks.{b}.att"
        through = w[f"{att}.out_proj.weight"].unflatten(1, (heads, -1))  # (D, H, d)
        biases = torch.einsum(
            "ehd,hd->he", through, w[f"{att}.W_value.bias"].unflatten(0, (heads, -1))
        )
        own = heads_read(lm, trace, b, token, None, position)
        assert np.allclose(own.anyway, above(read(biases) @ w["out_head.weight"].T, token))
        assert np.allclose(own.given, wanted[:, : position + 1], atol=1e-4)
        assert np.allclose(own.attention, attention[:, : position + 1], atol=1e-6)


def test_without_a_bias_in_the_values_there_is_nothing_to_split():
    lm = random_lm(2, qkv_bias=False)
    own = heads_read(lm, lm.trace(IDS), 0, 4)
    assert not own.anyway.any() and own.given.shape[1] == len(IDS)  # up to the last token


EDITS = [
    "z.1.2=zero", "z.0=mean", "attn.1=uniform", "v.0.1=zero", "mlp_out.0=mean", "tok_emb@3=zero",
    "mlp_act.1=zero", "z.1=x0.5",
]  # fmt: skip
OF_THE_STREAM = [
    "resid_mid.0=zero", "resid_pre.1@6=mean", "resid_post.0=mean", "attn_out.1=zero", "embed@-1=zero",
    "resid_post.1=mean", "final=mean", "resid_post.0=+2*tok5-out9", "resid_mid.1=x0.5",
]  # fmt: skip


@pytest.mark.parametrize("edit", EDITS + OF_THE_STREAM)
def test_an_edited_run_sums_to_the_changed_models_logit(edit):
    lm = random_lm(8)
    trace = lm.trace(IDS, edits=[Edit.parse(edit)])
    for against in (None, 44):
        table = attribution(trace, lm.model, 1234, against)
        close(total(table), logit(trace, 1234, against), table["contribution"].abs().max())
        assert ("edit" in table["part"].tolist()) == (edit in OF_THE_STREAM)
    unchanged = attribution(lm.trace(IDS), lm.model, 1234, 44)
    assert abs(total(unchanged) - total(table)) > 1e-3


def test_what_no_part_wrote_is_in_the_edits_row():
    lm = random_lm(8)
    found = []
    for edit, position in (("resid_post.1=+3*tok5-out9", -1), ("resid_mid.0@2=zero", 1)):
        table = attribution(lm.trace(IDS, edits=[edit]), lm.model, 7, None, position)
        found.append(table.loc[table["part"] == "edit", "contribution"].item())
    assert abs(found[0]) > 0.01 and found[1] == pytest.approx(0, abs=1e-4)


def test_a_head_that_was_replaced_has_no_sources():
    lm = random_lm(8)
    own = source_tokens(lm.trace(IDS), lm.model, 7)
    muted = source_tokens(lm.trace(IDS, edits=[Edit("z", 1, heads=[2])]), lm.model, 7)
    assert not muted[1, 2].any() and own[1, 2].any() and muted[1, 1].isfinite().all()
    mean = source_tokens(lm.trace(IDS, edits=[Edit("z", 1, "mean", heads=[2])]), lm.model, 7)
    assert mean[1, 2].isnan().all() and mean[1, [0, 1, 3]].isfinite().all()
    halved = lm.trace(IDS, edits=["z.1.2=x0.5", "z.1.2@-1=x-3", "z.1.1@0=x7"])
    of_heads = attribution(halved, lm.model, 7).query("part == 'head' and block == 1")[
        "contribution"
    ]
    given = source_tokens(halved, lm.model, 7)[1]
    assert np.allclose(given.sum(-1), of_heads, atol=1e-4)
    smaller = spread(lm.trace(IDS), lm.model) / spread(halved, lm.model)
    assert torch.allclose(given[2], -1.5 * smaller * own[1, 2], atol=1e-4)
    elsewhere = lm.trace(IDS, edits=[Edit("z", 1, "mean", heads=[2], positions=[0])])
    assert torch.allclose(source_tokens(elsewhere, lm.model, 7), own, atol=1e-4)
    lm.model.bfloat16()  # what a head reads and what it hands on are rounded apart
    rounded = source_tokens(lm.trace(IDS, edits=["z.1.2=x0.5"]), lm.model, 7)
    assert rounded.isfinite().all() and torch.allclose(rounded[1, 2], own[1, 2] / 2, atol=0.05)


def test_below_the_parts_stand_their_sum_and_the_models_own():
    lm = random_lm(8)
    trace = lm.trace(IDS)
    table = logit_shares(lm, trace, 7, 9, 3)
    assert table[:-2]["contribution"].equals(attribution(trace, lm.model, 7, 9, 3)["contribution"])
    own = above(trace.logits(3), 7, 9).item()
    assert table["part"].tolist()[-2:] == ["sum", "the model's own"]
    assert table["contribution"].tolist()[-2:] == pytest.approx([own, own], abs=1e-4)


def test_bfloat16_has_its_rounding_as_a_part():
    lm = gptviz.load("mini", dtype="bfloat16")
    trace = lm.trace(UNSAID_TEXT)
    table = attribution(trace, lm.model, 2958)
    assert total(table) == pytest.approx(logit(trace, 2958), abs=1e-4)
    # of a logit of 12
    assert abs(table.loc[table["part"] == "rounding", "contribution"].item()) < 0.15
    heads = table.loc[table["part"] == "head", "contribution"].to_numpy()
    assert np.allclose(source_tokens(trace, lm.model, 2958).sum(-1).flatten(), heads, atol=0.01)


def test_the_story_of_mill_against_town(mini):
    """What block 5 adds to the logit, and that it reads it from the word's first place."""
    trace = mini.trace(UNSAID_TEXT)
    mill, town = mini.encode(" mill town")
    table = attribution(trace, mini.model, mill, town)
    assert (total(table), logit(trace, mill, town)) == pytest.approx((8.9311, 8.9311), abs=1e-4)
    last = table[(table["block"] == 5) & (table["part"] == "head")]["contribution"]
    assert last.round(2).tolist() == [0.76, 0.13, 0.63, 0.96, 1.18, 0.74, 0.11, 0.67]
    of_part = table.query("block.isna() or block == 5").set_index("part")["contribution"].round(2)
    assert of_part[["embedding", "position", "feed-forward"]].tolist() == [0.0, -0.02, 3.46]
    sources = source_tokens(trace, mini.model, mill, town)[5].sum(0)  # (T,): all heads of block 5
    assert [token.id for token in trace.tokens].index(mill) == sources.argmax() == 7
    assert sources[7] == pytest.approx(4.16, abs=0.005)


def test_tokens_may_be_named_by_their_text(mini):
    trace = mini.trace("Seven green parrots sang")
    mill = mini.encode(" mill")[0]
    town = mini.encode(" town")[0]
    by_text, by_id = ((trace, mini.model, *pair) for pair in ((" mill", " town"), (mill, town)))
    assert attribution(*by_text).equals(attribution(*by_id))
    assert attribution(trace, mini.model, mill).equals(attribution(trace, mini.model, mill, None))
    assert attribution(trace, mini.model, mill).equals(attribution(trace, mini.model, mill, "mean"))
    assert (source_tokens(*by_text) == source_tokens(*by_id)).all()
