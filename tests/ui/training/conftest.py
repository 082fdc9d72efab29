from tests.training.live.conftest import one_thread  # noqa: F401
