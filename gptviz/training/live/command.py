"""`python -m gptviz.training live`: a run to watch, to fork and to go back in. The page's worker is this."""

import argparse
import json
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gptviz.leash import end_with_the_server
from gptviz.training.live.config import LIMITS, SWITCHES, TASKS, LiveConfig

if TYPE_CHECKING:
    from gptviz.training.live.run import LiveRun

NUMBERS = tuple(name for name, (low, _) in LIMITS.items() if isinstance(low, int))


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a parser's."""
    live = commands.add_parser(
        "live", help="train a small GPTModel with snapshots to look at, or go on with the run in --work"
    )
    live.add_argument("--work", type=Path, required=True, help="the run's folder")
    live.add_argument("--task", choices=list(TASKS), help="; ".join(f"{k}: {v}" for k, v in TASKS.items()))
    live.add_argument("--text", type=Path, help="the text of --task own, UTF-8")
    defaults = {option.name: option.default for option in fields(LiveConfig)}
    for name in NUMBERS:
        live.add_argument(_flag(name), type=int, help=f"{defaults[name]} if not given")
    live.add_argument("--learning-rate", type=float, help=f"{defaults['learning_rate']} if not given")
    for name in SWITCHES:
        live.add_argument(f"--no-{_flag(name)[2:]}", dest=name, action="store_const", const=False)
    live.add_argument("--fork-of", type=Path, metavar="WORK", help="go on from a snapshot of that run")
    live.add_argument("--at", type=int, metavar="STEP", help="which snapshot")
    live.add_argument(
        "--mute", nargs="+", type=_head, default=[], metavar="BLOCK.HEAD", help="heads to switch off"
    )
    live.add_argument("--stop-at", type=int, help="pause (and save) at this step; the same command goes on")
    live.add_argument("--no-snapshots", action="store_true", help="write the curve only")
    live.add_argument("--ray", metavar="ADDRESS", help="train on a Ray cluster: auto, or its host:port")
    live.add_argument("--nice", type=int, default=0, help="how far to stand back for other programs, 0 to 19")
    live.add_argument("--leash", action="store_true", help="end, and remove --work, when standard input ends")
    live.set_defaults(run=run_live)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _head(text: str) -> tuple[int, int]:
    block, _, head = text.partition(".")
    if not (block.isdigit() and head.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no head; write block and head as 1.3")
    return int(block), int(head)


def run_live(args: argparse.Namespace) -> None:
    """Train; a refusal is one line on standard error, and exit status 1."""
    if args.leash:
        end_with_the_server(args.work)
    from gptviz.training.live.work import train

    if args.nice and hasattr(os, "nice"):  # only now: loading torch behind a busy server takes a minute
        os.nice(args.nice)

    try:
        planned(args)
        options = args.work, args.stop_at, not args.no_snapshots
        run = train(*options) if args.ray is None else _train_far(args.ray, *options)
    except ValueError as error:
        sys.exit(str(error))
    status, curve = run.status, run.curve
    last = curve.iloc[-1].to_dict() if len(curve) else {}
    print(json.dumps({"state": status.state, "step": status.step} | last))


def _train_far(address: str, *options: Any) -> "LiveRun":
    from gptviz.work.cluster import join

    join(address)  # before Ray is imported
    from gptviz.training.live.far import train_far

    return train_far(address, *options)


def planned(args: argparse.Namespace) -> "LiveRun":
    """The run of the command's folder, begun if it is not there yet. Raises ValueError, a sentence."""
    from gptviz.training.live.run import PLAN, LiveRun, begin, fork

    options = ("task", "learning_rate", *NUMBERS, *SWITCHES)
    given = {name: getattr(args, name) for name in options if getattr(args, name) is not None}
    if (args.work / PLAN).exists():
        run = LiveRun(args.work)
        other = {name: value for name, value in given.items() if getattr(run.config, name) != value}
        if other or args.text or args.fork_of:
            raise ValueError(
                f"{args.work} has a run already; to go on with it, give no options of another: "
                f"{', '.join(other) or '--text, --fork-of'}"
            )
        return run
    if args.fork_of is not None:
        if args.at is None or set(given) - {"steps"}:
            raise ValueError("a fork takes --at STEP, and beside it only --mute and --steps")
        return fork(LiveRun(args.fork_of), args.at, args.work, tuple(args.mute), args.steps)
    text = args.text.read_text(encoding="utf-8") if args.text else None
    return begin(args.work, LiveConfig(**given, muted=tuple(args.mute)), text)
