"""LanguageModel: a model, its tokenizer, its name. `gptviz.load` makes one, `gptviz.wrap` one of yours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from gptviz.engine.generate import generate as write_on
from gptviz.engine.reader import Reader

if TYPE_CHECKING:
    from gptviz.analysis.circuit_search import Circuit


class LanguageModel(Reader):
    """A GPTModel in eval mode with the tokenizer that its ids belong to.

    `edits` are made in every pass (see `edited`); `plain` is the same without them. `model` itself knows of
    none: a pass that has them is one of `trace`, `generate`, `hidden` and `last_logits`.

    Raises ValueError for a config that is not the model's.
    """

    generate = write_on

    # what is asked of it stands on higher floors: these are its doors

    def attribution(self, text: Any, target: Any = None, **options: Any) -> pd.DataFrame:
        """Each part's share of a logit, the mean over a list of texts: see `gptviz.analysis.attributions`."""
        from gptviz.analysis import attributions

        return attributions(self, text, target, **options)

    def knock_out(self, text: Any, target: Any = None, **options: Any) -> pd.DataFrame:
        """Mute every part in turn, of a text or of each of a list: see `gptviz.analysis.knock_out`."""
        from gptviz.analysis import knock_out

        return knock_out(self, text, target, **options)

    def patching(self, clean: Any, corrupt: Any, target: Any = None, **options: Any) -> pd.DataFrame:
        """Put each place of one text's pass into the other's, or of lists: see `gptviz.analysis.patching`."""
        from gptviz.analysis import patching

        return patching(self, clean, corrupt, target, **options)

    def circuit(self, text: str | Sequence[int], target: Any, **options: Any) -> "Circuit":
        """The few heads that keep a prediction: see `gptviz.analysis.circuit`."""
        from gptviz.analysis import circuit

        return circuit(self, text, target, **options)
