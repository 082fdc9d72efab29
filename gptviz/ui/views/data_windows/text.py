"""Which text is cut: the prompt, a shipped chapter, or the sentence that the book's batches are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

import tiktoken

from gptviz import LanguageModel
from gptviz.analysis.tokens import chapter
from gptviz.engine.trace import tokens_of
from gptviz.lessons.windows import VERDICT
from gptviz.tokenizer import get_encoding, show_token
from gptviz.ui.shell.scene import Scene

SOURCES = {"prompt": "The prompt", "chapter": "A chapter of Alice", "book": "The book's sentence"}
BOOKS_ENCODING = "gpt2"  # the tokenizer of the book's chapter 2


@dataclass(frozen=True)
class CutText:
    """A text's ids and the tokenizer they are of; `own` says whether the page's model can read them."""

    ids: tuple[int, ...]
    encoding: tiktoken.Encoding
    own: bool

    def labels(self, positions: Sequence[int]) -> list[str]:
        """These tokens as the screen shows them."""
        return [show_token(t.raw) for t in tokens_of(self.encoding, [self.ids[p] for p in positions])]


def sources(lm: LanguageModel) -> list[str]:
    """Those that there are for this model: one of few characters cannot read the chapter."""
    readable = (
        lm.config.vocab_size >= lm.tokenizer.n_vocab or max(lm.encode(chapter())) < lm.config.vocab_size
    )
    return [name for name in SOURCES if readable or name != "chapter"]


def find(scene: Scene, source: str) -> CutText:
    if source == "book":
        encoding = get_encoding(BOOKS_ENCODING)
        return CutText(tuple(encoding.encode(VERDICT)), encoding, own=False)
    lm = scene.lm
    ids = scene.run.ids if source == "prompt" else tuple(lm.encode(chapter()))  # 2 ms for its 2,800 tokens
    return CutText(ids, lm.tokenizer, own=True)
