"""The MLP of the Baselines page: trained while one looks, with a stop, and kept with its text."""

import streamlit as st

from gptviz.figures.baselines import two_losses
from gptviz.lessons.mlp import Recipe
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Frame
from gptviz.ui.views.baselines import derived, words
from gptviz.ui.views.baselines.derived import Fit

CONTEXTS = (1, 2, 3, 5, 8)
CONTEXT = Param("base_context", int, 3, if_there)
HIDDEN = Param("base_hidden", int, 64, if_there)
STEPS = Param("base_steps", int, 600, between)
SEED = Param("base_seed", int, 0, between)
PARAMS = (CONTEXT, HIDDEN, STEPS, SEED)

MEASURED_EVERY = 50  # steps
AT_ONCE = 150  # steps before the page shows them
_STOPPED = "base_stopped"  # in the session: the recipe that is not to be gone on with


def draw(scene: Frame, text: str) -> Fit:
    """The section; what has been learnt so far."""
    st.subheader("Further back: a small MLP", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        for param, values in ((CONTEXT, CONTEXTS), (HIDDEN, (16, 64, 128))):
            param.within(values)
        context = CONTEXT.widget(
            st.segmented_control, "Characters it looks back", options=CONTEXTS, required=True
        )
        hidden = HIDDEN.widget(st.segmented_control, "Hidden units", options=(16, 64, 128), required=True)
        STEPS.within((50, 3000))
        steps = STEPS.widget(
            st.number_input, "Steps of training", min_value=50, max_value=3000, step=50, width=160
        )
        SEED.within((0, 9999))
    fit = derived.fit(text, Recipe(context=int(context), hidden=int(hidden), steps=int(steps)))
    size = len(fit.tokenizer.vocabulary)
    prose(words.mlp(fit.recipe, fit.recipe.parameters(size), size), "parameter", "embedding", "token")
    bigram = derived.counted_bits(text).bigram
    scene.chart(
        two_losses(fit.steps, fit.own, fit.held_out, bigram, fit.recipe.steps, scene.mode),
        key="baselines_mlp",
        which=(f"context{context}", f"hidden{hidden}"),
        alt="What the MLP costs while it learns: on its own text, and on the held-out one",
    )
    if not fit.done:
        _stop_or_go_on(fit)
    if fit.step:
        at = min(range(len(fit.steps)), key=fit.held_out.__getitem__)
        st.markdown(
            words.mlp_result(
                fit.step, fit.own[-1], fit.held_out[-1], (fit.steps[at], fit.held_out[at]), bigram, fit.done
            )
        )
    return fit


def go_on(fit: Fit) -> None:
    """Train a little more, and draw the page again; any click interrupts it. To be called at the end."""
    if fit.done or st.session_state.get(_STOPPED) == fit.recipe:
        return
    target, bar = fit.step + AT_ONCE, st.empty()
    while fit.step < target and not fit.done:
        bar.progress(fit.step / fit.recipe.steps, words.training(fit.step, fit.recipe.steps))
        fit.go_on(MEASURED_EVERY)
    st.rerun()


def _stop_or_go_on(fit: Fit) -> None:
    stopped = st.session_state.get(_STOPPED) == fit.recipe
    st.button(
        "Go on" if stopped else "Stop",
        key="base_stop",
        type="primary",
        on_click=_set_stopped,
        args=(None if stopped else fit.recipe,),
    )


def _set_stopped(recipe: Recipe | None) -> None:
    st.session_state[_STOPPED] = recipe
