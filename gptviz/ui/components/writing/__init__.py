"""A text in large type: what was there, and the tokens that were written after it as chips.

A chip has its token and the probability with which it came, as a number and as the length of a line. A
click, or Enter on a focused chip, chooses its step. While it plays, the component asks for the next token
by itself, a while after the last one is on the screen.
"""

from collections.abc import Mapping, Sequence

from gptviz.ui.components.kernel import Component, On, Rows, among, shared_characters

_component = Component("writing")


def writing(
    before: str,
    tokens: Rows,
    chosen: int,
    on_step: On,
    *,
    raws: Sequence[bytes] = (),
    open_end: bool = True,
    delay: int | None = None,
    on_turn: On | None = None,
    address: Mapping[str, str] | None = None,
    key: str = "writing",
) -> None:
    """Draw the text `before` and the tokens; `on_step(step)` runs before the rerun that a click causes.

    A token has "shown", "probability", "p_text", "sentence", and "put" if the visitor chose it; `raws` are
    their bytes. `open_end`: the token that is not written yet can be chosen, too. With a `delay` in
    milliseconds it plays: `on_turn(step)` runs that long after step `chosen` was drawn. `address` are query
    parameters that the browser's address takes over meanwhile, without a step in its history.
    """
    data = {
        "before": before,
        "tokens": list(tokens),
        "groups": shared_characters(raws),
        "chosen": chosen,
    }
    data |= {"open": open_end, "delay": delay, "address": address}
    step = among(range(len(tokens) + open_end)), on_step
    turn = among(() if delay is None else (chosen,)), on_turn
    _component(key, data, {"step": step, "turn": turn})
