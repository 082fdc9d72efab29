"""Addresses of places in the one picture: what they name, and what their words mean on a text."""

import pytest

from gptviz.analysis.places import Place, parse, possible, resolve
from gptviz.engine.config import GPTConfig
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.analysis.test_machine import AT
from tests.analysis.written_out import by_hand, weights_of


@pytest.mark.parametrize("position", [15, 6])
def test_words_name_what_is_largest_at_the_token(mini, position):
    t = mini.trace(UNSAID_TEXT)
    found = by_hand(mini, tuple(mini.encode(UNSAID_TEXT)), None)
    first = found["blocks"][0]
    last = found["blocks"][-1]
    w = weights_of(mini.model)
    wrote = last["wrote"][:, position].norm(dim=-1)
    columns = w["trf_blocks.0.ff.layers.2.weight"].norm(dim=0)  # (U,)
    for at, expected in (
        ("block.last.head.strongest", f"block.5.head.{wrote.argmax()}"),
        (
            "block.0.head.1.cell.here.strongest",
            f".cell.{position}.{first['weights'][1, position].argmax()}",
        ),
        (
            "block.0.unit.strongest",
            f"block.0.unit.{(first['after'][position].abs() * columns).argmax()}",
        ),
        ("logit.best", f"logit.{found['logits'][position].argmax()}"),
    ):
        assert resolve(mini, t, at, position).at.endswith(expected)


def test_an_address_leads_to_the_place_that_it_names_or_to_one_that_it_lies_in():
    config = GPTConfig(vocab_size=50, context_length=9, emb_dim=8, n_heads=2, n_layers=3)
    for at in (
        *AT,
        "block.3",
        "block.1.head.2",
        "block.0.head.1.cell.8.1",
        "logit.50",
        "block.1.unit.32",
    ):
        place = parse(at)
        assert place.at == at
        there = possible(place, config, 5)
        assert there in place.path or "last" in at
        assert there.kind != "machine" or at in ("", "block.3")
    for at in (
        "nope",
        "block",
        "block.x",
        "block.-1",
        "block.1 ",
        "block.1.head.1.cell.1",
        "logit.12345678",
    ):
        assert parse(at) == Place()
    assert [one.at for one in parse("block.2.head.1.cell.3.0").path] == [
        *("", "block.2", "block.2.attention", "block.2.head.1", "block.2.head.1.cell.3.0")
    ]
