"""tiktoken encodings by name, and what a screen needs of them.

"mini" and "mini-world" are the bundled models' own byte-level BPEs, rank files beside their weights. "gpt2"
works with no network, too: OpenAI's two vocabulary files lie in gptviz/assets/gpt2, beside their licence, and each is
read against its known SHA-256. Every other name is tiktoken's and is downloaded by it.

How the ids came about, merge by merge, is in `gptviz.tokenizer.steps`; the word-level and the
character tokenizer are in `gptviz.tokenizer.simple`.
"""

import base64
import hashlib
import re
import threading
import unicodedata
from binascii import Error as Base64Error
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks

from gptviz.text.suggest import did_you_mean
from gptviz.tokenizer.added import begins_of, nameless, split
from gptviz.tokenizer.download import download_encoding

END_OF_TEXT = "<|endoftext|>"

# of GPT-2, Qwen and SmolLM2; of Llama 3
ENDS_OF_TEXT = (END_OF_TEXT, "<|end_of_text|>")

# Radford et al., 2019, in the faster equal form that tiktoken uses for "gpt2".
GPT2_PATTERN = (
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
)

ASSETS = Path(__file__).parents[1] / "assets"
MINI_RANKS = ASSETS / "mini" / "tokenizer.tiktoken"
WORLD_RANKS = ASSETS / "mini-world" / "tokenizer.tiktoken"

# OpenAI's own two files; their hashes are those in tiktoken_ext.openai_public.
GPT2_FOLDER = ASSETS / "gpt2"
GPT2_FILES = {
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}

_encodings: dict[str, tiktoken.Encoding] = {}
_local_lock = threading.Lock()


def get_encoding(name: str) -> tiktoken.Encoding:
    """The encoding called `name`: "mini", "mini-world", "gpt2", or any name that tiktoken knows.

    Thread-safe; the same object every time. Raises ValueError, with a sentence for the screen, when
    the name is unknown, a vocabulary file is missing or damaged, or a download does not finish
    within seconds.
    """
    if name in _encodings:
        return _encodings[name]
    if name in _LOCAL:
        with _local_lock:
            if name not in _encodings:
                _encodings[name] = _LOCAL[name]()
        return _encodings[name]
    if name not in encoding_names():
        meant = did_you_mean(name, encoding_names())
        raise ValueError(
            f"There is no tokenizer {name!r}{meant}. There are: {', '.join(encoding_names())}."
        )
    try:
        _encodings[name] = download_encoding(name)
    except ConnectionError as error:
        raise ValueError(f"{error} Without a network there are: {', '.join(_LOCAL)}.") from error
    return _encodings[name]


@cache
def encoding_names() -> tuple[str, ...]:
    """Every name `get_encoding` takes; the first three need no network."""
    return (*_LOCAL, *sorted(set(tiktoken.list_encoding_names()) - set(_LOCAL)))


def encoding_from_ranks(path: str | Path, name: str = "mini") -> tiktoken.Encoding:
    """A byte-level BPE with GPT-2's regex, from a tiktoken rank file.

    The last id, after the ranks, is `<|endoftext|>`. Raises ValueError as `ranks_of_file` does.
    """
    ranks = ranks_of_file(path)
    return tiktoken.Encoding(
        name, pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={END_OF_TEXT: len(ranks)}
    )


def ranks_of_file(path: str | Path) -> dict[bytes, int]:
    """The tokens of a tiktoken rank file with their ranks.

    A line of the file is a token's bytes in base64, a space and its rank; ranks are 0, 1, 2, ...
    with no gap, and all 256 single bytes are among the tokens, so that any text has ids. Raises ValueError,
    naming the file and the line.
    """
    ranks: dict[bytes, int] = {}
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise ValueError(f"The tokenizer file {path} cannot be read: {error.strerror}.") from error
    for number, line in enumerate(lines, start=1):
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, Base64Error) as error:
            raise ValueError(
                f"Line {number} of the tokenizer file {path} is {line[:60]!r}; "
                "a line is a token's bytes in base64, a space, and its rank."
            ) from error
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise ValueError(
            f"The tokenizer file {path} lacks {len(missing)} of the 256 single bytes, the first is "
            f"0x{missing[0]:02x}; without them some text has no ids."
        )
    if sorted(ranks.values()) != list(range(len(lines))):
        raise ValueError(
            f"The tokenizer file {path} has {len(lines)} lines; its ranks must be 0 to {len(lines) - 1}, "
            "each once, and every token once."
        )
    return ranks


def encode(
    encoding: tiktoken.Encoding, text: str, special_tokens: bool = False, begin: bool = False
) -> list[int]:
    """The ids of any text. `<|endoftext|>` as typed is text, unless `special_tokens` is True.

    Added words are tokens either way (see `gptviz.tokenizer.added`). With `begin` the ids come first that the
    model is given before every text, if there are any. A lone surrogate, which no UTF-8 can hold, is encoded as
    U+FFFD (see `well_formed`).
    """
    ids: list[int] = []
    if begin:
        ids += begins_of(encoding)
    for _, part, is_token in split(encoding, well_formed(text), special_tokens):
        if is_token:
            ids.append(encoding._special_tokens[part])
            continue
        for piece in _without_long_blanks(encoding, part):
            ids += encoding.encode_ordinary(piece)
    return ids


def _without_long_blanks(encoding: tiktoken.Encoding, text: str) -> list[str]:
    r"""The text cut inside blanks so long that tiktoken's regex engine runs out of stack and panics.

    GPT-2's regex cuts a run of blanks before its last one when something follows: `\s+(?!\S)`. A cut in
    just that place changes no id. Other regexes cut elsewhere, so their text is left whole.
    """
    if encoding._pat_str != GPT2_PATTERN:
        return [text]
    cuts = [
        0,
        *(run.end() - 1 for run in _LONG_BLANKS.finditer(text) if run.end() < len(text)),
        len(text),
    ]
    return [text[start:end] for start, end in pairwise(cuts)]


# Python's \s holds U+001C to U+001F, which Unicode's White_Space, and tiktoken's \s, do not.
_LONG_BLANKS = re.compile(r"(?<![^\S\x1c-\x1f])[^\S\x1c-\x1f]{100000,}")


def well_formed(text: str) -> str:
    """The text as UTF-8 can hold it: a surrogate pair becomes its character, a lone one U+FFFD.

    Browsers send well-formed text; a file or a program may not. tiktoken does the same.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def check_well_formed(text: str) -> None:
    """Raise a ValueError for a lone surrogate; a pair is a character."""
    match = _LONE_SURROGATE.search(text)
    if match is not None:
        raise ValueError(
            f"the text has {match[0]!r} at character {match.start()} (counted from 0): half of a surrogate "
            "pair, which no UTF-8 can hold, so it has no tokens. Take it out, or give "
            "gptviz.tokenizer.well_formed(text), which puts U+FFFD in its place"
        )


_LONE_SURROGATE = re.compile(
    "[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]"
)


def token_bytes(encoding: tiktoken.Encoding, id: int) -> bytes:
    """The bytes of one token, special tokens included. Raises ValueError for an id outside the vocabulary."""
    try:
        return encoding.decode_single_token_bytes(int(id))
    except (KeyError, OverflowError) as error:
        raise ValueError(
            f"The tokenizer {encoding.name!r} has no token with the id {id}; "
            f"its ids are 0 to {encoding.max_token_value}."
        ) from error


def has_token(encoding: tiktoken.Encoding, id: int) -> bool:
    """Whether the tokenizer has a token of its own for this id, not a `nameless` filler."""
    try:
        raw = token_bytes(encoding, id)
    except ValueError:
        return False
    return not encoding.is_special_token(id) or raw != nameless(id).encode()


def named_bytes(encoding: tiktoken.Encoding, id: int) -> bytes:
    """A token's bytes; those of its number, `nameless`, for an id that the tokenizer has no token for.

    Raises ValueError for a number below 0, which is no id.
    """
    try:
        return token_bytes(encoding, id)
    except ValueError:
        if id < 0:
            raise
        return nameless(id).encode()


def token_text(raw: bytes) -> str:
    r"""A token's bytes as text; those that are not whole UTF-8 characters are `\x` and two digits each.

    >>> token_text(" cat".encode()), token_text("你".encode()[:2])
    (' cat', '\\xe4\\xbd')
    """
    return raw.decode("utf-8", "backslashreplace")


@lru_cache(maxsize=2**16)
def show_token(raw: bytes) -> str:
    r"""A token as the screen shows it: nothing invisible, and never `\ufffd` for a broken character.

    Spaces are `·`, newlines `⏎`, tabs `⇥`; bytes that are not whole UTF-8 characters are `\x` and two
    digits each; characters that would print as nothing (controls, joiners, other spaces, and marks that have
    no letter before them to stand on) are `\u` escapes.

    >>> show_token(" cat".encode()), show_token("你".encode()[:2]), show_token(b"\x00")
    ('·cat', '\\xe4\\xbd', '\\x00')
    """
    text = token_text(raw)
    marks = next(
        (i for i, c in enumerate(text) if unicodedata.category(c) not in ("Mn", "Me")), len(text)
    )
    return "".join(_escaped(c) for c in text[:marks]) + "".join(
        _show_character(c) for c in text[marks:]
    )


def _show_character(character: str) -> str:
    if character in _SHOWN:
        return _SHOWN[character]
    if character.isprintable():
        return character
    return _escaped(character)


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


_SHOWN = {" ": "·", "\n": "⏎", "\t": "⇥"}


def _gpt2() -> tiktoken.Encoding:
    """GPT-2's own encoding, from the two files of OpenAI's that ship with gptviz."""
    for name, expected in GPT2_FILES.items():
        _check(GPT2_FOLDER / name, expected)
    ranks = data_gym_to_mergeable_bpe_ranks(
        str(GPT2_FOLDER / "vocab.bpe"), str(GPT2_FOLDER / "encoder.json")
    )
    return tiktoken.Encoding(
        "gpt2",
        pat_str=GPT2_PATTERN,
        mergeable_ranks=ranks,
        special_tokens={END_OF_TEXT: 50256},
        explicit_n_vocab=50257,
    )


def _check(path: Path, sha256: str) -> None:
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ValueError(
            f"GPT-2's vocabulary file {path} cannot be read: {error.strerror}."
        ) from error
    if digest != sha256:
        raise ValueError(
            f"{path} is not GPT-2's vocabulary: its SHA-256 is {digest}, expected {sha256}. "
            "It ships with gptviz: install that again"
        )


_LOCAL: dict[str, Callable[[], tiktoken.Encoding]] = {
    "mini": lambda: encoding_from_ranks(MINI_RANKS),
    "gpt2": _gpt2,
    "mini-world": lambda: encoding_from_ranks(WORLD_RANKS, "mini-world"),
}
