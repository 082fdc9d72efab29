"""Patching: where in the pass the answer is: one value of another text put in, place by place."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis.activation_patching import Ends
from gptviz.analysis.alignment import differing
from gptviz.analysis.patches import Patch
from gptviz.analysis.shapes import run_first_block
from gptviz.figures import patching as figures
from gptviz.model import TransformerBlock
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views import target
from gptviz.ui.views.both import caption
from gptviz.ui.views.patching import choice, derived, heads, words
from gptviz.ui.views.patching.choice import SITE, WAY, Other
from gptviz.ui.views.patching.derived import Pair
from gptviz.ui.views.patching.passes import GO, LEAST, Patched, beside, ends_beside, patched, told
from gptviz.ui.views.patching.snippet import effects as effects_in_python
from gptviz.ui.views.patching.words import DENOISING, HEAD_SITES, LOGITS, Cell, Said
from gptviz.ui.views.sideways import sideways
from gptviz.ui.words import show_id

PARAMS = (*choice.PARAMS, GO, *target.PARAMS)


def draw(scene: Scene) -> None:
    """The page under the prompt."""
    WAY.within(words.WAYS)
    SITE.within(words.SITES)
    other = choice.choose(scene)
    if other is None or choice.lengths_differ(scene, other):
        choice.pairs_row(scene, other)
        in_numbers(lambda: _tokens(scene, other), "patching-tokens", words.TOKENS, "both texts", missing="–")
        return
    pair = derived.pair_of(scene.run, other.ids)
    sentence = st.container()
    _controls(scene, other)
    picture = st.container()
    ends = _ends(scene, pair)
    tables = []
    how = WAY.value if ends is None else told(scene, pair, ends)
    if ends is not None:
        with picture:
            found = patched(scene, pair, ends, (SITE.value,), f"patching_{SITE.value}", how)
        if found is not None:
            old = beside(scene, pair, ends, (SITE.value,), f"patching_{SITE.value}", how)
            tables.append(found.with_unchanged(old))
            with picture:
                _draw_map(scene, other, pair, found, old, how)
            with sentence:
                prose(_sentence(scene, pair, other, found, old, how), "block", "residual stream")
            _together(scene, pair, ends, how)
    prose(words.WATCH[SITE.value] + " " + words.CLICK, "block", "attention", "feed-forward")
    prose(words.DIRECTIONS)
    choice.pairs_row(scene, other)
    if ends is not None:
        table = heads.draw(scene, other, pair, ends, how)
        tables += [] if table is None else [table]
    _details(scene, other, pair, ends, tables, how)


def _controls(scene: Scene, other: Other) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        WAY.widget(
            st.segmented_control,
            "Direction",
            label_visibility="collapsed",
            help="The two texts change places: the clean one stays the clean one.",
            options=list(words.WAYS),
            format_func=words.WAYS.__getitem__,
            required=True,
            on_change=choice.turn,
            args=(scene, other),
        )
        SITE.widget(
            st.segmented_control,
            "What is patched, at one position of one block",
            label_visibility="collapsed",
            options=list(words.SITES),
            format_func=words.SITES.__getitem__,
            required=True,
        )


# ---- the scale ----


def _ends(scene: Scene, pair: Pair) -> Ends | None:
    """Draw the boxes of the two words; the scale, or a sentence and None where there is none."""
    clean, corrupt = pair.clean_and_corrupt(WAY.value == DENOISING)
    firsts = [show_id(scene.lm, derived.first_choice(run, scene.position)[0]) for run in (clean, corrupt)]
    token, against = target.pair_input(
        scene,
        ("Clean answer", "Corrupt answer"),
        (f"the clean text's: {firsts[0]}", f"the corrupt text's: {firsts[1]}"),
    )
    if token is None and against is None and firsts[0] == firsts[1]:
        st.warning(words.same_answer(firsts[0]))
        return None
    try:
        ends = derived.ends(clean, corrupt, scene.position, token, against)
    except ValueError as error:
        st.warning(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return None
    shown = show_id(scene.lm, ends.token), show_id(scene.lm, ends.against)
    if not ends.is_scale:
        st.warning(words.no_scale(*shown, ends.clean, ends.corrupt))
        return None
    old = ends_beside(scene, pair, ends)
    unchanged = None if old is None else (old.clean, old.corrupt)
    st.caption(words.scale(*shown, ends.clean, ends.corrupt, told(scene, pair, ends), unchanged))
    return ends


# ---- the maps ----


def _draw_map(scene: Scene, other: Other, pair: Pair, found: Patched, old: Patched | None, told: str) -> None:
    layers, n, site = scene.lm.config.n_layers, scene.position + 1, SITE.value
    labels = list(zip(scene.labels, (show_id(scene.lm, i) for i in other.ids), strict=True))[:n]
    cells = [(b, p) for b, p in derived.cells_of(pair.patches, site) if p < n]
    if n > 12:
        sideways("patching_map", 560)
    scene.chart(
        figures.position_map(
            found.effects[0],
            labels,
            words.capital(words.PLACES[site]),
            cells,
            derived.reached(pair.patches, site, layers, n),
            scene.mode,
            None if old is None else old.effects[0],
            words.unit(told),
        ),
        key="patching_map",
        alt=f"{words.SITES[site]} patched at each block and position ({WAY.value})",
        which=(WAY.value, site),
    )
    cell_clicks(
        "patching_map",
        layers,
        n,
        lambda block, place: choice.toggle(Patch(site, block, position=place).edit(other.ids), other),
        scene.mode,
    )


# ---- what is said ----


def _sentence(scene: Scene, pair: Pair, other: Other, found: Patched, old: Patched | None, told: str) -> str:
    says = []
    for run in (pair.own, pair.other):
        token, probability = derived.first_choice(run, scene.position)
        says.append(Said(show_id(scene.lm, token), probability))
    first, second = _cells(scene, other, found.effects[0])
    said = words.sentence(told, SITE.value, scene.label, says[0], says[1], first, second, LEAST)
    if old is None or abs(first.effect) < LEAST:
        return said
    return said + words.then(told, words.FIRST, float(old.effects[0][first.block, first.position]))


def _cells(scene: Scene, other: Other, effects: NDArray[np.float64]) -> tuple[Cell, Cell | None]:
    """The cells that the sentence names."""
    differ = differing([token.id for token in scene.tokens], other.ids)
    first, second = (
        place
        and Cell(
            *place, scene.labels[place[1]], show_id(scene.lm, other.ids[place[1]]), float(effects[place])
        )
        for place in strongest(SITE.value, effects, differ)
    )
    assert first is not None
    return first, second


Place = tuple[int, int]  # block, position


def strongest(site: str, effects: NDArray[np.float64], differ: Sequence[int]) -> tuple[Place, Place | None]:
    """The two cells of (L, T) that move most; of the stream those into the second block, and into the last.

    The stream into the first block is the text itself: where the two `differ`, a patch there is the
    difference itself, and named nowhere.
    """
    if site == "resid_pre":
        last = len(effects) - 1
        sizes = np.abs(effects)
        sizes[0, [p for p in differ if p < effects.shape[1]]] = 0
        places = [(b, int(sizes[b].argmax())) for b in dict.fromkeys((min(1, last), last))]
    else:
        order = np.argsort(-np.abs(effects).ravel(), kind="stable")[:2]
        places = [(int(i) // effects.shape[1], int(i) % effects.shape[1]) for i in order]
    return places[0], places[1] if len(places) > 1 else None


def _together(scene: Scene, pair: Pair, ends: Ends, told: str) -> None:
    if pair.patches:
        made = _made(scene, ends, told)
        effect = made["change" if told == LOGITS else "effect"]
        st.html(
            f'<div data-testid="patches_made" data-count="{len(pair.patches)}" data-effect="{effect}" '
            f'data-logit="{made["logit"]}"></div>'
        )
        prose(words.together(len(pair.patches), effect, told))


def _made(scene: Scene, ends: Ends, told: str) -> dict[str, float]:
    """What all patches that are made come to, as the table has it of one."""
    logit, metric = derived.made(scene.run, scene.position, ends)
    effect = metric - (0.0 if WAY.value == DENOISING else 1.0)
    if told == LOGITS:
        return {"logit": logit, "change": effect * ends.distance}
    return {"logit": logit, "metric": metric, "effect": effect}


# ---- the details ----


def _details(
    scene: Scene, other: Other, pair: Pair, ends: Ends | None, found: list[pd.DataFrame], told: str
) -> None:
    if found and ends is not None:
        in_numbers(
            lambda: _table(scene, pair, ends, found, told),
            "patching",
            caption(words.numbers(told), pair.own.edits or None),
            "every patch",
            missing="–",
        )
    in_numbers(lambda: _tokens(scene, other), "patching-tokens", words.TOKENS, "both texts", missing="–")
    if ends is None:
        return
    texts = (other.text, scene.text) if WAY.value == DENOISING else (scene.text, other.text)
    in_code(
        [TransformerBlock.forward],
        program(
            effects_in_python,
            replace(scene, run=pair.own).load,
            clean=texts[0],
            corrupt=texts[1],
            target=(ends.token, ends.against),
            direction=WAY.value,
            position=scene.position,
            sites=(SITE.value, *HEAD_SITES),
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _table(scene: Scene, pair: Pair, ends: Ends, found: list[pd.DataFrame], told: str) -> pd.DataFrame:
    rows = pd.concat(found, ignore_index=True)
    if pair.patches:
        made = {"site": "all that are made"} | _made(scene, ends, told)
        rows = pd.concat([rows, pd.DataFrame([made])], ignore_index=True)
    return rows


def _tokens(scene: Scene, other: Other | None) -> pd.DataFrame:
    """A row a position: the token of each text, and how probable the model's first choices are after it."""
    labels = [] if other is None else [show_id(scene.lm, i) for i in other.ids]
    count = max(len(scene.labels), len(labels))
    columns = {
        name: [tokens[i] if i < len(tokens) else None for i in range(count)]
        for name, tokens in (("prompt", scene.labels), ("other text", labels))
    }
    return pd.DataFrame({"position": range(count), **columns})
