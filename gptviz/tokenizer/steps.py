"""Byte pair encoding that shows its work: the twin of `encode` that keeps every step.

A text is cut into pieces by the encoding's regex; each piece becomes its UTF-8 bytes; then, again and
again, the neighbouring pair whose joined bytes have the lowest rank in the vocabulary (the leftmost of
equals) becomes one part, until no neighbours make a token (Sennrich et al., 2016, on bytes as in
Radford et al., 2019). minGPT's `encode_and_show_work` is the model for it. tiktoken computes the ids that
the model reads; `show_work` compares its own with them every time.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from tiktoken import Encoding

from gptviz.tokenizer import begins_of, encode, well_formed, words_of
from gptviz.tokenizer.added import split
from gptviz.tokenizer.regex import cut


@dataclass(frozen=True)
class Merge:
    """Two neighbouring parts of a piece become one.

    `rank` is the place of the result in the vocabulary, in the order in which it was learnt; in
    tiktoken's encodings it is the result's id, too. `start` is the byte of the piece where `left` starts.
    """

    rank: int
    left: bytes
    right: bytes
    start: int

    @property
    def result(self) -> bytes:
        return self.left + self.right

    @property
    def end(self) -> int:
        return self.start + len(self.left) + len(self.right)


@dataclass(frozen=True)
class Piece:
    """What the regex cut, from character `start` of the text on, its UTF-8 bytes, and what became of them.

    `merges` are in the order applied; `parts` are the tokens' bytes after the last one, `ids` their
    ids. `rule` is the alternative of the regex that made the cut. An added token is a piece of its own
    that no rule cuts and no merge touches. Where a vocabulary has a whole piece that its merges do not
    lead to, as one of characters has, the piece is looked up and has no merges.
    """

    text: str
    start: int
    raw: bytes
    merges: tuple[Merge, ...]
    parts: tuple[bytes, ...]
    ids: tuple[int, ...]
    rule: str
    special: bool = False
    word: bool = False

    @property
    def kind(self) -> str:
        """What an added token is called: a word is a token in every text."""
        if self.word:
            return "an added word"
        return "a special token"


@dataclass(frozen=True)
class Stage:
    """A piece between two merges: its parts, and for each pair of neighbours the rank it would merge at.

    `ranks` is one shorter than `parts`; None where the vocabulary has no such token. `chosen` is the pair
    that merges next, the lowest rank, or None when nothing can merge any more.
    """

    parts: tuple[bytes, ...]
    ranks: tuple[int | None, ...]
    chosen: int | None


def show_work(
    encoding: Encoding, text: str, special_tokens: bool = False, limit: int | None = None
) -> list[Piece]:
    """Every piece of the text with its merges; the pieces' ids, in a row, are `encode`'s.

    With a `limit` it stops after the piece that holds the token of that number. A lone surrogate becomes
    U+FFFD, as in `encode`. Raises RuntimeError if the ids differ from tiktoken's: nothing is shown that
    the model does not read.
    """
    text = well_formed(text)
    pieces: list[Piece] = []
    ids: list[int] = []
    for piece in _pieces(encoding, text, special_tokens):
        if limit is not None and len(ids) >= limit:
            break
        pieces.append(piece)
        ids += piece.ids
    expected = encode(encoding, text, special_tokens, begin=True)
    if ids != (expected if limit is None else expected[: len(ids)]):
        raise RuntimeError(
            f"the steps for {text[:80]!r} lead to other ids than tiktoken's {encoding.name}"
        )
    return pieces


def stages(encoding: Encoding, piece: Piece) -> list[Stage]:
    """The piece before its first merge, between any two, and after the last: `len(merges) + 1` stages.

    Their size is quadratic in the length of the piece: for pieces that fit on a screen.
    """
    if len(piece.parts) == 1 and not piece.merges:  # looked up as it is
        return [Stage(piece.parts, (), None)]
    ranks = encoding._mergeable_ranks
    parts = [piece.raw[i : i + 1] for i in range(len(piece.raw))]
    result = []
    for merge in (*piece.merges, None):
        pairs = tuple(ranks.get(a + b) for a, b in pairwise(parts))
        starts = list(accumulate(map(len, parts), initial=0))
        if merge is None:
            chosen = None
        else:
            chosen = starts.index(merge.start)
        result.append(Stage(tuple(parts), pairs, chosen))
        if chosen is not None:
            parts[chosen : chosen + 2] = [parts[chosen] + parts[chosen + 1]]
    return result


def merges_of_part(piece: Piece, index: int) -> list[Merge]:
    """The merges that built part `index` of the piece, in the order applied; none for a single byte."""
    start = sum(map(len, piece.parts[:index]))
    end = start + len(piece.parts[index])
    return [merge for merge in piece.merges if start <= merge.start and merge.end <= end]


def own_piece(piece: Piece, index: int) -> Piece:
    """Part `index` of the piece as a piece of its own, with the merges that built it.

    No merge of a piece crosses the border of a part that is left in the end, so they are the same merges,
    in the same order, that this part's bytes alone would go through.
    """
    raw = piece.parts[index]
    start = sum(map(len, piece.parts[:index]))
    merges = tuple(
        replace(merge, start=merge.start - start) for merge in merges_of_part(piece, index)
    )
    text = raw.decode("utf-8", "replace")
    return replace(piece, text=text, raw=raw, merges=merges, parts=(raw,), ids=(piece.ids[index],))


def bpe(ranks: dict[bytes, int], raw: bytes) -> tuple[list[Merge], list[bytes]]:
    """Merge the bytes of one piece until no neighbours make a token: the merges in order, and the parts left.

    O(n log n) for n bytes: the parts are a linked list over their first bytes, the pairs a heap by
    rank and then place. A pair whose parts have changed since it went into the heap is dropped there.
    """
    # end[i]: where the part that starts at byte i ends; 0 once it was joined
    end = list(range(1, len(raw) + 1))
    before = list(range(-1, len(raw) - 1))  # before[i]: where the part in front of it starts
    # rank, start, where the pair's second part starts, and ends
    heap: list[tuple[int, int, int, int]] = []

    def push(start: int) -> None:
        middle = end[start]
        if middle < len(raw):
            rank = ranks.get(raw[start : end[middle]])
            if rank is not None:
                heapq.heappush(heap, (rank, start, middle, end[middle]))

    for start in range(len(raw)):
        push(start)
    merges = []
    while heap:
        rank, start, middle, stop = heapq.heappop(heap)
        if end[start] != middle or end[middle] != stop:
            continue
        merges.append(Merge(rank, raw[start:middle], raw[middle:stop], start))
        end[start] = stop
        end[middle] = 0
        if stop < len(raw):
            before[stop] = start
        push(start)
        if start > 0:
            push(before[start])
    return merges, [raw[start:stop] for start, stop in enumerate(end) if stop]


def _pieces(encoding: Encoding, text: str, special_tokens: bool) -> Iterator[Piece]:
    words = words_of(encoding)
    for token_id in begins_of(encoding):
        raw = encoding.decode_single_token_bytes(token_id)
        yield Piece("", 0, raw, (), (raw,), (token_id,), "", special=True)
    for start, part, special in split(encoding, text, special_tokens):
        if special:
            raw = part.encode()
            ids = (encoding._special_tokens[part],)
            yield Piece(part, start, raw, (), (raw,), ids, "", special=True, word=part in words)
            continue
        for offset, piece_text, rule in cut(encoding._pat_str, part):
            yield _piece(encoding, piece_text, start + offset, rule)


def _piece(encoding: Encoding, text: str, start: int, rule: str) -> Piece:
    ranks = encoding._mergeable_ranks
    raw = text.encode()
    merges, parts = bpe(ranks, raw)
    # tiktoken looks a whole piece up first: here merges lead elsewhere
    if raw in ranks and len(parts) > 1:
        merges = []
        parts = [raw]
    return Piece(
        text, start, raw, tuple(merges), tuple(parts), tuple(ranks[part] for part in parts), rule
    )
