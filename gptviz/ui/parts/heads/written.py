"""What a head writes for a word against how much it looks at it, over many texts: Wang et al., 2022, figure 3c."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.answer_looks import NAMES, attention_and_projection
from gptviz.analysis.prompts import Prompt
from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.figures.heads import looked_and_written
from gptviz.ui import many, sheet
from gptviz.ui.shell import state
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import counted, prose

CALLED = dict(zip(NAMES, ("the answer", "what might be said instead"), strict=True))
OF_NAMES = dict(zip(NAMES, ("the answer (IO)", "the other name (S)"), strict=True))
BEGINNING = 60  # characters of a text, in a hover


@dataclass(frozen=True)
class Written:
    """A head's rows of `attention_and_projection`, of both models, and the texts that they are of."""

    rows: Both[pd.DataFrame]
    prompts: Sequence[Prompt]


def draw(scene: Scene, prompts: Sequence[Prompt], block: int, head: int) -> Written:
    """Draw the section: two points a text, one for each of its two words, and whether they rise together."""
    called = CALLED
    word = "word"
    if all(prompt.order for prompt in prompts):
        called = OF_NAMES
        word = "name"
    st.subheader(f"Does head {block}·{head} write the {word} that it looks at?", anchor=False)
    rows = Both(_of_head(scene.run, prompts, block, head, "Attention and writing", "written_stop"))
    if scene.other is not None:
        says = "Unchanged model: attention and writing"
        rows = Both(rows.now, _of_head(scene.other, prompts, block, head, says, "written_stop_old"))
    points = rows.map(lambda table: table[table["places"] > 0])
    if not all(len(table) for table in points.all):
        prose(f"In none of the {counted(len(prompts), 'text')} stands one of its two words.")
        return Written(rows, prompts)
    n = points.now["text"].nunique()
    prose(_told(points.map(correlation), n, word))
    fig = looked_and_written(
        points.map(lambda table: table.assign(says=_says(table, prompts))),
        called,
        (
            f"attention from the last token to the {word}",
            f"what it writes for that {word} (logits)",
        ),
        scene.mode,
    )
    replace(scene, files_say=()).chart(
        fig,
        key="heads_written",
        alt=f"What block {block}, head {head} writes for a {word}, by its attention to it: {counted(n, 'text')}",
        pick=lambda point: _open(prompts[point["customdata"][0]].text),
        which=(f"block{block}", f"head{head}"),
    )
    st.caption(_measured(points.now, called, word, scene.norm))
    return Written(rows, prompts)


def tabs(scene: Scene, written: Written | None) -> None:
    """Name the tabs of the page's details: the numbers behind the picture, and their Python."""
    if written is None:
        return
    caption = (
        "A row a text (from 0) and word: `attention` from the last token to all `places` of the token, and "
        "`projection`, what the head writes for it. The Python gives all heads."
    )
    what = "attention and writing"
    sheet.numbers_of("heads-written", written.rows, caption, what)
    sheet.code_of(
        scene,
        [],
        attention_and_projection,
        text=[prompt.text for prompt in written.prompts],
        target=[prompt.target for prompt in written.prompts],
        key="in_code_written",
        what=what,
    )


def correlation(table: pd.DataFrame) -> float:
    """Pearson's r of `attention` and `projection`: NaN where one of them is the same in all rows."""
    both = table[["attention", "projection"]].to_numpy(float)  # (n, 2)
    if (both == both[0]).all(axis=0).any():
        return math.nan
    return float(np.corrcoef(both.T)[0, 1])


def _of_head(
    run: Run, prompts: Sequence[Prompt], block: int, head: int, says: str, key: str
) -> pd.DataFrame:
    """A head's rows, a pass a text for all heads: another head then needs none."""
    found = sheet.all_worked(
        run,
        attention_and_projection,
        [(prompt.text, prompt.target) for prompt in prompts],
        f"{says}: {{}} of {{}} texts".format,
        key,
        partial(many.SET.set, None),
    )
    table = pd.concat([own.assign(text=number) for number, own in enumerate(found)])
    return table[(table["block"] == block) & (table["head"] == head)].reset_index(drop=True)


def _told(r: Both[float], n: int, word: str) -> str:
    """The sentence over the picture: whether what the head writes rises with how much it looks."""
    if math.isnan(r.now):
        return "It looks alike, or writes alike, in all of these texts: nothing rises or falls."
    if r.was is not None and math.isnan(r.was):
        r = Both(r.now)
    said = f"r = **{r:.2}** over {counted(n, 'text')}"
    if n < many.ENOUGH:
        return f"{said}: too few to tell whether it writes what it looks at."
    # Fisher's z; a text's two points are no more than one text
    if abs(math.atanh(min(abs(r.now), 1 - 1e-9))) * math.sqrt(n - 3) < many.SURE:
        return f"That it writes more where it looks more is not shown: {said}."
    way = "more" if r.now > 0 else "less"
    return f"Where it looks more at a {word}, it writes {way} of it: {said}."


def _measured(table: pd.DataFrame, called: dict[str, str], word: str, norm: str) -> str:
    """The caption: what a point is, the two kinds of points apart, and what a click does."""
    apart = []
    for name, shown in called.items():
        own = table[table["name"] == name]
        if len(own) >= many.ENOUGH and not math.isnan(correlation(own)):
            looks = fixed(own["attention"].mean(), 2)
            apart.append(f"{fixed(correlation(own), 2)} for {shown}, mean attention {looks}")
    both = ""
    if len(apart) == len(called):
        both = f" Each alone: r = {'; '.join(apart)}."
    return (
        f"Each point is a {word} of one text. Attention to one that stands there twice is summed. What the head "
        f"writes is its direct contribution to the {word}’s logit, minus the mean of all logits, with the final "
        f"{norm}’s divisor held: in papers its projection. Rising alone is copying: a *name "
        f"mover* also looks more at the answer than at the other {word}; a negative one falls.{both} "
        "A click opens the text."
    )


def _says(table: pd.DataFrame, prompts: Sequence[Prompt]) -> list[str]:
    """The hovers: the text's number, its word and both numbers; in a second line how the text begins."""
    return [
        f"text {row.text}, {row.token.replace(' ', '·')}: attention {significant(row.attention)}, "
        f"writes {significant(row.projection)}\n{many.beginning(prompts[row.text].text, BEGINNING)}"
        for row in table.itertuples()
    ]


def _open(text: str) -> None:
    """Callback of a click on a point: the page is about this text."""
    state.change(text=text, token=None)
