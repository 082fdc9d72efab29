"""What the heads of a snapshot look at on a fixed probe: all of them small, one large; and what it writes."""

import html

import streamlit as st

from gptviz.figures.head_grid import thumbnails
from gptviz.tokenizer import show_token
from gptviz.training.live import Probe, task_for
from gptviz.ui.components.heads import Thumbnail, head_grid
from gptviz.ui.components.matrix import attention_panel, matrix
from gptviz.ui.shell.scene import Frame
from gptviz.ui.training import Training
from gptviz.ui.views.training import words
from gptviz.ui.views.training.choice import HEAD, PROBE, QUERY
from gptviz.ui.views.training.presets import USUAL
from gptviz.ui.views.training.watched import Watched


def draw_all(
    scene: Frame, training: Training, seen: Watched, other: Training | None, beside: Watched | None, step: int
) -> None:
    """Every head of the run at this step, and of the one beside it at its nearest."""
    probes = training.run.task.probes
    PROBE.within(len(probes))
    place = PROBE.widget(
        st.segmented_control,
        "Every head on a fixed probe",
        options=range(len(probes)),
        format_func=lambda i: _short(probes[i]),
        required=True,
    )
    _grid(scene, training, seen, step, int(place), 0)
    near = None if beside is None else beside.nearest(step)
    if other is not None and beside is not None and near is not None:
        st.markdown(f"**{beside.name}**, step {near:,}")
        _grid(scene, other, beside, near, min(int(place), len(other.run.task.probes) - 1), 1)


def draw_one(scene: Frame, training: Training, seen: Watched, step: int) -> None:
    """The chosen head, large; at first the one with the highest induction score."""
    block, head = _chosen(seen, step)
    probe = training.run.task.probes[PROBE.value]
    measured = seen.at(step)
    induction, previous = measured.induction[block][head], measured.previous_token[block][head]
    st.subheader(f"Block {block}, head {head}", anchor=False)
    st.markdown(words.large(block, head, step, probe.period, induction, previous))
    tokens = [show_token(character.encode()) for character in probe.text]
    query = min(len(tokens) - 1, len(tokens) - 1 if QUERY.value is None else QUERY.value)
    weights = training.run.attention(step)[PROBE.value, block, head]  # (T, T)
    matrix(
        "training_head",
        [attention_panel()],
        {"weights": weights},
        tokens,
        query,
        int(weights[query].argmax()),
        scene.mode,
        lambda query, _: None if query is None else QUERY.set(query),
        saved=scene.saved(
            "training_head", f"{seen.name}, block {block}, head {head}", f"step{step}", f"head{block}.{head}"
        ),
    )


def samples(training: Training, seen: Watched, beside: Watched | None, step: int) -> None:
    """What the model writes after the task's prompt at this step."""
    prompt = training.run.task.prompt
    st.subheader("What it writes", anchor=False)
    rows = [(seen.name, seen, step)]
    near = None if beside is None else beside.nearest(step)
    if beside is not None and near is not None and beside.config.task == seen.config.task:
        rows.append((beside.name, beside, near))
    for name, one, at in rows:
        written = one.at(at).sample
        st.caption(f"{name}, step {at:,}")
        st.html(
            '<p data-testid="training-sample" style="white-space: pre-wrap; font-family: monospace; '
            "margin: 0; "
            f'overflow-wrap: anywhere">{html.escape(prompt)}<b>{html.escape(written)}</b></p>'
        )
        right = _right(training, written)
        if right is not None:
            st.caption(words.right(*right))


def example() -> Probe:
    """A probe of the usual run, to be shown before there is a run."""
    return task_for(USUAL).probes[1]


def repeated(probe: Probe) -> str:
    """A probe's text as HTML, every second passage on a ground of its own."""
    period = probe.period or len(probe.text)
    parts = [probe.text[i : i + period] for i in range(0, len(probe.text), period)]
    spans = "".join(
        f'<span style="{"background: rgba(128, 100, 200, 0.22); border-radius: 4px" if i % 2 else ""}">'
        f"{html.escape(part)}</span>"
        for i, part in enumerate(parts)
    )
    return (
        '<p data-testid="training-probe" style="font-family: monospace; font-size: 1.25rem; margin: 0; '
        f'white-space: pre-wrap; overflow-wrap: anywhere">{spans}</p>'
    )


def _right(training: Training, written: str) -> tuple[int, int] | None:
    """(how many tokens go on with the passage, of how many); None where there is no one right answer."""
    task = training.run.task
    probe = task.probes[min(1, len(task.probes) - 1)]
    if task.floor is None or probe.period is None:
        return None
    passage, start = probe.text[: probe.period], len(task.prompt)
    wanted = [passage[(start + i) % len(passage)] for i in range(len(written))]
    return sum(a == b for a, b in zip(written, wanted, strict=True)), len(written)


def _grid(scene: Frame, training: Training, seen: Watched, step: int, place: int, number: int) -> None:
    attention = training.run.attention(step)[place]  # (L, H, T, T)
    picture, side = thumbnails(attention, scene.mode)
    measured, off = seen.at(step), seen.config.muted
    roles = [
        [
            Thumbnail(
                kind="off" if (block, head) in off else "head",
                label=words.head_label(induction, previous, (block, head) in off),
                says=words.head_says(induction, previous, (block, head) in off),
                write=0.0,
            )
            for head, (induction, previous) in enumerate(zip(*row, strict=True))
        ]
        for block, row in enumerate(zip(measured.induction, measured.previous_token, strict=True))
    ]
    head_grid(
        picture,
        side,
        roles,
        _chosen(seen, step),
        scene.mode,
        lambda block, head: HEAD.set(f"{block}.{head}"),
        key=f"training_grid_{number}",
        saved=scene.saved(
            "training_heads", f"{seen.name}, all heads after step {step}", f"run{number}", f"step{step}"
        ),
    )


def _chosen(seen: Watched, step: int) -> tuple[int, int]:
    """The head that somebody clicked, where this run has it; else the best induction head of this step."""
    found = HEAD.value
    names = {
        f"{block}.{head}": (block, head)
        for block in range(seen.config.n_layers)
        for head in range(seen.config.n_heads)
    }
    if found in names:
        return names[found]
    _, block, head = seen.at(step).best_induction
    return block, head


def _short(probe: Probe) -> str:
    return "text" if probe.period is None else f"{probe.period} repeated"
