"""What is worked out of a model in the background: `general_job`, `trial_job`."""

from gptviz.ui.measuring.heads import general_job, known_trial, trial_job
from gptviz.ui.measuring.jobs import Job

__all__ = ["Job", "general_job", "known_trial", "trial_job"]
