"""The story of a copied word: told of planted weights and of mini, never of random ones, with hooks' numbers."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gptviz.analysis import circuit_claims, copied_story as module
from gptviz.analysis.asked import stood_before
from gptviz.analysis.circuit_claims import LEAST, Task
from gptviz.analysis.circuit_passes import all_heads, edits_of
from gptviz.analysis.copied_story import EXAMPLE, copied_story, made_texts
from gptviz.engine.sample import long_passages
from tests.analysis.muted_heads import check_worth, lost_by_hooks
from tests.analysis.test_circuit_story import set_weights
from tests.analysis.test_patched_paths import by_hooks
from tests.conftest import random_lm
from tests.llama_models import both


@pytest.mark.parametrize("seed", [0, 1])
def test_random_weights_copy_nothing(seed):
    lm = random_lm(seed)
    told = copied_story(lm, count=LEAST)
    assert told.n == LEAST
    assert [claim.role.name for claim in told.claims if claim.shown] == []
    assert [claim.role.name for claim in told.claims] == [
        "induction",
        "previous token",
        "duplicate token",
    ]
    assert "no induction head is shown" in told.claim("previous token").sentence


# where each thing stands in the planted model's stream
WORDS = 40  # a dimension each
ID = 0  # which word a token is
BEFORE = 40  # which word stands before it
PLACE = 80  # which position
WIDTH = 112


def planted():
    """A previous-token head, an induction head that reads it, and nothing else."""
    lm = random_lm(0, n_layers=2, n_heads=2, emb_dim=2 * WIDTH, context_length=32)
    words = module._words(lm)[:WORDS]
    model = lm.model
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    for norm in [model.final_norm, *(n for b in model.trf_blocks for n in (b.norm1, b.norm2))]:
        torch.nn.init.ones_(norm.scale)
    for number, token in enumerate(words):
        model.tok_emb.weight.data[token, ID + number] = 1
        model.out_head.weight.data[token, ID + number] = 1
    for position in range(32):
        model.pos_emb.weight.data[position, PLACE + position] = 1
    previous, induction = (block.att for block in model.trf_blocks)
    every = range(WORDS)
    set_weights(previous.W_query, [(p, PLACE + p, 2) for p in range(1, 32)])
    set_weights(previous.W_key, [(p, PLACE + p - 1, 2) for p in range(1, 32)])
    set_weights(previous.W_value, [(i, ID + i, 1) for i in every])
    set_weights(previous.out_proj, [(BEFORE + i, i, 0.1) for i in every])
    # a word looks behind its like, and at the first token where there is none
    set_weights(induction.W_query, [(i, ID + i, 2) for i in every])
    set_weights(induction.W_key, [(i, BEFORE + i, 2) for i in every])
    induction.W_query.bias.data[WORDS] = 10
    set_weights(induction.W_key, [(WORDS, PLACE, 1)])
    set_weights(induction.W_value, [(i, ID + i, 1) for i in every])
    set_weights(induction.out_proj, [(ID + i, i, 0.5) for i in every])
    return lm, words


def test_a_planted_circuit_is_told(monkeypatch):
    lm, words = planted()
    monkeypatch.setattr(module, "_words", lambda lm: words)
    told = copied_story(lm, count=LEAST)
    assert told.n == told.first == LEAST
    shown = {claim.role.name: claim.heads for claim in told.claims if claim.shown}
    assert shown == {"induction": ((1, 0),), "previous token": ((0, 0),)}
    assert told.worth.heads == ((0, 0), (1, 0))
    # nobody else does anything: the circuit is the model, and neither of its heads can go
    assert told.worth.faithfulness == pytest.approx(0, abs=1e-4)
    assert told.worth.completeness == pytest.approx(0, abs=1e-4)
    assert min(told.worth.minimality) > 0.5 * told.worth.whole
    # the keys alone carry it: what the head passes on is what hooks measure
    texts = made_texts(lm, count=LEAST)
    effects = [
        told_difference(lm, text)
        - by_hooks(
            lm,
            text.ids,
            text.others["first"],
            (0, 0),
            [("k", 1, 0)],
            (text.answer, text.instead),
            -1,
            slice(text.places["next"][0], text.places["next"][0] + 1),
        )
        for text in texts
    ]
    assert told.claim("previous token").effect == pytest.approx(np.mean(effects), abs=1e-4)


def test_muted_heads_may_give_what_they_give_in_the_roles_other_text(monkeypatch):
    """Another word behind the passage for what copies it; for what finds the place, one in the passage."""
    lm, words = planted()
    monkeypatch.setattr(module, "_words", lambda lm: words)
    told = copied_story(lm, baseline="other", count=LEAST)
    texts = made_texts(lm, count=LEAST)
    for role, other in (("induction", "next"), ("previous token", "first")):
        claim = told.claim(role)
        lost = lost_by_hooks(lm, texts, other, claim.heads)
        assert claim.lost == pytest.approx(np.mean(lost), abs=1e-4) and claim.lost > 1
        assert claim.lost_se == pytest.approx(np.std(lost, ddof=1) / LEAST**0.5, abs=1e-4)
        assert f" With it off (its value in {module.OTHERS[other]} instead) the" in claim.sentence
    # what stands before the word behind the passage is the same in both texts
    assert told.worth.gives == "its value in the text with another word behind the passage"
    assert told.worth.minimality[0] == pytest.approx(0, abs=1e-4)
    check_worth(lm, texts, "next", told.worth)


def told_difference(lm, text, edits=()):
    """The difference of the two logits, by a plain pass."""
    logits = lm.trace(text.ids, edits=list(edits)).logits(-1).double()
    return float(logits[text.answer] - logits[text.instead])


def test_the_bundled_models_induction_heads_are_found(mini):
    """Its card has them, measured in another way."""
    steps = []
    told = copied_story(
        mini, EXAMPLE, count=LEAST, progress=lambda done, of: steps.append(done / of)
    )
    assert steps == sorted(steps) and steps[-1] == 1
    induction = told.claim("induction")
    previous = told.claim("previous token")
    assert {*induction.heads} <= {(5, 0), (5, 3), (5, 4), (5, 5), (5, 7)} and induction.shown
    assert (4, 3) in previous.heads
    texts = made_texts(mini, EXAMPLE, LEAST)
    whole = [told_difference(mini, text) for text in texts]
    assert told.difference == pytest.approx(np.mean(whole), abs=1e-4)
    everyone = all_heads(mini)
    left = [head for head in everyone if head not in induction.heads]
    muted = edits_of(mini, left, "sample")
    lost = [
        one - told_difference(mini, text, muted) for one, text in zip(whole, texts, strict=True)
    ]
    assert induction.lost == pytest.approx(np.mean(lost), abs=1e-3)
    assert induction.lost_se == pytest.approx(np.std(lost, ddof=1) / LEAST**0.5, abs=1e-3)
    effects = [
        sum(
            one
            - by_hooks(
                mini,
                text.ids,
                text.others["next"],
                head,
                "logits",
                (text.answer, text.instead),
                -1,
                slice(len(text.ids) - 1, len(text.ids)),
            )
            for head in induction.heads
        )
        for one, text in zip(whole, texts, strict=True)
    ]
    assert induction.effect == pytest.approx(np.mean(effects), abs=1e-3)


@pytest.mark.parametrize("text", [None, " a b c d a b"])
def test_what_stands_before_every_text_stands_before_made_ones(text):
    lm = both("llama")[0]
    (begin,) = lm.encode("")
    for one in made_texts(lm, text, 20):
        assert [place for place, id in enumerate(one.ids) if id == begin] == [0]
        assert all(ids[0] == begin for ids in one.others.values())
        assert len(one.ids) <= lm.config.context_length
        (following,) = one.places["next"]
        assert one.ids[following] == one.answer
        (first,) = one.places["first"]
        assert one.ids[first] == one.ids[-1]


@pytest.mark.parametrize("text", [None, EXAMPLE, "One two three, one two three, one two", " a b a"])
def test_made_texts_repeat_a_passage_of_other_words(mini, text):
    texts = made_texts(mini, text, 20)
    distances = set()
    for one in texts:
        place, length = stood_before(one.ids)
        (following,) = one.places["next"]
        assert place == following and length >= 1 and one.ids[following] == one.answer
        assert one.ids[following - 1] == one.ids[-1]
        assert one.instead not in one.ids
        for name, at in (("next", following), ("first", following - 1)):
            other = one.others[name]
            assert [i for i in range(len(other)) if other[i] != one.ids[i]] == [at]
        distances.add(len(one.ids) - following)
    assert len(distances) > 1
    if text is not None:
        own = mini.encode(text)
        assert not {*own} & {*texts[0].ids}
        assert all(len({*one.ids}) >= len({*own}) for one in texts)


def test_made_texts_are_of_whole_words_of_the_books(mini):
    """No " dischar", " mal" or " accom", which only begin words."""
    books = " ".join(passage.text for passage in long_passages())
    words = {mini.decode([i]) for text in made_texts(mini, None, 40) for i in text.ids}
    assert len(words) > 300
    for word in words:
        assert re.fullmatch(r" [a-z]{3,}", word) and re.search(rf"\b{word[1:]}\b", books)
    assert {" dischar", " mal", " accom"}.isdisjoint(
        map(mini.decode, ([i] for i in module._words(mini)))
    )


def test_a_vocabulary_with_few_words_of_the_books_has_beginnings_of_words(mini, monkeypatch):
    monkeypatch.setattr(module, "_in_books", lambda: frozenset({"mill"}))
    words = [mini.decode([i]) for i in module._words(mini)]
    assert " mal" in words and all(re.fullmatch(r" [a-z]{3,}", word) for word in words)


def test_of_several_texts_each_gives_its_form(mini):
    short, long = made_texts(mini, [" a b a", EXAMPLE], 2)
    assert len(short.ids) < 10 <= len(mini.encode(EXAMPLE)) <= len(long.ids)


def test_what_cannot_be_told_is_refused_in_a_sentence(mini):
    with pytest.raises(ValueError, match="11 texts are asked for; a story needs 12 or more"):
        copied_story(mini, count=LEAST - 1)
    with pytest.raises(ValueError, match="'One two three' does not end with a passage"):
        copied_story(mini, "One two three")
    with pytest.raises(ValueError, match="a story is told of up to 96"):
        copied_story(mini, f"The old mill{' and a horse' * 40}. The old")
    with pytest.raises(ValueError, match="must be one of zero, mean, sample, other"):
        copied_story(mini, baseline="none")
    with pytest.raises(ValueError, match="reads 4 tokens, and a passage that comes again needs"):
        copied_story(random_lm(context_length=4))


def test_a_model_with_few_tokens_says_so(mini, monkeypatch):
    monkeypatch.setattr(module, "_words", lambda lm: [5, 6, 7])
    with pytest.raises(ValueError, match="has 3 tokens that a text can be made of"):
        made_texts(mini)


def test_the_keys_that_heads_share_are_asked_about_once():
    """Heads 3 and 4 are in group 1 of a Llama, so what reaches their keys is one receiver."""
    lm, _ = both("llama")
    shown = SimpleNamespace(heads=((1, 3), (1, 4), (2, 8)), nearest=None)
    task = Task(module.ROLES, module.PLACES, module.OTHERS, (), module.OUTSIDE)
    read = SimpleNamespace(lm=lm, task=task)
    receivers = circuit_claims._receivers(read, module.PREVIOUS, {"induction": shown})
    assert receivers == [("k", 1, 1), ("k", 2, 2)]
    said = circuit_claims._changed(read, module.PREVIOUS, receivers)
    assert said.endswith("as the keys of groups 1.1+2.2 alone read it")
