"""The Attention page's sentences, all of them, for small inputs; and that they are said where true."""

import torch

from gptviz.analysis.attention import FirstToken, cell
from gptviz.analysis.head_roles import KINDS, HeadRole
from gptviz.engine.language_model import LanguageModel
from gptviz.ui.views.attention import words
from tests.golden_files import check

SHOWN = ["The", "·cat", "·`sat`", ".", "·The", "·cat", "·sat", "·on"]
SHARES = {"first": 0.31, "previous": 0.2468, "itself": 0.05}
LATER = tuple(range(1, 8))


def head(kind: str, share: float | None, rows: tuple[int, ...]) -> HeadRole:
    return HeadRole(4, 3, kind, SHARES | {kind: share}, {kind: rows}, 1, 3.14159)


ROLES = {
    "induction": head("induction", 0.654, (4, 5, 6)),
    "copies": head("copies", 0.5, (5,)),
    "first": head("first", 0.983, LATER),
    "previous": head("previous", 0.333, LATER),
    "itself": head("itself", 0.0567, LATER),
    "marks": head("marks", 0.4, (4, 5, 6, 7)),
    "favourite": head("favourite", 0.51, (2, 3, 4, 5, 6, 7)),
    "nearby": head("nearby", 0.6, LATER),
    "even": head("even", None, LATER),
    "mixed": head("mixed", None, LATER),
    "alone": head("alone", 1.0, (0,)),
}


def first_token(mean: float, own: float, value_norm: float = 1.0, tokens: int = 8) -> FirstToken:
    return FirstToken(tokens, mean, 0.25, 3, 48, own, value_norm, 2.0)


def test_every_sentence(lm: LanguageModel) -> None:
    row, trace = [0.5, 0.1, 0.28, 0.004, 0.116], lm.trace("The cat sat on the mat")
    said = {f"role: {kind}": words.role(ROLES[kind], SHOWN) for kind in KINDS}
    said |= {
        "role: rows that are too many to list": words.role(head("marks", 0.4, (1, 3, 5, 7, 9)), SHOWN),
        "thumbnail": words.thumbnail(ROLES["favourite"], 1.23456, 9.87),
        "thumbnail: no role": words.thumbnail(ROLES["even"], 9.87, 9.87),
        "one head": words.one_head(4, 3, ROLES["first"], SHOWN),
        "over all rows": words.over_all(ROLES["induction"]),
        "average": words.average(4, 8),
        "row": words.row(SHOWN, row),
        "row: one token": words.row(SHOWN[:1], [1.0]),
        "row: rescaled": words.rescaled_row(SHOWN, row),
        "row: rescaled, nothing left": words.rescaled_row(SHOWN, [1.0, 0.0, 0.0]),
        "sink: all heads": str(words.sink(first_token(0.6, 0.9), SHOWN)),
        "sink: this head": str(words.sink(first_token(0.3, 0.9, value_norm=1.9), SHOWN)),
        "steps: of an average": words.steps_of(4, 3, 8, True, False),
        "steps: of what is rescaled": words.steps_of(4, 3, 8, False, True),
        "steps: of both": words.steps_of(4, 3, 8, True, True),
        "drawn: average": "".join(words.drawn(0.2, 0.1234567, None)),
        "drawn: rescaled": "".join(words.drawn(0.2, None, 0.5)),
        "drawn: both": "".join(words.drawn(0.2, 0.1, 0.5)),
        "drawn: nothing left": "".join(words.drawn(0.0, None, 1.0)),
        "look for": words.LOOK_FOR,
        "look for: arcs": words.LOOK_FOR_ARCS,
        "arithmetic": "\n".join(words.arithmetic(cell(trace, 0, 1, 3, 2), SHOWN)),
        "arithmetic: masked": "\n".join(words.arithmetic(cell(trace, 0, 1, 1, 2), SHOWN)),
        "arithmetic: one key": "\n".join(words.arithmetic(cell(trace, 0, 1, 0, 0), SHOWN)),
        "table: a head": words.table_caption(4, 3, False, False),
        "table: the average, rescaled": words.table_caption(4, 3, True, True),
        "table: roles": words.ROLES_NUMBERS,
    }
    check("attention_words", said)


def test_the_first_token_is_explained_only_where_it_draws() -> None:
    assert words.sink(FirstToken(225, 0.014, 0.022, 0, 144, 0.014, 1.0, 2.0), SHOWN) is None
    assert words.sink(first_token(0.26, 0.2), SHOWN) is None
    assert words.sink(first_token(0.9, 0.9, tokens=2), SHOWN) is None  # one of two is no sink
    assert words.sink(first_token(0.6, 0.2), SHOWN) is not None


def test_a_picture_of_the_weights_themselves_needs_no_note() -> None:
    assert words.over_all(ROLES["previous"]) == ""
    assert words.drawn(0.2, None, None) == [] and words.steps_of(4, 3, 8, False, False) == ""


def test_a_rescaled_row_gives_both_numbers() -> None:
    weights = torch.tensor([0.6, 0.3, 0.1])
    said = words.rescaled_row(SHOWN, weights.tolist())
    assert "0.75 to" in said and "(the model: 0.30)" in said
