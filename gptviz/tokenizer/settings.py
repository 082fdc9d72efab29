"""The keys of Hugging Face's tokenizer files: which are followed, which change nothing, which are refused.

A key that changes ids is followed, or refused by its name; one that is not known here is refused, too, since
it may change ids. The table in docs/models.md has the same rows.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Only:
    """A key that changes ids: the values that can be followed, what others do, and what to do instead."""

    values: tuple[Any, ...]
    does: str
    instead: str


TYPE_IT = "and type the token yourself, with special tokens read"
OFF = "Set it to false"
CHOOSE = "choose a model that has it"

# tokenizer_config.json, and special_tokens_map.json, whose keys are read as if they stood there
CONFIG = {
    "add_prefix_space": Only(
        (False, None), "puts a space before every text", f"{OFF}, and type the space"
    ),
    "add_bos_token": Only((False, None), "puts a token before every text", f"{OFF}, {TYPE_IT}"),
    "add_eos_token": Only((False, None), "puts a token behind every text", f"{OFF}, {TYPE_IT}"),
    "do_lower_case": Only(
        (False, None), "makes every letter a small one", f"{OFF}, and type small letters"
    ),
    "split_special_tokens": Only(
        (False, None),
        "makes special tokens text",
        f"{OFF}: here a switch does that, special_tokens=False",
    ),
    "auto_map": Only(
        (None, {}),
        "names a program",
        "None is run here: give the tokenizer from memory, tokenizer=...",
    ),
    "init_inputs": Only(
        (None, [], {}), "gives a tokenizer's class more arguments", "Write them as keys"
    ),
    "fast_tokenizer_files": Only(
        (None, []), "names other files", "Take it out, and name the right one tokenizer.json"
    ),
}

# tokenizer.json: the keys of "model"
MODEL = {
    "type": Only(
        ("BPE",), "is another algorithm", f"Only byte-level BPE can be followed: {CHOOSE}"
    ),
    "dropout": Only((None, 0, 0.0), "leaves merges out by chance", "Set it to null"),
    "continuing_subword_prefix": Only(
        (None, ""), "marks the inside of words", "Not followed: choose a model without it"
    ),
    "end_of_word_suffix": Only(
        (None, ""), "marks the end of words", "Not followed: choose a model without it"
    ),
    "byte_fallback": Only(
        (None, False), "spells unknown characters as <0x..>", f"{OFF} if all bytes are tokens"
    ),
}

# tokenizer.json: the keys of the pre-tokenizer "ByteLevel"
BYTE_LEVEL = {
    "add_prefix_space": CONFIG["add_prefix_space"],
    "use_regex": Only(
        (True,), "leaves a text uncut", f"Only GPT-2's regex can be followed: {CHOOSE}"
    ),
}
# ... and where it stands behind a Split, which has cut the text
CUTS_ITSELF = {
    "use_regex": Only(
        (False,), "cuts the pieces of another regex once more", f"{OFF} if the model was trained so"
    ),
}

# tokenizer.json: the keys of the pre-tokenizers "Digits" and "Split"
DIGITS = {
    "individual_digits": Only(
        (True,),
        "keeps digits that stand side by side together",
        "Only single digits can be followed",
    ),
}
SPLIT = {
    "behavior": Only(
        ("Isolated",),
        "leaves what the regex finds out, or joins it",
        "Only Isolated can be followed",
    ),
    "invert": Only(
        (False,), "cuts at what the regex does not find", f"{OFF} if it finds the pieces"
    ),
}

# tokenizer.json: what is done before and after the model; each has kinds of its own
PARTS = {
    "normalizer": Only(
        (None, "NFC"),
        "changes the text",
        "Only NFC can be followed: set it to null, and type the text as it would leave it",
    ),
    "pre_tokenizer": Only(
        ("ByteLevel", ["Digits", "ByteLevel"], ["Split", "ByteLevel"]),
        "cuts a text in its own way",
        "Only GPT-2's, Qwen2's, Llama 3's and SmolLM2's ways can be followed: choose a model that has one",
    ),
    "post_processor": Only(
        (None, "ByteLevel", ["<token>", "A"]),
        "puts tokens around every text",
        f"Only tokens in front of a text can be followed: set it to null, {TYPE_IT}",
    ),
}

# added tokens, wherever they are listed
ADDED = {
    "lstrip": Only(
        (False,), "takes the blanks before the token away", f"{OFF}, and type none there"
    ),
    "rstrip": Only(
        (False,), "takes the blanks behind the token away", f"{OFF}, and type none there"
    ),
    "single_word": Only(
        (False,),
        "finds the token only where no letter is beside it",
        f"{OFF}, and type it there only",
    ),
}

# the special tokens with a name of their own, in the order in which transformers gives them ids
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
# the two names of a list of further ones
FURTHER = ("extra_special_tokens", "additional_special_tokens")
ADDED_TOKENS_DECODER = "added_tokens_decoder"
TOKENIZER_CLASS = "tokenizer_class"

# GPT-2's classes make the tokenizer anew from its vocabulary; the others take tokenizer.json as it is
ANEW = ("GPT2Tokenizer", "GPT2TokenizerFast")
AS_IT_IS = (
    "PreTrainedTokenizerFast",
    "TokenizersBackend",
    "Qwen2Tokenizer",  # makes it anew, too, just as the files of Qwen2 and Qwen3 have it
    "Qwen2TokenizerFast",
    "LlamaTokenizer",  # of a byte-level tokenizer.json, as of Llama 3, it is taken as it is
    "LlamaTokenizerFast",
)

BATCHES = "of batches and limits: applied only where a call of transformers asks for it"
DECODING = "of how ids become text again, and of where tokens stand"
CHAT = "of chats, whose templates write texts"
WHERE = "of where files were"
LOADING = "of how files were loaded"
READ_ELSEWHERE = "of the model, or of a program that generates"

HARMLESS = {
    **dict.fromkeys(
        [
            *(
                "model_max_length",
                "max_len",
                "max_length",
                "stride",
                "truncation_side",
                "truncation_strategy",
            ),
            *("truncation", "padding", "padding_side", "pad_to_multiple_of", "pad_token_type_id"),
            *(
                "model_input_names",
                "return_token_type_ids",
                "return_attention_mask",
                "return_tensors",
            ),
        ],
        BATCHES,
    ),
    **dict.fromkeys(
        [
            *(
                "errors",
                "clean_up_tokenization_spaces",
                "trim_offsets",
                "spaces_between_special_tokens",
            ),
            "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
        ],
        DECODING,
    ),
    **dict.fromkeys(
        [
            "chat_template",
            "response_template",
            "response_schema",
            "chat_control_tokens",
            "processor_class",
        ],
        CHAT,
    ),
    **dict.fromkeys(
        [
            *("name_or_path", "_name_or_path", "tokenizer_file", "vocab_file", "merges_file"),
            *("full_tokenizer_file", "special_tokens_map_file", "added_tokens_file"),
        ],
        WHERE,
    ),
    **dict.fromkeys(
        [
            *(
                "use_fast",
                "from_slow",
                "legacy",
                "trust_remote_code",
                "local_files_only",
                "is_local",
                "revision",
            ),
            *(
                "subfolder",
                "cache_dir",
                "token",
                "use_auth_token",
                "_commit_hash",
                "force_download",
                "verbose",
            ),
            *(
                "device_map",
                "torch_dtype",
                "dtype",
                "low_cpu_mem_usage",
                "transformers_version",
                "backend",
            ),
            *("files_loaded", "tokenizer_version", "_from_auto"),
        ],
        LOADING,
    ),
    **dict.fromkeys(
        ["vocab_size", *(f"{name}_id" for name in NAMED)],
        READ_ELSEWHERE,
    ),
}


def check(
    where: Path | str, values: Mapping[str, Any], only: Mapping[str, Only], part: str = ""
) -> None:
    """Raise a ValueError that names the first key with a value that cannot be followed."""
    for key, rule in only.items():
        if key in values and not any(same(values[key], value) for value in rule.values):
            raise refusal(where, f"{part}{key}", values[key], rule.does, rule.instead)


def refusal(where: Path | str, key: str, value: Any, does: str, instead: str) -> ValueError:
    """The sentence for a key that cannot be followed."""
    return ValueError(f'{where}: "{key}" is {shown(value)}, which {does}. {instead}')


def refused_part(where: Path | str, key: str, kind: Any) -> ValueError:
    """The sentence for a part of tokenizer.json that cannot be followed."""
    return refusal(where, key, kind, PARTS[key].does, PARTS[key].instead)


def check_known(
    where: Path | str, values: Mapping[str, Any], known: set[str], part: str = ""
) -> None:
    """Raise a ValueError that names the first key that is not `known`. One that is null says nothing."""
    for key, value in values.items():
        if key not in known and value is not None:
            raise ValueError(
                f'{where}: "{part}{key}" is {shown(value)}, and what this key does is not known here: it may '
                "change ids. Take it out if it does not"
            )


def check_config(where: Path | str, values: Mapping[str, Any]) -> None:
    """Check the keys of tokenizer_config.json or special_tokens_map.json but those that name tokens."""
    check(where, values, CONFIG)
    known = {*CONFIG, *HARMLESS, *NAMED, *FURTHER, ADDED_TOKENS_DECODER, TOKENIZER_CLASS}
    check_known(
        where, values, known | {key for key, value in values.items() if names_a_token(key, value)}
    )


def names_a_token(key: str, value: Any) -> bool:
    """Whether transformers takes the value of this key for a special token, whatever it was meant for."""
    return key in NAMED or (key.endswith("_token") and isinstance(value, str | dict))


def same(value: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: 0 is not false."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    return bool(value == other)


def shown(value: Any) -> str:
    """A value as its file has it, no longer than a sentence can hold."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    if len(text) <= 80:
        return text
    return f"{text[:77]}..."
