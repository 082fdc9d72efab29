"""A tokenizer that is in memory, of transformers or tokenizers, as a Vocabulary."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gptviz.tokenizer import encode
from gptviz.tokenizer.added_files import Beside
from gptviz.tokenizer.chat import chat_of
from gptviz.tokenizer.files import of_json
from gptviz.tokenizer.settings import refusal
from gptviz.tokenizer.vocabulary import Vocabulary, fitted

# What is read both ways before a tokenizer is taken: each cuts a text at another of its keys.
TRIED = (
    "the",
    " the",
    "  The CAT sat;\n\n\tit's 12345 ",
    "naïve cafe\u0301 你好 🙂",
    "x = [i for i in f(1)]",
    "word " * 300,
)
ADDED_TRIED = 20  # added tokens that are tried in a text

KINDS = "a tiktoken.Encoding, a fast tokenizer of transformers or a Tokenizer of tokenizers"


def read_object(given: Any) -> Vocabulary:
    """The vocabulary of a fast tokenizer of transformers, or of a Tokenizer of tokenizers.

    Raises ValueError for another object, for a setting that cannot be followed, and where the ids of a few
    texts differ from the object's own.
    """
    name = type(given).__name__
    fast = getattr(given, "backend_tokenizer", given)
    if isinstance(given, type) or not all(hasattr(fast, needed) for needed in ("to_str", "encode")):
        raise ValueError(
            f"{given!r:.80} is no tokenizer that can be read; give {KINDS}, an encoding's name or a file. "
            "A slow tokenizer of transformers has no tokenizer.json: give the fast one of AutoTokenizer"
        )
    if fast is given:
        _check_alone(name, fast)
    if getattr(given, "split_special_tokens", False) or getattr(
        fast, "encode_special_tokens", False
    ):
        instead = "Set it to False: here a switch does that, special_tokens=False"
        raise refusal(name, "split_special_tokens", True, "makes special tokens text", instead)
    names = getattr(given, "special_tokens_map", {})
    chat = chat_of(getattr(given, "chat_template", None), names)
    beside = Beside(Path(name), anew=False, unnamed=(), chat=chat)
    vocabulary = of_json(json.loads(fast.to_str()), Path(name), beside)
    _check_ids(name, vocabulary, _encode_of(given, fast))
    return vocabulary


def _check_alone(name: str, tokenizer: Any) -> None:
    """Refuse truncation and padding, which a Tokenizer does by itself, and transformers only on request."""
    truncation = getattr(tokenizer, "truncation", None)
    padding = getattr(tokenizer, "padding", None)
    if truncation is not None:
        instead = "Call its no_truncation(): here a text ends where the model's context does"
        raise refusal(name, "truncation", truncation, "cuts long texts off", instead)
    if padding is not None and (padding.get("length") or padding.get("pad_to_multiple_of")):
        raise refusal(name, "padding", padding, "fills short texts up", "Call its no_padding()")


def _encode_of(tokenizer: Any, fast: Any) -> Callable[[str], list[int]]:
    if fast is tokenizer:
        return lambda text: list(tokenizer.encode(text).ids)
    return lambda text: list(tokenizer(text)["input_ids"])


def _check_ids(name: str, vocabulary: Vocabulary, theirs: Callable[[str], list[int]]) -> None:
    """Raise ValueError where the tokenizer's own ids of a few texts are others."""
    encoding = fitted(vocabulary, name, vocabulary.size)
    added = [f"the {token}s{token} {token}" for token in list(vocabulary.special)[:ADDED_TRIED]]
    for text in (*TRIED, *added):
        our_ids = encode(encoding, text, special_tokens=True, begin=True)
        if max(our_ids, default=0) >= vocabulary.size:  # a character that it does not have
            continue
        try:
            their_ids = theirs(text)
        except Exception as error:  # of somebody's own class, whatever it is
            raise ValueError(
                f"{name} cannot encode {text!r:.40}: {type(error).__name__} {error}"
            ) from error
        if their_ids != our_ids:
            raise ValueError(
                f"{name} gives {text!r:.40} the ids {their_ids[:8]}, and by its vocabulary and merges they "
                f"are {our_ids[:8]}: it does more than can be followed here. Give a tokenizer without that"
            )
