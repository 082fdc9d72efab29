"""A head's portrait: every number written out on a small sample, and the bundled model's known heads."""

import math
from collections import defaultdict

import numpy as np
import pytest

from gptviz import disk_cache
from gptviz.analysis import head_portrait
from gptviz.analysis.head_portrait import portrait
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sample import Window
from tests.conftest import random_lm

SAMPLE = [Window("One", (5, 6, 7, 5, 6, 8)), Window("Two", (9, 5, 6, 5))]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_portrait, "sample_windows", lambda _: SAMPLE)


@pytest.mark.usefixtures("small")
def test_every_number_by_hand(lm: LanguageModel) -> None:
    found = portrait(lm, 1, 2, "induction", disk=False)
    total, excess, times = defaultdict(float), defaultdict(float), defaultdict(int)
    far, sink, entropies, queries = defaultdict(float), 0.0, [], 0
    for window in SAMPLE:
        attn = lm.trace(window.ids, keep=[("attn", 1)])["attn", 1][2].double()
        for q in range(1, len(window.ids)):
            queries += 1
            sink += attn[q, 0].item()
            entropies.append(-sum(a * math.log(a) for a in attn[q, : q + 1].tolist()))
            for k in range(1, q + 1):
                pair = (window.ids[q], window.ids[k])
                total[pair] += attn[q, k].item()
                excess[pair] += attn[q, k].item() - 1 / (q + 1)
                times[pair] += 1
                far[q - k] += attn[q, k].item()
    assert found.queries == queries and found.sink == pytest.approx(sink / queries)
    assert found.distances.tolist() == pytest.approx([far[i] / queries for i in range(6)], abs=1e-6)
    assert found.distances.sum() + found.sink == pytest.approx(1, abs=1e-6)
    assert found.mean_entropy == pytest.approx(np.mean(entropies))
    often = sorted((pair for pair in times if times[pair] > 1), key=lambda pair: -excess[pair])
    assert list(zip(found.pairs["query_id"], found.pairs["key_id"], strict=True)) == often
    for row in found.pairs.itertuples():
        pair = (row.query_id, row.key_id)
        assert (row.times, row.query, row.key) == (times[pair], lm.decode([pair[0]]), lm.decode([pair[1]]))
        assert (row.total, row.mean, row.excess) == pytest.approx(
            (total[pair], total[pair] / times[pair], excess[pair])
        )


@pytest.mark.usefixtures("small")
def test_passages_are_where_it_is_most_itself(lm: LanguageModel) -> None:
    found = portrait(lm, 0, 1, "previous", disk=False)
    assert [p.share for p in found.passages] == sorted((p.share for p in found.passages), reverse=True)
    assert {p.title for p in found.passages} == {"One", "Two"}
    for passage in found.passages:
        window = next(window for window in SAMPLE if window.title == passage.title)
        attn = lm.trace(window.ids, keep=[("attn", 0)])["attn", 0][1]
        best = max(attn[q, q - 1].item() for q in range(1, len(window.ids)))
        assert passage.share == pytest.approx(best) == pytest.approx(passage.weights[passage.query - 1])
        assert passage.ids == window.ids[: passage.query + 1] and sum(passage.weights) == pytest.approx(1)
    assert portrait(lm, 0, 1, "marks", disk=False).passages == ()  # there is no punctuation
    alone = portrait(lm, 0, 1, disk=False).passages[0]
    assert alone.share == pytest.approx(max(alone.weights[1:]))


def test_known_heads_of_the_bundled_model(mini: LanguageModel) -> None:
    previous = portrait(mini, 4, 3, "previous")
    assert previous.distances.argmax() == 1 and previous.distances[1] > 0.9 and previous.mean_entropy < 0.2
    assert len(previous.passages) == head_portrait.PASSAGES and previous.passages[-1].share > 0.99


@pytest.mark.usefixtures("small")
def test_it_is_kept_stopped_and_refused(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(disk_cache.SETTING, str(tmp_path))
    lm = random_lm(3)
    told: list[tuple[int, int]] = []
    first = portrait(lm, 0, 0, "copies", lambda done, of: told.append((done, of)))
    again = portrait(lm, 0, 0, "copies", lambda *_: pytest.fail("it was known"))
    assert told == [(1, 2), (2, 2)]
    assert again.pairs.equals(first.pairs) and again.passages == first.passages
    assert np.array_equal(again.distances, first.distances) and again.sink == first.sink
    with pytest.raises(ValueError, match="role is 'mixed'"):
        portrait(lm, 0, 0, "mixed")
    with pytest.raises(ValueError, match="no head 4 in block 0"):
        portrait(lm, 0, 4)
    monkeypatch.setattr(head_portrait, "sample_windows", lambda _: [])
    with pytest.raises(ValueError, match="lacks the characters"):
        portrait(lm, 0, 0)
