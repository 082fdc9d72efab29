"""A guide as a text: Markdown with a head, and a step under each heading. Its faults are listed by line.

    ---
    title: The tour
    language: en
    for: everybody
    minutes: 5
    learnt: how a text becomes the next word
    ---
    ## Guess the next word

    What stands here is read first.

    ```step
    page: next_token
    place: {text: The cat sat on the, token: 4}
    look: candidates
    ask: {kind: word, question: "Which word comes next?", key: next_word, hints: [It is an animal.]}
    ```

    What stands here is read after the answer: the model said {truth}.

A step's block names a page and its address parameters, what to look at there (the key of an element),
what is to be done before it goes on (`until`, address parameters), and a question. Of a question, `key` names
a function of `gptviz.teach.guides.keys`, and `with` its arguments.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import yaml
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from gptviz.text.as_text import unlinked

# Characters of a guide, of a step's sentences, and of a head or a block. A visitor may bring a guide, and the
# server reads it itself: markdown-it takes at most 0.1 ms a character, whatever it is.
LONGEST = 40_000
LONGEST_STEP = 8_000
LONGEST_BLOCK = 4_000
LARGEST = 4 * LONGEST  # bytes of a file, since a character has up to four
DEEPEST = 6  # of lists and pairs in one another; a question's have three
TOO_DEEP = f"lists and pairs may stand {DEEPEST} deep in one another, and these are deeper"
MOST_STEPS = 60
MOST_FAULTS = 20
HEAD = {"title": str, "language": str, "for": str, "minutes": int, "learnt": str}
STEP = {"page": str, "place": dict, "look": str, "until": dict, "ask": dict, "shows": list}
ASK = {
    "kind": str, "question": str, "key": str, "with": dict, "between": list, "options": list, "hints": list
}  # fmt: skip
KINDS = ("choice", "word", "number", "token", "head", "find")
CALLED = {str: "a text", int: "a whole number", dict: "name: value pairs", list: "a list"}
Address = tuple[tuple[str, str], ...]


class GuideError(ValueError):
    """What is wrong in a guide: (line, sentence) each, line 0 where it is about the whole."""

    def __init__(self, faults: list[tuple[int, str]]):
        self.all_faults = faults
        self.faults = faults[:MOST_FAULTS]
        lines = [f"line {line}: {sentence}" if line else sentence for line, sentence in self.faults]
        if len(faults) > MOST_FAULTS:
            lines.append(f"and {len(faults) - MOST_FAULTS} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Question:
    """What is asked before a picture shows. `given` are the arguments of the key's function, by name."""

    kind: str
    text: str
    key: str
    given: tuple[tuple[str, Any], ...] = ()
    between: tuple[int, int] | None = None  # a number that is chosen on a slider, and not typed
    options: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """One step: `text` is read first, `after` once the question is answered. `line` is its heading's.

    `shows` are the keys of the pictures that are there while its question is open: they do not tell the answer.
    """

    line: int
    heading: str
    text: str
    page: str
    place: Address = ()
    look: str = ""
    until: Address = ()
    ask: Question | None = None
    after: str = ""
    shows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guide:
    """A guide, with at least one step."""

    title: str
    steps: tuple[Step, ...]
    language: str = "en"
    audience: str = ""
    minutes: int = 0
    learnt: str = ""


@dataclass
class _Draft:
    """A step while its lines are read."""

    line: int
    heading: str
    block: dict[str, Any] | None = None
    at: int = 0
    texts: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))


def read(text: str) -> Guide:
    """Parse a guide from its file's text. Raises GuideError with its faults, at most MOST_FAULTS."""
    guide = _known(text)
    if isinstance(guide, GuideError):
        raise GuideError(guide.all_faults)
    return guide


@lru_cache(maxsize=32)  # a rerun asks for the same guide again, also for one that is none
def _known(text: str) -> "Guide | GuideError":
    try:
        return _read(text)
    except GuideError as error:
        # without the traceback, which would hold all that was read
        return GuideError(error.all_faults)


def _read(text: str) -> Guide:
    if len(text) > LONGEST:
        raise GuideError([(0, f"a guide may have {LONGEST:,} characters, and this one has more")])
    faults: list[tuple[int, str]] = []
    lines = text.replace("\r\n", "\n").split("\n")
    end = next((n for n, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
    if lines[0].strip() != "---" or not end:
        raise GuideError([(1, "a guide begins with a head between two lines of ---")])
    head = _fields("\n".join(lines[1:end]), 1, HEAD, "the head", faults)
    if not head.get("title"):
        faults.append((1, "the head has no title"))
    for name in ("title", "language", "for", "learnt"):
        head[name] = _words(head.get(name, ""), 1, faults)
    drafts = _drafts(lines, end + 1, faults)
    if not drafts:
        faults.append((end + 1, "there is no step: each begins with a line `## Heading`"))
    if len(drafts) > MOST_STEPS:
        faults.append(
            (drafts[MOST_STEPS].line, f"there are {len(drafts)} steps; {MOST_STEPS} at most")
        )
    steps = [_step(draft, faults) for draft in drafts]
    if faults:
        raise GuideError(sorted(faults))
    return Guide(
        title=head["title"],
        steps=tuple(steps),
        language=head["language"] or Guide.language,
        audience=head["for"],
        minutes=head.get("minutes", 0),
        learnt=head["learnt"],
    )


def _drafts(lines: list[str], first: int, faults: list[tuple[int, str]]) -> list[_Draft]:
    """The steps of a guide's body, whose first line has this number (from 0)."""
    drafts: list[_Draft] = []
    n_characters = 0  # characters of the step so far
    for node in SyntaxTreeNode(_blocks.parse("\n".join(lines[first:]))).children:
        assert node.map is not None
        line = first + node.map[0] + 1
        source = lines[first + node.map[0] : first + node.map[1]]
        if node.type == "heading" and node.tag == "h2":
            n_characters = 0
            drafts.append(_Draft(line, _words(source[0].lstrip("# ").strip(), line, faults)))
        elif not drafts:
            faults.append(
                (line, "this stands before the first step, which begins with a line `## Heading`")
            )
        elif node.type == "fence" and node.info.strip() == "step":
            if drafts[-1].block is not None:
                faults.append((line, "a step has one block, and this is its second"))
            drafts[-1].at = line
            drafts[-1].block = _fields(node.content, line, STEP, "a step", faults)
        else:
            words = "\n".join(source)
            n_characters += len(words)
            if n_characters > LONGEST_STEP:
                sentence = (
                    f"a step's sentences may have {LONGEST_STEP:,} characters; this step has more"
                )
                raise GuideError([*sorted(faults)[: MOST_FAULTS - 1], (line, sentence)])
            drafts[-1].texts[drafts[-1].block is not None].append(
                _words(words, line, faults, _REFUSED)
            )
    return drafts


# what stands inside of them is read step by step
_blocks = MarkdownIt("commonmark").disable("inline")
_markdown = MarkdownIt("commonmark")
_LINKS = {"image": "a picture", "link": "a link", "definition": "a link"}
_REFUSED = {"html_block": "HTML", "html_inline": "HTML"} | _LINKS


def _words(
    text: str, line: int, faults: list[tuple[int, str]], refused: Mapping[str, str] = _LINKS
) -> str:
    """A sentence of a guide, in which a screen makes no link of an address.

    What it may not hold is a fault: a guide is read as data, in rooms without a network.
    """
    where: dict[str, Any] = {}
    kinds = {node.type for node in SyntaxTreeNode(_markdown.parse(text, where)).walk()}
    if where.get("references"):
        kinds.add("definition")
    for what in dict.fromkeys(refused[kind] for kind in refused if kind in kinds):
        faults.append((line, f"{what} is not shown in a guide: say it in words"))
    return unlinked(text)


def _fields(
    text: str, line: int, kinds: Mapping[str, type], what: str, faults: list[tuple[int, str]]
) -> dict[str, Any]:
    """The YAML of a head, a step or a question: known names, each of its kind."""
    if len(text) > LONGEST_BLOCK:
        faults.append(
            (line, f"{what} may have {LONGEST_BLOCK:,} characters; this one has {len(text):,}")
        )
        return {}
    try:
        _check_plain(text)
        values = yaml.load(text, _Plain)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        faults.append(
            (line + 1 + (mark.line if mark else 0), f"{what} is no YAML: {_brief(error)}")
        )
        return {}
    return _checked(values, text, line, kinds, what, faults)


class _Plain(yaml.SafeLoader):
    """YAML whose values are texts, on and off, and numbers of few digits: none of them can be a burden."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def fetch_flow_collection_start(self, kind: Any) -> None:
        super().fetch_flow_collection_start(kind)
        # here: the scanner runs ahead, and each bracket costs their depth
        if self.flow_level > DEEPEST:
            raise yaml.YAMLError(TOO_DEEP)


for kind, pattern, begins in (
    ("bool", r"(?i:yes|no|true|false|on|off)$", "yYnNtTfFoO"),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,14})$", "-+0123456789"),
    ("float", r"[-+]?[0-9]{0,15}\.[0-9]{1,15}$", "-+.0123456789"),
    ("null", r"(?:~|(?i:null)|)$", ["~", "n", "N", ""]),
):
    _Plain.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), [*begins])


def _check_plain(text: str) -> None:
    """Raise YAMLError for what no guide needs, before anything is made of it: PyYAML takes a time that grows
    with the square of the depth, and its tags and aliases make much of little.
    """
    depth = 0
    for event in yaml.parse(text, _Plain):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("an alias (*name) is not read")
        if getattr(event, "tag", None) is not None:
            raise yaml.YAMLError("a tag (!name) is not read")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.YAMLError(TOO_DEEP)


def _checked(
    values: Any,
    text: str,
    line: int,
    kinds: Mapping[str, type],
    what: str,
    faults: list[tuple[int, str]],
) -> dict[str, Any]:
    if not isinstance(values, dict):
        faults.append((line, f"{what} is made of lines `name: value`"))
        return {}
    good = {}
    for name, value in values.items():
        line_of_name = (
            line
            + 1
            + next(
                (n for n, text_line in enumerate(text.split("\n")) if f"{name}:" in text_line), 0
            )
        )
        if name not in kinds:
            faults.append(
                (line_of_name, f"{what} has no {str(name)[:60]!r}; it has {', '.join(kinds)}")
            )
        elif not isinstance(value, kinds[name]) or isinstance(value, bool):
            faults.append(
                (
                    line_of_name,
                    f"{name} of {what} is {str(value)[:60]!r}; it must be {CALLED[kinds[name]]}",
                )
            )
        else:
            good[name] = value
    return good


def _brief(error: Exception) -> str:
    return str(getattr(error, "problem", None) or error).splitlines()[0][:200]


def _step(draft: _Draft, faults: list[tuple[int, str]]) -> Step:
    """Make a step from its draft; a missing `page` is a fault."""
    block = draft.block or {}
    if not block.get("page"):
        faults.append((draft.at or draft.line, f"the step {draft.heading[:60]!r} names no page"))
    text, after = ("\n\n".join(part).strip() for part in draft.texts)
    page = block.get("page", "")
    look = block.get("look", "")
    place, until = (_address(block.get(name, {}), draft.at, faults) for name in ("place", "until"))
    ask = None
    if "ask" in block:
        ask = _question(block["ask"], draft.at, faults)
    shows = tuple(map(str, block.get("shows", ())))
    return Step(draft.line, draft.heading, text, page, place, look, until, ask, after, shows)


def _address(values: dict[Any, Any], line: int, faults: list[tuple[int, str]]) -> Address:
    """Address parameters as texts; on and off are YAML's truths."""
    switch = {True: "on", False: "off"}
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            faults.append((line, f"{str(name)[:60]!r} of a place must be a name with one value"))
    return tuple(
        (str(name), switch[value] if isinstance(value, bool) else str(value))
        for name, value in values.items()
    )


def _hashable(value: Any) -> Any:
    if isinstance(value, str | int | float):
        return value
    return str(value)


def _question(values: dict[str, Any], line: int, faults: list[tuple[int, str]]) -> Question | None:
    asked = _checked(values, "", line, ASK, "a question", faults)
    missing = [name for name in ("kind", "question", "key") if not asked.get(name)]
    if missing:
        faults.append((line, f"the question has no {', '.join(missing)}"))
        return None
    if asked["kind"] not in KINDS:
        faults.append(
            (line, f"a question's kind is {asked['kind'][:60]!r}; it must be {', '.join(KINDS)}")
        )
    arguments = tuple(
        (str(name), _hashable(value)) for name, value in asked.get("with", {}).items()
    )
    between = _between(asked.get("between"), line, faults)
    question = _words(asked["question"], line, faults)
    options = tuple(_words(str(option), line, faults) for option in asked.get("options", ()))
    hints = tuple(_words(str(hint), line, faults) for hint in asked.get("hints", ()))
    return Question(asked["kind"], question, asked["key"], arguments, between, options, hints)


def _between(
    ends: list[Any] | None, line: int, faults: list[tuple[int, str]]
) -> tuple[int, int] | None:
    """The ends of a slider."""
    if ends is None:
        return None
    if len(ends) == 2 and all(type(end) is int for end in ends) and ends[0] < ends[1]:
        return ends[0], ends[1]
    faults.append(
        (line, f"between is {str(ends)[:60]}; it must be two whole numbers, the smaller first")
    )
    return None


def with_facts(step: Step, facts: Mapping[str, str]) -> Step:
    """The step with this run's numbers in its sentences."""
    ask = step.ask
    if ask is not None:
        hints = tuple(filled(hint, facts) for hint in ask.hints)
        ask = replace(ask, text=filled(ask.text, facts), hints=hints)
    return replace(step, text=filled(step.text, facts), ask=ask, after=filled(step.after, facts))


def filled(text: str, facts: Mapping[str, str]) -> str:
    """The text with each {name} replaced by its fact; a sentence with an unknown name is left out."""
    sentences = []
    for sentence in re.split(r"(?<=[.!?:])(?=\s)", text):
        for name, value in facts.items():
            sentence = sentence.replace(f"{{{name}}}", value)
        if not re.search(r"\{\w+\}", sentence):
            sentences.append(sentence)
    return "".join(sentences)
