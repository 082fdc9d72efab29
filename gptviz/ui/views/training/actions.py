"""What can be done with a run: pause, stop, remove it; with a snapshot: fork it, open it, take it home."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from gptviz.training.live import LIMITS, LiveRun, archive, model_files
from gptviz.ui.shell import state
from gptviz.ui.shell.navigation import page_target
from gptviz.ui.training import (
    Heads,
    Training,
    find_training,
    fork_training,
    open_elsewhere,
    remove_training,
)
from gptviz.ui.views.placed import moved, placed, touched
from gptviz.ui.views.training import choice, words
from gptviz.ui.views.training.choice import PROBE
from gptviz.ui.views.training.watched import Watched

MOST_STEPS = int(LIMITS["steps"][1])
_HEAD, _LAST = "training_fork_head", "training_fork_steps"
_OPENED = "training_opened"  # in the session: the name of the model that was opened


def controls(training: Training) -> None:
    """Pause, go on, stop, remove: in the row of the runs."""
    number, now = training.number, training.state
    if training.active:
        _button("Pause", "pause", _do, number, "pause", disabled=now == "starting")
        _button("Stop", "stop", _do, number, "stop")
    elif now in ("paused", "stopped", "killed"):
        _button("Go on", "play_arrow", _do, number, "resume")
    _button("Remove", "delete", _remove, number)


def _button(label: str, icon: str, action: Callable[..., None], *args: str, disabled: bool = False) -> None:
    st.button(
        label,
        key=f"training_{label.lower().replace(' ', '_')}",
        icon=f":material/{icon}:",
        on_click=action,
        args=args,
        disabled=disabled,
    )


def _do(number: str, what: str) -> None:
    training = find_training(number)
    if training is None:
        return
    choice.say(None)
    try:
        {"pause": training.pause, "stop": training.stop, "resume": training.resume}[what]()
    except ValueError as error:
        choice.say(str(error))


def _remove(number: str) -> None:
    remove_training(number)
    choice.look_at(None)
    choice.say(None)


def snapshot(training: Training, seen: Watched, step: int) -> None:
    """Fork and take away, for the snapshot that is looked at."""
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Fork", anchor=False)
        _fork(training, seen, step)
    with right:
        st.subheader("Take it with you", anchor=False)
        _take(training, step)


def _fork(training: Training, seen: Watched, step: int) -> None:
    st.markdown(words.fork(step))
    scores = {
        (block, head): score
        for block, row in enumerate(seen.at(step).induction)
        for head, score in enumerate(row)
        if (block, head) not in seen.config.muted
    }
    heads = [None, *scores]
    best = max(scores, key=scores.__getitem__, default=None)
    usual = max(training.config.steps, step + 200)
    wanted, last = touched(_HEAD, best), min(MOST_STEPS, max(step + 1, touched(_LAST, usual)))
    wanted = wanted if wanted in heads else best
    of_head, of_last = placed(_HEAD, wanted), placed(_LAST, last)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="training_fork"):
        head = st.selectbox(
            "Switch off",
            heads,
            index=heads.index(wanted),
            format_func=words.head_choice,
            key=of_head,
            on_change=moved,
            args=(_HEAD, of_head),
            width=330,
        )
        last = st.number_input(
            "Go on to step",
            min_value=step + 1,
            max_value=MOST_STEPS,
            value=last,
            step=100,
            key=of_last,
            on_change=moved,
            args=(_LAST, of_last),
            width=140,
        )
        st.button(
            "Fork",
            icon=":material/fork_right:",
            key="training_fork_go",
            on_click=fork_it,
            args=(training.number, step, () if head is None else (head,), int(last)),
        )


def fork_it(number: str, step: int, mute: Heads, steps: int) -> None:
    """Callback: a run of its own from this snapshot, beside the one that it comes from."""
    training = find_training(number)
    if training is None:
        return
    try:
        made = fork_training(training, step, mute, steps)
    except ValueError as error:
        choice.say(str(error))
        return
    choice.say(None)
    choice.look_at(made.number, number)


def _take(training: Training, step: int) -> None:
    why_not = training.config.why_not_elsewhere
    if why_not is not None:
        st.markdown(f"{why_not}.")
        return
    st.markdown(words.RELOAD)
    number = training.number
    with st.container(horizontal=True, gap="small", key="training_take"):
        opened = st.button(
            "Open it in the other pages",
            icon=":material/open_in_new:",
            key="training_open",
            on_click=_open,
            args=(number, step, PROBE.value),
        )
        for name, label in (("model.pth", "model.pth"), ("zip", "All three files")):
            st.download_button(
                label,
                data=partial(_content, training.run, step, name),
                file_name=f"{training.config.task}-step-{step}.zip" if name == "zip" else name,
                mime="application/zip" if name == "zip" else "application/octet-stream",
                icon=":material/download:",
                on_click="ignore",
                key=f"training_download_{name}",
            )
    if opened:
        st.rerun()  # the model belongs to the whole page
    name_of_it = st.session_state.get(_OPENED)
    if name_of_it is not None and name_of_it == state.current().model.name:
        st.success(words.OPENED)
        for page in ("attention", "overview"):
            st.page_link(page_target(page), query_params=state.link())


def _content(run: LiveRun, step: int, name: str) -> bytes:
    """A file of a snapshot, made when it is asked for: in a thread that knows no visitor."""
    files = model_files(run, step)
    return archive(files) if name == "zip" else files[name]


def _open(number: str, step: int, probe: int) -> None:
    training = find_training(number)
    if training is None:
        return
    try:
        name = open_elsewhere(training, step)
    except ValueError as error:
        choice.say(str(error))
        return
    st.session_state[_OPENED] = name
    state.change(
        model=state.current().model.named(name), text=training.run.task.probes[probe].text, token=None
    )
