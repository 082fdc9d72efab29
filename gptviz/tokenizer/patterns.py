"""The regexes by which tokenizers cut a text into pieces, by name, and how Hugging Face's files write them."""

from pathlib import Path
from typing import Any

from gptviz.tokenizer.encodings import GPT2_PATTERN
from gptviz.tokenizer.settings import (
    BYTE_LEVEL,
    CUTS_ITSELF,
    DIGITS,
    SPLIT,
    check,
    check_known,
    refused_part,
)

CHARACTERS = r"(?s:.)"  # every character is a piece

# GPT-2's, after every digit has become a piece of its own: blanks before a digit stay together. SmolLM2's.
DIGITS_PATTERN = (
    r"""\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?![^\s\p{N}])|\s"""
)

# Qwen2's and Qwen3's; Llama 3's takes up to three digits. Both as their files have them.
QWEN2_PATTERN = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
LLAMA3_PATTERN = QWEN2_PATTERN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")

PATTERNS = {
    "gpt2": GPT2_PATTERN,
    "digits": DIGITS_PATTERN,
    "qwen2": QWEN2_PATTERN,
    "llama3": LLAMA3_PATTERN,
    "characters": CHARACTERS,
}


def pattern_of(path: Path, pre_tokenizer: Any) -> str:
    """The regex that cuts as a pre-tokenizer of tokenizer.json does.

    Raises ValueError for one that cuts otherwise than GPT-2's, Qwen2's, Llama 3's or SmolLM2's.
    """
    if isinstance(pre_tokenizer, dict):
        settings = pre_tokenizer
    else:
        settings = {}
    parts = settings.get("pretokenizers")
    if settings.get("type") == "Sequence" and isinstance(parts, list):
        if len(parts) == 1:
            return pattern_of(path, parts[0])
        return _of_two(path, parts)
    if settings.get("type") != "ByteLevel":
        raise refused_part(path, "pre_tokenizer", settings.get("type", pre_tokenizer))
    _check_bytes(path, settings, cuts=True)
    return GPT2_PATTERN


def _of_two(path: Path, parts: list[Any]) -> str:
    """The regex of Digits and ByteLevel, or of Split and a ByteLevel that only spells bytes."""
    kinds = [part.get("type") if isinstance(part, dict) else part for part in parts]
    if kinds == ["Digits", "ByteLevel"]:
        _check_part(path, {"individual_digits": False, **parts[0]}, DIGITS)
        _check_bytes(path, parts[1], cuts=True)
        return DIGITS_PATTERN
    if kinds == ["Split", "ByteLevel"]:
        _check_part(path, {"invert": False, **parts[0]}, SPLIT, "pattern")
        _check_bytes(path, parts[1], cuts=False)
        return _known_regex(path, parts[0].get("pattern"))
    raise refused_part(path, "pre_tokenizer", kinds)


def _known_regex(path: Path, given: Any) -> str:
    """The regex of a Split, which is Qwen2's or Llama 3's: another may find other pieces in tiktoken."""
    if isinstance(given, dict) and list(given) == ["Regex"]:
        for pattern in (QWEN2_PATTERN, LLAMA3_PATTERN):
            if given["Regex"] == pattern:
                return pattern
    raise refused_part(path, "pre_tokenizer", given)


def _check_bytes(path: Path, settings: dict[str, Any], *, cuts: bool) -> None:
    """Check a ByteLevel, which cuts as GPT-2 does, or after another only spells the bytes."""
    rules = BYTE_LEVEL
    if not cuts:
        rules = BYTE_LEVEL | CUTS_ITSELF
    _check_part(
        path, {"add_prefix_space": True, "use_regex": True, **settings}, rules, "trim_offsets"
    )


def _check_part(path: Path, settings: dict[str, Any], rules: dict[str, Any], *others: str) -> None:
    check(path, settings, rules, "pre_tokenizer.")
    check_known(path, settings, {*rules, "type", *others}, "pre_tokenizer.")
