"""Beam search against transformers' own, against all texts there are, and against greedy."""

import itertools

import pytest
import torch

import gptviz
from gptviz.engine.beams import beam_search, search, ways
from gptviz.engine.generate import end_of_text
from tests.conftest import random_lm
from tests.models.checkpoints import makers

IDS = [5, 300, 77, 42]


def every_text(lm, ids, length):
    """All continuations with what the plain model gives them, from the best down; each ends with the end."""
    end = end_of_text(lm)
    found = {(): 0.0}
    done = {}
    for _ in range(length):
        texts = list(found)
        with torch.no_grad():
            logits = lm.model(torch.tensor([[*ids, *text] for text in texts]))[:, -1]
        log_p = logits.double().log_softmax(-1)
        longer = {}
        for text, row in zip(texts, log_p.tolist(), strict=True):
            for token, own in enumerate(row):
                into = done if token == end else longer
                into[(*text, token)] = found[text] + own
        found = longer
    return sorted((found | done).items(), key=lambda one: -one[1])


def test_with_beams_enough_it_finds_the_best_of_all_texts():
    small = random_lm(vocab_size=6, context_length=16)
    truth = every_text(small, [1, 2, 3], 4)
    last = beam_search(small, [1, 2, 3], 6**3, 4)[-1].kept
    assert [beam.ids for beam in last[:20]] == [text for text, _ in truth[:20]]
    assert [beam.log_probability for beam in last[:20]] == pytest.approx(
        [p for _, p in truth[:20]], abs=1e-4
    )


def test_the_beams_are_those_of_transformers(tmp_path):
    truth = makers.hf_model(vocab_size=50257, n_embd=8, n_head=2, n_layer=1)
    ours = gptviz.load(makers.save_hf(truth, tmp_path / "model"))
    ids = IDS
    for beams, length in ((1, 6), (3, 6), (5, 8)):
        made = truth.generate(
            torch.tensor([ids]), max_new_tokens=length, num_beams=beams, num_return_sequences=beams,
            do_sample=False, length_penalty=0.0, eos_token_id=None, pad_token_id=0, use_cache=False,
        )  # fmt: skip
        last = beam_search(ours, ids, beams, length)[-1].kept
        assert [list(beam.ids) for beam in last] == made[:, len(ids) :].tolist()


def test_a_tree_of_kept_and_dropped_ones(lm):
    rounds = beam_search(lm, IDS, 3, 5)
    living = [((), 0.0)]
    for found in rounds:
        both = [*found.kept, *found.dropped]
        assert len(found.kept) == 3 and len(found.dropped) == 3
        assert [b.log_probability for b in both] == sorted(
            (b.log_probability for b in both), reverse=True
        )
        for beam in both:
            ids, log_p = living[beam.parent]
            assert beam.ids[:-1] == ids and beam.log_probability < log_p
        living = [(beam.ids, beam.log_probability) for beam in found.kept]
    for number, way in enumerate(ways(rounds)):
        assert len(way) == 5 and way[-1] == number
        for (before, after), length in zip(
            itertools.pairwise(way), itertools.count(1), strict=False
        ):
            assert rounds[length].kept[after].parent == before
        assert rounds[0].kept[way[0]].ids == rounds[-1].kept[number].ids[:1]


def test_past_the_context_the_beams_slide(lm):
    ids = torch.randint(0, 8000, (62,), generator=torch.Generator().manual_seed(1)).tolist()

    def plain(texts):
        with torch.no_grad():
            return lm.model(torch.tensor([list(text[-64:]) for text in texts]))[:, -1]

    ours = beam_search(lm, ids, 2, 6)
    truth = search(plain, ids, 2, 6, end_of_text(lm))
    for one, other in zip(ours, truth, strict=True):
        assert [beam.ids for beam in one.kept] == [beam.ids for beam in other.kept]


def test_a_beam_that_ended_is_carried_on_as_it_is():
    def read(texts):  # id 1 ends a text: sure at first, never again
        return torch.tensor(
            [[0.0, 9.0, 1.0] if len(text) == 1 else [5.0, -9.0, 0.0] for text in texts]
        )

    rounds = search(read, [0], 2, 3, end=1)
    assert [beam.ids for beam in rounds[-1].kept] == [(1,), (2, 0, 0)] and rounds[-1].kept[0].ended
    assert len(search(read, [0], 1, 9, end=1)) == 1


def test_a_text_is_encoded(lm):
    text = "The cat sat"
    assert beam_search(lm, text, 2, 3) == beam_search(lm, lm.encode(text), 2, 3)
