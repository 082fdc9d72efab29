"""The Residual stream page's two tables: the lines of a block, and its sum in some dimensions."""

from gptviz.analysis.stream import Block
from gptviz.digits import significant
from gptviz.ui.tables import Cell, Row, number, table


def lines(found: Block) -> str:
    """The lines of the block's forward, with the sizes of `x` and `shortcut` after each, as HTML."""
    rows = [
        Row(
            [
                Cell(line, "code"),
                number(significant(x, 4)),
                number(significant(shortcut, 4)),
            ]
        )
        for line, x, shortcut in found.lines
    ]
    return table("block lines", ["line", "#size of x", "#size of shortcut"], rows)


def additions(found: Block) -> str:
    """resid_pre + attn_out + mlp_out = resid_post, a dimension a row, as HTML."""
    rows = [
        Row(
            [
                number(str(one.dimension)),
                *(
                    number(significant(value, 4))
                    for value in (one.before, one.attention, one.feed_forward, one.after)
                ),
            ]
        )
        for one in found.additions
    ]
    heads = ["#dimension", "#resid_pre", "#+ attn_out", "#+ mlp_out", "#= resid_post"]
    return table("additions", heads, rows)
