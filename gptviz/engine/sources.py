"""The values of edits that take a pass of their own: a mean over the sample, another text's numbers.

The sample is read by the model without edits. Another text is read by the model as it is where its numbers
are put in: with the edits that stand before (`Edit`), so that what both texts have in common stays so.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gptviz.engine.edits import Edit
from gptviz.engine.sample_means import sample_means
from gptviz.engine.sites import Key, named_key
from gptviz.engine.trace import Trace
from gptviz.engine.weights import PerWeights

if TYPE_CHECKING:
    from gptviz.engine.language_model import LanguageModel

MOST_BYTES = 2**26  # of other texts' numbers that a model's next passes may need again

Ids = tuple[int, ...]
_Kept = OrderedDict[tuple[Ids, tuple[Edit, ...]], Trace]

_texts: PerWeights[_Kept] = PerWeights()
_lock = threading.Lock()


def ready(lm: "LanguageModel", edits: Iterable[Edit]) -> list[Edit]:
    """The edits as a pass can make them: of one block each, "sample" and "ids" as numbers."""
    edits = [one for edit in edits for one in edit.each(lm.config.n_layers)]
    made: list[Edit] = []
    while len(made) < len(edits):
        at = len(made)
        ids = _ids(edits[at])
        if ids is None:
            made.append(_of_the_sample(lm, edits[at]))
            continue
        run = next((i for i in range(at, len(edits)) if _ids(edits[i]) != ids), len(edits))
        before = [one for one, given in zip(made, edits, strict=False) if _ids(given) != ids]
        source = _read(lm, ids, before, [_key(edit) for edit in edits[at:run]])
        made += [replace(edit, value=source) for edit in edits[at:run]]
    return made


def _ids(edit: Edit) -> Ids | None:
    """Of the other text that the value is taken from."""
    return edit.named.numbers if edit.named is not None and edit.named.name == "ids" else None


def _of_the_sample(lm: "LanguageModel", edit: Edit) -> Edit:
    if edit.named is None or edit.named.name != "sample":
        return edit
    return replace(edit, value=sample_means(lm.model, lm.config, lm.encode)[_key(edit)])


def _read(lm: "LanguageModel", ids: Ids, edits: Sequence[Edit], keys: list[Key]) -> Trace:
    """A trace of these ids with these edits that has these sites, from before if they were read before."""
    here = tuple(fit for edit in edits if (fit := edit.within(len(ids))) is not None)
    if any(edit.is_function for edit in here):  # it may do something else today
        return lm.plain.trace(ids, keep=list(map(named_key, keys)), edits=here)
    kept, what = _texts.get(lm.model, _Kept), (ids, here)
    with _lock:
        known = kept.get(what)
    missing = [named_key(key) for key in keys if known is None or key not in known.sites()]
    if known is not None and not missing:
        return known
    found = lm.plain.trace(ids, keep=missing, edits=here)
    if known is not None:
        found = known.joined(found)
    with _lock:
        kept[what] = found
        kept.move_to_end(what)
        while kept and sum(trace.nbytes for trace in kept.values()) > MOST_BYTES:
            kept.popitem(last=False)
    return found


def _key(edit: Edit) -> Key:
    return edit.site, None if edit.block is None else int(edit.block)
