"""Copying scores against tables of V x V numbers, and against tokens sent through one at a time."""

import numpy as np
import pytest
import torch

from gptviz.analysis import copying
from gptviz.analysis.copying import ALONE_AT, TOP, copies_of, copying_scores, sampled
from tests.analysis.written_out import Told, weights_of
from tests.conftest import random_lm


def tiny(**changes):
    return random_lm(3, **{"vocab_size": 90, "emb_dim": 12, "n_heads": 3, "n_layers": 2, **changes})


def norm(x, scale):
    """The linear part of a LayerNorm: rows without their mean, scaled."""
    return (x - x.mean(axis=1, keepdims=True)) * scale


def sign(table):
    values = np.linalg.eigvals(table)
    return float(values.real.sum() / np.abs(values).sum())


@pytest.mark.parametrize("tied", [False, True])
def test_eigenvalues_are_those_of_the_whole_tables(tied):
    lm = tiny(tie_embeddings=tied)
    found = copying_scores(lm).set_index(["block", "head"])
    assert len(found) == 6 and found[["ov_copying", "qk_matching"]].abs().le(1).all(axis=None)
    w = {name: value.numpy() for name, value in weights_of(lm.model).items()}
    embedding = w["tok_emb.weight"]
    out = w["out_head.weight"]
    d = lm.config.head_dim
    for b in range(2):
        block = f"trf_blocks.{b}"
        read = norm(embedding, w[f"{block}.norm1.scale"])  # (V, D)
        for h in range(3):
            own = slice(h * d, (h + 1) * d)
            q, k, v = (
                read @ w[f"{block}.att.W_{n}.weight"][own].T for n in ("query", "key", "value")
            )
            written = v @ w[f"{block}.att.out_proj.weight"][:, own].T  # (V, D)
            ov = norm(written, w["final_norm.scale"]) @ (out - out.mean(axis=0)).T  # (V, V)
            assert found.loc[(b, h), "ov_copying"] == pytest.approx(sign(ov), abs=1e-6)
            assert found.loc[(b, h), "qk_matching"] == pytest.approx(sign(q @ k.T), abs=1e-6)


def test_a_head_that_hands_on_what_it_reads_copies_and_its_reverse_does_not():
    lm = tiny(n_heads=1, tie_embeddings=True, qkv_bias=False)  # the head has all of the stream
    with torch.no_grad():
        for block, sign_of in zip(lm.model.trf_blocks, (1.0, -1.0), strict=True):
            block.att.W_value.weight.copy_(torch.eye(12))
            block.att.out_proj.weight.copy_(sign_of * torch.eye(12))
            block.att.W_query.weight.copy_(torch.eye(12))
            block.att.W_key.weight.copy_(torch.eye(12) * sign_of)
            block.norm1.scale.fill_(1)
        lm.model.final_norm.scale.fill_(1)
    found = copying_scores(lm)
    assert found["ov_copying"].tolist() == pytest.approx([1, -1])
    assert found["qk_matching"].tolist() == pytest.approx([1, -1])


def test_top5_is_what_single_tokens_do():
    lm = tiny()
    found = copying_scores(lm).set_index(["block", "head"])["copies_top5"]
    ids = sampled(lm)
    assert len(ids) == len(set(ids)) and max(ids) < 90
    model = lm.model
    d = lm.config.head_dim
    hits = {place: 0 for place in found.index}
    with torch.no_grad():
        for i in ids:
            alone = model.tok_emb.weight[i] + model.pos_emb.weight[ALONE_AT]
            after = model.trf_blocks[0](alone[None, None])[0, 0]
            for b, h in hits:
                att = model.trf_blocks[b].att
                value = att.W_value(model.trf_blocks[b].norm1(after))[h * d : (h + 1) * d]
                written = att.out_proj.weight[:, h * d : (h + 1) * d] @ value
                logits = model.out_head(model.final_norm(written))
                hits[b, h] += int((logits > logits[i]).sum() < TOP)
    assert found.to_dict() == pytest.approx({place: hit / len(ids) for place, hit in hits.items()})
    shares = copies_of(lm, ids, progress=(told := Told()))
    assert shares.tolist() == found.to_numpy().reshape(2, 3).tolist()  # (L * H,) -> (L, H)
    assert told.came_to(2)


def test_a_head_of_reversed_weights_writes_against_what_the_head_copies():
    lm = tiny(linear_bias=False)
    ids = sampled(lm)
    against = copies_of(lm, ids, -1)
    with torch.no_grad():
        stream = lm.model.trf_blocks[1].att.out_proj.weight
        stream.copy_(-stream)
    assert copies_of(lm, ids)[1].tolist() == against[1].tolist()


def test_edits_change_no_weights_and_are_not_passed_over():
    plain = copying_scores(tiny())
    edited = copying_scores(tiny().edited("z.0=zero"))
    for name in ("ov_copying", "qk_matching"):
        assert edited[name].equals(plain[name])
    assert edited["copies_top5"].isna().all() and plain["copies_top5"].notna().all()


def test_large_vocabularies_are_sampled_and_the_work_is_told(monkeypatch):
    lm = tiny()
    monkeypatch.setattr(copying, "MOST_WORK", 0)
    assert len(sampled(lm)) == copying.FEWEST
    copying_scores(lm, told := Told())
    assert told.came_to(len(told))
