"""A label on trial: what the model loses without the head by two baselines, and a verdict."""

from collections import Counter
from functools import partial

import streamlit as st

from gptviz import Run
from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_trial import BASELINES, TESTABLE, Claim, Trial
from gptviz.digits import significant
from gptviz.figures.head_trial import Cost, costs
from gptviz.ui.measuring import trial_job
from gptviz.ui.shell import state
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.tables import STYLE, Row, number, table
from gptviz.ui.views.heads import trial_words
from gptviz.ui.views.heads.chosen import Chosen
from gptviz.ui.views.heads.trial_words import CHANGES, REASONS, plus_minus
from gptviz.ui.views.heads.verdicts import claims
from gptviz.ui.views.heads.waiting import EVERY_SECONDS, leave, take_up, wait_for, waited_for

CLAIM: Param[str | None] = Param("claim", str, None, if_there)  # None: what the head does in general
PARAMS = (CLAIM,)

_CLAIM_OF = "heads_claim_of"  # in the session: the head that the claim was chosen for
_TRIED = "heads_tried"  # in the session: the claim that was put on trial last
_ALL = "heads_all_trials"  # in the session: whether all labels are being tried


def draw(scene: Scene, chosen: Chosen) -> Trial | None:
    """The trial of the opened head, None where there is none yet."""
    st.subheader("The trial", anchor=False)
    label = _claim(chosen)
    said = st.container()
    if chosen.in_general is None and label is None:
        st.markdown(trial_words.WAITS)
        return None
    if label is None:
        assert chosen.in_general is not None
        role = chosen.in_general[0]
        st.markdown(trial_words.no_claim(role))
        _all(scene, chosen)
        return None
    block, head = chosen.block, chosen.head
    find = partial(trial_job, scene.run.plain, block, head, label)
    _turn_to(scene.run.plain, (block, head, label))
    trial: Trial | None = wait_for("heads_trial", find, trial_words.working, trial_words.STOPPED)
    if trial is None:
        _all(scene, chosen)
        return None
    with said:
        own = (significant(trial.repeated), significant(trial.unrepeated))
        others = len(trial.others(BASELINES[0]))
        prose(trial_words.intro(label, trial.passages, trial.tokens, others, *own), "head", "block")
        st.markdown(verdict(trial))
        st.html(STYLE)
        st.html(_table(trial))
        st.caption(trial_words.table_says(trial.passages))
        if trial.verdict == "not shown":
            st.markdown(trial_words.STANDS_IN)
    scene.unchanged.chart(
        costs(_costs(trial), block, head, scene.mode),
        key="heads_trial",
        alt=f"What muting block {block}, head {head} costs, beside other heads of its block",
        which=(f"block{block}", f"head{head}", label),
    )
    in_numbers(trial.table, "heads-trial", trial_words.NUMBERS, "the trial")
    _all(scene, chosen)
    return trial


def _claim(chosen: Chosen) -> str | None:
    """The label that is tried: one that was chosen for this head, or its own in general."""
    head = (chosen.block, chosen.head)
    if st.session_state.setdefault(_CLAIM_OF, head) != head:
        CLAIM.set(None)
    st.session_state[_CLAIM_OF] = head
    CLAIM.within(TESTABLE)
    own = chosen.in_general[0] if chosen.in_general else None
    label = CLAIM.widget(
        st.selectbox,
        "Tried as",
        options=TESTABLE,
        index=None,
        format_func=lambda name: ROLES[name].label,
        placeholder=ROLES[own].label + ", its own label" if own in TESTABLE else "choose a label",
        width=420 if state.PRESENT.value else 300,
    )
    return own if label is None and own in TESTABLE else label


def _turn_to(run: Run, claim: Claim) -> None:
    """A trial that still waits for its turn gives way when its visitor opens another head."""
    before = st.session_state.get(_TRIED)
    st.session_state[_TRIED] = claim
    if before in (None, claim):
        return
    left = trial_job(run, *before)
    if left.state == "waiting" and not st.session_state.get(_ALL):
        leave(left)
    take_up(trial_job(run, *claim))


def _table(trial: Trial) -> str:
    """What each change costs, the numbers that the verdict is by: a row a change."""
    repeats = trial.missed_by == "extra"
    columns = ("repeated_rise", "unrepeated_rise", trial.missed_by)
    rows = []
    for change, own in trial.own.iterrows():
        cells = [number(plus_minus(own[name], own[f"{name}_se"])) for name in columns]
        others, said = "", ""
        if change in BASELINES:
            found = trial.others(change)
            found = found[~found["same_label"]] if repeats else found  # the verdict is by these
            others = significant(found[trial.missed_by].mean()) if len(found) else "–"
            said = REASONS[trial.reasons[change]]
        rows.append(Row([CHANGES[change], *cells, number(others), said]))
    what, who = ("difference", "heads without the label") if repeats else ("mean of both", "other heads")
    head = ["", "#repeated", "#unrepeated", f"#{what}", f"#{who}", "by this baseline"]
    return table("The trial", head, rows)


def _costs(trial: Trial) -> list[Cost]:
    """What is drawn: without the head, on both kinds of passages; then looking alike, and as it is called."""
    kinds = {"repeated_rise": ("a repeated passage", trial.repeated)}
    kinds["unrepeated_rise"] = ("an unrepeated passage", trial.unrepeated)
    kinds["rise"] = ("both together", (trial.repeated + trial.unrepeated) / 2)
    shown = [(change, name) for change in BASELINES for name in ("repeated_rise", "unrepeated_rise")]
    shown += [("even", trial.looked_by), ("label", trial.looked_by)]
    found = []
    for change, name in shown:
        passage, whole = kinds[name]
        others = trial.others(change)
        beside = zip(others["head"], whole + others[name], strict=True)
        found.append(Cost(passage, CHANGES[change], whole, whole + trial.own[name][change], tuple(beside)))
    return found


def verdict(trial: Trial) -> str:
    """What came of it, in a sentence."""
    own = trial.own.loc[list(BASELINES)]
    missed = dict(
        zip(BASELINES, zip(own[trial.missed_by], own[f"{trial.missed_by}_se"], strict=True), strict=True)
    )
    return trial_words.verdict(trial.label, trial.verdict, trial.reasons, missed)


# ---- all labels ----


def _all(scene: Scene, chosen: Chosen) -> None:
    """A button that puts every label on trial, and how far that is."""
    run, every = scene.run.plain, claims(chosen.labels or {})
    if not every:
        return
    known = chosen.tried
    going = bool(st.session_state.get(_ALL)) and len(known) < len(every)
    if not going:
        st.session_state[_ALL] = False
        ended = Counter(trial.verdict for trial in known.values())
        st.markdown(trial_words.tried(ended, len(every)))
        if len(known) < len(every):
            said = trial_words.all_trials(len(every))
            st.button(said, key="heads_try_all", on_click=_try_all, args=(run, every))
        return

    @st.fragment(run_every=EVERY_SECONDS)
    def watching() -> None:
        jobs = [trial_job(run, *claim) for claim in every]
        done = sum(job.state == "done" for job in jobs)
        if not any([waited_for(job) for job in jobs]):  # a look at each of them
            st.session_state[_ALL] = False
            st.rerun()
        with st.container(horizontal=True, vertical_alignment="center", key="heads_all_progress"):
            st.button("Stop", key="heads_all_stop", on_click=_stop_all, args=(run, every))
            st.progress(done / len(every), trial_words.all_working(done, len(every)))

    watching()


def _try_all(run: Run, every: list[Claim]) -> None:
    st.session_state[_ALL] = True
    for claim in every:
        take_up(trial_job(run, *claim))


def _stop_all(run: Run, every: list[Claim]) -> None:
    st.session_state[_ALL] = False
    for claim in every:
        job = trial_job(run, *claim)
        if job.active:
            leave(job)
