"""The command line that trains: the bundled model, and what one watches being trained. See --help."""

import argparse
import json
import os
import sys
import time
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from gptviz.engine.config import GPTConfig
from gptviz.files.disk_cache import SHIPPED
from gptviz.parent_watch import end_with_the_server
from gptviz.tokenizer import encoding_from_ranks
from gptviz.training.corpus import (
    HELD_OUT,
    NEVER_IN_TEXT,
    TOKENIZER_FILE,
    WORLD_PART,
    encoded_corpus,
    read_books,
    read_world,
    split_books,
    world_sample,
    write_world,
)
from gptviz.training.datasets import Batches, MixedBatches, TokenWindows
from gptviz.training.live.config import ACTIVATIONS, LIMITS, SWITCHES, TASKS, LiveConfig
from gptviz.training.live.recorded import SHIPPED as BIRTH, record
from gptviz.training.live.run import PLAN, LiveRun, begin, fork
from gptviz.training.live.work import train
from gptviz.training.recipe import CHECKPOINT, Recipe

if TYPE_CHECKING:
    from gptviz.training.loop import TrainingRun


def main(arguments: list[str] | None = None) -> None:
    args = parser().parse_args(arguments)
    args.run(args)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m gptviz.training", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    tokenizer = commands.add_parser(
        "tokenizer", help="learn a byte-level BPE and write tokenizer.tiktoken"
    )
    _add_corpus(tokenizer)
    tokenizer.add_argument(
        "--vocab-size", type=int, default=8192, help="entries, <|endoftext|> included"
    )
    tokenizer.add_argument("--out", type=Path, required=True, help=f"folder for {TOKENIZER_FILE}")
    tokenizer.add_argument(
        "--world-characters",
        type=int,
        default=0,
        help="of the small world, learnt from beside the books",
    )
    tokenizer.set_defaults(run=run_tokenizer)

    world = commands.add_parser("world", help="write passages of the small world for `model`")
    world.add_argument(
        "--tokenizer", type=Path, required=True, help=f"folder with {TOKENIZER_FILE}"
    )
    world.add_argument("--work", type=Path, required=True, help="the run's folder")
    world.add_argument("--parts", type=int, default=100, help=f"of {WORLD_PART:,} passages each")
    world.add_argument("--seed", type=int, default=1)
    world.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    world.set_defaults(run=run_world)

    model = commands.add_parser("model", help="train a GPTModel, or resume the run in --work")
    _add_corpus(model)
    _add_training(model)
    model.set_defaults(run=run_model)

    export = commands.add_parser("export", help="write the folder that gptviz.load reads")
    export.add_argument("--work", type=Path, required=True, help="the run's folder")
    export.add_argument(
        "--out", type=Path, required=True, help="folder for config, weights and tokenizer"
    )
    export.add_argument(
        "--preliminary", action="store_true", help="allow a run that is not finished"
    )
    export.set_defaults(run=run_export)

    evaluate = commands.add_parser(
        "evaluate", help="measure an exported model on the held-out books"
    )
    _add_corpus(evaluate)
    evaluate.add_argument("--model", type=Path, required=True, help="the exported folder")
    evaluate.add_argument(
        "--limit", type=int, help="only this many tokens of each book, for a quick look"
    )
    evaluate.add_argument("--json", type=Path, help="write everything measured to this file")
    evaluate.set_defaults(run=run_evaluate)

    card = commands.add_parser("card", help="write the model card from a run and its evaluation")
    card.add_argument("--model", type=Path, required=True, help="the exported folder")
    card.add_argument("--work", type=Path, required=True, help="the run's folder")
    card.add_argument("--evaluation", type=Path, required=True, help="what `evaluate --json` wrote")
    card.add_argument(
        "--machine", default="", help='where it was trained, in words, like "two CPU cores"'
    )
    card.add_argument(
        "--before",
        type=Path,
        nargs="+",
        default=(),
        help="the work folders of the runs that this one went on from, the first one first",
    )
    card.add_argument("--examination", type=Path, help="what `examine --json` wrote")
    card.add_argument(
        "--made-by", type=Path, help="the commands that made it, where the runs do not say them all"
    )
    card.add_argument("--out", type=Path, required=True, help="the Markdown file")
    card.set_defaults(run=run_card)

    heads = commands.add_parser(
        "heads", help="measure the model's heads and trials, which ship with it"
    )
    heads.add_argument(
        "--model", type=Path, required=True, help="the exported folder; heads.json goes there"
    )
    heads.set_defaults(run=run_heads)

    recording = commands.add_parser(
        "record", help="train the page's first preset, and write the recording that ships with it"
    )
    recording.add_argument("--out", type=Path, default=BIRTH, help=f"{BIRTH} if not given")
    recording.set_defaults(run=run_record)

    examine = commands.add_parser(
        "examine", help="ask a model what it should know, in wordings it never saw"
    )
    examine.add_argument("--model", type=Path, required=True, help="the exported folder")
    examine.add_argument(
        "--exam", type=Path, required=True, help="folder of prompts.tsv and names.tsv"
    )
    examine.add_argument(
        "--wrong", action="store_true", help="print every prompt that was answered wrongly"
    )
    examine.add_argument("--json", type=Path, help="write the results to this file")
    examine.set_defaults(run=run_examine)

    _add_whole_recipe(commands)
    _add_live(commands)
    return top


def _add_corpus(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--text", type=Path, required=True, help="gzip of books separated by <|endoftext|>"
    )
    command.add_argument(
        "--table", type=Path, required=True, help="TSV: author, title, year, characters"
    )
    command.add_argument(
        "--held-out", nargs="+", default=HELD_OUT, metavar="TITLE", help="not trained on"
    )


def _add_training(model: argparse.ArgumentParser) -> None:
    model.add_argument(
        "--tokenizer", type=Path, required=True, help=f"folder with {TOKENIZER_FILE}"
    )
    model.add_argument(
        "--work", type=Path, required=True, help="for checkpoints and the encoded corpus"
    )
    model.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    model.add_argument(
        "--compile", action="store_true", help="torch.compile the step, which makes it faster"
    )
    model.add_argument(
        "--minutes",
        type=float,
        help="take as many --steps as fit into these, by the speed of the first ones",
    )
    model.add_argument(
        "--begin-with",
        type=Path,
        metavar="FOLDER",
        help="go on from these exported weights, with new optimizers; their tokenizer may be another",
    )
    model.add_argument("--stop-at", type=int, help="stop (and save) at this step; resume later")
    model.add_argument("--validate-every", type=int, default=250, metavar="STEPS", help="and save")
    for name, default in (
        ("emb-dim", 256),
        ("n-heads", 8),
        ("n-layers", 6),
        ("context-length", 256),
    ):
        model.add_argument(f"--{name}", type=int, default=default)
    model.add_argument(
        "--drop-rate", type=float, default=0.0, help="dropout while it trains, as in the book"
    )
    for option in fields(Recipe):
        if option.name == "begun_with":  # the file says it: --begin-with
            continue
        model.add_argument(_flag(option.name), type=type(option.default), default=option.default)


def _add_whole_recipe(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands that make the bundled model, each of many of the others: see `whole_recipe`."""
    training = commands.add_parser(
        "mini", help="the bundled model's whole training: tokenizer, books, books and small world"
    )
    measuring = commands.add_parser(
        "measure", help="everything that is measured of what `mini` made, and its card"
    )
    for command in (training, measuring):
        _add_corpus(command)
        command.add_argument(
            "--out", type=Path, required=True, help="folder of the model and of what its card says"
        )
        command.add_argument(
            "--trial", action="store_true", help="a tiny model in a minute: does every step work?"
        )
    training.add_argument("--work", type=Path, required=True, help="folder of both runs")
    training.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    training.add_argument("--compile", action="store_true", help="torch.compile the steps")
    training.add_argument("--books-minutes", type=float, default=4.0, help="4 if not given")
    training.add_argument("--both-minutes", type=float, default=6.0, help="6 if not given")
    training.set_defaults(run=run_mini)
    measuring.add_argument(
        "--exam", type=Path, required=True, help="folder of prompts.tsv and names.tsv"
    )
    measuring.add_argument("--machine", default="", help="where it was trained, in words")
    measuring.set_defaults(run=run_measure)


def run_mini(args: argparse.Namespace) -> None:
    from gptviz.training.whole_recipe import train_whole

    train_whole(main, args)


def run_measure(args: argparse.Namespace) -> None:
    from gptviz.training.whole_recipe import measure_whole

    measure_whole(main, args)


def run_tokenizer(args: argparse.Namespace) -> None:
    from gptviz.training.bpe import save_ranks, train_ranks

    training, _ = split_books(read_books(args.text, args.table), args.held_out)
    args.out.mkdir(parents=True, exist_ok=True)
    books = (book.text for book in training)
    ranks = train_ranks(chain(books, world_sample(args.world_characters)), args.vocab_size)
    save_ranks(ranks, args.out / TOKENIZER_FILE)
    print(f"{len(ranks)} ranks and <|endoftext|> in {args.out / TOKENIZER_FILE}")


def run_world(args: argparse.Namespace) -> None:
    passages, tokens = write_world(args.tokenizer, args.work, args.parts, args.seed, args.processes)
    print(f"{passages:,} passages, {tokens:,} tokens in {args.work}")


def run_model(args: argparse.Namespace) -> None:
    from gptviz.training.export import full_weights, read_checkpoint, sha256_of
    from gptviz.training.loop import TrainingRun

    training_ids, held_out_ids, vocab_size = encoded_corpus(
        args.text, args.table, args.tokenizer, args.work, args.held_out
    )
    sizes = (args.context_length, args.emb_dim, args.n_heads, args.n_layers)
    config = GPTConfig(vocab_size, *sizes, drop_rate=args.drop_rate, tie_embeddings=True)
    choices = {
        option.name: getattr(args, option.name)
        for option in fields(Recipe)
        if hasattr(args, option.name)
    }
    weights = None
    if args.begin_with is not None:
        weights = full_weights(args.begin_with, config, args.tokenizer)
        choices["begun_with"] = sha256_of(args.begin_with)
    if args.minutes is not None and (args.work / CHECKPOINT).exists():
        # those that fitted into the minutes when the run began
        choices["steps"] = read_checkpoint(args.work)["recipe"]["steps"]
    recipe = Recipe(**choices)
    run = TrainingRun.start(config, recipe, args.work, args.device, weights=weights)
    windows = TokenWindows(training_ids, config.context_length, recipe.stride)
    of_books, of_world = recipe.window_counts()
    books = Batches(windows, of_books, recipe.seed, recipe.repeat_share, recipe.shuffle_share)
    parts = [books]
    if of_world:
        passages = read_world(args.work, config.context_length)
        encoding = encoding_from_ranks(args.tokenizer / TOKENIZER_FILE)
        world = Batches(
            passages,
            of_world,
            recipe.seed,
            recipe.world_repeat_share,
            shuffle_share=0.0,
            encoding_of_passages=encoding,
            noise=recipe.world_noise,
            blank_id=encoding.encode_single_token(NEVER_IN_TEXT),
        )
        parts.append(world)
    batches = MixedBatches(parts)
    validation = TokenWindows(held_out_ids, config.context_length, config.context_length)
    if args.minutes is not None and run.step == 0:
        fit_steps(run, batches, validation, args.compile, args.minutes)
    run.train(
        batches,
        validation,
        compiled=args.compile,
        validate_every=args.validate_every,
        stop_at=args.stop_at,
    )
    print(json.dumps(run.curve[-1]))


def fit_steps(
    run: "TrainingRun",
    batches: MixedBatches,
    validation: TokenWindows,
    compiled: bool,
    minutes: float,
) -> None:
    """Give the run as many steps as fit into the minutes, by the speed of its steps 20 to 60.

    The learning rate still rises in these, so nothing is lost by not knowing yet where it will fall.
    """
    for stop_at in (20, 60):  # the first ones compile
        began = time.monotonic()
        run.train(batches, validation, compiled=compiled, validate_every=10**9, stop_at=stop_at)
    per_step = (time.monotonic() - began) / 40
    steps = run.step + int(minutes * 60 / per_step)
    run.recipe = replace(run.recipe, steps=steps)
    run.save()  # a run that is cut off must know how many steps it was to have
    print(f"{per_step * 1000:.1f} ms a step: {steps:,} steps in {minutes} minutes", flush=True)


def run_export(args: argparse.Namespace) -> None:
    from gptviz.training.export import export

    metadata = export(args.work, args.out, args.preliminary)
    print(
        f"step {metadata['step']}, validation loss {metadata['validation_loss']}: written to {args.out}"
    )


def run_evaluate(args: argparse.Namespace) -> None:
    from gptviz.training.evaluate import evaluate

    result = evaluate(args.model, args.text, args.table, args.held_out, args.limit)
    measured = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    if args.json:
        args.json.write_text(measured, encoding="utf-8")
    print(measured)


def run_card(args: argparse.Namespace) -> None:
    from gptviz.training.card import write_card

    evaluation = json.loads(args.evaluation.read_text(encoding="utf-8"))
    examination = None
    if args.examination:
        examination = json.loads(args.examination.read_text(encoding="utf-8"))
    made_by = ""
    if args.made_by:
        made_by = args.made_by.read_text(encoding="utf-8")
    card = write_card(
        args.model, args.work, evaluation, args.machine, args.before, examination, made_by
    )
    args.out.write_text(card, encoding="utf-8")
    print(f"{args.out}: {len(card.splitlines())} lines")


def run_heads(args: argparse.Namespace) -> None:
    from gptviz.models.loading import load
    from gptviz.training.export import measured_heads

    measured = measured_heads(
        load(args.model), lambda done, total: print(f"{done} of {total} trials", flush=True)
    )
    out = args.model / SHIPPED
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}"
        for name, value in measured.items()
    )
    out.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    print(f"{out}: {out.stat().st_size:,} bytes")


def run_record(args: argparse.Namespace) -> None:
    recording = record(args.out)
    born = recording.birth
    before = recording.measures[born.before].step
    there = recording.measures[born.there].step
    print(f"head {recording.head} of block {recording.block}, born from step {before} to {there}")
    print(f"{args.out}: {args.out.stat().st_size:,} bytes")


def run_examine(args: argparse.Namespace) -> None:
    from gptviz.models.loading import load
    from gptviz.training.examine import by_kind, examine, names_right, read_names, read_prompts

    lm = load(args.model)
    results = examine(lm, read_prompts(args.exam / "prompts.tsv"))
    kinds = by_kind(results)
    print(kinds.to_string(index=False, formatters={"share": "{:.0%}".format}))
    sentences = read_names(args.exam / "names.tsv")
    share = names_right(lm, sentences)
    if args.json:
        measured = {
            "kinds": kinds.to_dict("records"),
            "names": share,
            "sentences": len(sentences),
        }
        args.json.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(f"the right one of two names has the higher logit in {share:.0%} of the sentences")
    if args.wrong:
        for row in results[~results["correct"]].itertuples():
            print(f"{row.kind}: {row.prompt} [{row.said.strip()}] right: {row.right}")


# ---- live: a run to watch, to fork and to go back in. The page's worker is this ----

NUMBERS = {name: type(low) for name, (low, _) in LIMITS.items()}


def _add_live(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    live = commands.add_parser(
        "live",
        help="train a small GPTModel with snapshots to look at, or go on with the run in --work",
    )
    live.add_argument("--work", type=Path, required=True, help="the run's folder")
    live.add_argument(
        "--task", choices=list(TASKS), help="; ".join(f"{k}: {v}" for k, v in TASKS.items())
    )
    live.add_argument("--text", type=Path, help="the text of --task own, UTF-8")
    defaults = {option.name: option.default for option in fields(LiveConfig)}
    for name, kind in NUMBERS.items():
        live.add_argument(_flag(name), type=kind, help=f"{defaults[name]} if not given")
    live.add_argument(
        "--activation", choices=list(ACTIVATIONS), help=f"{defaults['activation']} if not given"
    )
    for name in SWITCHES:
        live.add_argument(f"--no-{_flag(name)[2:]}", dest=name, action="store_const", const=False)
    live.add_argument(
        "--fork-of", type=Path, metavar="WORK", help="go on from a snapshot of that run"
    )
    live.add_argument("--at", type=int, metavar="STEP", help="which snapshot")
    live.add_argument(
        "--mute",
        nargs="+",
        type=_head,
        default=[],
        metavar="BLOCK.HEAD",
        help="heads to switch off",
    )
    live.add_argument(
        "--stop-at", type=int, help="pause (and save) at this step; the same command goes on"
    )
    live.add_argument("--no-snapshots", action="store_true", help="write the curve only")
    live.add_argument("--nice", type=int, help="how far to stand back for other programs, 0 to 19")
    live.add_argument(
        "--leash", action="store_true", help="end, and remove --work, when standard input ends"
    )
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
    # only now: loading torch behind a busy server takes a minute
    if args.nice and hasattr(os, "nice"):
        os.nice(args.nice)

    try:
        planned(args)
        run = train(args.work, args.stop_at, not args.no_snapshots)
    except ValueError as error:
        sys.exit(str(error))
    status = run.status
    curve = run.curve
    if len(curve):
        last = curve.iloc[-1].to_dict()
    else:
        last = {}
    print(json.dumps({"state": status.state, "step": status.step} | last))


def planned(args: argparse.Namespace) -> LiveRun:
    """The run of the command's folder, begun if it is not there yet. Raises ValueError, a sentence."""
    options = ("task", "activation", *NUMBERS, *SWITCHES)
    set_options = {name: getattr(args, name) for name in options if getattr(args, name) is not None}
    if (args.work / PLAN).exists():
        run = LiveRun(args.work)
        conflicts = {
            name: value for name, value in set_options.items() if getattr(run.config, name) != value
        }
        if conflicts or args.text or args.fork_of:
            raise ValueError(
                f"{args.work} has a run already; to go on with it, give no options of another: "
                f"{', '.join(conflicts) or '--text, --fork-of'}"
            )
        return run
    if args.fork_of is not None:
        if args.at is None or set(set_options) - {"steps"}:
            raise ValueError("a fork takes --at STEP, and beside it only --mute and --steps")
        return fork(LiveRun(args.fork_of), args.at, args.work, tuple(args.mute), args.steps)
    text = None
    if args.text:
        text = args.text.read_text(encoding="utf-8")
    return begin(args.work, LiveConfig(**set_options, muted=tuple(args.mute)), text)


if __name__ == "__main__":
    main()
