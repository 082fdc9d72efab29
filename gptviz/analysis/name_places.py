"""Where the names are in a text with two of them, a token each: the answer stands once, the other one twice."""

from collections.abc import Mapping, Sequence

from gptviz.engine.language_model import LanguageModel
from gptviz.tokenizer import named_bytes, show_token


def places_of(
    lm: LanguageModel, ids: Sequence[int], answer: int, instead: int
) -> Mapping[str, tuple[int, ...]]:
    """Where each place of `gptviz.analysis.circuit_story.PLACES` is: positions from 0.

    Raises ValueError unless the answer stands there once and the other name twice.
    """
    counts = [list(ids).count(name) for name in (answer, instead)]
    if counts != [1, 2]:
        shown = [show_token(named_bytes(lm.tokenizer, name)) for name in (answer, instead)]
        raise ValueError(
            f"the text has {shown[0]} {counts[0]} times and {shown[1]} {counts[1]} times; two names need one "
            "token once, the answer, and the other one twice"
        )
    first, second = (place for place, name in enumerate(ids) if name == instead)
    once = list(ids).index(answer)
    return {
        "end": (len(ids) - 1,),
        "answer": (once,),
        "first": (first,),
        "second": (second,),
        "after": (first + 1,),
        "behind": (min(once + 1, len(ids) - 1),),
        "twice": (first, second),
    }
