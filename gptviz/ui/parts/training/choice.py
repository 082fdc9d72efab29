"""What is trained: the presets, and a form for everything; what is shown stands in the address."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from gptviz.analysis.tokens import chapter
from gptviz.training.live import ACTIVATIONS, LIMITS, SWITCHES, TASKS, LiveConfig
from gptviz.training.live.config import PRESETS, USUAL
from gptviz.training.live.tasks import SYMBOLS
from gptviz.ui.buttons import button
from gptviz.ui.shell import prompt, state
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.training.mine import my_trainings, start_training
from gptviz.ui.training.trainings import Training
from gptviz.ui.words import capital, counted, escaped, prose

T = TypeVar("T")

RUN: Param[str | None] = Param("training_run", str, None, if_there)
BESIDE: Param[str | None] = Param("training_beside", str, None, if_there)
STEP: Param[int | None] = Param("training_step", int, None)
PROBE = Param("training_probe", int, 1, if_there)
HEAD: Param[str | None] = Param("training_head", str, None, if_there)
QUERY: Param[int | None] = Param("training_query", int, None)
TASK = Param("tr_task", str, USUAL.task, if_there)
TASK_NAMES = {
    "repeats": "repeated random tokens",
    "chapter": "a chapter of Alice",
    "own": "your own text",
}

# name in LiveConfig -> label, what can be chosen (or how far a step of the number goes), help
FIELDS: dict[str, tuple[str, tuple[float, ...] | int, str]] = {
    "n_layers": ("Blocks", (1, 2, 3, 4), "How many blocks, one after the other."),
    "n_heads": (
        "Heads",
        (1, 2, 4, 8),
        "How many heads in each block; they share the width.",
    ),
    "emb_dim": ("Width", (16, 32, 64, 128), "How many numbers represent a token."),
    "context_length": ("Context", (16, 32, 64, 128), "How many tokens it reads at once."),
    "batch_size": ("Batch", (8, 16, 32, 64), "How many windows of text at each step."),
    "learning_rate": (
        "Learning rate",
        (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0),
        "How far each step goes. 0.003 is usual for a model of this size.",
    ),
    "dropout": (
        "Dropout",
        (0.0, 0.1, 0.2, 0.5),
        "The share of the numbers that is set to 0, at random, in each step.",
    ),
    "weight_decay": (
        "Weight decay",
        (0.0, 0.01, 0.1, 1.0),
        "How much each weight shrinks at each step, times the learning rate.",
    ),
    "steps": ("Steps", 100, "How many times all numbers of the model are updated."),
    "seed": (
        "Seed",
        1,
        "The same seed gives the same first weights, the same batches, and the same curve.",
    ),
}
SWITCHED = ("LayerNorm", "Shortcuts", "Positions", "Attention", "Feed-forward")
NUMBERS: dict[str, Param[Any]] = {
    name: Param(f"tr_{name}", type(usual), usual, between if isinstance(values, int) else if_there)
    for name, (_, values, _) in FIELDS.items()
    for usual in [getattr(USUAL, name)]
}
SWITCH = {name: Param(f"tr_{name}", bool, True) for name in SWITCHES}
ACTIVATION = Param("tr_activation", str, USUAL.activation, if_there)
PARAMS: tuple[Param[Any], ...] = (
    RUN, BESIDE, STEP, PROBE, HEAD, QUERY, TASK, ACTIVATION, *NUMBERS.values(), *SWITCH.values(),
)  # fmt: skip

FIRST = "birth"  # the story that a class must see
QUESTIONS = {
    "": (FIRST,),
    "What does an induction head need?": ("blocks", "norm", "shortcut", "positions"),
    "What does a setting change?": ("rate", "relu", "dropout"),
    "What does a model learn from a story?": ("chapter", "v2", "v3"),
}

NEW = "training_new"  # the window with all this, beside a run
_SAID = "training_said"  # in the session: why nothing was started
ALIVE = ("waiting", "starting", "training", "paused", "done")


def presets(first: str | None = None) -> None:
    """Draw a button for each preset, under the questions that they answer.

    `first` is what the first one is called where the page has just shown what comes of it.
    """
    with st.container(gap="small", key="training_presets"):
        for question, names in QUESTIONS.items():
            if question:
                st.markdown(f"**{question}**")
            with st.container(horizontal=True, gap="small"):
                for name in names:
                    preset = PRESETS[name]
                    label = preset.label
                    if name == FIRST and first is not None:
                        label = first
                    key = f"training_preset_{name}"
                    button(label, key, start, preset.runs, help=preset.watch)


def form() -> None:
    """Draw a form for everything, with the number of parameters that the model will have."""
    task = TASK.choose("Train on", {name: TASK_NAMES[name] for name in TASKS})
    prose(f"{TASKS[task].capitalize()}.")
    if task == "own":
        prompt.box()
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="training_sizes"
    ):
        for name, (label, values, help) in FIELDS.items():
            if isinstance(values, int):
                least, most = (int(limit) for limit in LIMITS[name])
                options = {"step": values, "width": 150, "help": help}
                NUMBERS[name].number(st.number_input, label, least, most, **options)
            else:
                NUMBERS[name].choose(label, values, st.selectbox, width=130, help=help)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="medium", key="training_switches"
    ):
        for switch, label in zip(SWITCH.values(), SWITCHED, strict=True):
            switch.widget(st.toggle, label)
        activation = ACTIVATION.choose("Activation of the feed-forward layer", ACTIVATIONS)
    chosen = LiveConfig(
        task=task,
        activation=activation,
        **{name: param.value for name, param in (NUMBERS | SWITCH).items()},
    )
    text = None
    if task == "own":
        text = state.TEXT.value
    size = vocabulary(chosen, text or "")
    tokens = chosen.steps * chosen.batch_size * chosen.context_length
    summary = f"**{chosen.parameters(size):,} parameters**: {counted(chosen.n_layers, 'block')} of "
    summary += f"{counted(chosen.n_heads, 'head')}, {chosen.emb_dim} wide, a vocabulary of {size:,} characters. "
    summary += (
        f"In {chosen.steps:,} steps of {chosen.batch_size} windows it reads {tokens:,} tokens."
    )
    prose(summary, "parameter", "block", "head")
    button("Train it", "training_start", start, (chosen,), text, icon="play_arrow", primary=True)


def vocabulary(config: LiveConfig, text: str) -> int:
    """The size of a task's vocabulary, without making its batches; `text` is a visitor's own."""
    return max(1, len(set({"repeats": SYMBOLS, "chapter": chapter(), "own": text}[config.task])))


def start(configs: tuple[LiveConfig, ...], text: str | None = None) -> None:
    """Callback: start these, or find them among the visitor's runs; show the first beside the second.

    A run with the same choices gives the same numbers to the bit: it is shown again instead.
    """
    say(None)
    trainings: list[Training] = []
    for config in configs:
        mine = [
            candidate
            for candidate in my_trainings()
            if candidate.config == config and candidate.run.origin is None
        ]
        same = [
            candidate for candidate in mine if config.task != "own" and candidate.state in ALIVE
        ]
        training = same[-1] if same else attempt(partial(start_training, config, text))
        if training is None:
            break
        trainings.append(training)
    if trainings:
        st.session_state[NEW] = False  # so that what was started is in sight
        look_at(*(training.number for training in trainings[:2]))


def look_at(number: str | None, beside: str | None = None) -> None:
    """Callback: show a run, and one beside it, at their newest snapshots."""
    RUN.set(number)
    BESIDE.set(beside)
    STEP.set(None)


def attempt(act: Callable[[], T]) -> T | None:
    """Call `act` and give its result; after a ValueError None, and the next rerun says why."""
    try:
        return act()
    except ValueError as error:
        say(str(error))
        return None


def say(sentence: str | None) -> None:
    """Say this above everything at the next run, and until something is started."""
    st.session_state[_SAID] = sentence


def said() -> None:
    """Draw why nothing was started, if there is a reason."""
    sentence = st.session_state.get(_SAID)
    with st.container():  # there also without one: else the form below moves, and shuts
        if sentence is not None:
            st.warning(f"{capital(escaped(sentence))}.")
