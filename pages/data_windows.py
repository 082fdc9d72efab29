"""Windows that slide over a text: inputs, targets, batches, and the examples in each window."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.next_token import losses
from gptviz.analysis.tokens import chapter
from gptviz.book import GPTDatasetV1, create_dataloader_v1
from gptviz.both import Both
from gptviz.engine.tokens import tokens_of
from gptviz.lessons import windows as lesson
from gptviz.tokenizer import get_encoding
from gptviz.training.datasets import TokenWindows
from gptviz.ui import sheet, tables, words
from gptviz.ui.components.windows import draw_windows

SOURCE = sheet.Param("dw_text", str, "prompt", sheet.if_there)
LENGTH = sheet.Param("dw_length", int, 4, sheet.between)
STRIDE = sheet.Param("dw_stride", int, 1, sheet.between)
BATCH = sheet.Param("dw_batch", int, 8, sheet.between)
DROP = sheet.Param("dw_drop", bool, True)
WINDOW = sheet.Param("dw_window", int, 0, sheet.between)
SOURCES = {"prompt": "The prompt", "chapter": "A chapter of Alice", "book": "The book's sentence"}
LISTED = 16  # examples in the table
WRITTEN = 12  # tokens of a context there: its end matters most

frame = sheet.start_page("Data windows", choices=[SOURCE, LENGTH, STRIDE, BATCH, DROP, WINDOW])
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt)

st.html(tables.STYLE)
above = st.container()
picture = st.container()  # with the window's slider; what cuts the text stands below it

# ---- which text, and how it is cut ----

own = scene.lm.config
story = scene.lm.encode(chapter())  # 2 ms for its 2,800 tokens
offered = [name for name in SOURCES if name != "chapter" or max(story) < own.vocab_size]
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="dw_controls"):
    source = SOURCE.choose("Text", {name: SOURCES[name] for name in offered})
    # as in its chapter 2
    encoding = get_encoding("gpt2") if source == "book" else scene.lm.tokenizer
    ids = {
        "prompt": scene.run.ids,
        "chapter": tuple(story),
        "book": tuple(encoding.encode(lesson.VERDICT)),
    }[source]
    longest = max(1, min(1024, len(ids) - 1))
    box = partial(st.number_input, step=1, width=130)
    told = "How many tokens a window contains: the book's `max_length`."
    length = LENGTH.number(box, "Tokens per window", 1, longest, help=told)
    told = "How many tokens further the next window begins: the book's `stride`."
    stride = STRIDE.number(box, "Move on by", 1, 1024, help=told)
    told = "How many windows the model learns from at once: the book's `batch_size`."
    batch_size = BATCH.number(box, "Windows per batch", 1, 64, help=told)
    told = "Drop the last windows if they do not fill a batch: the book's `drop_last`."
    drop = DROP.widget(st.toggle, "Full batches only", help=told)
windows = lesson.Windows(ids, length, stride, batch_size, drop)
count = len(windows)
tokens = words.counted(length, "token")


def labels(positions: Sequence[int]) -> list[str]:
    return [
        words.show_token(token.raw) for token in tokens_of(encoding, [ids[p] for p in positions])
    ]


with above:
    if not count:
        words.prose(
            f"The text has {words.counted(len(ids), 'token')}, too few for a window of {tokens}: its last "
            "input needs a target, too. Type a longer text, or choose the chapter."
        )
    else:
        slides = f"One window of **{tokens}** is cut from the text."
        if count > 1:
            slides = (
                f"A window of **{tokens}** slides over the text. It moves on by "
                f"{words.counted(stride, 'token')} each time: {len(ids):,} tokens give **{count:,} "
                "windows**."
            )
        words.prose(
            f"{slides} Its **targets** are the same tokens, one place further on: the text itself "
            "gives the answers, and nobody has to write them down.",
            "token",
        )
        WINDOW.within((0, count - 1))


# ---- what moves with the window ----


def neighbours_share() -> str:
    """How far two windows next to each other overlap."""
    shared = windows.shared
    if shared > 0:
        most = min(count, -(-length // stride))  # all of them, where there are so few
        return f"Neighbouring windows share {shared} of their {tokens}, so a token is in up to {most} windows."
    if shared < 0:
        between_two = words.counted(-shared, "token")
        are = words.is_or_are(-shared)
        return (
            f"The windows move on by more than their length, so {between_two} between two windows "
            f"{are} never an input."
        )
    return "The windows move on by their own length, as is usual in training: no token is an input twice."


def batches_filled() -> str:
    """How many batches the windows fill, and what becomes of those left over."""
    full = count // batch_size
    last = count % batch_size
    filled = f"{words.counted(count, 'window')} fill {words.counted(full, 'batch')} of {batch_size}"
    if count == 1:
        filled = f"1 window fills 1 batch of {batch_size}"
    if not last:
        return f"{filled}, with none left over."
    over = f"{filled}, and {last} {words.is_or_are(last)} left over"
    them = "them"
    if last == 1:
        them = "it"
    left = f"drops {them}, so that all batches have the same size"
    smaller = "the last batch is smaller"
    if not full:
        over = f"{words.counted(count, 'window')} cannot fill a batch of {batch_size}"
        left = f"drops {them}, and no batch is left"
        smaller = "the only batch is smaller"
    if not drop:
        return f"{over}: {smaller}."
    return f"{over}. *Full batches only* {left}."


def never_a_target() -> str:
    """How many tokens of the text no window has among its targets, the first token aside."""
    never = windows.never_target()
    if not never:
        return "Every token except the first is a target at least once."
    others = f"{never:,} others"
    if never == 1:
        others = "1 other"
    return f"The first token and {others} are never a target."


def overlap() -> str:
    """Sentences: how windows overlap, how they fill batches, how many tokens are never a target."""
    sentences = [batches_filled(), never_a_target()]
    if count > 1:
        sentences.insert(0, neighbours_share())
    return " ".join(sentences)


def reading(window: int) -> sheet.Scene | None:
    """The page's model before a window's inputs, None if it cannot read them.

    With those of its changes that are not tied to a place of the prompt.
    """
    if source == "book" or length > scene.lm.config.context_length:
        return None
    edits = tuple(edit for edit in scene.run.edits if edit.is_of_any_text)
    run = Run(scene.key, tuple(windows.dataset[window][0].tolist()), edits)
    return replace(scene, run=run, other=run.plain if edits else None)


def losses_in(window: int) -> Both[pd.DataFrame] | None:
    """The model's loss at each target of a window, in both runs: a table with a row a target.

    Its columns are those of `losses`. None if the model cannot read the window.
    """
    read = reading(window)
    if read is None:
        return None
    last = int(windows.dataset[window][1][-1])
    # the first row is about the window's first token, which is no target
    return sheet.of(read, losses, last).map(lambda table: table.iloc[1:].reset_index(drop=True))


def chance_and_loss(of_targets: Both[pd.DataFrame], example: int) -> list[str]:
    """What the model gave the target of an example, and what that costs, as a table has them."""
    row_of = of_targets.map(lambda table: table.iloc[example])
    chance = row_of.map(lambda row: words.probability_text(float(row["probability"])))
    loss = row_of.map(lambda row: float(row["nats"]))
    return [f"{chance}", f"{loss}"]


def slide() -> None:
    """The window under the slider, its batch and its examples."""
    window = WINDOW.value
    batch = window // batch_size
    members = windows.members(batch)
    starts = [(i, windows.dataset.starts[i]) for i in members]
    title = f"Windows of {length} tokens, {stride} apart; targets of window {window}"
    first = starts[0][1]
    saved = scene.saved("data_windows", title, f"window{window}")
    drawn = labels(range(first, starts[-1][1] + length + 1))
    with picture:
        draw_windows(
            drawn, first, starts, length, window, WINDOW.set, dropped=windows.used, saved=saved
        )
        if count > 1:
            with st.container(key="set_window"):
                WINDOW.widget(
                    st.slider, "Slide the window", min_value=0, max_value=count - 1, step=1
                )
    words.prose(overlap())

    if len(members) > 1:
        which = f"windows {members[0]} to {members[-1]}"
    else:
        which = f"window {members[0]}"
    dropped = f"Dropped batch: {which}, only {len(members)} of {batch_size}"
    st.subheader(dropped if batch >= windows.n_batches else f"Batch {batch}: {which}", anchor=False)
    halves = zip(("Input", "Target"), windows.batch(batch), strict=True)
    for name, tensor in sheet.side_by_side(halves, "small"):
        st.markdown(f"**{name}**, {tensor.shape[0]} × {tensor.shape[1]}")
        printed = str(tensor)
        st.code(printed, language=None, height=330 if printed.count("\n") >= 12 else "content")
    if source == "book" and (length, batch_size, batch) == (4, 8, 0) and stride in (1, 4):
        st.caption("These are the numbers that the book prints for its text, token by token.")
    else:
        st.caption(
            f"Token ids of the tokenizer {words.as_code(encoding.name)}, as PyTorch prints them, "
            "one row per window."
        )

    st.subheader(f"One window, {words.counted(length, 'example')}", anchor=False)
    of_targets = losses_in(window)
    text = (
        f"Window {window} contains **{words.counted(length, 'training example')}**, one per position. "
        "The causal mask hides what comes later, so a single pass predicts what follows the first token, "
        "the first two, and so on, and the model learns from all of these guesses. "
    )
    if of_targets is not None:
        mean = of_targets.map(lambda table: words.loss_text(float(table["nats"].mean()))[0])
        text += (
            "The loss is −ln of the probability that this model gives the target; its mean is "
            f"**{mean.arrow()}**."
        )
    words.prose(text, "causal mask")
    left_out = sum(not edit.is_of_any_text for edit in scene.run.edits)
    if of_targets is not None and left_out:
        st.caption(
            f"{left_out} of your changes {words.is_or_are(left_out)} tied to a place of your text, and "
            "not made here, where the model reads only a window."
        )
    start = windows.dataset.starts[window]
    shown = labels(range(start, start + length + 1))
    rows = []
    for i, target in enumerate(shown[1 : LISTED + 1]):
        seen = " ".join(shown[: i + 1][-WRITTEN:])
        if i + 1 > WRITTEN:
            seen = f"… {seen}"
        cells: list[tables.Cell | str] = [
            str(i),
            tables.Cell(seen, "code"),
            tables.Cell(f"→ {target}", "code"),
        ]
        if of_targets is not None:
            cells += chance_and_loss(of_targets, i)
        rows.append(tables.Row(cells))
    head = ["#example", "what the model sees", "what comes next"]
    if of_targets is not None:
        head += ["#probability", "#loss, −ln"]
    st.html(tables.table("examples", head, rows))
    if length > LISTED:
        st.caption(f"The table shows the first {LISTED} of {length}; *Details* has all of them.")


def in_window(window: int) -> Both[pd.DataFrame]:
    """The examples of a window, a row per target."""
    inputs, targets = (part.tolist() for part in windows.dataset[window])
    frame = pd.DataFrame(
        [
            (i, " ".join(map(str, seen)), came)
            for i, (seen, came) in enumerate(lesson.examples(inputs, targets))
        ],
        columns=["example", "context", "target"],
    )
    start = windows.dataset.starts[window] + 1
    frame["token"] = labels(range(start, start + length))
    of_targets = losses_in(window)
    if of_targets is None:
        return Both(frame)
    columns = ["probability", "nats"]
    return of_targets.map(lambda table: frame.join(table[columns].rename(columns={"nats": "loss"})))


def program() -> str:
    """The text's ids, its windows, and what the model loses on the selected one, in Python."""
    window = min(WINDOW.value, max(0, count - 1))
    read = reading(window) if count else None
    given = {
        "prompt": f"lm.encode({scene.text!r}, special_tokens={scene.special})[: lm.config.context_length]",
        "chapter": "lm.encode(chapter())",
        "book": "get_encoding('gpt2').encode(VERDICT)",
    }[source]
    lines = f"""\
import gptviz
from gptviz.analysis.next_token import losses
from gptviz.analysis.tokens import chapter
from gptviz.lessons.windows import VERDICT, Windows, examples
from gptviz.tokenizer import get_encoding

lm = {(read or scene).load}
windows = Windows(tuple({given}), {length}, {stride}, {batch_size}, drop_last={drop})
picture = windows.table()
"""
    text = "chapter()"
    tokenizer = "lm.tokenizer"
    if source == "book":
        text = "VERDICT"
        tokenizer = "get_encoding('gpt2')"
    if source != "prompt":
        lines += f"""\

from gptviz.book import create_dataloader_v1

dataloader = create_dataloader_v1(
    {text},
    batch_size={batch_size},
    max_length={length},
    stride={stride},
    shuffle=False,
    drop_last={drop},
    tokenizer={tokenizer},
)
for batch in dataloader:  # the batches that the page shows
    print(batch)
"""
    if count:
        lines += f"""\
inputs, targets = (part.tolist() for part in windows.dataset[{window}])
for context, target in examples(inputs, targets):
    print(context, "-->", target)
"""
    models = []
    if read is not None:
        if read.other is None:
            models = ["lm"]
        else:
            models = ["lm.plain", "lm"]
    for lm in models:
        lines += f"""print(losses({lm}, {lm}.trace(inputs, keep=["final"]), targets[-1])["nats"].mean())\n"""
    return lines


if count:
    slide()
with sheet.panel("How often is each token a target?", ":material/equalizer:", "dw_times") as opened:
    if opened and count:
        times = windows.times_target()
        st.markdown(
            "In one epoch (once through the text), a token is a target "
            f"{words.fixed(float(times[1:].mean()), 2)} times on average and at most "
            f"{words.counted(times.max(), 'time')}. The first token never is: nothing comes "
            "before it."
        )
        says = [
            f"position {i}: a target of {words.counted(n, 'window')}" for i, n in enumerate(times)
        ]
        axis = {"title": {"text": "position in the text"}, "showgrid": False}
        alt = f"How often each of {words.counted(len(ids), 'token')} is a target"
        unit = "times a target"
        key = "data_windows_times"
        hovers = Both(says)
        sheet.bars(scene, key, Both(times), says, unit, alt, says=hovers, axis=axis, height=190)
caption = (
    "One row per window: where it is, whether it is dropped, and the ids of its inputs and targets."
)
with sheet.details():
    sheet.numbers_of("windows", windows.table, caption, "the windows")
    if count:
        sheet.numbers_of("examples", lambda: in_window(WINDOW.value), what="one window's examples")
    sheet.in_code(
        [
            GPTDatasetV1.__init__,
            TokenWindows.__init__,
            TokenWindows.window,
            create_dataloader_v1,
            lesson.examples,
            losses,
        ],
        program(),
    )
