"""The Anatomy page's sentences, with the shown config's numbers in them."""

from gptviz.analysis.anatomy import (
    ATTENTION,
    BYTES,
    FEED_FORWARD,
    HEAD,
    NORM,
    TOKEN,
    Anatomy,
    part_table,
)
from gptviz.digits import memory, significant
from gptviz.engine.config import GPTConfig
from gptviz.figures.anatomy import percent

NUMBERS = (
    "A row for each tensor, by its name in the state_dict. The parameters add up to the whole model: a "
    "tensor whose numbers are another's is there with 0."
)


def signed(difference: int) -> str:
    return "0" if difference == 0 else f"{'+' if difference > 0 else '−'}{abs(difference):,}"


def headline(shown: Anatomy) -> str:
    return f"#### {shown.parameters:,} parameters"


def about(shown: Anatomy, own: Anatomy, model: str) -> str:
    """What stands beside the headline: the memory, and how far the sum is from the chosen model's."""
    count = shown.parameters
    text = " · ".join(f"{memory(count * size)} in {dtype}" for dtype, size in BYTES.items())
    difference = count - own.parameters
    if shown.config == own.config:
        return f"{text} · {_plain(model)} as it is"
    if difference == 0:
        return f"{text} · as many as {_plain(model)}"
    return f"{text} · **{signed(difference)}** against {_plain(model)}: {_times(count / own.parameters)}"


def _times(ratio: float) -> str:
    if ratio < 1:
        return f"{percent(ratio)} of it"
    return f"{significant(ratio) if ratio < 1000 else f'{ratio:,.0f}'} times as many"


def _plain(name: str) -> str:
    """A model's name in Markdown, whatever signs it is made of."""
    return "".join(f"\\{sign}" if sign in r"\`*_{}[]()#+-.!|<>$~:" else sign for sign in name)


def look_for(shown: Anatomy) -> str:
    """How to read the picture of the whole model."""
    config = shown.config
    share = _shares(shown)
    blocks = percent(sum(share[part] for part in (ATTENTION, FEED_FORWARD, NORM)))
    vectors = percent(sum(t.parameters for t in shown.tensors if len(t.shape) == 1) / shown.parameters)
    hold = "The one block holds" if config.n_layers == 1 else f"The {config.n_layers} blocks hold"
    tower = ": a tower, here laid on its side" if config.vocab_size > 4 * config.emb_dim else ""
    return (
        "Every tensor is a rectangle whose sides are its two dimensions, all to one scale: its area is its "
        f"parameters. `tok_emb` has {config.vocab_size:,} rows, one a token{tower}; it is "
        f"{percent(share[TOKEN])} of the model. {hold} {blocks}; the feed-forward (orange) is twice as large "
        "as the attention, 8 × emb_dim² against 4 × emb_dim². Biases and LayerNorms are vectors, and all "
        f"together only {vectors}: the line below each block."
    )


def larger(shown: Anatomy, xl: GPTConfig) -> str:
    """What becomes of the shares in a larger model, and of an output head. `xl` is GPT-2 XL's config."""
    share = percent(_shares(shown)[HEAD])
    head = (
        "`out_head` is hatched because it has no numbers of its own: it makes the logits with the rows of "
        "`tok_emb`. Untied, as many would be added at the end."
        if shown.config.tie_embeddings
        else f"`out_head` is as large as `tok_emb`, once more {share}: tied, it would use the numbers "
        "of `tok_emb` and add nothing."
    )
    return (
        f"{head} Double emb_dim, and the tables double but the blocks become four times as large: so "
        f"in GPT-2 XL `tok_emb` is only {percent(xl.vocab_size * xl.emb_dim / xl.parameters)}."
    )


def _shares(shown: Anatomy) -> dict[str, float]:
    return dict(part_table(shown).set_index("part")["share"])


def heads(shown: Anatomy) -> str:
    """Why n_heads changes nothing."""
    config = shown.config
    size, each = f"{config.emb_dim:,}", f"{config.head_dim:,}"
    if config.n_heads == 1:
        share = f"The one head has all {size} rows of W_query, W_key and W_value and all columns of out_proj"
    else:
        share = (
            f"The {config.n_heads:,} heads share the {size} rows of W_query, W_key and W_value, {each} each, "
            f"and the {size} columns of out_proj"
        )
    return (
        f"**n_heads is in no line of the sum.** {share}. More heads are narrower heads; the sum is the same."
    )


def weights_only(shown: Anatomy) -> str:
    """What the memory in the table leaves out."""
    length, blocks = shown.config.context_length, shown.config.n_layers
    together = memory(blocks * length**2)
    every = together if blocks == 1 else f"{together} in all {blocks} blocks"
    return (
        "These are the weights alone. To run the model takes more: activations, which grow with the text, "
        f"and a causal mask of {length:,} × {length:,} truth values a block ({every}), which is not "
        "learned and so is no parameter. To train it with AdamW takes three times the weights more, for the "
        "gradients and two averages of them. Nothing was allocated for this page: it builds the model on "
        "torch's meta device, where tensors have shapes and no numbers."
    )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def alt(shown: Anatomy) -> str:
    count = _count(shown.config.n_layers, "block")
    return (
        f"Every tensor of the model as a rectangle to one scale: the token and position tables, {count}, the "
        f"final LayerNorm and the output head; {shown.parameters:,} parameters in all"
    )
