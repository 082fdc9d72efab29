"""Tokenizers in memory, of transformers and tokenizers: read as they cut texts themselves, or refused."""

import json
from copy import deepcopy

import pytest
from tokenizers import Tokenizer, normalizers, processors
from tokenizers.implementations import ByteLevelBPETokenizer
from transformers import GPT2Tokenizer, PreTrainedTokenizerFast

import gptviz
from gptviz import CheckpointError
from gptviz.tokenizer import encode
from gptviz.tokenizer.objects import read_object
from gptviz.tokenizer.vocabulary import fitted
from tests.conftest import random_lm
from tests.models.checkpoints import makers
from tests.tokenizer.test_hugging_face_keys import END, TEXTS, added, base, write

N = len(base()["model"]["vocab"])


def alone(*tokens):
    whole = deepcopy(base())
    whole["added_tokens"].extend(tokens)
    return Tokenizer.from_str(json.dumps(whole))


def two_files(folder):
    write(folder, files=True)
    return str(folder / "vocab.json"), str(folder / "merges.txt")


def changed(**settings):
    tokenizer = alone()
    for name, value in settings.items():
        setattr(tokenizer, name, value)
    return tokenizer


BEHIND = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, N - 1)])
BEFORE = processors.TemplateProcessing(single=f"{END} $A", special_tokens=[(END, N - 1)])


def test_what_is_followed_gives_the_objects_own_ids(tmp_path):
    word = added("<word>", N, special=False, normalized=True)
    ends = {"bos_token": END, "eos_token": END, "unk_token": END}
    padded = PreTrainedTokenizerFast(tokenizer_object=alone(word), **ends)
    padded.add_special_tokens({"pad_token": "[PAD]"})
    vocab, merges = two_files(tmp_path)
    batches = alone()
    batches.enable_padding()
    for given in (
        alone(),
        alone(word),
        batches,
        changed(post_processor=BEFORE),
        changed(normalizer=normalizers.NFC()),
        PreTrainedTokenizerFast(tokenizer_object=alone(), bos_token=END, add_bos_token=True),
        padded,
        GPT2Tokenizer(vocab=vocab, merges=merges),
        GPT2Tokenizer(vocab=vocab, merges=merges, model_max_length=5, padding_side="left"),
    ):
        vocabulary = read_object(given)
        encoding = fitted(vocabulary, "theirs", vocabulary.size)
        for text in TEXTS:
            raw = isinstance(given, Tokenizer)
            theirs = given.encode(text).ids if raw else given(text)["input_ids"]
            assert encode(encoding, text, special_tokens=True, begin=True) == theirs, (given, text)
    old = ByteLevelBPETokenizer.from_file(vocab, merges)
    old.add_special_tokens([END])  # which its file has, and does not say to be one
    assert encode(fitted(read_object(old), "old", N), "the cat") == old.encode("the cat").ids


class ItsOwnWay(PreTrainedTokenizerFast):
    def __call__(self, text, **options):
        return super().__call__(text.replace("CAT", "cat"), **options)


def cut_off(length):
    tokenizer = alone()
    tokenizer.enable_truncation(length)
    return tokenizer


def filled_up(length):
    tokenizer = alone()
    tokenizer.enable_padding(length=length)
    return tokenizer


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: changed(post_processor=BEHIND), "post_processor"),
        (
            lambda: PreTrainedTokenizerFast(tokenizer_object=changed(post_processor=BEHIND)),
            "post_processor",
        ),
        (lambda: changed(normalizer=normalizers.NFKC()), "normalizer"),
        (lambda: changed(encode_special_tokens=True), "split_special_tokens"),
        (
            lambda: PreTrainedTokenizerFast(tokenizer_object=alone(), split_special_tokens=True),
            "split_special",
        ),
        (
            lambda: PreTrainedTokenizerFast(
                tokenizer_object=alone(), eos_token=END, add_eos_token=True
            ),
            "post_proc",
        ),
        (lambda: cut_off(4), "truncation"),
        (lambda: filled_up(20), "padding"),
        (lambda: alone(added("[PAD]", N, lstrip=True)), "lstrip"),
        (lambda: ItsOwnWay(tokenizer_object=alone()), "it does more than can be followed"),
        (lambda: object(), "is no tokenizer that can be read; give a tiktoken.Encoding"),
        (lambda: Tokenizer, "is no tokenizer that can be read"),
    ],
)
def test_what_is_not_followed_is_refused_by_its_name(make, key):
    lm = random_lm(vocab_size=N)
    with pytest.raises(CheckpointError, match=key):
        gptviz.wrap(lm.model, make())


def test_load_takes_what_wrap_takes(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    makers.hf_model(vocab_size=N).save_pretrained(folder)
    given = alone()
    lm = gptviz.load(folder, tokenizer=given)
    assert lm.encode("the cat sat") == given.encode("the cat sat").ids
