"""Choosing a model, through AppTest: what can be shown is, and what cannot is said, with the prompt kept."""

import io
import json
import logging
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from huggingface_hub import constants

import gptviz
from gptviz.models.catalog import Entry
from gptviz.models.checkpoints import transfer
from gptviz.tokenizer import END_OF_TEXT
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.models.in_use import ALLOW_PATHS
from gptviz.ui.models.uploads import Uploads
from gptviz.ui.shell import limits
from tests.models.checkpoints import brought, makers
from tests.models.checkpoints.hub_server import Hub
from tests.pages.conftest import prompt_of
from tests.specs import opened, put
from tests.tokenizer.test_hugging_face_keys import added, write

TEXT = "Seven green parrots sang"


@pytest.fixture
def paths(monkeypatch):
    monkeypatch.setenv(ALLOW_PATHS, "1")


@pytest.fixture
def empty_hub_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def said(at):
    return " ".join(e.value for kind in (at.info, at.error, at.warning, at.caption) for e in kind)


def python_of(at):
    """What the tab *Code* says when somebody opens it."""
    return "\n".join(code.value for code in opened(at, "in_code").code)


def button(at, label):
    (found,) = [button for button in at.button if button.label == label]
    return found


def tiny(**sizes):
    """A model of transformers that nobody takes for another one."""
    return makers.hf_model(**{"vocab_size": 50257, "n_embd": 12, "n_head": 3, "n_layer": 1} | sizes)


def test_the_facts_of_the_model_in_use(run_page, mini):
    at = run_page("tokens")
    facts = at.sidebar.caption[0].value
    assert "6 blocks × 8 heads, 256 dimensions" in facts and "context of 256 tokens" in facts
    assert f"{sum(p.numel() for p in mini.model.parameters()):,} parameters" in facts
    assert "27.6 MB in float32" in facts and "262 English books" in facts


def test_another_model_keeps_the_prompt_and_says_where_tokens_changed(run_page):
    at = run_page("tokens", text="Seven parrots", token=1)
    at.sidebar.selectbox(key="prompt_model").select("gpt2-untrained").run()
    (notice,) = [c.value for c in at.caption if "What changed" in c.value]
    assert "mini split this text into 5 tokens, gpt2-untrained into 3." in notice
    assert "`S` `even` → `Seven`" in notice and "`·par` `r` `ots` → `·par` `rots`" not in notice
    assert at.query_params["token"] == "0"  # the token that holds the end of `even`
    at.sidebar.selectbox(key="prompt_model").select("mini").run()
    assert any(
        "gpt2-untrained split this text into 3 tokens, mini into 5." in c.value for c in at.caption
    )
    at = run_page("tokens", text="Seven parrots. " * 60)
    at.sidebar.selectbox(key="prompt_model").select("gpt2-untrained").run()
    read = at.session_state["gptviz_last_pieces"].raws
    assert any(
        f"gpt2-untrained reads {len(read)} tokens; mini read 256. What" in c.value
        for c in at.caption
    )


def test_bfloat16_is_on_the_screen_and_in_the_code_and_cuts_no_differently(run_page):
    at = put(run_page("tokens", text=TEXT), dtype="bfloat16")
    assert "13.8 MB in bfloat16" in at.sidebar.caption[0].value and "the same tokens" not in said(
        at
    )
    assert "gptviz.load('mini', dtype='bfloat16')" in python_of(at)


def test_a_model_that_is_not_here_is_offered_and_the_page_goes_on(run_page, empty_hub_cache):
    at = run_page("tokens", text=TEXT, model="gpt2")
    assert (
        "gpt2 is not on this machine yet. Download it once: 548 MB. Until then you see mini-world."
        in said(at)
    )
    assert "you see **mini-world**" in at.sidebar.caption[0].value
    assert prompt_of(at) == TEXT and any("was built" in m.value for m in at.markdown)
    assert models.downloads().last("gpt2") is None  # a link downloads nothing by itself
    button(at, "Stay with mini-world").click().run()
    assert "not on this machine" not in said(at) and at.query_params["model"] == "mini-world"


@pytest.fixture
def hub(tmp_path, monkeypatch, empty_hub_cache):
    served = Hub(makers.save_hf(tiny(), tmp_path / "repository"))
    served.stands_for_hugging_face(monkeypatch, tmp_path / "hub")
    monkeypatch.setattr(transfer, "RETRY_SECONDS", 0.01)
    models.downloads.clear()
    yield served
    models.downloads.clear()
    models.model_cache().drop_all("someone/tiny")
    served.close()


def test_a_repository_is_downloaded_when_somebody_asks_and_asked_again_where_that_fails(
    run_page, hub
):
    hub.status = 503
    at = run_page("tokens", text=TEXT, model="someone/tiny")
    assert not hub.requests
    for status, label in ((503, "Download"), (None, "Go on with the download")):
        hub.status = status
        button(at, label).click().run()
        models.downloads().last("someone/tiny").wait(30)
        at.run()
        refused = (
            "answered HTTP 503 for someone/tiny; try again later. You see mini-world instead."
            in said(at)
        )
        assert refused == (status == 503)
    assert "1 block × 3 heads, 12 dimensions" in at.sidebar.caption[0].value and not at.error
    assert "not on this machine" not in said(at)


def test_a_path_is_read_only_where_the_server_allows_it(run_page, tmp_path, monkeypatch):
    makers.save_hf(tiny(), tmp_path)
    for allowed in ("", "1", ""):  # the last time it is in the cache that all sessions share
        monkeypatch.setenv(ALLOW_PATHS, allowed)
        at = run_page("tokens", text=TEXT, model=f"path:{tmp_path}")
        assert (f"{ALLOW_PATHS}=1" in said(at)) == (not allowed)
        facts = at.sidebar.caption[0].value
        assert ("3 heads, 12 dimensions" if allowed else "you see **mini-world**") in facts


def test_what_the_system_refuses_is_a_sentence(run_page, tmp_path, paths, monkeypatch):
    denied = PermissionError(13, "Permission denied", str(tmp_path))  # as of /proc/1/cwd
    monkeypatch.setattr("gptviz.ui.models.apart.bytes_of", Mock(side_effect=denied))
    at = run_page("tokens", text=TEXT, model=f"path:{tmp_path}")
    assert "cannot be loaded: Permission denied. You see mini-world instead." in said(at)


def book_file(folder, vocab_size):
    """A file of the book's state dict, with 3 heads; of no vocabulary that is known where it has 8192."""
    torch.save(makers.book_state(tiny(vocab_size=vocab_size)), folder / "model.pth")
    return folder / "model.pth"


NOWHERE = ("/no/such/folder", "x" * 900, "a\0b", "", "~no-such-user/a", "/a/" + "x" * 300)


@pytest.mark.parametrize(
    "query",
    [
        *({"model": f"path:{path}"} for path in NOWHERE),
        *({"tokenizer": path} for path in ("x" * 300, "a\0b", "/no/such")),
    ],
)
def test_a_path_or_a_tokenizer_that_is_none_is_said_to_be_none(run_page, tmp_path, paths, query):
    file = {"model": f"path:{book_file(tmp_path, 8192)}", "n_heads": 3}
    at = run_page("tokens", text=TEXT, **file | query)
    assert (
        len(at.error) == 1 and "cannot be loaded: " in at.error[0].value and prompt_of(at) == TEXT
    )


def test_the_books_file_is_asked_for_its_heads(run_page, tmp_path, paths):
    at = run_page("tokens", text=TEXT, model=f"path:{book_file(tmp_path, 50257)}")
    assert "How many attention heads does" in said(at) and "cannot be divided evenly by 64" in said(
        at
    )
    heads = at.selectbox(key="model_heads")
    assert heads.options == ["1", "2", "3", "4", "6", "12"]
    # a guess would be taken for knowledge
    assert heads.value is None and button(at, "Load").disabled
    heads.select(3).run()
    button(at, "Load").click().run()
    assert "1 block × 3 heads, 12 dimensions" in at.sidebar.caption[0].value
    assert at.query_params["n_heads"] == "3" and prompt_of(at) == TEXT
    assert "model.pth', n_heads=3)" in python_of(at)


def test_which_gelu_a_file_has_is_shown_where_it_does_not_say_it_and_can_be_chosen(
    run_page, tmp_path, paths
):
    folder = makers.save_characters(tmp_path)
    at = run_page("tokens", text="A B", model=f"path:{folder}")
    which = at.sidebar.selectbox(key="model_activation")
    assert (which.value, which.label) == (
        "gelu",
        "GELU (the file does not say which, so this is assumed)",
    )
    which.select("gelu_tanh").run()
    which = at.sidebar.selectbox(key="model_activation")
    assert (which.value, which.label) == ("gelu_tanh", "GELU (the file does not say which)")
    assert at.query_params["activation"] == "gelu_tanh"
    names = [Choice(f"path:{folder}", activation=kind) for kind in ("gelu", "gelu_tanh", None)]
    found = [models.load(name)[1].config.activation for name in names]
    assert found == ["gelu", "gelu_tanh", "gelu"] and not at.error
    assert "activation='gelu_tanh'" in python_of(at)
    at = run_page("tokens", text="A B", model="mini")
    assert "model_activation" not in [one.key for one in at.selectbox]


def test_a_file_without_tokenizer_is_asked_for_it(run_page, tmp_path, paths):
    at = run_page("tokens", text=TEXT, model=f"path:{book_file(tmp_path, 8192)}", n_heads=3)
    assert "comes without a tokenizer" in said(at)
    at.selectbox(key="model_tokenizer").select("mini")
    button(at, "Load").click().run()
    assert "8,192" not in said(at) and "1 block × 3 heads" in at.sidebar.caption[0].value


def test_added_tokens_without_a_row_can_be_gone_without(run_page, tmp_path, paths):
    makers.save_hf(tiny(vocab_size=330), tmp_path)
    tokens = [added("[PAD]", 330), added("<word>", 331, special=False)]

    def change(whole):
        whole["model"]["vocab"].pop(END_OF_TEXT)
        whole["added_tokens"] = tokens

    write(tmp_path, change, model=json.loads((tmp_path / "config.json").read_text()))
    at = run_page("tokens", text="a [PAD]<word>", model=f"path:{tmp_path}")
    assert not at.error and "no row for: '\\[PAD\\]' (330), '\\<word\\>' (331)" in said(at), said(
        at
    )
    assert "drop_surplus" not in said(at) and "you see mini-world." in said(at)
    button(at, "Go on without them").click().run()
    assert "1 block × 3 heads, 12 dimensions" in at.sidebar.caption[0].value and not at.info
    assert at.query_params["drop_surplus"] == "on" and prompt_of(at) == "a [PAD]<word>"
    assert "drop_surplus=True)" in python_of(at)


def test_a_damaged_file_is_named_and_the_model_in_use_stays(run_page, tmp_path, paths):
    (tmp_path / "model.safetensors").write_bytes(b"not a checkpoint")
    at = run_page("tokens", text=TEXT, model="gpt2-untrained")
    put(at, model=f"path:{tmp_path / 'model.safetensors'}")
    assert re.search(r"cannot be loaded: .*is not a whole safetensors file", said(at))
    assert "You see gpt2-untrained instead." in said(at)
    assert prompt_of(at) == TEXT
    makers.save_hf(tiny(), tmp_path)
    button(at, "Try again").click().run()
    assert not at.error and "3 heads, 12 dimensions" in at.sidebar.caption[0].value


def test_a_wrong_setting_of_the_server_is_a_sentence(run_page, monkeypatch):
    monkeypatch.setenv("GPTVIZ_DEVICE", "abacus")
    at = run_page("tokens", text=TEXT)
    (error,) = at.error
    assert error.value == "No model can be loaded: GPTVIZ_DEVICE is 'abacus'; this machine has cpu"
    assert prompt_of(at) == TEXT


def test_a_link_to_somebody_elses_upload(run_page):
    at = run_page("tokens", text=TEXT, model="upload:0123456789abcdef")
    assert "only the browser that uploaded it" in said(at)
    assert "you see **mini-world**" in at.sidebar.caption[0].value


def test_a_character_model_names_the_character_that_it_does_not_know(run_page, tmp_path, paths):
    makers.save_characters(tmp_path)
    at = run_page("tokens", text="a Ω b", model=f"path:{tmp_path}")
    assert "knows only the 61 tokens it was trained on, and" in said(at) and "'Ω'" in said(at)
    assert prompt_of(at) == "a Ω b"


def test_what_a_file_is_comes_with_lines_of_python_and_before_any_question(
    run_page, tmp_path, paths
):
    path = brought.classifier(tmp_path)
    at = run_page("tokens", text=TEXT, model=f"path:{path}")
    (error,) = at.error
    assert (
        "review_classifier.pth is a classifier of the book." in error.value
        and "torch" not in error.value
    )
    assert 'del state["out_head.weight"]' in next(code.value for code in at.code)
    assert not at.info and prompt_of(at) == TEXT


def test_a_model_that_is_too_large_for_the_server_is_refused_before_it_loads(run_page, monkeypatch):
    monkeypatch.setattr(models.model_cache(), "max_bytes", 100_000_000)
    at = run_page("tokens", text=TEXT, model="gpt2-untrained", dtype="bfloat16")
    assert "gpt2-untrained needs 326 MB of memory" in said(at) and "GPTVIZ_MODEL_CACHE_MB" in said(
        at
    )
    assert "you see **mini-world**" in at.sidebar.caption[0].value


def half_of_a_file(folder):
    whole = book_file(folder, 50257).read_bytes()
    return whole[: len(whole) // 2]


def names_that_are_no_text(folder):
    weights = {"\ud800.weight": torch.ones(2, 2), "tok_emb.weight": torch.ones(2, 2)}
    torch.save(weights, folder / "model.pth")
    return (folder / "model.pth").read_bytes()


@pytest.mark.parametrize("content", [half_of_a_file, names_that_are_no_text])
def test_what_cannot_be_loaded_is_a_sentence_and_no_traceback(
    run_page, tmp_path, monkeypatch, caplog, content
):
    sent = io.BytesIO(content(tmp_path))
    sent.name = "model.pth"
    sent.size = len(sent.getvalue())
    store = Uploads(10**9, lambda number: None)
    upload = store.keep([sent])
    monkeypatch.setattr(models, "find_upload", store.find)
    at = run_page("tokens", text=TEXT, model=f"upload:{upload.number}", n_heads=1)
    (error,) = at.error
    assert "cannot be loaded" in error.value and prompt_of(at) == TEXT
    assert str(upload.folder) not in error.value and "/" not in error.value.split("torch.save")[0]
    assert not [
        record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR
    ]


@pytest.mark.parametrize(
    ("page", "query", "says"),
    [
        ("tokens", {"text": "Привет, как"}, "`П`"),
        ("overview", {"text": "When Mary and John went out, John gave it to"}, "`Mary` and `John`"),
        ("overview", {"text": "Der Hund lief in den Garten. Der Hund lief"}, None),
        ("overview", {"text": "On Monday I went to Paris, and then to London"}, None),
        ("generate", {"text": "Once upon a time", "written": 40}, "loses the plot"),
        ("generate", {"text": "Once upon a time, said Mr. Smith", "written": 4}, None),
        ("tokens", {"text": "Привет", "model": "mini-untrained"}, None),
    ],
)
def test_what_the_bundled_model_cannot_do_is_said_where_it_shows(
    run_page, page, query, says, monkeypatch
):
    monkeypatch.setattr(limits, "names_kept_apart", lambda lm: (7, 24))
    at = run_page(page, **query)
    found = [e.value for e in at.caption if "262 English books and nothing else" in e.value]
    assert [says in one for one in found] == ([True] if says else [])
    assert not says or "More models" in found[0]
    here = [Entry(name, gptviz.load("mini").config, "", 5) for name in ("tinystories-1m", "gpt2")]
    monkeypatch.setattr(limits, "catalog", lambda: here)
    monkeypatch.setattr(Entry, "folder", lambda entry: Path("."))
    at = run_page(page, **query)
    offered = [button for button in at.button if button.label == "Read it with gpt2"]
    assert len(offered) == bool(says)
    for one in offered:
        one.click().run()
        assert at.query_params["model"] == "gpt2"


def test_names_are_no_limit_of_a_model_that_keeps_them_apart(mini, monkeypatch):
    text = "When Mary and John went out, John gave it to"
    for right in (0, 7, 17, 18, 24):
        monkeypatch.setattr(limits, "names_kept_apart", lambda lm, right=right: (right, 24))
        said = limits.limit(mini, text)
        assert said is None if right >= 18 else f"{right} of 24 test sentences" in said
