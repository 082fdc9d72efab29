"""The texts over which a page takes means: a ready-made set, the sentences of a template with lists, or a file.

A link carries all but the file. Each text is asked for its own answer. A line of a file that names none is asked
for the bar's, if somebody chose that, else for what the model says first.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis import templates
from gptviz.analysis.names import groups_of, order_of
from gptviz.analysis.other_texts import COMES_AGAIN, with_others_of
from gptviz.analysis.prompts import Prompt, left_out
from gptviz.analysis.ready_made import KINDS, ready_made
from gptviz.engine.kinds import Model
from gptviz.ui.buttons import button
from gptviz.ui.models.budget import still_here
from gptviz.ui.sheet import Param, Scene, if_there
from gptviz.ui.shell import target
from gptviz.ui.shell.bench import Question
from gptviz.ui.words import as_code, capital, counted, escaped, prose

NAMES = "names"
FILE = "file"
TEMPLATE = "template"


def at_most(text: str, length: int) -> str:
    """The beginning of a text: an address may hold a longer one than anybody can type."""
    return text[:length]


SET: Param[str | None] = Param("many", str, None, if_there)
SENTENCE: Param[str] = Param("many_template", str, templates.EXAMPLE, at_most)
LISTS: Param[str] = Param("many_lists", str, templates.EXAMPLE_LISTS, at_most)
PARAMS = (SET, SENTENCE, LISTS)

MOST = 200  # texts of a file
LONGEST = templates.LONGEST_SENTENCE  # characters of one
LARGEST = 1  # MB of a file
SHOWN = 200  # characters of an example
# in the session
LINES = "gptviz_many_lines"  # the file's
BOX = "many_file"

Left = list[tuple[str, str]]  # texts that are left out, and why

READY = {
    NAMES: ("Names", "Who receives something? The indirect object task of Wang et al., 2022"),
    "copied": ("A copied word", "A passage comes again: the word that followed it is copied"),
    "pronoun": ("A pronoun", "He or she, him or her: the person decides"),
    "fact": ("A fact", "The capital of a country, the opposite of a word"),
    "sequence": ("A sequence", "Numbers, letters, weekdays: what comes next?"),
}


def choose(
    scene: Scene, explained: Question, pairs: bool, others: str, abc: bool
) -> tuple[list[Prompt], Left]:
    """Draw the choice of the set; return the texts that can be read, and why others cannot.

    `others` is the kind of the other texts of sentences with two names. With `abc` these are not told of.
    """
    prompts, unreadable = _chosen(scene, explained, pairs, others, abc)
    if explained.is_chosen:
        prompts = [_asked_by(explained, prompt) for prompt in prompts]
    if SET.value == FILE:
        prompts = [_in_order(scene.lm, prompt) for prompt in prompts]
    return prompts, unreadable


def request() -> tuple[Any, ...]:
    """What tells the set that is chosen from any other."""
    if SET.value == FILE:
        return (st.session_state.get(LINES),)
    if SET.value == TEMPLATE:
        return (SET.value, SENTENCE.value, LISTS.value)
    return (SET.value,)


def _chosen(
    scene: Scene, explained: Question, pairs: bool, others: str, abc: bool
) -> tuple[list[Prompt], Left]:
    """The same with each text as it stands in its set."""
    lm = scene.lm
    SET.within((*KINDS, TEMPLATE, FILE))
    line = "one text per line"
    if pairs:
        line = "one pair per line, with a tab between the two texts"
    text = "One text proves little. Test many, and see a mean and how certain it is: "
    prose(f"{text}take ready-made sentences, write a template with lists, or upload a file.")
    if pairs:
        st.caption(
            "The two texts of a pair need the same number of tokens; different pairs may differ in length. We "
            "patch a head at all positions, and anything else at the last token, where the answer is read. Other "
            "positions cannot be averaged over texts of different lengths; of sentences with two names, those "
            "with a role can."
        )
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="gv_many_sets"
    ):
        st.caption("Test on:", width="content")
        for kind in KINDS:
            label, hint = READY[kind]
            chosen = SET.value == kind
            take = None if chosen else kind
            button(label, f"many_{kind}", SET.set, take, primary=chosen, help=hint)
        chosen = SET.value == TEMPLATE
        take = None if chosen else TEMPLATE
        hint = "A sentence with names in braces, and a list of words for each: up to 100 sentences"
        button("A template", "many_of_template", SET.set, take, primary=chosen, help=hint)
        own = templates.like(scene.text)
        if own is not None:
            hint = "Makes a template of your text: other names, other places and things"
            button("100 like yours", "many_like", _take_template, *own, help=hint)
    help = "You can add, each after a tab: a second text, the token to measure, and the token to compare "
    help += "it with. Without a token, the answer of the bar is measured if you chose it, else the model's first "
    help += "choice."
    label = f"A file with {line}"
    options: Any = {"help": help, "max_upload_size": LARGEST, "width": 420}
    st.file_uploader(label, "txt", key=BOX, on_change=_opened, **options)
    if SET.value == TEMPLATE:
        return _of_template(lm, explained, others, abc), []
    if SET.value in KINDS:
        prompts = ready_made(lm, SET.value)
        if SET.value == NAMES and others != COMES_AGAIN:  # as they are made
            prompts = with_others_of(lm, prompts, others)
        caption = f"Too few of the words are single tokens of {escaped(lm.name)}, so there are no sentences."
        if prompts:
            caption = _for_example(prompts[0], "Each sentence has its own answer", explained, abc)
            if SET.value == NAMES and not abc:
                caption += f" So it is in each text’s own: {others}."
            caption += _why_in_pairs(lm, prompts)
        too_long = left_out(lm) if SET.value == NAMES else {}
        if too_long:
            tokens_of_words = [f"{word} ({count})" for word, count in too_long.items()]
            listed = ", ".join(tokens_of_words[:6])
            if len(tokens_of_words) > 6:
                listed += " …"
            caption += f" Left out, because this model splits them into several tokens: {listed}."
        st.caption(caption)
        return prompts, []
    if SET.value == FILE:
        lines = st.session_state.get(LINES)
    else:
        lines = ()
    if lines is None or isinstance(lines, str):
        st.warning(lines or "A link cannot contain a file. Upload the file here.")
        return [], []
    read_lines = [(line, _read(lm, line, pairs)) for line in lines]
    read_prompts = [prompt for _, prompt in read_lines if isinstance(prompt, Prompt)]
    if read_prompts:
        st.caption(_of_file(read_prompts, explained))
    return (
        read_prompts,
        [(line, why) for line, why in read_lines if isinstance(why, str)],
    )


def groups_in(lm: LanguageModel, prompts: Sequence[Prompt]) -> list[int]:
    """The group of each prompt: two with their words exchanged are of one (`groups_of`)."""
    return groups_of(lm, [one.text for one in prompts], [one.target for one in prompts])


def _why_in_pairs(lm: LanguageModel, prompts: Sequence[Prompt]) -> str:
    """A sentence with a blank before it about a set all of whose sentences stand in pairs; "" for any other."""
    if 2 * len(set(groups_in(lm, prompts))) != len(prompts):
        return ""
    word = "word"
    if all(prompt.order for prompt in prompts):
        word = "name"
    return (
        f" Every second sentence has the two {word}s exchanged, so that a {word} the model likes to say does not "
        "count."
    )


def _for_example(prompt: Prompt, about: str, explained: Question, abc: bool) -> str:
    """A sentence about what is measured in the set, and whose the bar's answer is; a prompt and its other text.

    In ABC means, which sentences with two names have, the other text plays no part.
    """
    token, against = (as_code(str(word).replace(" ", "·")) for word in prompt.target)
    told = (
        f"{about}; the bar’s, {as_code(explained.shown)}, is that of the text above alone. For example "
        f"{as_code(beginning(prompt.text, SHOWN))}: {token}, instead of {against}."
    )
    if abc and prompt.order:
        return told
    return f"{told} The other text: {as_code(beginning(prompt.other or '', SHOWN))}."


def _of_file(prompts: Sequence[Prompt], explained: Question) -> str:
    """A sentence about what is measured in the lines of a file."""
    measured_there = "the model’s first choice is measured, or an answer that you choose in the bar"
    if explained.is_chosen:
        pair = f"{as_code(explained.shown)} against {target.OF_ALL}"
        if explained.against_shown is not None:
            pair = f"{as_code(explained.shown)} instead of {as_code(explained.against_shown)}"
        measured_there = f"the bar’s is measured, {pair}"
    own = sum(prompt.token is not None for prompt in prompts)
    if own == len(prompts):
        return "Each line names its own answer, which is measured."
    if own:
        return (
            f"{own} of {len(prompts)} lines have their own answer; in the others {measured_there}."
        )
    return f"No line names its answer: {measured_there}."


def _asked_by(explained: Question, prompt: Prompt) -> Prompt:
    """The prompt, asked for the bar's answer if it has none."""
    if prompt.token is not None:
        return prompt
    return replace(prompt, token=explained.token, against=explained.against)


def _in_order(lm: LanguageModel, prompt: Prompt) -> Prompt:
    """The prompt of a file's line with the order of its two names, where both are asked for."""
    if not isinstance(prompt.token, int) or not isinstance(prompt.against, int):
        return prompt
    words = (lm.decode([word]) for word in (prompt.token, prompt.against))
    return replace(prompt, order=order_of(prompt.text, *words))


def _of_template(lm: LanguageModel, explained: Question, kind: str, abc: bool) -> list[Prompt]:
    """Draw the boxes of the template and its lists; return its sentences, or say what is wrong.

    `kind` and `abc` are as `_choose` has them.
    """
    for param in (SENTENCE, LISTS):
        param.within(templates.LONGEST)
    options: dict[str, Any] = {"max_chars": templates.LONGEST}
    help = "The answer is what stands for {A}; instead of it might be said what stands for {B}. The other text is of "
    help += "the same kind as that of your text: as long as nobody chose on Patching, {A} comes again for the last {B}."
    SENTENCE.widget(st.text_input, "Template, with names in braces", help=help, **options)
    help = "A list for each name; names that share one never have the same word. A new line is as good as ;"
    LISTS.widget(st.text_area, "Lists: A, B: Tom, Anna; place: garden, park", help=help, **options)
    try:
        found = _filled(lm, SENTENCE.value, LISTS.value, kind)
    except ValueError as error:
        st.warning(f"{capital(escaped(str(error)))}.")
        return []
    captions = [f"{counted(len(found.prompts), 'sentence')}."]
    if found.prompts:
        about = "The answer of each sentence is its {A}, instead of its {B}"
        captions.append(
            _for_example(found.prompts[0], about, explained, abc) + _why_in_pairs(lm, found.prompts)
        )
    if found.left_out:
        reasons = [
            f"{as_code(beginning(text, 40))} ({escaped(why)})" for text, why in found.left_out[:3]
        ]
        more = len(found.left_out) - len(reasons)
        if more:
            reasons.append(f"and {more} more")
        captions.append(f"Left out: {', '.join(reasons)}.")
    st.caption(" ".join(captions))
    return found.prompts


# of each model the template that was filled last: a page is drawn anew at each click
_known: WeakKeyDictionary[Model, tuple[tuple[str, ...], templates.Filled]] = WeakKeyDictionary()


def _filled(lm: LanguageModel, template: str, lists: str, kind: str) -> templates.Filled:
    """The sentences of a template. Raises ValueError as `templates.filled` does."""
    asked = (lm.name, template, lists, kind)
    known = _known.get(lm.model)
    if known is not None and known[0] == asked:
        return known[1]
    found = templates.filled(lm, template, templates.read_lists(lists), other=kind)
    _known[lm.model] = asked, found
    return found


def _take_template(template: str, lists: str) -> None:
    """Callback: the set is this template's."""
    SENTENCE.set(template)
    LISTS.set(lists)
    SET.set(TEMPLATE)


def _read(lm: LanguageModel, line: str, pairs: bool) -> Prompt | str:
    """Read a line of a file; return a sentence if it cannot be read."""
    if len(line) > LONGEST:
        return f"it has {len(line):,} characters; at most {LONGEST:,} are allowed"
    text, other, *words = [*line.split("\t"), *[""] * 3][:4]
    if pairs and not other:
        return "it has no second text: write one after a tab"
    tokens = [target.find_token(lm, word) if word else None for word in words]
    unknown = [word for word, token in zip(words, tokens, strict=True) if word and token is None]
    if unknown:
        return f"{unknown[0]!r} is not a single token of {lm.name}"
    return Prompt(text, tokens[0], tokens[1], other or None)


def _opened() -> None:
    """Callback: keep the lines of the file that was opened, or why there are none."""
    uploads = still_here(BOX)
    SET.set(FILE if uploads else None)
    if not uploads:
        return
    content = uploads[0].getvalue()[: 2**20 * LARGEST + 1]
    if len(content) > 2**20 * LARGEST:  # a browser refuses it before; not every visitor is one
        st.session_state[LINES] = (
            f"This file is larger than {LARGEST} MB. Upload one with fewer texts."
        )
        return
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        st.session_state[LINES] = (
            "This file is not UTF-8 text. Save it as UTF-8 and upload it again."
        )
        return
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > MOST:
        st.toast(f"This file has {len(lines):,} texts. Only the first {MOST} are used.")
    st.session_state[LINES] = (
        tuple(lines[:MOST]) or "This file contains no text. Write one text per line."
    )


def beginning(text: str, length: int) -> str:
    """A text, or its beginning and an ellipsis if it has more characters than this."""
    if len(text) <= length:
        return text
    return f"{text[:length]}…"
