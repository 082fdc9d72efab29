"""Every head: what it does on this text and in general, and whether its label holds."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Edit
from gptviz.analysis import head_formulas as formulas, head_general, head_roles, head_trial
from gptviz.analysis.ablation import MutedPart
from gptviz.analysis.head_scores import HeadScores
from gptviz.analysis.head_trial import Trial, trial as hold
from gptviz.both import Both
from gptviz.figures import heads as figures, marks
from gptviz.ui import heads, sheet, words
from gptviz.ui.parts.heads import looking, trial, written
from gptviz.ui.parts.heads.waiting import wait_for
from gptviz.ui.shell import bench, change_menu, state
from gptviz.ui.shell.examples import examples

HERE = "here_"  # before the name of what is measured on this text
TITLES = {name: measure.title for name, measure in head_general.MEASURES.items()}
TITLES |= {
    HERE + name: f"{TITLES.get(name, 'tokens looked at').partition(':')[0]}: this text"
    for name in (*formulas.SHARES, "spread", "write")
}
ACROSS = sheet.Param("across", str, "previous", sheet.if_there)
UP = sheet.Param("up", str, "induction", sheet.if_there)
UNSHOWN = " (not here)"
# what the field calls a role, where the screen has a shorter word
IN_PAPERS = {
    "induction": "induction head",
    "copies": "duplicate-token head",
    "previous": "previous-token head",
    "first": "attention sink",
}
WORTH_SAYING = 0.1  # of a head's attention, at rest on the first token

frame = sheet.start_page(
    "What each head does",
    choices=[*bench.PARAMS, ACROSS, UP, sheet.guess_first.GUESS, trial.CLAIM, *looking.PARAMS],
)
prompt = sheet.read_text(frame)
sites = sheet.head_sites(state.BLOCK.within(prompt.lm.config.n_layers))
scene = sheet.trace(prompt, keep=sites, reduce=sheet.head_reductions(prompt), strip=False)

lm = scene.lm
plain = scene.run.plain
explained = bench.bar(scene)
if explained.baseline == "sample":
    sheet.read_sample(scene.run, "heads_sample_stop", partial(bench.BASELINE.set, None))
above = st.container()
left, right = st.columns([5, 3], gap="medium")
with left:
    sheet_of_text = st.container()
    block, head = sheet.head_controls(scene)
with right:
    story = st.container()
find = partial(heads.general_job, plain)
reads = "What every head does in general, texts read"
stopped = "Stopped. What you see is about this text only."
general = wait_for("heads_general", find, reads, stopped)
runs = Both(scene.run, scene.other)
here = runs.map(heads.measured)
table = runs.map(heads.role_table)
mine = here.map(lambda found: found.roles[block][head])
if general is None:
    labels = {}
    usual = None
else:
    labels = {(r.block, r.head): r.role for r in general.table.itertuples()}
    usual = general.row(block, head)
tried = heads.known_trials_of(plain, trial.claims(labels))  # nothing is worked out
askable = HeadScores.of(scene.tokens).targets.rows
hidden = [role for role in formulas.SHARES if not askable[role]]  # what this text cannot show


def verdict_on(block: int, head: int, role: str) -> str:
    """The verdict of a head's trial on this label ("holds", "withdrawn"); "" without a trial."""
    held = tried.get((block, head))
    if held is not None and held.label == role:
        return held.verdict
    return ""


def percent_of(share: float | None) -> str:
    """A share as it is said; "" where a role has none."""
    if share is None or math.isnan(share):
        return ""
    return words.percent(share)


# a tensor that had a name here would be held by the session, whose widgets call functions of this script
looks = scene.get(sheet.head_sites(block), scene.reduce)["attn", block][
    head, scene.position
].tolist()
scene.strip(weights=[*looks[: scene.position + 1], *[None] * (len(looks) - scene.position - 1)])


def switches() -> None:
    """Draw what switches off all heads of the block that have the opened one's label, here and in general."""
    alike: dict[str, tuple[int, ...]] = {}
    for where, roles in (
        ("here", {role.head: role.kind for role in here.now.roles[block]}),
        ("general", {h: role for (b, h), role in labels.items() if b == block}),
    ):
        role = roles.get(head, "alone")
        bear = [h for h in roles if roles[h] == role and verdict_on(block, h, role) != "withdrawn"]
        same_role = tuple(sorted(bear))
        claims_something = head in same_role and not formulas.ROLES[role].quiet
        if claims_something and len(same_role) > 1 and same_role not in alike.values():
            alike[where] = same_role
            usually = " (by their labels in general)"
            if where == "here":
                usually = ""
            these = f"the {len(same_role)} *{formulas.ROLES[role].label}* heads of block {block}{usually}"
            edit = Edit("z", block, "zero", same_role)
            means = "their outputs z are zero, so they add nothing"
            action = change_menu.Action(
                f"Switch off {these}", edit, "zᵢ = 0", means, f"Switch on again {these}"
            )
            says = f"heads {', '.join(map(str, same_role))}, on every page"
            change_menu.switch(action, f"heads_{where}", says)


# ---- the labels ----


def cell(block: int, head: int, role: str, share: float | None, start: str = "") -> figures.Cell:
    """A head's label, what a hover says of it, and how its trial ended."""
    verdict = verdict_on(block, head, role)
    tried_so = ""
    if verdict:
        tried_so = f"{trial.ENDED[verdict]} in its trial"
    parts = [f"{start}{formulas.ROLES[role].label}", percent_of(share), tried_so]
    return figures.Cell(
        role, f"block {block}, head {head}: {', '.join(filter(None, parts))}", verdict
    )


def cell_here(role: head_roles.HeadRole) -> figures.Cell:
    """The same on this text; hidden where this text cannot show the head's label in general."""
    usually = labels.get((role.block, role.head), "")
    if usually not in hidden:
        return cell(role.block, role.head, role.kind, role.share)
    start = f"in general {formulas.ROLES[usually].label}, which this text cannot show; here "
    found = cell(role.block, role.head, role.kind, role.share, start)
    return replace(found, role=usually, verdict="", hidden=True)


def draw_labels(of: sheet.Scene, key: str, where: str, cells: list[list[figures.Cell]]) -> None:
    sheet.sideways(f"heads_{key}", 80 + 64 * n_heads)
    fig = figures.role_sheet(cells, (block, head), scene.mode)
    alt = f"Every head's label {where}"
    of.chart(fig, key=f"heads_{key}", alt=alt, on_cell=state.open_head)


n_heads = lm.config.n_heads
now = [[cell_here(role) for role in row] for row in here.now.roles]
with sheet_of_text:
    draw_labels(scene, "here", "on this text", now)
    said = "Click a head for its story."
    if tried:
        said += " On trial: ✓ the label held · ○ not shown to be needed · ? undecided · struck out: withdrawn."
    st.caption(said)
if hidden:
    cannot = ", ".join(f"*{formulas.ROLES[role].label}*" for role in hidden)
    st.markdown(
        f"This text cannot show {cannot}: it has no token at which these heads would stand out."
    )

    def shown_by(text: str) -> set[str]:
        """The roles that heads can show on a text as this model reads it; none where it cannot read it."""
        ids = lm.encode(text)[: lm.config.context_length]
        if max(ids) >= lm.config.vocab_size:
            return set()
        return {role for role, asked in HeadScores.of(lm.tokens(ids)).targets.rows.items() if asked}

    offered = examples()
    shows = {label: shown_by(one.text) for label, one in offered.items()}
    firsts = [next((label for label in offered if role in shows[label]), None) for role in hidden]
    with st.container(
        horizontal=True, gap="small", vertical_alignment="center", key="heads_offers"
    ):
        for number, example in enumerate(example for example in dict.fromkeys(firsts) if example):
            shown_roles = " and ".join(
                formulas.ROLES[role].label for role in hidden if role in shows[example]
            )
            take = partial(state.change, text=offered[example].text, token=None)
            sheet.button(f"{example}: shows {shown_roles}", f"heads_offer_{number}", take)
sheet.example_row("A copied passage", "A name comes back", "A quotation closes", "Once upon a time")

# ---- the story of the opened head ----


def on_text() -> str:
    """The story's first part: what the opened head does on this text."""
    was = mine.was
    if was and mine.now.kind == "favourite" and was.favourite != mine.now.favourite:
        was = None  # it kept looking at another token
    share = Both(mine.now.share, was and was.shares.get(mine.now.kind))
    text = f"**On this text** it {words.does(mine.now, scene.labels)}"
    if mine.now.share is not None:
        text += f": **{share.arrow('%')}** of its attention"
        if mine.now.share_of_rest is not None and mine.now.rest >= WORTH_SAYING:
            text += f", {words.percent(mine.now.share_of_rest)} of what it does not leave on the first token"
    text += "."
    if heads.scaled(scene.run, block, head):
        text += f" {heads.SCALED}"
    return text


def in_general() -> str:
    """The second part: what it does on many texts."""
    if usual is None:
        return "**In general:** that is being measured."
    role = usual["role"]
    part = f" ({percent_of(usual['share'])})".replace(" ()", "")
    if role == mine.now.kind:
        return f"**In general** it does the same{part}."
    text = f"**In general** it {formulas.ROLES[role].does}{part}"
    if role in hidden:
        text += ", which this text cannot show"
    return f"{text}."


muted = MutedPart("head", block, head).edit(explained.baseline)
with_and_without = scene.run, scene.run.edited(muted)


def on_question() -> str:
    """The third part: what becomes of the bar's question without the head, by its measure and its baseline."""
    was, now = (explained.number(explained.of(run, scene.position)) for run in with_and_without)
    text = f"**For this answer:** if it outputs {explained.gives}, {explained.briefly}"
    if was == now:
        return f"{text} stays at **{now}**."
    return f"{text} goes **{was} → {now}**."


def draw_question() -> None:
    """Draw the third part, or where somebody wants to guess first, the question."""
    chances = [explained.chance(run, scene.position) for run in with_and_without]
    if not sheet.guess_first.is_open(scene, explained, f"head {block}·{head}", *chances):
        words.prose(on_question(), "logit")


def say_without_it(held: Trial | None) -> None:
    """Say the story's last part: what the model loses without the head, by its trial (None: no trial was held)."""
    if held is not None:
        words.prose(
            f"**Without it**, in passages of books, {trial.without(held)} {trial.in_short(held)}"
        )
        measured = "How is that measured?"
        if scene.run.edits:
            measured = "*In general* and *without it*: the unchanged model."
        st.caption(measured, help=trial.measured_on(held))
    elif usual is not None and usual["role"] not in head_trial.TESTABLE:
        words.prose("**Without it:** its label claims nothing that can be tried.")
    else:
        words.prose("**Without it:** no trial has been held yet.")


with above:
    text = "Each head is labelled by where it looks on this text."
    if tried:
        held_here = sum(shown.verdict == "holds" for row in now for shown in row)
        text += f" **{words.counted(held_here, 'label')}** on this map held on trial (✓)."
    words.prose(text, "head")
with story, st.container(border=True, key="heads_story"):
    title = f"**Block {block}, head {head}: *{formulas.ROLES[mine.now.kind].label}***"
    if mine.now.kind in IN_PAPERS:
        title += f", in papers *{IN_PAPERS[mine.now.kind]}*"
    words.prose(title)
    change_menu.menu(scene, change_menu.Part("head", block, head), key="heads")
    words.prose(on_text())
    words.prose(in_general())
    draw_question()
    without_it = st.container()
    switches()
    sheet.guess_first.switch()
if not sheet.is_near("heads_in_general"):  # further down, the label that is chosen there is tried
    with without_it:
        say_without_it(tried.get((block, head)))

# ---- in general ----

sheet.end_unless_near("heads_in_general")
if general is not None:
    st.subheader("Does every head always do the same?", anchor=False)
    numbers = general.table[["block", "head", "role", "share"]].itertuples(index=False)
    flat = [cell(*row) for row in numbers]
    pairs = [*zip((cell for row in now for cell in row), flat, strict=True)]
    same = sum(one.role == other.role and not one.hidden for one, other in pairs)
    unseen = sum(one.hidden for one, _ in pairs)
    too = ""
    if unseen:
        too = f" {unseen} more cannot show their usual label here (grey)."
    words.prose(
        f"{same} of {len(pairs)} heads have the same label on this text as in general, on many texts.{too} "
        "*Resting* heads leave more than half of their attention on the first token.",
        "head",
        "attention",
    )
    said = "This map shows each head's label on many texts"
    if tried:
        ended = sum(one.verdict == "holds" for one in tried.values())
        said += f": {ended} of the {words.counted(len(tried), 'label')} put on trial held (✓)"
    st.markdown(f"{said}.")
    rows = [flat[i : i + n_heads] for i in range(0, len(flat), n_heads)]
    draw_labels(scene.unchanged, "general", "in general", rows)

# ---- all heads as points, and the opened one ----

st.subheader("Which heads stand out?", anchor=False)
left, right = st.columns([6, 5], gap="medium")


def on_this_text(name: str) -> pd.Series:
    """A measure of every head on this text; NaN where the text cannot show it."""
    column = {"spread": "spread", "write": "mean_write"}.get(name, f"to_{name}")
    if column in table.now:
        return table.now[column].astype(float)
    return pd.Series(np.nan, table.now.index)


def axis(name: str) -> tuple[str, pd.Series]:
    """A measure's title and numbers; of this text as long as what was asked for is not known."""
    if not name.startswith(HERE):
        if general is not None:
            return TITLES[name], general.table[name].astype(float)
        alike = name.removesuffix("_random").removesuffix("_sample")
        if HERE + alike not in TITLES:
            alike = "spread"
        name = HERE + (alike if on_this_text(alike).notna().any() else "first")
    return TITLES[name], on_this_text(name.removeprefix(HERE))


with left:
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="heads_measures"
    ):
        boxes = {"Horizontal axis": ACROSS, "Vertical axis": UP}.items()
        chosen = [param.choose(label, TITLES, st.selectbox, width=238) for label, param in boxes]
    (across, x), (up, y) = map(axis, chosen)
    points = table.now[["block", "head"]].assign(x=x.to_numpy(), y=y.to_numpy())
    if general is None:
        points["role"] = table.now["role"]
    else:
        points["role"] = general.table["role"]
    points["withdrawn"] = [
        bool(labels) and verdict_on(p.block, p.head, p.role) == "withdrawn"
        for p in points.itertuples()
    ]

    of_this_text = general is None or any(name.startswith(HERE) for name in chosen)
    (scene if of_this_text else scene.unchanged).chart(
        figures.finder(points, (across, up), (block, head), scene.mode),
        key="heads_finder",
        alt=f"Every head by {across} and {up}",
        pick=lambda point: state.open_head(*map(int, point["customdata"][:2])),
    )
with right:
    given = mine.map(lambda role: [role.shares.get(name) for name in formulas.SHARES])
    if usual is None:
        general_shares = None
    else:
        general_shares = usual[list(formulas.SHARES)].to_numpy(float)
    sheet.bars(
        scene,
        "heads_roles",
        given.map(lambda shares: np.array([share or 0.0 for share in shares])),
        [
            formulas.ROLES[name].label + (UNSHOWN if name in hidden else "")
            for name in formulas.SHARES
        ],
        "share",
        f"What block {block}, head {head} gives to each kind of token, here and in general",
        which=(f"block{block}", f"head{head}"),
        lying=True,
        colors=[marks.role_colors(scene.mode)[name] for name in formulas.SHARES],
        part=None if general_shares is None else ("in general", general_shares, scene.palette.ink),
        called=("on this text", marks.UNCHANGED),
        height=34 * len(formulas.SHARES) + 96,
    )
text = "**What to look for.** Each point is a head. "
if across.startswith("previous:"):
    text += "Look far to the right for a *previous-token head*. "
elif x.notna().any():
    text += f"The farther right, the larger is *{across}*. "
if up.startswith("induction:"):
    text += "Look far up for an *induction head*. "
elif y.notna().any():
    text += f"The farther up, the larger is *{up}*. "
text += (
    "The bars show how much attention the opened head gives to each kind of token, wherever there is "
    "one: on this text"
)
if usual is not None:
    text += ", and in general (thin)"
text += "."
words.prose(text, "head", "induction head", "previous-token head")
if scene.run.edits:
    st.markdown(
        "*On this text* shows the changed model (outlined: before the change), *in general* the unchanged one."
    )

# ---- the trial ----

held = trial.draw(scene, block, head, labels, tried)
with without_it:
    say_without_it(held)


# ---- many texts ----

of_set = looking.draw(scene, explained, block, head)

# ---- details ----

with sheet.details():
    sheet.numbers_of(
        "heads-here",
        lambda: table.map(lambda numbers: numbers.astype({"favourite": float})),
        "Each head's label on this text and its share, what the same queries leave on the first token "
        "(rest), the share of what is left, which gave the label, over how many tokens it looks, how "
        f"much it contributes, and every role's share. {heads.CALLED}.",
        what="every head on this text",
        missing="–",
        headings=heads.HEADINGS,
    )
    sheet.code_of(
        scene,
        ["attention", formulas.role_keys, formulas.shares],
        head_roles.head_table,
    )
    if general is not None:
        caption = (
            f"induction and copies are measured on {general.sequences} texts of random tokens in which "
            f"a passage comes back ({general.random_tokens:,} tokens), the others on {general.windows} "
            f"windows of books that the bundled model was never trained on ({general.sample_tokens:,} "
            "tokens), but for _random and _sample. ov_copying, qk_matching and copies_top5 come from "
            "the weights."
        )
        sheet.numbers_of(
            "heads-general",
            general.table,
            caption,
            "every head in general",
            missing="–",
            headings=heads.HEADINGS,
        )
        sheet.code_of(
            scene.unchanged,
            [],
            head_general.general,
            key="in_code_general",
            what="every head in general",
        )
    if held is not None:
        caption = (
            "A head gives zero, or its mean over the sample; the head on trial looks at all tokens "
            "alike (even), or only where its label says (label). By how much the loss rises, in nats "
            "per token: on repeated and on unrepeated passages, their difference (extra) and mean "
            "(rise), each with its standard error (_se)."
        )
        sheet.numbers_of("heads-trial", held.table, caption, "the trial")
        claim = (block, head, held.label)
        sheet.code_of(scene.unchanged, [], hold, *claim, key="in_code_trial", what="the trial")
    written.tabs(scene, of_set)
