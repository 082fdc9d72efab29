"""An examination: prompts in wordings that were not trained on, and what a model writes after each.

Its files are `tests/training/exam/*.tsv`, written by somebody who had not seen the training text.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gptviz.engine.language_model import LanguageModel

LONGEST_ANSWER = 24  # tokens of a sentence that answers a question
LONGEST_WORD = 5  # tokens of a word that goes on


@dataclass(frozen=True)
class Prompt:
    """A prompt. `right`: the continuations that are accepted; `wrong`: for names, those that are wrong."""

    kind: str
    text: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def is_question(self) -> bool:
        """Whether a whole sentence answers it, and not just the next word."""
        return self.text.rstrip().endswith("?")


def read_prompts(path: Path) -> list[Prompt]:
    """The prompts of a table with the columns kind, prompt, right, wrong; `|` stands between answers."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    prompts = []
    for row in rows:
        prompts.append(
            Prompt(row["kind"], row["prompt"], _words(row["right"]), _words(row["wrong"]))
        )
    return prompts


def _words(cell: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (cell or "").split("|") if word.strip())


def examine(lm: LanguageModel, prompts: list[Prompt]) -> pd.DataFrame:
    """A row a prompt: kind, prompt, right, what the model writes (greedily), and whether that is correct."""
    rows = []
    for prompt in prompts:
        written = answer(lm, prompt)
        row = {"kind": prompt.kind, "prompt": prompt.text, "right": " | ".join(prompt.right)}
        rows.append(row | {"said": written, "correct": is_correct(prompt, written)})
    return pd.DataFrame(rows)


def answer(lm: LanguageModel, prompt: Prompt) -> str:
    """What the model writes after the prompt, always its likeliest token: a few tokens, or a sentence."""
    if prompt.is_question:
        longest = LONGEST_ANSWER
    else:
        longest = LONGEST_WORD
    ids = lm.encode(prompt.text)
    steps = lm.generate(ids, longest, temperature=0.0)
    return lm.decode([step.id for step in steps if step.id < lm.config.vocab_size - 1])


def is_correct(prompt: Prompt, said: str) -> bool:
    """Whether the first sentence has an accepted word (after a question), or begins with one (elsewhere)."""
    if prompt.is_question:
        first_sentence = re.split(r'(?<=[.!?])["\s]', said.strip() + " ")[0]
        return any(
            re.search(rf"\b{re.escape(word)}\b", first_sentence, re.I) for word in prompt.right
        )
    continuation = said.strip().lstrip('"').lower()
    return any(re.match(rf"{re.escape(word.lower())}(\W|$)", continuation) for word in prompt.right)


def by_kind(results: pd.DataFrame) -> pd.DataFrame:
    """How many prompts of each kind there are, and how many are correct; the last row is all of them."""
    table = (
        results.groupby("kind", sort=False)["correct"]
        .agg(prompts="count", correct="sum")
        .reset_index()
    )
    total = {"kind": "all", "prompts": len(results), "correct": int(results["correct"].sum())}
    table = pd.concat([table, pd.DataFrame([total])], ignore_index=True)
    table["share"] = table["correct"] / table["prompts"]
    return table


def read_names(path: Path) -> list[tuple[str, str, str]]:
    """(sentence, the right name, the wrong one) of each row of a table of sentences with two names."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row["sentence"], row["right"], row["wrong"]) for row in rows]


def names_right(lm: LanguageModel, sentences: list[tuple[str, str, str]]) -> float:
    """The share of sentences after which the right name's first token has the higher logit of the two."""
    higher = 0
    for sentence, right, wrong in sentences:
        logits = lm.trace(sentence, keep=()).logits(position=-1)  # (V,)
        higher += bool(
            logits[lm.encode(f" {right}", begin=False)[0]]
            > logits[lm.encode(f" {wrong}", begin=False)[0]]
        )
    return higher / len(sentences)
