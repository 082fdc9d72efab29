"""Which model: a line in the sidebar, what opens behind it, and a window of all models and for one's files."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from gptviz import KNOWN_MODELS
from gptviz.digits import gigabytes, many
from gptviz.models.catalog import catalog
from gptviz.models.checkpoints import CheckpointError
from gptviz.models.checkpoints.errors import without_code
from gptviz.models.checkpoints.hub import HUB_MODELS, is_hub_id
from gptviz.models.checkpoints.kinds import ENDINGS as NOT_READ
from gptviz.models.loading import DEFAULT_MODEL, DTYPES, devices
from gptviz.ui.models import in_use as models
from gptviz.ui.models.browsers import keep_upload, remove_upload, uploads
from gptviz.ui.models.budget import let_go, refused, still_here
from gptviz.ui.models.choice import PATH, UPLOAD, Choice
from gptviz.ui.models.in_use import InUse, label_of
from gptviz.ui.models.uploads import ENDINGS, Upload
from gptviz.ui.shell import state
from gptviz.ui.words import counted, duration, escaped

LINE = "model_line"
MODEL = "prompt_model"
DTYPE = "model_dtype"
DEVICE = "model_device"
ACTIVATION = "model_activation"
HUB_ID = "model_hub_id"
SERVER_PATH = "model_path"
FILES = "model_files"
# the sentence why files were not taken, and that they were
_REFUSED = "gptviz_files_refused"
_BROUGHT = "gptviz_files_brought"
_WINDOWS = "gptviz_model_windows"  # how often the window was opened
EVERY_SECONDS = 1.0  # between two looks whether a file was refused

DTYPE_HELP = (
    "The book uses float32. bfloat16 needs half the memory, but rounds to about three digits at every step. "
    "These errors add up, and you see them in the numbers of every page."
)


GELUS = {"gelu_tanh": "with tanh", "gelu": "the exact one"}
GELU_HELP = (
    "The book, build-nanogpt and nanoGPT before June 2023 use the GELU with tanh. Since then, nanoGPT uses "
    "the exact one. With the wrong one, every number is slightly wrong."
)


@contextmanager
def one_line(model: InUse) -> Iterator[None]:
    """Draw the sidebar's line on the model, and inside of the block what opens behind it.

    It has a sign where there is something to know: another model is shown than the one asked for, or a GELU
    is assumed.
    """
    label = f"**{escaped(label_of(model.choice))}** · {size_of(model.lm.config.parameters)}"
    icon = None
    if model.trouble or model.lm.activation_is_assumed:
        icon = ":material/info:"
    key = f"{LINE}_{st.session_state.get(_WINDOWS, 0)}"
    with (
        st.container(key=LINE),
        st.popover(label, icon=icon, type="tertiary", width="stretch", wrap=False, key=key),
    ):
        yield


def _shut_line() -> None:
    """Callback: draw the line anew, shut. What opened behind it would lie above the window."""
    st.session_state[_WINDOWS] = st.session_state.get(_WINDOWS, 0) + 1


def size_of(parameters: int) -> str:
    """The size of a model at a glance: "7 million numbers"."""
    if 1_500_000 <= parameters < 999_500_000:
        return f"{parameters / 1e6:.0f} million numbers"
    return f"{many(parameters)} numbers"


def picker(model: InUse) -> None:
    """Draw the list of models, and the button to more."""
    asked = model.asked
    names = [*KNOWN_MODELS, *HUB_MODELS, *(f"{UPLOAD}{upload.number}" for upload in uploads())]
    if asked.name not in names:
        names.append(asked.name)
    st.session_state[MODEL] = asked.name
    labels = {name: label_of(Choice(name)) for name in names}
    st.selectbox(
        "Model",
        names,
        key=MODEL,
        format_func=labels.__getitem__,
        on_change=partial(_chose, asked),
        label_visibility="collapsed",
    )
    if st.button(
        "More models …",
        key="model_more",
        type="tertiary",
        help="See all models, or load a file of your own",
        on_click=_shut_line,
    ):
        st.session_state.pop(_REFUSED, None)  # of an earlier one
        let_go((*ENDINGS, *NOT_READ))
        window(asked)


def facts(model: InUse) -> str:
    """Lines: blocks x heads, width, parameters, memory, context, and what the model was trained on."""
    lm = model.lm
    config = model.lm.config
    about = next((entry.about for entry in catalog() if entry.name == model.choice.name), "")
    rounded = ""
    if lm.dtype == "bfloat16":
        rounded = " (rounded at every step)"
    device = model.choice.device or models.default_device()
    size = config.parameters * DTYPES[lm.dtype].itemsize
    memory = f"{gigabytes(size)} in {lm.dtype}{rounded}"
    if device != "cpu":
        memory += f" on {device}"
    blocks = counted(config.n_layers, "block")
    heads = counted(config.n_heads, "head")
    if config.n_kv_groups < config.n_heads:  # that share a key and a value
        heads += f" in {counted(config.n_kv_groups, 'group')}"
    lines = [
        f"{blocks} × {heads}, {config.emb_dim} dimensions",
        f"{config.parameters:,} parameters",
        memory,
        f"context of {config.context_length:,} tokens",
    ]
    if model.trouble:
        lines.insert(0, f"you see **{escaped(label_of(model.choice))}**:")
    if about:
        lines.append(about)
    if lm.chat.templates:
        lines.append("comes with a chat template, a text that *Tokens* shows and nothing applies")
    return "  \n".join(lines)


def which_gelu(model: InUse) -> None:
    """Draw a choice of the GELU, if the model's files do not say it."""
    choice = model.choice
    if not model.lm.activation_is_assumed and choice.activation is None:
        return
    st.session_state[ACTIVATION] = model.lm.config["activation"]
    assumed = ""
    if model.lm.activation_is_assumed:
        assumed = ", so this is assumed"
    st.selectbox(
        f"GELU (the file does not say which{assumed})",
        GELUS,
        key=ACTIVATION,
        format_func=GELUS.__getitem__,
        on_change=partial(_chose_gelu, choice),
        help=GELU_HELP,
    )


def _chose_gelu(choice: Choice) -> None:
    state.choose_model(replace(choice, activation=st.session_state[ACTIVATION]))
    models.retry()


# so that what was chosen there is forgotten
@st.dialog("Models", width="large", on_dismiss="rerun")
def window(asked: Choice) -> None:
    """Draw all models in a table, a repository of the hub, the visitor's own files, and how to compute."""
    table = known_models()
    st.caption("Click a model to use it. Your text stays.")
    event = st.dataframe(
        table, hide_index=True, key="model_table", on_select="rerun", selection_mode="single-cell"
    )
    for row, _ in event.selection.cells:
        _take(asked.named(str(table["Model"][row])))
    own_tab, hub_tab, compute_tab = st.tabs(
        ["Your own file", "From the Hugging Face hub", "How to compute"]
    )
    with own_tab:
        _own_files(asked)
    with hub_tab:
        _repository(asked)
    with compute_tab:
        _settings(asked)


def known_models() -> pd.DataFrame:
    """The catalogue as a table to read."""
    rows = []
    for entry in catalog():
        config = entry.config
        count = entry.config.parameters
        sizes = (
            f"{config.n_layers} × {config.n_heads}",
            config.emb_dim,
            f"{count:,}",
            gigabytes(4 * count),
        )
        rows.append((entry.name, *sizes, config.context_length, entry.where(), entry.about))
    columns = (
        "Model, Blocks × heads, Width, Parameters, Memory, Context, On this machine, What it is"
    )
    return pd.DataFrame(rows, columns=columns.split(", "))


def _take(choice: Choice) -> None:
    state.choose_model(choice)
    models.retry()
    st.rerun()


def _own_files(asked: Choice) -> None:
    st.markdown(
        "Choose the file that the book's code saves (`torch.save(model.state_dict(), ...)`), a nanoGPT "
        "`ckpt.pt` (together with `meta.pkl`), or all files of a GPT-2, GPT-Neo, Llama or Qwen folder (`config.json`, "
        "`model.safetensors`, `tokenizer.json`). Your files are read as data and never run. Only this browser "
        "can open them. They are deleted a few minutes after you leave."
    )
    for upload in uploads():
        _kept(upload, asked)
    # what is of another kind is taken, too, to be told what it is and what to do
    endings = [suffix.removeprefix(".") for suffix in (*ENDINGS, *NOT_READ)]
    with st.form("model_files", clear_on_submit=True, border=False):
        st.file_uploader("Your model's files", endings, accept_multiple_files=True, key=FILES)
        st.form_submit_button("Load these files", type="primary", on_click=partial(_bring, asked))
    if _REFUSED in st.session_state:
        sentence, code = without_code(st.session_state[_REFUSED])
        st.error(escaped(sentence))
        if code:
            st.code(code, language="python")
    _not_taken()
    if st.session_state.pop(_BROUGHT, False):
        st.rerun()  # the window closes, the page shows the model
    if models.paths_allowed():
        path = st.text_input("Or type the path of a file or folder on the server", key=SERVER_PATH)
        if path:
            _take(asked.named(f"{PATH}{path}"))


@st.fragment(run_every=EVERY_SECONDS)  # the browser says of a refused file no more than a number
def _not_taken() -> None:
    why = refused()
    if why is not None:
        st.error(f"The last file was not accepted: {escaped(why)}.")


def _kept(upload: Upload, asked: Choice) -> None:
    name = f"{UPLOAD}{upload.number}"
    facts = (", ".join(upload.files), gigabytes(upload.nbytes), since(time.time() - upload.at))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{escaped(upload.label)}**  \n:small[{escaped(' · '.join(facts))}]")
        if st.button("Use", key=f"model_use_{upload.number}", disabled=asked.name == name):
            _take(asked.named(name))
        if st.button("Remove", key=f"model_remove_{upload.number}"):
            remove_upload(upload.number)
            _take(asked.named(DEFAULT_MODEL) if asked.name == name else asked)


def since(seconds: float) -> str:
    """The time since something came, in words: "just now", "5 min 0 s ago"."""
    minutes = int(seconds // 60)
    if minutes == 0:
        return "just now"
    return f"{duration(60 * minutes)} ago"


def _bring(asked: Choice) -> None:
    """Callback: take the files that were sent, or keep why they cannot be taken."""
    st.session_state.pop(_REFUSED, None)
    try:
        name = f"{UPLOAD}{keep_upload(still_here(FILES)).number}"
    except CheckpointError as error:
        st.session_state[_REFUSED] = str(error)
    else:
        st.session_state[_BROUGHT] = True
        state.choose_model(asked.named(name))
        models.retry()
    let_go((*ENDINGS, *NOT_READ))


def _repository(asked: Choice) -> None:
    st.markdown(
        "Type the name of a repository with a GPT-2, a GPT-Neo, a Llama (SmolLM2 is one), a Qwen2 or a Qwen3. It is "
        "downloaded once."
    )
    name = st.text_input("Repository", key=HUB_ID, placeholder="owner/name").strip()
    if name and not (name in HUB_MODELS or is_hub_id(name)):
        example = "Type owner/name, for example openai-community/gpt2."
        st.error(f"{escaped(repr(name))} is not the name of a repository. {example}")
    elif name:
        _take(asked.named(name))


def _settings(asked: Choice) -> None:
    dtypes = list(DTYPES)
    usual = models.default_device()
    index = dtypes.index(asked.dtype)
    dtype = st.radio("Precision", dtypes, index=index, key=DTYPE, help=DTYPE_HELP, horizontal=True)
    device = asked.device or usual
    if len(devices()) > 1:
        device = st.radio(
            "Device", devices(), index=devices().index(device), key=DEVICE, horizontal=True
        )
    else:
        st.caption("torch finds no GPU on this machine, so the CPU does the work.")
    wanted = replace(asked, dtype=dtype, device=None if device == usual else device)
    if wanted != asked:
        _take(wanted)


def _chose(asked: Choice) -> None:
    state.choose_model(asked.named(st.session_state[MODEL]))
    models.retry()
