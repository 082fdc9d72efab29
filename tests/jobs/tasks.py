"""What is worked on by more than one of these tests."""

import pandas as pd

from gptviz.analysis.ablation import knock_out
from gptviz.jobs import Task

WAIT = 120.0
TEXT = "The old mill stood by the"


def wrong(lm, progress):
    raise ValueError("no such token")


def knocked_out(queue, mini):
    """A work of the line, done: its numbers are those of this process, with and without edits."""
    ids = tuple(mini.encode(TEXT))
    for edits in ((), mini.edited("z.4.3=zero").edits):
        task = Task(knock_out, "mini", (ids, None), (("baseline", "mean"),), edits)
        job = queue.get(task, mini, "ann")
        assert job.join(WAIT)
        expected = knock_out(mini.edited(*edits), ids, None, "mean")
        pd.testing.assert_frame_equal(job.value, expected, atol=1e-5)
    return job
