"""What a link claims, computed again where it is opened; and a claim of what a page shows."""

import streamlit as st

from gptviz import CaptureError, Run
from gptviz.teach.claims import Asked, Checked, ClaimError, check, written
from gptviz.ui import runs
from gptviz.ui.buttons import button
from gptviz.ui.runs import per_run
from gptviz.ui.shell import state
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import counted, escaped


@per_run
def _checked(run: Run, position: int, packed: str) -> tuple[Checked, ...] | str:
    """Every number of the claim, or why there is none."""
    try:
        return tuple(check(runs.model(run), run.ids, position, packed))
    except (ClaimError, CaptureError) as error:
        return str(error)


@per_run
def _written(run: Run, position: int, opened: tuple[int, int] | None) -> str:
    """The claim of what comes next and how sure the model is, the mean loss, and where an open head looks."""
    lm = runs.model(run)
    best = lm.decode([int(runs.get(run, ()).logits(position).argmax())])
    asked: list[Asked] = ["next_word"]
    if len(lm.encode(best, begin=False)) == 1:
        asked.append(("chance", {"token": best}))
    if len(run) > 2:
        asked.append("mean_loss")
    if opened is not None:
        asked.append(("looked_at", {"block": opened[0], "head": opened[1]}))
    return written(lm, run.ids, position, asked)


def notice(scene: Scene) -> None:
    """Say whether the claim of a link holds, if it has one."""
    packed = state.CLAIM.value
    if packed is None:
        return
    results = _checked(scene.run, scene.position, packed)
    with st.container(key="claims", horizontal=True, vertical_alignment="center"):
        if isinstance(results, str):
            st.warning(f"The claim of this link could not be checked: {escaped(results)}.")
        else:
            confirmed = sum(checked.holds for checked in results)
            claimed = counted(len(results), "number")
            summary = f"This link claims {claimed}. Computed again just now: {confirmed} of {len(results)} hold."
            marks = {True: "holds", False: "**wrong**"}
            lines = [
                f"{marks[checked.holds]}: {escaped(checked.said)}, {checked.verdict}"
                for checked in results
            ]
            if confirmed == len(results):
                box = st.success
            else:
                box = st.error
            box("\n- ".join([summary + "\n", *lines]))
        button("Forget it", "claim_forget", state.CLAIM.set, None)


def offer(scene: Scene) -> None:
    """Draw a button that puts what the model expects here into the address, as a claim."""
    lm = scene.lm
    block = state.BLOCK.value
    head = state.HEAD.value
    open_head = None
    if (
        block is not None
        and head is not None
        and block < lm.config.n_layers
        and head < lm.config.n_heads
    ):
        open_head = (block, head)
    if len(scene.text) > state.LINK_CHARACTERS:
        st.caption("Your text is too long for an address, so no link can contain a claim about it.")
        return
    explanation = (
        "A claim writes the model's prediction into the address. Whoever opens that link, or runs "
    )
    explanation += "`gptviz verify` on it, sees whether the prediction still holds."
    st.caption(explanation)
    place = scene.run, scene.position, open_head
    button("Claim this", "claim_make", _make, *place, icon="verified")


def _make(run: Run, position: int, opened: tuple[int, int] | None) -> None:
    """Callback: put this place, its changes and a claim of it into the address."""
    state.TOKEN.set(position)
    if not state.EDITS_OFF.value:
        state.EDITS.set(",".join(map(str, run.edits)))
    state.CLAIM.set(_written(run, position, opened))
    st.toast(
        "The address now contains the model's prediction. Copy it to share it.",
        icon=":material/verified:",
    )
