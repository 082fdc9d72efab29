"""The Jacobian lens: the logit lens after a matrix that is fitted to the model, one for each depth.

The logit lens reads the residual stream of every depth as if it were that of the last one. But the blocks in
between would still have changed it. The Jacobian lens first carries it there, by the mean of what the blocks
do to a small change:

    lens(h) = out_head(final_norm(J h + c))

J (D, D) is the mean over texts of  1/|S| * sum over t and t' >= t of  d last[t'] / d h[t],  where `last` is the
stream after the last block, `h` the stream at this depth, and S are the positions t and t' of a text that
count: all from `SKIP` on but the last one. A source position's effects on all later targets are summed; only
sources and texts are averaged. c (D,) makes the mean right: the mean of `last` minus J times the mean of h,
over the same positions. At the last depth J is 1 and c is 0, so the last row is the model's own output. For a
model that is linear from a depth on, and mixes no positions, the lens is exact there.

Nothing is trained, so the same texts give the same lens. It belongs to the weights it was fitted to, and
says so by their hash: see `of`. The matrices are kept in float16.

Shapes: R rows (see `gptviz.analysis.lens`), D emb_dim, V vocabulary, T tokens, B outputs at once.

Sources, and what follows them here:
  Gurnee et al., Verbalizable Representations Form a Global Workspace in Language Models, 2026, and its code,
  anthropics/jacobian-lens (jlens/fitting.py): J, the sum over later targets, the first 16 positions and the
  last one left out, texts of 128 tokens. Their lens has no c: `constant=False` gives theirs, which is that
  of TransformerLens (tools.analysis.JacobianLens; with 4.3.0, J and logits were equal within 1e-6 on random
  weights). Theirs is fitted after whole blocks; here the embedding and the stream after attention have a
  matrix, too.
  Hernandez et al., Linearity of Relation Decoding in Transformer Language Models, 2023: the constant, beside
  a mean Jacobian.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from gptviz.analysis import lens
from gptviz.analysis.lens import KEEP, TOP, Cells, Depths, Followed, row_keys
from gptviz.analysis.reads import of_model, reads
from gptviz.engine.capture import site_hook
from gptviz.engine.forward import hidden, running
from gptviz.engine.index import whole
from gptviz.engine.kinds import Config, Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sample import MORE, Passage, passages_in
from gptviz.engine.sites import Key, sites_of
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.weights import PerWeights
from gptviz.files import disk_cache
from gptviz.files.atomic_file import write_atomically

TEXTS = 16  # of half as many the matrices of the bundled model differ by a tenth
LENGTH = 128  # tokens of a text
SKIP = 16  # the first positions of a text, which all later ones look at, are unlike the others
# numbers that the graph of one pass may hold: 1 GB
NUMBERS = 2**28

# in a bundled model's folder, by `python -m gptviz lens mini`
SHIPPED = "jacobian_lens.safetensors"


@dataclass(frozen=True, eq=False)
class JacobianLens:
    """What a lens does with every row but the last, and the hash of the weights that it was fitted to."""

    maps: Mapping[Key, torch.Tensor]  # J of each row, (D, D)
    constants: Mapping[Key, torch.Tensor]  # c of each row, (D,)
    weights: str
    texts: int  # the number of texts
    length: int  # tokens of the longest

    def carry(self, row: Key, stream: torch.Tensor) -> torch.Tensor:
        """The stream of a row as it is expected after the last block: (n, D) -> (n, D)."""
        return self.without_constant(row, stream) + self.constants[row]

    def without_constant(self, row: Key, stream: torch.Tensor) -> torch.Tensor:
        """The same without c, as in the source: (n, D) -> (n, D)."""
        return stream @ self.maps[row].mT


# ---- to read a trace ----


@of_model
def jacobian_lens(
    trace: Trace, model: Model, position: int = -1, constant: bool = True
) -> torch.Tensor:
    """The logits of the next token after `position` at each depth, (R, V) float32, as of `logit_lens`.

    `constant=False` leaves out c. Raises what `logit_lens` raises, and ValueError for a model that no lens was
    fitted to.
    """
    trace.of(model)
    fitted = _of_weights(model, trace.name)
    carry = fitted.carry if constant else fitted.without_constant
    return lens.logits_by(carry, trace, model, position)


@reads(*KEEP)
def cells(lm: LanguageModel, t: Trace, start: int, stop: int, k: int = TOP) -> Cells:
    """The predictions of every row at the positions from `start` to before `stop`: (R, P)."""
    return lens.cells_by(of(lm).carry, lm, t, start, stop, k)


@reads(*KEEP)
def followed_cells(
    lm: LanguageModel, t: Trace, start: int, stop: int, ids: Sequence[int]
) -> Followed:
    """The n tokens `ids` in every row, at the positions from `start` to before `stop`: (R, P, n)."""
    return lens.followed_by(of(lm).carry, lm, t, start, stop, ids)


@reads(*KEEP)
def depths(lm: LanguageModel, t: Trace, position: int) -> Depths:
    """The predictions of the next token after `position` at each depth of the model."""
    return lens.depths_of(jacobian_lens(t, lm.model, position))


# ---- to fit one ----


@undisturbed
def fit(
    lm: LanguageModel,
    texts: Sequence[Sequence[int]] | None = None,
    skip: int = SKIP,
    progress: Progress = ignore_progress,
) -> JacobianLens:
    """Fit a lens to a model's weights; its edits, if it has any, are left out.

    `texts` are token ids, of `skip` + 2 tokens or more each; None is `texts_of(lm)`. `progress(done, of)` is
    called after each text. What it raises stops the work. Raises ValueError for texts that are too short, and
    for a model that cannot read those of the sample.
    """
    texts = texts_of(lm) if texts is None else [lm.batch(ids)[0].tolist() for ids in texts]
    whole("skip", skip, 0)
    if not texts or min(map(len, texts)) < skip + 2:
        raise ValueError(
            f"a lens is fitted at the positions from {skip} to the last but one: give texts of at least "
            f"{skip + 2} tokens"
        )
    rows = row_keys(lm.config)[:-1]
    jacobians = torch.zeros(len(rows), lm.config.emb_dim, lm.config.emb_dim)
    means = torch.zeros(len(rows) + 1, lm.config.emb_dim)
    for done, ids in enumerate(texts, 1):
        of_text, of_stream = _of_text(lm, ids, skip)
        jacobians += of_text / len(texts)
        means += of_stream / len(texts)
        progress(done, len(texts))
    constants = means[-1] - torch.einsum("rij,rj->ri", jacobians, means[:-1])  # (R - 1, D)
    return JacobianLens(
        dict(zip(rows, jacobians, strict=True)),
        dict(zip(rows, constants, strict=True)),
        disk_cache.weights_hash(lm.model),
        len(texts),
        max(map(len, texts)),
    )


def texts_of(lm: LanguageModel, most: int = TEXTS) -> list[tuple[int, ...]]:
    """The texts that a lens is fitted to: pieces of five books, which the bundled model never read.

    They are from the second pages of each, `held_out_more.txt`; a trial reads the first ones.
    """
    return pieces(lm, passages_in(MORE), most)


def pieces(lm: LanguageModel, of: Sequence[Passage], most: int) -> list[tuple[int, ...]]:
    """At most `most` pieces of these passages, of `LENGTH` tokens each, as many of each passage.

    Raises ValueError for a model whose context or characters do not allow two of them.
    """
    length = min(LENGTH, lm.config.context_length)
    books = [lm.encode(passage.text) for passage in of]
    found = [
        tuple(ids[start : start + length])
        for start in range(0, max(map(len, books)), length)
        for ids in books
        if len(ids) >= start + length
    ]
    readable = [ids for ids in found if max(ids) < lm.config.vocab_size]
    if len(readable) < 2 or length < SKIP + 2:
        raise ValueError(
            f"{lm.name} cannot read the sample of books, or no more than {length} tokens of it: there is "
            f"nothing to fit a lens to, which takes {SKIP + 2} tokens"
        )
    return readable[:most]


def _of_text(lm: LanguageModel, ids: Sequence[int], skip: int) -> tuple[torch.Tensor, torch.Tensor]:
    """J of one text for every row but the last, (R - 1, D, D), and the mean stream of all rows, (R, D).

    Every output of the last block has a row of the batch: a cotangent of 1 for it at all positions that
    count. So one backward pass sums over the targets, for B outputs and all sources.
    """
    config = lm.config
    size = _outputs_at_once(config, len(ids))
    counted = slice(skip, len(ids) - 1)
    values: dict[Key, torch.Tensor] = {}
    hooks = [site_hook(sites_of(config), key, values.__setitem__) for key in row_keys(config)]
    jacobian = torch.empty(2 * config.n_layers, config.emb_dim, config.emb_dim)
    with running(lm.model, graph=True):
        hidden(lm.model, lm.batch(ids).expand(size, -1), hooks, graph=True)  # (B, T) ids
        *streams, last = (values[key] for key in row_keys(config))  # (B, T, D) each
        for start in range(0, config.emb_dim, size):
            outputs = torch.arange(start, min(start + size, config.emb_dim))
            cotangent = torch.zeros_like(last)
            cotangent[outputs - start, counted, outputs] = 1
            gradients = torch.autograd.grad(last, streams, cotangent, retain_graph=True)
            for row, gradient in enumerate(gradients):
                # (B, S, D) -> (B, D)
                jacobian[row, outputs] = gradient[: len(outputs), counted].float().mean(dim=1).cpu()
        means = [values[key][0, counted].detach().float().mean(dim=0).cpu() for key in values]
    return jacobian, torch.stack(means)


def _outputs_at_once(config: Config, n_tokens: int) -> int:
    """The outputs whose gradients one backward pass works out: as many as `NUMBERS` allows."""
    # what autograd keeps of a token in a block, about
    kept = 16 * config.emb_dim + 3 * config.n_heads * n_tokens
    return min(config.emb_dim, max(1, NUMBERS // (config.n_layers * n_tokens * kept)))


# ---- on disk ----


def of(lm: LanguageModel) -> JacobianLens:
    """The lens that was fitted to these weights. Raises ValueError where none was."""
    return _of_weights(lm.model, lm.name)


def known(lm: LanguageModel) -> JacobianLens | None:
    """The lens that was fitted to these weights: it ships with gptviz, or `keep` has it. None: there is none."""
    return _found(lm.model)


_hashes: PerWeights[str] = PerWeights()


def _found(model: Model) -> JacobianLens | None:
    digest = _hashes.get(model, lambda: disk_cache.weights_hash(model))
    for path in (*disk_cache.ASSETS.glob(f"*/{SHIPPED}"), _kept_at(digest)):
        if path.is_file():
            fitted = _read(path, path.stat().st_mtime_ns)
            if fitted.weights == digest:
                return fitted
    return None


def _of_weights(model: Model, name: str) -> JacobianLens:
    fitted = _found(model)
    if fitted is None:
        raise ValueError(
            f"no lens was fitted to these weights of {name}: `python -m gptviz lens {name}` fits one, or "
            "gptviz.analysis.jacobian_lens.fit, whose result `keep` keeps"
        )
    return fitted


def _kept_at(digest: str) -> Path:
    return disk_cache.folder() / f"jacobian_lens_{digest}.safetensors"


def keep(fitted: JacobianLens, path: Path | None = None) -> Path:
    """Write a lens, and return where: a safetensors file with the matrices in float16.

    Without a path it goes to the folder of `gptviz.files.disk_cache`, where `known` finds it. Raises OSError
    where it cannot be written, and ValueError for a matrix that float16 cannot hold.
    """
    path = _kept_at(fitted.weights) if path is None else path
    tensors = {}
    for row in fitted.maps:
        half = fitted.maps[row].half()
        if not half.isfinite().all():
            raise ValueError(f"float16 reaches 65504; the lens of {_name(row)} does not fit")
        tensors[f"{_name(row)}.map"] = half.contiguous()
        tensors[f"{_name(row)}.constant"] = fitted.constants[row].contiguous()
    metadata = {
        "made_by": "python -m gptviz lens",
        "weights": fitted.weights,
        "texts": str(fitted.texts),
        "length": str(fitted.length),
    }
    write_atomically(path, lambda partial: partial.write_bytes(save(tensors, metadata)))
    return path


def load(lm: LanguageModel, path: Path) -> JacobianLens:
    """Read a lens that `keep` wrote. Raises ValueError for another file, and for one of other weights."""
    fitted = _read(path, path.stat().st_mtime_ns)
    if fitted.weights != disk_cache.weights_hash(lm.model):
        raise ValueError(
            f"{path} was fitted to other weights than these of {lm.name}: fit a lens to these, "
            f"`python -m gptviz lens {lm.name}`"
        )
    return fitted


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> JacobianLens:
    """The lens in a file that was last changed at this time."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        names = {name.rpartition(".")[0] for name in tensors}
        return JacobianLens(
            {_row(name): tensors[f"{name}.map"] for name in names},
            {_row(name): tensors[f"{name}.constant"] for name in names},
            metadata["weights"],
            int(metadata["texts"]),
            int(metadata["length"]),
        )
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no lens of `python -m gptviz lens`: {error}") from error


def _name(row: Key) -> str:
    """A row in a file: "embed", "resid_mid.3"."""
    site, block = row
    return site if block is None else f"{site}.{block}"


def _row(name: str) -> Key:
    site, _, block = name.partition(".")
    return site, int(block) if block else None
