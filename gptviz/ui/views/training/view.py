"""A small GPT that learns while one watches: its story, its curves and heads, its snapshots, its forks."""

import streamlit as st

from gptviz.analysis.anatomy import anatomy, tensor_table
from gptviz.figures.training import training_curves
from gptviz.training.live import train
from gptviz.training.loop import TrainingRun
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Frame
from gptviz.ui.training import Training, at_once, find_training, my_trainings
from gptviz.ui.views.placed import moved, placed
from gptviz.ui.views.training import actions, choice, heads, words
from gptviz.ui.views.training.choice import BESIDE, RUN, STEP
from gptviz.ui.views.training.presets import USUAL, named, watch
from gptviz.ui.views.training.snippet import train_one
from gptviz.ui.views.training.watched import Watched, levels, levels_table, watched

PARAMS = choice.PARAMS
EVERY_SECONDS = 1.5  # between two looks at a run that trains


def draw(scene: Frame) -> None:
    """The page under its title."""
    mine = my_trainings()
    if not mine:
        _nothing_yet()
        return
    polling = any(training.active for training in mine)

    @st.fragment(run_every=EVERY_SECONDS if polling else None)
    def watching() -> None:
        now = my_trainings()
        if not now or any(training.active for training in now) != polling:
            st.rerun()  # to look again by itself, or to leave that be
        _watching(scene, now)

    watching()


def _nothing_yet() -> None:
    """What can be trained, and what it is about."""
    prose(words.INTRO, "token", "head", "induction head", "snapshot")
    choice.presets(primary=True)
    _said()
    probe = heads.example()
    st.markdown(words.PROBE)
    st.html(heads.repeated(probe))
    with st.expander("Choose everything yourself", icon=":material/tune:"):
        choice.form()
    _details(None, None)


def _said() -> None:
    """Why nothing was started, where that was so."""
    sentence = choice.said()
    if sentence is not None:
        st.warning(sentence[:1].upper() + sentence[1:] + ".")


# ---- a run, and perhaps one beside it ----


def _watching(scene: Frame, mine: tuple[Training, ...]) -> None:
    training, other = _chosen(mine)
    _said()
    seen = watched(training)
    beside = None if other is None else watched(other)
    st.caption(words.progress(seen.status, seen.state, training.place, at_once()))
    if seen.said:
        st.error(f"{seen.said}.")
    if not seen.measures:
        _details(seen, training)
        return
    _story(training, seen, beside)
    step = _step(seen)
    left, right = st.columns([11, 9], gap="medium")
    with left:
        _curves(scene, training, seen, beside, seen.measures[-1].step if step is None else step)
        if step is not None:
            _slider(seen, step)
    if step is not None:
        with right:
            heads.draw_all(scene, training, seen, other, beside, step)
        heads.draw_one(scene, training, seen, step)
        heads.samples(training, seen, beside, step)
        actions.snapshot(training, seen, step)
    _details(seen, training)


def _chosen(mine: tuple[Training, ...]) -> tuple[Training, Training | None]:
    """The run that is looked at, and the one beside it: of this visitor's, and not the same."""
    names = {training.number: f"{training.label}: {named(training.config)}" for training in mine}
    RUN.within(list(names))
    if RUN.value is None:
        RUN.set(mine[-1].number)
    BESIDE.within([number for number in names if number != RUN.value])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="training_runs"):
        with st.popover("New run", icon=":material/add:", width="content"):
            choice.presets(primary=False)
            choice.form()
        number = RUN.widget(
            st.selectbox,
            "Run",
            options=list(names),
            format_func=names.__getitem__,
            width=210,
            label_visibility="collapsed",
        )
        others = [other for other in names if other != number]
        if others:
            BESIDE.widget(
                st.selectbox,
                "Beside it",
                options=others,
                format_func=names.__getitem__,
                index=None,
                placeholder="beside it: none",
                width=210,
                label_visibility="collapsed",
            )
        training = (find_training(number) if number else None) or mine[-1]
        actions.controls(training)
    other = find_training(BESIDE.value) if BESIDE.value and BESIDE.value != number else None
    return training, other


def _story(training: Training, seen: Watched, beside: Watched | None) -> None:
    task = training.run.task
    if training.run.origin is not None:
        st.markdown(words.forked(training.run.origin.step, training.run.origin.muted))
    if task.floor is not None:
        over = not training.active
        said = words.repeats(seen.measures, seen.birth, task.ln_v, task.floor, seen.config, over)
    else:
        said = words.characters(seen.measures, task.ln_v, task.bigram)
    if beside is not None and beside.measures:
        said += " " + words.beside(beside.name, beside.measures[-1])
    prose(said, "induction head", "head", "block", "token")
    if task.floor is not None:
        _tests(training, seen)
    told = watch(*(run.config for run in (seen, beside) if run is not None))
    if told is not None:
        st.caption(f"What to watch: {told}")
    if training.run.thinned:
        st.caption(f"{training.run.thinned}.")


def _tests(training: Training, seen: Watched) -> None:
    """What came of the forks with a head off before the birth; a button for the head that the story names."""
    tried = []
    for fork in my_trainings():
        on = find_training(fork.parent) if fork.parent else None
        if on is None or fork.run.origin is None or training not in (on, fork):
            continue
        origin, whole = fork.run.origin, seen if training is on else watched(on)
        born, off = whole.birth, seen if training is fork else watched(fork)
        if born is None or len(origin.muted) != 1 or origin.step > whole.measures[born.before].step:
            continue
        tried += list(origin.muted) if training is on else []
        said = (off.name, off.measures, off.birth), (whole.name, whole.measures, born)
        st.markdown(words.tested(origin.muted[0], origin.step, *said, over=not fork.active))
    born = seen.birth
    if born is None or born.previous is None:
        return
    head = (born.previous.block, born.previous.head)
    step = max((kept for kept in seen.kept if kept <= seen.measures[born.before].step), default=None)
    if step is not None and head not in tried:
        st.button(
            words.test_it(head, step),
            key="training_test",
            icon=":material/fork_right:",
            on_click=actions.fork_it,
            args=(training.number, step, (head,), training.config.steps),
        )


def _step(seen: Watched) -> int | None:
    """The snapshot that is looked at: the one that was chosen, or the newest; None while there is none."""
    return seen.nearest(STEP.value)


def _curves(scene: Frame, training: Training, seen: Watched, beside: Watched | None, step: int) -> None:
    runs = [seen.curves] + ([beside.curves] if beside is not None and beside.measures else [])
    steps = max([seen.status.steps] + ([beside.status.steps] if beside is not None else []))
    scene.chart(
        training_curves(runs, levels(training), step, steps, scene.mode),
        key="training_curves",
        which=(seen.name.split(":")[0].replace(" ", ""), f"step{step}"),
        alt="Loss and head scores, step by step: " + " and ".join(run.name for run in runs),
        on_select=_pick_step,
    )


def _pick_step() -> None:
    """A click on a point of a curve chooses its step."""
    points = st.session_state["training_curves"].selection.points
    if points:
        STEP.set(int(points[0]["x"]))


_SLIDER, NEWEST = "training_slider", "newest"


def _slider(seen: Watched, step: int) -> None:
    """Through the snapshots. Its last place is the newest, whichever that is: there it is at first."""
    if len(seen.kept) < 2:
        return
    place = NEWEST if STEP.value is None else step
    key = placed(_SLIDER, place)
    st.select_slider(
        words.slider(step),
        options=[*seen.kept, NEWEST],
        value=place,
        key=key,
        on_change=moved,
        args=(_SLIDER, key, lambda step: STEP.set(None if step == NEWEST else int(step))),
    )


# ---- details ----


def _details(seen: Watched | None, training: Training | None) -> None:
    config = USUAL if seen is None else seen.config
    size = choice.vocabulary(config, "") if seen is None else seen.vocabulary
    if seen is not None and training is not None and seen.measures:
        in_numbers(seen.table, "training_curve", words.CURVES, "the curves")
        in_numbers(seen.heads, "training_heads", words.HEADS, "every head")
        in_numbers(lambda: levels_table(training), "training_levels", words.LEVELS, "the dashed lines")
    in_numbers(
        lambda: tensor_table(anatomy(config.gpt_config(size))),
        "training_tensors",
        words.TENSORS,
        "the model",
    )
    changed = {name: value for name, value in config.to_dict().items() if value != USUAL.to_dict()[name]}
    in_code(
        [TrainingRun.train, TrainingRun._one_step, train],
        program(train_one, changes=changed or None, text=None if seen is None else seen.text),
    )
