"""One text proves little: what a page says of its prompt, of a set of texts, as means with standard errors.

The set is a file, one text a line, or sentences that are made here. A link carries the latter only.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis.prompts import Prompt, averaged, indirect_objects, left_out, measured
from gptviz.both import Both
from gptviz.digits import plus_minus, significant
from gptviz.ui import sheet
from gptviz.ui.buttons import button
from gptviz.ui.models.room import still_here
from gptviz.ui.sheet import Param, Scene, if_there, is_asked_for, several
from gptviz.ui.shell import target
from gptviz.ui.words import as_code, counted, escaped, prose, show_id

NAMES = "names"
FILE = "file"
SET: Param[str | None] = Param("many", str, None, if_there)

MOST = 200  # texts of a file
LONGEST = 20_000  # characters of one
LARGEST = 1  # MB of a file
LISTED = 12  # bars
ROW = 26  # pixels of one
SURE = 3.0  # standard errors from zero
ENOUGH = 10  # texts, from which on they tell something
# in the session
_LINES = "gptviz_many_lines"  # the file's
_ASKED = "gptviz_many_asked"  # what was asked for
_BOX = "many_file"

Left = list[tuple[str, str]]  # texts that are left out, and why


def section(
    scene: Scene,
    function: Callable[..., pd.DataFrame],
    options: Mapping[str, Any],
    columns: Sequence[str],
    drawn: tuple[str, int],
    here: pd.DataFrame,
    names: Sequence[str],
    words: tuple[str, str],
    passes: int,
    choice: Callable[[], Any] = lambda: None,
) -> None:
    """The section of a page: the set, and the means over it of what `function(lm, ..., **options)` gives.

    The function takes a text, or a pair as its `clean` and `corrupt`. Of its `columns` `drawn` is shown, with
    its sign; `here` are the same rows of this page's prompt, `names` what they are called. `words` are what a
    row is ("the share of {}") and its unit. `choice` draws what is chosen about the set.
    """
    pairs = function.__name__ == "patching"
    st.subheader("Over many texts", anchor=False)
    prompts, left = _choose(scene.lm, pairs)
    choice()
    asked = (st.session_state.get(_LINES) if SET.value == FILE else SET.value, function, *options.values())
    tokens = sum(len(scene.lm.encode(prompt.text)) for prompt in prompts)
    if is_asked_for(scene.lm, tokens, passes) and st.session_state.get(_ASKED) != asked:
        label = f"Work it out: {len(prompts)} texts, {passes} passes each"
        button(label, "many_go", st.session_state.__setitem__, _ASKED, asked, primary=True)
        prompts = []
    found: list[tuple[Prompt, pd.DataFrame, float]] = []
    before: list[pd.DataFrame] = []  # the same of the unchanged model
    refused = left
    if prompts:
        says = "{} of {} texts".format
        each = [(function, prompt, pairs) for prompt in prompts]
        stop = partial(SET.set, None)
        every = several(scene.run, measured, each, says, "many_stop", stop, **options)
        old = every
        if scene.other is not None:
            says = "unchanged: {} of {} texts".format
            old = several(scene.other, measured, each, says, "many_stop_old", stop, **options)
        for prompt, work, plain in zip(prompts, every, old, strict=True):
            try:
                now, logit = work.value
                was, _ = plain.value
                found.append((prompt, now, logit))
                before.append(was)
            except ValueError as problem:
                refused.append((prompt.text, str(problem)))
    if refused:
        left_out_texts = [as_code(f"“{beginning(text, 40)}”: {why}") for text, why in refused[:5]]
        if len(refused) > 5:
            left_out_texts.append(f"and {len(refused) - 5} more")
        st.warning(f"{len(refused)} left out: {'; '.join(left_out_texts)}.")
    if not found:
        return
    n = len(found)
    kept = [prompt for prompt, _, _ in found]
    of_texts = Both([table for _, table, _ in found], None if scene.other is None else before)
    if of_texts.was and len(of_texts.was[0]) != len(of_texts.now[0]):
        of_texts = Both(of_texts.now)  # a change may have added a part, which the unchanged model has not
    if pairs:
        not_averaged = ["metric", "effect"]
    else:
        not_averaged = []
    tables = of_texts.map(lambda ones: averaged([one.drop(columns=not_averaged) for one in ones], columns))
    column, sign = drawn
    noun, unit = words
    both = tables.map(lambda t: (sign * t[column].to_numpy(float), t[f"{column}_se"].to_numpy(float)))
    mean, error = both.now
    rows = np.argsort(-np.abs(mean), kind="stable")[:LISTED].tolist()
    first = rows[0]
    logits = np.array([logit for _, _, logit in found])
    if n > 1:
        spread = logits.std(ddof=1) / n**0.5
    else:
        spread = np.nan
    how = f"mean ± standard error, n = {n}"
    if both.was is not None:
        how = f"unchanged {plus_minus(*(one[first] for one in both.was))}; {how}"
    if n >= ENOUGH:
        far = (np.abs(mean) > SURE * error).sum()
        sure = f"{far} lie more than {SURE:.0f} standard errors from 0."
    elif n > 1:
        sure = "With so few texts the standard error is a guess."
    else:
        sure = "One text has no standard error."
    prose(
        f"Over **{counted(n, 'text')}** the largest of {len(mean)} is {noun.format(names[first])}: "
        f"**{plus_minus(mean[first], error[first])}** {unit} ({how}). "
        f"In the text above it is {significant(sign * here[column].iloc[first])}. "
        f"The difference of logits itself is {plus_minus(logits.mean(), spread)}, above 0 in "
        f"{(logits > 0).sum()} of {n}. {sure}"
    )
    caption = f"The {len(rows)} largest means, with their standard errors."
    if tables.was is not None:
        caption += " Outlined is the unchanged model, at its own first choice where a line names no token."
    st.caption(caption)
    sheet.bars(
        scene,
        "many",
        both.map(lambda one: one[0][rows]),
        [names[i] for i in rows],
        unit,
        f"The largest means over {n} texts, with standard errors: {unit}",
        says=both.map(
            lambda m: [f"{names[i]}: {plus_minus(m[0][i], m[1][i])} {unit}, n = {n}" for i in rows]
        ),
        lying=True,
        signed=True,
        errors=error[rows],
        height=ROW * len(rows) + 80,
    )
    said = f"The means over {n} texts; _se is a mean's standard error, n how many texts there are."
    sheet.numbers_of("many", tables, said, what="many texts", missing="–")
    texts = pd.DataFrame(kept).map(lambda one: show_id(scene.lm, one) if isinstance(one, int) else one)
    sheet.numbers_of("many-texts", texts, what="the set of texts", missing="–")
    given: dict[str, Any] = {"clean" if pairs else "text": [one.text for one in kept]}
    given |= {"corrupt": [one.other for one in kept]} if pairs else {}
    given |= {"target": [one.target for one in kept], **options}
    sheet.code_of(scene, [], function, **given, key="in_code_many", what="many texts")


def beginning(text: str, length: int) -> str:
    """A text, or its beginning and an ellipsis if it has more characters than this."""
    if len(text) <= length:
        return text
    return f"{text[:length]}…"


# ---- the set ----


def _choose(lm: LanguageModel, pairs: bool) -> tuple[list[Prompt], Left]:
    """Draw what the set is chosen by; what of it can be read, and what cannot."""
    SET.within((NAMES, FILE))
    line = "one a line"
    if pairs:
        line = "a pair a line, a tab between the two"
    text = "One text proves little. A set of them gives a mean, and says how sure it is: a file of texts, "
    prose(f"{text}{line}, or sentences with two names.")
    if pairs:
        st.caption(
            "Both texts of a pair must have as many tokens. Pairs need not be of one length: a head is "
            "patched at all positions, and what has a position at the last token, where the answer is read. "
            "Any other position of one text is no place of another, longer one: there is no mean of it."
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        chosen = SET.value == NAMES
        who = "Who was given a thing? The indirect object of Wang et al., 2022"
        take = None if chosen else NAMES
        button("24 sentences with two names", "many_names", SET.set, take, primary=chosen, help=who)
        help = "After a tab, if you like: another text, the token, and the one that it is compared with. "
        help += "Without a token it is what the model says first."
        label = f"A file of texts, {line}"
        how: Any = {"help": help, "max_upload_size": LARGEST, "width": 420}
        st.file_uploader(label, "txt", key=_BOX, on_change=_opened, **how)
    if chosen:
        prompts = indirect_objects(lm)
        out = left_out(lm)
        caption = f"Of {escaped(lm.name)} too few of the names are single tokens: there is no sentence."
        if prompts:
            token, against = (as_code(str(word).replace(" ", "·")) for word in prompts[0].target)
            caption = f"Such as {as_code(prompts[0].text)}: the logit of {token} minus that of {against}."
        if out:
            tokens_of_words = [f"{word} ({count})" for word, count in out.items()]
            listed = ", ".join(tokens_of_words[:6])
            if len(tokens_of_words) > 6:
                listed += " …"
            caption += f" Left out, being more than one token here: {listed}."
        st.caption(caption)
        return prompts, []
    if SET.value == FILE:
        lines = st.session_state.get(_LINES)
    else:
        lines = ()
    if lines is None or isinstance(lines, str):
        st.warning(lines or "A link does not carry a file: open it here.")
        return [], []
    found = [(line, _read(lm, line, pairs)) for line in lines]
    return (
        [prompt for _, prompt in found if isinstance(prompt, Prompt)],
        [(line, why) for line, why in found if isinstance(why, str)],
    )


def _read(lm: LanguageModel, line: str, pairs: bool) -> Prompt | str:
    """A line of a file; a sentence where it cannot be read."""
    if len(line) > LONGEST:
        return f"it has more than {LONGEST:,} characters"
    text, other, *words = [*line.split("\t"), *[""] * 3][:4]
    if pairs and not other:
        return "it has no other text: write one after a tab"
    tokens = [target.find_token(lm, word) if word else None for word in words]
    wrong = [word for word, token in zip(words, tokens, strict=True) if word and token is None]
    if wrong:
        return f"{wrong[0]!r} is no single token of {lm.name}"
    return Prompt(text, tokens[0], tokens[1], other or None)


def _opened() -> None:
    """Callback: a file was opened; its lines, or why there are none."""
    sent = still_here(_BOX)
    SET.set(FILE if sent else None)
    if not sent:
        return
    held = sent[0].getvalue()[: 2**20 * LARGEST + 1]
    if len(held) > 2**20 * LARGEST:  # a browser refuses it before; not every visitor is one
        st.session_state[_LINES] = f"This file is larger than {LARGEST} MB. Open one with fewer texts."
        return
    try:
        text = held.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        st.session_state[_LINES] = "This file is no text in UTF-8: save it as such, and open it again."
        return
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > MOST:
        st.toast(f"Of {len(lines):,} lines the first {MOST} are read")
    st.session_state[_LINES] = tuple(lines[:MOST]) or "There is no text in this file: write one a line."
