"""What a page leaves behind when its script has run: names, and no trace."""

import gc

import pytest
import torch

from gptviz import Trace
from gptviz.ui import runs
from gptviz.ui.shell.navigation import PAGES
from tests.pages.conftest import open_all
from tests.specs import charts

TEXT = "one two three four five six seven eight nine ten " * 30  # more than the context
LARGEST = 2**20  # bytes of a tensor that a session may hold: a row of logits, a few vectors


@pytest.fixture
def nothing_stored(monkeypatch):
    monkeypatch.setenv(runs.SETTING, "0")
    runs.runs.clear()
    yield
    runs.runs.clear()


def traces() -> list[Trace]:
    gc.collect()
    return [found for found in gc.get_objects() if type(found) is Trace]


def large_tensors(known: set[int]) -> dict[int, int]:
    """Memory of tensors by its address, without the models'."""
    storages = [t.untyped_storage() for t in gc.get_objects() if type(t) is torch.Tensor]
    return {
        s.data_ptr(): s.nbytes()
        for s in storages
        if s.nbytes() > LARGEST and s.data_ptr() not in known
    }


def test_no_session_holds_a_trace(run_page, nothing_stored):
    """All pages are open, and one look at the memory is for all of them: it is what takes long."""
    before = traces()
    known = set(large_tensors(set()))
    visits = {name: run_page(name, text=f"{name} {TEXT}", base_steps=50) for name in PAGES}
    for at in visits.values():
        charts(at)  # which fails at NaN
        open_all(at)
    kept = [trace for trace in traces() if not any(trace is one for one in before)]
    assert not kept, ["".join(token.text for token in trace.tokens[:3]) for trace in kept]
    assert not large_tensors(known | of_models())


def of_models() -> set[int]:
    """The memory of every model that is loaded: other tests may have loaded theirs."""
    models = [runs.models.find(key).model for key in [*runs.models.model_cache()._models]]
    return {t.untyped_storage().data_ptr() for model in models for t in model.state_dict().values()}
