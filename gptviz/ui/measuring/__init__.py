"""What is worked out of a model in the background: `general_job`, `trial_job`."""
