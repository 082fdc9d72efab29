"""Hugging Face's tokenizer files as a Vocabulary: tokenizer.json, or vocab.json with merges.txt.

Only what is GPT-2's kind of tokenizer can become a tiktoken.Encoding: byte-level BPE with GPT-2's
regex. tiktoken merges by id; their files list the merges apart. `_check_merges` proves for each
token that the two mean the same.
"""

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from gptviz.tokenizer import END_OF_TEXT, GPT2_PATTERN
from gptviz.tokenizer.vocabulary import Vocabulary, is_gpt2

TOKENIZER_JSON, VOCAB_JSON, MERGES_TXT = "tokenizer.json", "vocab.json", "merges.txt"


def read_folder(folder: Path) -> Vocabulary | None:
    """The folder's tokenizer, None where it has none. Raises ValueError if it is not GPT-2's kind."""
    if (folder / TOKENIZER_JSON).is_file():
        return read_tokenizer_json(folder / TOKENIZER_JSON)
    if (folder / VOCAB_JSON).is_file() and (folder / MERGES_TXT).is_file():
        return read_vocab_and_merges(folder / VOCAB_JSON, folder / MERGES_TXT)
    return None


def read_tokenizer_json(path: Path) -> Vocabulary:
    """A tokenizer.json of the `tokenizers` library. Added tokens, special or not, become special tokens."""
    whole = _read_json(path)
    model = whole.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        raise ValueError(f'{path}: "model" must be of the type "BPE"')
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(key):
            raise ValueError(f'{path}: "model"."{key}" is {model[key]!r}; GPT-2\'s tokenizers have none')
    if whole.get("normalizer") is not None:
        raise ValueError(f'{path}: "normalizer" changes the text; GPT-2\'s tokenizers have none')
    _check_pre_tokenizer(path, whole.get("pre_tokenizer"))
    try:
        merges = [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in model["merges"]]
        added = {token["content"]: token["id"] for token in whole.get("added_tokens") or []}
        return _vocabulary(path, dict(model["vocab"]), merges, added)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is not like a tokenizer.json: {type(error).__name__} {error}") from None


def read_vocab_and_merges(vocab: Path, merges: Path) -> Vocabulary:
    """OpenAI's two files, as older folders have them. `<|endoftext|>` is special if it is there."""
    try:
        lines = merges.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ValueError(f"{merges} cannot be read: {error}") from None
    pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    tokens = _read_json(vocab)
    added = {END_OF_TEXT: tokens[END_OF_TEXT]} if END_OF_TEXT in tokens else {}
    return _vocabulary(vocab, tokens, pairs, added)


def _vocabulary(
    path: Path, tokens: dict[str, Any], merges: list[tuple[str, ...]], added: dict[str, Any]
) -> Vocabulary:
    """Their spelling to bytes; checked."""
    for token, id in [*tokens.items(), *added.items()]:
        if type(token) is not str or type(id) is not int or id < 0:
            raise ValueError(f"{path}: {token!r} has the id {id!r}; expected a whole number from 0 on")
    if not tokens:
        raise ValueError(f"{path}: the vocabulary is empty")
    if len(merges) > len(tokens):  # each makes a token of its own
        raise ValueError(f"{path}: {len(merges):,} merges are more than its {len(tokens):,} tokens")
    try:
        ranks = {bytes_of(token): id for token, id in tokens.items() if token not in added}
        pairs = [(bytes_of(left), bytes_of(right)) for left, right in merges]
    except KeyError as error:
        raise ValueError(f"{path}: {error.args[0]!r} is not a byte in GPT-2's spelling") from None
    except ValueError:
        raise ValueError(f"{path}: every merge must be of two tokens") from None
    ids = [*ranks.values(), *added.values()]
    if len(set(ids)) != len(ids):
        raise ValueError(f"{path}: two tokens have the same id")
    vocabulary = Vocabulary(GPT2_PATTERN, ranks, added)
    if not is_gpt2(vocabulary):
        _check_merges(path, ranks, pairs)
    return vocabulary


def _check_pre_tokenizer(path: Path, found: Any) -> None:
    says = found if isinstance(found, dict) else {}
    if says.get("type") != "ByteLevel" or says.get("use_regex", True) is not True:
        kind = says.get("type", found)
        raise ValueError(f'{path}: "pre_tokenizer" is {kind!r}; only GPT-2\'s "ByteLevel" regex can be read')
    if says.get("add_prefix_space", True):
        raise ValueError(f'{path}: "add_prefix_space" is on; GPT-2\'s tokenizers add nothing to the text')


def _check_merges(path: Path, ranks: dict[bytes, int], merges: list[tuple[bytes, bytes]]) -> None:
    """Merging by id gives the same tokens as merging by the list, for every text.

    It does when merges are listed in the order of their results' ids, when each result is younger than
    its parts, and when each token, merged by ids from its own bytes, comes about as the list says: a
    pair of neighbours that ids merge and the list does not would be such a token.
    """
    results = {left + right: (left, right) for left, right in merges}
    order = [ranks.get(left + right, -1) for left, right in merges]
    if order != sorted(order) or (order and order[0] < 0):
        raise ValueError(f"{path}: the merges are not in the order of their tokens' ids")
    for token, id in ranks.items():
        if len(token) == 1:
            continue
        parts = results.get(token)
        if parts is None or any(ranks.get(part, id) >= id for part in parts):
            raise ValueError(f"{path}: no merge of older tokens makes {token!r}")
        if _last_merge(ranks, token, id) != parts:
            raise ValueError(f"{path}: {token!r} is a merge of {parts[0]!r} and {parts[1]!r}, out of turn")


def _last_merge(ranks: dict[bytes, int], token: bytes, id: int) -> tuple[bytes, ...]:
    """The parts of a token after all merges older than the token itself."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while True:
        candidates = [(ranks.get(a + b, id), i) for i, (a, b) in enumerate(pairwise(parts))]
        rank, place = min(candidates, default=(id, 0))
        if rank >= id:
            return tuple(parts)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


@cache
def byte_of_unicode() -> dict[str, int]:
    """Return GPT-2's stand-in character for each byte, read back: `Ġ` is a space (Radford et al., 2019).

    Bytes that print stand for themselves, the others for code points from 256 on, in order, so that a
    vocabulary can be written as text.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (value for value in range(256) if value not in printable)
    return {chr(value): value for value in printable} | {chr(256 + n): v for n, v in enumerate(others)}


def bytes_of(token: str) -> bytes:
    return bytes(map(byte_of_unicode().__getitem__, token))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(whole, dict):
        raise ValueError(f"{path} holds a {type(whole).__name__}; expected a JSON object")
    return whole
