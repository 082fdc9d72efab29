"""A circuit told as a story: which head passes what to which, in sentences with two names.

The story is that of Wang et al.: in "When Mary and John went to the store, John gave a drink to" a *duplicate
token* head sees that John has come before, an *S-inhibition* head tells the last token to look away from him,
and a *name mover* copies the name that is left. Each role is shown or not shown by the tests of
`gptviz.analysis.circuit_claims`. What a head passes on is taken from the sentence with the answer's name at the
second mention, so that it asks for the other name; for previous token from that with a third name at the first.
A mover's weights must copy names, as in the paper.

Positions: "end", the last token; "answer", the name that stands once; "first" and "second", the two mentions of
the other name; "after", the token behind its first mention; "behind", the one behind the answer's name.

Wang et al., Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small, 2022.
"""

from collections.abc import Sequence

from gptviz.analysis.circuit_claims import LEAST, Role, Story, Task, TaskText, tell
from gptviz.analysis.name_places import places_of
from gptviz.analysis.names import groups_of
from gptviz.analysis.prompts import NAMES, Prompt, indirect_objects
from gptviz.engine.given import ids_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer.one import one_token

COUNT = 24  # sentences

PLACES = {
    "end": "the last token",
    "answer": "the name that stands once",
    "first": "the first mention of the other name",
    "second": "the second mention",
    "after": "the token behind the first mention",
    "behind": "the token behind the name that stands once",
    "twice": "the name that stands twice",
}
OTHERS = {
    "second": "the sentence with the answer's name at the second mention",
    "first": "the sentence with a third name at the first mention of the other name",
}
OUTSIDE = "second"  # the one whose values heads outside a circuit may give

NAME_MOVER = Role(
    "name mover",
    "looks at the name that stands once, and copies it",
    sign=1,
    at="end",
    other="second",
    looks="answer",
    rather_than=("twice",),
    copied="answer",
)
BACKUP = Role(
    "backup name mover",
    "copies the name that stands once when the name movers are off",
    sign=1,
    at="end",
    other="",
    looks="answer",
    rather_than=("twice",),
    copied="answer",
    stands_in_for=(NAME_MOVER.name,),
)
NEGATIVE = Role(
    "negative name mover",
    "looks at the name that stands once, and writes against it",
    sign=-1,
    at="end",
    other="second",
    looks="answer",
    rather_than=("twice",),
    copied="answer",
    copies=-1,
)
WRONG_MOVER = Role(
    "mover of the other name",
    "looks at the name that stands twice, and copies that one",
    sign=-1,
    at="end",
    other="second",
    looks="twice",
    rather_than=("answer",),
    copied="twice",
    is_classical=False,
)
MOVERS = (NAME_MOVER.name, WRONG_MOVER.name)
INHIBITION = Role(
    "S-inhibition",
    "tells the movers' queries to look away from the name that stands twice",
    sign=1,
    at="end",
    other="second",
    looks="second",
    rather_than=("answer",),
    to=MOVERS,
    reads="q",
)
DUPLICATE = Role(
    "duplicate token",
    "looks from a name's second mention back at its first",
    sign=1,
    at="second",
    other="second",
    looks="first",
    rather_than=("after", "answer"),
    to=(INHIBITION.name,),
    reads="v",
)
INDUCTION = Role(
    "induction",
    "looks from a name's second mention at what came after the first",
    sign=1,
    at="second",
    other="second",
    looks="after",
    rather_than=("first", "behind"),
    to=(INHIBITION.name,),
    reads="v",
)
# the keys at the first mention are not reached from the second one
PREVIOUS = Role(
    "previous token",
    "looks one token back, so that an induction head can find the place",
    sign=1,
    at="after",
    other="first",
    looks="first",
    rather_than=("after",),
    to=(INDUCTION.name,),
    reads="k",
)
ROLES = (NAME_MOVER, BACKUP, NEGATIVE, WRONG_MOVER, INHIBITION, DUPLICATE, INDUCTION, PREVIOUS)


@undisturbed
def story(
    lm: LanguageModel,
    prompts: Sequence[Prompt] | None = None,
    baseline: str = "sample",
    progress: Progress = ignore_progress,
) -> Story:
    """Tell the circuit of sentences with two names: every role with its test, shown or not shown.

    Args:
        prompts: sentences, each with the name that is meant as `token` and the one that stands twice as
            `against`; without them, `COUNT` of `indirect_objects`, every second one with its names exchanged.
        baseline: what muted heads give, such as those outside the circuit in `Story.worth`: their mean over a
            "sample", "zero", their "mean" over the sentence, which still carries its names, or with "other" what
            they give in the sentence with the answer's name at the second mention (previous token muted: with a
            third name at the first). What a head passes on is tested against these other sentences in any case.
        progress: `progress(done, of)` is called after every sentence, without a lock: what it raises stops
            the work.

    Raises ValueError for fewer than `LEAST` sentences (a pair with its names exchanged counts as one), for one whose
    names are no single tokens that stand once and twice, and where no third name is one token of the model.
    """
    if prompts is None:
        prompts = indirect_objects(lm, COUNT, exchanged=True)
    if len(prompts) < LEAST:
        raise ValueError(
            f"{len(prompts)} sentences with two names given; a story needs {LEAST}, whose names are one token "
            "each in this model"
        )
    names = _single_names(lm)
    sentences = [_sentence(lm, *numbered, names) for numbered in enumerate(prompts)]
    # an error of few pairs says as little as one of few sentences
    words = [sentence.words for sentence in sentences]
    independent = len(set(groups_of(lm, [sentence.ids for sentence in sentences], words)))
    if independent < LEAST:
        raise ValueError(
            f"{len(prompts)} sentences given, of which {len(prompts) - independent} are others with their names "
            f"exchanged: {independent} count, and a story needs {LEAST}"
        )
    task = Task(ROLES, PLACES, OTHERS, tuple(names), OUTSIDE)
    return tell(lm, task, sentences, baseline, progress)


def _single_names(lm: LanguageModel) -> list[int]:
    """The ids of the names that are one token of this model."""
    ids = [lm.encode(f" {name}", begin=False) for name in NAMES]
    return [name[0] for name in ids if len(name) == 1 and 0 <= name[0] < lm.config.vocab_size]


def _sentence(lm: LanguageModel, number: int, prompt: Prompt, names: Sequence[int]) -> TaskText:
    """The sentence of a prompt, and one of the names that it has not: not the same one in all sentences.

    Raises ValueError unless its names stand once and twice, a token each, and if there is no third name.
    """
    ids = ids_of(lm, prompt.text)
    if prompt.token is None or prompt.against is None:
        raise ValueError(f"sentence {number}, {prompt.text!r}, has no two names: give both")
    answer, instead = (
        one_token(lm.tokenizer, lm.config.vocab_size, name, f"a name of sentence {number}")
        for name in (prompt.token, prompt.against)
    )
    try:
        places = places_of(lm, ids, answer, instead)
    except ValueError as error:
        raise ValueError(f"sentence {number}, {prompt.text!r}: {error}") from None
    free = [name for name in names if name not in ids]
    if not free:
        raise ValueError(
            f"sentence {number}, {prompt.text!r}, needs a third name for its first mention, and none of the "
            f"{len(NAMES)} known names ({', '.join(NAMES[:3])} ...) that it has not is one token of {lm.name}"
        )
    third = free[number % len(free)]
    first, second = places["twice"]
    others = {
        "second": (*ids[:second], answer, *ids[second + 1 :]),
        "first": (*ids[:first], third, *ids[first + 1 :]),
    }
    copied = {"answer": answer, "twice": instead}
    return TaskText(tuple(ids), answer, instead, places, others, copied)
