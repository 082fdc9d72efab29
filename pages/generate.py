"""How a model writes: a random number draws each token; every step stays, and the text can fork."""

from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from gptviz.analysis import writing as numbers
from gptviz.analysis.next_token import losses
from gptviz.book import generate_text_simple
from gptviz.both import Both
from gptviz.engine.generate import end_of_text
from gptviz.engine.sampling import distribution, draw as draw_one
from gptviz.figures import candidates as figures, marks
from gptviz.tokenizer import named_bytes
from gptviz.ui import sheet, words
from gptviz.ui.components.branches import branch_tree
from gptviz.ui.components.draws import draws
from gptviz.ui.components.writing import writing
from gptviz.ui.parts.generate import beams, looked, loops, play, saves, surgery, written as texts
from gptviz.ui.parts.generate.tree import LONGEST, Tree
from gptviz.ui.shell import address
from gptviz.ui.shell.limits import limits
from gptviz.ui.shell.sampling import WRITTEN

QUESTIONS = {
    "looked": ("Where it looked", looked.draw),
    "cache": ("What the cache saves", saves.draw),
    "surgery": ("Edit the cache", surgery.draw),
    "loops": ("Loops", loops.draw),
    "beams": ("Beam search", beams.draw),
}
ASK: sheet.Param[str | None] = sheet.Param("ask", str, None, sheet.if_there)
PARAMS = (*play.PARAMS, ASK, *beams.PARAMS, *looked.PARAMS, *surgery.PARAMS, *loops.PARAMS)
SHOWN = 200  # characters of a branch's text

frame = sheet.start_page("Generate", choices=PARAMS)
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, keep=["final"])

if address.is_history_navigation():
    play.stop()  # the address wins
scene, left = play.fitting(scene)


@st.fragment
def stage() -> None:  # it may outlive the visit: it holds the scene, and looks up the rest
    address.run_the_page_if_asked_for()
    buttons = st.container()
    sentence = st.container()
    text = st.container()
    bar = st.container()
    settings = st.container()
    tree = play.tree_of(scene)
    play.agree_with_the_browser(tree)
    with settings:
        writer = play.writer(scene)
    writer.catch_up(text)
    written = writer.written(tree)
    sampling = writer.sampling
    if not written.goes_on:
        play.pause()
    playing = play.plays(tree)
    step = written.step or texts.step_after(written.run, sampling, written.chosen)
    how = "taken" if step.point is None else "drawn"
    if step.forced:
        how = "put by you"
    drawn = texts.drawing(written.run, sampling, step.id, how if written.step else "comes next")
    with sentence:
        say(written, step)
    with text:
        show_text(writer, tree, written, playing)
    with buttons:
        writer.buttons(written, playing)
    with bar:
        which = f"seed{sampling.seed}", f"step{written.chosen}"
        title = "How a token is drawn"
        had = texts.text_of(scene.lm, written.new[: written.chosen])
        if had:
            title += f", after “{had}” was written"
        draws(
            drawn.rows,
            drawn.segments,
            None if step.point is None else {"at": step.point, "text": words.fixed(step.point, 3)},
            writer.branch_off,
            rest=drawn.rest,
            can_branch=written.chosen < LONGEST,
            compared=(marks.UNCHANGED, marks.CHANGED) if scene.other else None,
            saved=scene.saved("generate", title, *which),
        )
        if writer.said:
            st.warning(writer.said)
    rule = (
        "Side by side, the probabilities fill a bar from 0 to 1. A random number lands somewhere on it, "
        f"and the token there joins the text. Seed {sampling.seed} gives the same numbers on every branch."
    )
    if sampling.greedy:
        rule = "At temperature 0, the most probable token joins the text."
    start = (
        "**What to look for.** One forward pass gives every token of the vocabulary a probability."
    )
    words.prose(f"{start} {rule}", "forward pass", "token", "vocabulary", "temperature")
    show_branches(writer, tree)
    st.markdown("#### Look closer")
    named = {name: label for name, (label, _) in QUESTIONS.items()}
    asked = ASK.choose("Look closer", named, st.segmented_control, label_visibility="collapsed")
    if asked is not None:
        QUESTIONS[asked][1](scene, written)
    show_details(writer, tree, written, drawn)


def say(written: texts.Written, step: numbers.WrittenStep) -> None:
    """Say what became of the chosen step."""
    lm = scene.lm
    sampling = written.sampling
    number = written.chosen
    count = len(written.steps)
    plain = written.run.plain
    same = Both(step)  # the same token, as each model gives it
    if scene.other is not None:
        same = Both(step, texts.step_after(plain, sampling, number, step.id))
    chance = same.map(lambda one: words.probability_text(one.probability)).arrow()
    own = same.map(lambda one: words.probability_text(one.model_probability)).arrow()
    point = figures.place_text(step.point or 0.0, step.stop - step.start)
    token = words.as_code(words.show_id(lm, step.id))
    width = f"That part is as wide as the token's probability, **{chance}**."
    said = ""
    if written.step is not None:
        said = f"**Token {number + 1} of {count}.** "
    if step.forced:
        said += f"You put {token} here. The model gave it {own}, rank {step.rank:,} of {lm.config.vocab_size:,}."
    elif step.point is None:
        said += f"At temperature 0 the most probable token is next: {token}. Its probability is **{own}**."
    elif written.step is None:
        said += f"The next random number, {point}, lands in {token}'s part of the bar, so {token} is next. {width}"
    else:
        said += f"The random number, {point}, landed in {token}'s part of the bar. {width}"
    if same.was is not None:
        would = texts.step_after(plain, sampling, number).id
        how = "the same number would have drawn"
        if sampling.greedy:
            how = "the model would have written"
        said += f" Before your change, {how} "
        if would == step.id:
            said += "it, too."
        else:
            said += f"{words.as_code(words.show_id(lm, would))}."
        said += f" The rank of {token} was then {same.was.rank:,}."
    words.prose(said, "token", "temperature")
    if written.ended and number + 1 == count:
        end = f"The text now contains {words.as_code(play.STOP.value)}, where you asked it to stop."
        st.markdown("The model ended its text here." if step.id == end_of_text(lm) else end)
    limits(scene.key, lm, "", written=count)
    if count == LONGEST:
        st.caption(
            f"A branch has at most {LONGEST} tokens. Use it as the text to go on from its end."
        )
    if slid := written.slid(number):
        if slid == 1:
            gone = "the first token"
        else:
            gone = f"the first {slid:,} tokens"
        st.info(
            f"**The context is full.** The model reads {written.context:,} tokens at most, so here it "
            f"no longer sees {gone}. All others move one position forward, and the model reads the "
            "whole window again."
        )
    if scene.position < len(scene.tokens) - 1:
        st.caption(
            f"The new text follows {words.Place(scene.label, scene.position)}, the selected token."
        )
    if left:
        edits = ", ".join(words.as_code(str(edit)) for edit in left)
        st.caption(f"Not applied here: {edits}, about tokens after the selected one.")


def show_text(writer: play.Writer, tree: Tree, written: texts.Written, playing: bool) -> None:
    """The prompt, and what was written after it."""
    lm = scene.lm
    tokens = []
    for step in written.steps:
        # at temperature 0 each was certain: the model's own says how sure it was
        if writer.sampling.greedy:
            p = step.model_probability
        else:
            p = step.probability
        shown = words.show_id(lm, step.id)
        exact = words.probability_text(p)
        if step.forced:
            had = f"You put {shown} here; its probability was"
        else:
            had = f"{shown} had probability"
        token = {"shown": shown, "id": step.id, "put": step.forced, "probability": p}
        if p == 0 or p >= 0.995:
            short = exact
        else:
            short = words.significant(p, 2)
        tokens.append(token | {"sentence": f"{had} {exact}", "p_text": short})
    writing(
        b"".join(token.raw for token in scene.tokens[: scene.position + 1]).decode(
            "utf-8", "replace"
        ),
        tokens,
        written.chosen,
        writer.go_to,
        raws=[named_bytes(lm.tokenizer, step.id) for step in written.steps],
        open_end=not written.ended and len(tokens) < LONGEST,
        delay=play.delay() if playing else None,
        on_turn=writer.turn,
        address={WRITTEN.name: str(tree)} if play.played(tree) else None,
    )
    if scene.other is None or not tokens:
        return
    new = written.new
    plain = writer.written(tree, plain=True).new
    if plain == new:
        st.markdown("Before your change, the model writes the same.")
        return
    same = [one == other for one, other in zip(new, plain, strict=False)]
    if False in same:
        first = same.index(False)
    else:
        first = len(same)
    text = words.as_code(words.show_token(b"".join(named_bytes(lm.tokenizer, i) for i in plain)))
    st.markdown(
        f"Before your change, the model writes another text from token {first + 1} on: {text}"
    )


def given_in_all(written: texts.Written) -> float | None:
    """ln of what the unchanged model gives all that was written; None where it is longer than a context."""
    if scene.other is None or len(written.ids) > written.context:
        return None
    nats = sheet.once(replace(written.base.plain, ids=written.ids), losses)["nats"]
    return -float(nats.iloc[len(written.base) :].sum())


def show_branches(writer: play.Writer, tree: Tree) -> None:
    """The tree; a click goes to a branch."""
    st.markdown("#### Branches")
    found = [writer.written(replace(tree, branch=i, step=None)) for i in range(len(tree.branches))]
    said = "Click a candidate that was not drawn, and the text forks there."
    if len(found) > 1:
        said = (
            f"{len(found)} branches of one text. ln p adds up the logarithms of the tokens' probabilities: "
            "the nearer to 0, the more probable the text. Perplexity tells the same per token."
        )
    words.prose(said, "perplexity")
    if not found[tree.branch].steps:
        return
    rows: list[dict[str, Any]] = []
    for branch, written in zip(tree.branches, found, strict=True):
        own = words.show_token(texts.text_of(scene.lm, written.new[branch.at :])[:SHOWN].encode())
        old = given_in_all(written)
        ln = texts.log_probability(written.steps)
        length = len(written.steps)
        per_token = texts.perplexity(ln, length)
        row: dict[str, Any] = {
            "parent": branch.parent,
            "at": min(branch.at, length),
            "length": length,
        }
        row |= {
            "text": own.replace("·", " ").strip() or "…",
            "log_probability": ln,
            "log_p": words.fixed(ln, 2),
        }
        row |= {
            "value": per_token,
            "perplexity": "" if per_token is None else words.significant(per_token),
        }
        if scene.other:
            row |= {"unchanged": "" if old is None else words.fixed(old, 2), "unchanged_value": old}
        rows.append(row)
    at = tree.chosen(len(found[tree.branch].steps))
    saved = f"seed{writer.sampling.seed}"
    picture = scene.saved("branches", "The branches of a text", saved)
    branch_tree(rows, tree.branch, at, writer.choose_branch, saved=picture)
    if scene.other and rows[tree.branch]["unchanged_value"] is None:
        st.caption(
            "The text is longer than the model reads at once, so ln p before your change is left out."
        )
    table = pd.DataFrame(rows)[["parent", "length", "log_probability", "value"]].reset_index()
    table = table.set_axis(["branch", "from", "tokens", "ln p", "perplexity"], axis=1)
    now = table.astype({"from": "Int64", "perplexity": float})
    was = None
    if scene.other:
        was = now.assign(**{"ln p": [row["unchanged_value"] for row in rows]})
    told = "ln p is summed over all tokens of a branch, as the model itself gives them."
    with sheet.details("the branches"):
        sheet.numbers_of("branches", Both(now, was), told, what="the branches")


def show_details(
    writer: play.Writer, tree: Tree, written: texts.Written, drawn: figures.Draw
) -> None:
    lm = scene.lm
    sampling = writer.sampling

    def steps() -> Both[pd.DataFrame]:
        table = numbers.table_of(lm, written.steps)
        if scene.other is None:
            return Both(table)
        old = [
            texts.step_after(written.read(i).plain, sampling, i, s.id)
            for i, s in enumerate(written.steps)
        ]
        return Both(table, numbers.table_of(lm, old).assign(by=table["by"], point=table["point"]))

    def candidates() -> Both[pd.DataFrame]:
        rows = pd.DataFrame([*drawn.rows, *([] if drawn.rest is None else [drawn.rest])])
        columns = ["rank", "id", "shown", "probability", "model_probability", "start", "stop"]
        table = rows.reindex(columns=columns).rename(columns={"shown": "token"})
        table = table.astype({"rank": "Int64", "id": "Int64"})
        return Both(table, table.assign(probability=rows["ghost"]) if scene.other else None)

    told = (
        "`probability`: what the token was drawn with. `model_probability`: the model's own. "
        "`point`: the random number, between `start` and `stop`."
    )
    with sheet.details():
        sheet.numbers_of("generate", steps, told, what="the text")
        told = "The candidates for the chosen token."
        if drawn.rest is not None:
            told += " The last row sums all others."
        sheet.numbers_of("generate_draw", candidates, told, what="the chosen token")
        put = tree.put(tree.branch)
        sheet.code_of(
            scene,
            [numbers.next_step, distribution, draw_one],
            numbers.write_on,
            texts.as_text(lm, written.base.ids),
            max(len(written.steps), 1),
            sampling,
            *([put] if put else []),
            run=lambda: numbers.next_step(texts.next_logits(written.run), sampling, 0.0),
        )
        if sampling.greedy and not put and not scene.run.edits:
            program = by_the_book(written)
            sheet.in_code(
                [generate_text_simple],
                program,
                "in_code_book",
                what="the same, in the book's words",
            )


def by_the_book(written: texts.Written) -> str:
    """Python that writes this text with the book's own function."""
    text = texts.as_text(scene.lm, written.base.ids)
    if isinstance(text, str):
        ids = f"lm.encode({text!r})"
    else:
        ids = repr(text)
    return f"""\
import torch

import gptviz
from gptviz.book import generate_text_simple

lm = {scene.load}
idx = torch.tensor([{ids}])
picture = generate_text_simple(
    model=lm.model,
    idx=idx,
    max_new_tokens={max(len(written.steps), 1)},
    context_size=lm.config.context_length,
)
print(lm.decode(picture[0].tolist()))
"""


stage()
