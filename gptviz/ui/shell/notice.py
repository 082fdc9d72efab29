"""What stands above a page when the model that was asked for cannot be shown: why, and what can be done."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from gptviz.digits import gigabytes
from gptviz.models.catalog import catalog
from gptviz.models.checkpoints import HeadsMissing, SurplusTokens, TokenizerMissing
from gptviz.models.checkpoints.download import Progress
from gptviz.models.checkpoints.errors import without_code
from gptviz.models.loading import WITHOUT_THEM
from gptviz.tokenizer import encoding_names
from gptviz.ui.buttons import button
from gptviz.ui.models import in_use as models
from gptviz.ui.models.browsers import find_upload, remove_upload
from gptviz.ui.models.choice import UPLOAD, Choice
from gptviz.ui.models.downloads import Download
from gptviz.ui.models.in_use import InUse, NotOnDisk, label_of
from gptviz.ui.shell import state
from gptviz.ui.words import duration, escaped

HEADS = "model_heads"
TOKENIZER = "model_tokenizer"
GPT2_HEAD_DIM = 64
EVERY_SECONDS = 0.5


def notice(model: InUse) -> None:
    """Draw why the model that was asked for is not shown; nothing if it is."""
    trouble = model.trouble
    if trouble is None:
        return
    if isinstance(trouble, NotOnDisk):
        _download(model)
    elif isinstance(trouble, HeadsMissing):
        _heads(model, trouble)
    elif isinstance(trouble, TokenizerMissing):
        _tokenizer(model)
    elif isinstance(trouble, SurplusTokens):
        _surplus(model, trouble)
    else:
        _failed(model, str(trouble))


def _buttons(
    model: InUse, label: str, key: str, do: Callable[..., Any], *args: Any, **how: Any
) -> None:
    """Draw what can be done about it, and the way back to the model that is seen."""
    button(label, key, do, *args, **how)
    button(
        f"Stay with {escaped(label_of(model.choice))}",
        "model_stay",
        state.choose_model,
        model.choice,
    )


def _failed(model: InUse, why: str) -> None:
    asked = escaped(label_of(model.asked))
    seen = escaped(label_of(model.choice))
    sentence, code = without_code(why)
    st.error(f"{asked} cannot be loaded: {escaped(_ended(sentence))} You see {seen} instead.")
    if code:
        st.code(code, language="python")
    number = model.asked.name.removeprefix(UPLOAD)
    with st.container(horizontal=True):
        if model.asked.name.startswith(UPLOAD) and find_upload(number) is not None:
            _buttons(model, "Remove it", "model_remove", _remove, number, model)
        else:
            _buttons(model, "Try again", "model_retry", models.retry)


def _remove(number: str, model: InUse) -> None:
    remove_upload(number)
    state.choose_model(model.choice)


def _ended(text: str) -> str:
    if text.endswith((".", "!", "?")):
        return text
    return f"{text}."


# ---- a model that must be downloaded ----


def _download(model: InUse) -> None:
    name = model.asked.name
    seen = escaped(label_of(model.choice))
    last = models.downloads().last(name)
    if last is not None and last.running:
        _running(last, seen)
        return
    if last is not None and last.error is not None:
        st.error(f"{escaped(_ended(last.error))} You see {seen} instead.")
    else:
        size = "".join(
            f": {gigabytes(entry.download_bytes or 0)}" for entry in catalog() if entry.name == name
        )
        stopped = ""
        if last and last.cancelled:
            stopped = " The download was stopped. The part that has arrived is kept."
        st.info(
            f"{escaped(name)} is not on this machine yet. Download it once{size}.{stopped} "
            f"Until then you see {seen}."
        )
    label = "Go on with the download"
    if last is None:
        label = "Download"
    with st.container(horizontal=True):
        _buttons(model, label, "model_download", models.downloads().start, name, type="primary")


@st.fragment(run_every=EVERY_SECONDS)
def _running(download: Download, seen: str) -> None:
    if not download.running:
        st.rerun()  # the whole page: the model is here, or there is something to say
    progress = download.progress
    if progress is None:
        st.progress(
            0.0, f"{escaped(download.name)}: contacting the hub. Until it is here, you see {seen}."
        )
    else:
        text = f"{escaped(download.name)}: {in_words(progress)}. Until then you see {seen}."
        share = 0.0
        if progress.total:
            share = progress.done / progress.total
        st.progress(min(share, 1.0), text)
    hint = "Stops it for everybody who is waiting for it. The part that has arrived is kept."
    st.button("Stop the download", key="model_cancel", on_click=download.cancel, help=hint)


def in_words(progress: Progress) -> str:
    """A download's progress: the bytes that arrived of all, the speed and the time left."""
    arrived = f"{gigabytes(progress.done)} of {gigabytes(progress.total)}"
    if progress.seconds_left is None:
        return arrived
    return f"{arrived}, {progress.bytes_per_second / 1e6:.1f} MB/s, {duration(progress.seconds_left)} left"


# ---- a file that does not say everything ----


def _heads(model: InUse, trouble: HeadsMissing) -> None:
    asked = escaped(label_of(model.asked))
    st.info(
        f"How many attention heads does {asked} have? The file of weights does not say, and with a wrong "
        "number every page would be wrong without warning. Look it up in your training code: `n_heads` in "
        f"its config. {_proposal(trouble.emb_dim)}"
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        # a guess beside a button would be taken for knowledge
        chosen = st.selectbox(
            "Heads", trouble.choices, index=None, placeholder="Choose", key=HEADS, width=120
        )
        arguments = (model.asked, "n_heads", HEADS)
        _buttons(
            model, "Load", "model_load", _with, *arguments, type="primary", disabled=chosen is None
        )


def _proposal(emb_dim: int) -> str:
    """A sentence: the heads that this width has with as many dimensions a head as GPT-2."""
    usual, remainder = divmod(emb_dim, GPT2_HEAD_DIM)
    comparison = f"GPT-2 has {GPT2_HEAD_DIM} dimensions per head"
    if remainder:
        return f"{comparison}, but the {emb_dim} dimensions here cannot be divided evenly by {GPT2_HEAD_DIM}."
    if usual == 1:
        heads = "1 head"
    else:
        heads = f"{usual} heads"
    return f"{comparison}. With the {emb_dim} dimensions here, that would be {heads}."


def _tokenizer(model: InUse) -> None:
    asked = escaped(label_of(model.asked))
    st.info(
        f"{asked} comes without a tokenizer, and its vocabulary does not have the size of GPT-2's. Choose "
        "the tokenizer it was trained with, or upload it again together with its tokenizer: tokenizer.json, "
        "tokenizer.tiktoken or nanoGPT's meta.pkl."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox("Tokenizer", encoding_names(), key=TOKENIZER, width=200)
        arguments = (model.asked, "tokenizer", TOKENIZER)
        _buttons(model, "Load", "model_load", _with, *arguments, type="primary")


def _surplus(model: InUse, trouble: SurplusTokens) -> None:
    sentence = escaped(str(trouble).removesuffix(WITHOUT_THEM))
    seen = escaped(label_of(model.choice))
    st.info(
        f"{sentence}. You can load it without these tokens. If you type them, they are read as plain text. "
        f"Until then you see {seen}."
    )
    choice = replace(model.asked, drop_surplus=True)
    with st.container(horizontal=True):
        _buttons(
            model,
            "Go on without them",
            "model_drop_surplus",
            state.choose_model,
            choice,
            type="primary",
        )


def _with(asked: Choice, field: str, key: str) -> None:
    state.choose_model(replace(asked, **{field: st.session_state[key]}))
