"""The Anatomy page's form: a config to be changed, beside the chosen model's.

What is typed stands in the session and in the address (?cfg_emb_dim=1024&cfg_n_heads=16 ...). If nothing is
typed, or only the model's own config, nothing stands there: then the form follows the model.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from gptviz.analysis.anatomy import NOTEBOOK
from gptviz.engine.config import GPTConfig, divisors
from gptviz.engine.kinds import gpt2s
from gptviz.model import GPT_CONFIG_124M
from gptviz.models.checkpoints.hub import HUB_MODELS
from gptviz.ui.buttons import button
from gptviz.ui.shell import params
from gptviz.ui.shell.params import Param
from gptviz.ui.words import escaped

STYLE = f"<style>{Path(__file__).with_name('anatomy.css').read_text(encoding='utf-8')}</style>"

SIZES = ("vocab_size", "context_length", "emb_dim", "n_heads", "n_layers")
SWITCHES = ("qkv_bias", "tie_embeddings", "linear_bias", "norm_bias")

# What the page can draw, and the address can hold: a model of 10^13 parameters still fits.
MOST = {"vocab_size": 999_999, "context_length": 999_999, "emb_dim": 65_536, "n_layers": 200}

CHOICES: dict[str, Param[Any]] = {
    **{name: Param(f"cfg_{name}", int, None) for name in SIZES},
    **{name: Param(f"cfg_{name}", bool, None) for name in SWITCHES},
}
PARAMS = tuple(CHOICES.values())

PRESETS: dict[str, GPTConfig] = {
    "GPT-2 small": gpt2s(HUB_MODELS["gpt2"].config),
    "medium": gpt2s(HUB_MODELS["gpt2-medium"].config),
    "large": gpt2s(HUB_MODELS["gpt2-large"].config),
    "XL": gpt2s(HUB_MODELS["gpt2-xl"].config),
    "DistilGPT-2": gpt2s(HUB_MODELS["distilgpt2"].config),
    "Let's build GPT": NOTEBOOK,
    "the book's 124M": GPTConfig.from_dict(GPT_CONFIG_124M),
}

HELP = {
    "vocab_size": "How many tokens the model knows: one row each in tok_emb and in out_head.",
    "context_length": "How many tokens the model can read at once: one row each in pos_emb.",
    "emb_dim": "How many numbers represent a token. Every tensor grows with it, the blocks' matrices with its square.",
    "n_heads": "How many heads share the emb_dim columns. It does not change the number of parameters.",
    "n_layers": "How many blocks there are, all of the same size.",
    "qkv_bias": "Whether W_query, W_key and W_value add a bias: OpenAI's GPT-2 does, the book's does not.",
    "tie_embeddings": "Whether out_head uses the numbers of tok_emb, as in OpenAI's GPT-2, or its own.",
    "linear_bias": "Whether out_proj and the feed-forward add a bias; nanoGPT's `bias=False` has none.",
    "norm_bias": "Whether the LayerNorms have a shift besides their scale; nanoGPT's `bias=False` has none.",
}

_SHOWN = "anatomy_shown"  # the last config that was possible
_PRESET = "anatomy_preset"


def parts_of(config: GPTConfig) -> dict[str, Any]:
    """A config's values in the form: all that the sum of parameters depends on, and n_heads."""
    return {name: getattr(config, name) for name in (*SIZES, *SWITCHES)}


def preset_name(values: dict[str, Any]) -> str | None:
    """The name of the preset that has exactly these values; None if there is none."""
    return next((name for name, config in PRESETS.items() if parts_of(config) == values), None)


def write(values: dict[str, Any], base: GPTConfig) -> None:
    """Keep what the form holds: all of it, or nothing if it is the model's own config. For callbacks."""
    for name, value in values.items():
        CHOICES[name].set(None if values == parts_of(base) else value)


def problem(values: dict[str, Any]) -> str | None:
    """Why there is no such model, or none that this page draws: a sentence, or None."""
    for name in SIZES:
        if values[name] < 1:
            return f"{name} is {values[name]:,}; it must be at least 1."
        if values[name] > MOST.get(name, values[name]):
            return f"{name} is {values[name]:,}; this page goes up to {MOST[name]:,}."
    width = values["emb_dim"]
    heads = values["n_heads"]
    if width % heads == 0:
        return None
    close = [n for n in divisors(width) if n < heads][-1:] + [
        n for n in divisors(width) if n > heads
    ][:1]
    widths = [n for n in (width // heads * heads, (width // heads + 1) * heads) if n]
    either, or_else = (" or ".join(f"{n:,}" for n in numbers) for numbers in (close, widths))
    return (
        f"emb_dim {width:,} cannot be divided among {heads:,} heads: each must get the same whole number "
        f"of dimensions. {either} heads would do, or emb_dim {or_else}."
    )


def form(base: GPTConfig, model: str, fields: Any) -> GPTConfig:
    """Draw the form, its inputs in the container `fields`; return the config that the page is to show.

    An impossible config stays in the form as it was typed, with a sentence; the page keeps the last possible
    one, at first `base`, the config of `model`.
    """
    values = parts_of(base)
    values |= {name: param.value for name, param in CHOICES.items() if param.value is not None}
    _draw(values, base, model, fields)
    params.store(PARAMS)  # a rerun of a fragment alone draws no frame
    if values == parts_of(base):
        reason = None
    else:
        reason = problem(values)
    if reason is None:
        st.session_state[_SHOWN] = replace(base, **values)
    shown: GPTConfig = st.session_state.get(_SHOWN, base)
    if reason is not None:
        fields.error(
            f"{reason} Until you change it, the page shows emb_dim {shown.emb_dim:,} with {shown.n_heads:,} heads and "
            f"{shown.n_layers:,} blocks."
        )
    return shown


def _draw(values: dict[str, Any], base: GPTConfig, model: str, fields: Any) -> None:
    """Draw the widgets, which always show `values`; a callback writes a change of any of them.

    The configs that there are stand here, the inputs in `fields`.
    """

    def typed() -> None:
        write({name: st.session_state[f"anatomy_{name}"] for name in values}, base)

    def preset() -> None:
        name = st.session_state[_PRESET]
        if name is not None:  # a click on the chosen one takes the choice back: it stays
            write(parts_of(PRESETS[name]), base)

    st.session_state[_PRESET] = preset_name(values)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="set_anatomy_presets"
    ):
        st.markdown("**Change the config**", width="content")
        st.pills(
            "Take the config of",
            list(PRESETS),
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
            if name in SIZES:
                st.number_input(
                    name, min_value=0, step=1, key=key, width=160, help=HELP[name], on_change=typed
                )
            else:
                st.toggle(name, key=key, help=HELP[name], on_change=typed)
