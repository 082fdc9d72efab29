"""The panel "Surgery on the cache": delete, swap or freeze a remembered token, and see what comes next."""

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz.analysis.surgery import Kind, Operation, Surgery, changed, surgery
from gptviz.figures.before_after import before_after
from gptviz.tokenizer import show_token
from gptviz.ui.components.chips import chips
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.generate.panels import derived, words
from gptviz.ui.views.generate.panels.links import text_so_far
from gptviz.ui.views.generate.panels.surgery_snippet import after
from gptviz.ui.views.generate.written import Written
from gptviz.ui.views.index_input import index_input
from gptviz.ui.views.panel import panel
from gptviz.ui.views.target import top
from gptviz.ui.words import Place, show_id

KINDS: dict[str, Kind] = {
    "Delete": "delete",
    "Swap values": "swap values",
    "Swap whole": "swap",
    "Freeze": "freeze",
}
KIND = Param("surgery", str, "Delete", if_there)
AT: Param[int | None] = Param("surgery_at", int, None, if_there)
OTHER: Param[int | None] = Param("surgery_other", int, None, if_there)
PUT: Param[int | None] = Param("surgery_put", int, None, if_there)
PARAMS = (KIND, AT, OTHER, PUT)

ROWS = 6  # first choices of before, and of after


def draw(scene: Scene, written: Written) -> None:
    """The panel, for the text that the model read for the chosen step; closed it costs nothing."""
    with panel(
        "Surgery on the cache: delete, swap or freeze a token",
        ":material/content_cut:",
        "generate_surgery_box",
    ) as opened:
        if opened:
            _draw(scene, written)


def _draw(scene: Scene, written: Written) -> None:
    lm, run = scene.lm, written.run
    tokens = lm.tokens(run.ids)
    if len(tokens) < 2:
        st.info(words.ONE_TOKEN)
        return
    labels = [show_token(token.raw) for token in tokens]
    received = derived.last_rows(run).mean(axis=(0, 1))  # (T,): of the last token, over all heads
    operation = _choose(scene, written, labels, received)
    try:
        found = derived.operated(run, operation)
    except ValueError as error:
        st.info(words.not_operated(str(error)))
        return
    said = words.check(found.disagreement, len(found.after), found.agrees)
    if not found.agrees:
        st.error(said)
        return
    st.caption(said)
    names = [Place(labels[p], p) for p in range(len(labels))]
    prose(_sentence(scene, operation, names, received), "key", "value", "block", "attention sink", "cache")
    tops = [logits.double().softmax(0) for logits in (found.cached, found.after)]
    before, now = (int(p.argmax()) for p in tops)
    prose(
        words.became(
            show_id(lm, before),
            float(tops[0][before]),
            show_id(lm, now),
            float(tops[1][now]),
            float(tops[1][before]),
            found.kl_bits,
        ),
        "KL divergence",
    )
    if run.edits:
        plain = derived.operated(run.plain, operation)
        was = [logits.double().softmax(0) for logits in (plain.cached, plain.after)]
        st.markdown(
            words.became_unchanged(
                show_id(lm, before), float(was[0][before]), float(was[1][before]), plain.kl_bits
            )
        )
    ids = _first_choices(found)
    scene.chart(
        before_after([show_id(lm, i) for i in ids], tops[0][ids].numpy(), tops[1][ids].numpy(), scene.mode),
        key="generate_surgery",
        alt=f"What comes next before and after: {operation.kind} position {operation.position}",
        which=(operation.kind.replace(" ", "-"), f"position{operation.position}"),
    )
    if found.unfrozen is not None:
        free = found.unfrozen.double().softmax(0)
        best = int(free.argmax())
        st.markdown(
            words.unfrozen(show_id(lm, best), float(free[best]), show_id(lm, before), float(free[before]))
        )
    in_numbers(lambda: _table(scene, found, ids), "generate-surgery", words.SURGERY_TABLE, "before and after")
    in_code(
        [surgery, changed],
        program(
            after,
            scene.load,
            **text_so_far(scene, written),
            kind=operation.kind,
            at=operation.position,
            other=operation.other,
            token=operation.token,
        ),
        key="in_code_surgery",
        run=lambda: surgery(lm, run.ids, operation),
    )


def _choose(scene: Scene, written: Written, labels: list[str], received: np.ndarray) -> Operation:
    """What is done, to which token, and with which other one: in controls, and by a click on the text."""
    cached = len(labels) - 1
    KIND.within(tuple(KINDS))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        kind = KINDS[KIND.widget(st.segmented_control, "Operation", options=tuple(KINDS), required=True)]
        # what is put in the last one's place changes nothing else that is cached: frozen, all is as before
        among = cached - 1 if kind == "freeze" and cached > 1 else cached
        most = int(received[:among].argmax())
        at = index_input(AT, f"Token, 0 to {cached - 1}", cached, f"{most}, most looked at", 190)
        at = most if at is None else at
        other = token = None
        if kind != "delete":
            rest = np.where(np.arange(cached) == at, -1, received[:cached])
            best, empty, label = int(rest.argmax()), "the next most", "With token"
            if kind == "freeze":  # itself: what stands before the other token never saw it
                best, empty, label = at, "the same", "Put another at"
            other = index_input(OTHER, f"{label}, 0 to {cached - 1}", cached, f"{best}, {empty}", 190)
            other = best if other is None else other
        if kind == "freeze":
            assert other is not None
            token = _put(scene, written, other)
    chips(
        scene.lm.tokens(written.run.ids),
        at,
        scene.mode,
        lambda position: AT.set(min(position, cached - 1)),
        key="generate_cached",
        weights=received.tolist(),
        highlight={} if other is None else {other: "key"},
    )
    return Operation(kind, at, other, token)


def _put(scene: Scene, written: Written, other: int) -> int:
    """The token that stands at `other` instead: the model's own other choices there."""
    run, here = written.run, written.run.ids[other]
    # nothing stands before the first token that could expect anything there
    ids = [one.id for one in top(run, other - 1)] if other else list(dict.fromkeys(run.ids))
    options = [i for i in ids if i != here] or [(here + 1) % scene.lm.config.vocab_size]
    PUT.within(options)
    chosen = PUT.widget(
        st.selectbox,
        "There instead",
        options=options,
        format_func=lambda i: show_id(scene.lm, i),
        index=None,
        placeholder=show_id(scene.lm, options[0]),
        width=190,
    )
    return options[0] if chosen is None else int(chosen)


def _sentence(scene: Scene, operation: Operation, names: list[Place], received: np.ndarray) -> str:
    at, other = names[operation.position], operation.other
    if other is None:
        own = received[operation.position]
        return words.deleted(at, float(own), bool(own >= received.max()))
    if operation.token is not None:
        return words.frozen(at, names[other], show_id(scene.lm, operation.token), len(names) - 2)
    return (words.swapped if operation.kind == "swap" else words.swapped_values)(at, names[other])


def _first_choices(found: Surgery) -> list[int]:
    """The ids of the most probable tokens before, then of those after that are not among them."""
    tops = [torch.topk(x, min(ROWS, len(x))).indices.tolist() for x in (found.cached, found.after)]
    return list(dict.fromkeys([*tops[0], *tops[1]]))


def _table(scene: Scene, found: Surgery, ids: list[int]) -> pd.DataFrame:
    before, now = (x.double().softmax(0) for x in (found.cached, found.after))
    return pd.DataFrame(
        {
            "id": ids,
            "token": [show_id(scene.lm, i) for i in ids],
            "probability_before": before[ids].numpy(),
            "probability_after": now[ids].numpy(),
            "logit_whole_pass": found.uncached[ids].numpy(),
            "logit_before": found.cached[ids].numpy(),
            "logit_after": found.after[ids].numpy(),
        }
    )
