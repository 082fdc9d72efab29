"""LanguageModel: a model, its tokenizer, its name. `gptviz.load` makes one."""

from gptviz.engine.generate import generate as write_on
from gptviz.engine.reader import Reader


class LanguageModel(Reader):
    """A GPTModel in eval mode with the tokenizer that its ids belong to.

    `edits` are made in every pass (see `edited`); `plain` is the same without them. `model` itself knows of
    none: a pass that has them is one of `trace`, `generate`, `hidden` and `last_logits`.

    Raises ValueError for a config that is not the model's.
    """

    generate = write_on
