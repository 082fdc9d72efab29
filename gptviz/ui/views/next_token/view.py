"""What comes next, how sure the model is of it, and how temperature, top-k and top-p choose."""

import streamlit as st

from gptviz.analysis.next_token import Candidates
from gptviz.analysis.shapes import run_first_block
from gptviz.engine.sampling import Sampling, distribution
from gptviz.figures.candidates import column_heads
from gptviz.figures.next_token import vocabulary_curve
from gptviz.model import GPTModel
from gptviz.tokenizer import show_token
from gptviz.ui.components.candidates import candidate_bars
from gptviz.ui.components.surprise import surprise_chips
from gptviz.ui.shell import sampling as settings
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.both import caption
from gptviz.ui.views.next_token import words
from gptviz.ui.views.next_token.continuation import controls, go_on_with
from gptviz.ui.views.next_token.derived import (
    ROWS,
    bar_rows,
    came_at,
    chosen,
    expected,
    own_probability,
    surprise_drawn,
    vocabulary,
)
from gptviz.ui.views.next_token.headline import headline, uncertainty
from gptviz.ui.views.next_token.snippet import bars as bars_in_python
from gptviz.ui.views.next_token.tables import candidate_table, entropy_table, surprise_table
from gptviz.ui.views.surprises import logits_at, mean_loss, prompt_surprises
from gptviz.ui.words import show_id

COUNT = Param("next_rows", int, ROWS[0], if_there)
PARAMS = (*settings.PARAMS, COUNT)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    prose(_sentence(scene), "perplexity")

    @st.fragment
    def what_settings_change() -> None:  # it may outlive the visit: it holds the scene, and looks up the rest
        _draw(scene)

    what_settings_change()


def _sentence(scene: Scene) -> str:
    """What stands above the bars; the settings change nothing in it."""
    found, lm = expected(scene.run, scene.position, scene.other), scene.lm
    seen = scene.label, scene.position, show_id(lm, found.id), found.probability, found.entropy
    before = None if scene.other is None else expected(scene.other, scene.position)
    said = words.sentence(*seen)
    if before is not None:
        now = own_probability(scene.run, scene.position, before.id)
        said = words.changed_sentence(*seen, show_id(lm, before.id), before.probability, now, before.entropy)
    if found.came is None:
        return said
    came = show_token(scene.tokens[scene.position + 1].raw)
    return f"{said} {words.came_next(came, *found.came, None if before is None else before.came)}"


def _draw(scene: Scene) -> None:
    lm, position, last = scene.lm, scene.position, len(scene.tokens) - 1
    top = st.container(key="next_headline", horizontal=True, horizontal_alignment="distribute")
    # not columns: on a phone they would fill the screen before the picture
    row = st.container(key="next_settings", horizontal=True, vertical_alignment="bottom", gap="small")
    sampling = settings.sampling_controls(row, lm.config.vocab_size)
    COUNT.within(ROWS)
    count = COUNT.widget(row.selectbox, "Rows", options=ROWS, width=100, help="How many bars to show.")
    other = scene.other
    found = chosen(scene.run, position, sampling, count, other)
    unchanged = None if other is None else chosen(other, position, sampling, count)
    before = b"".join(token.raw for token in scene.tokens[: position + 1])
    top.html(headline(before, found, show_id(lm, _best(found)[0]), scene.mode, _was(scene, unchanged)))
    top.html(uncertainty(found, unchanged))

    rows, rest = bar_rows(scene.run, position, sampling, count, other)
    candidate_bars(
        rows,
        rest,
        column_heads(sampling, compared=unchanged is not None),
        scene.mode,
        lambda i: go_on_with(scene, i),
        action="Append" if position == last else "Go on with it",
        saved=scene.saved("next_token", "The most probable next tokens", *_filters(sampling)),
    )
    controls(scene, sampling)
    prose(
        words.look_for(
            lm.config.vocab_size,
            found.model_entropy,
            found.entropy,
            not sampling.changes_nothing,
            None if unchanged is None else (unchanged.model_entropy, unchanged.entropy),
        ),
        *("logit", "vocabulary", "softmax", "entropy", "temperature", "top-k", "top-p"),
    )
    _surprise(scene)
    _vocabulary(scene, found, sampling, count)
    _details(scene, found, unchanged, sampling, count)


def _best(found: Candidates) -> tuple[int, float]:
    """The most probable token, and its probability."""
    first = found.table.iloc[0]
    return int(first["id"]), float(first["probability"])


def _was(scene: Scene, unchanged: Candidates | None) -> tuple[str, int, float] | None:
    """What the unchanged model has on top, for the headline."""
    if unchanged is None:
        return None
    token, probability = _best(unchanged)
    return show_id(scene.lm, token), token, probability


def _filters(sampling: Sampling) -> list[str]:
    """What tells the picture from the one of the model as it is, for the file's name."""
    set_to = {"temperature": sampling.temperature, "top-k": sampling.top_k, "top-p": sampling.top_p}
    return [f"{name}{value:g}" for name, value in set_to.items() if value not in (None, 1.0)]


def _surprise(scene: Scene) -> None:
    surprise = prompt_surprises(scene.run)
    unchanged = None if scene.other is None else prompt_surprises(scene.other)
    chips, legend = surprise_drawn(scene.run, scene.mode, scene.other)
    st.markdown("#### Surprise along the prompt")
    was = None if scene.other is None else mean_loss(scene.other)
    prose(words.along_the_prompt(len(surprise), mean_loss(scene.run), was), "surprise")
    raws = [token.raw for token in scene.tokens]
    saved = scene.saved("surprise", "How surprising each token was, in bits")
    surprise_chips(chips, scene.position + 1, legend, scene.mode, scene.select, raws=raws, saved=saved)
    in_numbers(
        lambda: surprise_table(surprise, scene.tokens, unchanged),
        "surprise",
        caption(words.SURPRISES, scene.other),
        "the surprise",
    )


def _vocabulary(scene: Scene, found: Candidates, sampling: Sampling, count: int) -> None:
    line, names = vocabulary(scene.run, scene.position, sampling, count, scene.other)
    unchanged = None if scene.other is None else vocabulary(scene.other, scene.position, sampling, count)
    came = came_at(scene.run, scene.position)
    arrived = None if came is None else (int(found.chosen.rank[came]) + 1, show_id(scene.lm, came))
    st.markdown("#### The whole vocabulary")
    scene.chart(
        vocabulary_curve(line, names, found.kept, scene.mode, arrived, unchanged),
        key="next_curve",
        alt="The probability of every token of the vocabulary by its rank",
    )
    st.markdown(words.CURVE if unchanged is None else words.CURVE_CHANGED)


def _details(
    scene: Scene, found: Candidates, unchanged: Candidates | None, sampling: Sampling, count: int
) -> None:
    lm = scene.lm
    in_numbers(
        lambda: candidate_table(found, lambda i: show_id(lm, i), unchanged),
        "next_token",
        caption(words.NUMBERS, scene.other),
        "the next token",
    )
    in_numbers(
        lambda: entropy_table(found, unchanged), "entropy", caption(words.SURE, scene.other), "how unsure"
    )
    in_code(
        [GPTModel.forward, GPTModel.final_hidden, distribution],
        program(
            bars_in_python,
            scene.load,
            text=scene.text,
            position=scene.position,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            rows=count,
            also=tuple(int(i) for i in found.table["id"][count:]),
            special_tokens=scene.special,
        ),
        run=lambda: _run(scene, sampling),
    )


def _run(scene: Scene, sampling: Sampling) -> None:
    """What *In code* shows, once, so that its shapes can be taken down."""
    run_first_block(scene.lm, scene.run.ids)
    distribution(logits_at(scene.run, scene.position), sampling)
