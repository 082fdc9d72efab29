"""Many prompts: means and standard errors against numpy's of each text by itself; the sentences of names."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from gptviz.analysis import attributions, knock_out, patching
from gptviz.analysis.ablation import MEASURED
from gptviz.analysis.activation_patching import averaged_patches
from gptviz.analysis.answer_looks import answer_looks
from gptviz.analysis.circuit_texts import circuit_on
from gptviz.analysis.names import order_of
from gptviz.analysis.patched_paths import path_patching
from gptviz.analysis.patches import HEAD_SITES
from gptviz.analysis.prompts import (
    averaged,
    by_group,
    indirect_objects,
    is_many,
    left_out,
    standard_error,
)
from gptviz.analysis.role_patches import role_patching
from tests.analysis.written_out import Told
from tests.conftest import above, random_lm

IDS = [[5, 300, 17, 4000], [8, 8, 9], [1, 2, 3, 4, 5, 6]]
TARGETS = [7, (8, 9), (10, 4000)]
PAIRS = [
    ([5, 300, 17, 17], [5, 301, 17, 17]),
    ([9, 2, 7, 3], [9, 2, 8, 3]),
    ([4, 4, 1, 6], [5, 4, 1, 6]),
]


def is_the_mean(of_all, of_each, *names):
    for name in names:
        values = np.stack([table[name].to_numpy(float) for table in of_each])
        assert np.allclose(of_all[name], values.mean(0))
        assert np.allclose(of_all[f"{name}_se"], np.std(values, 0, ddof=1) / np.sqrt(len(values)))


def test_knock_out_and_attribution_of_a_list_are_the_mean_of_each():
    lm = random_lm(3)
    for function, names, parts in (
        (knock_out, MEASURED, 12),
        (attributions, ("contribution",), 1),
    ):
        of_all = function(lm, IDS, TARGETS, progress=(told := Told()))
        of_each = [function(lm, ids, target) for ids, target in zip(IDS, TARGETS, strict=True)]
        is_the_mean(of_all, of_each, *names)
        assert (of_all["n"] == 3).all() and told.came_to(3 * parts)
        keys = [column for column in of_each[0] if column not in names]
        assert of_all[keys].equals(of_each[0][keys])
        one = function(lm, IDS[:1], 7)
        assert one[f"{names[0]}_se"].isna().all() and np.allclose(
            one[names[0]], of_each[0][names[0]]
        )
        free = function(lm, [IDS[1]])[names[0]]
        first = int(lm.trace(IDS[1], keep=[]).logits(-1).argmax())
        assert np.allclose(free, function(lm, IDS[1], first)[names[0]])
    assert lm.knock_out(IDS, TARGETS).equals(knock_out(lm, IDS, TARGETS))
    assert lm.attribution(IDS, TARGETS).equals(attributions(lm, IDS, TARGETS))
    said = attributions(lm, IDS[0], (8, 9)), lm.trace(IDS[0]).attribution(8, against=9)
    assert said[0].equals(said[1])


@pytest.mark.parametrize("direction", ["denoising", "noising"])
def test_the_mean_of_patches_is_in_logits_and_its_share_a_ratio_of_means(direction):
    lm = random_lm(3)
    target = (7, 4000)
    clean, corrupt = map(list, zip(*PAIRS, strict=True))
    of_all = lm.patching(clean, corrupt, target, direction=direction, estimate=True)
    of_each = [patching(lm, *pair, target, direction=direction, estimate=True) for pair in PAIRS]
    is_the_mean(of_all, of_each, "logit", "change", "estimate")
    ends = [
        [above(lm.trace(i, keep=[]).logits(-1), *target).item() for i in pair] for pair in PAIRS
    ]
    distances = np.array([clean - corrupt for clean, corrupt in ends])
    share = of_all["change"] / distances.mean()
    assert np.allclose(of_all["effect"], share)
    assert np.allclose(of_all["metric"], share + (direction == "noising"))
    # the standard error of a ratio of means, by leaving each pair out in turn
    changes = np.stack([table["change"] for table in of_each])
    without = (changes.sum(0) - changes) / (distances.sum() - distances)[:, None]
    jackknife = np.sqrt(2 / 3 * ((without - without.mean(0)) ** 2).sum(0))
    large = np.abs(of_all["effect_se"]) > 1e-3
    assert np.median(np.abs(of_all["effect_se"][large] / jackknife[large] - 1)) < 0.5


def test_a_share_of_each_order_is_a_ratio_of_the_means_of_its_pairs_alone():
    changes = np.array([[1.0, -2.0], [3.0, 0.5], [0.25, 4.0], [2.0, 2.0]])  # (pairs, rows)
    distances = [4.0, 1.0, 0.01, -2.5]
    tables = [
        pd.DataFrame(
            {"logit": own + 1, "metric": own / far + 1, "effect": own / far, "change": own}
        )
        for own, far in zip(changes, distances, strict=True)
    ]
    means = averaged_patches(tables, distances, ["ABBA", "BABA", "ABBA", None])
    assert np.allclose(means["effect"], changes.sum(0) / sum(distances))
    assert np.allclose(means["effect_ABBA"], (changes[0] + changes[2]) / 4.01)
    assert np.allclose(means["effect_BABA"], changes[1]) and (means["n_ABBA"] == 2).all()
    assert np.allclose(means["change_ABBA"], changes[[0, 2]].mean(0))
    off = changes[[0, 2]] - np.array([[4.0], [0.01]]) * means["effect_ABBA"].to_numpy()
    assert np.allclose(means["effect_se_ABBA"], off.std(0, ddof=1) / 2**0.5 / (4.01 / 2))
    assert means["effect_se_BABA"].isna().all()
    of_all = averaged_patches(tables, distances)
    assert means[[*of_all.columns]].equals(of_all)


def test_heads_are_averaged_over_texts_of_any_length():
    lm = random_lm(3)
    clean = [[5, 6, 7], [1, 2, 3, 4]]
    corrupt = [[5, 9, 7], [1, 8, 3, 4]]
    table = lm.patching(clean, corrupt, (7, 4000), sites=HEAD_SITES)
    assert len(table) == 5 * lm.config.n_layers * lm.config.n_heads and (table["n"] == 2).all()
    assert not is_many("text") and not is_many([1, 2]) and is_many(["a"]) and is_many([[1], [2]])
    assert not is_many([]) and not is_many(())
    two = averaged([table.assign(logit=1.0), table.assign(logit=4.0)], ["logit"])
    assert two["logit_se"].iloc[0] == pytest.approx(1.5)


def test_exchanged_has_every_sentence_once_more_with_its_names_exchanged(mini):
    prompts = indirect_objects(mini, 23, seed=5, exchanged=True)
    assert len(prompts) == 23
    assert prompts[::2] == indirect_objects(mini, 12, seed=5)

    def exchange(text, one, other):
        return text.replace(one, " @").replace(other, one).replace(" @", other)

    for first, second in zip(prompts[::2], prompts[1::2], strict=False):
        names = first.token, first.against
        assert (second.token, second.against) == names[::-1]
        assert second.text == exchange(first.text, *names) != first.text
        assert second.other == exchange(first.other, *names)
        assert second.order == first.order == order_of(second.text, second.token, second.against)
    assert {prompt.order for prompt in prompts} == {"ABBA", "BABA"}


def test_the_sentences_have_one_length_and_two_answers(mini, lm):
    prompts = indirect_objects(mini, 40)
    lengths = {len(mini.encode(text)) for prompt in prompts for text in (prompt.text, prompt.other)}
    assert len(prompts) == 40 and lengths == {14} and prompts == indirect_objects(mini, 40)
    assert left_out(mini) == {"Anna": 2, "Sarah": 3}
    for prompt in prompts:
        answer = prompt.token
        giver = prompt.against
        assert (prompt.text.count(answer[1:]), prompt.text.count(giver[1:])) == (1, 2)
        assert (prompt.other.count(answer[1:]), prompt.other.count(giver[1:])) == (2, 1)
        assert len(mini.encode(answer)) == len(mini.encode(giver)) == 1
    assert [p.text.index(p.token[1:]) < p.text.index(p.against[1:]) for p in prompts] == [
        True,
        False,
    ] * 20
    table = mini.knock_out([p.text for p in prompts[:3]], [p.target for p in prompts[:3]])
    assert (table["n"] == 3).all()
    with_characters = type(mini)(lm.model, lm.tokenizer, lm.config, "other")
    assert len(indirect_objects(with_characters, 2)) in (0, 2)


def test_an_order_is_that_of_the_text_whatever_was_left_out(mini):
    prompts = indirect_objects(mini, 24)[3:]
    for prompt in (*prompts[::3], *prompts[1::5]):
        letters = {prompt.token[1:]: "A", prompt.against[1:]: "B"}
        named = [
            letters[word] for word in [*prompt.text.split(), prompt.token[1:]] if word in letters
        ]
        assert prompt.order == "".join(named) and prompt.order in ("ABBA", "BABA")
        assert order_of(prompt.text, prompt.token, prompt.against) == prompt.order


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Mary met Tom, and Tom gave a key to", "ABBA"),
        ("Tom met Mary, and Tom gave a key to", "BABA"),
        ("Tom met Tom, and Mary gave a key to", None),
        ("Tomato soup: Tom met Mary, and Tom gave it to", "BABA"),
        ("Mary met Tom, and Mary gave a key to", None),
        ("Mary met Tom", None),
    ],
)
def test_a_text_has_an_order_where_the_other_name_comes_again(text, order):
    assert order_of(text, " Mary", " Tom") == order and order_of(text, " ", " Tom") is None


def test_the_means_of_each_order_are_those_of_its_texts_alone():
    lm = random_lm(3)
    tables = [knock_out(lm, ids, target) for ids, target in zip(IDS, TARGETS, strict=True)]
    tables = [*tables, tables[0].assign(logit=tables[0]["logit"] + 1)]
    means = averaged(tables, MEASURED, ["BABA", None, "ABBA", "BABA"])
    of_all = averaged(tables, MEASURED)
    assert means[[*of_all.columns]].equals(of_all)
    logits = np.stack([tables[i]["logit"] for i in (0, 3)])
    assert np.allclose(means["logit_BABA"], logits.mean(0)) and (means["n_BABA"] == 2).all()
    assert np.allclose(means["logit_se_BABA"], logits.std(0, ddof=1) / 2**0.5)
    assert np.allclose(means["rise_ABBA"], tables[2]["rise"]) and (means["n_ABBA"] == 1).all()
    assert means["rise_se_ABBA"].isna().all()
    for orders in (["BABA", None, None, "BABA"], ["ABBA"] * 4, ()):
        assert averaged(tables, MEASURED, orders).equals(of_all)


def in_pairs(numbers):
    """The standard error of pairs, one behind the other: that of their means."""
    means = np.array(numbers).reshape(-1, 2, *np.shape(numbers)[1:]).mean(axis=1)
    return means.std(axis=0, ddof=1) / len(means) ** 0.5


def test_a_standard_error_is_over_groups():
    numbers = np.random.default_rng(0).normal(size=(8, 5))
    pairs = [0, 0, 1, 1, 2, 2, 3, 3]
    assert np.allclose(standard_error(numbers, pairs), in_pairs(numbers), rtol=1e-14, atol=0)
    assert np.allclose(by_group(numbers, pairs), numbers.reshape(4, 2, 5).mean(axis=1), rtol=1e-14)
    mixed = np.random.default_rng(1).permutation(8)
    shuffled = [pairs[i] for i in mixed]
    assert np.allclose(standard_error(numbers[mixed], shuffled), in_pairs(numbers), rtol=1e-12)
    assert np.isnan(standard_error(numbers, [4] * 8)).all()
    assert np.isnan(standard_error(numbers[:1])).all() and np.isnan(standard_error(numbers[0, :1]))


def test_groups_of_one_change_nothing_to_the_bit():
    sizes = 10.0 ** np.arange(-8, 1)[:, None, None]
    numbers = np.random.default_rng(0).normal(size=(9, 4, 3)) * sizes
    alone = [*range(9)]
    assert np.array_equal(by_group(numbers, alone), numbers)
    assert np.array_equal(standard_error(numbers, alone), standard_error(numbers))
    tables = [pd.DataFrame(one, columns=["a", "b", "c"]) for one in numbers]
    orders = ["ABBA", "BABA", None] * 3
    of_all = averaged(tables, ["a", "c"], orders)
    assert averaged(tables, ["a", "c"], orders, alone).equals(of_all)
    assert np.allclose(of_all["a_se"], numbers[:, :, 0].std(0, ddof=1) / 3, rtol=1e-12)


floats = st.floats(-1e3, 1e3, allow_nan=False)


@given(st.lists(st.tuples(floats, floats), min_size=2, max_size=9), st.data())
def test_what_raises_one_of_a_pair_by_what_it_lowers_the_other_does_not_count(pairs, data):
    shifts = data.draw(st.lists(floats, min_size=len(pairs), max_size=len(pairs)))
    plain = np.array(pairs).ravel()
    moved = plain + np.array([(shift, -shift) for shift in shifts]).ravel()
    groups = [i // 2 for i in range(len(plain))]
    assert moved.mean() == pytest.approx(plain.mean(), abs=1e-9)
    assert standard_error(moved, groups) == pytest.approx(standard_error(plain, groups), abs=1e-9)


@given(st.lists(floats, min_size=2, max_size=12), st.data())
def test_groups_of_any_size_keep_the_mean_and_count_by_their_texts(values, data):
    """The error of a mean of clusters: the sums of what their texts are off it, squared."""
    of_texts = st.lists(st.integers(0, 4), min_size=len(values), max_size=len(values))
    groups = data.draw(of_texts)
    given_numbers = np.array(values)
    off = given_numbers - given_numbers.mean()
    sums = np.array([off[np.array(groups) == group].sum() for group in set(groups)])
    count = len(sums)
    assert by_group(given_numbers, groups).mean() == pytest.approx(given_numbers.mean(), abs=1e-9)
    if count > 1:
        expected = (count / (count - 1) * (sums**2).sum()) ** 0.5 / len(values)
        assert standard_error(given_numbers, groups) == pytest.approx(expected, abs=1e-9)


def four_in_pairs(mini):
    """Texts, their other texts and their targets: of two pairs."""
    prompts = indirect_objects(mini, 4, exchanged=True)
    rows = [(one.text, one.other, one.target) for one in prompts]
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    ("column", "function"),
    [
        ("effect", lambda lm, text, other, aim: lm.knock_out(text, aim)),
        ("contribution", lambda lm, text, other, aim: lm.attribution(text, aim)),
        ("to_answer", lambda lm, text, other, aim: answer_looks(lm, text, aim)),
        ("lost", lambda lm, text, other, aim: circuit_on(lm, text, aim, [(5, 4), (5, 7)])),
        ("change", lambda lm, text, other, aim: lm.patching(text, other, aim, sites=["z"])),
        ("logit", path_patching),
        ("change", role_patching),
    ],
)
def test_every_mean_over_texts_has_its_error_over_pairs(mini, column, function):
    """Each against its tables of one text, averaged in pairs by numpy alone."""
    given_texts = four_in_pairs(mini)
    together = function(mini, *given_texts)
    each = [function(mini, *one)[column] for one in zip(*given_texts, strict=True)]
    assert np.allclose(together[f"{column}_se"], in_pairs(each), rtol=1e-6, atol=1e-9)
    assert np.allclose(together[column], np.mean(each, axis=0), rtol=1e-6, atol=1e-9)
    assert (together["n"] == 4).all() and (together[f"{column}_se"] > 0).any()


def test_a_share_of_pairs_has_its_error_over_pairs(mini):
    given_texts = four_in_pairs(mini)
    table = mini.patching(*given_texts, sites=["z"])
    each = [mini.patching(*one, sites=["z"]) for one in zip(*given_texts, strict=True)]
    changes = np.stack([one["change"] for one in each])
    # a share is the change divided by the distance of the two texts
    strongest = int(np.abs(changes.mean(axis=0)).argmax())
    distances = np.array([one["change"][strongest] / one["effect"][strongest] for one in each])
    off = changes - distances[:, None] * changes.mean(axis=0) / distances.mean()
    expected = in_pairs(off) / abs(distances.mean())
    assert np.allclose(table["effect_se"], expected, rtol=1e-4, atol=1e-7)
