"""This browser's training runs. They end a little after it has left, as uploads do."""

import io
import os

import streamlit as st

from gptviz.training.live import LiveConfig, model_files
from gptviz.ui.models.browsers import browser, browsers, find_upload, keep_upload
from gptviz.ui.models.choice import UPLOAD
from gptviz.ui.settings import cache_bytes, count
from gptviz.ui.training.trainings import WAITING, Heads, Training, Trainings

ALONE = 2  # threads of a run that trains alone: with two it takes three quarters of the time
AT_ONCE = "GPTVIZ_TRAININGS_AT_ONCE"
DISK = "GPTVIZ_TRAINING_DISK_MB"
DEFAULT_MEGABYTES = 4096
# for each that trains: the last of them waits about as long as eight trainings take
MOST_WAITING = 8


def at_once() -> int:
    """The number of runs that train at a time: GPTVIZ_TRAININGS_AT_ONCE, else one for each core.

    They take what the pages leave of the cores.
    """
    return count(AT_ONCE, os.cpu_count() or 1)


@st.cache_resource(max_entries=1, show_spinner=False)
def trainings() -> Trainings:
    """The process's training runs."""
    made = Trainings(
        at_once(),
        cache_bytes(DISK, DEFAULT_MEGABYTES),
        alone=max(1, min(ALONE, os.cpu_count() or 1)),
        most_waiting=count(WAITING, MOST_WAITING * at_once()),
    )
    browsers().when_gone(made.clear)
    return made


def my_trainings() -> tuple[Training, ...]:
    """This browser's runs, the oldest first."""
    return trainings().of(browser())


def find_training(number: str) -> Training | None:
    """A run of this browser; None for everybody else's."""
    return trainings().find(browser(), number)


def start_training(config: LiveConfig, text: str | None = None) -> Training:
    """A new run, which trains when it is its turn. Raises ValueError, a sentence."""
    return trainings().start(browser(), config, text)


def fork_training(
    training: Training, step: int, mute: Heads = (), steps: int | None = None
) -> Training:
    """A run that goes on from a snapshot of another with heads off. Raises ValueError, a sentence."""
    return trainings().fork(training, step, mute, steps)


def remove_training(number: str) -> None:
    """End and delete a run of this browser, if it is there."""
    found = find_training(number)
    if found is not None:
        trainings().remove(found)


def name_of(training: Training, step: int) -> str:
    """The name of a snapshot's model, on the screen and of the folder that a visitor downloads."""
    return f"{training.label}, {training.config.task}, step {step}"


def open_elsewhere(training: Training, step: int) -> str:
    """Put a snapshot's model among this browser's own files: its name for `Choice.named`, on every page.

    It is the same files as one downloads, through the same door. Raises ValueError, a sentence.
    """
    number = training.opened.get(step)
    if number is None or find_upload(number) is None:
        files = [_Made(name, content) for name, content in model_files(training.run, step).items()]
        number = training.opened[step] = keep_upload(files, name_of(training, step)).number
    return f"{UPLOAD}{number}"


class _Made(io.BytesIO):
    """A file that nobody sent: it has a name and a size."""

    def __init__(self, name: str, content: bytes):
        super().__init__(content)
        self.name = name
        self.size = len(content)
