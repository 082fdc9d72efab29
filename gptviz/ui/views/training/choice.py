"""What is trained: the presets, and a form for everything; what is looked at stands in the address."""

from typing import Any

import streamlit as st

from gptviz.analysis.tokens import chapter
from gptviz.training.live import LIMITS, SWITCHES, TASKS, LiveConfig
from gptviz.training.live.tasks import SYMBOLS
from gptviz.ui.shell import prompt, state
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.training import Training, my_trainings, start_training
from gptviz.ui.views.training import words
from gptviz.ui.views.training.presets import PRESETS, USUAL

RUN: Param[str | None] = Param("training_run", str, None, if_there)
BESIDE: Param[str | None] = Param("training_beside", str, None, if_there)
STEP: Param[int | None] = Param("training_step", int, None)
PROBE = Param("training_probe", int, 1, if_there)
HEAD: Param[str | None] = Param("training_head", str, None, if_there)
QUERY: Param[int | None] = Param("training_query", int, None)

TASK = Param("tr_task", str, USUAL.task, if_there)
CHOICES = {
    "n_layers": (1, 2, 3, 4),
    "n_heads": (1, 2, 4, 8),
    "emb_dim": (16, 32, 64, 128),
    "context_length": (16, 32, 64, 128),
    "batch_size": (8, 16, 32, 64),
    "learning_rate": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0),
}
SIZES = {
    name: Param(f"tr_{name}", type(values[0]), getattr(USUAL, name), if_there)
    for name, values in CHOICES.items()
}
NUMBERS = {name: Param(f"tr_{name}", int, getattr(USUAL, name), between) for name in ("steps", "seed")}
SWITCH = {name: Param(f"tr_{name}", bool, True) for name in SWITCHES}
PARAMS: tuple[Param[Any], ...] = (
    RUN,
    BESIDE,
    STEP,
    PROBE,
    HEAD,
    QUERY,
    TASK,
    *SIZES.values(),
    *NUMBERS.values(),
    *SWITCH.values(),
)

_SAID = "training_said"  # in the session: why nothing was started

ALIVE = ("waiting", "starting", "training", "paused", "done")


def presets(primary: bool) -> None:
    """A button each; the first is the story that a class must see."""
    with st.container(horizontal=True, gap="small", key="training_presets"):
        for number, (name, preset) in enumerate(PRESETS.items()):
            st.button(
                preset.label,
                key=f"training_preset_{name}",
                type="primary" if primary and number == 0 else "secondary",
                help=preset.watch,
                on_click=start,
                args=(preset.runs,),
            )


def form() -> None:
    """Everything by hand, with the parameters that the model will have."""
    TASK.within(tuple(TASKS))
    task = TASK.widget(
        st.segmented_control,
        "It learns",
        options=list(TASKS),
        format_func=words.TASK_NAMES.__getitem__,
        required=True,
    )
    prose(f"{TASKS[task].capitalize()}.")
    if task == "own":
        prompt.box()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="training_sizes"):
        for name, param in SIZES.items():
            param.within(CHOICES[name])
            param.widget(
                st.selectbox, words.FIELDS[name], options=CHOICES[name], width=130, help=words.HELP[name]
            )
        for name, number in NUMBERS.items():
            least, most = (int(limit) for limit in LIMITS[name])
            number.within((least, most))
            number.widget(
                st.number_input,
                words.FIELDS[name],
                min_value=least,
                max_value=most,
                step=100 if name == "steps" else 1,
                width=150,
                help=words.HELP[name],
            )
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="training_switches"):
        for name, switch in SWITCH.items():
            switch.widget(st.toggle, words.FIELDS[name])
    config = chosen()
    text = state.current().text if task == "own" else None
    size = vocabulary(config, text or "")
    prose(words.parameters(config.parameters(size), size, config), "parameter", "block", "head")
    st.button(
        "Train it",
        key="training_start",
        type="primary",
        icon=":material/play_arrow:",
        on_click=start,
        args=((config,), text),
    )


def chosen() -> LiveConfig:
    """The form's config."""
    values = {name: param.value for name, param in (*SIZES.items(), *NUMBERS.items(), *SWITCH.items())}
    return LiveConfig(task=TASK.value, **values)


def vocabulary(config: LiveConfig, text: str) -> int:
    """How many tokens a task has, without making its batches."""
    known = {"repeats": SYMBOLS, "chapter": chapter(), "own": text}[config.task]
    return max(1, len(set(known)))


def start(configs: tuple[LiveConfig, ...], text: str | None = None) -> None:
    """Callback: start these, or find them among the visitor's runs; look at the first, beside the second.

    A run with the same choices is the same run to the bit: it is shown again instead.
    """
    st.session_state.pop(_SAID, None)
    found: list[Training] = []
    for config in configs:
        same = [
            training
            for training in my_trainings()
            if training.config == config and config.task != "own" and training.state in ALIVE
            if training.run.origin is None
        ]
        try:
            found.append(same[-1] if same else start_training(config, text))
        except ValueError as error:
            st.session_state[_SAID] = str(error)
            break
    if found:
        look_at(found[0].number, found[1].number if len(found) > 1 else None)


def look_at(number: str | None, beside: str | None = None) -> None:
    """Callback: a run, and one beside it, at their newest snapshots."""
    RUN.set(number)
    BESIDE.set(beside)
    STEP.set(None)


def say(sentence: str | None) -> None:
    """What is to be said above everything at the next run, and until something is started."""
    if sentence is None:
        st.session_state.pop(_SAID, None)
    else:
        st.session_state[_SAID] = sentence


def said() -> str | None:
    found: str | None = st.session_state.get(_SAID)
    return found
