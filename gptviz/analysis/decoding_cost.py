"""What a written token costs with and without the cache: multiply-adds and bytes, from the config alone, and
the time that it takes here.

Counted are the matrix products, where most of the work is. Not counted are additions, softmax, norms, the
feed-forward's nonlinearity and RoPE, nor the look-up of embeddings. Half of the products of queries and keys
are masked afterwards: the book's lines make them all the same, and so does this count.

Shapes in comments: L blocks, T tokens, D emb_dim, H heads, K groups of them, d head_dim, F hidden_dim, V
vocabulary.
"""

import time
from collections.abc import Iterator, Sequence

import pandas as pd
import torch

from gptviz.engine import forward
from gptviz.engine.architecture import architecture_of
from gptviz.engine.kinds import Config
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.past import Past, past_bytes
from gptviz.engine.undisturbed import undisturbed


def work(config: Config, new: int, past: int = 0, logits: int = 1) -> int:
    """The multiply-adds of a pass over `new` tokens, where keys and values of `past` tokens are known.

    A multiplication and the addition of its result count as one.
    `logits` is at how many positions the output head is put to work: at one to write on, at all of
    them in the book's `model(idx)`. Raises ValueError for numbers that no pass has.
    """
    if new < 1 or past < 0 or not 0 <= logits <= new:
        raise ValueError(
            f"new is {new}, past {past}, logits {logits}; new must be at least 1, past at least 0 and logits "
            "at most as many as new"
        )
    width = config.emb_dim
    layers = config.n_layers
    heads = config.n_heads * config.head_dim  # in GPT-2 as wide as the stream
    groups = config.n_kv_groups * config.head_dim
    # each token: W_query and out_proj (D, H d), W_key and W_value (D, K d)
    projections = 2 * new * width * (heads + groups)
    # each token with each: query times key, weight times value
    attention = 2 * new * (past + new) * heads
    # each token: in GPT-2 (D, 4D) and (4D, D), in Llama three matrices
    matrices = len(architecture_of(config).hidden) + 1
    feed_forward = matrices * new * width * config.hidden_dim
    return layers * (projections + attention + feed_forward) + logits * width * config.vocab_size


def steps(
    config: Config, prompt: int, written: int, number_bytes: int = 4, cache: bool = True
) -> pd.DataFrame:
    """A table of what each written token costs after a prompt of `prompt` tokens: one row per token.

    Columns: step (from 1), tokens (that the model reads), cached (of which keys and values are known),
    with_cache, without_cache (both make the logits of one position), all_logits (the seeds' loop, which makes
    those of all positions and uses the last), cache_bytes (after the step). The first token is written by
    the pass over the prompt, for which nothing is cached. Where the context is full, it slides: every
    token stands at another position, no key and no value is what it was, and nothing is cached. No `cache`:
    of a model with edits that depend on the whole text (`LanguageModel.is_causal`) nothing ever is.
    """
    if prompt < 1 or written < 0:
        raise ValueError(
            f"prompt is {prompt}, written {written}; there is at least one token to write after"
        )
    rows = []
    for step in range(1, written + 1):
        known = prompt + step - 1
        tokens = min(known, config.context_length)
        cached = 0
        if cache and step > 1 and known <= config.context_length:
            cached = known - 1
        with_cache, without_cache, all_logits = (
            work(config, *counts)
            for counts in ((tokens - cached, cached), (tokens,), (tokens, 0, tokens))
        )
        cache_bytes = past_bytes(config, tokens if cache else 0, bytes_a_number=number_bytes)
        rows.append((step, tokens, cached, with_cache, without_cache, all_logits, cache_bytes))
    columns = [
        "step",
        "tokens",
        "cached",
        "with_cache",
        "without_cache",
        "all_logits",
        "cache_bytes",
    ]
    return pd.DataFrame(rows, columns=columns)


@undisturbed
def written_again(
    lm: LanguageModel, prompt: Sequence[int], new: Sequence[int], cached: bool, first: int = 0
) -> Iterator[tuple[float, torch.Tensor]]:
    """Yield for each step from `first` on: milliseconds of the pass, and the logits (V,) that give its token.

    The text is the one that was written, whatever these logits say. Timed is the pass alone, after the wait
    for others' passes; a first pass that is not timed makes the kernels ready. Where the context is full it
    slides, or an edit of the model depends on the whole text, no cache is of use: both ways are then alike.
    """
    ids = [*prompt, *new]
    context = lm.config.context_length
    past: Past | None = None
    for step in range(first, len(new)):
        known = ids[: len(prompt) + step]
        if not cached or not lm.is_causal or len(known) > context:
            past = None
            read = known[-context:]
        elif past is None:
            past = Past(lm.model, room=min(len(ids), context))
            read = known
            if step:  # what the steps before this one would have left
                lm.next_logits(known[:-1], past)
                read = known[-1:]
        else:
            read = known[-1:]
        if step == first:
            lm.next_logits(read, None if past is None else past.cut(len(past)))
        with forward.running(lm.model):
            began = time.perf_counter()
            logits = lm.next_logits(read, past)
            took = time.perf_counter() - began
        yield 1000 * took, logits
