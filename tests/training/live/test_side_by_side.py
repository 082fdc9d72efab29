"""The five switches trained: the same batches for all, the watched run for one, and what is made of their ends."""

from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pytest
import torch

from gptviz.training.live import LiveConfig, begin, train
from gptviz.training.live.side_by_side import (
    BASE,
    SEEDS,
    USUAL,
    VARIANTS,
    Learnt,
    agrees,
    by_luck,
    compare,
    curves,
    ends,
    learn,
    learn_aside,
    sizes,
    usual,
)
from gptviz.training.live.switched import GPT2, LLAMA, NAMES, SwitchedModel
from gptviz.training.live.tasks import task_for

SMALL = LiveConfig(
    n_heads=2, emb_dim=16, context_length=16, batch_size=4, steps=9, every=3, warmup=3, seed=7
)


def test_gpt_2_is_the_watched_run_of_this_page(tmp_path):
    run = train(begin(tmp_path / "run", SMALL).folder)
    learnt = learn(BASE, SMALL)
    assert learnt.steps.tolist() == run.curve["step"].tolist() == [3, 6, 9]
    assert learnt.validation.tolist() == run.curve["validation"].tolist()
    assert learnt.train.tolist() == run.curve["train"].tolist()


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_trained_twice_gives_the_same_curve_and_another_seed_another(variant, mini):
    steps = []
    first = learn(variant, SMALL)
    again = learn_aside(mini, variant, SMALL, progress=lambda *step: steps.append(step))
    assert first.validation.tolist() == again.validation.tolist()
    assert first.train.tolist() == again.train.tolist()
    assert steps == [(n, 9) for n in range(1, 10)]
    assert (learn(variant, replace(SMALL, seed=8)).validation != first.validation).all()
    assert first.final == first.validation[-1] and first.seed == 7


@pytest.mark.parametrize("task", USUAL)
def test_all_variants_see_the_same_batches_in_the_same_order(task, monkeypatch):
    seen = []
    forward = SwitchedModel.forward

    def watched(self, ids):
        seen[-1].append(ids.clone())
        return forward(self, ids)

    monkeypatch.setattr(SwitchedModel, "forward", watched)
    config = replace(SMALL, task=task, steps=2, every=2)
    for variant in VARIANTS:
        seen.append([])
        learn(variant, config)
    expected = [task_for(config).batches[step][0] for step in range(2)]
    for ids in seen:
        assert len(ids) == 4  # two steps, two batches of the held-out windows
        assert all(torch.equal(one, other) for one, other in zip(ids, seen[0], strict=True))
        assert all(torch.equal(one, other) for one, other in zip(ids, expected, strict=False))


def test_the_variants_are_none_each_alone_and_all():
    assert next(iter(VARIANTS.values())) == GPT2 and [*VARIANTS.values()][-1] == LLAMA
    assert [switches.on for switches in VARIANTS.values()][1:-1] == [(name,) for name in NAMES]
    for task in USUAL:
        assert usual(task, 5) == replace(USUAL[task], seed=5) and usual(task).seed == SEEDS[0]


def test_sizes_are_those_of_the_models():
    found = sizes(usual("chapter")).set_index("variant")
    task = task_for(usual("chapter"))
    gpt = usual("chapter").gpt_config(task.vocab_size)
    for variant, switches in VARIANTS.items():
        model = SwitchedModel(gpt, switches)
        assert found.loc[variant, "parameters"] == sum(w.numel() for w in model.parameters())
        keys = model.trf_blocks[0].att.W_key.out_features
        assert (
            found.loc[variant, "cache"] == 2 * 2 * 64 * keys * 4
        )  # blocks, keys and values, tokens
    assert found.loc["Llama: all five", "cache"] * 2 == found.loc[BASE, "cache"] == 65_536


def test_the_table_is_the_curves_last_points():
    changes = asdict(replace(SMALL, steps=2, every=2))
    points = curves("repeats", (7, 9), changes)
    assert len(points) == 2 * len(VARIANTS) and [*points["seed"].unique()] == [7, 9]
    compared = compare("repeats", (7, 9), changes).set_index("variant")
    for variant in VARIANTS:
        mine, base = (
            points[points["variant"] == name].set_index("seed")["validation"]
            for name in (variant, BASE)
        )
        row = compared.loc[variant]
        assert row["loss"] == pytest.approx((mine[7] + mine[9]) / 2)
        assert [row["low"], row["high"]] == sorted(mine)
        assert [row["change_low"], row["change_high"]] == sorted(mine - base)
        assert row["change"] == pytest.approx(np.mean(mine - base))


def learnt(variant, seed, *validation):
    steps = np.arange(1, len(validation) + 1)
    return Learnt(variant, seed, steps, np.array(validation), np.array(validation))


def test_seeds_agree_only_where_all_of_them_do():
    """By hand: two seeds that differ more between themselves than what a switch changes."""
    runs = [learnt(BASE, 1, 9, 2.0), learnt(BASE, 2, 9, 3.0)]
    runs += [learnt("RoPE", 1, 9, 1.9), learnt("RoPE", 2, 9, 2.7)]
    runs += [learnt("SwiGLU", 1, 9, 1.9), learnt("SwiGLU", 2, 9, 3.1)]
    runs += [learnt("no biases", 1, 9, 2.1), learnt("no biases", 2, 9, 3.1)]
    found = ends(runs).set_index("variant")
    assert found.loc["RoPE"].tolist() == pytest.approx([2.3, 1.9, 2.7, -0.2, -0.3, -0.1])
    assert [agrees(row) for _, row in found.iterrows()] == [0, -1, 0, 1]
    tiny = [learnt(BASE, 1, 2.0), learnt("RoPE", 1, 2.0004)]
    assert [agrees(row) for _, row in ends(tiny).iterrows()] == [0, 0]


@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
def test_luck_is_counted(seeds):
    """Of all ways in which coins can fall, the share in which all fall alike."""
    ways = [*product((-1, 1), repeat=seeds)]
    assert by_luck(seeds) == sum(len({*way}) == 1 for way in ways) / len(ways)
    with pytest.raises(ValueError, match="seeds is 0"):
        by_luck(0)


def test_what_cannot_be_compared_is_a_sentence():
    with pytest.raises(ValueError, match="Lama"):
        learn("Lama", SMALL)
    with pytest.raises(ValueError, match="own"):
        usual("own")
    with pytest.raises(ValueError, match="activation is 'relu'; the five switches need a whole"):
        learn(BASE, replace(SMALL, activation="relu"))
    # each weight times -9 at each step
    growing = replace(SMALL, learning_rate=10.0, weight_decay=1.0, steps=60)
    with pytest.raises(
        ValueError, match="no number any more after 60 steps: a learning rate of 10"
    ):
        learn(BASE, growing)
