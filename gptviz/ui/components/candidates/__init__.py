"""The next token's candidates as rows with bars.

A row shows every step from logit to probability; its button appends the token. Pointing at a row,
or a click on it, writes its arithmetic under the rows. The picture can be saved.

While a slider of the page is held, Streamlit says nothing to the server. The bars follow it all the same:
the browser has the logits of the whole vocabulary and works out the same softmax (`chances.js`).
"""

from collections.abc import Mapping
from typing import Any

import torch

from gptviz.both import Both
from gptviz.ui.components.kernel import Component, On, Rows, among, drawn_elsewhere, packed
from gptviz.ui.components.saved import Saved

_component = Component("candidates")

# softmax divides by a sum over all tokens, so that it takes all of their logits to be exact: 44 kB for the
# bundled model, 268 kB for GPT-2. Of a larger vocabulary the bars move when the slider is let go.
LARGEST_SENT = 65_536


def held_sliders(
    logits: Both[torch.Tensor],
    settings: Mapping[str, float | None],
    sliders: Mapping[str, str],
    stale: str,
    about: str,
) -> dict[str, Any]:
    """What lets the bars follow a slider that is held, and slide after a change of the model.

    `logits` are the (V,) of each model, `settings` the "temperature", "top_k" and "top_p" (None: no filter)
    under which the rows are drawn. `sliders` are the keys of the widgets for "temperature" and "top_p",
    `stale` is that of a container with numbers that do not follow: it is dimmed. `about` names the text and
    the model without its edits: bars slide only between drawings about the same.
    """
    said: dict[str, Any] = {
        "about": about,
        "settings": dict(settings),
        "sliders": {},
        "stale": stale,
    }
    if logits.now.numel() > LARGEST_SENT or drawn_elsewhere():
        return said
    for name, of_model in {"logits": logits.now, "was": logits.was}.items():
        if of_model is not None:  # sorted, so that a row's rank finds its own
            said[name] = packed(of_model.detach().float().sort(descending=True).values.numpy())
    return said | {"sliders": dict(sliders)}


def candidate_bars(
    rows: Rows,
    rest: dict[str, Any] | None,
    heads: dict[str, str],
    on_append: On | None,
    *,
    action: str,
    saved: Saved | None = None,
    live: dict[str, Any] | None = None,
    key: str = "candidates",
    outlined: str | None = None,
) -> None:
    """Draw the rows; `on_append(id)` runs before the rerun that a click on a row's button causes;
    without one there are no buttons.

    `rows` and `rest` are those of `figures.candidates.candidate_rows`, `heads` its column titles,
    `action` the words on the buttons, and `live` is what `held_sliders` gives. `outlined` is for rows of
    `figures.candidates.before_and_after`, in their order: it names what happened, and whenever it is
    another, the bars slide from their outlines.
    """
    data = {"rows": list(rows), "rest": rest, "heads": heads, "action": action if on_append else ""}
    data |= {"live": live, "outlined": outlined}
    ids = among({int(row["id"]) for row in rows if row["whole"]})
    if _component(key, data, {"append": (ids, on_append)}, saved):
        import streamlit as st

        st.rerun()  # the prompt belongs to the whole page, not to the fragment that this may be in
