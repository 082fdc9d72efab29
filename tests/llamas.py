"""Small random Llamas, Qwen2s and Qwen3s of transformers, and their weights in our class.

Which tensor goes where is the test's own: the book's `load_weights_into_llama` and `load_weights_into_qwen`,
not the reader's table.
"""

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from gptviz.llama import LlamaModel

CLASSES = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}
# SmolLM2-135M's 9 heads in 3 groups, of 8 numbers instead of 64
SIZES = {"vocab_size": 97, "hidden_size": 72, "intermediate_size": 192, "num_hidden_layers": 3}
SIZES |= {"num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 64}
SIZES |= {"bos_token_id": 0, "eos_token_id": 0}
SMOLLM2 = {"vocab_size": 500, "hidden_size": 576, "intermediate_size": 1536}
SMOLLM2 |= {"num_hidden_layers": 2, "max_position_embeddings": 8192}
SMOLLM2 |= {"rope_parameters": {"rope_type": "default", "rope_theta": 100000.0}}
SMOLLM2 |= {"tie_word_embeddings": True, "rms_norm_eps": 1e-5}
# within 64 tokens the first pairs turn often, the last ones less than once
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0}
LLAMA3 |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 32}
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 53, 58, 60, 0, 88, 13, 7, 7, 21, 96]


def random_model(family="llama", seed=0, **changes):
    """A model of transformers whose attention is far from uniform, and whose norms are not all 1."""
    kind, model_class = CLASSES[family]
    head = {"head_dim": 16} if family == "qwen3" else {}
    config = kind(**(SIZES | head | changes), attn_implementation="eager")
    model = model_class(config)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.normal_(1, 0.3, generator=draw)
            elif "embed_tokens" in name:
                parameter.normal_(0, 1.2 / config.hidden_size**0.5, generator=draw)
            elif name.endswith(("q_proj.weight", "k_proj.weight")):
                parameter.normal_(0, 1.5 / config.hidden_size**0.5, generator=draw)
            else:
                parameter.normal_(0, 0.5 / parameter.shape[-1] ** 0.5, generator=draw)
    return model.eval()


def book_config(model):
    """The book's dict for a model of transformers."""
    config = model.config
    rope = config.rope_parameters
    cfg = {
        "vocab_size": config.vocab_size,
        "context_length": config.max_position_embeddings,
        "emb_dim": config.hidden_size,
        "n_heads": config.num_attention_heads,
        "n_layers": config.num_hidden_layers,
        "hidden_dim": config.intermediate_size,
        "n_kv_groups": config.num_key_value_heads,
        "head_dim": getattr(config, "head_dim", None),
        "rope_base": rope["rope_theta"],
        "qk_norm": config.model_type == "qwen3",
        "qkv_bias": config.model_type == "qwen2",
        "tie_embeddings": config.tie_word_embeddings,
        "norm_eps": config.rms_norm_eps,
    }
    if rope["rope_type"] == "llama3":
        cfg["rope_freq"] = {
            "factor": rope["factor"],
            "low_freq_factor": rope["low_freq_factor"],
            "high_freq_factor": rope["high_freq_factor"],
            "original_context_length": rope["original_max_position_embeddings"],
        }
    return cfg


def ours_of(model):
    """Our LlamaModel with the weights of transformers' model."""
    ours = LlamaModel(book_config(model)).eval()
    theirs = model.model
    pairs = [(ours.tok_emb.weight, theirs.embed_tokens.weight)]
    for block, layer in zip(ours.trf_blocks, theirs.layers, strict=True):
        att = layer.self_attn
        pairs += [
            (block.att.W_query.weight, att.q_proj.weight),
            (block.att.W_key.weight, att.k_proj.weight),
            (block.att.W_value.weight, att.v_proj.weight),
            (block.att.out_proj.weight, att.o_proj.weight),
            (block.norm1.scale, layer.input_layernorm.weight),
            (block.norm2.scale, layer.post_attention_layernorm.weight),
            (block.ff.fc1.weight, layer.mlp.gate_proj.weight),
            (block.ff.fc2.weight, layer.mlp.up_proj.weight),
            (block.ff.fc3.weight, layer.mlp.down_proj.weight),
        ]
        if block.att.q_norm is not None:
            pairs += [(block.att.q_norm.scale, att.q_norm.weight)]
            pairs += [(block.att.k_norm.scale, att.k_norm.weight)]
        if block.att.W_query.bias is not None:
            pairs += [(block.att.W_query.bias, att.q_proj.bias)]
            pairs += [(block.att.W_key.bias, att.k_proj.bias)]
            pairs += [(block.att.W_value.bias, att.v_proj.bias)]
    pairs += [(ours.final_norm.scale, theirs.norm.weight)]
    pairs += [(ours.out_head.weight, model.lm_head.weight)]
    written = {id(mine) for mine, _ in pairs}
    assert written == {id(parameter) for parameter in ours.parameters()}
    with torch.no_grad():
        for mine, weights in pairs:
            assert mine.shape == weights.shape
            mine.copy_(weights)
    return ours


def sites_of(model, ids):
    """What the modules of our model give out or take in for one text, by site and block, without the batch."""
    found = {}

    def keep(name, value):
        found[name] = value.detach()[0]

    def output(module, name):
        handles.append(module.register_forward_hook(lambda m, i, out: keep(name, out)))

    def taken(module, name):
        handles.append(module.register_forward_pre_hook(lambda m, given: keep(name, given[0])))

    handles = []
    for b, block in enumerate(model.trf_blocks):
        att = block.att
        taken(block.norm1, ("resid_pre", b))
        output(att.W_query, ("q", b))
        output(att.W_key, ("k", b))
        output(att.W_value, ("v", b))
        output(att.rotated_queries, ("q_rot", b))
        output(att.rotated_keys, ("k_rot", b))
        output(att.attn_weights, ("attn", b))
        taken(att.out_proj, ("z", b))
        output(att, ("attn_out", b))
        taken(block.norm2, ("resid_mid", b))
        output(block.ff.fc1, ("mlp_gate", b))
        output(block.ff.fc2, ("mlp_up", b))
        taken(block.ff.fc3, ("mlp_act", b))
        output(block.ff, ("mlp_out", b))
        output(block, ("resid_post", b))
    output(model.final_norm, ("final", None))
    try:
        with torch.no_grad():
            found["logits"] = model(torch.tensor([ids]))[0]
    finally:
        for handle in handles:
            handle.remove()
    return found
