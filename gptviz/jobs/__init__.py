"""What takes longer than a blink: named functions with plain arguments, in a fair queue, in other processes.

    Task        a piece of work as a value: a function, the key of its model, arguments
    Job         a task in a queue: waiting, working, done, stopped or failed
    Queue       which job is next, what is done once for all who ask, what is remembered
    Execution   a task at work: its future, its progress, a way to end it
    Backend     who works: processes of this machine (`local`), or a Ray cluster (`ray`, see GPTVIZ_RAY)

Nothing here knows Streamlit, and nothing but the folder `ray` imports Ray.
"""

from gptviz.jobs.queue import Job, NotDone, Queue
from gptviz.jobs.task import Task

__all__ = ["Job", "NotDone", "Queue", "Task"]
