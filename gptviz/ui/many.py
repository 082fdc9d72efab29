"""One text proves little: what a page says of its prompt, of a set of texts, as means with standard errors.

The set is a file, one text a line, or sentences that are made here. A link carries the latter only.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import LanguageModel, Run
from gptviz.analysis.against import difference
from gptviz.analysis.indirect_object import indirect_objects, left_out
from gptviz.analysis.prompts import Prompt, part_of
from gptviz.both import Both
from gptviz.digits import plus_minus, significant
from gptviz.engine.progress import Progress
from gptviz.tokenizer.one import one_token
from gptviz.ui import runs, sheet
from gptviz.ui.shell import target
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.slow import is_asked_for, watched
from gptviz.ui.words import as_code, prose, show_id

NAMES, FILE = "names", "file"
SET: Param[str | None] = Param("many", str, None, if_there)

MOST = 200  # texts of a file
LISTED, ROW = 12, 26  # bars, and the pixels of one
SURE = 3.0  # standard errors from zero
_LINES, _ASKED = (
    "gptviz_many_lines",
    "gptviz_many_asked",
)  # in the session: the file's lines; what was asked for
_BOX = "many_file"

Left = list[tuple[str, str]]  # texts that are left out, and why


def section(
    scene: Scene,
    numbers: Callable[[LanguageModel, Prompt, Progress | None], Any],
    average: Callable[[Sequence[Any]], pd.DataFrame],
    drawn: tuple[str, int],
    here: pd.DataFrame,
    names: Sequence[str],
    words: tuple[str, str],
    passes: int,
    program: Callable[[list[Prompt]], tuple[Callable[..., Any], dict[str, Any]]],
    asked: tuple[object, ...] = (),
    pairs: bool = False,
) -> None:
    """The section of a page: the set, and for what `numbers` gives of each text, `average` of them.

    `drawn` is the column that is shown, and its sign; `here` the same rows of this page's prompt, `names`
    what they are called. `words` are what a row is ("the share of {}") and its unit. `asked` is all that
    `numbers` depends on beside the text; `program` the function and arguments of *In code*. `pairs`: each
    text has another one, of as many tokens.
    """
    st.subheader("Over many texts", anchor=False)
    prompts, left = _choose(scene, pairs)
    if not prompts:
        return
    tokens = sum(len(scene.lm.encode(prompt.text)) for prompt in prompts)
    of_set = (st.session_state.get(_LINES) if SET.value == FILE else SET.value, *asked)
    if is_asked_for(scene.lm, tokens, passes) and st.session_state.get(_ASKED) != of_set:
        label = f"Work it out: {len(prompts)} texts, {passes} passes each"
        set_going = partial(st.session_state.__setitem__, _ASKED, of_set)
        st.button(label, key="many_go", type="primary", on_click=set_going)
        return

    def work(progress: Progress) -> tuple[list[tuple[Any, float]], Left]:
        found: list[tuple[Any, float]] = []
        refused: Left = []
        for number, prompt in enumerate(prompts):
            told = part_of(progress, number, len(prompts))
            run = replace(scene.run, ids=tuple(scene.lm.encode(prompt.text)) or (0,))
            try:  # each is kept: who stops this goes on where it was
                one = partial(numbers, scene.lm, prompt, told)
                found.append(
                    (runs.runs().derived(("many", prompt, *asked), run, one), _difference(run, prompt))
                )
            except ValueError as error:
                refused.append((prompt.text, str(error)))
        return found, refused

    found, refused = watched(
        ("many", tuple(prompts), *asked),
        replace(scene.run, ids=(0,)),
        work,
        lambda done, of: f"text {min(len(prompts), done * len(prompts) // of + 1)} of {len(prompts)}",
        "many_stop",
        partial(SET.set, None),
    )
    _say_left([*left, *refused])
    if not found:
        return
    (column, sign), table = drawn, average([one for one, _ in found])
    mean, error = sign * table[column].to_numpy(float), table[f"{column}_se"].to_numpy(float)
    own = np.array([logit for _, logit in found])
    _draw(scene, mean, error, sign * here[column].to_numpy(float), names, words, own)
    sheet.numbers_of(
        "many",
        lambda: Both(table),
        f"The means over {len(found)} texts; _se is a mean's standard error, n how many texts there are.",
        what="many texts",
        missing="–",
    )
    out = {text for text, _ in refused}
    kept = [prompt for prompt in prompts if prompt.text not in out]
    frame = pd.DataFrame(kept)
    for name in ("token", "against"):
        frame[name] = [show_id(scene.lm, one) if isinstance(one, int) else one for one in frame[name]]
    sheet.numbers_of("many-texts", lambda: Both(frame), "The texts.", what="the set of texts", missing="–")
    function, arguments = program(kept)
    sheet.code_of(scene, [], function, **arguments, key="in_code_many", what="many texts")


def _difference(run: Run, prompt: Prompt) -> float:
    """The logit of the prompt's token, or the model's first choice, minus that of the other, or the mean."""
    lm, logits = runs.model(run), target.logits_at(run, len(run.ids) - 1)
    ids = [
        None if one is None else one_token(lm.tokenizer, lm.config.vocab_size, one)
        for one in (prompt.token, prompt.against)
    ]
    return float(difference(logits, int(logits.argmax()) if ids[0] is None else ids[0], ids[1]))


def _draw(
    scene: Scene,
    mean: NDArray[np.float64],
    error: NDArray[np.float64],
    here: NDArray[np.float64],
    names: Sequence[str],
    words: tuple[str, str],
    own: NDArray[np.float64],
) -> None:
    n = len(own)
    rows = np.argsort(-np.abs(mean), kind="stable")[:LISTED].tolist()
    first, (noun, unit) = rows[0], words
    text = f"Over **{n} text{'s' * (n > 1)}** the largest of {len(mean)} is {noun.format(names[first])}: "
    text += f"**{plus_minus(mean[first], error[first])}** {unit} (mean ± standard error, n = {n}). "
    text += f"In the text above it is {significant(here[first])}. "
    spread = own.std(ddof=1) / n**0.5 if n > 1 else np.nan
    text += f"The difference of logits itself is {plus_minus(own.mean(), spread)}, above 0 in "
    text += f"{(own > 0).sum()} of {n}. "
    if n > 1:
        sure = int((np.abs(mean) > SURE * error).sum())
        text += f"{sure} lie more than {SURE:.0f} standard errors from 0."
    else:
        text += "Of a single text there is no standard error."
    prose(text)
    whose = "" if scene.other is None else " All of the changed model."
    st.caption(f"The {len(rows)} largest means, with their standard errors.{whose}")
    sheet.bars(
        scene,
        "many",
        Both(mean[rows]),
        [names[i] for i in rows],
        unit,
        f"The largest means over {n} texts, with standard errors: {unit}",
        says=Both([f"{names[i]}: {plus_minus(mean[i], error[i])} {unit}, n = {n}" for i in rows]),
        lying=True,
        signed=True,
        errors=error[rows],
        height=ROW * len(rows) + 80,
    )


# ---- the set ----


def _choose(scene: Scene, pairs: bool) -> tuple[list[Prompt], Left]:
    """Draw what the set is chosen by; what of it can be read, and what cannot."""
    lm = scene.lm
    SET.within((NAMES, FILE))
    line = "a pair a line, a tab between the two" if pairs else "one a line"
    text = "One text proves little. A set of them gives a mean, and says how sure it is: a file of texts, "
    prose(f"{text}{line}, or sentences with two names.")
    if pairs:
        st.caption(
            "Both texts of a pair must have as many tokens. Pairs need not be of one length: patched is the "
            "output of a head, at all positions. By position only pairs of one length could be averaged."
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.button(
            "24 sentences with two names",
            key="many_names",
            type="primary" if SET.value == NAMES else "secondary",
            help="Who was given a thing? The indirect object of Wang et al., 2022",
            on_click=_take,
            args=(NAMES,),
        )
        help = "After a tab, if you like: another text, the token, and the one that it is compared with. "
        help += "Without a token it is what the model says first."
        st.file_uploader(
            f"A file of texts, {line}",
            "txt",
            key=_BOX,
            help=help,
            on_change=_opened,
            max_upload_size=1,
            width=420,
        )
    if SET.value == NAMES:
        prompts, out = indirect_objects(lm), left_out(lm)
        said = [f"Of {lm.name} too few of the names are single tokens: there is no sentence."]
        for one in prompts[:1]:
            words = [as_code(str(word).replace(" ", "·")) for word in (one.token, one.against)]
            said = [f"Such as {as_code(one.text)}: the logit of {words[0]} minus that of {words[1]}."]
        if out:
            some = ", ".join(f"{word} ({count})" for word, count in list(out.items())[:6])
            said.append(f"Left out, being more than one token here: {some}{' …' * (len(out) > 6)}.")
        st.caption(" ".join(said))
        return prompts, []
    lines = st.session_state.get(_LINES)
    if SET.value != FILE or lines is None:
        if SET.value == FILE:
            st.caption("A link does not carry a file: open it here.")
        return [], []
    if isinstance(lines, str):
        st.warning(lines)
        return [], []
    found, left = [], []
    for line in lines:
        prompt = _read(lm, line, pairs)
        if isinstance(prompt, str):
            left.append((line, prompt))
        else:
            found.append(prompt)
    if not found:
        _say_left(left)
    return found, left


def _read(lm: LanguageModel, line: str, pairs: bool) -> Prompt | str:
    """A line of a file; a sentence where it cannot be read."""
    text, other, *words = [*line.split("\t"), *[""] * 3][:4]
    if pairs and not other:
        return "it has no other text: write one after a tab"
    tokens = [target.find_token(lm, word) if word else None for word in words]
    wrong = next((word for word, token in zip(words, tokens, strict=True) if word and token is None), None)
    if wrong is not None:
        return f"{wrong!r} is no single token of {lm.name}"
    return Prompt(text, tokens[0], tokens[1], other or None)


def _say_left(left: Left) -> None:
    if left:
        some = [f"“{text[:40]}{'…' * (len(text) > 40)}”: {why}" for text, why in left[:5]]
        st.warning(
            f"{len(left)} of the texts {'is' if len(left) == 1 else 'are'} left out. "
            + "; ".join(as_code(one) for one in some)
            + ("." if len(left) <= 5 else f"; and {len(left) - 5} more.")
        )


# ---- callbacks ----


def _take(chosen: str) -> None:
    """This set, or none where it is the set already."""
    SET.set(None if SET.value == chosen else chosen)


def _opened() -> None:
    """A file was opened: its lines, or why there are none."""
    file = st.session_state[_BOX]
    if file is None:
        return
    try:
        text = file.getvalue().decode("utf-8-sig")
    except UnicodeDecodeError:
        st.session_state[_LINES] = "This file is no text in UTF-8: save it as such, and open it again."
    else:
        lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
        some = f"Of {len(lines):,} lines the first {MOST} are read" if len(lines) > MOST else ""
        st.session_state[_LINES] = tuple(lines[:MOST]) or "There is no text in this file: write one a line."
        if some:
            st.toast(some)
    SET.set(FILE)
