"""The components' pictures without a browser: the same data, drawn as marks that an SVG, PNG or PDF can hold.

A component answers a pointer; its still shows what stands there at first. The machine is laid out by its own
script, in a browser: its still has only its words and numbers, and says so.
"""

import base64
import math
import re
from collections.abc import Callable, Iterable, Sequence
from html import unescape
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gptviz.digits import fixed, number
from gptviz.figures.still.canvas import (
    ASCENT,
    WIDTH,
    Canvas,
    Curve,
    Disc,
    Group,
    Line,
    Pixels,
    Rectangle,
    below,
    lines_of,
    right_end,
    shortened,
    text_width,
)
from gptviz.figures.still.charts import SHAPES, chart
from gptviz.figures.still.values import colors_of
from gptviz.figures.theme import Mode, Palette, color_at, palette, text_on

Data = dict[str, Any]

GAP = 6.0
SMALL = 12.0
LABEL = 13.0
LARGEST = 520.0  # pixels of a matrix's side
EVERY = 48  # tokens up to which each stands at an axis
MOST = 120  # tokens of a strip that are drawn; it says so where there are more


def still(name: str, data: Data) -> Canvas:
    """A component's picture from its data. Raises ValueError if it has none."""
    if name not in STILLS:
        raise ValueError(
            f"the component {name!r} cannot be drawn still; there are {', '.join(STILLS)}"
        )
    colors = palette(data["mode"])
    canvas = Canvas(WIDTH, 0.0, colors.paper)
    STILLS[name](canvas, data, colors)
    return canvas


def drawn_still(
    title: str, lines: Sequence[str], parts: Sequence[Data], mode: Mode, most: float = math.inf
) -> Canvas:
    """A whole picture: its title and lines, then its parts with their titles and notes, as wide as it needs.

    What would begin below `most` pixels is left out; a last line says so.
    """
    colors = palette(mode)
    pieces: list[Canvas] = []

    def write(text: str, size: float, color: str, bold: bool = False) -> None:
        if text:
            pieces.append(paragraph(text, size, color, colors.paper, bold))

    write(title, 17.0, colors.ink, True)
    for line in lines:
        write(line, LABEL, colors.quiet)
    for part in parts:
        if sum(piece.height + GAP for piece in pieces) > most:
            write(
                "There is more of it below, which this still picture leaves out.",
                SMALL,
                colors.quiet,
            )
            break
        if "text" in part:
            if part.get("heading"):
                write(part["text"], 15.0, colors.ink, True)
            else:
                write(part["text"], LABEL, colors.quiet)
        if part.get("title"):
            write(part["title"], 15.0, colors.ink, True)
        if "html" in part:
            pieces.append(html_table(part["html"], colors))
        if "figure" in part:
            pieces.append(chart(part["figure"])[0])
        if "draw" in part:
            pieces.append(still(part["draw"], part["data"]))
        write(part.get("note", ""), SMALL, colors.quiet)
    stacked = below(pieces, GAP, colors.paper)
    stacked.width = min(stacked.width, max(right_end(stacked.marks) + 8, 240.0))
    return stacked


def paragraph(text: str, size: float, color: str, paper: str, bold: bool = False) -> Canvas:
    """A text in lines, as wide as a picture."""
    canvas = Canvas(WIDTH, 0.0, paper)
    for line in lines_of(" ".join(text.split("\n")), size, WIDTH - 16):
        canvas.height += 1.4 * size
        canvas.write(8, canvas.height - 0.35 * size, line, size, color, bold=bold)
    return canvas


def html_table(html: str, colors: Palette) -> Canvas:
    """A page's table as text."""
    rows = []
    for row_html in re.findall(r"<tr.*?</tr>", html, re.DOTALL):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row_html, re.DOTALL)
        rows.append([" ".join(unescape(re.sub(r"<[^>]+>", "", cell)).split()) for cell in cells])
    canvas = Canvas(WIDTH, 0.0, colors.paper)
    _table(canvas, rows, colors)
    return canvas


def _table(canvas: Canvas, rows: Sequence[Sequence[str]], colors: Palette) -> None:
    """Draw rows of texts in columns, the first row bold, below what the canvas has already."""
    columns = max(map(len, rows), default=0)
    widths = []
    for column in range(columns):
        texts = [row[column] for row in rows if column < len(row)]
        widths.append(max(text_width(text, SMALL, True) for text in texts) + 16)
    squeezed = min(1.0, (WIDTH - 16) / max(sum(widths), 1.0))
    for count, row in enumerate(rows):
        x = 8.0
        canvas.height += 1.5 * SMALL
        for text, width in zip(row, widths, strict=False):
            shown = shortened(text, SMALL, width * squeezed - 6)
            canvas.write(x, canvas.height - 4, shown, SMALL, colors.ink, bold=count == 0)
            x += width * squeezed


# ---- strips of tokens ----


def _strip(
    canvas: Canvas,
    tokens: Iterable[tuple[str, str, str | None, bool]],
    colors: Palette,
) -> None:
    """Draw boxes in lines, each (its text, a small one below, its colour or none, whether it is chosen)."""
    x = 8.0
    top = canvas.height + 4
    height = LABEL * 2.6
    for text, beneath, fill, chosen in tokens:
        shown = shortened(text, LABEL, WIDTH - 40)
        width = max(text_width(shown, LABEL), text_width(beneath, SMALL - 2)) + 12
        if x + width > WIDTH - 8 and x > 8:
            x = 8.0
            top += height + GAP
        if fill:
            ink = text_on(fill)
        else:
            ink = colors.ink
        if chosen:
            stroke = colors.accent
        else:
            stroke = colors.grid
        canvas.add(Rectangle(x, top, width, height, fill, stroke, 2.5 if chosen else 1.0))
        canvas.write(x + width / 2, top + LABEL + 3, shown, LABEL, ink, anchor="middle")
        quiet = ink if fill else colors.quiet
        canvas.write(x + width / 2, top + height - 5, beneath, SMALL - 2, quiet, anchor="middle")
        x += width + 4
    canvas.height = top + height + GAP


def _cut(canvas: Canvas, items: Sequence[Any], colors: Palette, noun: str) -> None:
    if len(items) > MOST:
        canvas.height += 18
        words = f"The first {MOST} of {len(items):,} {noun}."
        canvas.write(8, canvas.height - 4, words, SMALL, colors.quiet)


def _chips(canvas: Canvas, data: Data, colors: Palette) -> None:
    tokens = data["tokens"]
    boxes = [
        (token["shown"], str(i), None, i == data["selected"])
        for i, token in enumerate(tokens[:MOST])
    ]
    _strip(canvas, boxes, colors)
    _cut(canvas, tokens, colors, "tokens")


def _token_cards(canvas: Canvas, data: Data, colors: Palette) -> None:
    tokens = [token for piece in data["pieces"] for token in piece["tokens"]]
    boxes = [
        (card["shown"], f"{card['id']} · {card['hex']}", None, card["position"] == data["selected"])
        for card in tokens[:MOST]
    ]
    _strip(canvas, boxes, colors)
    _cut(canvas, tokens, colors, "tokens")


def _surprise(canvas: Canvas, data: Data, colors: Palette) -> None:
    chips = data["chips"]
    boxes = [
        (chip["token"], chip["text"], chip["color"], i == data["expected"])
        for i, chip in enumerate(chips[:MOST])
    ]
    _strip(canvas, boxes, colors)
    _cut(canvas, chips, colors, "tokens")
    legend = data["legend"]
    _scale(
        canvas, [(0.0, legend["from"]), (1.0, legend["to"])], legend["low"], legend["high"], colors
    )


def _tokenizer_rows(canvas: Canvas, data: Data, colors: Palette) -> None:
    for row in data["rows"]:
        canvas.height += 20
        words = f"{row['tokenizer']}: {row['count']:,} tokens ({row['about']})"
        canvas.write(8, canvas.height - 4, words, LABEL, colors.ink, bold=True)
        boxes = [(text, "" if id is None else str(id), None, False) for text, id in row["tokens"]]
        _strip(canvas, boxes, colors)


def _merges(canvas: Canvas, data: Data, colors: Palette) -> None:
    for stage in data["stages"]:
        boxes = [
            (part["shown"], part["hex"], None, index == stage["joined"])
            for index, part in enumerate(stage["parts"])
        ]
        _strip(canvas, boxes, colors)
        for line in lines_of("".join(stage["says"]), SMALL, WIDTH - 16):
            canvas.height += 1.4 * SMALL
            canvas.write(8, canvas.height - 4, line, SMALL, colors.quiet)


def _writing(canvas: Canvas, data: Data, colors: Palette) -> None:
    for line in lines_of(" ".join(data["before"].split()), LABEL + 1, WIDTH - 16):
        canvas.height += 1.4 * (LABEL + 1)
        canvas.write(8, canvas.height - 4, line, LABEL + 1, colors.ink)
    boxes = [
        (token["shown"], token["p_text"], None, i == data["chosen"])
        for i, token in enumerate(data["tokens"])
    ]
    _strip(canvas, boxes, colors)


def _windows(canvas: Canvas, data: Data, colors: Palette) -> None:
    count = data["count"]
    tokens = data["tokens"]
    left = 100.0
    width = min(60.0, (WIDTH - left - 8) / count)
    step = 1
    if tokens is None:
        step = max(1, int(np.ceil(40 / width)))
    for i in range(0, count, step):
        if tokens is None:
            text = str(data["first"] + i)
        else:
            text = shortened(tokens[i], SMALL, max(width - 2, 18))
        canvas.write(left + (i + 0.5) * width, 16, text, SMALL, colors.ink, anchor="middle")
    canvas.height = 24
    for row in data["rows"][:MOST]:
        start = row["start"] - data["first"]
        top = canvas.height
        name = f"window {row['window']}"
        canvas.write(left - 8, top + 14, name, SMALL, colors.ink, anchor="end")
        for position, color, y in (
            (start, colors.accent, top),
            (start + 1, colors.value, top + 10),
        ):
            canvas.add(
                Rectangle(
                    left + position * width, y, data["length"] * width - 1, 9, color, opacity=0.75
                )
            )
        canvas.height += 26
    canvas.height += 18
    canvas.write(8, canvas.height - 4, "inputs", SMALL, colors.accent, bold=True)
    canvas.write(70, canvas.height - 4, "targets, one token on", SMALL, colors.value, bold=True)
    _cut(canvas, data["rows"], colors, "windows")


# ---- bars ----


def _candidates(canvas: Canvas, data: Data, colors: Palette) -> None:
    rows = [*data["rows"], *([data["rest"]] if data["rest"] else [])]
    heads = data.get("heads", {})
    columns = {"rank": 50.0, "token": 66.0, "logit": 300.0, "scaled": 366.0}
    compared = bool(heads.get("before")) or any(row.get("ghost") is not None for row in rows)
    bar = 390.0
    bar_width = 290.0 if compared else 360.0
    if heads and "scaled" not in heads:  # nothing is divided: the room is the bars'
        del columns["logit"], columns["scaled"]
        bar -= 132
        bar_width += 132
    canvas.height = 22
    names = {
        "rank": "rank",
        "token": "token",
        "logit": "logit",
        "scaled": heads.get("scaled", "scaled"),
    }
    for name, x in columns.items():
        anchor = "end"
        if name == "token":
            anchor = "start"
        canvas.write(x, 16, names[name], SMALL, colors.quiet, anchor=anchor)
    if compared:
        canvas.write(WIDTH - 96, 16, "unchanged", SMALL, colors.quiet, anchor="end")
    canvas.write(WIDTH - 8, 16, "probability", SMALL, colors.quiet, anchor="end")
    for row in rows:
        middle = canvas.height + 12
        base = middle + ASCENT * LABEL
        for name, x in columns.items():
            if name == "token":
                label = row["token"]
                if row.get("came"):
                    label += "  (came next)"
                canvas.write(x, base, shortened(label, LABEL, 180), LABEL, colors.ink)
            else:
                canvas.write(x, base, row[f"{name}_text"], LABEL, colors.ink, anchor="end")
        canvas.add(Rectangle(bar, middle - 7, bar_width, 14, colors.panel))
        if row.get("rest") or row["key"] == "rest":
            fill = colors.ghost
        else:
            fill = colors.probability
        canvas.add(Rectangle(bar, middle - 7, bar_width * min(1.0, row["probability"]), 14, fill))
        if row.get("ghost") is not None:
            edge = Rectangle(
                bar, middle - 9, bar_width * min(1.0, row["ghost"]), 18, None, colors.ghost, 2.0
            )
            canvas.add(edge)
            canvas.write(WIDTH - 96, base, row["ghost_text"], LABEL, colors.quiet, anchor="end")
        canvas.write(WIDTH - 8, base, row["p_text"], LABEL, colors.ink, anchor="end")
        canvas.height += 24


def _draws(canvas: Canvas, data: Data, colors: Palette) -> None:
    """The candidates, and the strip from 0 to 1 on which the draw fell."""
    canvas.height = 26
    for segment in data["segments"]:
        left = 8 + (WIDTH - 16) * segment["start"]
        width = (WIDTH - 16) * (segment["stop"] - segment["start"])
        canvas.add(Rectangle(left, 4, width, 20, colors.panel, colors.quiet))
        if text_width(segment["shown"], SMALL) < width - 4:
            canvas.write(left + width / 2, 18, segment["shown"], SMALL, colors.ink, anchor="middle")
    if data["point"]:
        x = 8 + (WIDTH - 16) * data["point"]["at"]
        canvas.add(Line(((x, 0.0), (x, 30.0)), colors.accent, 3.0))
        canvas.write(x, 42, f"drawn: {data['point']['text']}", SMALL, colors.accent, bold=True)
        canvas.height = 50
    table = Canvas(WIDTH, 0.0, colors.paper)
    _candidates(table, data, colors)
    canvas.place(table, 0.0, canvas.height)
    canvas.height += table.height


def _spread(canvas: Canvas, data: Data, colors: Palette) -> None:
    """All stops below each other, each on the axis that is in sight there."""
    for order, stop in enumerate(data["stops"], start=1):
        top = canvas.height
        canvas.write(8, top + 16, f"{order} {stop['name']}", LABEL, colors.ink, bold=True)
        told = [", ".join(stop["told"])]
        if stop["ghost"]:
            told.append(stop["ghost"]["told"])
        canvas.write(8, top + 34, "; ".join(told), SMALL, colors.quiet)
        panel = _stop(stop, data["dimension"], colors, data.get("centred", True))
        canvas.place(panel, 8.0, top + 42)
        canvas.height = top + 42 + panel.height + GAP


def _stop(stop: Data, dimension: int, colors: Palette, centred: bool) -> Canvas:
    """One stop's bricks: a column each, the chosen dimension's brick, mean, band, and the axis.

    The band lies around the mean, or around 0 where the norm is not `centred`.
    """
    width = WIDTH - 16
    height = 110.0
    panel = Canvas(width, height + 34, colors.paper)
    low, high = stop["axis"]

    def x(value: float) -> float:
        return (value - low) / (high - low) * width

    values = _numbers(stop["values"]["base64"]).astype(float)
    bins = _numbers(stop["bins"], "<u2")
    tall = height / max(1, stop["tallest"])
    column = stop["width"] * width / (high - low)
    mean = 0.0
    if centred:
        mean = float(values.mean())
    deviation = float(np.sqrt(np.square(values - mean).mean()))
    band = x(mean + deviation) - x(mean - deviation)
    panel.add(Rectangle(x(mean - deviation), 0, band, height, colors.accent, opacity=0.15))
    for place, count in enumerate(np.bincount(bins).tolist()):
        left = x(stop["low"] + place * stop["width"])
        size = count * tall
        panel.add(Rectangle(left, height - size, column, size, colors.quiet, opacity=0.8))
    left = x(stop["low"] + int(bins[dimension]) * stop["width"])
    panel.add(Rectangle(left, height - tall, column, tall, colors.positive))
    if stop["ghost"]:
        points = [(x(stop["low"]), height)]
        for place, count in enumerate(stop["ghost"]["counts"]):
            level = height - count * tall
            points.append((x(stop["low"] + place * stop["width"]), level))
            points.append((x(stop["low"] + (place + 1) * stop["width"]), level))
        points.append((points[-1][0], height))
        panel.add(Line(tuple(points), colors.ghost, 2.0))
    panel.add(Line(((x(mean), 0.0), (x(mean), height)), colors.ink, 2.0))
    panel.add(Line(((0.0, height), (width, height)), colors.quiet))
    mark = x(float(values[dimension]))
    corners = ((mark, height + 1), (mark + 5, height + 10), (mark - 5, height + 10))
    panel.add(Line(corners, None, fill=colors.positive))
    for end, anchor in ((low, "start"), (0.0, "middle"), (high, "end")):
        panel.write(x(end), height + 26, number(end), SMALL, colors.quiet, anchor=anchor)
    anchor = "start"
    beside = mark + 9
    if mark > width / 2:
        anchor = "end"
        beside = mark - 9
    panel.write(beside, height + 11, stop["mark"], SMALL, colors.ink, anchor=anchor)
    return panel


def _branches(canvas: Canvas, data: Data, colors: Palette) -> None:
    rows = [["", "text", "ln p", "perplexity"]]
    rows += [
        [str(i), row["text"], row["log_p"], row["perplexity"]] for i, row in enumerate(data["rows"])
    ]
    _table(canvas, rows, colors)


# ---- maps ----


def _numbers(text: str, kind: str = "<f4") -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), kind)


def matrix_of(arrays: Data, panel: Data) -> NDArray[np.float64]:
    """A panel's numbers (rows, columns) from what the browser gets; NaN where the causal mask is."""
    array = arrays[panel["array"]]
    if "of" in array:
        first, second = (
            matrix_of(arrays, panel | {"array": name, "divisor": 1.0}) for name in array["of"]
        )
        values = first @ second.T  # (rows, dim) @ (dim, columns) -> (rows, columns)
    else:
        flat = _numbers(array["base64"]).astype(np.float64)
        columns = array["columns"]
        if array["triangle"]:
            values = np.full((columns, columns), np.nan)
            values[np.tril_indices(columns)] = flat
        else:
            values = flat.reshape(-1, columns)  # (rows, columns)
    return values / panel["divisor"]


def _matrix(canvas: Canvas, data: Data, colors: Palette) -> None:
    """Draw the panels, as many beside each other as fit."""
    panels = [_panel(data, panel, colors) for panel in data["panels"]]
    x = 0.0
    top = 0.0
    for panel_canvas in panels:
        if x and x + panel_canvas.width > WIDTH:
            x = 0.0
            top = canvas.height
        canvas.place(panel_canvas, x, top)
        canvas.height = max(canvas.height, top + panel_canvas.height + GAP)
        x += panel_canvas.width + 12


def _panel(data: Data, panel: Data, colors: Palette) -> Canvas:
    values = matrix_of(data["arrays"], panel)
    rows, columns = values.shape
    names = {"query": data["tokens"], "key": data["tokens"]}
    if data["small"] or len(data["panels"]) > 1:
        side = 260.0
    else:
        side = LARGEST
    if panel["column_axis"] == "key":
        cell = min(36.0, side / max(rows, columns))
    else:
        cell = min(24.0, side / rows)
    if panel["column_axis"] == "dim":
        column_width = min(cell, 380.0 / columns)
    else:
        column_width = cell
    row_labels = [names.get(panel["row_axis"], range(rows))[i] for i in range(rows)]
    column_labels = [
        str(names.get(panel["column_axis"], range(columns))[i]) for i in range(columns)
    ]
    row_step = max(1, int(np.ceil(SMALL / cell)))
    column_step = max(1, int(np.ceil(SMALL / column_width)))
    size = min(LABEL, max(9.0, 0.8 * cell))
    left = max(text_width(str(text), size) for text in row_labels[::row_step]) + 14
    turned = max(text_width(text, size) for text in column_labels[::column_step])
    top = turned * 0.87 + 2.2 * size + 22
    heading = panel["title"] or panel["label"]
    canvas = Canvas(
        max(left + columns * column_width + turned * 0.5 + 16, 300.0), 0.0, colors.paper
    )
    if panel["title"]:
        canvas.write(8, 16, panel["title"], 14, colors.ink, bold=True)
        canvas.write(8, 32, panel["note"], SMALL, colors.quiet)
        top += 22
    else:
        canvas.write(8, 14, heading, SMALL, colors.quiet)
    if panel["scale"] == "attention":
        scale = colors.attention
    else:
        scale = colors.signed
    for i in range(0, rows, row_step):
        canvas.write(
            left - 6,
            top + (i + 0.5) * cell + ASCENT * size,
            str(row_labels[i]),
            size,
            colors.ink,
            anchor="end",
        )
    for i in range(0, columns, column_step):
        canvas.write(
            left + (i + 0.5) * column_width + 3,
            top - 5,
            column_labels[i],
            size,
            colors.ink,
            turn=-60.0,
        )
    pixels = colors_of(values, scale, panel["low"], panel["high"])
    above_diagonal = np.triu(np.ones_like(values, dtype=bool), 1)
    if panel["masked"]:
        hidden = above_diagonal
    else:
        hidden = np.zeros_like(above_diagonal)
    pixels[hidden] = list(bytes.fromhex(colors.masked[1:]))
    empty = np.isnan(values) & ~hidden
    pixels[empty] = list(bytes.fromhex(colors.paper[1:]))
    if values.size <= SHAPES:
        cells = [
            Rectangle(
                left + c * column_width,
                top + r * cell,
                column_width,
                cell,
                f"#{pixels[r, c].tobytes().hex()}",
            )
            for r in range(rows)
            for c in range(columns)
        ]
        canvas.add(Group(0.0, 0.0, tuple(cells)))
    else:
        canvas.add(Pixels(left, top, columns * column_width, rows * cell, pixels))
    canvas.add(Rectangle(left, top, columns * column_width, rows * cell, None, colors.grid))
    canvas.height = top + rows * cell + 8
    low, high = (number(panel[end]) for end in ("low", "high"))
    if panel["digits"] == "weight":
        low, high = (
            fixed(panel[end], 0 if panel["scale"] == "attention" else 2) for end in ("low", "high")
        )
    masked = None
    if hidden.any():
        masked = colors.masked
    _scale(canvas, scale, low, high, colors, left, masked)
    return canvas


def _scale(
    canvas: Canvas,
    scale: Sequence[tuple[float, str]],
    low: str,
    high: str,
    colors: Palette,
    left: float = 8.0,
    masked: str | None = None,
) -> None:
    """Draw a strip of colours with its ends' values, below what is there; and the colour of the mask."""
    top = canvas.height + 2
    canvas.write(left, top + 10, low, SMALL, colors.quiet)
    x = left + text_width(low, SMALL) + 6
    strip = colors_of(np.linspace(0, 1, 96)[None], scale, 0, 1)
    canvas.add(Pixels(x, top, 90, 11, strip), Rectangle(x, top, 90, 11, None, colors.quiet, 0.5))
    canvas.write(x + 96, top + 10, high, SMALL, colors.quiet)
    x += 96 + text_width(high, SMALL) + 18
    if masked:
        canvas.add(Rectangle(x, top, 16, 11, masked, colors.quiet, 0.5))
        canvas.write(x + 22, top + 10, "masked", SMALL, colors.quiet)
    canvas.height = top + 18


def _heads(canvas: Canvas, data: Data, colors: Palette) -> None:
    """Draw all heads, small, with their roles."""
    blocks = data["blocks"]
    heads = data["heads"]
    side = data["side"]
    picture = Image.open(BytesIO(base64.b64decode(data["picture"].split(",", 1)[1])))
    pixels = np.asarray(picture.convert("RGB"))
    left = 64.0
    cell = min(96.0, (WIDTH - left - 8) / heads)
    labelled = cell >= 56
    row_height = cell + (16 if labelled else 2)
    for head in range(heads):
        if labelled:
            label = f"head {head}"
        else:
            label = str(head)
        canvas.write(left + (head + 0.5) * cell, 14, label, SMALL, colors.quiet, anchor="middle")
    canvas.height = 20
    for block in range(blocks):
        top = canvas.height
        canvas.write(left - 8, top + cell / 2, f"block {block}", SMALL, colors.quiet, anchor="end")
        for head in range(heads):
            pixels_of_head = pixels[
                block * side : (block + 1) * side, head * side : (head + 1) * side
            ]
            x = left + head * cell
            role = data["roles"][block][head]
            canvas.add(Pixels(x + 2, top + 2, cell - 4, cell - 4, pixels_of_head))
            if role.get("changed"):
                canvas.add(
                    Line(((x + 2, top + cell - 2), (x + cell - 2, top + 2)), colors.accent, 2.0)
                )
            if (block, head) == (data["block"], data["head"]):
                canvas.add(Rectangle(x + 1, top + 1, cell - 2, cell - 2, None, colors.accent, 3.0))
            if labelled:
                label = shortened(role["label"], SMALL - 1, cell - 2)
                canvas.write(
                    x + cell / 2, top + cell + 10, label, SMALL - 1, colors.ink, anchor="middle"
                )
        canvas.height += row_height
    canvas.height += 6
    _scale(canvas, colors.attention, "0", "1", colors, left, colors.masked)


def _lens(canvas: Canvas, data: Data, colors: Palette) -> None:
    """Draw a row a depth and a column a token; each cell has its likeliest token, and its colour."""
    cells = data["cells"]
    count = sum(stop - start for start, stop in cells["known"])
    rows = len(data["rows"])
    # the likeliest token of each cell, (rows, columns)
    ids = _numbers(cells["ids"], "<u4" if cells["wide"] else "<u2").reshape(
        rows, count, cells["each"]
    )[..., 0]
    shares = _numbers(cells["color"]).reshape(rows, count)  # (rows, columns)
    positions = [i for start, stop in cells["known"] for i in range(start, stop)]
    left = 110.0
    width = min(64.0, (WIDTH - left - 8) / count)
    row_height = 22.0
    is_labelled = width >= 22
    if is_labelled:
        step = 1
    else:
        step = max(1, int(np.ceil(30 / width)))
    for i in range(0, count, step):
        if is_labelled:
            text = shortened(data["tokens"][positions[i]], SMALL, width - 2)
        else:
            text = str(positions[i])
        canvas.write(
            left + (i + 0.5) * width,
            14,
            text,
            SMALL - 1,
            colors.ink,
            anchor="middle",
            bold=is_labelled,
        )
    canvas.height = 20
    for row, (name, _) in enumerate(data["rows"]):
        canvas.write(left - 6, canvas.height + 15, name, SMALL, colors.ink, anchor="end")
        for i in range(count):
            fill = color_at(data["legend"]["scale"], float(shares[row, i]))
            canvas.add(Rectangle(left + i * width, canvas.height, width - 1, row_height - 1, fill))
            if is_labelled:
                text = shortened(cells["shown"][str(int(ids[row, i]))], SMALL - 2, width - 4)
                x = left + (i + 0.5) * width
                canvas.write(x, canvas.height + 15, text, SMALL - 2, text_on(fill), anchor="middle")
        canvas.height += row_height
    chosen = None
    if data["position"] in positions:
        chosen = positions.index(data["position"])
    if chosen is not None:
        box = (
            left + chosen * width - 1,
            20 + data["row"] * row_height - 1,
            width + 1,
            row_height + 1,
        )
        canvas.add(Rectangle(*box, None, colors.accent, 2.5))
    canvas.height += 6
    legend = data["legend"]
    canvas.write(
        8, canvas.height + 12, shortened(legend["title"], SMALL, left - 16), SMALL, colors.quiet
    )
    _scale(canvas, legend["scale"], legend["low"], legend["high"], colors, left)


def _arcs(canvas: Canvas, data: Data, colors: Palette) -> None:
    """Draw the lines of the chosen head: from the tokens that look, left, to those they look at."""
    tokens = data["tokens"]
    count = len(tokens)
    flat = _numbers(data["weights"]).reshape(len(data["heads"]), -1)  # (H, T * (T + 1) / 2)
    weights = np.zeros((count, count))
    weights[np.tril_indices(count)] = np.nan_to_num(flat[data["head"]])
    row_height = max(9.0, min(22.0, 900.0 / count))
    left = 300.0
    right = 560.0
    color = colors.heads[data["heads"][data["head"]] % len(colors.heads)]
    for query, token in enumerate(tokens):
        y = 24 + (query + 0.5) * row_height
        if row_height >= 9:
            size = min(LABEL, 0.8 * row_height)
            canvas.write(left - 8, y + ASCENT * size, token, size, colors.ink, anchor="end")
            canvas.write(right + 8, y + ASCENT * size, token, size, colors.ink)
        order = np.argsort(-weights[query])
        count_drawn = (
            int(np.searchsorted(np.cumsum(weights[query][order]), data["mass"] / 100 - 1e-9)) + 1
        )
        for key in order[:count_drawn].tolist():
            key_y = 24 + (key + 0.5) * row_height
            points = (left, y), (left + 90, y), (right - 90, key_y), (right, key_y)
            share = float(weights[query, key])
            canvas.add(Curve(points, color, 0.5 + 4 * share, "solid", 0.15 + 0.8 * share))
    canvas.write(left - 8, 14, "looks", SMALL, colors.quiet, anchor="end")
    head = data["heads"][data["head"]]
    words = f"is looked at (block {data['block']}, head {head}; lines until {data['mass']} % of each row)"
    canvas.write(right + 8, 14, shortened(words, SMALL, WIDTH - right - 16), SMALL, colors.quiet)
    canvas.height = 24 + count * row_height + GAP
    note = f"Head {head} of block {data['block']}: the strongest lines of each token, until {data['mass']} %."
    canvas.write(8, canvas.height + 12, note, SMALL, colors.quiet)
    canvas.height += 20


def _machine(canvas: Canvas, data: Data, colors: Palette) -> None:
    """Draw what the machine says of the open place, and its numbers."""
    words = "The machine is laid out by its own script: to_html(...) has it whole. Its numbers:"
    for text in ("".join(data["says"]), words):
        for line in lines_of(text, LABEL, WIDTH - 16):
            canvas.height += 1.4 * LABEL
            canvas.write(8, canvas.height - 4, line, LABEL, colors.ink)
    canvas.height += GAP
    _table(canvas, [[str(cell) for cell in row] for row in data["table"]], colors)


def _dials(canvas: Canvas, data: Data, colors: Palette) -> None:
    """Draw each pair's dial with the query's hand and the key's, at the places where they begin."""
    query = data["at"]
    key = query - data["distance"]
    canvas.write(8, 18, f"query at position {query}", LABEL, colors.query)
    canvas.write(178, 18, f"key at position {key}", LABEL, colors.key)
    width = WIDTH / len(data["pairs"])
    radius = min(width * 0.4, 95.0)
    y = 72 + radius
    for place, pair in enumerate(data["pairs"]):
        x = (place + 0.5) * width
        canvas.write(x, 42, pair["name"], LABEL, colors.ink, anchor="middle", bold=True)
        canvas.write(x, 60, pair["round"], SMALL, colors.quiet, anchor="middle")
        canvas.add(Disc(x, y, radius, None, colors.quiet, 1.5))
        for position, color in ((key, colors.key), (query, colors.query)):
            angle = position * pair["speed"]
            end = (x + radius * math.cos(angle), y - radius * math.sin(angle))
            canvas.add(Line(((x, y), end), color, 4.0), Disc(*end, 6.0, color))
        canvas.write(x, y + radius + 20, pair["between"], SMALL, colors.accent, anchor="middle")
    canvas.height = y + radius + 30


def _path(canvas: Canvas, data: Data, colors: Palette) -> None:
    """Draw the whole path, its blocks numbered where there is room, and the words of the chosen block."""
    points = [(0.0, 0.0), *data["stops"], *data["tips"], *(data["was"] or [])]
    low = min(x for x, _ in points)
    high = max(x for x, _ in points)
    top = max(y for _, y in points)
    left = 24.0
    right = 580.0
    above = 30.0
    floor = 430.0
    scale = min((right - left) / ((high - low) or 1.0), (floor - above) / (top or 1.0))

    def at(point: Sequence[float]) -> tuple[float, float]:
        return left + (point[0] - low) * scale, floor - point[1] * scale

    canvas.write(left, 18, f"↑ {data['up']}", SMALL, colors.quiet)
    canvas.write(right, floor + 20, f"{data['across']} →", SMALL, colors.quiet, anchor="end")
    canvas.add(Line(((8.0, floor), (right + 8, floor)), colors.quiet, 1.5))
    if data["was"]:
        former = tuple(map(at, [(0.0, 0.0), *data["was"]]))
        canvas.add(Line(former, colors.ghost, 2.0, "dash"))
    _arrow(canvas, at((0.0, 0.0)), at(data["stops"][0]), colors.quiet, 3.0)
    part_colors = (colors.output, colors.feed_forward)
    for step, tip in enumerate(data["tips"]):
        chosen = data["steps"][step]["block"] == data["block"]
        width = 5.0 if chosen else 3.0
        _arrow(canvas, at(data["stops"][step]), at(tip), part_colors[step % 2], width)
        if data["jumps"][step]:
            jump = (at(tip), at(data["stops"][step + 1]))
            canvas.add(Line(jump, colors.ink, 1.5, "dot"))
    taken: list[tuple[float, float]] = []
    for step in range(1, len(data["stops"]), 2):
        x, y = at(data["stops"][step])
        if all(math.hypot(x - a, y - b) > 1.5 * SMALL for a, b in taken):
            taken.append((x, y))
            canvas.write(x + 9, y - 4, str(step // 2), SMALL, colors.ink)
    end = at(data["stops"][-1])
    canvas.add(Disc(*end, 5.0, colors.ink))
    canvas.write(end[0] + 8, end[1] - 12, data["ends"], SMALL, colors.ink, bold=True)
    if data["longest"] is not None:
        x, y = at(data["tips"][data["longest"]])
        start = at(data["stops"][data["longest"]])
        color = part_colors[data["longest"] % 2]
        place = ((x + start[0]) / 2, (y + start[1]) / 2 - 10)
        canvas.write(*place, data["longest_said"], SMALL, color, anchor="middle", bold=True)
    shown = data["steps"][data["shown"][data["block"]]]
    lines = [("attention adds", colors.output), ("feed-forward adds", colors.positive)]
    lines.append(("the embedding begins", colors.quiet))
    if data["was"]:
        lines.append(("dashed: before the change", colors.ghost))
    if any(data["jumps"]):
        lines.append(("dotted: put there by a change", colors.ink))
    lines += [("", colors.ink), *((line, colors.ink) for line in shown["says"])]
    for row, (line, color) in enumerate(lines):
        canvas.write(right + 40, above + 20 * row, line, LABEL, color)
    canvas.height = floor + 30


def _arrow(
    canvas: Canvas, tail: tuple[float, float], tip: tuple[float, float], color: str, width: float
) -> None:
    """Draw an arrow; a dot where it is too short for one."""
    length = math.dist(tail, tip)
    if length < 0.5:
        canvas.add(Disc(*tip, width / 2, color))
        return
    head = min(12.0, 0.7 * length)
    across = (tip[0] - tail[0]) / length
    down = (tip[1] - tail[1]) / length
    neck = (tip[0] - across * head, tip[1] - down * head)
    corners = (
        tip,
        (neck[0] - down * head / 2, neck[1] + across * head / 2),
        (neck[0] + down * head / 2, neck[1] - across * head / 2),
    )
    canvas.add(Line((tail, neck), color, width), Line(corners, None, fill=color))


STILLS: dict[str, Callable[[Canvas, Data, Palette], None]] = {
    "arcs": _arcs,
    "branches": _branches,
    "candidates": _candidates,
    "chips": _chips,
    "dials": _dials,
    "draws": _draws,
    "heads": _heads,
    "lens": _lens,
    "machine": _machine,
    "matrix": _matrix,
    "merges": _merges,
    "path": _path,
    "spread": _spread,
    "surprise": _surprise,
    "token_cards": _token_cards,
    "tokenizer_rows": _tokenizer_rows,
    "windows": _windows,
    "writing": _writing,
}
