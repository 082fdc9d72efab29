"""`gptviz.book`: the seeds' own names, with their arguments, and the numbers that they print."""

import inspect
import re
import string

import numpy as np
import pytest
import tiktoken
import torch
import torch.nn.functional as F
from hypothesis import given, strategies as st
from torch import nn

import gptviz
from gptviz import book
from gptviz.lessons.sentences import SENTENCES
from gptviz.lessons.windows import VERDICT
from gptviz.tokenizer import get_encoding
from tests.lessons.test_attention import LINEAR_789, TWO_HEADS_123, printed
from tests.lessons.test_windows import STRIDE_1, STRIDE_4, book_windows

INPUTS = torch.tensor(SENTENCES["Your journey starts with one step"].vectors)
BATCH = torch.stack((INPUTS, INPUTS), dim=0)

# as the seeds write them down
SIGNATURES = {
    "GPTDatasetV1": ["txt", "tokenizer", "max_length", "stride"],
    "create_dataloader_v1": [
        "txt", "batch_size=4", "max_length=256", "stride=128", "shuffle=True", "drop_last=True",
        "num_workers=0",
    ],
    "SelfAttention_v2": ["d_in", "d_out", "qkv_bias=False"],
    "CausalAttention": ["d_in", "d_out", "context_length", "dropout", "qkv_bias=False"],
    "MultiHeadAttention": ["d_in", "d_out", "context_length", "dropout", "num_heads", "qkv_bias=False"],
    "LayerNorm": ["emb_dim"],
    "GELU": [],
    "FeedForward": ["cfg"],
    "TransformerBlock": ["cfg"],
    "GPTModel": ["cfg"],
    "generate_text_simple": ["model", "idx", "max_new_tokens", "context_size"],
    "estimate_loss": ["model", "eval_iters=200"],
}  # fmt: skip


def test_every_name_of_the_seeds_takes_what_it_takes_there():
    """In the seeds' order. What we have beyond that comes behind it, and need not be given."""
    for name, asked in SIGNATURES.items():
        ours = list(inspect.signature(getattr(book, name)).parameters.values())
        ours = [p for p in ours if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        written = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in ours]
        assert written[: len(asked)] == asked, name
        beyond = [p.name for p in ours[len(asked) :] if p.default is p.empty]
        assert beyond == (["get_batch"] if name == "estimate_loss" else []), name
        assert name in book.__all__


@pytest.mark.parametrize(("stride", "expected"), [(1, STRIDE_1), (4, STRIDE_4)])
def test_the_lines_of_the_data_loader_run_and_print_the_seeds_batches(stride, expected):
    dataloader = book.create_dataloader_v1(
        VERDICT, batch_size=8, max_length=4, stride=stride, shuffle=False
    )
    data_iter = iter(dataloader)
    first_batch = next(data_iter)
    assert [part.tolist() for part in first_batch] == expected


@given(words=st.lists(st.sampled_from(["a cat", " sat.", "\n", "<|endoftext|>", "é"]), max_size=30),
       length=st.integers(1, 9), stride=st.integers(1, 9))  # fmt: skip
def test_the_dataset_is_the_books(words, length, stride):
    text = "".join(words)
    tokenizer = get_encoding("gpt2")
    dataset = book.GPTDatasetV1(text, tokenizer, length, stride)
    ids = tokenizer.encode(text, allowed_special={"<|endoftext|>"})
    pairs = book_windows(ids, length, stride)
    assert [(x.tolist(), y.tolist()) for x, y in (dataset[i] for i in range(len(dataset)))] == pairs
    assert [x.tolist() for x in dataset.input_ids] == [x for x, _ in pairs]
    assert [y.tolist() for y in dataset.target_ids] == [y for _, y in pairs]


def test_a_loader_takes_another_tokenizer_and_the_books_defaults():
    loader = book.create_dataloader_v1(
        "the cat sat on the mat " * 300, tokenizer=get_encoding("mini")
    )
    assert loader.batch_size == 4 and loader.drop_last and loader.dataset.max_length == 256
    inputs, targets = next(iter(loader))
    assert inputs.shape == targets.shape == (4, 256) and torch.equal(inputs[:, 1:], targets[:, :-1])
    with pytest.raises(ValueError, match="max_length is 0 and stride 1; both must be at least 1"):
        book.create_dataloader_v1("text", max_length=0, stride=1)


def test_self_attention_as_the_book_prints_it():
    torch.manual_seed(789)
    sa_v2 = book.SelfAttention_v2(3, 2)
    printed(sa_v2(INPUTS).detach(), LINEAR_789)


def test_causal_attention_as_the_book_prints_it():
    torch.manual_seed(123)
    ca = book.CausalAttention(3, 2, BATCH.shape[1], 0.0)
    context_vecs = ca(BATCH).detach()
    assert context_vecs.shape == (2, 6, 2)
    for one in context_vecs:
        printed(one, [row[:2] for row in TWO_HEADS_123])
    # a shorter text is masked like the beginning of a longer one
    assert torch.equal(ca(BATCH[:, :4]), ca(BATCH)[:, :4])


def test_words_by_their_ids():
    """The seeds' sentence; the ids are places in the sorted vocabulary, and not the made-up ones there."""
    words = sorted({"Hello", ",", "world", "!"})
    vocab = {word: i for i, word in enumerate([*words, "[UNK]"])}
    tokenizer = book.SimpleTokenizerV2(vocab)
    assert tokenizer.encode("Hello, world!") == [2, 1, 3, 0]
    assert tokenizer.encode("Bye, world!") == [4, 1, 3, 0]
    assert tokenizer.decode([4, 1, 3, 0]) == "[UNK], world!"
    first = book.SimpleTokenizerV1(vocab)
    assert (
        first.encode("Hello, world!") == [2, 1, 3, 0]
        and first.decode([2, 1, 3, 0]) == "Hello, world!"
    )
    with pytest.raises(KeyError, match="Bye"):
        first.encode("Bye, world!")
    # the book's own name for it comes first
    named = book.SimpleTokenizerV2({"a": 0, "<|unk|>": 1, "[UNK]": 2})
    assert named.encode("a b") == [0, 1]
    with pytest.raises(
        ValueError, match=re.escape("add '<|unk|>' or '[UNK]', or use SimpleTokenizerV1")
    ):
        book.SimpleTokenizerV2({"a": 0})


def test_the_books_greedy_continuation():
    """Section 4.7, with the lines of the seeds."""
    torch.manual_seed(123)
    model = book.GPTModel(book.GPT_CONFIG_124M)
    tokenizer = get_encoding("gpt2")
    encoded_tensor = torch.tensor(tokenizer.encode("Hello, I am")).unsqueeze(0)
    model.eval()
    out = book.generate_text_simple(
        model=model,
        idx=encoded_tensor,
        max_new_tokens=6,
        context_size=book.GPT_CONFIG_124M["context_length"],
    )
    assert out.tolist() == [[15496, 11, 314, 716, 27018, 24086, 47843, 30961, 42348, 7267]]
    assert len(out[0]) == 10
    assert tokenizer.decode(out[0].tolist()) == "Hello, I am Featureiman Byeswickattribute argue"


def test_the_greedy_loop_takes_the_largest_logit_of_every_row_of_the_batch(lm):
    idx = torch.randint(0, lm.config.vocab_size, (3, 5), generator=torch.Generator().manual_seed(0))
    context = 6  # shorter than what is written: the text is cropped
    out = book.generate_text_simple(lm.model, idx, max_new_tokens=4, context_size=context)
    assert out.shape == (3, 9)
    for row in out.tolist():
        for end in range(5, 9):
            with torch.no_grad():
                logits = lm.model(torch.tensor([row[max(0, end - context) : end]]))
            assert row[end] == logits[0, -1].argmax().item()


# ---- the notebook ----


class LanguageModel(nn.Module):
    """The notebook's first model, word for word: logits and loss."""

    def __init__(self, vocab_size):
        super().__init__()
        self.emb_table = nn.Embedding(vocab_size, vocab_size)
        self.dropout = nn.Dropout(0.5)  # not the notebook's: to see that it is off

    def forward(self, x, targets=None):
        logits = self.dropout(self.emb_table(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def test_get_batch_is_the_notebooks():
    data = torch.arange(100, 200)
    get_batch = book.batches_of(data, batch_size=4, ctx_len=8, held_out=0.2)
    torch.manual_seed(5)
    x, y = get_batch()
    torch.manual_seed(5)
    idxs = torch.randint(len(data[:80]) - 8, (4,))
    assert torch.equal(x, torch.stack([data[i : i + 8] for i in idxs])) and torch.equal(y, x + 1)
    seen = torch.cat([torch.cat(get_batch("val")) for _ in range(50)])
    assert (seen.min(), seen.max()) == (180, 199)
    with pytest.raises(ValueError, match='the split is \'test\'; it must be "train" or "val"'):
        get_batch("test")
    with pytest.raises(ValueError, match='"val" has 8 ids; a window of 8 takes at least 9'):
        book.batches_of(data, 4, 8, held_out=0.08)


@pytest.mark.parametrize("returns", ["loss", "logits"])
def test_estimate_loss_is_the_mean_over_its_batches(returns, lm):
    data = torch.randint(0, 60, (500,), generator=torch.Generator().manual_seed(1))
    get_batch = book.batches_of(data, 4, 8)
    torch.manual_seed(2)
    model = LanguageModel(lm.config.vocab_size) if returns == "loss" else lm.model
    model.train(returns == "loss")
    torch.manual_seed(3)
    losses = book.estimate_loss(model, 5, get_batch=get_batch)
    assert model.training == (returns == "loss")  # as it was

    torch.manual_seed(3)
    model.eval()
    for split in ("train", "val"):
        every = []
        for _ in range(5):
            X, Y = get_batch(split)
            logits = model(X)[0] if returns == "loss" else model(X)
            log_p = logits.detach().double().log_softmax(-1).gather(2, Y[:, :, None])  # (b, T, 1)
            every.append(-float(log_p.mean()))
        assert f"{losses[split]:.4f}" and float(losses[split]) == pytest.approx(
            np.mean(every), rel=1e-5
        )


def test_nothing_is_fetched_for_gpt2s_tokenizer(monkeypatch):
    """The book asks tiktoken, which downloads; a class may have no network."""
    monkeypatch.setattr(
        tiktoken, "get_encoding", lambda name: pytest.fail(f"tiktoken was asked for {name}")
    )
    assert len(book.create_dataloader_v1(string.ascii_letters * 40, max_length=8, stride=8)) > 0
    assert gptviz.GPTModel is book.GPTModel
