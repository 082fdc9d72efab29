"""What every site gives on average over a sample of text: the value "sample" of an edit.

A head that is replaced by its mean over many texts still gives what it gives to any token of any text, and
nothing of this one: of the two nulls, this and zero, the better one, since the later parts have learnt to
expect it (Wang et al., Interpretability in the Wild, 2022, section 2.2, "mean ablation").
"""

import base64
import sys
import threading
import weakref
from typing import Any

import numpy as np
import torch
from torch import nn

from gptviz.engine import forward
from gptviz.engine.capture import site_hook
from gptviz.engine.copies import copied
from gptviz.engine.loaded import Loaded
from gptviz.engine.progress import Progress, unheard
from gptviz.engine.sample import windows
from gptviz.engine.sites import SITES, Key, all_keys
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.weights import PerWeights
from gptviz.files import disk_cache

MOST_WINDOWS = 12  # of at most 256 tokens, evenly from the sample: 3,072 tokens, a second of a core with mini

Means = dict[Key, torch.Tensor]

_known: PerWeights["Reading"] = PerWeights()


def sample_means(lm: Loaded, progress: Progress = unheard) -> Means:
    """Return the mean over all tokens of the sample of every site but the attention weights, one row of it.

    (1, D) for a site of rows, (H, 1, D/H) for one that is split by heads, in float32 on the CPU. Worked out
    once for a model and its weights as they are, forgotten with the model, and kept on disk for other
    processes. The text is `sample`'s, at most `MOST_WINDOWS` of its windows; one with a token that the model
    does not have is left out.

    `progress(done, of)` is called after each of them, without a lock: what it raises stops the work, and who
    asks next goes on where it stopped. Raises ValueError where no window is left.
    """
    return copied(kept_means(lm, progress))


def kept_means(lm: Loaded, progress: Progress = unheard) -> Means:
    """`sample_means` as they are kept: for passes, which write into nothing."""
    while (read := reading(lm)).means is None:
        read.step()
        progress(read.done, read.of)
    return read.means


def reading(lm: Loaded) -> "Reading":
    """The progress of this model, with these weights, in reading the sample.

    Raises ValueError as `sample_means`.
    """
    return _known.get(lm.model, lambda: Reading(lm, _texts(lm)))


def _texts(lm: Loaded) -> list[tuple[int, ...]]:
    sample, _ = windows(lm.encode, lm.config.context_length, most=sys.maxsize)
    read = [window.ids for window in sample if max(window.ids) < lm.config.vocab_size]
    if not read:
        raise ValueError(
            "this model has no tokens for the sample of text, so there is no mean over it: "
            'choose "mean", which is over the text itself, or "zero"'
        )
    some = min(len(read), MOST_WINDOWS)
    return [read[i * len(read) // some] for i in range(some)]


class Reading:
    """The sample, of which `done` of `of` windows are read; `means` when all are."""

    def __init__(self, lm: Loaded, texts: list[tuple[int, ...]]):
        self._model = weakref.ref(lm.model)  # the model is what this is kept by
        self.config = lm.config
        self.texts = texts
        self.done = 0
        self.of = len(texts)
        self.means: Means | None = None
        self._sums: dict[Key, torch.Tensor] = {}
        self._kept_as = ""
        self._one_at_a_time = threading.Lock()

    @undisturbed
    def step(self) -> None:
        """Read one window more, if there is one."""
        model = self._model()
        with self._one_at_a_time:
            if self.means is not None or model is None:
                return
            if self.done == 0:
                self._kept_as = self._name(model)
                if (kept := disk_cache.read(self._kept_as)) is not None:
                    self.means = _from_json(kept)
                    self.done = self.of
                    return
            ids = torch.tensor([self.texts[self.done]], device=model.tok_emb.weight.device)
            of_text: dict[Key, torch.Tensor] = {}
            forward.hidden(model, ids, self._hooks(of_text))
            self._sums = {key: self._sums.get(key, 0) + value for key, value in of_text.items()}
            self.done += 1
            if self.done == self.of:
                tokens = sum(map(len, self.texts))
                self.means = {key: (value / tokens).float() for key, value in self._sums.items()}
                self._sums = {}
                if self._name(model) == self._kept_as:  # nobody trains it meanwhile
                    disk_cache.write(self._kept_as, _to_json(self.means))

    def _name(self, model: nn.Module) -> str:
        weights = disk_cache.weights_hash(model)
        return disk_cache.fingerprint(["sample means", weights, self.config, self.texts])

    def _hooks(self, of_text: dict[Key, torch.Tensor]) -> list[forward.Hook]:
        def add(key: Key, value: torch.Tensor) -> None:
            shown = SITES[key[0]].present(value, self.config.n_heads)
            of_text[key] = shown.sum(dim=-2, keepdim=True, dtype=torch.float64).cpu()  # (1, D) or (H, 1, D/H)

        keys = [key for key in all_keys(self.config) if SITES[key[0]].form != "weights"]
        return [site_hook(key, add) for key in keys]


def _to_json(means: Means) -> list[Any]:
    """To the bit, and a fifth of the digits."""
    return [
        [site, block, [*mean.shape], base64.b64encode(mean.numpy().astype("<f4").tobytes()).decode()]
        for (site, block), mean in means.items()
    ]


def _from_json(kept: list[Any]) -> Means:
    found = {}
    for site, block, shape, text in kept:
        numbers = np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32)
        found[site, block] = torch.from_numpy(numbers).view(shape)
    return found
