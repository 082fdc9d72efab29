"""The page Positions of Llamas, Qwen2s and Qwen3s: a plain RoPE, and the scores of the model's own modules."""

import re

import numpy as np
import pytest
import torch

from gptviz.digits import significant
from tests.llama_models import FAMILIES, TEXT, both
from tests.llamas import sites_of
from tests.pages.test_any_model import use
from tests.specs import charts, in_numbers, left_by_program, prose

BLOCK = 1
HEAD = 4
GROUP = 1  # of three heads each
QUERY = 9
KEY = 4
PAIR = 2
CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture(params=FAMILIES)
def model(request, monkeypatch):
    """Our model, in use, and every site of the text by hooks."""
    lm, theirs = both(request.param)
    use(lm, request.param, monkeypatch)
    monkeypatch.setattr("gptviz.load", lambda *_, **__: lm)
    return lm, theirs, sites_of(lm.model, lm.encode(TEXT))


@pytest.fixture
def page(run_page, model):
    return run_page(
        "positions", text=TEXT, token=QUERY, block=BLOCK, head=HEAD, pos_key=KEY, pos_pair=PAIR
    )


def turned(x, position, base):
    """A vector (d,) at a position: RoPE as in the paper, number i with number i + d/2."""
    half = len(x) // 2
    angles = position * base ** (-torch.arange(half).double() / half)
    first = x[:half].double()
    second = x[half:].double()
    cos = angles.cos()
    sin = angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin])


def unturned(lm, theirs, sites):
    """The query and the key before they are turned, (d,) each: with Qwen3's norms, which come first."""
    d = lm.config.head_dim
    q = sites["q", BLOCK].unflatten(-1, (-1, d))[QUERY, HEAD]
    k = sites["k", BLOCK].unflatten(-1, (-1, d))[KEY, GROUP]
    attention = theirs.model.layers[BLOCK].self_attn
    if lm.config.to_dict()["qk_norm"]:
        with torch.no_grad():
            q, k = attention.q_norm(q), attention.k_norm(k)
    return q, k


def test_the_curve_is_the_score_of_moved_tokens(page, model):
    lm, theirs, sites = model
    q, k = unturned(lm, theirs, sites)
    base = lm.config.to_dict()["rope_base"]
    d = lm.config.head_dim
    (line,) = [one for one in charts(page)[2]["data"] if one.get("name") == "score"]
    shown = np.asarray(line["y"], float)
    # both are moved on as well: nothing but the distance counts
    moved = [
        float(turned(q, 70 + apart, base) @ turned(k, 70, base)) / d**0.5
        for apart in range(len(shown))
    ]
    np.testing.assert_allclose(shown, moved, **CLOSE)
    own = sites["q_rot", BLOCK][HEAD, QUERY] @ sites["k_rot", BLOCK][GROUP, KEY] / d**0.5
    assert shown[QUERY - KEY] == pytest.approx(float(own), abs=1e-4)
    said = re.sub("<.*?>", "", prose(page))
    assert f"the score is **{significant(float(shown[QUERY - KEY]), 3)}**" in said
    assert f"largest at a distance of **{int(np.argmax(moved))}**" in said


def test_the_hands_are_the_pair_before_and_after_turning(page, model):
    lm, theirs, sites = model
    half = lm.config.head_dim // 2
    after = sites["q_rot", BLOCK][HEAD, QUERY], sites["k_rot", BLOCK][GROUP, KEY]
    hands = charts(page)[0]["data"]
    for line, vector in zip(hands, (*unturned(lm, theirs, sites), *after), strict=True):
        tip = [line["x"][1], line["y"][1]]
        assert tip == pytest.approx([float(vector[PAIR]), float(vector[PAIR + half])], abs=1e-4)


def test_the_parts_of_all_pairs_are_products_and_sum_to_the_score(page, model):
    lm, theirs, sites = model
    half = lm.config.head_dim // 2
    root = lm.config.head_dim**0.5
    plain = unturned(lm, theirs, sites)
    after = sites["q_rot", BLOCK][HEAD, QUERY], sites["k_rot", BLOCK][GROUP, KEY]
    lines = {line["name"]: line["y"] for line in charts(page)[1]["data"] if "name" in line}
    for name, (q, k) in {"before turning": plain, "turned": after}.items():
        products = (q * k).detach()
        parts = (products[:half] + products[half:]) / root
        np.testing.assert_allclose(lines[name], parts, **CLOSE)
    table = in_numbers(page, "position_dials")
    own = float(sites["q_rot", BLOCK][HEAD, QUERY] @ sites["k_rot", BLOCK][GROUP, KEY])
    assert table["turned"].sum() == pytest.approx(own, abs=1e-4)


def test_the_program_gives_the_curve_and_the_norms_are_said(page, model):
    lm, _, _ = model
    said = re.sub("<.*?>", "", prose(page))
    normalised = "This model normalises queries and keys before it turns them." in said
    assert normalised == lm.config.to_dict()["qk_norm"]
    assert "Head 4 is in **group 1**" in said and "pos_emb" not in said
    (line,) = [one for one in charts(page)[2]["data"] if one.get("name") == "score"]
    found = left_by_program(page, "in_code")["picture"]
    np.testing.assert_allclose(found, line["y"], **CLOSE)


def test_a_changed_key_stands_beside_what_it_was(run_page, model):
    _, _, sites = model
    choice = {"token": QUERY, "block": BLOCK, "head": HEAD, "pos_key": KEY}
    at = run_page("positions", text=TEXT, **choice, edits=f"k_rot.{BLOCK}.{GROUP}=zero")
    own = sites["q_rot", BLOCK][HEAD, QUERY] @ sites["k_rot", BLOCK][GROUP, KEY]
    was = significant(float(own) / sites["q_rot", BLOCK].shape[-1] ** 0.5, 3)
    assert f"the score is **{was} → 0**" in re.sub("<.*?>", "", prose(at))


@pytest.mark.parametrize("position", [0, 3])
def test_nobody_has_chosen_anything(run_page, model, position):
    _, _, sites = model
    at = run_page(
        "positions", text=TEXT, token=position, block=BLOCK, head=HEAD, pos_key=position + 1
    )
    key = int(sites["attn", BLOCK][HEAD, position].argmax())  # a later token is no key
    assert f"the key, at position {key}, " in re.sub("<.*?>", "", prose(at))
