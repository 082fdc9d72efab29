"""A snapshot: what its heads look at and what it writes; fork it, open it elsewhere, take it home."""

import html
from functools import partial
from typing import Any

import streamlit as st

from gptviz.digits import fixed
from gptviz.figures.head_grid import thumbnails
from gptviz.tokenizer import show_token
from gptviz.training.live import LIMITS, LiveRun, Probe, archive, model_files
from gptviz.training.live.seen import Seen
from gptviz.ui.buttons import button
from gptviz.ui.components.heads import Thumbnail, head_grid
from gptviz.ui.components.matrix import attention_panel, matrix
from gptviz.ui.parts.training.choice import HEAD, PROBE, QUERY, attempt, look_at, say
from gptviz.ui.shell import state
from gptviz.ui.shell.navigation import link
from gptviz.ui.shell.placed import placed, touched
from gptviz.ui.shell.scene import Frame
from gptviz.ui.training.mine import find_training, fork_training, name_of, open_elsewhere
from gptviz.ui.training.trainings import Heads, Training

MOST_STEPS = int(LIMITS["steps"][1])
_HEAD = "training_fork_head"
_LAST = "training_fork_steps"
_OPENED = "training_opened"  # in the session: the name of the model that was opened

# ---- its heads, on a fixed probe ----


def probe_input(probes: tuple[Probe, ...]) -> int:
    """Draw which text the heads are shown on; return its place."""
    names = ["text" if probe.period is None else f"{probe.period} repeated" for probe in probes]
    return int(PROBE.choose("Show the heads on this test text", dict(enumerate(names))))


def grid(scene: Frame, run: LiveRun, seen: Seen, step: int, place: int, number: int) -> None:
    """Draw every head of a run at this step, small."""
    picture, side = thumbnails(run.attention(step)[place], scene.mode)  # of (L, H, T, T)
    measured = seen.at(step)
    off = seen.config.off

    def thumbnail(block: int, head: int) -> Thumbnail:
        induction = measured.induction[block][head]
        previous = measured.previous_token[block][head]
        says = f"Induction score {fixed(induction, 3)}, previous-token score {fixed(previous, 3)}."
        if (block, head) in off:
            says = f"Switched off during training: nothing uses what it finds. {says}"
            return Thumbnail(kind="off", label="off", says=says, write=0.0)
        if induction >= previous:
            name = "induction"
            score = induction
        else:
            name = "previous"
            score = previous
        if score < 0.15:
            label = "–"
        else:
            label = f"{name} {fixed(score, 2)}"
        return Thumbnail(kind="head", label=label, says=says, write=0.0)

    title = f"{seen.name}, all heads after step {step}"
    head_grid(
        picture,
        side,
        [
            [thumbnail(b, h) for h in range(seen.config.n_heads)]
            for b in range(seen.config.n_layers)
        ],
        chosen_head(seen, step),
        lambda block, head: HEAD.set(f"{block}.{head}"),
        key=f"training_grid_{number}",
        saved=scene.saved("training_heads", title, f"run{number}", f"step{step}"),
    )


def chosen_head(seen: Seen, step: int) -> tuple[int, int]:
    """The head that was clicked, if this run has it; else the best induction head of this step."""
    heads = {
        f"{b}.{h}": (b, h) for b in range(seen.config.n_layers) for h in range(seen.config.n_heads)
    }
    return heads.get(HEAD.value or "", seen.at(step).best_induction[1:])


def large_head(scene: Frame, run: LiveRun, seen: Seen, step: int) -> None:
    """Draw the chosen head, large."""
    block, head = chosen_head(seen, step)
    probe = run.task.probes[PROBE.value]
    measured = seen.at(step)
    st.subheader(f"Block {block}, head {head}", anchor=False)
    looks = "The test text is ordinary text."
    if (period := probe.period) is not None:
        looks = f"The passage repeats every {period} tokens: an induction head draws a line "
        looks += (
            f"{period - 1} places left of the diagonal, a previous-token head one place left of it."
        )
    st.markdown(
        f"Scores after step {step:,}: induction {fixed(measured.induction[block][head], 2)}, previous token "
        f"{fixed(measured.previous_token[block][head], 2)}. {looks}"
    )
    tokens = [show_token(character.encode()) for character in probe.text]
    query = min(len(tokens) - 1, len(tokens) - 1 if QUERY.value is None else QUERY.value)
    weights = run.attention(step)[PROBE.value, block, head]  # (T, T)
    title = f"{seen.name}, block {block}, head {head}"
    matrix(
        "training_head",
        [attention_panel()],
        {"weights": weights},
        tokens,
        query,
        int(weights[query].argmax()),
        lambda query, _: None if query is None else QUERY.set(query),
        saved=scene.saved("training_head", title, f"step{step}", f"head{block}.{head}"),
    )


def repeated(probe: Probe) -> str:
    """A probe's text as HTML, every second passage on a ground of its own."""
    period = probe.period or len(probe.text)
    spans = []
    for start in range(0, len(probe.text), period):
        style = ""
        if start // period % 2:
            style = "background: rgba(128, 100, 200, 0.22); border-radius: 4px"
        passage = html.escape(probe.text[start : start + period])
        spans.append(f'<span style="{style}">{passage}</span>')
    return (
        '<p data-testid="training-probe" style="font-family: monospace; font-size: 1.25rem; margin: 0; '
        f'white-space: pre-wrap; overflow-wrap: anywhere">{"".join(spans)}</p>'
    )


def sample(run: LiveRun, seen: Seen, step: int) -> None:
    """Draw what the model writes after the task's prompt at this step, and how much of it is right."""
    written = seen.at(step).sample
    task = run.task
    st.caption(f"{seen.name}, step {step:,}")
    st.html(
        '<p data-testid="training-sample" style="white-space: pre-wrap; font-family: monospace; margin: 0; '
        f'overflow-wrap: anywhere">{html.escape(task.prompt)}<b>{html.escape(written)}</b></p>'
    )
    probe = task.probes[min(1, len(task.probes) - 1)]
    if task.floor is not None and probe.period is not None:  # then there is one right answer
        start = len(task.prompt)
        right = sum(a == probe.text[(start + i) % probe.period] for i, a in enumerate(written))
        st.caption(f"{right} of these {len(written)} tokens continue the passage correctly.")


# ---- fork it ----


def fork(training: Training, seen: Seen, step: int) -> None:
    st.subheader("Fork", anchor=False)
    if step >= MOST_STEPS:
        st.markdown(f"A run has at most {MOST_STEPS:,} steps, all of them before this snapshot.")
        return
    st.markdown(
        f"Go back to step {step:,}, switch off a head, and continue with exactly the same batches."
    )
    induction = {
        (b, h): score
        for b, row in enumerate(seen.at(step).induction)
        for h, score in enumerate(row)
    }
    heads = [head for head in induction if head not in seen.config.off]
    best = max(heads, key=induction.__getitem__, default=None)
    wanted = touched(_HEAD, best)
    usual = max(training.config.steps, step + 200)
    if wanted not in (None, *heads):
        wanted = best
    last_step = min(MOST_STEPS, max(step + 1, touched(_LAST, usual)))
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="training_fork"
    ):
        offered: list[tuple[int, int] | None] = [None, *heads]
        options: Any = {"options": offered, "index": offered.index(wanted), "width": 330}
        options["format_func"] = lambda pair: (
            "none" if pair is None else f"block {pair[0]}, head {pair[1]}"
        )
        head = placed(st.selectbox, "Switch off", _HEAD, wanted, **options)
        limits: dict[str, Any] = {
            "min_value": step + 1,
            "max_value": MOST_STEPS,
            "step": 100,
            "width": 140,
        }
        last_step = placed(
            st.number_input, "Go on to step", _LAST, last_step, value=last_step, **limits
        )
        arguments = (training.number, step, () if head is None else (head,), int(last_step))
        button("Fork", "training_fork_go", fork_it, *arguments, icon="fork_right")


def fork_it(number: str, step: int, mute: Heads, steps: int) -> None:
    """Callback: start a run from this snapshot, and show it beside the run that it comes from."""
    training = find_training(number)
    if training is not None and (
        forked := attempt(lambda: fork_training(training, step, mute, steps))
    ):
        look_at(forked.number, number)
        say(None)


# ---- take it away ----


def take(training: Training, step: int) -> None:
    st.subheader("Take it with you", anchor=False)
    why_not = training.config.why_not_elsewhere
    if why_not is not None:
        st.markdown(f"{why_not}.")
        return
    st.markdown(
        "`model.pth` is what the book saves: `torch.save(model.state_dict(), ...)`. Open all three files "
        "again under *More models*, or their folder with `gptviz.load`."
    )
    with st.container(horizontal=True, gap="small", key="training_take"):
        label = "Open it in the other pages"
        arguments = (training.number, step, PROBE.value)
        opened = button(label, "training_open", _open, *arguments, icon="open_in_new")
        for name, label in (("model.pth", "model.pth"), ("zip", "All three files")):
            st.download_button(
                label,
                data=partial(_content, training.run, step, name),
                file_name=f"{name_of(training, step)}.zip" if name == "zip" else name,
                mime="application/zip" if name == "zip" else "application/octet-stream",
                icon=":material/download:",
                on_click="ignore",
                key=f"training_download_{name}",
            )
    if opened:
        st.rerun()  # the model belongs to the whole page
    if st.session_state.get(_OPENED) == state.model().name:
        st.success(
            "All pages now show this model, with the test text as their prompt. Go back in the sidebar."
        )
        for page in ("attention", "overview"):
            link(page, state.link())


def _content(run: LiveRun, step: int, name: str) -> bytes:
    """A file of a snapshot, made when it is asked for, in a thread without a session."""
    files = model_files(run, step)
    if name == "zip":
        return archive(files)
    return files[name]


def _open(number: str, step: int, probe: int) -> None:
    training = find_training(number)
    if training is not None and (name := attempt(lambda: open_elsewhere(training, step))):
        st.session_state[_OPENED] = name
        state.choose_model(state.model().named(name))
        state.change(text=training.run.task.probes[probe].text, token=None)
