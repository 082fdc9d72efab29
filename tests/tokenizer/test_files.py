"""Hugging Face's tokenizer files as tiktoken encodings, against the `tokenizers` library itself."""

import json
import pickle

import pytest
from hypothesis import given, settings, strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

import gptviz
from gptviz.models.checkpoints import CheckpointError, SurplusTokens
from gptviz.models.convert import convert
from gptviz.tokenizer import (
    END_OF_TEXT,
    encode,
    get_encoding,
    has_token,
    named_bytes,
    needs_the_switch,
    token_bytes,
)
from gptviz.tokenizer.files import read_folder, read_tokenizer_json, read_vocab_and_merges
from gptviz.tokenizer.steps import show_work
from gptviz.tokenizer.vocabulary import Vocabulary, fitted, of_characters, of_encoding
from tests.models.checkpoints import makers
from tests.tokenizer.test_hugging_face_keys import added, write

TEXT = [
    "The cat sat on the mat; the other cats didn't. “你好,世界” — naïve café, 12345 times",
    "a\tb",
    "",
    "  indented   code(x) == y  🙂🙂 the the the theatre then there their",
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small byte-level BPE of the tokenizers library, in both of its layouts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>"]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(TEXT * 3, trainer)
    new = tmp_path_factory.mktemp("new")
    old = tmp_path_factory.mktemp("old")
    tokenizer.save(str(new / "tokenizer.json"))
    tokenizer.model.save(str(old))
    return tokenizer, new, old


@pytest.mark.parametrize("layout", [1, 2])
@settings(max_examples=60, deadline=None)
@given(text=st.text())
def test_the_same_ids_as_the_tokenizers_library_on_any_text(trained, layout, text):
    truth = trained[0]
    vocabulary = read_folder(trained[layout])
    encoding = fitted(vocabulary, "trained", truth.get_vocab_size())
    assert encode(encoding, text) == truth.encode(text).ids or "<|endoftext|>" in text
    assert encoding.decode(encode(encoding, text)) == text


def test_special_tokens_and_every_ids_bytes(trained):
    truth, new, _ = trained
    encoding = fitted(read_folder(new), "trained", truth.get_vocab_size())
    text = "the<|endoftext|>cat"
    assert encode(encoding, text, special_tokens=True) == truth.encode(text).ids
    assert 0 not in encode(encoding, text)
    for id in range(truth.get_vocab_size()):
        assert token_bytes(encoding, id)
    assert [piece.text for piece in show_work(encoding, "the cat sat")] == ["the", " cat", " sat"]


def test_gpt2s_own_files_give_the_one_gpt2_encoding(tmp_path):
    gpt2 = get_encoding("gpt2")
    letters = bytes_to_unicode()
    vocab = {"".join(letters[b] for b in token): id for token, id in gpt2._mergeable_ranks.items()}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab | {"<|endoftext|>": 50256}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")  # not looked at: the ranks are gpt2's
    assert fitted(read_folder(tmp_path), "model", 50257) is gpt2


def edited(trained, tmp_path, change):
    whole = json.loads((trained[1] / "tokenizer.json").read_text())
    change(whole)
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    return tmp_path / "tokenizer.json"


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("add_prefix_space", lambda w: w["pre_tokenizer"].update(add_prefix_space=True)),
        ("pre_tokenizer", lambda w: w["pre_tokenizer"].update(type="Whitespace")),
        ("pre_tokenizer", lambda w: w["pre_tokenizer"].update(use_regex=False)),
        ("normalizer", lambda w: w.update(normalizer={"type": "NFKC"})),
        ("byte-level BPE", lambda w: w["model"].update(type="WordPiece")),
        ("dropout", lambda w: w["model"].update(dropout=0.1)),
        ("not in the order", lambda w: w["model"]["merges"].reverse()),
        ("no merge of older tokens makes", lambda w: w["model"]["merges"].pop()),
        ("the same id", lambda w: w["model"]["vocab"].update({"!": 7, "#": 7})),
        ("has the id", lambda w: w["model"]["vocab"].update({"!": "7"})),
        ("GPT-2's spelling", lambda w: w["model"]["vocab"].update({"☃": 9999})),
        ("is not like", lambda w: w["model"].pop("merges")),
        ('its "content"', lambda w: w.update(added_tokens=[{"id": 3}])),
        ("of two tokens", lambda w: w["model"]["merges"].append(["a", "b", "c"])),
    ],
)
def test_what_tiktoken_cannot_follow_is_refused(trained, tmp_path, message, change):
    with pytest.raises(ValueError, match=message):
        read_tokenizer_json(edited(trained, tmp_path, change))


def test_a_merge_out_of_turn_is_refused(tmp_path):
    """ids would merge b+c first and never a+b, the list says ab+c: not the same tokens for every text."""
    letters = bytes_to_unicode()
    vocab = {letters[b]: b for b in range(256)} | {"bc": 256, "ab": 257, "abc": 258}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nb c\na b\nab c\n")
    with pytest.raises(ValueError, match="out of turn"):
        read_vocab_and_merges(tmp_path / "vocab.json", tmp_path / "merges.txt")


def test_what_goes_for_a_token_can_not_be_typed():
    encoding = fitted(of_encoding(get_encoding("gpt2")), "padded", 50304)
    for special_tokens in (False, True):
        text = "a<id 50303>b<|endoftext|>"
        ids = encode(encoding, text, special_tokens)
        assert 50303 not in ids and (50256 in ids) == special_tokens
        assert ids == [
            id for piece in show_work(encoding, text, special_tokens) for id in piece.ids
        ]


def test_a_vocabularys_own_token_is_no_filler():
    ranks = {bytes([i]): i for i in range(256)}
    encoding = fitted(Vocabulary(".", ranks, {"<id 256>": 258}), "odd", 260)
    assert [named_bytes(encoding, i) for i in (256, 257, 258)] == [
        b"<id 256>",
        b"<id 257>",
        b"<id 256>",
    ]
    assert [has_token(encoding, i) for i in (256, 257, 258)] == [False, False, True]
    assert encode(encoding, "<id 256>", special_tokens=True) == [258]
    assert named_bytes(encoding, 10**9) == b"<id 1000000000>"
    with pytest.raises(ValueError, match="no token with the id -1"):
        named_bytes(encoding, -1)


@pytest.mark.parametrize("token", ["\ud800", "a\udc00", "\ud83d\ude00"])
def test_a_special_token_that_no_text_can_hold_is_refused(token):
    ranks = {bytes([i]): i for i in range(256)}
    with pytest.raises(ValueError, match="surrogate pair") as caught:
        fitted(Vocabulary(".", ranks, {token: 256}), "odd", 257)
    assert str(caught.value).encode()  # the sentence itself can be written


def test_a_model_padded_beyond_its_tokenizer():
    encoding = fitted(of_encoding(get_encoding("gpt2")), "padded", 50304)
    assert encoding.n_vocab == 50304
    assert encode(encoding, "Hello, world") == encode(get_encoding("gpt2"), "Hello, world")
    assert token_bytes(encoding, 50303) == named_bytes(encoding, 50303) == b"<id 50303>"
    assert not has_token(encoding, 50303) and has_token(encoding, 50256) and has_token(encoding, 11)
    with pytest.raises(ValueError, match="do not belong together"):
        fitted(of_encoding(get_encoding("gpt2")), "short", 50255)
    with pytest.raises(ValueError, match="do not belong together"):
        fitted(of_encoding(get_encoding("mini")), "long", 50257)


@given(st.text(min_size=1), st.text())
@settings(max_examples=60, deadline=None)
def test_characters(known, text):
    known = "".join(dict.fromkeys(known))
    encoding = fitted(
        of_characters({c: id for id, c in enumerate(known)}), "characters", len(known)
    )
    assert encode(encoding, known) == list(range(len(known)))
    assert [piece.text for piece in show_work(encoding, known)] == list(known)
    ids = encode(encoding, text)
    assert encoding.decode(ids) == text
    assert all(id < len(known) for id in ids) == (set(text) <= set(known))


def test_characters_are_checked():
    for table in ({}, {"a": 1}, {"ab": 0}, {"\ud800": 0}):
        with pytest.raises(ValueError, match=r"characters must have the ids|is not one character"):
            of_characters(table)
    assert of_characters({"a": 0}) == Vocabulary(r"(?s:.)", {b"a": 0})


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (
            ["spiece.model"],
            r"brings spiece\.model \(SentencePiece\), and such a tokenizer cannot be followed",
        ),
        (["tokenizer.model"], r"brings tokenizer\.model \(SentencePiece\)"),
        (
            ["vocab.txt", "tokenizer_config.json"],
            r"brings vocab\.txt \(a list of words or characters",
        ),
        (["vocab.json"], r"has vocab\.json and no merges\.txt: put the one"),
        (["merges.txt"], r"has merges\.txt and no vocab\.json: put the one"),
        (["tokenizer_config.json"], r"has tokenizer_config\.json, and neither tokenizer\.json nor"),
        (["added_tokens.json"], r"has added_tokens\.json, and neither"),
    ],
)
def test_what_a_folder_brought_is_named(tmp_path, names, says):
    for name in names:
        (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=says):
        read_folder(tmp_path)


def test_a_folder_with_one_file_of_weights_has_its_tokenizer(tmp_path):
    makers.save_book(tmp_path / "model.pth", vocab_size=331, n_embd=8, n_head=2, n_layer=1)
    write(tmp_path)
    (tmp_path / "config.json").unlink()
    truth = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert gptviz.load(tmp_path, n_heads=2).encode("the cat") == truth.encode("the cat").ids
    (tmp_path / "tokenizer.json").rename(tmp_path / "vocab.txt")
    with pytest.raises(CheckpointError, match=r"brings vocab\.txt"):
        gptviz.load(tmp_path, n_heads=2)


def test_a_model_of_gpt2s_size_does_not_take_gpt2s_tokenizer_for_one_that_it_brought(tmp_path):
    makers.save_hf(makers.hf_model(vocab_size=50257, n_embd=8, n_head=2, n_layer=1), tmp_path)
    assert gptviz.load(tmp_path).encode("the") == [1169]
    (tmp_path / "spiece.model").write_bytes(b"\x0a\x0e")
    with pytest.raises(CheckpointError, match=r"brings spiece\.model"):
        gptviz.load(tmp_path)


PADS = {"[PAD]": 330, "<word>": 331}  # behind a vocabulary of 330


def padded(tmp_path):
    """A GPT-2 of 330 tokens, whose tokenizer has two more: nobody resized its embedding."""
    makers.save_hf(makers.hf_model(vocab_size=330), tmp_path)
    model = json.loads((tmp_path / "config.json").read_text())

    def change(whole):
        whole["model"]["vocab"].pop(END_OF_TEXT)
        whole["added_tokens"] = [
            added(name, id, special=name == "[PAD]") for name, id in PADS.items()
        ]

    write(
        tmp_path, change, config=dict.fromkeys(("bos_token", "eos_token", "unk_token")), model=model
    )
    return tmp_path


def test_added_tokens_without_a_row_are_named_and_can_be_gone_without(tmp_path):
    folder = padded(tmp_path)
    says = r"no row for: '\[PAD\]' \(330\), '<word>' \(331\).*end at 329.*drop_surplus=True"
    with pytest.raises(SurplusTokens, match=says):
        gptviz.load(folder)
    lm = gptviz.load(folder, drop_surplus=True)
    assert max(lm.encode("the [PAD] <word>", special_tokens=True)) < 330
    assert lm.decode(lm.encode("the [PAD] <word>", special_tokens=True)) == "the [PAD] <word>"
    lm.trace("the [PAD]")
    model = makers.hf_model(vocab_size=330)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with pytest.raises(SurplusTokens, match=says):
        gptviz.wrap(model, tokenizer)
    assert gptviz.wrap(model, tokenizer, drop_surplus=True).encode("the [PAD]") == lm.encode(
        "the [PAD]"
    )


def test_what_was_converted_has_the_same_words_and_none_without_a_row(tmp_path):
    folder = tmp_path / "theirs"
    out = tmp_path / "ours"
    folder.mkdir()
    out.mkdir()
    padded(folder)
    with pytest.raises(SurplusTokens):
        convert(folder, out)
    convert(folder, out, drop_surplus=True)
    assert gptviz.load(out).encode("a <word>") == gptviz.load(folder, drop_surplus=True).encode(
        "a <word>"
    )
    makers.save_hf(makers.hf_model(vocab_size=332), folder)
    convert(folder, out)
    lm = gptviz.load(out)
    assert lm.encode("a<word> [PAD]")[1] == 331 and 330 not in lm.encode("a<word> [PAD]")
    assert lm.encode("a<word> [PAD]", special_tokens=True) == gptviz.load(folder).encode(
        "a<word> [PAD]", True
    )
    assert [needs_the_switch(lm.tokenizer, id) for id in (0, 330, 331)] == [False, True, False]
    looked_up = [piece for piece in show_work(lm.tokenizer, "a<word> [PAD]", True) if piece.special]
    assert [piece.kind for piece in looked_up] == ["an added word", "a special token"]
    copied = pickle.loads(pickle.dumps(lm.tokenizer))
    assert encode(copied, "a<word> [PAD]") == lm.encode("a<word> [PAD]")
