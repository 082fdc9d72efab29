"""The recorded training that ships: it says how it was made, and its first steps give the same numbers again."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from gptviz.training.__main__ import parser
from gptviz.training.live import LiveRun, begin, task_for, train
from gptviz.training.live.config import PRESETS
from gptviz.training.live.recorded import (
    COMMAND,
    EVERY,
    PROBE,
    SHIPPED,
    planned,
    read,
    recording_of,
    shipped,
    written,
)

LARGEST = 100_000  # bytes of the file
BORN = ((0.05, 0.05), (0.05, 0.61))
LOW = ((0.05, 0.05), (0.05, 0.05))


def test_the_file_says_how_it_was_made_and_of_what():
    text = SHIPPED.read_text(encoding="utf-8")
    recording = shipped()
    assert len(text.encode()) <= LARGEST and written(recording) == text == written(read(text))
    (preset,) = PRESETS["birth"].runs
    assert recording.config == planned() == replace(preset, every=EVERY)
    assert recording.command == COMMAND and recording.torch and recording.made_on > "2026"
    assert parser().parse_args(COMMAND.split()[3:]).out == SHIPPED
    steps = [measured.step for measured in recording.measures]
    assert steps == list(range(0, preset.steps + 1, EVERY)) and 40 <= len(steps) <= 80
    task = task_for(recording.config)
    probe = task.probes[PROBE]
    assert recording.text == probe.text[: 2 * probe.period] and recording.period == probe.period
    assert recording.blind == pytest.approx(task.ln_v, abs=1e-4)
    assert recording.floor == pytest.approx(task.floor, abs=1e-4)


def test_it_is_a_head_that_was_born_and_looks_where_such_a_head_looks():
    recording = shipped()
    born = recording.birth
    assert (born.head.block, born.head.head) == (recording.block, recording.head)
    assert recording.scores[born.before] < 0.1 and recording.scores[born.there] >= 0.5
    count = len(recording.text)
    rows, columns = np.tril_indices(count)
    for weights in recording.weights:  # rounded, a row still gives what it has: 100 percent
        totals = np.bincount(rows, weights=weights)
        assert np.abs(totals - 100).max() <= count / 2
    # after the letter that came before, one passage earlier
    copied = (columns == rows - recording.period + 1) & (rows >= recording.period)
    first, last = (np.mean(np.array(recording.weights[i])[copied]) for i in (0, -1))
    assert first < 10 and last > 50


def test_its_first_steps_trained_again_give_the_same_numbers(tmp_path):
    recording = shipped()
    run = train(begin(tmp_path / "run", recording.config).folder, stop_at=EVERY)
    below = np.tril_indices(len(recording.text))
    assert len(run.measures) == 2
    points = zip(run.measures, recording.measures[:2], recording.weights[:2], strict=True)
    for measured, kept, weights in points:
        assert measured.step == kept.step
        assert measured.train == pytest.approx(kept.train, abs=2e-3)
        assert measured.validation == pytest.approx(kept.validation, abs=2e-3)
        assert np.allclose(measured.induction, kept.induction, atol=2e-3)
        assert np.allclose(measured.previous_token, kept.previous_token, atol=2e-3)
        square = run.attention(measured.step)[PROBE, recording.block, recording.head]
        count = len(recording.text)
        assert np.allclose(100 * square[:count, :count][below], weights, atol=0.7)


def test_a_run_is_recorded_as_it_was_measured(done, tmp_path):
    with pytest.raises(ValueError, match="no induction head appeared"):
        recording_of(done)
    shutil.copytree(done.folder, tmp_path / "run")
    run = LiveRun(tmp_path / "run")
    scores = (LOW, LOW, LOW, BORN)
    run.write_measures([replace(m, induction=s) for m, s in zip(run.measures, scores, strict=True)])
    recording = recording_of(run)
    assert (recording.block, recording.head) == (1, 1) and recording.birth.before == 2
    assert recording.scores.tolist() == [0.05, 0.05, 0.05, 0.61]
    assert recording.losses.tolist() == [m.validation for m in run.measures]
    count = 2 * run.task.probes[PROBE].period
    square = run.attention(6)[PROBE, 1, 1, :count, :count]
    assert recording.weights[3] == tuple(np.rint(100 * square[np.tril_indices(count)]).tolist())
    assert read(written(recording)) == recording
    (tmp_path / "run" / "snapshots" / "000002.npy").unlink()
    with pytest.raises(ValueError, match="not kept"):
        recording_of(run)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda values: values["weights"].pop(), "weights at each of its points"),
        (lambda values: values["weights"][0].pop(), "weights at each of its points"),
        (lambda values: values["weights"][0].__setitem__(0, 101), "from 0 to 100"),
        (lambda values: values["measures"].reverse(), "in order of their steps"),
    ],
)
def test_what_cannot_be_a_recording_is_refused(change, why):
    values = json.loads(SHIPPED.read_text(encoding="utf-8"))
    change(values)
    with pytest.raises(ValueError, match=why):
        read(json.dumps(values))
