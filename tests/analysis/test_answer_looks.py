"""The attention that a head gives the answer, and what it writes for it, against torch hooks alone."""

from functools import partial

import numpy as np
import pytest
import torch

from gptviz.analysis.answer_looks import LOOKS, NAMES, answer_looks, attention_and_projection
from gptviz.analysis.logit_attribution import attributions
from gptviz.analysis.prompts import indirect_objects
from tests.analysis.written_out import Told
from tests.conftest import random_lm
from tests.llama_models import both

IDS = [5, 7, 9, 7, 12, 5]
MANY = [IDS, [7, 9, 9], [1, 2, 3, 4]]
TARGETS = [(7, 12), (9, 7), (1, 100)]


@pytest.mark.parametrize("position", [-1, 3])
def test_it_is_the_softmax_of_queries_and_keys(position):
    lm = random_lm(5)
    told = Told()
    table = answer_looks(lm, IDS, (7, 12), position, progress=told)
    trace = lm.trace(IDS)
    last = range(len(IDS))[position]
    for row in table.itertuples():
        q, k = (trace[site, row.block][row.head] for site in ("q", "k"))
        scores = k[: last + 1] @ q[last] / q.shape[-1] ** 0.5
        weights = torch.softmax(scores.double(), 0)
        assert row.to_answer == pytest.approx(float(weights[1] + weights[3]), abs=1e-5)
        expected = float(weights[4]) if last > 3 else 0
        assert row.to_against == pytest.approx(expected, abs=1e-5)
    assert len(table) == lm.config.n_layers * lm.config.n_heads and told.came_to(1)


def test_means_first_choices_and_what_is_not_there():
    lm = random_lm(5)
    many = answer_looks(lm, MANY, TARGETS)
    each = [answer_looks(lm, ids, aim) for ids, aim in zip(MANY, TARGETS, strict=True)]
    for name in LOOKS:
        values = np.stack([table[name] for table in each])
        assert np.allclose(many[name], values.mean(0))
        assert np.allclose(many[f"{name}_se"], values.std(0, ddof=1) / 3**0.5)
    assert not each[2]["to_against"].any()
    first = int(lm.trace(IDS).logits(-1).argmax())
    assert answer_looks(lm, IDS).equals(answer_looks(lm, IDS, first))
    assert not answer_looks(lm, IDS, 7)["to_against"].any()  # against nothing
    with pytest.raises(ValueError, match="target is twice"):
        answer_looks(lm, IDS, (7, 7))


def hooked(model, ids, modules):
    """What modules are given and give out for one text, by torch hooks: a pair of (T, ...) for each."""
    found = []
    hooks = [
        module.register_forward_hook(lambda _, args, out: found.append((args[0][0], out[0])))
        for module in modules
    ]
    try:
        with torch.no_grad():
            model(torch.tensor([ids]))
    finally:
        for hook in hooks:
            hook.remove()
    assert len(found) == len(modules)
    return found


def of_gpt2(lm, ids, at):
    """Of every head the weights (T,) and what it writes, along each row of the output head (V,): in torch."""
    blocks = lm.model.trf_blocks
    layers = [
        getattr(block.att, name) for block in blocks for name in ("W_query", "W_key", "out_proj")
    ]
    *found, (stream, _) = hooked(lm.model, ids, [*layers, lm.model.final_norm])
    x = stream[at].double()
    spread = ((x - x.mean()).pow(2).mean() + lm.model.final_norm.eps).sqrt()
    unembed = lm.model.out_head.weight.detach().double().T
    heads = {}
    for b, block in enumerate(blocks):
        (_, queries), (_, keys), (z, _) = found[3 * b : 3 * b + 3]
        for h in range(lm.config.n_heads):
            own = slice(h * lm.config.head_dim, (h + 1) * lm.config.head_dim)
            scores = queries[at, own] @ keys[: at + 1, own].T / lm.config.head_dim**0.5
            write = block.att.out_proj.weight.detach()[:, own].double() @ z[at, own].double()
            normed = (write - write.mean()) / spread * lm.model.final_norm.scale.detach().double()
            heads[b, h] = torch.softmax(scores.double(), 0), normed @ unembed
    return heads


def of_llama(theirs, ids, at):
    """The same of a Llama of transformers: groups of heads, RMSNorm, no bias."""
    layers = theirs.model.layers
    outputs = [layer.self_attn.o_proj for layer in layers]
    *found, (stream, _) = hooked(theirs, ids, [*outputs, theirs.model.norm])
    with torch.no_grad():
        patterns = theirs(torch.tensor([ids]), output_attentions=True).attentions
    norm = theirs.model.norm
    x = stream[at].double()
    spread = (x.pow(2).mean() + norm.variance_epsilon).sqrt()
    unembed = theirs.lm_head.weight.detach().double().T
    heads = {}
    for b, layer in enumerate(layers):
        z, _ = found[b]
        count = theirs.config.num_attention_heads
        width = z.shape[-1] // count
        for h in range(count):
            own = slice(h * width, (h + 1) * width)
            write = layer.self_attn.o_proj.weight.detach()[:, own].double() @ z[at, own].double()
            normed = write / spread * norm.weight.detach().double()
            heads[b, h] = patterns[b][0, h, at, : at + 1].double(), normed @ unembed
    return heads


def held_to(table, of, texts, targets, position=-1):
    """Every row of the table is what torch hooks give; there is one for each text, word and head."""
    count = 0
    for number, (ids, pair) in enumerate(zip(texts, targets, strict=True)):
        at = range(len(ids))[position]
        heads = of(ids, at)
        count += len(heads) * len(pair)
        for row in table[table["text"] == number].itertuples():
            wanted = pair[NAMES.index(row.name)]
            weights, logits = heads[row.block, row.head]
            places = [i for i in range(at + 1) if ids[i] == wanted]
            assert row.places == len(places)
            assert row.attention == pytest.approx(float(weights[places].sum()), abs=1e-5)
            assert row.projection == pytest.approx(float(logits[wanted] - logits.mean()), abs=1e-5)
    assert len(table) == count


@pytest.mark.parametrize("position", [-1, 1])
@pytest.mark.parametrize("biases", [True, False])
def test_of_a_gpt2_both_are_what_torch_hooks_give(position, biases):
    lm = random_lm(6, qkv_bias=biases, linear_bias=biases, norm_bias=biases)
    told = Told()
    table = attention_and_projection(lm, MANY, TARGETS, position, progress=told)
    held_to(table, partial(of_gpt2, lm), MANY, TARGETS, position)
    assert table["places"].max() == (2 if position == -1 else 1) and told.came_to(3)
    assert (table.loc[table["places"] == 0, "attention"] == 0).all()


def test_of_a_llama_both_are_what_transformers_gives():
    lm, theirs = both("llama")
    assert lm.config.n_kv_groups < lm.config.n_heads
    held_to(attention_and_projection(lm, MANY, TARGETS), partial(of_llama, theirs), MANY, TARGETS)


def test_of_two_names_the_bundled_model_has_heads_that_write_what_they_look_at(mini):
    prompts = indirect_objects(mini, 4, exchanged=True)
    texts = [prompt.text for prompt in prompts]
    table = attention_and_projection(mini, texts, [prompt.target for prompt in prompts])
    assert [*table["token"].unique()] == [*dict.fromkeys(w for p in prompts for w in p.target)]
    assert [*table.groupby("name")["places"].unique()] == [[1], [2]]  # the other one comes again
    ids = [mini.encode(text) for text in texts]
    pairs = [tuple(mini.encode(word)[0] for word in prompt.target) for prompt in prompts]
    held_to(table[table["text"] < 2], partial(of_gpt2, mini), ids[:2], pairs[:2])
    movers = table[(table["block"] == 5) & (table["head"] == 3)]
    assert len(movers) == 8 and np.corrcoef(movers["attention"], movers["projection"])[0, 1] > 0.5


def test_the_two_projections_make_the_contribution_to_the_difference():
    lm = random_lm(5)
    table = attention_and_projection(lm, IDS, (7, 12))
    answer, instead = (table[table["name"] == name].reset_index() for name in NAMES)
    whole = attributions(lm, IDS, (7, 12))
    of_heads = whole[whole["part"] == "head"]["contribution"].to_numpy()
    assert np.allclose(answer["projection"] - instead["projection"], of_heads, atol=1e-9)
    looks = answer_looks(lm, IDS, (7, 12))
    assert answer["attention"].equals(looks["to_answer"])
    assert instead["attention"].equals(looks["to_against"])
    alone = attention_and_projection(lm, IDS, 7)
    assert {*alone["name"]} == {"answer"}
    assert np.allclose(alone["projection"], answer["projection"])
    first = int(lm.trace(IDS).logits(-1).argmax())
    assert attention_and_projection(lm, IDS).equals(attention_and_projection(lm, IDS, first))


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        (IDS, (7, 7), "target is twice"),
        (IDS, [7, 9], "a list is for a list of texts"),
        (MANY, [7, 9], "3 texts and 2 targets"),
        (MANY, [7, 9, (5, 5)], "text 2: target is twice"),
        (IDS, " no such word", "target"),
    ],
)
def test_errors_are_sentences(text, target, message):
    with pytest.raises(ValueError, match=message):
        attention_and_projection(random_lm(5), text, target)
