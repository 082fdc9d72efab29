"""What a careless user gives is refused in a sentence, whoever's numbers, lists and objects it is."""

import copy
import pickle

import numpy as np
import pytest
import torch

import gptviz
from gptviz.analysis.prompts import indirect_objects
from gptviz.analysis.repetition import loop, share_along
from gptviz.analysis.surgery import Operation, surgery
from gptviz.engine.beams import beam_search

TEXT = "The cat sat"
ONE = torch.tensor([1.0, 2.0])


@pytest.fixture(scope="module")
def t(lm):
    return lm.trace(TEXT, grad=" on")


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda lm, t: lm.encode(5), "text is 5; give a string"),
        (lambda lm, t: lm.encode(["a", "b"]), "text is ['a', 'b']; give a string"),
        (lambda lm, t: lm.decode("The"), "ids is 'The'; give a list of token ids"),
        (lambda lm, t: lm.decode([None]), "among the ids is None"),
        (lambda lm, t: lm.tokens(5), "ids is 5; give a list"),
        (lambda lm, t: lm.next_logits(TEXT), "ids is 'The cat sat'; give a list"),
        (lambda lm, t: lm.traces(TEXT), "texts is 'The cat sat'; give a list"),
        (lambda lm, t: lm.traces([TEXT], 2.5), "at_a_time is 2.5; it must be a whole number"),
        (lambda lm, t: lm.trace(TEXT, keep=5), "keep is 5; give a list of sites"),
        (lambda lm, t: lm.trace(TEXT, at_once=5), "at_once is 5; give a list of sites"),
        (lambda lm, t: lm.trace(TEXT, edits=torch.tensor(2)), "edits is tensor(2); give a list"),
        (lambda lm, t: lm.trace(TEXT, reduce="x"), "reduce is 'x'; give a list"),
        (lambda lm, t: lm.trace(TEXT, reduce=[None]), "reduce is None; give a list"),
        (lambda lm, t: lm.trace(TEXT, after="x"), "after is 'x'; give an earlier trace"),
        (lambda lm, t: lm.trace(TEXT, grad=ONE), "grad is tensor([1., 2.]); give a token's id"),
        (lambda lm, t: lm.generate(TEXT, 1, stop=np.array(3)), "stop is array(3); give a string"),
        (lambda lm, t: lm.patching(TEXT, TEXT, sites=5), "sites is 5; they are resid_pre"),
        (lambda lm, t: t.cut("x"), "cannot be cut to 'x'"),
        (lambda lm, t: t.cut(1.5), "cannot be cut to 1.5"),
        (lambda lm, t: t.rows("attn", 1, 0.5), "there is no position 0.5; give a whole number"),
        (lambda lm, t: t[["z"], 3], "there is no site ['z']; the sites are"),
        (lambda lm, t: t.grad[5], "5 is neither a site nor a site and a block"),
        (lambda lm, t: t.joined(5), "other is 5; give a trace"),
        (lambda lm, t: t.holds(reduce=5), "reduce is 5; give a list"),
        (lambda lm, t: t.logit_lens(None), "there is no position None"),
        (lambda lm, t: t.next_tokens(position=None), "there is no position None"),
        (
            lambda lm, t: t.attribution(np.array([1, 2])),
            "token is array([1, 2]); give a token's id",
        ),
        (lambda lm, t: gptviz.analysis.attribution(lm, t, " on"), "trace is LanguageModel"),
        (lambda lm, t: gptviz.Plus(t, None), "factor is None; it must be a finite number"),
        (
            lambda lm, t: gptviz.LanguageModel("mini", None, None, ""),
            "model is 'mini'; give a GPTModel",
        ),
        (
            lambda lm, t: gptviz.LanguageModel(lm.model, lm.tokenizer, {}, ""),
            "config is {}; give GPTConfig",
        ),
        (lambda lm, t: beam_search("mini", TEXT, 2, 2), "lm is 'mini'; give a model"),
        (lambda lm, t: loop(5), "ids is 5; give a list"),
        (lambda lm, t: share_along([1, 2], 0.5, 1), "start is 0.5; it must be a whole number"),
        (lambda lm, t: surgery(lm, TEXT, 5), "operation is 5; give one"),
        (lambda lm, t: Operation("delete", "x"), "there is no position 'x'; give a whole number"),
        (lambda lm, t: indirect_objects(lm, 2.5), "count is 2.5; it must be a whole number"),
        (lambda lm, t: pickle.dumps(t), "belongs to a model in memory, and cannot be pickled"),
    ],
)
def test_it_says_what_was_given_and_what_to_give(lm, t, ask, sentence):
    with pytest.raises(ValueError) as refused:
        ask(lm, t)
    assert sentence in str(refused.value)


def test_numpys_whole_numbers_are_whole_numbers():
    small = {"vocab_size": 50257, "context_length": 8, "emb_dim": 4, "n_heads": 2, "n_layers": 1}
    sizes = {name: np.int64(size) for name, size in small.items()}
    assert gptviz.GPTConfig(**sizes) == gptviz.GPTConfig(**small)
    assert gptviz.GPTConfig(**sizes).to_dict()["n_heads"].__class__ is int
    model = gptviz.GPTModel(gptviz.GPTConfig(**small))
    assert gptviz.wrap(model, n_heads=np.int64(2)).config.n_heads == 2


def test_a_temperature_beyond_torchs_whole_numbers_is_still_one(t):
    hot = t.next_tokens(1, temperature=2**70)["probability"].item()
    assert hot == pytest.approx(1 / t.config.vocab_size)


def test_a_gradient_is_the_same_in_inference_mode(lm, t):
    with torch.inference_mode():
        asked = lm.trace(TEXT, grad=" on")
    assert torch.equal(asked.grad["z", 0], t.grad["z", 0])


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_trace_is_asked_as_the_trace_is(t, copied):
    assert torch.equal(copied(t).logits(), t.logits())
    assert copied({"now": t})["now"].attribution(" on").equals(t.attribution(" on"))
