"""The loops: the book's numbers, a forward written out, seeds, stopping."""

import itertools
import math

import pandas as pd
import pytest
import torch

import gptviz
from gptviz import generate as module
from gptviz.generate import generate, generate_text_simple
from gptviz.sampling import Sampling
from tests.conftest import random_lm

TEXT = "The cat sat on the mat and"


def plain_logits(lm, ids):
    """The last row of the book's forward, all rows computed."""
    with torch.no_grad():
        return lm.model(torch.tensor([ids[-lm.config.context_length :]]))[0, -1]


def test_the_books_greedy_continuation():
    lm = gptviz.load("gpt2-untrained")
    idx = torch.tensor([lm.encode("Hello, I am")])
    out = generate_text_simple(lm.model, idx, max_new_tokens=6, context_size=1024)
    # the book, section 4.7
    assert out.tolist() == [[15496, 11, 314, 716, 27018, 24086, 47843, 30961, 42348, 7267]]
    assert lm.decode(out[0].tolist()) == "Hello, I am Featureiman Byeswickattribute argue"


def test_the_greedy_loop_takes_the_largest_logit_of_every_row_of_the_batch(lm):
    idx = torch.randint(0, lm.config.vocab_size, (3, 5), generator=torch.Generator().manual_seed(0))
    out = generate_text_simple(lm.model, idx, max_new_tokens=4, context_size=lm.config.context_length)
    assert out.shape == (3, 9)
    for row in out.tolist():
        for end in range(5, 9):
            assert row[end] == plain_logits(lm, row[:end]).argmax().item()


def test_temperature_zero_is_the_greedy_loop(lm):
    steps = list(generate(lm, TEXT, 12, temperature=0, seed=5))
    idx = torch.tensor([lm.encode(TEXT)])
    greedy = generate_text_simple(lm.model, idx, 12, lm.config.context_length)[0, idx.shape[1] :]
    assert [step.id for step in steps] == greedy.tolist()
    assert all(step.probability == 1 for step in steps)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 20}, {"top_p": 0.6}])
def test_each_step_had_the_probability_it_says(lm, options):
    ids = lm.encode(TEXT)
    for step in generate(lm, TEXT, 6, seed=3, **options):
        table = lm.trace(ids, keep=[]).next_tokens(k=lm.config.vocab_size, **options)
        drawn = table[table["id"] == step.id].iloc[0]
        assert step.probability == pytest.approx(drawn["probability"], rel=1e-4)
        assert step.probability > 0
        ids.append(step.id)
        assert step.token == lm.decode([step.id])
        assert step.text_so_far == lm.decode(ids)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 20}, {"temperature": 0}])
def test_every_step_can_be_drawn_again(lm, options):
    """With the seed's own points, from the candidates; the model's own probabilities make the text's."""
    ids, points = lm.encode(TEXT), Sampling(seed=3).points(6)
    written = list(lm.generate(TEXT, 6, seed=3, **options))
    for step, point in zip(written, points, strict=True):
        trace = lm.trace(ids, keep=[])
        assert torch.allclose(step.logits, trace.logits(), atol=1e-5)
        table = step.candidates(k=lm.config.vocab_size)
        pd.testing.assert_frame_equal(
            step.candidates(3, Sampling()), trace.next_tokens(3), check_exact=False, atol=1e-4
        )
        if options.get("temperature") == 0:
            assert step.point is None and step.probability == 1
            point = 0.0
        else:
            assert step.point == point
        assert table["id"][int((table["probability"].cumsum() <= point).sum())] == step.id
        own = trace.logits().double().log_softmax(0)[step.id]
        assert math.log(step.model_probability) == pytest.approx(own.item(), abs=1e-4)
        ids.append(step.id)


def test_a_branch_goes_on_with_the_seeds_next_draws(lm):
    ids = lm.encode(TEXT)
    whole = list(module.steps(lm, ids, 8, Sampling(seed=3)))
    ids += [step.id for step in whole[:5]]
    assert list(module.steps(lm, ids, 3, Sampling(seed=3), skip=5)) == whole[5:]


def test_past_the_context_the_model_sees_the_last_tokens(lm):
    ids = torch.randint(0, 8000, (61,), generator=torch.Generator().manual_seed(1)).tolist()
    steps = list(generate(lm, ids, 8, temperature=0))  # a context of 64: five steps read a cropped text
    for step in steps:
        assert step.id == plain_logits(lm, ids).argmax().item()
        assert step.cropped == max(0, len(ids) - 64)
        ids.append(step.id)


def test_a_seed_repeats_and_nothing_else_is_touched(lm):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, again, other = ([step.id for step in generate(lm, TEXT, 10, seed=s)] for s in (1, 1, 2))
    assert first == again != other
    assert torch.equal(torch.get_rng_state(), before)


def test_the_ids_that_were_given_are_left_alone(lm):
    ids = lm.encode(TEXT)
    given = list(ids)
    list(generate(lm, ids, 3))
    assert ids == given


def test_nobody_looks_nothing_runs(lm):
    passes = []
    handle = lm.model.out_head.register_forward_hook(lambda *_: passes.append(1))
    try:
        steps = generate(lm, TEXT, 1000)
        assert not passes
        assert len(list(itertools.islice(steps, 3))) == 3
        assert len(passes) == 3
    finally:
        handle.remove()


def test_the_models_end_of_text_ends_it_and_a_typed_one_does_not(lm, monkeypatch):
    end = lm.tokenizer.encode_single_token("<|endoftext|>")
    wanted = iter([11, 12, end, 13])

    def forced(model, idx):
        return torch.nn.functional.one_hot(torch.tensor([next(wanted)]), lm.config.vocab_size) * 100.0

    monkeypatch.setattr(module, "last_logits", forced)
    for special in (False, True):
        wanted = iter([11, 12, end, 13])
        steps = list(generate(lm, "so <|endoftext|> it", 9, seed=0, special_tokens=special))
        assert [step.id for step in steps] == [11, 12, end]


def test_special_tokens_are_read_only_where_switched_on(lm):
    text = "a<|endoftext|>b"
    end = lm.tokenizer.encode_single_token("<|endoftext|>")
    seen = []
    handle = lm.model.tok_emb.register_forward_hook(lambda _m, args, _out: seen.append(args[0][0].tolist()))
    try:
        next(generate(lm, text, 1))
        next(generate(lm, text, 1, special_tokens=True))
    finally:
        handle.remove()
    assert end not in seen[0]
    assert end in seen[1]


def test_an_id_that_the_tokenizer_does_not_have_goes_by_its_number():
    lm = random_lm(vocab_size=8192 + 64)
    with torch.no_grad():  # a padded row that wins wherever it can
        lm.model.out_head.weight[8200] = 50 * lm.model.final_norm.shift / lm.model.final_norm.shift.norm()
    first, second = generate(lm, TEXT, 2, temperature=0)
    assert (first.id, first.token) == (8200, "<id 8200>")
    assert first.text_so_far == TEXT + "<id 8200>"
    ids = [*lm.encode(TEXT), 8200]
    assert second.id == plain_logits(lm, ids).argmax().item()  # it goes on from the id itself


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", {}, "empty"),
        ("a\ud800", {}, "at character 1"),
        ([], {}, "empty"),
        ("a", {"temperature": -1}, "temperature is -1"),
        ("a", {"top_k": 0}, "top_k is 0"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_step(lm, text, options, words):
    with pytest.raises(ValueError, match=words):
        generate(lm, text, 3, **options)
