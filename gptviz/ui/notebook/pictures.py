"""The app's pictures of a trace, by the names of the pages that they stand on, with these pages' defaults."""

import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gptviz.analysis import compare as comparing, machine, patching as patch
from gptviz.analysis.ablation import knock_out as mute
from gptviz.analysis.attention import mean_writes, weights
from gptviz.analysis.circuit_passes import all_heads
from gptviz.analysis.circuit_search import circuit as search
from gptviz.analysis.head_roles import most_telling, roles
from gptviz.analysis.lens import cells, row_names
from gptviz.analysis.logit_attribution import logit_shares
from gptviz.analysis.moved import pattern_moved
from gptviz.analysis.next_token import candidates
from gptviz.analysis.places import resolve
from gptviz.analysis.shares import Waterfall, label_of
from gptviz.analysis.tokens import place_of
from gptviz.both import Both
from gptviz.digits import significant
from gptviz.engine.architecture import architecture_of
from gptviz.engine.index import index_of, one_of, whole
from gptviz.engine.names import show_id
from gptviz.engine.sampling import Sampling
from gptviz.engine.trace import Trace
from gptviz.figures.bars import bars
from gptviz.figures.candidates import candidate_rows, column_heads
from gptviz.figures.curves import curves
from gptviz.figures.head_grid import moved_words, pool, thumbnails as small_heads, words_of
from gptviz.figures.maps import Map, maps
from gptviz.figures.marks import DIFFERENCE
from gptviz.figures.next_token import back_to_back, probability_text
from gptviz.figures.shares import falling, share_grid
from gptviz.figures.theme import PALETTES, Mode
from gptviz.teach.guides.way import way
from gptviz.text.suggest import did_you_mean
from gptviz.tokenizer import named_bytes
from gptviz.tokenizer.one import MEAN, Against, OneToken
from gptviz.tokenizer.steps import show_work
from gptviz.ui.components.arcs import arcs as draw_arcs
from gptviz.ui.components.candidates import candidate_bars
from gptviz.ui.components.chips import chips
from gptviz.ui.components.heads import Thumbnail, as_data, head_grid
from gptviz.ui.components.lens import lens_grid
from gptviz.ui.components.machine import machine as draw_machine
from gptviz.ui.components.matrix import encode, matrix, pattern
from gptviz.ui.components.merges import merges, merges_data
from gptviz.ui.components.token_cards import token_cards
from gptviz.ui.components.windows import draw_windows
from gptviz.ui.components.writing import writing
from gptviz.ui.lens_cells import legend_of, lens_cells
from gptviz.ui.notebook.frame import Picture
from gptviz.ui.notebook.sheet import SHOWN, Sheet, ignored
from gptviz.ui.notebook.whole import of_page
from gptviz.ui.tables import joined

MASS = 90  # percent of each row that arcs are drawn of, at first
# bytes of all heads' weights, or of all places of the machine, as a file has them
LARGEST = 3 * 2**19

# ---- read a text ----


def overview(s: Sheet, at: str = "") -> None:
    """Draw the whole machine, which opens down to its heads: the place `at` and every stop of *Play*."""
    s.title = "From a text to the next token"
    config = s.t.config
    position = s.position
    find = lambda address: resolve(s.lm, s.t, str(address), position)  # noqa: E731
    kind = architecture_of(config)
    told = way(kind)
    stops = [find(address) for address, _ in told]
    blocks = range(config.n_layers)
    parts = ("", ".norm1", ".attention", ".norm2", ".feed_forward")
    addresses = ["", "embedding", "final_norm", "out_head"]
    addresses += [f"block.{b}{part}" for b in blocks for part in parts]
    addresses += [f"block.{b}.head.{h}" for b, h in all_heads(s.lm)]
    first = find(at)
    sentences = [{"at": stop.at, "says": text} for stop, (_, text) in zip(stops, told, strict=True)]
    places = {place.at: place for stop in (first, *stops) for place in stop.path}
    saved = s.saved("overview")
    drawn = {}
    size = 0
    for place in (first, *places.values(), *map(find, addresses)):
        if place.at in drawn or size > LARGEST:
            continue
        level = machine.level(s.lm, s.t, place.at, position)
        unchanged = s.traces.was
        if unchanged is None:
            unchanged_level = None
        else:
            unchanged_level = machine.level(
                unchanged.lm, unchanged, place.at, position, level["shown"]
            )
        levels = Both(level, unchanged_level)
        path, beside = (
            [(entry.at, entry.name) for entry in entries]
            for entries in (place.path, place.beside(config))
        )
        where = (path, s.labels, position, beside, kind.named.words)
        answers = (ignored, ignored)
        table = joined(levels.map(machine.table))
        draw_machine(place.kind, levels, table, *where, None, sentences, *answers, saved)
        drawn[place.at] = {"title": "", "data": s.parts.pop()["data"]}
        size += len(json.dumps(drawn[place.at]))
    s.take("machine", drawn[first.at]["data"] | {"known": [*drawn]})
    s.parts[-1]["others"] = drawn


def every_head(s: Sheet, block: int | None = None, head: int | None = None) -> None:
    """The tokens and the grid of all heads; a click on a head opens it below."""
    place = _place(s, block, head)
    s.title = "Where every head looks"
    chips(s.t.tokens, s.position, ignored)
    _grid(s, place)
    _head(s, *place)
    part = s.parts[-1]
    places = all_heads(s.lm)
    together = _together(len(s.t), len(places))
    if together > 1:
        part["note"] = (
            f"Of a text of {len(s.t)} tokens the other heads are kept coarser: a cell is the largest of "
            f'{together} × {together} weights. t.show("attention", block, head) has every weight of one.'
        )
    part["others"] = {}
    for b, h in places:
        if together > 1 and (b, h) != place:
            part["others"][f"{b}.{h}"] = _coarse(s, part["data"], b, h, together)
        else:
            values, panel = _weights(s, b, h)
            data = {
                "arrays": {"weights": encode(values, triangle=True)},
                "panels": [part["data"]["panels"][0] | vars(panel)],
                "tokens": s.labels,
                "positions": None,
                "together": 1,
            }
            part["others"][f"{b}.{h}"] = {"title": _name(b, h), "data": data}


def _together(count: int, heads: int) -> int:
    """How many tokens share a row of a head's map, so that the maps of all heads fit into `LARGEST`."""
    # a triangle of float32 in base64 has 8/3 bytes for each of its square
    side = max(8, int((LARGEST * 3 / 8 / heads) ** 0.5))
    return -(-count // side)


def _coarse(s: Sheet, data: dict[str, Any], block: int, head: int, together: int) -> dict[str, Any]:
    """A head's map with `together` tokens a row; each cell is the largest weight, or difference, in it."""
    values, panel = _weights(s, block, head)
    starts = np.arange(0, len(s.t), together)
    high, low = (
        pooled.reduceat(pooled.reduceat(np.nan_to_num(values), starts, axis=0), starts, axis=1)
        for pooled in (np.maximum, np.minimum)
    )
    largest = np.where(high >= -low, high, low)
    says = "From the tokens at {query} to those at {key} the largest weight is {value}"
    if panel.scale == "signed":
        says = "From the tokens at {query} to those at {key} the largest difference is {value}"
    ends = [min(start + together, len(s.t)) - 1 for start in starts.tolist()]
    names = [
        f"{s.labels[start]} … {s.labels[end]}" for start, end in zip(starts, ends, strict=True)
    ]
    shape = {"rows": len(starts), "columns": len(starts), "says": says}
    title = f"{_name(block, head)}, coarser: a cell is the largest of {together} × {together}"
    return {
        "title": title,
        "data": {
            "arrays": {"weights": encode(largest, triangle=True)},
            "panels": [data["panels"][0] | vars(panel) | shape],
            "tokens": names,
            "positions": starts.tolist(),
            "together": together,
        },
    }


def tokens(s: Sheet) -> None:
    """Every token with its id and its bytes, and how the chosen one was built; a click chooses another."""
    s.title = "The tokens of a text, with their ids and bytes"
    special = any(token.text in s.t.tokenizer.special_tokens_set for token in s.typed)
    pieces = show_work(s.t.tokenizer, s.text, special, limit=len(s.t))
    if [i for piece in pieces for i in piece.ids][: len(s.t)] != [token.id for token in s.t.tokens]:
        raise ValueError(
            "these ids are not how their text is cut into tokens: there are no pieces to show"
        )
    token_cards(pieces, s.t.tokens, s.position, ignored)
    built = {}
    for position, label in enumerate(s.labels):
        piece_index, part = place_of(pieces, position)
        data = merges_data(s.t.tokenizer, pieces[piece_index], part, position)
        built[str(position)] = {"title": f"How {label} was built", "data": data}
    piece_index, part = place_of(pieces, s.position)
    merges(s.t.tokenizer, pieces[piece_index], part, s.position)
    s.parts[-1] |= {"title": built[str(s.position)]["title"], "others": built}


def embeddings(s: Sheet) -> None:
    """A token's row plus its position's row, and their sum; its neighbours, and the rows of every token."""
    of_page(s, "embeddings")


def layernorm(s: Sheet, norm: str = "block 0 · norm1", quantity: str = "variance") -> None:
    """Draw what one norm does to a token; and the variance, or the mean, before and after every norm."""
    of_page(s, "layernorm", ln_norm=norm, ln_quantity=quantity)


def attention(
    s: Sheet,
    block: int | None = None,
    head: int | None = None,
    hide_first: bool = False,
    arcs: bool = False,
) -> None:
    """Draw one head's attention (by default the rarest role's); `arcs` adds its block's heads as lines."""
    place = _place(s, block, head)
    s.title = f"Attention of block {place[0]}, head {place[1]}"
    _head(s, *place, hide_first)
    s.parts[-1]["title"] = ""
    if arcs:
        head_numbers = range(s.t.config.n_heads)
        # (H, T, T)
        lines = np.stack(
            [weights(s.lm, s.t, place[0], h, hide_first).numpy() for h in head_numbers]
        )
        callbacks = (ignored, ignored, ignored)
        draw_arcs(
            "head",
            lines,
            s.labels,
            s.position,
            None,
            place[0],
            head_numbers,
            place[1],
            MASS,
            *callbacks,
        )


def feed_forward(s: Sheet, block: int = -1, unit: int | None = None) -> None:
    """A block's units for one token, before and after GELU; without a unit, the one that writes most."""
    of_page(s, "feed_forward", block=index_of("block", block, s.t.config.n_layers), ff_unit=unit)


def next_token(
    s: Sheet,
    k: int = 10,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> None:
    """Draw what comes next, from logit to probability."""
    sampling = Sampling(temperature, top_k, top_p)
    position = s.position
    next_id = None
    if position + 1 < len(s.t):
        next_id = s.t.tokens[position + 1].id
    logits = s.traces.map(lambda t: t.logits(position))
    if logits.was is None:
        unchanged_best = []
    else:
        unchanged_best = [int(logits.was.argmax())]
    likeliest = logits.map(
        lambda row: candidates(
            row, k, sampling, [*([] if next_id is None else [next_id]), *unchanged_best]
        )
    )
    name = lambda i: show_id(s.lm, i)  # noqa: E731
    rows, rest_row = candidate_rows(
        likeliest.now, sampling, name, came=next_id, unchanged=likeliest.was
    )
    s.title = f"What comes after {s.labels[position]} (position {position})"
    candidate_bars(
        rows, rest_row, column_heads(sampling, likeliest.was is not None), None, action=""
    )


def generate(s: Sheet, n: int = 20, **options: Any) -> None:
    """The `n` tokens that it writes after the text: see `LanguageModel.generate`, which takes `options`.

    Drawn by the seed 0, if no other is given. A click on a token opens what it was drawn from.
    """
    options = {"seed": 0} | options
    ids = [token.id for token in s.t.tokens[: s.position + 1]]
    generated = s.traces.map(lambda t: list(t.lm.generate(ids, whole("n", n, 1), **options)))
    s.title = f"What is written after {s.labels[s.position]} (position {s.position})"
    written: list[dict[str, Any]] = []
    opened: list[dict[str, Any]] = []
    for step in generated.now:
        shown = show_id(s.lm, step.id)
        sampling = step.sampling
        if sampling.greedy:
            p = step.model_probability
        else:
            p = step.probability
        numbers = {"id": step.id, "probability": p, "p_text": probability_text(p), "put": False}
        says = f"{shown} had probability {probability_text(p)}"
        written.append({"shown": shown, "sentence": says, **numbers})
        likeliest = candidates(step.logits, 10, sampling, [step.id])
        rows, rest_row = candidate_rows(
            likeliest, sampling, lambda i: show_id(s.lm, i), came=step.id
        )
        opened.append(
            {"title": f"What {shown} was drawn from", "data": {"rows": rows, "rest": rest_row}}
        )
    raws = [named_bytes(s.t.tokenizer, step.id) for step in generated.now]
    writing(s.lm.decode(ids), written, 0, ignored, raws=raws, open_end=False)
    if generated.was is not None:
        s.parts[-1]["note"] = (
            f"Unchanged, the model writes: {''.join(step.token for step in generated.was)}"
        )
    first = opened[0]["data"]
    headings = column_heads(generated.now[0].sampling)
    candidate_bars(first["rows"], first["rest"], headings, None, action="")
    s.parts[-1] |= {
        "title": opened[0]["title"],
        "others": {str(index): entry for index, entry in enumerate(opened)},
    }


def loss(s: Sheet) -> None:
    """Draw what each token of the text cost."""
    of_page(s, "loss")


# ---- explain ----


def residual_stream(s: Sheet, block: int | None = None) -> None:
    """A token's stream, write by write, and every token's beside it."""
    if block is None:
        opened = None
    else:
        opened = index_of("block", block, s.t.config.n_layers)
    of_page(s, "residual_stream", block=opened)


def logit_lens(s: Sheet, measure: str = "probability") -> None:
    """Draw what each depth would say comes next, for every token: "probability",
    "entropy" or "kl" as colour.
    """
    one_of("measure", measure, ("probability", "entropy", "kl"))
    lens = s.of(cells, 0, len(s.t))
    names = row_names(s.t.config)
    rows = [(name.removeprefix("block ").replace(" ·", ""), f"After {name}") for name in names[:-1]]
    s.title = "What the model would say at each depth"
    legend = legend_of(measure, measure, s.t.config.vocab_size, s.mode)
    grid = lens_cells(s.lm, lens, (0, len(s.t)), measure)
    last = ("output", "The model's own output")
    lens_grid(grid, [*rows, last], s.labels, (len(rows), s.position), legend, ignored)
    vocabulary = s.t.config.vocab_size
    s.when_dark(
        lambda mode: {"data": {"legend": vars(legend_of(measure, measure, vocabulary, mode))}}
    )


def why(s: Sheet, token: OneToken | None = None, against: Against = MEAN) -> None:
    """Draw a token's logit (by default the most probable one's) as the sum of what the parts wrote for it."""
    target, other, title = _target(s, token, against)
    shares = s.of(logit_shares, target, other, s.position)
    keys = ["part", "block", "head"]
    if shares.was is not None:  # a change may have added a part, which the unchanged model has not
        unchanged = shares.now[keys].merge(shares.was, "left", keys).fillna({"contribution": 0.0})
        shares = Both(shares.now, unchanged)
    table = shares.now[:-2]
    values = shares.map(lambda frame: frame["contribution"].to_numpy(float))
    names = [label_of(*row) for row in table[keys].itertuples(index=False)]
    falls = Waterfall.of(names, values.map(lambda v: v[:-1]))
    s.title = f"Why this token? {title}: {significant(values.now[-1], 4)}"
    s.figure(
        lambda mode: bars(falls.values, falls.names, mode, "", **falling(falls, mode)),
        "why_waterfall",
        f"The largest parts of {title}, and their sum",
    )
    blocks = np.flatnonzero(table["block"].notna())
    # (layers, parts of a block)
    grids = values.map(lambda v: v[blocks].reshape(s.t.config.n_layers, -1))
    columns = [names[row].removeprefix("block 0 · ") for row in blocks[: grids.now.shape[1]]]
    shown = s.shown_of(grids)
    phrase = "its share is"
    if shown == DIFFERENCE:
        phrase = "its share has changed by"
    s.figure(
        lambda mode: share_grid(Map("", grids).drawn(shown), columns, None, phrase, mode),
        "why_grid",
        f"What every head and feed-forward wrote to {title}",
        phrase.removeprefix("its "),
    )


# ---- experiment ----


def heads(s: Sheet) -> None:
    """Every head's label on this text, and all heads as points."""
    of_page(s, "heads")


def knock_out(
    s: Sheet, token: OneToken | None = None, against: Against = MEAN, baseline: str = "zero"
) -> None:
    """Draw what switching off each part takes away from a token's probability; without a token,
    of the most probable.
    """
    target, other, _ = _target(s, token, against)
    ids = [text_token.id for text_token in s.t.tokens]
    tables = s.traces.map(lambda t: mute(t.lm, ids, (target, other), baseline, s.position))
    # (layers, parts of a block)
    grids = tables.map(lambda frame: frame["lost"].to_numpy(float).reshape(s.t.config.n_layers, -1))
    columns = [*_columns(s), "attention", "feed-forward"]
    s.title = (
        f"What switching off each part takes away from the probability of {show_id(s.lm, target)}"
    )
    says = "switching it off takes away"
    s.figure(
        lambda mode: share_grid(grids.now, columns, None, says, mode, unchanged=grids.was),
        "knock_out_map",
        s.title,
    )


def circuit(
    s: Sheet, token: OneToken | None = None, against: Against = MEAN, **options: Any
) -> None:
    """Draw the few heads that keep a token's probability: see `gptviz.analysis.circuit` for `options`."""
    target, other, title = _target(s, token, against)
    pair = target if other is None else (target, other)
    result = search(
        s.lm, [text_token.id for text_token in s.t.tokens], pair, position=s.position, **options
    )
    s.title = f"The circuit of {title}: {len(result.heads)} of {len(all_heads(s.lm))} heads"
    nothing = np.full((s.t.config.n_layers, s.t.config.n_heads), np.nan)
    s.figure(
        lambda mode: share_grid(nothing, _columns(s), None, "", mode, inside=set(result.heads)),
        "circuit_sheet",
        f"{s.title}: a thick frame is a head that is in",
    )
    steps = result.steps.sort_values("size")
    line = {"F": Both(steps["value"].to_numpy(float))}
    names = [f"{n} heads" for n in steps["size"]]
    rests = [(result.whole, "the whole model")]
    axis = {"title": {"text": "heads in the circuit"}}
    s.figure(
        lambda mode: curves(line, names, mode, "F", rests=rests, axis=axis),
        "circuit_curve",
        "F against the number of heads",
    )


def patching(s: Sheet, other: str | Sequence[int], site: str = "resid_pre", **options: Any) -> None:
    """Draw which places of this text bring its answer into the `other`: see `gptviz.analysis.patching`."""
    ids = [token.id for token in s.t.tokens]
    if isinstance(other, str):
        other_ids = s.lm.encode(other)
    else:
        other_ids = list(other)
    table = s.traces.map(
        lambda t: patch(t.lm, ids, other_ids, sites=[site], position=s.position, **options)
    )
    layers = s.t.config.n_layers
    direction = options.get("direction", "denoising")
    # (layers, heads or positions)
    effects = table.map(lambda frame: frame["effect"].to_numpy(float).reshape(layers, -1))
    s.title = f"{site} patched at each place ({direction}); the other text: “{s.lm.decode(other_ids, begin=False)}”"
    if table.now["position"].isna().all():  # a head's, at all positions
        says = "its effect is"
        s.figure(
            lambda mode: share_grid(
                effects.now, _columns(s), None, says, mode, unchanged=effects.was
            ),
            "patching_map",
            s.title,
        )
    else:
        other_labels = [show_id(s.lm, i) for i in other_ids]
        labels = [
            " | ".join(dict.fromkeys(pair)) for pair in zip(s.labels, other_labels, strict=True)
        ]
        panel = Map("", effects, ends=(-1, 1), unit="effect")
        rows = [f"block {b}" for b in range(layers)]
        columns = labels[: effects.now.shape[1]]
        s.figure(lambda mode: maps([panel], rows, columns, None, mode), "patching_map", s.title)


def compare(s: Sheet, other: Trace) -> None:
    """Draw what this trace and another expect next, and by how much each head looks elsewhere."""
    if not isinstance(other, Trace):
        raise ValueError(f"{other!r} is no trace: show('compare', lm.trace(another_text))")
    same_text = b"".join(token.raw for token in s.t.tokens) == b"".join(
        token.raw for token in other.tokens
    )
    pairs = comparing.align(s.t.tokens, other.tokens, one_text=same_text)
    if not pairs:
        raise ValueError(
            "the two traces end no token at the same place of the text: they cannot be compared"
        )
    pair = pairs.pairs[pairs.nearest(s.position)]
    nexts = comparing.expected(s.t, other, *pair)
    names = ("this trace", "the other")
    labels = [
        show_id(s.lm, int(row.left_id))
        if row.left == row.left
        else show_id(other.lm, int(row.right_id))
        for row in nexts.itertuples()
    ]
    sides = nexts[["left", "right"]].to_numpy(float)
    s.title = "What comes next in this trace, and in the other"
    s.lines = (*s.lines, *Sheet(other, 0, s.mode, s.shown).lines)
    s.figure(
        lambda mode: back_to_back(labels, sides[:, 0], sides[:, 1], names, mode),
        "compare_next",
        s.title,
    )
    ours, theirs = ((trace.config.n_layers, trace.config.n_heads) for trace in (s.t, other))
    if ours == theirs and len(pairs) > 1:
        apart = comparing.heads_apart(s.t, other, pairs).numpy()
        s.figure(
            lambda mode: share_grid(apart, _columns(s), None, "elsewhere is", mode, signed=False),
            "compare_heads",
            "How much of each head's attention goes elsewhere",
        )


# ---- with the book ----


def data_windows(s: Sheet, max_length: int = 4, stride: int = 4) -> None:
    """The text as training examples: windows of `max_length` inputs, and their targets one token on."""
    whole("max_length", max_length, 1), whole("stride", stride, 1)
    starts = [*enumerate(range(0, len(s.t) - max_length, stride))]
    if not starts:
        raise ValueError(
            f"{len(s.t)} tokens are too few for a window of {max_length} and its last target"
        )
    s.title = f"Windows of {max_length} tokens, {stride} apart, and their targets"
    draw_windows(s.labels[: starts[-1][1] + max_length + 1], 0, starts, max_length, 0, ignored)


def positions(s: Sheet, scheme: str = "learned") -> None:
    """The rows of a scheme ("learned", "sinusoidal", "rope") of positions, and their products by distance."""
    of_page(s, "positions", pos_scheme=scheme)


def anatomy(s: Sheet) -> None:
    """Every tensor of the model to one scale, and one block's."""
    of_page(s, "anatomy")


# ---- what several share ----


def _name(block: int, head: int) -> str:
    return f"Block {block}, head {head}"


def _weights(s: Sheet, block: int, head: int, hide_first: bool = False) -> tuple[Any, Any]:
    """A head's weights as they are drawn, and their panel."""
    unhidden = s.of(weights, block, head)
    drawn = s.of(weights, block, head, hide_first)
    return pattern(drawn, s.shown_of(unhidden), hide_first)


def _head(s: Sheet, block: int, head: int, hide_first: bool = False) -> None:
    values, panel = _weights(s, block, head, hide_first)
    matrix("head", [panel], {"weights": values}, s.labels, s.position, None, ignored)
    s.parts[-1]["title"] = _name(block, head)


def _place(s: Sheet, block: int | None, head: int | None) -> tuple[int, int]:
    """The head that is asked for; for None, as on the pages, the block and head of the rarest role."""
    if block is None or head is None:
        usual = most_telling(roles(s.t))
        if block is None:
            block = usual.block
        if head is None:
            head = usual.head
    return index_of("block", block, s.t.config.n_layers), index_of("head", head, s.t.config.n_heads)


def _grid(s: Sheet, chosen: tuple[int, int]) -> None:
    """Draw all heads small: what each does here, and in a changed model how far its pattern moved."""
    head_roles = roles(s.t)
    writes = mean_writes(s.t, s.lm)
    unchanged = s.traces.was
    blocks = range(s.t.config.n_layers)

    def thumbnail(b: int, h: int) -> Thumbnail:
        labelled = words_of(head_roles[b][h], writes[b, h].item(), writes.max().item())
        if unchanged is None:
            return labelled
        distance = pattern_moved(unchanged["attn", b][h], s.t["attn", b][h])
        return moved_words(
            labelled, distance, any(edit.is_of_head(b, h, s.t.config) for edit in s.t.edits)
        )

    small = [pool(s.t["attn", b].numpy()) for b in blocks]
    picture, side = small_heads(small, s.mode)
    words = [[thumbnail(b, h) for h in range(s.t.config.n_heads)] for b in blocks]
    head_grid(picture, side, words, chosen, ignored)
    s.when_dark(lambda mode: {"data": {"picture": as_data(small_heads(small, mode)[0])}})
    if unchanged is not None:
        s.parts[-1]["note"] = (
            "Hatched: a changed head. Tinted: the pattern moved; the stronger the tint, the more."
        )


def _columns(s: Sheet) -> list[str]:
    return [f"head {h}" for h in range(s.t.config.n_heads)]


def _target(s: Sheet, token: OneToken | None, against: Against) -> tuple[int, int | None, str]:
    """The token that is explained (without one, the model's first choice), the other one, and their names."""
    logits = s.t.logits(s.position)
    if token is None:
        target = int(logits.argmax())
    else:
        target = s.t.token_id(token)
    if against in (None, MEAN):
        other = None
    else:
        other = s.t.token_id(against, "against")
    if other is None:
        reference = "the mean of all"
    else:
        reference = f"that of {show_id(s.lm, other)}"
    return target, other, f"the logit of {show_id(s.lm, target)} minus {reference}"


# ---- by name ----

PICTURES: dict[str, Callable[..., None]] = {
    picture.__name__: picture
    for picture in (
        overview, tokens, embeddings, layernorm, attention, feed_forward, next_token, generate,
        data_windows, positions, anatomy, loss, residual_stream, logit_lens, why, heads, knock_out, circuit,
        patching, compare, every_head,
    )
}  # fmt: skip
WHOLE = [name for name in PICTURES if name != "every_head"]  # the pages of one text's pass
SHORT = {"attn": "attention", "mlp": "feed_forward", "norms": "layernorm", "lens": "logit_lens"}


def show(
    t: Trace,
    page: str | None = None,
    *args: Any,
    position: int = -1,
    mode: Mode | None = None,
    shown: str = DIFFERENCE,
    whole: bool = False,
    **options: Any,
) -> Picture:
    """Draw a page's picture of this trace ("attention", "layernorm"); by default its tokens and all heads.

    What follows the name is the picture's own: `t.show("attention", 3, 1)`, `t.show("why", " mat")`. It is
    of the token at `position`, light or dark as the notebook is, or in the "light" or "dark" `mode`. Of a
    changed run it shows before and after as the page does; `shown` is what its maps have: "difference",
    "changed" or "unchanged".

    `whole` draws every picture of the page, in its order and with its sentences. The arguments that follow
    are then the page's choices, named as in its address: `t.show("tokens", whole=True)`.

    Raises ValueError for a page that has no picture of a trace, and for arguments that it does not take.
    """
    name = (
        SHORT.get(page or "every_head", page or "every_head")
        .replace("-", "_")
        .replace(" ", "_")
        .lower()
    )
    if name not in PICTURES:
        meant = did_you_mean(page, PICTURES)
        raise ValueError(
            f"there is no picture {page!r} of a trace{meant}; there are {', '.join(PICTURES)}"
        )
    if mode is not None:
        one_of("mode", mode, PALETTES)
    one_of("shown", shown, SHOWN)
    draw = PICTURES[name]
    sheet = Sheet(t, t.place_of(position), mode or "light", shown, follows=mode is None)
    if whole:
        if name not in WHOLE:
            raise ValueError(
                f"there is no whole page {name!r} of a trace; there are {', '.join(WHOLE)}"
            )
        if args:
            raise ValueError(
                f"a whole page takes its choices by name, as they stand in its address (block=3); "
                f"{args[0]!r} was given without a name"
            )
        return sheet.drawn(of_page, name, **options)
    try:
        inspect.signature(draw).bind(sheet, *args, **options)
    except TypeError as error:
        takes = ", ".join(map(str, [*inspect.signature(draw).parameters.values()][1:]))
        raise ValueError(f"show({name!r}) takes ({takes}): {error}") from None
    return sheet.drawn(draw, *args, **options)
