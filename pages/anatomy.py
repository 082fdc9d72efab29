"""What the model is made of: every tensor to scale, and the sum of its parameters, line by line."""

import numpy as np
import streamlit as st

from gptviz.analysis import anatomy as tensors
from gptviz.both import Both
from gptviz.engine.kinds import gpt2s
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
    own_config = gpt2s(frame.lm.config)
    name = frame.lm.name
    # what is typed makes the picture higher or lower: the presets above it stay where they are
    presets = st.container()
    picture = st.container()
    fields = st.container()
    with presets:
        config = form.form(own_config, name, fields)
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
        against = f"this is {plain_name}"
    elif not more:
        against = f"the same number as {plain_name}"
    elif ratio < 1:
        against = f"**{signed(more)}** compared with {plain_name}: {figures.percent(ratio)} of it"
    else:
        if ratio < 1000:
            times = words.significant(ratio)
        else:
            times = f"{ratio:,.0f}"
        against = f"**{signed(more)}** compared with {plain_name}: {times} times its parameters"
    in_blocks = sum(share[part] for part in (tensors.ATTENTION, tensors.FEED_FORWARD, tensors.NORM))
    vectors = sum(tensor.parameters for tensor in shown.tensors if len(tensor.shape) == 1)
    if blocks == 1:
        blocks_are = "one block is"
    else:
        blocks_are = f"{blocks} blocks are"
    alt = (
        "Every tensor of the model as a rectangle, at one scale: the token and position tables, "
        f"{words.counted(blocks, 'block')}, the final LayerNorm and the output head; {count:,} "
        "parameters in all"
    )
    with picture:
        with st.container(
            horizontal=True, vertical_alignment="bottom", gap="small", key="anatomy_headline"
        ):
            st.markdown(f"#### {count:,} parameters", width="content")
            st.markdown(f"{size} · {against}", width="content")
        words.prose(
            "Each rectangle is one tensor: its area shows how many parameters it has.", "parameter"
        )
        frame.chart(figures.model_map(shown, frame.mode), key="anatomy_model", alt=alt)
    words.prose(
        "A rectangle's sides are its dimensions, all at the same scale. `tok_emb`, with one vector for each of "
        f"{config.vocab_size:,} tokens, is {figures.percent(share[tensors.TOKEN])} of the model; the "
        f"{blocks_are} {figures.percent(in_blocks)}. The matrices of the feed-forward layer (gold) "
        "have twice the parameters of attention's: 8 × emb_dim² against 4 × emb_dim². The line below "
        "each block contains its biases and LayerNorms; together, all biases and LayerNorms are "
        f"{figures.percent(vectors / count)} of the model.",
        "dimension",
        "token",
        "block",
        "feed-forward",
        "LayerNorm",
    )
    if config.tie_embeddings:
        head_says = (
            "`out_head` is hatched because it has no numbers of its own: it computes the logits with "
            "those of `tok_emb`. Untied, it would add its own."
        )
    else:
        head_says = (
            f"`out_head` is another {figures.percent(share[tensors.HEAD])}. Tied, it would reuse the "
            "numbers of `tok_emb` and add nothing."
        )
    xl = form.PRESETS["XL"]
    words.prose(
        f"{head_says} Double emb_dim: the embedding tables double, but the blocks grow about "
        "fourfold. In GPT-2 XL, `tok_emb` is only "
        f"{figures.percent(xl.vocab_size * xl.emb_dim / xl.parameters)} of the model.",
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
    head = ["", "formula", "in numbers", "#parameters"]
    if compared:
        head.append(f"#compared with {name}")
    st.html(tables.table("anatomy-sum", head, rows, "gv-sum"))
    if form.parts_of(config) == form.parts_of(tensors.NOTEBOOK):
        words.prose(
            f"A notebook after *Let's build GPT* prints **{tensors.NOTEBOOK_PRINTS:,}** for this "
            "model. Its output head has a bias, too, one number for each of the "
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
        "These are only the weights. Running the model also needs memory for activations, which grow "
        "with the text. The causal mask is no parameter: it is made for each text, not learned. "
        "Training with AdamW needs memory for three more copies: the gradients, their running average "
        "and the running average of their squares. This page allocates no weights: on torch's meta "
        "device, tensors have shapes but no numbers.",
        "causal mask",
    )

    # ---- the scores ----

    st.subheader("The scores of attention", anchor=False)
    memory = tensors.score_memory(config)
    most = memory.iloc[-1]
    words.prose(
        "Every head compares every token with every token: T × T scores. With "
        f"{config.context_length:,} tokens, the scores of one block take "
        f"**{words.gigabytes(int(most['one block']))}**. Double the text, and they take four times the "
        "memory, with no more weights. That is what makes long texts expensive.",
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
        "The memory of the attention scores, for longer and longer texts",
        log=True,
        many=True,
        axis={"tickvals": [*range(len(memory))], "ticktext": [f"{n:,}" for n in memory["tokens"]]}
        | {"title": {"text": "tokens of the text"}, "range": [-0.4, len(memory) - 0.2]},
        written=lambda size: words.gigabytes(round(size)),
    )
    st.caption(
        "In float32. A pass that only predicts keeps the scores of one block at a time; training "
        "keeps those of all blocks until the backward pass has used them."
    )

    # ---- one block ----

    longer = words.significant(figures.enlargement(shown), 2)
    st.subheader(f"One block, at {longer} times the scale above", anchor=False)
    if config.n_heads == 1:
        heads_have = f"The one head has all {width:,} rows of W_query, W_key and W_value and all columns of out_proj"
    else:
        heads_have = (
            f"The {config.n_heads:,} heads share the {width:,} rows of W_query, W_key and W_value, "
            f"{config.head_dim:,} each, and the {width:,} columns of out_proj"
        )
    text = (
        f"**The number of heads does not change the size of the model.** {heads_have}. More heads are "
        "narrower heads."
    )
    words.prose(text, "head")
    frame.chart(
        figures.block_map(shown, frame.mode),
        key="anatomy_block",
        alt="Block 0's tensors and their shapes",
    )
    caption = (
        "One row per tensor, by its name in the state_dict. The parameters add up to the whole model: "
        "a tensor that reuses another's numbers counts as 0."
    )
    with sheet.details():
        sheet.numbers_of("anatomy.csv", lambda: tensors.tensor_table(config), caption)
        caption = "Bytes of all attention scores, T × T for each head, in float32."
        sheet.numbers_of("anatomy_scores", memory, caption, what="the scores")
        built = [
            cls.__init__
            for cls in (GPTModel, TransformerBlock, MultiHeadAttention, FeedForward, LayerNorm)
        ]
        sheet.code_of(frame, built, tensors.tensor_table, config=config)


everything()
