"""`python -m gptviz.training live`, in this process and as a program on a leash."""

import json
import subprocess
import sys

import pytest

from gptviz.training.__main__ import main
from gptviz.training.live import LiveConfig, LiveRun
from tests.training.live.conftest import TINY
from tests.waiting import until

SIZES = [
    part for name, value in TINY.items() for part in (f"--{name.replace('_', '-')}", str(value))
]


def test_the_command_line_trains_what_the_library_trains(done, tmp_path, capsys):
    main(["live", "--work", str(tmp_path / "a"), "--stop-at", "3", *SIZES])
    assert json.loads(capsys.readouterr().out)["state"] == "paused"
    main(["live", "--work", str(tmp_path / "a")])
    said = json.loads(capsys.readouterr().out)
    run = LiveRun(tmp_path / "a")
    assert said["state"] == "done" and said["validation"] == done.curve["validation"].iloc[-1]
    assert run.config == done.config and run.measures == done.measures
    fork = ["--fork-of", str(tmp_path / "a"), "--at", "4", "--mute", "1.0", "0.1", "--steps", "5"]
    main(["live", "--work", str(tmp_path / "b"), *fork])
    assert LiveRun(tmp_path / "b").config.muted == ((0, 1), (1, 0))


def test_parts_can_be_off_and_snapshots_too(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("ein Text, der reicht. " * 5, encoding="utf-8")
    options = [
        "--no-positions",
        "--no-feed-forward",
        "--no-snapshots",
        "--task",
        "own",
        "--text",
        str(text),
    ]
    options += ["--no-attention", "--activation", "relu", "--dropout", "0.2", "--weight-decay", "0"]
    main(["live", "--work", str(tmp_path / "c"), *SIZES, *options])
    run = LiveRun(tmp_path / "c")
    chosen = run.config
    assert (chosen.activation, chosen.dropout, chosen.weight_decay) == ("relu", 0.2, 0.0)
    assert not chosen.attention and chosen.learning_rate == LiveConfig().learning_rate
    assert not run.config.positions and not run.config.feed_forward and run.config.layer_norm
    assert run.snapshots == [] and len(run.curve) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--n-layers", "9"], "n_layers is 9; it must be a whole number from 1 to 4"),
        (["--task", "own"], "the text has 0 characters"),
        (["--fork-of", "elsewhere"], "a fork takes --at STEP"),
    ],
)
def test_a_refusal_is_a_sentence(options, said, tmp_path):
    with pytest.raises(SystemExit, match=said):
        main(["live", "--work", str(tmp_path / "d"), *options])
    assert not (tmp_path / "d").exists()


def test_a_run_is_not_gone_on_with_by_another_recipe(done, tmp_path):
    with pytest.raises(SystemExit, match="give no options of another: seed"):
        main(["live", "--work", str(done.folder), "--seed", "7"])


def test_on_a_leash_it_ends_with_whoever_holds_it(tmp_path):
    work = tmp_path / "leash"
    command = [
        sys.executable,
        "-m",
        "gptviz.training",
        "live",
        "--work",
        str(work),
        "--leash",
        "--nice",
        "5",
    ]
    command += [*SIZES[:-4], "--steps", "5000", "--every", "500"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as worker:
        until((work / "status.json").exists)
        worker.stdin.close()  # as the system does for a server that was killed
        assert worker.wait(60) == 1
    assert not work.exists()


WORK = """
import sys
from contextlib import suppress
from pathlib import Path
from gptviz.parent_watch import end_with_the_server
folder, number = Path(sys.argv[1]), 0
end_with_the_server(folder)
print("begun", flush=True)
while True:
    number = (number + 1) % 300
    {does}
"""


@pytest.mark.parametrize(
    "does",
    [
        '(folder / f"{number}").stat()',
        'with suppress(FileNotFoundError): (folder / f"{number}").touch()',
    ],
    ids=["fails at the first file that is gone", "goes on writing"],
)
def test_on_a_leash_nothing_stays_whatever_the_work_does_meanwhile(does, tmp_path):
    folder = tmp_path / "written"
    folder.mkdir()
    for number in range(300):  # which take a while to remove
        (folder / f"{number}").touch()
    command = [sys.executable, "-c", WORK.replace("{does}", does), str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as worker:
        worker.stdout.readline()
        worker.stdin.close()
        assert worker.wait(60) == 1
    assert not folder.exists()
