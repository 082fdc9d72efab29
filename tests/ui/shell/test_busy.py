"""A page whose text, or the text beside it, must wait for others' texts says so, and is no error."""

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.files.app_folder import APP_FOLDER
from gptviz.ui import runs


@pytest.mark.parametrize("without_room", ["the changed run", "the unchanged run"])
def test_a_run_that_finds_no_room_is_a_sentence_whichever_it_is(monkeypatch, without_room):
    get = runs.get

    def full(run, *rest):
        if bool(run.edits) == (without_room == "the changed run"):
            raise runs.Busy("the server is busy. Press Run again in a minute")
        return get(run, *rest)

    monkeypatch.setattr(runs, "get", full)
    at = AppTest.from_file(APP_FOLDER / "app.py", default_timeout=120)
    at.query_params["edits"] = "z.4.3=zero"
    at.run()
    assert not at.exception
    said = [warning.value for warning in at.warning]
    assert any("Nothing more is shown yet: the server is busy. Press Run" in one for one in said)
