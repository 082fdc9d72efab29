"""The model is the book's: its printed numbers and parameter counts.

That transformers' GPT-2 gives the same with the same weights: tests/models/checkpoints/test_readers.py.
"""

from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gptviz.engine import forward
from gptviz.lessons.sentences import SENTENCES
from gptviz.model import GELU, GPT_CONFIG_124M, GPTModel, LayerNorm, MultiHeadAttention
from gptviz.training.loop import make_loss

# the book's chapter 3
_, INPUTS = (torch.tensor(sentence.vectors) for sentence in SENTENCES.values())
SMALL = {"vocab_size": 97, "context_length": 24, "emb_dim": 32, "n_heads": 4, "n_layers": 3}
SMALL |= {"drop_rate": 0.0, "qkv_bias": True}


def test_attention_gives_the_numbers_of_chapter_3():
    torch.manual_seed(123)
    batch = torch.stack((INPUTS, INPUTS), dim=0)
    attention = MultiHeadAttention(d_in=3, d_out=2, context_length=6, dropout=0.0, num_heads=2)
    printed = torch.tensor(
        [[0.3190, 0.4858], [0.2943, 0.3897], [0.2856, 0.3593],
         [0.2693, 0.3873], [0.2639, 0.3928], [0.2575, 0.4028]]
    )  # fmt: skip
    assert torch.allclose(attention(batch), torch.stack((printed, printed)), atol=5e-5)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, 163_009_536), ({"tie_embeddings": True}, 124_412_160), ({"qkv_bias": True}, 163_037_184)],
)
def test_parameters_are_those_of_the_seeds(changes, expected):
    with torch.device("meta"):
        model = GPTModel(GPT_CONFIG_124M | changes)
    assert sum(p.numel() for p in model.parameters()) == expected


def test_logits_of_the_book():
    # chapter 4 runs the model with dropout on (it never calls eval), after the same seed
    torch.manual_seed(123)
    model = GPTModel(GPT_CONFIG_124M)
    # "Every effort moves you", "Every day holds a"
    batch = torch.tensor([[6109, 3626, 6100, 345], [6109, 1110, 6622, 257]])
    with torch.no_grad():
        out = model(batch)
    assert out.shape == (2, 4, 50257)
    printed = torch.tensor([  # the first three and the last three of each row
        [[0.3613, 0.4222, -0.0711, 0.3483, 0.4661, -0.2838],
         [-0.1792, -0.5660, -0.9485, 0.0477, 0.5181, -0.3168],
         [0.7120, 0.0332, 0.1085, 0.1018, -0.4327, -0.2553],
         [-1.0076, 0.3418, -0.1190, 0.7195, 0.4023, 0.0532]],
        [[-0.2564, 0.0900, 0.0335, 0.2659, 0.4454, -0.6806],
         [0.1230, 0.3653, -0.2074, 0.7705, 0.2710, 0.2246],
         [1.0558, 1.0318, -0.2800, 0.6936, 0.3205, -0.3178],
         [-0.1565, 0.3926, 0.3288, 1.2630, -0.1858, 0.0388]],
    ])  # fmt: skip
    assert torch.allclose(torch.cat((out[..., :3], out[..., -3:]), dim=-1), printed, atol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
def test_fused_kernels_equal_the_formulas_of_the_book(bias):
    torch.manual_seed(0)
    x = torch.randn(3, 5, 48) * 3 + 1
    norm = LayerNorm(48, bias=bias)
    for parameter in norm.parameters():
        torch.nn.init.normal_(parameter)
    assert torch.allclose(norm(x), norm.formula(x), atol=1e-5) and (norm.shift is None) != bias
    assert torch.allclose(GELU()(x), GELU().formula(x), atol=1e-6)


def test_the_mask_is_in_no_checkpoint_and_a_checkpoint_that_has_it_loads():
    model = GPTModel(SMALL)
    state = model.state_dict()
    assert not [name for name in state if "mask" in name]
    with_masks = dict(state)
    for b in range(SMALL["n_layers"]):
        with_masks[f"trf_blocks.{b}.att.mask"] = torch.triu(torch.ones(24, 24), diagonal=1)
    GPTModel(SMALL).load_state_dict(with_masks)  # strict
    assert "trf_blocks.0.att.mask" in with_masks  # the caller's dict is left alone


def test_the_mask_of_any_length_is_a_part_of_the_books():
    attention = MultiHeadAttention(d_in=3, d_out=2, context_length=9, dropout=0.0, num_heads=2)
    book = torch.triu(torch.ones(9, 9), diagonal=1).bool()
    for before in range(9):
        for count in range(1, 10 - before):
            wanted = book[before : before + count, : before + count]
            assert torch.equal(attention.mask(count, before), wanted)
    with pytest.raises(ValueError, match="10 tokens do not fit the context length of 9"):
        attention.mask(4, before=6)


def test_a_long_context_costs_nothing_but_its_rows():
    """No tensor of building, loading, a pass or a step of training is as large as the context squared."""
    config = SMALL | {"context_length": 8192}
    with Largest() as largest:
        model = GPTModel(config)
        model.load_state_dict(GPTModel(config).state_dict())
        model(torch.arange(40).view(2, 20)).sum().backward()
        forward.hidden(model.eval(), torch.arange(20).view(1, 20))
    assert largest.numel == model.pos_emb.weight.numel() < 8192**2


class Largest(TorchDispatchMode):
    """The numbers in the largest tensor that torch made meanwhile."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return made


def test_a_compiled_step_is_one_graph_with_the_gradients_of_the_plain_one(monkeypatch):
    """Without torch's code generator, which takes minutes: what it is given to compile, in one piece."""
    traced = partial(torch.compile, backend="aot_eager", fullgraph=True)
    monkeypatch.setattr(torch, "compile", traced)
    torch.manual_seed(0)
    model = GPTModel(SMALL | {"drop_rate": 0.0})
    ids = torch.randint(0, 97, (2, 17))
    found = []
    for compiled in (False, True):
        model.zero_grad()
        loss = make_loss(model, torch.device("cpu"), compiled, "float32")(ids[:, :-1], ids[:, 1:])
        loss.backward()
        found.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
    for plain, other in zip(*found, strict=True):
        assert torch.allclose(plain, other, atol=1e-5)


def test_dropout_and_training_mode():
    model = GPTModel(SMALL | {"drop_rate": 0.5})
    ids = torch.randint(0, 97, (1, 8))
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        (torch.zeros(1, 25, dtype=torch.long), "25 tokens do not fit the context length of 24"),
        (torch.tensor([[0, 97]]), "ids 0 to 96"),
        (torch.tensor([[-1, 3]]), "from -1 to 3"),
        (torch.zeros(4, dtype=torch.long), r"\(batch, tokens\), got torch.int64 of shape \(4,\)"),
        (torch.zeros(1, 4), "torch.float32"),
        ([[1, 2]], "list"),
    ],
)
def test_wrong_input_is_a_sentence(ids, sentence):
    with pytest.raises(ValueError, match=sentence):
        GPTModel(SMALL)(ids)


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="n_heads"):
        GPTModel(SMALL | {"n_heads": 5})
    with pytest.raises(ValueError, match="activation"):
        GPTModel(SMALL | {"activation": "relu"})
