"""Small files that are made to stop whoever reads them: to be read for ever, or to fill the memory.

`HOSTILE[name](folder)` writes one of them into a new folder: a checkpoint with whatever belongs beside it.
"""

import json
import pickle
import zipfile
from functools import partial

import torch

from tests.models.checkpoints import makers

ENDLESS = 60  # levels of tuples of two: 2^60 ways down, for 5 bytes a level


def nested(levels=ENDLESS):
    """The opcodes of a tuple that holds one tuple twice, which holds one tuple twice, and so on."""
    return b")q\x00" + levels * b"h\x00\x86q\x00"


def text(value):
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def dict_of(*items):
    return b"}" + b"".join(key + value + b"s" for key, value in items)


def save_pickle(path, opcodes):
    """A file as `torch.save` writes it, without tensors."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + opcodes + b".")
        archive.writestr("archive/version", "3\n")


def key(folder, levels=ENDLESS):
    save_pickle(folder / "model.pth", dict_of((nested(levels), text("weights"))))


def arguments(folder):
    every = ("n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size")
    held = dict_of(*((text(name), nested()) for name in every))
    save_pickle(folder / "ckpt.pt", dict_of((text("model"), b"}"), (text("model_args"), held)))


def meta(folder, *items):
    torch.save(makers.nanogpt_checkpoint(makers.hf_model()), folder / "ckpt.pt")
    opcodes = dict_of(
        (text("stoi"), dict_of(*(items or [(text("a"), nested())]))), (text("itos"), b"}")
    )
    (folder / "meta.pkl").write_bytes(b"\x80\x02" + opcodes + b".")


def bomb(folder):
    with zipfile.ZipFile(
        folder / "model.pth", "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}, 2))
        with archive.open("archive/data/0", "w", force_zip64=True) as zeros:
            for _ in range(256):
                zeros.write(bytes(2**20))


def wide(folder):
    table = torch.zeros(1).expand(7, 2**33)
    torch.save({"tok_emb.weight": table, "pos_emb.weight": table}, folder / "model.pth")


def one_number(folder):
    """A model of 600 million parameters, all of which are the same number."""
    state = makers.book_state(makers.hf_model(n_layer=1, vocab_size=50257), masks=False)
    shapes = {"tok_emb.weight": (50257, 4096), "out_head.weight": (50257, 4096)}
    for name, tensor in state.items():
        shape = shapes.get(name, tuple({16: 4096, 64: 16384}.get(n, n) for n in tensor.shape))
        state[name] = torch.zeros(1).expand(shape)
    torch.save({"model_state_dict": state}, folder / "model.pth")


def deep(folder):
    one = torch.zeros(1)
    state = {}
    for name, shape in makers.book_state(makers.hf_model(n_layer=1), masks=False).items():
        sizes = (50257, 16) if shape.shape == (61, 16) else shape.shape
        for block in range(3000) if "trf_blocks" in name else [0]:
            state[name.replace("blocks.0", f"blocks.{block}")] = one.expand(sizes)
    torch.save(state, folder / "model.pth")


def tokenizer(folder, **changes):
    """A model of transformers whose tokenizer.json has `changes` in its "model", or other added tokens."""
    makers.save_hf(makers.hf_model(), folder)
    vocab = {chr(33 + id): id for id in range(60)}
    whole = {
        "added_tokens": changes.pop("added_tokens", []),
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "model": {"type": "BPE", "vocab": vocab, "merges": []} | changes,
    }
    (folder / "tokenizer.json").write_text(json.dumps(whole))


def added(content):
    return [{"content": content, "id": 60, "special": True}]


HOSTILE = {
    "a dict's key": key,
    "a name that can be hashed, not printed": partial(key, levels=26),
    "model_args": arguments,
    "meta.pkl, a value": meta,
    "meta.pkl, a key": lambda folder: meta(folder, (nested(), text("a"))),
    "a special token of 5 million characters": partial(
        tokenizer, added_tokens=added("x" * 5_000_000)
    ),
    "an added token of none": partial(tokenizer, added_tokens=added("")),
    "a million merges": partial(tokenizer, merges=["! !"] * 10**6),
    "a zip that unpacks to 256 MB": bomb,
    "a width of 2^33": wide,
    "one number as a large model": one_number,
    "3000 blocks": deep,
}
