"""What every edit does in a `reader`: against plain tensors, transformers' own hooks, the pass as it is."""

import copy
import gc
import re
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
import torch
from hypothesis import example, given, settings, strategies as st

from gptviz import Edit
from gptviz.engine import sample_means
from gptviz.engine.beams import beam_search
from gptviz.engine.edit_values import Plus, shuffled, without
from gptviz.engine.generate import generate_batch
from gptviz.engine.sample import windows
from gptviz.engine.sites import SITES, all_keys
from gptviz.engine.variants import variants
from gptviz.models.loading import load
from tests.conftest import random_lm
from tests.engine.test_edits import values
from tests.engine.test_trace import plain_forward
from tests.models.checkpoints import makers

IDS = [5, 300, 17, 17, 4000, 8, 300, 9]
OTHER = [7, 12, 12, 800, 5, 17, 3, 2, 1, 44]  # longer
SHORT = OTHER[:5]
LM = random_lm(5)


def written(ids):
    return "ids" + "+".join(map(str, ids))


TERM = re.compile(r"([+-])(?:([\d.]+)\*)?(tok|out|ids|mean)([\d]+(?:\+\d+(?![\d.]*\*))*)")


def texts_of(edit):
    """The ids of the other texts that an edit takes numbers from, as they are written."""
    return dict.fromkeys(re.findall(r"(?:ids|mean)(\d+(?:\+\d+(?![\d.]*\*))*)", edit.value))


def by_hand(edit, key, value, other):
    """The edited tensor, row by row, from the sentences of Edit's docstring and nothing of gptviz.

    `other` is what the site holds elsewhere: of "sample" a mean row, else the tensors of other texts.
    """
    new = value.clone()
    weights = SITES[edit.site].form == "weights"

    def term(kind, numbers, head, p):
        if kind in ("tok", "out"):
            return (LM.model.tok_emb if kind == "tok" else LM.model.out_head).weight[int(numbers)]
        from_there = other[numbers] if head is None else other[numbers][head]
        if kind == "mean":
            return sum(from_there) / len(from_there)
        return from_there[p] if p < len(from_there) else torch.zeros(from_there.shape[-1])

    count = value.shape[-2]
    name = edit.value
    heads = range(len(value)) if edit.heads is None else edit.heads
    rows = range(count) if edit.positions is None else {p % count for p in edit.positions}
    for head in heads if value.dim() == 3 else [None]:
        whole = value if head is None else value[head]
        for p in rows:
            row = torch.zeros_like(whole[p])
            if name == "uniform" or (name == "mean" and weights):
                row[: p + 1] = 1 / (p + 1)
            elif name == "mean":
                row = sum(whole[i] for i in range(count)) / count
            elif name == "first":
                row[0] = 1
            elif name == "previous":
                row[p - 1 if p else 0] = 1
            elif name.startswith("hide"):
                row = whole[p].clone()
                hidden = int(name[4:])
                if p > hidden:
                    row[hidden] = 0
                    # it looks at itself
                    row = row / row.sum() if row.any() else torch.eye(len(row))[p]
            elif name.startswith("shuffle"):
                row = whole[shuffled(count, int(name[7:]))[p]]
            elif name == "sample":
                row = other if head is None else other[head]
            elif name[0] == "x":
                row = float(name[1:]) * whole[p]
            elif name[0] in "+-":
                row = whole[p].clone()
                for sign, times, kind, numbers in TERM.findall(name):
                    row += float(sign + (times or "1")) * term(kind, numbers, head, p)
            elif name.startswith("ids"):
                (from_there,) = (there if head is None else there[head] for there in other.values())
                row = whole[p]
                if p < len(from_there):
                    row = from_there[p]
                    if weights:  # over as many keys as this text has
                        row = torch.cat([row[:count], torch.zeros(max(0, count - len(row)))])
            else:
                assert name == "zero"
            (new if head is None else new[head])[p] = row
    return new


@cache
def read_plainly(ids):
    return plain_forward(LM, list(ids))


@cache
def sampled(key):
    """The mean row of a site over the sample, of the twelve windows that are read of it."""
    found, _ = windows(LM.encode, LM.config.context_length, most=10**6)
    some = [found[i * len(found) // 12].ids for i in range(12)]
    return torch.cat([read_plainly(ids)[key] for ids in some], dim=-2).mean(dim=-2)


def there(edit, count):
    """What of it a text of so many tokens has; None for nothing."""
    if edit.value.startswith("hide") and int(edit.value[4:]) >= count:
        return None
    known = edit.known or count
    if edit.positions is None:
        return (
            edit
            if known >= count
            else Edit(edit.site, edit.block, edit.value, edit.heads, range(known))
        )
    places = [p for p in edit.positions if -count <= p < count]
    return Edit(edit.site, edit.block, edit.value, edit.heads, places) if places else None


def plainly(ids, edits, others=()):
    """The whole pass of LM with these edits, in plain tensors.

    `others` are the passes that the values of the first edits are taken from, where they are known.
    """
    others = list(others)
    for i, edit in enumerate(edits[len(others) :], len(others)):
        passes = {}
        for numbers in texts_of(edit):
            text = [int(number) for number in numbers.split("+")]
            before = [
                (here, other)
                for one, other in zip(edits[:i], others, strict=True)
                if numbers not in texts_of(one) and (here := there(one, len(text)))
            ]
            known = [one for one, _ in before], [other for _, other in before]
            passes[numbers] = plainly(text, *known) if before else read_plainly(tuple(text))
        others.append(passes)
    where = [
        (edit, other, (edit.site, b))
        for edit, other in zip(edits, others, strict=True)
        for b in edit.blocks(LM.config.n_layers) or (None,)
    ]

    def replace(key, value):
        for edit, other, at in where:
            if at == key:
                elsewhere = {numbers: there[key] for numbers, there in other.items()}
                value = by_hand(
                    edit, key, value, sampled(key) if edit.value == "sample" else elsewhere
                )
        return value

    return plain_forward(LM, ids, replace)


TEXTS = st.sampled_from(["7", "12+800", "+".join(map(str, SHORT)), "+".join(map(str, OTHER))])


@st.composite
def edits(draw):
    site = draw(st.sampled_from(list(SITES.values())))
    value = draw(
        values(site, st.integers(0, len(IDS) - 1), TEXTS, st.sampled_from(["0.25", "2", "3"]))
    )
    short = min(Edit(site.name, 0 if site.per_block else None, value).known or len(IDS), len(IDS))
    places = st.lists(
        st.integers(0 if short < len(IDS) else -len(IDS), short - 1), min_size=1, max_size=3
    )
    return Edit(
        site.name,
        draw(st.sampled_from([0, 1, "*"])) if site.per_block else None,
        value,
        draw(st.none() | st.lists(st.integers(0, 3), min_size=1, max_size=3))
        if site.form != "rows"
        else None,
        draw(st.none() | places),
    )


def same(trace, truth, atol=1e-3):
    for site, block in trace.sites():
        got = trace[site, block]
        scale = max(1.0, float(truth[site, block].abs().max()))
        assert (got - truth[site, block]).abs().max() <= atol * scale, (site, block)
    assert torch.allclose(trace.logits(-1), truth["logits"][-1], atol=5 * atol, rtol=atol)


def chain(*texts):
    """An example of edits that follow each other."""
    return example([Edit.parse(text) for text in texts])


# a text that begins alike: read with the edits that stand before it, where it has their place
NEARLY = written([*IDS[:5], 44, 45, 46])


@settings(max_examples=40)
@given(st.lists(edits(), min_size=1, max_size=3))
@chain("z.0.1=zero", f"resid_pre.1@3+6={NEARLY}")
@chain(f"resid_pre.1@6={NEARLY}", "z.0.1=zero")
@chain("attn.0=zero", "attn.0=hide0")
@chain("attn.*=hide1", f"mlp_out.1@0={NEARLY}", f"z.1@4={NEARLY}")
@chain(
    "z.0@1+6=zero",
    f"attn.0={NEARLY}",
    "attn.1=hide7",
    f"resid_mid.1={written(SHORT)}",
    f"z.1.0={NEARLY}",
)
def test_any_edits_are_those_of_the_forward_in_plain_tensors(some):
    trace = LM.trace(IDS, edits=[str(edit) for edit in some])
    same(trace, plainly(IDS, some))
    standing = LM.edited(*some[:1]).trace(IDS, edits=some[1:])
    assert torch.equal(standing.logits(-1), trace.logits(-1)) and standing.edits == tuple(some)


@pytest.mark.parametrize("value", ["zero", "mean"])
def test_muted_heads_are_those_of_transformers_hooks(value):
    """The second truth: GPT-2 of transformers with these weights, its own forward pre-hook at c_proj."""
    lm = random_lm(8, context_length=32)
    theirs = makers.in_transformers(lm.model, lm.config)
    d = lm.config.emb_dim // lm.config.n_heads
    for block in range(lm.config.n_layers):
        for heads in ([0], [1, 3], [0, 1, 2, 3]):

            def mute(_module, args, heads=heads):
                z = args[0].clone()  # (1, T, D)
                for head in heads:
                    part = z[..., head * d : (head + 1) * d]
                    part[:] = 0 if value == "zero" else part.mean(dim=1, keepdim=True)
                return (z,)

            handle = theirs.transformer.h[block].attn.c_proj.register_forward_pre_hook(mute)
            with torch.no_grad():
                expected = theirs(torch.tensor([IDS])).logits[0, -1]
            handle.remove()
            found = lm.trace(IDS, keep=[], edits=[Edit("z", block, value, heads)]).logits(-1)
            assert torch.allclose(found, expected, atol=2e-3, rtol=1e-3)
            assert not torch.allclose(found, lm.trace(IDS).logits(-1), atol=1e-2)


def test_a_batch_of_variants_is_a_pass_of_each(lm):
    texts = [["resid_post.1@3=+2*tok5-out9"], ["z.1.0+2=x-0.5", "mlp_out.1=sample"], ["z.1=x1"], []]
    choices = [list(map(Edit.parse, some)) for some in texts]
    changed = lm.edited("resid_pre.1@2=zero", "z.1.3=zero")  # before the block's own, and in it
    stream = changed.trace(IDS, keep=["resid_pre"])["resid_pre", 1]
    for most in (1, 2, len(texts)):
        finals = torch.cat(list(variants(changed, stream, 1, choices, most=most)))
        for some, final in zip(texts, finals, strict=True):
            assert torch.allclose(final, changed.trace(IDS, edits=some)["final"], atol=1e-4), some


@pytest.mark.parametrize(("ids", "dtype"), [(IDS, "bfloat16"), (list(range(3, 203)), "float32")])
def test_a_patch_of_a_text_into_itself_changes_no_bit(ids, dtype):
    lm = random_lm(4, context_length=256)
    lm.model.to(getattr(torch, dtype))
    plain = lm.trace(ids)
    for site in SITES.values():
        place = f"{site.name}.*" if site.per_block else site.name
        edit = f"{place}={written(ids)}"
        patched = lm.trace(ids, edits=[edit])
        for key in all_keys(lm.config):
            assert torch.equal(patched.rows(*key), plain.rows(*key)), (edit, key)
        block = 1 if site.per_block else None
        there = plain[site.name, block]
        for value in (plain, there):
            again = lm.trace(ids, keep=[], edits=[Edit(site.name, block, value)])
            assert torch.equal(again.logits(-1), plain.logits(-1)), (site.name, type(value))


def test_a_trace_or_a_tensor_of_it_is_the_same_as_its_ids(lm):
    other = lm.trace(OTHER)
    for site, block in (("z", 1), ("resid_mid", 0), ("attn", 1)):
        heads = None if site == "resid_mid" else [2]
        truth = lm.trace(IDS, edits=[Edit(site, block, written(OTHER), heads)])
        for value in (other, other[site, block]):
            edits = [Edit(site, block, value, heads)]
            assert torch.equal(lm.trace(IDS, edits=edits).logits(-1), truth.logits(-1))
            grown = lm.trace(IDS, edits=edits, after=lm.trace(IDS[:5], edits=edits))
            assert torch.allclose(grown.logits(-1), truth.logits(-1), atol=1e-4)
    row = torch.arange(lm.config.emb_dim).float()
    assert torch.equal(
        lm.trace(IDS, edits=[Edit("mlp_out", 0, row)])["mlp_out", 0], row.expand(len(IDS), -1)
    )
    assert Edit("mlp_out", 0, row) == Edit("mlp_out", 0, row) != Edit("mlp_out", 0, row.clone())


def test_a_tensor_into_which_something_was_written_is_another_edit(lm):
    value = torch.ones(32)
    edit = Edit("mlp_out", 1, value)
    before = lm.trace(IDS, edits=[edit])
    early = lm.trace(IDS[:5], edits=[edit])
    value.data.mul_(2)  # past autograd, which counts what is written
    after = lm.trace(IDS, edits=[edit], after=early)
    assert torch.equal(after["mlp_out", 1], value.expand(len(IDS), -1))
    assert torch.equal(before["mlp_out", 1], torch.ones(len(IDS), 32))


# ---- writing on, batches, threads ----

CHANGED = [
    ["z.0.1=zero"],
    ["attn.*=hide2", "attn.1.3=previous"],
    ["attn.0=first", "resid_mid.1@3=zero"],
    [f"resid_pre.1={written(OTHER)}", "z.0.2=sample"],
    ["mlp_out.0=mean"],
    ["pos_emb=shuffle4"],
    ["z.*.0@-1=zero"],
    ["resid_mid.0=zero", "mlp_out.0=zero"],
    [
        "resid_post.0=+3*tok17-0.5*out300+mean7+12",
        f"resid_pre.1=+2*{written(OTHER)}",
        "z.*.1=x-0.5",
    ],
]


@pytest.mark.parametrize("texts", CHANGED, ids=lambda texts: texts[0].split("=")[0])
def test_what_is_written_on_is_what_whole_passes_say(lm, texts):
    changed = lm.edited(*texts)
    ids = list(IDS)
    steps = list(changed.generate(IDS, 6, temperature=0))
    captured = list(changed.generate(IDS, 6, temperature=0, captured=True))
    for step, watched in zip(steps, captured, strict=True):
        logits = lm.trace(ids, keep=[], edits=texts).logits(-1)
        assert torch.allclose(step.logits, logits, atol=2e-3, rtol=1e-3)
        assert torch.allclose(watched.logits, logits, atol=2e-3, rtol=1e-3)
        ids.append(step.id)
    assert [step.id for step in steps] == [step.id for step in captured]
    singles = [[s.id for s in changed.generate(IDS, 4, seed=seed)] for seed in (1, 2)]
    batch = list(generate_batch(changed, IDS, 4, seeds=[1, 2]))
    assert singles == [[steps[row].id for steps in batch] for row in (0, 1)]
    best = beam_search(changed, IDS, 3, 3)[-1].kept[0]
    ln = 0.0
    for i, token in enumerate(best.ids):
        row = lm.trace([*IDS, *best.ids[:i]], keep=[], edits=texts).logits(-1).double()
        ln += float(row.log_softmax(0)[token])
    assert best.log_probability == pytest.approx(ln, abs=2e-3)


def test_thirty_threads_with_different_edits_each_get_their_own_numbers(lm):
    nulls = ("zero", "mean", "sample")
    models = [
        lm.edited(f"z.{i % 2}.{i % 4}={nulls[i % 3]}", f"attn.*=hide{i % 5}") for i in range(30)
    ]

    def both(model):
        return model.trace(IDS, keep=[]).logits(-1), [
            s.id for s in model.generate(IDS, 4, temperature=0)
        ]

    alone = [both(model) for model in models]
    assert len({logits.sum().item() for logits, _ in alone}) >= 25
    with ThreadPoolExecutor(30) as pool:
        together = list(pool.map(both, models))
    for (one, ids), (other, same_ids) in zip(alone, together, strict=True):
        assert torch.equal(one, other) and ids == same_ids
    assert torch.equal(
        lm.trace(IDS, keep=[]).logits(-1), random_lm().trace(IDS, keep=[]).logits(-1)
    )
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in lm.model.modules())


# ---- the sample ----


def test_the_means_are_worked_out_once_for_the_weights_as_they_are(monkeypatch):
    lm = random_lm(2)
    texts = []
    texts_of = sample_means._texts
    monkeypatch.setattr(sample_means, "_texts", lambda *given: texts.append(1) or texts_of(*given))
    changed = lm.edited("z.1.2=sample", f"z.1.1={written(OTHER)}")
    first = changed.trace(IDS)["z", 1]
    assert torch.equal(first[2, 0], first[2, 5])  # the same at every position, and in every text
    assert torch.equal(changed.trace(OTHER)["z", 1][2, 0], first[2, 0])
    lm.edited("mlp_out.0=sample").trace(IDS)
    assert len(texts) == 1
    # past autograd, which counts what is written
    lm.model.trf_blocks[0].ff.layers[2].weight.data.mul_(1.5)
    now = changed.trace(IDS)["z", 1]
    fresh = copy.deepcopy(lm).edited(*changed.edits).trace(IDS)["z", 1]
    assert torch.equal(now, fresh) and len(texts) == 3
    for head in (1, 2):
        assert not torch.allclose(now[head, 0], first[head, 0], atol=1e-3)


def test_reading_the_sample_can_be_stopped_goes_on_and_is_shared(monkeypatch, tmp_path):
    whole = random_lm(2)
    lm = random_lm(2)
    wanted = sample_means.sample_means(whole)
    monkeypatch.setenv("GPTVIZ_CACHE_DIR", str(tmp_path))
    told = []

    def stop(done, of):
        told.append((done, of))
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_means.sample_means(lm, stop)
    assert told == [(i, 12) for i in range(1, 6)]
    with ThreadPoolExecutor(2) as both:
        list(both.map(lm.edited("z.1=sample").trace, (IDS, OTHER)))
    found = sample_means.sample_means(lm, pytest.fail)
    assert found.keys() == wanted.keys() and all(
        torch.equal(found[key], wanted[key]) for key in wanted
    )
    told.clear()
    # as another process has it, which reads no text
    on_disk = sample_means.sample_means(random_lm(2), stop)
    assert told == [(12, 12)] and all(torch.equal(on_disk[key], wanted[key]) for key in wanted)
    other = random_lm(2)
    with torch.no_grad():
        other.model.tok_emb.weight[0, 0] += 1
    sample_means.sample_means(other, lambda done, of: told.append(done))
    assert told[1:] == list(range(1, 13))


def test_what_is_kept_of_a_model_goes_with_it():
    lm = random_lm(2)
    lm.edited("z.1=sample", f"z.0={written(OTHER)}").trace(IDS)
    gone = weakref.ref(lm.model)
    del lm
    gc.collect()
    assert gone() is None


# ---- what cannot be is a sentence ----


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ("attn.0=hide8", "no position 8; they go from 0 to 7"),
        ("resid_mid.0=+tok5-2*tok8192", "no token id 8192; they go from 0 to 8191"),
        ("z.0@6=ids5+6", "position 6 has no value: the other text has values for 2 of 8"),
        ("z.0@-1=ids5+6", "position -1 has no value"),
        (f"z.0=+mean{written([1] * 65)[3:]}", "65 ids are more than the 64 the model reads"),
        ("z.2=zero", "no block 2; they go from 0 to 1"),
        ("z.*.4=zero", "no head 4; they go from 0 to 3"),
        (Edit("z", 0, torch.zeros(3, 8, 8)), "does not fit; the model has"),
        (
            Edit("z", 0, torch.zeros(4, 3, 8)),
            "tensor has values for 3 of 8 positions: give 'z' a row for each",
        ),
        (
            Edit("z", 0, torch.zeros(4, 3, 8), positions=[7]),
            "position 7 has no value: the tensor has values for 3",
        ),
        (Edit("z", 0, torch.full((4, 8, 8), torch.nan)), "numbers that are not finite"),
        (Edit("z", 0, lambda z: z / 0), "numbers that are not finite"),
        (Edit("attn", 0, torch.full((4, 8, 8), 1 / 8)), "position 0 look ahead at position 1"),
        (Edit("z", 0, 7), "edit's value is 7; it must be one of"),
        (Edit("attn", 0, torch.ones(4, 1, 1)), "tensor has values for 1 of 8"),
        (Edit("attn", "*", "sample"), "would give rows of no text"),
        (3, "3 is no edit"),
        (Edit("z", 0, Plus(torch.zeros(5, 8, 8))), "does not fit; the model has"),
        (Edit("z", 0, (7,)), "edit's value is .7,.; it must be one of"),
    ],
)
def test_bad_edits_are_sentences(lm, edit, says):
    with pytest.raises(ValueError, match=says):
        lm.trace(IDS, edits=[edit])


def test_a_model_reads_the_part_of_the_sample_it_has_the_ids_of():
    lacking = max(windows(LM.encode, 64)[0][0].ids)  # one id of the sample's first window
    random_lm(1, vocab_size=lacking).edited("z.0=sample").trace([1, 2, 3])


def test_edits_are_the_models_and_plain_is_without(lm):
    changed = lm.edited("z.0.1=zero").edited(Edit("mlp_out", 1, "mean"))
    assert [str(edit) for edit in changed.edits] == ["z.0.1=zero", "mlp_out.1=mean"]
    assert (
        changed.plain == lm and lm.plain is lm and lm.edited() is lm and changed.model is lm.model
    )
    assert not changed.is_causal and lm.edited("z.0.1=zero").is_causal
    assert torch.equal(changed.plain.trace(IDS).logits(-1), lm.trace(IDS).logits(-1))
    assert load("mini").edits == ()


# ---- a hidden token ----


@pytest.mark.parametrize("changes", [{}, {"qkv_bias": False, "linear_bias": False}, {"n_heads": 1}])
def test_a_hidden_token_is_one_that_the_causal_mask_hides(changes):
    """The book's own lines, the mask hiding it from what comes later."""
    for place in range(5):
        lm = random_lm(6, n_layers=3, **changes)
        got = lm.trace(IDS, edits=[f"attn.*=hide{place}"]).logits(6)
        assert (got - lm.trace(IDS).logits(6)).abs().max() > 0.02  # it is not nothing
        hidden = torch.ones(len(IDS), len(IDS), dtype=torch.bool).triu(1)
        hidden[place + 1 :, place] = True
        for block in lm.model.trf_blocks:
            block.att.mask = lambda num_tokens, device, hidden=hidden: hidden
        with torch.no_grad():
            assert torch.allclose(got, lm.model(torch.tensor([IDS]))[0, 6], atol=2e-4)


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 6),
    place=st.integers(0, 5),
    sharp=st.floats(0.1, 40),
)
def test_weights_without_a_token_are_a_softmax_without_its_score(seed, size, place, sharp):
    place = min(place, size - 1)
    scores = sharp * torch.randn(2, size, size, generator=torch.Generator().manual_seed(seed))
    scores.masked_fill_(torch.ones(size, size, dtype=torch.bool).triu(1), -torch.inf)
    hidden = scores.clone()
    hidden[:, place + 1 :, place] = -torch.inf
    weights = torch.softmax(scores, dim=-1)
    wanted = torch.softmax(hidden, dim=-1)
    got = without(weights, place)  # else float32 has nothing of others left
    told = weights[..., place] < 1
    told[:, : place + 1] = True
    assert torch.allclose(got[told], wanted[told], atol=1e-5)
    assert torch.allclose(got.sum(dim=-1), torch.ones(2, size), atol=1e-5)
    assert torch.equal(got[:, : place + 1], weights[:, : place + 1])


def test_a_row_that_saw_nothing_else_looks_at_itself():
    weights = torch.tensor([[1.0, 0, 0], [1.0, 0, 0], [0.5, 0.25, 0.25]])
    assert without(weights, 0).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]]
