"""Every component's example in Chromium: drawn without a fault, and sends what it may."""

import json
import re
from pkgutil import iter_modules
from types import MappingProxyType

import numpy as np
import pytest

from gptviz.figures.theme import PALETTES
from gptviz.ui import components
from gptviz.ui.components import kernel
from tests.browser import examples as drawings
from tests.browser.axe import shut_out
from tests.browser.components_app import with_examples
from tests.browser.conftest import by, new_page, settled, start_server, stop_server

SILENT = {"birth", "chart", "merges", "spread", "tokenizer_rows", "guide_look"}  # they send nothing


def part(page, component, *path):
    return page.locator(f".st-key-example_{component} " + " ".join(path))


def click_weight(page):
    """What query 5 gives to key 3, in the first matrix: all its eight tokens are in sight."""
    cells = part(page, "matrix", "[data-testid=matrix-example]", by("cells-weights"))
    box = cells.bounding_box()
    cells.click(position={"x": box["width"] * 3.5 / 8, "y": box["height"] * 5.5 / 8})


def click_label(page):
    part(page, "matrix", ".label.row[data-index='4']:not(.focus)").first.click(force=True)


def press(page, keys):
    for key in keys.split():
        page.keyboard.press(key)


def keys(page, component, place, pressed):
    """Keys from a place that has the keyboard."""
    part(page, component, place).first.focus()
    press(page, pressed)


def click_cell(page):
    """The middle of the upper row, which is row 1; the listener comes with the pointer."""
    plot = part(page, "cell_clicks", ".nsewdrag")
    box = plot.bounding_box()
    plot.hover(position={"x": box["width"] / 2, "y": box["height"] / 4})
    settled(page)  # see plots.hover
    page.mouse.down()
    page.mouse.up()


def played(page):
    """Play begins where one is; the next step leads elsewhere."""
    part(page, "machine", by("play-play")).click()
    part(page, "machine", by("play-next")).click()
    part(page, "machine", by("play-end")).click()


def with_shift(page):
    """One more reader, by the keyboard: from the head that has it to the one above."""
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+Enter")


def type_cell(page, field, text):
    """Type into a field of the worksheet, and leave it."""
    place = part(page, "worksheet", field)
    place.fill(text)
    place.press("Enter")


# what is done to an example: a thing to click, keys to press (where the keyboard is, or at a place), or a
# function; and what then is sent
ACTIONS = {
    "arcs": [
        (by("arc-token", side="query", position=3), ["pick", [3, None]]),
        (by("arc-token", side="key", position=2), ["pick", [None, 2]]),
        (lambda page: part(page, "arcs", by("arc-head", head=1)).first.dblclick(), ["head", 1]),
        ((by("arc-mass"), "End"), ["mass", 100]),
        ((by("arc-token", side="key", position=2), "ArrowUp ArrowLeft Space"), ["pick", [1, None]]),
    ],
    "branches": [(by("branch-row", branch=2), ["branch", 2]), ("ArrowUp Enter", ["branch", 1])],
    "candidates": [(by("append", id=1), ["append", 1])],
    "cell_clicks": [
        (click_cell, ["cell", [1, 1]]),
        ((by("chart-keys"), "ArrowRight ArrowDown Enter"), ["cell", [0, 0]]),
    ],
    "changes": [
        (by("change-remove", number=1), ["remove", 1]),
        (by("changes-switch"), ["act", "switch"]),
        (by("changes-undo"), ["act", "undo"]),
        (lambda page: part(page, "changes", by("changes-clear")).last.click(), ["act", "clear"]),
    ],
    "chips": [
        (by("chip", position=2), ["position", 2]),
        ("ArrowRight Enter", ["position", 3]),
        (by("next-token"), ["append", 7]),
    ],
    "dials": [((by("dials-at"), "ArrowRight"), ["at", 9])],
    "draws": [(by("branch", id=2), ["branch", 2])],
    "heads": [(by("head-0-1"), ["head", [0, 1]]), ("ArrowDown Enter", ["head", [1, 1]])],
    "lens": [
        (by("lens-cell", row=2, position=4), ["pick", [2, 4]]),
        (by("lens-row", row=0), ["pick", [0, None]]),
        (by("lens-column", position=1), ["pick", [None, 1]]),
        ((".grid", "ArrowLeft Enter"), ["pick", [2, 3]]),
    ],
    "machine": [
        (by("place-door", position=0), ["position", 0]),
        (by("place-door", at="logit.7"), ["at", "logit.7"]),
        (by("place-more"), ["page", "residual_stream"]),
        (played, ["at", "block.0"]),
        (by("place-door", kind="head", block=1, head=1), ["reader", [1, 1, 0]]),
        (with_shift, ["reader", [1, 0, 1]]),
        (by("place-door", kind="guess"), ["reader", [-1, 0, 0]]),
    ],
    "matrix": [
        ((".plot", "ArrowRight Enter"), ["pick", [6, 3]]),  # as it was heard
        (click_weight, ["pick", [5, 3]]),
        (click_label, ["pick", [4, None]]),
    ],
    "path": [
        (by("path-arrow", step=2), ["block", 1]),
        ("ArrowLeft Enter", ["block", 0]),
    ],
    "surprise": [
        (by("surprise-chip", position=3), ["position", 2]),
        ("ArrowLeft Enter", ["position", 1]),
    ],
    "prompt": [(("textarea", "Enter"), ["run", "one two"])],
    "lazy_section": [
        (
            lambda page: part(page, "lazy_section", by("near")).scroll_into_view_if_needed(),
            ["near", True],
        )
    ],
    "class_cookie": [
        (
            lambda page: page.evaluate("() => { location.hash = 'teach=abc'; location.reload(); }"),
            ["taught", "abc"],
        )
    ],
    "theme_watch": [(lambda page: page.emulate_media(color_scheme="dark"), ["changed", True])],
    "token_cards": [
        (by("token-card", position=4), ["position", 4]),
        ("Home Space", ["position", 0]),
    ],
    "windows": [
        (by("window", window=2), ["window", 2]),
        (by("window", window=6), ["window", 6]),
        ("ArrowUp Enter", ["window", 5]),
    ],
    "worksheet": [
        (
            lambda page: type_cell(page, by("number", sheet="x", row=1, column=0), "0.5"),
            ["number", ["x", 1, 0, "0.5"]],
        ),
        (lambda page: type_cell(page, by("word", row=2), "sun"), ["word", [2, "sun"]]),
        (by("cell", sheet="weights", row=0, column=0), ["row", 0]),
    ],
    "writing": [
        (lambda page: None, ["turn", 0]),  # by itself
        (by("written-token", step=2), ["step", 2]),
        ("ArrowRight Enter", ["step", 3]),
    ],
}


def act(page, name, action):
    if callable(action):
        action(page)
    elif isinstance(action, tuple):
        keys(page, name, *action)
    elif action.startswith("["):
        part(page, name, action).first.click()
    else:
        press(page, action)


@pytest.fixture(scope="module")
def examples(browser, tmp_path_factory):
    """The address of the page of examples."""
    home = tmp_path_factory.mktemp("home")
    process, url = start_server(home, app="tests/browser/components_app.py")
    yield url
    stop_server(process)


@pytest.fixture
def open_example(warm, examples):
    """open_example(name, mode) -> a page with this example alone; the console must stay silent."""
    page, watch = warm

    def open_(name, mode="light", width=1000):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=mode)
        page.goto(f"{examples}/?only={name}")
        part(page, name, ".gv").first.wait_for(state="attached")
        page.evaluate(AT_REST)
        return page

    yield open_
    assert not watch.faults, "\n".join(watch.faults)


def await_sent(page, expected):
    """Until the page says that exactly these events have arrived, in this order."""
    log = page.locator("[data-testid=stCode] code")
    log.filter(has_text=re.compile(re.escape(json.dumps(expected)))).wait_for()
    assert json.loads(log.inner_text()) == expected


def test_every_component_has_an_example_and_all_that_send_are_tried(monkeypatch):
    names = {found.name for found in iter_modules(components.__path__) if found.ispkg}
    assert names == set(with_examples())
    sends = {name: set() for name in names}

    def drawn(component, key, data, on=MappingProxyType({}), saved=None):
        sends[component.name] |= {*on}
        return {}

    monkeypatch.setattr(kernel.Component, "__call__", drawn)
    for name in sends:
        getattr(drawings, name)(lambda event: lambda *came: None)
    tried = {name: {sent[0] for _, sent in actions} for name, actions in ACTIONS.items()}
    assert {n: events for n, events in sends.items() if events} == {
        n: tried[n] for n in sends if n in tried
    }
    assert {name for name, events in sends.items() if not events} == SILENT


def test_only_who_comes_near_is_heard(browser, examples):
    # and not as if all were in sight
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    page = context.new_page()
    page.goto(f"{examples}/?only=lazy_section")
    part(page, "lazy_section", by("near")).wait_for()
    await_sent(page, [])
    part(page, "lazy_section", by("near")).scroll_into_view_if_needed()
    await_sent(page, [["near", True]])
    context.close()


# what a place says to who has no pointer: where the keyboard is put, keys, where it is said, and what
HEARD = {
    "candidates": (by("candidate"), "ArrowDown", by("sentence"), "·gypsy"),
    "chart": (by("chart-keys"), "ArrowRight ArrowDown ArrowRight", by("chart-aloud"), "4, c"),
    "heads": (".head", "ArrowDown", by("heads-says"), "Block 1, head 0."),
    "matrix": (
        ".plot",
        "ArrowUp",
        by("aloud-example"),
        "“·my” (position 6) gives 0.78 to “⏎” (position 3), 0.15",
    ),
    "worksheet": (".cell:not(.edit)", "ArrowRight", by("says"), "masked: it comes later"),
}

FOCUS = """() => {
  let here = document.activeElement;
  while (here?.shadowRoot?.activeElement) here = here.shadowRoot.activeElement;
  if (!here?.closest('.gv')) return null;
  const seen = (one) => getComputedStyle(one).outlineStyle !== 'none';
  return [[here, ...here.children].some(seen), here.outerHTML];
}"""


def tabbed(page, name):
    """Tab goes through an example and out of it again, and wherever the keyboard is can be seen."""
    stop = "'button, a, input, textarea, [tabindex]'"
    first = f"(all) => all.flatMap((n) => [...n.querySelectorAll({stop})])[0]?.focus()"
    part(page, name, ".gv").evaluate_all(first)
    stops = 0
    while here := page.evaluate(FOCUS):
        assert here[0], here[1]
        page.keyboard.press("Tab")
        stops += 1
        assert stops < 60, here[1]


# what a width brings into sight may need a font that is not there yet, and moves a line when it comes
AT_REST = """() => new Promise((rest) => requestAnimationFrame(() => requestAnimationFrame(rest)))
  .then(() => document.fonts.ready).then(() => new Promise(requestAnimationFrame)).then(() => null)"""
MOVED_OVER = {
    "candidates": ".row",
    "heads": ".head[data-block='0']",
    "surprise": ".chip",
    "machine": ".machine:not(.paths) .door",
    "worksheet": ".cell:visible",
}


@pytest.mark.parametrize("name", sorted({*ACTIONS, *SILENT}))
def test_an_example_has_its_colours_fits_stays_and_sends(open_example, name):
    """In the dark, but for the one that waits for the dark; on a phone and wide; pointed at, and used."""
    mode = "light" if name == "theme_watch" else "dark"
    page = open_example(name, mode, 390)
    expected = []
    root = part(page, name, ".gv").first
    for width in (390, 1000):
        page.set_viewport_size({"width": width, "height": 800})
        assert root.get_attribute("data-mode") == mode
        assert root.evaluate("(n) => n.style.getPropertyValue('--ink')") == PALETTES[mode].ink
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        if name not in ("cell_clicks", "theme_watch", "guide_look", "class_cookie"):
            assert root.bounding_box()["height"] > 20
        page.evaluate(AT_REST)
        before = root.bounding_box()
        said = set()
        for thing in part(page, name, MOVED_OVER[name]).all() if name in MOVED_OVER else ():
            thing.hover()
            said.add(root.inner_text())
            assert root.bounding_box() == before, thing.get_attribute("aria-label")
        assert (name in MOVED_OVER) == (len(said) > 1)
    assert shut_out(page) == []
    tabbed(page, name)
    if name in HEARD:
        place, pressed, where, said = HEARD[name]
        keys(page, name, place, pressed)
        part(page, name, where).filter(has_text=said).first.wait_for(state="attached")
    for action, sent in ACTIONS.get(name, ()):
        act(page, name, action)
        expected.append(sent)
        await_sent(page, expected)


def test_chips(open_example):
    page = open_example("chips")
    a_run_keeps_elements_and_the_keyboards_place(page)
    a_long_strip_shows_the_selected_chip_and_says_what_is_out_of_sight(page)
    chips_by_weight(page)
    parts_of_a_character_stand_under_it(page)


def a_run_keeps_elements_and_the_keyboards_place(page):
    chip = part(page, "chips", by("chip", position=2)).first
    chip.evaluate("(node) => { node.mine = true; }")
    chip.click()
    await_sent(page, [["position", 2]])
    assert chip.evaluate("(node) => node.mine && node.getRootNode().activeElement === node")


def a_long_strip_shows_the_selected_chip_and_says_what_is_out_of_sight(page):
    strip = part(page, "chips", "[data-testid=chips]").nth(2)
    more = part(page, "chips", "[data-testid=chips-more]").nth(2)
    frame = strip.bounding_box()
    chosen = strip.locator("[aria-pressed=true]").bounding_box()
    assert (
        frame["y"] <= chosen["y"] and chosen["y"] + chosen["height"] <= frame["y"] + frame["height"]
    )
    hidden = int(more.get_attribute("data-hidden"))
    assert 100 < hidden < 225
    more.click()
    more.and_(page.locator("[data-hidden='0']")).wait_for()
    assert strip.evaluate("(node) => node.scrollHeight <= node.clientHeight + 1")
    assert not part(page, "chips", "[data-testid=chips-more]").first.is_visible()


def chips_by_weight(page):
    chips = part(page, "chips", "[data-testid=chips]").nth(1).locator("[data-testid=chip]")
    weights = chips.evaluate_all("all => all.map(n => n.dataset.weight ?? null)")
    assert weights == ["0.62", "0.2", "0.1", "0.05", "0.02", "0.009", "0.001", None]
    light = "all => all.map(n => getComputedStyle(n).backgroundColor.match(/[0-9.]+/g).map(Number))"
    lightness = [sum(color[:3]) for color in chips.evaluate_all(light)]
    assert lightness[:7] == sorted(lightness[:7])  # the larger the weight, the darker
    plain = part(page, "chips", "[data-testid=chips]").nth(0).locator("[data-testid=chip]")
    assert len({tuple(color) for color in plain.evaluate_all(light)}) == 1


def parts_of_a_character_stand_under_it(page):
    group = part(page, "chips", by("group", start=3, stop=6)).first
    inside = group.locator("[data-testid=chip]").evaluate_all(
        "all => all.map(n => n.dataset.position)"
    )
    assert (group.get_attribute("data-text"), inside) == ("·你", ["3", "4", "5"])
    whole = group.locator(".whole").bounding_box()
    assert (
        whole["y"] + whole["height"]
        <= group.locator("[data-testid=chip]").first.bounding_box()["y"] + 1
    )


def test_a_windows_targets_stand_under_its_inputs_and_one_further_on(open_example):
    page = open_example("windows")
    shown = part(page, "windows", by("windows")).first
    seen = "all => all.map((n) => [+n.dataset.window, +n.dataset.position, n.getBoundingClientRect().x])"
    inputs, targets = (
        shown.locator(by(f"window-{kind}")).evaluate_all(seen) for kind in ("input", "target")
    )
    assert [cell[:2] for cell in inputs] == [[w, w + i] for w in range(4) for i in range(4)]
    assert [cell[:2] for cell in targets] == [[1, 2 + i] for i in range(4)]
    columns = {position: x for _, position, x in inputs}
    assert all(abs(columns[position] - x) < 1 for _, position, x in targets)


# the windows that are open one after the other, until the first is again; `click` says at which of them one clicks
# From before the page's own code, so that a busy machine misses no step: which window is open, in turn. A click
# comes once so many of them were seen.
OPENED_IN_TURN = """
  window.openedInTurn = [];
  const look = (root) => {
    const node = root.querySelector('[data-testid=windows][data-selected="0"]');
    const at = node?.dataset.opened;
    if (at === undefined || window.openedInTurn.at(-1) === at) return;
    window.openedInTurn.push(at);
    const wanted = Number(sessionStorage.getItem('clickAfter'));
    if (window.openedInTurn.length === wanted) node.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true }));
  };
  const watch = (root) => new MutationObserver(() => look(root)).observe(root,
    { subtree: true, childList: true, attributes: true, attributeFilter: ['data-opened', 'data-selected'] });
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    watch(root);
    return root;
  };
"""
CAME_BACK = "() => window.openedInTurn.length > 1 && window.openedInTurn.at(-1) === '0'"


def test_a_window_slides_once_by_itself_over_the_first_few_and_comes_back(browser, examples):
    page, watch = new_page(browser)
    page.add_init_script(OPENED_IN_TURN)

    def opened_in_turn():
        page.wait_for_function(CAME_BACK)
        return page.evaluate("() => window.openedInTurn")

    page.emulate_media(reduced_motion="no-preference")
    page.set_viewport_size({"width": 1000, "height": 800})
    page.goto(f"{examples}/?only=windows")
    assert opened_in_turn() == ["0", "1", "2", "3", "0"]
    page.evaluate("() => sessionStorage.setItem('clickAfter', '2')")
    page.reload()  # a click ends it
    assert opened_in_turn() == ["0", "1", "0"]
    # where no motion is wanted it stays where it is
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    part(page, "windows", by("windows", selected=0, opened=0)).wait_for()
    settled(page)  # no timer is left
    part(page, "windows", by("windows", selected=0, slid=0, opened=0)).wait_for()
    frame, first, last = (
        part(page, "windows", f"{by('windows', selected=0)} {name}").first.bounding_box()
        for name in (".frame", by("window-input", position=0), by("window-input", position=3))
    )
    assert abs(frame["width"] - (last["x"] + last["width"] - first["x"])) < 1.5
    page.context.close()
    assert not watch.faults, "\n".join(watch.faults)


def spread_at(page, **what):
    """The picture of the norm when this is true of it."""
    shown = part(page, "spread", by("spread", **what))
    shown.wait_for()
    picture = part(page, "spread", by("spread-picture")).evaluate("(node) => ({ ...node.dataset })")
    return {name: float(picture[name]) for name in ("mean", "deviation", "low", "high")}


def test_a_norm_plays_once_by_itself_and_is_where_it_is_told_to_be(open_example):
    page = open_example("spread")
    page.emulate_media(reduced_motion="no-preference")  # pages that were open before want none
    page.reload()
    values = 90 * np.sin(np.arange(16.0) ** 2) + 30
    rests = spread_at(page, played=1, at=2, playing="false", moves="false")
    shown = {}
    for stop in (3, 2, 1, 0):  # back again, by hand
        part(page, "spread", by("spread-stop", stop=stop)).click()
        shown[stop] = spread_at(page, at=stop, moves="false")
    assert shown[0]["mean"] == pytest.approx(values.mean(), rel=1e-5)
    assert shown[0]["deviation"] == pytest.approx(values.std(), rel=1e-5)
    assert (shown[1]["mean"], shown[2]["mean"]) == (pytest.approx(0, abs=1e-4),) * 2
    assert shown[1]["deviation"] == pytest.approx(values.std(), rel=1e-5)
    assert shown[2] == rests and rests["deviation"] == pytest.approx(1, rel=1e-5)
    # the axis is zoomed between the second and the third, and only there
    ends = [(one["low"], one["high"]) for one in (shown[0], shown[1], shown[2], shown[3])]
    assert ends[0] == ends[1] and ends[2] == ends[3] and ends[0][1] > 10 * ends[2][1]
    # by keyboard, and played again only if asked for
    keys(page, "spread", by("spread-stop", stop=0), "ArrowRight Enter")
    spread_at(page, at=1, moves="false", playing="false")
    part(page, "spread", by("spread-play")).click()
    spread_at(page, playing="true")
    # a click ends it: at once where something moves
    part(page, "spread", by("spread", moves="true")).wait_for()
    part(page, "spread", by("spread-stop", stop=0)).click()
    assert spread_at(page, at=0, playing="false", moves="false") == shown[0]


def test_a_norm_stands_still_where_no_motion_is_wanted(open_example):
    page = open_example("spread")
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    rests = spread_at(page, at=2, playing="false", moves="false")
    part(page, "spread", by("spread-play")).click()
    end = spread_at(page, at=3, playing="false", moves="false")
    part(page, "spread", by("spread-stop", stop=2)).click()
    assert spread_at(page, at=2, playing="false", moves="false") == rests != end
    page.emulate_media(reduced_motion="no-preference")


def birth_at(page, **what):
    """The recorded training when this is true of it: the step, the score and the loss that are drawn."""
    part(page, "birth", by("birth", **what)).wait_for()
    picture = part(page, "birth", by("birth-picture")).evaluate("(node) => ({ ...node.dataset })")
    return [float(picture[name]) for name in ("step", "score", "loss")]


def test_a_recorded_training_plays_once_and_a_hand_at_the_slider_stops_it(open_example):
    page = open_example("birth")
    page.emulate_media(reduced_motion="no-preference")  # pages that were open before want none
    page.reload()
    assert birth_at(page, played=1, at=3, playing="false") == [30, 0.75, 0.5]
    keys(page, "birth", by("birth-slider"), "Home ArrowRight")
    assert birth_at(page, at=1, playing="false") == [10, 0.05, 1.5]
    shades = part(page, "birth", "svg g rect[fill^=rgb]")
    assert shades.count() == 21
    part(page, "birth", by("birth-play")).click()
    part(page, "birth", by("birth", playing="true")).wait_for()
    assert birth_at(page, at=3, playing="false") == [30, 0.75, 0.5]
    part(page, "birth", by("birth-play")).click()  # from the first again
    part(page, "birth", by("birth", playing="true")).wait_for()
    part(page, "birth", by("birth-picture")).click()
    part(page, "birth", by("birth", playing="false")).wait_for()


def test_a_recorded_training_shows_its_last_step_where_no_motion_is_wanted(open_example):
    page = open_example("birth")
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    assert birth_at(page, at=3, playing="false") == [30, 0.75, 0.5]
    part(page, "birth", by("birth-play")).click()
    assert birth_at(page, at=0, playing="false") == [0, 0.05, 1.7]
    page.emulate_media(reduced_motion="no-preference")


def path_says(page):
    """The first line of what the path says of a step."""
    return part(page, "path", by("path-says")).locator("b").inner_text()


def test_a_path_draws_itself_once_and_a_click_ends_that(open_example):
    page = open_example("path")
    page.emulate_media(reduced_motion="no-preference")  # pages that were open before want none
    page.reload()
    picture = part(page, "path", by("path-picture", drawn=5))
    part(page, "path", ".path[data-played]:not([data-playing])").wait_for()
    picture.wait_for()
    assert path_says(page) == "block 0 · attention"
    part(page, "path", by("path-play")).click()
    part(page, "path", by("path-picture", drawn=1)).wait_for()
    part(page, "path", by("path")).click(position={"x": 5, "y": 5})
    picture.wait_for()
    assert part(page, "path", by("path")).get_attribute("data-playing") is None


def test_a_path_stands_still_where_no_motion_is_wanted_and_goes_on_by_clicks(open_example):
    page = open_example("path")
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    part(page, "path", by("path-picture", drawn=5)).wait_for()
    for drawn, said in ((1, "the embedding"), (2, "block 0 · attention")):
        part(page, "path", by("path-play")).click()
        part(page, "path", by("path-picture", drawn=drawn)).wait_for()
        assert path_says(page) == said
    page.emulate_media(reduced_motion="no-preference")


def test_every_merge_of_a_ladder_is_on_the_page(open_example):
    page = open_example("merges")
    rows = part(page, "merges", ".rows")
    assert (
        part(page, "merges", by("stage")).count()
        == int(part(page, "merges", by("merges")).get_attribute("data-steps")) + 1
    )
    assert rows.evaluate("(node) => node.scrollHeight <= node.clientHeight + 1")


def test_focus_is_not_drawn_like_what_is_chosen(open_example):
    page = open_example("token_cards")
    card = part(page, "token_cards", by("token-card", position=0))
    card.focus()
    card.and_(page.locator(":focus-visible")).wait_for()
    style = "(node) => { const s = getComputedStyle(node); return [s.outlineStyle, s.boxShadow]; }"
    assert card.evaluate(style) == ["dashed", "none"]
    chosen = part(page, "token_cards", "[aria-pressed=true]")
    assert chosen.evaluate(style)[0] == "none" and chosen.evaluate(style)[1] != "none"


def hands(page):
    """How far each drawn dial is turned, in radians counterclockwise."""
    turns = part(page, "dials", ".turning").evaluate_all(
        "all => all.map((node) => node.getAttribute('transform'))"
    )
    return [-np.radians(float(turn[len("rotate(") : -1])) for turn in turns]


def test_dials_turn_as_the_rotation_does_and_stop_at_a_click(open_example):
    page = open_example("dials")
    dials = part(page, "dials", by("dials"))
    assert np.allclose(hands(page), [5 * 1.0, 5 * 0.05])  # the key's, 3 before position 8
    slider = part(page, "dials", by("dials-at"))
    slider.press("ArrowRight")
    await_sent(page, [["at", 9]])
    assert np.allclose(hands(page), [6 * 1.0, 6 * 0.05])
    part(page, "dials", by("dials-play")).click()
    part(page, "dials", by("dials", at=10)).wait_for()
    fast, slow = hands(page)
    assert fast > 7 and slow == pytest.approx(0.05 * fast)
    dials.click()
    place = round(hands(page)[0])  # of the key: they stop at one
    assert np.allclose(hands(page), [place, 0.05 * place])
    assert dials.get_attribute("data-playing") is None
    await_sent(page, [["at", 9]])  # walking asks the server nothing
