"""One text proves little: what a page says of its prompt, as means over many texts with standard errors.

`sets` chooses the texts, `said` writes the sentences and `pictures` draws; each text is worked on alone, in the line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis.abc_means import ABC, COUNT
from gptviz.analysis.activation_patching import averaged_patches
from gptviz.analysis.other_texts import COMES_AGAIN, OF_NAMES
from gptviz.analysis.prompts import OF_OTHER, Prompt, averaged, baseline_of, has_two, measured
from gptviz.both import Both
from gptviz.digits import plus_minus, significant
from gptviz.ui import sheet
from gptviz.ui.buttons import button
from gptviz.ui.many import said, sets
from gptviz.ui.many.pictures import Grid, Means, draw_bars, draw_map
from gptviz.ui.many.said import ENOUGH, SURE, Found, Measured
from gptviz.ui.many.sets import SET, Left, beginning, groups_in
from gptviz.ui.sheet import Param, Scene, is_asked_for, several
from gptviz.ui.shell import other_text
from gptviz.ui.shell.bench import Question
from gptviz.ui.shell.muted import GIVES_EACH
from gptviz.ui.words import as_code, counted, prose, show_id

__all__ = ["ENOUGH", "OF_ROLES", "PARAMS", "SET", "SURE", "Ahead", "Grid", "beginning", "section"]

OF_ROLES = (
    "IO is the name that is the answer, S1 and S2 are the two mentions of the other name, S1+1 is the token behind "
    "S1, and END the last one, where the answer is read."
)
OF_ABC = Param("many_abc", bool, False)
SHARES = Param("many_shares", bool, False)  # of pairs: the metric from 0 to 1, not logits
PARAMS = (*sets.PARAMS, OF_ABC, SHARES)

LISTED = 12  # bars
_ASKED = "gptviz_many_asked"  # in the session: what was asked for


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
) -> Sequence[Prompt]:
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
    abc = "baseline" in options and OF_ABC.value
    prompts, refused = sets.choose(scene, explained, pairs, of_sets, abc)
    choice()
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
    request = (of_sets, function, *options.values(), ahead is not None, *_of_bar(explained))
    if _waits(scene, prompts, passes, (*sets.request(), *request)):
        prompts = []
    ahead_means = pd.DataFrame()
    if ahead is not None and prompts:
        ahead_means = _measured_ahead(scene, ahead, prompts, options, refused)
        if len(ahead_means):
            options = {**options, **ahead.options(ahead_means)}
        else:
            prompts = []
    found = _read(scene, function, prompts, options, refused)
    _say_left_out(refused)
    if found.n == 0:
        return []
    tables = found.of_texts.map(partial(_averages, found=found, columns=columns))
    column, sign = drawn
    noun, unit, *below = words
    values = tables.map(
        lambda t: (sign * t[column].to_numpy(float), t[f"{column}_se"].to_numpy(float))
    )
    mean, error = values.now
    largest = np.argsort(-np.abs(mean), kind="stable")[:LISTED].tolist()
    told = largest[0]
    if first is not None:
        told = first
    written = 1  # the sign that the sentence gives the numbers
    if below and mean[told] < 0:
        noun = below[0]
        written = -1
    if first is None:
        subject = f"the largest of {counted(len(mean), 'mean')} is {noun.format(names[told])}:"
    else:
        subject = f"{noun.format(names[told])} is"
    statistic = said.statistic(found)
    if values.was is not None:
        was, was_error = (one[told] for one in values.was)
        statistic = f"before the change {plus_minus(written * was, was_error)}; {statistic}"
    far = ""
    if color is None and first is None:
        far = said.far_from_zero(mean, error)
    of_scale = ""
    if column == "effect" and pairs:
        of_scale = said.of_scale(found)
    muted = ""
    if "baseline" in options:
        muted = f" A part that is off outputs {GIVES_EACH[options['baseline']]}."
    own = pd.DataFrame()
    if not in_abc and ahead is None:  # the text above is measured with the bar's baseline
        own = here()
    of_own = ""
    if column in own:
        above = "In the text above"
        measure = ""
        if pairs:
            above = "In the two texts above"
            measure = said.one_measure(explained, options["direction"], kind, of_sets)
        number = significant(written * sign * own[column].iloc[told])
        of_own = f"{above} it is {number}{measure}. "
    said_ahead = ""
    if ahead is not None:
        said_ahead = ahead.says(ahead_means)
    prose(
        f"Over **{counted(found.n, 'text')}**, {subject} "
        f"**{plus_minus(written * mean[told], error[told])}** {unit} ({statistic}). "
        f"{of_own}{said.difference(found)}{of_scale}{said.certainty(found, far)}"
        f"{said.by_order(found, tables.now.iloc[told], (column, written * sign))}{muted}{more(tables.now)}{said_ahead}"
    )
    means = Means(values, names[: len(mean)], unit, found.n, muted)
    shown = replace(scene, files_say=())  # without the other text of the page's prompt
    if grid is not None:
        draw_map(shown, means, grid)
    if grid is None or not grid.in_place_of_bars:
        draw_bars(shown, means, largest, color)
    with sheet.details("many texts"):
        sheet.numbers_of("many", tables, _note(found), what="many texts", missing="–")
        if ahead is not None:
            sheet.numbers_of("many-ahead", ahead_means, ahead.note, ahead.what, "–")
        sheet.numbers_of("many-texts", _texts(scene, found), what="the set of texts", missing="–")
        _program(scene, found, function, options)
    return found.prompts


def _of_bar(explained: Question) -> tuple[int | None, ...]:
    """The words of the bar that texts without an answer are asked for; none as long as nobody chose."""
    if explained.is_chosen:
        return (explained.token, explained.against)
    return ()


def _chooses_shares() -> bool:
    """Draw the switch from logits to shares; return whether it is on."""
    help = "(patched − corrupt) / (clean − corrupt), less what it is without a patch: as in the maps above. Over many "
    help += "texts it is the mean change divided by the mean of clean − corrupt, so that a pair whose two texts are "
    help += "close does not outweigh the others."
    SHARES.widget(st.toggle, "As a share of clean − corrupt, not in logits", help=help)
    return SHARES.value


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


# ---- the work ----


def _waits(scene: Scene, prompts: Sequence[Prompt], passes: int, request: tuple[Any, ...]) -> bool:
    """Whether this is so much work that it waits for a click, which has not come; then the button is drawn."""
    tokens = sum(len(scene.lm.encode(prompt.text)) for prompt in prompts)
    if not is_asked_for(scene.lm, tokens, passes) or st.session_state.get(_ASKED) == request:
        return False
    label = f"Compute: {counted(len(prompts), 'text')}, {counted(passes, 'pass')} each"
    button(label, "many_go", st.session_state.__setitem__, _ASKED, request, primary=True)
    return True


def _read(
    scene: Scene,
    function: Callable[..., pd.DataFrame],
    prompts: Sequence[Prompt],
    options: Mapping[str, Any],
    refused: Left,
) -> Found:
    """What both models give for the texts; `refused` gets those that cannot be read, and why."""
    if not prompts:
        return Found([], Both([]), [])
    pairs = "direction" in options
    calls = [(function, prompt, pairs) for prompt in prompts]
    stop = partial(SET.set, None)
    says = "{} of {} texts".format
    jobs = several(scene.run, measured, calls, says, "many_stop", stop, **options)
    unchanged_jobs = jobs
    if scene.other is not None:
        says = "Unchanged model: {} of {} texts".format
        unchanged_jobs = several(
            scene.other, measured, calls, says, "many_stop_old", stop, **options
        )
    read: list[Prompt] = []
    results: list[Measured] = []
    unchanged_results: list[Measured] = []
    for prompt, job, unchanged_job in zip(prompts, jobs, unchanged_jobs, strict=True):
        try:
            result = job.value
            unchanged_results.append(unchanged_job.value)
            results.append(result)
            read.append(prompt)
        except ValueError as problem:
            refused.append((prompt.text, str(problem)))
    of_texts = Both(results)
    # a change may have added a part, which the unchanged model has not
    if read and scene.other is not None and len(unchanged_results[0][0]) == len(results[0][0]):
        of_texts = Both(results, unchanged_results)
    return Found(read, of_texts, groups_in(scene.lm, read))


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
    groups = groups_in(scene.lm, [prompt for prompt, _ in read])
    return averaged(tables, ahead.columns, groups=groups)


def _averages(of_texts: list[Measured], found: Found, columns: Sequence[str]) -> pd.DataFrame:
    """The means of these columns with their standard errors; of pairs those of `averaged_patches`."""
    tables = [table for table, _ in of_texts]
    if len(of_texts[0][1]) == 1:
        return averaged(tables, columns, found.orders, found.groups)
    if "role" in tables[0]:  # it stands at another position in each text
        tables = [table.drop(columns="position") for table in tables]
    distances = [clean - corrupt for _, (clean, corrupt) in of_texts]
    return averaged_patches(tables, distances, found.orders, found.groups)


# ---- what stands beside the means ----


def _say_left_out(refused: Left) -> None:
    """Warn of the texts that cannot be read, with the reasons of the first five."""
    if not refused:
        return
    told = [as_code(f"“{beginning(text, 40)}”: {why}") for text, why in refused[:5]]
    if len(refused) > 5:
        told.append(f"and {len(refused) - 5} more")
    st.warning(f"{counted(len(refused), 'text')} left out: {'; '.join(told)}.")


def _note(found: Found) -> str:
    """What is said above the table of means."""
    note = f"Means over {counted(found.n, 'text')}. A column ending in _se is a standard error; n is the number of "
    note += "texts."
    if found.independent < found.n:
        note += " For the errors, two texts that are each other’s with their words exchanged count as one."
    if found.differences.shape[1] == 2:
        note += " effect is the mean change divided by the mean of clean − corrupt, with the error of that ratio."
    if has_two(found.orders):
        note += " Columns of ABBA are of the texts whose answer is named first, those of BABA of the others."
    return note


def _texts(scene: Scene, found: Found) -> pd.DataFrame:
    """A row a text, with what is asked of it and its own logit difference, of a pair also the corrupt text's."""
    texts = pd.DataFrame(found.prompts)
    if not any(found.orders):
        texts = texts.drop(columns="order")
    texts = texts.map(lambda cell: show_id(scene.lm, cell) if isinstance(cell, int) else cell)
    texts["logit difference"] = found.logits
    if found.differences.shape[1] == 2:
        texts["of the corrupt text"] = found.differences[:, 1]
    return texts


def _program(
    scene: Scene, found: Found, function: Callable[..., pd.DataFrame], options: Mapping[str, Any]
) -> None:
    """Show the Python that gives the same means."""
    prompts = found.prompts
    arguments: dict[str, Any] = {}
    if "direction" in options:
        arguments["clean"] = [prompt.text for prompt in prompts]
        arguments["corrupt"] = [prompt.other for prompt in prompts]
    else:
        arguments["text"] = [prompt.text for prompt in prompts]
    arguments["target"] = [prompt.target for prompt in prompts]
    arguments |= options
    if options.get("baseline") == OF_OTHER:
        arguments["baseline"] = [baseline_of(scene.lm, prompt) for prompt in prompts]
    sheet.code_of(scene, [], function, **arguments, key="in_code_many", what="many texts")
