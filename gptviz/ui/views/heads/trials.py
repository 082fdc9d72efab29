"""A label on trial: what muting the head costs where its habit helps and where it does not, and a verdict."""

from functools import partial

import streamlit as st

from gptviz import Run
from gptviz.analysis.head_trial import TESTABLE, Trial
from gptviz.figures.head_trial import Cost, costs
from gptviz.ui.measuring import trial_job
from gptviz.ui.shell import state
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.heads import trial_words, words
from gptviz.ui.views.heads.chosen import Chosen
from gptviz.ui.views.heads.verdicts import Claim, claims
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
        prose(trial_words.intro(label, trial.passages, trial.tokens), "head", "block")
    scene.unchanged.chart(
        costs(_costs(trial), block, head, scene.mode),
        key="heads_trial",
        alt=f"What muting block {block}, head {head} costs, beside other heads of its block",
        which=(f"block{block}", f"head{head}", label),
    )
    st.markdown(verdict(trial))
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
        format_func=words.TITLES.__getitem__,
        placeholder=words.TITLES[own] + ", its own label" if own in TESTABLE else "choose a label",
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


def _costs(trial: Trial) -> list[Cost]:
    """What is drawn: without the head, on both kinds of passages; then looking alike, and as it is called."""
    rows = [
        ("a repeated passage", "without the head", "repeated_rise", trial.repeated),
        ("an unrepeated passage", "without the head", "unrepeated_rise", trial.unrepeated),
    ]
    on, whole = (
        ("a repeated passage", trial.repeated)
        if trial.label in trial_words.REPEATS
        else ("both together", (trial.repeated + trial.unrepeated) / 2)
    )
    rows.append((on, "looking at all tokens alike", "even_rise", whole))
    rows.append((on, "looking only where the label says", "forced_rise", whole))
    heads = [int(head) for head in trial.table["head"]]
    found = []
    for passage, how, column, whole in rows:
        losses = [whole + float(rise) for rise in trial.table[column].dropna()]
        others = tuple(zip(heads[1 : len(losses)], losses[1:], strict=True))
        found.append(Cost(passage, how, whole, losses[0], others))
    return found


def verdict(trial: Trial) -> str:
    """What came of it, in a sentence."""
    own = trial.table.iloc[0]
    rises = {
        name.removesuffix("_rise"): float(own[name])
        for name in ("repeated_rise", "unrepeated_rise", "extra", "rise", "even_rise", "forced_rise")
    }
    others = trial.table.iloc[1:]
    beside = list(zip(others["extra"].astype(float), others["same_label"].astype(bool), strict=True))
    return trial_words.verdict(trial.label, trial.reason, rises, beside)


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
        withdrawn = sum(not trial.holds for trial in known.values())
        st.markdown(trial_words.tried(len(known), len(every), withdrawn))
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
