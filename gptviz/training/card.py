"""MODEL_CARD.md, written from a run's checkpoint and its evaluation: no number in it is typed by hand."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from gptviz.training.card_text import CARD
from gptviz.training.evaluate import PREDICTORS, best_head, weights_of
from gptviz.training.export import read_checkpoint
from gptviz.training.recipe import Recipe

BARS = "▁▂▃▄▅▆▇█"
CURVE_ROWS = 12


def write_card(folder: Path, work: Path, evaluation: dict[str, Any], machine: str = "") -> str:
    """The card as Markdown. `machine` says where the run was, in words, like "two CPU cores".

    Raises ValueError when the three do not belong together: the evaluation must be of the very
    weights in `folder`, and those of the checkpoint in `work`.
    """
    weights = weights_of(folder)
    if evaluation["weights"] != weights:
        raise ValueError(
            f"the evaluation is of other weights than those in {folder} "
            f"(step {evaluation['weights'].get('step')} against {weights.get('step')}): evaluate them again"
        )
    saved = read_checkpoint(work)
    if weights.get("step") != str(saved["step"]):
        raise ValueError(
            f"{folder} holds step {weights.get('step')}, the checkpoint in {work} is at {saved['step']}: "
            "export and evaluate it again"
        )
    return CARD.format(**_model(saved, evaluation), **_measured(evaluation), **_training(saved, machine))


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
    low, high = min(numbers), max(numbers)
    step = (high - low) / (len(BARS) - 1) or 1.0
    return "".join(BARS[round((number - low) / step)] for number in numbers)


def _line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _model(saved: dict[str, Any], evaluation: dict[str, Any]) -> dict[str, Any]:
    """What the model is, and its books."""
    config, size, books = saved["config"], evaluation["footprint"], evaluation["books"]
    return {
        **{name: config[name] for name in ("n_layers", "n_heads", "emb_dim")},
        "context": config["context_length"],
        "vocab_size": f"{config['vocab_size']:,}",
        "tied": "tied" if config["tie_embeddings"] else "untied",
        "parameters": f"{size['parameters']:,}",
        "megabytes": f"{size['bytes'] / 1e6:.1f}",
        "load_seconds": f"{size['load_seconds']:.2f}",
        "sha256": evaluation["weights"]["sha256"][:16],
        "n_training": len(books["training"]),
        "n_held_out": len(books["held_out"]),
        "n_books": len(books["training"]) + len(books["held_out"]),
        "characters": f"{sum(book['characters'] for part in books.values() for book in part) / 1e6:.1f}",
        "books": _book_list(books),
    }


def _book_list(books: dict[str, list[dict[str, Any]]]) -> str:
    marked = [(book, "") for book in books["training"]] + [
        (book, " — **held out**") for book in books["held_out"]
    ]
    marked.sort(key=lambda pair: (pair[0]["author"], pair[0]["year"], pair[0]["title"]))
    return "\n".join(f"- {book['author']}, *{book['title']}*, {book['year']}{mark}" for book, mark in marked)


def _measured(evaluation: dict[str, Any]) -> dict[str, Any]:
    """What it can do."""
    held_out, heads, copying = evaluation["held_out"], evaluation["heads"], evaluation["copying"]
    samples, windows = evaluation["samples"], held_out["windows"]
    quoted = ["> " + sample["text"].strip().replace("\n", "\n> ") for sample in samples]
    return {
        "limited": (
            f"\n**A quick look: only the first {held_out['limit']:,} tokens of each book.**\n"
            if held_out["limit"]
            else ""
        ),
        "losses": _loss_table(held_out),
        "slide": windows["model_sliding"],
        "seen": windows["model"] - windows["model_sliding"] + 1,
        "strength": f"{held_out['bigram_strength']:g}",
        "draws": evaluation["sequences"]["draws"],
        "periods": " or ".join(str(loss["period"]) for loss in copying),
        "previous_grid": _head_grid(heads, "previous_token"),
        "induction_grid": _head_grid(heads, "induction"),
        "copying": _copying_table(copying),
        "asked": "\n".join(_asked(heads, copying)),
        "prompt": samples[0]["prompt"],
        "sample_tokens": samples[0]["tokens"],
        "temperature": samples[0]["temperature"],
        "seeds": ", ".join(str(sample["seed"]) for sample in samples),
        "samples": "\n\n".join(quoted),
    }


def _loss_table(held_out: dict[str, Any]) -> str:
    rows = [
        [score["title"], f"{score['tokens']:,}"]
        + [f"{score['nats_per_token'][p]:.3f} / {score['bits_per_byte'][p]:.3f}" for p in PREDICTORS]
        for score in [*held_out["books"], held_out["together"]]
    ]
    return table(["book", "tokens", "model", "model, sliding", "bigram", "unigram"], rows)


def _head_grid(heads: list[dict[str, Any]], score: str) -> str:
    """A row per block, a column per head, the best one in bold."""
    best = best_head(heads, score)
    rows: dict[int, list[object]] = {}
    for head in heads:
        number = f"{head[score]:.2f}"
        rows.setdefault(head["block"], [head["block"]]).append(f"**{number}**" if head is best else number)
    columns = len(rows[0]) - 1
    return table(["block", *(f"head {head}" for head in range(columns))], rows.values())


def _copying_table(copying: list[dict[str, Any]]) -> str:
    columns = ("first_half", "second_half", "ratio")
    rows = [
        [f"{loss['period']} tokens, twice", *(f"{loss[name]:.3f}" for name in columns)] for loss in copying
    ]
    return table(["sequence", "first half", "second half", "second / first"], rows)


def _asked(heads: list[dict[str, Any]], copying: list[dict[str, Any]]) -> list[str]:
    def head(score: str) -> str:
        best = best_head(heads, score)
        return f"{best[score]:.3f} (block {best['block']}, head {best['head']})"

    ratio = max(loss["ratio"] for loss in copying)
    return [
        _line(["best induction score", "at least 0.75", head("induction")]),
        _line(["best previous-token score", "at least 0.6", head("previous_token")]),
        _line(["loss on the second half / on the first", "below 0.333", f"{ratio:.3f}"]),
    ]


def _training(saved: dict[str, Any], machine: str) -> dict[str, Any]:
    """How it came about."""
    recipe, curve = saved["recipe"], saved["curve"]
    tokens = saved["step"] * recipe["batch_size"] * saved["config"]["context_length"]
    return {
        "steps": f"{saved['step']:,}",
        "batch": recipe["batch_size"],
        "million_tokens": f"{tokens / 1e6:.1f}",
        "minutes": f"{saved['seconds'] / 60:.0f}",
        "machine": f" on {machine}" if machine else "",
        "hidden": {"muon": "Muon", "adamw": "AdamW"}[recipe["hidden_optimizer"]],
        "hidden_lr": f"{recipe['hidden_lr']:g}",
        "other_lr": f"{recipe['other_lr']:g}",
        "weight_decay": f"{recipe['weight_decay']:g}",
        "clip": f"{recipe['clip_norm']:g}",
        "warmup": recipe["warmup"],
        "decay": f"{recipe['decay_share']:.0%}",
        "repeats": f"{recipe['repeat_share']:.0%}",
        "shuffled": f"{recipe['shuffle_share']:.0%}",
        "commands": _commands(saved),
        "first_step": f"{curve[0]['step']:,}",
        "last_step": f"{curve[-1]['step']:,}",
        "sparkline": sparkline(point["validation"] for point in curve),
        "curve": _curve_table(curve),
    }


def _commands(saved: dict[str, Any]) -> str:
    """The commands that make the model again, with the options that are not the defaults."""
    recipe, config = saved["recipe"], saved["config"]
    defaults = {option.name: option.default for option in fields(Recipe)}
    options = {name: config[name] for name in ("emb_dim", "n_heads", "n_layers", "context_length")}
    options |= {name: value for name, value in recipe.items() if name == "steps" or value != defaults[name]}
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    command, corpus = "python -m gptviz.training", "--text books.txt.gz --table books.tsv"
    return f"""\
{command} tokenizer {corpus} --vocab-size {config["vocab_size"]} --out tokenizer
{command} model {corpus} --tokenizer tokenizer --work work --compile \\
    {flags}
{command} export --work work --out gptviz/assets/mini
{command} evaluate --model gptviz/assets/mini {corpus} --json evaluation.json
{command} card --model gptviz/assets/mini --work work --evaluation evaluation.json \\
    --out gptviz/assets/mini/MODEL_CARD.md
{command} heads --model gptviz/assets/mini"""


def _curve_table(curve: list[dict[str, float]]) -> str:
    every = max(1, round(len(curve) / CURVE_ROWS))
    chosen = curve[::-1][::every][::-1]  # the last point always among them
    rows = [
        [
            f"{point['step']:,}",
            f"{point['tokens'] / 1e6:.1f}",
            f"{point['train']:.3f}",
            f"{point['validation']:.3f}",
            f"{point['seconds'] / 60:.0f}",
        ]
        for point in chosen
    ]
    return table(["step", "million tokens", "training loss", "validation loss", "minutes"], rows)
