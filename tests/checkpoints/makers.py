"""Small random GPT-2s of transformers, and the same weights written in every dialect.

The names and transposes here are the test's own: the book's `load_weights_into_gpt` and nanoGPT's
`from_pretrained` the other way round, not the reader's tables.
"""

import json
import pickle

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, GPTNeoConfig, GPTNeoForCausalLM

SIZES = {"vocab_size": 61, "n_positions": 24, "n_embd": 16, "n_head": 4, "n_layer": 2}
# the same in the words of our own config.json
OUR_SIZES = {"vocab_size": 61, "context_length": 24, "emb_dim": 16, "n_heads": 4, "n_layers": 2}
OUR_SIZES |= {"qkv_bias": True}


def hf_model(seed=0, **changes):
    """A random GPT-2, large enough in its weights that attention is far from uniform."""
    config = GPT2Config(**(SIZES | changes), attn_implementation="eager", bos_token_id=0, eos_token_id=0)
    return randomly(GPT2LMHeadModel(config), seed)


def neo_model(seed=0, **changes):
    """A random GPT-Neo: every other block looks back over four tokens, or over `window_size`."""
    sizes = {
        "vocab_size": 61,
        "max_position_embeddings": 24,
        "hidden_size": 16,
        "num_heads": 4,
        "num_layers": 2,
    }
    sizes |= {"attention_types": [[["global", "local"], 1]], "window_size": 12, "bos_token_id": 0}
    config = GPTNeoConfig(**(sizes | changes), attn_implementation="eager", eos_token_id=0)
    return randomly(GPTNeoForCausalLM(config), seed)


def randomly(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3, generator=generator)
    return model.eval()


def save_hf(model, folder, **options):
    model.save_pretrained(folder, **options)
    return folder


def save_hf_old(model, folder, shards=0, zipped=True):
    """As before safetensors: pytorch_model.bin without the prefix `transformer.`, with the masks."""
    folder.mkdir()
    model.config.save_pretrained(folder)
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | {"architectures": ["GPT2LMHeadModel"]}))
    state = {name.removeprefix("transformer."): tensor for name, tensor in model.state_dict().items()}
    del state["lm_head.weight"]
    length = model.config.n_positions
    for block in range(model.config.n_layer):
        state[f"h.{block}.attn.bias"] = torch.ones(1, 1, length, length).tril()
        state[f"h.{block}.attn.masked_bias"] = torch.tensor(-1e4)
    if not shards:
        torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
        return folder
    homes = {}
    for shard in range(shards):
        name = f"pytorch_model-{shard + 1:05}-of-{shards:05}.bin"
        part = {key: state[key] for key in list(state)[shard::shards]}
        torch.save(part, folder / name)
        homes.update(dict.fromkeys(part, name))
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": homes}))
    return folder


def book_state(model, masks=True, tied=False):
    """What the book's GPTModel would save after `load_weights_into_gpt`."""
    theirs = model.transformer.state_dict()
    state = {
        "tok_emb.weight": theirs["wte.weight"],
        "pos_emb.weight": theirs["wpe.weight"],
        "final_norm.scale": theirs["ln_f.weight"],
        "final_norm.shift": theirs["ln_f.bias"],
    }
    if not tied:
        state["out_head.weight"] = model.lm_head.weight.detach().clone()
    length = model.config.n_positions
    for b in range(model.config.n_layer):
        ours, at = f"trf_blocks.{b}.", f"h.{b}."
        if masks:
            state[ours + "att.mask"] = torch.triu(torch.ones(length, length), diagonal=1)
        weights = theirs[at + "attn.c_attn.weight"].chunk(3, dim=-1)
        biases = theirs[at + "attn.c_attn.bias"].chunk(3, dim=-1)
        for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            state[f"{ours}att.W_{name}.weight"] = weight.T.contiguous()
            state[f"{ours}att.W_{name}.bias"] = bias.contiguous()
        for our, their in (
            ("att.out_proj", "attn.c_proj"),
            ("ff.layers.0", "mlp.c_fc"),
            ("ff.layers.2", "mlp.c_proj"),
        ):
            state[f"{ours}{our}.weight"] = theirs[f"{at}{their}.weight"].T.contiguous()
            state[f"{ours}{our}.bias"] = theirs[f"{at}{their}.bias"]
        for our, their in (("norm1", "ln_1"), ("norm2", "ln_2")):
            state[f"{ours}{our}.scale"] = theirs[f"{at}{their}.weight"]
            state[f"{ours}{our}.shift"] = theirs[f"{at}{their}.bias"]
    return state


def without_qkv_bias(model):
    for block in model.transformer.h:
        block.attn.c_attn.bias.data.zero_()
    return model


def without_bias(model):
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data.zero_()
    return model


def nanogpt_checkpoint(model, bias=True, compiled=False, masks=False):
    """What nanoGPT's train.py would save: `torch.save(checkpoint, 'ckpt.pt')`."""
    state = {}
    turned = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
    for name, tensor in model.state_dict().items():
        if name.endswith("bias") and not bias:
            continue
        state[name] = tensor.T.contiguous() if name.endswith(turned) else tensor
    if masks:  # nanoGPT has them where torch has no flash attention
        for b in range(model.config.n_layer):
            state[f"transformer.h.{b}.attn.bias"] = torch.ones(1, 1, 24, 24).tril()
    if compiled:
        state = {"_orig_mod." + name: tensor for name, tensor in state.items()}
    config = model.config
    return {
        "model": state,
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 1e-3}]},
        "model_args": {
            "n_layer": config.n_layer,
            "n_head": config.n_head,
            "n_embd": config.n_embd,
            "block_size": config.n_positions,
            "bias": bias,
            "vocab_size": config.vocab_size,
            "dropout": 0.0,
        },
        "iter_num": 2000,
        "best_val_loss": torch.tensor(1.47),
        "config": {"dataset": "shakespeare_char", "compile": compiled},
    }


def character_meta(count):
    characters = ["\n", " ", "é", "中", "🙂", *map(chr, range(33, 33 + count - 5))]
    return {
        "vocab_size": count,
        "itos": dict(enumerate(characters)),
        "stoi": {character: id for id, character in enumerate(characters)},
    }


def save_meta(path, meta):
    path.write_bytes(pickle.dumps(meta))
    return path


def save_characters(folder):
    """A nanoGPT of 61 characters, with bias=False: its LayerNorms have no shift."""
    torch.save(nanogpt_checkpoint(hf_model(), bias=False), folder / "ckpt.pt")
    save_meta(folder / "meta.pkl", character_meta(61))
    return folder


def save_ours(folder, config, state):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, folder / "model.safetensors")
    return folder
