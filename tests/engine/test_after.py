"""A trace that goes on from an earlier one: the same numbers, the earlier rows to the bit, one memory."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz import Edit, Reduction
from gptviz.engine import forward
from gptviz.engine.past import Past
from gptviz.engine.sites import all_keys
from gptviz.fast import kernels, one_token
from tests.conftest import random_lm
from tests.engine.test_trace import assert_same

IDS = torch.randint(0, 8000, (48,), generator=torch.Generator().manual_seed(5)).tolist()


@pytest.mark.parametrize(
    ("edits", "of_site", "of_logits"),
    [([], 1e-5, 3e-5), (["pos_emb=sample"], 3e-5, 1e-4)],
    ids=["plain", "edited"],
)
def test_the_bundled_model_grown_token_by_token_is_within_the_measure_that_is_said(
    mini, edits, of_site, of_logits
):
    """Of a site's own largest number: those of the last residual stream are some five hundred."""
    ids = mini.encode("Seven green parrots sang behind the old mill. " * 20)[:128]
    grown = mini.trace(ids[:1], edits=edits)
    for end in range(2, len(ids) + 1):
        grown = mini.trace(ids[:end], edits=edits, after=grown)
    whole = mini.trace(ids, edits=edits)
    for key in whole.sites():
        one = grown[key]
        two = whole[key]
        assert (one - two).abs().max() <= of_site * two.abs().max(), key
    for position in (40, -1):
        assert (grown.logits(position) - whole.logits(position)).abs().max() <= of_logits


CAUSAL = [
    (),
    (Edit("z", 0, "zero", heads=[1]),),
    (Edit("resid_pre", 1, "zero", positions=[2, 20]), Edit("attn", 0, "uniform", heads=[0, 3])),
    tuple(map(Edit.parse, ["resid_mid.0@9=zero", "k.1=zero", "attn.1@1=zero"])),
    tuple(map(Edit.parse, ["attn.*=hide3", "attn.1.2=previous", "resid_mid.*@4=zero"])),
    tuple(map(Edit.parse, ["attn.0.1@2+20=first", "z.*.3=sample", "pos_emb=sample"])),
    tuple(
        map(Edit.parse, ["resid_pre.1=ids" + "+".join(map(str, range(9, 31))), "attn.0=ids4+5+6+7"])
    ),
    tuple(map(Edit.parse, ["resid_post.0=+2*tok9-ids4+5+6-mean5", "z.1.2=x0.5", "attn.0@1+20=x2"])),
    (Edit("pos_emb"), Edit("v", 0, "zero", heads=[2], positions=[0, 25]), Edit("attn", 0, "mean")),
]


@settings(max_examples=25)
@given(st.sampled_from(CAUSAL), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.data())
def test_in_pieces_it_is_the_trace_of_the_whole(edits, sizes, data):
    flags = {
        name: data.draw(st.booleans()) for name in ("qkv_bias", "tie_embeddings", "linear_bias")
    }
    lm = random_lm(data.draw(st.integers(0, 9)), **flags)
    half = data.draw(st.booleans())
    if half:
        lm.model.bfloat16()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kernels.SETTING, data.draw(st.sampled_from(["on", "off"])))
        end = 26  # the edits' positions exist from here on
        trace = lm.trace(IDS[:end], edits=edits)
        for size in sizes:
            earlier = trace
            end = end + size
            trace = lm.trace(IDS[:end], edits=edits, after=earlier)
            for key in earlier.sites():
                rows = trace.rows(*key, stop=len(earlier))
                assert torch.equal(rows, earlier[key]), (
                    f"{key} is not the earlier trace's to the bit"
                )
        assert_same(trace, lm.trace(IDS[:end], edits=edits), atol=0.1 if half else 1e-5)


@pytest.mark.parametrize("edits", CAUSAL)
def test_one_token_is_captured_to_the_bits_of_the_modules(edits, monkeypatch):
    """Two ways to look: on the short way, and by hooks on the modules."""
    lm = random_lm(qkv_bias=False, activation="gelu")
    before = lm.trace(IDS[:26], edits=edits)
    found = []
    shown = []
    real = one_token.visits_at
    monkeypatch.setattr(
        one_token, "visits_at", lambda *args: shown.append(real(*args)) or shown[-1]
    )
    found.append(lm.trace(IDS[:27], edits=edits, after=before))
    assert shown[0] is not None
    monkeypatch.setattr(one_token, "visits_at", lambda *_: None)
    found.append(lm.trace(IDS[:27], edits=edits, after=before))
    for key in found[0].sites():
        assert torch.equal(found[0][key], found[1][key]), key
    assert torch.equal(found[0].logits(-1), found[1].logits(-1))


def test_a_hook_where_the_short_way_does_not_pass_is_hung_there(lm):
    past = Past(lm.model)
    seen = []
    forward.hidden(lm.model, torch.tensor([IDS[:5]]), past=past)

    def read(module, side="output"):
        forward.hidden(
            lm.model, torch.tensor([[7]]), [forward.Hook(module, side, seen.append)], past
        )

    read("trf_blocks.1.ff.layers.1", "input")
    read("trf_blocks.0.att.out_proj")
    read("trf_blocks")
    for module in ("trf_blocks.9", "trf_blocks.0att", "trf_blocks.0.atta", "trf_blocks.x.att"):
        with pytest.raises(AttributeError):
            read(module)
    assert len(seen) == 3 and len(past) == 5 + 3


def test_only_what_is_new_goes_through_the_model(lm, passes):
    first = lm.trace(IDS[:20])
    for ids, passed in (
        (IDS[:21], [1]),
        (IDS[:30], [10]),
        (IDS[:12] + IDS[40:44], [4]),  # the end was edited: from the common beginning on
        (IDS[:20], []),
        (IDS[:7], []),  # nothing of it is new
        (IDS[1:9], [8]),
    ):
        passes.clear()
        trace = lm.trace(ids, after=first)
        assert [tokens for _, tokens in passes] == passed
        assert_same(trace, lm.trace(ids))


def test_a_chain_of_single_tokens_shares_its_memory_and_counts_it_once(lm):
    trace = lm.trace(IDS[:8])
    chain = [trace]
    for end in range(9, 40):
        chain.append(lm.trace(IDS[:end], after=chain[-1]))
    whole = lm.trace(IDS[:39])
    assert_same(chain[-1], whole)
    for shorter in chain:  # nobody has written into another's rows
        assert_same(shorter, lm.trace(IDS[: len(shorter)]))
    assert max(len(chain[-1].pieces(key).parts) for key in whole.sites()) < 8, (
        "few pieces of many tokens"
    )
    for key in (("embed", None), ("attn", 1)):
        assert chain[1].pieces(key).parts[0].data_ptr() == trace.uncopied()[key].data_ptr()
    # beside its own numbers only the room for more keys and values, and no half of attention that is hidden
    lo = whole.nbytes - 2 * 4 * lm.config.n_heads * 39 * 39
    assert lo < chain[-1].nbytes < 1.25 * whole.nbytes


def test_two_branches_of_one_trace_do_not_mix(lm):
    trace = lm.trace(IDS[:10], after=lm.trace(IDS[:9]))
    one, two = (lm.trace(IDS[:10] + end, after=trace) for end in ([1, 2], [3, 4]))
    three = lm.trace([*IDS[:10], 1, 2, 5], after=one)
    for branch, end in ((one, [1, 2]), (two, [3, 4]), (three, [1, 2, 5]), (trace, [])):
        assert_same(branch, lm.trace(IDS[:10] + end))


def test_what_does_not_match_starts_anew(lm, passes):
    first = lm.trace(IDS[:20])
    mean = (Edit("mlp_out", 0, "mean"),)
    last = (Edit("mlp_out", 0, positions=[-1]),)
    function = (Edit("mlp_out", 0, lambda x: x * 2),)
    for arguments, after in (
        ({}, lm.trace(IDS[:20], keep=["attn", "final"])),  # without keys and values
        ({}, lm.trace(IDS[:20], keep=["k", "v"])),  # without what is to be kept
        ({"edits": [Edit("mlp_out", 0)]}, first),
        ({}, lm.trace(IDS[:20], edits=[Edit("mlp_out", 0)])),
        *(({"edits": edits}, lm.trace(IDS[:20], edits=edits)) for edits in (mean, last, function)),
    ):
        passes.clear()
        trace = lm.trace(IDS[:24], after=after, **arguments)
        assert passes == [(1, 24)]
        assert_same(trace, lm.trace(IDS[:24], **arguments))
    assert not any(edit.is_causal for edit in (*mean, *last, *function))
    kept = lm.trace(IDS[:20], ["k", "v", "attn"])
    passes.clear()
    found = lm.trace(IDS[:24], ["attn"], after=kept)
    assert passes == [(1, 4)]
    assert_same(found, lm.trace(IDS[:24], ["attn"]))


def test_reductions_see_the_whole_text(lm):
    most = Reduction("most", "attn", torch.Tensor.sum)
    first = lm.trace(IDS[:20])
    for end in (24, 20, 9):
        whole = lm.trace(IDS[:end], ["z"], reduce=[most])
        found = lm.trace(IDS[:end], ["z"], reduce=[most], after=first)
        one, other = (torch.stack(trace.reduced("most")) for trace in (found, whole))
        assert torch.allclose(one, other, atol=1e-3)
        assert_same(found, whole)


def test_a_long_text_goes_on_row_block_by_row_block():
    lm = random_lm(context_length=512)
    ids = torch.randint(0, 8000, (450,), generator=torch.Generator().manual_seed(0)).tolist()
    assert_same(lm.trace(ids, after=lm.trace(ids[:200])), lm.trace(ids), atol=3e-5)


def test_rows_are_those_of_the_site(lm):
    trace = lm.trace(IDS[:12], after=lm.trace(IDS[:11], after=lm.trace(IDS[:5])))
    for start, stop in ((0, 12), (0, 5), (3, 8), (4, 12), (11, 12), (7, 7 + 1)):
        for key in all_keys(lm.config):
            rows = trace.rows(*key, start, stop)
            site = trace[key]
            expected = site[:, start:stop, :stop] if key[0] == "attn" else site[..., start:stop, :]
            assert torch.equal(rows, expected), (key, start, stop)
    assert torch.equal(trace.rows("attn", 1, -1), trace["attn", 1][:, -1:])
    inner = trace.uncopied()
    held = inner["attn", 1]
    assert inner["attn", 1] is held, "who looks at the same time shares one"
    for start, stop in ((12, None), (5, 5)):
        with pytest.raises(ValueError, match="no tokens"):
            trace.rows("embed", None, start, stop)


def test_a_cut_is_the_trace_of_the_beginning(lm):
    trace = lm.trace(IDS[:12], after=lm.trace(IDS[:9]))
    for n in (12, 10, 9, 4, 1):
        assert_same(trace.cut(n), lm.trace(IDS[:n]))
        assert_same(lm.trace(IDS[:20], after=trace.cut(n)), lm.trace(IDS[:20]))
    for n in (0, 13):
        with pytest.raises(ValueError, match=f"cut to {n}"):
            trace.cut(n)
    with pytest.raises(ValueError, match=r"mlp_out\.0=mean"):
        lm.trace(IDS[:12], edits=[Edit("mlp_out", 0, "mean")]).cut(5)


def test_the_past_of_a_trace_reads_on(lm):
    trace = lm.trace(IDS[:12])
    for past in (trace.past(lm.model), lm.trace(IDS[:12], after=lm.trace(IDS[:7])).past(lm.model)):
        logits = forward.last_logits(lm.model, torch.tensor([IDS[12:14]]), past)
        assert torch.allclose(logits[0], lm.trace(IDS[:14], keep=[]).logits(-1), atol=1e-4)
    with pytest.raises(ValueError, match="not kept"):
        lm.trace(IDS[:12], keep=["z"]).past(lm.model)
