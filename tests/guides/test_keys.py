"""The keys of questions are what the model gives: each against its own definition, on two models."""

import numpy as np
import pytest
import torch

from gptviz.guides import files, keys, read
from gptviz.guides.keys import KEYS, CannotAsk

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"


@pytest.fixture(params=["mini", "lm"])
def model(request):
    return request.getfixturevalue(request.param)


def asked(lm, name, given=None, *arguments, text=TEXT, position=-1):
    trace = lm.trace(text)
    at = position % len(trace)
    kept = lm.trace(text, keep=keys.sites(name, lm, at, given, *arguments))  # no more than it says it reads
    return KEYS[name][1](lm, kept, at, given, *arguments), trace


def test_the_next_word(model):
    found, trace = asked(model, "next_word")
    p = trace.logits().double().softmax(-1)
    assert found.truth == int(p.argmax()) and found.right is None
    word = model.decode([found.truth])
    first = model.encode(word if word[:1].isspace() else f" {word}")[0]
    assert asked(model, "next_word", word)[0].right == (first == found.truth)
    other, _ = asked(model, "next_word", "umbrella")
    assert other.right is False and other.facts["given_rank"].replace(",", "").isdigit()


def test_what_a_head_looks_at(model):
    for query in (3, -1):
        found, trace = asked(model, "looked_at", None, 1, 2, position=query)
        row = trace["attn", 1][2, query]
        assert found.truth == int(row.argmax()) and f"position {found.truth}" in found.shown
        assert asked(model, "looked_at", found.truth, 1, 2, position=query)[0].right
        assert not asked(model, "looked_at", (found.truth + 1) % len(trace), 1, 2, position=query)[0].right
    with pytest.raises(CannotAsk, match=r"no head 99\.0"):
        asked(model, "looked_at", None, 99, 0)


def test_a_head_with_a_role(mini, lm):
    found, trace = asked(mini, "head_with", None, "previous")
    share = [[float(a.diagonal(-1).mean()) for a in trace["attn", b]] for b in range(6)]
    assert found.truth == np.unravel_index(np.argmax(share), (6, 8)) == (4, 3)
    assert asked(mini, "head_with", (4, 3), "previous")[0].right
    assert not asked(mini, "head_with", (0, 0), "previous")[0].right
    many, _ = asked(mini, "head_with", (5, 7), "induction")
    assert many.right and many.facts["heads"] == "5"
    with pytest.raises(CannotAsk):
        asked(lm, "head_with", None, "induction", text="one")
    with pytest.raises(CannotAsk, match="no role"):
        asked(lm, "head_with", None, "chief")


def test_what_is_left_without_a_part(model):
    edit = "z.1.2=zero"
    found, trace = asked(model, "without", None, edit)
    best = int(trace.logits().argmax())
    left = 100 * float(model.trace(TEXT, edits=[edit]).logits().double().softmax(-1)[best])
    assert found.truth == pytest.approx(left, rel=1e-4)
    assert asked(model, "without", left + 14, edit)[0].right
    assert not asked(model, "without", left + 16, edit)[0].right
    with pytest.raises(CannotAsk, match="cannot be made"):
        asked(model, "without", None, "z.99=zero")
    with pytest.raises(CannotAsk, match="cannot be made"):
        asked(model, "without", None, "nonsense")


def test_temperature_and_nucleus(model):
    logits = model.trace(TEXT).logits().double()
    found, _ = asked(model, "at_temperature", None, 2.0)
    assert found.truth == pytest.approx(100 * float((logits / 2).softmax(-1).max()))
    count, _ = asked(model, "nucleus", None, 0.9)
    ordered = logits.softmax(-1).sort(descending=True).values
    assert float(ordered[: count.truth].sum()) >= 0.9 > float(ordered[: count.truth - 1].sum())
    with pytest.raises(CannotAsk):
        asked(model, "at_temperature", None, 0.0)


def test_the_dearest_token(model):
    found, trace = asked(model, "dearest")
    ids = torch.tensor([token.id for token in trace.tokens])
    with torch.no_grad():
        logits = model.model(ids[None])[0, :-1]
    loss = torch.nn.functional.cross_entropy(logits.double(), ids[1:], reduction="none")
    assert found.truth == int(loss.argmax()) + 1
    assert asked(model, "dearest", found.truth)[0].right and not asked(model, "dearest", 0)[0].right


def test_when_the_guess_is_settled(model):
    found, trace = asked(model, "settled")
    head = model.model.out_head.weight.detach()
    with torch.no_grad():
        tops = [
            int((model.model.final_norm(row) @ head.T).argmax())
            for row in [
                trace["embed"][-1],
                *(trace["resid_post", b][-1] for b in range(model.config.n_layers)),
            ]
        ]
    last = max((at + 1 for at, top in enumerate(tops) if top != tops[-1]), default=0)
    assert found.truth == last


def test_pieces_and_neighbours(mini):
    found, _ = asked(mini, "pieces", 5, "unbelievable")
    assert found.truth == 5 and found.right and len(found.facts["pieces"].split(" ")) == 5
    near, _ = asked(mini, "nearest", None, " red")
    weight = mini.model.tok_emb.weight.detach()
    mine = mini.encode(" red")[0]
    cosine = torch.cosine_similarity(weight, weight[mine], dim=1)
    cosine[mine] = -2
    assert near.truth == int(cosine.argmax()) and near.shown in near.options and len(near.options) == 4
    assert asked(mini, "nearest", near.shown, " red")[0].right
    with pytest.raises(CannotAsk, match="single token"):
        asked(mini, "nearest", None, " unbelievable")


def test_arguments_are_those_of_the_function():
    assert keys.arguments("looked_at", "token", (("head", 3), ("block", 4))) == (4, 3)
    for name, kind, given, said in (
        ("none", "token", (), "no key 'none'"),
        ("looked_at", "head", (), "of the kind token"),
        ("looked_at", "token", (("block", 4),), "takes block, head, not block"),
        ("looked_at", "token", (("block", "4"), ("head", 3)), "must be int"),
    ):
        with pytest.raises(ValueError, match=said):
            keys.arguments(name, kind, given)


@pytest.mark.parametrize("name", files())
def test_every_question_that_ships_has_a_key(name):
    for step in read(files()[name].read_text("utf-8")).steps:
        if step.ask is not None:
            assert isinstance(keys.arguments(step.ask.key, step.ask.kind, step.ask.given), tuple)
            assert len(step.ask.hints) == 3
