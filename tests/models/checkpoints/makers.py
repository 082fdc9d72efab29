"""Small random GPT-2s of transformers, and the same weights written in every dialect.

The names and transposes here are the test's own: the book's `load_weights_into_gpt`, either way round, and
nanoGPT's `from_pretrained` the other way round, not the reader's tables.
"""

import json
import pickle

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, GPTNeoConfig, GPTNeoForCausalLM

SIZES = {"vocab_size": 61, "n_positions": 24, "n_embd": 16, "n_head": 4, "n_layer": 2}
# the same in the words of our own config.json
OUR_NAMES = dict(
    zip(SIZES, ("vocab_size", "context_length", "emb_dim", "n_heads", "n_layers"), strict=True)
)
OUR_SIZES = {OUR_NAMES[name]: size for name, size in SIZES.items()} | {"qkv_bias": True}


def hf_model(seed=0, **changes):
    """A random GPT-2, large enough in its weights that attention is far from uniform."""
    config = GPT2Config(
        **(SIZES | changes), attn_implementation="eager", bos_token_id=0, eos_token_id=0
    )
    return randomly(GPT2LMHeadModel(config), seed)


def neo_model(seed=0, **changes):
    """A random GPT-Neo: every other block looks back over four tokens, or over `window_size`."""
    sizes = {"vocab_size": 61, "max_position_embeddings": 24, "hidden_size": 16}
    sizes |= {"num_heads": 4, "num_layers": 2, "attention_types": [[["global", "local"], 1]]}
    sizes |= {"window_size": 12, "bos_token_id": 0, "eos_token_id": 0} | changes
    config = GPTNeoConfig(**sizes, attn_implementation="eager")
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
    state = {
        name.removeprefix("transformer."): tensor for name, tensor in model.state_dict().items()
    }
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
    (folder / "pytorch_model.bin.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": homes})
    )
    return folder


LINEAR = {"att.out_proj": "attn.c_proj", "ff.layers.0": "mlp.c_fc", "ff.layers.2": "mlp.c_proj"}


def book_places(model):
    """The tensors of the book's GPTModel where they lie in transformers': to be read, and to be written."""
    theirs = model.state_dict()
    places = {
        "tok_emb.weight": theirs["transformer.wte.weight"],
        "pos_emb.weight": theirs["transformer.wpe.weight"],
        "final_norm.scale": theirs["transformer.ln_f.weight"],
        "final_norm.shift": theirs["transformer.ln_f.bias"],
        "out_head.weight": theirs["lm_head.weight"],
    }
    for b in range(model.config.n_layer):
        ours = f"trf_blocks.{b}."
        at = f"transformer.h.{b}."
        for kind in ("weight", "bias"):  # transformers' Conv1D has its weight transposed
            parts = theirs[f"{at}attn.c_attn.{kind}"].chunk(3, dim=-1)
            for name, part in zip(("query", "key", "value"), parts, strict=True):
                places[f"{ours}att.W_{name}.{kind}"] = part.t()
            for our, their in LINEAR.items():
                places[f"{ours}{our}.{kind}"] = theirs[f"{at}{their}.{kind}"].t()
        for our, their in (("norm1", "ln_1"), ("norm2", "ln_2")):
            places[f"{ours}{our}.scale"] = theirs[f"{at}{their}.weight"]
            places[f"{ours}{our}.shift"] = theirs[f"{at}{their}.bias"]
    return places


def book_state(model, masks=True, tied=False):
    """What the book's GPTModel would save after `load_weights_into_gpt`."""
    state = {name: place.contiguous() for name, place in book_places(model).items()}
    head = state.pop("out_head.weight")
    if not tied:
        state["out_head.weight"] = head.clone()
    length = model.config.n_positions
    for b in range(model.config.n_layer if masks else 0):
        state[f"trf_blocks.{b}.att.mask"] = torch.triu(torch.ones(length, length), diagonal=1)
    return state


def in_transformers(model, config):
    """The weights of a GPTModel with this GPTConfig in transformers' own GPT-2."""
    ours = model.state_dict()
    sizes = {name: config[own] for name, own in OUR_NAMES.items()}
    sizes["activation_function"] = "gelu" if config.activation == "gelu" else "gelu_new"
    theirs = hf_model(layer_norm_epsilon=config.norm_eps, tie_word_embeddings=False, **sizes)
    for name, place in book_places(theirs).items():
        place.copy_(ours.get(name, torch.zeros(())))  # a bias that it does not have
    return theirs


def without_bias(model, of="bias"):
    for name, parameter in model.named_parameters():
        if name.endswith(of):
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
    sizes = {name: getattr(config, name) for name in ("n_layer", "n_head", "n_embd", "vocab_size")}
    return {
        "model": state,
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 1e-3}]},
        "model_args": sizes | {"block_size": config.n_positions, "bias": bias, "dropout": 0.0},
        "iter_num": 2000,
        "best_val_loss": torch.tensor(1.47),
        "config": {"dataset": "shakespeare_char", "compile": compiled},
    }


def build_nanogpt_checkpoint(model, config=None):
    """What build-nanogpt's train_gpt2.py saves; its config is an object of a class of the script's own."""
    sizes = {
        name: getattr(model.config, name) for name in ("n_layer", "n_head", "n_embd", "vocab_size")
    }
    sizes["block_size"] = model.config.n_positions
    state = nanogpt_checkpoint(model)["model"]
    return {
        "model": state,
        "config": sizes if config is None else config(**sizes),
        "step": 5,
        "val_loss": 3.1,
    }


def character_meta(count):
    characters = ["\n", " ", "é", "中", "🙂", *map(chr, range(33, 33 + count - 5))]
    return {
        "vocab_size": count,
        "itos": dict(enumerate(characters)),
        "stoi": {character: id for id, character in enumerate(characters)},
    }


def save_book(path, **sizes):
    """The book's file of a random model, and the model in transformers."""
    model = hf_model(**sizes)
    torch.save(book_state(model), path)
    return model


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
    save_file(
        {name: tensor.contiguous() for name, tensor in state.items()}, folder / "model.safetensors"
    )
    return folder
