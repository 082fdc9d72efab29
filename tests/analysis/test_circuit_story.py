"""The story of a circuit: random weights have none, and what is said of a head is what hooks measure."""

import numpy as np
import pytest
import torch

from gptviz.analysis import circuit_story
from gptviz.analysis.circuit_claims import LEAST, Claim, Worth
from gptviz.analysis.circuit_passes import edits_of
from gptviz.analysis.circuit_story import ROLES, story
from gptviz.analysis.prompts import NAMES, Prompt, indirect_objects
from tests.analysis.muted_heads import check_worth, lost_by_hooks
from tests.analysis.test_patched_paths import by_hooks
from tests.conftest import random_lm


@pytest.mark.parametrize("seed", [0, 1])
def test_random_weights_have_no_roles(seed):
    lm = random_lm(seed)
    told = story(lm, indirect_objects(lm, LEAST))
    assert told.n == LEAST
    assert [claim.role.name for claim in told.claims if claim.shown] == []
    classical = [role.name for role in ROLES if role.is_classical]
    assert [claim.role.name for claim in told.claims] == classical
    assert all("not shown" in claim.sentence for claim in told.claims)
    backup = told.claim("backup name mover")
    assert backup.strongest is None and "no name mover is shown" in backup.sentence
    table = told.table.set_index("role")
    for role in ("backup name mover", "S-inhibition", "duplicate token", "previous token"):
        assert table.loc[role, ["effect", "effect_se", "n", "changed", "lost"]].isna().all()
        assert "Not tested" in table["reason"][role]


def test_numbers_are_those_of_passes_with_hooks():
    """What the nearest head of a role passes on, and the circuit's F, by the plain way."""
    lm = random_lm(2, n_layers=3)
    prompts = indirect_objects(lm, LEAST)
    steps = []
    told = story(lm, prompts, progress=lambda done, of: steps.append(done / of))
    assert steps == sorted(steps) and steps[-1] == 1
    claim = told.claim("negative name mover")
    members = claim.measured
    effects = []
    whole = []
    circuit = []
    for prompt in prompts:
        own = lm.encode(prompt.text)
        other = lm.encode(prompt.other)
        pair = [lm.encode(name)[0] for name in prompt.target]
        logits = lm.trace(own).logits(-1).double()
        whole.append(float(logits[pair[0]] - logits[pair[1]]))
        patched = [by_hooks(lm, own, other, head, "logits", pair, -1) for head in members]
        effects.append(sum(whole[-1] - logit for logit in patched))
        left = lm.trace(own, edits=edits_of(lm, told.worth.heads, "sample")).logits(-1).double()
        circuit.append(float(left[pair[0]] - left[pair[1]]))
    assert claim.effect == pytest.approx(np.mean(effects), abs=1e-4)
    assert claim.effect_se == pytest.approx(np.std(effects, ddof=1) / LEAST**0.5, abs=1e-4)
    assert told.difference == pytest.approx(np.mean(whole), abs=1e-4)
    assert told.right == sum(one > 0 for one in whole)
    assert told.worth.whole == pytest.approx(np.mean(whole), abs=1e-4)
    assert told.worth.circuit == pytest.approx(np.mean(circuit), abs=1e-4)
    assert len(told.worth.random) >= 20
    assert len(told.worth.minimality) == len(told.worth.heads)


def test_errors_of_sentences_with_their_names_exchanged_are_over_pairs(monkeypatch):
    monkeypatch.setattr(circuit_story, "ROLES", ROLES[:1])  # all others take as long again
    lm = random_lm(2, n_layers=1, n_heads=2)
    told = story(lm, indirect_objects(lm, 2 * LEAST, exchanged=True))
    assert (told.n, told.independent) == (2 * LEAST, LEAST)
    ahead = []
    for prompt in indirect_objects(lm, LEAST):
        names = [name.strip() for name in prompt.target]
        exchanged = " ".join(
            dict(zip(names, names[::-1], strict=True)).get(w, w) for w in prompt.text.split()
        )
        answer, instead = (lm.encode(name)[0] for name in prompt.target)
        for text, sign in ((prompt.text, 1), (exchanged, -1)):
            logits = lm.trace(text).logits(-1).double()
            ahead.append(sign * float(logits[answer] - logits[instead]))
    of_pairs = np.reshape(ahead, (LEAST, 2)).mean(axis=1)
    assert told.difference == pytest.approx(of_pairs.mean(), abs=1e-4)
    assert told.difference_se == pytest.approx(of_pairs.std(ddof=1) / LEAST**0.5, abs=1e-4)


def test_what_is_no_sentence_with_two_names_is_refused(mini):
    few = indirect_objects(mini, LEAST - 1)
    with pytest.raises(ValueError, match="11 sentences with two names given; a story needs 12"):
        story(mini, few)
    pairs = indirect_objects(mini, 2 * LEAST - 2, exchanged=True)
    with pytest.raises(ValueError, match=r"22 sentences given, of which 11 are others .* 11 count"):
        story(mini, pairs)
    with pytest.raises(ValueError, match=r"sentence 11, .* two names need one token once"):
        story(mini, [*few, Prompt("Mary met John", " Mary", " John")])
    with pytest.raises(ValueError, match="must be one of zero, mean, sample, other"):
        story(mini, baseline="none")


def test_a_third_name_is_needed(mini, monkeypatch):
    """Where no other name is one token, a sentence says so; it is no StopIteration."""
    prompts = indirect_objects(mini, LEAST)
    monkeypatch.setattr(circuit_story, "NAMES", ("Xquqzzle",))
    with pytest.raises(ValueError, match=r"sentence 0, .* needs a third name"):
        story(mini, prompts)


def test_third_names_stand_in_no_sentence_and_are_not_all_the_same(mini):
    names = circuit_story._single_names(mini)
    read = [
        circuit_story._sentence(mini, *numbered, names)
        for numbered in enumerate(indirect_objects(mini, LEAST))
    ]
    thirds = [one.others["first"][one.places["first"][0]] for one in read]
    assert all(third not in one.ids for third, one in zip(thirds, read, strict=True))
    assert len({*thirds}) > LEAST / 2


# where each thing stands in the planted model's stream
NAMED = 40  # the most names: a dimension each
ID = 0  # which name a token is
COPIED = 40  # which name the duplicate-token head has found
AWAY = 80  # which name the last token is to look away from
PLACE = 120  # which position
IS_NAME = 140
IS_END = 141
IS_FIRST = 142
HAS_MOVED = 143  # whether the mover has written
WIDTH = 144


def planted(n_layers=3):
    """A model with the circuit of the paper and nothing else: a head a block, by its weights alone.

    In a fourth block a backup name mover, which looks at the first token as long as the mover has written.
    """
    lm = random_lm(0, n_layers=n_layers, n_heads=2, emb_dim=2 * WIDTH, context_length=20)
    names = [lm.encode(f" {name}")[0] for name in NAMES if len(lm.encode(f" {name}")) == 1]
    model = lm.model
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    for norm in [model.final_norm, *(n for b in model.trf_blocks for n in (b.norm1, b.norm2))]:
        torch.nn.init.ones_(norm.scale)
    for number, token in enumerate(names):
        model.tok_emb.weight.data[token, [ID + number, IS_NAME]] = 1
        model.out_head.weight.data[token, ID + number] = 1
    model.tok_emb.weight.data[lm.encode(" to")[0], IS_END] = 1
    for position in range(20):
        model.pos_emb.weight.data[position, PLACE + position] = 1
    model.pos_emb.weight.data[0, IS_FIRST] = 1
    duplicate, inhibition, *movers = (block.att for block in model.trf_blocks)
    every = range(NAMED)
    places = range(20)
    # a name looks at the same name, not at itself, and at the first token where there is none
    set_weights(duplicate.W_query, [(i, ID + i, 2) for i in every])
    set_weights(duplicate.W_key, [(i, ID + i, 2) for i in every])
    set_weights(duplicate.W_query, [(NAMED + p, PLACE + p, 3) for p in places])
    set_weights(duplicate.W_key, [(NAMED + p, PLACE + p, -3) for p in places])
    duplicate.W_query.bias.data[NAMED + 20] = 10
    set_weights(duplicate.W_key, [(NAMED + 20, IS_FIRST, 2)])
    set_weights(duplicate.W_value, [(i, ID + i, 1) for i in every])
    set_weights(duplicate.out_proj, [(COPIED + i, i, 0.05) for i in every])
    # the last token looks at the latest name, and takes what the duplicate-token head has found there
    set_weights(inhibition.W_query, [(0, IS_END, 4)])
    set_weights(inhibition.W_key, [(0, IS_NAME, 12), *((0, PLACE + p, p / 2) for p in places)])
    set_weights(inhibition.W_value, [(i, COPIED + i, 1) for i in every])
    set_weights(inhibition.out_proj, [(AWAY + i, i, 0.2) for i in every])
    # the last token looks at the names but for that one, and copies
    for mover in movers:
        set_weights(mover.W_query, [(i, AWAY + i, -1) for i in every])
        set_weights(mover.W_query, [(NAMED, IS_END, 3)])
        set_weights(mover.W_key, [*((i, ID + i, 1) for i in every), (NAMED, IS_NAME, 3)])
        set_weights(mover.W_value, [(i, ID + i, 1) for i in every])
        set_weights(mover.out_proj, [(ID + i, i, 0.5) for i in every])
    set_weights(movers[0].W_value, [(NAMED, IS_NAME, 1)])
    set_weights(movers[0].out_proj, [(HAS_MOVED, NAMED, 0.5)])
    for backup in movers[1:]:
        set_weights(backup.W_query, [(NAMED + 1, HAS_MOVED, 3)])
        set_weights(backup.W_key, [(NAMED + 1, IS_FIRST, 3)])
    return lm


def set_weights(layer, weights):
    """Set single weights of a layer: (to, from, weight)."""
    for to, source, weight in weights:
        layer.weight.data[to, source] = weight


def test_a_planted_circuit_is_told():
    lm = planted()
    told = story(lm, indirect_objects(lm, LEAST))
    assert told.right == LEAST
    shown = {claim.role.name: claim.heads for claim in told.claims if claim.shown}
    assert shown == {
        "name mover": ((2, 0),),
        "S-inhibition": ((1, 0),),
        "duplicate token": ((0, 0),),
    }
    for role in shown:
        claim = told.claim(role)
        assert claim.effect > 3 * claim.effect_se
        assert "shown" not in claim.sentence and "the difference falls by" in claim.sentence
    assert told.worth.heads == ((0, 0), (1, 0), (2, 0))
    # nobody else does anything: the circuit is the model, and no head of it can go
    assert told.worth.faithfulness == pytest.approx(0, abs=1e-4)
    assert told.worth.completeness == pytest.approx(0, abs=1e-4)
    assert min(told.worth.minimality) > 0.1 * told.worth.whole
    assert told.worth.share == pytest.approx(1, abs=1e-4) and told.worth.explains
    # the mover's weights copy every name, by construction
    assert told.claim("name mover").copy_scores == (1.0,)
    assert "Copy score: 2.0 100 %." in told.claim("name mover").sentence


def test_muted_heads_may_give_what_they_give_in_the_other_sentence():
    """Where the answer's name stands at the second mention, so that it asks for the other one."""
    lm = planted()
    prompts = indirect_objects(lm, LEAST)
    told = story(lm, prompts, "other")
    names = circuit_story._single_names(lm)
    texts = [circuit_story._sentence(lm, *numbered, names) for numbered in enumerate(prompts)]
    other = "its value in the sentence with the answer's name at the second mention"
    for role in ("name mover", "S-inhibition", "duplicate token"):
        claim = told.claim(role)
        lost = lost_by_hooks(lm, texts, "second", claim.heads)
        assert claim.lost == pytest.approx(np.mean(lost), abs=1e-4) and claim.lost > 1
        assert claim.lost_se == pytest.approx(np.std(lost, ddof=1) / LEAST**0.5, abs=1e-4)
        assert f" With it off ({other} instead) the difference falls by" in claim.sentence
    assert told.worth.gives == other
    assert told.worth.circuit == pytest.approx(told.worth.whole, abs=1e-4)
    check_worth(lm, texts, "second", told.worth)


def test_the_other_sentences_circuits_are_those_of_passes_with_hooks():
    lm = random_lm(3, n_layers=3)
    prompts = indirect_objects(lm, LEAST)
    names = circuit_story._single_names(lm)
    texts = [circuit_story._sentence(lm, *numbered, names) for numbered in enumerate(prompts)]
    worth = story(lm, prompts, "other").worth
    assert abs(worth.circuit - worth.empty) > 1e-3 and min(worth.minimality) > 1e-4
    check_worth(lm, texts, "second", worth)


@pytest.mark.parametrize(
    ("amount", "said"), [(-0.76, "rises by 0.76 ± 0.11"), (0.25, "falls by 0.25 ± 0.11")]
)
def test_a_fall_below_zero_is_a_rise(amount, said):
    role = circuit_story.WRONG_MOVER
    numbers = (amount, 0.11, 24, "this", "that")
    claim = Claim(role, True, ((5, 4),), "It looks.", (5, 4), *numbers, (), amount, 0.11, "0")
    assert claim.sentence == (
        f"5.4: mover of the other name. With this, taken from that, the difference {said} logits (24 texts). It looks. "
        f"With it off (0 instead) the difference {said}."
    )


def test_a_circuit_that_keeps_no_more_than_no_head_explains_nothing():
    def worth(circuit):
        return Worth(((5, 4),), -1.8, circuit, 0.2, (), 0.0, "", (0.0,), "0")

    assert worth(0.2).share == 0 and not worth(0.2).explains
    assert worth(-0.8).share == pytest.approx(0.5) and worth(-0.8).explains
    assert worth(1.2).share == pytest.approx(-0.5) and not worth(1.2).explains
    assert Worth(((5, 4),), 0.2, 0.3, 0.2, (), 0.0, "", (0.0,), "0").share is None


def test_a_planted_backup_is_found_when_the_mover_is_muted():
    lm = planted(n_layers=4)
    prompts = indirect_objects(lm, LEAST)
    told = story(lm, prompts, "zero")
    shown = {claim.role.name: claim.heads for claim in told.claims if claim.shown}
    assert shown["name mover"] == ((2, 0),)
    assert shown["backup name mover"] == ((3, 0),)
    claim = told.claim("backup name mover")
    assert claim.changed == "2.0 off"
    more = []
    for prompt in prompts:
        pair = [lm.encode(name)[0] for name in prompt.target]
        whole = lm.trace(prompt.text)
        muted = lm.trace(prompt.text, edits=["z.2.0=zero"])
        # through the LayerNorm of the pass without a change, by hand
        stream = whole["resid_post", 3][-1].double()
        head = lm.model.out_head.weight.detach().double()
        towards = head[pair[0]] - head[pair[1]]
        towards = (towards - towards.mean()) / (stream.var(unbiased=False) + 1e-5).sqrt()
        weights = lm.model.trf_blocks[3].att.out_proj.weight.detach().double()
        grown = (muted["z", 3] - whole["z", 3])[0, -1].double()
        more.append(float(weights[:, : len(grown)] @ grown @ towards))
    assert claim.effect == pytest.approx(np.mean(more), abs=1e-4)
    assert claim.effect > 1
