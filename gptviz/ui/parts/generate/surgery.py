"""Surgery on the cache: delete, swap or freeze a remembered token, and see what comes next."""

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz import Run
from gptviz.analysis.surgery import Operation, Surgery, changed, operated, surgery
from gptviz.both import Both
from gptviz.digits import significant, weight
from gptviz.figures.next_token import probability_text
from gptviz.tokenizer import show_token
from gptviz.ui import sheet
from gptviz.ui.components.chips import chips
from gptviz.ui.parts.generate.looked import attention
from gptviz.ui.parts.generate.written import Written, as_text
from gptviz.ui.sheet import Param, Scene, if_there, several
from gptviz.ui.shell.target import top
from gptviz.ui.words import Place, as_code, escaped, prose, show_id

KINDS = dict(zip(("Delete", "Swap values", "Swap whole", "Freeze"), Operation.KINDS, strict=True))
KIND = Param("surgery", str, "Delete", if_there)
AT: Param[int | None] = Param("surgery_at", int, None, if_there)
OTHER: Param[int | None] = Param("surgery_other", int, None, if_there)
PUT: Param[int | None] = Param("surgery_put", int, None, if_there)
PARAMS = (KIND, AT, OTHER, PUT)

ROWS = 6  # first choices of before, and of after


def draw(scene: Scene, written: Written) -> None:
    """Draw an operation on the cache of the text that the model read for the chosen step."""
    lm = scene.lm
    run = written.run
    if len(run) < 2:
        st.info("The model reads one token only, so nothing is cached. Write another token first.")
        return
    received = attention(run).mean(axis=(0, 1))  # (T,): of the last token's, over all heads
    operation = choose(scene, run, received)
    says = "{} of {} operations".format
    jobs = Both(run, run.plain if run.edits else None).map(
        lambda either_run: several(either_run, surgery, [(either_run.ids, operation)], says)
    )
    try:
        results = jobs.map(lambda works: works[0].value)
    except ValueError as error:
        st.info(f"This cannot be done with this change: {escaped(str(error))}.")
        return
    difference = significant(results.now.disagreement, 2)
    if not results.now.agrees:
        st.error(
            "**The check failed.** Left as it is, the cache gives logits that differ from a whole pass's by "
            f"up to {difference}: nothing of an operation is shown."
        )
        return
    st.caption(
        f"**Check.** Left as it is, the cache gives the {lm.config.vocab_size:,} logits of a whole pass, up "
        f"to {difference}."
    )
    prose(
        sentence(scene, run, operation, received),
        "key",
        "value",
        "block",
        "attention sink",
        "cache",
    )
    before = results.map(lambda result: result.cached.double().softmax(0))  # (V,)
    after = results.map(lambda result: result.after.double().softmax(0))
    tops = [
        torch.topk(row.now, min(ROWS, len(row.now))).indices.tolist() for row in (before, after)
    ]
    best_before = tops[0][0]
    best_after = tops[1][0]
    ids = list(dict.fromkeys(tops[0] + tops[1]))
    tokens = {i: show_id(lm, i) for i in ids}

    def p(chances: Both[torch.Tensor], token: int) -> Both[str]:
        return chances.map(lambda row: probability_text(float(row[token])))

    summary = (
        f"{as_code(tokens[best_before])} has {p(before, best_before)} before and "
        f"{p(after, best_before)} after"
    )
    if best_before != best_after:
        summary += f"; {as_code(tokens[best_after])} is first now, with {p(after, best_after)}"
    bits = results.map(
        lambda result: (
            "0 bits" if result.kl_bits < 1e-6 else f"{significant(result.kl_bits, 2)} bits"
        )
    )
    prose(
        f"**What comes next:** {summary}. KL divergence, KL(before ‖ after): {bits}.",
        "KL divergence",
    )
    probabilities = Both(after.now[ids], before.now[ids])
    sheet.bars(
        scene,
        "generate_surgery",
        probabilities,
        list(tokens.values()),
        "probability",
        f"What comes next before and after: {operation.kind} position {operation.position}",
        which=(operation.kind.replace(" ", "-"), f"position{operation.position}"),
        lying=True,
        text=probabilities.map(lambda row: [probability_text(x) for x in row.tolist()]),
        called=("after", "before"),
        height=90 + 40 * len(ids),
    )
    if results.now.unfrozen is not None:
        unfrozen = results.now.unfrozen.double().softmax(0)
        token_ids = dict.fromkeys([int(unfrozen.argmax()), best_before])
        answers = [
            f"{as_code(show_id(lm, i))} {probability_text(float(unfrozen[i]))}" for i in token_ids
        ]
        st.markdown(f"With nothing frozen, the changed text gives {', and '.join(answers)}.")

    def table(result: Surgery) -> pd.DataFrame:
        frame = result.table(ids)
        frame.insert(1, "token", list(tokens.values()))
        return frame

    with sheet.details("the surgery"):
        sheet.numbers_of("generate-surgery", lambda: results.map(table), what="before and after")
        text = as_text(lm, run.ids)

        def again() -> Surgery:
            return surgery(lm, run.ids, operation)

        sheet.code_of(
            scene,
            [surgery, changed],
            operated,
            text,
            operation,
            ids,
            key="in_code_surgery",
            run=again,
        )


def choose(scene: Scene, run: Run, received: np.ndarray) -> Operation:
    """Draw the controls of an operation on the cache, and the text to click on.

    Returns the chosen operation: what is done, to which token, and with which other one.
    """
    lm = scene.lm
    cached = len(received) - 1
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        kind = KINDS[KIND.choose("Operation", tuple(KINDS))]
        # what is put in the last one's place changes nothing else that is cached: frozen, all is as before
        if kind == "freeze" and cached > 1:
            among = cached - 1
        else:
            among = cached
        most_looked_at = int(received[:among].argmax())
        chosen_position = AT.index(
            "Token", cached, most_looked_at, f"{most_looked_at}, most looked at", width=190
        )
        other = token = None
        if kind != "delete":
            other_weights = np.where(np.arange(cached) == chosen_position, -1, received[:cached])
            default = int(other_weights.argmax())
            default_name = "the next most"
            label = "With token"
            if kind == "freeze":  # itself: what stands before the other token never saw it
                default = chosen_position
                default_name = "the same"
                label = "Put another at"
            other = OTHER.index(label, cached, default, f"{default}, {default_name}", width=190)
        if kind == "freeze" and other is not None:
            id_there = run.ids[other]
            # nothing stands before the first token that could expect anything there
            if other:
                ids = [candidate.id for candidate in top(run, other - 1)]
            else:
                ids = list(dict.fromkeys(run.ids))
            options = [i for i in ids if i != id_there] or [(id_there + 1) % lm.config.vocab_size]
            names = {i: show_id(lm, i) for i in options}
            placeholder = names[options[0]]
            replacement = PUT.choose(
                "There instead", names, st.selectbox, index=None, placeholder=placeholder, width=190
            )
            if replacement is None:
                token = options[0]
            else:
                token = int(replacement)
    if other is None:
        highlights = {}
    else:
        highlights = {other: "key"}
    weights = received.tolist()
    tokens = lm.tokens(run.ids)

    def pick(position: int) -> None:
        AT.set(min(position, cached - 1))

    chips(
        tokens, chosen_position, pick, key="generate_cached", weights=weights, highlight=highlights
    )
    return Operation(kind, chosen_position, other, token)


def sentence(scene: Scene, run: Run, operation: Operation, received: np.ndarray) -> str:
    """A sentence or two about an operation that was made.

    `received` are the last token's mean attention weights, one a token.
    """
    places = [Place(show_token(token.raw), token.position) for token in scene.lm.tokens(run.ids)]
    place = places[operation.position]
    share = float(received[operation.position])
    if operation.other is None:
        is_largest = place.position == 0 and share >= received.max()
        sink = ""
        if is_largest:
            sink = " No token had more."
        return (
            f"**Deleted:** {place} has no key and no value any more. Its share of the last token's "
            f"attention, {weight(share)} on average over all heads, goes to the others.{sink}"
        )
    other = places[operation.other]
    if place == other and operation.token is None:
        return f"**Swapped with itself:** {place} is on both sides, so nothing changes."
    if operation.kind == "swap values":
        return f"**Values swapped:** {place} and {other} keep their keys, but swap their values."
    if operation.token is None:
        return (
            f"**Swapped whole:** {place} and {other} have changed places in the cache. Attention ignores "
            "the order of the cache, so nothing may change but the last digits."
        )
    new_token = as_code(show_id(scene.lm, operation.token))
    reading = f"the model read the text again with {new_token} instead of {other}"
    if place.position < other.position:
        no_effect = (
            f"**Frozen, to no effect:** {reading}. {place} comes before it and never saw it."
        )
        if place.position == 0:
            no_effect += " To freeze position 0, give it another token itself."
        return no_effect
    effect = f"the keys and values of {place} stay as they were: it remembers the old one"
    if place == other:
        effect = "its own old keys and values stay, as if the old one were still there"
    note = ""
    if place == other == places[-2]:
        note = " No cached token comes after it, so nothing changes."
    return f"**Frozen:** {reading}, but {effect}.{note}"
