"""The loops: the book's numbers, a forward written out, seeds, stopping."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
import torch

import gptviz
from gptviz.book import generate_text_simple
from gptviz.engine import forward, generate as module
from gptviz.engine.generate import generate
from gptviz.engine.sampling import Sampling
from tests.conftest import random_lm
from tests.llama_models import both
from tests.models.checkpoints import makers

TEXT = "The cat sat on the mat and"


def plain_logits(lm, ids):
    """The last row of the book's forward, all rows computed."""
    with torch.no_grad():
        return lm.model(torch.tensor([ids[-lm.config.context_length :]]))[0, -1]


def test_greedy_is_the_books_generate_text_simple():
    lm = gptviz.load("gpt2-untrained")
    idx = torch.tensor([lm.encode("Hello, I am")])
    out = generate_text_simple(lm.model, idx, max_new_tokens=6, context_size=1024)
    assert lm.decode(out[0].tolist()) == "Hello, I am Featureiman Byeswickattribute argue"
    assert [step.id for step in lm.generate("Hello, I am", 6, temperature=0)] == out[0, 4:].tolist()


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.7, "top_k": 20}, {"temperature": 0}, {"top_p": 0.6}]
)
def test_every_step_can_be_drawn_again(lm, options):
    """With the seed's own points, from the candidates; the model's own probabilities make the text's."""
    ids = lm.encode(TEXT)
    points = Sampling(seed=3).points(6)
    written = list(lm.generate(TEXT, 6, seed=3, **options))
    for step, point in zip(written, points, strict=True):
        trace = lm.trace(ids, keep=[])
        assert torch.allclose(step.logits, trace.logits(-1), atol=1e-5)
        table = step.candidates(k=lm.config.vocab_size)
        pd.testing.assert_frame_equal(
            step.candidates(3, Sampling()), trace.next_tokens(3), atol=1e-4
        )
        if options.get("temperature") == 0:
            assert step.point is None and step.probability == 1
            point = 0.0
        else:
            assert step.point == point
        assert table["id"][int((table["probability"].cumsum() <= point).sum())] == step.id
        drawn = trace.next_tokens(k=lm.config.vocab_size, **options).set_index("id").loc[step.id]
        assert (
            step.probability == pytest.approx(drawn["probability"], rel=1e-4)
            and step.probability > 0
        )
        own = trace.logits(-1).double().log_softmax(0)[step.id]
        assert math.log(step.model_probability) == pytest.approx(own.item(), abs=1e-4)
        ids.append(step.id)
        assert (step.token, step.text_so_far) == (lm.decode([step.id]), lm.decode(ids))


def test_greedy_is_transformers_greedy(lm):
    ids = torch.tensor([lm.encode(TEXT)])
    options = {"max_new_tokens": 40, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    out = makers.in_transformers(lm.model, lm.config).generate(ids, use_cache=True, **options)
    ours = [step.id for step in lm.generate(ids[0].tolist(), 40, temperature=0)]
    assert ours == out[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize(
    "options", [{"temperature": 0}, {"temperature": 1.3, "top_k": 50, "seed": 4}]
)
def test_with_and_without_the_cache_and_captured_are_the_same_tokens(lm, options):
    ids = torch.randint(0, 8000, (56,), generator=torch.Generator().manual_seed(2)).tolist()
    # a context of 64: the last are cropped
    plain = list(lm.generate(ids, 14, cache=False, **options))
    for kind in ({}, {"captured": True}, {"captured": True, "cache": False}):
        steps = list(lm.generate(ids, 14, **kind, **options))
        for step, other in zip(steps, plain, strict=True):
            assert (step.id, step.point, step.cropped) == (other.id, other.point, other.cropped)
            assert torch.allclose(step.logits, other.logits, atol=2e-4)
        if "captured" in kind:
            for n, step in enumerate(steps):
                seen = (ids + [s.id for s in steps[:n]])[-64:]
                assert [token.id for token in step.trace.tokens] == seen
                assert torch.equal(step.trace.logits(-1), step.logits)
                assert torch.allclose(step.trace["attn", 1], lm.trace(seen)["attn", 1], atol=1e-5)
    assert [step.cropped for step in plain][-6:] == [0, 1, 2, 3, 4, 5]


def test_a_token_is_read_once(lm, passes):
    ids = lm.encode(TEXT)
    list(lm.generate(ids, 4))
    list(lm.generate(ids, 3, captured=True))
    list(lm.generate(ids, 3, cache=False))
    list(module.generate_batch(lm, ids, 3, seeds=[1, 2]))
    n = len(ids)
    cached = [(1, n), (1, 1), (1, 1)]
    assert passes == [
        *cached,
        (1, 1),
        *cached,
        (1, n),
        (1, n + 1),
        (1, n + 2),
        (1, n),
        (2, 1),
        (2, 1),
    ]


@pytest.mark.parametrize("seeds", [[3], range(6)], ids=["one", "six"])
def test_a_batch_is_each_seed_by_itself_and_who_has_ended_leaves_it(lm, seeds):
    alone = [
        list(lm.generate(TEXT, 40, seed=seed, temperature=0.8, stop=["e", "th"])) for seed in seeds
    ]
    batch = list(module.generate_batch(lm, TEXT, 40, seeds, temperature=0.8, stop=["e", "th"]))
    assert len(batch) == max(map(len, alone)) and len(set(map(len, alone))) > len(seeds) // 6
    for row, steps in enumerate(alone):
        written = [found[row] for found in batch]
        for one, other in zip(written, steps, strict=False):
            assert (one.id, one.text_so_far) == (other.id, other.text_so_far)
            assert torch.allclose(one.logits, other.logits, atol=1e-4)
        assert written[len(steps) :] == [None] * (len(batch) - len(steps))


def test_a_stop_string_ends_it_wherever_its_letters_come_from(lm):
    free = list(lm.generate("The end. ", 30, seed=1))
    written = free[-1].text_so_far.removeprefix("The end. ")
    for start, length in ((0, 1), (5, 2), (11, 7), (20, 12)):  # most lie across several tokens
        stop = written[start : start + length]
        if "\ufffd" in stop:
            continue
        first = next(
            n for n, s in enumerate(free) if stop in s.text_so_far.removeprefix("The end. ")
        )
        for stops in (stop, ["\u2603", stop]):
            steps = list(lm.generate("The end. ", 30, seed=1, stop=stops))
            assert [s.id for s in steps] == [s.id for s in free[: first + 1]]
            assert [s.ended_by for s in steps] == [None] * first + [stop]


def test_what_the_prompt_says_does_not_stop_it(lm):
    assert len(list(lm.generate("so. so.", 5, seed=2, stop="so."))) == 5


def test_a_stop_in_the_middle_loses_nothing(lm):
    whole = list(lm.generate(TEXT, 9, seed=8))
    running = lm.generate(TEXT, 9, seed=8)
    first = list(itertools.islice(running, 4))
    assert first == whole[:4]
    assert list(running) == whole[4:], "it can be taken up again"
    left = lm.generate(TEXT, 9, seed=8)
    assert next(left) == whole[0]
    left.close()
    assert all("forward" not in block.att.__dict__ for block in lm.model.trf_blocks)
    ids = lm.encode(TEXT) + [step.id for step in first]
    again = module.steps(lm, ids, 5, Sampling(seed=8), skip=4)
    assert [(step.id, step.point) for step in again] == [
        (step.id, step.point) for step in whole[4:]
    ]


@pytest.mark.parametrize("half", [False, True])
def test_those_who_write_at_once_do_not_mix(half):
    lm = random_lm()
    texts = [f"{TEXT} {number}" for number in range(4)]
    if half:
        lm.model.bfloat16()

    def written(n, **options):
        return [step.id for step in lm.generate(texts[n], 12, seed=n, **options)]

    alone = [written(n) for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert (
            list(pool.map(lambda n: written(n, captured=not half and n % 2 == 0), range(4)))
            == alone
        )
    assert torch.backends.mkldnn.enabled, "what one of them switches off is on again"
    in_turn = zip(*(lm.generate(texts[n], 12, seed=n) for n in range(2)), strict=True)
    assert [(one.id, other.id) for one, other in in_turn] == [*zip(*alone[:2], strict=True)]


def test_nobody_looks_nothing_runs(lm, passes):
    steps = generate(lm, TEXT, 1000)
    assert not passes
    assert len(list(itertools.islice(steps, 3))) == 3 == len(passes)


def test_the_models_end_of_text_ends_it_and_a_typed_one_does_not(lm, monkeypatch):
    end = lm.tokenizer.encode_single_token("<|endoftext|>")
    wanted = iter([11, 12, end, 13])

    def forced(*_):
        return (
            torch.nn.functional.one_hot(torch.tensor([next(wanted)]), lm.config.vocab_size) * 100.0
        )

    monkeypatch.setattr(forward, "last_logits", forced)
    for special in (False, True):
        wanted = iter([11, 12, end, 13])
        steps = list(generate(lm, "so <|endoftext|> it", 9, seed=0, special_tokens=special))
        assert [step.id for step in steps] == [11, 12, end]
        assert [step.ended_by for step in steps] == [None, None, "<|endoftext|>"]


def test_llama_3s_end_of_text_ends_it(monkeypatch):
    lm = both("llama")[0]
    end = lm.tokenizer.encode_single_token("<|end_of_text|>")
    wanted = iter([300, end, 301])

    def forced(*_):
        logits = torch.zeros(1, lm.config.vocab_size)
        logits[0, next(wanted)] = 100.0
        return logits

    monkeypatch.setattr(forward, "last_logits", forced)
    steps = list(generate(lm, "so it", 9, seed=0))
    assert [step.id for step in steps] == [300, end]
    assert [step.ended_by for step in steps] == [None, "<|end_of_text|>"]


def test_special_tokens_are_read_only_where_switched_on(lm):
    text = "a<|endoftext|>b"
    for special in (False, True):
        (step,) = generate(lm, text, 1, special_tokens=special)
        assert torch.allclose(step.logits, lm.trace(lm.encode(text, special)).logits(-1), atol=1e-5)
    assert len(lm.encode(text, True)) == 3 < len(lm.encode(text))


def test_an_id_that_the_tokenizer_does_not_have_goes_by_its_number():
    lm = random_lm(vocab_size=8192 + 64)
    with torch.no_grad():  # a padded row that wins wherever it can
        lm.model.out_head.weight[8200] = (
            50 * lm.model.final_norm.shift / lm.model.final_norm.shift.norm()
        )
    first, second = generate(lm, TEXT, 2, temperature=0)
    assert (first.id, first.token) == (8200, "<id 8200>")
    assert first.text_so_far == TEXT + "<id 8200>"
    ids = [*lm.encode(TEXT), 8200]
    assert second.id == plain_logits(lm, ids).argmax().item()  # it goes on from the id itself


COUNTS = [-1, None, "3", 2.5, math.nan, True]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": ""}, "empty"),
        ({"text": "a\ud800"}, "at character 1"),
        ({"text": []}, "empty"),
        ({"text": [3, 99999]}, "token id 99999"),
        ({"temperature": -1}, "temperature is -1"),
        ({"stop": ["x", ""]}, "stop has ''"),
        ({"stop": [3]}, "stop has 3"),
        ({"stop": 3}, "stop is 3"),
        *(
            ({"max_new_tokens": n}, f"max_new_tokens is {n!r}; it must be a whole number of 0")
            for n in COUNTS
        ),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_step(lm, given, words):
    given = {"text": TEXT, "max_new_tokens": 3} | given
    with pytest.raises(ValueError, match=words):
        generate(lm, **given)
    with pytest.raises(ValueError, match=words):
        module.generate_batch(lm, seeds=[1], **given)


def test_ids_may_come_as_a_tensor_and_nothing_as_a_stop(lm):
    ids = lm.encode(TEXT)
    expected = [step.id for step in lm.generate(ids, 4, seed=1)]
    for given in (torch.tensor(ids), torch.tensor(ids).numpy(), tuple(ids)):
        assert [step.id for step in lm.generate(given, 4, seed=1, stop=None)] == expected
    assert ids == lm.encode(TEXT)  # it was left alone
    assert list(lm.generate(TEXT, 0)) == []


def test_candidates_are_those_it_was_drawn_from(lm):
    step = next(lm.generate(TEXT, 1, top_k=5, seed=1))
    table = step.candidates(8)
    assert len(table) == 5 and (table["probability"] > 0).all()
    assert table["probability"].sum() == pytest.approx(1)
    assert len(step.candidates(8, Sampling())) == 8 and len(step.candidates(3)) == 3
