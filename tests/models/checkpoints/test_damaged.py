"""Checkpoints that are broken, one way at a time: a clear error."""

import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file

import gptviz
from gptviz.models.checkpoints import CheckpointError, recognise
from gptviz.models.checkpoints.assemble import LIMIT, largest_possible
from tests.conftest import random_lm
from tests.models.checkpoints import makers
from tests.models.checkpoints.hostile import HOSTILE


@pytest.fixture
def hf(tmp_path):
    return makers.save_hf(makers.hf_model(), tmp_path / "model")


def change(folder, **changes):
    """Rewrite model.safetensors with tensors replaced, or left out where None."""
    path = folder / "model.safetensors"
    state = {k: v for k, v in (load_file(path) | changes).items() if v is not None}
    save_file(state, path)


def model_at(path, n_heads=None):
    return recognise(path, n_heads).model()


def configured(folder, **changes):
    """Rewrite config.json with other values."""
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | changes))


WEIGHT = "transformer.h.1.mlp.c_fc.weight"
BIAS = "transformer.ln_f.bias"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (WEIGHT, None, r"lacks h\.1\.mlp\.c_fc\.weight \(1 tensors missing, 0 too many, 28"),
        (WEIGHT, torch.ones(64, 16), r"c_fc\.weight has the shape \(64, 16\);.*\(16, 64\)"),
        ("extra", torch.ones(1), r"has extra, which such a model does not have"),
        (BIAS, torch.full((16,), torch.inf), "infinity or NaN in 16 of its 16 places"),
        (
            BIAS,
            torch.tensor([torch.nan] + [0.0] * 14 + [-torch.inf]),
            "infinity or NaN in 2 of its 16 places",
        ),
        (
            BIAS,
            torch.full((16,), 1e300, dtype=torch.float64),
            r"1\.0e\+300, which torch\.float32 does not",
        ),
        (BIAS, torch.arange(16), r"ln_f\.bias holds torch.int64; expected floating-point"),
        # its sum with the head's rows
        (BIAS, torch.full((16,), 3e38), r"ln_f\.bias holds 3\.0e\+38"),
    ],
)
def test_what_is_wrong_with_a_tensor_is_said_by_its_name(hf, name, value, says):
    change(hf, **{name: value})
    with pytest.raises(CheckpointError, match=says):
        model_at(hf)


def test_large_weights_are_numbers(hf):
    change(hf, **{BIAS: torch.full((16,), 1e4)})
    assert model_at(hf).final_norm.shift.max() == 1e4


@pytest.mark.parametrize(
    "name, value",
    [
        ("transformer.wte.weight", 1e25),  # a LayerNorm's variance does
        ("transformer.h.0.attn.c_attn.weight", 1e36),  # the scores do
        ("transformer.h.1.mlp.c_proj.weight", -1e30),
    ],
)
def test_finite_weights_whose_sums_would_not_be_are_refused_by_name(hf, name, value):
    state = load_file(hf / "model.safetensors")
    tensor = state[name].clone()
    tensor.view(-1)[3] = value
    change(hf, **{name: tensor})
    with pytest.raises(CheckpointError, match=rf"{re.escape(name)} holds \d\.\de\+"):
        model_at(hf)


@pytest.mark.parametrize(
    "changes", [{}, {"tie_embeddings": True}, {"norm_bias": False, "linear_bias": False}]
)
@pytest.mark.parametrize("std", [0.02, 1.0, 30.0])
def test_no_number_of_a_pass_is_larger_than_the_bound(changes, std):
    lm = random_lm(**changes)
    generator = torch.Generator().manual_seed(5)
    for parameter in lm.model.parameters():
        torch.nn.init.normal_(parameter, std=std, generator=generator)
    bound = largest_possible(
        lm.config, {n: p.abs().max().item() for n, p in lm.model.named_parameters()}
    )
    seen = []
    hooks = [
        module.register_forward_hook(lambda module, args, out: seen.append(out.abs().max().item()))
        for module in lm.model.modules()
    ]
    lm.model(torch.arange(64)[None] * 7)
    for hook in hooks:
        hook.remove()
    trace = lm.trace([7 * i for i in range(64)])
    scores = [trace["q", b] @ trace["k", b].transpose(1, 2) for b in range(2)]
    assert len(seen) > 30 and max(*seen, *(s.abs().max().item() for s in scores)) <= bound
    squares = [(trace["resid_pre", b].double() ** 2).sum(-1).max().item() for b in range(2)]
    assert max(squares) <= bound


def test_the_bundled_model_is_far_from_the_limit(mini):
    largest = {name: weights.abs().max().item() for name, weights in mini.model.named_parameters()}
    assert largest_possible(mini.config, largest) < LIMIT * 1e-10


def test_a_tied_head_must_be_the_embedding(hf):
    embedding = load_file(hf / "model.safetensors")["transformer.wte.weight"]
    change(hf, **{"lm_head.weight": embedding.clone()})
    assert model_at(hf).out_head.weight.shape == (61, 16)
    change(hf, **{"lm_head.weight": embedding + 1})
    with pytest.raises(
        CheckpointError, match=r"lm_head\.weight .* not the same as transformer\.wte\.weight"
    ):
        model_at(hf)


REFUSED = [
    ({"scale_attn_by_inverse_layer_idx": 2}, '"scale_attn_by_inverse_layer_idx"'),
    ({"reorder_and_upcast_attn": "yes"}, '"reorder_and_upcast_attn"'),
    ({"scale_attn_weights": None}, '"scale_attn_weights"'),
    ({"add_cross_attention": True}, '"add_cross_attention"'),
    ({"architectures": ["LlamaForCausalLM"]}, '"architectures"'),
    ({"model_type": "gpt_neo"}, '"model_type"'),
    ({"n_inner": 32}, '"n_inner"'),
    ({"activation_function": "relu"}, '"activation_function"'),
    ({"quantization_config": {"bits": 4}}, "is a quantised model"),
    ({"pruned_heads": {"0": [1]}}, '"pruned_heads"'),
    ({"tie_word_embeddings": "yes"}, '"tie_word_embeddings"'),
    ({"n_head": 5}, "5 heads"),
    ({"n_layer": "2"}, "n_layers"),
    ({"n_embd": None}, "emb_dim"),
    ({"resid_pdrop": "high"}, "drop_rate"),
    ({"layer_norm_epsilon": "small"}, "norm_eps"),
    ({"layer_norm_epsilon": 1e-60}, "norm_eps is 1e-60, which is 0"),
    ({"n_embd": None, "n_inner": 64}, "emb_dim is None"),  # though another is derived from it
    ({"n_layer": 10**9, "scale_attn_by_inverse_layer_idx": True}, "blocks"),
    *(({"n_layer": depth}, r"blocks|lacks|has transformer\.h\.1") for depth in (1, 3, 10**9)),
    ({"vocab_size": 10**12}, "shape"),  # sizes that no memory holds cost nothing
    ({"n_positions": 10**9}, "context length"),
    ({"n_embd": 10**9, "n_head": 1}, "emb_dim"),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_a_config_that_asks_for_more_is_refused_by_the_keys_name(hf, changes, said):
    configured(hf, **changes)
    with pytest.raises(CheckpointError, match=said):
        model_at(hf)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("attention_types", [[["global", "sparse"], 1]], "known are global and local"),
        ("attention_types", 3, "config"),
        ("window_size", "wide", '"window_size" is'),
        ("window_size", -4, "context_length is -4"),
        ("max_position_embeddings", None, "context_length is None"),
        (
            "intermediate_size",
            32,
            '"intermediate_size" is 32; this model does only 4 x hidden_size, 64',
        ),
        ("model_type", "gpt2", '"model_type" is'),
    ],
)
def test_a_gpt_neos_config_that_asks_for_more(tmp_path, key, value, said):
    folder = makers.save_hf(makers.neo_model(), tmp_path / "neo")
    assert model_at(folder).pos_emb.weight.shape == (12, 16)
    configured(folder, **{key: value})
    with pytest.raises(CheckpointError, match=said):
        model_at(folder)


def test_a_block_of_five_thousand_digits(tmp_path):
    state = makers.book_state(makers.hf_model()) | {f"trf_blocks.{'9' * 5000}.x": torch.ones(1)}
    torch.save(state, tmp_path / "model.pth")
    with pytest.raises(CheckpointError, match=r"lacks trf_blocks\.2"):
        model_at(tmp_path / "model.pth", 4)


def test_one_number_that_is_shown_as_millions_fills_no_memory(tmp_path):
    HOSTILE["one number as a large model"](tmp_path)
    with pytest.raises(CheckpointError, match="bytes, too few for a model of 6"):
        gptviz.load(tmp_path / "model.pth", n_heads=4)


def test_shards_must_agree_with_their_index(tmp_path):
    folder = makers.save_hf_old(makers.hf_model(), tmp_path / "old", shards=2)
    index = folder / "pytorch_model.bin.index.json"
    whole = json.loads(index.read_text())
    for name, file, message in (
        ("wte.weight", "pytorch_model-00002-of-00002.bin", r"lacks wte\.weight, which"),
        ("wte.weight", "missing.bin", r"missing\.bin is not there"),
        ("wte.weight", "../elsewhere.bin", "expected a file beside the index"),
        ("wte.weight", "config.json", "expected a file beside the index"),
        ("wte.weight", 3, "expected a file beside the index"),
    ):
        index.write_text(json.dumps({"weight_map": whole["weight_map"] | {name: file}}))
        with pytest.raises(CheckpointError, match=message):
            model_at(folder)
    del whole["weight_map"]["wpe.weight"]
    index.write_text(json.dumps(whole))
    with pytest.raises(CheckpointError, match=r"has wpe\.weight, which .* does not list"):
        model_at(folder)


def test_what_is_no_checkpoint_says_what_it_looked_for(tmp_path):
    with pytest.raises(CheckpointError, match="no file or folder"):
        recognise(tmp_path / "nothing")
    with pytest.raises(CheckpointError, match=r"no config\.json and no weights"):
        recognise(tmp_path)
    (tmp_path / "model.xyz").write_bytes(b"xyz")
    with pytest.raises(CheckpointError, match=r"known are \.safetensors, \.pth"):
        recognise(tmp_path / "model.xyz")
    torch.save({"linear.weight": torch.ones(2, 2)}, tmp_path / "other.pth")
    with pytest.raises(CheckpointError, match=r"no model known here \(such as linear\.weight\)"):
        recognise(tmp_path / "other.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="holds list, not a state dict"):
        recognise(tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match=r"several files.*list\.pth, other\.pth"):
        recognise(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(CheckpointError, match="expected a JSON object"):
        recognise(tmp_path)


def test_a_model_without_a_tokenizer_asks_for_one(hf):
    with pytest.raises(CheckpointError, match=r"vocabulary of 61 is not GPT-2's.*tokenizer="):
        gptviz.load(hf)
    with pytest.raises(CheckpointError, match="tokenizer has 8,192 tokens, the model 61"):
        gptviz.load(hf, tokenizer="mini")
    with pytest.raises(CheckpointError, match="'gpt3' is no tokenizer"):
        gptviz.load(hf, tokenizer="gpt3")
