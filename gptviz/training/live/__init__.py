"""Training that one watches: a small GPTModel, its snapshots, and forks of it. What the page runs runs here.

from gptviz.training.live import LiveConfig, begin, fork, train

run = begin(folder, LiveConfig(task="repeats", n_layers=2))
train(run.folder)
run.curve, run.measures, run.attention(260), run.lm(260)
off = fork(run, 260, other_folder, mute=((1, 3),))
"""

from gptviz.training.live.config import ACTIVATIONS, LIMITS, SWITCHES, TASKS, LiveConfig
from gptviz.training.live.run import LiveRun, Status, archive, begin, fork, model_files
from gptviz.training.live.tasks import Probe, Task, task_for
from gptviz.training.live.work import train

__all__ = [
    "ACTIVATIONS",
    "LIMITS",
    "SWITCHES",
    "TASKS",
    "LiveConfig",
    "LiveRun",
    "Probe",
    "Status",
    "Task",
    "archive",
    "begin",
    "fork",
    "model_files",
    "task_for",
    "train",
]
