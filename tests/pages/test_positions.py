"""The Positions page through AppTest: the papers' rows, and a pass that really has other positions."""

import re

import numpy as np
import pytest

from gptviz.engine.edit_values import shuffled
from gptviz.lessons import positions as lesson
from tests.specs import charts, given, in_numbers, number, paragraph, prose, table

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"


def test_only_a_rotation_keeps_the_score(run_page, mini):
    at = run_page("positions", text=TEXT, pos_distance=2, token=9, head=4)
    lines = {trace["name"]: trace["y"] for trace in charts(at)[2]["data"]}
    ids = mini.encode(TEXT)
    block = mini.model.trf_blocks[0]
    token = mini.model.tok_emb.weight
    learned = lesson.scores_along(
        block, token[ids[9]], token[ids[8]], mini.model.pos_emb.weight, 4, 2, 256
    )
    assert np.allclose(lines["Learned"], learned, atol=1e-5)
    assert np.ptp(lines["RoPE"]) < 1e-6 < abs(lines["RoPE"][0] - lines["None"][0])
    found = {row[0]: [number(cell) for cell in row[1:]] for row in table(at, "schemes")}
    assert found["Learned"][3] == pytest.approx(np.ptp(learned), rel=5e-3)


def test_each_hand_is_turned_as_the_rotation_turns_its_pair(run_page, mini):
    """After 9 positions a hand points where RoPE's row of position 9 does; who chose 9 sees it stand still."""
    at = run_page("positions", text=TEXT, pos_distance=2, pos_at=9)
    dials = given(at, "position_dials")
    row = lesson.rotations(10, mini.config.emb_dim // mini.config.n_heads)[9]
    for pair in dials["pairs"]:
        angle = 9 * pair["speed"]
        tip = row[2 * pair["pair"] : 2 * pair["pair"] + 2].tolist()
        assert [np.cos(angle), np.sin(angle)] == pytest.approx(tip)
        assert 2 * np.pi <= mini.config.context_length * pair["speed"]  # its hands are seen to turn
    assert (dials["at"], dials["distance"], dials["moves"]) == (9, 2, False)
    assert given(run_page("positions", text=TEXT), "position_dials")["moves"]


def of_passes(at, mini, *edits):
    """What each column of the predictions is to be, and what token 5 costs in each of these passes."""
    ids = mini.encode(TEXT)
    passes = [mini.trace(ids, keep=(), edits=some) for some in edits]
    for name, *cells in table(at, "predictions"):
        (token,) = mini.encode(name.replace("·", " "))
        expected = [trace.logits(-1).double().softmax(-1)[token].item() for trace in passes]
        assert [number(cell) for cell in cells[: len(passes)]] == pytest.approx(expected, rel=5e-3)
    return [-trace.logits(4).double().log_softmax(-1)[ids[5]].item() for trace in passes]


@pytest.mark.parametrize(("what", "seed"), [("shuffle", 7), ("mean", 1), ("zero", 1)])
def test_what_the_model_says_with_other_positions(run_page, mini, what, seed):
    at = run_page("positions", text=TEXT, pos_what=what, pos_seed=seed, block=0)
    edit = f"pos_emb={what}{seed}" if what == "shuffle" else f"pos_emb={what}"
    _, cost = of_passes(at, mini, [], [edit])
    losses = in_numbers(at, "position_losses")
    assert losses["loss, changed"][5] == pytest.approx(cost, rel=1e-4) and set(losses["edit"]) == {
        edit
    }


@pytest.mark.parametrize("edits", ["", "z.2.1=zero"])
def test_what_goes_elsewhere_and_what_the_previous_token_gets_are_of_the_same_rows(
    run_page, mini, edits
):
    """Each by its own definition, over positions 1 on: no share can fall by more than goes elsewhere."""
    at = run_page("positions", text=TEXT, block=4, head=3, **({"edits": edits} if edits else {}))
    lm = mini.edited(edits) if edits else mini
    own, other = (
        lm.trace(TEXT, edits=changes)["attn", 4][3].numpy().astype(float)
        for changes in ([], ["pos_emb=shuffle1"])
    )
    rows = range(1, len(own))
    moved = np.mean([np.maximum(own[q] - other[q], 0).sum() for q in rows])
    shares = [np.mean([weights[q, q - 1] for q in rows]) for weights in (other, own)]
    said = paragraph(at, "to other tokens, on average")
    numbers = re.search(r"\*\*(\d+) %\*\*.*?\*\*(\d+) % → (\d+) %\*\*", said)
    assert [int(n) for n in numbers.groups()] == [round(100 * x) for x in (moved, *shares[::-1])]
    assert moved >= shares[1] - shares[0] > 0.1


def test_the_apps_changes_are_in_both_passes(run_page, mini):
    at = run_page("positions", text=TEXT, edits="z.4.3=zero", pos_what="zero", block=4, head=3)
    was, _, now = of_passes(at, mini, [], ["z.4.3=zero"], ["z.4.3=zero", "pos_emb=zero"])
    at.button(key="pos_keep").click().run()
    assert at.query_params["edits"] == "z.4.3=zero,pos_emb=zero"
    assert "Your changes already touch the positions" in prose(at)
    assert "prediction is the same as without" in prose(at)
    losses = in_numbers(at, "position_losses").loc[5, ["unchanged loss", "loss", "loss, changed"]]
    assert losses.tolist() == pytest.approx([was, now, now], rel=1e-4)


def test_an_order_that_moves_no_row_says_so(run_page):
    seeds = {bool(shuffled(2, seed)[0]): seed for seed in range(9)}  # whether it moves the two
    for moves, seed in seeds.items():
        said = prose(run_page("positions", text="one two", pos_seed=seed))
        assert ("every position keeps its own vector" in said) == (not moves)
        assert "The prediction is the same" not in said


def test_an_untrained_models_rows_are_not_learned_yet(run_page):
    said = prose(run_page("positions", model="mini-untrained"))
    assert "to be learned in training" in said and "was trained with" not in said
