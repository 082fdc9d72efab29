"""One text proves little: what a page says of its prompt, as means over many texts with standard errors.

The texts are a ready-made set, the sentences of a template with lists, or a file, one a line. A link carries
all but the file. Each text is asked for its own answer. A line of a file that names none is asked for the
bar's, if somebody chose that, else for what the model says first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import LanguageModel
from gptviz.analysis import templates
from gptviz.analysis.abc_means import ABC, COUNT
from gptviz.analysis.activation_patching import DIRECTIONS, averaged_patches
from gptviz.analysis.names import groups_of, order_of
from gptviz.analysis.other_texts import COMES_AGAIN, OF_NAMES, with_others_of
from gptviz.analysis.prompts import (
    ABBA,
    BABA,
    OF_OTHER,
    Prompt,
    averaged,
    baseline_of,
    has_two,
    left_out,
    measured,
    standard_error,
)
from gptviz.analysis.ready_made import KINDS, ready_made
from gptviz.both import Both
from gptviz.digits import fixed, plus_minus, significant
from gptviz.engine.kinds import Model
from gptviz.figures.maps import Map, Scale, maps
from gptviz.figures.marks import Floats
from gptviz.ui import sheet
from gptviz.ui.buttons import button
from gptviz.ui.models.budget import still_here
from gptviz.ui.sheet import Param, Scene, if_there, is_asked_for, several
from gptviz.ui.shell import other_text, target
from gptviz.ui.shell.bench import Question
from gptviz.ui.shell.muted import GIVES_EACH
from gptviz.ui.words import as_code, capital, counted, escaped, prose, show_id

OF_ROLES = (
    "IO is the name that is the answer, S1 and S2 are the two mentions of the other name, S1+1 is the token behind "
    "S1, and END the last one, where the answer is read."
)
NAMES = "names"
FILE = "file"
NOISING = DIRECTIONS[1]
TEMPLATE = "template"


def at_most(text: str, length: int) -> str:
    """The beginning of a text: an address may hold a longer one than anybody can type."""
    return text[:length]


SET: Param[str | None] = Param("many", str, None, if_there)
SENTENCE: Param[str] = Param("many_template", str, templates.EXAMPLE, at_most)
LISTS: Param[str] = Param("many_lists", str, templates.EXAMPLE_LISTS, at_most)
OF_ABC = Param("many_abc", bool, False)
SHARES = Param("many_shares", bool, False)  # of pairs: the metric from 0 to 1, not logits
PARAMS = (SET, SENTENCE, LISTS, OF_ABC, SHARES)

MOST = 200  # texts of a file
LONGEST = templates.LONGEST_SENTENCE  # characters of one
LARGEST = 1  # MB of a file
SHOWN = 200  # characters of an example
LISTED = 12  # bars
ROW = 26  # pixels of one
SURE = 3.0  # standard errors from zero
CLEAR = 2.0  # so many of them, and a difference of logits is a scale
ENOUGH = 10  # texts, from which on they tell something
# in the session
_LINES = "gptviz_many_lines"  # the file's
_ASKED = "gptviz_many_asked"  # what was asked for
_BOX = "many_file"

Left = list[tuple[str, str]]  # texts that are left out, and why


@dataclass(frozen=True)
class Grid:
    """A map of means: the names of its rows and columns, its cells row by row, and what is said of it.

    `cells` are the means that stand in it, by their row of the table; None: all. `in_place_of_bars` leaves out the
    bars of the largest means. `scale` is that of its colours, as `figures.maps` has it. A click on a cell is `pick`
    of its row and column.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    caption: str
    alt: str
    cells: Sequence[int] | None = None
    in_place_of_bars: bool = False
    scale: Scale = "signed"
    pick: Callable[[int, int], Any] | None = None


@dataclass(frozen=True)
class Ahead:
    """What is measured first of a set with two names, so that the section's function can be given it.

    `switch` draws whether it is wanted. `function` takes what the section's own takes, in so many `passes`;
    `columns` of its tables are averaged. Of these means `options` makes options of the section's function, `says` the
    end of its sentence, with a blank before it, and `note` is what is said above their table, which is called `what`.
    """

    switch: Callable[[], bool]
    function: Callable[..., pd.DataFrame]
    passes: int
    columns: Sequence[str]
    options: Callable[[pd.DataFrame], Mapping[str, Any]]
    says: Callable[[pd.DataFrame], str]
    what: str
    note: str


def section(
    scene: Scene,
    explained: Question,
    function: Callable[..., pd.DataFrame],
    options: Mapping[str, Any],
    columns: Sequence[str],
    drawn: tuple[str, int],
    here: Callable[[], pd.DataFrame],
    names: Sequence[str],
    words: tuple[str, ...],
    passes: int,
    choice: Callable[[], Any] = lambda: None,
    more: Callable[[pd.DataFrame], str] = lambda _: "",
    color: str | None = None,
    grid: Grid | None = None,
    first: int | None = None,
    ahead: Ahead | None = None,
) -> list[Prompt]:
    """Draw a page's section: the set, and the means over it of what `function(lm, ..., **options)` gives.

    The function takes a text, or a pair as its `clean` and `corrupt`. Of its `columns` `drawn` is shown, with
    its sign; `here` gives the same rows of this page's prompt, of which `explained` is asked, and is called only
    beside means; it has no rows where that is of another form. `names` are what the rows are called, `words` what
    one is ("the share of {}"), its unit, and what its opposite is, as which a mean below 0 is told ("by how much the
    difference rises without {}"). `choice` draws what is chosen about the set, and `more` says what else the means
    say. `color` is that of the bars where they have no sign. With a `grid` the means are a map, too.
    The sentence tells of the largest mean, or of the row `first`. How many means are far from 0 is no question
    then, nor where none can be below. Sentences with two names have an other text of the same kind as the page's.
    With what is measured `ahead`, the tables may have fewer rows than `names`, and nothing is said of the page's text.
    Returns the texts that were read; none where there are no means.
    """
    pairs = "direction" in options
    st.subheader("Over many texts", anchor=False)
    kind = other_text.kind_of(scene)
    of_sets = kind if kind in OF_NAMES else COMES_AGAIN
    prompts, unreadable = _choose(
        scene, explained, pairs, of_sets, "baseline" in options and OF_ABC.value
    )
    choice()
    if explained.is_chosen:
        prompts = [_asked_by(explained, prompt) for prompt in prompts]
    if SET.value == FILE:
        prompts = [_in_order(scene.lm, prompt) for prompt in prompts]
    if pairs and prompts and _chooses_shares():
        drawn = "effect", 1
        words = words[0], "of clean − corrupt", *words[2:]
    in_abc = "baseline" in options and _chooses_abc(prompts)
    if in_abc:
        options = {**options, "baseline": ABC}
        passes += COUNT
    if ahead is not None and not (any(p.order for p in prompts) and ahead.switch()):
        ahead = None
    if ahead is not None:
        passes += ahead.passes + COUNT * in_abc
    request = (
        st.session_state.get(_LINES) if SET.value == FILE else SET.value,
        (SENTENCE.value, LISTS.value) if SET.value == TEMPLATE else None,
        of_sets,
        function,
        *options.values(),
        ahead is not None,
        *_of_bar(explained),
    )
    tokens = sum(len(scene.lm.encode(prompt.text)) for prompt in prompts)
    if is_asked_for(scene.lm, tokens, passes) and st.session_state.get(_ASKED) != request:
        label = f"Compute: {counted(len(prompts), 'text')}, {counted(passes, 'pass')} each"
        button(label, "many_go", st.session_state.__setitem__, _ASKED, request, primary=True)
        prompts = []
    read_prompts: list[Prompt] = []
    results: list[Measured] = []
    unchanged_results: list[Measured] = []  # the same of the unchanged model
    refused = unreadable
    ahead_means = pd.DataFrame()
    if ahead is not None and prompts:
        ahead_means = _measured_ahead(scene, ahead, prompts, options, refused)
        if len(ahead_means):
            options = {**options, **ahead.options(ahead_means)}
        else:
            prompts = []
    if prompts:
        says = "{} of {} texts".format
        calls = [(function, prompt, pairs) for prompt in prompts]
        stop = partial(SET.set, None)
        jobs = several(scene.run, measured, calls, says, "many_stop", stop, **options)
        unchanged_jobs = jobs
        if scene.other is not None:
            says = "Unchanged model: {} of {} texts".format
            unchanged_jobs = several(
                scene.other, measured, calls, says, "many_stop_old", stop, **options
            )
        for prompt, work, unchanged_job in zip(prompts, jobs, unchanged_jobs, strict=True):
            try:
                result = work.value
                unchanged_results.append(unchanged_job.value)
                results.append(result)
                read_prompts.append(prompt)
            except ValueError as problem:
                refused.append((prompt.text, str(problem)))
    if refused:
        left_out_texts = [as_code(f"“{beginning(text, 40)}”: {why}") for text, why in refused[:5]]
        if len(refused) > 5:
            left_out_texts.append(f"and {len(refused) - 5} more")
        st.warning(f"{counted(len(refused), 'text')} left out: {'; '.join(left_out_texts)}.")
    if not results:
        return []
    n = len(results)
    per_text = Both(results)
    # a change may have added a part, which the unchanged model has not
    if scene.other is not None and len(unchanged_results[0][0]) == len(results[0][0]):
        per_text = Both(results, unchanged_results)
    orders = [prompt.order for prompt in read_prompts]
    groups = _groups(scene.lm, read_prompts)
    tables = per_text.map(partial(_averages, columns=columns, orders=orders, groups=groups))
    column, sign = drawn
    noun, unit, *below = words
    means = tables.map(
        lambda t: (sign * t[column].to_numpy(float), t[f"{column}_se"].to_numpy(float))
    )
    mean, error = means.now
    rows = np.argsort(-np.abs(mean), kind="stable")[:LISTED].tolist()
    told = rows[0]
    if first is not None:
        told = first
    said = 1  # the sign that the sentence gives the numbers
    if below and mean[told] < 0:
        noun = below[0]
        said = -1
    if first is None:
        subject = f"the largest of {counted(len(mean), 'mean')} is {noun.format(names[told])}:"
    else:
        subject = f"{noun.format(names[told])} is"
    differences = np.array([own for _, own in results])  # (n, texts of a prompt)
    logits = differences[:, 0]
    spread = standard_error(logits, groups)
    independent = len(set(groups))
    over = ""
    counts = "text"  # what a standard error is over
    if independent < n:
        counts = "exchanged pair"
        over = f" over {counted(independent, counts)}"
        if 2 * independent > n:
            over += " and single texts"
    statistic = f"mean ± standard error{over}, n = {n}"
    if means.was is not None:
        was, was_error = (values[told] for values in means.was)
        statistic = f"before the change {plus_minus(said * was, was_error)}; {statistic}"
    above = "In the text above"
    measure = ""
    if pairs:
        above = "In the two texts above"
        measure = _one_measure(explained, options["direction"], kind, of_sets)
    of_scale = ""
    if column == "effect" and pairs:
        of_scale = _of_scale(differences[:, 0], differences[:, 1], groups)
    muted = ""
    if "baseline" in options:
        muted = f" A part that is off outputs {GIVES_EACH[options['baseline']]}."
    if independent >= ENOUGH:
        certainty = ""
        if color is None and first is None:
            far = (np.abs(mean) > SURE * error).sum()
            certainty = (
                f" Means more than {SURE:.0f} standard errors away from 0: {far} of {len(mean)}."
            )
    elif independent > 1:
        certainty = (
            f" With fewer than {ENOUGH} {counts}s, the standard error is only a rough guess."
        )
    else:
        certainty = f" A single {counts} has no standard error."
    of_own = ""
    own = pd.DataFrame()
    if not in_abc and ahead is None:  # the text above is measured with the bar's baseline
        own = here()
    if column in own:
        of_own = f"{above} it is {significant(said * sign * own[column].iloc[told])}{measure}. "
    said_ahead = ""
    if ahead is not None:
        said_ahead = ahead.says(ahead_means)
    prose(
        f"Over **{counted(n, 'text')}**, {subject} "
        f"**{plus_minus(said * mean[told], error[told])}** {unit} ({statistic}). "
        f"{of_own}The logit difference itself is {plus_minus(logits.mean(), spread)} on average, and above 0 "
        f"in {(logits > 0).sum()} of {counted(n, 'text')}.{of_scale}{certainty}"
        f"{_by_order(tables.now.iloc[told], (column, said * sign), logits, orders, groups)}{muted}{more(tables.now)}"
        f"{said_ahead}"
    )
    drawn_means = _Means(means, names[: len(mean)], unit, n, muted)
    shown = replace(scene, files_say=())  # without the other text of the page's prompt
    if grid is not None:
        _map(shown, drawn_means, grid)
    if grid is None or not grid.in_place_of_bars:
        _bars(shown, drawn_means, rows, color)
    note = f"Means over {counted(n, 'text')}. A column ending in _se is a standard error; n is the number of texts."
    if independent < n:
        note += " For the errors, two texts that are each other’s with their words exchanged count as one."
    if pairs:
        note += " effect is the mean change divided by the mean of clean − corrupt, with the error of that ratio."
    if has_two(orders):
        note += " Columns of ABBA are of the texts whose answer is named first, those of BABA of the others."
    with sheet.details("many texts"):
        sheet.numbers_of("many", tables, note, what="many texts", missing="–")
        if ahead is not None:
            sheet.numbers_of("many-ahead", ahead_means, ahead.note, ahead.what, "–")
        texts = pd.DataFrame(read_prompts)
        if not any(orders):
            texts = texts.drop(columns="order")
        texts = texts.map(lambda cell: show_id(scene.lm, cell) if isinstance(cell, int) else cell)
        # of each text, and of a pair of the corrupt one
        texts["logit difference"] = logits
        if pairs:
            texts["of the corrupt text"] = differences[:, 1]
        sheet.numbers_of("many-texts", texts, what="the set of texts", missing="–")
        arguments: dict[str, Any] = {
            "clean" if pairs else "text": [item.text for item in read_prompts]
        }
        arguments |= {"corrupt": [item.other for item in read_prompts]} if pairs else {}
        arguments |= {"target": [item.target for item in read_prompts], **options}
        if options.get("baseline") == OF_OTHER:
            arguments["baseline"] = [baseline_of(scene.lm, item) for item in read_prompts]
        sheet.code_of(scene, [], function, **arguments, key="in_code_many", what="many texts")
    return read_prompts


# of a prompt: its table, and the difference of logits, of a pair that of both texts
Measured = tuple[pd.DataFrame, tuple[float, ...]]


def _averages(
    found: Sequence[Measured],
    columns: Sequence[str],
    orders: Sequence[str | None],
    groups: Sequence[int],
) -> pd.DataFrame:
    """The means of these columns with their standard errors; of pairs those of `averaged_patches`."""
    tables = [table for table, _ in found]
    if len(found[0][1]) == 1:
        return averaged(tables, columns, orders, groups)
    if "role" in tables[0]:  # it stands at another position in each text
        tables = [table.drop(columns="position") for table in tables]
    return averaged_patches(tables, [own[0] - own[1] for _, own in found], orders, groups)


def _measured_ahead(
    scene: Scene,
    ahead: Ahead,
    prompts: Sequence[Prompt],
    options: Mapping[str, Any],
    refused: Left,
) -> pd.DataFrame:
    """The means of what is measured ahead, over all texts that can be; where none can, `refused` gets the reasons."""
    jobs = several(
        scene.run,
        measured,
        [(ahead.function, prompt, False) for prompt in prompts],
        "First, {} of {} texts".format,
        "many_stop_ahead",
        partial(SET.set, None),
        **options,
    )
    if all(job.refused for job in jobs):
        refused += [(p.text, str(job.error)) for p, job in zip(prompts, jobs, strict=True)]
        return pd.DataFrame()
    read = [
        (prompt, job.value) for prompt, job in zip(prompts, jobs, strict=True) if not job.refused
    ]
    tables = [table for _, (table, _) in read]
    groups = _groups(scene.lm, [prompt for prompt, _ in read])
    return averaged(tables, ahead.columns, groups=groups)


@dataclass(frozen=True)
class _Means:
    """What is drawn: means and standard errors, (rows,) each, the rows' names, the unit, and over how many texts."""

    values: Both[tuple[NDArray[np.float64], NDArray[np.float64]]]
    names: Sequence[str]
    unit: str
    n: int
    muted: str


def _bars(scene: Scene, means: _Means, rows: Sequence[int], color: str | None) -> None:
    """Draw a bar for each of the largest means."""
    caption = f"Largest means, with their standard errors: {len(rows)} of {len(means.names)}."
    if means.values.was is not None:
        caption += (
            " Outlines show the unchanged model. Where a line names no token and none is chosen above, each "
            "model is measured on its own first choice."
        )
    st.caption(caption)
    alt = (
        f"The largest means over {means.n} texts, with standard errors: {means.unit}.{means.muted}"
    )
    sheet.bars(
        scene,
        "many",
        means.values.map(lambda pair: pair[0][rows]),
        [means.names[i] for i in rows],
        means.unit,
        alt.rstrip("."),
        says=means.values.map(
            lambda estimates: [
                f"{means.names[i]}: {plus_minus(estimates[0][i], estimates[1][i])} {means.unit}, n = {means.n}"
                for i in rows
            ]
        ),
        lying=True,
        signed=color is None,
        colors=color,
        errors=means.values.now[1][rows],
        height=ROW * len(rows) + 80,
    )


def _map(scene: Scene, means: _Means, grid: Grid) -> None:
    """Draw the means as a map of rows and columns; a hover says the standard error."""
    st.caption(grid.caption)
    size = (len(grid.rows), len(grid.columns))
    chosen = range(len(means.names)) if grid.cells is None else grid.cells
    # (rows,) -> (R * C,) -> (R, C)
    cells: Both[Floats] = means.values.map(lambda pair: pair[0][[*chosen]].reshape(size))
    errors: Any = means.values.now[1][[*chosen]].reshape(size)
    if np.isnan(errors).all():
        errors = None
    texts = _in_cells(cells.now)
    panel = Map("", cells, grid.scale, means.unit, errors=errors, texts=texts)
    place = f"at %{{x}} (mean of {counted(means.n, 'text')})"
    fig = maps([panel], grid.rows, grid.columns, None, scene.mode, large=True, place=place)
    alt = f"{grid.alt}: means over {counted(means.n, 'text')}, in {means.unit}"
    scene.chart(fig, key="many_map", alt=alt, on_cell=grid.pick)


def _in_cells(cells: Floats) -> list[list[str]]:
    """What stands in the cells of a map; nothing where that is 0.

    To two decimals; to one where some are above 10, to three where all are below a tenth.
    """
    decimals = 2
    if np.abs(cells).max() >= 10:
        decimals = 1
    elif np.abs(cells).max() < 0.1:
        decimals = 3
    written = np.vectorize(lambda value: fixed(float(value), decimals), otypes=[object])(cells)
    written[np.abs(cells) < 0.5 * 10**-decimals] = ""  # (R, C)
    return [[*row] for row in written]


def _chooses_shares() -> bool:
    """Draw the switch from logits to shares; return whether it is on."""
    help = "(patched − corrupt) / (clean − corrupt), less what it is without a patch: as in the maps above. Over many "
    help += "texts it is the mean change divided by the mean of clean − corrupt, so that a pair whose two texts are "
    help += "close does not outweigh the others."
    SHARES.widget(st.toggle, "As a share of clean − corrupt, not in logits", help=help)
    return SHARES.value


def _of_scale(
    clean: NDArray[np.float64], corrupt: NDArray[np.float64], groups: Sequence[int]
) -> str:
    """A sentence or two with a blank before them: what shares are of, and where they say nothing."""
    scale = clean - corrupt  # (n,)
    told = f" Clean − corrupt is {plus_minus(scale.mean(), standard_error(scale, groups))} logits."
    # a single text has no error
    of_scale, of_clean = (np.nan_to_num(standard_error(one, groups)) for one in (scale, clean))
    if abs(scale.mean()) <= CLEAR * of_scale:
        told += " **These shares say nothing:** that is not clearly different from 0."
    elif clean.mean() <= CLEAR * of_clean:
        told += " **These shares say nothing of a right answer:** the logit difference itself is not clearly above 0."
    return told


def _chooses_abc(prompts: Sequence[Prompt]) -> bool:
    """Draw the switch to ABC means where the set has sentences with two names; return whether it is on."""
    if not any(prompt.order for prompt in prompts):
        return False
    help = "Each text is read with three different names in the place of its two, and other places and things, "
    help += f"{COUNT} times; a part that is off outputs its mean over these at the same position, as in "
    help += "Wang et al., 2022. "
    help += "The bar’s choice is that of the text above alone then."
    OF_ABC.widget(
        st.toggle, "A part that is off outputs its ABC mean, position by position", help=help
    )
    return OF_ABC.value


NAMED = {ABBA: "the answer is named first", BABA: "the other name is"}


def _by_order(
    row: pd.Series,
    drawn: tuple[str, int],
    logits: NDArray[np.float64],
    orders: Sequence[str | None],
    groups: Sequence[int],
) -> str:
    """A sentence with a blank before it: a row's mean and the logit difference in either order of names.

    "" where the texts do not have both.
    """
    if not has_two(orders):
        return ""
    column, sign = drawn
    of_orders = []
    for order, first in NAMED.items():
        chosen = [one == order for one in orders]
        own = logits[chosen]
        mean = plus_minus(sign * row[f"{column}_{order}"], row[f"{column}_se_{order}"])
        itself = plus_minus(own.mean(), standard_error(own, [*compress(groups, chosen)]))
        of_orders.append(
            f"**{mean}** where {first} ({order}, n = {len(own)}; logit difference {itself})"
        )
    return f" The two orders of names apart: {', '.join(of_orders)}."


def beginning(text: str, length: int) -> str:
    """A text, or its beginning and an ellipsis if it has more characters than this."""
    if len(text) <= length:
        return text
    return f"{text[:length]}…"


# ---- the set ----


READY = {
    NAMES: ("Names", "Who receives something? The indirect object task of Wang et al., 2022"),
    "copied": ("A copied word", "A passage comes again: the word that followed it is copied"),
    "pronoun": ("A pronoun", "He or she, him or her: the person decides"),
    "fact": ("A fact", "The capital of a country, the opposite of a word"),
    "sequence": ("A sequence", "Numbers, letters, weekdays: what comes next?"),
}


def _one_measure(explained: Question, direction: str, kind: str | None, of_sets: str) -> str:
    """What is measured of the page's two texts, in brackets, and whether they are as those of the set are."""
    words = [as_code(explained.shown), as_code(explained.against_shown or target.OF_ALL)]
    if direction != NOISING:  # the page's text is the corrupt one
        words.reverse()
    told = f"of {' − '.join(words)}, the clean text’s answer minus the corrupt one’s, as in the set"
    if SET.value in (NAMES, TEMPLATE) and kind != of_sets:
        told += "; but the other text above is of another kind"
    return f" ({told})"


def _choose(
    scene: Scene, explained: Question, pairs: bool, others: str, abc: bool
) -> tuple[list[Prompt], Left]:
    """Draw the choice of the set; return the texts that can be read, and why others cannot.

    `others` is the kind of the other texts of sentences with two names. With `abc` these are not told of.
    """
    lm = scene.lm
    SET.within((*KINDS, TEMPLATE, FILE))
    line = "one text per line"
    if pairs:
        line = "one pair per line, with a tab between the two texts"
    text = "One text proves little. Test many, and see a mean and how certain it is: "
    prose(f"{text}take ready-made sentences, write a template with lists, or upload a file.")
    if pairs:
        st.caption(
            "The two texts of a pair need the same number of tokens; different pairs may differ in length. We "
            "patch a head at all positions, and anything else at the last token, where the answer is read. Other "
            "positions cannot be averaged over texts of different lengths; of sentences with two names, those "
            "with a role can."
        )
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="gv_many_sets"
    ):
        st.caption("Test on:", width="content")
        for kind in KINDS:
            label, hint = READY[kind]
            chosen = SET.value == kind
            take = None if chosen else kind
            button(label, f"many_{kind}", SET.set, take, primary=chosen, help=hint)
        chosen = SET.value == TEMPLATE
        take = None if chosen else TEMPLATE
        hint = "A sentence with names in braces, and a list of words for each: up to 100 sentences"
        button("A template", "many_of_template", SET.set, take, primary=chosen, help=hint)
        own = templates.like(scene.text)
        if own is not None:
            hint = "Makes a template of your text: other names, other places and things"
            button("100 like yours", "many_like", _take_template, *own, help=hint)
    help = "You can add, each after a tab: a second text, the token to measure, and the token to compare "
    help += "it with. Without a token, the answer of the bar is measured if you chose it, else the model's first "
    help += "choice."
    label = f"A file with {line}"
    options: Any = {"help": help, "max_upload_size": LARGEST, "width": 420}
    st.file_uploader(label, "txt", key=_BOX, on_change=_opened, **options)
    if SET.value == TEMPLATE:
        return _of_template(lm, explained, others, abc), []
    if SET.value in KINDS:
        prompts = ready_made(lm, SET.value)
        if SET.value == NAMES and others != COMES_AGAIN:  # as they are made
            prompts = with_others_of(lm, prompts, others)
        caption = f"Too few of the words are single tokens of {escaped(lm.name)}, so there are no sentences."
        if prompts:
            caption = _for_example(prompts[0], "Each sentence has its own answer", explained, abc)
            if SET.value == NAMES and not abc:
                caption += f" {capital(others)}, in each of them."
            caption += _why_in_pairs(lm, prompts)
        too_long = left_out(lm) if SET.value == NAMES else {}
        if too_long:
            tokens_of_words = [f"{word} ({count})" for word, count in too_long.items()]
            listed = ", ".join(tokens_of_words[:6])
            if len(tokens_of_words) > 6:
                listed += " …"
            caption += f" Left out, because this model splits them into several tokens: {listed}."
        st.caption(caption)
        return prompts, []
    if SET.value == FILE:
        lines = st.session_state.get(_LINES)
    else:
        lines = ()
    if lines is None or isinstance(lines, str):
        st.warning(lines or "A link cannot contain a file. Upload the file here.")
        return [], []
    read_lines = [(line, _read(lm, line, pairs)) for line in lines]
    read_prompts = [prompt for _, prompt in read_lines if isinstance(prompt, Prompt)]
    if read_prompts:
        st.caption(_of_file(read_prompts, explained))
    return (
        read_prompts,
        [(line, why) for line, why in read_lines if isinstance(why, str)],
    )


def _groups(lm: LanguageModel, prompts: Sequence[Prompt]) -> list[int]:
    """The group of each prompt: two with their words exchanged are of one (`groups_of`)."""
    return groups_of(lm, [one.text for one in prompts], [one.target for one in prompts])


def _why_in_pairs(lm: LanguageModel, prompts: Sequence[Prompt]) -> str:
    """A sentence with a blank before it about a set all of whose sentences stand in pairs; "" for any other."""
    if 2 * len(set(_groups(lm, prompts))) != len(prompts):
        return ""
    word = "word"
    if all(prompt.order for prompt in prompts):
        word = "name"
    return (
        f" Every second sentence has the two {word}s exchanged, so that a {word} the model likes to say does not "
        "count."
    )


def _for_example(prompt: Prompt, about: str, explained: Question, abc: bool) -> str:
    """A sentence about what is measured in the set, and whose the bar's answer is; a prompt and its other text.

    In ABC means, which sentences with two names have, the other text plays no part.
    """
    token, against = (as_code(str(word).replace(" ", "·")) for word in prompt.target)
    told = (
        f"{about}; the bar’s, {as_code(explained.shown)}, is that of the text above alone. For example "
        f"{as_code(beginning(prompt.text, SHOWN))}: {token}, instead of {against}."
    )
    if abc and prompt.order:
        return told
    return f"{told} The other text: {as_code(beginning(prompt.other or '', SHOWN))}."


def _of_file(prompts: Sequence[Prompt], explained: Question) -> str:
    """A sentence about what is measured in the lines of a file."""
    measured_there = "the model’s first choice is measured, or an answer that you choose in the bar"
    if explained.is_chosen:
        pair = f"{as_code(explained.shown)} against {target.OF_ALL}"
        if explained.against_shown is not None:
            pair = f"{as_code(explained.shown)} instead of {as_code(explained.against_shown)}"
        measured_there = f"the bar’s is measured, {pair}"
    own = sum(prompt.token is not None for prompt in prompts)
    if own == len(prompts):
        return "Each line names its own answer, which is measured."
    if own:
        return (
            f"{own} of {len(prompts)} lines have their own answer; in the others {measured_there}."
        )
    return f"No line names its answer: {measured_there}."


def _asked_by(explained: Question, prompt: Prompt) -> Prompt:
    """The prompt, asked for the bar's answer if it has none."""
    if prompt.token is not None:
        return prompt
    return replace(prompt, token=explained.token, against=explained.against)


def _in_order(lm: LanguageModel, prompt: Prompt) -> Prompt:
    """The prompt of a file's line with the order of its two names, where both are asked for."""
    if not isinstance(prompt.token, int) or not isinstance(prompt.against, int):
        return prompt
    words = (lm.decode([word]) for word in (prompt.token, prompt.against))
    return replace(prompt, order=order_of(prompt.text, *words))


def _of_bar(explained: Question) -> tuple[int | None, ...]:
    """The words of the bar that texts without an answer are asked for; none as long as nobody chose."""
    if explained.is_chosen:
        return (explained.token, explained.against)
    return ()


def _of_template(lm: LanguageModel, explained: Question, kind: str, abc: bool) -> list[Prompt]:
    """Draw the boxes of the template and its lists; return its sentences, or say what is wrong.

    `kind` and `abc` are as `_choose` has them.
    """
    for param in (SENTENCE, LISTS):
        param.within(templates.LONGEST)
    options: dict[str, Any] = {"max_chars": templates.LONGEST}
    help = "The answer is what stands for {A}; instead of it might be said what stands for {B}. The other text is of "
    help += "the same kind as that of your text: as long as nobody chose on Patching, {A} comes again for the last {B}."
    SENTENCE.widget(st.text_input, "Template, with names in braces", help=help, **options)
    help = "A list for each name; names that share one never have the same word. A new line is as good as ;"
    LISTS.widget(st.text_area, "Lists: A, B: Tom, Anna; place: garden, park", help=help, **options)
    try:
        found = _filled(lm, SENTENCE.value, LISTS.value, kind)
    except ValueError as error:
        st.warning(f"{capital(escaped(str(error)))}.")
        return []
    captions = [f"{counted(len(found.prompts), 'sentence')}."]
    if found.prompts:
        about = "The answer of each sentence is its {A}, instead of its {B}"
        captions.append(
            _for_example(found.prompts[0], about, explained, abc) + _why_in_pairs(lm, found.prompts)
        )
    if found.left_out:
        reasons = [
            f"{as_code(beginning(text, 40))} ({escaped(why)})" for text, why in found.left_out[:3]
        ]
        more = len(found.left_out) - len(reasons)
        if more:
            reasons.append(f"and {more} more")
        captions.append(f"Left out: {', '.join(reasons)}.")
    st.caption(" ".join(captions))
    return found.prompts


# of each model the template that was filled last: a page is drawn anew at each click
_known: WeakKeyDictionary[Model, tuple[tuple[str, ...], templates.Filled]] = WeakKeyDictionary()


def _filled(lm: LanguageModel, template: str, lists: str, kind: str) -> templates.Filled:
    """The sentences of a template. Raises ValueError as `templates.filled` does."""
    asked = (lm.name, template, lists, kind)
    known = _known.get(lm.model)
    if known is not None and known[0] == asked:
        return known[1]
    found = templates.filled(lm, template, templates.read_lists(lists), other=kind)
    _known[lm.model] = asked, found
    return found


def _take_template(template: str, lists: str) -> None:
    """Callback: the set is this template's."""
    SENTENCE.set(template)
    LISTS.set(lists)
    SET.set(TEMPLATE)


def _read(lm: LanguageModel, line: str, pairs: bool) -> Prompt | str:
    """Read a line of a file; return a sentence if it cannot be read."""
    if len(line) > LONGEST:
        return f"it has {len(line):,} characters; at most {LONGEST:,} are allowed"
    text, other, *words = [*line.split("\t"), *[""] * 3][:4]
    if pairs and not other:
        return "it has no second text: write one after a tab"
    tokens = [target.find_token(lm, word) if word else None for word in words]
    unknown = [word for word, token in zip(words, tokens, strict=True) if word and token is None]
    if unknown:
        return f"{unknown[0]!r} is not a single token of {lm.name}"
    return Prompt(text, tokens[0], tokens[1], other or None)


def _opened() -> None:
    """Callback: keep the lines of the file that was opened, or why there are none."""
    uploads = still_here(_BOX)
    SET.set(FILE if uploads else None)
    if not uploads:
        return
    content = uploads[0].getvalue()[: 2**20 * LARGEST + 1]
    if len(content) > 2**20 * LARGEST:  # a browser refuses it before; not every visitor is one
        st.session_state[_LINES] = (
            f"This file is larger than {LARGEST} MB. Upload one with fewer texts."
        )
        return
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        st.session_state[_LINES] = (
            "This file is not UTF-8 text. Save it as UTF-8 and upload it again."
        )
        return
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > MOST:
        st.toast(f"This file has {len(lines):,} texts. Only the first {MOST} are used.")
    st.session_state[_LINES] = (
        tuple(lines[:MOST]) or "This file contains no text. Write one text per line."
    )
