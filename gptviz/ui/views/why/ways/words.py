"""The sentences of the panels on paths, flow and agreement: numbers in, Markdown out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gptviz.digits import fixed, percent, significant
from gptviz.ui.words import Place, compared_with, towards


@dataclass(frozen=True)
class Writer:
    """What wrote something at a place: "head" (of a block), "feed-forward", or the token's "embedding"."""

    part: str
    block: int | None
    head: int | None
    place: Place

    def __str__(self) -> str:
        if self.part == "embedding":
            return f"the token {self.place}"
        if self.part == "head":
            return f"block {self.block}, head {self.head} at {self.place}"
        return f"the feed-forward of block {self.block} at {self.place}"


# ---- paths ----

PATHS = (
    "A path begins at a token or a feed-forward, goes through a head, perhaps through a second one, and ends "
    "at the word. The thickness of an edge is its size as a share of all that is written straight to the "
    "word. Circles are heads (block.head), squares feed-forwards, dots tokens with their position's "
    "embedding."
)

ASSUMES_PATHS = (
    "**What it assumes.** Full edges are exact: each LayerNorm's mean and scale are frozen at what they were "
    "at that position, attention weights stay as they are, and what a head took from a token is split by who "
    "had written that token's stream. Dotted edges are first order: how fast the head's part grows with its "
    "query or its keys (the gradient, norm frozen), times what each part wrote of them. They say what made "
    "the head look where it looked, and would be right for a small change only. A feed-forward is not "
    "linear: no path goes on below it."
)


def strongest(writer: Writer, heads: Sequence[Writer], logits: float, word: str, against: str | None) -> str:
    """The largest exact path: who wrote, and the heads that it goes through, the one at the word last."""
    through = " then by ".join(str(head) for head in heads)
    return (
        f"**The strongest path** to {towards(word, against)}, exactly: {writer}, read by {through}: "
        f"{_logits(logits)}."
    )


def looked(writer: Writer, head: Writer, by: str, logits: float) -> str:
    """What most made a head look where it did, to first order. `by` is "Q" or "K"."""
    read = "its own query" if by == "Q" else "the key that it read there"
    return (
        f"**Why a head looked where it did**, to first order: {head} wrote {_logits(abs(logits))} "
        f"{'more' if logits >= 0 else 'less'} for what {writer} had put into {read}."
    )


def no_ways(least: float) -> str:
    return (
        f"Nothing that a head read makes {percent(least)} of the word or more: no path goes through a head."
    )


def counted(drawn: int, found: int, threshold: float, total: float, scale: float, against: str | None) -> str:
    """How many edges are drawn of those from the threshold on, and what the shares are shares of."""
    said = f"All {found}" if drawn == found else f"The {drawn} largest of {found}"
    return (
        f"{said} edges of {percent(threshold)} and more are drawn. All that is written straight to the word "
        f"sums to its logit minus {compared_with(against)}, {significant(total)}; the sizes without their "
        f"signs sum to {significant(scale)}, which is 100 %."
    )


PATHS_TABLE = (
    "A row an edge: what writes at which position, and which head reads it there, by value (V), query (Q) or "
    "key (K). In logits. `parent` is the edge that the reading head itself makes."
)


# ---- flow ----

CONTRIBUTIONS, ROLLOUT = "Contributions", "Attention rollout"

ASSUMES: Mapping[str, str] = {
    CONTRIBUTIONS: (
        "**What it assumes.** What is near to a sum has made it: a part counts by how much nearer to the "
        "whole stream (sum of absolute differences) it brings one than nothing does; a part that points away "
        "counts for nothing, however large. No word is asked for: this is what the stream is made of, not "
        "what of it speaks for a word. (Ferrando et al., 2022; LLM Transparency Tool, 2024.)"
    ),
    ROLLOUT: (
        "**What it assumes.** In every block half of a token stays where it is and half goes where its heads "
        "look on average. Values, sizes, signs and feed-forwards play no part, and no word is asked for. "
        "(Abnar & Zuidema, 2020.)"
    ),
}


DEPTH: Mapping[str, str] = {
    CONTRIBUTIONS: "the contributions multiplied down to the tokens",
    ROLLOUT: "attention multiplied down to the tokens",
}


def flow(way: str, selected: Place, own: float, other: Place | None, share: float) -> str:
    """Where the selected token's last stream comes from: itself, and most from another token."""
    by = "by contributions" if way == CONTRIBUTIONS else "by attention rollout"
    text = (
        f"Multiplied down to the tokens {by}, **{percent(own)}** of the last stream of {selected} is its own"
    )
    if other is None:
        return f"{text}: nothing stands before it."
    return f"{text}, and {percent(share)}, the most of any other, comes from {other}."


def followed(share: float) -> str:
    """For a long text: not every row was worked out."""
    return (
        f"In each block the largest shares are followed, {percent(share)} of the whole or more; the rest is "
        "taken to stay where it is."
    )


HEAD_BY_HEAD = (
    "On, as in LLM Transparency Tool: what each head took from each token is compared with the threshold by "
    "itself, and what remains is scaled up to 100 %. Off: all heads between two tokens are added up and then "
    "compared, and nothing is scaled."
)


def graph_counted(drawn: int, threshold: float, left_out: int, scaled: bool) -> str:
    text = (
        f"{drawn} edges. Each dot is a token's stream after a step; thickness is the share of the stream "
        f"above that an edge makes. Followed is what makes more than {percent(threshold)}, "
    )
    if scaled:
        text += "each head by itself; what remains into a dot is scaled up to 100 %."
    else:
        text += "heads and shortcut together; all that flows into a dot, drawn or not, is 100 %."
    if left_out:
        text += f" {left_out} places that are reached are not followed further."
    return text


GRAPH_TABLE = (
    "A row an edge: contribution is its share of the target's stream after the block's step; head is the one "
    "that gives most of it."
)
DEPTH_TABLE = "A row a depth and a token: the share of the selected token's last stream that comes from it."


# ---- agreement ----

WHAT_THEY_ARE = (
    "**attention**: the mean over the heads of the last block. **rollout**: attention multiplied through all "
    "blocks. **contribution**: nearness multiplied through all blocks. **attribution**: what all heads wrote "
    "straight to the word from that token, against the mean of all logits or the other word's. **muting**: "
    "what the word loses if no later token may look at it, a real pass for each. The first three ask for no "
    "word; the last two have a sign, and rank by size. Attention and attribution mean what "
    "stands at a position when it is read, the other three the token that was typed."
)

NOTHING_BEFORE = "Nothing stands before the selected token: there is nothing to rank. Select a later one."


def agreement(
    firsts: Sequence[tuple[str, Place]],
    best: tuple[str, str, float] | None,
    worst: tuple[str, str, float] | None,
) -> str:
    """Which token each way names first, and which two ways are most and least alike."""
    named: dict[Place, list[str]] = {}
    for way, place in firsts:
        named.setdefault(place, []).append(way)
    most = sorted(named.items(), key=lambda item: (-len(item[1]), item[0].position))
    if len(most) == 1:
        text = f"**They agree on the first:** all {len(firsts)} ways name {most[0][0]}."
    else:
        said = [f"{_listed(ways)} name{'s' if len(ways) == 1 else ''} {place}" for place, ways in most]
        text = f"**They do not agree on the first:** {'; '.join(said)}."
    if best is not None and worst is not None and best[:2] != worst[:2]:
        text += (
            f" Over all ranks {best[0]} and {best[1]} are most alike ({fixed(best[2], 2)}), "
            f"{worst[0]} and {worst[1]} least ({fixed(worst[2], 2)})."
        )
    return text


def compared(shown: int, earlier: int) -> str:
    """Of a long text not all tokens are muted."""
    if shown == earlier:
        return f"All {earlier} tokens before the selected one; 1 is the one that counts most."
    return (
        f"Of {earlier:,} tokens before the selected one the {shown} that some way ranks first; ranks and "
        "correlations are among these."
    )


def ask(passes: int, n_tokens: int) -> str:
    return f"Mute them: {passes} passes of {n_tokens:,} tokens"


ASK_HELP = (
    "Each token is hidden from all later ones in a pass of its own, a few at a time. Any click stops it, and "
    "what is done is kept."
)

CORRELATIONS = (
    "Spearman's rank correlation: 1 the same order, 0 no relation, −1 the opposite order. Few tokens make it "
    "coarse."
)
AGREEMENT_TABLE = (
    "A row a token before the selected one: each way's number, and its rank among those compared."
)


# ---- pieces ----


def _logits(value: float) -> str:
    return f"**{significant(value)}** logits"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
