"""MODEL_CARD.md, written from a run's checkpoint and its evaluation: no number in it is typed by hand."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from gptviz.training.evaluate import PREDICTORS, weights_of
from gptviz.training.export import read_checkpoint
from gptviz.training.recipe import Recipe

# its words; what stands in braces is filled in
CARD = Path(__file__).parents[1] / "assets" / "model_card.md"
# what a card says of a model that was trained on books alone, and of one that read the small world, too
OF_BOOKS = {
    "and_world": "",
    "learnt_on": "the same books",
    "knows": "It knows nothing.",
    "limits": """\
- It knows nothing. Names, dates and places that it writes are made up.
- It reads and writes the English of 18th- to early-20th-century books, most of them fiction.""",
}
OF_THE_WORLD = {
    "and_world": " and passages of a small world in plain English",
    "learnt_on": "the same books and that small world",
    "knows": "It knows facts of that small world, many of them only in the words in which it was told them.",
    "limits": """\
- It knows little: capitals, animals, opposites, days and the like. Whatever else it says is made up, and
  what it knows it often gets wrong when it is asked in other words: "What it knows" has the shares.
- Beside the plain English of its small world, it reads and writes that of 18th- to early-20th-century
  books, most of them fiction.""",
}
BARS = "▁▂▃▄▅▆▇█"
CURVE_ROWS = 12


def write_card(
    folder: Path,
    work: Path,
    evaluation: dict[str, Any],
    machine: str = "",
    before: Sequence[Path] = (),
    examination: dict[str, Any] | None = None,
    made_by: str = "",
) -> str:
    """Return the card as Markdown. `machine` says where the run was, in words, like "two CPU cores".

    The model is called as its folder is. `before` are the work folders of the runs that this one went on from,
    the first one first; `examination` is what `examine --json` wrote; `made_by` are the commands that made it,
    where they are others than those that follow from the runs.

    Raises ValueError when the three do not belong together: the evaluation must be of the very
    weights in `folder`, and those of the checkpoint in `work`.
    """
    weights = weights_of(folder)
    saved = read_checkpoint(work)
    if evaluation["weights"] != weights:
        raise ValueError(
            f"the evaluation is of other weights than those in {folder} "
            f"(step {evaluation['weights'].get('step')} against {weights.get('step')}): evaluate them again"
        )
    if weights.get("step") != str(saved["step"]):
        raise ValueError(
            f"{folder} holds step {weights.get('step')}, the checkpoint in {work} is at {saved['step']}: "
            "export and evaluate it again"
        )
    config = saved["config"]
    recipe = saved["recipe"]
    curve = saved["curve"]
    books = evaluation["books"]
    held_out = evaluation["held_out"]
    samples = evaluation["samples"]
    runs = [*map(read_checkpoint, before), saved]
    read = OF_BOOKS
    if recipe.get("world_share"):
        read = OF_THE_WORLD
    limit = f"\n**A quick look: only the first {held_out['limit'] or 0:,} tokens of each book.**\n"
    return CARD.read_text("utf-8").format(
        name=folder.name,
        saved=saved,
        config=config,
        recipe=recipe,
        held_out=held_out,
        size=evaluation["footprint"],
        sample=samples[0],
        first=curve[0],
        last=curve[-1],
        tied="tied" if config["tie_embeddings"] else "untied",
        megabytes=evaluation["footprint"]["bytes"] / 1e6,
        sha256=weights["sha256"][:16],
        n_training=len(books["training"]),
        n_held_out=len(books["held_out"]),
        n_books=sum(map(len, books.values())),
        characters=sum(book["characters"] for part in books.values() for book in part) / 1e6,
        books=_book_list(books),
        limited=limit if held_out["limit"] else "",
        losses=_loss_table(held_out),
        seen=held_out["windows"]["model"] - held_out["windows"]["model_sliding"] + 1,
        draws=evaluation["sequences"]["draws"],
        periods=" or ".join(str(loss["period"]) for loss in evaluation["copying"]),
        previous_grid=_head_grid(evaluation["heads"], "previous_token"),
        induction_grid=_head_grid(evaluation["heads"], "induction"),
        copying=_copying_table(evaluation["copying"]),
        asked=_asked(evaluation["heads"], evaluation["copying"]),
        seeds=", ".join(str(sample["seed"]) for sample in samples),
        samples="\n\n".join(
            "> " + sample["text"].strip().replace("\n", "\n> ") for sample in samples
        ),
        **read,
        examined=_examined(examination),
        stages="\n\n".join(_stage(run, machine) for run in runs),
        hidden={"muon": "Muon", "adamw": "AdamW"}[recipe["hidden_optimizer"]],
        commands=made_by.strip() or _commands(runs, folder.name, examination is not None),
        world=_world(recipe),
        sparkline=sparkline(point["validation"] for point in curve),
        curve=_curve_table(curve),
    )


def table(headers: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; every column but the first is right-aligned."""
    titles = list(headers)
    rule = ["---"] + ["---:"] * (len(titles) - 1)
    return "\n".join([_line(titles), _line(rule), *map(_line, rows)])


def sparkline(values: Iterable[float]) -> str:
    """A row of bars from the lowest value to the highest, one a value.

    >>> sparkline([5.0, 4.2, 4.0])
    '█▂▁'
    """
    numbers = list(values)
    low = min(numbers)
    high = max(numbers)
    step = (high - low) / (len(BARS) - 1) or 1.0
    return "".join(BARS[round((number - low) / step)] for number in numbers)


def _line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _book_list(books: dict[str, list[dict[str, Any]]]) -> str:
    marks = {"training": "", "held_out": " — **held out**"}
    entries = [
        (b["author"], b["year"], b["title"], marks[part]) for part in books for b in books[part]
    ]
    return "\n".join(
        f"- {author}, *{title}*, {year}{mark}" for author, year, title, mark in sorted(entries)
    )


def _loss_table(held_out: dict[str, Any]) -> str:
    rows = [
        [score["title"], f"{score['tokens']:,}"]
        + [
            f"{score['nats_per_token'][p]:.3f} / {score['bits_per_byte'][p]:.3f}"
            for p in PREDICTORS
        ]
        for score in [*held_out["books"], held_out["together"]]
    ]
    return table(["book", "tokens", "model", "model, sliding", "bigram", "unigram"], rows)


def _best(heads: list[dict[str, Any]], score: str) -> dict[str, Any]:
    return max(heads, key=lambda head: head[score])


def _head_grid(heads: list[dict[str, Any]], score: str) -> str:
    """A row per block, a column per head, the best one in bold."""
    best = _best(heads, score)
    n_heads = 1 + max(head["head"] for head in heads)
    cells = [f"**{head[score]:.2f}**" if head is best else f"{head[score]:.2f}" for head in heads]
    rows = [[i // n_heads, *cells[i : i + n_heads]] for i in range(0, len(cells), n_heads)]
    return table(["block", *(f"head {head}" for head in range(n_heads))], rows)


def _copying_table(copying: list[dict[str, Any]]) -> str:
    columns = ("first_half", "second_half", "ratio")
    rows = [
        [f"{loss['period']} tokens, twice", *(f"{loss[name]:.3f}" for name in columns)]
        for loss in copying
    ]
    return table(["sequence", "first half", "second half", "second / first"], rows)


def _asked(heads: list[dict[str, Any]], copying: list[dict[str, Any]]) -> str:
    rows = []
    for name, score, least in (
        ("induction", "induction", 0.75),
        ("previous-token", "previous_token", 0.6),
    ):
        best = _best(heads, score)
        measured = f"{best[score]:.3f} (block {best['block']}, head {best['head']})"
        rows.append([f"best {name} score", f"at least {least}", measured])
    ratio = max(loss["ratio"] for loss in copying)
    rows.append(["loss on the second half / on the first", "below 0.333", f"{ratio:.3f}"])
    return table(["asked of this model", "wanted", "measured"], rows)


def _examined(examination: dict[str, Any] | None) -> str:
    """What the model answered to prompts that it never saw; "" without an examination."""
    if examination is None:
        return ""
    rows = [
        [kind["kind"], kind["prompts"], kind["correct"], f"{kind['share']:.0%}"]
        for kind in examination["kinds"]
    ]
    return f"""
### What it knows

Prompts by somebody who had not seen its training text (`tests/training/exam`): the likeliest next word, or
for a question the first sentence, is one of those that are right.

{table(["kind", "prompts", "right", "share"], rows)}

The right one of two names has the higher logit in {examination["names"]:.0%} of {examination["sentences"]} sentences.
"""


def _stage(saved: dict[str, Any], machine: str) -> str:
    """How long a run was, on what, and how its learning rate went."""
    recipe = saved["recipe"]
    window = saved["config"]["context_length"]
    tokens = saved["step"] * recipe["batch_size"] * window
    text = "books"
    if recipe.get("world_share"):
        text = "books and the small world"
    where = f" on {machine}" if machine else ""
    dropout = ""
    if saved["config"]["drop_rate"]:
        dropout = f", with dropout {saved['config']['drop_rate']:g}"
    precision = ""
    if recipe.get("precision") != "float32":  # an older run does not say it
        precision = ", with bf16 autocast"
    ended = ""
    if saved["step"] < recipe["steps"]:
        ended = f" It was stopped here, {recipe['steps'] - saved['step']:,} steps before its end."
    fall = "and hold"
    if recipe["decay_share"]:
        fall = f"hold, and fall to 0 over the last {recipe['decay_share']:.0%} of the steps"
    if recipe["decay_share"] == 1:
        fall = "and then fall to 0"
    return (
        f"{saved['step']:,} steps of {recipe['batch_size']} windows of {window} tokens of {text}: "
        f"{tokens / 1e6:.1f} million tokens in {saved['seconds'] / 60:.0f} minutes{where}"
        f"{precision}{dropout}. Learning rates rise over {recipe['warmup']} steps, {fall}.{ended}"
    )


def _world(recipe: dict[str, Any]) -> str:
    """Sentences about the small world, and the weights that the run went on from; "" for neither."""
    sentences = []
    if recipe.get("world_share"):
        share = recipe["world_share"]
        sentences.append(
            f"{share:.0%} of the windows are passages of a small world that was written for gptviz: facts, "
            "names, numbers, questions and stories in plain English, from tables and wordings by a seeded "
            "generator (`gptviz/training/world`)."
        )
    if recipe.get("world_noise"):
        noise = recipe["world_noise"]
        sentences.append(
            f"In half of these, up to {noise:.0%} of the inputs are a token that no text has."
        )
    if recipe.get("world_repeat_share"):
        repeated = recipe["world_repeat_share"]
        sentences.append(
            f"About {repeated:.0%} of these begin with a passage that is said twice or three times."
        )
    if recipe.get("begun_with"):
        sentences.append(
            f"The run went on from weights with the SHA-256 `{recipe['begun_with'][:16]}…`."
        )
    if sentences:
        return "\n" + " ".join(sentences) + "\n"
    return ""


def _commands(runs: list[dict[str, Any]], name: str, examined: bool) -> str:
    """The commands that make the model again, with the options that are not the defaults.

    `runs` are the checkpoints of the run and of those before it, the first one first.
    """
    command = "python -m gptviz.training"
    out = f"gptviz/assets/{name}"
    corpus = "--text books.txt.gz --table books.tsv"
    vocab_size = runs[-1]["config"]["vocab_size"]
    lines = [f"{command} tokenizer {corpus} --vocab-size {vocab_size} --out tokenizer"]
    places = [f"run{number + 1}" for number in range(len(runs) - 1)] + ["work"]
    begin_with = ""
    if runs[0]["recipe"].get("begun_with"):  # of weights that no run here has made
        begin_with = " --begin-with before"
    for run, place in zip(runs, places, strict=True):
        if run["recipe"].get("world_share"):
            lines.append(f"{command} world --tokenizer tokenizer --work {place}")
        lines.append(f"{command} model {corpus} --tokenizer tokenizer --work {place} --compile \\")
        lines.append(f"    {_options(run)}{begin_with}")
        if place != "work":
            lines.append(f"{command} export --work {place} --out {place}/exported")
            begin_with = f" --begin-with {place}/exported"
    lines.append(f"{command} export --work work --out {out}")
    lines.append(f"{command} evaluate --model {out} {corpus} --json evaluation.json")
    card = (
        f"{command} card --model {out} --work work --evaluation evaluation.json \\\n"
        f"    --out {out}/MODEL_CARD.md"
    )
    if len(runs) > 1:
        card += " --before " + " ".join(places[:-1])
    if examined:
        lines.append(f"{command} examine --model {out} --exam tests/training/exam --json exam.json")
        card += " --examination exam.json"
    lines.append(card)
    lines.append(f"{command} heads --model {out}")
    return "\n".join(lines)


def _options(saved: dict[str, Any]) -> str:
    """The options of `model` for a run: its sizes, its steps, and what is not the default."""
    recipe = saved["recipe"]
    config = saved["config"]
    defaults = {option.name: option.default for option in fields(Recipe)}
    options = {name: config[name] for name in ("emb_dim", "n_heads", "n_layers", "context_length")}
    if config["drop_rate"]:
        options["drop_rate"] = config["drop_rate"]
    for name, value in recipe.items():
        if name == "begun_with":
            continue
        if name == "steps" or value != defaults[name]:
            options[name] = value
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())


def _curve_table(curve: list[dict[str, float]]) -> str:
    stride = max(1, round(len(curve) / CURVE_ROWS))
    shown = "{step:,} {millions:.1f} {train:.3f} {validation:.3f} {minutes:.0f}"
    rows = [
        shown.format(millions=point["tokens"] / 1e6, minutes=point["seconds"] / 60, **point).split()
        for point in curve[::-1][::stride][::-1]  # the last point always among them
    ]
    return table(["step", "million tokens", "training loss", "validation loss", "minutes"], rows)
