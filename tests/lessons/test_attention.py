"""Attention by hand against what the seeds and the book print, and against the model's own class."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz.analysis.attention import softmax_row
from gptviz.lessons import attention as lesson
from gptviz.lessons.sentences import SENTENCES, linear_weights, rand_weights
from gptviz.model import MultiHeadAttention

HELLO, JOURNEY = (torch.tensor(sentence.vectors) for sentence in SENTENCES.values())

# The book's chapter 3, "Your journey starts with one step", as it prints it.
SCORES = [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865]
WEIGHTS = [
    [0.2098, 0.2006, 0.1981, 0.1242, 0.1220, 0.1452], [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581],
    [0.1390, 0.2369, 0.2326, 0.1242, 0.1108, 0.1565], [0.1435, 0.2074, 0.2046, 0.1462, 0.1263, 0.1720],
    [0.1526, 0.1958, 0.1975, 0.1367, 0.1879, 0.1295], [0.1385, 0.2184, 0.2128, 0.1420, 0.0988, 0.1896],
]  # fmt: skip
CONTEXT = [
    [0.4421, 0.5931, 0.5790], [0.4419, 0.6515, 0.5683], [0.4431, 0.6496, 0.5671],
    [0.4304, 0.6298, 0.5510], [0.4671, 0.5910, 0.5266], [0.4177, 0.6503, 0.5645],
]  # fmt: skip
RAND_123 = [
    [0.2996, 0.8053], [0.3061, 0.8210], [0.3058, 0.8203],
    [0.2948, 0.7939], [0.2927, 0.7891], [0.2990, 0.8040],
]  # fmt: skip
LINEAR_789 = [
    [-0.0739, 0.0713], [-0.0748, 0.0703], [-0.0749, 0.0702],
    [-0.0760, 0.0685], [-0.0763, 0.0679], [-0.0754, 0.0693],
]  # fmt: skip
MASKED_789 = [
    [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000], [0.5517, 0.4483, 0.0000, 0.0000, 0.0000, 0.0000],
    [0.3800, 0.3097, 0.3103, 0.0000, 0.0000, 0.0000], [0.2758, 0.2460, 0.2462, 0.2319, 0.0000, 0.0000],
    [0.2175, 0.1983, 0.1984, 0.1888, 0.1971, 0.0000], [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
]  # fmt: skip
TWO_HEADS_123 = [
    [-0.4519, 0.2216, 0.4772, 0.1063], [-0.5874, 0.0058, 0.5891, 0.3257],
    [-0.6300, -0.0632, 0.6202, 0.3860], [-0.5675, -0.0843, 0.5478, 0.3589],
    [-0.5526, -0.0981, 0.5321, 0.3428], [-0.5299, -0.1081, 0.5077, 0.3493],
]  # fmt: skip


def printed(found, expected):
    """Equal to the last of the four printed digits."""
    assert torch.equal(
        found.mul(1e4).round(), torch.tensor(expected, dtype=found.dtype).mul(1e4).round()
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_weights_as_the_book_prints_it(dtype):
    found = lesson.simple_attention(JOURNEY.to(dtype))
    printed(found.scores[1], SCORES)
    printed(found.weights, WEIGHTS)
    printed(found.context, CONTEXT)


def test_hello_shiny_sun():
    """The document works it out with rounded weights: its digits are ours to half a thousandth."""
    found = lesson.simple_attention(HELLO.tolist())
    by_hand = torch.tensor([0.3992, 0.3858, 0.8610])
    assert (found.context[1] - by_hand).abs().max() < 5e-4
    # the same in exact decimals, by another way
    dots = [round(a * 0.53 + b * 0.34 + c * 0.98, 4) for a, b, c in HELLO.tolist()]
    printed(found.scores[1], dots)
    shares = [2.718281828459045**dot for dot in dots]
    printed(found.weights[1], [round(share / sum(shares), 4) for share in shares])
    row = lesson.worked_row(found, 1)
    parts = torch.tensor(
        [[0.0779, 0.0504, 0.1237], [0.2156, 0.1382, 0.3983], [0.1057, 0.1972, 0.3390]]
    )
    assert (row.parts - parts).abs().max() < 5e-4
    torch.testing.assert_close(row.context, found.context[1].double(), atol=1e-6, rtol=0)


def test_with_weights_as_the_book_prints_it():
    printed(lesson.self_attention(JOURNEY, rand_weights(123)[0]).context, RAND_123)
    printed(lesson.self_attention(JOURNEY, linear_weights(789)[0]).context, LINEAR_789)
    printed(lesson.self_attention(JOURNEY, linear_weights(789)[0], causal=True).weights, MASKED_789)
    row = lesson.worked_row(lesson.self_attention(JOURNEY, rand_weights(123)[0]), 1)
    printed(row.scores, [1.2705, 1.8524, 1.8111, 1.0795, 0.5577, 1.5440])
    printed(row.softmax.weights, [0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820])


def test_two_heads_as_the_book_prints_them():
    found = lesson.multi_head_attention(JOURNEY, linear_weights(123, heads=2))
    printed(found.context, TWO_HEADS_123)
    # the first head is CausalAttention
    alone = lesson.self_attention(JOURNEY, linear_weights(123)[0], causal=True)
    assert torch.equal(found.heads[0].context, alone.context)


def test_the_weights_are_those_of_torch_and_no_other_random_number_changes():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    (linear,) = linear_weights(789)
    (rand,) = rand_weights(123)
    assert torch.equal(torch.rand(3), expected)
    for own, build, seed in (
        (linear, lambda: torch.nn.Linear(3, 2, bias=False).weight.T, 789),
        (rand, lambda: torch.rand(3, 2), 123),
    ):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for matrix in (own.query, own.key, own.value):
                assert torch.equal(matrix, build())


def test_the_model_s_own_class_computes_the_same():
    """MultiHeadAttention of gptviz.model, its weights cut into heads, before out_proj."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        module = MultiHeadAttention(3, 4, 6, 0.0, num_heads=2)
        torch.nn.init.eye_(module.out_proj.weight)
        torch.nn.init.zeros_(module.out_proj.bias)
    with torch.no_grad():
        expected = module(JOURNEY[None])[0]
        cut = [
            linear.weight.T.split(2, dim=1)
            for linear in (module.W_query, module.W_key, module.W_value)
        ]
    heads = [lesson.HeadWeights(*parts) for parts in zip(*cut, strict=True)]
    torch.testing.assert_close(lesson.multi_head_attention(JOURNEY, heads).context, expected)


numbers = st.floats(-3, 3, width=32)


@settings(max_examples=30)
@given(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=6), st.booleans())
def test_rows_sum_to_one_and_a_mask_hides_what_comes_later(rows, causal):
    found = lesson.simple_attention(rows, causal)
    assert torch.allclose(found.weights.sum(dim=1), torch.ones(len(rows)), atol=1e-5)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    x = torch.tensor(rows)[None]
    expected = sdpa(x, x, x, is_causal=causal, scale=1.0)[0]
    torch.testing.assert_close(found.context, expected, atol=1e-5, rtol=1e-4)
    if causal:
        assert torch.equal(found.weights.triu(1), torch.zeros_like(found.weights))
        shorter = lesson.simple_attention(rows[:1], causal)
        torch.testing.assert_close(found.context[:1], shorter.context)


@pytest.mark.parametrize(
    ("says", "function", "given"),
    [
        (r"shape \(3,\)", lesson.simple_attention, ([1.0, 2.0, 3.0],)),
        ("not a finite number", lesson.simple_attention, ([[float("nan"), 1.0]],)),
        ("must have 2 rows", lesson.self_attention, ([[1.0, 2.0]], linear_weights(1)[0])),
        ("there is no head", lesson.multi_head_attention, ([[1.0]], [])),
        ("there is no query 3", lesson.worked_row, (lesson.simple_attention(HELLO), 3)),
    ],
)
def test_what_is_no_matrix_of_numbers_is_a_sentence(says, function, given):
    with pytest.raises(ValueError, match=says):
        function(*given)


def test_softmax_in_two_steps_as_the_slides_print_it():
    scores = torch.tensor(lesson.SLIDE_SCORES)
    printed(scores.softmax(0), lesson.SLIDE_WEIGHTS)
    row = softmax_row(scores)
    printed(row.weights, lesson.SLIDE_WEIGHTS)
    exponentials = row.exp * torch.tensor(row.largest).exp()
    assert (exponentials - torch.tensor(lesson.SLIDE_EXPONENTIALS)).abs().max() < 3e-4


# ---- the averaging trick ----


def test_the_notebook_s_averages():
    x = torch.tensor(lesson.NOTEBOOK, dtype=torch.float64)
    found = lesson.averages_by_loop(x)
    # what it prints of x is rounded, and so are its means: half a digit each
    assert (found - torch.tensor(lesson.NOTEBOOK_AVERAGES)).abs().max() <= 1.001e-4
    weights = lesson.averages_by_matrix(x).weights
    printed(weights[2], [0.3333, 0.3333, 0.3333, 0, 0, 0, 0, 0])
    printed(weights[6], [0.1429] * 7 + [0])


@settings(max_examples=30)
@given(st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=1, max_size=8))
def test_the_three_versions_agree(rows):
    x = torch.tensor(rows, dtype=torch.float64)
    loop = lesson.averages_by_loop(x)
    matrix = lesson.averages_by_matrix(x)
    softmax = lesson.averages_by_softmax(x)
    torch.testing.assert_close(matrix.context, loop)
    torch.testing.assert_close(softmax.context, loop)
    torch.testing.assert_close(softmax.weights, matrix.weights)
    expected = x.cumsum(dim=0) / torch.arange(1, len(x) + 1)[:, None]
    torch.testing.assert_close(loop, expected)
