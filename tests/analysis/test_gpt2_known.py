"""What the field has found in OpenAI's own GPT-2, where it is on this machine: our numbers must be the same.

The eight prompts and the mean of 3.552 are those of TransformerLens' Exploratory Analysis Demo; the heads are
those of Wang et al., Interpretability in the Wild, 2022.
"""

import pytest

import gptviz
from gptviz.analysis import attribution, head_general
from gptviz.checkpoints.hub import HUB_MODELS, cached_folder

pytestmark = pytest.mark.skipif(
    cached_folder(HUB_MODELS["gpt2"].repositories) is None,
    reason="GPT-2 is not in Hugging Face's cache: python -m gptviz download gpt2",
)

# each with the two names in both roles: who is named twice gives, and the other is the answer
PROMPTS = [
    ("When John and Mary went to the shops,{} gave the bag to", (" Mary", " John")),
    ("When Tom and James went to the park,{} gave the ball to", (" Tom", " James")),
    ("When Dan and Sid went to the shops,{} gave an apple to", (" Dan", " Sid")),
    ("After Martin and Amy went to the park,{} gave a drink to", (" Martin", " Amy")),
]
# (prompt, answer, the other name); the demo's library puts the end of text before every prompt
CASES = [
    (f"<|endoftext|>{prompt.format(names[1 - i])}", names[i], names[1 - i])
    for prompt, names in PROMPTS
    for i in (0, 1)
]


@pytest.fixture(scope="module")
def lm():
    return gptviz.load("gpt2")


def difference(lm, text, answer, other):
    logits = lm.trace(text, keep=(), special_tokens=True).logits()
    return float(logits[lm.encode(answer)[0]] - logits[lm.encode(other)[0]])


def test_the_mean_logit_difference_of_eight_prompts(lm):
    clean = [difference(lm, *case) for case in CASES]
    assert sum(clean) / 8 == pytest.approx(3.552, abs=0.001)
    swapped = [CASES[i + 1 if i % 2 == 0 else i - 1][0] for i in range(8)]  # the other name gives
    corrupt = [difference(lm, text, *case[1:]) for text, case in zip(swapped, CASES, strict=True)]
    assert sum(corrupt) / 8 == pytest.approx(-3.552, abs=0.001)


def test_name_movers_write_the_answer_and_negative_ones_against_it(lm):
    total = 0
    for text, answer, other in CASES:
        table = attribution(lm.trace(text, special_tokens=True), lm.model, answer, other)
        total = total + table[table["part"] == "head"].set_index(["block", "head"])["contribution"]
    assert {*total.nlargest(3).index} == {(9, 9), (10, 0), (9, 6)}
    assert {*total.nsmallest(2).index} == {(10, 7), (11, 10)}


def test_induction_and_previous_token_heads(lm):
    table = head_general.general(lm, disk=False).table.set_index(["block", "head"])
    assert {(5, 1), (5, 5), (6, 9), (7, 2), (7, 10)} <= {*table["induction"].nlargest(8).index}
    assert table["previous_random"].idxmax() == (4, 11)
