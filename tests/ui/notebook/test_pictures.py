"""The app's pictures without the app: of any trace, refused in sentences; and what is printed of all else."""

import base64
import inspect
import re
import subprocess
import sys
import typing
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import gptviz
from gptviz import Edit
from gptviz.both import Both
from gptviz.engine.showing import Showing
from gptviz.figures.still import raster
from gptviz.figures.still.svg import NOT_XML
from gptviz.figures.theme import color_at, palette
from gptviz.ui.notebook import PICTURES, pictures
from gptviz.ui.notebook.frame import STILL
from gptviz.ui.notebook.stills import STILLS
from gptviz.ui.shell.navigation import PAGES
from tests.conftest import random_lm
from tests.specs import floats

TEXT = "The cat sat on the mat"
OTHER = "The dog sat on the mat"
NO_TRACE = {"attention_by_hand", "baselines", "training", "class"}  # nothing of one text's pass
GIVEN = {
    "generate": {"n": 3},
    "data_windows": {"max_length": 2},
    "patching": {"other": [5, 6, 8, 9], "target": (4, 5)},
    "compare": {"other": random_lm().trace([5, 6, 7])},
}


@pytest.fixture(scope="module")
def lm():
    return gptviz.load("mini")


def weights_of(data):
    """The lower triangle that a matrix was sent, row by row."""
    return floats(data["arrays"]["weights"]["base64"])


def triangle(attn):
    """The same of attention weights (T, T)."""
    return attn.numpy()[np.tril_indices(len(attn))]


def test_there_is_a_picture_for_each_page_that_shows_a_trace():
    assert set(PICTURES) == set(PAGES) - NO_TRACE | {"every_head"}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_made_of_any_model_and_any_change(name):
    ids = [5, 6, 7, 9]
    for lm in (
        random_lm(n_layers=1, n_heads=1),
        random_lm(qkv_bias=False, linear_bias=False, norm_bias=False, activation="gelu"),
        random_lm().edited("z.1.2=zero", "attn.0=uniform", "embed@0=zero"),
    ):
        drawn = lm.trace(ids).show(name, **GIVEN.get(name, {}), mode="dark")
        assert drawn.title and drawn.parts and all(str(edit) in drawn.lines[0] for edit in lm.edits)
        assert "http://" not in re.sub(r"http://www.w3.org/\S+", "", drawn.html)


@pytest.mark.parametrize("text", ["A", "🙂 東京 `x` </script><b>", "The cat sat. " * 56])
def test_any_text_can_be_shown(lm, text):
    ids = lm.encode(text, special_tokens=True)[:225]
    for name in (None, "overview", "tokens", "logit_lens"):
        html = lm.trace(ids).show(name)._repr_html_()
        assert (
            html.startswith('<div class="gptviz-picture"><iframe') and html.count("</iframe>") == 1
        )


def test_a_head_is_drawn_with_the_weights_of_the_trace_and_so_is_every_other(lm):
    t = lm.trace(TEXT)
    [part] = t.show("attn", -3, 1, position=2).parts
    assert part["draw"] == "matrix" and part["data"]["query"] == 2
    assert np.array_equal(weights_of(part["data"]), triangle(t["attn", 3][1]))
    chips, grid, one = t.show(block=3, head=1).parts
    assert [chips["draw"], grid["draw"], one["title"]] == ["chips", "heads", "Block 3, head 1"]
    assert np.array_equal(weights_of(one["others"]["5.0"]["data"]), triangle(t["attn", 5][0]))
    assert len(one["others"]) == 48 and one["others"]["5.0"]["title"] == "Block 5, head 0"


def test_the_machine_has_all_places_down_to_the_heads_and_where_play_goes(lm, monkeypatch):
    t = lm.edited("z.2=zero").trace(TEXT)
    [part] = t.show("overview", "block.4.head.3", position=3).parts
    data = part["data"]
    others = part["others"]
    assert [data["at"], data["position"]] == ["block.4.head.3", 3] and data["known"] == [*others]
    assert sum(one["data"]["kind"] == "head" for one in others.values()) == 48
    assert {one["at"] for one in data["way"]} <= others.keys()
    for run, name in ((t, "of"), (lm.trace(TEXT), "was")):
        drawn = floats(others["block.5.head.2"]["data"]["level"]["row"][name])
        assert np.allclose(drawn[:4], run["attn", 5][2, 3, :4], atol=1e-6)
    monkeypatch.setattr(pictures, "LARGEST", 100)
    assert t.show("overview", "block.4.head.3").parts[0]["data"]["known"] == ["block.4.head.3"]


def test_of_a_changed_run_it_shows_before_and_after(lm):
    t = lm.trace(TEXT, edits=["z.2=zero"])
    plain = lm.trace(TEXT)
    assert "changed: z.2=zero" in t.show("norms").lines[0]
    rows = t.show("next_token").parts[0]["data"]["rows"]
    was = plain.logits(-1).double().softmax(0)
    assert all(row["ghost"] == pytest.approx(float(was[row["id"]]), abs=1e-6) for row in rows)
    now, was = (run["attn", 4][0] for run in (t, plain))
    for shown, weights in (
        ({}, now - was),
        ({"shown": "changed"}, now),
        ({"shown": "unchanged"}, was),
    ):
        drawn = weights_of(t.show("attn", 4, 0, **shown).parts[0]["data"])
        assert np.allclose(drawn, triangle(weights), atol=1e-6)
    roles = t.show().parts[1]["data"]["roles"]
    assert roles[2][3]["changed"] and not roles[4][0]["changed"] and roles[4][0]["moved"] > 1e-3
    assert roles[1][0]["moved"] == pytest.approx(0, abs=1e-6)  # but for rounding


def test_a_whole_page_has_its_pictures_in_order_with_words_and_tables_of_the_traces_numbers(lm):
    t = lm.trace(TEXT, edits=["z.2=zero"])
    before = (torch.get_num_threads(), sys.modules["__main__"])
    norms = t.show("layernorm", quantity="mean", position=2)
    parts = {part["key"]: part for part in norms.parts if "figure" in part}
    keys = [f"layernorm_{one}" for one in ("grids", "depth", "weights", "shift")]
    assert [*parts] == keys and norms.title == "How are the numbers kept in range?"
    (picture,) = [part["data"] for part in norms.parts if part.get("draw") == "spread"]
    assert len(picture["stops"]) == 4 and not picture["stops"][0]["ghost"]  # the change comes later
    for run in (t, lm.trace(TEXT)):
        found = run.norms().query("position == 2")
        for name in ("mean", "mean_after"):
            lines = [line.get("y") for line in parts["layernorm_depth"]["figure"]["data"]]
            assert any(
                as_numbers(y) == pytest.approx(found[name].to_numpy(), abs=1e-5) for y in lines
            ), name
    texts = [part["text"] for part in norms.parts if "text" in part]
    assert texts[0].startswith("LayerNorm slides the 256 numbers of ·sat to mean zero and")
    assert "What comes into every norm, and what leaves it?" in texts and not any(
        re.search(r"[<>*`]|click", text) for text in texts
    )
    assert (
        "Each row is a norm, each column a token. Cells without colour are as before the change."
        in texts
    )
    assert sum("html" in part for part in norms.parts) == 2
    assert (torch.get_num_threads(), sys.modules["__main__"]) == before
    stops = lm.trace("The cat.").show("residual_stream")
    assert any(
        "norms (sizes) of x and shortcut for “.”:" in part.get("text", "") for part in stops.parts
    )
    heads = [part.get("heading", False) for part in t.show("generate", whole=True).parts]
    assert not any(heads)  # no heading of what a click asks for stands alone
    with pytest.raises(
        ValueError, match="no whole page 'every_head' of a trace; there are overview"
    ):
        t.show("every_head", whole=True)


def as_numbers(values):
    """A line of a figure, which is sent as bytes where it is long."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return np.asarray(values, dtype=float)


@pytest.mark.parametrize("name", pictures.WHOLE)
def test_every_page_that_is_drawn_whole_has_no_less_than_its_first_picture(name):
    choices = {"other": "&'(,"} if name == "patching" else {}
    found = random_lm().edited("z.1.2=zero", "attn.0=uniform").trace([5, 6, 7, 9])
    parts = found.show(name, whole=True, **choices).parts
    assert sum("figure" in part or "draw" in part for part in parts) >= 2 - (name == "overview")


def test_what_is_written_is_what_the_model_generates(lm):
    t = lm.trace(TEXT)
    text, drawn = t.show("generate", 5, temperature=0.7, seed=3).parts
    steps = list(lm.generate(TEXT, 5, temperature=0.7, seed=3))
    assert [one["id"] for one in text["data"]["tokens"]] == [step.id for step in steps]
    assert [one["probability"] for one in text["data"]["tokens"]] == [
        step.probability for step in steps
    ]
    for at, step in enumerate(steps):
        rows = drawn["others"][str(at)]["data"]["rows"]
        assert [row["id"] for row in rows if row["came"]] == [step.id]
        assert {row["id"]: row["probability"] for row in rows}[step.id] == pytest.approx(
            step.probability
        )
    changed = lm.trace(TEXT, edits=["mlp_out.5=zero"]).show("generate", 5, temperature=0)
    greedy = "".join(step.token for step in lm.generate(TEXT, 5, temperature=0))
    assert changed.parts[0]["note"] == f"Unchanged, the model writes: {greedy}"


def test_windows_are_the_books(lm):
    [part] = lm.trace(TEXT).show("data_windows", 2, stride=1).parts
    assert [(row["window"], row["start"]) for row in part["data"]["rows"]] == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 3),
    ]


@pytest.mark.parametrize("edits", [[], ["z.0=zero"]])
def test_of_a_long_text_the_other_heads_are_kept_coarser_and_it_says_so(monkeypatch, edits):
    lm = random_lm(context_length=64)
    ids = torch.randint(
        0, lm.config.vocab_size, (50,), generator=torch.Generator().manual_seed(1)
    ).tolist()
    plain = lm.trace(ids)
    run = lm.trace(ids, edits=edits)
    drawn = run["attn", 1] - plain["attn", 1] if edits else run["attn", 1]
    heads = lm.config.n_layers * lm.config.n_heads
    monkeypatch.setattr(pictures, "LARGEST", heads * 8 / 3 * 20**2)  # room for 20 rows of each head
    part = run.show(block=1, head=1).parts[-1]
    assert "a cell is the largest of 3 × 3 weights" in part["note"]
    assert np.array_equal(weights_of(part["data"]), triangle(drawn[1]))
    assert np.array_equal(weights_of(part["others"]["1.1"]["data"]), triangle(drawn[1]))
    data = part["others"]["1.2"]["data"]
    whole = drawn[2].numpy()
    squares = [whole[r : r + 3, c : c + 3] for r in range(0, 50, 3) for c in range(0, r + 1, 3)]
    expected = [square.flat[np.abs(square).argmax()] for square in squares]
    assert np.abs(weights_of(data)).tolist() == pytest.approx(np.abs(expected).tolist())
    assert data["together"] == 3 and data["positions"] == [*range(0, 50, 3)]
    assert data["tokens"][1] == f"{run.tokens[3].shown} … {run.tokens[5].shown}"
    coarse = [one["data"] for place, one in part["others"].items() if place != "1.1"]
    assert sum(len(one["arrays"]["weights"]["base64"]) for one in coarse) < pictures.LARGEST
    monkeypatch.undo()
    assert "note" not in run.show().parts[-1]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (
            lambda t: t.show("training"),
            "no picture 'training' of a trace; there are overview, tokens",
        ),
        (lambda t: t.show("attn", 9), "no block 9; they go from 0 to 5"),
        (lambda t: t.show("attn", 0, 8), "no head 8"),
        (lambda t: t.show("attn", position=99), "no position 99"),
        (
            lambda t: t.show("attn", 3, 1, whole=True),
            r"takes its choices by name, .* 3 was given without a name",
        ),
        (
            lambda t: t.show("layernorm", "block 9 · norm1"),
            "'layernorm' cannot be drawn with ln_norm='block 9 · norm1': it has no such choice",
        ),
        (
            lambda t: t.show("layernorm", blocks=3),
            r"takes \(norm.*quantity.*unexpected keyword argument",
        ),
        (lambda t: t.show("why", " no such token"), "token"),
        (lambda t: t.show("logit_lens", "rank"), "it must be one of probability, entropy, kl"),
        (
            lambda t: t.show("patching"),
            r"show\('patching'\) takes .*missing a required argument: 'other'",
        ),
        (lambda t: t.show("compare", "mini"), "'mini' is no trace"),
        (lambda t: t.show("generate", 0), "n is 0; it must be a whole number of 1 or more"),
        (
            lambda t: t.show("data_windows", 6),
            "6 tokens are too few for a window of 6 and its last target",
        ),
        (lambda t: t.show(mode="blue"), "it must be one of light, dark"),
        (lambda t: t.show(shown="both"), "it must be one of difference, changed, unchanged"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(lm, ask, says):
    with pytest.raises(ValueError, match=says):
        ask(lm.trace(TEXT))


def test_ids_that_no_text_gives_have_no_pieces(lm):
    with pytest.raises(ValueError, match="not how their text is cut"):
        lm.trace([lm.encode("T")[0], lm.encode("h")[0], lm.encode("e")[0]]).show("tokens")


def test_what_is_no_picture_shows_itself_in_a_line_or_a_table(lm):
    assert "<th>parameters</th><td>6,897,152</td>" in lm._repr_html_()
    assert "z.4.3=zero" in lm.edited("z.4.3=zero")._repr_html_()
    assert "each head&#x27;s weighted values" in Edit("z", 4, heads=[3])._repr_html_()
    step = next(lm.generate(TEXT, 1, temperature=0))
    assert "<th>probability</th>" in step._repr_html_() and "<th>rank</th>" in step._repr_html_()
    both = Both(torch.ones(1), torch.zeros(1))
    assert both._repr_html_().index("tensor([0.])") < both._repr_html_().index("tensor([1.])")
    assert Both(lm)._repr_html_() == lm._repr_html_()
    assert "<iframe" in lm.trace(TEXT)._repr_html_()
    assert (
        lm.trace(TEXT, keep=[])._repr_html_().startswith("<code>Trace(&#x27;mini&#x27;, 6 tokens")
    )
    assert (
        repr(lm.trace(TEXT).show("attn", 3, 1)) == "Picture('Attention of block 3, head 1', 0.1 MB)"
    )


def test_importing_costs_no_streamlit_no_plotly_and_no_ipython():
    code = "import sys, gptviz; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert not {"streamlit", "plotly", "IPython", "gptviz.ui"} & set(loaded.split())


def test_each_picture_says_what_it_is():
    assert all(inspect.getdoc(picture) for picture in PICTURES.values())


HARD = "a < b && 東京 🙂  `x` $x_1$"


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_can_be_saved_without_a_browser_with_the_texts_tokens(name, tmp_path):
    t = random_lm().edited("z.1.2=zero").trace([5, 6, 7, 9])
    picture = t.show(name, **GIVEN.get(name, {}))
    file = picture.save(tmp_path / "picture.svg")
    root = ElementTree.parse(file).getroot()
    assert root[1].attrib["fill"] == "#ffffff" and root[0].text == NOT_XML.sub(
        "\ufffd", picture.title
    )
    written = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len(written) > 4 and not any("base64" in text for text in written if text)
    assert all(part["draw"] in STILLS for part in picture.parts if "draw" in part)


def test_a_saved_head_has_the_traces_weights_as_colours_and_every_token_to_be_read(lm, tmp_path):
    t = lm.trace(HARD)
    root = ElementTree.parse(t.show("attention", 3, 1).save(tmp_path / "head.svg")).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    cells = next(list(group) for group in root.iter(f"{svg}g") if len(group) == len(t) ** 2)
    scale = palette("light").attention
    masked = palette("light").masked
    weights = t["attn", 3][1]
    expected = [
        color_at(scale, weights[query, key].item()) if key <= query else masked
        for query in range(len(t))
        for key in range(len(t))
    ]
    assert [node.attrib["fill"] for node in cells] == expected
    written = [node.text for node in root.iter(f"{svg}text")]
    for token in t.tokens:
        assert written.count(token.shown) >= 2, token.shown  # at both axes
    assert {"0", "1", "masked"} <= set(written)
    # shapes; the one picture is the strip of the scale
    assert not list(root.iter(f"{svg}image"))[1:]


def test_a_picture_is_saved_by_its_ending_or_refused_in_a_sentence(lm, tmp_path):
    picture = lm.trace(HARD).show("attention", 3, 1)
    assert picture.save(tmp_path / "head.png").read_bytes().startswith(b"\x89PNG")
    assert picture.save(tmp_path / "head.PDF").read_bytes().startswith(b"%PDF")
    plain = picture.save(tmp_path / "plain.svg", words=False).read_text("utf-8")
    assert "· mini<" not in plain and "· mini<" in picture.save(tmp_path / "head.svg").read_text(
        "utf-8"
    )
    dark = (
        lm.trace(TEXT)
        .show("attention", 3, 1, mode="dark")
        .save(tmp_path / "dark.svg")
        .read_text("utf-8")
    )
    assert 'fill="#16151b"' in dark and "#ffffff" not in dark.split("<text")[0]
    with pytest.raises(
        ValueError, match=r"'head.jpg' ends in none of .svg, .png, .pdf, which can be saved"
    ):
        picture.save(tmp_path / "head.jpg")


def test_a_notebook_keeps_a_picture_in_every_kind_that_a_reader_may_allow(lm, monkeypatch):
    t = lm.trace(TEXT)
    kept = t._repr_mimebundle_()
    assert set(kept) == {"text/plain", "text/html", "image/png"} and kept["text/plain"] == repr(t)
    assert kept["text/html"].count("data:image/svg+xml;base64,") == 1 and STILL in kept["text/html"]
    assert set(lm.trace(TEXT, keep=[])._repr_mimebundle_()) == {"text/plain", "text/html"}
    monkeypatch.setattr(raster, "is_installed", lambda: False)
    assert set(t.show("why")._repr_mimebundle_()) == {"text/plain", "text/html"}


COMMON = ["position", "mode", "shown", "whole"]


def test_an_editor_completes_the_pictures_and_what_each_takes():
    written = {}
    for one in typing.get_overloads(Showing.show):
        parameters = dict(inspect.signature(one).parameters)
        page = typing.get_args(typing.get_type_hints(one)["page"])
        if "choices" in parameters:
            assert set(page) == set(pictures.WHOLE)
            continue
        names = [name for part in page for name in (typing.get_args(part) or [part])]
        written |= {name: parameters for name in names if isinstance(name, str)}
    assert written.keys() == {*PICTURES, *pictures.SHORT}
    every = inspect.signature(pictures.show).parameters
    for name, parameters in written.items():
        drawn = inspect.signature(PICTURES[pictures.SHORT.get(name, name)]).parameters
        own = [one for one in parameters if one not in ("self", "page", *COMMON)]
        assert own == [*drawn][1:], name
        assert [parameters[one].default for one in own] == [drawn[one].default for one in own], name
        assert [parameters[one].default for one in COMMON] == [
            every[one].default for one in COMMON
        ], name
