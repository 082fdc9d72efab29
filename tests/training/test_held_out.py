"""Nats and bits on unseen text: every token once, every byte paid for."""

import math

import numpy as np
import pytest
import torch

from gptviz.tokenizer import get_encoding
from gptviz.training.corpus import Book
from gptviz.training.held_out import model_nats, score, score_book, together
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
    nats = model_nats(short, ids, stride, batch_size=2)
    assert nats.shape == (count - 1,)
    assert nats == pytest.approx(np.array(one_by_one(short, ids, starts)), abs=1e-4)
    assert np.array_equal(model_nats(short, ids.astype(np.uint16), stride, batch_size=2), nats)


@pytest.mark.parametrize("stride", [0, CONTEXT + 1])
def test_a_stride_that_would_skip_tokens_is_refused(short, stride):
    with pytest.raises(ValueError, match=f"stride is {stride}; with a context of {CONTEXT}"):
        model_nats(short, np.arange(5), stride)


def test_bits_per_byte_by_hand():
    found = score("x", tokens=4, bytes=16, nats={"guess": 8 * math.log(2)})
    assert found["bits_per_byte"] == {"guess": 0.5}  # 8 bits for 16 bytes
    assert found["nats_per_token"] == {"guess": pytest.approx(2 * math.log(2))}


def test_a_uniform_guess_costs_the_logarithm_of_the_vocabulary():
    encoding, book = get_encoding("mini"), Book("A", "B", 1900, 'She said: "naïve café, 你好"\n\nand went.')
    seen = []

    def guess(ids):
        seen.append(ids)
        return np.full(len(ids) - 1, math.log(8192))

    found = score_book(book, encoding, {"guess": guess})
    ids = encoding.encode_ordinary(book.text)
    assert seen[0].tolist() == [encoding.eot_token, *ids]  # one token of context that is not paid for
    assert found["tokens"] == len(ids) and found["bytes"] == len(book.text.encode())
    assert found["nats_per_token"]["guess"] == pytest.approx(math.log(8192))
    assert found["bits_per_byte"]["guess"] == pytest.approx(13 * len(ids) / len(book.text.encode()))
    some = score_book(book, encoding, {"guess": guess}, limit=3)
    assert (some["tokens"], some["bytes"]) == (3, len(encoding.decode_bytes(ids[:3])))


def test_together_weighs_by_length():
    both = together([score("a", 1, 10, {"m": 5.0}), score("b", 3, 10, {"m": 3.0})])
    assert both["nats_per_token"]["m"] == pytest.approx(2) and (both["tokens"], both["bytes"]) == (4, 20)
