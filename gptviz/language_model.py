"""LanguageModel: a model, its tokenizer, its name. `gptviz.load` makes one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import tiktoken

from gptviz.capture import capture
from gptviz.config import GPTConfig
from gptviz.edits import Edit
from gptviz.generate import generate as write_on
from gptviz.model import GPTModel
from gptviz.reduction import Reduction
from gptviz.tokenizer import check_well_formed, encode, named_bytes
from gptviz.trace import Token, Trace, tokens_of


@dataclass(frozen=True)
class LanguageModel:
    """A GPTModel in eval mode with the tokenizer that its ids belong to."""

    model: GPTModel
    tokenizer: tiktoken.Encoding
    config: GPTConfig
    name: str

    @property
    def nbytes(self) -> int:
        """What the weights and buffers take in memory; tied ones count once."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())

    @property
    def dtype(self) -> str:
        """What the model computes in: "float32", or "bfloat16" on request."""
        return str(self.model.tok_emb.weight.dtype).removeprefix("torch.")

    def encode(self, text: str, special_tokens: bool = False) -> list[int]:
        """Token ids. `<|endoftext|>` in the text is text, unless `special_tokens` makes it the special id.

        Raises ValueError for a lone surrogate, which is no text: it says where it stands and what to do.
        """
        check_well_formed(text)
        return encode(self.tokenizer, text, special_tokens)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids: U+FFFD for broken UTF-8, `<id N>` for an id without a token."""
        return b"".join(named_bytes(self.tokenizer, i) for i in ids).decode("utf-8", "replace")

    def tokens(self, ids: Sequence[int]) -> list[Token]:
        return tokens_of(self.tokenizer, ids)

    def trace(
        self,
        text: str | Sequence[int],
        keep: Iterable[str | tuple[str, int]] | None = None,
        edits: Iterable[Edit] = (),
        special_tokens: bool = False,
        reduce: Iterable[Reduction] = (),
        after: Trace | None = None,
    ) -> Trace:
        """One forward pass on a text (or on token ids), captured.

        `keep` lists the sites to keep, by name or as (site, block) pairs: None keeps all of them;
        see `gptviz.sites.SITES`. `edits` replace what sites pass on. `reduce` looks at sites, edited ones
        included, and keeps only what is made of them.

        `after` is an earlier trace: where the text begins as that one did, its rows are shared to the bit and
        only the other tokens go through the model. It must hold all that is to be kept, and `k` and `v`, and
        be of the same model and edits; these must be causal (see `Edit.is_causal`: a "mean" over the text is
        not). Otherwise, or if the first token is another, all is computed anew.

        Raises ValueError for an empty
        text, one that is longer than the context, and for sites, blocks and ids that do not exist.
        """
        ids = self.encode(text, special_tokens) if isinstance(text, str) else list(text)
        if not ids:
            raise ValueError("the text is empty: a trace needs at least one token")
        if len(ids) > self.config.context_length:
            raise ValueError(
                f"the text has {len(ids)} tokens; {self.name} reads at most {self.config.context_length}: "
                f"shorten it, or trace lm.encode(text)[:{self.config.context_length}]"
            )
        outside = [i for i in ids if not 0 <= i < self.config.vocab_size]
        if outside and isinstance(text, str):  # a character model knows only the characters it was shown
            missing = next((c for c in text if set(self.encode(c)) & set(outside)), "?")
            raise ValueError(
                f"the text has {missing!r}, which is not among the {self.config.vocab_size:,} tokens "
                f"of {self.name}"
            )
        if outside:
            raise ValueError(
                f"token id {outside[0]} given; {self.name} has ids 0 to {self.config.vocab_size - 1}"
            )
        return capture(self.model, self.tokenizer, self.config, self.name, ids, keep, edits, reduce, after)

    generate = write_on
