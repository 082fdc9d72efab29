"""The Anatomy page's sentences and tables, with the shown config's numbers in them."""

import html
from collections.abc import Sequence
from pathlib import Path

from gptviz.analysis.anatomy import (
    ATTENTION,
    BYTES,
    FEED_FORWARD,
    HEAD,
    NORM,
    TOKEN,
    Anatomy,
    part_table,
    sum_lines,
)
from gptviz.digits import significant
from gptviz.figures.anatomy import part_color, percent
from gptviz.figures.theme import Mode, palette
from gptviz.ui.views.anatomy.form import PRESETS

STYLE = f"<style>{(Path(__file__).parent / 'anatomy.css').read_text(encoding='utf-8')}</style>"

NUMBERS = (
    "A row for each tensor, by its name in the state_dict. The parameters add up to the whole model: a "
    "tensor whose numbers are another's is there with 0."
)


def memory(size: int) -> str:
    """Bytes as disks are sold: 497,759,232 is "498 MB"."""
    value, unit = float(size), 0
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    while value >= 999.5 and unit < len(units) - 1:
        value, unit = value / 1000, unit + 1
    if size == 0:
        return "0"
    return f"{size} bytes" if unit == 0 else f"{significant(value)} {units[unit]}"


def signed(difference: int) -> str:
    return "0" if difference == 0 else f"{'+' if difference > 0 else '−'}{abs(difference):,}"


def headline(shown: Anatomy) -> str:
    return f"#### {shown.parameters:,} parameters"


def about(shown: Anatomy, own: Anatomy, model: str) -> str:
    """What stands beside the headline: the memory, and how far the sum is from the chosen model's."""
    count = shown.parameters
    text = " · ".join(f"{memory(count * size)} in {dtype}" for dtype, size in BYTES.items())
    difference = count - own.parameters
    if shown.config == own.config:
        return f"{text} · {_plain(model)} as it is"
    if difference == 0:
        return f"{text} · as many as {_plain(model)}"
    return f"{text} · **{signed(difference)}** against {_plain(model)}: {_times(count / own.parameters)}"


def _times(ratio: float) -> str:
    if ratio < 1:
        return f"{percent(ratio)} of it"
    return f"{significant(ratio) if ratio < 1000 else f'{ratio:,.0f}'} times as many"


def _plain(name: str) -> str:
    """A model's name in Markdown, whatever signs it is made of."""
    return "".join(f"\\{sign}" if sign in r"\`*_{}[]()#+-.!|<>$~:" else sign for sign in name)


def look_for(shown: Anatomy) -> str:
    """How to read the picture of the whole model."""
    config = shown.config
    table = part_table(shown).set_index("part")
    share = {part: percent(value) for part, value in table["share"].items()}
    blocks = percent(table.loc[[ATTENTION, FEED_FORWARD, NORM], "share"].sum())
    vectors = sum(t.parameters for t in shown.tensors if len(t.shape) == 1)
    hold = "block holds" if config.n_layers == 1 else f"{config.n_layers} blocks hold"
    head = (
        "`out_head` is hatched because it has no numbers of its own: it makes the logits with the rows of "
        "`tok_emb`. Untied, as many would be added at the end."
        if config.tie_embeddings
        else f"`out_head` is as large as `tok_emb`, once more {share[HEAD]}: tied, it would use the numbers "
        "of `tok_emb` and add nothing."
    )
    tower = "a tower, here laid on its side, " if config.vocab_size > 4 * config.emb_dim else ""
    xl = PRESETS["XL"]
    return (
        "**What to look for.** Every tensor is a rectangle whose sides are its two dimensions, all to one "
        f"scale, so its area is its parameters. `tok_emb` has {config.vocab_size:,} rows, one a token: "
        f"{tower}{share[TOKEN]} of the model. The {hold} {blocks}, the feed-forward (orange) twice as much "
        "as the attention: 8 × emb_dim² against 4 × emb_dim². Biases and LayerNorms are vectors, and all "
        f"together only {percent(vectors / shown.parameters)}: the line below each block. "
        f"{head} Double emb_dim, and the tables double but the blocks become four times as large: so "
        f"in GPT-2 XL `tok_emb` is only {percent(xl.vocab_size * xl.emb_dim / xl.parameters)}."
    )


def heads(shown: Anatomy) -> str:
    """Why n_heads changes nothing."""
    config = shown.config
    size, each = f"{config.emb_dim:,}", f"{config.head_dim:,}"
    if config.n_heads == 1:
        share = f"The one head has all {size} rows of W_query, W_key and W_value and all columns of out_proj"
    else:
        share = (
            f"The {config.n_heads:,} heads share the {size} rows of W_query, W_key and W_value, {each} each, "
            f"and the {size} columns of out_proj"
        )
    return (
        f"**n_heads is in no line of the sum.** {share}. More heads are narrower heads; the sum is the same."
    )


def weights_only(shown: Anatomy) -> str:
    """What the memory in the table leaves out."""
    length = shown.config.context_length
    return (
        "These are the weights alone. To run the model takes more: activations, which grow with the text, "
        f"and a causal mask of {length:,} × {length:,} truth values ({memory(length**2)}), which is not "
        "learned and so is no parameter. To train it with AdamW takes three times the weights more, for the "
        "gradients and two averages of them. Nothing was allocated for this page: it builds the model on "
        "torch's meta device, where tensors have shapes and no numbers."
    )


def sum_table(shown: Anatomy, own: Anatomy, model: str) -> str:
    """The sum line by line, as HTML; with a column against the chosen model where the config is another."""
    compare = shown.config != own.config
    head = ["", "in the config's words", "with its numbers", "#parameters"]
    if compare:
        head.append(f"#against {model}")
    rows = []
    for line, before in zip(sum_lines(shown), sum_lines(own), strict=True):
        kind = "total" if line.level == 0 else "sum" if line.is_sum else "line"
        result = f"{line.parameters:,}"
        cells = [
            _cell(line.label, "label", style=f"padding-left:{line.level * 0.9:.1f}em"),
            _cell(line.formula, "formula"),
            _cell("" if line.worked == result else line.worked, "worked"),
            _cell(result, "number"),
        ]
        if compare:
            change = line.parameters - before.parameters
            cells.append(_cell("" if change == 0 else signed(change), "number"))
        rows.append(f'<tr class="{kind}">{"".join(cells)}</tr>')
    return _table("anatomy-sum", head, rows)


def share_table(shown: Anatomy, mode: Mode) -> str:
    """Each part's parameters, share and memory, as HTML; its last row is the whole model."""
    rows, table, total = [], part_table(shown), shown.parameters
    for row in table.itertuples():
        mark = f'<i style="background:{part_color(str(row.part), palette(mode))}"></i>'
        tied = row.part == "output head" and shown.config.tie_embeddings
        label = f"{row.part}, tied: counted above" if tied else str(row.part)
        rows.append(_share_row("line", mark, label, int(row.parameters), row.parameters / total))
    rows.append(_share_row("total", "", "the whole model", total, 1.0))
    return _table("anatomy-parts", ["", "#parameters", "#share", *(f"#{dtype}" for dtype in BYTES)], rows)


def _share_row(kind: str, mark: str, label: str, count: int, share: float) -> str:
    cells = [f"{count:,}", percent(share), *(memory(count * size) for size in BYTES.values())]
    numbers = "".join(_cell(text, "number") for text in cells)
    return f'<tr class="{kind}"><td>{mark}{html.escape(label)}</td>{numbers}</tr>'


def _cell(text: str, kind: str = "", style: str = "") -> str:
    return f'<td class="{kind}" style="{style}">{html.escape(text)}</td>'


def _table(name: str, head: Sequence[str], rows: Sequence[str]) -> str:
    """A head that begins with # is a column of numbers."""
    titles = "".join(
        f'<th class="{"number" if title.startswith("#") else ""}">{html.escape(title.removeprefix("#"))}</th>'
        for title in head
    )
    return (
        f'<div class="gv-sum" data-testid="{name}"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def alt(shown: Anatomy) -> str:
    count = _count(shown.config.n_layers, "block")
    return (
        f"Every tensor of the model as a rectangle to one scale: the token and position tables, {count}, the "
        f"final LayerNorm and the output head; {shown.parameters:,} parameters in all"
    )
