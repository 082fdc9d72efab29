"""The values of edits that take a pass of their own: a mean over the sample, another text's numbers.

Both are those of the model without edits, whatever else is changed in the pass that they are put into.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from gptviz.edits import Edit
from gptviz.forward import version
from gptviz.model import GPTModel
from gptviz.sample_means import sample_means
from gptviz.sites import Key, named_key
from gptviz.trace import Trace

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel

MOST_BYTES = 2**26  # of other texts' numbers that a model's next passes may need again

_Kept = OrderedDict[tuple[int, ...], Trace]

_texts: WeakKeyDictionary[GPTModel, tuple[int, _Kept]] = WeakKeyDictionary()
_lock = threading.Lock()


def ready(lm: "LanguageModel", edits: Iterable[Edit]) -> list[Edit]:
    """The edits as a pass can make them: of one block each, "sample" and "ids" as numbers."""
    edits = [one for edit in edits for one in edit.each(lm.config.n_layers)]
    wanted: dict[tuple[int, ...], list[Key]] = {}
    for edit in edits:
        if edit.named is not None and edit.named.name == "ids":
            wanted.setdefault(edit.named.numbers, []).append(_key(edit))
    others = {ids: _read(lm, ids, keys) for ids, keys in wanted.items()}
    return [_ready(lm, edit, others) for edit in edits]


def _ready(lm: "LanguageModel", edit: Edit, others: dict[tuple[int, ...], Trace]) -> Edit:
    what = edit.named
    if what is not None and what.name == "sample":
        return replace(edit, value=sample_means(lm.model, lm.config, lm.encode)[_key(edit)])
    if what is not None and what.name == "ids":
        return replace(edit, value=others[what.numbers])
    return edit


def _read(lm: "LanguageModel", ids: tuple[int, ...], keys: list[Key]) -> Trace:
    """A trace of these ids that has these sites, from before if they were read before."""
    now = version(lm.model)
    with _lock:
        before, kept = _texts.get(lm.model, (now, _Kept()))
        known = kept.get(ids) if before == now else None
    missing = [named_key(key) for key in keys if known is None or key not in known.sites()]
    if known is not None and not missing:
        return known
    found = lm.plain.trace(ids, keep=missing)
    if known is not None:
        found = known.joined(found)
    with _lock:
        before, kept = _texts.get(lm.model, (now, _Kept()))
        kept = kept if before == now else _Kept()
        kept[ids] = found
        kept.move_to_end(ids)
        while kept and sum(trace.nbytes for trace in kept.values()) > MOST_BYTES:
            kept.popitem(last=False)
        _texts[lm.model] = (now, kept)
    return found


def _key(edit: Edit) -> Key:
    return edit.site, None if edit.block is None else int(edit.block)
