"""What pointing at each page's pictures says, and what clicks and sliders choose: the address has it.

What is drawn is held to the model in tests/pages; here is what only a browser does.
"""

import re

import numpy as np
import pytest

from gptviz.lessons.scaling import scores
from gptviz.tokenizer import get_encoding
from tests.browser.conftest import address, by, said_by, settled
from tests.browser.plots import click, values

TEXT = "Sam and the dog and the cat"
STORY = "The little birds sang beside the red mill. The little birds sang beside the red"
SIXTEEN = "0.1+0.4+0.5+0.7+1.1+1.4+1.7+2.0+2.7+3.4+4.1+4.3+4.7+5.0+5.3+5.6"
WOMAN = "ids" + "+".join(map(str, get_encoding("mini").encode("The woman took off")))
RIGHT = ("xaxis2", "yaxis2")  # panels of one picture
FOURTH = ("xaxis4", "yaxis4")


def chip(position, inside="", of="chip"):
    return f"{inside} {by(of, position=position)}"


def at_point(page, key, curve, i):
    """Where point `i` of a curve lies; of a bar its middle."""

    def field(name):
        found = values(page, key, curve, name)
        return float(found[i]) if found.ndim else 0.0

    x = field("x")
    y = field("y")
    if values(page, key, curve, "type") != "bar":
        return x, y
    across = values(page, key, curve, "orientation") == "h"
    return (field("base") + x / 2, y) if across else (x, y / 2)


# Of each page: what it is opened with, and one after the other what is clicked: a picture's key and a place
# in it (or the curve and the number of a point), or anything else by its selector; how what it says there
# begins; and what the address has then, beside what is named there.
CLICKS = {
    "circuit": (
        {"circuit": SIXTEEN, "score": "0.9764"},
        (("circuit_heads", (3, 4)), "block 4 · head 3", {"circuit": SIXTEEN.replace("4.3+", "")}),
        (("circuit_sheet", (3, 4)), "block 4 · head 3", {"circuit": SIXTEEN}),
    ),
    "compare": (
        {"vs": "text", "vs_text": "Four green parrots sang behind the old mill."},
        (("compare_heads", (3, 5)), "block (?P<block>5) · head (?P<head>3)", {}),
        (("compare_streams", (4, 6)), r"at the end at `·mill` \(position (?P<token>7)\)", {}),
        (chip(1, ".st-key-chips_right"), "", {"token": "3"}),  # its partner, from the end
    ),
    "data_windows": (
        {"dw_text": "book"},
        (by("window", window=5), "", {"dw_window": "5"}),
        (f"{by('windows', selected=5)} {by('window', window=6)}", "", {"dw_window": "6"}),
    ),
    "embeddings": (
        {"text": "the king and the queen and the king", "token": 4},
        (("embedding_sum", (100, 0)), r"`·queen` \(position 4\), dimension (?P<emb_dim>100):", {}),
        (chip(1), "", {"emb_dim": "100", "token": "1"}),
    ),
    "feed_forward": (
        {"text": TEXT, "token": 3, "block": 2},
        (("gelu_dots", 2, 5), r"unit (?P<ff_unit>\d+): .*it contributes a vector of norm", {}),
        (
            ("unit_over_text", 0, 5),
            r"unit (?P<ff_unit>\d+) at `·and` \(position (?P<token>5)\)",
            {},
        ),
    ),
    "generate": (
        {"text": STORY, "written": 4, "temperature": 0, "ask": "looked", "block": 5, "head": 0},
        (chip(2, ".st-key-generate_looked"), "", {"looked": "2"}),
        (("generate_heads", (1, 35)), "block (?P<block>4), head (?P<head>3) at", {"looked": "2"}),
        (".st-key-ask button >> text=Edit the cache", "", {"ask": "surgery"}),
        (chip(10, ".st-key-generate_cached"), "", {"surgery_at": "10"}),
    ),
    "heads": (
        {"text": "one two three", "across": "here_previous", "up": "here_first", "block": 0},
        (("heads_finder", 0, 2), r"block (?P<block>\d), head (?P<head>\d): ", {}),
        (("heads_here", (6, 5)), "block (?P<block>5), head (?P<head>6): ", {}),
    ),
    "knock_out": (
        {},
        (("knock_out_map", (3, 4)), "block (?P<block>4) · head (?P<head>3)", {}),
        (("knock_out_map", (9, 5)), "block (?P<block>5) · (?P<part>feed-forward)", {}),
    ),
    "layernorm": (
        {"text": TEXT},
        (
            ("layernorm_grids", (1, 7), *RIGHT),
            r"(?P<ln_norm>block 3 · norm2) at `am` \(position (?P<token>1)\):",
            {},
        ),
        (("layernorm_weights", 0, 40), r"scale\[(?P<ln_dim>40)\]", {}),
    ),
    "logit_lens": (
        {"text": STORY, "token": 14, "lens_row": 11},
        (("lens_cell", 0, 2), "`·j`: .* after block 5's attention", {"pinned": "502"}),
    ),
    "loss": (
        {"text": TEXT},
        (("loss_bars", 0, 0), r"After `S` \(position (?P<token>0)\)", {}),
        (chip(5, ".st-key-loss_text", "surprise-chip"), "", {"token": "4"}),
    ),
    "patching": (
        {"text": "The man took off", "other": "The woman took off"},
        (
            ("patching_map", (0, 2)),
            r"into block 2 at `·man \| ·woman` \(position 1\)",
            {"edits": f"resid_pre.2@1={WOMAN}"},
        ),
        (("patching_map", (0, 2)), "", {"edits": ""}),  # once more, and it is undone
        (
            ("patching_head_map", (4, 3), *FOURTH),
            "block 3 head 4:values",
            {"edits": f"v.3.4={WOMAN}"},
        ),
        (by("place-door", kind="head", block=2, head=3), "", {"path_into": "q2.3"}),
    ),
    "residual_stream": (
        {"text": TEXT, "token": 3},
        (("stream_ladder", 2, 1), "feed-forward of block (?P<block>1) adds", {}),
        (
            ("stream_maps", (2, 9), *RIGHT),
            r"block (?P<block>4) · attention at `·and` \(position (?P<token>2)\)",
            {},
        ),
    ),
    "why": (
        {"against": 1647},
        # a row is a head, whichever token's cell
        (("why_sources", (2, 6)), "head (?P<head>6)", {}),
        (
            ("why_waterfall", 0, 0),
            r"block (?P<block>5) · feed-forward",
            {"why_part": "feed-forward"},
        ),
        (("why_waterfall", 0, 11), r"block (?P<block>\d) · head (?P<head>\d)", {}),
        (".st-key-details summary", "", {}),
        ('.st-key-details [role=tab]:has-text("Map")', "", {}),
        (("why_grid", (3, 4)), "block (?P<block>4) · head (?P<head>3)", {}),
    ),
}


@pytest.mark.parametrize("name", CLICKS)
def test_what_is_pointed_at_is_named_and_what_is_clicked_is_chosen(open_page, name):
    query, *clicks = CLICKS[name]
    page = open_page(name, **query)
    for place, saying, there in clicks:
        if isinstance(place, str):
            page.locator(place).first.click()
        else:
            key, at, *more = place
            at = at if isinstance(at, tuple) else at_point(page, key, at, *more)
            said = click(page, key, *at, *(more if more and isinstance(more[0], str) else ()))
            named = re.match(saying, said)
            assert named, said
            there = there | named.groupdict()
        # a slow browser may come to rest before it has sent what was clicked
        page.wait_for_url(
            lambda url, there=there: (
                {**dict.fromkeys(there, ""), **said_by(url)}.items() >= there.items()
            )
        )
        settled(page)


# Of each page: what it is opened with, a slider and the key that is pressed on it, what the address has then,
# and a curve's field that is drawn anew, with what must hold of it then and not before.
SLIDERS = {
    "baselines": (
        {"base_steps": 50, "base_step": 400},
        ("Steps of training, right", "Home", {"base_step": "0"}),
        ("baselines_pairs", 1, "z", lambda chances: chances.max() < 0.5),
    ),
    "scaling": (
        {"sc_d": 64},
        ("d, the numbers", "ArrowRight", {"sc_d": "128"}),
        ("scaling_scores", 1, "y", lambda y: np.allclose(y, scores()[128][0])),
    ),
}


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_moves_the_address_and_what_is_drawn(open_page, name):
    query, (label, key, there), (*curve, holds) = SLIDERS[name]
    page = open_page(name, **query)
    assert not holds(values(page, *curve))
    page.get_by_role("slider", name=label).press(key)
    settled(page)
    assert address(page).items() >= there.items() and holds(values(page, *curve))


def test_threads_on_the_machine_are_path_patching(open_page, mini):
    """Each has the number, and the thickness, of what its head passes on at the token that it lies at."""
    barn = STORY.replace("mill", "barn")
    page = open_page("patching", text=STORY, other=barn, path_into="v5.4", patch_way="noising")
    machine = page.locator(by("machine", kind="paths", readers="v5.4"))
    page.get_by_text("Which head, and which part of it?").scroll_into_view_if_needed()
    machine.wait_for()
    drawn = machine.locator("path[data-to=stream]").evaluate_all(
        "(all) => all.map((one) => [one.dataset, Number(one.getAttribute('stroke-width'))])"
    )
    pair = [mini.encode(word)[0] for word in (" mill", " barn")]
    how = {"receivers": [("v", 5, 4)], "direction": "noising"}
    positions = {int(thread["position"]) for thread, _ in drawn}
    sent = {p: mini.path_patching(STORY, barn, tuple(pair), sent_at=p, **how) for p in positions}
    effects = []
    for thread, _ in drawn:
        table = sent[int(thread["position"])].set_index(["block", "head"])["effect"]
        effects.append(table[int(thread["block"]), int(thread["head"])])
    assert [float(thread["effect"]) for thread, _ in drawn] == pytest.approx(effects, abs=1e-4)
    widths = np.array([width for _, width in drawn])
    sizes = np.abs(effects)
    thick = np.maximum(1, widths.max() * sizes / sizes.max())
    assert len(drawn) > 1 and widths == pytest.approx(thick, abs=0.02)


def test_a_file_of_texts_is_averaged(open_page, mini):
    page = open_page("knock_out", measure="logit")
    texts = ["The cat sat on the", "Once upon a time there"]
    file = {"name": "texts.txt", "mimeType": "text/plain", "buffer": "\r\n".join(texts).encode()}
    page.locator(".st-key-many_file input[type=file]").set_input_files(file)
    page.get_by_text("n = 2)").first.wait_for()
    settled(page)
    means = -mini.knock_out(texts)["effect"].to_numpy()
    assert np.allclose(
        np.abs(values(page, "many", 0, "x")), np.sort(np.abs(means))[::-1][:12], atol=1e-4
    )
