"""Two texts, two models, or one model before and after a change, side by side."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import KNOWN_MODELS, Edit, LanguageModel, Run
from gptviz.analysis import compare
from gptviz.analysis.attention import weights
from gptviz.both import Both
from gptviz.figures import maps, next_token as figures
from gptviz.figures.marks import window
from gptviz.figures.shares import share_grid
from gptviz.models.checkpoints.hub import HUB_MODELS
from gptviz.models.loading import on_disk
from gptviz.ui import runs, sheet, words
from gptviz.ui.components import matrix
from gptviz.ui.components.chips import chips
from gptviz.ui.heads import scaled
from gptviz.ui.models import choice as model_choice, in_use as models
from gptviz.ui.models.browsers import uploads
from gptviz.ui.runs import Keep
from gptviz.ui.shell import prompt as prompt_box, state
from gptviz.ui.shell.change_words import says

TEXT = "text"
MODEL = "model"
EDITS = "edits"
DIFFERS = {TEXT: "the text", MODEL: "the model", EDITS: "the changes"}
# the same model before and after training
TWINS = {
    "mini": "mini-untrained",
    "mini-untrained": "mini",
    "mini-world": "mini",
    "gpt2": "gpt2-untrained",
    "gpt2-untrained": "gpt2",
}
RANKED = 10  # of the heads that differ most, as buttons
LARGEST = 440  # pixels of a matrix's side
WINDOW = 256  # tokens of each that are drawn

VS: sheet.Param[str | None] = sheet.Param("vs", str, None, sheet.if_there)  # None: see below
VS_TEXT: sheet.Param[str | None] = sheet.Param("vs_text", str, None)
VS_MODEL: sheet.Param[str | None] = sheet.Param("vs_model", str, None)
VS_EDITS: sheet.Param[str | None] = sheet.Param("vs_edits", str, None)
VS_BLOCK: sheet.Param[int | None] = sheet.Param("vs_block", int, None, sheet.at_most_last)
VS_HEAD: sheet.Param[int | None] = sheet.Param("vs_head", int, None, sheet.at_most_last)
VS_ALL = sheet.Param("vs_all", bool, False)  # of long texts all heads, which takes a while


def keep_of(lm: LanguageModel, block: int | None) -> Keep:
    """The ends of every block, and the attention of one."""
    ends = ("resid_pre", ("resid_post", lm.config.n_layers - 1))
    if block is None:
        return ends
    return (("attn", block), *ends)


PARAMS = (VS, VS_TEXT, VS_MODEL, VS_EDITS, VS_BLOCK, VS_HEAD, VS_ALL)
frame = sheet.start_page("Compare", choices=PARAMS)
prompt = sheet.read_text(frame)
chosen_block = state.BLOCK.within(prompt.lm.config.n_layers)
scene = sheet.trace(prompt, keep=keep_of(prompt.lm, chosen_block))

lm = scene.lm

# ---- the right side ----


def without_beginning(text: str) -> str:
    """A text without its first sentence, or if it has one only, without its first word."""
    for pattern in (r"\A.*?[.!?。！？]\s*(?=\S)", r"\A\s*\S+\s+(?=\S)"):
        first = re.match(pattern, text, flags=re.DOTALL)
        if first:
            return text[first.end() :]
    return ""


def other_text() -> sheet.Scene | None:
    """Another text, read by the same model with the same changes."""
    shorter = without_beginning(scene.text)
    told = "If empty: your text without its first sentence, or without its first word."
    most = state.LINK_CHARACTERS
    empty = shorter or "type the other text"
    shown: Any = {"value": None, "placeholder": empty, "max_chars": most, "help": told}
    text = VS_TEXT.widget(st.text_input, "The other text", **shown)
    return read(scene.key, scene.plain_load, text or shorter, scene.run.edits)


def other_model() -> sheet.Scene | None:
    """The same text, read by another model: one that needs no download, or this browser's own."""
    ours = state.model()
    asked = VS_MODEL.value
    hub = [name for name in HUB_MODELS if on_disk(name) is not None]
    names = [
        *KNOWN_MODELS,
        *hub,
        *(f"{model_choice.UPLOAD}{upload.number}" for upload in uploads()),
    ]
    names = [name for name in names if name != ours.name]
    if asked is not None and asked not in names:
        if asked == ours.name or not model_choice.is_a_name(asked):
            VS_MODEL.set(None)
        else:
            names.append(asked)  # somebody else's file: a sentence says why not
    twin = TWINS.get(ours.name)
    first = twin if twin in names else names[0]
    called = {name: models.label_of(model_choice.Choice(name)) for name in names}
    name = VS_MODEL.choose(
        "The other model", called, st.selectbox, index=None, placeholder=called[first]
    )
    choice = ours.named(name or first)
    try:
        key, model = models.load(choice)
    except ValueError as error:
        st.warning(
            f"{words.escaped(models.label_of(choice))} cannot be compared: {words.escaped(str(error))}"
        )
        return None
    runs.use(key, model)
    return read(key, models.code_of(models.InUse(model, key, choice, choice, None)), scene.text, ())


def other_edits() -> sheet.Scene | None:
    """The same text and model with other changes, or without any."""
    told = (
        "Write them as in the address: `z.4.3=zero, mlp_out.2=mean`. The left side has the changes "
        "that you made."
    )
    typed = VS_EDITS.widget(
        st.text_input,
        "Changes on the right",
        value=None,
        placeholder="none: the unchanged model",
        help=told,
    )
    try:
        edits = [Edit.parse(part) for part in (typed or "").split(",") if part.strip()]
    except ValueError as error:
        st.warning(
            f"{words.capital(words.escaped(str(error)))}. Your text is kept; the right side is unchanged."
        )
        edits = []
    return read(scene.key, scene.plain_load, scene.text, edits)


def read(key: str, code: str, text: str, edits: Sequence[Edit]) -> sheet.Scene | None:
    """The right side as a scene of its own; None, with a sentence, where there is nothing to read."""
    model = runs.model(key)
    fit = []
    reading = prompt_box.read(model, text, scene.special)
    if reading.refusal or not reading.ids:
        st.warning(
            reading.refusal
            or "There is no text for the right side yet: type one into the box above."
        )
        return None
    if reading.notice:
        st.warning(f"On the right: {reading.notice}")
    for edit in edits:
        try:
            edit.check(model.config, len(reading.ids))
            fit.append(edit.of(model.config))
        except ValueError as error:
            said = words.escaped(says(edit, (), partial(words.show_id, model), model.config))
            st.warning(f"On the right “{said}” is left out: {words.escaped(str(error))}.")
    tokens = tuple(model.tokens(reading.ids))
    run = Run(key, tuple(reading.ids), tuple(fit))
    return replace(scene, key=key, plain_load=code, run=run, other=None, text=text, tokens=tokens)


def changes_of(side: sheet.Scene) -> str:
    """What is changed in a side's model, in words; "" where nothing is."""
    lm = side.lm
    show = partial(words.show_id, lm)
    return ", ".join(says(edit, (), show, lm.config) for edit in side.run.edits)


# Where nobody chose, a changed model stands beside the unchanged one. What an address says of another model
# or text is a choice, too: so it was before there were changes.
others_named = any(param.value is not None for param in (VS_TEXT, VS_MODEL, VS_BLOCK, VS_HEAD))
kind = VS.within(DIFFERS) or (MODEL if scene.other is None or others_named else EDITS)
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="compare_sides"):
    st.session_state["compare_differs"] = kind
    st.segmented_control(
        "On the right, change",
        key="compare_differs",
        options=list(DIFFERS),
        format_func=DIFFERS.__getitem__,
        required=True,
        on_change=lambda: VS.set(st.session_state["compare_differs"]),
        wrap=True,
    )
    right = {TEXT: other_text, MODEL: other_model, EDITS: other_edits}[kind]()
if right is None:
    sheet.end_page()
their_lm = right.lm
their_run = right.run
pairs = compare.align(scene.tokens, right.tokens, one_text=kind != TEXT)
if not pairs:
    st.info(
        "No token ends at the same place on both sides, so there is nothing to compare. Shorten the "
        "text, or choose another model."
    )
    sheet.end_page()
chosen = pairs.nearest(scene.position)
left_at, right_at = pairs.pairs[chosen]
left = replace(scene, position=left_at)
right = replace(right, position=right_at)
sides = left, right
right.get(keep_of(their_lm, None))  # here, so that one pass gives all that is compared
left_changes = changes_of(left)
right_changes = changes_of(right)
if kind == MODEL:
    left_name = lm.name
    right_name = their_lm.name
    if left_changes:
        left_name = f"{lm.name} (changed)"
elif kind == EDITS:
    left_name = left_changes or "unchanged"
    right_name = right_changes or "unchanged"
else:
    left_name = "your text"
    right_name = "the other text"
    if left_changes:
        left_name = "your text (model changed)"
    if right_changes:
        right_name = "the other text (model changed)"
names = (left_name, right_name)


def pick_right(query: int | None, key: int | None = None) -> None:
    """Select the left token that a position of the right side belongs to."""
    position = key if query is None else query
    scene.select(next((i for i, j in pairs.pairs if j >= (position or 0)), pairs.left[-1]))


if [token.raw for token in scene.tokens] != [token.raw for token in right.tokens]:
    st.caption(f"On the right, {words.escaped(right_name)}:")
    chips(right.tokens, right_at, pick_right, key="chips_right")
if scene.run == right.run:
    st.info(
        "Both sides are the same pass, so there is nothing to compare. Change something on the left "
        "(switch off a head, for example), or choose another right side above."
    )

# ---- one head of each side: the one that differs most, unless another is chosen ----

sentence = st.container()
pictures = st.container()
with pictures:
    halves = st.columns(2, gap="medium")
difference_half, heads_half = st.columns(2, gap="medium")

ours = lm.config
other = their_lm.config
one_shape = (ours.n_layers, ours.n_heads, ours.emb_dim) == (
    other.n_layers,
    other.n_heads,
    other.emb_dim,
)


apart: NDArray[np.float64] | None = None
with heads_half:
    if not one_shape:
        our_shape = f"{ours.n_layers} × {ours.n_heads} heads and {ours.emb_dim} numbers per token"
        their_shape = (
            f"{other.n_layers} × {other.n_heads} heads and {other.emb_dim} numbers per token"
        )
        st.markdown(
            f"{words.escaped(lm.name)} has {our_shape}, {words.escaped(their_lm.name)} "
            f"{their_shape}, so their heads do not correspond. Compare their predictions below, and "
            "any head of one with any head of the other."
        )
    elif len(pairs) < 2:
        st.markdown(
            "The two sides share only one place, so there are no patterns yet. Add a word to the text."
        )
    elif not VS_ALL.value and sheet.is_asked_for(lm, len(scene.run), 2):
        # every block once more, on both sides
        sheet.button("Compare all heads", "compare_all", VS_ALL.set, True)
    else:
        apart = sheet.compared(scene.run, their_run, compare.heads_apart, pairs).numpy()
differs = ""
if apart is None:
    most = (0, 0)
    differs = "Choose a head of each side below."
else:
    most = divmod(int(apart.argmax()), ours.n_heads)
head_at = sheet.opened_head(ours, lambda: most)
if apart is not None:
    columns = [f"head {h}" for h in range(ours.n_heads)]
    blocks, heads_of = np.indices(apart.shape).reshape(2, -1)
    ranking = pd.DataFrame({"block": blocks, "head": heads_of, "elsewhere": apart.ravel()})
    ranking = ranking.sort_values("elsewhere", ascending=False, kind="stable", ignore_index=True)
    with heads_half:
        fig = share_grid(apart, columns, head_at, "elsewhere is", scene.mode, signed=False)
        alt = f"How much of each head's attention goes elsewhere: {left_name} and {right_name}"
        scene.chart(fig, key="compare_heads", alt=alt, on_cell=state.open_head)
        first = ranking[ranking["elsewhere"] >= compare.ROUNDING][:RANKED]
        if len(first):
            st.caption("Click a head to inspect it. These differ most:")
        with st.container(horizontal=True, gap="xsmall", key="compare_ranked"):
            for row in first.itertuples():
                place = int(row.block), int(row.head)
                label = f"{row.block}·{row.head} {words.significant(row.elsewhere, 2)}"
                sheet.button(
                    label,
                    f"compare_rank_{row.Index}",
                    state.open_head,
                    *place,
                    primary=place == head_at,
                )
        if kind == MODEL:
            st.caption(
                f"Heads with the same number in {words.escaped(lm.name)} and "
                f"{words.escaped(their_lm.name)} correspond only if one model was trained further "
                "from the other."
            )
    same = int((apart < compare.ROUNDING).sum())
    largest = float(apart.max())
    if same < apart.size:
        alike = int((apart > apart.max() - compare.ROUNDING).sum())
        whose = "its" if alike == 1 else "their"
        how = f": {words.percent(largest)} of {whose} attention goes to other tokens"
        if any(scaled(side.run, *most) for side in sides):
            how = (
                f", by {words.significant(largest, 2)}: a change scales {whose} weights, so this is "
                "what a row gained or lost"
            )
        who = f"{alike} heads differ"
        if alike == 1:
            most_block, most_head = most
            who = f"Block {most_block}, head {most_head} differs"
        differs = f"{who} most{how}."
    if same:
        if same == apart.size:
            count = "All"
        else:
            count = f"{same} of {apart.size}"
        differs += f" {count} heads look at the same places on both sides."
with sentence:
    words.prose(differs.strip(), "head", "block")
# ---- one head of each ----

with (
    heads_half,
    st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="compare_head"),
):
    sheet.block_and_head_inputs(ours, *head_at)
    our_block, our_head = head_at
    their_head = min(our_block, other.n_layers - 1), min(our_head, other.n_heads - 1)
    if kind == MODEL:
        their_head = sheet.block_and_head_inputs(
            other, *their_head, (VS_BLOCK, VS_HEAD), " on the right"
        )
heads = head_at, their_head
patterns = [sheet.once(side.run, weights, *place) for side, place in zip(sides, heads, strict=True)]
called = [f"Block {b}, head {h}" for b, h in heads]
for number, (side, (b, h), pick) in enumerate(
    zip(sides, heads, (scene.pick, pick_right), strict=True)
):
    seen = window(side.position, len(side.tokens), WINDOW)
    word = ("left", "right")[number]
    with halves[number]:
        title = f"{called[number]}: {names[number]}"
        st.markdown(f"**{called[number]}** · {words.escaped(names[number])}")
        matrix.matrix(
            f"compare_{word}",
            [matrix.attention_panel()],
            {"weights": patterns[number][seen, seen].numpy()},
            side.labels[seen],
            side.position,
            None,
            pick,
            first=seen.start,
            largest=LARGEST,
            saved=side.saved("compare_attention", title, word, f"block{b}", f"head{h}"),
        )
left_head, right_head = called
minus = f"{right_head} of {right_name} minus {left_head[:1].lower()}{left_head[1:]} of {left_name}"
left_pattern, right_pattern = patterns
mine = compare.grouped(left_pattern[None], pairs.left)[0]
theirs = compare.grouped(right_pattern[None], pairs.right)[0]
difference = (theirs - mine).float().numpy()
seen = window(chosen, len(pairs), WINDOW)
limit = float(np.abs(difference).max()) or 1.0
with difference_half:
    st.markdown("**Right minus left**, at the paired tokens")
    panel = matrix.attention_panel(
        "Right minus left", "{query} gives {key} {value} more on the right"
    )
    matrix.matrix(
        "compare_difference",
        [replace(panel, scale="signed", low=-limit, high=limit, digits="number")],
        {"weights": difference[seen, seen]},
        [scene.labels[i] for i in pairs.left[seen]],
        chosen,
        None,
        lambda query, key: None if query is None else scene.select(pairs.left[query]),
        first=seen.start,
        positions=pairs.left[seen],
        largest=LARGEST,
        saved=scene.saved("compare_attention", minus, "difference"),
    )

paired = "Each pair is a place where both sides have read the same part of the text."
if kind == TEXT:
    paired = "We pair the tokens of the two texts from their ends."
st.markdown(
    f"{paired} The number of a head is the share of its attention that goes elsewhere on the other "
    "side, averaged over all pairs but the first: 0 means the same pattern, 1 nothing in common."
)

# ---- what each expects next ----

sheet.end_unless_near("expected")
st.subheader("What does each side expect next?", anchor=False)
sentence = st.container()
nexts = sheet.compared(scene.run, their_run, compare.expected, left_at, right_at)
shown = []
for row in nexts.itertuples():
    if pd.notna(row.left):
        shown.append(words.show_id(lm, int(row.left_id)))
    else:  # a token that the left vocabulary does not have
        shown.append(words.show_id(their_lm, int(row.right_id)))
probabilities = nexts[["left", "right"]].to_numpy(float)  # (n, 2)
scene.chart(
    figures.back_to_back(shown, probabilities[:, 0], probabilities[:, 1], names, scene.mode),
    key="compare_next",
    alt=f"What comes next: {left_name} on the left, {right_name} on the right",
)
best = np.nanargmax(probabilities, axis=0)  # the row of each side's first choice
p = [words.percent(probabilities[row, side]) for side, row in enumerate(best)]
called = [f"**{words.escaped(name)}**" for name in names]  # the sides, in a sentence
in_short = [words.escaped(name) for name in names]
if kind == EDITS:
    if bool(left_changes) == bool(right_changes):
        in_short = ["left", "right"]
        called = ["the left side", "the right side"]
    else:
        in_short = [
            "changed" if changes else "unchanged" for changes in (left_changes, right_changes)
        ]
        called = [f"the {name} model" for name in in_short]
here = words.Place(left.label, left.position)
there = words.Place(right.label, right.position)
after = f"After {words.as_code(left.label)}"
if left.label != right.label:
    after = f"After {words.as_code(left.label)} and {words.as_code(right.label)}"
if best[0] == best[1]:
    summary = f"{after}, both sides predict {words.as_code(shown[best[0]])}."
    if kind == EDITS and left_changes and not right_changes:
        summary += f" Your change: **{p[1]} → {p[0]}**."
    else:
        summary += f" Its probability is {p[0]} on the left and {p[1]} on the right."
else:
    verb = "predicts"
    if kind == TEXT:
        verb = "leads to"
    phrases = [
        f"{name} {verb} {words.as_code(shown[row])}" for name, row in zip(called, best, strict=True)
    ]
    summary = f"{after}, {phrases[0]}; {phrases[1]}."
    summary += f" Their probabilities are {p[0]} (left) and {p[1]} (right)."
if str(here) != str(there):
    summary += f" We compare {here} with {there} on the right."
if left_at != scene.position:
    lonely = words.Place(scene.label, scene.position)
    which = "previous"
    if left_at > scene.position:
        which = "next"
    summary += f" {lonely} has no partner on the right, so this is the {which} pair."
if "kl_bits_left_right" in nexts:
    # from what holds: the left side, but beside a changed model the unchanged one, as in the strip
    back = kind == EDITS and not right.run.edits
    if back:
        bits = nexts["kl_bits_right_left"][0]
        holds, other_name = in_short[::-1]
    else:
        bits = nexts["kl_bits_left_right"][0]
        holds, other_name = in_short
    summary += (
        f" The KL divergence between the two predictions is {words.significant(bits)} bits, "
        f"KL({holds} ‖ {other_name})."
    )
else:
    summary += " The two vocabularies differ, so there is no KL divergence."
with sentence:
    # a change's name may begin with one
    words.prose(summary, "KL divergence")

# ---- the residual streams ----

sheet.end_unless_near("heads_compared")
if one_shape:
    st.subheader("How far apart are the residual streams?", anchor=False)
    # (L + 1, P)
    distances = sheet.compared(scene.run, their_run, compare.streams_apart, pairs).numpy()
    few = maps.Map(
        "", Both(distances), "share", "1 − cosine", (0.0, max(float(distances.max()), 1e-6))
    )
    depths = [*(f"before block {b}" for b in range(ours.n_layers)), "at the end"]
    tokens = [(scene.labels[i], right.labels[j]) for i, j in pairs.pairs]
    shown = [a if a == b else f"{a} | {b}" for a, b in tokens]
    fig = maps.maps([few], depths, shown, (ours.n_layers, chosen), scene.mode, positions=pairs.left)
    alt = f"How far apart the residual streams are: {left_name} and {right_name}"
    scene.chart(
        fig, key="compare_streams", alt=alt, on_cell=lambda _, pair: scene.select(pairs.left[pair])
    )
    text = (
        "Each cell is 1 minus the cosine of the two residual streams: 0 means the same direction, 1 a "
        "right angle. Read from top to bottom: where does a difference begin, and how far does it "
        "spread to the right?"
    )
    words.prose(text, "residual stream", "cosine")

# ---- details ----

caption = (
    "Both sides' most probable next tokens. Empty: this vocabulary does not have the token. Ranks "
    "count from 1, over the whole vocabulary."
)
many = partial(sheet.compared, scene.run, their_run, compare.expected, left_at, right_at, 50)
with sheet.details():
    sheet.numbers_of("compare-next", many, caption, "what comes next")
    if apart is not None:
        sheet.numbers_of("compare-heads", ranking, what="the heads")
    if one_shape:
        by_depth = {
            "before_block": np.repeat(np.arange(len(depths)), len(pairs)),
            "left_position": pairs.left * len(depths),
            "right_position": pairs.right * len(depths),
            "left_token": [scene.labels[i] for i in pairs.left] * len(depths),
            "right_token": [right.labels[i] for i in pairs.right] * len(depths),
            "one_minus_cosine": distances.ravel(),
        }
        sheet.numbers_of("compare-streams", pd.DataFrame(by_depth), what="the streams")
    sheet.code_of(
        replace(scene, other=None),
        ["model", compare.block_apart, compare.streams_apart],
        compare.side_by_side,
        text=scene.text,
        other=sheet.Code(right.load),
        position=left_at,
        other_text=right.text if kind == TEXT else None,
        special_tokens=scene.special,
    )
