"""Tokenizers of the Llama, Qwen and SmolLM2 families: ids of any text equal to those of transformers."""

import json
import pickle
import unicodedata

import pytest
from hypothesis import given, settings, strategies as st
from tokenizers import AddedToken, normalizers
from transformers import PreTrainedTokenizerFast

import gptviz
from gptviz.analysis.tokens import merge_rows
from gptviz.tokenizer import encode, has_token
from gptviz.tokenizer.added import composed
from gptviz.tokenizer.files import read_folder
from gptviz.tokenizer.objects import read_object
from gptviz.tokenizer.one import one_token
from gptviz.tokenizer.steps import show_work
from gptviz.tokenizer.vocabulary import fitted, read_vocabulary, save_vocabulary
from tests.conftest import random_lm
from tests.tokenizer import families
from tests.tokenizer.families import BEGIN, END, FAMILIES

TEXTS = [
    "", " ", "  ", "   a", "\n", "\n\n \n x", "\t\tx", "a \n", "a\r\nb\r\n\r\n  c", "x   \n\n   y", " \u3000 \u00a0x",
    "It's THEY'RE we'Ve 'S 'ſ it'd'll", "don’t", "antidisestablishment antidisestablishmentarian qqqq qqqqq qqq",
    "1 12 123 1234 12345678", "a  1 \n 2  ٣٤ ² ½ Ⅻ 一二", "3.14e-10 0x1F 1,000,000", "the  12  cats   3",
    "def f(x):\n    return [i ** 2 for i in x]  # ok\n\n\n", "if(a!=b){return c->d;}\r\n", "<!-- -- --- ---- -->",
    "naïve café", "cafe\u0301 e\u0301\u0302 a\u0323\u0302", "A\u030a \u212b \u1100\u1161\u11a8 \u0958",
    "\u0301x \u0338",     "你好,世界。", "日本語のテキスト", "مرحبا بالعالم", "שָׁלוֹם", "नमस्ते", "🙂🙂 👩‍👩‍👧 🇩🇪 👍🏽",
    "\x00\x7f\u200b\ufeff\u2028",
    f"{END}the{END}", f"a{BEGIN}b {BEGIN}", "<|im_start|>user\nhi<|im_end|>\n", "<|eot_id|><|end_of_text|>", "<|im_end",
    "<think>\n1\n</think>", f"{END}\u0338e<think>\u0301x", "the" * 60, "    " * 20 + "x", "İstanbul ǅ ﬁ",
]  # fmt: skip
ANY = st.text(
    st.sampled_from([*" \t\n\r\u00a0", *"aeSs't123!<|>-", "\u0301", "\u0323", "é", "ſ", "你", "٣", "½", "🙂"]),
    max_size=40,
)  # fmt: skip


def theirs_of(family):
    return PreTrainedTokenizerFast(tokenizer_object=families.tokenizer_of(family))


def saved(folder, family):
    theirs = theirs_of(family)
    theirs.save_pretrained(folder)
    return theirs


def encoding_of(vocabulary, theirs):
    return fitted(vocabulary, "theirs", max(theirs.get_vocab().values()) + 1)


def assert_same_ids(encoding, theirs, text):
    on = theirs(text)["input_ids"]
    assert encode(encoding, text, special_tokens=True, begin=True) == on, text
    off = theirs(text, split_special_tokens=True)["input_ids"]
    assert encode(encoding, text, begin=True) == off, text
    bare = theirs(text, split_special_tokens=True, add_special_tokens=False)["input_ids"]
    assert encode(encoding, text) == bare, text
    return bare


@pytest.mark.parametrize("family", FAMILIES)
def test_the_ids_of_many_texts_are_those_of_transformers(tmp_path, family):
    theirs = saved(tmp_path, family)
    vocabulary = read_folder(tmp_path)
    save_vocabulary(vocabulary, tmp_path / "vocabulary.json")
    assert read_vocabulary(tmp_path / "vocabulary.json") == vocabulary
    encoding = encoding_of(vocabulary, theirs)
    assert encoding_of(read_object(theirs), theirs)._special_tokens == encoding._special_tokens
    copied = pickle.loads(pickle.dumps(encoding))
    for text in TEXTS:
        bare = assert_same_ids(encoding, theirs, text)
        assert_same_ids(copied, theirs, text)
        back = text
        if family == "qwen2":
            back = unicodedata.normalize("NFC", text)
        assert encoding.decode(bare) == theirs.decode(bare) == back
        pieces = show_work(encoding, text, special_tokens=True)
        assert [id for piece in pieces for id in piece.ids] == theirs(text)["input_ids"]
        first = len(encode(encoding, "", begin=True))
        shown = "".join(piece.text for piece in pieces[first:])
        if f"{END}\u0338" not in text:  # what is composed ends at a special token
            assert shown == back


@pytest.mark.parametrize("family", FAMILIES)
def test_any_text(family):
    theirs = theirs_of(family)
    encoding = encoding_of(read_object(theirs), theirs)

    @settings(max_examples=150, deadline=None)
    @given(ANY | st.text(max_size=30))
    def same(text):
        assert_same_ids(encoding, theirs, text)

    same()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_character(family):
    """Every one between letters and behind an apostrophe, so that each class of each regex is asked."""
    theirs = theirs_of(family)
    encoding = encoding_of(read_object(theirs), theirs)
    known = [code for code in range(0x30000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    known = [code for code in known if not 0x3400 < code < 0x9FFF and not 0xAC00 < code < 0xD7A3]
    known = [code for code in known if not 0x17000 < code < 0x18D00 and code < 0x20010]
    wrong = []
    for start in range(0, len(known), 50):
        part = [chr(code) for code in known[start : start + 50]]
        text = "".join(f"x{one}x '{one} {one}1\n" for one in part)
        if encode(encoding, text, begin=True) != theirs(text)["input_ids"]:
            wrong += [one for one in part if encode(encoding, one) != bare_ids(theirs, one)] or part
    assert wrong == []


def bare_ids(theirs, text):
    return theirs(text, add_special_tokens=False)["input_ids"]


def test_composing_is_that_of_the_tokenizers_library():
    nfc = normalizers.NFC()
    marks = [chr(code) for code in range(0x110000) if unicodedata.combining(chr(code))]
    for code in range(0x110000):
        one = chr(code)
        apart = unicodedata.normalize("NFD", one)
        if unicodedata.category(one) != "Cs" and apart != one:
            assert composed(one) == nfc.normalize_str(one)
            assert composed(apart) == nfc.normalize_str(apart)
    for mark in marks:
        text = f"a{mark}\u0323 a\u0301{mark}\u0323 a\u0334{mark}\u0334"
        assert composed(text) == nfc.normalize_str(text), hex(ord(mark))


def test_what_begins_a_text_is_read_with_special_tokens_off_too(tmp_path):
    theirs = saved(tmp_path, "llama3")
    encoding = encoding_of(read_folder(tmp_path), theirs)
    begin = encoding._special_tokens[BEGIN]
    assert encoding.begins == (begin,)
    assert encode(encoding, "", begin=True) == [begin]
    assert begin not in encode(encoding, f"{BEGIN}x")
    first, *rest = show_work(encoding, "the cat")
    assert (first.ids, first.special, first.text) == ((begin,), True, "")
    assert "".join(piece.text for piece in rest) == "the cat"


def changed(tmp_path, family, change):
    whole = families.whole_of(family)
    change(whole)
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "TokenizersBackend"}')
    return tmp_path


def cuts(whole):
    return whole["pre_tokenizer"]["pretokenizers"]


def begin(whole):
    return whole["post_processor"]["processors"][1]["single"][0]["SpecialToken"]


REFUSED = [
    ("qwen2", "NFKC", lambda w: w.update(normalizer={"type": "NFKC"})),
    ("qwen2", "Split", lambda w: cuts(w).reverse()),
    ("qwen2", "\\[0-9\\]", lambda w: cuts(w)[0].update(pattern={"Regex": "[0-9]+"})),
    ("qwen2", "behavior", lambda w: cuts(w)[0].update(behavior="Removed")),
    ("qwen2", "invert", lambda w: cuts(w)[0].update(invert=True)),
    ("qwen2", "pre_tokenizer.use_regex", lambda w: cuts(w)[1].update(use_regex=True)),
    ("qwen2", "add_prefix_space", lambda w: cuts(w)[1].update(add_prefix_space=True)),
    ("smollm2", "individual_digits", lambda w: cuts(w)[0].update(individual_digits=False)),
    ("smollm2", "Punctuation", lambda w: cuts(w).append({"type": "Punctuation"})),
    ("llama3", "no merge of older tokens makes", lambda w: w["model"].update(ignore_merges=False)),
    ("llama3", "not in the order", lambda w: w["model"]["merges"].reverse()),
    ("llama3", "'qq' before every text, which is no added", lambda w: begin(w).update(id="qq")),
]


@pytest.mark.parametrize(("family", "says", "change"), REFUSED)
def test_what_cannot_be_followed_is_a_sentence_that_says_what_was_found(
    tmp_path, family, says, change
):
    with pytest.raises(ValueError, match=says):
        read_folder(changed(tmp_path, family, change))


def test_of_the_pairs_that_make_a_token_one_is_needed(tmp_path):
    """Llama 3's file lists every pair. Without one that no text leads to all ids are the same."""
    merges = families.whole_of("llama3")["model"]["merges"]
    pairs = {}
    for pair in merges:
        pairs.setdefault("".join(pair), []).append(pair)
    several = [listed for listed in pairs.values() if len(listed) > 1]
    assert len(several) > 5
    for listed in several[:6]:
        refused = []
        for pair in listed:
            rest = [other for other in merges if other != pair]
            folder = changed(
                tmp_path, "llama3", lambda w, rest=rest: w["model"].update(merges=rest)
            )
            try:
                vocabulary = read_folder(folder)
            except ValueError as error:
                refused.append(str(error))
                continue
            theirs = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
            encoding = encoding_of(vocabulary, theirs)
            for text in TEXTS[::3]:
                assert_same_ids(encoding, theirs, text)
        assert len(refused) == 1
        assert "out of turn" in refused[0]


def test_a_normalized_token_that_no_composed_text_holds_is_refused():
    tokenizer = families.tokenizer_of("qwen2")
    tokenizer.add_tokens([AddedToken("e\u0301e", special=False, normalized=True)])
    with pytest.raises(ValueError, match='is "normalized", and the normalizer NFC makes'):
        read_object(tokenizer)


def test_normalized_tokens_are_found_in_composed_text():
    tokenizer = families.tokenizer_of("qwen2")
    tokenizer.add_tokens([AddedToken("éé", special=False, normalized=True)])
    theirs = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    encoding = encoding_of(read_object(theirs), theirs)
    for text in ("éé", "e\u0301e\u0301", f"ae\u0301é{END}e\u0301é<think>\u0301"):
        assert_same_ids(encoding, theirs, text)


def test_sentencepieces_kind_is_refused(tmp_path):
    def change(whole):
        whole["normalizer"] = {"type": "Prepend", "prepend": "▁"}
        whole["model"]["byte_fallback"] = True

    with pytest.raises(ValueError, match="byte_fallback"):
        read_folder(changed(tmp_path, "smollm2", change))


def test_llama3s_own_file(tmp_path):
    """tokenizer.model alone: the ids of its texts, and of the names that all versions of Llama 3 have."""
    families.save_ranks(tmp_path / "tokenizer.model")
    size = len(families.llama3_ranks())
    vocabulary = read_folder(tmp_path)
    encoding = fitted(vocabulary, "llama3", size + 256)
    theirs = theirs_of("llama3")
    for text in TEXTS:
        assert (
            encode(encoding, text)
            == theirs(text, split_special_tokens=True, add_special_tokens=False)["input_ids"]
        ), text
    assert encoding._special_tokens[BEGIN] == size == encoding.begins[0]
    assert encoding._special_tokens["<|eot_id|>"] == size + 9
    assert not has_token(encoding, size + 2)
    (tmp_path / "tokenizer.model").write_bytes(b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02")
    with pytest.raises(ValueError, match=r"tokenizer\.model \(SentencePiece\)"):
        read_folder(tmp_path)


def test_a_model_reads_what_its_tokenizer_puts_before_a_text():
    theirs = theirs_of("llama3")
    size = max(theirs.get_vocab().values()) + 1
    lm = gptviz.wrap(random_lm(vocab_size=size, context_length=64).model, theirs)
    text = "The cat sat on the mat 123"
    ids = lm.encode(text)
    assert ids == theirs(text)["input_ids"] == [token.id for token in lm.trace(text).tokens]
    assert lm.decode(ids) == f"{BEGIN}{text}" == theirs.decode(ids)
    assert lm.decode(ids, begin=False) == text
    assert lm.encode(text, begin=False) == ids[1:]
    assert merge_rows(lm, text, 0) == [(BEGIN.encode(),)]
    assert merge_rows(lm, text, 1)[-1] == (b"The",)
    # a word is a part of a text
    assert one_token(lm.tokenizer, size, " cat") == lm.encode(" cat", begin=False)[0]
