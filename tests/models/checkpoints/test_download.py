"""Downloads from a hub on 127.0.0.1, well-behaved and otherwise."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import time

import huggingface_hub
import pytest
import torch

import gptviz
from gptviz.models.checkpoints import CheckpointError, download, hub, transfer
from gptviz.models.loading import hub_folder
from gptviz.ui.models import in_use
from gptviz.ui.models.cache import ModelCache
from tests.models.checkpoints import makers
from tests.models.checkpoints.hub_server import Hub
from tests.tokenizer.test_hugging_face_keys import write
from tests.waiting import together

NAME = "someone/tiny"


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """A GPT-2 with GPT-2's vocabulary, 1.6 MB, and its config."""
    folder = tmp_path_factory.mktemp("repository") / "tiny"
    truth = makers.hf_model(vocab_size=50257, n_embd=8, n_head=2, n_layer=1)
    return makers.save_hf(truth, folder), truth


@pytest.fixture
def server(repository, tmp_path, monkeypatch):
    served = Hub(repository[0])
    served.stands_for_hugging_face(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr(transfer, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(transfer, "CHUNK", 4096)
    yield served
    served.close()


def loose_ends(tmp_path):
    return list((tmp_path / "cache").rglob("*.incomplete"))


def test_a_download_and_what_is_in_the_cache(server, repository, tmp_path):
    seen = []
    lm = gptviz.load(NAME, report=seen.append)
    ids = [1, 50256, 7]
    with torch.no_grad():
        expected = repository[1](torch.tensor([ids])).logits[0, -1]
    torch.testing.assert_close(lm.trace(ids).logits(-1), expected, atol=1e-4, rtol=0)
    assert lm.name == NAME
    assert lm.tokenizer is gptviz.load("gpt2-untrained").tokenizer
    assert seen[-1].done == seen[-1].total == len(server.files["model.safetensors"])
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].bytes_per_second > 0 and seen[-1].seconds_left == 0
    # other programs find it, and from now on no network is needed
    assert huggingface_hub.try_to_load_from_cache(NAME, "model.safetensors")
    server.close()
    before = len(server.requests)
    assert gptviz.load(NAME).config == lm.config
    assert len(server.requests) == before
    assert not loose_ends(tmp_path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model_type": "mistral"}, "someone/tiny is a model of another architecture than GPT-2's"),
        ({"model_type": "qwen3_moe", "architectures": None}, "is of a mixture of experts"),
        ({"quantization_config": {"bits": 4}}, "someone/tiny is a quantised model"),
        (
            {"architectures": ["GPT2ForSequenceClassification"]},
            "someone/tiny is a GPT-2 that gives classes",
        ),
        (None, r"someone/tiny is a PEFT adapter.*merge_and_unload"),
    ],
)
def test_what_is_no_model_here_is_told_before_its_weights_are_fetched(server, changes, says):
    config = json.loads(server.files.pop("config.json"))
    if changes is None:
        server.files["adapter_config.json"] = b"{}"
    else:
        server.files["config.json"] = json.dumps(config | changes).encode()
    with pytest.raises(CheckpointError, match=says):
        gptviz.load(NAME)
    assert not [path for _, path, _ in server.requests if path.endswith(".safetensors")]


def test_shards_are_all_fetched(server, tmp_path):
    truth = makers.hf_model(2)
    folder = makers.save_hf(truth, tmp_path / "sharded", max_shard_size="8KB")
    server.files = {file.name: file.read_bytes() for file in folder.iterdir()}
    found = hub_folder(NAME)
    assert hub.missing_weights(found) == ()
    some = next(found.glob("model-*.safetensors"))
    some.unlink()
    assert hub.missing_weights(found) == (some.name,)
    assert hub.cached_folder((NAME,)) is None
    del server.files[some.name]
    with pytest.raises(CheckpointError, match=rf"lacks {some.name}"):
        hub_folder(NAME)


def test_a_story_teller_comes_by_its_short_name(server, tmp_path):
    """A GPT-Neo without a tokenizer: its words are GPT-2's."""
    truth = makers.neo_model(vocab_size=50257, window_size=256, max_position_embeddings=300)
    folder = makers.save_hf(truth, tmp_path / "saved")
    server.files = {file.name: file.read_bytes() for file in folder.iterdir()}
    server.repository = "roneneldan/TinyStories-1M"
    lm = gptviz.load("tinystories-1m")
    ids = lm.encode("Once upon a time there was")
    with torch.no_grad():
        expected = truth(torch.tensor([ids])).logits[0, -1]
    torch.testing.assert_close(lm.trace(ids).logits(-1), expected, atol=1e-4, rtol=0)
    assert lm.name == "tinystories-1m" and lm.config.context_length == 256


def test_a_cut_connection_is_resumed_where_it_broke(server):
    server.cut_after = 300_000
    server.cuts = 3
    hub_folder(NAME)
    starts = [asked for _, _, asked in server.gets("/cdn/")]
    assert starts[0] is None and len(starts) == 4
    assert all(asked.startswith("bytes=") for asked in starts[1:])
    assert starts[1] != starts[2] != starts[3]


def test_an_interrupted_download_is_resumed_by_the_next_call(server, tmp_path):
    def stop(progress):
        if progress.done > 500_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hub_folder(NAME, stop)
    assert hub.cached_folder((NAME,)) is None
    (partial,) = loose_ends(tmp_path)
    had = partial.stat().st_size
    seen = []
    hub_folder(NAME, seen.append)
    assert server.gets("/cdn/")[-1][2] == f"bytes={had}-"
    assert seen[0].resumed == had
    assert not loose_ends(tmp_path)


@pytest.mark.parametrize(
    ("had", "asked"), [(1000, 1), (None, 1), (-1, 2)], ids=["a part", "all", "more"]
)
def test_a_file_of_unknown_size_is_whole_whatever_had_arrived(server, tmp_path, had, asked):
    remote = dataclasses.replace(transfer.ask(NAME, "model.safetensors", "main"), size=None)
    data = server.files["model.safetensors"]
    arrived = data + b"more" if had == -1 else data[:had]
    (tmp_path / "blob.gptviz.incomplete").write_bytes(arrived)
    transfer.fetch(remote, tmp_path / "blob", tmp_path / "lock", lambda done: None)
    assert (tmp_path / "blob").read_bytes() == data
    assert [start for _, _, start in server.gets("/cdn/")] == [f"bytes={len(arrived)}-", None][
        :asked
    ]


def test_a_server_without_ranges_sends_all_of_it_again(server):
    server.cut_after = 300_000
    server.cuts = 1
    server.ignores_ranges = True
    assert hub.missing_weights(hub_folder(NAME)) == ()


def test_wrong_bytes_are_named_and_thrown_away(server, tmp_path):
    server.wrong_bytes = True
    with pytest.raises(
        CheckpointError, match=r"arrived damaged.*found [0-9a-f]{64}, expected [0-9a-f]{64}"
    ):
        hub_folder(NAME)
    assert hub.cached_folder((NAME,)) is None and not loose_ends(tmp_path)
    server.wrong_bytes = False
    assert hub.missing_weights(hub_folder(NAME)) == ()


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({"size_of": {"model.safetensors": 1000}}, r"arrived damaged.*expected 1,000"),
        ({"status": 401}, "or not for everybody.*HTTP 401"),
        ({"status": 403}, "or not for everybody.*HTTP 403"),
        ({"status": 503}, "answered HTTP 503"),
        ({"repository": "someone/other"}, "no repository someone/tiny"),
    ],
    ids=str,
)
def test_what_a_server_refuses_or_says_wrongly(server, faults, said):
    vars(server).update(faults)
    with pytest.raises(CheckpointError, match=said):
        hub_folder(NAME)


def test_a_connection_that_breaks_every_time(server):
    server.cut_after = 0
    server.cuts = 1000
    with pytest.raises(
        CheckpointError, match=r"cannot be reached.*python -m gptviz download someone/tiny"
    ):
        hub_folder(NAME)
    assert len(server.gets("/cdn/")) == transfer.RETRIES + 1


def test_another_kind_of_model_is_refused_before_its_weights_are_fetched(server):
    values = json.loads(server.files["config.json"])
    server.files["config.json"] = json.dumps(
        values | {"architectures": ["LlamaForCausalLM"]}
    ).encode()
    with pytest.raises(CheckpointError, match="architectures"):
        gptviz.load(NAME)
    assert not server.gets("/cdn/")
    del server.files["config.json"]
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        gptviz.load(NAME)


@pytest.mark.parametrize(("there", "error"), [(True, "ReadTimeout"), (False, "ConnectError")])
def test_no_answer_is_noticed_in_seconds(server, monkeypatch, there, error):
    monkeypatch.setattr(transfer, "WAIT_SECONDS", 0.3)
    server.silent_seconds = 3
    if not there:
        server.close()
    started = time.monotonic()
    with pytest.raises(CheckpointError, match=rf"cannot be reached \({error}\)"):
        hub_folder(NAME)
    assert time.monotonic() - started < 3


def test_a_full_disk_is_noticed_before_anything_large_is_fetched(server, monkeypatch):
    usage = type("usage", (), {"free": 64 * 2**20 + 500_000})
    monkeypatch.setattr(download.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(CheckpointError, match=r"0\.00 GB are to be downloaded.*HF_HOME"):
        hub_folder(NAME)
    assert not server.gets("/cdn/")


def test_the_password_is_not_told_to_the_host_of_the_files(server, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub_folder(NAME)
    assert server.passwords
    assert not [path for path, _ in server.passwords if path.startswith("/cdn/")]


def test_two_sessions_at_once_download_once(server):
    server.slow_seconds = 0.002
    one, other = together(2, lambda _: hub_folder(NAME, lambda progress: None))
    assert one == other and len(server.gets("/cdn/")) == 1


SCRIPT = """
import sys, gptviz
try:
    print(gptviz.load("someone/tiny").config.n_layers)
except ValueError as error:
    print("ValueError", error)
"""


def test_the_environment_is_obeyed(server, tmp_path):
    """HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE, in a process of its own."""
    environment = os.environ | {"HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": server.url}
    environment.pop("HF_HUB_CACHE", None)

    def run(**more):
        command = [sys.executable, "-c", SCRIPT]
        env = environment | more
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "HF_HUB_OFFLINE forbids" in run(HF_HUB_OFFLINE="1")
    assert not server.requests
    assert run() == "1\n"
    assert (tmp_path / "home" / "hub" / "models--someone--tiny" / "refs" / "main").exists()
    assert run(HF_HUB_OFFLINE="1") == "1\n"


def no_large_file_was_fetched(server):
    return not server.gets("/cdn/")


def test_weights_that_are_too_large_are_refused_before_they_begin(server):
    server.size_of["model.safetensors"] = 10**12
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors.*1\.00 TB, and at most 1\.07 GB are"
    ):
        hub_folder(NAME, most_bytes=2**30)
    assert no_large_file_was_fetched(server)


def test_all_files_that_may_change_ids_are_fetched(server, tmp_path):
    made = tmp_path / "tokenizer"
    made.mkdir()
    write(made, files=True, config={"add_prefix_space": True})
    server.files |= {
        file.name: file.read_bytes() for file in made.iterdir() if file.name != "config.json"
    }
    with pytest.raises(
        CheckpointError, match=r'tokenizer_config\.json: "add_prefix_space" is true'
    ):
        gptviz.load(NAME)


@pytest.mark.parametrize("name", ["spiece.model", "vocab.txt"])
def test_a_tokenizer_that_cannot_be_followed_is_named_and_gpt2s_not_taken_for_it(server, name):
    server.files[name] = b"\x0a\x0e"
    with pytest.raises(CheckpointError, match=rf"brings {name} \(.*only byte-level BPE as GPT-2's"):
        gptviz.load(NAME)
    assert gptviz.load(NAME, tokenizer="gpt2").encode("the") == [1169]


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("config.json", "MOST_OF_CONFIG"),
        ("tokenizer.json", "MOST_OF_TOKENIZER"),
        ("model.safetensors.index.json", "MOST_OF_INDEX"),
    ],
)
def test_no_other_file_of_a_repository_is_without_a_limit(server, monkeypatch, name, setting):
    monkeypatch.setattr(download, setting, 2000)
    server.files[name] = server.files.get(name, b"{}") + b" " * 2000
    if name.endswith("index.json"):
        del server.files["model.safetensors"]
    with pytest.raises(CheckpointError, match=rf"{re.escape(name)}.*and at most 2\.00 kB are"):
        hub_folder(NAME)
    assert no_large_file_was_fetched(server)
    assert not [
        path for method, path, _ in server.requests if method == "GET" and path.endswith(f"/{name}")
    ]


def test_a_server_bounds_its_downloads_by_the_models_that_it_can_hold(server, monkeypatch):
    cache = ModelCache(2**18)
    monkeypatch.setattr(in_use, "model_cache", lambda: cache)
    in_use.downloads.clear()
    found = in_use.downloads().start(NAME)
    found.wait(60)
    in_use.downloads.clear()
    assert "at most 524 kB are downloaded" in found.error and no_large_file_was_fetched(server)
