"""The engine around a LlamaModel: every number against a pass that is written out, or transformers'."""

from functools import cache
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from gptviz.engine import forward, sites as sites_module
from gptviz.engine.architecture import LLAMA
from gptviz.engine.beams import beam_search
from gptviz.engine.edits import Edit
from gptviz.engine.generate import generate_batch
from gptviz.engine.kinds import gpt2s
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.llama_config import LlamaConfig
from gptviz.engine.past import Past, past_bytes
from gptviz.engine.sample_means import MOST_WINDOWS, sample_means
from gptviz.engine.sites import all_keys, check_key
from gptviz.engine.variants import variants
from gptviz.engine.weights import fingerprint
from gptviz.fast import kernels, one_token
from gptviz.tokenizer import get_encoding
from tests import llamas
from tests.conftest import random_lm
from tests.llamas import IDS, LLAMA3
from tests.test_llama import written_out

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
FAMILIES = {
    "llama": ("llama", {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "qwen2": ("qwen2", {"num_attention_heads": 4, "num_key_value_heads": 2}),
    "qwen3": ("qwen3", {}),
}


@cache
def theirs_of(family):
    name, shape = FAMILIES[family]
    return llamas.random_model(name, 1, **shape)


@cache
def lm_of(family) -> LanguageModel:
    theirs = theirs_of(family)
    config = LlamaConfig.from_dict(llamas.book_config(theirs))
    return LanguageModel(llamas.ours_of(theirs), get_encoding("mini"), config, family)


def by_hand(lm, ids=IDS, change=lambda key, value: value):
    """Every site of a pass in float64, and the logits."""
    weights = {name: value.double() for name, value in lm.model.state_dict().items()}
    return written_out(weights, lm.config, ids, change)


def shown(lm, key, value: Tensor) -> Tensor:
    """A site of the pass by hand, as a Trace has it: (T, H * d) split into (H, T, d)."""
    if key[0] in ("q", "k", "v", "z"):
        return value.unflatten(1, (-1, lm.config.head_dim)).transpose(0, 1)
    return value


def assert_same(t, found, **close):
    lm = t.lm
    for key in t.sites():
        if key != ("tok_emb", None):
            expected = shown(lm, key, found[key])
            value = t[key[0]] if key[1] is None else t[key]
            assert value.shape == expected.shape, key
            torch.testing.assert_close(value.double(), expected, **(CLOSE | close))
    torch.testing.assert_close(t.logits().double(), found["logits"], **(CLOSE | close))


@pytest.fixture(params=FAMILIES)
def llama(request) -> LanguageModel:
    return lm_of(request.param)


# ---- a trace ----


def test_every_site_of_a_trace_is_that_of_a_pass_by_hand(llama):
    t = llama.trace(IDS)
    assert t.sites() == all_keys(llama.config) and len(t.sites()) == 2 + 15 * 3
    assert_same(t, by_hand(llama))
    found = llamas.sites_of(llama.model, IDS)
    for key in t.sites()[1:]:
        value = t[key[0]] if key[1] is None else t[key]
        torch.testing.assert_close(value, shown(llama, key, found[key]), **CLOSE)
    assert torch.equal(t["tok_emb"], t["resid_pre", 0])
    sizes = llama.config.sizes(len(IDS))
    for name, site in LLAMA.sites.items():
        expected = [sizes[part] for part in site.shape.strip("()").split(", ")]
        value = t[name, 0] if site.per_block else t[name]
        assert (
            list(value.shape) == expected and site.floats(len(IDS), llama.config) == value.numel()
        )


def test_a_long_text_is_lean_and_its_blocks_are_run_again(llama, monkeypatch):
    monkeypatch.setattr(sites_module, "SMALL", 0)
    edits = ["v.1.2=zero", "resid_mid.0@3=x2"] if llama.config.n_kv_groups > 2 else []
    t = llama.trace(IDS, edits=edits)
    held = {site for site, _ in t._values}
    assert held == {"tok_emb", "resid_pre", "v", "k_rot", "resid_post", "final"}
    monkeypatch.undo()
    whole = llama.trace(IDS, edits=edits)
    for key in whole.sites():
        value, expected = ((a[key[0]] if key[1] is None else a[key]) for a in (t, whole))
        torch.testing.assert_close(value, expected, **CLOSE)


def test_a_text_goes_on_from_an_earlier_trace(llama):
    first = llama.trace(IDS[:7])
    assert_same(llama.trace(IDS, after=first), by_hand(llama))
    assert_same(first.cut(4), by_hand(llama, IDS[:4]))
    edits = ["k_rot.1.0=x0.5", "mlp_gate.0=x2"]
    longer = llama.trace(IDS, edits=edits, after=llama.trace(IDS[:9], edits=edits))
    torch.testing.assert_close(longer.logits(), llama.trace(IDS, edits=edits).logits(), **CLOSE)


def test_several_texts_in_one_pass(llama):
    texts = [IDS, IDS[3:8], IDS[2:]]
    for ids, t in zip(texts, llama.traces(texts, at_a_time=3), strict=True):
        assert_same(t, by_hand(llama, ids))


# ---- edits ----


def replaced_by_hand(llama, key, new):
    """The logits of a pass by hand with `new`, as a Trace shows it, at one site."""

    def change(here, value):
        if here != key:
            return value
        rows = new if value.shape == new.shape else new.transpose(0, 1).flatten(1)
        assert rows.shape == value.shape
        return rows.double()

    return by_hand(llama, change=change)["logits"]


def test_an_edit_at_every_site_is_a_pass_with_the_replacement_made_by_hand(llama):
    t = llama.trace(IDS)
    draw = torch.Generator().manual_seed(0)
    for site, row in LLAMA.sites.items():
        key = (site, 1 if row.per_block else None)
        old = t[site, 1] if row.per_block else t[site]
        new = old + 0.3 * torch.randn(old.shape, generator=draw)
        if row.form == "weights":
            new = new.abs().tril()
        edited = llama.trace(IDS, edits=[Edit(*key, new)])
        expected = replaced_by_hand(llama, key, new)
        torch.testing.assert_close(edited.logits().double(), expected, **CLOSE)
        assert not torch.allclose(edited.logits(), t.logits(), atol=1e-3)


def test_an_edit_of_a_group_is_one_of_its_key_or_value_and_no_other(llama):
    t = llama.trace(IDS)
    for site in ("k", "v", "k_rot"):
        new = t[site, 0]
        new[1] = 0
        expected = replaced_by_hand(llama, (site, 0), new)
        found = llama.trace(IDS, edits=[f"{site}.0.1=zero"]).logits()
        torch.testing.assert_close(found.double(), expected, **CLOSE)
    heads = range(llama.config.n_heads)
    size = llama.config.n_heads // llama.config.n_kv_groups
    edit = Edit.parse("v.0.1=zero")
    assert [edit.is_of_head(0, head, llama.config) for head in heads] == [
        head // size == 1 for head in heads
    ]
    with pytest.raises(ValueError, match=f"no group {llama.config.n_kv_groups}; they go from 0"):
        llama.trace(IDS, edits=[f"v.0.{llama.config.n_kv_groups}=zero"])


def test_an_edit_of_another_models_site_says_what_this_one_has(llama):
    assert Edit.parse("mlp_pre.1=zero").site == "mlp_pre"
    with pytest.raises(ValueError, match=r"this model has no site 'mlp_pre'; .*mlp_gate, mlp_up"):
        llama.trace(IDS, edits=["mlp_pre.1=zero"])
    with pytest.raises(ValueError, match=r"this model has no site 'q_rot'; its sites are tok_emb"):
        random_lm().trace([5, 6], edits=["q_rot.1=zero"])
    with pytest.raises(ValueError, match="this model has no site 'pos_emb'"):
        llama.trace(IDS)["pos_emb"]
    with pytest.raises(ValueError, match=r"no site 'mlp_gte' .did you mean mlp_gate"):
        check_key("mlp_gte", 1, llama.config)


def test_edits_in_words_do_what_they_say(llama):
    t = llama.trace(IDS)
    uniform = llama.trace(IDS, edits=["attn.1=uniform"])["attn", 1]
    torch.testing.assert_close(uniform.sum(-1), torch.ones(uniform.shape[:2]), **CLOSE)
    assert uniform[0, 4, 4] == pytest.approx(1 / 5)
    hidden = llama.trace(IDS, edits=["attn.*=hide2"])
    assert hidden["attn", 1][:, 3:, 2].max() == 0
    other = llama.trace(IDS[::-1])
    patched = llama.trace(IDS, edits=["k.1.0=ids" + "+".join(map(str, IDS[::-1]))])
    assert torch.equal(patched["k", 1][0], other["k", 1][0])
    assert torch.equal(patched["k", 1][1], t["k", 1][1])
    row = llama.model.tok_emb.weight[5].detach()
    pushed = llama.trace(IDS, edits=["resid_pre.2@4=+2*tok5"])
    torch.testing.assert_close(pushed["resid_pre", 2][4], t["resid_pre", 2][4] + 2 * row, **CLOSE)


# ---- what follows from a pass ----


def test_the_gradient_is_that_of_the_pass_by_hand(llama):
    t = llama.trace(IDS, grad=(7, 9))
    assert t.grad.sites() == all_keys(llama.config)
    leaves = {}

    def change(key, value):
        leaves[key] = value.detach().requires_grad_()
        leaves[key] = value + torch.zeros_like(value, requires_grad=True)
        leaves[key].retain_grad()
        return leaves[key]

    logits = by_hand(llama, change=change)["logits"][-1]
    (logits[7] - logits[9]).backward()
    for key in t.grad.sites():
        found = t.grad[key[0]] if key[1] is None else t.grad[key]
        grad = leaves[key].grad
        expected = torch.zeros_like(leaves[key]) if grad is None else grad
        torch.testing.assert_close(found.double(), shown(llama, key, expected), **CLOSE)


def test_norms_are_roots_of_mean_squares_with_mean_0(llama):
    t = llama.trace(IDS)
    table = t.norms()
    assert len(table) == 7 * len(IDS) and (table["mean"] == 0).all()
    assert (table["mean_after"] == 0).all()
    final = table[table["norm"] == "final"]
    squares = t["resid_post", 2].double().square().mean(-1)
    assert final["variance"].to_numpy() == pytest.approx(squares.numpy(), rel=1e-5)
    after = t["final"].double().square().mean(-1)
    assert final["variance_after"].to_numpy() == pytest.approx(after.numpy(), rel=1e-5)


def test_a_table_of_a_group(llama):
    t = llama.trace(IDS)
    assert t.table("k", 1, 1).to_numpy() == pytest.approx(t["k", 1][1].numpy())
    with pytest.raises(ValueError, match=r"k has a table for each group, from 0 to"):
        t.table("k", 1)


def test_means_over_the_sample_are_those_of_its_windows():
    tokenizer = get_encoding("mini")
    theirs = llamas.random_model(
        vocab_size=tokenizer.n_vocab, num_hidden_layers=1, max_position_embeddings=8
    )
    config = LlamaConfig.from_dict(llamas.book_config(theirs))
    lm = LanguageModel(llamas.ours_of(theirs), tokenizer, config, "sampled")
    texts = []
    handle = lm.model.tok_emb.register_forward_hook(lambda m, ids, out: texts.append(ids[0][0]))
    means = sample_means(lm)
    handle.remove()
    assert len(texts) == MOST_WINDOWS
    found = [llamas.sites_of(lm.model, ids.tolist()) for ids in texts]
    for key in ("k", 0), ("z", 0), ("mlp_act", 0), ("k_rot", 0):
        rows = torch.cat([shown(lm, key, sites[key]) for sites in found], dim=-2)
        torch.testing.assert_close(means[key], rows.mean(-2, keepdim=True), **CLOSE)
    edited = lm.trace([5, 6, 7], edits=["k.0.1=sample"])
    torch.testing.assert_close(edited["k", 0][1], means["k", 0][1].expand(3, -1))


def test_variants_are_the_passes_with_each_list_of_edits(llama):
    t = llama.trace(IDS)
    other = llama.trace(IDS[::-1])
    choices = []
    for site, row in LLAMA.sites.items():
        if row.per_block and row.shortcut is None:
            choices.append([Edit(site, 1, other.uncopied(), None, [3, 5])])
    choices += [[*one, *two] for one, two in pairwise(choices)] + [[]]
    expected = [llama.trace(IDS, edits=edits)["final"] for edits in choices]
    found = torch.cat(list(variants(llama, t["resid_pre", 1], 1, choices, most=5)))
    torch.testing.assert_close(found, torch.stack(expected), **CLOSE)
    with pytest.raises(ValueError, match="resid_mid is replaced in a whole pass only"):
        list(variants(llama, t["resid_pre", 1], 1, [[Edit("resid_mid", 1)]]))
    batch_of_one_site = choices[:1], choices[10:11]
    for some in batch_of_one_site:
        (found,) = variants(llama, t["resid_pre", 1], 1, [some[0], []], row=6)
        torch.testing.assert_close(found[0], llama.trace(IDS, edits=some[0])["final"][6], **CLOSE)


# ---- writing ----


def test_greedy_text_is_transformers_with_and_without_a_cache(llama):
    theirs = theirs_of(llama.name)
    ids = torch.tensor([IDS])
    # without the mask they would take token 0 of the text for padding
    options = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 16, "do_sample": False}
    written = theirs.generate(ids, eos_token_id=None, **options)
    expected = written[0, len(IDS) :].tolist()
    for options in ({}, {"cache": False}, {"captured": True}):
        steps = list(llama.generate(IDS, 16, temperature=0, **options))
        assert [step.id for step in steps] == expected
        logits = by_hand(llama, [*IDS, *expected[:-1]])["logits"][-1]
        torch.testing.assert_close(steps[-1].logits.double(), logits, **CLOSE)
    # what is compared is no text of one token
    assert len(set(expected)) > 1


def test_it_writes_with_edits_and_beyond_its_context(llama):
    changed = llama.edited("v.0.1=zero", "q_rot.1=x2")
    n = llama.config.context_length - len(IDS) + 3
    cached, read = (
        [step.id for step in changed.generate(IDS, n, seed=3, cache=cache)]
        for cache in (True, False)
    )
    assert cached == read and len(cached) == n


def test_several_texts_are_written_at_once(llama):
    (*_, last) = generate_batch(llama, IDS, 6, seeds=[1, 2, 3])
    for seed, step in enumerate(last, 1):
        (*_, alone) = llama.generate(IDS, 6, seed=seed)
        assert step.id == alone.id
        torch.testing.assert_close(step.logits, alone.logits, **CLOSE)
    (*_, best) = beam_search(llama, IDS, 3, 4)
    log_p = by_hand(llama, [*IDS, *best.kept[0].ids])["logits"].log_softmax(-1)
    summed = sum(float(log_p[len(IDS) - 1 + i, id_]) for i, id_ in enumerate(best.kept[0].ids))
    assert best.kept[0].log_probability == pytest.approx(summed, abs=1e-4)


def test_a_past_keeps_a_turned_key_and_a_value_for_each_group(llama):
    t = llama.trace(IDS)
    past = Past(llama.model)
    forward.hidden(llama.model, torch.tensor([IDS]), past=past)
    torch.testing.assert_close(past.keys(1)[0], t["k_rot", 1], **CLOSE)
    torch.testing.assert_close(past.values(1)[0], t["v", 1], **CLOSE)
    assert past.nbytes == past_bytes(llama.config, len(IDS))
    assert past.nbytes * llama.config.n_heads // llama.config.n_kv_groups == (
        2 * 3 * len(IDS) * llama.config.n_heads * llama.config.head_dim * 4
    )
    # the order in memory is no part of it, but where a token was read is
    swapped = past.swapped(2, 5, keys=True)
    logits = [llama.next_logits([8], one) for one in (past, swapped)]
    torch.testing.assert_close(*logits, **CLOSE)
    further = forward.last_logits(llama.model, torch.tensor([[8]]), past.cut(len(IDS)), 40)
    assert (further - logits[0]).abs().max() > 1e-3


# ---- the fast path, and what is refused ----


def test_the_fast_path_is_not_its(llama, monkeypatch):
    bound = []
    block = llama.model.trf_blocks[0]

    def look(module, given):
        bound.append([m for m in llama.model.modules() if "forward" in m.__dict__])
        assert not kernels._this_thread.depth

    handle = block.register_forward_pre_hook(look)
    llama.trace(IDS)
    handle.remove()
    assert bound == [[]]
    assert not one_token.serves(llama.model, torch.tensor([[3]]))
    on = llama.trace(IDS)["final"]
    monkeypatch.setenv(kernels.SETTING, "off")
    assert torch.equal(llama.trace(IDS)["final"], on)


def test_a_config_must_be_the_models(llama):
    other = LlamaConfig.from_dict(llama.config.to_dict() | {"rope_base": 77.0})
    with pytest.raises(ValueError, match=r"the config has rope_base 77\.0, and the model"):
        LanguageModel(llama.model, llama.tokenizer, other, "wrong")
    with pytest.raises(ValueError, match=r"give LlamaConfig\.from_dict"):
        LanguageModel(llama.model, llama.tokenizer, random_lm().config, "wrong")
    with pytest.raises(ValueError, match="is a LlamaConfig: give a model of GPT-2's kind"):
        gpt2s(llama.config)
    assert "9 heads" in repr(llama) or "4 heads" in repr(llama)


def test_its_fingerprint_has_its_weights_and_how_it_turns():
    theirs = theirs_of("llama")
    config = LlamaConfig.from_dict(llamas.book_config(theirs))
    lm = LanguageModel(llamas.ours_of(theirs), get_encoding("mini"), config, "changed")
    t = lm.trace(IDS)
    with torch.no_grad():
        lm.model.trf_blocks[1].att.W_key.weight[0] *= 2
    with pytest.raises(ValueError, match="made by another model, or by this one before"):
        t.of(lm.model)
    turned = llamas.ours_of(theirs)
    for block in turned.trf_blocks:
        block.att.rope_base = 3.0
    assert fingerprint(turned) != fingerprint(llamas.ours_of(theirs))
