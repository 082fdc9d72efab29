"""The mean of every site over a sample of text: the numbers that an edit with the value "sample" puts in.

A site is a place in the model, such as the output of each head (`gptviz.SITES`). An edit that puts the mean
over many texts in the place of a head's output removes what the head says about this text, and keeps what it
adds to any text. That is often better than zero, since the later layers have learnt to expect the mean (Wang
et al., Interpretability in the Wild, 2022, section 2.2, "mean ablation").

Shapes: D emb_dim, H heads.
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
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.sample import windows
from gptviz.engine.sites import Key, all_keys, sites_of
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.weights import PerWeights
from gptviz.files import disk_cache

# The number of windows of the sample that are read, spread evenly over it. With 256 tokens each they are
# 3,072 tokens, which take one second on one core with the bundled model.
MOST_WINDOWS = 12

Means = dict[Key, torch.Tensor]

_known: PerWeights["Reading"] = PerWeights()


def sample_means(lm: Loaded, progress: Progress = ignore_progress) -> Means:
    """The mean of every site, except attention weights, over all tokens of `gptviz.engine.sample`.

    The means are (1, D), or (H, 1, D/H) for a site that is split by heads, in float32 on the CPU. They are
    computed once for a model and its weights, and stored on disk for other processes. At most `MOST_WINDOWS`
    windows are read; those with a token that the model does not have are left out.

    `progress(done, of)` is called after each window. If it raises an exception, the work stops, and the next
    call goes on from there. Raises ValueError if no window is left.
    """
    return copied(kept_means(lm, progress))


def kept_means(lm: Loaded, progress: Progress = ignore_progress) -> Means:
    """`sample_means` without a copy: for passes, which do not write into them."""
    while (read := reading(lm)).means is None:
        read.step()
        progress(read.done, read.of)
    return read.means


def reading(lm: Loaded) -> "Reading":
    """The state of reading the sample with this model and its weights; callers at the same time share it.

    Raises ValueError as `sample_means`.
    """
    return _known.get(lm.model, lambda: Reading(lm, _texts(lm)))


def _texts(lm: Loaded) -> list[tuple[int, ...]]:
    """The token ids of the windows to read. Raises ValueError if there are none."""
    sample, _ = windows(lm.encode, lm.config.context_length, most=sys.maxsize)
    read = [window.ids for window in sample if max(window.ids) < lm.config.vocab_size]
    if not read:
        raise ValueError(
            "this model has no tokens for the sample of text, so there is no mean over it: "
            'choose "mean", which is over the text itself, or "zero"'
        )
    count = min(len(read), MOST_WINDOWS)
    return [read[i * len(read) // count] for i in range(count)]


class Reading:
    """The sample while it is read: `done` of `of` windows so far. `means` is None until all are read."""

    def __init__(self, lm: Loaded, texts: list[tuple[int, ...]]):
        # weak: `_known` keeps this object as long as the model lives, and must not keep the model alive
        self._model = weakref.ref(lm.model)
        self.config = lm.config
        self.texts = texts
        self.done = 0
        self.of = len(texts)
        self.means: Means | None = None
        self._sums: dict[Key, torch.Tensor] = {}
        self._kept_as = ""  # the name in the disk cache
        # two callers may share this object: no window is read twice
        self._one_at_a_time = threading.Lock()

    @undisturbed
    def step(self) -> None:
        """Read the next window, if one is left; before the first one, look in the disk cache."""
        model = self._model()
        with self._one_at_a_time:
            if self.means is not None or model is None:
                return
            if self.done == 0:
                self._kept_as = self._name(model)
                if (stored := disk_cache.read(self._kept_as)) is not None:
                    self.means = _from_json(stored)
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
                if self._name(model) == self._kept_as:  # the weights were not changed meanwhile
                    disk_cache.write(self._kept_as, _to_json(self.means))

    def _name(self, model: nn.Module) -> str:
        """The name of the means in the disk cache, made of the weights, the config and the texts."""
        weights = disk_cache.weights_hash(model)
        return disk_cache.fingerprint(["sample means", weights, self.config, self.texts])

    def _hooks(self, of_text: dict[Key, torch.Tensor]) -> list[forward.Hook]:
        """Hooks that put each site's sum over the tokens of a pass into `of_text`."""

        sites = sites_of(self.config)

        def add(key: Key, value: torch.Tensor) -> None:
            shown = sites[key[0]].present(value, self.config)
            # (1, D) or (H, 1, D/H)
            of_text[key] = shown.sum(dim=-2, keepdim=True, dtype=torch.float64).cpu()

        keys = [key for key in all_keys(self.config) if sites[key[0]].form != "weights"]
        return [site_hook(sites, key, add) for key in keys]


def _to_json(means: Means) -> list[Any]:
    """Encode the means as base64 float32: exact, and a fifth of the size of decimal text."""
    return [
        [
            site,
            block,
            [*mean.shape],
            base64.b64encode(mean.numpy().astype("<f4").tobytes()).decode(),
        ]
        for (site, block), mean in means.items()
    ]


def _from_json(entries: list[Any]) -> Means:
    """Decode what `_to_json` made."""
    means = {}
    for site, block, shape, text in entries:
        numbers = np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32)
        means[site, block] = torch.from_numpy(numbers).view(shape)  # (1, D) or (H, 1, D/H)
    return means
