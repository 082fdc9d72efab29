"""Hugging Face's tokenizer files as a Vocabulary: tokenizer.json, or vocab.json with merges.txt.

Only what is GPT-2's kind of tokenizer can become a tiktoken.Encoding: byte-level BPE with GPT-2's
regex. tiktoken merges by id; their files list the merges apart. `_check_merges` proves for each
token that the two mean the same. Every key that changes ids is followed or refused: `settings` has them.
"""

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from gptviz.tokenizer import GPT2_PATTERN
from gptviz.tokenizer.added_files import BESIDE, AddedTokens, Beside, read_beside, with_ids
from gptviz.tokenizer.settings import (
    ANEW,
    BYTE_LEVEL,
    MODEL,
    TOKENIZER_CLASS,
    check,
    check_known,
    refused_part,
    shown,
)
from gptviz.tokenizer.vocabulary import Vocabulary, is_gpt2

TOKENIZER_JSON = "tokenizer.json"
VOCAB_JSON = "vocab.json"
MERGES_TXT = "merges.txt"

# Files of other tokenizers that lie in folders of GPT-2s.
OTHERS = {
    "spiece.model": "SentencePiece",
    "sentencepiece.bpe.model": "SentencePiece",
    "sentencepiece.model": "SentencePiece",
    "spm.model": "SentencePiece",
    "tokenizer.model": "SentencePiece",
    "vocab.txt": "a list of words or characters, as BERT's tokenizer has one",
    "tekken.json": "Mistral's tokenizer",
}
# the keys of tokenizer.json that have functions of their own, and those that leave ids as they are
WHOLE = {"model", "added_tokens", "normalizer", "pre_tokenizer", "post_processor"}
WITHOUT_EFFECT = {"version", "truncation", "padding", "decoder"}


def read_folder(folder: Path) -> Vocabulary | None:
    """The folder's tokenizer, None where it has none. Raises ValueError if it is not GPT-2's kind."""
    if (folder / TOKENIZER_JSON).is_file():
        return read_tokenizer_json(folder / TOKENIZER_JSON)
    if (folder / VOCAB_JSON).is_file() and (folder / MERGES_TXT).is_file():
        return read_vocab_and_merges(folder / VOCAB_JSON, folder / MERGES_TXT)
    for name, missing in ((VOCAB_JSON, MERGES_TXT), (MERGES_TXT, VOCAB_JSON)):
        if (folder / name).is_file():
            raise ValueError(
                f"{folder} has {name} and no {missing}: put the one that belongs to it there, too"
            )
    for name, kind in OTHERS.items():
        if (folder / name).is_file():
            raise ValueError(
                f"{folder} brings {name} ({kind}), and such a tokenizer cannot be followed here, only "
                "byte-level BPE as GPT-2's, from tokenizer.json or from vocab.json and merges.txt. Choose a "
                "model that has these; or, if this one was trained with such a tokenizer after all, give it: "
                "tokenizer=..."
            )
    for name in BESIDE:
        if (folder / name).is_file():
            raise ValueError(
                f"{folder} has {name}, and neither tokenizer.json nor vocab.json and merges.txt: put them "
                "there, too, or say which tokenizer it is: tokenizer=..."
            )
    return None


def read_tokenizer_json(path: Path) -> Vocabulary:
    """A tokenizer.json of the `tokenizers` library, with the files that lie beside it."""
    return of_json(_read_json(path), path, _beside(path.parent))


def of_json(whole: dict[str, Any], path: Path, beside: Beside) -> Vocabulary:
    """As `read_tokenizer_json`, from the content of such a file. `path` names it in errors."""
    check_known(path, whole, WHOLE | WITHOUT_EFFECT)
    model = whole.get("model")
    if not isinstance(model, dict):
        raise ValueError(
            f'{path}: "model" is {shown(model)}; expected an object with "vocab" and "merges"'
        )
    check(path, model, MODEL, "model.")
    check_known(path, model, {*MODEL, "vocab", "merges", "unk_token", "fuse_unk"}, "model.")
    _check_normalizer(path, whole.get("normalizer"))
    _check_pre_tokenizer(path, whole.get("pre_tokenizer"))
    _check_post_processor(path, whole.get("post_processor"))
    try:
        merges = [
            tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in model["merges"]
        ]
        tokens = dict(model["vocab"])
        listed = list(whole.get("added_tokens") or [])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is not like a tokenizer.json: {type(error).__name__} {error}"
        ) from None
    _check_tokens(path, tokens)
    return _vocabulary(path, tokens, merges, with_ids(path, beside, listed, tokens))


def read_vocab_and_merges(vocab: Path, merges: Path) -> Vocabulary:
    """OpenAI's two files, as older folders have them, with the files that lie beside them."""
    try:
        lines = merges.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ValueError(f"{merges} cannot be read: {error}") from None
    pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    tokens = _read_json(vocab)
    _check_tokens(vocab, tokens)
    beside = _beside(vocab.parent)
    if not beside.anew:
        raise ValueError(
            f'{beside.where}: "{TOKENIZER_CLASS}" is of a tokenizer in tokenizer.json, and there is none: '
            f"put it there, or name {ANEW[0]}"
        )
    return _vocabulary(vocab, tokens, pairs, with_ids(vocab, beside, [], tokens))


def _beside(folder: Path) -> Beside:
    """The files beside a tokenizer's, and what the model's config says of it."""
    files = {name: _read_json(folder / name) for name in BESIDE if (folder / name).is_file()}
    config = folder / "config.json"
    model_says = None
    if config.is_file():
        model_says = _read_json(config).get(TOKENIZER_CLASS)
    return read_beside(folder, files, model_says)


def _check_tokens(path: Path, tokens: dict[str, Any]) -> None:
    for token, id in tokens.items():
        if type(token) is not str or type(id) is not int or id < 0:
            raise ValueError(
                f"{path}: {token!r} has the id {id!r}; expected a whole number from 0 on"
            )
    if not tokens:
        raise ValueError(f"{path}: the vocabulary is empty")


def _vocabulary(
    path: Path, tokens: dict[str, int], merges: list[tuple[str, ...]], added: AddedTokens
) -> Vocabulary:
    """The checked vocabulary, with GPT-2's spelling of tokens turned into bytes."""
    if len(merges) > len(tokens):  # each makes a token of its own
        raise ValueError(f"{path}: {len(merges):,} merges are more than its {len(tokens):,} tokens")
    merged = {"".join(pair) for pair in merges}
    # an added token that merges make, too, stays among the others: it is read where it is no added one
    both = {
        token for token in added.ids if token in tokens and (len(token) == 1 or token in merged)
    }
    for token in both:
        if not token.isascii():
            raise ValueError(
                f'{path}: "added_tokens" has {token!r}, which stands for another byte in the vocabulary: one '
                "id would be of two texts. Take it out of the added tokens"
            )
    try:
        ranks = {
            bytes_of(token): id
            for token, id in tokens.items()
            if token not in added.ids or token in both
        }
        pairs = [(bytes_of(left), bytes_of(right)) for left, right in merges]
    except KeyError as error:
        raise ValueError(f"{path}: {error.args[0]!r} is not a byte in GPT-2's spelling") from None
    except ValueError:
        raise ValueError(f"{path}: every merge must be of two tokens") from None
    vocabulary = Vocabulary(GPT2_PATTERN, ranks, added.ids, added.words, added.late, added.implied)
    if not vocabulary.has_each_id_once:
        raise ValueError(f"{path}: two tokens have the same id")
    if not is_gpt2(vocabulary):
        _check_merges(path, ranks, pairs)
    return vocabulary


def _check_normalizer(path: Path, normalizer: Any) -> None:
    """Raise ValueError for a normalizer; an empty sequence of them is none."""
    if normalizer is None or (isinstance(normalizer, dict) and normalizer.get("normalizers") == []):
        return
    if isinstance(normalizer, dict):
        kind = normalizer.get("type")
    else:
        kind = normalizer
    raise refused_part(path, "normalizer", kind)


def _check_pre_tokenizer(path: Path, pre_tokenizer: Any) -> None:
    """Raise ValueError for a pre-tokenizer that cuts otherwise than GPT-2's regex."""
    if isinstance(pre_tokenizer, dict):
        settings = pre_tokenizer
    else:
        settings = {}
    parts = settings.get("pretokenizers")
    if settings.get("type") == "Sequence" and isinstance(parts, list) and len(parts) == 1:
        _check_pre_tokenizer(path, parts[0])
        return
    if settings.get("type") != "ByteLevel":
        raise refused_part(path, "pre_tokenizer", settings.get("type", pre_tokenizer))
    check(
        path,
        {"add_prefix_space": True, "use_regex": True, **settings},
        BYTE_LEVEL,
        "pre_tokenizer.",
    )
    check_known(path, settings, {*BYTE_LEVEL, "type", "trim_offsets"}, "pre_tokenizer.")


def _check_post_processor(path: Path, post_processor: Any) -> None:
    """Raise ValueError for a post-processor that puts tokens around a text."""
    if isinstance(post_processor, dict):
        settings = post_processor
    else:
        settings = {}
    kind = settings.get("type", post_processor)
    parts = settings.get("processors")
    if post_processor is None or kind == "ByteLevel":  # which changes offsets
        return
    if kind == "Sequence" and isinstance(parts, list):
        for part in parts:
            _check_post_processor(path, part)
        return
    template = settings.get("single")
    if kind == "TemplateProcessing" and isinstance(template, list):
        if [_text_of(item) for item in template] == ["A"]:
            return
        kind = [
            item.get("SpecialToken", {}).get("id", "text")
            for item in template
            if isinstance(item, dict)
        ]
    raise refused_part(path, "post_processor", kind)


def _text_of(item: Any) -> Any:
    """Which text a part of a template stands for, None where it stands for a token."""
    sequence = None
    if isinstance(item, dict):
        sequence = item.get("Sequence")
    if isinstance(sequence, dict):
        return sequence.get("id")
    return None


def _check_merges(path: Path, ranks: dict[bytes, int], merges: list[tuple[bytes, bytes]]) -> None:
    """Raise ValueError unless merging by id gives the same tokens as merging by the list, for every text.

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
            raise ValueError(
                f"{path}: no merge of older tokens makes {token!r}, and it is no added token. If "
                "texts were marked with it, name it in special_tokens_map.json"
            )
        if _last_merge(ranks, token, id) != parts:
            raise ValueError(
                f"{path}: {token!r} is a merge of {parts[0]!r} and {parts[1]!r}, out of turn"
            )


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
    """The byte that each of GPT-2's stand-in characters means: `Ġ` is a space (Radford et al., 2019).

    Bytes that print stand for themselves, the others for code points from 256 on, in order, so that a
    vocabulary can be written as text.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    unprintable = (value for value in range(256) if value not in printable)
    return {chr(value): value for value in printable} | {
        chr(256 + n): v for n, v in enumerate(unprintable)
    }


def bytes_of(token: str) -> bytes:
    return bytes(map(byte_of_unicode().__getitem__, token))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}; expected a JSON object")
    return content
