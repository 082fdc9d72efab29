"""The token that a page explains, and the one that it is compared with: any two of the vocabulary.

Both are ids in the address (?target=512&against=733) and follow from page to page: a page that has them puts
`PARAMS` among its own. `against=mean` compares with the mean over the vocabulary. What they are as long as
nobody chose is the page's matter: see `bench` for those that say which part did it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

import streamlit as st
import torch

from gptviz import LanguageModel, Run
from gptviz.analysis.lens import top_ids
from gptviz.analysis.next_token import Candidates, candidates
from gptviz.digits import significant
from gptviz.engine.sampling import AS_IT_IS, Sampling
from gptviz.tokenizer import END_OF_TEXT, named_bytes
from gptviz.ui import runs
from gptviz.ui.buttons import button
from gptviz.ui.runs import per_run
from gptviz.ui.shell.params import Param, if_there, store
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import as_code, is_named, no_single_token, not_in_vocabulary, show_id

MEAN = -1  # in place of an id: the mean over the vocabulary


class Against(Param[int | None]):
    """An id, or `MEAN`."""

    def parse(self, text: str) -> int | None:
        if text == "mean":
            return MEAN
        return super().parse(text)

    def written(self, value: int | None) -> str:
        if value == MEAN:
            return "mean"
        return super().written(value)


def there_or_mean(value: int | None, size: int) -> int | None:
    """The id if the vocabulary has it, or `MEAN`; else None."""
    if value == MEAN:
        return MEAN
    return cast("int | None", if_there(value, size))


TARGET: Param[int | None] = Param("target", int, None, if_there)
AGAINST = Against("against", int, None, there_or_mean)
PARAMS = (TARGET, AGAINST)

CANDIDATES = 12  # that the boxes offer without typing
OF_ALL = "the mean of all tokens"

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


def choices_at(run: Run, position: int, count: int, also: tuple[int, ...] = ()) -> Candidates:
    """`candidates_at` by the model's own probabilities."""
    return candidates_at(run, position, AS_IT_IS, count, also)


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


def target_input(scene: Scene, label: str) -> Target:
    """Draw the box for one token; return it, the model's first choice as long as nobody chose another.

    `label` says what the page does with it.
    """
    first = top(scene.run, scene.position)[0]
    with boxes(scene, PARAMS[:1]):
        token = first.id if TARGET.value is None else TARGET.value
        hint = "Choose a token, or type any other. Write · for a space. Empty: the model's first choice."
        token_box(scene, TARGET, label, f"most probable: {first.shown}", (), width=300, help=hint)
    return Target(token, None, show_id(scene.lm, token), None)


@contextmanager
def boxes(
    scene: Scene,
    params: tuple[Param[int | None], ...],
    key: str = "set_target",
    align: Literal["bottom", "center"] = "bottom",
    gap: Literal["small", "xsmall"] = "small",
) -> Iterator[None]:
    """Draw a row of boxes, with choices that this model has; below it, what was typed and is no token."""
    _follow_model(scene)
    for param in PARAMS:
        param.within(scene.lm.config.vocab_size)
    with st.container(horizontal=True, vertical_alignment=align, gap=gap, key=key):
        yield
    store(params)
    refused: tuple[str, str] | None = st.session_state.get(_REFUSED)
    if refused is not None:
        _say_refused(scene.lm, *refused)


def token_box(
    scene: Scene,
    param: Param[int | None],
    label: str,
    empty: str,
    also: tuple[int, ...],
    **how: Any,
) -> None:
    """Draw a box for one token, to choose or to type. It shows the choice; the Param holds it.

    `empty` says what an empty box means. It offers the model's first choices, and those `also`; that of
    `AGAINST` the mean as well.
    """
    key = f"{param.name}_box"
    also = tuple(token for token in (*also, param.value) if token is not None and token != MEAN)
    offered = top(scene.run, scene.position, CANDIDATES, also)
    labels = {
        candidate.id: f"{candidate.shown}   {significant(100 * candidate.probability, 2)} %"
        for candidate in offered
    }
    if len(set(labels.values())) < len(labels):
        labels = {i: f"{label} (id {i})" for i, label in labels.items()}
    if param is AGAINST:
        labels[MEAN] = OF_ALL
    st.session_state[key] = param.value
    st.selectbox(
        label,
        options=list(labels),
        format_func=lambda value: labels.get(value, str(value)),
        index=None,
        placeholder=empty,
        accept_new_options=True,
        key=key,
        on_change=_chosen,
        args=(scene, param),
        **how,
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
        ids = lm.encode(typed, special_tokens=True, begin=False)
        if len(ids) == 1 and ids[0] < size:
            return ids[0]
        return None
    for text in (typed, _read_signs(typed)):
        ids = lm.encode(text, begin=False)
        if len(ids) == 1 and ids[0] < size and is_named(lm, ids[0]):
            return ids[0]
    return next((i for i in range(size) if show_id(lm, i) == typed), None)


def _read_signs(typed: str) -> str:
    return typed.replace("·", " ").replace("⏎", "\n").replace("⇥", "\t")


def _say_refused(lm: LanguageModel, name: str, typed: str) -> None:
    """Say why what was typed is no token, and offer it with a space before it if that is one."""
    text = _read_signs(typed)
    pieces = [show_id(lm, i) for i in lm.encode(text, begin=False)]
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
    chosen = [(param.name, param.value) for param in PARAMS if param.value not in (None, MEAN)]
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
