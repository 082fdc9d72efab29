"""The token that a page explains, and the one that it is compared with: any two of the vocabulary.

Both are ids in the address (?target=512&against=733) and follow from page to page: a page that has them
puts `PARAMS` among its own. As long as nobody has chosen a target it is the model's first choice at the
selected position; the comparison is with the mean over the vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import streamlit as st
import torch

from gptviz import LanguageModel, Run
from gptviz.analysis.against import difference
from gptviz.analysis.lens import top_ids
from gptviz.analysis.next_token import Candidates, candidates
from gptviz.digits import significant
from gptviz.engine.sampling import Sampling
from gptviz.tokenizer import END_OF_TEXT, named_bytes
from gptviz.ui import runs
from gptviz.ui.runs import per_run
from gptviz.ui.shell import params
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import as_code, is_named, no_single_token, not_in_vocabulary, show_id

TARGET: Param[int | None] = Param("target", int, None, if_there)
AGAINST: Param[int | None] = Param("against", int, None, if_there)
PARAMS = (TARGET, AGAINST)

CANDIDATES = 12  # that the boxes offer without typing

_REFUSED = "gptviz_target_refused"  # in the session: what was typed into which box, and is no token
_READ = "gptviz_target_read"  # in the session: the model whose ids the choices are, and their bytes


@dataclass(frozen=True)
class Target:
    """What a page explains: by how much the logit of `token` is above that of `against`, None for the mean.

    `shown` and `against_shown` are the two as the screen shows them; `runner_up` is the most probable token
    that is not `token`. `against` is never `token`.
    """

    token: int
    against: int | None
    shown: str
    against_shown: str | None
    runner_up: int


@dataclass(frozen=True)
class Candidate:
    id: int
    shown: str
    probability: float


@per_run
def logits_at(run: Run, position: int) -> torch.Tensor:
    """(V,): the model's logits at a position, from whatever pass of the run there is."""
    return runs.get(run, ()).logits(position)


@per_run
def candidates_at(
    run: Run, position: int, sampling: Sampling, count: int, also: tuple[int, ...] = ()
) -> Candidates:
    """Return the first `count` tokens after a position with these settings, and those `also` at any rank."""
    return candidates(logits_at(run, position), count, sampling, also)


def whole(run: Run, position: int, token: int, against: int | None) -> tuple[float, float]:
    """Of a run: the token's logit minus the mean of all, or minus another's, and its probability."""
    logits = logits_at(run, position)
    return float(difference(logits, token, against)), float(logits.double().softmax(0)[token])


@per_run
def top(run: Run, position: int, count: int = CANDIDATES) -> list[Candidate]:
    """The model's own first choices at a position, the most probable first."""
    ids = top_ids(logits_at(run, position)[None], count)[0].tolist()
    return _candidates(run, position, ids)


def _candidates(run: Run, position: int, ids: list[int]) -> list[Candidate]:
    logits = logits_at(run, position).double()
    probabilities = (logits[ids] - logits.logsumexp(0)).exp().tolist()
    lm = runs.model(run)
    return [Candidate(i, show_id(lm, i), p) for i, p in zip(ids, probabilities, strict=True)]


def target_input(
    scene: Scene, label: str = "Token to explain", against: str | None = "the mean over the vocabulary"
) -> Target:
    """Draw the boxes, or without `against` only the first of them; give what is chosen, made possible.

    `label` says what the page does with the first, `against` what an empty second box means.
    """
    lm, found = scene.lm, top(scene.run, scene.position)
    said = _follow_model(scene, lm)
    for param in PARAMS:
        param.within(lm.config.vocab_size)
    token = found[0].id if TARGET.value is None else TARGET.value
    runner_up = next((one.id for one in found if one.id != token), token)  # a vocabulary of one token
    other = AGAINST.value if against is not None and AGAINST.value != token else None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="target_boxes"):
        _box(
            scene,
            TARGET,
            label,
            f"most probable: {found[0].shown}",
            "Choose one of the most probable, or type any token of the vocabulary. · is a space: most words "
            "begin with one. Empty: the model's first choice.",
        )
        if scene.other is not None:
            _unchanged_first(scene, scene.other, token)
        if against is not None:
            _box(
                scene,
                AGAINST,
                "Against",
                against,
                "With a second token the page explains the difference of the two logits: why this word and "
                f"not that one. Empty: {against}. A logit alone says nothing: what raises all logits alike "
                "changes no probability.",
            )
            if other != runner_up != token:
                shown = show_id(lm, runner_up)
                st.button(
                    f"against {as_code(shown)}",
                    key="target_runner_up",
                    help="The runner-up: the most probable of all other tokens",
                    on_click=_take,
                    args=(scene, AGAINST, runner_up),
                )
    params.store(PARAMS[:1] if against is None else PARAMS)
    _say(scene, lm, said)
    if against is not None and AGAINST.value == token:
        st.caption(f"The two tokens are the same, and their difference is 0. Shown is {against}.")
    shown_other = None if other is None else show_id(lm, other)
    return Target(token, other, show_id(lm, token), shown_other, runner_up)


def pair_input(
    scene: Scene, labels: tuple[str, str], empties: tuple[str, str]
) -> tuple[int | None, int | None]:
    """Both boxes, for a difference of two logits; None for one left empty: `empties` say what holds then."""
    said = _follow_model(scene, scene.lm)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="target_boxes"):
        for param, label, empty in zip(PARAMS, labels, empties, strict=True):
            param.within(scene.lm.config.vocab_size)
            _box(scene, param, label, empty, "Choose a token, or type any of the vocabulary. · is a space.")
    params.store(PARAMS)
    _say(scene, scene.lm, said)
    return TARGET.value, AGAINST.value


def _unchanged_first(scene: Scene, other: Run, token: int) -> None:
    """A button for what the model without its changes says first, where that is not what is explained."""
    first = top(other, scene.position)[0]
    if first.id != token:
        st.button(
            f"explain {as_code(first.shown)}",
            key="target_unchanged",
            help="The unchanged model's first choice here",
            on_click=_take,
            args=(scene, TARGET, first.id),
        )


def _box(scene: Scene, param: Param[int | None], label: str, empty: str, help: str) -> None:
    """One token to choose or to type. The widget shows the choice; the choice itself is the Param."""
    key = f"{param.name}_box"
    labels = _labels(scene, param.value)
    st.session_state[key] = param.value
    st.selectbox(
        label,
        options=list(labels),
        format_func=lambda value: labels.get(value, str(value)),
        index=None,
        placeholder=empty,
        accept_new_options=True,
        key=key,
        help=help,
        width=300,
        on_change=_chosen,
        args=(scene, param),
    )


def _labels(scene: Scene, chosen: int | None) -> dict[int, str]:
    """The candidates, and the chosen token where it is none of them, with probabilities; no two alike."""
    found = top(scene.run, scene.position)
    if chosen is not None and chosen not in {one.id for one in found}:
        found = [*found, *_candidates(scene.run, scene.position, [chosen])]
    labels = {one.id: f"{one.shown}   {significant(100 * one.probability, 2)} %" for one in found}
    if len(set(labels.values())) < len(labels):
        return {i: f"{label} (id {i})" for i, label in labels.items()}
    return labels


def _chosen(scene: Scene, param: Param[int | None]) -> None:
    """Take what was chosen or typed; what is not one token is kept to be answered, and changes nothing."""
    value = st.session_state[f"{param.name}_box"]
    st.session_state.pop(_REFUSED, None)
    if isinstance(value, str):
        found = find_token(scene.lm, value)
        if found is None:
            st.session_state[_REFUSED] = (param.name, value)
            return
        value = found
    param.set(value)
    _remember(scene.key, scene.lm)


def find_token(lm: LanguageModel, typed: str) -> int | None:
    """The id of what somebody typed: the one token of this text, or one that the screen shows like this.

    `·mill`, ` mill` and, for a token that no text has by itself, `\\xe4` are found; None for anything else.
    """
    size = lm.config.vocab_size
    if typed == END_OF_TEXT:
        ids = lm.encode(typed, special_tokens=True)
        return ids[0] if len(ids) == 1 and ids[0] < size else None
    for text in (typed, _read_signs(typed)):
        ids = lm.encode(text)
        if len(ids) == 1 and ids[0] < size and is_named(lm, ids[0]):
            return ids[0]
    return next((i for i in range(size) if show_id(lm, i) == typed), None)


def _read_signs(typed: str) -> str:
    return typed.replace("·", " ").replace("⏎", "\n").replace("⇥", "\t")


def _say(scene: Scene, lm: LanguageModel, said: str | None) -> None:
    if said:
        st.warning(said)
    refused: tuple[str, str] | None = st.session_state.get(_REFUSED)
    if refused is None:
        return
    param = next(param for param in PARAMS if param.name == refused[0])
    typed = refused[1]
    text = _read_signs(typed)
    pieces = [show_id(lm, i) for i in lm.encode(text)]
    spaced = None if text.startswith(" ") else find_token(lm, f" {text}")
    shown = None if spaced is None else show_id(lm, spaced)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.warning(no_single_token(typed, pieces, shown), width="stretch")
        if spaced is not None and shown is not None:
            st.button(
                f"take {as_code(shown)}", key="target_spaced", on_click=_take, args=(scene, param, spaced)
            )


def _take(scene: Scene, param: Param[int | None], token: int) -> None:
    st.session_state.pop(_REFUSED, None)
    param.set(token)
    _remember(scene.key, scene.lm)


# ---- another model has other ids ----


def _follow_model(scene: Scene, lm: LanguageModel) -> str | None:
    """After a change of the model: the same tokens by its ids. A sentence for one that it does not have."""
    key, held = st.session_state.get(_READ, (scene.key, {}))
    gone = []
    if key != scene.key:
        for param in PARAMS:
            raw = held.get((param.name, param.value))
            if raw is None:
                continue
            found = _of_bytes(lm, raw)
            param.set(found)
            if found is None:
                gone.append(raw)
    _remember(scene.key, lm)
    return not_in_vocabulary(gone, lm.name) if gone else None


def _of_bytes(lm: LanguageModel, raw: bytes) -> int | None:
    try:
        found = lm.tokenizer.encode_single_token(raw)
    except KeyError:  # no token of this tokenizer
        return None
    return found if found < lm.config.vocab_size else None


def _remember(key: str, lm: LanguageModel) -> None:
    held: dict[Any, bytes] = {
        (param.name, param.value): named_bytes(lm.tokenizer, param.value)
        for param in PARAMS
        if param.value is not None
    }
    st.session_state[_READ] = (key, held)
