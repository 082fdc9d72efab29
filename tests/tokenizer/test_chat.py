"""Chat templates are read as transformers reads them, as texts; none is run, and none refuses a model."""

import json

import pytest
from transformers import AutoTokenizer

from gptviz.tokenizer import chat as chats
from gptviz.tokenizer.chat import Chat, chat_of
from gptviz.tokenizer.files import read_folder
from gptviz.tokenizer.objects import read_object
from gptviz.tokenizer.vocabulary import read_vocabulary, save_vocabulary
from tests.tokenizer.chats import LLAMA3, QWEN2, TEMPLATES
from tests.tokenizer.families import tokenizer_of


@pytest.fixture
def folder(tmp_path):
    """A tokenizer of Llama 3's kind, as its folder has it."""
    tokenizer_of("llama3").save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def write(folder, template=None, **more):
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|begin_of_text|>",
        "eos_token": {"content": "<|end_of_text|>", "__type": "AddedToken", "special": True},
    }
    if template is not None:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config | more), encoding="utf-8")


def assert_alike(folder):
    """The templates and the tokens that they call by name are those that transformers has."""
    chat = read_folder(folder).chat
    theirs = AutoTokenizer.from_pretrained(folder)
    named = theirs.chat_template
    if isinstance(named, str):
        named = {"default": named}
    assert dict(chat.templates) == (named or {})
    assert dict(chat.tokens) == theirs.special_tokens_map
    assert read_object(theirs).chat == chat
    return chat


def test_a_text_a_list_and_files(folder):
    write(folder)
    assert assert_alike(folder).template is None
    write(folder, LLAMA3)
    assert assert_alike(folder).template == LLAMA3
    listed = [
        {"name": "default", "template": QWEN2},
        {"name": "rag", "template": "{{ documents }}"},
    ]
    write(folder, listed)
    assert assert_alike(folder).templates == (("default", QWEN2), ("rag", "{{ documents }}"))
    write(folder, listed[1:])
    assert assert_alike(folder).template is None
    # a file of its own is read in place of the key
    (folder / "chat_template.jinja").write_text("{# é 🙂 #}\n" + LLAMA3, encoding="utf-8")
    assert assert_alike(folder).template == "{# é 🙂 #}\n" + LLAMA3
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("{{ tools }}")
    chat = assert_alike(folder)
    assert [name for name, _ in chat.templates] == ["default", "tool_use"]
    save_vocabulary(read_folder(folder), folder / "saved.json")
    assert read_vocabulary(folder / "saved.json").chat == chat


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_templates_of_today(folder, template):
    write(folder, template)
    assert assert_alike(folder).template == template


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (7, "It is 7, neither a text nor a list of named texts"),
        ([1, 2], "It is [1, 2], neither"),
        ({"a": None}, '"a" names null, and a template is a text with a name'),
        ("x" * (chats.LONGEST_TEMPLATE + 1), "'default' has about 131,073 characters"),
        ({str(n): "x" for n in range(17)}, "more than 16 templates"),
        ({"n" * 101: "x"}, "a template is a text with a name"),
    ],
)
def test_what_is_no_template_is_said_and_refuses_nothing(folder, given, said):
    assert said in chat_of(given, {}).not_read
    write(folder, given)
    vocabulary = read_folder(folder)
    assert said in vocabulary.chat.not_read
    assert len(vocabulary.chat.templates) <= chats.MOST_TEMPLATES
    save_vocabulary(vocabulary, folder / "saved.json")
    assert read_vocabulary(folder / "saved.json").chat == vocabulary.chat


def test_files_that_are_too_large_are_not_opened(folder):
    write(folder, LLAMA3)
    with (folder / "chat_template.jinja").open("wb") as file:
        file.truncate(2**40)  # a hole of a terabyte
    chat = read_folder(folder).chat
    assert chat.templates == ()
    assert "has about 274,877,906,944 characters, and at most 131,072 are read" in chat.not_read


def test_a_text_that_is_no_unicode_is_shown(folder):
    write(folder, "a\ud800b")
    assert read_folder(folder).chat.template == "a\ufffdb"
    (folder / "chat_template.jinja").write_bytes(b"a\xffb")
    assert read_folder(folder).chat.template == "a\ufffdb"


def test_a_saved_vocabulary_of_before_has_none(folder):
    save_vocabulary(read_folder(folder), folder / "saved.json")
    saved = json.loads((folder / "saved.json").read_text())
    del saved["chat"]
    (folder / "saved.json").write_text(json.dumps(saved))
    assert read_vocabulary(folder / "saved.json").chat == Chat()
    for wrong in (7, [1], {"templates": 7, "tokens": 8}):
        (folder / "saved.json").write_text(json.dumps(saved | {"chat": wrong}))
        with pytest.raises(ValueError, match="is no vocabulary"):
            read_vocabulary(folder / "saved.json")
