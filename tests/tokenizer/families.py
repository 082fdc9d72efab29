"""Small tokenizers of the Llama, Qwen and SmolLM2 families, trained here with the `tokenizers` library.

Their normalizers, pre-tokenizers and post-processors are those families' own, written once more here from
their files; only the vocabularies are small.
"""

import base64
import json
from functools import cache
from tempfile import TemporaryDirectory

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers.convert_slow_tokenizer import TikTokenConverter, bytes_to_unicode

from tests.tokenizer.test_hugging_face_keys import LEARNT

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
FAMILIES = ("llama3", "qwen2", "smollm2")
BEGIN = "<|begin_of_text|>"
END = "<|endoftext|>"
READ = [
    *LEARNT,
    "It's 1999, they're 20 000 or 3.1415; IT'S 42!\r\n\r\n\tdef f(x):\n        return x ** 2\n    \n",
    "Ünïcödé: é É ü ﬁ Ω Å 가각 e\u0301 a\u0323\u0302 مرحبا بالعالم שלום नमस्ते 你好,世界 🙂👩‍👩‍👧",
]
# words that no merge leads to, as Llama 3's vocabulary has some
WHOLE = (b" antidisestablishment", b"qqqq", b"    x"[:4])


def split(pattern):
    """A Split by this regex, and the spelling of bytes behind it."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _trained(pre_tokenizer, normalizer=None, size=420):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        READ * 4, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet)
    )
    return tokenizer


def llama3_ranks():
    """A vocabulary as Llama 3's tokenizer.model has it: bytes with their ids."""
    bytes_of = {character: value for value, character in bytes_to_unicode().items()}
    vocabulary = _trained(split(LLAMA3)).get_vocab()
    ordered = sorted(vocabulary, key=vocabulary.__getitem__)
    tokens = [bytes(bytes_of[character] for character in token) for token in ordered]
    tokens += [token for token in WHOLE if token not in tokens]
    return {token: id for id, token in enumerate(tokens)}


def save_ranks(path):
    """Write Llama 3's kind of tokenizer.model: a token in base64 and its id on each line."""
    lines = [f"{base64.b64encode(raw).decode()} {id}\n" for raw, id in llama3_ranks().items()]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _llama3():
    """Llama 3's, by the converter with which transformers made its tokenizer.json."""
    with TemporaryDirectory() as folder:
        from pathlib import Path

        path = save_ranks(Path(folder) / "tokenizer.model")
        tokenizer = TikTokenConverter(str(path), pattern=LLAMA3).converted()
    tokenizer.add_special_tokens([BEGIN, "<|end_of_text|>", "<|eot_id|>"])
    template = processors.TemplateProcessing(
        single=f"{BEGIN} $A",
        pair=f"{BEGIN} $A {BEGIN} $B:1",
        special_tokens=[(BEGIN, tokenizer.token_to_id(BEGIN))],
    )
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), template]
    )
    return tokenizer


def _qwen2():
    tokenizer = _trained(split(QWEN2), normalizers.NFC())
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens([END, "<|im_start|>", "<|im_end|>"])
    words = [AddedToken(name, special=False, normalized=False) for name in ("<think>", "</think>")]
    tokenizer.add_tokens(words)
    return tokenizer


def _smollm2():
    digits = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True),
        ]
    )
    tokenizer = _trained(digits)
    tokenizer.add_special_tokens([END, "<|im_start|>", "<|im_end|>"])
    return tokenizer


@cache
def _as_json(family):
    return {"llama3": _llama3, "qwen2": _qwen2, "smollm2": _smollm2}[family]().to_str()


def tokenizer_of(family):
    """The family's small tokenizer, a new object each time."""
    return Tokenizer.from_str(_as_json(family))


def whole_of(family):
    """What its tokenizer.json has, to be changed."""
    return json.loads(_as_json(family))
