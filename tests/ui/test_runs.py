"""What sessions share: traces and what is derived from them, by their Run, bounded by bytes."""

import ast
import dataclasses
import gc
import importlib
import inspect
import pkgutil
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

from gptviz import Edit, Run
from gptviz.analysis.embeddings import embedding_rows
from gptviz.analysis.feed_forward import PEAKS
from gptviz.analysis.lens_trial import LOGIT
from gptviz.analysis.stream import apart
from gptviz.analysis.surgery import Operation
from gptviz.engine import sites
from gptviz.engine.reduction import Reduction
from gptviz.engine.sampling import Sampling
from gptviz.teach.claims import written
from gptviz.ui import runs as shared
from gptviz.ui.runs import Busy, Runs, pass_bytes
from gptviz.ui.shell.navigation import SCRIPTS
from tests.conftest import random_lm
from tests.waiting import together

UI = Path(shared.__file__).parent
MUTED = Edit("z", 0, heads=[1])


@pytest.fixture
def passed(lm):
    """Of each pass of the model how many tokens it read."""
    found = []
    handle = lm.model.tok_emb.register_forward_hook(lambda _m, _i, out: found.append(out.shape[1]))
    yield found
    handle.remove()


@pytest.fixture
def made(lm):
    """made(max_bytes, ...) -> a cache of runs of the small model."""
    return lambda max_bytes=2**24, **options: Runs(max_bytes, lambda key: lm, **options)


@pytest.fixture
def read(passed):
    """read(cache, ids, ...) -> the trace of a run, and how many tokens went through the model for it."""

    def read(cache, *run):
        passed.clear()
        return cache.get(Run("m", *run), None), sum(passed)

    return read


def peak(attn):
    return attn.amax(dim=-1)  # (H, T, T) -> (H, T)


@pytest.mark.parametrize("long", [False, True])
def test_a_run_is_passed_once_whatever_is_asked_of_it_later(made, passed, lm, monkeypatch, long):
    monkeypatch.setattr(sites, "SMALL", 0 if long else 2**24)
    cache = made()
    run = Run("m", (1, 2, 3))
    found = cache.get(run, (("attn", 0),))
    assert found.holds((("attn", 0),)) and found.holds(("attn",)) is not long
    peak_of = Reduction("peak", "attn", peak)
    both = cache.get(run, ("attn", "embed"), [peak_of])
    assert both is found is cache.get(Run("m", [1, 2, 3]), None) and passed == [3]
    truth = lm.trace([1, 2, 3])
    assert torch.equal(both["attn", 1], truth["attn", 1]) and torch.equal(
        both["embed"], truth["embed"]
    )
    assert torch.equal(both.reduced(peak_of)[1], peak(truth["attn", 1]))


def test_it_never_holds_more_than_its_bytes_and_forgets_the_least_recently_used(made, read, lm):
    cache = made(max_bytes=int(2.5 * lm.trace([1, 2]).nbytes))
    for first in (1, 2, 1, 3):  # 2 is the oldest when 3 comes
        read(cache, (first, 5))
        assert cache.nbytes <= cache.max_bytes
    assert [read(cache, (first, 5))[1] for first in (1, 2)] == [0, 2]


def test_what_is_larger_than_all_of_it_is_given_and_not_kept(made):
    cache = made(max_bytes=0)
    trace = cache.get(Run("m", (1, 2)), None)
    assert cache.get(Run("m", (1, 2)), ("attn",)) is trace  # as long as somebody holds it
    gone = weakref.ref(trace)
    del trace
    gc.collect()
    assert gone() is None and len(cache) == 0 and cache.nbytes == 0


def test_threads_that_ask_for_the_same_compute_it_once(made, passed):
    cache = made()
    sites = [("attn",), (("attn", 0), ("attn", 1))]
    found = together(8, lambda number: cache.get(Run("m", (5, 6, 7)), sites[number % 2]))
    assert len({id(trace) for trace in found}) == 1 and passed == [3]


def test_an_error_leaves_nothing_behind(made):
    cache = made()
    with pytest.raises(ValueError, match="65 tokens"):
        cache.get(Run("m", tuple(range(65))), ())
    with pytest.raises(ValueError, match="site"):
        cache.get(Run("m", (1,)), ("attention",))
    assert len(cache) == 0 and len(cache.get(Run("m", (1,)), ())) == 1


def test_a_model_that_goes_takes_all_of_it_along(made):
    cache = made()
    cache.get(Run("a", (1,)), ())
    cache.derived("x", Run("a", (1,)), lambda: 1)
    kept = cache.get(Run("b", (1,)), ())
    held = cache.get(Run("a", (1,)), ())
    cache.forget("a")
    assert cache.get(Run("a", (1,)), ()) is not held, "its model may be gone, and another loaded"
    cache.forget("a")
    assert len(cache) == 1 and cache.get(Run("b", (1,)), ()) is kept


@pytest.fixture
def no_short_pass(monkeypatch):
    monkeypatch.setattr(shared, "SHORT_PASS", 0)


def test_a_short_text_has_the_same_bits_whatever_was_read_before(made, read, lm):
    cache = made()
    ids = tuple(range(5, 35))
    longer = cache.get(Run("m", ids), ())
    for end in (29, 20):
        trace, tokens = read(cache, ids[:end])
        assert tokens == end and torch.equal(trace["final"], lm.trace(ids[:end])["final"])
    assert len(longer) == 30


@pytest.mark.usefixtures("no_short_pass")
@pytest.mark.parametrize("edits", [(), (MUTED,)])
def test_a_text_goes_on_from_where_another_one_with_the_same_edits_ends(made, read, lm, edits):
    cache = made()
    ids = tuple(range(5, 35))
    read(cache, ids, (Edit("mlp_out", 1),))  # another's pass
    for wanted, passed in (
        (ids[:20], 20),
        (ids[:21], 1),  # a token more
        (ids[:30], 9),
        ((*ids[:25], 7, 8), 2),  # its end was edited
        (ids[:12], 0),  # a part of what is known
        ((*ids[:27], 7, 8), 2),  # of two known ones the longer beginning
        ((*ids[:25], 7, 8, 9), 1),  # and so it is with the one that was read later
        (ids[1:9], 8),
    ):
        trace, tokens = read(cache, wanted, edits)
        assert tokens == passed
        truth = lm.trace(wanted, edits=edits)
        assert [token.id for token in trace.tokens] == list(wanted) and trace.edits == edits
        for block in range(2):
            assert torch.allclose(trace["resid_post", block], truth["resid_post", block], atol=1e-4)
    of_the_whole = (Edit("mlp_out", 0, "mean"),)
    for end in (20, 21):
        trace, tokens = read(cache, (*ids, 9)[:end], of_the_whole)
        assert tokens == end
        assert torch.equal(trace["final"], lm.trace((*ids, 9)[:end], edits=of_the_whole)["final"])


@pytest.mark.usefixtures("no_short_pass")
def test_a_text_that_grows_is_stored_once_and_stays_within_the_bytes(made, read, lm):
    cache = made(max_bytes=int(2.5 * lm.trace(range(40)).nbytes))
    ids = tuple(range(5, 45))
    for end in range(10, 41):
        trace, tokens = read(cache, ids[:end])
        assert tokens == (10 if end == 10 else 1)
        assert len(cache) == 1 and cache.nbytes == trace.nbytes <= cache.max_bytes
        del trace
    for end in range(10, 41, 7):  # all the shorter ones are still there
        assert read(cache, ids[:end])[1] == 0
        assert len(cache) == 1
    for first in (50, 100):
        assert read(cache, tuple(range(first, first + 40)))[1] == 40
    assert cache.nbytes <= cache.max_bytes
    assert read(cache, ids[:9])[1] == 9, "it was the least recently used"


def test_a_pass_waits_for_room_and_says_when_there_is_none(made, lm, monkeypatch):
    room = pass_bytes(lm, 20, lm.trace(range(20)).sites())
    cache = made(max_bytes=int(1.5 * room), wait_seconds=0.05)
    run = Run("m", range(1, 21))
    monkeypatch.setattr(shared, "session", lambda: "me")
    held = cache.get(Run("m", range(20)), None)
    monkeypatch.setattr(shared, "session", lambda: "another")
    with pytest.raises(Busy):
        cache.get(run, None)
    del held
    gc.collect()
    assert len(cache.get(run, None)) == 20


def test_about_what_a_pass_holds_is_no_less_than_what_it_holds():
    lm = random_lm()
    trace = lm.trace(range(30))
    assert pass_bytes(lm, 30, trace.sites()) >= 0.9 * (trace.nbytes - trace["final"].nbytes)


# ---- the process's own: what all of `ui/` uses ----


def equal(one, other) -> bool:
    if type(one) is not type(other):
        return False
    if dataclasses.is_dataclass(one):
        return all(
            equal(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one)
        )
    if isinstance(one, np.ndarray | torch.Tensor):
        if one.shape != other.shape:
            return False
        # NaN: nothing there
        return bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    return bool(one.equals(other)) if hasattr(one, "equals") else one == other


# what functions under `per_run` take besides the run
ARGUMENTS = {"mode": "light", "block": 0, "head": 0, "position": 2, "name": "block 1 · norm2"}
ARGUMENTS |= {"sampling": Sampling(0.7, top_k=50), "count": 10, "token_id": 42}
ARGUMENTS |= {"token": 300, "against": 17, "threshold": 0.04, "places": (0, 2)}
ARGUMENTS |= {"renormalize": True, "other": None}
ARGUMENTS |= {"parts": ((0, 4), (4, 7)), "ids": (300, 17)}
ARGUMENTS |= {"measure": "rank", "unit": 7, "at": "block.3.head.strongest", "shown": None}
ARGUMENTS |= {"number": 3, "put": 42, "puts": ((1, 42),), "length": 20, "until": "", "standing": 42}
ARGUMENTS |= {"beams": 2, "tokens": 3, "how": "drawn"}
ARGUMENTS |= {"operation": Operation("delete", 2), "muted": ((1, 0),), "to": 2, "also": (42,)}
ARGUMENTS |= {"special": False, "question": "next_word", "given": None, "opened": (3, 1)}
ARGUMENTS |= {"lens": LOGIT}
# a second run: of other texts
ARGUMENTS |= {"corrupt": Run("mini", (300, 17, 42))}
ARGUMENTS |= {
    "numbers": embedding_rows,
    "compare": apart,
    "reduction": PEAKS,
    "heads": ((0, 1), (4, 3)),
}

# what the text alone decides where it copies nothing
OF_THE_TEXT = {"offered"}


def everything_per_run() -> list:
    for module in pkgutil.walk_packages([str(UI)], "gptviz.ui."):
        importlib.import_module(module.name)
    for path in (UI / "parts").glob("*/[!_]*.py"):
        importlib.import_module(f"gptviz.ui.parts.{path.parent.name}.{path.stem}")
    return shared.PER_RUN


@pytest.mark.parametrize(
    "function", everything_per_run(), ids=lambda f: f"{f.__module__}.{f.__name__}"
)
def test_a_changed_run_never_shows_the_model_s_own_numbers(function, mini, monkeypatch):
    """Two runs that differ only in an edit: each gets its own numbers, in whatever order one asks."""
    plain = Run("mini", mini.encode("The cat sat on the mat. The cat"))
    changed = plain.edited(Edit("tok_emb", value="zero"))
    _, *parameters = inspect.signature(function).parameters.values()
    arguments = ARGUMENTS | {"packed": written(mini, plain.ids, 2, ["next_word"])}
    # a token of the text, that heads look at
    arguments |= {"right": plain, "before": plain, "token": plain.ids[1]}
    more = {
        one.name: arguments[one.name] for one in parameters if one.kind is not one.VAR_POSITIONAL
    }
    monkeypatch.setattr(shared.models, "find", {"mini": mini}.get)
    seen = {}
    for order in ((plain, changed), (changed, plain)):
        cache = Runs(2**28, shared.model)
        monkeypatch.setattr(shared, "runs", lambda cache=cache: cache)
        for run in (*order, *order):
            found = function(run, **more)
            assert equal(found, seen.setdefault(run, found))
    if function.__name__ not in OF_THE_TEXT:
        assert not equal(seen[plain], seen[changed])


def test_nothing_in_ui_is_kept_by_another_key():
    """No cache of Streamlit's or functools' on a function that knows a model, a trace, a scene, or ids."""
    for path in [*UI.rglob("*.py"), *SCRIPTS.glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                "cache" in ast.unparse(decorator) for decorator in node.decorator_list
            ):
                names = {argument.arg.strip("_") for argument in node.args.args}
                annotations = " ".join(
                    ast.unparse(a.annotation) for a in node.args.args if a.annotation
                )
                assert not names & {"ids", "model", "trace", "lm", "run"}, f"{path}: {node.name}"
                held = ("Trace", "Scene", "LanguageModel", "Run")
                assert not any(word in annotations for word in held), node.name
