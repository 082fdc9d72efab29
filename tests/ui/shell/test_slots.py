"""So many scripts at a time: the next begins when one is over or waits, and after a while in any case."""

import threading

import pytest

from gptviz.ui.shell import slots
from tests.waiting import until


@pytest.fixture
def scripts(monkeypatch):
    """(begin a script in a thread of its own, what all have done so far), with one slot."""
    monkeypatch.setattr(slots, "_free", threading.BoundedSemaphore(1))
    done = []

    def begin(name, goes_on, waits=False):
        def script():
            with slots.slot():
                done.append(f"{name} begins")
                if waits:
                    slots.give_back()
                assert goes_on.wait(60)
                done.append(f"{name} is over")

        threading.Thread(target=script, daemon=True).start()

    return begin, done


def test_the_second_begins_when_the_first_is_over(monkeypatch, scripts):
    monkeypatch.setattr(slots, "PATIENCE", 60.0)
    begin, done = scripts
    goes_on = threading.Event()
    begin("first", goes_on)
    until(lambda: done)
    begin("second", goes_on)
    threading.Timer(0.2, goes_on.set).start()
    until(lambda: len(done) == 4)
    assert done == ["first begins", "first is over", "second begins", "second is over"]
    until(lambda: slots._free.acquire(blocking=False))  # every slot is given back


@pytest.mark.parametrize(("waits", "patience"), [(True, 60.0), (False, 0.01)])
def test_it_does_not_wait_for_who_waits_nor_for_ever(monkeypatch, scripts, waits, patience):
    monkeypatch.setattr(slots, "PATIENCE", patience)
    begin, done = scripts
    goes_on = threading.Event()
    begin("first", goes_on, waits)
    until(lambda: done)
    begin("second", goes_on)
    until(lambda: done == ["first begins", "second begins"])
    goes_on.set()
    until(lambda: len(done) == 4)
    slots.give_back()  # without a slot it does nothing
