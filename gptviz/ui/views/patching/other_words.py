"""The sentences of "Patching" about the other text: where there is none, or it does not fit."""

from collections.abc import Sequence

from gptviz.ui.words import as_code


def different_counts(
    prompt: int, other: int, added: Sequence[tuple[str, str | None, int]], shorter_is_prompt: bool
) -> str:
    """Why nothing is patched: which tokens the shorter text lacks, each with what it goes before."""
    short, long = (
        ("Your prompt", "the other text") if shorter_is_prompt else ("The other text", "your prompt")
    )
    counts = (prompt, other) if shorter_is_prompt else (other, prompt)
    missing = abs(prompt - other)
    where = [
        f"{as_code(token)} "
        + (f"before {as_code(before)} (position {position})" if before is not None else "at the end")
        for token, before, position in added[:3]
    ]
    rest = f", and {missing - 3} more" if missing > 3 else ""
    return (
        f"Values are patched position by position, so both texts need the same number of tokens. {short} has "
        f"{counts[0]}, {long} {counts[1]}: add {missing} token{'s' * (missing > 1)} to it, for example "
        f"{', '.join(where)}{rest}."
    )


SAME = "The two texts are the same: a patch puts back what stood there, and changes nothing."


NOTHING_MADE = (
    "Patching takes values from a second text that is nearly the same. Type one above, as many tokens, one "
    "word another; or have one made, which takes a while for a text of this length."
)
NONE_FOUND = (
    "No other text was found that differs in one token and makes the model say something else. Type one "
    "above: as many tokens, one word another."
)


def made(own: str, other: str, position: int) -> str:
    return (
        f"Made from your prompt: {as_code(own)} (position {position}) became {as_code(other)}, the change "
        "of one "
        "token that moves the prediction most."
    )
