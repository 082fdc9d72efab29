"""What the pictures say is what they were given; the chips' sentences and colours are those of the table."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.analysis.next_token import candidates, curve
from gptviz.engine.sampling import Sampling
from gptviz.figures.next_token import (
    back_to_back,
    mixed,
    probability_text,
    surprise_color,
    surprise_rows,
    vocabulary_curve,
)
from gptviz.figures.theme import palette


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.1172, "0.117"), (0.5, "0.500"), (0.00412, "0.00412"), (0.0001, "0.000100"), (0.0, "0"), (1.0, "1"),
        (3.71e-6, "3.71 × 10⁻⁶"), (1e-120, "1.00 × 10⁻¹²⁰"), (0.9994, "0.9994"), (0.99996, "0.99996"),
        (1 - 3e-12, "0.999999999997"),
    ],
)  # fmt: skip
def test_a_probability_keeps_the_digits_that_mean_something(p, text):
    assert probability_text(p) == text


@given(st.floats(1e-300, 1, exclude_max=True))
def test_no_probability_is_rounded_to_nothing_or_to_everything(p):
    text = probability_text(p)
    plain = text.replace(" × 10", "e").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    assert 0 < float(plain) < 1
    assert float(plain) == pytest.approx(p, rel=0.05)
    assert 1 - float(plain) == pytest.approx(1 - p, rel=0.55)


def test_colours_run_from_paper_to_that_of_a_loss():
    assert mixed("#000000", "#ff8000", 0) == "#000000"
    assert mixed("#000000", "#ff8000", 1) == "#ff8000"
    assert mixed("#000000", "#ff8000", 0.5) == "#804000"
    for mode in ("light", "dark"):
        assert surprise_color(0, 13, mode) == palette(mode).paper
        assert surprise_color(13, 13, mode) == surprise_color(40, 13, mode) != palette(mode).paper
        half = mixed(palette(mode).paper, surprise_color(13, 13, mode), 0.5)
        assert surprise_color(6.5, 13, mode) == half


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_curve_draws_the_table(mode):
    logits = torch.randn(5000, generator=torch.Generator().manual_seed(0)) * 3
    table = curve(logits, candidates(logits, sampling=Sampling(0.7, 40)))
    tokens = [f"<t{i}>" for i in table["id"]]
    fig = vocabulary_curve(table, tokens, 40, mode, came=(77, "·cat"))
    model, chosen = fig.data
    assert np.array_equal(model.x, table["rank"]) and np.array_equal(
        model.y, table["model_probability"]
    )
    assert chosen.x.max() <= 40 and (chosen.y > 0).all()
    assert model.hovertext[0].startswith(
        f"`&lt;t{table['id'][0]}&gt;` is rank 1: the model gives it 0."
    )
    notes = [note.text for note in fig.layout.annotations]
    assert notes == ["rank 41 on: cut", "·cat came: rank 77"]
    assert fig.layout.annotations[1].x == pytest.approx(math.log10(77))
    cut, came = fig.layout.shapes
    assert 40 < cut.x0 < 41 and cut.x1 > 5000 and came.x0 == came.x1 == 77
    whole = vocabulary_curve(table, tokens, 5000, mode).layout
    assert not whole.annotations and not whole.shapes  # without filters nothing is marked as cut


def test_the_unchanged_line_stands_in_the_place_of_the_one_without_settings():
    logits = torch.randn(500, generator=torch.Generator().manual_seed(0)) * 3
    tables = [
        curve(x, candidates(x, sampling=Sampling(0.7, 40))) for x in (logits, logits[:400] / 2)
    ]
    names = [[f"<t{i}>" for i in table["id"]] for table in tables]
    fig = vocabulary_curve(tables[0], names[0], 40, "light", unchanged=(tables[1], names[1]))
    ghost, changed = fig.data
    kept = tables[1][tables[1]["probability"] > 0]
    assert np.array_equal(ghost.x, kept["rank"]) and np.array_equal(ghost.y, kept["probability"])
    assert (ghost.line.dash, ghost.name, changed.name) == ("dash", "unchanged", "changed")
    assert changed.x.max() <= 40 and fig.layout.showlegend
    assert ghost.hovertext[0].startswith(
        f"`&lt;t{tables[1]['id'][0]}&gt;` is rank 1: unchanged, it has 0."
    )


TABLE = pd.DataFrame(
    {
        "probability": [math.nan, 0.117, 0.99, 1e-6],
        "bits": [math.nan, 3.095, 0.0147, 19.93],
        "rank": pd.array([None, 3, 1, 4321], dtype="Int64"),
    }
)
TABLE["nats"] = TABLE["bits"] * math.log(2)
SHOWN = ["The", "·cat", "·sat", "·zz"]


def test_sentences_numbers_and_colours():
    chips, legend = surprise_rows(TABLE, SHOWN, 8192, "light")
    assert chips[3]["sentence"] == (
        "came with 13.8 nats of surprise: the model gave it 1.00 × 10⁻⁶, rank 4,321."
    )
    assert [chip["text"] for chip in chips] == ["–", "2.1", "0.0", "13.8"]
    assert (chips[0]["bits"], chips[0]["rank"], chips[0]["color"]) == (
        None,
        None,
        palette("light").masked,
    )
    assert chips[3]["color"] == legend["to"] != legend["from"]
    assert legend["high"] == "9.0 nats or more: a blind guess"


def test_the_unchanged_surprise_is_the_ghost_of_a_chip():
    unchanged = TABLE.assign(bits=TABLE["bits"] / 2, nats=TABLE["nats"] / 2)
    chips, legend = surprise_rows(TABLE, SHOWN, 8192, "light", unchanged=unchanged)
    plain, _ = surprise_rows(unchanged, SHOWN, 8192, "light")
    assert "ghost" not in chips[0] and "ghost" in legend
    for chip, was, bits in zip(chips[1:], plain[1:], TABLE["bits"][1:], strict=True):
        assert chip["bits"] == bits
        assert chip["ghost"] == {"bits": was["bits"], "text": was["text"], "color": was["color"]}
        assert chip["sentence"].endswith(f"Unchanged, it {was['sentence']}")


# ---- two sides in one figure: what is drawn is what was given ----

TOKENS = ["·mill", "<b>", "·x"]
LEFT = np.array([0.9, 0.05, np.nan])
RIGHT = np.array([0.2, np.nan, 0.7])


def drawn(*sides):
    return back_to_back(TOKENS, LEFT, RIGHT, sides, "light")


def test_bars_stand_back_to_back_on_one_scale():
    fig = drawn("left & co", "right")
    left, right = fig.data
    assert left.x.tolist() == [0.9, 0.05, 0.0] and right.x.tolist() == [0.2, 0.0, 0.7]
    assert right.text[1] == left.text[2] == "not in its vocabulary" and left.text[0] == "0.900"
    texts = [note.text for note in fig.layout.annotations]
    assert texts == ["<b>left &amp; co</b>", "<b>right</b>", "·mill", "&lt;b&gt;", "·x"]
    assert left.marker.color != right.marker.color


def test_a_long_name_of_a_side_is_wrapped_and_has_room():
    """Of some forty letters the chart's edge would cut off the end."""
    changes = ", ".join(f"block {b} head {b} off" for b in range(20))
    plain = drawn("mini", "gpt2").layout
    for name, lines in (("the other text (model changed)", 2), (changes, 3), ("a" * 33, 2)):
        layout = drawn("mini", name).layout
        right = layout.annotations[1].text.removeprefix("<b>").removesuffix("</b>").split("<br>")
        assert len(right) == lines and max(map(len, right)) <= 20
        assert layout.margin.t >= 30 + 16 * (lines - 1)
        assert right[-1].endswith("…") == (name == changes)
        assert layout.height - layout.margin.t == plain.height - plain.margin.t
