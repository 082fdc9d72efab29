"""The Anatomy page's form: a config to be changed, beside the chosen model's.

What is typed stands in the session and in the address (?cfg_emb_dim=1024&cfg_n_heads=16 ...). If nothing is
typed, or only the model's own config, nothing stands there: then the form follows the model.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from gptviz.engine.kinds import Config
from gptviz.ui.buttons import button
from gptviz.ui.parts.anatomy import fields as known
from gptviz.ui.parts.anatomy.fields import fields_of, parts_of, preset_name, problem
from gptviz.ui.shell import params
from gptviz.ui.shell.params import Param
from gptviz.ui.words import escaped

STYLE = f"<style>{Path(__file__).with_name('anatomy.css').read_text(encoding='utf-8')}</style>"

SIZES = tuple(dict.fromkeys((*known.GPT2.sizes, *known.LLAMA.sizes)))
SWITCHES = tuple(dict.fromkeys((*known.GPT2.switches, *known.LLAMA.switches)))

# of every kind of config: a name that two have is one choice
CHOICES: dict[str, Param[Any]] = {
    **{name: Param(f"cfg_{name}", int, None) for name in SIZES},
    **{name: Param(f"cfg_{name}", bool, None) for name in SWITCHES},
}
PARAMS = tuple(CHOICES.values())

_SHOWN = "anatomy_shown"  # the last config that was possible
_PRESET = "anatomy_preset"


def write(values: dict[str, Any], base: Config) -> None:
    """Keep what the form holds: all of it, or nothing if it is the model's own config. For callbacks."""
    for name, value in values.items():
        CHOICES[name].set(None if values == parts_of(base) else value)


def form(base: Config, model: str, fields: Any) -> Config:
    """Draw the form, its inputs in the container `fields`; return the config that the page is to show.

    An impossible config stays in the form as it was typed, with a sentence; the page keeps the last possible
    one, at first `base`, the config of `model`.
    """
    values = parts_of(base)
    typed = {name: CHOICES[name].value for name in values}
    values |= {name: value for name, value in typed.items() if value is not None}
    _draw(values, base, model, fields)
    params.store(PARAMS)  # a rerun of a fragment alone draws no frame
    if values == parts_of(base):
        reason = None
    else:
        reason = problem(values, base)
    if reason is None:
        st.session_state[_SHOWN] = replace(base, **values)
    shown: Config = st.session_state.get(_SHOWN, base)
    if type(shown) is not type(base):  # of the model before, which was of another kind
        shown = base
    if reason is not None:
        fields.error(
            f"{reason} Until you change it, the page shows emb_dim {shown.emb_dim:,} with {shown.n_heads:,} heads and "
            f"{shown.n_layers:,} blocks."
        )
    return shown


def _draw(values: dict[str, Any], base: Config, model: str, fields: Any) -> None:
    """Draw the widgets, which always show `values`; a callback writes a change of any of them.

    The configs that there are stand here, the inputs in `fields`.
    """

    own = fields_of(base)

    def typed() -> None:
        write({name: st.session_state[f"anatomy_{name}"] for name in values}, base)

    def preset() -> None:
        name = st.session_state[_PRESET]
        if name is not None:  # a click on the chosen one takes the choice back: it stays
            write(parts_of(own.presets[name]), base)

    st.session_state[_PRESET] = preset_name(values, base)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="set_anatomy_presets"
    ):
        st.markdown("**Change the config**", width="content")
        st.pills(
            "Take the config of",
            list(own.presets),
            key=_PRESET,
            on_change=preset,
            label_visibility="collapsed",
            width="content",
            wrap=True,
        )
        model_values = parts_of(base)
        options: Any = {"icon": "undo", "type": "tertiary", "disabled": values == model_values}
        button(f"Back to {escaped(model)}", "anatomy_back", write, model_values, base, **options)
    with (
        fields,
        st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="set_anatomy"),
    ):
        for name, value in values.items():
            key = f"anatomy_{name}"
            st.session_state[key] = value
            if name in own.sizes:
                st.number_input(
                    name,
                    min_value=0,
                    step=1,
                    key=key,
                    width=160,
                    help=own.help[name],
                    on_change=typed,
                )
            else:
                st.toggle(name, key=key, help=own.help[name], on_change=typed)
