"""What is changed in a model, in words: an edit as one says it, and what it did to a prediction."""

import re
from collections.abc import Callable, Sequence

from gptviz import Edit
from gptviz.analysis.reach import Unseen, hidden_token
from gptviz.engine.architecture import architecture_of
from gptviz.engine.edit_values import TABLES, Named
from gptviz.engine.kinds import Config
from gptviz.engine.sites import ALL_SITES, sites_of

# what an edit's site is called: (of one block's own part, where a head or a block stands before it)
PARTS = {
    "tok_emb": "token embeddings",
    "pos_emb": "position embeddings",
    "embed": "embeddings",
    "resid_pre": "stream going in",
    "q": "queries",
    "k": "keys",
    "v": "values",
    "q_rot": "turned queries",
    "k_rot": "turned keys",
    "attn": "attention weights",
    "z": "output",
    "attn_out": "attention",
    "resid_mid": "stream after attention",
    "mlp_pre": "feed-forward, before GELU",
    "mlp_gate": "feed-forward's gate",
    "mlp_up": "feed-forward, what the gate lets through",
    "mlp_act": "feed-forward units",
    "mlp_out": "feed-forward",
    "resid_post": "stream going out",
    "final": "output of the last LayerNorm",
}

# what is done: to attention weights, and to anything else
_LOOKS = {
    "uniform": "looks at all tokens equally",
    "mean": "looks at all tokens equally",
    "first": "looks only at the first token",
    "previous": "looks only at the token before",
}
_DONE = {
    "zero": "off",
    "mean": "averaged over this text",
    "sample": "averaged over a sample of text",
}
_NUMBERED = re.compile(r"(shuffle|hide)([0-9]+)")

LISTED = 8  # positions or heads that are named one by one


def says(
    edit: Edit,
    labels: Sequence[str] = (),
    shown: Callable[[int], str] = "token {}".format,
    config: Config | None = None,
) -> str:
    """One edit, as short as can be: "block 4 head 3 off". `labels` are the tokens as on the screen.

    `shown` is how the screen shows any other token of the vocabulary. The words are those of a model with
    this `config`: which are heads, which groups of heads, and what its norms are called.
    """
    hidden = hidden_token(edit)
    where = _where(edit, config)
    if edit.positions is None:
        at_positions = ""
    else:
        at_positions = f" at {_positions(edit.positions, labels)}"
    if hidden is not None:
        if _everywhere(edit) and edit.heads is None:
            place = ""
        else:
            place = f" in {where}"
        return f"{token(hidden, labels)} hidden from later tokens{place}{at_positions}"
    value = "replaced"
    if isinstance(edit.value, str):
        value = edit.value
    if ALL_SITES[edit.site].form == "weights" and value in _LOOKS:
        several = edit.heads is None or len(edit.heads) > 1
        if several:
            looks = _LOOKS[value].replace("looks", "look", 1)
        else:
            looks = _LOOKS[value]
        return f"{where} {looks}{at_positions}"
    if edit.site == "z" and edit.heads is not None:
        part = ""
    else:
        part = f" {_part(edit.site, config)}"
    if edit.site == "z" and edit.heads is None:
        part = ", all heads,"
    return f"{where}{part}{at_positions} {_done(value, edit.named, shown)}".strip()


def _done(value: str, named: Named | None, shown: Callable[[int], str]) -> str:
    if named is not None and named.name == "x":
        return f"times {named.factor:g}".replace("-", "−")
    if named is not None and named.terms:
        return " ".join(_added(term, shown) for term in named.terms)
    numbered = _NUMBERED.fullmatch(value)
    if numbered is not None:
        return f"shuffled ({numbered[2]})"
    if value.startswith("ids"):
        return f"as in {another_text(value.count('+') + 1)}"
    return _DONE.get(value, "replaced")


def _added(term: Named, shown: Callable[[int], str]) -> str:
    """A term of a sum: "plus 2 × the embedding of “·love”"."""
    if term.name in TABLES:
        origin = f"“{shown(term.numbers[0])}”"
    else:
        origin = another_text(len(term.numbers))
    nouns = {
        "tok": "the embedding of",
        "out": "the output row of",
        "ids": "that of",
        "mean": "the mean of",
    }
    if abs(term.factor) == 1:
        times = ""
    else:
        times = f"{abs(term.factor):g} × "
    sign = "plus" if term.factor > 0 else "minus"
    return f"{sign} {times}{nouns[term.name]} {origin}"


def another_text(count: int) -> str:
    if count == 1:
        return "another text of 1 token"
    return f"another text of {count} tokens"


def _everywhere(edit: Edit) -> bool:
    return ALL_SITES[edit.site].per_block and not isinstance(edit.block, int)


def _part(site: str, config: Config | None) -> str:
    """What a site is called in a model with this config."""
    if config is None:
        return PARTS[site]
    return PARTS[site].replace("LayerNorm", architecture_of(config).named.norm)


def _where(edit: Edit, config: Config | None) -> str:
    """Block and heads, or groups: "block 4 head 3", "" outside of the blocks."""
    if not ALL_SITES[edit.site].per_block:
        return ""
    if _everywhere(edit):
        block = "all blocks"
    else:
        block = f"block {edit.block}"
    if edit.heads is None:
        if ALL_SITES[edit.site].form != "weights":
            return block
        return f"{block}, all heads"
    heads = "head"
    if config is not None and edit.site in sites_of(config):
        heads = sites_of(config)[edit.site].part
    if len(edit.heads) != 1:
        heads += "s"
    return f"{block} {heads} {_listed(list(map(str, edit.heads)))}"


def _positions(positions: Sequence[int], labels: Sequence[str]) -> str:
    if len(positions) == 1:
        return token(positions[0], labels)
    return f"positions {_listed(list(map(str, positions)))}"


def _listed(names: list[str]) -> str:
    if len(names) <= LISTED:
        return ", ".join(names)
    return f"{', '.join(names[: LISTED - 1])} and {len(names) - LISTED + 1} more"


def token(position: int, labels: Sequence[str]) -> str:
    """ "·mill" (position 7), or the position alone."""
    known = -len(labels) <= position < len(labels)
    if known:
        return f"“{labels[position]}” (position {position % len(labels)})"
    return f"position {position}"


def cannot_matter(why: Unseen, what: str, many: bool = False) -> str:
    """Why an edit, or `many`, cannot be seen at `what`: "cannot affect ...: it changes ..."."""
    reasons = {
        "later": "only what the model computes later",
        "beside": "what the model computes in parallel and does not use for it",
        "later position": "only later tokens, and no token can look at a later one",
        "other position": "only other tokens, and no later attention can pass that on",
    }
    they_change = "it changes"
    if many:
        they_change = "they change"
    return f"cannot affect {what}: {they_change} {reasons[why]}"
