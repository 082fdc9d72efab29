"""Whoever writes into what was handed out changes a copy, and nothing that is kept."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import gptviz
from gptviz.engine import sites
from gptviz.engine.sites import all_keys
from tests.asked import IDS, OTHER, REDUCED, bits, leaves, of_grad, of_model, of_trace_itself
from tests.conftest import random_lm

LM = random_lm()


def spoil(found: Any) -> None:
    """Write into every tensor, array, table, list and dict of a result, in the ways that torch counts not."""
    for _, leaf in leaves(found):
        if isinstance(leaf, torch.Tensor):
            leaf = leaf.detach().numpy()
        if isinstance(leaf, np.ndarray) and leaf.flags.writeable and not leaf.dtype.hasobject:
            leaf[...] = np.full_like(leaf, 7)
    if isinstance(found, pd.DataFrame | pd.Series):
        found.iloc[:] = found.iloc[::-1].to_numpy()
    elif isinstance(found, Mapping):
        found.clear()  # type: ignore[attr-defined]
    elif isinstance(found, list):
        found.clear()


def kept_by(t: gptviz.Trace) -> dict[str, Any]:
    """All that a trace and its model hold, to the bit."""
    own = t.uncopied()
    weights = dict(t.lm.model.state_dict())
    return bits(
        [{key: own.pieces(key).joined() for key in t.sites()}, own.tokens, weights, own._reduced]
    )


def lean(monkeypatch: pytest.MonkeyPatch) -> gptviz.Trace:
    monkeypatch.setattr(sites, "SMALL", 0)
    t = LM.trace(IDS)
    assert len(t.sites()) > len(list(t.held)), "it works blocks out"
    return t


def in_pieces() -> gptviz.Trace:
    t = LM.trace(IDS[:4])
    for end in (5, 9, 12):
        t = LM.trace(IDS[:end], after=t)
    return t


MADE = {
    "whole": lambda _: LM.trace(IDS, reduce=REDUCED),
    "in pieces": lambda _: in_pieces(),
    "lean": lean,
    "cut": lambda _: LM.trace([*IDS, 3, 4]).cut(len(IDS)),
    "joined": lambda _: LM.trace(IDS, keep=["attn", "k", "v"]).joined(LM.trace(IDS)),
    "released": lambda _: LM.trace(IDS).released(),
    "of many": lambda _: LM.traces([IDS, OTHER[:5]], 2)[0],
}


@pytest.mark.parametrize("made", MADE)
def test_a_trace_is_as_it_was_whatever_is_written_into_what_it_hands_out(made, monkeypatch):
    t = MADE[made](monkeypatch)
    calls = [
        call
        for call in of_trace_itself(t)
        if made == "whole" or not call[0].startswith("t.reduced")
    ]
    assert {key[0] for key in t.sites()} == set(sites.SITES), "all sites"
    before = kept_by(t)
    answers = {name: bits(ask()) for name, ask in calls}
    for name, ask in calls:
        spoil(ask())
        assert bits(ask()) == answers[name], name
    assert kept_by(t) == before
    longer = LM.trace([*IDS, 3], after=t)
    assert (
        torch.equal(longer.logits(), LM.trace([*IDS, 3], after=LM.trace(IDS)).logits())
        or made != "whole"
    )


def test_all_that_is_asked_of_a_model_and_a_trace_is_the_same_afterwards(monkeypatch):
    t = LM.trace(IDS)
    before = kept_by(t)
    for name, ask in of_model(LM, t):
        first = ask()
        answer = bits(first)
        assert answer, name
        spoil(first)
        assert bits(ask()) == answer, name
        assert kept_by(t) == before, name


def test_the_usual_step_before_plotting():
    t = LM.trace(IDS)
    shares = t.source_tokens(5)
    last = LM.trace([*IDS, 3], after=t).logits(-1)
    attn = t["attn", 1]
    attn[:, :, 0] = 0
    attn.numpy()[:] = 0
    assert t["attn", 1][:, :, 0].min() > 0
    assert torch.equal(t.source_tokens(5), shares)
    assert torch.equal(LM.trace([*IDS, 3], after=t).logits(-1), last)


def test_a_gradient_is_as_it_was():
    t = LM.trace(IDS, grad=(5, 9))
    before = bits(of_grad(t))
    spoil(of_grad(t))
    assert bits(of_grad(t)) == before
    assert t.grad.sites() == all_keys(LM.config)


def test_a_written_token_is_as_it_was():
    step = next(LM.generate(IDS, 1, temperature=0.7, seed=1))
    before = bits([step.candidates(5), step.logits])
    step.logits.numpy()[:] = 0
    assert bits([step.candidates(5), step.logits]) == before


@pytest.mark.parametrize(
    "write", [lambda x: x.mul_(0), lambda x: x.numpy().fill(0), lambda x: x.data.fill_(0)]
)
def test_a_reduction_may_write_into_what_it_is_given(write):
    def last_column(attn: torch.Tensor) -> torch.Tensor:
        found = attn[..., -1].clone()
        write(attn)
        return found

    reduction = gptviz.Reduction("last column", "attn", last_column)
    t = LM.trace(IDS, reduce=[reduction])
    assert bits([t["attn"], t.reduced(reduction)]) == bits(
        [LM.trace(IDS)["attn"], list(t["attn"][..., -1])]
    )


def test_gptvizs_own_reductions_which_are_given_no_copy_write_into_nothing():
    own = _all_reductions()
    assert len(own) > 3
    for reduction in own:
        value = LM.trace(IDS)[reduction.site, 1]
        before = value.clone()
        reduction.of(value)
        assert torch.equal(value, before) and value._version == 0, reduction.name


def _all_reductions() -> list[gptviz.Reduction]:
    found = [
        gptviz.Reduction("roles", "attn", gptviz.analysis.head_scores.HeadScores.of(LM.tokens(IDS)))
    ]
    for module in _modules():
        for value in vars(module).values():
            if isinstance(value, gptviz.Reduction):
                found.append(value)
            elif isinstance(value, tuple):
                found += [one for one in value if isinstance(one, gptviz.Reduction)]
    return found


def _modules() -> list[Any]:
    packages = [
        importlib.import_module(f"gptviz.{name}") for name in ("analysis", "lessons", "engine")
    ]
    names = [m.name for p in packages for m in pkgutil.iter_modules(p.__path__, f"{p.__name__}.")]
    return [importlib.import_module(name) for name in names]


def test_what_is_worked_out_once_for_all_callers_cannot_be_written_into():
    """A public function under `lru_cache` gives numbers, words and tuples; for others: `worked_out_once`."""
    cached = type(functools.lru_cache(len))
    public = {
        f"{module.__name__}.{name}": inspect.get_annotations(function.__wrapped__, eval_str=True)[
            "return"
        ]
        for module in _modules()
        for name, function in vars(module).items()
        if isinstance(function, cached) and not name.startswith("_")
    }
    assert public
    for name, gives in public.items():
        frozen = getattr(getattr(gives, "__dataclass_params__", None), "frozen", False)
        assert gives in (int, str) or getattr(gives, "__origin__", None) is tuple or frozen, name


def test_a_block_is_not_run_again_with_another_edit_than_the_pass_had(monkeypatch):
    monkeypatch.setattr(sites, "SMALL", 0)
    tensor = torch.zeros(len(IDS), LM.config.emb_dim)
    t = LM.trace(IDS, edits=[gptviz.Edit("mlp_out", 1, tensor)])
    tensor[0] = 5
    with pytest.raises(ValueError, match="was written into since this trace was made"):
        t["mlp_out", 1]
