"""Checkpoints damaged by the hundred: what is not refused with a sentence works on every page."""

import base64
import random
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import gptviz
from gptviz.models.checkpoints import CheckpointError
from gptviz.models.convert import convert
from gptviz.tokenizer.vocabulary import of_encoding
from tests.models.checkpoints import makers


def seeds(folder):
    """One small checkpoint of each kind, and the files of it that are damaged."""
    truth = makers.hf_model()
    makers.save_hf(truth, folder / "hf")
    makers.save_hf(makers.neo_model(), folder / "neo")
    makers.save_hf_old(truth, folder / "old")
    makers.save_hf_old(truth, folder / "legacy", zipped=False)
    makers.save_hf_old(truth, folder / "shards", shards=2)
    makers.save_ours(folder / "ours", makers.OUR_SIZES, makers.book_state(truth, masks=False))
    for name, saved in (
        ("book", makers.book_state(truth)),
        ("nano", makers.nanogpt_checkpoint(truth)),
    ):
        (folder / name).mkdir()
        torch.save(saved, folder / name / "ckpt.pt")
    makers.save_meta(folder / "nano" / "meta.pkl", makers.character_meta(61))
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and "generation" not in path.name
    )


def mutate(data, chance):
    """A damaged copy: cut short, bytes changed, a stretch removed, repeated or zeroed; mostly near its ends,
    where headers and tables of contents are."""
    if not data:
        return data
    edge = min(len(data), 600)
    begin = chance.randrange(edge)
    end = chance.randrange(edge)
    anywhere = chance.randrange(len(data))
    place = chance.choice([begin, len(data) - 1 - end, anywhere])
    length = chance.choice([1, 1, 2, 8, 64])
    before = data[:place]
    there = data[place : place + length]
    after = data[place + length :]
    flipped = bytes([there[0] ^ (1 << chance.randrange(8))]) + there[1:]
    put = [b"", there * 2, bytes(length), chance.randbytes(length), flipped]
    return chance.choice([before, *(before + one + after for one in put)])


def exponents(data, chance):
    """One to three bytes somewhere in the weights set high, as the upper byte of a float32 would be."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 3])):
        changed[chance.randrange(len(data) // 4, len(data))] = chance.choice(
            [0x7F, 0x7E, 0x70, 0xFF, 0xFE]
        )
    return bytes(changed)


NO_WEIGHTS = [torch.nan, torch.inf, -torch.inf, 3.4e38, -1e30, 1e19, 1e12, 1e6]
TYPES = [torch.float16, torch.bfloat16, torch.float64, torch.int32]


def rewritten(state, chance):
    """A state dict whose file is whole, and whose weights are not: swapped, scaled, values of no sense."""
    names = sorted(state)
    state = dict(state)
    name, other = chance.sample(names, 2)
    kind = chance.randrange(4)
    if kind == 0:
        state[name], state[other] = state[other], state[name]
    elif kind == 1:
        state[name] = state[name] * 10.0 ** chance.randrange(0, 39)
    elif kind == 2:
        changed = state[name].clone().float()
        place = chance.randrange(state[name].numel())
        changed.view(-1)[place] = chance.choice(NO_WEIGHTS)
        state[name] = changed
    else:
        state[name] = state[name].to(chance.choice(TYPES))
    return state


def works(lm):
    """What a page needs of a model: finite numbers everywhere, and rows of attention that sum to 1."""
    trace = lm.trace([0, 1, 2, 60, 59, 2, 0, 33])
    for block in range(lm.config.n_layers):
        sums = trace["attn", block].sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)
        assert all(
            trace[site, block].isfinite().all()
            for site in ("q", "k", "v", "resid_mid", "resid_post")
        )
    assert trace.logits(position=-1).isfinite().all() and trace.logits(position=0).isfinite().all()
    assert trace.next_tokens(k=3)["probability"].between(0, 1).all()
    assert np.isfinite(trace.norms().select_dtypes("number").fillna(0.0)).all(axis=None)


def outcome(path, meta):
    """ "error" or "model"; anything else that happens is a failure of the test.

    The app's way, over another process's files, has the same outcome and the same model.
    """
    given = {
        "n_heads": 4 if path.name == "book" else None,
        "tokenizer": None if path.name in ("nano", "ours") else meta,
    }
    try:
        lm = gptviz.load(path, **given)
    except CheckpointError as error:
        assert len(str(error)) > 20, path
        with tempfile.TemporaryDirectory() as out, pytest.raises(CheckpointError):
            convert(path, Path(out), **given)
        return "error"
    works(lm)
    with tempfile.TemporaryDirectory() as out:
        convert(path, Path(out), **given)
        again = gptviz.load(out)
    assert (
        again.config == lm.config
        and again.model.state_dict().keys() == lm.model.state_dict().keys()
    )
    same = zip(again.model.parameters(), lm.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in same)
    assert of_encoding(again.tokenizer) == of_encoding(lm.tokenizer)
    return "model"


@pytest.fixture
def damaged(tmp_path):
    """The files of one whole checkpoint of each kind, and a tokenizer that fits them all."""
    files = seeds(tmp_path / "good")
    ranks = b"".join(b"%s %d\n" % (base64.b64encode(bytes([i])), i) for i in range(61))
    (tmp_path / "good" / "ours" / "tokenizer.tiktoken").write_bytes(ranks)
    yield files, makers.save_meta(tmp_path / "meta.pkl", makers.character_meta(61))
    shutil.rmtree(tmp_path / "good")


@pytest.mark.parametrize("damage", [mutate, exponents])
def test_hundreds_of_damaged_files_give_an_error_or_a_model_that_works(damaged, damage):
    files, meta = damaged
    # its tokenizer lacks bytes
    whole = {file.parent for file in files} - {files[0].parents[1] / "ours"}
    assert {outcome(folder, meta) for folder in whole} == {"model"}
    if damage is exponents:
        files = [file for file in files if file.suffix not in (".json", ".pkl")]
    chance = random.Random(7)
    outcomes = []
    for turn in range(180 if damage is mutate else 100):
        victim = files[turn % len(files)]
        whole = victim.read_bytes()
        victim.write_bytes(damage(whole, chance))
        outcomes.append(outcome(victim.parent, meta))
        victim.write_bytes(whole)
    assert min(outcomes.count("error"), outcomes.count("model")) > 10


def test_hundreds_of_whole_files_of_damaged_weights_give_an_error_or_a_model_that_works(damaged):
    files, meta = damaged
    chance = random.Random(11)
    outcomes = []
    victims = [
        file for file in files if file.name in ("model.safetensors", "ckpt.pt", "pytorch_model.bin")
    ]
    for turn in range(100):
        victim = victims[turn % len(victims)]
        whole = victim.read_bytes()
        if victim.suffix == ".safetensors":
            save_file(
                {k: v.contiguous() for k, v in rewritten(load_file(victim), chance).items()}, victim
            )
        else:
            saved = torch.load(victim, weights_only=True)
            if victim.parent.name == "nano":
                saved["model"] = rewritten(saved["model"], chance)
            else:
                saved = rewritten(saved, chance)
            torch.save(saved, victim, _use_new_zipfile_serialization=victim.parent.name != "legacy")
        outcomes.append(outcome(victim.parent, meta))
        victim.write_bytes(whole)
    assert min(outcomes.count("error"), outcomes.count("model")) > 10
