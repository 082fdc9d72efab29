"""The Anatomy page's two tables: the sum line by line, and each part's share and memory."""

from pathlib import Path

from gptviz.analysis.anatomy import BYTES, Anatomy, part_table, sum_lines
from gptviz.figures.anatomy import part_color, percent
from gptviz.figures.theme import Mode, palette
from gptviz.ui.tables import Cell, Row, number, table
from gptviz.ui.views.anatomy.words import memory, signed

STYLE = f"<style>{(Path(__file__).parent / 'anatomy.css').read_text(encoding='utf-8')}</style>"


def sum_table(shown: Anatomy, own: Anatomy, model: str) -> str:
    """The sum line by line, as HTML; with a column against the chosen model where the config is another."""
    compare = shown.config != own.config
    head = ["", "in the config's words", "with its numbers", "#parameters"]
    if compare:
        head.append(f"#against {model}")
    rows = []
    for line, before in zip(sum_lines(shown), sum_lines(own), strict=True):
        result = f"{line.parameters:,}"
        cells = [
            Cell(line.label, "label", indent=line.level * 0.9),
            Cell(line.formula, "formula"),
            Cell("" if line.worked == result else line.worked, "worked"),
            number(result),
        ]
        if compare:
            change = line.parameters - before.parameters
            cells.append(number("" if change == 0 else signed(change)))
        rows.append(Row(cells, "total" if line.level == 0 else "sum" if line.is_sum else "line"))
    return table("anatomy-sum", head, rows, "gv-sum")


def share_table(shown: Anatomy, mode: Mode) -> str:
    """Each part's parameters, share and memory, as HTML; its last row is the whole model."""
    rows, total = [], shown.parameters
    for row in part_table(shown).itertuples():
        tied = row.part == "output head" and shown.config.tie_embeddings
        label = f"{row.part}, tied: counted above" if tied else str(row.part)
        mark = Cell(label, "label", color=part_color(str(row.part), palette(mode)))
        rows.append(_share_row("line", mark, int(row.parameters), total))
    rows.append(_share_row("total", Cell("the whole model", "label"), total, total))
    return table("anatomy-parts", ["", "#parameters", "#share", *(f"#{t}" for t in BYTES)], rows, "gv-sum")


def _share_row(kind: str, label: Cell, count: int, total: int) -> Row:
    numbers = [f"{count:,}", percent(count / total), *(memory(count * size) for size in BYTES.values())]
    return Row([label, *map(number, numbers)], kind)
