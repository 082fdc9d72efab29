"""The bundled model's whole recipe in two commands: one that trains, and one that measures what was trained.

The books are read first and alone, and then together with the small world. Every step leaves a file, and a step
whose file is there is not taken again: a command that was cut off goes on. The first command needs a GPU to be
done within minutes; the second needs only the small folder that the first one leaves.
"""

import shutil
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from gptviz.analysis import jacobian_lens
from gptviz.files.atomic_file import write_atomically
from gptviz.files.disk_cache import SHIPPED
from gptviz.models.loading import load
from gptviz.training.corpus import ENCODED, TOKENIZER_FILE, WORLD_FILE
from gptviz.training.export import WEIGHTS, read_checkpoint
from gptviz.training.recipe import CHECKPOINT

Command = Callable[[list[str]], None]

MODEL = "mini"  # the folder of what is made, and so the name in its card

BATCHES = ["--batch-size", 256, "--validate-every", 1000]
# the learning rate stays high, since the second run goes on from there
OF_BOOKS = [*BATCHES, "--decay-share", 0]
OF_BOTH = [*BATCHES, "--world-share", 0.6, "--world-repeat-share", 0.1, "--decay-share", 0.15]
# of the small world, beside some hundred million of the books: its words are tokens of their own
WORLD_CHARACTERS = 60_000_000
# what shows within a minute on two processors that every step works; its model is worth nothing
TRIAL = ["--emb-dim", 32, "--n-heads", 2, "--n-layers", 2, "--batch-size", 4, "--steps", 5]


def train_whole(command: Command, args: Namespace) -> None:
    """Train in `args.work`, and leave the model and what its card must know of both runs in `args.out`.

    `command` is the command line that each step is one of.
    """
    work: Path = args.work
    books = work / "books"
    both = work / "both"
    characters = WORLD_CHARACTERS
    vocabulary: list[object] = []
    parts: list[object] = []
    if args.trial:
        characters = 20_000
        vocabulary = ["--vocab-size", 400]
        parts = ["--parts", 1]
    corpus = ["--text", args.text, "--table", args.table, "--held-out", *args.held_out]
    common = [*corpus, "--tokenizer", work, "--device", args.device]
    if args.compile:
        common.append("--compile")

    def take(leaves: Path, name: str, *options: object) -> None:
        taken(leaves, partial(command, [name, *map(str, options)]))

    def run(folder: Path, exported: Path, minutes: float, *options: object) -> None:
        length = TRIAL if args.trial else ["--minutes", minutes]
        choices = [*common, "--work", folder, *options, *length]
        if not (exported / WEIGHTS).exists():
            command(["model", *map(str, choices)])
        take(exported / WEIGHTS, "export", "--work", folder, "--out", exported)

    learnt = [*corpus, *vocabulary, "--world-characters", characters]
    take(work / TOKENIZER_FILE, "tokenizer", *learnt, "--out", work)
    run(books, books / "exported", args.books_minutes, *OF_BOOKS)
    # the books have been encoded, and need not be again
    both.mkdir(exist_ok=True)
    for file in ENCODED:
        taken(both / file, partial(shutil.copyfile, books / file, both / file))
    take(both / WORLD_FILE, "world", "--tokenizer", work, "--work", both, *parts)
    begins = ["--begin-with", books / "exported"]
    run(both, args.out / MODEL, args.both_minutes, *OF_BOTH, *begins)
    for folder in (books, both):
        leaves = args.out / folder.name / CHECKPOINT
        taken(leaves, partial(summarize, folder, leaves))


def measure_whole(command: Command, args: Namespace) -> None:
    """Measure the model that `mini` left in `args.out`: examination, books, heads, lens; and write its card."""
    out: Path = args.out
    model = out / MODEL
    corpus = ["--text", args.text, "--table", args.table, "--held-out", *args.held_out]
    limit: list[object] = []
    texts = jacobian_lens.TEXTS
    if args.trial:
        limit = ["--limit", 200]
        texts = 2

    def take(leaves: Path, name: str, *options: object) -> None:
        taken(leaves, partial(command, [name, "--model", str(model), *map(str, options)]))

    exam = out / "exam.json"
    evaluation = out / "evaluation.json"
    take(exam, "examine", "--exam", args.exam, "--json", exam)
    take(evaluation, "evaluate", *corpus, *limit, "--json", evaluation)
    take(model / SHIPPED, "heads")
    taken(model / jacobian_lens.SHIPPED, partial(fit_lens, model, texts))
    written = ["--work", out / "both", "--before", out / "books", "--machine", args.machine]
    card = model / "MODEL_CARD.md"
    take(card, "card", *written, "--evaluation", evaluation, "--examination", exam, "--out", card)


def taken(leaves: Path, step: Callable[[], object]) -> None:
    """Take the step, but for one whose file is there."""
    if leaves.exists():
        print(f"{leaves} is there", flush=True)
    else:
        print(f"{leaves}:", flush=True)
        step()


def summarize(work: Path, path: Path) -> None:
    """Write the run's checkpoint without its weights and optimizers: what a card reads, in some kilobytes."""
    saved = read_checkpoint(work)
    told = {name: saved[name] for name in ("config", "recipe", "step", "seconds", "curve")}
    write_atomically(path, lambda partly: torch.save(told, partly))


def fit_lens(model: Path, texts: int) -> None:
    """Fit the Jacobian lens that ships with the model."""
    lm = load(model)
    fitted = jacobian_lens.fit(lm, jacobian_lens.texts_of(lm, texts))
    jacobian_lens.keep(fitted, model / jacobian_lens.SHIPPED)
