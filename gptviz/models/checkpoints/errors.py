"""What is wrong with a checkpoint, as sentences."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class CheckpointError(ValueError):
    """A checkpoint cannot be loaded; the message says what was found, what is allowed, what to do."""


class HeadsMissing(CheckpointError):
    """The number of heads must be given: it is in no shape. `choices` are those that the width allows."""

    def __init__(self, message: str, choices: Sequence[int], emb_dim: int):
        super().__init__(message)
        self.choices = tuple(choices)
        self.emb_dim = emb_dim


class TokenizerMissing(CheckpointError):
    """The tokenizer must be given: the checkpoint brings none, and its vocabulary has not GPT-2's size."""


class SurplusTokens(CheckpointError):
    """The tokenizer has added tokens that the model has no row for: it must be said to go on without them."""


CODE = "\n\n    "  # between a sentence and its lines of Python


def with_code(sentence: str, code: str) -> str:
    """A message with lines of Python under its sentence, or the sentence alone where there are none."""
    if not code:
        return sentence
    return sentence + "\n\n" + textwrap.indent(code.strip(), "    ")


def without_code(message: str) -> tuple[str, str]:
    """The sentence of a message, and the lines of Python under it, "" for none."""
    sentence, _, code = message.partition(CODE)
    return sentence, code.replace("\n    ", "\n")


@contextmanager
def errors_of(where: Path | str) -> Iterator[None]:
    """Raise what is wrong with a value as a CheckpointError that says where it stands."""
    try:
        yield
    except CheckpointError:
        raise
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{where}: {error}") from None
