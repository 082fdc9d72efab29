"""The model that a session works with: the one that was asked for, or else the last that could be loaded."""

import os
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from gptviz import LanguageModel
from gptviz.checkpoints import CheckpointError
from gptviz.checkpoints.hub import HUB_MODELS
from gptviz.loading import Plan, devices, on_disk, plan
from gptviz.ui.models.cache import model_cache
from gptviz.ui.models.choice import PATH, UPLOAD, Choice
from gptviz.ui.models.downloads import Downloads
from gptviz.ui.models.uploads import Uploads

ALLOW_PATHS = "GPTVIZ_ALLOW_PATHS"
DEVICE = "GPTVIZ_DEVICE"

LEFT_SECONDS = 150.0  # a little longer than Streamlit keeps a session whose connection broke

_UPLOADS, _IN_USE, _FAILED = "gptviz_uploads", "gptviz_model_in_use", "gptviz_model_failed"


class NotOnDisk(CheckpointError):
    """A model of the hub that must be downloaded first."""


@dataclass(frozen=True)
class InUse:
    """The model that pages show. `key` is its place in the caches; `trouble` says why it is not `asked`."""

    lm: LanguageModel
    key: str
    choice: Choice
    asked: Choice
    trouble: ValueError | None


def in_use(asked: Choice) -> InUse:
    """The model of a choice; when that cannot be, the session's last one, and the reason."""
    try:
        key, lm = _load(asked)
    except ValueError as error:
        choice = st.session_state.get(_IN_USE, Choice())
        try:
            key, lm = _load(choice)
        except ValueError:  # it has gone meanwhile; the bundled one never does
            choice = Choice()
            key, lm = _load(choice)
        return InUse(lm, key, choice, asked, error)
    st.session_state[_IN_USE] = asked
    return InUse(lm, key, asked, asked, None)


def retry() -> None:
    """Forget that a model failed: the next run tries it again."""
    st.session_state.pop(_FAILED, None)


def _load(choice: Choice) -> tuple[str, LanguageModel]:
    check_right(choice)  # before the cache, which is everybody's
    key = key_of(choice)
    failed = st.session_state.get(_FAILED)
    if failed is not None and failed[0] == key:
        raise failed[1]  # to read a damaged gigabyte again at every click would help nobody
    try:
        if key in model_cache():
            return key, model_cache().get(key, lambda: plan_of(choice))
        with st.spinner("Loading the model …", show_time=True):
            return key, model_cache().get(key, lambda: plan_of(choice))
    except NotOnDisk:
        raise  # seen at once, and over when somebody downloads it
    except ValueError as error:
        st.session_state[_FAILED] = (key, error)
        raise


def key_of(choice: Choice) -> str:
    """What tells this model from every other; a file that was written anew is another model."""
    stamp = _stamp(Path(choice.name.removeprefix(PATH))) if choice.name.startswith(PATH) else ""
    device = choice.device or default_device()
    return "|".join(map(str, (choice.name, choice.n_heads, choice.tokenizer, choice.dtype, device, stamp)))


def _stamp(path: Path) -> str:
    """The names, times and sizes of the files at a path. Raises CheckpointError."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path] if path.is_file() else []
        return str([(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files])
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from None


def check_right(choice: Choice) -> None:
    """Whether this session may look into that model. Raises CheckpointError."""
    if choice.name.startswith(UPLOAD) and uploads().find(choice.name.removeprefix(UPLOAD)) is None:
        raise CheckpointError(
            "this link is to a file that somebody uploaded: it belonged to that visit only. "
            "Upload it again, under More models"
        )
    if choice.name.startswith(PATH) and not paths_allowed():
        raise CheckpointError(
            "a path on the server is read only when the server allows it: "
            f"start it with {ALLOW_PATHS}=1, or upload the file"
        )


def plan_of(choice: Choice) -> Plan:
    """Where the weights of a choice that passed `check_right` are. Raises ValueError, a sentence."""
    device = choice.device or default_device()
    made = partial(plan, n_heads=choice.n_heads, dtype=choice.dtype, device=device)
    if choice.name.startswith(UPLOAD):
        upload = uploads()[choice.name.removeprefix(UPLOAD)]
        return made(upload.path, called=upload.label, tokenizer=choice.tokenizer or upload.tokenizer)
    if choice.name.startswith(PATH):
        path = Path(choice.name.removeprefix(PATH)).expanduser().resolve()
        return made(path, tokenizer=choice.tokenizer)
    if not is_from_hub(choice.name):
        return made(choice.name)
    folder = on_disk(choice.name)
    if folder is None:
        raise NotOnDisk(f"{choice.name} is not on this machine")
    return made(folder, called=choice.name)


def is_from_hub(name: str) -> bool:
    """Whether a choice's name is of the hub; here, unlike in `load`, owner/name is never a path."""
    return name in HUB_MODELS or ("/" in name and not name.startswith((UPLOAD, PATH)))


def code_of(model: InUse) -> str:
    """The arguments of `gptviz.load` that give this model, as Python."""
    choice = model.choice
    name = choice.name.removeprefix(PATH)
    if choice.name.startswith(UPLOAD):
        upload = uploads().find(choice.name.removeprefix(UPLOAD))
        name = upload.path.name if upload is not None and upload.path.is_file() else model.lm.name
    options = {
        "n_heads": choice.n_heads,
        "tokenizer": choice.tokenizer,
        "dtype": choice.dtype if choice.dtype != "float32" else None,
    }
    given = [f"{key}={value!r}" for key, value in options.items() if value is not None]
    return ", ".join([repr(name), *given])


def default_device() -> str:
    """The server's device: the environment variable GPTVIZ_DEVICE, else the CPU. Raises ValueError."""
    device = os.environ.get(DEVICE, "cpu")
    if device not in devices():
        raise ValueError(f"{DEVICE} is {device!r}; this machine has {', '.join(devices())}")
    return device


def paths_allowed() -> bool:
    """Whether people may type a path of the server's machine: the environment variable GPTVIZ_ALLOW_PATHS."""
    return os.environ.get(ALLOW_PATHS) == "1"


def uploads() -> Uploads:
    """This session's uploads, which go with it."""
    if _UPLOADS not in st.session_state:
        cache = model_cache()

        def gone(number: str) -> None:
            cache.drop_all(f"{UPLOAD}{number}|")

        st.session_state[_UPLOADS] = Uploads(st.get_option("server.maxUploadSize") * 2**20, gone)
    found: Uploads = st.session_state[_UPLOADS]
    context = get_script_run_ctx()
    if any(found) and context is not None:
        _visit(context.session_id, found)
    return found


def _left(visit: tuple[str, Uploads]) -> None:
    """The browser has gone, or its network: Streamlit lets it come back within two minutes."""
    timer = threading.Timer(LEFT_SECONDS, _clear_unless_back, visit)
    timer.daemon = True
    timer.start()


@st.cache_resource(scope="session", on_release=_left, show_spinner=False)
def _visit(session: str, _uploads: Uploads) -> tuple[str, Uploads]:
    """Streamlit's word for a session that ends is a cache that goes with it."""
    return session, _uploads


def _clear_unless_back(session: str, uploads: Uploads) -> None:
    if not (runtime.exists() and runtime.get_instance().is_active_session(session)):
        uploads.clear()


@st.cache_resource(max_entries=1, show_spinner=False)
def downloads() -> Downloads:
    """The process's downloads."""
    return Downloads()
