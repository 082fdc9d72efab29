"""What the model is made of: every tensor to scale, and the sum of its parameters, line by line."""

import numpy as np
import streamlit as st

from gptviz.analysis import anatomy as tensors
from gptviz.both import Both
from gptviz.digits import gigabytes, significant
from gptviz.figures.anatomy import block_map, enlargement, model_map, part_color, percent, share_bars
from gptviz.figures.theme import palette
from gptviz.model import FeedForward, GPTModel, LayerNorm, MultiHeadAttention, TransformerBlock
from gptviz.ui import sheet
from gptviz.ui.parts.anatomy.form import PARAMS, PRESETS, STYLE, form, parts_of, preset_name
from gptviz.ui.shell.page import frame
from gptviz.ui.tables import STYLE as TABLE_STYLE, Cell, Row, table
from gptviz.ui.words import counted, escaped, prose

scene = frame("Anatomy", PARAMS)


def signed(difference: int) -> str:
    """A number of parameters that came (+) or went (−)."""
    sign = "+" if difference > 0 else "−"
    return f"{sign}{abs(difference):,}"


@st.fragment
def everything() -> None:
    """Draws the page: whatever is typed into the form, the model is not run again."""
    st.html(f"{TABLE_STYLE}{STYLE}")
    own_config = scene.lm.config
    name = scene.lm.name
    config = form(own_config, name)
    shown = tensors.anatomy(config)
    own = tensors.anatomy(own_config)
    parts = tensors.part_table(config)
    count = shown.parameters
    share = dict(zip(parts["part"], parts["share"], strict=True))
    width = config.emb_dim
    blocks = config.n_layers

    # ---- the whole model ----

    plain_name = escaped(name)
    size = " · ".join(f"{gigabytes(count * each)} in {dtype}" for dtype, each in tensors.BYTES.items())
    more = count - own.parameters
    ratio = count / own.parameters
    if config == own_config:
        against = f"{plain_name} as it is"
    elif not more:
        against = f"as many as {plain_name}"
    elif ratio < 1:
        against = f"**{signed(more)}** against {plain_name}: {percent(ratio)} of it"
    else:
        times = significant(ratio) if ratio < 1000 else f"{ratio:,.0f}"
        against = f"**{signed(more)}** against {plain_name}: {times} times as many"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="anatomy_headline"):
        st.markdown(f"#### {count:,} parameters", width="content")
        st.markdown(f"{size} · {against}", width="content")
    in_blocks = sum(share[part] for part in (tensors.ATTENTION, tensors.FEED_FORWARD, tensors.NORM))
    vectors = sum(tensor.parameters for tensor in shown.tensors if len(tensor.shape) == 1)
    blocks_are = "one block is" if blocks == 1 else f"{blocks} blocks are"
    prose(
        "Every tensor is a rectangle to one scale: its sides are its dimensions, its area is its parameters. "
        f"`tok_emb`, a row for each of {config.vocab_size:,} tokens, is {percent(share[tensors.TOKEN])} of "
        f"the model; the {blocks_are} {percent(in_blocks)}. "
        "The feed-forward (orange) is twice as large as the attention: 8 × emb_dim² against 4 × emb_dim². "
        f"Biases and LayerNorms, the line below each block, are {percent(vectors / count)} together.",
        *("dimension", "parameter", "token", "block", "feed-forward", "LayerNorm"),
    )
    alt = (
        "Every tensor of the model as a rectangle to one scale: the token and position tables, "
        f"{counted(blocks, 'block')}, the final LayerNorm and the output head; {count:,} "
        "parameters in all"
    )
    scene.chart(model_map(shown, scene.mode), key="anatomy_model", alt=alt)
    if config.tie_embeddings:
        head_says = (
            "`out_head` is hatched: it has no numbers of its own, it makes the logits with the rows of "
            "`tok_emb`. Untied, as many would be added."
        )
    else:
        head_says = (
            f"`out_head` is {percent(share[tensors.HEAD])} once more: tied, it would use the "
            "numbers of `tok_emb` and add nothing."
        )
    xl = PRESETS["XL"]
    prose(
        f"{head_says} Double emb_dim: the tables double, and the blocks become about four times as "
        "large. In GPT-2 XL `tok_emb` is only "
        f"{percent(xl.vocab_size * xl.emb_dim / xl.parameters)}.",
        "logit",
    )

    # ---- the sum ----

    st.subheader("The sum, line by line", anchor=False)
    compared = config != own_config
    rows = []
    for line, before in zip(tensors.sum_lines(shown), tensors.sum_lines(own), strict=True):
        result = f"{line.parameters:,}"
        change = line.parameters - before.parameters
        cells: list[Cell | str] = [
            Cell(line.label, "label", indent=line.level * 0.9),
            Cell(line.formula, "formula"),
            Cell("" if line.worked == result else line.worked, "worked"),
            result,
        ]
        if compared:
            cells.append(signed(change) if change else "")
        kind = "line"
        if line.level == 0:
            kind = "total"
        elif line.is_sum:
            kind = "sum"
        rows.append(Row(cells, kind))
    head = ["", "in the config's words", "with its numbers", "#parameters"]
    if compared:
        head.append(f"#against {name}")
    st.html(table("anatomy-sum", head, rows, "gv-sum"))
    if parts_of(config) == parts_of(tensors.NOTEBOOK):
        prose(
            f"A notebook after *Let's build GPT* prints **{tensors.NOTEBOOK_PRINTS:,}** for this model. Its "
            f"output head also adds a bias, one number for each of the {config.vocab_size} characters. "
            f"{count:,} + {config.vocab_size} = {tensors.parameters_with_head_bias(config):,}. The book's "
            "head has none.",
            *("parameter", "bias"),
        )

    # ---- shares and memory ----

    st.subheader("Shares and memory", anchor=False)
    of_models = {name: tensors.part_table(own_config)}
    if compared:
        of_models = {preset_name(parts_of(config)) or "this config": parts} | of_models
    scene.chart(share_bars(of_models, scene.mode), key="anatomy_shares", alt="Each part's share of the model")
    rows = []
    for part, n in [*zip(parts["part"], parts["parameters"], strict=True), ("the whole model", count)]:
        tied = part == tensors.HEAD and config.tie_embeddings
        color = part_color(part, palette(scene.mode)) if part in share else None
        label = Cell(f"{part}, tied: counted above" if tied else part, "label", color=color)
        numbers = [f"{n:,}", percent(n / count), *(gigabytes(n * each) for each in tensors.BYTES.values())]
        rows.append(Row([label, *numbers], "line" if part in share else "total"))
    heads = ["", "#parameters", "#share", *(f"#{dtype}" for dtype in tensors.BYTES)]
    st.html(table("anatomy-parts", heads, rows, "gv-sum"))
    prose(
        "These are the weights alone. To run the model takes activations, which grow with the text. The "
        "causal mask is a truth value per pair of the text's tokens: made for the text, not learned, and no "
        "parameter. Training with AdamW takes three times the weights more: the gradients, an average of "
        "them and one of their squares. This page allocated nothing: on torch's meta device tensors have "
        "shapes and no numbers.",
        "causal mask",
    )

    # ---- the scores ----

    st.subheader("The scores of attention", anchor=False)
    memory = tensors.score_memory(config)
    most = memory.iloc[-1]
    prose(
        "Every head compares every token with every token: T × T scores. "
        f"A text of {config.context_length:,} tokens has "
        f"**{gigabytes(int(most['one block']))}** of them in one block. Twice as many tokens take four times "
        "as much, and no more weights. That is what makes long texts dear.",
        *("head", "token", "block"),
    )
    lines = {name: memory[name].to_numpy(float) for name in ("all blocks", "one block", "one head")}
    lines["all weights, for comparison"] = np.full(len(memory), float(count * tensors.BYTES["float32"]))
    sheet.curves(
        scene,
        "anatomy_scores",
        {name: Both(values) for name, values in lines.items()},
        [counted(int(n), "token") for n in memory["tokens"]],
        "bytes in float32",
        "The memory of the attention scores for texts of more and more tokens",
        log=True,
        many=True,
        axis={"tickvals": [*range(len(memory))], "ticktext": [f"{n:,}" for n in memory["tokens"]]}
        | {"title": {"text": "tokens of the text"}, "range": [-0.4, len(memory) - 0.2]},
        written=lambda size: gigabytes(round(size)),
    )
    st.caption(
        "In float32. A pass that only predicts holds the scores of one block at a time; training keeps those "
        "of all blocks until it has gone back through them."
    )

    # ---- one block ----

    longer = significant(enlargement(shown), 2)
    st.subheader(f"One block, its sides {longer} times as long as above", anchor=False)
    heads_have = (
        f"The one head has all {width:,} rows of W_query, W_key and W_value and all columns of out_proj"
        if config.n_heads == 1
        else f"The {config.n_heads:,} heads share the {width:,} rows of W_query, W_key and W_value, "
        f"{config.head_dim:,} each, and the {width:,} columns of out_proj"
    )
    text = f"**n_heads is in no line of the sum.** {heads_have}. More heads are narrower heads; the sum is "
    text += "the same."
    prose(text, "head")
    scene.chart(block_map(shown, scene.mode), key="anatomy_block", alt="Block 0's tensors and their shapes")
    caption = "A row for each tensor, by its name in the state_dict. The parameters add up to the whole "
    caption += "model: a tensor whose numbers are another's is there with 0."
    sheet.numbers_of("anatomy.csv", lambda: tensors.tensor_table(config), caption)
    caption = "Bytes of all attention scores, T × T for each head, in float32."
    sheet.numbers_of("anatomy_scores", memory, caption, what="the scores")
    built = [cls.__init__ for cls in (GPTModel, TransformerBlock, MultiHeadAttention, FeedForward, LayerNorm)]
    sheet.code_of(scene, built, tensors.tensor_table, config=config)


everything()
