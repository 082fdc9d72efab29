"""The Anatomy page's form: a config to be changed, beside the chosen model's.

What somebody has typed stands in the session and in the address (?cfg_emb_dim=1024&cfg_n_heads=16 ...). As
long as nothing is typed, or what is typed is the model's own config, there is nothing there: then the form
follows the model.
"""

from dataclasses import replace
from typing import Any

import streamlit as st

from gptviz.checkpoints.hub import HUB_MODELS
from gptviz.engine.config import GPTConfig, divisors
from gptviz.model import GPT_CONFIG_124M
from gptviz.ui.shell import params
from gptviz.ui.shell.params import Param

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
    "GPT-2 small": HUB_MODELS["gpt2"].config,
    "medium": HUB_MODELS["gpt2-medium"].config,
    "large": HUB_MODELS["gpt2-large"].config,
    "XL": HUB_MODELS["gpt2-xl"].config,
    "DistilGPT-2": HUB_MODELS["distilgpt2"].config,
    "the book's 124M": GPTConfig.from_dict(GPT_CONFIG_124M),
}

HELP = {
    "vocab_size": "How many tokens there are: a row each in tok_emb and in out_head.",
    "context_length": "How many tokens the model can read at once: a row each in pos_emb.",
    "emb_dim": "How many numbers stand for a token. Every tensor has it, the matrices of the blocks twice.",
    "n_heads": "Among how many heads the emb_dim columns are divided. It is in no line of the sum.",
    "n_layers": "How many blocks there are, all of one size.",
    "qkv_bias": "Whether W_query, W_key and W_value add a bias: OpenAI's GPT-2 does, the book's does not.",
    "tie_embeddings": "Whether out_head uses the numbers of tok_emb, as in OpenAI's GPT-2, or its own.",
    "linear_bias": "Whether out_proj and the feed-forward add a bias; nanoGPT's `bias=False` has none.",
    "norm_bias": "Whether the LayerNorms have a shift besides their scale; nanoGPT's `bias=False` has none.",
}

_SHOWN = "anatomy_shown"  # the last config that was possible
_PRESET = "anatomy_preset"


def typed(base: GPTConfig) -> dict[str, Any]:
    """What the form holds: the session's choices, and the model's own config where there are none."""
    values: dict[str, Any] = {}
    for name in (*SIZES, *SWITCHES):
        choice = CHOICES[name].value
        values[name] = getattr(base, name) if choice is None else choice
    return values


def write(values: dict[str, Any], base: GPTConfig) -> None:
    """Keep what the form holds: all of it, or nothing if it is the model's own config. For callbacks."""
    own = all(value == getattr(base, name) for name, value in values.items())
    for name, value in values.items():
        CHOICES[name].set(None if own else value)


def problem(values: dict[str, Any]) -> str | None:
    """Why there is no such model, or none that this page draws: a sentence, or None."""
    for name in SIZES:
        if values[name] < 1:
            return f"{name} is {values[name]:,}; it must be at least 1."
        if values[name] > MOST.get(name, values[name]):
            return f"{name} is {values[name]:,}; this page goes up to {MOST[name]:,}."
    width, heads = values["emb_dim"], values["n_heads"]
    if width % heads:
        widths = [n for n in (width // heads * heads, (width // heads + 1) * heads) if n]
        return (
            f"emb_dim {width:,} cannot be divided among {heads:,} heads: each must get the same whole number "
            f"of dimensions. {_or(_around(divisors(width), heads))} heads would do, or emb_dim {_or(widths)}."
        )
    return None


def _around(numbers: list[int], number: int) -> list[int]:
    """The last of them below `number` and the first above it, as far as there are such."""
    return [n for n in numbers if n < number][-1:] + [n for n in numbers if n > number][:1]


def _or(numbers: list[int]) -> str:
    return " or ".join(f"{n:,}" for n in numbers)


def form(base: GPTConfig, model: str) -> GPTConfig:
    """Draw the form; the config that the page is to show.

    An impossible one stays in the form as it was typed, with a sentence; the page keeps the last that was
    possible, which is `base`, the config of `model`, at first.
    """
    values = typed(base)
    _draw(values, base, model)
    params.store(PARAMS)  # a rerun of a fragment alone draws no frame
    wrong = None if values == _parts(base) else problem(values)
    if wrong is None:
        st.session_state[_SHOWN] = replace(base, **values)
        return st.session_state[_SHOWN]
    shown: GPTConfig = st.session_state.get(_SHOWN, base)
    st.error(f"{wrong} Until then the page shows {_sizes(shown)}.")
    return shown


def preset_name(config: GPTConfig) -> str | None:
    """What this config is called in the row of presets."""
    return next((name for name, preset in PRESETS.items() if _parts(preset) == _parts(config)), None)


def _sizes(config: GPTConfig) -> str:
    return f"emb_dim {config.emb_dim:,} with {config.n_heads:,} heads and {config.n_layers:,} blocks"


def _parts(config: GPTConfig) -> dict[str, Any]:
    """What the form has of a config: all that the sum depends on, and n_heads."""
    return {name: getattr(config, name) for name in (*SIZES, *SWITCHES)}


def _draw(values: dict[str, Any], base: GPTConfig, model: str) -> None:
    """The widgets always show `values`; a change of any of them is written by a callback."""
    st.session_state[_PRESET] = next((n for n, c in PRESETS.items() if _parts(c) == values), None)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="anatomy_presets"):
        st.markdown("**Change the config**", width="content")
        st.pills(
            "Take the config of",
            list(PRESETS),
            key=_PRESET,
            on_change=_preset,
            args=(base,),
            label_visibility="collapsed",
            width="content",
        )
        st.button(
            f"Back to {model}",
            icon=":material/undo:",
            key="anatomy_back",
            type="tertiary",
            disabled=values == _parts(base),
            on_click=write,
            args=(_parts(base), base),
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="anatomy_form"):
        for name in SIZES:
            st.session_state[f"anatomy_{name}"] = values[name]
            st.number_input(
                name,
                min_value=0,
                step=1,
                key=f"anatomy_{name}",
                width=160,
                help=HELP[name],
                on_change=_typed,
                args=(base,),
            )
        for name in SWITCHES:
            st.session_state[f"anatomy_{name}"] = values[name]
            st.toggle(name, key=f"anatomy_{name}", help=HELP[name], on_change=_typed, args=(base,))


def _typed(base: GPTConfig) -> None:
    write({name: st.session_state[f"anatomy_{name}"] for name in (*SIZES, *SWITCHES)}, base)


def _preset(base: GPTConfig) -> None:
    name = st.session_state[_PRESET]
    if name is not None:  # a click on the chosen one takes the choice back: it stays
        write(_parts(PRESETS[name]), base)
