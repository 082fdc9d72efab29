"""What cannot be asked of the engine is answered with a sentence, which says what there is."""

import math
from functools import partial

import pytest
import torch

from gptviz import Edit, Plus, Reduction, Run
from gptviz.analysis import attribution
from gptviz.engine.beams import beam_search
from gptviz.engine.edit_values import checked
from gptviz.engine.generate import generate_batch
from gptviz.engine.given import ids_of
from gptviz.engine.sampling import Sampling, distribution, draw
from tests.conftest import random_lm

TEXT = "Hello there"
IDS = [5, 300, 77, 42]
LM = random_lm()
T = LM.trace(TEXT)
REDUCED = LM.trace(TEXT, keep=["attn"], reduce=[Reduction("z", "z", torch.sum)])
GRADIENT = LM.trace(IDS, keep=["z"], grad=5)
STEP = next(LM.generate(TEXT, 1, top_k=5, seed=1))
HALVED = Edit("z", 0, lambda z: z / 2)
BEAMS = partial(beam_search, LM)
IDS_OF = partial(ids_of, LM)
Z = partial(Edit, "z", 0)
BATCH = partial(generate_batch, LM, TEXT, 3)


def edited(*edits):
    return LM.trace(IDS, edits=edits)


REFUSED = [
    (lambda: BEAMS([], 1, 1), "empty"),
    (lambda: BEAMS(IDS, 0, 1), "beams is 0; it must be a whole number of 1 or more"),
    (lambda: BEAMS(IDS, 1, 0), "max_new_tokens is 0"),
    (lambda: BEAMS(IDS, 2, 2.5), "max_new_tokens is 2.5"),
    (lambda: BEAMS(IDS, 2, 3, -1), "dropped is -1"),
    (lambda: BATCH([]), "no seeds"),
    (lambda: BATCH(5), "seeds is 5"),
    (lambda: BATCH("12"), "seeds is '12'"),
    (lambda: STEP.candidates(1.5), "k is 1.5; it must be a whole number"),
    (lambda: STEP.candidates(0), "k is 0; it must be a whole number"),
    (lambda: STEP.candidates(True), "k is True; it must be a whole number"),
    (lambda: STEP.candidates(None), "k is None; it must be a whole number"),
    (lambda: STEP.candidates("2"), "k is '2'; it must be a whole number"),
    (lambda: IDS_OF(None), "text is None; give a text"),
    (lambda: IDS_OF(5), "text is 5"),
    (lambda: IDS_OF(b"abc"), "text is b'abc'"),
    (lambda: IDS_OF(["a"]), "'a', which is no whole number"),
    (lambda: IDS_OF([1, True]), "True, which is no whole number"),
    (lambda: IDS_OF(torch.tensor([1.0, 2.0])), "1.0, which is no whole number"),
    (lambda: IDS_OF(torch.tensor([[1, 2]])), r"shape \(1, 2\)"),
    (lambda: IDS_OF([3, 8192]), "token id 8192 given; random has ids 0 to 8191"),
    (lambda: IDS_OF([3, -1]), "token id -1 given"),
    (lambda: Run("", [1]), "model is ''"),
    (lambda: Run(None, [1]), "model is None"),
    (
        lambda: Run("m", "text"),
        r"ids is 'text'; give a list of token ids, such as lm.encode\(text\)",
    ),
    (lambda: Run("m", []), r"ids are \[\]: give at least one"),
    (lambda: Run("m", [1, -2]), "whole numbers from 0 on"),
    (lambda: Run("m", [1, 2.0]), "among the ids is 2.0, which is no whole number"),
    (lambda: Run("m", [1], "z.4.3=zero"), "give a list of them"),
    (lambda: Run("m", [1], [Edit("z")]), "needs a block"),
    (lambda: Run("m", [1], [Z("nought")]), "'nought'"),
    (lambda: Run("m", [1], [HALVED]), r"by a Python function.*lm.trace\(ids, edits="),
    (lambda: Sampling(temperature=-0.1), "temperature is -0.1"),
    (lambda: Sampling(temperature=math.nan), "temperature is nan"),
    (lambda: Sampling(temperature=math.inf), "temperature is inf"),
    (lambda: Sampling(temperature="hot"), "temperature is hot"),
    (lambda: Sampling(temperature=None), "temperature is None"),
    (lambda: Sampling(top_k=0), "top_k is 0"),
    (lambda: Sampling(top_k=2.5), "top_k is 2.5"),
    (lambda: Sampling(top_k=math.inf), "top_k is inf"),
    (lambda: Sampling(top_k=True), "top_k is True"),
    (lambda: Sampling(top_p=0), "top_p is 0"),
    (lambda: Sampling(top_p=1.01), "top_p is 1.01"),
    (lambda: Sampling(top_p=math.nan), "top_p is nan"),
    (lambda: Sampling(seed=1.5), "seed is 1.5"),
    (lambda: Sampling(seed=2**64), "seed is 18446744073709551616"),
    (lambda: Sampling(seed=-(2**63) - 1), r"from -2\^63 to 2\^64 - 1"),
    (lambda: distribution(torch.tensor([0.0, torch.nan])), "no distribution"),
    (lambda: distribution(torch.tensor([0.0, torch.inf])), "no distribution"),
    (lambda: distribution(torch.ones(2, 3)), r"one row of logits \(V,\), got .* \(2, 3\)"),
    (lambda: draw(distribution(torch.zeros(3)), 1.0), "the point is"),
    (lambda: draw(distribution(torch.zeros(3)), -0.1), "the point is"),
    (lambda: draw(distribution(torch.zeros(3)), math.nan), "the point is"),
    (
        lambda: T["attention", 0],
        r"no site 'attention' \(did you mean attn\?\); the sites are tok_emb",
    ),
    (lambda: T["attn", None], "needs a block, from 0 to 1"),
    (lambda: T["attn", 2], "no block 2; they go from 0 to 1"),
    (lambda: T["attn", -3], "no block -3"),
    (lambda: T["attn", True], "no block True"),
    (lambda: T["embed", 0], "outside the blocks"),
    (lambda: T["attn", 1, 0], r"\('attn', 1, 0\) is neither a site nor a site and a block"),
    (lambda: T.logits(99), "no position 99; they go from 0 to"),
    (lambda: T.next_tokens(k=0), "k is 0"),
    (lambda: T.holds(["atn"]), "no site 'atn'"),
    (lambda: T.grad, "this trace has no gradient"),
    (lambda: GRADIENT.cut(3).grad, "this trace has no gradient"),
    (lambda: GRADIENT.grad["q", 0], "there is no gradient of .'q', 0.; this trace has it of z"),
    (lambda: attribution(T, torch.nn.Linear(1, 1), 7), r"is no GPTModel: give lm or lm\.model"),
    (lambda: attribution(T, "mini", 7), r"is no GPTModel: give lm or lm\.model"),
    (lambda: LM.trace(IDS, grad=()), "grad is"),
    (lambda: LM.trace(IDS, grad=(1, 2, 3, 4)), "give token, .token, against. or"),
    (lambda: LM.trace(IDS, grad="two words"), "not one token of this model"),
    (lambda: LM.trace(IDS, grad=(5, 9999)), "grad is 9999; the ids go from 0"),
    (lambda: LM.trace(IDS, grad=(5, None, 4)), "there is no position 4"),
    (lambda: Reduction("", "attn", len), "name is ''"),
    (lambda: Reduction("x", "attn", 5), "has 5, which is no function"),
    (lambda: LM.trace("x", reduce=[Reduction("x", "atn", len)]), "no site 'atn'"),
    (
        lambda: LM.trace("x", reduce=[Reduction("x", s, len) for s in "qk"]),
        "two reductions are called 'x'",
    ),
    (lambda: T.reduced("x"), "this trace has no reduction 'x'"),
    (lambda: REDUCED.joined(LM.trace(TEXT + "!")), "their tokens differ"),
    (lambda: REDUCED.joined(random_lm(n_layers=3).trace(TEXT)), "their models differ"),
    (
        lambda: REDUCED.joined(random_lm(seed=1).trace(TEXT)),
        "two different models are called 'random'",
    ),
    (lambda: REDUCED.joined(LM.trace(TEXT, edits=[Z()])), "their edits differ"),
    (
        lambda: REDUCED.joined(LM.trace(TEXT, reduce=[Reduction("z", "v", torch.sum)])),
        "its own reduction 'z'",
    ),
    (lambda: Z(heads=1), "heads is 1; give a list"),
    (lambda: Z(heads="01"), "heads is '01'; give a list"),
    (lambda: Z(heads=["1"]), "heads has '1', which is no whole number"),
    (lambda: Z(positions=[True]), "positions has True"),
    (lambda: Z(positions=[0.5]), "positions has 0.5"),
    (lambda: Z(positions=[]), "positions is empty"),
    (lambda: Edit.parse(str(HALVED)), "is no edit: an edit's value is '<a"),
    (lambda: edited(HALVED).cut(1), r"z\.0=<a Python function> depends on the whole text"),
    (lambda: Plus(torch.ones(32).numpy()), "is a ndarray; give a trace, or a tensor"),
    (lambda: edited(Z(Plus(torch.full((1, 1, 8), torch.inf)))), "not finite"),
    (
        lambda: checked(torch.ones(1, 2, 5), "attn", weights=True),
        "position 3 look ahead at position 4",
    ),
    (lambda: LM.edited("z.9=zero"), "no block 9"),  # before there is a text
    (lambda: LM.edited("attn.0=hide64"), "no position 64"),
    (lambda: LM.edited("nonsense"), "is no edit"),
    (lambda: LM.edited("z.0@9=zero").generate(IDS, 3), "no position 9; they go from -4 to 3"),
    (lambda: LM.trace(IDS, edits="z.0=zero"), "give a list of them"),
    (lambda: LM.trace(IDS, edits=Z()), "give a list of them"),
    (lambda: LM.trace(IDS, edits=5), "give a list of them"),
    (lambda: edited(Z(random_lm(1, n_heads=8).trace(IDS))), "models of other sizes"),
    (lambda: edited(Z(LM.trace(IDS, keep=["q"]))), "was not kept in this trace"),
    (
        lambda: random_lm(1, vocab_size=20).edited("z.0=sample").trace(IDS[:1]),
        "no tokens for the sample",
    ),
]


@pytest.mark.parametrize(("ask", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_what_cannot_be_asked_is_a_sentence(ask, says):
    with pytest.raises(ValueError, match=says):
        ask()
