"""What the model is made of: every tensor to scale, and the sum of its parameters, line by line."""

import numpy as np
import streamlit as st

from gptviz.analysis import anatomy as tensors
from gptviz.both import Both
from gptviz.figures import anatomy as figures
from gptviz.model import FeedForward, GPTModel, LayerNorm, MultiHeadAttention, TransformerBlock
from gptviz.ui import sheet, tables, words
from gptviz.ui.parts.anatomy import form

frame = sheet.start_page("Anatomy", choices=form.PARAMS, reads_text=False)


def signed(difference: int) -> str:
    """A number of parameters that came (+) or went (−)."""
    sign = "+" if difference > 0 else "−"
    return f"{sign}{abs(difference):,}"


@st.fragment
def everything() -> None:
    """Draws the page: whatever is typed into the form, the model is not run again."""
    st.html(f"{tables.STYLE}{form.STYLE}")
    own_config = frame.lm.config
    name = frame.lm.name
    config = form.form(own_config, name)
    shown = tensors.anatomy(config)
    own = tensors.anatomy(own_config)
    parts = tensors.part_table(config)
    count = shown.parameters
    share = dict(zip(parts["part"], parts["share"], strict=True))
    width = config.emb_dim
    blocks = config.n_layers

    # ---- the whole model ----

    plain_name = words.escaped(name)
    size = " · ".join(
        f"{words.gigabytes(count * each)} in {dtype}" for dtype, each in tensors.BYTES.items()
    )
    more = count - own.parameters
    ratio = count / own.parameters
    if config == own_config:
        against = f"{plain_name} as it is"
    elif not more:
        against = f"as many as {plain_name}"
    elif ratio < 1:
        against = f"**{signed(more)}** against {plain_name}: {figures.percent(ratio)} of it"
    else:
        if ratio < 1000:
            times = words.significant(ratio)
        else:
            times = f"{ratio:,.0f}"
        against = f"**{signed(more)}** against {plain_name}: {times} times as many"
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="anatomy_headline"
    ):
        st.markdown(f"#### {count:,} parameters", width="content")
        st.markdown(f"{size} · {against}", width="content")
    in_blocks = sum(share[part] for part in (tensors.ATTENTION, tensors.FEED_FORWARD, tensors.NORM))
    vectors = sum(tensor.parameters for tensor in shown.tensors if len(tensor.shape) == 1)
    if blocks == 1:
        blocks_are = "one block is"
    else:
        blocks_are = f"{blocks} blocks are"
    words.prose(
        "Every tensor is a rectangle to one scale: its sides are its dimensions, its area is its "
        f"parameters. `tok_emb`, a row for each of {config.vocab_size:,} tokens, is "
        f"{figures.percent(share[tensors.TOKEN])} of the model; the {blocks_are} "
        f"{figures.percent(in_blocks)}. The feed-forward (orange) is twice as large as the "
        "attention: 8 × emb_dim² against 4 × emb_dim². Biases and LayerNorms, the line below each "
        f"block, are {figures.percent(vectors / count)} together.",
        "dimension",
        "parameter",
        "token",
        "block",
        "feed-forward",
        "LayerNorm",
    )
    alt = (
        "Every tensor of the model as a rectangle to one scale: the token and position tables, "
        f"{words.counted(blocks, 'block')}, the final LayerNorm and the output head; {count:,} "
        "parameters in all"
    )
    frame.chart(figures.model_map(shown, frame.mode), key="anatomy_model", alt=alt)
    if config.tie_embeddings:
        head_says = (
            "`out_head` is hatched: it has no numbers of its own, it makes the logits with the "
            "rows of `tok_emb`. Untied, as many would be added."
        )
    else:
        head_says = (
            f"`out_head` is {figures.percent(share[tensors.HEAD])} once more: tied, it would use "
            "the numbers of `tok_emb` and add nothing."
        )
    xl = form.PRESETS["XL"]
    words.prose(
        f"{head_says} Double emb_dim: the tables double, and the blocks become about four times as "
        "large. In GPT-2 XL `tok_emb` is only "
        f"{figures.percent(xl.vocab_size * xl.emb_dim / xl.parameters)}.",
        "logit",
    )

    # ---- the sum ----

    st.subheader("The sum, line by line", anchor=False)
    compared = config != own_config
    rows = []
    for line, before in zip(tensors.sum_lines(shown), tensors.sum_lines(own), strict=True):
        result = f"{line.parameters:,}"
        change = line.parameters - before.parameters
        cells: list[tables.Cell | str] = [
            tables.Cell(line.label, "label", indent=line.level * 0.9),
            tables.Cell(line.formula, "formula"),
            tables.Cell("" if line.worked == result else line.worked, "worked"),
            result,
        ]
        if compared:
            cells.append(signed(change) if change else "")
        kind = "line"
        if line.level == 0:
            kind = "total"
        elif line.is_sum:
            kind = "sum"
        rows.append(tables.Row(cells, kind))
    head = ["", "in the config's words", "with its numbers", "#parameters"]
    if compared:
        head.append(f"#against {name}")
    st.html(tables.table("anatomy-sum", head, rows, "gv-sum"))
    if form.parts_of(config) == form.parts_of(tensors.NOTEBOOK):
        words.prose(
            f"A notebook after *Let's build GPT* prints **{tensors.NOTEBOOK_PRINTS:,}** for this "
            "model. Its output head also adds a bias, one number for each of the "
            f"{config.vocab_size} characters. {count:,} + {config.vocab_size} = "
            f"{tensors.parameters_with_head_bias(config):,}. The book's head has none.",
            "parameter",
            "bias",
        )

    # ---- shares and memory ----

    st.subheader("Shares and memory", anchor=False)
    of_models = {name: tensors.part_table(own_config)}
    if compared:
        of_models = {form.preset_name(form.parts_of(config)) or "this config": parts} | of_models
    frame.chart(
        figures.share_bars(of_models, frame.mode),
        key="anatomy_shares",
        alt="Each part's share of the model",
    )
    rows = []
    for part, n in [
        *zip(parts["part"], parts["parameters"], strict=True),
        ("the whole model", count),
    ]:
        tied = part == tensors.HEAD and config.tie_embeddings
        color = None
        if part in share:
            color = figures.part_color(part, frame.palette)
        label = tables.Cell(f"{part}, tied: counted above" if tied else part, "label", color=color)
        numbers = [
            f"{n:,}",
            figures.percent(n / count),
            *(words.gigabytes(n * each) for each in tensors.BYTES.values()),
        ]
        rows.append(tables.Row([label, *numbers], "line" if part in share else "total"))
    heads = ["", "#parameters", "#share", *(f"#{dtype}" for dtype in tensors.BYTES)]
    st.html(tables.table("anatomy-parts", heads, rows, "gv-sum"))
    words.prose(
        "These are the weights alone. To run the model takes activations, which grow with the "
        "text. The causal mask is a truth value per pair of the text's tokens: made for the text, "
        "not learned, and no parameter. Training with AdamW takes three times the weights more: "
        "the gradients, an average of them and one of their squares. This page allocated nothing: "
        "on torch's meta device tensors have shapes and no numbers.",
        "causal mask",
    )

    # ---- the scores ----

    st.subheader("The scores of attention", anchor=False)
    memory = tensors.score_memory(config)
    most = memory.iloc[-1]
    words.prose(
        "Every head compares every token with every token: T × T scores. A text of "
        f"{config.context_length:,} tokens has **{words.gigabytes(int(most['one block']))}** of "
        "them in one block. Twice as many tokens take four times as much, and no more weights. "
        "That is what makes long texts dear.",
        "head",
        "token",
        "block",
    )
    lines = {name: memory[name].to_numpy(float) for name in ("all blocks", "one block", "one head")}
    lines["all weights, for comparison"] = np.full(
        len(memory), float(count * tensors.BYTES["float32"])
    )
    sheet.curves(
        frame,
        "anatomy_scores",
        {name: Both(values) for name, values in lines.items()},
        [words.counted(int(n), "token") for n in memory["tokens"]],
        "bytes in float32",
        "The memory of the attention scores for texts of more and more tokens",
        log=True,
        many=True,
        axis={"tickvals": [*range(len(memory))], "ticktext": [f"{n:,}" for n in memory["tokens"]]}
        | {"title": {"text": "tokens of the text"}, "range": [-0.4, len(memory) - 0.2]},
        written=lambda size: words.gigabytes(round(size)),
    )
    st.caption(
        "In float32. A pass that only predicts holds the scores of one block at a time; training "
        "keeps those of all blocks until it has gone back through them."
    )

    # ---- one block ----

    longer = words.significant(figures.enlargement(shown), 2)
    st.subheader(f"One block, its sides {longer} times as long as above", anchor=False)
    if config.n_heads == 1:
        heads_have = f"The one head has all {width:,} rows of W_query, W_key and W_value and all columns of out_proj"
    else:
        heads_have = (
            f"The {config.n_heads:,} heads share the {width:,} rows of W_query, W_key and W_value, "
            f"{config.head_dim:,} each, and the {width:,} columns of out_proj"
        )
    text = (
        f"**n_heads is in no line of the sum.** {heads_have}. More heads are narrower heads; the "
        "sum is the same."
    )
    words.prose(text, "head")
    frame.chart(
        figures.block_map(shown, frame.mode),
        key="anatomy_block",
        alt="Block 0's tensors and their shapes",
    )
    caption = (
        "A row for each tensor, by its name in the state_dict. The parameters add up to the whole "
        "model: a tensor whose numbers are another's is there with 0."
    )
    sheet.numbers_of("anatomy.csv", lambda: tensors.tensor_table(config), caption)
    caption = "Bytes of all attention scores, T × T for each head, in float32."
    sheet.numbers_of("anatomy_scores", memory, caption, what="the scores")
    built = [
        cls.__init__
        for cls in (GPTModel, TransformerBlock, MultiHeadAttention, FeedForward, LayerNorm)
    ]
    sheet.code_of(frame, built, tensors.tensor_table, config=config)


everything()
