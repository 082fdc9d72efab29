"""What the field has found in OpenAI's own GPT-2, where it is on this machine: our numbers must be the same.

The eight prompts and the mean of 3.552 are those of TransformerLens' Exploratory Analysis Demo; the heads are
those of Wang et al., Interpretability in the Wild, 2022 (arXiv 2211.00593), and so is the mean of 3.56.
"""

import random

import pytest

import gptviz
from gptviz.analysis import attribution, head_general
from gptviz.analysis.prompts import indirect_objects
from gptviz.models.checkpoints.hub import HUB_MODELS, cached_folder

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

# The paper's sentences (its Figure 14): the first seven, each in both orders, are those that its authors drew
# from. Their lists of names and words are not in the paper; these are as common, and each is one token.
SENTENCES = (
    "Then, {0} and {1} went to the {place}.{2} gave a {object} to",
    "Then, {0} and {1} had a lot of fun at the {place}.{2} gave a {object} to",
    "Then, {0} and {1} were working at the {place}.{2} decided to give a {object} to",
    "Then, {0} and {1} were thinking about going to the {place}.{2} wanted to give a {object} to",
    "Then, {0} and {1} had a long argument, and afterwards{2} said to",
    "After {0} and {1} went to the {place},{2} gave a {object} to",
    "When {0} and {1} got a {object} at the {place},{2} decided to give it to",
)
NAMES = [
    "Michael", "Jessica", "Matthew", "Jennifer", "Daniel", "David", "James", "Robert", "John", "Joseph",
    "Andrew", "Ryan", "Sarah", "William", "Brian", "Anthony", "Eric", "Elizabeth", "Adam", "Kevin",
    "Thomas", "Rachel", "Laura", "Richard", "Amy", "Michelle", "Mark", "Emily", "Charles", "Stephen",
    "Patrick", "Sean", "Kelly", "Paul", "Scott", "Mary", "Lisa", "Katherine", "Samuel", "Alexander",
]  # fmt: skip
PLACES = ["store", "garden", "restaurant", "school", "hospital", "office", "house", "station"]
OBJECTS = ["ring", "bone", "computer", "drink", "snack", "book", "letter", "basketball"]
MANY = 700


@pytest.fixture(scope="module")
def lm():
    return gptviz.load("gpt2")


def difference(lm, text, answer, other):
    logits = lm.trace(text, keep=(), special_tokens=True).logits(-1)
    return float(logits[lm.encode(answer)[0]] - logits[lm.encode(other)[0]])


def test_the_mean_logit_difference_of_eight_prompts(lm):
    clean = [difference(lm, *case) for case in CASES]
    assert sum(clean) / 8 == pytest.approx(3.552, abs=0.001)
    swapped = [CASES[i + 1 if i % 2 == 0 else i - 1][0] for i in range(8)]  # the other name gives
    corrupt = [difference(lm, text, *case[1:]) for text, case in zip(swapped, CASES, strict=True)]
    assert sum(corrupt) / 8 == pytest.approx(-3.552, abs=0.001)


def some_case(rng):
    """A sentence of the paper: (prompt, who is named once, who is named twice and gives)."""
    answer, other = rng.sample(NAMES, 2)
    order = rng.choice([(answer, other), (other, answer)])
    words = {"place": rng.choice(PLACES), "object": rng.choice(OBJECTS)}
    prompt = rng.choice(SENTENCES).format(*order, f" {other}", **words)
    return f"<|endoftext|>{prompt}", f" {answer}", f" {other}"


def test_the_mean_logit_difference_of_the_papers_sentences(lm):
    assert all(len(lm.encode(f" {word}")) == 1 for word in (*NAMES, *PLACES, *OBJECTS))
    rng = random.Random(0)
    found = [difference(lm, *some_case(rng)) for _ in range(MANY)]
    # section 3 of the paper: 3.56 over its 100,000 sentences; other names and words move a mean a little
    assert sum(found) / MANY == pytest.approx(3.56, abs=0.4)
    assert sum(one > 0 for one in found) / MANY > 0.97  # 99.3 % there


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


@pytest.fixture(scope="module")
def sentences(lm):
    """Two dozen sentences with two names, every other one with the giver first (ABBA and BABA)."""
    return indirect_objects(lm, 24)


def test_the_bench_asks_both_orders_of_the_names(lm, sentences):
    """Section 3: 3.56, over both orders; without the end of text in front, and with other names, less exactly."""
    bench = lm.which_part(
        [prompt.text for prompt in sentences],
        [prompt.token for prompt in sentences],
        [prompt.against for prompt in sentences],
    )
    plain = [
        float(logits[lm.encode(prompt.token)[0]] - logits[lm.encode(prompt.against)[0]])
        for prompt in sentences
        for logits in [lm.trace(prompt.text, keep=()).logits(-1)]
    ]
    assert bench.differences == pytest.approx(plain, abs=1e-4)
    assert bench.logit_difference == pytest.approx(3.56, abs=1.2)


def test_path_patching_to_the_logits_finds_the_name_movers(lm, sentences):
    """Figure 3b: 9.9, 9.6 and 10.0 move the difference most, 10.7 and 11.10 against it."""
    table = lm.path_patching(
        [prompt.text for prompt in sentences],
        [prompt.other for prompt in sentences],
        [prompt.target for prompt in sentences],
        direction="noising",
    ).set_index(["block", "head"])
    assert {(9, 9), (9, 6), (10, 0)} <= {*table["change"].nsmallest(5).index}
    assert {(10, 7), (11, 10)} <= {*table["change"].nlargest(4).index}


def test_the_story_is_that_of_the_paper(lm, sentences):
    """Figure 2: name movers, negative ones, and the S-inhibition heads 7.3, 7.9, 8.6 and 8.10."""
    bench = lm.which_part(
        [prompt.text for prompt in sentences],
        [prompt.token for prompt in sentences],
        [prompt.against for prompt in sentences],
    )
    told = bench.story()
    assert {(9, 9)} <= {*told.claim("name mover").heads}
    assert {*told.claim("name mover").heads} & {(9, 6), (10, 0)}
    assert {*told.claim("negative name mover").heads} & {(10, 7), (11, 10)}
    assert len({*told.claim("S-inhibition").heads} & {(7, 3), (7, 9), (8, 6), (8, 10)}) >= 2
    assert told.right >= 0.9 * told.n
