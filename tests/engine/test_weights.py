"""A trace belongs to the weights that made it, and so does all that is kept of a model."""

import copy
import dataclasses
import importlib
import inspect
import pkgutil

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import gptviz.analysis
from gptviz import LanguageModel
from gptviz.analysis import circuit, jacobian_lens, knock_out, logit_lens, patching
from gptviz.analysis.activation_patching import Ends
from gptviz.analysis.patches import patches_of
from gptviz.analysis.readings import word_reading
from gptviz.engine import forward
from gptviz.engine.beams import beam_search
from gptviz.engine.past import Past
from gptviz.engine.sampling import AS_IT_IS
from gptviz.engine.weights import PerWeights, fingerprint
from tests.conftest import random_lm

IDS = [5, 17, 99, 5, 17, 301]


def public():
    """Every public function of gptviz.analysis that is given both a trace and a model."""
    found = []
    for module in pkgutil.iter_modules(gptviz.analysis.__path__):
        name = f"gptviz.analysis.{module.name}"
        for function in vars(importlib.import_module(name)).values():
            if (
                not inspect.isfunction(function)
                or function.__module__ != name
                or function.__name__[0] == "_"
            ):
                continue
            if function.__name__ == "of_model":  # which marks them
                continue
            given = {str(p.annotation) for p in inspect.signature(function).parameters.values()}
            has_trace = any("Trace" in one for one in given)
            if has_trace and any("GPTModel" in one or "LanguageModel" in one for one in given):
                found.append(function)
    return found


def asked(function, lm, trace, **instead):
    """Call it with something for each parameter that has no default; what it yields is taken from it."""
    values = {
        "trace": trace, "t": trace, "own": trace, "source": trace, "model": lm.model, "lm": lm,
        "token": 7, "block": 1, "head": 1, "position": 3, "at": 3, "address": "block.1.head.1", "query": 3,
        "key": 1, "positions": torch.tensor([1, 3]), "start": 0, "stop": 2, "ids": [5],
        "name": "final", "baseline": "mean", "patches": patches_of(lm.config, len(IDS), ["z", "resid_pre"]),
        "reading": READING, "writes": torch.ones(2, lm.config.emb_dim), "chosen": [0, 1],
        "activations": [1.0, 2.0], "k": 3, "unit": 2, "quantity": "variance", "sampling": AS_IT_IS,
        "dimension": 2, "text": lm.decode(IDS), "ends": Ends(7, 8, 2.0, 1.0), "sites": ["z"],
        "carry": lambda _, stream: stream, "row": torch.ones(1, 1), "values": torch.ones(1, 1, 1), "by": "V",
        "pair": (7, 8),
        "direction": torch.linspace(-1, 1, lm.config.emb_dim, dtype=torch.float64),
    }  # fmt: skip
    needed = [
        n
        for n, p in inspect.signature(function).parameters.items()
        if p.default is p.empty or n == "own"
    ]
    values |= instead
    *first, last = needed  # both ways to give an argument
    result = function(*(values[name] for name in first), **{last: values[last]})
    return list(result) if inspect.isgenerator(result) else result


LM = random_lm(qkv_bias=False)
TRACE = LM.trace(IDS)
READING = word_reading(TRACE, LM.model, 7, position=3)
if jacobian_lens.known(LM) is None:
    jacobian_lens.keep(jacobian_lens.fit(LM, [IDS], skip=1))


def scaled():
    lm = random_lm(qkv_bias=False)
    trace = lm.trace(IDS)
    lm.model.trf_blocks[0].att.W_value.weight.data.mul_(5)
    return lm, trace


@pytest.mark.parametrize("function", public(), ids=lambda f: f"{f.__module__[16:]}.{f.__name__}")
def test_what_takes_a_trace_and_a_model_refuses_those_that_do_not_belong_together(function):
    asked(function, LM, TRACE)
    for lm, trace in ((random_lm(1, qkv_bias=False), TRACE), scaled()):
        with pytest.raises(ValueError, match="trace the text again"):
            asked(function, lm, trace)


def numbers(value):
    """All numbers in a result, one after the other."""
    if isinstance(value, torch.Tensor | np.ndarray | pd.DataFrame | pd.Series):
        return [np.asarray(value).tolist()]
    if dataclasses.is_dataclass(value):
        return numbers([*vars(value).values()])
    return (
        [n for one in value for n in numbers(one)] if isinstance(value, list | tuple) else [value]
    )


@pytest.mark.parametrize("function", public(), ids=lambda f: f"{f.__module__[16:]}.{f.__name__}")
def test_a_place_can_be_any_whole_number_and_count_from_the_end(function):
    last = {"block": torch.tensor(-1), "head": np.int64(-3), "position": 3 - len(IDS)}
    if {*last} & {*inspect.signature(function).parameters}:
        found = numbers(asked(function, LM, TRACE, **last))
        assert repr(found) == repr(numbers(asked(function, LM, TRACE)))


def test_the_walk_meets_them():
    assert len(public()) >= 20 and logit_lens in public()


def test_a_trace_goes_on_and_is_joined_with_its_own_weights_only():
    lm, trace = scaled()
    for attempt in (
        lambda: lm.trace([*IDS, 3], after=trace),
        lambda: trace.past(lm.model),
        lambda: trace.joined(lm.trace(IDS)),
        lambda: random_lm(1, qkv_bias=False).trace([*IDS, 3], after=TRACE),
    ):
        with pytest.raises(ValueError, match=r"again|cannot be joined"):
            attempt()
    assert torch.equal(trace.logits(-1), TRACE.logits(-1))  # the output head is what it was


def test_logits_and_norms_are_those_of_the_pass_or_none():
    lm = random_lm()
    trace = lm.trace(IDS)
    norms = lm.trace(IDS).norms()
    short = trace.cut(3)
    lm.model.final_norm.scale.data.mul_(5)
    assert trace.norms().equals(norms) and not lm.trace(IDS).norms().equals(norms)
    lm.model.out_head.weight.data.mul_(5)
    for old in (trace, short, trace.cut(2)):
        with pytest.raises(ValueError, match="output head was changed"):
            old.logits(-1)
    assert lm.trace(IDS).logits(-1).shape == (lm.config.vocab_size,)


def test_what_is_made_once_for_weights_is_made_anew_when_they_change():
    model = random_lm().model
    made = []
    kept = PerWeights()

    def make():
        made.append(len(made))
        return made[-1]

    assert [kept.get(model, make) for _ in range(3)] == [0, 0, 0]
    model.final_norm.shift.data.add_(1)
    assert [kept.get(model, make) for _ in range(2)] == [1, 1]
    assert kept.get(random_lm().model, make) == 2 and kept.get(model, make) == 1


def test_a_past_is_read_on_by_the_weights_that_made_it():
    lm = random_lm()
    past = Past(lm.model)
    new = torch.tensor([IDS])
    lm.model.tok_emb.weight.data.mul_(2)  # nothing is in it yet
    forward.last_logits(lm.model, new, past)
    lm.model.tok_emb.weight.data.mul_(2)
    for held in (past, past.cut(3), past.rows([0])):
        with pytest.raises(ValueError, match="read the text again"):
            forward.last_logits(lm.model, new, held)
    assert len(past) == len(IDS)
    forward.last_logits(lm.model, new, past.cut(0))
    steps = lm.generate(IDS, 3)
    next(steps)
    lm.model.pos_emb.weight.data.mul_(2)
    with pytest.raises(ValueError, match="read the text again"):
        next(steps)


def test_the_fingerprint_sees_every_tensor_changed_in_every_way():
    lm = random_lm(emb_dim=64, n_heads=16)
    model = lm.model
    seen = {fingerprint(lm.model)}

    def is_new():
        now = fingerprint(model)
        assert now not in seen and fingerprint(model) == now
        seen.add(now)

    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is None:
                continue
            parameter.data.mul_(1.5)
            parameter.data += 0.1  # a bias of 0
            is_new()
            with torch.no_grad():
                parameter.view(-1)[1] += 1
            is_new()
            parameter.data = parameter.data.clone()
            is_new()
            setattr(module, name, nn.Parameter(parameter.detach().clone()))
            is_new()
    for head in range(16):  # a head switched off by its weights, of any of the four
        for layer in ("W_query", "W_key", "W_value"):
            model.trf_blocks[1].att.get_submodule(layer).weight.data[4 * head : 4 * head + 4] = 0
            is_new()
        model.trf_blocks[1].att.out_proj.weight.data[:, 4 * head : 4 * head + 4] = 0
        is_new()
    model.trf_blocks[0] = copy.deepcopy(model.trf_blocks[0])
    is_new()
    model.out_head.weight.data[:] = torch.nan  # which is not equal to itself
    is_new()
    model.bfloat16()
    is_new()


def test_a_model_that_is_loaded_again_is_the_same(mini):
    again = gptviz.load("mini")
    assert fingerprint(again.model) == fingerprint(mini.model)
    trace = mini.trace("The cat sat")
    assert torch.equal(logit_lens(trace, again.model)[-1], trace.logits(-1))
    assert fingerprint(gptviz.load("mini", dtype="bfloat16").model) != fingerprint(mini.model)


BROKEN = {
    "the output head": lambda lm: lm.model.out_head.weight.data[3, 5],
    "a feed-forward": lambda lm: lm.model.trf_blocks[1].ff.layers[2].weight.data[0, 0],
}


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
@pytest.mark.parametrize("where", BROKEN)
def test_what_is_no_number_is_said_and_never_ranked(where, number):
    lm = random_lm()
    trace = lm.trace(IDS)
    BROKEN[where](lm).fill_(number)
    for attempt in (
        lambda: beam_search(lm, IDS, 2, 2),
        lambda: knock_out(lm, IDS, 7),
        lambda: lm.trace(IDS).logits(-1),
        lambda: logit_lens(lm.trace(IDS), lm.model),
        lambda: patching(lm, IDS, [*IDS[:-1], 8]),
        lambda: circuit(lm, IDS, 7),
        lambda: list(lm.generate(IDS, 2)),
        lambda: forward.logits_of(lm.model, trace["final"]) if "head" in where else lm.trace(IDS),
    ):
        with pytest.raises(ValueError, match="NaN or infinity"):
            attempt()


def test_a_config_that_is_not_the_models_is_refused(lm):
    wrong = {
        "n_heads": 8, "n_layers": 3, "context_length": 65, "vocab_size": 8191, "emb_dim": 64,
        "qkv_bias": False, "linear_bias": False, "norm_bias": False, "tie_embeddings": True,
        "activation": "gelu", "norm_eps": 1e-6,
    }  # fmt: skip
    for name, value in wrong.items():
        config = dataclasses.replace(lm.config, **{name: value})
        with pytest.raises(ValueError, match=f"the config has {name} "):
            LanguageModel(lm.model, lm.tokenizer, config, "wrong")
        right = random_lm(**{name: value})  # built with it, it is right
        assert (
            LanguageModel(right.model, right.tokenizer, right.config, "right").config[name] == value
        )
