"""Train one now: a small GPT learns while you watch; its story, its curves and heads, snapshots, forks."""

from dataclasses import asdict
from typing import Any

import pandas as pd
import streamlit as st

from gptviz.analysis.anatomy import tensor_table
from gptviz.figures import training as figures
from gptviz.training import live
from gptviz.training.live.config import USUAL, named, watch
from gptviz.training.live.seen import Seen, look
from gptviz.training.live.work import train_one
from gptviz.training.loop import TrainingRun
from gptviz.ui import sheet, words
from gptviz.ui.parts.training import choice, recording, snapshot, story, switches
from gptviz.ui.shell.placed import placed
from gptviz.ui.training.mine import at_once, find_training, my_trainings, remove_training
from gptviz.ui.training.trainings import Training

EVERY_SECONDS = 1.5  # between two looks at a run that trains
SLIDER = "training_slider"
NEWEST = "newest"

frame = sheet.start_page(
    "Train one now",
    choices=[*choice.PARAMS, *switches.PARAMS],
    reads_text=False,
    of_model=False,
)


def name_of(training: Training) -> str:
    return f"{training.label}: {named(training.config)}"


def seen_of(training: Training) -> Seen:
    return look(training.run, name_of(training))


# ---- which run, and what can be done with it ----


def chosen(mine: tuple[Training, ...]) -> tuple[Training, Training | None]:
    """The run that is looked at, and the one beside it: of this visitor's, and not the same."""
    names = {training.number: name_of(training) for training in mine}
    choice.RUN.within(list(names))
    if choice.RUN.value is None:
        choice.RUN.set(mine[-1].number)
    choice.BESIDE.within([number for number in names if number != choice.RUN.value])
    shown = {"width": 210, "label_visibility": "collapsed"}
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="training_runs"
    ):
        with st.popover(
            "New run", icon=":material/add:", width="content", key=choice.NEW, on_change="rerun"
        ):
            choice.presets()
            choice.form()
        number = choice.RUN.choose("Run", names, st.selectbox, **shown)
        others = {other: name for other, name in names.items() if other != number}
        if others:
            none = {"index": None, "placeholder": "beside it: none"}
            choice.BESIDE.choose("Beside it", others, st.selectbox, **shown, **none)
        training = (find_training(number) if number else None) or mine[-1]
        controls(training)
    other = None
    if choice.BESIDE.value and choice.BESIDE.value != number:
        other = find_training(choice.BESIDE.value)
    return training, other


def controls(training: Training) -> None:
    """Pause, go on, stop, remove."""
    buttons = [("Remove", "delete", "remove")]
    if training.active:
        buttons = [("Pause", "pause", "pause"), ("Stop", "stop", "stop"), *buttons]
    elif training.state in ("paused", "stopped", "killed"):
        buttons = [("Go on", "play_arrow", "resume"), *buttons]
    for label, icon, what in buttons:
        key = f"training_{label.lower().replace(' ', '_')}"
        off = what == training.run.wish or (what == "pause" and training.state == "starting")
        sheet.button(label, key, do, training.number, what, icon=icon, disabled=off)


def do(number: str, what: str) -> None:
    """Callback: one of the buttons."""
    training = find_training(number)
    choice.say(None)
    if what == "remove":
        remove_training(number)
        choice.look_at(None)
    elif training is not None:
        choice.attempt(
            {"pause": training.pause, "stop": training.stop, "resume": training.resume}[what]
        )


# ---- its story ----


def told(training: Training, seen: Seen, beside: Seen | None) -> None:
    task = training.run.task
    origin = training.run.origin
    if origin is not None:
        st.markdown(story.forked(origin.step, origin.muted))
    repeats = task.floor is not None
    if repeats:
        said = story.repeats(seen, task, not training.active)
    else:
        said = story.characters(seen, task)
    if beside is not None and beside.measures:
        said += story.beside(beside)
    words.prose(said, "induction head", "head", "block", "token")
    if repeats:
        tests(training, seen)
    what = watch(*(run.config for run in (seen, beside) if run is not None))
    if what is not None:
        st.caption(f"What to watch: {what}")
    if training.run.kept.thinned:
        st.caption(f"{training.run.kept.thinned}.")


def tests(training: Training, seen: Seen) -> None:
    """Draw what came of the forks with a head off before the birth;
    a button for the head that the story names.
    """
    tried = []
    for fork in my_trainings():
        on = None
        if fork.parent:
            on = find_training(fork.parent)
        origin = fork.run.origin
        if on is None or origin is None or training not in (on, fork):
            continue
        whole = seen if training is on else seen_of(on)
        off = seen if training is fork else seen_of(fork)
        born = whole.birth
        if born is None or len(origin.muted) != 1 or origin.step > whole.measures[born.before].step:
            continue
        if training is on:
            tried += list(origin.muted)
        st.markdown(
            story.tested(origin.muted[0], origin.step, off, whole, born, over=not fork.active)
        )
    born = seen.birth
    if born is None or born.previous is None:
        return
    head = (born.previous.block, born.previous.head)
    step = max(
        (kept for kept in seen.kept if kept <= seen.measures[born.before].step), default=None
    )
    if step is not None and head not in tried:
        label = f"Is head {head[0]}.{head[1]} needed? Train again from step {step:,} with it off"
        asked = training.number, step, (head,), training.config.steps
        sheet.button(label, "training_test", snapshot.fork_it, *asked, icon="fork_right")


# ---- its curves, and the way through its snapshots ----


def levels(run: live.LiveRun) -> list[figures.Level]:
    """The losses that mean something for the run's task."""
    if run.task.floor is None:
        floor = []
    else:
        floor = [figures.Level("what nobody can predict", run.task.floor)]
    return [
        figures.Level("a blind guess, ln V", run.task.ln_v),
        figures.Level("bigram", run.task.bigram),
        *floor,
    ]


def curves(training: Training, seen: Seen, beside: Seen | None, step: int) -> None:
    runs = [seen.curves] + ([beside.curves] if beside is not None and beside.measures else [])
    steps = max(one.status.steps for one in (seen, beside) if one is not None)
    frame.chart(
        figures.training_curves(runs, levels(training.run), step, steps, frame.mode),
        key="training_curves",
        which=(training.label.replace(" ", ""), f"step{step}"),
        alt="Loss and head scores, step by step: " + " and ".join(run.name for run in runs),
        pick=lambda point: choice.STEP.set(int(point["x"])),
    )


def slider(seen: Seen, step: int) -> None:
    """Through the snapshots. Its last place is the newest, whichever that is: there it is at first."""
    if len(seen.kept) < 2:
        return
    place = NEWEST if choice.STEP.value is None else step

    def choose(step: int | str) -> None:
        """Callback: this snapshot, or whichever is the newest."""
        choice.STEP.set(None if step == NEWEST else int(step))

    shown: dict[str, Any] = {"options": [*seen.kept, NEWEST], "value": place}
    placed(st.select_slider, f"Snapshot of step {step:,}", SLIDER, place, choose, **shown)


# ---- the page ----


def nothing_yet() -> None:
    """Draw a training that was recorded, what can be trained, and what it is about."""
    if choice.RUN.value is not None:
        st.info(
            "The run in this address is not here: it belongs to another browser, or it is gone with "
            "its visitor or its server. Train it again."
        )
    recording.film(frame)
    choice.presets(first="Train it yourself")
    choice.said()
    st.subheader("What does it learn from?", anchor=False)
    text = (
        "From random characters in which a passage repeats. The first time, nobody can predict them. "
        "The second time you can: look back and copy. An **induction head** learns exactly that. "
        "The model is the book's own `GPTModel`, and a small one: it learns while you watch."
    )
    words.prose(text, "induction head")
    probe = live.task_for(USUAL).probes[1]
    st.markdown(
        f"Here is one of its test texts: {probe.period} random characters, again and again."
    )
    st.html(snapshot.repeated(probe))
    with st.expander("Choose everything yourself", icon=":material/tune:"):
        choice.form()
    switches.draw(frame)
    with sheet.details():
        details(None, None)


def watching(mine: tuple[Training, ...]) -> None:
    """A run, and perhaps one beside it."""
    training, other = chosen(mine)
    choice.said()
    seen = seen_of(training)
    beside = None if other is None else seen_of(other)
    where = story.progress(seen.status, training.state, training.place, at_once())
    if training.shared:
        where += f" This run is shared: {1 + training.shared} people asked for it."
    st.caption(where)
    if training.said:
        st.error(f"{words.escaped(training.said)}.")
    if seen.measures:
        told(training, seen, beside)
        drawn(training, seen, other, beside)
    with sheet.details():
        details(training, seen)


def drawn(training: Training, seen: Seen, other: Training | None, beside: Seen | None) -> None:
    run = training.run
    step = seen.nearest(choice.STEP.value)
    if step is None or beside is None:
        near = None
    else:
        near = beside.nearest(step)
    left, right = st.columns([11, 9], gap="medium")
    with left:
        curves(training, seen, beside, seen.measures[-1].step if step is None else step)
        if step is not None:
            slider(seen, step)
    if step is None:
        return
    with right:
        place = snapshot.probe_input(run.task.probes)
        snapshot.grid(frame, run, seen, step, place, 0)
        if other is not None and beside is not None and near is not None:
            st.markdown(f"**{beside.name}**, step {near:,}")
            place = min(place, len(other.run.task.probes) - 1)
            snapshot.grid(frame, other.run, beside, near, place, 1)
    snapshot.large_head(frame, run, seen, step)
    st.subheader("What it writes", anchor=False)
    snapshot.sample(run, seen, step)
    if other and beside and near is not None and beside.config.task == seen.config.task:
        snapshot.sample(other.run, beside, near)
    left, right = st.columns(2, gap="large")
    with left:
        snapshot.fork(training, seen, step)
    with right:
        snapshot.take(training, step)


def details(training: Training | None, seen: Seen | None) -> None:
    config = USUAL if training is None else training.config
    if training is None:
        size = choice.vocabulary(config, "")
    else:
        size = training.run.task.vocab_size
    if training is not None and seen is not None and seen.measures:
        told = (
            "The mean training loss since the last row and the validation loss, in nats per token; the "
            "heads with the highest scores (block.head); and what the model wrote at that step."
        )
        sheet.numbers_of("training_curve", seen.table, told, "the curves")
        caption = "Each head's two scores at every point: its mean attention to the place such a head looks at."
        sheet.numbers_of("training_heads", seen.heads, caption, "every head")
        lines = pd.DataFrame(levels(training.run)).set_axis(["loss of", "nats per token"], axis=1)
        sheet.numbers_of("training_levels", lines, "In nats per token.", "the dashed lines")
    if training is None:
        recording.numbers()
    sheet.numbers_of(
        "training_tensors", lambda: tensor_table(config.gpt_config(size)), what="the model"
    )
    changed = {
        name: value for name, value in asdict(config).items() if value != getattr(USUAL, name)
    }
    text = None if training is None else training.run.text
    given: list[object] = []  # what the program passes on: no more than differs from the usual run
    if changed or text is not None:
        given.append(changed)
    if text is not None:
        given.append(text)
    sheet.code_of(frame, [TrainingRun.train, TrainingRun._one_step, live.train], train_one, *given)


mine = my_trainings()
if not mine:
    nothing_yet()
else:
    polling = any(training.active for training in mine)

    @st.fragment(run_every=EVERY_SECONDS if polling else None)
    def again() -> None:
        now = my_trainings()
        if not now or any(training.active for training in now) != polling:
            st.rerun()  # to look again by itself, or to leave that be
        watching(now)

    again()
    switches.draw(frame)
