"""A guide in a hand-out: the steps whose places it has, their questions answered by the model beforehand."""

from collections.abc import Mapping
from typing import Any

from markdown_it import MarkdownIt

from gptviz.engine.edit_values import named
from gptviz.engine.language_model import LanguageModel
from gptviz.teach.guides import Guide, Step
from gptviz.teach.guides.answers import CannotAsk
from gptviz.teach.guides.guide import with_facts
from gptviz.teach.guides.keys import answer_at

# the values that model.js can make
EDITS = ("zero", "mean", "x", "uniform", "first", "previous", "hide")
PAGES = ("tokens", "embeddings", "attention", "layernorm", "next_token")
# what an address says there, and so what a step's place may
PLACE = ("text", "token", "block", "head", "edits", "special", "emb_dim", "ln_norm", "temperature")
SAID = "\ue000"  # stands for what a pupil says: page.js knows it when it is said

_markdown = MarkdownIt("commonmark", {"html": False})


def known(lm: LanguageModel) -> bool:
    """Whether a hand-out can make all edits of this model."""
    values = [named(edit.value) for edit in lm.edits]
    return all(value is not None and value.name in EDITS for value in values)


def led(guide: Guide, lm: LanguageModel, text: str) -> dict[str, Any]:
    """The guide as page.js needs it: its steps, each with a whole place; `text` until one is named.

    Left out, and counted as `missing`: other pages, choices and models, what is found by hunting for it, and
    what this model cannot be asked.
    """
    place: dict[str, str] = {"text": text}
    steps = []
    for step in guide.steps:
        place |= dict(step.place)
        if step.page not in PAGES or place.get("model", "") not in ("", lm.name):
            continue
        other_names = {name for name, value in step.place if value} - {*PLACE, "model"}
        if other_names or {name for name, _ in step.until} - {"edits"}:
            continue
        try:
            steps.append(_step(step, place, lm))
        except CannotAsk:
            continue
    if not steps:
        raise ValueError(
            f"the guide {guide.title!r} has no step that a hand-out can show; its pages are {', '.join(PAGES)}"
        )
    missing = len(guide.steps) - len(steps)
    return {"title": guide.title, "language": guide.language, "steps": steps, "missing": missing}


def _step(step: Step, place: Mapping[str, str], lm: LanguageModel) -> dict[str, Any]:
    """One step; raises CannotAsk where it is none for a hand-out of this model."""
    lm = lm.plain.edited(*filter(None, place.get("edits", "").split(",")))
    if not known(lm):
        raise CannotAsk("a hand-out cannot make the edits of its place")
    own_place = {name: place[name] for name in PLACE if name in place}
    page_step = {"heading": step.heading, "page": step.page, "place": own_place, "ask": None}
    if step.ask is None:
        done = dict(step.until).get("edits")
        after = _markdown.render(step.after)
        return page_step | {"text": _markdown.render(step.text), "until": done, "after": after}
    if step.ask.kind == "find":
        raise CannotAsk("it is hunted for in the app")
    answer = answer_at(place, step.ask, lm)
    facts = {"truth": answer.shown} | answer.facts | {"said": SAID}
    filled_step = with_facts(step, facts)
    assert filled_step.ask is not None
    question = {
        "question": _markdown.renderInline(filled_step.ask.text),
        "kind": filled_step.ask.kind,
        "options": [
            [option.replace("`", ""), _markdown.renderInline(option)]
            for option in filled_step.ask.options or answer.options
        ],
        "between": filled_step.ask.between,
        "hints": [*map(_markdown.renderInline, filled_step.ask.hints)],
        "truth": _markdown.renderInline(answer.shown),
        "after": _markdown.render(filled_step.after),
    }
    return page_step | {"text": _markdown.render(filled_step.text), "ask": question}
