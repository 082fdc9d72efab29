"""A hand-out: one HTML file that holds a model, and runs it in any browser that opens it, offline.

`model.js` is the tokenizer and the forward pass, in a worker; `page.js` and the other scripts draw what they
give with the app's own components. Nothing is fetched: `page.html` forbids it to the browser.
"""

import base64
import gzip
import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import tiktoken

from gptviz.analysis.head_roles import most_telling, roles
from gptviz.engine.edits import Given
from gptviz.engine.language_model import LanguageModel
from gptviz.model import GPTModel
from gptviz.teach.guides import Guide
from gptviz.teach.handout.guide import EDITS, PAGES, known, led
from gptviz.text.suggest import did_you_mean
from gptviz.tokenizer import GPT2_PATTERN, typed_specials, well_formed, words_of
from gptviz.tokenizer.added import begins_of, composes, late_of
from gptviz.tokenizer.regex import members
from gptviz.tokenizer.vocabulary import CHARACTERS
from gptviz.ui.components.code import bundle, script

LARGEST = 20_000_000  # bytes of a file: what a phone loads, and a mail takes
COMPONENTS = (
    "prompt",
    "chips",
    "changes",
    "token_cards",
    "merges",
    "heads",
    "matrix",
    "candidates",
)

SCRIPTS = ("tokens.js", "pages.js", "guide.js", "page.js")

_HERE = Path(__file__).parent


def handout(
    lm: LanguageModel,
    text: str,
    edits: Sequence[Given] = (),
    page: str = "attention",
    guide: Guide | None = None,
) -> str:
    """The text of the file: this model, opened on a page with this text and these edits, or led by a guide.

    Raises ValueError for a page, an edit, a tokenizer or a guide that it cannot have, for a model that does not
    fit into `LARGEST` bytes, and for one that `model.js` does not compute.
    """
    if not isinstance(lm.model, GPTModel):
        raise ValueError(
            f"{lm.name} is a {type(lm.model).__name__}, and the program in a hand-out computes a GPTModel only: "
            "hand out a model of GPT-2's kind, such as mini"
        )
    if page not in PAGES:
        raise ValueError(
            f"a hand-out has no page {page!r}{did_you_mean(page, PAGES)}; its pages are {', '.join(PAGES)}"
        )
    edited_lm = lm.edited(*edits)
    if not known(edited_lm):
        all_edits = ", ".join(map(str, edited_lm.edits))
        raise ValueError(
            f"a hand-out cannot make all of {all_edits}: it can only make the values {', '.join(EDITS)}"
        )
    numbers = lm.config.parameters
    if numbers > LARGEST:  # a byte for each is less than weights can be packed into
        raise ValueError(_too_large(lm, f"{numbers / 1e6:,.0f} million numbers"))
    text = well_formed(text)
    start = {"text": text, "edits": [str(edit) for edit in edited_lm.edits], "page": page} | _head(
        lm, text
    )
    if guide is None:
        led_by = None
    else:
        led_by = led(guide, lm, text)
    tensors, weights = _weights(lm)
    data = {"name": lm.name, "config": lm.config.to_dict(), "parameters": numbers, "start": start}
    data |= {
        "guide": led_by,
        "tensors": tensors,
        "tokenizer": _tokenizer(lm.tokenizer),
        "model": _file("model.js"),
    }
    parts = {
        "TITLE": escape(f"{lm.name}: a GPT in one file"),
        "STYLE": _file("page.css"),
        "GIVEN": json.dumps(data).replace("<", r"\u003c"),
        "WEIGHTS": weights,
        "SCRIPT": script("\n".join([bundle(*COMPONENTS), *map(_file, SCRIPTS)])),
    }
    html = re.sub(r"\{\{([A-Z]+)\}\}", lambda match: parts[match[1]], _file("page.html"))
    size = len(html.encode())
    if size > LARGEST:
        raise ValueError(_too_large(lm, f"a file of {size / 1e6:,.1f} MB"))
    return html


def _too_large(lm: LanguageModel, size: str) -> str:
    return (
        f"{lm.name} is too large for a hand-out: it would be {size}, and the file may have at most "
        f"{LARGEST / 1e6:.0f} MB. The bundled model mini fits"
    )


def _head(lm: LanguageModel, text: str) -> dict[str, int]:
    """The head that it is opened on: as in the app, one of the rarest role that the text brings out."""
    ids = lm.encode(text)[: lm.config.context_length]
    head = None
    if ids:
        head = most_telling(roles(lm.plain.trace(ids, keep=("attn",))))
    if head:
        return {"block": head.block, "head": head.head}
    return {"block": 0, "head": 0}


def _file(name: str) -> str:
    return (_HERE / name).read_text("utf-8")


def _weights(lm: LanguageModel) -> tuple[list[tuple[str, int]], str]:
    """The name and size of each tensor, and all their float32 numbers as base64 of gzip.

    Their four bytes stand apart, all first ones, all second ones, and so on: where weights were stored in 16
    bits, one or two of the four are 0 or nearly so, and those with the exponents are alike.
    """
    tensors = {
        name: tensor.float().cpu().numpy().ravel() for name, tensor in lm.model.state_dict().items()
    }
    if lm.config.tie_embeddings:
        del tensors["out_head.weight"]
    numbers = np.concatenate(list(tensors.values())).astype("<f4")
    # (N,) -> (N, 4) -> (4, N) bytes
    planes = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 4).T)
    packed = gzip.compress(planes.tobytes(), compresslevel=3, mtime=0)
    return [(name, tensor.size) for name, tensor in tensors.items()], base64.b64encode(
        packed
    ).decode()


def _tokenizer(encoding: tiktoken.Encoding) -> dict[str, Any]:
    """The tokenizer as model.js needs it: bytes of each token, special tokens, the regex."""
    ranks = encoding._mergeable_ranks
    tokens: list[str | None] = [None] * (max(ranks.values()) + 1)
    for raw, id in ranks.items():
        tokens[id] = base64.b64encode(raw).decode()
    if late_of(encoding):
        raise ValueError(
            f"a hand-out looks for all added tokens in one search; the tokenizer {encoding.name!r} looks for "
            f"{min(late_of(encoding))!r} in a second one. Give all its added tokens the same value of "
            '"normalized"'
        )
    if composes(encoding) or begins_of(encoding):
        raise ValueError(
            f"a hand-out reads a text as it is; the tokenizer {encoding.name!r} composes its characters or puts "
            "a token before it"
        )
    special = {name: encoding._special_tokens[name] for name in sorted(typed_specials(encoding))}
    words = sorted(words_of(encoding))
    return {"tokens": tokens, "special": special, "words": words, "cut": _regex(encoding)}


def _regex(encoding: tiktoken.Encoding) -> str:
    """An encoding's regex in JavaScript. Its classes are those of tiktoken: a browser may know others.

    After each possessive quantifier of GPT-2's regex nothing follows, or the end: greedy ones do the same.
    """
    if encoding._pat_str == CHARACTERS:
        return "[^]"
    if encoding._pat_str != GPT2_PATTERN:
        raise ValueError(
            f"a hand-out splits a text as GPT-2 does, or into characters; the tokenizer {encoding.name!r} "
            "does neither"
        )
    blanks, letters, numbers = map(members, (r"\s", r"\p{L}", r"\p{N}"))
    return (
        rf"'(?:[sdmt]|ll|ve|re)| ?[{letters}]+| ?[{numbers}]+| ?[^{blanks}{letters}{numbers}]+"
        rf"|[{blanks}]+$|[{blanks}]+(?![^{blanks}])|[{blanks}]"
    )
