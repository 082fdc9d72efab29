"""What the cache saves: multiply-adds and milliseconds per token, with it and without it."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis.decoding_cost import steps, written_again
from gptviz.both import Both
from gptviz.digits import gigabytes, many, significant
from gptviz.engine.architecture import architecture_of
from gptviz.engine.kinds import Config
from gptviz.engine.past import past_bytes
from gptviz.engine.sampling import distribution, draw as draw_one
from gptviz.fast import kernels
from gptviz.figures.marks import token_ticks
from gptviz.ui import sheet
from gptviz.ui.parts.generate.written import Written
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import counted, prose, show_id

# in the session: of which text, and of each step what `measure` gives
MEASURED = "generate_measured"
SECONDS = 6.0  # of writing again at a click: nothing interrupts it, and others wait for the model
SIZES = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def draw(scene: Scene, written: Written) -> None:
    """Draw the work of each token, and at a click its time."""
    lm = scene.lm
    config = scene.lm.config
    count = len(written.steps)
    if not count:
        st.info("Nothing is written yet: press One step, or Play.")
        return
    number_bytes = lm.model.tok_emb.weight.element_size()
    chosen = min(written.chosen, count - 1)
    sizes = config, len(written.base), count, number_bytes, lm.is_causal
    table = steps(*sizes)
    row = table.iloc[chosen]
    sums = table.sum()
    cost = f"**Token {chosen + 1}** cost {many(row['with_cache'])} multiply-adds"
    sentence = (
        f"{cost}, with or without a cache: nothing of the {row['tokens']:,} tokens was in it yet."
    )
    if not lm.is_causal:
        sentence = f"{cost}: all {row['tokens']:,} tokens went through the blocks. A change here depends on the "
        sentence += "whole text, so **no cache is used**."
    elif row["cached"]:
        sentence = f"{cost}: only one token went through the blocks, since the cache had the keys and values of the "
        sentence += f"{row['cached']:,} before it. Without a cache, all {row['tokens']:,} would go through, for "
        sentence += f"{many(row['without_cache'])}: {significant(row['without_cache'] / row['with_cache'])} "
        sentence += "times the work."
    elif chosen:
        sentence = (
            f"{cost}: the context is full, so all {row['tokens']:,} tokens move to new positions."
        )
    prose(sentence, "token", "key", "value", "block", "cache")
    size, unit = next(
        scale for scale in SIZES if table["without_cache"].max() >= scale[0] or scale == SIZES[-1]
    )
    costs = table[["with_cache", "without_cache"]].to_numpy() / size  # (S, 2)
    draw_costs(scene, written, costs, f"{unit} multiply-adds", "generate_work")
    if count > 1:
        saving = ""
        without = f"{many(sums['without_cache'])} multiply-adds for {sums['tokens']:,.0f} tokens"
        if lm.is_causal:
            with_cache_text = (
                f"{many(sums['with_cache'])} for {sums['tokens'] - sums['cached']:,.0f} tokens"
            )
            times = significant(sums["without_cache"] / sums["with_cache"])
            saving = f", {times} times the {with_cache_text} with it"
        text = f"**All {count:,} so far:** without the cache {without} through the blocks{saving}. The book's "
        text += (
            f"own loop, which makes the logits of all positions, has {many(sums['all_logits'])}."
        )
        prose(text, "logit")
    if lm.is_causal:
        tokens_read = row["tokens"]
        context = config.context_length
        bytes_now, bytes_full = (
            gigabytes(past_bytes(config, n, bytes_a_number=number_bytes))
            for n in (tokens_read, context)
        )
        each, numbers, spared = kept(config)
        st.markdown(
            f"**The price is memory:** a key and a value per {each}. 2 × {config.n_layers} blocks × "
            f"{tokens_read:,} tokens × {numbers} × {number_bytes} bytes = "
            f"{bytes_now} now, {bytes_full} with all {context:,} positions taken.{spared}"
        )
    hint = "Write the same tokens once more, with the cache and without it, and time each pass."
    again = st.button(
        "Write it again, and time it", key="generate_time_again", icon=":material/timer:", help=hint
    )
    draw_times(scene, written, again)
    st.caption(
        "We count the multiplications in matrix products, each with the addition that follows."
    )
    note = "Worked out from the model's sizes alone: a row per written token, in multiply-adds."
    with sheet.details("the work"):
        sheet.numbers_of("generate-cost", table, note, "the work of each token")

        # a step with the cache, by the book's lines, so that its shapes can be taken down
        def run() -> None:
            with kernels.by_the_book():
                next(written_again(lm, written.base.ids, [written.new[0], 0], True, first=1))

        sources: list[Callable[..., object]] = [architecture_of(config).attend, written_again]
        sheet.code_of(scene, sources, steps, *sizes, key="in_code_saves", run=run)


def kept(config: Config) -> tuple[str, str, str]:
    """What has a key and a value of its own, how many numbers one is, and what is spared by groups of heads."""
    groups = config.n_kv_groups
    if groups == config.n_heads:
        return "token and block", f"{groups * config.head_dim:,} numbers", ""
    many_groups = counted(groups, "group")
    size = config.n_heads // groups
    return (
        "token, block and group of heads",
        f"{many_groups} × {config.head_dim:,} numbers",
        f" With a key and a value for each of the {config.n_heads:,} heads it would be {size} times as much.",
    )


def draw_costs(scene: Scene, written: Written, ways: np.ndarray, unit: str, key: str) -> None:
    """Draw what each step cost in this unit, (S, 2): with the cache and without it."""
    tokens = [show_id(scene.lm, i) for i in written.new[: len(ways)]]
    lines = {"with the cache": Both(ways[:, 0]), "without the cache": Both(ways[:, 1])}
    if not scene.lm.is_causal:
        del lines["with the cache"]
    names = [f"token {number}, {token}" for number, token in enumerate(tokens, 1)]
    alt = f"What each token costs in {unit}, with the cache and without it"
    axis = token_ticks(tokens, positions=range(1, len(tokens) + 1), title="token written")
    marked_step = min(written.chosen, len(written.steps) - 1)
    zero = {"rangemode": "tozero"}
    sheet.curves(
        scene,
        key,
        lines,
        names,
        unit,
        alt,
        many=True,
        at=marked_step,
        axis=axis,
        up=zero,
        height=270,
    )


def draw_times(scene: Scene, written: Written, again: bool) -> None:
    """Write the same tokens `again` both ways, for `SECONDS` at most; draw what is measured so far."""
    lm = scene.lm
    steps = written.steps
    text_key = replace(written, chosen=0, branch=0)
    # of each step: milliseconds both ways, and whether the same token was drawn again
    measured_of, timings = st.session_state.get(MEASURED, (None, []))
    if measured_of != text_key or (again and len(timings) == len(steps)):
        timings = []
    if again:
        st.session_state[MEASURED] = (text_key, timings)
        place = st.empty()
        began = time.monotonic()
        start = len(timings)
        passes = (
            written_again(lm, written.base.ids, written.new, cached, start)
            for cached in (True, False)
        )
        for step, (quick, logits), (slow, _) in zip(steps[start:], *passes, strict=True):
            drawn_id = draw_one(distribution(logits, written.sampling), step.point or 0.0)
            timings.append((quick, slow, None if step.forced else drawn_id == step.id))
            place.markdown(f"{len(timings)} of {len(steps)} tokens")
            if time.monotonic() - began > SECONDS:
                break
        place.empty()
    if not timings:
        return
    if len(timings) < len(steps):
        st.caption(f"Stopped after {len(timings)} of {len(steps)} tokens. Press again to go on.")
    ways = np.array([row[:2] for row in timings])  # (S, 2)
    same = [row[2] for row in timings if row[2] is not None]
    quick, slow = np.median(ways, axis=0)
    sentence = f"{significant(slow, 2)} ms"
    if lm.is_causal:
        sentence = f"{significant(quick, 2)} ms with the cache and {sentence} without"
        sentence += f", {significant(slow / quick, 2)} times as long"
    if all(same):
        tokens = "Every token"
    else:
        tokens = f"{sum(same)} of {len(same)} tokens"
    agreement = ""
    if same:
        agreement = f" {tokens} came out the same again."
    st.markdown(f"**Measured on this machine**, the median step: {sentence}.{agreement}")
    draw_costs(scene, written, ways, "milliseconds", "generate_times")
    frame = pd.DataFrame(ways, columns=["with_cache_ms", "without_cache_ms"])
    frame.insert(0, "token", [show_id(lm, i) for i in written.new[: len(timings)]])
    frame.insert(0, "step", range(1, len(timings) + 1))
    note = (
        "Measured on this machine, the model's passes only; other visitors' work may stand between."
    )
    with sheet.details("the times"):
        sheet.numbers_of("generate-times", frame, note, "what was measured")
