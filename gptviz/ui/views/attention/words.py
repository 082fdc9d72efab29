"""The Attention page's sentences, with this prompt's numbers in them."""

import torch

from gptviz import Trace
from gptviz.analysis import attention
from gptviz.analysis.attention import CellArithmetic
from gptviz.analysis.head_roles import describe
from gptviz.digits import fixed, significant
from gptviz.tokenizer import show_token
from gptviz.ui.shell.page import Scene
from gptviz.ui.views.attention import controls as view
from gptviz.ui.words import as_code, term


def heading(scene: Scene, block: int, head: int, average: bool, hide_first: bool) -> str:
    """One line over the large matrix: which head, and what it does on this prompt."""
    hidden = " *Without the first token: each row is scaled up to sum to 1 again.*" if hide_first else ""
    if average:
        return f"**Block {block}, average of its {scene.trace.config.n_heads} heads.**{hidden}"
    role = view.found(scene)[block][head]
    return f"**Block {block}, head {head}** {_escaped(describe(role, view.shown(scene)))}.{hidden}"


def look_for(scene: Scene, weights: torch.Tensor) -> str:
    """How to read the matrix, said of the selected row."""
    query = scene.position
    if len(scene.tokens) == 1:
        return (
            f"{name(scene, 0)} is the only token. A token may look at itself and at what came before, and a "
            "softmax always hands out exactly 1: so every head gives it 1.00. Type a longer text to see "
            "heads differ."
        )
    row = torch.nan_to_num(weights[query, : query + 1])
    best = row.topk(min(3, len(row)))
    parts = [
        f"{significant(weight, 2)} to {name(scene, int(i))}"
        for weight, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        if weight >= 0.005
    ]
    given = ", ".join(parts) or "nothing, now that the first token is hidden"
    return (
        "**What to look for.** Read along a row: the token on the left asks (its query), and each cell says "
        f"how much of its attention goes to the token above (that token's key). {name(scene, query)} gives "
        f"{given}. A row sums to 1; what is right of the diagonal comes later and is masked. A line just "
        "below the diagonal is a head that looks at the previous token, a line further down one that found "
        "a repeat, a column one token that everybody looks at."
    )


def sink(scene: Scene, block: int, head: int) -> str | None:
    """The answer to "why is it so often the first token?", with the numbers of this prompt."""
    first = attention.first_token(scene.trace, block, head)
    if first is None:
        return None
    mean, even = significant(first.mean, 2), significant(first.even, 2)
    share = (
        f"Here {name(scene, 0)} gets {significant(first.own, 2)} of the attention of this head and {mean} of "
        f"that of all {first.of} heads; if every head looked at all tokens alike it would be {even}"
    )
    if first.heads:
        share += f". {first.heads} {'head gives' if first.heads == 1 else 'heads give'} it more than half"
    cost = ""
    if first.own > 0.5 and first.value_norm < 0.8 * first.other_norms:
        cost = (
            " Resting there hands over little: in this head the first token's value has the norm "
            f"{fixed(first.value_norm, 1)}, the other tokens' {fixed(first.other_norms, 1)} on average."
        )
    return (
        f"**Why is it so often the first token?** {share}. A softmax cannot look at nothing: every row must "
        "sum to 1, also where a head finds nothing that it is made for. The first token is the one that "
        "every row can see, so trained models make it the place to rest, an *attention sink*: attention "
        f"there mostly means that the head is off.{cost} Hide it with the switch, to see what is left."
    )


def arithmetic(scene: Scene, cell: CellArithmetic) -> list[str]:
    """The steps from two vectors to one weight, a line each."""
    query, key = name(scene, cell.query), name(scene, cell.key)
    some = " + ".join(term(fixed(p.item(), 2)) for p in cell.products[:3])
    d = len(cell.products)
    rest = f" + … ({d} products)" if d > 3 else ""
    lines = [
        f"**query · key** of {query} and {key}: {some}{rest} = **{fixed(cell.score, 2)}**",
        f"**scaled** by √{d}: {fixed(cell.score, 2)} ÷ {fixed(cell.divisor, 2)} = "
        f"**{fixed(cell.scaled, 2)}**",
    ]
    if cell.weight is None:
        return [
            *lines,
            f"**masked**: {key} comes after {query}, so the model replaces this score by −∞ before the "
            "softmax: whatever the score, no attention can go there.",
        ]
    row = cell.row
    keys = f"{cell.query + 1} keys" if cell.query else "one key"
    exp, total = significant(row.exp[cell.key].item(), 4), significant(row.total, 4)
    return [
        *lines,
        f"**softmax** over the {keys} that {query} can see: e^({fixed(cell.scaled, 2)} − "
        f"{term(fixed(row.largest, 2))}) = {exp}, and {exp} ÷ {total} = **{significant(cell.weight, 4)}**, "
        f"where {total} is the sum of the row. (Its largest score is taken off first; that changes no "
        "weight, and nothing overflows.)",
        f"**weight × value**: {significant(cell.weight)} of the value of {key} goes into the output for "
        f"{query}.",
    ]


def table_caption(block: int, head: int, average: bool, hide_first: bool) -> str:
    which = f"the average of block {block}'s heads" if average else f"block {block}, head {head}"
    hidden = " The first token is hidden, and the rows sum to 1 without it." if hide_first else ""
    return f"Attention weights of {which}: a row a query, a column a key. What is empty is masked.{hidden}"


def shapes(trace: Trace) -> dict[str, str]:
    """The live shapes of what `MultiHeadAttention.forward` has in its hands."""
    config, n_tokens = trace.config, len(trace.tokens)
    heads, d = config.n_heads, config.emb_dim // config.n_heads
    return {
        "x": f"(1, {n_tokens}, {config.emb_dim})",
        "queries, keys, values": f"(1, {heads}, {n_tokens}, {d}) after the split",
        "attn_scores, attn_weights": f"(1, {heads}, {n_tokens}, {n_tokens})",
        "context_vec": f"(1, {n_tokens}, {config.emb_dim})",
    }


def name(scene: Scene, position: int) -> str:
    """A token in a sentence: `·it` (position 7)."""
    return f"{as_code(show_token(scene.tokens[position].raw))} (position {position})"


def _escaped(sentence: str) -> str:
    """A sentence with `tokens` in it as Markdown that shows them as they are."""
    head, *rest = sentence.split("`", 1)
    if not rest or "`" not in rest[0]:
        return sentence
    token, tail = rest[0].rsplit("`", 1)
    return f"{head}{as_code(token)}{tail}"
