"""The Overview's prose, with this prompt's numbers."""

from gptviz.analysis.overview import Glance
from gptviz.digits import significant
from gptviz.tokenizer import show_token
from gptviz.ui.shell.page import Scene
from gptviz.ui.words import as_code, show_id


def the_way(scene: Scene, glance: Glance) -> str:
    """What happens to the prompt, in one paragraph."""
    config = scene.lm.config
    best = glance.following.iloc[0]
    chosen = scene.tokens[scene.position]
    return (
        f"**What you see** is one pass of a real GPT over your text, from left to right; nothing is made up. "
        f"The text becomes {len(scene.tokens)} tokens, the tokens become rows of {config.emb_dim} numbers, "
        f"{config.n_layers} blocks of {config.n_heads} attention heads each let every row read those before "
        f"it, LayerNorms keep the numbers in range, and the last row of all becomes a guess. After "
        f"{as_code(show_token(chosen.raw))} (position {scene.position}) the guess is "
        f"{as_code(show_id(scene.lm, int(best['id'])))}, with {significant(100 * best['probability'], 2)} %. "
        "Click a picture to look inside; click a token above to follow that one; type a text of your own."
    )


def shapes(scene: Scene) -> dict[str, str]:
    """The live shapes of `GPTModel.forward` for this prompt."""
    config, n_tokens = scene.lm.config, len(scene.tokens)
    row = f"(1, {n_tokens}, {config.emb_dim})"
    return {
        "in_idx": f"(1, {n_tokens})",
        "tok_embeds": row,
        "pos_embeds": f"({n_tokens}, {config.emb_dim})",
        "x": row,
        "logits": f"(1, {n_tokens}, {config.vocab_size})",
    }
