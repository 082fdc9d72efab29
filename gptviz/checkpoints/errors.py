"""What every reader raises."""


class CheckpointError(ValueError):
    """Weights that cannot be used: which file or tensor, what was found, what was expected."""
