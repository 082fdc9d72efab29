"""Activation patching: copy one value from one text's pass into another text's, for every place in turn.

Two texts, as alike as possible, to which the model says two different words. The pass of one is run with one
activation from the other: the residual stream at a position, what attention or the feed-forward adds there,
or what one head has at all positions. How far the prediction moves says what that place carries.

    metric = (patched - corrupt) / (clean - corrupt)

of the difference of two logits: 0 where the pass answers as the corrupt text does, 1 where as the clean one.
*Denoising* puts clean values into the corrupt text's pass and asks whether a place is enough to bring the
answer back; *noising* puts corrupt values into the clean text's pass and asks whether a place is needed. The
two are no mirror images: of two parts that each suffice, neither is needed.

*Attribution patching* guesses what all patches do from one pass and its gradient, to first order: a patch
moves the difference of logits by about the sum of (its value - what stood there) x gradient. `estimate=True`
has the guess beside what the patch really does: where the two part, the model is not nearly linear there.

What stands before a patch does not change: its pass begins at its own block, with what came into that block,
and the patches of a block go through the rest of the model together, as one batch. Where both texts have the
same value to the bit (before the first token that differs, for one), nothing is run, and nothing changes.

Shapes: B patches of one batch, T tokens, H heads, D emb_dim, d = D/H.

Meng et al., Locating and Editing Factual Associations in GPT, 2022; Wang et al., Interpretability in the
Wild, 2022; Nanda, Attribution Patching, 2023; Syed et al., Attribution Patching Outperforms Automated Circuit
Discovery, 2023; Heimersheim & Nanda, How to use and interpret activation patching, 2024. TransformerLens'
patching.py does the same, a pass at a time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from gptviz.analysis import against
from gptviz.analysis.alignment import missing
from gptviz.analysis.names import groups_of
from gptviz.analysis.patches import (
    HEAD_SITES,
    POSITION_SITES,
    SITES,
    Patch,
    batches,
    one_by_one,
    patches_of,
)
from gptviz.analysis.prompts import (
    Texts,
    averaged,
    beside_orders,
    is_many,
    of_one_text,
    over,
)
from gptviz.engine.architecture import architecture_of
from gptviz.engine.given import Text, ids_of
from gptviz.engine.index import index_of, listed, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer import named_bytes, show_token
from gptviz.tokenizer.one import OneToken, one_token

DIRECTIONS = ("denoising", "noising")

# a smaller difference of the two texts is no scale to measure a patch by
LEAST = 0.01
# Below so many logits the two texts hardly answer differently: the odds between the two words differ by less
# than a factor of e, and what the first has of both together by less than tanh(1/4) = .245. A share of that
# says little: read `logit`.
SHARES_FROM = 1.0

Target = tuple[OneToken, OneToken]
Number = TypeVar("Number", float, pd.Series)


@dataclass(frozen=True)
class Ends:
    """The ends of the scale: the logit of `token` minus that of `against` in the clean and in the corrupt pass."""

    token: int
    against: int
    clean: float
    corrupt: float

    @property
    def distance(self) -> float:
        """The clean text's logit difference minus the corrupt text's."""
        return self.clean - self.corrupt

    @property
    def is_scale(self) -> bool:
        """Whether the two texts differ by enough to measure patches by."""
        return abs(self.distance) >= LEAST

    @property
    def tells_shares(self) -> bool:
        """Whether the two texts are far enough apart for a share of their distance to say much."""
        return abs(self.distance) >= SHARES_FROM

    def metric(self, logit: Number) -> Number:
        """The share of the way from the corrupt text's difference (0) to the clean text's (1)."""
        return (logit - self.corrupt) / self.distance


@undisturbed
def patching(
    lm: LanguageModel,
    clean: Texts,
    corrupt: Texts,
    target: Target | list[Target] | None = None,
    sites: Iterable[str] = SITES,
    direction: str = "denoising",
    position: int = -1,
    progress: Progress = ignore_progress,
    estimate: bool = False,
    last: bool = False,
) -> pd.DataFrame:
    """Patch every place in turn, and measure the difference of two logits at a position.

    `clean` and `corrupt` are two texts of as many tokens, which are taken position by position. `target` is a
    pair of tokens, by id or text (" mill", with its space): the logit of the first less that of the second;
    without one, what the model says first after the clean text, and after the corrupt one. `sites` are
    "resid_pre", "attn_out", "mlp_out", a patch a block and a position each, and "z", "q", "k", "v", "attn"
    (the pattern), a patch a block and a head, at all positions. `direction` is "denoising" (clean values
    into the corrupt pass) or "noising" (corrupt values into the clean one).

    Columns: site, block, head and position (<NA> where there is none), logit (the difference in the patched
    pass), metric ((patched - corrupt) / (clean - corrupt)), effect (metric less that of the pass without a
    patch, which is 0 for denoising and 1 for noising): shares, which say little where the two texts lie less
    than `SHARES_FROM` logits apart; and change, logit less that of the pass without a patch. With `estimate`,
    a column of that name: what attribution patching guesses for change. Site by site, block by block;
    positions up to the one that is looked at, since nothing later reaches it. The rows are those of
    `lm.trace(text, edits=[patch])`, within 1e-5 in float32; where the patch is what stood there, they are the
    unpatched pass to the bit.

    Of two lists of texts, pair by pair, with one target for all or a list of one for each, the numbers are
    means; logit_se, change_se, effect_se (and estimate_se) are their standard errors, n is how many pairs
    there are. (Where two clean texts are each other's with the two words exchanged, both count as one for the errors:
    `gptviz.analysis.names.groups_of`.) effect is then the mean change divided by the mean of clean - corrupt, so
    that a pair whose ends lie close does not outweigh the others. All pairs must have as many tokens, but for sites
    of heads: a position in the middle of one text is no place of another. Where the logits are read is a place of
    all: with `last` sites of positions are patched there only, and the column position has it as it was asked for.

    A model with edits of its own has them in both texts' passes and under every patch; the passes are then
    run one by one. `progress(done, of)` is called after every batch, without a lock: what it raises stops
    the work. Raises ValueError as `lm.trace` does, for texts of unequal length, tokens, sites and directions
    that do not exist, and where the two texts' differences are the same (by less than 0.01).
    """
    sites = _check(sites, direction)
    options: dict[str, Any] = {"sites": sites, "direction": direction, "position": position}
    options |= {"estimate": estimate, "last": last}
    if is_many(clean):
        if not is_many(corrupt) or len(clean) != len(corrupt):
            raise ValueError(
                "clean is a list of texts: give corrupt as one, with a text for each of them"
            )
        if not last:
            check_one_length([ids_of(lm, text) for text in clean], sites)
        pairs = list(zip(clean, corrupt, strict=True))
        tables, distances = zip(*over(of_pair, lm, pairs, target, progress, **options), strict=True)
        return averaged_patches(tables, distances, groups=groups_of(lm, clean, target))
    return of_pair(lm, (clean, corrupt), of_one_text(target), progress, **options)[0]


def check_one_length(texts: Sequence[Sequence[int]], sites: Iterable[str]) -> None:
    """Raise a ValueError if a site is patched by position and the texts are not of one length."""
    odd = next((number for number, ids in enumerate(texts) if len(ids) != len(texts[0])), None)
    if odd is not None and set(sites) & set(POSITION_SITES):
        raise ValueError(
            f"text 0 has {len(texts[0])} tokens and text {odd} has {len(texts[odd])}: position by position "
            "only texts of one length are averaged; give such, or ask for last=True, or for sites of heads: "
            f"{', '.join(HEAD_SITES)}"
        )


def averaged_patches(
    tables: Sequence[pd.DataFrame],
    distances: Sequence[float],
    orders: Sequence[str | None] = (),
    groups: Sequence[int] = (),
) -> pd.DataFrame:
    """The means of the tables of pairs whose ends lie so far apart, clean - corrupt: (n,) of both.

    effect is the mean change divided by the mean distance, and effect_se the standard error of that ratio to first
    order (the delta method). A mean of the pairs' own shares has no such error: one pair whose ends lie close would
    outweigh all others. `groups` and `orders`, one for each table, are those of `averaged`.
    """
    numbers = [name for name in ("logit", "change", "estimate") if name in tables[0]]
    ratio = pd.concat([table["change"] for table in tables], axis=1).mean(axis=1)  # (rows,)
    ratio /= np.mean(distances)
    # what each pair makes of the ratio, to first order: these have it as their mean, and its standard error
    parts = [
        table.assign(effect=ratio + (table["change"] - distance * ratio) / np.mean(distances))
        for table, distance in zip(tables, distances, strict=True)
    ]
    unpatched = (tables[0]["metric"] - tables[0]["effect"]).iloc[0]  # of the pass without a patch
    means = averaged(parts, [*numbers, "effect"], groups=groups)
    means = means.assign(metric=ratio + round(unpatched), effect=ratio)

    def of_order(chosen: Sequence[bool]) -> pd.DataFrame:
        """The means of the chosen pairs alone."""
        own = [*compress(tables, chosen)], [*compress(distances, chosen)]
        return averaged_patches(*own, groups=[*compress(groups, chosen)])

    return beside_orders(means, [*numbers, "effect"], orders, of_order)


@undisturbed
def of_pair(
    lm: LanguageModel,
    clean_and_corrupt: tuple[Text, Text],
    target: Target | None,
    progress: Progress,
    *,
    sites: tuple[str, ...],
    direction: str,
    position: int,
    estimate: bool,
    last: bool,
) -> tuple[pd.DataFrame, float]:
    """`patching` of one pair of texts, and how far apart their differences are."""
    patterns = ("attn",) if "attn" in sites and estimate else ()
    keep = [*kept_for(lm, [site for site in sites if site != "attn"]), *patterns]
    passes = passes_of(lm, clean_and_corrupt, target, position, direction, keep)
    base = passes.base
    ends = passes.ends
    index = passes.index
    first = index if last else 0
    patches = patches_of(lm.config, index + 1, sites, first)
    table = pd.DataFrame(map(vars, patches)).astype({"head": "Int64", "position": "Int64"})
    table["logit"] = logits_of_patches(lm, passes, patches, progress)
    table = with_effects(table, passes)
    if estimate:
        ids = [token.id for token in base.tokens]
        table["estimate"] = estimates(lm, ids, passes.source, ends, index, sites, first)
    if last:
        table["position"] = table["position"].mask(table["position"].notna(), position)
    return table, ends.distance


@undisturbed
def estimates(
    lm: LanguageModel,
    text: Text,
    source: Trace,
    ends: Ends,
    at: int,
    sites: Iterable[str],
    first: int = 0,
) -> NDArray[np.float64]:
    """Estimate to first order what each of `patches_of(lm.config, at + 1, sites, first)` changes.

    From one gradient: the sum over a patch's numbers of (value in `source` - value here) x gradient. A
    pattern counts as numbers of its own, not as its queries and keys make it.
    """
    source.of(lm.model)
    trace = lm.trace(text, keep=sites, grad=(ends.token, ends.against, at))
    rows = []
    for site in sites:
        for b in range(lm.config.n_layers):
            moved = (source[site, b] - trace[site, b]).double() * trace.grad[site, b]
            rows.append(
                moved.sum(dim=(-1, -2)) if site in HEAD_SITES else moved.sum(dim=-1)[first : at + 1]
            )
    return torch.cat(rows).numpy()  # (H,) or (positions,) a site and block -> (patches,)


def agreement(table: pd.DataFrame) -> pd.DataFrame:
    """A table of how well `patching(estimate=True)` estimates the real changes: one row per site.

    Columns: site; largest, of the changes; correlation of estimate and change over its places, NaN where one
    is everywhere the same; worst, the largest |estimate - change|; row, where that stands in the table, and
    all that stands there.
    """
    rows = []
    for _, site_rows in table.groupby("site", sort=False):
        errors = (site_rows["estimate"] - site_rows["change"]).abs()
        measures = {
            "largest": site_rows["change"].abs().max(),
            "correlation": site_rows["estimate"].corr(site_rows["change"]),
            "worst": errors.max(),
            "row": errors.idxmax(),
        }
        rows.append(dict(site_rows.loc[errors.idxmax()]) | measures)
    return pd.DataFrame(rows).astype({"head": "Int64", "position": "Int64"})


@undisturbed
def ends_of(
    lm: LanguageModel, clean: Tensor, corrupt: Tensor, target: Target | None = None
) -> Ends:
    """The scale, of both unpatched passes' logits (V,); without a `target`, of their own first choices.

    ValueError where both have the same first choice, for a pair of one token with itself, and for unknown
    tokens.
    """
    if target is None:
        token = int(clean.argmax())
        other = int(corrupt.argmax())
        if token == other:
            raise ValueError(
                f"both texts give {_shown(lm, token)}: choose two tokens, or change a text"
            )
    else:
        if not isinstance(target, tuple) or len(target) != 2:
            raise ValueError(f"target is {target!r}; give a pair of tokens, or None")
        token, other = (
            one_token(lm.tokenizer, lm.config.vocab_size, id_or_text, "target")
            for id_or_text in target
        )
        if token == other:
            raise ValueError(
                f"target is twice {_shown(lm, token)}, and the difference 0: give two tokens"
            )
    differences = (float(against.difference(logits, token, other)) for logits in (clean, corrupt))
    return Ends(token, other, *differences)


@dataclass(frozen=True)
class BothPasses:
    """The passes of two texts before anything is patched: `base`'s is patched, with values of `source`'s."""

    base: Trace
    source: Trace
    index: int  # the position that is looked at, from 0
    ends: Ends
    before: float  # the difference of logits in `base`


@undisturbed
def passes_of(
    lm: LanguageModel,
    clean_and_corrupt: tuple[Text, Text],
    target: Target | None,
    position: int,
    direction: str,
    keep: Sequence[str],
    scale: bool = True,
) -> BothPasses:
    """Run both texts, up to the position, with these sites kept.

    Raises ValueError if the two texts do not differ by enough to measure patches by, unless `scale` is False.
    """
    texts = [ids_of(lm, text) for text in clean_and_corrupt]
    index = place_of_both(lm, texts[0], texts[1], position)
    if not lm.edits:  # an edit may look at the whole text
        texts = [ids[: index + 1] for ids in texts]
    clean, corrupt = (lm.trace(ids, keep=keep) for ids in texts)
    ends = ends_of(lm, clean.logits(index), corrupt.logits(index), target)
    if scale and not ends.is_scale:
        raise ValueError(
            f"both texts give {_shown(lm, ends.token)} less {_shown(lm, ends.against)} the same difference "
            f"({ends.clean:.4f} and {ends.corrupt:.4f}): there is nothing that a patch could bring back"
        )
    if direction == "noising":
        return BothPasses(clean, corrupt, index, ends, ends.clean)
    return BothPasses(corrupt, clean, index, ends, ends.corrupt)


def kept_for(lm: LanguageModel, sites: Iterable[str]) -> list[str]:
    """What `passes_of` keeps so that these sites, a pattern aside, can be patched."""
    return ["resid_pre", "final", "q", "k", "v", *architecture_of(lm.config).scores, *sites]


@undisturbed
def logits_of_patches(
    lm: LanguageModel, passes: BothPasses, patches: list[Patch], progress: Progress
) -> list[float]:
    """The difference of logits in the pass of each of these patches."""
    base = passes.base
    source = passes.source
    index = passes.index
    if lm.edits:
        rows = one_by_one(lm, base, source, index, patches)
    else:
        rows = batches(lm, base, source, index, patches)
    logits = dict.fromkeys(patches, passes.before)
    done = 0
    towards = against.direction(lm.model, passes.ends.token, passes.ends.against)
    for batch, finals in rows:
        if finals is not None:
            differences = finals.double().cpu() @ towards  # (B, D) x (D,)
            logits |= zip(batch, differences.tolist(), strict=True)
        done += len(batch)
        progress(done, len(patches))
    return [logits[patch] for patch in patches]


def with_effects(table: pd.DataFrame, passes: BothPasses) -> pd.DataFrame:
    """The table with metric, effect and change, from its column logit."""
    metric = passes.ends.metric(table["logit"])
    effect = metric - passes.ends.metric(passes.before)
    return table.assign(metric=metric, effect=effect, change=table["logit"] - passes.before)


def after_the_last_block(ends: Ends, direction: str, count: int) -> NDArray[np.float64]:
    """(count,): by how many logits a patch of the stream behind the last block moves the difference.

    The last of so many positions is the one that is looked at. No attention follows, so what stands there is the
    whole answer, and the other places have no part in it.
    """
    one_of("direction", direction, DIRECTIONS)
    moves = np.zeros(count)
    if direction == "noising":
        moves[-1] = -ends.distance
    else:
        moves[-1] = ends.distance
    return moves


def strongest(
    site: str, effects: NDArray[np.floating], differ: Sequence[int], least: float = 0.0
) -> list[tuple[int, int]]:
    """The two places (block, position) of (L, T) that move most; of the stream, into block 1 and into the last.

    The stream into block 0 is the text itself: where the two texts `differ`, a patch there is the
    difference itself, and is left out. A model of one block has one place then. Where none into block 1 moves
    by `least`, it is any two of the stream, too: what no place carries alone at first, one may later.
    """
    last = len(effects) - 1
    sizes = np.abs(effects)
    if site == "resid_pre":
        sizes[0, [p for p in differ if p < effects.shape[1]]] = 0
        places = [(b, int(sizes[b].argmax())) for b in dict.fromkeys((min(1, last), last))]
        if sizes[places[0]] >= least:
            return places
    order = np.argsort(-sizes.ravel(), kind="stable")[:2]
    return [(int(i) // effects.shape[1], int(i) % effects.shape[1]) for i in order]


def _check(sites: Iterable[str], direction: str) -> tuple[str, ...]:
    choices = f"they are {', '.join(SITES)}"
    if isinstance(sites, str):
        names = [sites]
    else:
        names = listed("sites", sites, choices)
    checked = tuple(dict.fromkeys(map(str, names)))
    wrong = [site for site in checked if site not in SITES]
    if wrong or not checked:
        first_wrong = "nothing"
        if wrong:
            first_wrong = wrong[0]
        raise ValueError(f"sites has {first_wrong!r}; {choices}")
    one_of("direction", direction, DIRECTIONS)
    return checked


def place_of_both(lm: LanguageModel, clean: list[int], corrupt: list[int], position: int) -> int:
    """The position from 0 in two texts of as many tokens. Raises ValueError where they are not."""
    if len(clean) != len(corrupt):
        shorter, longer = sorted((clean, corrupt), key=len)
        if shorter is clean:
            names = ("clean", "corrupt")
        else:
            names = ("corrupt", "clean")
        lacking = missing(shorter, longer)[0]
        raise ValueError(
            f"the clean text has {len(clean)} tokens and the corrupt one {len(corrupt)}; they are taken "
            f"position by position: the {names[0]} one lacks {_shown(lm, longer[lacking.position])}, which "
            f"the {names[1]} one has at position {lacking.position}"
        )
    if not clean:
        raise ValueError("both texts are empty: patching needs at least one token in each")
    return index_of("position", position, len(clean))


def _shown(lm: LanguageModel, token: int) -> str:
    return show_token(named_bytes(lm.tokenizer, token))
