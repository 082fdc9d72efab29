"""What can be asked of a model and of a trace: one call of each, for tests that hold for all of them.

`every_call(lm)` gives names and functions without arguments; what they return is compared by `leaves`.
"""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import tiktoken
import torch

import gptviz
from gptviz import analysis, lessons
from gptviz.analysis import jacobian_lens, readings
from gptviz.analysis.surgery import Operation, surgery
from gptviz.engine.architecture import architecture_of
from gptviz.engine.beams import beam_search
from gptviz.engine.generate import generate_batch
from gptviz.engine.layer_norms import norms_of
from gptviz.engine.loaded import Loaded
from gptviz.engine.past import Past
from gptviz.engine.sample_means import sample_means
from gptviz.engine.sampling import Sampling
from gptviz.engine.trace import Trace
from gptviz.lessons import positions, scaling

IDS = [5, 17, 9, 5, 17, 100, 42, 9, 5, 17, 9, 77]
OTHER = [5, 17, 30, 5, 17, 100, 42, 9, 5, 17, 9, 77]

# what the parameters of `analysis` and `lessons` are given, by their names
GIVEN: dict[str, Any] = {
    "block": 1, "head": 2, "position": 7, "query": 6, "key": 3, "token": 5, "against": 9, "start": 2,
    "stop": 6, "ids": [5, 9], "unit": 3, "chosen": [1, 2], "activations": [0.5, 2.0], "k": 3, "p": 0.5,
    "seed": 1, "quantity": "variance", "name": "block 1 · norm1", "dimension": 4, "sampling": Sampling(0.8),
    "address": "block/1/head/2",
}  # fmt: skip


def largest(attn: torch.Tensor) -> torch.Tensor:
    return attn.amax(dim=-1)


def itself(attn: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    return attn, {"first": attn[:, 0]}


REDUCED = [gptviz.Reduction("largest", "attn", largest), gptviz.Reduction("itself", "attn", itself)]


def of_a_trace() -> dict[str, Callable[..., Any]]:
    """The functions of `analysis` and `lessons` that begin with a model and a trace, by their names."""
    found: dict[str, Callable[..., Any]] = {}
    for package in (analysis, lessons):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, function in vars(importlib.import_module(module.name)).items():
                if (
                    not inspect.isfunction(function)
                    or function.__module__ != module.name
                    or name[0] == "_"
                ):
                    continue
                if [*inspect.signature(function).parameters][:2] in (
                    ["lm", "t"],
                    ["trace", "model"],
                ):
                    found[f"{module.name}.{name}"] = function
    return found


def _asked(function: Callable[..., Any], lm: Any, t: Trace) -> Callable[[], Any]:
    """The function of this model and trace, and of what `GIVEN` has for its other parameters."""
    names = [*inspect.signature(function).parameters]
    given: dict[str, Any] = GIVEN | {"positions": torch.tensor([3, 6]), "by": "V"}
    given["writes"] = torch.eye(t.config.emb_dim)[:2]
    given["direction"] = torch.linspace(-1, 1, t.config.emb_dim, dtype=torch.float64)
    given["row"] = torch.full((t.config.n_heads, 4), 0.25)
    given["values"] = torch.ones(t.config.n_heads, 4, t.config.head_dim)
    if "reading" in names:
        given["reading"] = readings.word_reading(t, lm, 5, 9, 7)
    first = [lm, t] if names[0] == "lm" else [t, lm]
    others = [*inspect.signature(function).parameters.values()][2:]
    asked = [one.name for one in others if one.name in given or one.default is one.empty]
    named = {name: given[name] for name in asked}
    return lambda: function(*first, **named)


def of_trace_itself(t: Trace) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Everything that a trace hands out by itself, with the names of the reductions above."""
    for site, block in t.sites():
        key = site if block is None else (site, block)
        yield f"t[{key!r}]", lambda key=key: t[key]
        yield f"t.rows({key!r})", lambda site=site, block=block: t.rows(site, block, 2, 5)
        yield f"t.rows({key!r}), all", lambda site=site, block=block: t.rows(site, block)
    for site in dict.fromkeys(site for site, block in t.sites() if block is not None):
        yield f"t[{site!r}]", lambda site=site: t[site]
    for reduction in REDUCED:
        yield f"t.reduced({reduction.name!r})", lambda reduction=reduction: t.reduced(reduction)
    yield "t.tokens", lambda: t.tokens
    yield "t.sites", t.sites
    yield "t.logits", t.logits
    yield "t.logits(3)", lambda: t.logits(3)
    yield "t.norms", t.norms
    yield "t.norm_statistics", t.norm_statistics
    yield "t.next_tokens", lambda: t.next_tokens(5, 3)
    yield "t.attribution", lambda: t.attribution(5, 9)
    yield "t.source_tokens", lambda: t.source_tokens(5)
    yield "t.logit_lens", t.logit_lens
    yield "t.cut", lambda: of_sites(t.cut(4))
    yield "t.past", lambda: of_past(t.past(t.lm))


def of_sites(t: Trace) -> dict[Any, torch.Tensor]:
    return {key: t[key if key[1] is not None else key[0]] for key in t.sites()}


def of_past(past: Past) -> list[torch.Tensor]:
    return [rows(b) for b in range(past.memory().shape[1]) for rows in (past.keys, past.values)]


def of_grad(t: Trace) -> dict[Any, torch.Tensor]:
    return {key: t.grad[key if key[1] is not None else key[0]] for key in t.grad.sites()} | {
        "z": t.grad["z"]
    }


def of_model(lm: Any, t: Trace) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Everything that is asked of a model, and of a model and a trace."""
    if jacobian_lens.known(lm) is None:  # its functions read through the lens that is kept on disk
        jacobian_lens.keep(jacobian_lens.fit(lm.plain, [IDS], skip=2))
    for name, function in of_a_trace().items():
        yield name, _asked(function, lm, t)
    edits = [
        "z.1.2=zero",
        "attn.0=uniform",
        "mlp_out.1=sample",
        "resid_pre.1@3=ids5+9+9+5",
        f"{architecture_of(lm.config).start}=+2*tok5",
    ]
    yield "trace", lambda: of_sites(lm.trace(IDS))
    yield "trace, edited", lambda: of_sites(lm.trace(IDS, edits=edits))
    yield "trace, after", lambda: of_sites(lm.trace([*IDS, 3], after=lm.trace(IDS)))
    yield "trace, reduce", lambda: lm.trace(IDS, keep=[], reduce=REDUCED).reduced("largest")
    yield "traces", lambda: [of_sites(one) for one in lm.traces([IDS, OTHER[:5]], 2)]
    yield "grad", lambda: of_grad(lm.trace(IDS, grad=(5, 9)))
    yield "generate", lambda: list(lm.generate(IDS, 3, temperature=0.9, top_k=40, seed=1))
    yield "generate, captured", lambda: list(lm.generate(IDS, 2, captured=True, seed=2))
    yield (
        "generate, edited",
        lambda: list(lm.edited(*edits[:2]).generate(IDS, 2, top_p=0.9, seed=1)),
    )
    yield "generate_batch", lambda: list(generate_batch(lm, IDS, 2, [1, 2]))
    yield "beam_search", lambda: beam_search(lm, IDS, 2, 2)
    yield "last_logits", lambda: lm.last_logits(lm.batch(IDS))
    yield "hidden", lambda: lm.hidden(lm.batch(IDS))
    yield "knock_out", lambda: lm.knock_out(IDS, 5)
    yield "knock_out, mean", lambda: lm.knock_out(IDS, 5, baseline="mean")
    yield "patching", lambda: lm.patching(IDS, OTHER, (42, 30), sites=["z", "attn"])
    yield (
        "patching, estimate",
        lambda: lm.patching(IDS, OTHER, (42, 30), sites=["z"], estimate=True),
    )
    yield "circuit", lambda: lm.circuit(IDS, (5, 9), within=0.5)
    yield "surgery", lambda: surgery(lm, IDS, Operation("swap values", 2, 4))
    yield "side_by_side", lambda: analysis.compare.side_by_side(lm, "The cat sat", lm)
    yield "sample_means", lambda: sample_means(lm)
    yield "norms_of", lambda: norms_of(lm.model)
    yield "even_means", lambda: analysis.head_scores.even_means(9)
    yield "targets", lambda: analysis.head_scores.HeadScores.of(lm.tokens(IDS)).targets
    yield "scaling.scores", lambda: scaling.scores(4, 3)
    yield "scaling.by_size", lambda: scaling.by_size(4, 3)
    yield "positions.sinusoidal", lambda: positions.sinusoidal(9, 6)
    yield "positions.rotations", lambda: positions.rotations(9, 6)
    yield "positions.products", lambda: positions.products(lm, "sinusoidal")
    yield "positions.pair_scores", lambda: positions.pair_scores(lm, 5, 9, 1, 2)


# what is asked about, and stands in a result only to say what it belongs to
_NOT_RESULTS = (Trace, Loaded, torch.nn.Module, tiktoken.Encoding)


def leaves(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number of a result with the way to it; tensors and arrays as they are."""
    if isinstance(found, torch.Tensor | np.ndarray):
        yield path, found
    elif isinstance(found, pd.DataFrame | pd.Series):
        table = found.to_frame() if isinstance(found, pd.Series) else found
        yield f"{path}.columns", repr(list(table.columns))
        for place, column in enumerate(table.columns):
            yield f"{path}.{column}", repr(table.iloc[:, place].tolist())
    elif isinstance(found, Mapping):
        for key, value in found.items():
            yield from leaves(value, f"{path}[{key!r}]")
    elif isinstance(found, list | tuple):
        yield f"{path}.len", len(found)
        for place, value in enumerate(found):
            yield from leaves(value, f"{path}[{place}]")
    elif isinstance(found, _NOT_RESULTS) or callable(found):
        return
    elif dataclasses.is_dataclass(found):
        for field in dataclasses.fields(found):
            yield from leaves(getattr(found, field.name.removeprefix("_")), f"{path}.{field.name}")
    else:
        yield path, repr(found)


def bits(found: Any) -> dict[str, Any]:
    """Every number of a result to the bit, with dtypes and shapes, so that two results can be compared."""
    return {path: _bits(leaf) for path, leaf in leaves(found)}


def _bits(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        leaf = (
            leaf.detach().float().numpy() if leaf.dtype == torch.bfloat16 else leaf.detach().numpy()
        )
    if isinstance(leaf, np.ndarray):
        kept = leaf.tolist() if leaf.dtype.hasobject else leaf.tobytes()
        return str(leaf.dtype), leaf.shape, kept
    return leaf
