"""What a run may be, how many parameters it has, and what each task gives it to learn."""

import math
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
from torch import nn

from gptviz.training.live import LIMITS, TASKS, LiveConfig, task_for
from gptviz.training.live.config import V2, V3
from gptviz.training.live.parts import make_model
from gptviz.training.live.tasks import CHAPTER, VALIDATION_BATCHES
from gptviz.training.loop import validation_windows
from tests.training.live.conftest import tiny


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task": "chess"}, "'chess'; it must be one of repeats, chapter, own"),
        ({"n_layers": 5}, "n_layers is 5; it must be a whole number from 1 to 4"),
        ({"steps": 0}, "steps is 0; it must be a whole number from 1 to 5,000"),
        ({"learning_rate": 11.0}, "must be a number from 1e-06 to 10"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"batch_size": 2.5}, "must be a whole number"),
        ({"seed": True}, "seed is True"),
        ({"layer_norm": 1}, "layer_norm is 1; it must be True or False"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be a number from 0.0 to 0.9"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1; it must be a number from 0.0 to 1.0"),
        ({"activation": "tanh"}, "'tanh'; it must be one of gelu, relu"),
        ({"emb_dim": 10, "n_heads": 4}, "cannot be divided among 4 heads"),
        ({"muted": ((2, 0),)}, "there is no block 2"),
    ],
)
def test_what_no_run_can_be_is_a_sentence(changes, said):
    with pytest.raises(ValueError, match=said):
        LiveConfig(**changes)


def test_it_survives_its_own_dict():
    config = tiny(task="own", muted=((1, 1), (0, 0)), shortcut=False)
    assert config.muted == ((0, 0), (1, 1))
    assert LiveConfig.from_dict(asdict(config)) == config
    with pytest.raises(ValueError, match="has no depth"):
        LiveConfig.from_dict({"depth": 3})


@pytest.mark.parametrize("low_or_high", [0, 1])
def test_limits_are_allowed(low_or_high):
    sizes = ("emb_dim", "n_heads", "n_layers", "context_length")
    config = LiveConfig(**{name: LIMITS[name][low_or_high] for name in sizes})
    assert all(getattr(config, name) == LIMITS[name][low_or_high] for name in sizes)


@pytest.mark.parametrize(
    "off", [(), ("positions",), ("attention",), ("feed_forward",), ("layer_norm",), ("shortcut",)]
)
def test_parameters_are_those_that_learn(off):
    config = tiny(**dict.fromkeys(off, False))
    model = make_model(config, config.gpt_config(64))
    of_block = sum(p.numel() for p in model.trf_blocks[0].ff.parameters())
    of_attention = sum(p.numel() for p in model.trf_blocks[0].att.parameters())
    absent = {"positions": 16 * 8, "feed_forward": 2 * of_block, "attention": 2 * of_attention}
    expected = sum(p.numel() for p in model.parameters())
    assert config.parameters(64) == expected - absent.get("".join(off), 0)
    assert (config.why_not_elsewhere is None) == (not off or off[0] in absent)


def test_the_notebooks_models_have_its_parameters_but_for_the_bias_of_their_last_layer():
    """LanguageModelv2 and LanguageModelv3 of the seeds, for V characters: lm_head has a bias there."""
    V = 65
    D = 32
    context = 16
    tables = V * D + context * D
    lm_head = nn.Linear(D, V, bias=False)
    assert V2.parameters(V) == tables + lm_head.weight.numel()
    head = 3 * D * D + D * D + D  # query, key, value; out_proj, which theirs does not have
    assert V3.parameters(V) == tables + head + lm_head.weight.numel()


def test_what_a_file_cannot_say_is_said():
    relu = tiny(activation="relu")
    assert relu.why_not_elsewhere.startswith("This model has ReLU where a GPTModel has GELU. ")
    # nothing is between them
    assert tiny(activation="relu", feed_forward=False).why_not_elsewhere is None
    assert tiny(dropout=0.5, weight_decay=1.0).why_not_elsewhere is None
    both = tiny(layer_norm=False, shortcut=False).why_not_elsewhere
    assert both.startswith("This model has no LayerNorm and no shortcuts. ")


def test_the_recipe_and_the_model_are_told():
    config = tiny(dropout=0.3, weight_decay=0.5)
    assert config.recipe().weight_decay == 0.5 and config.gpt_config(64).drop_rate == 0.3
    assert tiny().recipe().weight_decay == 0.01 and tiny().gpt_config(64).drop_rate == 0.0


def test_random_tokens_are_validated_and_probed_alike_whatever_the_seed():
    one = task_for(tiny(seed=1))
    other = task_for(tiny(seed=2))
    assert (
        one.validation.token_ids == other.validation.token_ids
    ).all() and one.probes == other.probes
    assert len(one.validation) == VALIDATION_BATCHES * 4
    assert not (one.batches[0][0] == other.batches[0][0]).all()
    for probe in one.probes:
        ids = np.array(probe.ids)
        assert len(ids) == 16 and (ids[probe.period :] == ids[: -probe.period]).all()
        assert one.tokenizer.encode_ordinary(probe.text) == ids.tolist()
    assert one.bigram == pytest.approx(one.ln_v, abs=0.1) and one.ln_v == math.log(64)
    assert one.floor < one.ln_v


def test_a_chapters_characters_and_its_held_out_end():
    task = task_for(tiny(task="chapter"))
    text = CHAPTER.read_text(encoding="utf-8")
    assert task.characters == "".join(sorted(set(text))) and task.floor is None
    inputs, targets = task.batches[3]
    shown = "".join(task.characters[i] for i in [*inputs[0].tolist(), int(targets[0, -1])])
    held_out = "".join(task.characters[i] for i in task.validation.token_ids)
    assert shown in text[: -len(held_out)] and text.endswith(held_out)
    assert task.probes[0].text == held_out[:16] and task.probes[0].period is None
    assert 0 < task.bigram < task.ln_v


def test_the_bigrams_line_is_that_of_the_validation_windows():
    text = "abacab" * 30 + "abacab" * 5
    task = task_for(tiny(task="own"), text)
    counts = {}
    for a, b in pairwise(text[: len(task.counted)]):
        counts.setdefault(a, []).append(b)
    windows = validation_windows(task.validation, 4, VALIDATION_BATCHES).flatten(0, 1)
    rows = [[task.characters[i] for i in row] for row in windows.tolist()]
    nats = [
        -math.log(counts[a].count(b) / len(counts[a])) for row in rows for a, b in pairwise(row)
    ]
    assert task.bigram == pytest.approx(np.mean(nats), abs=0.03)  # it is smoothed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "",
            "the text has 0 characters; with a context of 16 and batches of 4 it takes at least 37",
        ),
        ("ab" * 18, "has 36 characters"),
        ("a" * 100, "'a' again and again: there is nothing to foresee"),
        ("ab" * 100_001, "200,002 characters; give 200,000"),
        (
            "".join(chr(0x4E00 + i) for i in range(1001)),
            "1,001 different characters; at most 1,000",
        ),
        ("ab" * 50 + "\ud83d", "surrogate"),
    ],
)
def test_a_text_that_will_not_do_is_a_sentence(text, said):
    with pytest.raises(ValueError, match=said):
        task_for(tiny(task="own"), text)


@pytest.mark.parametrize("text", ["ab" * 18 + "c", "你好🙂 " * 20])
def test_the_shortest_text_and_any_characters_will_do(text):
    task = task_for(tiny(task="own"), text)
    assert task.batches[0][0].shape == (4, 16) and task.bigram > 0
    assert task.tokenizer.decode(task.tokenizer.encode_ordinary(text)) == text
    assert set(TASKS) == {"repeats", "chapter", "own"}
