"""The contribution graph: where each token's stream came from, by how close each part is to the sum.

Ferrando et al., Measuring the Mixing of Contextual Information in the Transformer, 2022 (the shares), and
Ferrando & Voita, Information Flow Routes, 2024 (the graph), as the LLM Transparency Tool has them (Tufanov
et al., 2024; facebookresearch/llm-transparency-tool, routes/contributions.py and graph.py): of
parts whose sum is `whole`, a part has the share

    max(|whole| - |whole - part|, EPS), divided by the sum of that over all parts

with |.| the sum of the absolute values. Parts after attention: the shortcut, and each head's weighted value
of each token, without biases; after the feed-forward: the shortcut, and what it adds.

Theirs makes all parts of a text at once, T * T * H * D numbers, 36 GiB for 1,024 tokens of GPT-2; here a
head's rows are measured a few at a time, and only those that are asked for. What the causal mask hides is
no part (theirs counts it with EPS). Shapes in comments: n positions, R rows, H heads, D dimensions.

Beside it stands attention rollout: what is left of a token's way if attention were all that moves.
"""

from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from gptviz.analysis.attention import edited_weights, of_heads, rows_of_attention
from gptviz.analysis.readings import tensor
from gptviz.analysis.reads import of_model, reads
from gptviz.engine.kinds import Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import scored
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed

EPS = 1e-5  # theirs: the least that a part counts
SITES = (scored, "v", "resid_pre", "resid_mid", "mlp_out", "resid_post")

AT_ONCE = 2**18  # numbers of one (rows, positions, D) array, 1 MiB: it stays in the cache of a core
MOST_ROWS = 64  # of a block's positions that are followed further down in a long text,
MOST_NUMBERS = 2**32  # or as many as take about a second

COLUMNS = ("block", "into", "via", "source", "target", "contribution", "head", "head_contribution")


def proximity(parts: Tensor, whole: Tensor) -> Tensor:
    """max(|whole| - |whole - part|, EPS): (..., D) -> (...), before it is divided by the sum."""
    nearness = whole.abs().sum(dim=-1) - (whole - parts).abs().sum(dim=-1)
    return nearness.clamp(min=EPS)


@of_model
def into_attention(
    trace: Trace, model: Model, block: int, positions: Tensor
) -> tuple[Tensor, Tensor]:
    """The shares of the stream after attention at some positions, (R, H, n) by head and token, and the
    shortcut's (R,): together 1 a row. n goes up to the last of the positions."""
    weights = rows_of_attention(trace, block, positions)  # (H, R, n)
    n = weights.shape[-1]
    stream_after = trace["resid_mid", block][positions]  # (R, D)
    values = of_heads(trace, "v", block)[:, :n]  # (H, n, d)
    heads, _, d = values.shape
    out = tensor(model.trf_blocks[block].att.out_proj.weight)  # (D, H d)
    nearness = torch.zeros(len(positions), heads, n)
    rows_at_once = max(1, AT_ONCE // (n * stream_after.shape[-1]))
    for head in range(heads):
        written = values[head] @ out[:, head * d : (head + 1) * d].T  # (n, d) x (d, D) -> (n, D)
        for start in range(0, len(positions), rows_at_once):
            rows = slice(start, start + rows_at_once)
            parts = weights[head, rows, :, None] * written  # (r, n, 1) x (n, D) -> (r, n, D)
            nearness[rows, head] = proximity(parts, stream_after[rows, None])
    later = torch.arange(n) > positions[:, None]  # (R, n)
    nearness.masked_fill_(later[:, None], 0)
    stays = proximity(trace["resid_pre", block][positions], stream_after)  # (R,)
    total = nearness.sum(dim=(1, 2)) + stays
    return nearness / total[:, None, None], stays / total


@undisturbed
def into_feed_forward(trace: Trace, block: int, positions: Tensor) -> tuple[Tensor, Tensor]:
    """The shares of the stream after the feed-forward: what it adds (R,), and the shortcut (R,)."""
    stream_after = trace["resid_post", block][positions]  # (R, D)
    adds = proximity(trace["mlp_out", block][positions], stream_after)
    stays = proximity(trace["resid_mid", block][positions], stream_after)
    return adds / (adds + stays), stays / (adds + stays)


def renormalized(parts: Tensor, stays: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Shares of `threshold` and less erased, the others scaled to sum to 1 again: (R, ...) and (R,).

    A row of which nothing is left stays empty (theirs divides by zero).
    """
    parts = parts * (parts > threshold)
    stays = stays * (stays > threshold)
    # (R, ...) -> (R, numbers of a row) -> (R,)
    total = parts.reshape(len(parts), -1).sum(dim=1) + stays
    total = torch.where(total > 0, total, 1)
    # (R,) -> (R, 1, ...), as many dimensions as `parts` has
    return parts / total.view(-1, *[1] * (parts.dim() - 1)), stays / total


@dataclass(frozen=True)
class ContributionGraph:
    """The contributions to the stream of one token, from the last block down, as edges above a threshold.

    `edges` has a row an edge: block, into ("attention" or "feed-forward": which step made the node), via
    ("attention", "feed-forward" or "shortcut"), source and target (positions), contribution, and the head
    that gives most of it with its part. `left_out`: positions that were reached and not followed.
    """

    edges: pd.DataFrame
    left_out: int


@reads(*SITES, edited_weights)
def contribution_graph(
    lm: LanguageModel,
    t: Trace,
    position: int = -1,
    threshold: float = 0.04,
    renormalize: bool = False,
    most: int = MOST_ROWS,
) -> ContributionGraph:
    """The graph below one token, as LLM-TT draws it: what reaches it over edges of more than `threshold`.

    An edge between two tokens sums all heads, and from a token to itself the shortcut, too, before it is
    compared. With `renormalize`, their app's default, each head's share is compared alone, what remains is
    scaled up to 1, and all of it is followed.
    At most `most` positions a block are followed, those with the largest shares. ValueError for a
    position or a threshold that makes no sense.
    """
    if not 0 <= threshold < 1:
        raise ValueError(f"threshold is {threshold}; it must be at least 0 and below 1")
    if renormalize:
        cut = threshold
        least = 0.0
    else:
        cut = -1.0
        least = threshold
    reached = {t.place_of(position): 1.0}  # position -> the largest share on the way to it
    edges: list[tuple[object, ...]] = []
    left_out = 0
    for block in reversed(range(lm.config.n_layers)):
        positions = torch.tensor(sorted(reached))
        mid: list[int] = []
        adds, stays = renormalized(*into_feed_forward(t, block, positions), cut)
        for row, target in enumerate(positions.tolist()):
            ways = [("feed-forward", adds[row].item()), ("shortcut", stays[row].item())]
            for via, share in ways:
                if share > least:
                    edges.append((block, "feed-forward", via, target, target, share, None, None))
            if max(share for _, share in ways) > least:
                mid.append(target)
        if not mid:
            break
        follow: dict[int, float] = {}
        by_head, stays = renormalized(*into_attention(t, lm.model, block, torch.tensor(mid)), cut)
        for row, target in enumerate(mid):
            shares = by_head[row].sum(dim=0)  # (n,)
            together = shares.clone()
            together[target] += stays[row]
            for source in (together > least).nonzero()[:, 0].tolist():
                head = int(by_head[row, :, source].argmax())
                strongest = by_head[row, head, source].item()
                via_head = (head, strongest) if strongest > 0 else (None, None)
                edges_in = [("attention", shares[source].item(), *via_head)]
                if source == target:
                    edges_in.append(("shortcut", stays[row].item(), None, None))
                edges += [
                    (block, "attention", via, source, target, share, *best)
                    for via, share, *best in edges_in
                    if share > 0
                ]
                follow[source] = max(
                    reached[target] * together[source].item(), follow.get(source, 0.0)
                )
        followed = sorted(follow, key=lambda p: -follow[p])[:most]
        if block:
            left_out += len(follow) - len(followed)
        reached = {p: follow[p] for p in followed}
        if not reached:  # each of what came into it is too small a share
            break
    table = pd.DataFrame(edges, columns=list(COLUMNS))
    return ContributionGraph(
        table.astype({"head": "Int64", "head_contribution": "float64"}), left_out
    )


@reads(*SITES, edited_weights)
def token_flow(
    lm: LanguageModel, t: Trace, position: int = -1, most: int | None = None
) -> tuple[Tensor, float]:
    """(n_layers + 1, n): the contributions multiplied down to the embeddings, rows as in `rollout`.

    The feed-forward moves nothing between tokens; after attention a token's share is divided by the shares
    of what came into it. In each block the `most` largest shares are followed (None: as many as take about
    a second, all of a text that is not long) and the others taken to stay where they are; the second number
    is the least that was followed in any block, 1 where all was.
    """
    n = t.place_of(position) + 1
    config = lm.config
    if most is None:
        most = max(
            MOST_ROWS, MOST_NUMBERS // (config.n_layers * n * config.n_heads * config.emb_dim)
        )
    row = torch.eye(n)[-1]
    rows = [row]
    followed = 1.0
    for block in reversed(range(config.n_layers)):
        order = torch.sort(row, descending=True).indices
        not_followed = row[order[most:]].sum().item()
        chosen = order[:most][row[order[:most]] > 0].sort().values
        by_head, stays = into_attention(t, lm.model, block, chosen)
        below = row.clone()
        below[chosen] = row[chosen] * stays
        below[: by_head.shape[-1]] += row[chosen] @ by_head.sum(dim=1)  # (R,) x (R, n)
        followed = min(followed, 1 - not_followed)
        row = below
        rows.append(row)
    return torch.stack(rows[::-1]), followed  # (n_layers + 1, n)


# ---- attention alone ----


@reads(scored, edited_weights)
def rollout(lm: LanguageModel, t: Trace, position: int = -1) -> Tensor:
    """(n_layers + 1, n): what the token at `position` draws from each position, at each depth.

    Abnar & Zuidema, Quantifying Attention Flow in Transformers, 2020: in every block half of a token stays
    where it is (the shortcut, as the identity matrix) and half goes where the mean of the heads looks,
    A = 0.5 W + 0.5 I; the matrices of the blocks are multiplied. Nothing else of the model is looked at: no
    values, no feed-forward, no sizes.

    Row L is the token itself, row l where what stands before block l comes from, and row 0 the embeddings;
    every row sums to 1 where the rows of attention do (an edit can have set them to 0). It is one row of the
    product of the matrices: T by T matrices are never multiplied.
    """
    n = t.place_of(position) + 1
    rows = [torch.eye(n)[-1]]
    for block in reversed(range(lm.config.n_layers)):
        looks = rows_of_attention(t, block, torch.arange(n)).mean(dim=0)  # (H, n, n) -> (n, n)
        rows.append(0.5 * rows[-1] + 0.5 * rows[-1] @ looks)  # half stays: their convention
    return torch.stack(rows[::-1])  # (n_layers + 1, n)
