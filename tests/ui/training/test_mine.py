"""A browser's own runs: opened on every page through the door of uploads, and gone when it has left."""

import pytest
import torch
from streamlit.testing.v1 import AppTest

from gptviz.training.live import LiveRun, train
from gptviz.ui.models.browsers import browsers
from gptviz.ui.settings import count
from gptviz.ui.training import mine
from gptviz.ui.training.trainings import Trainings
from tests.training.live.conftest import tiny
from tests.ui.training.test_trainings import Played

TEXT = "cat sat on a mat"


@pytest.fixture
def queue(monkeypatch):
    made = Trainings(1, 10**9, Played)
    browsers().when_gone(made.clear)
    monkeypatch.setattr(mine, "trainings", lambda: made)
    yield made
    made.close()


def visit():
    """A script of the app: it starts a run, and later opens its last snapshot."""
    import streamlit as st

    from gptviz.ui.models.browsers import browser, uploads
    from gptviz.ui.models.choice import Choice
    from gptviz.ui.models.in_use import in_use
    from gptviz.ui.training.mine import find_training, my_trainings, open_elsewhere, start_training
    from tests.training.live.conftest import tiny

    if not my_trainings():
        start_training(tiny())
    elif my_trainings()[0].run.snapshots:
        (run,) = my_trainings()
        assert find_training(run.number) is run and find_training("another") is None
        name = open_elsewhere(run, 6)
        assert open_elsewhere(run, 6) == name  # one file, however often
        used = in_use(Choice(name))
        assert used.trouble is None
        st.session_state["logits"] = used.lm.trace("cat sat on a mat").logits(-1)
        st.session_state["labels"] = [upload.label for upload in uploads()]
    st.session_state["browser"] = browser()


def test_a_trained_model_opens_as_an_upload_does_and_all_goes_with_the_browser(queue):
    at = AppTest.from_function(visit, default_timeout=60).run()
    assert not at.exception
    (run,) = queue.of(at.session_state["browser"])
    train(run.run.folder)
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    mine_own = LiveRun(run.run.folder).lm(6).trace(TEXT).logits(-1)
    assert torch.equal(at.session_state["logits"], mine_own)
    assert at.session_state["labels"] == ["run 1, repeats, step 6"]
    browser = at.session_state["browser"]
    assert browsers().find(browser) is not None
    run.shared_run.worker.end()
    browsers().clear_if_gone(browser)  # what happens 150 s after its last session ended
    assert queue.of(browser) == () and browsers().find(browser) is None


def test_a_model_that_no_file_describes_stays(queue):
    run = queue.start("me", tiny(layer_norm=False))
    train(run.run.folder)
    with pytest.raises(ValueError, match="This model has no LayerNorm"):
        mine.open_elsewhere(run, 6)


def test_a_setting_that_is_no_number_is_named(monkeypatch):
    for value in ("0", "many", "-1", ""):
        monkeypatch.setenv(mine.AT_ONCE, value)
        with pytest.raises(
            ValueError, match=f"{mine.AT_ONCE} is '{value}'; it must be a whole number from 1 on"
        ):
            mine.at_once()
    monkeypatch.setenv(mine.AT_ONCE, "7")
    assert mine.at_once() == 7 and count("GPTVIZ_NOT_SET", 3) == 3
