"""What the model is made of: every tensor to scale, and the sum of its parameters, line by line."""

from typing import Any

import numpy as np
import streamlit as st

from gptviz.analysis import anatomy as tensors
from gptviz.both import Both
from gptviz.engine.architecture import architecture_of
from gptviz.figures import anatomy as figures
from gptviz.ui import sheet, tables, words
from gptviz.ui.parts.anatomy import form
from gptviz.ui.parts.anatomy.fields import parts_of, preset_name
from gptviz.ui.parts.anatomy.told import told_of

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
    made = architecture_of(own_config)
    norm = made.named.norm
    told = told_of(own_config)
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
    in_blocks = sum(share[part] for part in (tensors.ATTENTION, tensors.FEED_FORWARD, norm))
    vectors = sum(tensor.parameters for tensor in shown.tensors if len(tensor.shape) == 1)
    if blocks == 1:
        blocks_are = "one block is"
    else:
        blocks_are = f"{blocks} blocks are"
    alt = (
        f"Every tensor of the model as a rectangle, at one scale: {told.tables}, "
        f"{words.counted(blocks, 'block')}, the final {norm} and the output head; {count:,} "
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
    thin = told.vectors(config)
    words.prose(
        "A rectangle's sides are its dimensions, all at the same scale. `tok_emb`, with one vector for each of "
        f"{config.vocab_size:,} tokens, is {figures.percent(share[tensors.TOKEN])} of the model; the "
        f"{blocks_are} {figures.percent(in_blocks)}. {told.matrices(config)} The line below "
        f"each block contains its {thin}; together, all {thin} are "
        f"{figures.percent(vectors / count)} of the model.",
        "dimension",
        "token",
        "block",
        "feed-forward",
        norm,
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
    words.prose(f"{head_says} {told.doubled}", "logit")

    # ---- the sum ----

    st.subheader("The sum, line by line", anchor=False)
    compared = config != own_config
    rows = []
    before = {line.label: line.parameters for line in tensors.sum_lines(own)}
    for line in tensors.sum_lines(shown):
        result = f"{line.parameters:,}"
        change = line.parameters - before.get(line.label, 0)
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
    if parts_of(config) == parts_of(tensors.NOTEBOOK):
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
        of_config = preset_name(parts_of(config), config) or "this config"
        of_models = {of_config: parts} | of_models
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
        f"{told.counted_as(config)}These are only the weights. Running the model also needs memory for "
        "activations, which grow with the text. The causal mask is no parameter: it is made for each text, not "
        "learned. Training with AdamW needs memory for three more copies: the gradients, their running average "
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

    # ---- the keys and values ----

    kept = told.kept(config)
    if kept:
        st.subheader("The keys and values that are kept", anchor=False)
        words.prose(kept, "key", "value")

    # ---- one block ----

    longer = words.significant(figures.enlargement(shown), 2)
    st.subheader(f"One block, at {longer} times the scale above", anchor=False)
    words.prose(told.heads(config), "head")
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
        if kept:
            caption = "Bytes of all keys and values, in float32: as kept, and with one of each for each head."
            sheet.numbers_of(
                "anatomy_kept", tensors.cache_memory(config), caption, what="keys and values"
            )
        named = made.named
        classes: list[Any] = [made.model, named.block_class, named.attention_class]
        classes += [named.feed_forward_class, named.norm_class]
        built = [cls.__init__ for cls in classes]
        sheet.code_of(frame, built, tensors.tensor_table, config=config)


everything()
