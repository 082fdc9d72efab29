"""ABC means against a plain forward with torch hooks: the mean of the same position over other sentences."""

from collections import Counter

import numpy as np
import pytest
import torch

from gptviz.analysis.abc_means import ABC, COUNT, Mean, abc_mean, three_names
from gptviz.analysis.ablation import knock_out, parts_of
from gptviz.analysis.circuit_passes import Passes, all_heads
from gptviz.analysis.circuit_texts import circuit_on
from gptviz.analysis.prompts import NAMES, PLACES, THINGS, indirect_objects
from tests.analysis.mixed_heads import hooked, means_of

TEXT = "When Mary and Tom went to the store, Tom gave a ring to"
PAIR = (" Mary", " Tom")


def test_three_names_stand_where_two_stood(mini):
    ids = mini.encode(TEXT)
    answer, instead = (mini.encode(name)[0] for name in PAIR)
    texts = three_names(mini, ids, answer, instead)
    assert len(texts) == COUNT and texts == three_names(mini, ids, answer, instead)
    read = [mini.decode(text).split() for text in texts]
    own = TEXT.split()
    drawn = Counter()
    for words in read:
        assert len(words) == len(own)
        changed = {i for i, word in enumerate(words) if word != own[i]}
        assert changed <= {1, 3, 7, 8, 11}
        persons = {words[1], words[3], words[8]}
        assert len(persons) == 3 and persons <= {*NAMES}
        assert words[7].rstrip(",") in PLACES and words[11] in THINGS
        drawn.update(words[i] for i in (1, 7, 11))
    assert len(drawn) > 20


def test_a_muted_head_gives_its_mean_by_position(mini):
    """Of head 4 of block 5 and of a whole block's attention, as of every other."""
    ids = mini.encode(TEXT)
    answer, instead = (mini.encode(name)[0] for name in PAIR)
    means = means_of(mini, three_names(mini, ids, answer, instead))
    size = mini.config.emb_dim // mini.config.n_heads
    table = knock_out(mini, TEXT, PAIR, ABC)
    whole = hooked(mini, ids, lambda *_: None)
    for row, part in enumerate(parts_of(mini)):
        if part.kind != "head" or (part.block + part.head) % 3:
            continue
        mine = slice(part.head * size, (part.head + 1) * size)

        def mute(block, x, part=part, mine=mine):
            if block == part.block:
                x = x.clone()
                x[:, mine] = means[block][:, mine].float()
            return x

        logits = hooked(mini, ids, mute)
        ahead = float(logits[answer] - logits[instead])
        assert table["logit"].iloc[row] == pytest.approx(ahead, abs=1e-4)
        assert table["effect"].iloc[row] == pytest.approx(
            ahead - float(whole[answer] - whole[instead]), abs=1e-4
        )


def test_a_circuit_is_what_is_left_when_all_other_heads_give_their_abc_means(mini):
    ids = mini.encode(TEXT)
    answer, instead = (mini.encode(name)[0] for name in PAIR)
    means = means_of(mini, three_names(mini, ids, answer, instead))
    size = mini.config.emb_dim // mini.config.n_heads
    heads = [(0, 1), (3, 7), (5, 4)]

    def only(kept):
        def mute(block, x):
            new = means[block].float().clone()
            for b, h in kept:
                if b == block:
                    new[:, h * size : (h + 1) * size] = x[:, h * size : (h + 1) * size]
            return new

        logits = hooked(mini, ids, mute)
        return float(logits[answer] - logits[instead])

    rest = [head for head in all_heads(mini) if head not in heads]
    expected = [only(kept) for kept in (all_heads(mini), heads, rest, [])]
    table = circuit_on(mini, TEXT, PAIR, heads, ABC)
    assert np.allclose(table["logit"], expected, atol=1e-4) and np.ptp(expected) > 0.1
    passes = Passes(mini, TEXT, PAIR, ABC)
    assert np.allclose(passes.of([heads, rest, []]), expected[1:], atol=1e-4)


def test_of_many_texts_each_has_its_own_means_and_the_bench_asks_for_them(mini):
    prompts = indirect_objects(mini, 3)
    texts = [prompt.text for prompt in prompts]
    targets = [prompt.target for prompt in prompts]
    table = mini.knock_out(texts, targets, baseline=ABC)
    each = [mini.knock_out(p.text, p.target, baseline=ABC)["effect"] for p in prompts]
    assert np.allclose(table["effect"], np.mean(each, axis=0))
    bench = mini.which_part(texts, *map(list, zip(*targets, strict=True)), baseline=ABC)
    assert bench.knock_out().equals(table)
    with pytest.raises(ValueError, match="baseline is 'abc'; it must be one of zero, mean, sample"):
        mini.which_part(TEXT, *PAIR, baseline=ABC).story()


def test_a_model_with_edits_has_them_in_the_means_too(mini):
    lm = mini.edited("mlp_out.2=x0.5")
    ids = mini.encode(TEXT)
    pair = [mini.encode(name)[0] for name in PAIR]
    texts = three_names(mini, ids, *pair)
    rows = torch.stack([lm.trace(text)["attn_out", 4] for text in texts]).mean(0)
    found = abc_mean(lm, ids, *pair).rows("attn_out", 4, 2, 9)
    assert torch.allclose(found, rows[2:9], atol=1e-5)
    assert not torch.allclose(
        found, abc_mean(mini, ids, *pair).rows("attn_out", 4, 2, 9), atol=1e-3
    )


def test_what_has_no_abc_mean_is_refused_in_a_sentence(mini):
    with pytest.raises(ValueError, match="ABC means are of sentences with two names"):
        knock_out(mini, TEXT, " Mary", ABC)
    with pytest.raises(ValueError, match="the text has ·Mary 0 times and ·Tom 0 times"):
        knock_out(mini, "The man took off", PAIR, ABC)
    with pytest.raises(ValueError, match="over texts of one length: 2 tokens, and 3"):
        Mean([mini.trace([5, 6]), mini.trace([5, 6, 7])], [("z", 0)])
    with pytest.raises(ValueError, match="give at least one"):
        Mean([], [("z", 0)])
