"""A label on trial: what the model loses without the head by two baselines, and a verdict if they agree."""

import math
from collections import Counter
from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.head_formulas import ON_REPEATS, ROLES
from gptviz.analysis.head_trial import BASELINES, SURE, TESTABLE, Claim, Trial
from gptviz.digits import percent, plus_minus, significant
from gptviz.figures.heads import Cost, costs
from gptviz.jobs import Job
from gptviz.ui import heads, tables
from gptviz.ui.parts.heads.waiting import EVERY_SECONDS, leave, take_up, wait_for, waited_for
from gptviz.ui.sheet import Param, Scene, if_there, sideways
from gptviz.ui.words import capital, prose

# every head's role in general, by block and head; empty: not known
Labels = Mapping[tuple[int, int], str]

# None: what the head does in general
CLAIM: Param[str | None] = Param("claim", str, None, if_there)
_CLAIM_OF = "heads_claim_of"  # in the session: the head that the claim was chosen for
_TRIED = "heads_tried"  # in the session: the claim that was put on trial last
_ALL = "heads_all_trials"  # in the session: whether all labels are being tried
# in the session: why one of these trials failed, None where none did
_FAILED = "heads_failed_trial"

REASONS = {
    "enough": "the label holds",
    "not enough": "needed for more than its label says",
    "not missed": "not shown to be needed here",
    "as others": "not shown to be needed more than other heads",
    "anywhere": "not shown to matter where it looks",
}
CHANGES = {
    "zero": "replaced by zero",
    "sample": "replaced by its mean",
    "even": "looking at all tokens alike",
    "label": "looking only where its label says",
}
ENDED = {
    "holds": "held",
    "withdrawn": "withdrawn",
    "not shown": "not shown to be needed",
    "not decided": "not decided",
}


def claims(labels: Labels) -> list[Claim]:
    """Return, of every head's label in general, those that can be put to a test."""
    return [(*head, role) for head, role in labels.items() if role in TESTABLE]


def draw(
    scene: Scene, block: int, head: int, labels: Labels, tried: Mapping[tuple[int, int], Trial]
) -> Trial | None:
    """Draw the trial of the opened head; None if there is none yet."""
    st.subheader("How was the label put on trial?", anchor=False)
    general = labels.get((block, head))
    label = _label(block, head, general)
    container = st.container()
    trial = None
    if label is not None:
        claim = (block, head, label)
        _turn_to(scene.run.plain, claim)
        find = partial(heads.trial_job, scene.run.plain, *claim)
        stopped = "The trial was stopped: there is no verdict."
        trial = wait_for("heads_trial", find, "On trial, passes", stopped)
    elif general is None:
        st.markdown("The trial needs the head's label in general, which is not known yet.")
    else:
        st.markdown(
            f"*{ROLES[general].label}* makes no claim that can be tested. Choose a label to test."
        )
    if trial is not None:
        with container:
            _explained(trial)
        sideways("heads_trial")
        scene.unchanged.chart(
            costs(_costs(trial), block, head, scene.mode),
            key="heads_trial",
            alt=f"What switching off block {block}, head {head} costs, beside other heads of its block",
            which=(f"block{block}", f"head{head}", trial.label),
        )
    _all(scene.run.plain, labels, tried)
    return trial


def verdict(trial: Trial) -> str:
    """The trial's verdict in a sentence or two."""
    start = f"On trial as *{ROLES[trial.label].label}*:"
    zero, sample = (REASONS[trial.reasons[baseline]] for baseline in BASELINES)
    if trial.verdict == "not decided":
        return f"{start} **not decided**, because zero and the mean lead to different verdicts."
    if zero != sample:
        return f"{start} **{zero}** when we replace it by zero, **{sample}** when we replace it by its mean."
    verdicts = {
        "holds": "the label **holds**",
        "withdrawn": f"the label is **withdrawn**. The head is {zero}",
    }
    # a head at rest need not be missed
    condition = ", whether we replace the head by zero or by its mean"
    if trial.label == "first":
        condition = ""
    outcome = verdicts.get(trial.verdict, f"**{zero}**")
    return f"{start} {outcome}{condition}."


# ---- in short ----

SHORT = {
    "holds": "The label *{label}* **holds**.",
    "withdrawn": "The label *{label}* is **withdrawn**: the head is {reason}.",
    "not shown": "The label *{label}*: **{reason}**.",
    "not decided": "The label *{label}* is **not decided**: with its mean in place of zero, the verdict is another.",
}


def chance(loss: float) -> float:
    """The probability that right tokens have at this mean loss in nats: their geometric mean."""
    return math.exp(-loss)


def _chances(loss: float, rise: float) -> str:
    """The right token's probability with the head and without: "92 % → 82 %"; one where none tells them apart.

    A third digit is shown where two tell no difference.
    """
    before = chance(loss)
    after = chance(loss + rise)
    if percent(before) != percent(after):
        return f"{percent(before)} → {percent(after)}"
    exact = [f"{significant(100 * one)} %" for one in (before, after)]
    if exact[0] != exact[1]:
        return f"{exact[0]} → {exact[1]}"
    return f"the same {percent(before)}"


def without(trial: Trial) -> str:
    """What the model loses without the head, replaced by zero, in a sentence."""
    own = trial.own.loc["zero"]
    if trial.label in ON_REPEATS:
        repeated = _chances(trial.repeated, own["repeated_rise"])
        unrepeated = _chances(trial.unrepeated, own["unrepeated_rise"])
        return f"the right token gets **{repeated}** where a passage comes back, {unrepeated} elsewhere."
    both = _chances((trial.repeated + trial.unrepeated) / 2, own["rise"])
    return f"the right token gets **{both}**."


def in_short(trial: Trial) -> str:
    """The verdict in a short sentence, by whichever baseline; the numbers stand further down."""
    reason = REASONS[trial.reasons[BASELINES[0]]]
    return SHORT[trial.verdict].format(label=ROLES[trial.label].label, reason=reason)


def measured_on(trial: Trial) -> str:
    """How `without` is measured."""
    return (
        f"The head's output is replaced by zero, in {trial.passages} passages of books with {trial.tokens} "
        "predicted tokens each. A percentage is the geometric mean of the probabilities of the right tokens: "
        "e to the power of minus the mean loss. Further down: the same with the head's mean, and how sure it is."
    )


# ---- which label ----


def _label(block: int, head: int, general: str | None) -> str | None:
    """The label to try: one that was chosen for this head, or its own in general."""
    if st.session_state.setdefault(_CLAIM_OF, (block, head)) != (block, head):
        CLAIM.set(None)
    st.session_state[_CLAIM_OF] = (block, head)
    names = {name: ROLES[name].label for name in TESTABLE}
    placeholder = "choose a label"
    if general in names:
        placeholder = f"{names[general]}, its own label"
    chosen = CLAIM.choose(
        "Label to test", names, st.selectbox, index=None, placeholder=placeholder, width=300
    )
    if chosen is None and general in TESTABLE:
        return general
    return chosen


def _turn_to(run: Run, claim: Claim) -> None:
    """Leave a trial that waits for its turn when its visitor opens another head; take up the new one."""
    last_claim = st.session_state.get(_TRIED)
    st.session_state[_TRIED] = claim
    if last_claim in (None, claim):
        return
    job = heads.trial_job(run, *last_claim)
    if job.state == "waiting" and not st.session_state.get(_ALL):
        leave(job)
    take_up(heads.trial_job(run, *claim))


# ---- one trial ----


def _explained(trial: Trial) -> None:
    losses = f"{significant(trial.repeated)} nats per token", significant(trial.unrepeated)
    if trial.label == "first":
        test = ""
    elif trial.label in ON_REPEATS:
        test = (
            "the model must miss the head more on repeated passages than on others, and more so than "
            "heads without the label; "
        )
    else:
        test = "the model must miss the head; "
    prose(
        f"Does the model need this head for what its label, *{ROLES[trial.label].label}*, says? To find out, "
        "we replace the head's output by zero, then by its mean, and do the same to "
        f"{len(trial.others(BASELINES[0]))} other heads of its block. The model reads {trial.passages} "
        f"passages of books ({trial.tokens} predicted tokens each): after themselves (repeated: loss "
        f"{losses[0]}) and after another passage (unrepeated: {losses[1]}). For the label to hold, {test}"
        "looking only where the label says must cost less than half of what it costs to look at all tokens "
        "alike; and zero and the mean must lead to the same verdict.",
        *("head", "block"),
    )
    text = verdict(trial)
    # how much is lost says how much the verdict weighs
    if trial.verdict != "not shown":
        text += f" {capital(heads.cost_without(trial))}."
    st.markdown(text)
    st.html(tables.STYLE + _table(trial))
    caption = (
        f"How much the loss rises, in nats per token: the mean over {trial.passages} passages ± its "
        f"standard error. A rise of less than {SURE:.0f} standard errors cannot be told from zero. The "
        "passages come from five books and are counted as independent; passages of one book may be alike, "
        "so the true error may be larger."
    )
    caption += (
        " The story on *Circuit* asks another question, in other texts: whether the head passes something on to a "
        "certain circuit there."
    )
    if trial.verdict == "not shown":
        caption += " The head may look there all the same: others may do its work when it is gone."
    st.caption(caption)


def _table(trial: Trial) -> str:
    """HTML of the trial's numbers: a row a change of the head, with the rise of the loss."""
    repeats = trial.label in ON_REPEATS
    rows = []
    for change, row in trial.own.iterrows():
        cells = [
            _plus_minus(row, name) for name in ("repeated_rise", "unrepeated_rise", trial.missed_by)
        ]
        others_mean = ""
        reason = ""
        if change in BASELINES:
            compared = trial.others(change)
            # the verdict is by these
            compared = compared[~compared["same_label"]] if repeats else compared
            others_mean = "–"
            if len(compared):
                others_mean = significant(compared[trial.missed_by].mean())
            reason = REASONS[trial.reasons[change]]
        words = tables.Cell(CHANGES[change], "word"), tables.Cell(reason, "word")
        rows.append(tables.Row([words[0], *cells, others_mean, words[1]]))
    if repeats:
        measure = "difference"
        comparison = "heads without the label"
    else:
        measure = "mean of both"
        comparison = "other heads"
    return tables.table(
        "The trial",
        ["", "#repeated", "#unrepeated", f"#{measure}", f"#{comparison}", "by this baseline"],
        rows,
    )


def _plus_minus(row: pd.Series, column: str) -> str:
    """A rise with its standard error: "+2.06 ± 0.25"."""
    return plus_minus(row[column], row[f"{column}_se"])


def _costs(trial: Trial) -> list[Cost]:
    """The rows of the picture: what each change of this head, and of others, costs in nats a token.

    First without the head, for each baseline and both kinds of passages; then with the head looking
    at all tokens alike, and looking only where its label says.
    """
    kinds = {
        "repeated_rise": ("repeated passages", trial.repeated),
        "unrepeated_rise": ("unrepeated passages", trial.unrepeated),
        "rise": ("both kinds of passages", (trial.repeated + trial.unrepeated) / 2),
    }
    changes_and_rises = [
        (change, name) for change in BASELINES for name in ("repeated_rise", "unrepeated_rise")
    ]
    changes_and_rises += [("even", trial.looked_by), ("label", trial.looked_by)]
    rows = []
    own_rises = trial.own
    for change, name in changes_and_rises:
        passages, loss = kinds[name]
        other_rises = trial.others(change)
        by_head = dict(zip(other_rises["head"], other_rises[name], strict=True))
        rows.append(Cost(f"{passages}, {CHANGES[change]}", loss, own_rises[name][change], by_head))
    return rows


# ---- all labels ----


def _all(run: Run, labels: Labels, tried: Mapping[tuple[int, int], Trial]) -> None:
    """Draw how the trials of all labels ended, and a button that tries those that are left."""
    all_claims = claims(labels)
    if not all_claims:
        return

    def every_job() -> list[Job[Trial]]:
        return [heads.trial_job(run, *claim) for claim in all_claims]

    def begin() -> None:
        st.session_state[_ALL] = True
        st.session_state[_FAILED] = None
        for job in every_job():
            take_up(job)

    def stop() -> None:
        st.session_state[_ALL] = False
        for job in every_job():
            if job.active:
                leave(job)

    @st.fragment(run_every=EVERY_SECONDS)
    def watching() -> None:
        done = sum(job.state == "done" for job in every_job())
        all_jobs = every_job()
        if not any([waited_for(job) for job in all_jobs]):  # a look at each of them
            st.session_state[_ALL] = False
            st.session_state[_FAILED] = next((job.error for job in all_jobs if job.error), None)
            st.rerun()
        with st.container(horizontal=True, vertical_alignment="center", key="heads_all_progress"):
            st.button("Stop", key="heads_all_stop", on_click=stop)
            st.progress(done / len(all_claims), f"{done} of {len(all_claims)} labels tried")

    if st.session_state.get(_ALL) and len(tried) < len(all_claims):
        watching()
        return
    st.session_state[_ALL] = False
    ended = Counter(trial.verdict for trial in tried.values())
    counts = ", ".join(f"{ended[outcome]} {words}" for outcome, words in ENDED.items())
    st.markdown(f"Tried so far: {len(tried)} of {len(all_claims)} labels in general. {counts}.")
    failed = st.session_state.get(_FAILED)
    if failed is not None:
        st.warning(
            f"Not every label could be tried: {failed}. The button below tries the others again."
        )
    if len(tried) < len(all_claims):
        st.button(f"Put all {len(all_claims)} labels on trial", key="heads_try_all", on_click=begin)
