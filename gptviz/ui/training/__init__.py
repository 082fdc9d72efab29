"""Training runs in the app: the queue of all visitors, the processes, and what belongs to this browser."""

from gptviz.ui.training.mine import (
    at_once,
    find_training,
    fork_training,
    my_trainings,
    open_elsewhere,
    remove_training,
    start_training,
)
from gptviz.ui.training.queue import Heads, Queue, Training

__all__ = [
    "Heads",
    "Queue",
    "Training",
    "at_once",
    "find_training",
    "fork_training",
    "my_trainings",
    "open_elsewhere",
    "remove_training",
    "start_training",
]
