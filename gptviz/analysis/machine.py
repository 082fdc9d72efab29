"""The numbers of the machine's picture, place by place: what happens to the selected token there.

Each kind of place (see `gptviz.analysis.places`) has a function that gives what is drawn: arrays, numbers,
and `says`, a sentence in pieces: texts, numbers and {"code": a token}. `shown` is what was chosen to be drawn
(the strongest reads, the best tokens): given to a call of the unchanged model, it shows the same there.

Shapes: T tokens, W of them in the window around the selected one, L blocks, H heads, d = D / H, D emb_dim,
U units (GPT-2: 4D), V vocabulary. Sizes are Euclidean lengths.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from gptviz.analysis import attention, feed_forward, norms
from gptviz.analysis.against import double
from gptviz.analysis.attention import edited_weights, handed_on, rows_of_attention, write_lengths
from gptviz.analysis.embeddings import embedding_rows, shared_scale
from gptviz.analysis.places import Place, parse, possible
from gptviz.analysis.reads import Sites, reads
from gptviz.analysis.stream import cosine
from gptviz.digits import percent
from gptviz.engine.architecture import architecture_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.reduction import Reduction
from gptviz.engine.sampling import distribution
from gptviz.engine.sites import embedded, scored, start
from gptviz.engine.trace import Trace
from gptviz.tokenizer import named_bytes, show_token

WINDOW = 24  # tokens that are drawn
READS = 3  # of a block, the strongest
WIDE = 96  # numbers of a long row that are drawn
BEST = 10  # next tokens
UNITS = 8  # that write most

Level = dict[str, Any]


def lengths(rows: torch.Tensor) -> torch.Tensor:
    """The norm of each token's vector: (T, D) -> (T,)."""
    return rows.double().norm(dim=-1)


STREAM = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")
LENGTHS = tuple(Reduction(f"lengths of {site}", site, lengths) for site in STREAM)
"""What `machine` wants of the stream, which a pass can make on the way instead of keeping it."""

_SITES: dict[str, tuple[str, ...]] = {  # of the place's block
    "block": STREAM,
    "norm1": ("resid_pre",),
    "norm2": ("resid_mid",),
    "attention": ("attn", "z"),
}


def reading(lm: LanguageModel) -> Sites:
    """The sites that `machine` reads beside the lengths."""
    return (
        *scored(lm),
        "v",
        *edited_weights(lm),
        *["z"] * any(edit.site == "z" for edit in lm.edits),
    )


def _sites(lm: LanguageModel, address: str, *_: object) -> Sites:
    place = possible(parse(address), lm.config, 1)
    if place.kind == "machine":
        return (*reading(lm), *STREAM)
    if place.kind == "embedding":
        return (*embedded(lm), *start(lm))
    if place.kind == "final_norm":
        return (("resid_post", lm.config.n_layers - 1),)
    if place.kind in ("feed_forward", "unit"):
        return feed_forward.sites(lm, place.block)
    sites = _SITES.get(place.kind, ())
    if place.kind in ("head", "cell"):
        sites = attention.head_sites(lm)
    return tuple((site, place.block) for site in sites) or ("final",)


@reads(_sites)
def level(lm: LanguageModel, t: Trace, address: str, position: int, shown: Any = None) -> Level:
    """The level that is drawn at a place (`places.resolve` gives its address) for the token at `position`."""
    place = possible(parse(address), lm.config, len(t))
    return {"shown": None} | _LEVELS[place.kind](lm, t, place, position, shown)


def window(n_tokens: int, position: int) -> range:
    """At most WINDOW positions with the selected one among them, two after it where the text has them."""
    start = max(0, min(position - WINDOW + 3, n_tokens - WINDOW))
    return range(start, min(start + WINDOW, n_tokens))


def _says(sentence: str, *parts: Any) -> list[Any]:
    """The sentence in pieces, a part in place of each {}."""
    texts = sentence.split("{}")
    pieces = [piece for pair in zip(texts, parts, strict=False) for piece in pair]
    return [piece for piece in (*pieces, texts[-1]) if piece != ""]


def _code(t: Trace, position: int) -> dict[str, str]:
    return {"code": show_token(t.tokens[position].raw)}


def _length(values: Any) -> float:
    return float(np.linalg.norm(np.asarray(values, dtype=np.float64)))


def table(level: Level) -> pd.DataFrame:
    """The single numbers of a level, a row for each read, head, wire, line or token."""
    if "scores" in level:
        columns = {"position": level["rows"], "score": level["scores"], "scaled": level["scaled"]}
        return pd.DataFrame(columns | {"weight": level["row"]})
    rows = next(level[name] for name in ("reads", "heads", "wires", "lines") if name in level)
    bars = [{"label": bar["shown"], "number": bar["value"]} for bar in level.get("bars", [])]
    drawn = {"at", "values", "of", "limit", "paint", "into"}
    return pd.DataFrame(
        [{name: row[name] for name in row if name not in drawn} for row in [*rows, *bars]]
    )


# ---- the machine, a block, its heads ----


def _stream(lm: LanguageModel, t: Trace, site: str, rows: range) -> np.ndarray:
    """(L, W): the lengths of a site in every block."""
    blocks = t.reduced(next(reduction for reduction in LENGTHS if reduction.site == site))
    return torch.stack(blocks)[:, rows.start : rows.stop].numpy()  # L of (T,) -> (L, T) -> (L, W)


def _machine(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    rows = window(len(t), position)
    pre, attn, mid, mlp, post = (_stream(lm, t, site, rows) for site in STREAM)  # (L, W) each
    brought = []
    weights = []
    for b, block in enumerate(lm.model.trf_blocks):
        row = rows_of_attention(t, b, torch.tensor([position]))[:, 0]  # (H, position + 1)
        values = attention.of_heads(t, "v", b)[:, : position + 1]  # (H, position + 1, d)
        lengths = write_lengths(values, block.att.out_proj.weight)  # (H, position + 1)
        times = handed_on(t, lm.model, b, position, row, values).abs()
        # a change may let nothing of it into the stream
        times *= bool(attn[b, position - rows.start])
        brought.append((row * lengths * times.nan_to_num()).numpy())  # 0 of what is something else
        weights.append(row.numpy())
    if shown is None:
        all_reads = [
            (b, *pair)
            for b, sizes in enumerate(brought)
            for pair in _strongest(sizes[:, :position])
        ]
        picked = tuple(sorted(all_reads, key=lambda read: -brought[read[0]][read[1:]]))
        shown = picked, tuple(t.next_tokens(k=BEST, position=position)["id"].tolist())
    picked, ids = shown
    reads = [
        dict(
            block=b, head=h, key=j, weight=float(weights[b][h, j]), brought=float(brought[b][h, j])
        )
        for b, h, j in picked
    ]
    return {
        "shown": shown,
        "rows": list(rows),
        "stream": np.concatenate([pre[:1], _in_turn(mid, post)]),  # (2L + 1, W)
        "writes": _in_turn(attn, mlp),  # (2L, W)
        "reads": reads,
        "next": _next(lm, t, position, ids),
        "says": _looking_back(t, position, picked),
    }


def _looking_back(t: Trace, position: int, picked: Sequence[tuple[int, int, int]]) -> list[Any]:
    """From which token, and through which head, the largest contribution comes: the first that was picked."""
    here = _code(t, position)
    if position == 0:
        return _says("{} is the first token: the model has nothing to look back at.", here)
    if not picked:
        return _says("No attention head brings {} anything from an earlier token.", here)
    block, head, key = picked[0]
    ids = [token.id for token in t.tokens]
    way = f"through block {block}, head {head}"
    if key and ids[key - 1] == ids[position]:
        return _says(
            "To guess what follows {}, the model looks back and finds what followed it before: {}. "
            f"The largest contribution comes from there, {way}.",
            *(here, _code(t, key)),
        )
    source = "{}"
    if ids[key] == ids[position]:
        source = "an earlier {}"
    return _says(
        "To guess what follows {}, the model looks back. "
        f"The largest contribution comes from {source}, {way}.",
        *(here, _code(t, key)),
    )


def _in_turn(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """A row of the one and a row of the other in turn."""
    return np.stack([first, second], axis=1).reshape(-1, first.shape[1])  # (L, 2, W) -> (2L, W)


def _strongest(sizes: np.ndarray) -> list[tuple[int, int]]:
    """The heads and earlier positions that bring most, if anything."""
    order = np.argsort(-sizes, axis=None, kind="stable")[:READS]
    places = zip(*np.unravel_index(order, sizes.shape), strict=True)
    return [(int(h), int(j)) for h, j in places if sizes[h, j] > 0]


def _next(lm: LanguageModel, t: Trace, position: int, ids: Sequence[int]) -> list[Level]:
    logits = t.logits(position).double()
    chances = logits.softmax(-1)
    bars = []
    for i in ids:
        chance = float(chances[i])
        shown = show_token(named_bytes(lm.tokenizer, i))
        drawn = {"at": f"logit.{i}", "shown": shown, "value": chance, "text": percent(chance)}
        bars.append(drawn | {"said": float(logits[i])})
    return bars


def _block(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    b = place.block
    pre, attn, mid, mlp, post = (t[site, b][position].double().numpy() for site in STREAM)
    norm1, norm2 = (norms.inside(lm, t, f"block {b} · norm{n}", position).after for n in (1, 2))
    rows = {
        "pre": pre,
        "norm1": norm1,
        "attn": attn,
        "mid": mid,
        "norm2": norm2,
        "mlp": mlp,
        "post": post,
    }
    scale = shared_scale(np.stack([pre, attn, mid, mlp, post])).limit
    # they are small
    scales = dict.fromkeys(("norm1", "norm2"), shared_scale(np.stack([norm1, norm2])).limit)
    return {
        "wires": [
            dict(
                name=name,
                values=row[:WIDE],
                of=len(row),
                number=_length(row),
                limit=scales.get(name, scale),
            )
            for name, row in rows.items()
        ],
        "cosines": [float(cosine(attn, pre)), float(cosine(mlp, mid))],
        "says": _says(
            "Attention adds a vector of norm {} to {}, then the feed-forward layer one of norm {}.",
            *(_length(attn), _code(t, position), _length(mlp)),
        ),
    }


def _attention(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    b = place.block
    rows = window(len(t), position)
    attn = t["attn", b]  # (H, T, T)
    out = lm.model.get_parameter(f"trf_blocks.{b}.att.out_proj.weight")
    wrote = write_lengths(t["z", b][:, position : position + 1], out)[:, 0]  # (H,)
    keys, most = shown or (tuple(attn[:, position].argmax(dim=-1).tolist()), int(wrote.argmax()))
    heads = [
        {"at": f"block.{b}.head.{h}", "looks": _code(t, key)["code"], "key": key}
        | {"weight": float(attn[h, position, key]), "wrote": float(wrote[h])}
        for h, key in enumerate(keys)
    ]
    sentence = "The block's one head looks back from {}: it gives {} of its attention to {}."
    if len(heads) > 1:
        sentence = (
            f"{len(heads)} heads look back from {{}} at once. "
            f"Head {most} contributes most: it gives {{}} of its attention to {{}}."
        )
    return {
        "shown": (keys, most),
        "rows": list(rows),
        "heads": heads,
        "weights": _triangles(attn, rows),
        "says": _says(sentence, *(_code(t, position), heads[most]["weight"], _code(t, keys[most]))),
    }


def _triangles(weights: torch.Tensor, rows: range) -> np.ndarray:
    """(..., T, T) -> (..., W (W + 1) / 2): row by row what the mask leaves of the window."""
    down, across = np.tril_indices(len(rows))
    return weights[..., down + rows.start, across + rows.start].numpy()


def _head(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    steps = attention.steps(lm, t, place.block, place.head)
    rows = window(len(t), position)
    seen = slice(rows.start, rows.stop)
    row = steps.weights[position]
    if shown is None:
        key = int(row.argmax())
    else:
        key = shown
    scores = steps.scores[position, seen]
    return {
        "shown": key,
        "rows": list(rows),
        "q": steps.q[position].numpy(),
        "k": steps.k[seen].numpy(),
        "v": steps.v[seen].numpy(),
        "scores": scores.numpy(),
        "scaled": (scores / steps.divisor).numpy(),
        "row": row[seen].numpy(),
        "z": steps.z[position].numpy(),
        "weights": _triangles(steps.weights, rows),
        "outside": float(1 - row[seen].sum()) if len(rows) < len(t) else 0.0,
        "says": _says(
            "From {}, this head looks most at {}: {} of its attention. Each product of the query and a "
            "key is a score; scaling, the mask and softmax turn the scores into weights.",
            *(_code(t, position), _code(t, key), float(row[key])),
        ),
    }


# ---- sums and products, line by line ----


def _line(op: str, label: str, number: float | None = None, said: str = "", **extra: Any) -> Level:
    """A line of a sum: its sign, what it is, a single number of it and what that is."""
    return {"op": op, "label": label, "number": number, "said": said, **extra}


def _row(
    op: str, label: str, row: Any, number: float | None = None, said: str = "norm", **extra: Any
) -> Level:
    """A line with a row of numbers, the first WIDE of them drawn; without a `number` its norm is said."""
    row = np.asarray(row)
    drawn = {
        "limit": shared_scale(row).limit,
        "values": row[:WIDE],
        "of": len(row),
        "paint": "signed",
    }
    return _line(op, label, _length(row) if number is None else number, said, **drawn | extra)


def _embedding(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    if "position" not in architecture_of(lm.config).embedded:
        (token_row,) = embedding_rows(lm, t)[:, position]
        looked_up = f"token vector: row {t.tokens[position].id} of tok_emb"
        return {
            "lines": [_row("", looked_up, token_row, limit=shared_scale(token_row, 0.95).limit)],
            "says": _says(
                "The model looks up a vector for {}, and adds none for its position: each block turns its "
                "queries and keys by it. The vector has norm {}.",
                *(_code(t, position), _length(token_row)),
            ),
        }
    token_row, position_row, sum_row = parts = embedding_rows(lm, t)[:, position]
    limit = shared_scale(parts, 0.95).limit
    return {
        "lines": [
            _row(
                "", f"token vector: row {t.tokens[position].id} of tok_emb", token_row, limit=limit
            ),
            _row("+", f"position vector: row {position} of pos_emb", position_row, limit=limit),
            _row("=", "what enters the first block", sum_row, limit=limit),
        ],
        "says": _says(
            "The model looks up a vector for {} and one for its position, and adds them. "
            "The sum has norm {}.",
            *(_code(t, position), _length(sum_row)),
        ),
    }


def _norm(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    final = place.kind == "final_norm"
    steps = norms.inside(
        lm, t, "final" if final else f"block {place.block} · {place.kind}", position
    )
    if steps.has_mean:
        measure = "variance"
        does = "LayerNorm shifts the vector of {} to mean 0 and rescales its variance"
        divided = "divided by √(variance + eps)"
        normalised = float(steps.normalised.var())
        after = float(steps.after.var())
        taken = [
            _row("", "the token's vector", steps.before, steps.mean, "mean"),
            _row("−", "minus the mean", steps.centred, steps.variance, "variance"),
        ]
    else:
        measure = "mean square"
        does = "RMSNorm subtracts nothing from the vector of {} and rescales its mean square"
        divided = "divided by √(mean square + eps)"
        normalised = float(np.square(steps.normalised).mean())
        after = float(np.square(steps.after).mean())
        taken = [_row("", "the token's vector", steps.before, steps.variance, "mean square")]
    shift = []
    parameters = "scale"
    verb = "makes"
    if steps.has_shift:
        shift.append(
            _row("+", "plus the norm's shift", steps.shift, float(steps.shift.mean()), "mean")
        )
        parameters = "scale and shift"
        verb = "make"
    return {
        "lines": [
            *taken,
            _row("÷", divided, steps.normalised, steps.deviation, "the divisor"),
            _row("×", "times the norm's scale", steps.scale, float(steps.scale.mean()), "mean"),
            *shift,
            _row("=", "what comes out", steps.after, after, measure),
        ],
        "says": _says(
            f"{does} from {{}} to {{}}. Its learned {parameters} then {verb} that {{}}.",
            *(_code(t, position), steps.variance, normalised, after),
        ),
    }


def _cell(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    b = place.block
    h = place.head
    query = place.query
    key = place.key
    steps = attention.steps(lm, t, b, h)
    cell = attention.cell(lm, t, b, h, query, key)
    weight = float(steps.weights[query, key])
    d = steps.q.shape[-1]
    lines = [
        _row("", f"query of position {query}", steps.q[query], paint="query"),
        _row("×", f"key of position {key}", steps.k[key], paint="key"),
        _row("=", "product, number by number", cell.products, cell.score, "their sum, the score"),
        _line("÷", f"√{d}", cell.divisor, "the divisor"),
        _line("=", "the score, divided", cell.scaled, "into softmax"),
    ]
    if cell.weight is None:
        lines.append(_line("", "the mask hides a later token", weight, "weight"))
        says = _says("{} comes after {}, so the mask hides it.", _code(t, key), _code(t, query))
    else:
        by_softmax = abs(weight - cell.weight) < 1e-3  # else a change put it there
        lines += [
            _line(
                "",
                "e^(this score − the largest score)",
                float(cell.row.exp[key]),
                "of this key",
            ),
            _line("÷", "the sum of these over all keys", cell.row.total, "sum"),
            _line("=" if by_softmax else "", "attention weight", weight, "weight"),
            _row("×", f"value of position {key}", steps.v[key], paint="value"),
            _row(
                "=", "its contribution to the head's output", weight * steps.v[key], paint="output"
            ),
        ]
        says = _says(
            "The query of {} times the key of {} gives a score of {}, and {} of the attention goes there.",
            *(_code(t, query), _code(t, key), cell.score, weight),
        )
    return {"lines": lines, "says": says}


def _feed_forward(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    units = feed_forward.units(lm, t, place.block, position)
    into = f"block.{place.block}.unit."
    if shown is None:
        shown = tuple(units.largest(UNITS))
    before = units.before
    after = units.after
    drawing: Level = {"limit": shared_scale(np.stack([before, after])).limit, "into": into}
    count = len(before)
    fire = int(units.fires.sum())
    bars = [
        dict(
            at=f"{into}{u}",
            shown=f"unit {u}",
            value=float(units.writes[u]),
            said=float(after[u]),
        )
        for u in shown
    ]
    if units.times is not None:
        return {"shown": shown, "bars": bars} | _gates(t, units, units.times, position, into)
    first = f"the first matrix: {count:,} units"
    return {
        "shown": shown,
        "lines": [
            _row("", "the normalised vector", units.given),
            _row("×", first, before, fire, "fire", **drawing, values=before, whole=True),
            _row("", "GELU: negative numbers almost vanish", after, **drawing, values=after),
            _row("×", "the second matrix: the layer's output", units.written, paint="output"),
        ],
        "bars": bars,
        "says": _says(
            f"The feed-forward layer works on {{}} alone: {{}} of its {count:,} units switch on. "
            "Together all units add a vector of norm {}.",
            *(_code(t, position), fire, units.size),
        ),
    }


def _gates(
    t: Trace, units: feed_forward.Units, times: feed_forward.Floats, position: int, into: str
) -> Level:
    """The lines and the sentence of a feed-forward with gates: each is multiplied with one of `times`, (U,)."""
    count = len(units.before)
    opened = int(units.fires.sum())
    numbers = (units.before, units.bent, times, units.after)
    limit = shared_scale(np.stack(numbers)).limit
    drawn: list[Level] = [dict(limit=limit, into=into, values=row) for row in numbers]
    gate, bent, up, product = drawn
    return {
        "lines": [
            _row("", "the normalised vector", units.given),
            _row(
                "×",
                f"the first matrix: {count:,} gates",
                units.before,
                opened,
                "open",
                **gate,
                whole=True,
            ),
            _row("", "SiLU: gates below zero almost shut", units.bent, **bent),
            _row("×", "the second matrix times the same vector", times, **up),
            _row("=", "gate times product: the units", units.after, **product),
            _row("×", "the third matrix: the layer's output", units.written, paint="output"),
        ],
        "says": _says(
            f"The feed-forward layer works on {{}} alone: {{}} of its {count:,} units have an open gate. "
            "Together all units add a vector of norm {}.",
            *(_code(t, position), opened, units.size),
        ),
    }


def _unit(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    units = feed_forward.units(lm, t, place.block, position)
    u = place.unit
    kind = architecture_of(lm.model)
    modules = [kind.sites[site].module.format(b=place.block) for site in kind.hidden]
    first: list[Any] = [lm.model.get_submodule(module) for module in modules]
    second: Any = lm.model.get_submodule(f"trf_blocks.{place.block}.{kind.down}")
    asks = double(first[0].weight[u]).numpy()
    writes = double(second.weight[:, u]).numpy()
    before = float(units.before[u])
    after = float(units.after[u])
    products = units.given * asks
    lines = [
        _row("", "the normalised vector", units.given),
        _row("×", f"what unit {u} looks for", asks),
        _row("=", "product, number by number", products, float(units.given @ asks), "their sum"),
    ]
    compares = f"Unit {u} compares {{}} with the pattern it looks for and gets {{}}. "
    if units.times is None:
        if first[0].bias is None:
            bias = 0.0
        else:
            bias = first[0].bias[u].item()
        lines += [
            _line("+", "its bias", bias, "bias"),
            _line("=", "before GELU", before, "before"),
            _line("", "after GELU", after, "after"),
        ]
        says = _says(
            f"{compares}GELU turns that into {{}}, the factor for the unit's output vector.",
            *(_code(t, position), before, after),
        )
    else:
        times = float(units.times[u])
        opened = before / (1 + np.exp(-before))
        lines += [
            _line("", "this gate, after SiLU", opened, "the gate"),
            _row(
                "×",
                "its second pattern, with the same vector",
                double(first[1].weight[u]).numpy(),
                times,
                "their product",
            ),
            _line("=", "gate times product", after, "after"),
        ]
        says = _says(
            f"{compares}SiLU makes a gate of {{}} of that, times {{}} by its second pattern: {{}}, the factor "
            "for the unit's output vector.",
            *(_code(t, position), before, opened, times, after),
        )
    lines += [
        _row("×", "its output vector", writes),
        _row("=", "what it adds here", after * writes, paint="output"),
    ]
    return {"lines": lines, "says": says}


def _out_head(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    if shown is None:
        shown = tuple(t.next_tokens(k=BEST, position=position)["id"].tolist())
    best = _next(lm, t, position, shown)
    return {
        "shown": shown,
        "lines": [_row("", "the final vector, normalised", t["final"][position].numpy())],
        "bars": best,
        "says": _says(
            "After {}, the model finds {} most likely, with probability {}. It multiplies the final vector "
            "with one vector per token: each product is a logit, and softmax turns logits into probabilities.",
            *(_code(t, position), {"code": best[0]["shown"]}, best[0]["value"]),
        ),
    }


def _logit(lm: LanguageModel, t: Trace, place: Place, position: int, shown: Any) -> Level:
    row = t["final"][position].double().numpy()
    column = double(lm.model.out_head.weight[place.id]).numpy()
    logits = t.logits(position)
    (bar,) = _next(lm, t, position, [place.id])
    rank = int(distribution(logits).rank[place.id]) + 1  # of equal logits the lower id comes first
    return {
        "lines": [
            _row("", "the final vector, normalised", row),
            _row("×", f"row {place.id} of the output head", column),
            _row(
                "=", "product, number by number", row * column, bar["said"], "their sum, the logit"
            ),
            _line("", "through softmax over the vocabulary", bar["value"], "probability"),
            _line("", f"its place among {lm.config.vocab_size:,} tokens", rank, "rank", whole=True),
        ],
        "says": _says(
            f"The logit of {{}} is {{}}, a sum of {len(row)} products. Softmax over all logits turns it into "
            "probability {}.",
            *({"code": bar["shown"]}, bar["said"], bar["value"]),
        ),
    }


_LEVELS = {
    "machine": _machine,
    "embedding": _embedding,
    "block": _block,
    "norm1": _norm,
    "norm2": _norm,
    "final_norm": _norm,
    "attention": _attention,
    "head": _head,
    "cell": _cell,
    "feed_forward": _feed_forward,
    "unit": _unit,
    "out_head": _out_head,
    "logit": _logit,
}
