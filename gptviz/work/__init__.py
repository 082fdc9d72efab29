"""What takes longer than a blink: named functions with plain arguments, in a fair line, in other processes.

Nothing here knows Streamlit.
"""

from gptviz.work.line import Line, NotDone, Work
from gptviz.work.task import Task

__all__ = ["Line", "NotDone", "Task", "Work"]
