"""The Overview's sentences: numbers in, text out. Tokens come as the screen shows them."""

from gptviz.digits import percent, significant
from gptviz.ui.words import as_code


def sentence(
    n_tokens: int,
    token: str,
    position: int,
    predicted: str,
    probability: float,
    unchanged: float | None = None,
) -> str:
    """Above the pictures, Markdown: what this pass comes to, and what it gives it without the changes."""
    model = "The model" if unchanged is None else "The changed model"
    before = "" if unchanged is None else f"; the unchanged one gives it {percent(unchanged)}"
    return (
        f"{model} reads your {_count(n_tokens, 'token')} in one pass. After {as_code(token)} "
        f"(position {position}) it expects {as_code(predicted)}: {percent(probability)}{before}."
    )


def the_way(emb_dim: int, n_layers: int, n_heads: int) -> str:
    """Below the pictures, Markdown: what happens to the text."""
    return (
        "**What you see** is one pass of a real GPT over your text, from left to right; nothing is made up. "
        f"The text becomes tokens, the tokens become rows of {emb_dim} numbers, {_count(n_layers, 'block')} "
        f"work{'s' if n_layers == 1 else ''} on them, and the last row of all becomes a guess. In a block "
        f"{_count(n_heads, 'attention head')} let{'s' if n_heads == 1 else ''} a row read those before it, "
        "then the feed-forward works on it by itself; a LayerNorm before each keeps the numbers in range, "
        "and what each makes is added to the row: that is the residual stream. Click a picture to look "
        "inside; click a token above to follow that one; type a text of your own."
    )


# ---- under the small pictures: every second piece is a token ----


def tokens(n_tokens: int, token: str, token_id: int) -> list[str]:
    return [f"The text is cut into {_count(n_tokens, 'token')}, each a number: ", token, f" is {token_id}."]


def embeddings(emb_dim: int, changed: bool = False) -> list[str]:
    """`changed`: some strips have the unchanged ones below them."""
    said = f"Every token becomes {emb_dim} numbers: what it is, plus where it stands."
    return [f"{said} {FRAMED}" if changed else said]


def attention(n_layers: int, n_heads: int, marks: str = "") -> list[str]:
    """`marks` says what those on the heads of a changed model mean."""
    count = f"{_count(n_layers * n_heads, 'head')} in {_count(n_layers, 'block')}"
    if marks:
        return [f"{count}. {marks}"]
    return [f"Information moves from earlier tokens to later ones, through {count}, a triangle each."]


def layernorm(
    norms: int,
    before: tuple[float, float],
    after: tuple[float, float],
    unchanged: float | None = None,
    drawn: bool = True,
) -> list[str]:
    """`before` is the spread (standard deviation) before the first and the last norm, `after` the least and
    the largest behind any, `unchanged` that before the last norm of the unchanged model; `drawn`: its lines
    are others."""
    first, last, low, high = (significant(value, 2) for value in (*before, *after))
    if unchanged is not None and drawn:
        return [
            f"The spread before the first and the last of {norms} LayerNorms is {first} and {last} (dashed: "
            f"unchanged, {significant(unchanged, 2)}), after them {low} to {high}."
        ]
    return [
        f"{norms} LayerNorms keep the numbers' spread, {first} at first and {last} at last, between {low} "
        f"and {high}.{_same(unchanged, drawn)}"
    ]


def feed_forward(
    block: int, units: int, fired: int, unchanged: int | None = None, drawn: bool = True
) -> list[str]:
    """How many units fire, and how many of the `unchanged` model; `drawn`: its strips are others."""
    old = "" if unchanged is None or not drawn else f" (framed: unchanged, {unchanged:,})"
    return [
        f"Each token passes {units:,} units in every block. For this one {fired:,} fire in block {block}"
        f"{old}.{_same(unchanged, drawn)}"
    ]


def _same(unchanged: float | None, drawn: bool) -> str:
    return "" if unchanged is None or drawn else " The unchanged model has the same numbers here."


def feed_forward_strips(units: int) -> tuple[str, str, str]:
    return f"{units:,} units", "after GELU", "= what is added"


def block(layers: int) -> str:
    """Over the doors of a block's parts."""
    return "the block" if layers == 1 else f"a block, of {layers} one after the other"


def next_token(vocabulary: int, token: str) -> list[str]:
    return [f"Out comes a probability for each of {vocabulary:,} tokens to follow ", token, "."]


FRAMED = "Framed: unchanged."


# ---- the pictures, for who does not see them ----


def unchanged(what: str) -> str:
    return f"unchanged, {what}"


def strip_alt(what: str, n_tokens: int, shown: int, emb_dim: int, limit: float) -> str:
    return (
        f"{what}: {_count(n_tokens, 'row')}, one a token, the first {shown} of {emb_dim} numbers; blue below "
        f"0, orange above, full colour at {significant(limit, 2)}"
    )


def units_alt(what: str, block: int, count: int, limit: float) -> str:
    return (
        f"{what}: {_count(count, 'number')} of block {block}'s feed-forward, row after row; blue below 0, "
        f"orange above, full colour at {significant(limit, 2)}"
    )


def attention_alt(n_layers: int, n_heads: int) -> str:
    return (
        f"Every head's attention: {_count(n_layers, 'block')} from top to bottom, {_count(n_heads, 'head')} "
        "each; a row is the token that looks, a column the token it looks at, dark is much"
    )


def layernorm_alt(norms: int, before: tuple[float, float], after: tuple[float, float]) -> str:
    first, last, low, high = (significant(value, 2) for value in (*before, *after))
    return (
        f"The spread of this token's numbers at each of {norms} LayerNorms: before, from {first} to {last}; "
        f"after, between {low} and {high}"
    )


def bar(token: str, probability: float, unchanged: float | None = None) -> str:
    before = "" if unchanged is None else f" (unchanged: {significant(unchanged)})"
    return f"{token} comes next with probability {significant(probability)}{before}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


TABLE = (
    "A line a token: its embeddings' lengths, and the variance (the spread, squared) of its numbers before "
    "the first and the last LayerNorm."
)

HEADS = (
    "A line a head: whether it is itself changed, and how far its pattern moved by what is changed (the mean "
    "total variation of its rows: 0 for none, 1 for all)."
)

NORMS = "The selected token's spread (standard deviation) before and after each LayerNorm."
