"""LanguageModel: a model, its tokenizer, its name. `gptviz.load` makes one, `gptviz.wrap` one of yours."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from gptviz.engine.above import answers, ask
from gptviz.engine.generate import generate as write_on
from gptviz.engine.reader import Reader


class LanguageModel(Reader):
    """A GPTModel in eval mode with the tokenizer that its ids belong to.

    `edits` are made in every pass (see `edited`); `plain` is the same without them. `model` itself knows of
    none: a pass that has them is one of `trace`, `generate`, `hidden` and `last_logits`.

    Raises ValueError for a config that is not the model's.
    """

    generate = write_on

    # what the analysis answers, which stands above

    def attribution(self, text: Any, target: Any = None, **options: Any) -> pd.DataFrame:
        """Each part's share of a logit, the mean over a list of texts: see `gptviz.analysis.attributions`."""
        return ask("lm.attribution", self, text, target, **options)

    def knock_out(self, text: Any, target: Any = None, **options: Any) -> pd.DataFrame:
        """Mute every part in turn, of a text or of each of a list: see `gptviz.analysis.knock_out`."""
        return ask("lm.knock_out", self, text, target, **options)

    def patching(
        self, clean: Any, corrupt: Any, target: Any = None, **options: Any
    ) -> pd.DataFrame:
        """Put each place of one text's pass into the other's, or of lists: see `gptviz.analysis.patching`."""
        return ask("lm.patching", self, clean, corrupt, target, **options)

    def path_patching(
        self, clean: Any, corrupt: Any, target: Any = None, **options: Any
    ) -> pd.DataFrame:
        """Put each head's output into what some others read of it: see `gptviz.analysis.path_patching`."""
        return ask("lm.path_patching", self, clean, corrupt, target, **options)

    def which_part(self, text: Any, answer: Any = None, instead: Any = None, **options: Any) -> Any:
        """Ask which part makes the model say one word rather than another: see `gptviz.analysis.which_part`."""
        return ask("lm.which_part", self, text, answer, instead, **options)

    def circuit(self, text: str | Sequence[int], target: Any, **options: Any) -> Any:
        """The few heads that keep a prediction: see `gptviz.analysis.circuit`."""
        return ask("lm.circuit", self, text, target, **options)


answers["trace.lm"] = LanguageModel
