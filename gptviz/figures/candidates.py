"""The next token's candidates as rows: numbers as they are read, each row's arithmetic in a sentence, and the
bar on which a random number falls.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gptviz.analysis.next_token import KEPT, Candidates, rest_of
from gptviz.digits import fixed, percent
from gptviz.engine.sampling import AS_IT_IS, Sampling
from gptviz.figures.marks import CHANGED, UNCHANGED
from gptviz.figures.next_token import probability_text

Row = dict[str, Any]


def column_heads(sampling: Sampling, compared: bool = False) -> dict[str, str]:
    """The heading of each column, with the sliders' values; `compared` adds the unchanged one.

    A step that does nothing has no column: the room is the bars'. A division by 1 is left out together with
    the logit, and the filters where none is set.
    """
    heads = {"rank": "rank", "token": "token"}
    if sampling.temperature != 1:
        # -0.0 is a temperature, too: it reads as 0
        heads |= {"logit": "logit", "scaled": f"÷ {abs(sampling.temperature):g}"}
    if sampling.top_k is not None or sampling.top_p not in (None, 1):
        heads["filter"] = "filters"
    if compared:
        return heads | {"before": UNCHANGED, "p": CHANGED}
    return heads | {"p": "probability"}


def candidate_rows(
    found: Candidates,
    sampling: Sampling,
    name: Callable[[int], str],
    whole: Callable[[int], bool] = lambda _: True,
    came: int | None = None,
    unchanged: Candidates | None = None,
) -> tuple[list[Row], Row | None]:
    """A dict for each row, and one for the rest of the vocabulary (None if there is no rest).

    `name` gives a token for the screen; `whole` says whether a text can end in it (a piece of a
    character cannot be appended). `came` is the id of the token that follows in the prompt.

    A row's `ghost` is what it is compared with: its probability in `unchanged`, those of the model without
    edits under the same settings; else, where settings change something, the model's own; else None.
    `was_rank` is its rank in that model, 0 without one; `was_first`: it is the most probable token of the
    unchanged model alone.
    """
    rows = []
    for row in found.table.to_dict("records"):
        token = row["id"]
        cut = row["filter"] != KEPT
        p = row["probability"]
        sentence = _steps(row, found, sampling, "model" if unchanged is None else "changed model")
        if sampling.changes_nothing:
            ghost = None
        else:
            ghost = row["model_probability"]
        rank = 0
        if unchanged is not None:
            ghost = float(unchanged.chosen.probabilities[token])
            rank = int(unchanged.chosen.rank[token]) + 1
            sentence += f" Unchanged, it has {probability_text(ghost)}, rank {rank:,}."
        texts = {
            "rank_text": f"{row['rank']:,}",
            "logit_text": fixed(row["logit"], 2),
            "scaled_text": "" if sampling.temperature == 0 else fixed(row["scaled"], 2),
            "filter_text": f"✕ {row['filter']}" if cut else "✓",
            "p_text": probability_text(p),
            "ghost_text": probability_text(ghost) if rank and ghost is not None else "",
        }
        first = row["rank"] == 1
        marks = {"first": first, "was_first": rank == 1 and not first, "out": cut, "rest": False}
        marks |= {"whole": whole(token), "came": token == came, "was_rank": rank}
        shown = {"key": str(token), "token": name(token), "ghost": ghost, "sentence": sentence}
        rows.append(row | shown | texts | marks)
    return rows, _rest(found, sampling, unchanged) if found.rest else None


def plain_rows(found: Candidates, name: Callable[[int], str]) -> tuple[list[Row], Row | None]:
    """`candidate_rows` by the model's own probabilities, compared with nothing."""
    return candidate_rows(found, AS_IT_IS, name)


def _others(candidates: Candidates) -> str:
    """The name of all tokens without a row: "50,247 others"."""
    if candidates.rest > 1:
        return f"{candidates.rest:,} others"
    return "1 other"


def all_others(count: int) -> str:
    """Name the row of all tokens without one, so that nobody takes it for a token of the list."""
    if count > 1:
        return f"all {count:,} others together"
    return "the 1 other token"


def _rest_words(candidates: Candidates, p: str) -> str:
    """Say how many tokens the rest are, how many of them are kept, and their probability."""
    if candidates.rest == 1:
        kept_words = "not cut"
        if not candidates.rest_kept:
            kept_words = "which is cut"
        return f"The one other token of the vocabulary, {kept_words}, has {p}."
    kept_words = "none of them cut"
    if candidates.rest_kept < candidates.rest:
        kept_words = f"{candidates.rest_kept:,} of them kept"
    return f"The other {candidates.rest:,} tokens of the vocabulary, {kept_words}, share {p}."


def _rest(candidates: Candidates, sampling: Sampling, unchanged: Candidates | None) -> Row:
    mark = "✓"
    p = probability_text(candidates.rest_probability)
    if candidates.rest_kept < candidates.rest:
        mark = "✕"
        if candidates.rest_kept:
            mark = f"{candidates.rest_kept:,} ✓"
    sentence = _rest_words(candidates, p)
    have = "they share"
    these = "these tokens share"
    if candidates.rest == 1:
        have = "it has"
        these = "this token has"
    ghost = None
    if unchanged is not None:
        ghost = rest_of(
            unchanged.chosen.probabilities, torch.tensor(candidates.table["id"].tolist())
        )
        sentence += f" Unchanged, {these} {probability_text(ghost)}."
    if not sampling.changes_nothing:
        sentence += (
            f" Without these settings {have} {probability_text(candidates.rest_model_probability)}."
        )
    texts = {"rank_text": "", "logit_text": "", "scaled_text": "", "filter_text": mark, "p_text": p}
    if ghost is None:
        texts["ghost_text"] = ""
    else:
        texts["ghost_text"] = probability_text(ghost)
    marks = dict.fromkeys(("first", "was_first", "whole", "came"), False)
    marks |= {"out": not candidates.rest_kept, "rest": True}
    numbers = {
        "probability": candidates.rest_probability,
        "model_probability": candidates.rest_model_probability,
    }
    name = all_others(candidates.rest)
    shown = {"key": "rest", "token": name, "ghost": ghost, "sentence": sentence}
    return {"id": None, "rank": 0, "was_rank": 0} | numbers | shown | texts | marks


def _steps(row: Row, candidates: Candidates, sampling: Sampling, model: str) -> str:
    """The arithmetic from the logit to the probability in words, to be put after the token."""
    logit = fixed(row["logit"], 2)
    p = probability_text(row["probability"])
    temperature = sampling.temperature
    model_words = f" The {model} itself gives it {probability_text(row['model_probability'])}."
    start = f"(rank {row['rank']:,}): logit {logit}"
    if temperature == 0:
        takes = "not the largest"
        if row["rank"] == 1:
            takes = "the largest: temperature 0 gives it everything"
        return f"{start}, {takes}. Probability {p}.{model_words}"
    scaled = fixed(row["scaled"], 2)
    if temperature != 1:
        start += f" ÷ temperature {temperature:g} = {scaled}"
    if row["filter"] != KEPT:
        value = sampling.top_k if row["filter"] == "top-k" else sampling.top_p
        return f"{start}, and {row['filter']} {value:g} cuts it: probability 0.{model_words}"
    log_sum = fixed(candidates.log_sum, 2)
    if candidates.log_sum >= 0:
        power = f"e^({scaled} − {log_sum})"
    else:
        power = f"e^({scaled} + {log_sum[1:]})"
    tokens_left = "the one token that is left"
    if candidates.kept > 1:
        tokens_left = f"the {candidates.kept:,} tokens that are left"
    if candidates.kept == len(candidates.chosen.kept):
        tokens_left = f"all {candidates.kept:,} tokens"
    softmax = f"Softmax: {power} = {p}, where {log_sum} is the logarithm of the sum of e^x over {tokens_left}."
    if sampling.changes_nothing:
        return f"{start}. {softmax}"
    return f"{start}. {softmax}{model_words}"


# ---- with a part on, and with it off ----

ON = "part on"  # the heading of what they have as it is: outlined
ON_OFF = {"token": "token", "p": f"{ON} → part off"}  # the headings of these rows
LEAST = 0.00001  # of a share that is written with its digits beside a bar


def before_and_after(
    before: Candidates,
    after: Candidates,
    without: str,
    name: Callable[[int], str],
    first: int,
    also: Sequence[int] = (),
    came: int | None = None,
) -> tuple[list[Row], Row | None]:
    """Rows as those of `candidate_rows`, of the model without one part; `ghost` is what they had with it.

    They keep their places, whatever is switched off: the `first` tokens of `before` stand first, in its order, and then
    those of `also`; below them those of `after` that are new among its first. Both have a row for all of them in
    their tables. `without` is what is switched off, in words: "head 0·1".
    """
    rows, rest = candidate_rows(after, AS_IT_IS, name, came=came, unchanged=before)
    by_rank = sorted(rows, key=lambda row: row["was_rank"])
    kept = [*(row["id"] for row in by_rank[:first]), *also]
    places = {token: place for place, token in enumerate(dict.fromkeys(kept))}
    rows.sort(key=lambda row: (places.get(row["id"], len(places)), row["rank"]))
    for row in rows:
        was = f"{probability_text(row['ghost'])}, rank {row['was_rank']:,}"
        now = f"{probability_text(row['probability'])}, rank {row['rank']:,}"
        row["sentence"] = f"has {was}. Without {without} it has {now}."
    if rest is not None:
        was = probability_text(rest["ghost"])
        now = probability_text(rest["probability"])
        others = f"The other {after.rest:,} tokens of the vocabulary share"
        have = "they share"
        if after.rest == 1:
            others = "The one other token of the vocabulary has"
            have = "it has"
        rest["sentence"] = f"{others} {was}. Without {without} {have} {now}."
    for row in (*rows, *([] if rest is None else [rest])):
        row["p_text"] = _from_to(row["ghost"], row["probability"])
    return rows, rest


def _from_to(before: float, after: float) -> str:
    """Two shares beside a bar: "95 % → 18 %", or "95 %" where they read the same."""
    was = _short_percent(before)
    now = _short_percent(after)
    if was == now:
        return now
    return f"{was} → {now}"


def _short_percent(share: float) -> str:
    """A share in percent, as short as it can be said: "<0.001 %", "95 %", ">99.9 %"."""
    if 0 < share < LEAST:
        return "<0.001 %"
    return percent(share).replace("more than ", ">")


# ---- how one of them is drawn ----


@dataclass(frozen=True)
class Draw:
    """The rows of the picture of a draw; `start` and `stop` are places on the bar, from 0 to 1.

    `rows` are the candidates, `segments` the whole bar from left to right, `rest` what stands for all
    tokens without a row (None where there are none).
    """

    rows: list[Row]
    segments: list[Row]
    rest: Row | None


def draw_rows(
    found: Candidates,
    sampling: Sampling,
    standing: int | None,
    how: str,
    name: Callable[[int], str],
    unchanged: Candidates | None = None,
) -> Draw:
    """`candidate_rows` and their stretches; `standing` is the id of the token in the text, `how` says why."""
    rows, rest = candidate_rows(found, sampling, name, unchanged=unchanged)
    # (V,): where each rank ends
    bar = torch.cumsum(found.chosen.probabilities[found.chosen.order], dim=0)
    segments: list[Row] = []
    covered = 0.0
    for index, row in enumerate(rows):
        rank = row["rank"]
        start = 0.0
        if rank > 1:
            start = float(bar[rank - 2])
        stop = float(bar[rank - 1])
        if row["out"]:
            ends = ""
        else:
            ends = " to ".join(place_text(end, stop - start) for end in (start, stop))
        row |= {
            "shown": row["token"],
            "start": start,
            "stop": stop,
            "place": ends,
            "cut": row["out"],
        }
        row |= {"drawn": row["id"] == standing, "standing": how}
        row["sentence"] = f"{row['token']} {row['sentence']}"
        segments += _gap(found, covered, start)
        if stop > start:
            part = {"index": index, "start": start, "stop": stop, "shown": row["token"]}
            segments.append(part | {"kind": "candidate"})
            covered = stop
    return Draw(
        rows,
        segments + _gap(found, covered, 1.0),
        rest and rest | {"shown": _others(found), "place": ""},
    )


def _gap(candidates: Candidates, start: float, stop: float) -> list[Row]:
    """The gap between two rows' stretches, as a row; none where they touch."""
    gap = {
        "index": None,
        "start": start,
        "stop": stop,
        "shown": _others(candidates),
        "kind": "rest",
    }
    if stop - start > 1e-9:
        return [gap]
    return []


def place_text(place: float, width: float) -> str:
    """A place on the bar, with enough digits for a stretch of this width; 0 and 1 without decimals."""
    if place in (0, 1):
        return fixed(place, 0)
    return fixed(
        place, 3 if width >= 0.002 else min(12, 1 - math.floor(math.log10(max(width, 1e-11))))
    )
