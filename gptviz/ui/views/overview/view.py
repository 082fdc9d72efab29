"""The whole way from the text to the next token, on one screen."""

from collections.abc import Sequence

from gptviz import LanguageModel
from gptviz.analysis.overview import sites, spread_table, token_table
from gptviz.analysis.shapes import run_first_block
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Token
from gptviz.model import GPTModel
from gptviz.ui import heads
from gptviz.ui.runs import Keep
from gptviz.ui.shell import changes
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.both import both, caption
from gptviz.ui.views.overview import words
from gptviz.ui.views.overview.doors import doors, glanced, unchanged
from gptviz.ui.views.overview.snippet import six_pictures
from gptviz.ui.words import show_id


def needs(lm: LanguageModel, tokens: Sequence[Token]) -> tuple[Keep, tuple[Reduction, ...]]:
    """What the page reads of a pass: rows of numbers, and of the heads only what their pictures need."""
    if changes.made(changes.found(lm, len(tokens))):
        return sites(lm.config), (heads.SMALL, heads.rows_to_compare(lm.config, len(tokens)))
    return sites(lm.config), (heads.SMALL,)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    now, config = glanced(scene.run, scene.position), scene.lm.config
    best = now.following.iloc[0]

    token, predicted = scene.label, show_id(scene.lm, int(best["id"]))
    before = unchanged(scene.run, scene.position)
    ghost = None if before is None else before[int(best["id"])]
    probability = float(best["probability"])
    prose(
        words.sentence(len(scene.tokens), token, scene.position, predicted, probability, ghost),
        "token",
        "position",
    )
    example_row()
    doors(scene)
    prose(
        words.the_way(config.emb_dim, config.n_layers, config.n_heads),
        *("block", "attention", "head", "LayerNorm", "feed-forward", "residual stream"),
    )

    in_numbers(lambda: token_table(scene.trace), "overview.csv", words.TABLE)
    old = None if scene.other is None else glanced(scene.other, scene.position)
    in_numbers(
        lambda: both(spread_table(now), None if old is None else spread_table(old), ("before", "after")),
        "overview-norms",
        caption(words.NORMS, scene.other),
        "the LayerNorms",
    )
    if scene.other is not None:
        in_numbers(lambda: heads.marks_table(scene.run), "overview-heads", words.HEADS, "the heads")
    following = now.following
    if before is not None:
        following = following.assign(unchanged_probability=[before[int(i)] for i in following["id"]])
    in_numbers(lambda: following, "overview-next", what="the next token")
    in_code(
        [GPTModel.forward, GPTModel.final_hidden],
        program(
            six_pictures,
            scene.load,
            text=scene.text,
            position=scene.position,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )
