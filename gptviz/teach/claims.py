"""Claims: a link that says which numbers a model gives, and whether it does.

    link = claim(lm.edited("z.4.3=zero"), "The cat sat on the", "next_word", ("chance", {"token": " mat"}))
    for one in verify(link):
        one.name, one.claimed, one.found, one.holds

The link is one of the app's: it opens text, place, changes and model. Its parameter `claims` holds a hash of
the model (every weight, and how it is built), the numbers, and a hash of all of it together. What was changed
in a link afterwards does not fit that hash; and whoever makes a new claim of a wrong number, hash and all, is
contradicted by the model, which computes every number again.
"""

import base64
import binascii
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from gptviz.analysis.reads import Sites
from gptviz.engine.edits import Edit
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.files import disk_cache
from gptviz.models.checkpoints.hub import HUB_MODELS
from gptviz.models.loading import KNOWN_MODELS, UNSAID_MODEL, load
from gptviz.teach.guides import keys
from gptviz.text.suggest import did_you_mean

# Those of the guides' keys that a pass or two give, however a link asks for them.
NAMES = (
    "next_word", "chance", "nucleus", "with_top_k", "at_temperature", "mean_loss", "dearest", "settled",
    "token_count", "looked_at", "to_later", "head_with", "heads_with", "role_here",
)  # fmt: skip
MOST = 20  # numbers in one claim
# of a number, or of 1 where it is less: other threads and kernels add up in another order
CLOSE = 1e-4

# what the app opens with
DEFAULT_TEXT = "The farmer told us that a young cow is called a"
# of a link that has no text: what the app opened with while mini was its only model
UNSAID_TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"

Traces = dict[Sites, Trace]
# a number's name, and its arguments where it takes some
Asked = str | tuple[str, Mapping[str, Any]]


class ClaimError(ValueError):
    """A link makes no claim that can be checked, and why, as a sentence."""


@dataclass(frozen=True)
class Checked:
    """A claimed number, computed again. `shown` is what the screen says of it; where the model cannot give
    it, `found` is None and `shown` why."""

    name: str
    arguments: dict[str, Any]
    claimed: Any
    found: Any
    shown: str

    @property
    def holds(self) -> bool:
        if isinstance(self.claimed, float) and isinstance(self.found, float):
            return math.isclose(self.claimed, self.found, rel_tol=CLOSE, abs_tol=CLOSE)
        return type(self.claimed) is type(self.found) and bool(self.claimed == self.found)

    @property
    def said(self) -> str:
        """The claim as text: its name, arguments and number."""
        asked = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({asked}) = {self.claimed!r}"

    @property
    def verdict(self) -> str:
        """The model's own number beside the claimed one."""
        if self.holds or self.found is None:
            return self.shown
        return f"but it is {self.found!r}: {self.shown}"

    def __str__(self) -> str:
        return f"{self.said}, {self.verdict}"


def claim(
    lm: LanguageModel,
    text: str,
    *numbers: Asked,
    position: int | None = None,
    page: str = "next_token",
    address: str = "http://localhost:8501",
) -> str:
    """A link to a page of the app that claims these numbers of `text`, at a position (the last).

    The model's own edits are the claim's, and `lm.name` is how others load it. Raises ValueError.
    """
    ids = lm.encode(text)
    if position is None:
        token = len(ids) - 1
    else:
        token = position
    opened = {"text": text, "token": token, "model": lm.name, "edits": ",".join(map(str, lm.edits))}
    query = {name: value for name, value in opened.items() if value != ""}
    return f"{address}/{page}?{urlencode(query | {'claims': written(lm, ids, token, numbers)})}"


def written(lm: LanguageModel, ids: Sequence[int], position: int, numbers: Iterable[Asked]) -> str:
    """The value of a link's parameter `claims`, with this model's numbers.

    Raises ValueError for what cannot be asked.
    """
    asked = [
        (name, dict(arguments))
        for name, arguments in ((n, {}) if isinstance(n, str) else n for n in numbers)
    ]
    traces: Traces = {}
    values = [_value(lm, ids, position, *question, traces)[0] for question in asked]
    rows = [
        [name, arguments, value] for (name, arguments), value in zip(asked, values, strict=True)
    ]
    content = {"model": model_hash(lm), "numbers": rows}
    return _packed(content | {"whole": _whole(content, lm, ids, position)})


def check(lm: LanguageModel, ids: Sequence[int], position: int, packed: str) -> list[Checked]:
    """Every number of a link's `claims`, computed again by this model on this text.

    Raises ClaimError where it was damaged, or is about another text, place, change or model than these.
    """
    content = _unpacked(packed)
    whole_hash = content.pop("whole")
    if content["model"] != (own_hash := model_hash(lm)):
        raise ClaimError(
            f"the claim is about another model than {lm.name}, whose hash is {own_hash}"
        )
    if whole_hash != _whole(content, lm, ids, position):
        raise ClaimError(
            "the claim is not about this text, token and change, or part of the link is changed"
        )
    checked: list[Checked] = []
    traces: Traces = {}
    for name, arguments, claimed in content["numbers"]:
        try:
            checked.append(
                Checked(
                    name, arguments, claimed, *_value(lm, ids, position, name, arguments, traces)
                )
            )
        except (ValueError, ArithmeticError, RuntimeError) as error:
            checked.append(Checked(name, arguments, claimed, None, str(error)))
    return checked


def verify(link: str, lm: LanguageModel | None = None) -> list[Checked]:
    """Every number that a link claims, computed again by the model that it names, or by `lm`.

    Of itself a link may name a model of the catalogue only: a stranger's link is to open no file and fetch
    no repository. Raises ValueError where the link makes no claim, and for a model that cannot be loaded.
    """
    query = {
        name: values[-1] for name, values in parse_qs(urlsplit(link.strip()).query, True).items()
    }
    if "claims" not in query:
        raise ClaimError("this link makes no claim: one has claims= in it")
    if lm is None:
        lm = load(_known(query.get("model", UNSAID_MODEL)), dtype=query.get("dtype", "float32"))
    if query.get("edits_off") == "on":
        edits = []
    else:
        edits = query.get("edits", "").split(",")
    changed_lm = lm.edited(*(Edit.parse(edit) for edit in edits if edit))
    ids = lm.encode(query.get("text", UNSAID_TEXT), special_tokens=query.get("special") == "on")
    ids = ids[: lm.config.context_length]
    token = query.get("token", str(len(ids) - 1))
    if token not in map(str, range(len(ids))):
        raise ClaimError(f"the link is about token {token[:20]!r} of a text of {len(ids)} tokens")
    return check(changed_lm, ids, int(token), query["claims"])


def _known(name: str) -> str:
    """The name, where it is one of the catalogue's. Raises ClaimError for any other: a path, a repository."""
    names = (*KNOWN_MODELS, *HUB_MODELS)
    if name not in names:
        raise ClaimError(
            f"the link names {name[:60]!r}, which is no model of the catalogue ({', '.join(names)}), and a "
            "link alone opens no file and fetches no repository. Where you trust it, name the model "
            "yourself: gptviz verify LINK --model MODEL, or verify(link, lm)"
        )
    return name


def model_hash(lm: LanguageModel) -> str:
    """A hash of every weight, and of how the model is built and computes."""
    parts = disk_cache.weights_hash(lm.model), lm.config, lm.dtype
    return disk_cache.fingerprint(parts)


def _value(
    lm: LanguageModel,
    ids: Sequence[int],
    position: int,
    name: str,
    options: Mapping[str, Any],
    traces: Traces,
) -> tuple[Any, str]:
    """The number as JSON has it, and as the screen says it, by the passes so far. Raises ValueError."""
    if name not in NAMES:
        meant = did_you_mean(name, NAMES)
        raise ClaimError(
            f"there is no number {name[:60]!r} to claim{meant}; there are {', '.join(NAMES)}"
        )
    kind, function = keys.KEYS[name]
    arguments = keys.arguments(name, kind, tuple(options.items()))
    keep = keys.sites(name, lm, position, None, *arguments)
    if keep not in traces:
        traces[keep] = lm.trace(ids, keep=keep)
    answer = function(lm, traces[keep], position, None, *arguments)
    if isinstance(answer.truth, float):
        truth = float(f"{answer.truth:.7g}")
    else:
        truth = answer.truth
    return list(truth) if isinstance(truth, tuple) else truth, answer.shown


def _whole(content: dict[str, Any], lm: LanguageModel, ids: Sequence[int], position: int) -> str:
    edits = [str(Edit.parse(str(edit))) for edit in lm.edits]  # those of Python alone have no text
    return disk_cache.fingerprint([json.dumps(content), [*ids], position, edits])


def _packed(content: dict[str, Any]) -> str:
    text = json.dumps(content, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _unpacked(packed: str) -> dict[str, Any]:
    """Unpack what `_packed` made. Raises ClaimError for anything else."""
    try:
        content = json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
        rows = content["numbers"]
        fits = [*content] == ["model", "numbers", "whole"] and len(rows) <= MOST
        fits = fits and _packed(content) == packed
        fits = fits and all(
            isinstance(name, str) and isinstance(arguments, dict) for name, arguments, _ in rows
        )
    except (binascii.Error, ValueError, TypeError, KeyError, RecursionError):
        fits = False
    if not fits:
        raise ClaimError("the claim of this link cannot be read: it was cut short, or changed")
    return content
