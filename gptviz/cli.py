"""Type text and watch a real GPT work on it: the app, and what it shows from the command line.

commands:
  app                  the app in the browser; so does no command at all. Streamlit's options may follow
  models               list the models that are known: size, memory, and whether they are on this machine
  download NAME ...    fetch models, and tiktoken's encodings, while there is a network
  trace TEXT           run a text through a model: tokens, next tokens, LayerNorm statistics
  info PATH            say what a checkpoint is, and whether it loads
  verify LINK          compute again what a link claims; a file with the link in it will do
  lens MODEL           fit the Jacobian lens of a model's weights, which the page Logit lens then offers
  export FILE          one HTML file that runs a model in the browser, offline, on a phone too: a hand-out
  doctor               what this machine can serve, and what is wrong with its settings
  guide check GUIDE    say what is wrong with a guide, and what a model answers to its questions
  guide handout GUIDE  the guide as a page to print, for pupils; guide notes GUIDE, with the answers
  help COMMAND         the options of a command; without one, this page

A MODEL is a name that `models` lists, a repository on the Hugging Face hub (owner/name), a folder, or a
file: the book's torch.save, nanoGPT's ckpt.pt, safetensors. A GUIDE is a file, or the name of one that comes
with gptviz: tour, lesson1. `gptviz --version` says which gptviz this is. Where nothing is installed,
`python -m gptviz`.

examples:
  gptviz app --server.port 8600
  gptviz download gpt2
  gptviz trace "The cat sat on the" --model gpt2
  gptviz trace "The cat sat on the" --json > trace.json
  gptviz info model_and_optimizer.pth --n-heads 12

environment:
  HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE    where models are kept, fetched from, and whether they may be
  TIKTOKEN_CACHE_DIR                      where tiktoken keeps its encodings (else a temporary folder)

The exit status is 0; 1 where something could not be done, or where `verify` or `doctor` found something
wrong; 2 where this is no command or option of it. The reason is then on the standard error.
"""

import argparse
import io
import json
import logging
import os
import re
import runpy
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from gptviz import __version__
from gptviz.analysis import jacobian_lens
from gptviz.digits import gigabytes
from gptviz.engine.config import ACTIVATIONS
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.extras import needs_app
from gptviz.files.app_folder import APP_FOLDER
from gptviz.files.disk_cache import ASSETS
from gptviz.models.catalog import catalog
from gptviz.models.checkpoints import recognise
from gptviz.models.checkpoints.download import Progress
from gptviz.models.checkpoints.hub import HUB_MODELS
from gptviz.models.checkpoints.looks import bytes_of
from gptviz.models.loading import (
    BUNDLED,
    DEFAULT_MODEL,
    DTYPES,
    KNOWN_MODELS,
    devices,
    hub_folder,
    is_hub_name,
    no_such_model,
    plan,
    tokenizer_for,
)
from gptviz.teach.guides import file_of, read
from gptviz.teach.guides.printed import printed
from gptviz.text.suggest import did_you_mean
from gptviz.tokenizer import encoding_names, get_encoding, named_bytes, show_token

APP = APP_FOLDER / "app.py"

ACTIVATION_HELP = "for the book's files and nanoGPT's, which do not say it"


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit status."""
    if arguments is None:
        arguments = sys.argv[1:]
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        # what goes into a file or a pipe (a page, JSON) is UTF-8, whatever encoding the system has
        sys.stdout.reconfigure(encoding="utf-8")
    if arguments[:1] in ([], ["app"]):
        args = argparse.Namespace(command="the app", options=arguments[1:], run=run_app)
    else:
        args = parser().parse_args(arguments)
    try:
        with needs_app(args.command):
            status = args.run(args)
        # flushed here, where a closed pipe is caught, and not when Python ends; with `print`, since the
        # standard output may be closed, and sys.stdout None
        print(end="", flush=True)
        return status
    except BrokenPipeError:
        # the reader has enough, as `| head`: what is still to be written when Python ends goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (
        ValueError,
        OSError,
    ) as error:  # every error that a person can do something about is one
        print(f"gptviz: {harmless(with_flags(str(error), args))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ngptviz: stopped; a download goes on from here next time", file=sys.stderr)
        return 1


class Commands(argparse.ArgumentParser):
    """A parser that asks, of a word that is no command, whether another was meant."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # an option's choices are few, and argparse's own message lists them
        if action.option_strings:
            super()._check_value(action, value)
        elif action.choices is not None and value not in action.choices:
            words = list(action.choices)
            raise argparse.ArgumentError(
                action,
                f"there is no {value!r}{did_you_mean(value, words)}; there are {', '.join(words)}",
            )


def parser() -> argparse.ArgumentParser:
    summary, _, epilog = (__doc__ or "").partition("\n\n")
    top = Commands(
        prog="gptviz",
        description=summary,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="gptviz [-h] [--version] [COMMAND ...]",
    )
    top.add_argument(
        "--version", action="version", version=f"gptviz {__version__}", help=argparse.SUPPRESS
    )
    commands = top.add_subparsers(
        required=True, dest="command", prog="gptviz", metavar="COMMAND", help=argparse.SUPPRESS
    )

    def command(
        name: str, run: Callable[[argparse.Namespace], int], about: str
    ) -> argparse.ArgumentParser:
        subparser = commands.add_parser(name, description=about)
        subparser.set_defaults(run=run)
        return subparser

    command(
        "app",
        run_app,
        "Serve the app: `gptviz app --server.port 8600`, with any option of Streamlit's.",
    )
    command("models", run_models, "List the models that are known.")
    command("doctor", run_doctor, "Say what this machine can serve.")

    download = command("download", run_download, "Fetch models and tiktoken's encodings.")
    download.add_argument(
        "names", nargs="+", metavar="NAME", help=f"{', '.join(HUB_MODELS)}, or owner/name"
    )
    download.add_argument(
        "--no-encodings", action="store_true", help="models only, no tiktoken encodings"
    )

    trace = command("trace", run_trace, "Run a text through a model.")
    trace.add_argument(
        "text", metavar="TEXT", help="at most as many tokens as the model's context holds"
    )
    trace.add_argument("--top", type=int, default=10, metavar="K", help="how many next tokens (10)")
    trace.add_argument(
        "--json", action="store_true", help="everything as one JSON object, for programs"
    )
    trace.add_argument(
        "--dtype", default="float32", choices=DTYPES, help="%(choices)s (%(default)s)"
    )
    trace.add_argument(
        "--device", default="cpu", choices=devices(), help="here: %(choices)s (%(default)s)"
    )
    _add_model(trace, DEFAULT_MODEL, f"a name, a repository, a folder or a file ({DEFAULT_MODEL})")

    export = command("export", run_export, "Write one HTML file that runs a model in the browser.")
    export.add_argument(
        "file", metavar="FILE", type=Path, help="such as handout.html; at most 20 MB"
    )
    export.add_argument("--text", help="the text that the page is opened with")
    export.add_argument(
        "--edits", default="", metavar="E", help="and with these edits: z.4.3=zero,attn.2=uniform"
    )
    export.add_argument(
        "--page", default="attention", help="the page that it is opened on (%(default)s)"
    )
    export.add_argument(
        "--guide", metavar="G", help="a guide that leads through it: tour, lesson1, ... or a file"
    )
    _add_model(export, DEFAULT_MODEL, f"a name, a repository, a folder or a file ({DEFAULT_MODEL})")

    fitting = command("lens", run_lens, "Fit the Jacobian lens of a model's weights.")
    fitting.add_argument(
        "model",
        metavar="MODEL",
        help="a name, a repository, a folder or a file; a bundled one's is made anew",
    )
    fitting.add_argument(
        "--texts",
        type=int,
        default=jacobian_lens.TEXTS,
        metavar="N",
        help="of 128 tokens each; the time grows with them (%(default)s)",
    )
    fitting.add_argument(
        "--out", type=Path, metavar="FILE", help="if not given, where the app finds it"
    )
    _add_hints(fitting)

    info = command("info", run_info, "Say what a checkpoint is, and whether it loads.")
    info.add_argument("path", metavar="PATH", type=Path, help="a folder or a file")
    _add_hints(info)

    verify = command("verify", run_verify, "Compute again what a link claims.")
    verify.add_argument(
        "link", metavar="LINK", help="a link with claims= in it, or a file that holds one"
    )
    _add_model(verify, None, "where the link's is none of the catalogue")

    guide = command("guide", run_guide, "Try a guide: open its steps, answer its questions.")
    guide.add_argument("what", choices=["check", "handout", "notes"])
    guide.add_argument("guide", metavar="GUIDE", help="tour, lesson1, ... or a file")
    guide.add_argument(
        "--model",
        metavar="MODEL",
        default=DEFAULT_MODEL,
        help="for the steps that name none (default: %(default)s)",
    )

    def run_help(args: argparse.Namespace) -> int:
        if args.about is None:
            shown = top
        else:
            shown = commands.choices[args.about]
        shown.print_help()
        return 0

    about = command("help", run_help, "Say what gptviz can do, or one of its commands.")
    about.add_argument("about", nargs="?", metavar="COMMAND", choices=commands.choices)
    return top


def _add_model(command: argparse.ArgumentParser, default: str | None, about: str) -> None:
    command.add_argument("--model", default=default, help=about)
    _add_hints(command)


def _add_hints(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--n-heads", type=int, metavar="N", help="for the book's files, which do not say it"
    )
    command.add_argument(
        "--activation", choices=ACTIVATIONS, help=f"{ACTIVATION_HELP}: %(choices)s"
    )
    command.add_argument(
        "--tokenizer", metavar="T", help="an encoding or tokenizer file, if it brings none"
    )
    command.add_argument(
        "--drop-surplus",
        action="store_true",
        help="go on without added tokens that have no embedding",
    )


# arguments that Python's error messages name, and that are options of a command as well
ARGUMENTS = ("n_heads", "activation", "tokenizer", "dtype", "device")


def with_flags(said: str, args: argparse.Namespace) -> str:
    """A sentence of Python's functions in the words of this command: "n_heads=12" is "--n-heads 12" here."""
    # "gptviz.load('x', n_heads=12)" -> "n_heads=12"
    said = re.sub(r"gptviz\.load\((?:'[^']*'|\"[^\"]*\"), (\w+=[^()]*)\)", r"\1", said)
    for name in ARGUMENTS:
        if name not in args:
            continue
        flag = "--" + name.replace("_", "-")
        # "tokenizer=..." -> "--tokenizer T"
        said = re.sub(rf"\b{name}=\.\.\.", f"{flag} {name[0].upper()}", said)
        # "n_heads=12" -> "--n-heads 12"
        said = re.sub(rf"\b{name}=[\"']?([\w.]+)[\"']?", rf"{flag} \1", said)
        # "leave n_heads, activation and tokenizer out": those before may have become flags already
        said = re.sub(rf"(\bleave (?:[\w-]+, )*(?:[\w-]+ and )?){name}\b", rf"\1{flag}", said)
    return said


def harmless(said: object) -> str:
    """The text without what could steer a terminal: a stranger names the tensors of a file."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in str(said))


def run_app(args: argparse.Namespace) -> int:
    """Serve the app until it is stopped: `streamlit run app.py`, with the settings that lie beside it.

    Raises ValueError where there is no app.py.
    """
    if not APP.is_file():
        raise ValueError(f"there is no {APP}, which is the app: install gptviz again")
    import_module("streamlit")  # an error of runpy would not say what is missing
    sys.argv = ["streamlit", "run", str(APP), *args.options]
    runpy.run_module("streamlit", run_name="__main__")
    return 0


def _load(args: argparse.Namespace, **options: str) -> LanguageModel:
    planned = plan(
        args.model,
        n_heads=args.n_heads,
        activation=args.activation,
        tokenizer=args.tokenizer,
        drop_surplus=args.drop_surplus,
        **options,  # type: ignore[arg-type]
    )
    if planned.doubt:
        print(f"gptviz: {harmless(with_flags(planned.doubt, args))}", file=sys.stderr)
    return planned.load()


def run_verify(args: argparse.Namespace) -> int:
    from gptviz.teach.claims import verify

    link = args.link
    file = Path(args.link[:200])  # a link may be longer than a file's name can be
    if file.is_file():
        link = file.read_text("utf-8", "replace")
    claims = verify(link, None if args.model is None else _load(args))
    for claim in claims:
        verdict = "WRONG"
        if claim.holds:
            verdict = "holds"
        print(f"{verdict}  {harmless(claim)}")
    return int(not all(claim.holds for claim in claims))


def run_doctor(args: argparse.Namespace) -> int:
    from gptviz.server.doctor import doctor  # which needs the whole app

    logging.disable()  # Streamlit warns that no browser is connected
    try:
        lines, wrong = doctor()
    finally:
        logging.disable(logging.NOTSET)
    print("\n".join([*lines, *(f"WRONG      {fault.removesuffix('.')}." for fault in wrong)]))
    return int(bool(wrong))


def run_guide(args: argparse.Namespace) -> int:
    from gptviz.ui.teach.guide_check import check  # which needs the whole app

    file = _guide_file(args.guide)
    checked_steps = [*check(file, args.model)]
    if args.what == "check":
        print(
            "\n".join(f"line {step.line}: {harmless(sentence)}" for step, sentence in checked_steps)
        )
    else:
        guide = read(file.read_text("utf-8", "replace"))
        # the steps that `check` gives have this model's numbers in their sentences
        filled = replace(guide, steps=tuple(step for step, _ in checked_steps))
        print(printed(filled, notes=args.what == "notes"), end="")
    return 0


def run_lens(args: argparse.Namespace) -> int:
    lm = _load(args)
    texts = jacobian_lens.texts_of(lm, whole("texts", args.texts, 1))
    fitted = jacobian_lens.fit(lm, texts, progress=_show_texts)
    path = args.out
    if path is None and args.model in BUNDLED:
        path = ASSETS / args.model / jacobian_lens.SHIPPED
    path = jacobian_lens.keep(fitted, path)
    print(f"{path}: {path.stat().st_size:,} bytes; fitted to {fitted.texts} texts")
    return 0


def _show_texts(done: int, of: int) -> None:
    """Print how many texts have been read, a line each: one may take minutes."""
    print(f"{done} of {of} texts", file=sys.stderr, flush=True)


def run_export(args: argparse.Namespace) -> int:
    from gptviz.teach.claims import DEFAULT_TEXT
    from gptviz.teach.handout import handout  # which needs the components and the app's palette

    lm = _load(args)
    edits = [edit for edit in args.edits.split(",") if edit]
    if args.guide is None:
        guide = None
    else:
        guide = read(_guide_file(args.guide).read_text("utf-8", "replace"))
    html = handout(lm, DEFAULT_TEXT if args.text is None else args.text, edits, args.page, guide)
    try:
        args.file.write_text(html, "utf-8")
    except OSError as error:
        raise ValueError(f"{args.file} cannot be written: {error.strerror}") from error
    print(f"{args.file}: {len(html.encode()) / 1e6:.1f} MB; open it in any browser")
    return 0


def _guide_file(name: str) -> Path:
    """The file of a guide by its path, or by its name: one that comes with gptviz, or a teacher's own."""
    if Path(name).is_file():
        return Path(name)
    return file_of(name)


def run_models(args: argparse.Namespace) -> int:
    print(
        f"{'name':15} {'blocks':>6} {'heads':>5} {'width':>5} {'parameters':>13} {'memory':>8} "
        f"{'context':>7}  {'on disk':20} what it is"
    )
    for entry in catalog():
        config = entry.config
        print(
            f"{entry.name:15} {config.n_layers:6} {config.n_heads:5} {config.emb_dim:5} "
            f"{config.parameters:13,} {gigabytes(4 * config.parameters):>8} {config.context_length:7,}  "
            f"{entry.where():20} {entry.about}"
        )
    return 0


def run_download(args: argparse.Namespace) -> int:
    def model(name: str) -> None:
        if name in KNOWN_MODELS:
            print(f"{name}: comes with gptviz")
            return
        if not is_hub_name(name):
            raise no_such_model(name)
        folder = hub_folder(name, _show_progress if sys.stderr.isatty() else None)
        recognise(folder)  # raises where what came is no GPT that loads
        print(f"{name}: {gigabytes(bytes_of(folder))} in {folder}")

    failed = _failed(model, args.names)
    if not args.no_encodings:
        # the first that fails ends it: the others would say the same of the network
        if any(_failed(get_encoding, [name]) for name in encoding_names()):
            return 1
        lasting = "a temporary folder; TIKTOKEN_CACHE_DIR names a lasting one"
        print(f"tiktoken's encodings: in {os.environ.get('TIKTOKEN_CACHE_DIR', lasting)}")
    return int(failed)


def _failed(fetch: Callable[[str], object], names: Iterable[str]) -> bool:
    """Fetch each of these, say why one could not be, and return whether there was one."""
    failed = False
    for name in names:
        try:
            fetch(name)
        except ValueError as error:
            print(f"gptviz: {harmless(error)}", file=sys.stderr)
            failed = True
    return failed


def _show_progress(progress: Progress) -> None:
    """Print the progress on one line, over the one before."""
    if progress.seconds_left is None:
        time_left = ""
    else:
        time_left = f", {progress.seconds_left:.0f} s left"
    share = 1.0
    if progress.total:
        share = progress.done / progress.total
    end = ""
    if progress.done >= progress.total:
        end = "\n"
    print(
        f"\r{progress.file}: {share:4.0%} of {gigabytes(progress.total)}, "
        f"{progress.bytes_per_second / 1e6:.1f} MB/s{time_left}\033[K",
        end=end,
        file=sys.stderr,
        flush=True,
    )


def run_trace(args: argparse.Namespace) -> int:
    lm = _load(args, dtype=args.dtype, device=args.device)
    # what the LayerNorm statistics of --json are worked out from
    trace = lm.trace(args.text, keep=("resid_pre", "resid_mid", "resid_post"))
    following = trace.next_tokens(args.top)
    if args.json:
        print(json.dumps(as_data(trace, following), ensure_ascii=False, allow_nan=False))
        return 0
    print(f"{lm.name}: {len(trace.tokens)} tokens")
    for token in trace.tokens:
        print(f"{token.position:5} {token.id:6}  {show_token(token.raw)}")
    print("next")
    for row in following.itertuples():
        print(
            f"{row.probability:5.1%} {row.id:6}  {show_token(named_bytes(lm.tokenizer, int(row.id)))}"
        )
    return 0


def as_data(trace: Any, following: Any) -> dict[str, Any]:
    """The JSON of `trace --json`: tokens, next tokens and LayerNorm statistics."""
    norms = trace.norms().astype(object)
    return {
        "model": trace.name,
        "config": trace.config.to_dict(),
        "tokens": [
            {
                "position": token.position,
                "id": token.id,
                "text": token.text,
                "bytes": token.raw.hex(),
            }
            for token in trace.tokens
        ],
        "next_tokens": following.to_dict("records"),
        "norms": norms.where(norms.notna(), None).to_dict("records"),
    }


def run_info(args: argparse.Namespace) -> int:
    checkpoint = recognise(args.path, args.n_heads, args.activation)
    config = checkpoint.config
    print(f"{checkpoint.path}: {checkpoint.dialect.name}")
    sizes = {"tensors": len(checkpoint.tensors.shapes), "parameters": f"{config.parameters:,}"}
    memory = {"memory": f"{gigabytes(4 * config.parameters)} in float32"}
    values = config.to_dict() | sizes | memory
    if checkpoint.activation_is_assumed:
        values["activation"] = f"{config['activation']}, which is assumed: the file does not say it"
    for name, value in values.items():
        print(f"  {name:15} {value}")
    if checkpoint.doubt:
        print(f"  {'note':15} {harmless(with_flags(checkpoint.doubt, args))}")
    encoding, _ = tokenizer_for(checkpoint, checkpoint.path.stem, args.tokenizer, args.drop_surplus)
    # ids from vocab_size on stand for bytes that no token of the model covers
    known = min(encoding.n_vocab, config.vocab_size)
    print(f"  {'tokenizer':15} {encoding.name}, {known:,} tokens")
    checkpoint.check_bytes()
    started = time.perf_counter()
    checkpoint.model()
    print(f"  {'loads':15} yes, in {time.perf_counter() - started:.1f} s")
    return 0
