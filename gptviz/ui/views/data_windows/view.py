"""Windows that slide over a text: inputs, targets, batches, and the examples in each window."""

import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.next_token import surprises
from gptviz.figures.windows import times_target
from gptviz.lessons.windows import Windows, examples
from gptviz.training.datasets import GPTDatasetV1
from gptviz.ui import runs
from gptviz.ui.components.windows import draw_windows
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.tables import STYLE
from gptviz.ui.views.both import both, caption
from gptviz.ui.views.data_windows import text, words
from gptviz.ui.views.data_windows.snippet import batch
from gptviz.ui.views.data_windows.tables import SHOWN, examples_table
from gptviz.ui.views.data_windows.text import CutText

LONGEST, LARGEST_STRIDE, LARGEST_BATCH = 1024, 1024, 64
MOST_PIXELS = 330  # of a batch as it is printed

SOURCE = Param("dw_text", str, "prompt", if_there)
LENGTH = Param("dw_length", int, 4, between)
STRIDE = Param("dw_stride", int, 1, between)
BATCH = Param("dw_batch", int, 8, between)
DROP = Param("dw_drop", bool, True)
WINDOW = Param("dw_window", int, 0, between)
PARAMS = (SOURCE, LENGTH, STRIDE, BATCH, DROP, WINDOW)


@per_run
def losses(run: Run, token: int) -> pd.DataFrame:
    """What a pass over a window's inputs loses at each target, a row each; the last target is `token`."""
    head = runs.model(run).model.out_head.weight.detach()
    found = surprises(runs.get(run, ("final",))["final"], head, [*run.ids, token])
    return found.iloc[1:].reset_index(drop=True)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    st.html(STYLE)
    sentences = st.container()
    cut, windows = _controls(scene)
    with sentences:
        prose(words.what_to_see(windows), "token", "vocabulary")
    if len(windows):
        WINDOW.within((0, len(windows) - 1))

    @st.fragment
    def slide() -> None:
        """The window under the slider, its batch, its examples, and what is said of it on demand."""
        if len(windows):
            _slide(scene, cut, windows)
        _details(scene, cut, windows)

    slide()


def _controls(scene: Scene) -> tuple[CutText, Windows]:
    """Which text, and how it is cut."""
    offered = text.sources(scene.lm)
    SOURCE.within(offered)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="dw_controls"):
        source = SOURCE.widget(
            st.segmented_control, "Text", options=offered, format_func=text.SOURCES.__getitem__, required=True
        )
        cut = text.find(scene, source)
        longest = max(1, min(LONGEST, len(cut.ids) - 1))
        length = _number(LENGTH, "max_length", longest, "How many tokens a window holds.")
        stride = _number(STRIDE, "stride", LARGEST_STRIDE, "How many tokens further on the next one begins.")
        batch = _number(BATCH, "batch_size", LARGEST_BATCH, "How many windows are learned from at once.")
        drop = DROP.widget(
            st.toggle, "drop_last", help="Leave the last windows out where they do not fill a batch."
        )
    return cut, Windows(cut.ids, length, stride, batch, drop)


def _number(param: Param[int], label: str, largest: int, help: str) -> int:
    param.within((1, largest))
    chosen = param.widget(
        st.number_input, label, min_value=1, max_value=largest, step=1, help=help, width=130
    )
    return param.default if chosen is None else int(chosen)


# ---- what moves with the window ----


def _slide(scene: Scene, cut: CutText, windows: Windows) -> None:
    number = WINDOW.value
    if len(windows) > 1:
        number = WINDOW.widget(
            st.slider, "Slide the window", min_value=0, max_value=len(windows) - 1, step=1, width="stretch"
        )
    members = number // windows.batch_size
    _windows(scene, cut, windows, number, members)
    prose(words.overlap(windows))
    prose(words.batches(windows))
    _matrices(cut, windows, members)
    _examples(scene, cut, windows, number)


def _windows(scene: Scene, cut: CutText, windows: Windows, number: int, batch: int) -> None:
    starts = [(i, windows.dataset.starts[i]) for i in windows.members(batch)]
    first, last = starts[0][1], starts[-1][1] + windows.max_length
    draw_windows(
        cut.labels(range(first, last + 1)),
        first,
        starts,
        windows.max_length,
        number,
        scene.mode,
        WINDOW.set,
        dropped=windows.used,
        saved=scene.saved(
            "data_windows",
            f"Windows of {windows.max_length} tokens, {windows.stride} apart; targets of window {number}",
            f"window{number}",
        ),
    )


def _matrices(cut: CutText, windows: Windows, batch: int) -> None:
    """One batch as PyTorch prints it."""
    st.subheader(words.batch_title(windows, batch), anchor=False)
    inputs, targets = windows.batch(batch)
    for column, name, tensor in zip(st.columns(2), ("Input", "Target"), (inputs, targets), strict=True):
        with column:
            st.markdown(f"**{name}**, {tensor.shape[0]} × {tensor.shape[1]}")
            written = str(tensor)
            st.code(written, language=None, height=MOST_PIXELS if written.count("\n") >= 12 else "content")
    st.caption(words.printed(SOURCE.value, windows, batch, cut.encoding.name))


def _found(
    scene: Scene, cut: CutText, windows: Windows, number: int
) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """The model's losses on the window, where it can read it, and those of the unchanged one, where it is
    another."""
    if not cut.own or windows.max_length > scene.lm.config.context_length:
        return None, None
    inputs, targets = windows.dataset[number]
    # with the model's changes, as far as they are not tied to a place of the prompt
    edits = tuple(edit for edit in scene.run.edits if edit.is_of_any_text)
    run, last = Run(scene.key, tuple(inputs.tolist()), edits), int(targets[-1])
    return losses(run, last), losses(run.plain, last) if edits else None


def _examples(scene: Scene, cut: CutText, windows: Windows, number: int) -> None:
    length, start = windows.max_length, windows.dataset.starts[number]
    st.subheader(f"One window, {length} example{'s' * (length != 1)}", anchor=False)
    found, old = _found(scene, cut, windows, number)
    means = [None if table is None else float(table["nats"].mean()) for table in (found, old)]
    prose(words.why_so_many(number, length, *means), "causal mask")
    left_out = 0 if found is None else sum(not edit.is_of_any_text for edit in scene.run.edits)
    if left_out:
        st.caption(words.left_out(left_out))
    shown = cut.labels(range(start, start + length + 1))
    contexts = [shown[: end + 1] for end in range(min(length, SHOWN))]
    st.html(examples_table(contexts, shown[1:], found, old))
    if length > SHOWN:
        st.caption(words.cut_short(SHOWN, length))


# ---- details ----


def _details(scene: Scene, cut: CutText, windows: Windows) -> None:
    box = st.expander(
        "How often is each token asked for?", icon=":material/equalizer:", on_change="rerun", key="dw_times"
    )
    if box.open and len(windows):
        with box:
            st.markdown(words.how_often(windows))
            scene.chart(
                times_target(windows.times_target(), scene.mode),
                key="data_windows_times",
                alt=f"How often each of {len(cut.ids)} tokens is a target",
            )
    in_numbers(
        windows.table,
        "windows.csv",
        "A row a window: where it stands, whether it is dropped, and the ids of its inputs and targets.",
        "the windows",
    )
    if len(windows):
        in_numbers(
            lambda: _examples_frame(scene, cut, windows, min(WINDOW.value, len(windows) - 1)),
            "examples.csv",
            caption("The examples of the selected window, a row a target.", scene.other),
            "one window's examples",
        )
    given = {"prompt": scene.text, "chapter": None, "book": text.VERDICT}[SOURCE.value]
    in_code(
        [GPTDatasetV1.__init__, GPTDatasetV1.window, Windows.loader, examples],
        program(
            batch,
            scene.load,
            text=given,
            max_length=windows.max_length,
            stride=windows.stride,
            batch_size=windows.batch_size,
            drop_last=windows.drop_last,
            window=WINDOW.value,
            special_tokens=scene.special,
            encoding=text.BOOKS_ENCODING if SOURCE.value == "book" else None,
        ),
    )


def _examples_frame(scene: Scene, cut: CutText, windows: Windows, number: int) -> pd.DataFrame:
    inputs, targets = (part.tolist() for part in windows.dataset[number])
    frame = pd.DataFrame(
        [(i, " ".join(map(str, seen)), came) for i, (seen, came) in enumerate(examples(inputs, targets))],
        columns=["example", "context", "target"],
    )
    frame["token"] = cut.labels([windows.dataset.starts[number] + 1 + i for i in range(len(frame))])
    found, old = _found(scene, cut, windows, number)
    if found is None:
        return frame
    columns = {"probability": "probability", "nats": "loss"}
    beside = both(found, old, list(columns)).rename(columns=lambda name: name.replace("nats", "loss"))
    return frame.join(beside[[name for name in beside if name.split()[-1] in columns.values()]])
