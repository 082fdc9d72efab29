"""Tokenizer files as a Vocabulary: Hugging Face's tokenizer.json, or vocab.json with merges.txt; Llama 3's own.

Only what is GPT-2's kind of tokenizer can become a tiktoken.Encoding: byte-level BPE with a regex that is
known (`patterns`). tiktoken merges by id; their files list the merges apart. `check_merges` proves for each
token that the two mean the same. Every key that changes ids is followed or refused: `settings` has them.
"""

import json
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from gptviz.tokenizer import GPT2_PATTERN
from gptviz.tokenizer.added import composed
from gptviz.tokenizer.added_files import BESIDE, AddedTokens, Beside, read_beside, with_ids
from gptviz.tokenizer.encodings import ranks_of_file
from gptviz.tokenizer.patterns import LLAMA3_PATTERN, pattern_of
from gptviz.tokenizer.regex import cut
from gptviz.tokenizer.settings import (
    ANEW,
    MODEL,
    TOKENIZER_CLASS,
    check,
    check_known,
    refused_part,
    shown,
)
from gptviz.tokenizer.vocabulary import MOST_TOKENS, Vocabulary, is_gpt2

TOKENIZER_JSON = "tokenizer.json"
VOCAB_JSON = "vocab.json"
MERGES_TXT = "merges.txt"
CONFIG_JSON = "config.json"

# Llama 3's, of tiktoken; Llama 2's of that name is SentencePiece's
LLAMA3_MODEL = "tokenizer.model"
LLAMA3_SPECIAL = {
    "<|begin_of_text|>": 0,
    "<|end_of_text|>": 1,
    "<|start_header_id|>": 6,
    "<|end_header_id|>": 7,
    "<|eot_id|>": 9,
}
LONGEST_LINE = 4096

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
FOLLOWED = {"vocab", "merges", "unk_token", "fuse_unk", "ignore_merges"}  # keys of "model"
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
    if is_of_ranks(folder / LLAMA3_MODEL):
        return read_llama3(folder / LLAMA3_MODEL)
    for name, kind in OTHERS.items():
        if (folder / name).is_file():
            raise ValueError(
                f"{folder} brings {name} ({kind}), and such a tokenizer cannot be followed here, only "
                "byte-level BPE as GPT-2's, Llama 3's or Qwen's, from tokenizer.json or from vocab.json and "
                "merges.txt. Choose a "
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
    check_known(path, model, FOLLOWED | {*MODEL}, "model.")
    nfc = _composes(path, whole.get("normalizer"))
    pattern = pattern_of(path, whole.get("pre_tokenizer"))
    begins = _before_a_text(path, whole.get("post_processor"))
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
    added = with_ids(path, beside, listed, tokens)
    unknown = [token for token in begins if token not in added.ids]
    if unknown:
        raise ValueError(
            f'{path}: "post_processor" puts {unknown[0]!r} before every text, which is no added token: list '
            'it in "added_tokens"'
        )
    whole_pieces = model.get("ignore_merges") is True
    vocabulary = _vocabulary(path, tokens, merges, added, pattern, whole_pieces)
    if nfc:
        _check_composed(path, added)
        vocabulary = replace(vocabulary, nfc=True, late=added.late)
    begin_ids = tuple(added.ids[token] for token in begins)
    return replace(vocabulary, begins=begin_ids, chat=beside.chat)


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
    model_type = _config_of(vocab.parent).get("model_type")
    if model_type not in (None, "gpt2", "gpt_neo"):
        raise ValueError(
            f"{vocab.parent} is of the kind {shown(model_type)}, and these two files do not say how it cuts a "
            "text: put its tokenizer.json there"
        )
    if not beside.anew:
        raise ValueError(
            f'{beside.where}: "{TOKENIZER_CLASS}" is of a tokenizer in tokenizer.json, and there is none: '
            f"put it there, or name {ANEW[0]}"
        )
    added = with_ids(vocab, beside, [], tokens)
    return replace(_vocabulary(vocab, tokens, pairs, added, GPT2_PATTERN), chat=beside.chat)


def is_of_ranks(path: Path) -> bool:
    """Whether a tokenizer.model is Llama 3's, of tiktoken's lines, and not SentencePiece's, which is no text."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.readline(LONGEST_LINE)
    return re.fullmatch(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n", first) is not None


def read_llama3(path: Path) -> Vocabulary:
    """Llama 3's tokenizer.model: tiktoken's ranks, and behind them special tokens that the file does not name.

    These have the names and places of the book's bonus code and of Meta's own; those that differ between
    Llama 3, 3.1 and 3.2 have no name here. Raises ValueError.
    """
    if not is_of_ranks(path):
        raise ValueError(
            f"{path} is no file of tiktoken's lines, as Llama 3's, but of {OTHERS[LLAMA3_MODEL]}'s kind, which "
            "cannot be followed here: choose a model with a byte-level tokenizer.json"
        )
    ranks = ranks_of_file(path)
    special = {name: len(ranks) + place for name, place in LLAMA3_SPECIAL.items()}
    begins = (special["<|begin_of_text|>"],)
    return Vocabulary(LLAMA3_PATTERN, ranks, special, begins=begins)


def _beside(folder: Path) -> Beside:
    """The files beside a tokenizer's, and what the model's config says of it."""
    files = {name: _read_json(folder / name) for name in BESIDE if (folder / name).is_file()}
    return read_beside(folder, files, _config_of(folder).get(TOKENIZER_CLASS))


def _config_of(folder: Path) -> dict[str, Any]:
    """The model's config.json; nothing where there is none."""
    if (folder / CONFIG_JSON).is_file():
        return _read_json(folder / CONFIG_JSON)
    return {}


def _check_tokens(path: Path, tokens: dict[str, Any]) -> None:
    for token, id in tokens.items():
        if type(token) is not str or type(id) is not int or id < 0:
            raise ValueError(
                f"{path}: {token!r} has the id {id!r}; expected a whole number from 0 on"
            )
    if not tokens:
        raise ValueError(f"{path}: the vocabulary is empty")


def _vocabulary(
    path: Path,
    tokens: dict[str, int],
    merges: list[tuple[str, ...]],
    added: AddedTokens,
    pattern: str,
    whole_pieces: bool = False,
) -> Vocabulary:
    """The checked vocabulary, with GPT-2's spelling of tokens turned into bytes.

    With `whole_pieces` (their "ignore_merges") a piece that is a token is one, whatever its merges lead to.
    """
    results = {"".join(pair) for pair in merges}
    if len(results) > len(tokens):
        raise ValueError(f"{path}: {len(merges):,} merges are more than its {len(tokens):,} tokens")

    def is_read(token: str) -> bool:
        """Whether an added token is one of the others, too: read where it is no added one."""
        if len(token) == 1 or token in results:
            return True
        return whole_pieces and _is_a_piece(pattern, token)

    both = {token for token in added.ids if token in tokens and is_read(token)}
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
    late = added.late
    if len(late) == len(added.ids):  # all are looked for at once, then
        late = frozenset()
    vocabulary = Vocabulary(pattern, ranks, added.ids, added.words, late, added.implied)
    if not vocabulary.has_each_id_once:
        raise ValueError(f"{path}: two tokens have the same id")
    if not is_gpt2(vocabulary):
        check_merges(path, ranks, pairs, whole_pieces)
    return vocabulary


def _is_a_piece(pattern: str, token: str) -> bool:
    """Whether a regex leaves a token whole, as GPT-2's spelling has it."""
    try:
        text = bytes_of(token).decode()
    except (KeyError, UnicodeDecodeError):
        return False
    return [piece for _, piece, _ in cut(pattern, text)] == [text]


def _composes(path: Path, normalizer: Any) -> bool:
    """Whether texts are composed (NFC). Raises ValueError for another normalizer; an empty sequence is none."""
    if isinstance(normalizer, dict):
        kind = normalizer.get("type")
        parts = normalizer.get("normalizers")
    else:
        kind = normalizer
        parts = None
    if kind == "Sequence" and isinstance(parts, list) and len(parts) == 1:
        return _composes(path, parts[0])
    if kind is not None and kind != "NFC" and parts != []:
        raise refused_part(path, "normalizer", kind)
    return kind == "NFC"


def _check_composed(path: Path, added: AddedTokens) -> None:
    """Raise ValueError for a token that is looked for in composed text and cannot stand there."""
    for token in added.late:
        if composed(token) != token:
            raise ValueError(
                f'{path}: the added token {token!r} is "normalized", and the normalizer NFC makes '
                f"{composed(token)!r} of it. Write it so"
            )


def _before_a_text(path: Path, post_processor: Any) -> list[str]:
    """The tokens that a post-processor puts before a text. Raises ValueError for one that does more."""
    if isinstance(post_processor, dict):
        settings = post_processor
    else:
        settings = {}
    kind = settings.get("type", post_processor)
    parts = settings.get("processors")
    if post_processor is None or kind == "ByteLevel":  # which changes offsets
        return []
    if kind == "Sequence" and isinstance(parts, list):
        found = [_before_a_text(path, part) for part in parts]
        return [token for tokens in reversed(found) for token in tokens]
    template = settings.get("single")
    if kind == "TemplateProcessing" and isinstance(template, list):
        *first, last = map(_text_of, template) if template else [None]
        before = [_token_of(item) for item in template[:-1]]
        if last == "A" and not any(first) and all(before):
            return [str(token) for token in before]
        kind = [_token_of(item) or "text" for item in template]
    raise refused_part(path, "post_processor", kind)


def _token_of(item: Any) -> Any:
    """Which token a part of a template stands for, None where it stands for a text."""
    token = None
    if isinstance(item, dict):
        token = item.get("SpecialToken")
    if isinstance(token, dict):
        return token.get("id")
    return None


def _text_of(item: Any) -> Any:
    """Which text a part of a template stands for, None where it stands for a token."""
    sequence = None
    if isinstance(item, dict):
        sequence = item.get("Sequence")
    if isinstance(sequence, dict):
        return sequence.get("id")
    return None


def check_merges(
    path: Path,
    ranks: dict[bytes, int],
    merges: list[tuple[bytes, bytes]],
    whole_pieces: bool = False,
) -> None:
    """Raise ValueError unless merging by id gives the same tokens as merging by the list, for every text.

    No merge crosses the border of two parts that are left, so neighbours that make a token come about as they
    do where that token's own bytes are merged. So it is enough that merges are listed in the order of their
    results' ids, and that each token, merged by ids from its own bytes, has a listed pair at last. A list may
    have further pairs of a token, which no text leads to: Llama 3's has. Where whole pieces are looked up
    first, as tiktoken always does, a token may have no merges at all.
    """
    order = [ranks.get(left + right, -1) for left, right in merges]
    if order != sorted(order) or (order and order[0] < 0):
        raise ValueError(f"{path}: the merges are not in the order of their tokens' ids")
    listed = set(merges)
    results = {left + right for left, right in merges}
    for token in ranks:
        if len(token) == 1:
            continue
        halves = _halves(ranks, token)
        if len(halves) == 2 and halves in listed:
            continue
        if whole_pieces and len(halves) > 2:
            continue
        if token not in results:
            raise ValueError(
                f"{path}: no merge of older tokens makes {token!r}, and it is no added token. If "
                "texts were marked with it, name it in special_tokens_map.json"
            )
        raise ValueError(f"{path}: by ids {token!r} would be merged from {halves}, out of turn")


def _halves(ranks: dict[bytes, int], token: bytes) -> tuple[bytes, ...]:
    """The two parts of a token whose merge makes it at last; more of them if no merges lead there."""
    parts = [token[i : i + 1] for i in range(len(token))]
    never = 1 + MOST_TOKENS
    while len(parts) > 2:
        found = [(ranks.get(a + b, never), i) for i, (a, b) in enumerate(pairwise(parts))]
        rank, place = min(found)
        if rank == never:
            break
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return tuple(parts)


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
