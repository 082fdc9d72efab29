"""A random Llama, Qwen2 or Qwen3 with a tokenizer, as our LanguageModel and as transformers' own model."""

from functools import cache

import torch
from transformers import PreTrainedTokenizerFast

import gptviz
from tests import llamas
from tests.tokenizer import families

FAMILIES = ("llama", "qwen2", "qwen3")
TOKENIZERS = {"llama": "llama3", "qwen2": "qwen2", "qwen3": "qwen2"}
TEXT = "The cat sat on the mat, and the cat slept."


@cache
def both(family):
    """(ours, transformers') of the same weights; nothing may write into them."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=families.tokenizer_of(TOKENIZERS[family]))
    size = max(tokenizer.get_vocab().values()) + 1
    theirs = llamas.random_model(family, vocab_size=size)
    return gptviz.wrap(theirs, tokenizer, name=f"random {family}"), theirs


def passed(model, ids, module_name):
    """What a module of transformers' model is given and gives out for one text, (T, ...) each."""
    found = []
    module = model.get_submodule(module_name)
    handle = module.register_forward_hook(lambda _, given, out: found.extend((given[0], out)))
    try:
        with torch.no_grad():
            model(torch.tensor([ids]), use_cache=False)
    finally:
        handle.remove()
    given, out = found
    return given.detach()[0], out.detach()[0]
