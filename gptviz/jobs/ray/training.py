"""`train_far`: train a watched run on a machine of a Ray cluster, and keep its folder here as it is there."""

import threading
import time
from contextlib import suppress
from pathlib import Path

import ray
from ray.exceptions import RayError

from gptviz.files.owned_folder import TRAININGS, OwnedFolder
from gptviz.jobs.ray.cluster import join
from gptviz.training.live.run import Files, LiveRun, Stamps, news, receive
from gptviz.training.live.work import train

SECONDS = 0.4  # between two looks at how far it is
SHARE = 0.5  # of a processor: however many train, half of the cluster is left for what is quicker


@ray.remote(num_cpus=SHARE)
class Trainer:
    """A copy of a run's folder, and the thread that trains in it."""

    def __init__(self, files: Files, stop_at: int | None, snapshots: bool):
        self._root = OwnedFolder(TRAININGS)
        self._folder = self._root.path / "run"
        receive(self._folder, files)
        self._seen: Stamps = {}
        news(self._folder, self._seen)  # all that came
        self._work = threading.Thread(target=self._train, args=(stop_at, snapshots))
        self._work.start()

    def _train(self, stop_at: int | None, snapshots: bool) -> None:
        with suppress(Exception):  # the run's status says it
            train(self._folder, stop_at, snapshots)

    def news(self, wish: str | None) -> tuple[bool, Files]:
        """Whether the training is over, and its files that changed since the last call."""
        LiveRun(self._folder).ask(wish)
        over = not self._work.is_alive()
        files = news(self._folder, self._seen)
        if over:
            self._root.clear()
        return over, files


def train_far(
    address: str, folder: Path, stop_at: int | None = None, snapshots: bool = True
) -> LiveRun:
    """Train as `train` does, on a machine of the Ray cluster at this address ("auto", or host:port).

    Raises ValueError, a sentence, where no cluster answers, and where the machine is lost meanwhile: the run
    is then as it last was, and goes on elsewhere with the next `train` or `train_far`.
    """
    run = LiveRun(folder)
    over = False
    join(address)
    try:
        trainer = Trainer.remote(  # type: ignore[attr-defined]
            news(folder, {}), stop_at, snapshots
        )
        while not over:
            time.sleep(SECONDS)
            over, files = ray.get(trainer.news.remote(run.wish))
            receive(folder, files)
    except RayError as problem:
        raise ValueError(
            f"the machine that trained it is gone ({type(problem).__name__})"
        ) from None
    return run
