"""The sum against torch's own count, transformers' GPT-2, and the numbers that the book and OpenAI print."""

import random
import re
import threading
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, GPTNeoConfig, GPTNeoForCausalLM

from gptviz.analysis import anatomy as module_
from gptviz.analysis.anatomy import anatomy, part_table, sum_lines, tensor_table
from gptviz.engine.config import GPTConfig
from gptviz.model import GPT_CONFIG_124M, GPTModel
from gptviz.models.checkpoints.hub import HUB_MODELS

BOOK = GPTConfig.from_dict(GPT_CONFIG_124M)

# what OpenAI's and Hugging Face's model cards and `model.num_parameters()` say
KNOWN = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "distilgpt2": 81_912_576,
}


@st.composite
def configs(draw):
    heads = draw(st.integers(1, 4))
    flags = {
        name: draw(st.booleans())
        for name in ("qkv_bias", "tie_embeddings", "norm_bias", "linear_bias")
    }
    vocabulary, context, width, layers = (draw(st.integers(1, most)) for most in (70, 30, 6, 4))
    return GPTConfig(vocabulary, context, heads * width, heads, layers, **flags)


def evaluated(formula, values):
    """The value of "3 × (4 emb_dim × emb_dim + emb_dim)", as Python works it out."""
    assert re.fullmatch(r"[\d, a-z_×+()]*", formula)
    python = re.sub(r"(\d) ([a-z])", r"\1 * \2", formula.replace(",", "")).replace("×", "*")
    return eval(python, {"__builtins__": {}}, values)


@settings(max_examples=60, deadline=None)
@given(configs())
def test_the_tensors_are_those_of_a_model_that_is_really_there(config):
    model = GPTModel(config)
    found = anatomy(config)
    assert found.parameters == sum(p.numel() for p in model.parameters())
    state = model.state_dict()
    assert [t.name for t in found.tensors] == list(state)
    assert [t.shape for t in found.tensors] == [tuple(tensor.shape) for tensor in state.values()]
    pointers = {}
    for tensor in found.tensors:
        first = pointers.setdefault(state[tensor.name].data_ptr(), tensor.name)
        assert tensor.shared_with == (None if first == tensor.name else first)


def assert_each_is_what_its_formula_says(lines, config):
    values = {name: config[name] for name in config if type(config[name]) is int}
    for line in lines:
        if line.formula.startswith("tied"):
            assert line.parameters == 0 and config.tie_embeddings
        elif not line.is_sum:
            assert evaluated(line.formula, values) == line.parameters
        for side in line.worked.split(" = "):
            assert not side or evaluated(side, {}) == line.parameters


@settings(max_examples=60, deadline=None)
@given(configs())
def test_every_line_of_the_sum_is_what_its_formula_says(config):
    lines = sum_lines(anatomy(config))
    assert_each_is_what_its_formula_says(lines, config)
    assert lines[-1].parameters == config.parameters and lines[-1].level == 0


@settings(max_examples=60, deadline=None)
@given(configs())
def test_the_parts_and_the_tensors_add_up(config):
    for table in (part_table(config), tensor_table(config)):
        assert table["parameters"].sum() == config.parameters
        assert table["share"].sum() == pytest.approx(1)
        assert (table["float32_bytes"] == 4 * table["parameters"]).all()
        assert (table["bfloat16_bytes"] == 2 * table["parameters"]).all()


def test_the_sum_is_worked_out_as_the_seeds_do():
    lines = {line.label: line for line in sum_lines(anatomy(BOOK))}
    printed = {
        "tok_emb": 38_597_376, "pos_emb": 786_432, "embeddings": 39_383_808,
        "W_query, W_key, W_value": 1_769_472, "out_proj": 590_592, "attention": 2_360_064,
        "ff.layers.0": 2_362_368, "ff.layers.2": 2_360_064, "feed-forward": 4_722_432, "norm1, norm2": 3_072,
        "one block": 7_085_568, "all blocks": 85_026_816, "final_norm": 1_536, "out_head": 38_597_376,
        "the whole model": 163_009_536,
    }  # fmt: skip
    assert {label: line.parameters for label, line in lines.items()} == printed
    assert lines["out_proj"].formula == "emb_dim × emb_dim + emb_dim"
    assert lines["out_proj"].worked == "768 × 768 + 768 = 589,824 + 768"
    assert lines["ff.layers.0"].worked == "3,072 × 768 + 3,072 = 2,359,296 + 3,072"
    assert lines["all blocks"].worked == "12 × 7,085,568"
    assert lines["one block"].worked == "2,360,064 + 4,722,432 + 3,072"
    with_bias = {line.label: line for line in sum_lines(anatomy(replace(BOOK, qkv_bias=True)))}
    assert with_bias["W_query, W_key, W_value"].formula == "3 × (emb_dim × emb_dim + emb_dim)"


@pytest.mark.parametrize("name", KNOWN)
def test_openais_models(name):
    config = HUB_MODELS[name].config
    assert anatomy(config).parameters == KNOWN[name]
    sizes = {"vocab_size": config.vocab_size, "n_positions": config.context_length}
    sizes |= {"n_embd": config.emb_dim, "n_head": config.n_heads, "n_layer": config.n_layers}
    with torch.device("meta"):
        theirs = GPT2LMHeadModel(GPT2Config(**sizes))
    assert theirs.num_parameters() == KNOWN[name]


@pytest.mark.parametrize("name", [name for name in HUB_MODELS if name.startswith("tiny")])
def test_tiny_stories(name):
    """The published sizes, but for the 1,792 positions that are not read."""
    ours = HUB_MODELS[name]
    layers = HUB_MODELS[name].config.n_layers
    sizes = {
        "hidden_size": ours.config.emb_dim,
        "num_heads": ours.config.n_heads,
        "num_layers": layers,
    }
    alternating = [[["global", "local"], layers // 2]]
    with torch.device("meta"):
        theirs = GPTNeoForCausalLM(GPTNeoConfig(attention_types=alternating, **sizes))
    assert anatomy(ours.config).parameters == theirs.num_parameters() - 1792 * ours.config.emb_dim
    masks = layers * 2048**2
    assert ours.download_bytes == 4 * theirs.num_parameters() + masks


def test_nothing_is_allocated():
    """A trillion parameters are 4 TB: they would not fit."""
    found = anatomy(GPTConfig(50257, 999_999, 25_600, 200, 128))
    assert found.parameters > 10**12


def test_other_threads_still_get_memory():
    """The meta device is this thread's alone: a model that somebody else builds meanwhile has numbers."""
    stop = threading.Event()
    devices = set()

    def build_on():
        while not stop.is_set():
            devices.add(torch.zeros(2).device.type)

    other = threading.Thread(target=build_on)
    other.start()
    try:
        for _ in range(5):
            size = random.randrange(1, 10**6)  # not one that an earlier run has cached
            anatomy.__wrapped__(GPTConfig(size, 8, 8, 2, 3))
    finally:
        stop.set()
        other.join()
    assert devices == {"cpu"}


@pytest.mark.parametrize(
    ("name", "module", "says"),
    [
        ("extra", torch.nn.Linear(2, 2), "'extra.weight'"),
        ("pos_emb", torch.nn.Embedding(1025, 768), r"pos_emb.weight has the shape \(1025, 768\)"),
    ],
)
def test_a_tensor_or_a_shape_that_is_not_known_is_named(name, module, says, monkeypatch):
    blank = module_.blank_of

    def another(config):
        model = blank(config)
        setattr(model, name, module)
        return model

    monkeypatch.setattr(module_, "blank_of", another)
    with pytest.raises(ValueError, match=says):
        anatomy.__wrapped__(BOOK)


def test_the_tables_say_where_a_tensor_is():
    tied = replace(BOOK, tie_embeddings=True)
    table = tensor_table(tied).set_index("tensor")
    row = table.loc["trf_blocks.3.ff.layers.0.weight"]
    said = "block 3 · feed-forward", "3072 × 768", "4 emb_dim × emb_dim"
    assert tuple(row[["part", "shape", "formula"]]) == said
    head = table.loc["out_head.weight"]
    assert (head["parameters"], head["shared_with"]) == (0, "tok_emb.weight")
    parts = part_table(tied).set_index("part")
    assert parts["share"]["token embedding"] == pytest.approx(38_597_376 / 124_412_160)


# ---- what the notebook prints ----


class Head(nn.Module):
    """As "Let's build GPT" has it; so are the others here, as far as they have parameters."""

    def __init__(self, head_size, emb_dim):
        super().__init__()
        self.key = nn.Linear(emb_dim, head_size, bias=False)
        self.query = nn.Linear(emb_dim, head_size, bias=False)
        self.value = nn.Linear(emb_dim, head_size, bias=False)


class Attention(nn.Module):
    def __init__(self, emb_dim, num_heads):
        super().__init__()
        self.heads = nn.ModuleList([Head(emb_dim // num_heads, emb_dim) for _ in range(num_heads)])
        self.proj = nn.Linear(emb_dim, emb_dim)


class Block(nn.Module):
    def __init__(self, emb_dim, num_heads):
        super().__init__()
        self.sa_heads = Attention(emb_dim, num_heads)
        self.net = nn.Sequential(
            nn.Linear(emb_dim, 4 * emb_dim), nn.ReLU(), nn.Linear(4 * emb_dim, emb_dim)
        )
        self.ln1 = nn.LayerNorm(emb_dim)
        self.ln2 = nn.LayerNorm(emb_dim)


class GPT(nn.Module):
    def __init__(self, num_layers, num_heads, emb_dim, ctx_len, vocab_size):
        super().__init__()
        self.tok_emb_table = nn.Embedding(vocab_size, emb_dim)
        self.pos_emb_table = nn.Embedding(ctx_len, emb_dim)
        self.blocks = nn.Sequential(*[Block(emb_dim, num_heads) for _ in range(num_layers)])
        self.ln_final = nn.LayerNorm(emb_dim)
        self.lm_head = nn.Linear(emb_dim, vocab_size)


def test_the_notebooks_count_and_what_it_has_more():
    model = GPT(num_layers=3, num_heads=8, emb_dim=384, ctx_len=256, vocab_size=65)
    printed = sum(p.numel() for p in model.parameters())
    assert printed == module_.NOTEBOOK_PRINTS == 5_468_993
    assert module_.parameters_with_head_bias(module_.NOTEBOOK) == printed
    assert anatomy(module_.NOTEBOOK).parameters == 5_468_928 == printed - model.lm_head.bias.numel()


@given(configs())
def test_the_memory_of_the_scores_is_that_of_the_scores(config):
    table = module_.score_memory(config).set_index("tokens")
    assert table.index[-1] == config.context_length and table.index.is_unique
    for tokens in table.index[:3]:
        scores = torch.zeros(config.n_layers, config.n_heads, tokens, tokens)
        assert table.loc[tokens, "all blocks"] == scores.nbytes
        assert table.loc[tokens, "one block"] == scores[0].nbytes
        assert table.loc[tokens, "one head"] == scores[0, 0].nbytes
