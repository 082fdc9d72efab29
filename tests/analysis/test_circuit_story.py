"""The story of a circuit: random weights have none, and what is said of a head is what hooks measure."""

import numpy as np
import pytest

from gptviz.analysis.circuit_passes import edits_of
from gptviz.analysis.circuit_story import LEAST, ROLES, story
from gptviz.analysis.prompts import Prompt, indirect_objects
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


def test_numbers_are_those_of_passes_with_hooks():
    """What the nearest head of a role passes on, and the circuit's F, by the plain way."""
    lm = random_lm(2, n_layers=3)
    prompts = indirect_objects(lm, LEAST)
    steps = []
    told = story(lm, prompts, progress=lambda done, of: steps.append(done / of))
    assert steps == sorted(steps) and steps[-1] == 1
    claim = told.claim("negative name mover")
    members = claim.heads or (claim.nearest,)
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
        left = lm.trace(own, edits=edits_of(lm, told.worth.heads)).logits(-1).double()
        circuit.append(float(left[pair[0]] - left[pair[1]]))
    assert claim.effect == pytest.approx(np.mean(effects), abs=1e-4)
    assert claim.effect_se == pytest.approx(np.std(effects, ddof=1) / LEAST**0.5, abs=1e-4)
    assert told.difference == pytest.approx(np.mean(whole), abs=1e-4)
    assert told.right == sum(one > 0 for one in whole)
    assert told.worth.whole == pytest.approx(np.mean(whole), abs=1e-4)
    assert told.worth.circuit == pytest.approx(np.mean(circuit), abs=1e-4)
    assert len(told.worth.random) >= 20
    assert len(told.worth.minimality) == len(told.worth.heads)


def test_what_is_no_sentence_with_two_names_is_refused(mini):
    few = indirect_objects(mini, LEAST - 1)
    with pytest.raises(ValueError, match="7 sentences with two names given; a story needs 8"):
        story(mini, few)
    with pytest.raises(ValueError, match=r"sentence 7, .* a story needs one token once"):
        story(mini, [*few, Prompt("Mary met John", " Mary", " John")])
    with pytest.raises(ValueError, match="must be one of zero, mean, sample"):
        story(mini, baseline="none")
