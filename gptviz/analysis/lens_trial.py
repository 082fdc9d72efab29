"""Can the lens be believed? The logit lens and the Jacobian lens on trial, depth by depth.

Both are read on texts that the Jacobian lens was not fitted to. Three questions are asked of every depth:

- Does the lens say what the model says in the end? The distance to the end (KL divergence), and how often both
  have the same token on top. A lens may rightly fail this early on: the model may not know it there yet.
- Do both lenses say the same? How often they have the same token on top.
- Does the model use what the lens reads? A lens reads a token's logit by one direction in the residual stream.
  For each of the ten tokens that it has on top, the stream's part along that token's direction is exchanged for
  that of another text, drawn at random, at one position. Then the model goes on from the changed stream, and
  what it says in the end must move as the lens says. Both are compared with the unchanged pass.
  `rank_correlation`: of the lens' change of this token's logit and the model's, over all exchanges of a depth.
  Both lenses do well in this, since the stream hands on what is put into it. So `alignment` asks for more:
  whether all other tokens move as the lens says, too. It is the mean over the exchanges of the cosine of both
  changes of all log-probabilities, each minus its mean, weighted by the model's own probabilities. Chance is 0
  for both.

The direction of token w is the gradient of its logit against the mean of all logits, with the final norm's
spread held fixed: J^T P (s * (W_w - mean W)), where s is the final norm's scale, W the output head, and P takes
the mean of a vector away, as the norm does. For the logit lens J is 1.

Shapes: R rows (see `gptviz.analysis.lens`), N texts, P positions, D emb_dim, k tokens, V vocabulary.

Sources: Belrose et al., Eliciting Latent Predictions from Transformers with the Tuned Lens, 2023, sections 3.2
(KL divergence to the end) and 4 (causal fidelity: the stream is changed along directions that a lens reads, by
resampling from other texts; the lens' change is compared with the model's by rank correlation, and by Aitchison
similarity, which is `alignment`; their directions are a basis that is optimised, here they are those of tokens);
Chan et al., Causal Scrubbing, 2022
(resampling ablation).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.analysis import jacobian_lens, lens
from gptviz.analysis.against import difference
from gptviz.analysis.jacobian_lens import SKIP
from gptviz.engine.architecture import architecture_of
from gptviz.engine.forward import hidden_from, logits_of, running
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.layer_norms import kept_norms
from gptviz.engine.past import Before
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sample import FILE, passages_in
from gptviz.engine.sites import Key, kept, named
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed

TEXTS = 16
SPAN = 24  # neighbouring positions that are read of a text, from a random one on
TOKENS = 10  # whose directions are tried at a depth, in a text
SEED = 0

LOGIT = "logit"
JACOBIAN = "jacobian"
# what each lens is called in the table; the last is that of the source, without a constant
LENSES = (LOGIT, JACOBIAN, "jacobian, no constant")


@dataclass(frozen=True)
class LensTrial:
    """The trial of a model's lenses.

    `table`, a row a lens (`LENSES`) and depth: lens, depth, after; kl_bits, same_token (with the model),
    other_same_token (with the logit lens; of the logit lens with the Jacobian lens), rank_correlation and
    alignment, each with its standard error (..._se) over the texts. That of `rank_correlation` is by the
    jackknife, a text left out at a time. `texts`: how many texts were read; `positions`: of how many positions,
    all together; `exchanges`: of how many of each lens and depth.
    """

    table: pd.DataFrame
    texts: int
    positions: int
    exchanges: int

    def of(self, name: str) -> pd.DataFrame:
        """The rows of one of `LENSES`, by depth."""
        return self.table[self.table["lens"] == name].set_index("depth")


@undisturbed
def lens_trial(
    lm: LanguageModel, texts: int = TEXTS, progress: Progress = ignore_progress
) -> LensTrial:
    """Put the logit lens and the model's Jacobian lens on trial, on texts that the latter was not fitted to.

    Edits of `lm` are left out. `progress(done, of)` is called after each text; what it raises stops the work.
    Raises ValueError for fewer than three texts, a model that no lens was fitted to, and one that cannot read
    the texts.
    """
    lm = lm.plain
    fitted = jacobian_lens.of(lm)
    carries = dict(zip(LENSES, (lens.as_it_is, fitted.carry, fitted.without_constant), strict=True))
    pieces = jacobian_lens.pieces(lm, passages_in(FILE), whole("texts", texts, 3))
    traces = [lm.trace(ids, keep=named(lm, (*lens.KEEP, kept))).uncopied() for ids in pieces]
    random = np.random.default_rng(SEED)
    kls: list[list[NDArray[np.float64]]] = []
    tops: list[list[NDArray[np.int32]]] = []
    moves: list[list[NDArray[np.float64]]] = []
    for number, t in enumerate(traces):
        start = int(random.integers(SKIP, max(SKIP, len(t) - SPAN) + 1))
        read = [_read(carry, lm, t, start) for carry in carries.values()]
        kls.append([kl for kl, _ in read])
        tops.append([top for _, top in read])
        position = int(random.integers(SKIP, len(t)))
        others = [other for i, other in enumerate(traces) if i != number]
        drawn = random.integers(0, len(others), TOKENS)
        from_others = [(others[i], int(random.integers(SKIP, len(others[i])))) for i in drawn]
        moves.append(
            [_moved(lm, t, position, from_others, carry, fitted) for carry in carries.values()]
        )
        progress(number + 1, len(traces))
    return _summed_up(lm, kls, tops, np.array(moves))


Exchange = tuple[Trace, int]  # the text and position that a part of the stream is taken from


def _read(
    carry: lens.Carry, lm: LanguageModel, t: Trace, start: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """The distances to the end, and the tokens on top, of `SPAN` positions from `start`: (R, P) each."""
    cells = lens.cells_by(carry, lm, t, start, min(start + SPAN, len(t)), 1)
    return cells.kl.astype(np.float64), cells.ids[..., 0]


def _moved(
    lm: LanguageModel,
    t: Trace,
    position: int,
    others: list[Exchange],
    carry: lens.Carry,
    fitted: jacobian_lens.JacobianLens,
) -> NDArray[np.float64]:
    """What each exchange of a row changes, (R - 1, k, 3).

    The change of the token's logit as the lens sees it and in the model, and the alignment of all changes.
    """
    blocks = range(lm.config.n_layers)
    before = Before(
        *([t[site, b][:, :position] for b in blocks] for site in architecture_of(lm.config).past)
    )
    final = logits_of(lm.model, t["final"][position])  # (V,)
    moves = []
    for row in lens.row_keys(lm.config)[:-1]:
        stream = t[row][position]  # (D,)
        seen = _seen(lm, carry(row, stream[None]))[0]  # (V,)
        tokens = lens.top_ids(seen[None], TOKENS)[0].tolist()
        jacobian = None if carry is lens.as_it_is else fitted.maps[row]
        along = directions(lm, tokens, jacobian)  # (k, D)
        replaced = torch.stack([other[row][place] for other, place in others[: len(tokens)]])
        shares = torch.linalg.vecdot(replaced - stream, along)  # (k,)
        changed = stream + shares[:, None] * along  # (k, D)
        now = _seen(lm, carry(row, changed))  # (k, V)
        after = logits_of(lm.model, _from(lm, row, changed[:, None], before)[:, 0])  # (k, V)
        aligned = alignment(now - seen, after - final, torch.softmax(final, dim=-1)).tolist()
        moves.append([_change(now, seen, tokens), _change(after, final, tokens), aligned])
    return np.array(moves).transpose(0, 2, 1)  # (R - 1, 3, k) -> (R - 1, k, 3)


@undisturbed
def directions(
    lm: LanguageModel, tokens: list[int], jacobian: torch.Tensor | None = None
) -> torch.Tensor:
    """The directions of length 1, (k, D), by which a lens with this matrix (None: 1) reads these tokens."""
    head = lm.model.out_head.weight.detach().float().cpu()  # (V, D)
    scale = lm.model.final_norm.scale.detach().float().cpu()  # (D,)
    read = scale * (head[tokens] - head.mean(dim=0))  # (k, D)
    read = kept_norms(lm.model)[-1].centre(read)
    if jacobian is not None:
        read = read @ jacobian  # the rows of J^T, as (J^T read)^T = read^T J
    return torch.nn.functional.normalize(read, dim=-1)


def _seen(lm: LanguageModel, carried: torch.Tensor) -> torch.Tensor:
    """The logits of a stream as it is expected after the last block: (n, D) -> (n, V)."""
    norm = lm.model.final_norm
    with running(lm.model):
        return logits_of(lm.model, norm(carried.to(norm.scale)))


def _from(lm: LanguageModel, row: Key, stream: torch.Tensor, before: Before) -> torch.Tensor:
    """Run the rest of the model on the stream at a row, after the tokens before: (B, 1, D) -> (B, 1, D)."""
    site, block = row
    stream = stream.to(lm.model.final_norm.scale)
    if block is None:
        return hidden_from(lm.model, 0, stream, past=before)
    if site == "resid_mid":
        half = lm.model.trf_blocks[block]
        with running(lm.model):
            stream = stream + half.ff(half.norm2(stream))
    return hidden_from(lm.model, block + 1, stream, past=before)


def _change(now: torch.Tensor, then: torch.Tensor, tokens: list[int]) -> list[float]:
    """How much the i-th row of `now`, (k, V), has the i-th token above `then`, (V,): logits against the mean."""
    pairs = zip(now, tokens, strict=True)
    return [float(difference(logits, i, None) - difference(then, i, None)) for logits, i in pairs]


@undisturbed
def alignment(one: torch.Tensor, other: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The cosines of changes of logits, (k, V) each -> (k,), with weights (V,) that sum to 1.

    Each change counts minus its weighted mean, so that logits and log-probabilities give the same.
    """
    weights = weights.double()
    first, second = (
        weights.sqrt() * (change.double() - (change.double() @ weights)[:, None])
        for change in (one, other)
    )  # (k, V) each
    return torch.cosine_similarity(first, second, dim=-1)


# ---- the table ----


def _summed_up(
    lm: LanguageModel,
    kls: list[list[NDArray[np.float64]]],
    tops: list[list[NDArray[np.int32]]],
    moves: NDArray[np.float64],
) -> LensTrial:
    """The trial, from (R, P) of every text and lens, and `moves` (N, 3, R - 1, k, 3)."""
    names = lens.row_names(lm.config)
    parts = []
    for number, name in enumerate(LENSES):
        other = 1 if number == 0 else 0
        alike = [[(top == top[-1]).mean(axis=1)] for top in (of[number] for of in tops)]
        agree = [[(of[number] == of[other]).mean(axis=1)] for of in tops]
        means = {
            "kl_bits": np.array([of[number].mean(axis=1) for of in kls]),
            "same_token": np.concatenate(alike),
            "other_same_token": np.concatenate(agree),
        }  # (N, R) each
        part = pd.DataFrame({"lens": name, "depth": range(len(names) - 1), "after": names[:-1]})
        for column, values in means.items():
            _put(part, column, *mean_and_error(values[:, :-1]))
        own = moves[:, number]  # (N, R - 1, k, 3)
        by_row = [jackknifed(own[:, row, :, :2], rank_correlation) for row in range(own.shape[1])]
        _put(part, "rank_correlation", *np.array(by_row).T)
        _put(part, "alignment", *mean_and_error(own[..., 2].mean(axis=-1)))
        parts.append(part)
    positions = sum(of[0].shape[1] for of in kls)
    return LensTrial(
        pd.concat(parts, ignore_index=True), len(kls), positions, len(kls) * moves.shape[3]
    )


def _put(
    table: pd.DataFrame, column: str, values: NDArray[np.float64], errors: NDArray[np.float64]
) -> None:
    table[column] = values
    table[f"{column}_se"] = errors


def mean_and_error(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean over the texts and its standard error: (N, R) -> (R,) and (R,)."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5


def rank_correlation(moves: NDArray[np.float64]) -> float:
    """Spearman's rank correlation of the two columns of (..., 2); 0 where one of them is constant."""
    ranks = pd.DataFrame(moves.reshape(-1, 2)).rank().to_numpy()  # (..., 2) -> (n, 2)
    centred = ranks - ranks.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0).prod())
    return float(centred.prod(axis=1).sum() / spread) if spread else 0.0


def jackknifed(
    texts: NDArray[np.float64], number: Callable[[NDArray[np.float64]], float]
) -> tuple[float, float]:
    """A number of all texts, (N, ...), and its standard error by leaving out one text at a time."""
    left_out = np.array([number(np.delete(texts, i, axis=0)) for i in range(len(texts))])
    error = np.sqrt((len(texts) - 1) * left_out.var())
    return number(texts), float(error)
