"""nanoGPT's meta.pkl, read as data: it lists a character model's vocabulary.

Pickles are programs. This reader lets one build dicts, lists, strings and numbers, which have opcodes of
their own; the first opcode that looks a name up (how every attack starts) is refused.
"""

import pickle
from pathlib import Path
from typing import Any, NoReturn

from gptviz.checkpoints.errors import CheckpointError
from gptviz.tokenizer.vocabulary import Vocabulary, of_characters

LARGEST = 16 * 2**20  # bytes; Unicode's 150,000 characters fit


class _DataOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise CheckpointError(f"it asks for {module}.{name}, which is code, and only data is read here")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise CheckpointError("it refers to something outside the file")


def read_meta(path: Path) -> Vocabulary:
    """The character vocabulary of a meta.pkl. Raises CheckpointError; never runs anything."""
    try:
        if path.stat().st_size > LARGEST:
            raise CheckpointError(f"it has {path.stat().st_size:,} bytes; at most {LARGEST:,} are read")
        with path.open("rb") as file:
            meta = _DataOnly(file).load()
        return _vocabulary(meta)
    except Exception as error:  # a damaged pickle may raise nearly anything
        kind = "" if isinstance(error, CheckpointError) else f"{type(error).__name__} "
        raise CheckpointError(f"{path} is not nanoGPT's table of characters: {kind}{error}") from None


def _vocabulary(meta: Any) -> Vocabulary:
    if not isinstance(meta, dict) or not isinstance(meta.get("stoi"), dict):
        raise CheckpointError('it has no dict "stoi" from characters to ids')
    for character, id in meta["stoi"].items():
        if type(character) is not str or type(id) is not int:
            raise CheckpointError(f'"stoi" says {character!r}: {id!r}; expected a character and an id')
    if meta.get("itos") != {id: character for character, id in meta["stoi"].items()}:
        raise CheckpointError('"itos" is not the reverse of "stoi"')
    try:
        return of_characters(meta["stoi"])
    except ValueError as error:
        raise CheckpointError(str(error)) from None
