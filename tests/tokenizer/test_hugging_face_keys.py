"""Every key of a tokenizer's files: followed as transformers follows it, or refused by its name."""

import json
import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

from gptviz.tokenizer import encode, settings as keys
from gptviz.tokenizer.added_files import BESIDE
from gptviz.tokenizer.files import read_folder
from gptviz.tokenizer.steps import show_work
from gptviz.tokenizer.vocabulary import fitted, read_vocabulary, save_vocabulary

END = "<|endoftext|>"
LEARNT = [
    "The cat sat on the mat; the other cats didn't. “你好,世界” — naïve café, 12345 times",
    "  indented   code(x) == y  🙂🙂 the the the theatre then there their hello hello world pad",
]
TEXTS = [
    "", " ", "  ", "\n", "\t", "\n\n \n", "the", " the", "  the", "the ", "the  ", "The theatre", "THE CAT",
    "hello world", " hello  world ", "hello, world! didn't", "naïve café", "cafe\u0301 e\u0301\u0302",
    "你好,世界",
    "🙂🙂 👩‍👩‍👧 🇩🇪", "def f(x):\n    return x == 1\n\tpass", "12345 3.14 1e-5", "\x00\x7f\u200b\ufeff",
    END, f"{END}the cat", f"the cat{END}", f"the {END} cat{END}{END}", f"a{END}b\n{END}\n", "<|endoftext",
    "<s>a</s>",
    "[PAD]", "the [PAD] cat[PAD][PAD]", " [PAD]", "<word> the<word>cat <word>", "<wo<word>rd>", "a<word>s",
    "<|endoftext|>s [PAD]><word>!", "!", "a!b !", "<mask> the <mask>", "İstanbul ǅ ﬁ", "Ω≈ç√ ½", "the" * 40,
]  # fmt: skip


@cache
def base():
    """A small byte-level BPE, its end of text behind all others, as tokenizer.json has it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        LEARNT * 3, trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet)
    )
    whole = json.loads(tokenizer.to_str())
    size = len(whole["model"]["vocab"])
    whole["model"]["vocab"][END] = size
    whole["added_tokens"] = [added(END, size)]
    return whole


def added(content, id=None, **flags):
    flags = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    } | flags
    return {**({} if id is None else {"id": id}), "content": content, **flags}


def size():
    return len(base()["model"]["vocab"])


def write(folder, change=None, config=None, special=None, old=None, *, files=False, model=None):
    """A folder with a tokenizer.json, or vocab.json and merges.txt, and what is beside them."""
    whole = deepcopy(base())
    if change is not None:
        change(whole)
    if files:
        (folder / "vocab.json").write_text(json.dumps(whole["model"]["vocab"]), encoding="utf-8")
        merges = "\n".join(
            pair if isinstance(pair, str) else " ".join(pair) for pair in whole["model"]["merges"]
        )
        (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", encoding="utf-8")
    else:
        (folder / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    beside = {"tokenizer_config": config, "special_tokens_map": special, "added_tokens": old}
    for name, values in beside.items():
        if values is not None:
            (folder / f"{name}.json").write_text(json.dumps(values), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"} | (model or {})))


def assert_alike(folder):
    """Read the folder in both ways: the same ids of every text, special tokens read or not."""
    vocabulary = read_folder(folder)
    truth = AutoTokenizer.from_pretrained(folder)
    saved = folder / "vocabulary.saved"
    save_vocabulary(vocabulary, saved)
    assert read_vocabulary(saved) == vocabulary
    encoding = fitted(vocabulary, "theirs", max(truth.get_vocab().values()) + 1)
    for text in TEXTS:
        on = truth(text)["input_ids"]
        off = truth(text, split_special_tokens=True, add_special_tokens=False)
        assert encode(encoding, text, special_tokens=True, begin=True) == on, text
        assert encode(encoding, text) == off["input_ids"], text
    for text in TEXTS[::4]:
        pieces = show_work(encoding, text, special_tokens=True)
        assert "".join(piece.text for piece in pieces) == text


def top(**values):
    return {"change": lambda whole: whole.update(values)}


def model(**values):
    return {"change": lambda whole: whole["model"].update(values)}


def pre(**values):
    return {"change": lambda whole: whole["pre_tokenizer"].update(values)}


def extra(*tokens):
    return {"change": lambda whole: whole["added_tokens"].extend(tokens)}


def decoder(*tokens):
    listed = [added(END, size() - 1), *tokens]
    return {str(token["id"]): {k: v for k, v in token.items() if k != "id"} for token in listed}


N = size()
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
TEMPLATE = {
    "type": "TemplateProcessing",
    "pair": [],
    "special_tokens": {END: {"id": END, "ids": [N - 1], "tokens": [END]}},
}
TEXT_ONLY = [{"Sequence": {"id": "A", "type_id": 0}}]
WITH_END = [{"SpecialToken": {"id": END, "type_id": 0}}, *TEXT_ONLY]
AS_IT_IS = {"tokenizer_class": "PreTrainedTokenizerFast"}
NO_DEFAULTS = dict.fromkeys(("bos_token", "eos_token", "unk_token"))

DIGITS = {"type": "Digits", "individual_digits": True}
SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
SPLIT["pattern"] = {
    "Regex": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
}


def behind(first, **values):
    """A pre-tokenizer, and ByteLevel behind it."""
    return {"type": "Sequence", "pretokenizers": [first, BYTE_LEVEL | values]}


FOLLOWED = {
    "as it is": {},
    "as two files": {"files": True},
    "a template without tokens": top(post_processor={**TEMPLATE, "single": TEXT_ONLY}),
    "ByteLevel behind": top(post_processor=BYTE_LEVEL),
    "a sequence of processors": top(
        post_processor={"type": "Sequence", "processors": [BYTE_LEVEL]}
    ),
    "a sequence of one cut": top(pre_tokenizer={"type": "Sequence", "pretokenizers": [BYTE_LEVEL]}),
    "single digits": top(pre_tokenizer=behind(DIGITS)) | {"config": AS_IT_IS},
    "another regex": top(pre_tokenizer=behind(SPLIT, use_regex=False)) | {"config": AS_IT_IS},
    "a token before every text": top(post_processor={**TEMPLATE, "single": WITH_END}),
    "two before every text": top(
        post_processor={
            "type": "Sequence",
            "processors": [{**TEMPLATE, "single": [WITH_END[0], *WITH_END]}, BYTE_LEVEL],
        }
    ),
    "two templates": top(
        post_processor={
            "type": "Sequence",
            "processors": [{**TEMPLATE, "single": TEXT_ONLY}, {**TEMPLATE, "single": WITH_END}],
        }
    ),
    "composed": top(normalizer={"type": "NFC"}) | {"config": AS_IT_IS},
    "composed in a sequence": top(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]})
    | {"config": AS_IT_IS},
    "whole words first": model(ignore_merges=True) | {"config": AS_IT_IS},
    "no offsets": pre(trim_offsets=False),
    "no normalizers": top(normalizer={"type": "Sequence", "normalizers": []}),
    "a limit": top(
        truncation={"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    ),
    "padding": top(
        padding={
            "strategy": {"Fixed": 30},
            "direction": "Right",
            "pad_id": 0,
            "pad_token": "!",
            "pad_type_id": 0,
            "pad_to_multiple_of": None,
        }
    ),
    "an unknown token": model(unk_token=END, fuse_unk=True),
    "another decoder": top(decoder=None),
    "empty marks": model(continuing_subword_prefix="", end_of_word_suffix=""),
    "a pad token": extra(added("[PAD]", N)),
    "a word": extra(added("<word>", N, special=False, normalized=True)),
    "a word and a pad token": extra(
        added("[PAD]", N), added("<word>", N + 1, special=False, normalized=True)
    ),
    "one inside of the other": extra(
        added("word", N, special=False), added("<word>", N + 1, special=False)
    ),
    "two at one place": extra(
        added("<word>", N, special=False), added("<word>s", N + 1, special=False)
    ),
    "a word that hides a special one": extra(
        added("xt|>s", N, special=False), added("[PAD]", N + 1)
    ),
    "first the plain, then the normalized": extra(
        added("a<word", N, special=False, normalized=True), added("<word>", N + 1, special=False)
    ),
    "a byte as the pad token": extra(added("!", 0)),
    "a merged token as a word": extra(added("the", base()["model"]["vocab"]["the"], special=False)),
    "taken as it is": {"config": AS_IT_IS},
    "a word, taken as it is": extra(added("<word>", N, special=False)) | {"config": AS_IT_IS},
    "named in the config": {
        "config": {"bos_token": END, "eos_token": END, "unk_token": END, "pad_token": END}
    },
    "named, and in no list": {"config": {"pad_token": "[PAD]"}},
    "two named, and in no list": {"config": {"mask_token": "<mask>", "pad_token": "[PAD]"}},
    "named as objects": {"config": {"pad_token": {"__type": "AddedToken", **added("[PAD]")}}},
    "named in the map": {"special": {"pad_token": added("[PAD]")}},
    "named in the map of two files": {"special": {"pad_token": "[PAD]"}, "files": True},
    "further ones": {"config": {"additional_special_tokens": ["<mask>", "[PAD]"]}},
    "further ones by their new name": {
        "config": {"extra_special_tokens": ["<mask>"]},
        "files": True,
    },
    "a list of the config": extra(added("<word>", N, special=False, normalized=True))
    | {
        "config": {
            "added_tokens_decoder": decoder(added("<word>", N, special=False, normalized=True))
        }
    },
    "a list of the config, of two files": {
        "config": {
            "added_tokens_decoder": decoder(
                added("<word>", N, special=False), added("[PAD]", N + 1)
            )
        },
        "files": True,
    },
    "the old list": {"old": {"[PAD]": N}, "files": True},
    "the old list, named": {
        "old": {"[PAD]": N, "<word>": N + 1},
        "special": {"pad_token": "[PAD]"},
        "files": True,
    },
    "the old list beside the new file": extra(added("<word>", N, special=False))
    | {"old": {"<word>": N}},
    "a named word": extra(added("[PAD]", N, special=False)) | {"config": {"pad_token": "[PAD]"}},
    "a named word, taken as it is": extra(added("[PAD]", N, special=False))
    | {"config": {"pad_token": "[PAD]"} | AS_IT_IS},
    "a token with no list": {"change": lambda whole: whole.update(added_tokens=[])},
    "no end of text": {
        "change": lambda whole: (whole["model"]["vocab"].pop(END), whole.update(added_tokens=[]))
    },
    "no end of text, as two files": {
        "change": lambda whole: whole["model"]["vocab"].pop(END),
        "files": True,
    },
    "no end of text, and none is named": {
        "change": lambda whole: (whole["model"]["vocab"].pop(END), whole.update(added_tokens=[])),
        "config": NO_DEFAULTS,
    },
    "a false setting": {
        "config": {"add_prefix_space": False, "add_bos_token": False, "do_lower_case": False},
        "files": True,
    },
    "notes": {
        "config": {
            "model_max_length": 8,
            "padding_side": "left",
            "errors": "replace",
            "chat_template": "x",
        }
    },
}

REFUSED = {
    "add_prefix_space": [
        pre(add_prefix_space=True),
        {"config": {"add_prefix_space": True}, "files": True},
        {"config": {"add_prefix_space": True}},
        {"special": {"add_prefix_space": True}, "files": True},
    ],
    "add_bos_token": [
        {"config": {"add_bos_token": True}, "files": True},
        {"config": {"add_bos_token": True}},
    ],
    "add_eos_token": [{"config": {"add_eos_token": True}, "files": True}],
    "do_lower_case": [{"config": {"do_lower_case": True}}],
    "split_special_tokens": [{"config": {"split_special_tokens": True}}],
    "auto_map": [{"config": {"auto_map": {"AutoTokenizer": ["own.Own", None]}}}],
    "init_inputs": [{"config": {"init_inputs": ["x"]}}],
    "fast_tokenizer_files": [{"config": {"fast_tokenizer_files": ["tokenizer.4.json"]}}],
    "tokenizer_class": [
        {"config": AS_IT_IS, "files": True},
        {"config": {"tokenizer_class": "RobertaTokenizer"}},
        {"model": {"tokenizer_class": "BertTokenizer"}},
    ],
    "post_processor": [
        top(post_processor={**TEMPLATE, "single": [*TEXT_ONLY, WITH_END[0]]}),
        top(post_processor={**TEMPLATE, "single": [*WITH_END, WITH_END[0]]}),
        top(post_processor={**TEMPLATE, "single": []}),
        top(post_processor={**TEMPLATE, "single": [*TEXT_ONLY, *TEXT_ONLY]}),
        top(
            post_processor={
                "type": "Sequence",
                "processors": [BYTE_LEVEL, {**TEMPLATE, "single": [*TEXT_ONLY, WITH_END[0]]}],
            }
        ),
        top(
            post_processor={
                "type": "RobertaProcessing",
                "sep": [END, N - 1],
                "cls": [END, N - 1],
                "trim_offsets": True,
                "add_prefix_space": False,
            }
        ),
        top(post_processor={"type": "BertProcessing", "sep": [END, N - 1], "cls": [END, N - 1]}),
    ],
    "normalizer": [top(normalizer={"type": kind}) for kind in ("NFKC", "Lowercase")]
    + [top(normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}]})],
    "pre_tokenizer": [
        top(pre_tokenizer=None),
        top(pre_tokenizer={"type": "Whitespace"}),
        top(pre_tokenizer={"type": "Sequence", "pretokenizers": [BYTE_LEVEL, BYTE_LEVEL]}),
        top(pre_tokenizer={"type": "Sequence", "pretokenizers": [DIGITS]}),
        top(pre_tokenizer=behind(SPLIT | {"pattern": {"String": " "}}, use_regex=False)),
        top(
            pre_tokenizer={
                "type": "Split",
                "pattern": {"String": " "},
                "behavior": "Isolated",
                "invert": False,
            }
        ),
    ],
    "pre_tokenizer.use_regex": [
        pre(use_regex=False),
        top(pre_tokenizer=behind(DIGITS, use_regex=False)),
        top(pre_tokenizer=behind(SPLIT)),
    ],
    "pre_tokenizer.individual_digits": [
        top(pre_tokenizer=behind(DIGITS | {"individual_digits": False}))
    ],
    "pre_tokenizer.behavior": [top(pre_tokenizer=behind(SPLIT | {"behavior": "Removed"}))],
    "pre_tokenizer.invert": [top(pre_tokenizer=behind(SPLIT | {"invert": True}))],
    "pre_tokenizer.novelty": [pre(novelty=1)],
    "model.type": [model(type="WordPiece"), model(type="Unigram")],
    "model.dropout": [model(dropout=0.5)],
    "model.continuing_subword_prefix": [model(continuing_subword_prefix="##")],
    "model.end_of_word_suffix": [model(end_of_word_suffix="</w>")],
    "model.byte_fallback": [model(byte_fallback=True)],
    "model.novelty": [model(novelty=True)],
    "novelty": [top(novelty={}), {"config": {"novelty": 1}}],
    "lstrip": [
        extra(added("[PAD]", N, lstrip=True)),
        {"config": {"pad_token": {"__type": "AddedToken", **added("[PAD]", lstrip=True)}}},
    ],
    "rstrip": [
        extra(added("[PAD]", N, rstrip=True)),
        {"special": {"pad_token": added("[PAD]", rstrip=True)}},
    ],
    "single_word": [extra(added("word", N, single_word=True))],
    "added_tokens_decoder": [
        {"config": {"added_tokens_decoder": decoder(added("<word>", N + 4))}, "files": True},
        {"config": {"added_tokens_decoder": decoder(added("<word>", N))} | AS_IT_IS}
        | extra(added("<word>", N, special=False)),
        {"special": {"added_tokens_decoder": {}}},
    ],
    "added_tokens": [
        extra(added("[PAD]", N + 7)),
        extra(added("[PAD]", N)) | {"config": {"added_tokens_decoder": decoder()}},
        extra(added("[PAD]", N), added("[PAD]", N)),
        extra(added("[PAD]", N, special=True))
        | {"config": {"added_tokens_decoder": decoder(added("[PAD]", N, special=False))}},
    ],
    "added_tokens.json": [
        {"old": {"[PAD]": N + 1}, "files": True},
        extra(added("[PAD]", N)) | {"old": {"[PAD]": N + 1}},
    ],
    "special_tokens_map.json": [
        {"config": {"added_tokens_decoder": decoder()}, "special": {"pad_token": "[PAD]"}}
    ],
    "image_token": [{"config": {"image_token": "<image>"}}],
    "use_auth_token": [{"config": {"use_auth_token": "x"}}],
    "add_sep_token": [{"config": {"add_sep_token": True}}],
    "extra_special_tokens": [
        {"config": {"extra_special_tokens": ["a"], "additional_special_tokens": ["b"]}}
    ],
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_is_followed_gives_the_ids_of_transformers(tmp_path, name):
    write(tmp_path, **FOLLOWED[name])
    assert_alike(tmp_path)


@pytest.mark.parametrize(
    ("key", "number"),
    [(key, number) for key, made in REFUSED.items() for number in range(len(made))],
)
def test_what_is_refused_is_refused_by_its_name(tmp_path, key, number):
    write(tmp_path, **REFUSED[key][number])
    with pytest.raises(ValueError, match=rf"\b{re.escape(key)}\b"):
        read_folder(tmp_path)


WORDS = {"model_input_names", "chat_control_tokens", "files_loaded"}  # lists of them
NUMBERS = {
    "max_len",
    "stride",
    "vocab_size",
    "pad_to_multiple_of",
    "model_max_length",
    "max_length",
}
SIDES = {"padding_side", "truncation_side"}


def harmless(key):
    """A value for a key that changes nothing; of those that say so, the other one than transformers' own."""
    if key in WORDS:
        return ["input_ids"]
    if key == "use_auth_token":
        return True  # of a text transformers makes a special token
    if key in SIDES:
        return "left"
    return 4 if key in NUMBERS or key.endswith("_id") else "x"


@pytest.mark.parametrize("files", [False, True])
def test_what_is_said_to_change_nothing_changes_nothing(tmp_path, files):
    config = {key: harmless(key) for key in keys.HARMLESS}
    write(tmp_path, config=config, files=files)
    assert_alike(tmp_path)


TABLES = (keys.CONFIG, keys.PARTS, keys.MODEL, keys.BYTE_LEVEL, keys.CUTS_ITSELF)
TABLES += (keys.DIGITS, keys.SPLIT, keys.ADDED)


def test_the_documents_have_every_key():
    text = Path(__file__).parents[2].joinpath("docs/models.md").read_text("utf-8")
    section = text.partition("\n## Tokenizers\n")[2].partition("\n## ")[0]
    rows = [
        line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")
    ]
    refused = {(row[0].strip("`"), *row[2:]) for row in rows if len(row) == 4}
    assert refused == {
        (key, f"it {rule.does}", rule.instead) for table in TABLES for key, rule in table.items()
    }
    others = {
        key: row[1] for row in rows if len(row) == 2 for key in re.findall("`([^`]+)`", row[0])
    }
    assert {key: others.get(key) for key in keys.HARMLESS} == keys.HARMLESS
    followed = {
        *keys.NAMED,
        *keys.FURTHER,
        keys.ADDED_TOKENS_DECODER,
        keys.TOKENIZER_CLASS,
        *BESIDE[2:],
    }
    assert followed | {"vocab.json", "spiece.model", "special", "normalized"} <= others.keys()


def test_every_key_of_the_tables_is_tried():
    tried = {key.split(".")[-1] for key in REFUSED} | {*REFUSED}
    assert {key for table in TABLES for key in table} <= tried


NAMES = ["[PAD]", "<word>", "<word>s", "a<word", "word", "the", " the", "!", "é", "<mask>", END]
KEYS = ["bos_token", "eos_token", "pad_token", "mask_token"]
SETTINGS = {
    "add_prefix_space": st.booleans(),
    "add_bos_token": st.booleans(),
    "split_special_tokens": st.booleans(),
    "do_lower_case": st.sampled_from([False, True]),
    "tokenizer_class": st.sampled_from(
        ["GPT2Tokenizer", "GPT2TokenizerFast", "PreTrainedTokenizerFast"]
    ),
    "model_max_length": st.integers(1, 9),
    "padding_side": st.sampled_from(["left", "right"]),
    "truncation_side": st.just("left"),
    "errors": st.just("strict"),
    "model_input_names": st.just(["input_ids"]),
    "clean_up_tokenization_spaces": st.booleans(),
}


@st.composite
def folders(draw):
    """What `write` takes: any tokens in any lists, named or not, any settings; most ids are right."""
    vocabulary = base()["model"]["vocab"]
    next_id = N
    tokens = []
    for content in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4)):
        id = vocabulary.get(content, next_id)
        next_id = max(next_id, id + 1)
        wrong = draw(st.sampled_from([0] * 15 + [1]))
        flags = {key: draw(st.booleans()) for key in ("special", "normalized")}
        tokens.append(added(content, id + wrong, **flags))
    lists = draw(st.sets(st.sampled_from(["json", "decoder", "old"]), min_size=1))
    named = st.dictionaries(st.sampled_from(KEYS), st.sampled_from([*NAMES, END, END]), max_size=2)
    config = draw(st.fixed_dictionaries({}, optional=SETTINGS)) if draw(st.booleans()) else {}
    config |= draw(named)
    if "decoder" in lists:
        config["added_tokens_decoder"] = {
            str(t["id"]): {k: t[k] for k in t if k != "id"} for t in tokens
        }
    further = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2))
    if further:
        config["additional_special_tokens"] = further

    def change(whole):
        if "json" in lists:
            whole["added_tokens"] = tokens

    return {
        "change": change,
        "config": config or None,
        "special": draw(st.none() | named),
        "old": {token["content"]: token["id"] for token in tokens} if "old" in lists else None,
        "files": draw(st.booleans()),
    }


@settings(max_examples=60, deadline=None)
@given(folders())
def test_any_keys_together_are_followed_or_one_of_them_is_named(given_files):
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, **given_files)
        try:
            read_folder(folder)
        except ValueError as error:
            files = ["added_tokens", "special_tokens_map.json", *(given_files["config"] or {})]
            assert any(key in str(error) for key in files), error
            return
        assert_alike(folder)
