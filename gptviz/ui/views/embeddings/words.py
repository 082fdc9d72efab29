"""The Embeddings page's sentences, with the numbers of the prompt in them."""

from collections.abc import Mapping, Sequence

from gptviz.analysis.embeddings import Scale
from gptviz.digits import fixed, significant
from gptviz.figures.neighbors import MEASURES
from gptviz.ui.words import as_code, term


def this_plus_this(label: str, token_id: int, position: int, others: Sequence[int]) -> str:
    """What stands above the three rows. `others` are the other positions of the same token."""
    text = (
        f"**This row plus this row is that row.** Row {token_id} of `tok_emb` says *which* token it is, "
        f"{as_code(label)}; row {position} of `pos_emb` says *where* it stands. Added up, dimension by "
        "dimension, they are the embedding that goes into block 0. "
    )
    if not others:
        return text + "Compare the rows below: a token has the same token row wherever it stands."
    return text + (
        f"{as_code(label)} stands at position {others[0]} as well: its token row is the same there, and only "
        "the position's row makes another sum of it."
    )


# ---- unchanged and changed ----

WHAT = "the embeddings"

PARTS = ("the token's row", "the position's row", "what block 0 is given")


def what_changed(
    parts: Sequence[str], moved: int, tokens: int, label: str, lengths: tuple[float, float]
) -> str:
    """What changes in the model did to the rows: which of `PARTS` are others, and at how many tokens.

    `lengths` are those of what block 0 is given for the selected token, unchanged and changed.
    """
    which = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    before, after = map(significant, lengths)
    own = (
        f"For {as_code(label)} block 0 is given a row of length {before} unchanged, **{after}** changed."
        if before != after
        else f"For {as_code(label)} block 0 is given a row of length {after} in both."
    )
    return f"**Another than in the unchanged model:** {which}, at {moved:,} of {tokens:,} tokens. {own}"


REPLACED = "A change put something else in place of the sum: the first two rows do not add up to the third."


def difference(limit: float) -> str:
    """What the colours are where the rows show what a change did to them."""
    end = significant(limit, 2)
    return (
        f"Changed less unchanged, number by number: −{end} (blue) to {end} (orange), paper where nothing "
        "changed; the bars are the lengths of these differences."
    )


def one_dimension(
    dimension: int, written: tuple[str, str, str], lengths: Mapping[str, float], replaced: bool = False
) -> str:
    """The addition at one dimension, and the lengths of the three rows: a row of `embedding_lengths`.

    `replaced`: a change put something else in place of the sum.
    """
    first, second, total = written
    said = f"{first} + {term(second)} = **{total}**"
    if replaced:
        said = f"{first} and {second} are added up, and block 0 is given **{total}** instead"
    return (
        f"In dimension {dimension}, {said}. "
        f"The token's row has length {significant(lengths['token_norm'])}, the position's "
        f"{significant(lengths['position_norm'])}, {'the third' if replaced else 'their sum'} "
        f"{significant(lengths['sum_norm'])}; "
        f"the cosine between the two is {fixed(lengths['cosine'], 2)}."
    )


def colours(scale: Scale) -> str:
    """What the colours mean, and whether any value is beyond them."""
    end = significant(scale.limit, 2)
    span = f"One scale for all: −{end} (blue) to {end} (orange), paper at zero."
    if not scale.clipped:
        return f"{span} No value lies beyond it."
    share = significant(100 * scale.outside / scale.count, 2)
    return (
        f"{span} {scale.outside:,} of the {scale.count:,} values ({share} %) lie beyond it and have its last "
        f"colour; the largest is {significant(scale.largest)} from zero. Hover: the true value."
    )


def nearest(label: str, name: str, cosine: float, dot: float, measure: str, rows: int, chance: float) -> str:
    """What the first of the neighbours has to do with the selected token.

    `chance` is the cosine that the nearest of so many random rows would have: what is not clearly above it
    was not learned.
    """
    text = (
        f"Of the {rows:,} rows of `tok_emb`, the nearest to that of {as_code(label)} by {MEASURES[measure]} "
        f"is {as_code(name)}'s, with a cosine of {fixed(cosine, 3)} (1 is the same direction, 0 is at right "
        f"angles) and a dot product of {fixed(dot, 2)}, which counts the lengths as well. "
    )
    if cosine > 1.25 * chance:
        return text + (
            "No one tells a model which tokens are alike: training moves those together that stand in like "
            "places."
        )
    return text + (
        f"Among so many random rows the nearest would have a cosine of about {fixed(chance, 2)}: so this "
        "likeness may well be chance, and nothing that was learned."
    )


def positions(count: int, used: int, shown: int, beside: float, apart: float) -> str:
    """What the learned positions know of each other.

    There are `count`, the prompt uses `used`, the square shows `shown`. `beside` is the mean cosine of
    neighbours, `apart` that of positions half the context apart.
    """
    text = (
        f"`pos_emb` has a learned row for each of the {count:,} positions; this prompt uses the first "
        f"{used:,} (shaded). What stands side by side has a cosine of {fixed(beside, 2)} on average, "
        f"what stands {count // 2:,} apart {fixed(apart, 2)}: that 7 comes after 6 is written nowhere, "
        "a model has to learn it."
    )
    return text + (f" The square shows {shown} of the positions, evenly spread." if shown < count else "")
