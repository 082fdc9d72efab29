"""A label on trial: what the model loses without the head by two baselines, and a verdict if they agree."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.head_formulas import ON_REPEATS, ROLES
from gptviz.analysis.head_trial import BASELINES, SURE, TESTABLE, Claim, Trial
from gptviz.digits import plus_minus, significant
from gptviz.figures.heads import Cost, costs
from gptviz.ui import heads, tables
from gptviz.ui.parts.heads.waiting import EVERY_SECONDS, leave, take_up, wait_for, waited_for
from gptviz.ui.sheet import Param, Scene, if_there, sideways
from gptviz.ui.words import capital, prose
from gptviz.work import Work

Labels = Mapping[tuple[int, int], str]  # every head's role in general, by block and head; empty: not known

CLAIM: Param[str | None] = Param("claim", str, None, if_there)  # None: what the head does in general
_CLAIM_OF = "heads_claim_of"  # in the session: the head that the claim was chosen for
_TRIED = "heads_tried"  # in the session: the claim that was put on trial last
_ALL = "heads_all_trials"  # in the session: whether all labels are being tried
_FAILED = "heads_failed_trial"  # in the session: why one of these trials failed, None where none did

REASONS = {
    "enough": "the label holds",
    "not enough": "needed for more than its label says",
    "not missed": "not shown to be needed here",
    "as others": "not shown to be needed more than other heads",
    "anywhere": "not shown to matter where it looks",
}
CHANGES = {
    "zero": "with zero in its place",
    "sample": "with its mean in its place",
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
    """The trial of the opened head, None where there is none yet."""
    st.subheader("The trial", anchor=False)
    own = labels.get((block, head))
    label = _label(block, head, own)
    said = st.container()
    trial = None
    if label is not None:
        claim = (block, head, label)
        _turn_to(scene.run.plain, claim)
        find = partial(heads.trial_work, scene.run.plain, *claim)
        stopped = "The trial was stopped: there is no verdict."
        trial = wait_for("heads_trial", find, "On trial, passes", stopped)
    elif own is None:
        st.markdown("A head's label in general is what is put on trial, and that is not known yet.")
    else:
        st.markdown(f"*{ROLES[own].label}* claims nothing that can be tried. Choose a label to try it.")
    if trial is not None:
        with said:
            _explained(trial)
        sideways("heads_trial")
        scene.unchanged.chart(
            costs(_costs(trial), block, head, scene.mode),
            key="heads_trial",
            alt=f"What muting block {block}, head {head} costs, beside other heads of its block",
            which=(f"block{block}", f"head{head}", trial.label),
        )
    _all(scene.run.plain, labels, tried)
    return trial


def verdict(trial: Trial) -> str:
    """The trial's result in a sentence or two: the verdict, and the loss without the head."""
    start = f"On trial as *{ROLES[trial.label].label}*:"
    zero, sample = (REASONS[trial.reasons[baseline]] for baseline in BASELINES)
    costs = f"{capital(heads.cost_without(trial))}."
    if trial.verdict == "not decided":
        return f"{start} **not decided**. {costs}"
    if zero != sample:
        return f"{start} **{zero}** with zero in its place, and **{sample}** with its mean."
    says = {"holds": "the label **holds**", "withdrawn": f"the label is **withdrawn**. The head is {zero}"}
    # a head at rest need not be missed
    by = ", whether zero or its mean stands in for the head"
    if trial.label == "first":
        by = ""
    outcome = says.get(trial.verdict, f"**{zero}**")
    text = f"{start} {outcome}{by}."
    # how much is lost says how much the verdict weighs
    if trial.verdict in says:
        return f"{text} {costs}"
    return text


# ---- which label ----


def _label(block: int, head: int, own: str | None) -> str | None:
    """The label that is tried: one that was chosen for this head, or its own in general."""
    if st.session_state.setdefault(_CLAIM_OF, (block, head)) != (block, head):
        CLAIM.set(None)
    st.session_state[_CLAIM_OF] = (block, head)
    called = {name: ROLES[name].label for name in TESTABLE}
    empty = "choose a label"
    if own in called:
        empty = f"{called[own]}, its own label"
    chosen = CLAIM.choose("Tried as", called, st.selectbox, index=None, placeholder=empty, width=300)
    if chosen is None and own in TESTABLE:
        return own
    return chosen


def _turn_to(run: Run, claim: Claim) -> None:
    """A trial that still waits for its turn gives way when its visitor opens another head."""
    before = st.session_state.get(_TRIED)
    st.session_state[_TRIED] = claim
    if before in (None, claim):
        return
    left = heads.trial_work(run, *before)
    if left.state == "waiting" and not st.session_state.get(_ALL):
        leave(left)
    take_up(heads.trial_work(run, *claim))


# ---- one trial ----


def _explained(trial: Trial) -> None:
    losses = f"{significant(trial.repeated)} nats per token", significant(trial.unrepeated)
    test = " It must be missed"
    if trial.label == "first":
        test = ""
    if trial.label in ON_REPEATS:
        test += " more on repeated passages than on others, and more so than heads without the label"
    prose(
        f"Does the model need this head for what its label, *{ROLES[trial.label].label}*, says? It reads "
        f"{trial.passages} passages of books ({trial.tokens} predicted tokens each), after themselves "
        f"(repeated: loss {losses[0]}) and after another one (unrepeated: {losses[1]}). The head gives zero, "
        f"then its mean; so do {len(trial.others(BASELINES[0]))} other heads of its "
        f"block.{test}{test and '.'} Looking only where its label says must cost less than half as much as "
        "looking at all tokens alike. A verdict needs zero and the mean to agree.",
        *("head", "block"),
    )
    st.markdown(verdict(trial))
    st.html(tables.STYLE + _table(trial))
    caption = (
        f"By how much the loss rises, in nats per token: the mean over {trial.passages} passages ± its "
        f"standard error. Less than {SURE:.0f} standard errors above zero cannot be told from nothing. The "
        "passages are of five books, and count as if each were of its own: those of one book may be alike, "
        "and the true error larger."
    )
    if trial.verdict == "not shown":
        caption += " The head may look there all the same: others may stand in for it."
    st.caption(caption)


def _table(trial: Trial) -> str:
    """HTML of the trial's numbers: a row a change of the head, with the rise of the loss."""
    repeats = trial.label in ON_REPEATS
    rows = []
    for change, own in trial.own.iterrows():
        cells = [_plus_minus(own, name) for name in ("repeated_rise", "unrepeated_rise", trial.missed_by)]
        others = ""
        said = ""
        if change in BASELINES:
            found = trial.others(change)
            found = found[~found["same_label"]] if repeats else found  # the verdict is by these
            others = "–"
            if len(found):
                others = significant(found[trial.missed_by].mean())
            said = REASONS[trial.reasons[change]]
        words = tables.Cell(CHANGES[change], "word"), tables.Cell(said, "word")
        rows.append(tables.Row([words[0], *cells, others, words[1]]))
    if repeats:
        what = "difference"
        who = "heads without the label"
    else:
        what = "mean of both"
        who = "other heads"
    return tables.table(
        "The trial", ["", "#repeated", "#unrepeated", f"#{what}", f"#{who}", "by this baseline"], rows
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
    shown = [(change, name) for change in BASELINES for name in ("repeated_rise", "unrepeated_rise")]
    shown += [("even", trial.looked_by), ("label", trial.looked_by)]
    found = []
    own = trial.own
    for change, name in shown:
        passages, whole = kinds[name]
        others = trial.others(change)
        beside = dict(zip(others["head"], others[name], strict=True))
        found.append(Cost(f"{passages}, {CHANGES[change]}", whole, own[name][change], beside))
    return found


# ---- all labels ----


def _all(run: Run, labels: Labels, tried: Mapping[tuple[int, int], Trial]) -> None:
    """Draw how the trials of all labels ended, and a button that holds those that were not held yet."""
    every = claims(labels)
    if not every:
        return

    def every_work() -> list[Work[Trial]]:
        return [heads.trial_work(run, *claim) for claim in every]

    def begin() -> None:
        st.session_state[_ALL] = True
        st.session_state[_FAILED] = None
        for work in every_work():
            take_up(work)

    def stop() -> None:
        st.session_state[_ALL] = False
        for work in every_work():
            if work.active:
                leave(work)

    @st.fragment(run_every=EVERY_SECONDS)
    def watching() -> None:
        done = sum(work.state == "done" for work in every_work())
        looked_at = every_work()
        if not any([waited_for(work) for work in looked_at]):  # a look at each of them
            st.session_state[_ALL] = False
            st.session_state[_FAILED] = next((work.error for work in looked_at if work.error), None)
            st.rerun()
        with st.container(horizontal=True, vertical_alignment="center", key="heads_all_progress"):
            st.button("Stop", key="heads_all_stop", on_click=stop)
            st.progress(done / len(every), f"{done} of {len(every)} labels tried")

    if st.session_state.get(_ALL) and len(tried) < len(every):
        watching()
        return
    st.session_state[_ALL] = False
    ended = Counter(trial.verdict for trial in tried.values())
    counts = ", ".join(f"{ended[said]} {words}" for said, words in ENDED.items())
    st.markdown(f"{len(tried)} of the {len(every)} labels in general were tried: {counts}.")
    failed = st.session_state.get(_FAILED)
    if failed is not None:
        st.warning(f"Not every label could be tried: {failed}. The button below tries the others again.")
    if len(tried) < len(every):
        st.button(f"Put all {len(every)} labels on trial", key="heads_try_all", on_click=begin)
