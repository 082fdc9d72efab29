"""Patches by role against a plain forward with one torch hook, of sentences of different lengths."""

import numpy as np
import pytest
import torch

from gptviz.analysis.activation_patching import patching
from gptviz.analysis.patches import POSITION_SITES
from gptviz.analysis.prompts import indirect_objects
from gptviz.analysis.role_patches import ROLES, role_patching, roles_of
from tests.analysis.written_out import Told

PAIR = (" Mary", " Tom")
# the clean text, the corrupt one, and where its roles are: counted by hand
TEXTS = [
    (
        "When Mary and Tom left, Tom spoke to",
        "When Mary and Tom left, Mary spoke to",
        {"IO": 1, "S1": 3, "S1+1": 4, "S2": 6, "END": 8},
    ),
    (
        "Then Tom met Mary at the old house, and Tom gave a key to",
        "Then Tom met Mary at the old house, and Mary gave a key to",
        {"IO": 3, "S1": 1, "S1+1": 2, "S2": 10, "END": 14},
    ),
    (
        "Tom met Mary, and Tom spoke to",  # no blank stands before the first name: it is another token
        "Mary met Mary, and Tom spoke to",
        None,
    ),
]


def plain(lm, ids, answer, instead, block=None, position=None, value=None):
    """The difference of logits, and each block's input; with one row of one block's input replaced by a hook."""
    inputs = []

    def put(number, _, args):
        (x, *rest) = args
        if number == block:
            x = x.clone()
            x[:, position] = value
        inputs.append(x[0].clone())
        return (x, *rest)

    blocks = lm.model.trf_blocks
    hooks = [
        one.register_forward_pre_hook(lambda *given, n=n: put(n, *given))
        for n, one in enumerate(blocks)
    ]
    try:
        with torch.no_grad():
            logits = lm.model(torch.tensor([ids]))[0, -1].double()
    finally:
        for hook in hooks:
            hook.remove()
    return float(logits[answer] - logits[instead]), inputs


@pytest.mark.parametrize("direction", ["noising", "denoising"])
def test_the_map_is_that_of_a_plain_hook(mini, direction):
    answer, instead = (mini.encode(name)[0] for name in PAIR)
    expected = []
    for clean, corrupt, roles in TEXTS[:2]:
        assert roles_of(mini, clean, PAIR) == roles and [*roles] == [*ROLES]
        ids = [mini.encode(text) for text in (clean, corrupt)]
        if direction == "denoising":
            ids.reverse()
        base, source = ids
        before, _ = plain(mini, base, answer, instead)
        after, inputs = plain(mini, source, answer, instead)
        logits = [
            plain(mini, base, answer, instead, block, position, inputs[block][position])[0]
            for block in range(mini.config.n_layers)
            for position in roles.values()
        ]
        table = role_patching(mini, clean, corrupt, PAIR, direction=direction)
        assert np.allclose(table["logit"], logits, atol=1e-4)
        assert table["position"].tolist() == [*roles.values()] * mini.config.n_layers
        assert table["role"].tolist() == [*ROLES] * mini.config.n_layers
        clean_end, corrupt_end = (before, after) if direction == "noising" else (after, before)
        expected.append((np.array(logits), before, clean_end - corrupt_end))
    told = Told()
    clean, corrupt = ([text[i] for text in TEXTS[:2]] for i in (0, 1))
    table = role_patching(mini, clean, corrupt, PAIR, direction=direction, progress=told)
    changes = np.stack([logits - before for logits, before, _ in expected])
    assert np.allclose(table["change"], changes.mean(0), atol=1e-4)
    assert np.allclose(table["change_se"], changes.std(0, ddof=1) / 2**0.5, atol=1e-4)
    distance = np.mean([distance for _, _, distance in expected])
    assert np.allclose(table["effect"], changes.mean(0) / distance, atol=1e-4)
    assert (table["n"] == 2).all() and told.came_to(2 * mini.config.n_layers * len(ROLES))
    assert table["change"].abs().max() > 1 and "position" not in table


@pytest.mark.parametrize("site", POSITION_SITES)
def test_of_one_pair_the_rows_are_those_of_patching(mini, site):
    for prompt in indirect_objects(mini, 2):
        table = role_patching(mini, prompt.text, prompt.other, prompt.target, site, "noising")
        every = patching(
            mini, prompt.text, prompt.other, prompt.target, sites=site, direction="noising"
        ).set_index(["block", "position"])
        for row in table.to_dict("records"):
            same = every.loc[row["block"], row["position"]]
            for name in ("logit", "metric", "effect", "change"):
                assert row[name] == pytest.approx(same[name], abs=1e-5)


def test_the_bench_asks_for_it_over_its_texts(mini):
    prompts = indirect_objects(mini, 3)
    words = map(list, zip(*(prompt.target for prompt in prompts), strict=True))
    bench = mini.which_part([prompt.text for prompt in prompts], *words)
    table = role_patching(
        mini,
        [prompt.text for prompt in prompts],
        [prompt.other for prompt in prompts],
        [prompt.target for prompt in prompts],
        direction="noising",
    )
    assert bench.role_patching(direction="noising").equals(table)


@pytest.mark.parametrize(
    ("texts", "options", "why"),
    [
        (TEXTS[2][:2], {}, "the text has ·Mary 1 times and ·Tom 1 times"),
        (
            (TEXTS[0][1], TEXTS[0][0]),
            {},
            "the text has ·Mary 2 times and ·Tom 1 times; two names need",
        ),
        (TEXTS[0][:2], {"target": " Mary"}, "target is ' Mary'; give a pair"),
        (
            TEXTS[0][:2],
            {"target": [PAIR]},
            "a list is for a list of texts: give the pair of both names",
        ),
        (TEXTS[0][:2], {"site": "z"}, "site is 'z'; it must be one of resid_pre"),
        (TEXTS[0][:2], {"direction": "back"}, "direction is 'back'"),
        (([TEXTS[0][0]], TEXTS[0][1]), {}, "clean is a list of texts"),
        (
            ([TEXTS[0][0], "The man"], [TEXTS[0][1], "The cat"]),
            {},
            "text 1: the text has ·Mary 0 times",
        ),
    ],
)
def test_what_has_no_roles_is_refused_in_a_sentence(mini, texts, options, why):
    with pytest.raises(ValueError, match=why):
        role_patching(mini, *texts, **({"target": PAIR} | options))
