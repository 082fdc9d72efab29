"""The card's measurements: nats and bits on unseen text, every token once and every byte paid for; head
scores and copying against plain loops.
"""

import math

import numpy as np
import pytest
import torch

from gptviz.files.disk_cache import ASSETS
from gptviz.tokenizer import get_encoding
from gptviz.training import evaluate
from gptviz.training.corpus import Book
from tests.conftest import random_lm

CONTEXT = 12


@pytest.fixture(scope="module")
def short():
    return random_lm(context_length=CONTEXT).model


def one_by_one(model, ids, starts):
    """-log P of ids[i] given ids[start:i], a forward pass a token; `starts` says from where each is seen."""
    nats = []
    for i, start in enumerate(starts, start=1):
        with torch.no_grad():
            logits = model(torch.tensor([ids[start:i].tolist()]))[0, -1]
        nats.append(-torch.log_softmax(logits.double(), 0)[ids[i]].item())
    return nats


@pytest.mark.parametrize("count", [2, 7, CONTEXT, CONTEXT + 1, CONTEXT + 2, 2 * CONTEXT + 1, 45])
@pytest.mark.parametrize("stride", [CONTEXT, 5, 1])
def test_each_token_once_from_the_window_that_first_holds_it(short, count, stride):
    ids = np.random.default_rng(count).integers(0, 8192, count)
    # target i is input i - 1 of a window; the first window start s = 0, stride, ... with i <= s + CONTEXT
    starts = [max(0, math.ceil((i - CONTEXT) / stride)) * stride for i in range(1, count)]
    nats = evaluate.model_nats(short, ids, stride, batch_size=2)
    assert nats.shape == (count - 1,)
    assert nats == pytest.approx(np.array(one_by_one(short, ids, starts)), abs=1e-4)
    assert np.array_equal(
        evaluate.model_nats(short, ids.astype(np.uint16), stride, batch_size=2), nats
    )


@pytest.mark.parametrize("stride", [0, CONTEXT + 1])
def test_a_stride_that_would_skip_tokens_is_refused(short, stride):
    with pytest.raises(ValueError, match=f"stride is {stride}; with a context of {CONTEXT}"):
        evaluate.model_nats(short, np.arange(5), stride)


def test_bits_per_byte_by_hand():
    found = evaluate.score("x", tokens=4, bytes=16, nats={"guess": 8 * math.log(2)})
    assert found["bits_per_byte"] == {"guess": 0.5}  # 8 bits for 16 bytes
    assert found["nats_per_token"] == {"guess": pytest.approx(2 * math.log(2))}


def test_a_uniform_guess_costs_the_logarithm_of_the_vocabulary():
    encoding = get_encoding("mini")
    book = Book("A", "B", 1900, 'She said: "naïve café, 你好"\n\nand went.')
    seen = []

    def guess(ids):
        seen.append(ids)
        return np.full(len(ids) - 1, math.log(8192))

    found = evaluate.score_book(book, encoding, {"guess": guess})
    ids = encoding.encode_ordinary(book.text)
    # one token of context that is not paid for
    assert seen[0].tolist() == [encoding.eot_token, *ids]
    assert found["tokens"] == len(ids) and found["bytes"] == len(book.text.encode())
    assert found["nats_per_token"]["guess"] == pytest.approx(math.log(8192))
    assert found["bits_per_byte"]["guess"] == pytest.approx(13 * len(ids) / len(book.text.encode()))
    some = evaluate.score_book(book, encoding, {"guess": guess}, limit=3)
    assert (some["tokens"], some["bytes"]) == (3, len(encoding.decode_bytes(ids[:3])))


def test_together_weighs_by_length():
    both = evaluate.together(
        [evaluate.score("a", 1, 10, {"m": 5.0}), evaluate.score("b", 3, 10, {"m": 3.0})]
    )
    assert both["nats_per_token"]["m"] == pytest.approx(2) and (both["tokens"], both["bytes"]) == (
        4,
        20,
    )


# ---- what the model can do ----


def test_repeated_tokens_are_random_ordinary_and_twice_the_same(lm):
    ids = evaluate.repeated_tokens(lm, 2000, seed=0)
    assert len(ids) == 4000 and ids[:2000] == ids[2000:]
    assert min(ids) >= 0 and max(ids) < lm.config.vocab_size - 1  # never <|endoftext|>
    # 2000 draws from 8191: about 1774 different ones, standard deviation 14
    assert 1700 < len(set(ids)) < 1850
    assert (
        ids
        == evaluate.repeated_tokens(lm, 2000, seed=0)
        != evaluate.repeated_tokens(lm, 2000, seed=1)
    )


def test_head_scores_are_means_over_periods_and_seeds(lm):
    scores = evaluate.head_scores(lm, periods=(5, 9), seeds=(0, 1))
    heads = [(score.block, score.head) for score in scores.itertuples()]
    assert heads == [(b, h) for b in range(2) for h in range(4)]
    chosen = scores.iloc[6]  # block 1, head 2
    previous = []
    induction = []
    for period in (5, 9):
        for seed in (0, 1):
            attn = lm.trace(evaluate.repeated_tokens(lm, period, seed))["attn", 1][2].numpy()
            previous.append(np.mean([attn[q, q - 1] for q in range(1, 2 * period)]))
            induction.append(np.mean([attn[q, q - period + 1] for q in range(period, 2 * period)]))
    assert chosen.previous_token == pytest.approx(np.mean(previous), abs=1e-6)
    assert chosen.induction == pytest.approx(np.mean(induction), abs=1e-6)


def test_copying_loss_of_each_half(lm):
    loss = evaluate.copying_losses(lm, periods=(6,), seeds=(3,)).iloc[0]
    ids = torch.tensor([evaluate.repeated_tokens(lm, 6, 3)])
    with torch.no_grad():
        rows = torch.log_softmax(lm.model(ids)[0], dim=-1)
    nats = [-rows[i - 1, ids[0, i]].item() for i in range(1, 12)]  # of tokens 1 to 11
    assert loss.first_half == pytest.approx(np.mean(nats[:5]), rel=1e-4)  # tokens 1 to 5
    assert loss.second_half == pytest.approx(np.mean(nats[5:]), rel=1e-4)  # tokens 6 to 11
    assert loss["ratio"] == loss.second_half / loss.first_half
    with pytest.raises(ValueError, match=r"give lm\.plain"):
        evaluate.copying_losses(lm.edited("z.0.0=zero"))


def test_samples_are_the_prompt_continued_and_the_same_again(lm):
    first = evaluate.samples(lm, "Once upon a time", tokens=5, seeds=(1, 2))
    assert [sample["seed"] for sample in first] == [1, 2]
    assert all(sample["text"].startswith("Once upon a time") for sample in first)
    assert first[0]["text"] != first[1]["text"]
    assert first == evaluate.samples(lm, "Once upon a time", tokens=5, seeds=(1, 2))


def test_footprint_counts_bytes_and_parameters(mini):
    folder = ASSETS / "mini"
    size = evaluate.footprint(folder)
    assert size["bytes"] == sum(len(path.read_bytes()) for path in folder.iterdir())
    config = mini.config
    # 4 + 8 matrices; biases 1 + 4 + 1, norms 2 x 2
    per_block = 12 * config.emb_dim**2 + 10 * config.emb_dim
    tables = (config.vocab_size + config.context_length) * config.emb_dim
    assert size["parameters"] == config.n_layers * per_block + tables + 2 * config.emb_dim
    assert size["load_seconds"] > 0
