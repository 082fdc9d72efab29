"""Which model a visitor wants, as a value: what the address says, and what can be looked up by it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gptviz import KNOWN_MODELS
from gptviz.engine.config import ACTIVATIONS
from gptviz.models.checkpoints.hub import HUB_MODELS, is_hub_id
from gptviz.models.loading import DEFAULT_MODEL, DTYPES, UNSAID_MODEL, devices

UPLOAD = "upload:"  # before the number of an upload
PATH = "path:"  # before a path of the server

LONGEST_NAME = 1000


@dataclass(frozen=True)
class Choice:
    """A model and how to read it.

    `name`: one of the catalogue's, owner/name on the hub, "upload:…" or "path:…". `n_heads`,
    `activation` and `tokenizer` are for files that do not say them. `device` None is the server's default.
    `drop_surplus` goes on without added tokens that the model has no row for.
    """

    name: str = DEFAULT_MODEL
    n_heads: int | None = None
    activation: str | None = None
    tokenizer: str | None = None
    dtype: str = "float32"
    device: str | None = None
    drop_surplus: bool = False

    def named(self, name: str) -> "Choice":
        """Another model, computed in the same way."""
        return replace(
            self, name=name, n_heads=None, activation=None, tokenizer=None, drop_surplus=False
        )


def is_a_name(name: str) -> bool:
    """Whether a model can have this name; there need not be one."""
    return (
        name in KNOWN_MODELS
        or name in HUB_MODELS
        or (name.startswith((UPLOAD, PATH)) and len(name) <= LONGEST_NAME)
        or is_hub_id(name)
    )


def choice_from(params: Mapping[str, str]) -> Choice:
    """Read ?model, ?n_heads, ?activation, ?tokenizer, ?dtype, ?device and ?drop_surplus.

    What cannot be read is ignored. So is what the model cannot need: only files may have to be told their
    heads, GELU and tokenizer, and no model of our catalogue has tokens too many.
    """
    name = params.get("model", UNSAID_MODEL)
    has_files = name.startswith((UPLOAD, PATH))
    heads = ""
    activation = ""
    if has_files:
        heads = params.get("n_heads", "")
        activation = params.get("activation", "")
    known = name in KNOWN_MODELS or name in HUB_MODELS or not is_a_name(name)
    dtype = params.get("dtype", "")
    device = params.get("device", "")
    return Choice(
        name=name if is_a_name(name) else UNSAID_MODEL,
        n_heads=int(heads) if heads.isascii() and heads.isdigit() and 0 < len(heads) < 6 else None,
        activation=activation if activation in ACTIVATIONS else None,
        tokenizer=(params.get("tokenizer") or None) if has_files else None,
        dtype=dtype if dtype in DTYPES else "float32",
        device=device if device in devices() else None,  # a link from a machine that has another
        drop_surplus=params.get("drop_surplus") == "on" and not known,
    )
