"""What a part gives on average where the names say nothing: the ABC means of Wang et al.

A sentence with two names (ABBA or BABA) is made again with three different ones (ABC), and with other places and
things of the ready-made sentences; what else it says, and where, stays. A muted part gives its mean over such
sentences, position by position: all that it says of this frame, but nothing of who is named twice. (Its mean over the
sentence itself would carry both names; a mean over a sample of text, nothing of the frame.)

Wang et al., Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small, 2022.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from gptviz.analysis.name_places import places_of
from gptviz.analysis.prompts import NAMES, PLACES, THINGS
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import Key
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed

ABC = "abc"  # a baseline
COUNT = 24  # sentences


class Mean:
    """What sites are on average over texts of one length, position by position: the value of an edit, as a trace is.

    It has the sites that all of the traces have. Raises ValueError for no trace, and for traces of other lengths.
    """

    def __init__(self, traces: Iterable[Trace], keys: Sequence[Key]):
        self._sums: dict[Key, Tensor] = {}
        self._length = 0
        self._count = 0
        for trace in traces:
            if self._count and len(trace) != self._length:
                raise ValueError(
                    f"a mean by position is over texts of one length: {self._length} tokens, and {len(trace)}"
                )
            self._length = len(trace)
            self._count += 1
            for key in keys:
                rows = trace.rows(*key).double()
                self._sums[key] = self._sums.get(key, torch.zeros_like(rows)) + rows
        if not self._count:
            raise ValueError("a mean by position is over texts: give at least one")

    def __len__(self) -> int:
        return self._length

    def rows(
        self, site: str, block: int | None = None, start: int = 0, stop: int | None = None
    ) -> Tensor:
        """A site's mean rows from `start` to before `stop`: (n, D), or (H, n, D/H)."""
        return (self._sums[site, block][..., start:stop, :] / self._count).float()


@undisturbed
def abc_mean(lm: LanguageModel, ids: Sequence[int], answer: int, instead: int | None) -> Mean:
    """The means of `z`, `attn_out` and `mlp_out` over `three_names` of this text.

    The model reads those with its own edits, if it has any. Raises ValueError as `three_names` does.
    """
    sites = ("z", "attn_out", "mlp_out")
    keys: list[Key] = [(site, block) for block in range(lm.config.n_layers) for site in sites]
    texts = three_names(lm, ids, answer, instead)
    return Mean((lm.trace(text, keep=sites) for text in texts), keys)


@undisturbed
def three_names(
    lm: LanguageModel,
    ids: Sequence[int],
    answer: int,
    instead: int | None,
    count: int = COUNT,
    seed: int = 0,
) -> list[list[int]]:
    """`count` texts like this one, each with three different names, drawn at random, where it has two.

    Those of `PLACES` and `THINGS` that stand in it are drawn anew as well. All have its length. Raises ValueError
    unless the answer stands there once and the other word twice, and where fewer than three names are one token.
    """
    if instead is None:
        raise ValueError(
            "ABC means are of sentences with two names: ask for one of them instead of the other"
        )
    places = places_of(lm, ids, answer, instead)
    persons = places["answer"] + places["twice"]
    names = _one_token(lm, NAMES)
    if len(names) < len(persons):
        raise ValueError(
            f"ABC means need three names that are one token of {lm.name}, and it has {len(names)}"
        )
    kinds = [_one_token(lm, words) for words in (PLACES, THINGS)]
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(whole("count", count, 1)):
        text = list(ids)
        drawn = rng.choice(names, len(persons), replace=False).tolist()
        for position, name in zip(persons, drawn, strict=True):
            text[position] = name
        for kind in kinds:
            for word in dict.fromkeys(i for i in ids if i in kind):
                other = int(rng.choice(kind))
                text = [other if i == word else i for i in text]
        texts.append(text)
    return texts


def _one_token(lm: LanguageModel, words: Sequence[str]) -> list[int]:
    """The ids of those words that are one token of the model, with a space before them."""
    encoded = [lm.encode(f" {word}", begin=False) for word in words]
    return [ids[0] for ids in encoded if len(ids) == 1 and 0 <= ids[0] < lm.config.vocab_size]
