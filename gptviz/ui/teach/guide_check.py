"""Find what is wrong with a guide, before a class sees it: every step opened, every question answered.

The steps are opened as a visitor would, one after the other, by Streamlit's own test harness.
"""

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from streamlit.testing.v1 import AppTest

from gptviz.models.loading import DEFAULT_MODEL, load
from gptviz.teach.guides import SETTING, Guide, GuideError, Step, keys, read
from gptviz.teach.guides.answers import CannotAsk
from gptviz.teach.guides.guide import with_facts
from gptviz.teach.guides.keys import answer_at
from gptviz.text.suggest import did_you_mean
from gptviz.ui.shell.navigation import PAGES, page_file
from gptviz.ui.shell.state import DEFAULT_TEXT
from gptviz.ui.teach.question import ANSWERS

TOLD = {"truth", "said"}  # what a sentence after an answer may tell of every key
OF_WHAT_WAS_GIVEN = re.compile(r"given_\w+")


def check(file: Path, model: str = DEFAULT_MODEL) -> Iterator[tuple[Step, str]]:
    """Yield every step of a guide, its sentences filled with this model's numbers, and its answer in words.

    Raises GuideError where the file is no guide, or something is wrong with a step.
    """
    guide = read(file.read_text("utf-8", "replace"))
    faults = [fault for step in guide.steps for fault in _named(step)]
    if not faults:
        # no browser is there, and Streamlit would say so at every step
        logging.disable(logging.WARNING)
        try:
            faults = _opened(file, guide, model)
        finally:
            logging.disable(logging.NOTSET)
    if faults:
        raise GuideError(sorted(faults))
    place = {"text": DEFAULT_TEXT}
    for step in guide.steps:
        place |= dict(step.place)
        yield _truth(step, place, model)


def _named(step: Step) -> Iterator[tuple[int, str]]:
    """The faults in what a step names, each with its line.

    That is a page that does not exist, or a question with a wrong key or wrong values.
    """
    if step.page not in PAGES:
        meant = did_you_mean(step.page, PAGES)
        yield step.line, f"there is no page {step.page[:60]!r}{meant}; there are {', '.join(PAGES)}"
    if step.ask is None:
        return
    try:
        keys.arguments(step.ask.key, step.ask.kind, step.ask.given)
    except ValueError as error:
        yield step.line, str(error)


def _opened(file: Path, guide: Guide, model: str) -> list[tuple[int, str]]:
    """Open every step's page, and list the faults that a visitor would see, each with its line.

    A page that breaks, a choice or an element that it does not have.
    """
    faults: list[tuple[int, str]] = []
    with mock.patch.dict(os.environ, {SETTING: str(file.resolve().parent)}):
        for number, step in enumerate(guide.steps, 1):
            app = AppTest.from_file(str(page_file(step.page)), default_timeout=240)
            app.query_params.update({"guide": file.stem, "step": str(number), "model": model})
            # so that the picture is drawn
            app.session_state[ANSWERS] = {(file.stem, number - 1): None}
            app.run()
            faults += [(step.line, f"the page fails: {error.message}") for error in app.exception]
            if app.exception:
                continue
            known = {param.name for param in app.session_state["gptviz_params"]}
            for name, _ in (*step.place, *step.until):
                if name not in known:
                    faults.append(
                        (
                            step.line,
                            f"the page {step.page} has no choice {name!r}{did_you_mean(name, known)}",
                        )
                    )
            if step.look and step.look.split(" > ")[0] not in keys_of(app.main):
                faults.append(
                    (step.line, f"the page {step.page} has nothing called {step.look!r} here")
                )
    return faults


def keys_of(node: Any) -> set[str]:
    """The keys of all elements below this one, and of the containers that have one."""
    names = set()
    for child in node.children.values():
        id = getattr(child.proto, "id", "")
        names |= {getattr(child, "key", None) or "", id.rsplit("-", 1)[-1]}
        if hasattr(child, "children"):
            names |= keys_of(child)
    return names - {""}


def _truth(step: Step, place: dict[str, str], model: str) -> tuple[Step, str]:
    """The step with this model's numbers, and its question with what the model answers."""
    if step.ask is None:
        return step, "no question"
    try:
        lm = load(place.get("model", model)).edited(
            *filter(None, place.get("edits", "").split(","))
        )
        answer = answer_at(place, step.ask, lm)
    except CannotAsk as error:
        return replace(
            step, after=""
        ), f"This cannot be asked of {place.get('model', model)}: {error}."
    except ValueError as error:  # a model, a change or a text that there is not
        raise GuideError([(step.line, str(error))]) from error
    sentences = "\n".join([step.text, step.ask.text, *step.ask.hints, step.after])
    unknown = set(re.findall(r"\{(\w+)\}", sentences)) - TOLD - answer.facts.keys()
    unknown = {name for name in unknown if not OF_WHAT_WAS_GIVEN.fullmatch(name)}
    if unknown:
        raise GuideError(
            [(step.line, f"{name} is not a fact of {step.ask.key}") for name in sorted(unknown)]
        )
    filled_step = with_facts(step, {"truth": answer.shown} | answer.facts)
    assert filled_step.ask is not None
    return filled_step, f"{filled_step.ask.text} {answer.shown}"
