"""Temperature, top-k, top-p and the seed: one choice for all pages that draw a token, in the address.

Moving one never runs the model. `WRITTEN` is what has been written with them, on the page Generate.
"""

import hashlib
from collections.abc import Sequence

from streamlit.delta_generator import DeltaGenerator

from gptviz.engine.sampling import Sampling
from gptviz.ui.shell.params import LARGEST, Param, between

TEMPERATURE = Param("temperature", float, 1.0, between)
TOP_P = Param("top_p", float, 1.0, between)
TOP_K: Param[int | None] = Param("top_k", int, None, between)
SEED: Param[int | None] = Param("seed", int, None)
SEEDS = LARGEST
PARAMS = (TEMPERATURE, TOP_K, TOP_P, SEED)

WRITTEN: Param[str | None] = Param("written", str, None)  # see `ui/parts/generate/tree.py`


def written(tokens: int, ids: Sequence[int]) -> str:
    """Return the value of `WRITTEN` that asks for so many tokens after these ids."""
    return f"{tokens}_0__{name_of(ids)}"


def name_of(ids: Sequence[int]) -> str:
    """Return a short name for a prompt: it ties a written text to the prompt that it follows."""
    return hashlib.blake2b(",".join(map(str, ids)).encode(), digest_size=3).hexdigest()


def sampling_controls(row: DeltaGenerator, vocabulary: int) -> Sampling:
    """Draw temperature, top-k and top-p into a row; return their values, None for a filter that is off."""
    hint = "Divides every logit before the softmax. 1 changes nothing; 0 always takes the most probable token."
    temperature = _slider(row, TEMPERATURE, "Temperature", (0.0, 2.0, 0.05), hint)
    hint = f"Keep only the k largest of the {vocabulary:,} logits. Empty: keep all."
    top_k = TOP_K.number(
        row.number_input,
        "Top-k",
        1,
        vocabulary,
        value=None,
        step=1,
        placeholder="off",
        width=130,
        help=hint,
    )
    hint = "Keep only the most probable tokens that together reach p, after temperature and top-k. 1: keep all."
    top_p = _slider(row, TOP_P, "Top-p", (0.01, 1.0, 0.01), hint)
    return Sampling(
        temperature, None if top_k is None else int(top_k), None if top_p == 1 else top_p
    )


def seed_input(row: DeltaGenerator, help: str, unset: int = 0) -> int:
    """Draw the seed into a row; return it, or `unset` until one is given."""
    options = {"value": None, "placeholder": str(unset), "width": 130, "help": help}
    SEED.number(row.number_input, "Seed", 0, SEEDS - 1, step=1, **options)
    if SEED.value is None:
        return unset
    return SEED.value


def _slider(
    row: DeltaGenerator,
    param: Param[float],
    label: str,
    span: tuple[float, float, float],
    help: str,
) -> float:
    """Draw a slider that starts at 1, where it changes nothing; `span`: its least, its largest, its step."""
    least, most, step = span
    return float(param.number(row.slider, label, least, most, step=step, width=200, help=help))
