"""The residual stream of one token: as a path through a half-plane, and as a ladder of norms.

Shapes: S writes (two a block, attention and then feed-forward). Attention's writes are purple, the
feed-forward's gold, as on Anatomy; the stream that they join is grey.
"""

from typing import Any

import numpy as np

from gptviz.analysis.stream import PARTS, Stream, Way, half_plane
from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.figures import marks
from gptviz.figures.theme import MARGIN, Figure, Mode, figure, palette

LINE = 20  # pixels of a line above a picture


def part_colors(mode: Mode) -> tuple[str, str]:
    """The colours of attention's and of the feed-forward's writes."""
    colors = palette(mode)
    return colors.output, colors.feed_forward


def path_drawn(streams: Both[Stream], ways: Both[Way], position: int) -> dict[str, Any]:
    """What `components.path` draws of one token's stream: its stops in a half-plane, and each step's words.

    The axis is where the unchanged stream ends: so the path of a changed model leaves the former one where
    the change begins. `jumps` says after which steps the stream is not the sum, since a change put something
    else there. `shown` is each block's longer step.
    """
    end = ways.all[0].stops[-1]
    found = ways.now
    stops = half_plane(found.stops, end)
    tips = half_plane(found.tips, end)
    sizes = streams.now.sizes[:, position]
    writes = streams.now.writes[:, position]
    gaps = np.abs(found.stops[1:] - found.tips).max(axis=1)
    whose = "its end"
    across = "how far it points to its end"
    if ways.was is not None:
        whose = "the unchanged end"
        across = "how far it points to the unchanged end"
    if not end.any():
        across = "the stream ends as zeros: it has no direction"

    def stream_after(stop: int) -> list[str]:
        """Two lines about the stream at one of its stops."""
        lines = [f"stream now: norm {significant(float(sizes[stop]))}"]
        if sizes[stop] and end.any():
            along, away = stops[stop]
            lines.append(
                f"angle to {whose}: {fixed(float(np.degrees(np.arctan2(away, along))), 0)}°"
            )
        return lines

    steps = []
    for step, norm in enumerate(writes):
        adds = f"adds a vector of norm {significant(float(norm))}"
        if norm == 0:
            adds = "adds nothing"
        name = f"block {step // 2} · {PARTS[step % 2]}"
        says = [name, adds, *stream_after(step + 1)]
        steps.append({"block": step // 2, "part": step % 2, "says": says})
    longest = None
    longest_said = ""
    if writes.any():
        longest = int(writes.argmax())
        longest_said = f"longest: {significant(float(writes[longest]))}"
    pairs = writes.reshape(-1, 2)
    was = None
    if ways.was is not None:
        was = half_plane(ways.was.stops, end).tolist()
    return {
        "stops": stops.tolist(),
        "tips": tips.tolist(),
        "was": was,
        "jumps": (gaps > streams.now.rounding).tolist(),
        "begins": {"part": None, "says": ["the embedding", "begins the stream", *stream_after(0)]},
        "steps": steps,
        "shown": [2 * block + int(pair.argmax()) for block, pair in enumerate(pairs)],
        "longest": longest,
        "longest_said": longest_said,
        "ends": f"end: norm {significant(float(sizes[-1]))}",
        "across": across,
        "up": "how far it points elsewhere",
    }


def ladder(streams: Both[Stream], position: int, label: str, block: int, mode: Mode) -> Figure:
    """One token's way: at each write the stream's size and the write's beside it; below, their cosine.

    `block` is shaded. Curves: 0 the stream, 1 and 2 the writes of attention and feed-forward, 3 and 4 their
    cosines; x counts the writes from 0, and S is the end. The ghosts 5 to 7 are the unchanged model's.
    """
    colors = palette(mode)
    stream = streams.now
    sizes, writes, cosines = (
        grid[:, position] for grid in (stream.sizes, stream.writes, stream.cosines)
    )
    count = len(writes)
    steps = np.arange(count + 1)
    shown = f"`{marks.safe(label)}`"
    below = marks.on(2)
    stream_hovers, write_hovers = _says(stream, position, shown)

    def bars(
        x: Any, y: Any, color: str, sentences: list[str], width: float, **extra: Any
    ) -> dict[str, Any]:
        fill = {"color": color, "line": {"width": 0}}
        drawn = marks.bar(x, y, fill, width=width, showlegend=False)
        return drawn | marks.KEPT | marks.says(sentences) | extra

    part_writes = [np.arange(part, count, 2) for part in range(2)]
    traces = [bars(steps - 0.2, sizes, colors.masked, stream_hovers, 0.36)]
    for values, shift, width, axes in ((writes, 0.2, 0.36, {}), (cosines, 0.0, 0.5, below)):
        for part, color in enumerate(part_colors(mode)):
            named = {"name": PARTS[part]} | axes
            sentences = [write_hovers[s] for s in part_writes[part]]
            traces.append(
                bars(
                    part_writes[part] + shift,
                    values[part_writes[part]],
                    color,
                    sentences,
                    width,
                    **named,
                )
            )
    if streams.was is not None:
        old = streams.was
        old_stream_hovers, old_write_hovers = (
            [f"{marks.UNCHANGED}: {sentence}" for sentence in sentences]
            for sentences in _says(old, position, shown)
        )
        traces.append(
            marks.ghost_bars(
                steps - 0.2, old.sizes[:, position], mode, old_stream_hovers, width=0.36
            )
        )
        for grid, shift, width, axes in (
            (old.writes, 0.2, 0.36, {}),
            (old.cosines, 0.0, 0.5, below),
        ):
            aside: dict[str, Any] = {"width": width, "showlegend": False} | axes
            traces.append(
                marks.ghost_bars(
                    steps[:-1] + shift, grid[:, position], mode, old_write_hovers, **aside
                )
            )
    layers = count // 2
    ticks = {
        "range": [-0.6, count + 0.5],
        "showgrid": False,
        "tickmode": "array",
        "tickvals": [*(2 * b + 0.5 for b in range(layers)), count - 0.2],
        "ticktext": [*map(str, range(layers)), "end"],
        "tickangle": 0,
    }
    shapes = [marks.across(0, marks.line(colors.quiet, 1), ("x2", "y2"))]
    for axes2 in (("x", "y"), ("x2", "y2")):
        shapes.append(marks.band(2 * block - 0.5, 2 * block + 1.5, colors.panel, axes2))
        shapes += [
            marks.upright(x + 0.5, marks.line(colors.grid, 1), axes2) for x in range(1, count, 2)
        ]
    above = {"■ the stream": colors.quiet}
    above |= {f"■ {part}": color for part, color in zip(PARTS, part_colors(mode), strict=True)}
    ghosts = streams.was is not None
    layout = {
        "shapes": shapes,
        # over the legend of the ghosts: a phone has no room for them side by side
        "annotations": [marks.heading(marks.words(above), 0, 1, yshift=LINE * ghosts)],
        "xaxis": ticks | {"anchor": "y", "showticklabels": False},
        "yaxis": {"domain": [0.4, 1], "title": {"text": "norm"}},
        "xaxis2": ticks | {"anchor": "y2", "matches": "x", "title": {"text": "block"}},
        "yaxis2": {"anchor": "x2", "domain": [0, 0.34], "title": {"text": "cosine"}}
        | {"range": [-1.05, 1.05], "tickvals": [-1, 0, 1], "ticktext": ["−1", "0", "1"]},
    } | (marks.GHOSTED if ghosts else {})
    return figure(traces, layout, mode, height=350 + LINE * ghosts, t=MARGIN["t"] + LINE * ghosts)


def _says(stream: Stream, position: int, label: str) -> tuple[list[str], list[str]]:
    """The sentences of the stream's bars, S + 1, and of the writes and cosines, S."""
    sizes = stream.sizes[:, position]
    writes = stream.writes[:, position]
    count = len(writes)
    places = [f"before the {PARTS[s % 2]} of block {s // 2}" for s in range(count)] + ["at the end"]
    stream_hovers = [
        f"{place} the stream of {label} has norm {significant(size)}"
        for place, size in zip(places, sizes, strict=True)
    ]
    write_hovers = [
        f"{PARTS[s % 2]} of block {s // 2} adds a vector of norm {significant(writes[s])} to one of "
        f"{significant(sizes[s])}:<br>cosine {fixed(stream.cosines[s, position], 2)}, it turns the stream by "
        f"{fixed(stream.turns[s, position], 0)}°"
        for s in range(count)
    ]
    return stream_hovers, write_hovers
