"""A circuit by role, against a plain forward with torch hooks: a head is kept, or taken out, at some positions."""

from functools import lru_cache

import numpy as np
import pytest

from gptviz.analysis.abc_means import three_names
from gptviz.analysis.circuit_passes import Passes, all_heads, edits_of
from gptviz.analysis.circuit_search import brings, score, three_values, written
from gptviz.analysis.circuit_texts import (
    EVERYWHERE,
    KEPT,
    KEPT_AT_ROLES,
    circuit_on,
    heads_by_role,
    share_kept,
    strongest_roles,
)
from gptviz.analysis.role_patches import ROLES
from tests.analysis.mixed_heads import hooked, means_of
from tests.analysis.test_llama_analysis import lm_of
from tests.analysis.written_out import Told

PAIR = (" Mary", " Tom")
# texts, and where their roles are: counted by hand
TEXTS = [
    (
        "When Mary and Tom left, Tom spoke to",
        {"IO": 1, "S1": 3, "S1+1": 4, "S2": 6, "END": 8},
    ),
    (
        "Then Tom met Mary at the old house, and Tom gave a key to",
        {"IO": 3, "S1": 1, "S1+1": 2, "S2": 10, "END": 14},
    ),
    (
        "After Tom and Mary went to the store, Tom gave a ring to",
        {"IO": 3, "S1": 1, "S1+1": 2, "S2": 9, "END": 13},
    ),
]
CIRCUIT = {(5, 4): ["END"], (3, 0): ["S2"], (0, 1): ["S1+1", "S2"], (0, 5): ["IO", "END"]}


@lru_cache(maxsize=3)
def abc_means_of(lm, ids, pair):
    """(L, T, D): what attention mixes, by position, as a mean over the sentences with three names."""
    return means_of(lm, three_names(lm, ids, *pair))


def muted_pass(lm, ids, pair, baseline, muted):
    """The difference of the pair's logits with each (block, head) of `muted` off at its positions."""
    width = lm.config.emb_dim // lm.config.n_heads
    means = None
    if baseline == "abc":
        means = abc_means_of(lm, tuple(ids), pair)

    def mute(block, x):
        new = x.clone()
        for (b, h), positions in muted.items():
            part = slice(h * width, (h + 1) * width)
            for position in positions if b == block else ():
                if baseline == "zero":
                    new[position, part] = 0
                elif baseline == "mean":
                    new[position, part] = x[:, part].mean(0)
                else:
                    new[position, part] = means[block][position, part].float()
        return new

    logits = hooked(lm, ids, mute)
    return float(logits[pair[0]] - logits[pair[1]])


def left(kept, length, of):
    """Of every head the positions at which it is muted, with these positions of these heads kept."""
    return {head: [p for p in range(length) if p not in kept.get(head, ())] for head in of}


def placed(circuit, roles):
    return {head: [roles[name] for name in names] for head, names in circuit.items()}


def read(lm, text):
    return lm.encode(text), tuple(lm.encode(name)[0] for name in PAIR)


@pytest.mark.parametrize("baseline", ["zero", "mean", "abc"])
def test_heads_are_kept_and_removed_at_their_roles(mini, baseline):
    told = Told()
    everyone = all_heads(mini)
    for text, roles in TEXTS:
        ids, pair = read(mini, text)
        kept = placed(CIRCUIT, roles)
        every = range(len(ids))
        muted = (
            {},
            left(kept, len(ids), everyone),
            kept,
            dict.fromkeys(everyone, every),
            dict.fromkeys([head for head in everyone if head not in CIRCUIT], every),
        )
        expected = [muted_pass(mini, ids, pair, baseline, one) for one in muted]
        table = circuit_on(mini, text, PAIR, CIRCUIT, baseline, progress=told)
        assert tuple(table["kept"]) == KEPT_AT_ROLES and KEPT_AT_ROLES[-1] == EVERYWHERE
        assert np.allclose(table["logit"], expected, atol=1e-5)
        assert np.abs(np.diff(expected)).min() > 1e-3
        assert told.came_to(4)
        told.clear()
        # the same as one batch that begins with fewer tokens
        if baseline == "mean":
            passes = Passes(mini, text, PAIR, baseline)
            assert np.allclose(three_values(passes, CIRCUIT), table["logit"][[0, 1, 3]], atol=1e-5)


def test_without_k_circuit_and_model_lose_it_at_its_roles_alone(mini):
    """Completeness, and minimality: K of one head, and of two."""
    text, roles = TEXTS[2]
    ids, pair = read(mini, text)
    everyone = all_heads(mini)
    kept = placed(CIRCUIT, roles)
    worth = score(Passes(mini, text, PAIR, "zero"), CIRCUIT).set_index("K")
    assert len(worth) == 16
    for k in ((), ((5, 4),), ((3, 0), (0, 1)), tuple(CIRCUIT)):
        own = {head: where for head, where in kept.items() if head not in k}
        taken = {head: kept[head] for head in k}
        row = worth.loc[written(k)]
        circuit = muted_pass(mini, ids, pair, "zero", left(own, len(ids), everyone))
        model = muted_pass(mini, ids, pair, "zero", taken)
        assert (row["circuit"], row["model"]) == pytest.approx((circuit, model), abs=1e-5)
    brought = brings(mini, text, PAIR, CIRCUIT, "zero")
    for head in ((3, 0), (4, 2)):  # in the circuit, and not
        values = []
        for also in ({head: CIRCUIT.get(head, ())}, {head: None}):
            own = dict(kept)
            own.pop(head, None)
            if also[head] is not None:
                own[head] = kept.get(head, range(len(ids)))
            values.append(muted_pass(mini, ids, pair, "zero", left(own, len(ids), everyone)))
        assert brought[head] == pytest.approx(values[0] - values[1], abs=1e-5)


def test_every_position_is_a_list_of_heads_and_no_role_is_no_head(mini):
    heads = [*CIRCUIT]
    for text, roles in TEXTS:
        ids, _ = read(mini, text)
        others = [place for place in range(len(ids)) if place not in roles.values()]
        table = circuit_on(mini, text, PAIR, heads, "mean")
        assert tuple(table["kept"]) == KEPT
        whole = {head: [*ROLES, *others] for head in heads}
        everywhere = circuit_on(mini, text, PAIR, whole, "mean")
        assert everywhere["logit"][:4].tolist() == table["logit"].tolist()
        assert everywhere["logit"][4] == table["logit"][1]
        one_role = {head: CIRCUIT[head] for head in heads[1:]}
        without = circuit_on(mini, text, PAIR, {heads[0]: []} | one_role, "mean")
        expected = circuit_on(mini, text, PAIR, one_role, "mean")
        assert np.allclose(without["logit"][:4], expected["logit"][:4], atol=1e-6)
        assert circuit_on(mini, text, PAIR, {}, "mean")["logit"][1] == table["logit"][3]


def test_a_head_works_where_the_circuit_misses_it_most(mini):
    heads = [(5, 4), (0, 1), (3, 0)]
    texts = [text for text, _ in TEXTS]
    told = Told()
    table = heads_by_role(mini, texts, PAIR, heads, "zero", progress=told)
    assert told.came_to(48)  # three texts, the circuit and three heads at five roles
    everyone = all_heads(mini)
    lost = []
    for text, roles in TEXTS:
        ids, pair = read(mini, text)
        rest = dict.fromkeys([head for head in everyone if head not in heads], range(len(ids)))
        circuit = muted_pass(mini, ids, pair, "zero", rest)
        lost.append(
            [
                circuit - muted_pass(mini, ids, pair, "zero", rest | {head: [at]})
                for head in sorted(heads)
                for at in roles.values()
            ]
        )
    assert np.allclose(table["lost"], np.mean(lost, axis=0), atol=1e-5)
    assert np.allclose(table["lost_se"], np.std(lost, axis=0, ddof=1) / 3**0.5, atol=1e-5)
    assert table["role"].tolist() == [*ROLES] * 3 and (table["n"] == 3).all()
    of_heads = np.mean(lost, axis=0).reshape(3, 5)
    expected = {
        head: ([*ROLES][int(np.abs(row).argmax())],)
        for head, row in zip(sorted(heads), of_heads, strict=True)
    }
    assert strongest_roles(table) == expected


def test_of_many_texts_each_has_its_own_positions_and_the_bench_asks_for_them(mini):
    texts = [text for text, _ in TEXTS]
    table = circuit_on(mini, texts, PAIR, CIRCUIT, "zero")
    each = [circuit_on(mini, text, PAIR, CIRCUIT, "zero")["logit"] for text in texts]
    assert np.allclose(table["logit"], np.mean(each, axis=0)) and (table["n"] == 3).all()
    mean = np.mean(each, axis=0)
    for row, name in ((1, "this circuit"), (4, EVERYWHERE)):
        share = (mean[row] - mean[3]) / (mean[0] - mean[3])
        assert share_kept(table, name) == pytest.approx(share)
    bench = mini.which_part(texts, *PAIR, baseline="zero")
    assert bench.circuit_on(CIRCUIT).equals(table)
    items = tuple((head, tuple(roles)) for head, roles in CIRCUIT.items())  # hashable, for a job
    assert bench.circuit_on(items).equals(table)
    heads = [(5, 4)]
    assert bench.heads_by_role(heads).equals(heads_by_role(mini, texts, PAIR, heads, "zero"))


def test_grouped_queries_have_a_head_each():
    """Of ids whose END is not the last one; a head is one of the queries'."""
    llama = lm_of("llama")
    assert llama.config.n_heads > llama.config.n_kv_groups
    ids = [5, 9, 17, 42, 17, 30, 8]
    roles = {"IO": 1, "S1": 2, "S1+1": 3, "S2": 4, "END": 5}
    circuit = {(1, 0): ["END"], (0, llama.config.n_heads - 1): ["S2", "S1+1"]}
    kept = placed(circuit, roles)
    everyone = all_heads(llama)
    expected = [
        grouped_pass(llama, ids[:6], muted)
        for muted in ({}, left(kept, 6, everyone), kept, left({}, 6, everyone))
    ]
    table = circuit_on(llama, ids, (9, 17), circuit, "zero", position=5)
    assert np.allclose(table["logit"][:4], expected, atol=1e-5)
    found = three_values(Passes(llama, ids, (9, 17), "zero", position=5), circuit)
    assert np.allclose(found, table["logit"][[0, 1, 3]], atol=1e-5)


def grouped_pass(lm, ids, muted):
    """`muted_pass` with zeros, of a model whose heads are of any width."""
    width = lm.config.head_dim

    def mute(block, x):
        new = x.clone()
        for (b, h), positions in muted.items():
            if b == block:
                new[list(positions), h * width : (h + 1) * width] = 0
        return new

    logits = hooked(lm, ids, mute)
    return float(logits[9] - logits[17])


def test_what_has_no_role_is_said(mini):
    heads = {(5, 4): ["END"]}
    where = "a head can be kept at IO, S1, S1\\+1, S2, END where a text has two names: "
    with pytest.raises(ValueError, match=f"{where}the text has ·Mary 0 times"):
        circuit_on(mini, "The man took off", PAIR, heads)
    with pytest.raises(ValueError, match=f"{where}ask for one of them instead of the other"):
        circuit_on(mini, TEXTS[0][0], " Mary", heads)
    with pytest.raises(ValueError, match=f"text 1: {where}"):
        heads_by_role(mini, [TEXTS[0][0], "The man took off"], PAIR, [(5, 4)])
    with pytest.raises(ValueError, match="role is 'S3'; it must be one of IO, S1, S1"):
        circuit_on(mini, TEXTS[0][0], PAIR, {(5, 4): ["S3"]})
    with pytest.raises(ValueError, match="there is no position 9; they go from 0 to 8"):
        circuit_on(mini, TEXTS[0][0], PAIR, {(5, 4): [9]})
    with pytest.raises(ValueError, match="there is no head 8"):
        circuit_on(mini, TEXTS[0][0], PAIR, {(5, 8): ["END"]})
    with pytest.raises(ValueError, match="give length, the number of the text's tokens"):
        edits_of(mini, {(5, 4): [8]})
    # positions by their numbers need no names; 5.4 reads what 0.1 writes at the others
    kept = {(0, 1): [0], (5, 4): [-1]}
    table = circuit_on(mini, "The man took off", None, kept, "zero")
    again = circuit_on(mini, "The man took off", None, kept | {(5, 4): [3]}, "zero")
    assert table.equals(again) and abs(table["logit"][1] - table["logit"][4]) > 1e-4
