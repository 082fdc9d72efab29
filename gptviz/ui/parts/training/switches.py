"""Five switches from GPT-2 to Llama, trained beside each other: their curves, and what each of them takes."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.digits import fixed
from gptviz.figures.switches import signed, switch_curves
from gptviz.jobs import Job
from gptviz.training.live import side_by_side
from gptviz.training.live.config import LiveConfig
from gptviz.training.live.side_by_side import BASE, SEEDS, VARIANTS, Learnt, agrees, by_luck
from gptviz.training.live.switched import SwitchedModel, hidden_dim, kv_groups
from gptviz.ui import jobs, sheet, tables
from gptviz.ui.buttons import button
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.parts.training.choice import TASK_NAMES
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Frame
from gptviz.ui.shell.slow import not_done
from gptviz.ui.waiting import said_of
from gptviz.ui.words import counted, listed, prose

EVERY_SECONDS = 1.5  # between two looks at what is being trained
MANY = (1, 3, 5)  # how many seeds there may be
ALL = "Llama: all five"

# what was asked for, such as "chapter-3": another choice than that waits for a click
ON: Param[str | None] = Param("switch_on", str, None)
TASK = Param("switch_task", str, "chapter", if_there)
COUNT = Param("switch_seeds", int, 3, if_there)
SHOWN = Param("switch_shown", str, "loss", if_there)
PARAMS: tuple[Param, ...] = (ON, TASK, COUNT, SHOWN)


def draw(frame: Frame) -> None:
    """Draw the section: its question, its sentence, the curves, the table, and a box of details."""
    st.subheader("What do five switches from GPT-2 to Llama change?", anchor=False)
    goes_on = is_on() and any(job.active for job in asked())

    @st.fragment(run_every=EVERY_SECONDS if goes_on else None)
    def watching() -> None:
        with st.container(key="switches"):
            section(frame, goes_on)

    watching()


def section(frame: Frame, went_on: bool) -> None:
    """Draw what there is by now; run the page again when all is trained, so that nobody looks any more."""
    above = st.container()
    choices()
    seeds = COUNT.value
    every: list[Job[Learnt]] = []
    if is_on():
        every = asked()
    if went_on != any(job.active for job in every):
        st.rerun()
    learnt = [job.value for job in every if job.state == "done"]
    config = side_by_side.usual(TASK.value)
    with above:
        prose(sentence(learnt, seeds), "parameter", "cache")
    asking(every, seeds)
    if learnt:
        curves(frame, learnt, config)
    ends = None
    if learnt and all(job.state == "done" for job in every):
        ends = side_by_side.ends(learnt)
        prose(told(ends, seeds))
    sizes(config, ends)
    with sheet.details("the switches"):
        details(frame, config, learnt)


def choices() -> None:
    """Draw what is trained on, and with how many seeds."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        tasks = {name: TASK_NAMES[name] for name in side_by_side.USUAL}
        TASK.choose("All seven train on", tasks)
        COUNT.choose("Each with", {n: counted(n, "seed") for n in MANY})


# ---- the work ----


def chosen() -> str:
    """The name of what would be trained now."""
    return f"{TASK.within(side_by_side.USUAL)}-{COUNT.within(MANY)}"


def is_on() -> bool:
    """Whether what is chosen was asked for by a click, or is there since somebody has trained it."""
    if ON.value == chosen():
        return True
    known = [jobs.find(run, side_by_side.learn_aside, *given) for run, given in tasks_of()]
    return all(job is not None and job.state == "done" for job in known)


def seeds_of() -> tuple[int, ...]:
    """The seeds that are chosen: so many, one after another."""
    return tuple(SEEDS[0] + i for i in range(COUNT.within(MANY)))


def tasks_of() -> list[tuple[Run, tuple[str, LiveConfig]]]:
    """What the queue is asked for: a variant and its choices each, the first seed's before the second's.

    What is trained depends on no model that a visitor has chosen: the bundled one is handed over.
    """
    run = Run(models.in_use(Choice()).key, (0,))
    task = TASK.within(side_by_side.USUAL)
    return [
        (run, (variant, side_by_side.usual(task, seed)))
        for seed in seeds_of()
        for variant in VARIANTS
    ]


def asked() -> list[Job[Learnt]]:
    """A job for each variant and seed, which the server's queue knows or begins; this visitor waits for it."""
    every = []
    for run, given in tasks_of():
        job = jobs.ask(run, side_by_side.learn_aside, *given)
        if job.state == "stopped":
            job.start(jobs.visitor())
        if job.active:
            job.look(jobs.visitor())
        every.append(job)
    return every


def asking(every: Sequence[Job[Learnt]], seeds: int) -> None:
    """Draw the button that trains them all; or how far they are, and a way to stop."""
    failed = [job for job in every if job.state == "failed"]
    if failed:
        not_done(failed[0], again=again)
        return
    active = [job for job in every if job.active]
    if not every:
        label = f"Train all {len(VARIANTS)}, {counted(seeds, 'seed')} each"
        help = "With three seeds it takes one to two minutes on two cores that do nothing else."
        button(label, "switch_start", ON.set, chosen(), icon="play_arrow", primary=True, help=help)
        return
    if not active:
        return
    parts = [job.progress if job.active else (1, 1) for job in every]
    done = sum(n / max(1, of) for n, of in parts) / len(every)
    over = len(every) - len(active)
    first = next((job for job in active if job.state == "working"), active[0])
    with st.container(horizontal=True, vertical_alignment="center", key="switch_progress"):
        button("Stop", "switch_stop", stop, primary=True)
        said = f"{over} of {len(every)} trainings are done"
        if first.state != "working":
            said = said_of(first, said)
        st.progress(min(1.0, done), said)


def stop() -> None:
    """Callback: nobody waits for these trainings any more; what is done stays known."""
    for run, given in tasks_of():
        job = jobs.find(run, side_by_side.learn_aside, *given)
        if job is not None and job.active:
            job.leave(jobs.visitor())
    ON.set(None)


def again() -> None:
    """Callback: try once more what failed."""
    for job in asked():
        job.start(jobs.visitor())


# ---- what is said ----


def sentence(learnt: Sequence[Learnt], seeds: int) -> str:
    """The first sentence: what there is to see, or what all five together changed."""
    complete = [one for one in learnt if one.variant in (BASE, ALL)]
    if len(complete) < 2 * seeds:
        return "Each switch alone, and all together: what becomes of parameters, of the cache, of the loss?"
    row = side_by_side.ends(complete).set_index("variant").loc[ALL]
    with_these = "With these seeds"
    if seeds == 1:
        with_these = "With this one seed"
    sign = agrees(row)
    if not sign:
        return f"{with_these}, all five together end now above, now below GPT-2."
    size = signed(abs(row["change"])).removeprefix("+")
    side = "above"
    if sign < 0:
        side = "below"
    return f"{with_these}, all five together end **{size} nats** {side} GPT-2's loss."


def told(ends: pd.DataFrame, seeds: int) -> str:
    """What the seeds agree on, switch by switch."""
    alone = ends[~ends["variant"].isin([BASE, ALL])]
    lower = [row for _, row in alone.iterrows() if agrees(row) < 0]
    higher = [row for _, row in alone.iterrows() if agrees(row) > 0]
    unsure = [row["variant"] for _, row in alone.iterrows() if not agrees(row)]
    if seeds == 1:
        return (
            "One seed cannot tell a switch's effect from luck. Take more seeds, and see what stays."
        )
    sentences = []
    for rows, side in ((lower, "lower"), (higher, "higher")):
        if rows:
            named = listed([f"**{row['variant']}** ({between(row)})" for row in rows])
            sentences.append(f"A {side} loss with each of these {seeds} seeds: {named}.")
    if unsure:
        sentences.append(f"The seeds do not agree on {listed(unsure)}.")
    once = round(1 / by_luck(seeds))
    sentences.append(
        f"Of {once} switches without any effect, one has {seeds} seeds that agree by luck."
    )
    return " ".join(sentences)


def between(row: pd.Series) -> str:
    """The least and the largest change of a row of `ends`, in nats."""
    low = signed(row["change_low"])
    high = signed(row["change_high"])
    if low == high:
        return low
    return f"{low} to {high}"


# ---- what is drawn ----


def curves(frame: Frame, learnt: Sequence[Learnt], config: LiveConfig) -> None:
    """Draw the curves of what is trained by now, and the choice between losses and changes."""
    place = st.container()
    names = {"loss": "the loss", "change": f"its change from {BASE}"}
    shown = SHOWN.choose("Shown", names)
    points = side_by_side.table(learnt)
    with place:
        sheet.sideways("switch_curves")
        frame.chart(
            switch_curves(points, [*VARIANTS], BASE, config.steps, frame.mode, shown),
            key="switch_curves",
            alt=f"Validation loss of a GPT-2 with each of five switches, step by step ({names[shown]})",
            which=(shown,),
        )
    st.caption(
        "Strong: the mean of the seeds. Thin: each seed. At each name: the change after the last step, from "
        f"{BASE} with the same seed."
    )


def sizes(config: LiveConfig, ends: pd.DataFrame | None) -> None:
    """Draw the table: what each variant takes, and where it ends if all are trained."""
    found = side_by_side.sizes(config)
    heads = ["Model", "Llama's way", "#Parameters", f"#Cache, {config.context_length} tokens"]
    if ends is not None:
        heads += ["#Final loss", "#From GPT-2"]
        found = found.merge(ends, on="variant")
    ways = ways_of(config)
    rows = []
    for _, row in found.iterrows():
        cells = [
            row["variant"],
            ways[row["variant"]],
            f"{row['parameters']:,}",
            f"{row['cache']:,} bytes",
        ]
        if ends is not None:
            spread = (row["high"] - row["low"]) / 2
            change = "–"
            if row["variant"] != BASE:
                change = between(row)
            cells += [f"{fixed(row['loss'], 3)} ± {fixed(spread, 3)}", change]
        rows.append(tables.Row(cells))
    st.html(tables.STYLE + tables.table("switch_table", heads, rows))
    said = (
        "The cache has a key and a value of each token, in float32: it grows with the text. SwiGLU is "
        f"{hidden_dim(config.emb_dim)} wide, so that its three matrices have as many numbers as GELU's two."
    )
    if ends is not None:
        said += " ± is half of the distance from the lowest seed to the highest."
    st.caption(said)
    st.caption(
        "With the same seed all seven begin with the same numbers, wherever they have the same matrix, and see the "
        f"same batches. {counted(config.steps, 'step')} of a small model, at one learning rate of "
        f"{config.learning_rate:g}, decide nothing about large models."
    )


def ways_of(config: LiveConfig) -> dict[str, str]:
    """What is Llama's way in each variant, in a few words."""
    gpt = config.gpt_config(2)
    groups = kv_groups(gpt, VARIANTS["grouped keys"])
    return {
        BASE: "",
        "RMSNorm": "divides by the size alone: no mean, no shift",
        "RoPE": "rotates queries and keys; no position vectors",
        "SwiGLU": "multiplies by a gate",
        "grouped keys": f"{counted(groups, 'key')} and values for {counted(gpt.n_heads, 'head')}",
        "no biases": "adds no vector after a matrix or a norm",
        ALL: "all of these",
    }


def details(frame: Frame, config: LiveConfig, learnt: Sequence[Learnt]) -> None:
    """Name the tables behind the curves and the program that gives them."""
    if learnt:
        told = "Training and validation loss in nats per token, for each variant, seed and step."
        sheet.numbers_of("switch_curves", lambda: side_by_side.table(learnt), told, "the switches")
    sizes = "Trained parameters, and the bytes of the cache for a full context."
    sheet.numbers_of("switch_sizes", lambda: side_by_side.sizes(config), sizes, "their sizes")
    sheet.code_of(
        frame,
        [SwitchedModel.__init__, side_by_side.learn],
        side_by_side.curves,
        TASK.value,
        seeds_of(),
        key="switch_code",
        what="the switches",
    )
