"""The token that a page explains, and the one that it is compared with: any two of the vocabulary.

Both are ids in the address (?target=512&against=733) and follow from page to page: a page that has them
puts `PARAMS` among its own. Until a target is chosen it is the model's first choice at the selected
position; the comparison is with the mean over the vocabulary.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
from gptviz.ui.buttons import button
from gptviz.ui.runs import per_run
from gptviz.ui.shell.params import Param, if_there, store
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

    `shown` and `against_shown` are the two as the screen shows them. `against` is never `token`.
    """

    token: int
    against: int | None
    shown: str
    against_shown: str | None


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
    """The token's logit minus the mean of all, or minus another token's, and its probability."""
    logits = logits_at(run, position)
    return float(difference(logits, token, against)), float(logits.double().softmax(0)[token])


@per_run
def top(
    run: Run, position: int, count: int = CANDIDATES, also: tuple[int, ...] = ()
) -> list[Candidate]:
    """The model's own first choices at a position, the most probable first; and those `also`, at any rank."""
    lm = runs.model(run)
    logits = logits_at(run, position)
    ids = dict.fromkeys([*top_ids(logits[None], count)[0].tolist(), *also])
    probabilities = logits.double().softmax(0)[list(ids)].tolist()
    return [Candidate(i, show_id(lm, i), p) for i, p in zip(ids, probabilities, strict=True)]


def target_input(
    scene: Scene,
    label: str = "Token to explain",
    against: str | None = "the mean over the vocabulary",
) -> Target:
    """Draw the boxes, or without `against` only the first; return the choice, made possible.

    `label` says what the page does with the first, `against` what an empty second box means.
    """
    lm = scene.lm
    best = top(scene.run, scene.position)
    with _boxes(scene, PARAMS[:1] if against is None else PARAMS):
        if TARGET.value is None:
            token = best[0].id
        else:
            token = TARGET.value
        # in a vocabulary of one token it is that token
        runner_up = next((candidate.id for candidate in best if candidate.id != token), token)
        other = None
        if against is not None and AGAINST.value != token:
            other = AGAINST.value
        hint = "Choose a token, or type any other. Write · for a space. Empty: the model's first choice."
        _box(scene, TARGET, label, f"most probable: {best[0].shown}", hint)
        if (
            scene.other is not None
            and (unchanged_best := top(scene.other, scene.position)[0]).id != token
        ):
            help = "The unchanged model's first choice here"
            text = f"explain {as_code(unchanged_best.shown)}"
            button(text, "target_unchanged", _take, TARGET, unchanged_best.id, help=help)
        if against is not None:
            hint = "Choose a second token to ask: why the first and not this one? The page then explains the "
            hint += f"difference of the two logits. Empty: {against}."
            _box(scene, AGAINST, "Against", against, hint)
            if other != runner_up != token:
                help = "The runner-up: the most probable of all other tokens"
                text = f"against {as_code(show_id(lm, runner_up))}"
                button(text, "target_runner_up", _take, AGAINST, runner_up, help=help)
    if against is not None and AGAINST.value == token:
        st.caption(
            f"The two tokens are the same, so their difference is 0. The page compares with {against}."
        )
    return Target(token, other, show_id(lm, token), None if other is None else show_id(lm, other))


def pair_input(
    scene: Scene, labels: tuple[str, str], empties: tuple[str, str]
) -> tuple[int | None, int | None]:
    """Draw both boxes, for a difference of two logits; None for an empty one: `empties` say what it means."""
    with _boxes(scene, PARAMS):
        for param, label, empty in zip(PARAMS, labels, empties, strict=True):
            _box(
                scene,
                param,
                label,
                empty,
                "Choose a token, or type any other. Write · for a space.",
            )
    return TARGET.value, AGAINST.value


@contextmanager
def _boxes(scene: Scene, params: tuple[Param[int | None], ...]) -> Iterator[None]:
    """Draw the row of boxes, with choices that this model has; below it, what was typed and is no token."""
    _follow_model(scene)
    for param in PARAMS:
        param.within(scene.lm.config.vocab_size)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="set_target"):
        yield
    store(params)
    refused: tuple[str, str] | None = st.session_state.get(_REFUSED)
    if refused is not None:
        _say_refused(scene.lm, *refused)


def _box(scene: Scene, param: Param[int | None], label: str, empty: str, help: str) -> None:
    """Draw a box for one token, to choose or to type. It shows the choice; the Param holds it."""
    key = f"{param.name}_box"
    also = () if param.value is None else (param.value,)
    offered = top(scene.run, scene.position, CANDIDATES, also)
    labels = {
        candidate.id: f"{candidate.shown}   {significant(100 * candidate.probability, 2)} %"
        for candidate in offered
    }
    if len(set(labels.values())) < len(labels):
        labels = {i: f"{label} (id {i})" for i, label in labels.items()}
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


def _take(param: Param[int | None], token: int | None) -> None:
    st.session_state.pop(_REFUSED, None)
    param.set(token)


def _chosen(scene: Scene, param: Param[int | None]) -> None:
    """Callback: take what was chosen or typed; what is not one token is kept for a warning only."""
    value = st.session_state[f"{param.name}_box"]
    if isinstance(value, str):
        token = find_token(scene.lm, value)
    else:
        token = value
    if token is None and value is not None:
        st.session_state[_REFUSED] = (param.name, value)
    else:
        _take(param, token)


def find_token(lm: LanguageModel, typed: str) -> int | None:
    """The id of a typed token: the one token of this text, or one that the screen shows like this.

    `·mill`, ` mill` and, for a token that no text has by itself, `\\xe4` are found; None for anything else.
    """
    size = lm.config.vocab_size
    if typed == END_OF_TEXT:
        ids = lm.encode(typed, special_tokens=True)
        if len(ids) == 1 and ids[0] < size:
            return ids[0]
        return None
    for text in (typed, _read_signs(typed)):
        ids = lm.encode(text)
        if len(ids) == 1 and ids[0] < size and is_named(lm, ids[0]):
            return ids[0]
    return next((i for i in range(size) if show_id(lm, i) == typed), None)


def _read_signs(typed: str) -> str:
    return typed.replace("·", " ").replace("⏎", "\n").replace("⇥", "\t")


def _say_refused(lm: LanguageModel, name: str, typed: str) -> None:
    """Say why what was typed is no token, and offer it with a space before it if that is one."""
    text = _read_signs(typed)
    pieces = [show_id(lm, i) for i in lm.encode(text)]
    if text.startswith(" "):
        spaced = None
    else:
        spaced = find_token(lm, f" {text}")
    if spaced is None:
        shown = None
    else:
        shown = show_id(lm, spaced)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.warning(no_single_token(typed, pieces, shown), width="stretch")
        if spaced is not None and shown is not None:
            param = next(param for param in PARAMS if param.name == name)
            button(f"take {as_code(shown)}", "target_spaced", _take, param, spaced)


def _follow_model(scene: Scene) -> None:
    """After a change of the model, choose the same tokens by its ids; say which tokens it does not have."""
    lm = scene.lm
    missing = []
    key, raws = st.session_state.get(_READ, (scene.key, {}))
    for param in PARAMS if key != scene.key else ():
        raw = raws.get((param.name, param.value))
        if raw is not None:
            param.set(_of_bytes(lm, raw))
            if param.value is None:
                missing.append(raw)
    if missing:
        st.warning(not_in_vocabulary(missing, lm.name))
    chosen = [(param.name, param.value) for param in PARAMS if param.value is not None]
    st.session_state[_READ] = (
        scene.key,
        {choice: named_bytes(lm.tokenizer, choice[1]) for choice in chosen},
    )


def _of_bytes(lm: LanguageModel, raw: bytes) -> int | None:
    try:
        token = lm.tokenizer.encode_single_token(raw)
    except KeyError:  # no token of this tokenizer
        return None
    if token < lm.config.vocab_size:
        return token
    return None
