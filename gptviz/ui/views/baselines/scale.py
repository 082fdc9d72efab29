"""All models of the Baselines page on one scale: bits a byte of the same held-out text."""

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from gptviz import LanguageModel, Run
from gptviz.figures.baselines import on_one_scale
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Frame
from gptviz.ui.views.baselines import derived, words
from gptviz.ui.views.baselines.derived import Fit, Reading

UNASKED = 10**11  # parameters x tokens that are read without being asked for: a few seconds
MOST_PASSES = 64
_READ = "base_read"  # in the session: what models cost, by their keys
_ASKED = "base_asked"  # and the keys of those that are to be read


@dataclass(frozen=True)
class Scale:
    """Names and their bits a byte, worst first, and the chosen model's, None while it has none."""

    rows: tuple[tuple[str, float], ...]
    model: tuple[str, float] | None

    def table(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows, columns=["model", "bits a byte"])


def measured(scene: Frame, text: str, mlp: Fit) -> Scale:
    """What each costs, as far as it is known; the model's windows are looked up if this session read them."""
    bits, lm = derived.counted_bits(text), scene.lm
    rows = [
        (f"blind guess among {bits.characters}", bits.blind),
        ("single characters", bits.unigram),
        ("bigram", bits.bigram),
    ]
    if mlp.step:
        rows.append((f"MLP, {mlp.recipe.context} back", mlp.held_out[-1]))
    model = None
    cost = st.session_state.get(_READ, {}).get(scene.key)
    if cost is not None:
        model = lm.name, cost
        rows.append(model)
    return Scale(tuple(rows), model)


def draw(scene: Frame, text: str, mlp: Fit, found: Scale) -> None:
    st.subheader("On one scale", anchor=False)
    names, values = zip(*found.rows, strict=True)
    chosen = len(names) - 1 if found.model else names.index("bigram")
    scene.chart(
        on_one_scale(names, values, chosen, scene.mode),
        key="baselines_scale",
        alt="Bits for a byte of the same held-out text: " + ", ".join(names),
    )
    reading = derived.reading(scene.lm)
    if reading is None:
        st.markdown(words.no_model(scene.lm.name))
    elif not found.model and not _wanted(scene, reading):
        st.button(
            words.ask(scene.lm.name, len(reading.windows)),
            key="base_measure",
            on_click=_ask,
            args=(scene.key,),
        )
    prose(words.scale(derived.counted_bits(text), mlp.step, found.model), "token", "bias")


def go_on(scene: Frame) -> None:
    """Read the held-out text with the chosen model, if nobody has yet, and draw the page again."""
    found = derived.reading(scene.lm)
    if found is None or scene.key in st.session_state.get(_READ, ()) or not _wanted(scene, found):
        return
    bar, nats = st.empty(), []
    for number, window in enumerate(found.windows, start=1):
        bar.progress(number / len(found.windows), words.reading(number, len(found.windows)))
        nats.append(derived.nats(Run(scene.key, window)))
    st.session_state[_READ] = {**st.session_state.get(_READ, {}), scene.key: derived.bits_of(nats, found)}
    st.rerun()


def _wanted(scene: Frame, found: Reading) -> bool:
    """Whether it is quick, or asked for."""
    return scene.key in st.session_state.get(_ASKED, ()) or _is_quick(scene.lm, found)


def _is_quick(lm: LanguageModel, found: Reading) -> bool:
    tokens = sum(map(len, found.windows))
    return lm.config.parameters * tokens <= UNASKED and len(found.windows) <= MOST_PASSES


def _ask(key: str) -> None:
    st.session_state[_ASKED] = {*st.session_state.get(_ASKED, ()), key}
