"""The chips' sentences and colours are those of the table."""

import math

import pandas as pd

from gptviz.figures.surprise import surprise_rows
from gptviz.figures.theme import palette

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
        "came with 19.9 bits of surprise: the model gave it 1.00 × 10⁻⁶, rank 4,321."
    )
    assert [chip["bits_text"] for chip in chips] == ["–", "3.1", "0.0", "19.9"]
    assert (chips[0]["bits"], chips[0]["rank"], chips[0]["color"]) == (None, None, palette("light").masked)
    assert chips[3]["color"] == legend["to"] != legend["from"]
    assert legend["high"] == "13.0 bits or more: a blind guess"


def test_chips_in_nats_have_the_same_colours():
    bits, _ = surprise_rows(TABLE, SHOWN, 8192, "light")
    nats, legend = surprise_rows(TABLE, SHOWN, 8192, "light", "nats")
    assert [chip["bits_text"] for chip in nats] == ["–", "2.1", "0.0", "13.8"]
    assert [chip["color"] for chip in nats] == [chip["color"] for chip in bits]
    assert nats[1]["sentence"] == "came with 2.1 nats of surprise: the model gave it 0.117, rank 3."
    assert legend["high"] == "9.0 nats or more: a blind guess"


def test_the_unchanged_surprise_is_the_ghost_of_a_chip():
    unchanged = TABLE.assign(bits=TABLE["bits"] / 2, nats=TABLE["nats"] / 2)
    chips, legend = surprise_rows(TABLE, SHOWN, 8192, "light", unchanged=unchanged)
    plain, _ = surprise_rows(unchanged, SHOWN, 8192, "light")
    assert "ghost" not in chips[0] and "ghost" in legend
    for chip, was, bits in zip(chips[1:], plain[1:], TABLE["bits"][1:], strict=True):
        assert chip["bits"] == bits
        assert chip["ghost"] == {"bits": was["bits"], "text": was["bits_text"], "color": was["color"]}
        assert chip["sentence"].endswith(f"Unchanged, it {was['sentence']}")
