"""What a visitor reads while a job waits or is worked on: the same words for maps, files and trainings."""

from typing import Any

from gptviz.jobs import Job
from gptviz.ui.words import duration

LONG = 3.0  # seconds that are worth being said
# seconds within which a script that was interrupted must ask again for what it waited for
SOON = 10.0


def said_of(job: Job[Any], said: str) -> str:
    """The words on a job's bar: `said`, or its place in line; and the time left, if long."""
    left = job.seconds_left
    text = said
    if job.state != "working":
        text = place_in_line(job.place)
    if left is None or left < LONG:
        return text
    if job.state == "working":
        return f"{text}, about {duration(left)} left"
    return f"{text}, about {duration(left)}"


def place_in_line(place: int) -> str:
    """The place of a job that waits, in words: 1 is the next."""
    if place <= 1:
        return "Next in line"
    return f"Number {place} in line"
