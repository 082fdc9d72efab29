"""The model that a session works with: the one that was asked for, or else the last that could be loaded."""

import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import streamlit as st

from gptviz import KNOWN_MODELS, LanguageModel
from gptviz.engine.progress import Progress
from gptviz.jobs import Task
from gptviz.models.checkpoints import CheckpointError
from gptviz.models.checkpoints.hub import HUB_MODELS
from gptviz.models.loading import Plan, devices, hub_folder, on_disk, plan
from gptviz.tokenizer import encoding_names
from gptviz.ui.models.apart import (
    NotRead,
    activation_is_assumed,
    check_here,
    converted,
    read_in_turn,
)
from gptviz.ui.models.browsers import browser, find_upload
from gptviz.ui.models.cache import model_cache
from gptviz.ui.models.choice import PATH, UPLOAD, Choice
from gptviz.ui.models.downloads import Downloads
from gptviz.ui.models.uploads import Upload

ALLOW_PATHS = "GPTVIZ_ALLOW_PATHS"
DEVICE = "GPTVIZ_DEVICE"

_IN_USE = "gptviz_model_in_use"
_FAILED = "gptviz_model_failed"


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
    """The model of a choice; if it cannot be loaded, the session's last one, and the reason."""
    try:
        key, lm = load(asked)
    except ValueError as error:
        choice = st.session_state.get(_IN_USE, Choice())
        try:
            key, lm = load(choice)
        except ValueError:  # it has gone meanwhile; the bundled one never does
            choice = Choice()
            key, lm = load(choice)
        return InUse(lm, key, choice, asked, error)
    st.session_state[_IN_USE] = asked
    return InUse(lm, key, asked, asked, None)


def retry() -> None:
    """Forget that a model failed: the next run tries it again."""
    st.session_state.pop(_FAILED, None)


def load(choice: Choice) -> tuple[str, LanguageModel]:
    """A choice's key and model, which need not become the session's. Raises ValueError, a sentence."""
    check_right(choice)  # before the cache, which is everybody's
    key = key_of(choice)
    failed = st.session_state.get(_FAILED)
    if failed is not None and failed[0] == key:
        raise failed[1]  # to read a damaged gigabyte again at every click would help nobody
    try:
        if key in model_cache():
            return key, model_cache().get(key, partial(plan_of, choice))
        with st.spinner("Loading the model …", show_time=True):
            if is_known(choice):
                return key, model_cache().get(key, partial(plan_of, choice))
            return key, _read_apart(key, choice)
    except (NotOnDisk, NotRead):
        raise  # seen at once, and over when somebody downloads it; a matter of a minute
    except (ValueError, OSError) as problem:
        if isinstance(problem, ValueError):
            error = problem
        else:
            error = CheckpointError(problem.strerror)
        error.args = (without_folder(str(error), choice),)
        st.session_state[_FAILED] = (key, error)
        raise error from None


def without_folder(said: str, choice: Choice) -> str:
    """A sentence about a model's files that names the files and not where the server keeps them."""
    said = said.encode("utf-8", "backslashreplace").decode()  # a damaged name may be no text at all
    if choice.name.startswith(UPLOAD):
        folder: Path | None = upload_of(choice).folder
    elif choice.name.startswith(PATH):
        # as it was typed
        return said.replace(str(_path_of(choice)), choice.name.removeprefix(PATH))
    else:
        folder = None
        if is_from_hub(choice.name):
            folder = on_disk(choice.name)
    if folder is None:
        return said
    return said.replace(f"{folder}/", "").replace(str(folder), label_of(choice))


def label_of(choice: Choice) -> str:
    """A choice's name on the screen."""
    if choice.name.startswith(UPLOAD):
        upload = find_upload(choice.name.removeprefix(UPLOAD))
        if upload is not None:
            return f"{upload.label} (yours)"
        return "An uploaded file"
    return choice.name.removeprefix(PATH)


def key_of(choice: Choice) -> str:
    """The key of a model in the cache; a file that was overwritten gets another key."""
    stamp = ""
    if choice.name.startswith(PATH):
        stamp = _stamp(Path(choice.name.removeprefix(PATH)))
    device = choice.device or default_device()
    options = (
        choice.n_heads,
        choice.activation,
        choice.tokenizer,
        choice.drop_surplus,
        choice.dtype,
        device,
    )
    return "|".join(map(str, (choice.name, *options, stamp)))


def _stamp(path: Path) -> str:
    """The names, times and sizes of the files at a path. Raises CheckpointError."""
    try:
        files: list[Path] = []
        if path.is_dir():
            files = sorted(path.iterdir())
        elif path.is_file():
            files = [path]
        return str([(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files])
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from None


def check_right(choice: Choice) -> None:
    """Check whether this session may look into that model. Raises CheckpointError."""
    if choice.name.startswith(UPLOAD):
        upload_of(choice)
    if paths_allowed():
        return
    if choice.name.startswith(PATH):
        raise CheckpointError(
            "this server does not open paths of its own disk: "
            f"start it with {ALLOW_PATHS}=1, or upload the file"
        )
    if choice.tokenizer is not None and choice.tokenizer not in encoding_names():
        raise CheckpointError(
            f"{choice.tokenizer[:80]!r} is not the name of a tokenizer; choose one of "
            f"{', '.join(encoding_names())}, or upload a tokenizer's file together with the model"
        )


def upload_of(choice: Choice) -> Upload:
    """The upload that a choice names. Raises CheckpointError for what this browser did not bring."""
    upload = find_upload(choice.name.removeprefix(UPLOAD))
    if upload is None:
        raise CheckpointError(
            "only the browser that uploaded it can open it, and it is deleted when that browser leaves or the "
            "server stops. Upload it again, under More models"
        )
    return upload


def is_known(choice: Choice) -> bool:
    """Whether the choice is a model of our catalogue, not a visitor's file."""
    return choice.name in KNOWN_MODELS or choice.name in HUB_MODELS


def plan_of(choice: Choice) -> Plan:
    """The plan of a choice that `is_known`.

    Raises ValueError, a sentence.
    """
    # it went from the cache between two looks; its files are never read here
    if not is_known(choice):
        raise NotRead("another model has just taken its place in memory; try again")
    make_plan = partial(
        plan, n_heads=choice.n_heads, dtype=choice.dtype, device=choice.device or default_device()
    )
    if is_from_hub(choice.name):
        return make_plan(_hub(choice), called=choice.name)
    return make_plan(choice.name)


def _hub(choice: Choice) -> Path:
    if folder := on_disk(choice.name):
        return folder
    raise NotOnDisk(f"{choice.name} is not on this machine")


def _read_apart(key: str, choice: Choice) -> LanguageModel:
    """The model in somebody's files, which another process reads. Raises ValueError and OSError."""
    path, called, tokenizer = _files_of(choice)
    task = Task(read_files, key, (key, path, called, tokenizer, choice))
    return read_in_turn(task, browser(), check_here)


def read_files(
    key: str,
    path: Path,
    called: str,
    tokenizer: str | Path | None,
    choice: Choice,
    progress: Progress,
) -> LanguageModel:
    """The job of reading a model: another process converts its files, and this one loads what that wrote."""
    loaded = model_cache().find(key)
    if loaded is not None:
        return loaded
    name = None
    tokenizer_file = tokenizer
    if tokenizer in encoding_names():
        name = str(tokenizer)
        tokenizer_file = None
    reading = converted(
        path,
        lambda: progress(0, 1),  # which raises when the job is stopped
        choice.dtype,
        choice.n_heads,
        tokenizer_file,
        activation=choice.activation,
        named=name is not None,
        drop_surplus=choice.drop_surplus,
    )
    with reading as folder:
        return model_cache().get(key, lambda: _plan_converted(folder, called, name, choice))


def _plan_converted(folder: Path, called: str, tokenizer: str | None, choice: Choice) -> Plan:
    """The plan of a model that another process has written to a folder."""
    found = plan(
        folder,
        called=called,
        tokenizer=tokenizer,
        drop_surplus=choice.drop_surplus,
        dtype=choice.dtype,
        device=choice.device or default_device(),
    )
    return replace(found, activation_is_assumed=activation_is_assumed(folder))


def _files_of(choice: Choice) -> tuple[Path, str, str | Path | None]:
    """The files of a choice, the name of its model, and the tokenizer given beside them."""
    if choice.name.startswith(UPLOAD):
        upload = upload_of(choice)
        return upload.path, upload.label, choice.tokenizer or upload.tokenizer
    if is_from_hub(choice.name):
        return _hub(choice), choice.name, choice.tokenizer
    path = _path_of(choice)
    return path, path.stem if path.is_file() else path.name, choice.tokenizer


def _path_of(choice: Choice) -> Path:
    # where Path's own ways raise for a home or a link that is not there, these leave it as it is
    return Path(os.path.realpath(os.path.expanduser(choice.name.removeprefix(PATH))))


def is_from_hub(name: str) -> bool:
    """Whether a choice's name is of the hub; here, unlike in `load`, owner/name is never a path."""
    return name in HUB_MODELS or ("/" in name and not name.startswith((UPLOAD, PATH)))


def code_of(model: InUse) -> str:
    """The Python that gives this model: `gptviz.load("mini")`."""
    choice = model.choice
    name = choice.name.removeprefix(PATH)
    if choice.name.startswith(UPLOAD):
        upload = find_upload(choice.name.removeprefix(UPLOAD))
        if upload is not None and upload.path.is_file():
            name = upload.path.name
        else:
            name = model.lm.name
    if choice.dtype == "float32":
        dtype = None
    else:
        dtype = choice.dtype
    options = {
        "n_heads": choice.n_heads,
        "activation": choice.activation,
        "tokenizer": choice.tokenizer,
        "dtype": dtype,
    }
    if choice.drop_surplus:
        options["drop_surplus"] = True
    else:
        options["drop_surplus"] = None
    arguments = [f"{key}={value!r}" for key, value in options.items() if value is not None]
    return f"gptviz.load({', '.join([repr(name), *arguments])})"


def default_device() -> str:
    """The server's device: the environment variable GPTVIZ_DEVICE, else the CPU. Raises ValueError."""
    device = os.environ.get(DEVICE, "cpu")
    if device not in devices():
        raise ValueError(f"{DEVICE} is {device!r}; this machine has {', '.join(devices())}")
    return device


def paths_allowed() -> bool:
    """Whether visitors may type a path of the server's machine (GPTVIZ_ALLOW_PATHS)."""
    return os.environ.get(ALLOW_PATHS) == "1"


@st.cache_resource(max_entries=1, show_spinner=False)
def downloads() -> Downloads:
    """The process's downloads. They refuse a model that this server could not hold in bfloat16."""
    return Downloads(partial(hub_folder, most_bytes=2 * model_cache().max_bytes))
