"""A text that grows token by token: how each was drawn, the way back, and other ways on."""

from collections.abc import Callable

import streamlit as st

from gptviz.digits import fixed
from gptviz.engine.generate import end_of_text
from gptviz.engine.generate import steps as generate_steps
from gptviz.engine.sampling import Sampling, distribution
from gptviz.engine.sampling import draw as draw_one
from gptviz.figures.draws import Draw
from gptviz.figures.ghosts import CHANGED, UNCHANGED
from gptviz.tokenizer import named_bytes, show_token
from gptviz.ui import runs
from gptviz.ui.components.draws import draws
from gptviz.ui.components.writing import writing
from gptviz.ui.models.limits import limits
from gptviz.ui.shell import address, state
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.both import caption
from gptviz.ui.views.generate import beaming, branches, controls, derived, play, words
from gptviz.ui.views.generate.panels import looked, loops, saves, surgery
from gptviz.ui.views.generate.snippet import write_on
from gptviz.ui.views.generate.tables import candidate_table, step_table
from gptviz.ui.views.generate.tree import LONGEST, Tree
from gptviz.ui.views.generate.written import Written, WrittenStep
from gptviz.ui.words import show_id

# more about the chosen step and the text, below: each is drawn from the scene, and what is written
PANELS: tuple[Callable[[Scene, Written], None], ...] = (looked.draw, saves.draw, surgery.draw, loops.draw)

PARAMS = (*play.PARAMS, *beaming.PARAMS, *looked.PARAMS, *surgery.PARAMS, *loops.PARAMS)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    if address.is_history_navigation():
        play.stop()  # the address wins

    left, able = [str(edit) for edit in play.left_out(scene)], play.able(scene)

    @st.fragment
    def stage() -> None:  # it may outlive the visit: it holds the scene, and looks up the rest
        _draw(able, left)

    stage()


def _draw(scene: Scene, left: list[str]) -> None:
    address.run_the_page_if_asked_for()
    buttons, sentence, text, bar, settings = (st.container() for _ in range(5))
    tree = play.tree_of(scene)
    play.agree_with_the_browser(tree)
    with settings:
        sampling = controls.settings(scene)
    controls.catch_up(scene, sampling, tree, text)
    written, ended = derived.written_on(play.base(scene), sampling, tree, play.STOP.value)
    if not play.can_go_on(written, ended):
        play.pause()
    plays = play.plays(tree)
    step = written.step or _to_come(written)
    how = words.how(step.point is not None, step.forced, written.step is not None)
    drawn = derived.drawing(written.run, sampling, step.id, how)
    with sentence:
        _say(scene, written, step, drawn, ended)
        if left:
            st.caption(words.left_out(left))
    with text:
        _text(scene, sampling, tree, written, ended, plays)
    with buttons:
        controls.buttons(scene, sampling, written, ended, plays)
    with bar:
        _bar(scene, sampling, tree, written, drawn, step)
    prose(
        words.look_for(None if sampling.greedy else sampling.seed or 0),
        "forward pass",
        "token",
        "vocabulary",
        "temperature",
    )
    branches.panel(scene, sampling, tree)
    beaming.panel(scene, sampling)
    for panel in PANELS:
        panel(scene, written)
    _details(scene, sampling, tree, written, drawn)


def _to_come(written: Written) -> WrittenStep:
    """The token that is written next, as it would be."""
    return derived.step_after(written.run, written.sampling, written.chosen)


def _say(scene: Scene, written: Written, step: WrittenStep, drawn: Draw, ended: bool) -> None:
    """What became of the chosen step."""
    row = next(row for row in drawn.rows if row["drawn"])
    token, number, count = row["shown"], written.chosen + 1, len(written.steps)
    if written.step is None:
        said = words.to_come(token, step.point, row["start"], row["stop"], step.probability)
    elif step.forced:
        vocabulary = scene.lm.config.vocab_size
        said = words.put(number, count, token, step.model_probability, step.rank, vocabulary)
    elif step.point is None:
        said = words.greedy(number, count, token, step.model_probability)
    else:
        said = words.drawn(number, count, token, step.point, row["start"], row["stop"], step.probability)
    if written.edits:
        said += f" {_unchanged_step(scene, written, step)}"
    prose(said, "token", "temperature")
    if ended and number == count:
        st.markdown(words.ended(play.STOP.value if step.id != end_of_text(scene.lm) else ""))
    limits(scene.key, scene.lm, "", state.choose_model, written=count)
    if count == LONGEST:
        st.caption(words.longest(LONGEST))
    if written.slid(written.chosen):
        st.info(words.full(written.context, written.slid(written.chosen)))
    if scene.position < len(scene.tokens) - 1:
        st.caption(words.in_the_middle(scene.label, scene.position))


def _unchanged_step(scene: Scene, written: Written, step: WrittenStep) -> str:
    """What the unchanged model gives the chosen step's token, and what it would have taken."""
    plain, sampling = written.run.plain, written.sampling
    would = derived.step_after(plain, sampling, written.chosen)
    drawn = would.point is not None
    # as the sentence before it: what is drawn from, or where nothing is drawn, the model's own
    p, rank = derived.given_to(plain, sampling if drawn else Sampling(), step.id)
    return words.unchanged_step(p, rank, show_id(scene.lm, would.id), would.id == step.id, drawn)


def _unchanged_text(scene: Scene, sampling: Sampling, tree: Tree, written: Written) -> None:
    """What the unchanged model writes on this branch, from its own text."""
    if not (written.edits and written.steps):
        return
    plain, _ = derived.written_on(play.base(scene).plain, sampling, tree, play.STOP.value)
    pairs = enumerate(zip(written.new, plain.new, strict=False), start=1)
    step = next((number for number, (one, other) in pairs if one != other), None)
    if step is None and len(plain.new) != len(written.new):
        step = 1 + min(len(plain.new), len(written.new))
    raw = b"".join(named_bytes(scene.lm.tokenizer, i) for i in plain.new)
    st.markdown(words.unchanged_text(show_token(raw), step, len(written.new)))


def _text(scene: Scene, sampling: Sampling, tree: Tree, written: Written, ended: bool, plays: bool) -> None:
    lm = scene.lm
    # at temperature 0 each was certain: the model's own says how sure it was
    came = [s.model_probability if sampling.greedy else s.probability for s in written.steps]
    tokens = [
        {
            "shown": show_id(lm, step.id),
            "id": step.id,
            "probability": probability,
            "p_text": words.short(probability),
            "put": step.forced,
            "sentence": words.chip(show_id(lm, step.id), probability, step.forced),
        }
        for step, probability in zip(written.steps, came, strict=True)
    ]
    writing(
        b"".join(token.raw for token in scene.tokens[: scene.position + 1]).decode("utf-8", "replace"),
        tokens,
        written.chosen,
        scene.mode,
        lambda step: play.go_to(scene, step),
        raws=[named_bytes(lm.tokenizer, step.id) for step in written.steps],
        open_end=not ended and len(tokens) < LONGEST,
        delay=play.delay() if plays else None,
        on_turn=lambda _: play.turn(scene, sampling),
        address={play.WRITING.name: str(tree)} if play.played(tree) else None,
    )
    _unchanged_text(scene, sampling, tree, written)


def _bar(
    scene: Scene, sampling: Sampling, tree: Tree, written: Written, drawn: Draw, step: WrittenStep
) -> None:
    draws(
        drawn.rows,
        drawn.segments,
        None if step.point is None else {"at": step.point, "text": fixed(step.point, 3)},
        scene.mode,
        lambda token: play.branch_off(scene, sampling, token),
        rest=drawn.rest,
        can_branch=written.chosen < LONGEST,
        compared=(UNCHANGED, CHANGED) if written.edits else None,
        saved=scene.saved(
            "generate", "How a token is drawn", f"seed{sampling.seed}", f"step{written.chosen}"
        ),
    )
    said, about = st.session_state.get(play.SAID, ("", ""))
    if said and about == str(tree):
        st.warning(said)


def _details(scene: Scene, sampling: Sampling, tree: Tree, written: Written, drawn: Draw) -> None:
    lm = scene.lm

    def steps() -> list[tuple[float, float]]:
        reads = [written.read(number) for number in range(len(written.steps))]
        return [
            derived.stretch(run, sampling, step.id) for run, step in zip(reads, written.steps, strict=True)
        ]

    def unchanged() -> list[tuple[float, int]]:
        steps = enumerate(written.steps if written.edits else ())
        return [derived.given_to(written.read(i).plain, sampling, step.id) for i, step in steps]

    other = written.edits or None
    in_numbers(
        lambda: step_table(written, steps(), lambda i: show_id(lm, i), unchanged()),
        "generate",
        caption(words.STEPS, other),
        "the text",
    )
    said = caption(words.CANDIDATES, other)
    in_numbers(lambda: candidate_table(drawn), "generate_draw", said, "the chosen token")
    in_code(
        [generate_steps, distribution, draw_one],
        program(
            write_on,
            scene.load,
            text=scene.text,
            position=scene.position,
            count=len(written.steps),
            step=written.chosen,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            seed=sampling.seed,
            put=tree.put(tree.branch) or None,
            special_tokens=scene.special,
        ),
        run=lambda: _run(scene, sampling),
    )


def _run(scene: Scene, sampling: Sampling) -> None:
    """What *In code* shows, once, so that its shapes can be taken down."""
    base = play.base(scene)
    for _ in generate_steps(runs.model(base), base.ids, 1, sampling):
        chances = distribution(derived.next_logits(base), sampling)
        draw_one(chances, 0.0)
