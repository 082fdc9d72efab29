"""What comes next, how sure the model is of it, and how temperature, top-k and top-p choose."""

import streamlit as st

from gptviz.analysis.next_token import candidates, curve
from gptviz.figures.candidates import candidate_rows, column_heads
from gptviz.figures.next_token import vocabulary_curve
from gptviz.figures.surprise import surprise_rows
from gptviz.model import GPTModel
from gptviz.sampling import distribution
from gptviz.tokenizer import show_token
from gptviz.ui.components.candidates import candidate_bars
from gptviz.ui.components.surprise import prompt_surprises, surprise_chips
from gptviz.ui.shell.details import in_code, in_numbers
from gptviz.ui.shell.page import Scene
from gptviz.ui.views.next_token import words
from gptviz.ui.views.next_token.continuation import controls, go_on_with, write_on
from gptviz.ui.views.next_token.sampling import sampling_controls
from gptviz.ui.views.next_token.snippet import next_token
from gptviz.ui.words import is_whole, show_id


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    lm, position, last = scene.lm, scene.position, len(scene.tokens) - 1
    logits = scene.trace.logits(position)  # (V,): the only row of logits that the bars need
    surprise = prompt_surprises(scene)
    shown = [show_token(token.raw) for token in scene.tokens]
    chips, legend = surprise_rows(surprise, shown, len(logits), scene.mode)

    def name(token_id: int) -> str:
        return show_id(lm, token_id)

    def whole(token_id: int) -> bool:
        return is_whole(lm, token_id)

    @st.fragment
    def sheet() -> None:
        """Everything that a slider changes; the forward pass and the surprises stay outside."""
        top = st.container(key="next_headline", horizontal=True, horizontal_alignment="distribute")
        options, count = sampling_controls(lm.config.vocab_size)
        settings = (options.temperature, options.top_k, options.top_p)
        came = None if position == last else scene.tokens[position + 1].id
        found = candidates(logits, count, *settings, also=came)
        top.html(words.headline(scene, found, name(int(found.table["id"][0]))))
        top.html(words.uncertainty(found))

        rows, rest = candidate_rows(found, options, name, whole, came)
        action = "Append" if position == last else "Go on with it"
        candidate_bars(
            rows, rest, column_heads(options), scene.mode, lambda i: go_on_with(scene, i), action=action
        )
        controls(scene, found.chosen.probabilities, options)
        st.markdown(words.look_for(scene, found, options, came))

        st.markdown("#### Surprise along the prompt")
        st.markdown(words.along_the_prompt(surprise))
        surprise_chips(chips, position + 1, legend, scene.mode, scene.select)
        in_numbers(
            lambda: words.surprise_table(surprise, scene.tokens), "surprise", words.SURPRISES, "the surprise"
        )

        st.markdown("#### The whole vocabulary")
        line = curve(logits, found)
        arrived = None if came is None else (int(found.rank[came]) + 1, name(came))
        scene.chart(
            vocabulary_curve(line, [name(i) for i in line["id"]], found.kept, scene.mode, arrived),
            key="next_curve",
            alt="The probability of every token of the vocabulary by its rank",
        )
        st.markdown(words.CURVE)

        in_numbers(lambda: words.next_token_table(found, name), "next_token", words.NUMBERS, "the next token")
        in_code(
            [GPTModel.forward, GPTModel.final_hidden, distribution],
            next_token(
                scene.load,
                scene.text,
                position,
                *settings,
                count,
                came=len(rows) > count,
                special=scene.special,
            ),
            words.shapes(scene),
        )

    write_on(scene)
    sheet()
