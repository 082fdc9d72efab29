"""The Overview's six small pictures, each a door to its page."""

import base64
from functools import partial
from typing import Any

import numpy as np

from gptviz import Run
from gptviz.analysis.embeddings import shared_scale
from gptviz.analysis.overview import around, folded, glance
from gptviz.both import Both
from gptviz.digits import percent, significant
from gptviz.figures import head_grid
from gptviz.figures.strips import norm_lines, strip
from gptviz.figures.theme import Mode
from gptviz.tokenizer import show_token
from gptviz.ui import heads, runs, sheet
from gptviz.ui.components.groups import shared_characters
from gptviz.ui.runs import per_run
from gptviz.ui.shell.target import whole
from gptviz.ui.words import counted, show_id

WIDE = 48  # dimensions of the embedding in the small strips: more would be narrower than a pixel


@per_run
def doors(run: Run, position: int, mode: Mode) -> list[dict[str, Any]]:
    """What happens to a text, in order, for all who look at this token of this run.

    Each has "page", "caption", of which every second piece is a token, and "picture": see `draw_doors`.
    """
    lm, both = runs.model(run), Both(run, run.plain if run.edits else None)
    config, tokens, seen = lm.config, lm.tokens(run.ids), both.map(lambda r: sheet.once(r, glance, position))
    now, last, here = seen.now, config.n_layers - 1, show_token(tokens[position].raw)
    made = []

    def door(page: str, caption: list[str], draw: str, **picture: object) -> None:
        made.append({"page": page, "caption": caption, "picture": {"draw": draw, **picture}})

    near = around(tokens, position)
    cut = f"The text is cut into {counted(len(tokens), 'token')}, each a number: "
    chips = [
        {"shown": show_token(t.raw), "position": t.position, "id": t.id, "chosen": t.position == position}
        for t in near
    ]
    groups = shared_characters([token.raw for token in near])
    door("tokens", [cut, here, f" is {tokens[position].id}."], "tokens", tokens=chips, groups=groups)

    wide = min(WIDE, config.emb_dim)
    what = f"{counted(len(tokens), 'row')}, one per token, the first {wide} of {config.emb_dim} numbers"
    row = partial(_strip, what=what, limit=shared_scale(now.parts, share=0.95).limit, mode=mode)
    strips = [
        row(label, seen.map(lambda s, i=i: s.parts[i][:, :wide]))  # type: ignore[misc]
        for i, label in enumerate(("token", "+ position", "= what goes in"))
    ]
    says = f"Every token becomes {config.emb_dim} numbers: what it is, plus where it stands."
    door("embeddings", [says], "strips", strips=strips)

    spread = seen.map(lambda s: s.norms[["before", "after"]].to_numpy().T)  # (2, N)
    ends = (spread.map(lambda s, end=end: float(s[0, end])) for end in (0, -1))  # type: ignore[misc]
    low, high = (spread.map(lambda s, of=of: float(of(s[1]))) for of in (np.min, np.max))  # type: ignore[misc]
    says = "{} keep the numbers' spread, {:2} at first and {:2} at last, between {:2} and {:2}."
    says = says.format(counted(len(now.norms), "LayerNorm"), *ends, low, high)
    door("layernorm", [says], "svg", svg=norm_lines(spread, mode), alt=says)

    count = f"{counted(config.n_layers * config.n_heads, 'head')} in {counted(config.n_layers, 'block')}"
    says, marks = (
        f"Information moves from earlier tokens to later ones, through {count}, a triangle each.",
        None,
    )
    if run.edits:
        says = f"{count}. {heads.marks_say(run)}"
        marks = {"side": head_grid.mosaic_side(len(run)), "gap": head_grid.GAP_PX, "heads": heads.marks(run)}
    alt = (
        "Every head's attention: a row is a block; in a triangle a row is the token that looks, a column the "
    )
    alt += "token it looks at, dark is much"
    door("attention", [says], "heads", image=_url(heads.mosaic(run, mode)), alt=alt, marks=marks)

    fired = seen.map(lambda s: f"{int((s.units[0] > 0).sum()):,}")
    units = len(now.units[0])
    limits = [shared_scale(np.stack([*(s.units for s in seen.all)]), 0.98).limit] * 2
    limits.append(shared_scale(np.stack([s.added for s in seen.all]), 0.98).limit)
    strips = []
    for i, label in enumerate((f"{units:,} units", "after GELU", "= what is added")):
        values = seen.map(lambda s, i=i: folded([*s.units, s.added][i]))  # type: ignore[misc]
        what = f"{values.now.size:,} numbers of block {last}'s feed-forward, row after row"
        strips.append(_strip(label, values, what=what, limit=limits[i], mode=mode))
    says = f"Each token passes {units:,} units in every block. For this one {fired} fire in block {last}."
    door("feed_forward", [says], "strips", strips=strips)

    bars = []
    for i in now.following["id"].tolist():
        p = both.map(lambda r, i=i: whole(r, position, i, None)[1])  # type: ignore[misc]
        shown = show_id(lm, i)
        title = f"{shown} comes next with probability {p:3}"
        numbers = {"id": i, "probability": p.now, "ghost": p.was, "percent": percent(p.now)}
        bars.append({"shown": shown, "title": title} | numbers)
    says = f"Out comes a probability for each of {config.vocab_size:,} tokens to follow "
    door("next_token", [says, here, "."], "bars", bars=bars)
    return made


def _strip(label: str, values: Both[np.ndarray], what: str, limit: float, mode: Mode) -> dict[str, Any]:
    """Signed numbers as a strip, with the unchanged ones below it where they are others."""

    def drawn(numbers: np.ndarray, name: str) -> dict[str, str]:
        colors = f"blue below 0, orange above, full colour at {significant(limit, 2)}"
        return {"alt": f"{name}: {what}; {colors}", "image": _url(strip(numbers, limit, mode))}

    name = label.lstrip("+= ")
    unchanged = {"unchanged": drawn(values.all[0], f"unchanged, {name}")} if values.moved else {}
    return {"label": label, **drawn(values.now, name), **unchanged}


def _url(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
