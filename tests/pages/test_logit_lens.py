"""The Logit lens page through AppTest: what it draws and says against the model's own modules."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gptviz.analysis import jacobian_lens, lens_trial
from gptviz.analysis.lens import row_keys
from gptviz.engine.config import GPTConfig
from gptviz.model import GPT_CONFIG_124M
from gptviz.tokenizer import show_token, token_bytes
from gptviz.ui.models.choice import Choice
from gptviz.ui.parts.logit_lens import columns, lenses
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.engine.test_trace import plain_forward
from tests.pages.conftest import open_all
from tests.specs import charts, floats, given, keys, paragraph, paragraphs, prose, put

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"
ROWS = 13


def grid(at):
    """The component's data, its arrays decoded: (R, K, k) ids and probabilities, (R, K) the others."""
    data = given(at, "lens")
    cells = data["cells"]

    def array(text, kind="<f4"):
        return np.squeeze(floats(text, kind).reshape(len(data["rows"]), known, -1))

    known = sum(stop - start for start, stop in cells["known"])
    data["ids"] = array(cells["ids"], "<u4" if cells["wide"] else "<u2")
    data["probabilities"] = array(cells["probabilities"])
    data["color"] = array(cells["color"])
    data["numbers"] = {n["label"]: array(n["values"]) for n in cells["numbers"]}
    return data


@pytest.fixture(scope="module")
def lens(mini):
    """(R, T, V) float64 log-probabilities: each half block's stream through the model's own norm and head."""
    sites = plain_forward(mini, mini.encode(TEXT))
    halves = ("resid_mid", "resid_post")
    rows = [
        sites["embed", None],
        *(sites[half, b] for b in range(mini.config.n_layers) for half in halves),
    ]
    with torch.no_grad():
        logits = mini.model.out_head(mini.model.final_norm(torch.stack(rows)))
    return torch.log_softmax(logits.double(), dim=-1)


def show(mini, i):
    return show_token(token_bytes(mini.tokenizer, int(i)))


@pytest.mark.parametrize("measure", ["probability", "entropy", "kl", "rank"])
def test_every_cell_is_the_models_own(run_page, mini, lens, measure):
    target = mini.encode(" mill")[0]
    found = grid(run_page("logit_lens", text=TEXT, lens_colour=measure, target=target))
    p = lens.exp()
    top = p.topk(10, dim=-1)
    assert found["ids"].shape == (ROWS, 16, 10) and len(found["tokens"]) == 16
    # two almost equal may change places
    assert (found["ids"] == top.indices.numpy()).mean() > 0.999
    assert np.allclose(found["probabilities"], top.values, atol=1e-5)
    entropy = -(p * lens).sum(-1) / math.log(2)
    kl = (p[-1] * (lens[-1] - lens)).sum(-1) / math.log(2)
    assert np.allclose(found["numbers"]["entropy"], entropy, atol=1e-3)
    assert np.allclose(found["numbers"]["to the end"], kl, atol=1e-3)
    blind = math.log2(mini.config.vocab_size)
    expected = {"probability": top.values[..., 0], "entropy": entropy / blind, "kl": kl / blind}
    if measure == "rank":
        ranks = 1 + (lens > lens[..., target : target + 1]).sum(-1)
        assert np.abs(found["numbers"]["·mill has rank"] - ranks.numpy()).max() <= 1
        expected["rank"] = 1 - ranks.log() / math.log(mini.config.vocab_size)
    assert np.allclose(found["color"], expected[measure].clamp(0, 1), atol=1e-3)
    assert all(
        found["cells"]["shown"][str(i)] == show(mini, i) for i in np.unique(found["ids"])[::40]
    )


def test_pieces_of_characters_are_said_to_be_some(run_page, mini):
    for text in ("你好 🙂", "the old", UNSAID_TEXT):
        at = run_page("logit_lens", text=text)
        data = grid(at)
        raws = {int(i): token_bytes(mini.tokenizer, int(i)) for i in np.unique(data["ids"])}
        pieces = {i for i, raw in raws.items() if "\ufffd" in raw.decode(errors="replace")}
        assert set(data["cells"]["pieces"]) == pieces
        top = data["ids"][..., 0]
        count = int(np.isin(top, list(pieces)).sum())
        assert ("piece of a character" in prose(at)) == bool(count)
        if count:
            said = paragraph(at, "piece of a character")
            assert f"In {count} of {top.size} cells" in said
            assert f"such as `{show(mini, next(i for i in top.flat if i in pieces))}`" in said


def test_the_sentence_and_the_row_that_is_open(run_page, mini, lens):
    at = run_page("logit_lens", text=TEXT)
    top = lens[:, -1].argmax(-1).tolist()
    settled = max(i for i, token in enumerate(top) if token != top[-1]) + 1
    assert grid(at)["row"] == settled - 1 and grid(at)["position"] == 15
    said = paragraphs(at)[0]
    for shown in (show(mini, top[-1]), show(mini, top[settled - 1]), "position 15"):
        assert shown in said
    assert f"{100 * lens[-1, -1].exp().max():.0f} %" in said
    other = run_page("logit_lens", text=TEXT, token=5, lens_row=2)
    assert (grid(other)["row"], grid(other)["position"]) == (2, 5)
    # there is no such row
    assert grid(run_page("logit_lens", text=TEXT, lens_row=13))["row"] == settled - 1


def test_a_cell_beside_the_end(run_page, mini, lens):
    at = run_page("logit_lens", text=TEXT, token=9, lens_row=6)
    p = lens[:, 9].exp()
    for chart, row in zip(charts(at), (6, -1), strict=False):
        (bars,) = chart["data"]
        names = chart["layout"]["yaxis"]["ticktext"]
        ids = {*p[6].topk(10).indices.tolist(), *p[-1].topk(10).indices.tolist()}
        ids = sorted(ids, key=lambda i: -p[6, i].item())
        assert names == [show(mini, i) for i in ids]
        assert np.allclose(bars["x"], p[row][ids], atol=1e-6)


def test_followed_tokens_through_the_depth(run_page, mini, lens):
    mill = mini.encode(" mill")[0]
    town = mini.encode(" town")[0]
    at = run_page("logit_lens", text=TEXT, target=town, pinned=f"{mill}.x.{town}.-1.{10**6}.{mill}")
    chances, places = (chart["data"] for chart in charts(at)[2:])
    assert [line["name"] for line in chances] == ["·town", "·mill"]
    for n, token in enumerate((town, mill)):
        assert np.allclose(chances[n]["y"], lens[:, -1, token].exp(), atol=1e-6)
        ranks = 1 + (lens[:, -1] > lens[:, -1, token : token + 1]).sum(-1)
        assert np.abs(np.array(places[n]["y"]) - ranks.numpy()).max() <= 1
    assert at.multiselect(key="pinned").value == [mill, town]
    at = run_page("logit_lens", text=TEXT)
    own = charts(at)[2]["data"]
    leaders = list(dict.fromkeys(reversed(lens[:, -1].argmax(-1).tolist())))[:3]
    # that some depth has on top
    assert [line["name"] for line in own] == [show(mini, i) for i in leaders]
    # offered by the most that it ever has: also one that loses in the end (ndif#161)
    p = lens[:, -1].exp()
    ids = sorted(set(p.topk(10).indices.flatten().tolist()), key=lambda i: -p.amax(0)[i].item())
    options = at.multiselect(key="pinned").options
    assert len(options) == len(ids) and options[:10] == [show(mini, i) for i in ids[:10]]


def test_what_is_read_unasked_is_quick_and_has_the_selected_token(mini):
    gpt2 = GPTConfig.from_dict(GPT_CONFIG_124M)
    for config, longest in ((mini.config, 256), (gpt2, 1024)):
        for count in (1, 20, 64, 225, longest):
            parts = columns.parts_of(config, count)
            assert [i for part in parts for i in range(*part)] == list(range(count))
            for position in {0, count // 2, count - 1}:
                some = columns.unasked(config, count, position)
                assert any(start <= position < stop for start, stop in some) and set(some) <= set(
                    parts
                )
                assert sum(b - a for a, b in some) * columns.work(config) <= columns.UNASKED
    assert columns.unasked(mini.config, 256, 3) == columns.parts_of(mini.config, 256)
    assert columns.unasked(gpt2, 64, 3) == columns.parts_of(gpt2, 64)


def test_the_rest_is_read_when_somebody_asks(run_page, mini, lens, monkeypatch):
    """As if the bundled model were so large that four positions are all that is read unasked."""
    monkeypatch.setattr(columns, "UNASKED", 4 * columns.work(mini.config))
    mill = mini.encode(" mill")[0]
    at = run_page("logit_lens", text=TEXT, token=10, target=mill)
    assert grid(at)["cells"]["known"] == [[8, 12]]
    known = grid(at)["ids"].copy()
    put(at, token=3)  # selecting a token reads those around it
    assert grid(at)["cells"]["known"] == [[0, 4]]
    at.button(key="lens_all").click().run()
    assert grid(at)["cells"]["known"] == [[0, 16]] and not keys(at, "lens_all")
    assert (grid(at)["ids"][:, 8:12] == known).all()
    put(at, lens_colour="rank")  # needs every cell's logits once more
    assert grid(at)["cells"]["known"] == [[0, 16]]
    ranks = 1 + (lens > lens[..., mill : mill + 1]).sum(-1).numpy()
    assert np.abs(grid(at)["numbers"]["·mill has rank"] - ranks).max() <= 1
    assert grid(put(at, lens_colour="kl"))["cells"]["known"] == [[0, 16]]
    # another person's page reads what that one looks at
    at = run_page("logit_lens", text=TEXT, token=10)
    assert grid(at)["cells"]["known"] == [[8, 12]]


def test_in_numbers_has_every_number(run_page, mini, lens):
    mill = mini.encode(" mill")[0]
    at = run_page("logit_lens", text=TEXT, lens_colour="rank", target=mill, lens_row=6)
    open_all(at)
    whole, curves = (frame.value for frame in at.dataframe)
    p = lens[:, -1].exp()  # the selected token's column is the first
    rows = whole[:ROWS]
    assert len(whole) == ROWS * 16 and (rows["position"] == 15).all()
    assert np.allclose(rows["probability"], p.amax(-1), atol=1e-6)
    assert (rows["id"] == p.argmax(-1).numpy()).all()
    assert np.allclose(rows["entropy_bits"], -(p * lens[:, -1]).sum(-1) / math.log(2), atol=1e-3)
    assert rows["kl_bits"].iloc[-1] == 0
    assert np.allclose(rows["probability of ·mill"], p[:, mill], atol=1e-5)
    assert np.allclose(
        curves["probability"], p[curves["depth"].tolist(), curves["id"].tolist()], atol=1e-6
    )
    assert set(p[6].topk(10).indices.tolist()) < set(curves["id"])  # those of the bars as well


def test_a_changed_model_is_read_beside_the_unchanged_one(run_page, mini, lens):
    """Head 3 of block 4, off: the unchanged cells are those of the modules, the changed ones of the trace."""
    target = mini.encode(" mill")[0]
    at = run_page("logit_lens", text=TEXT, edits="z.4.3=zero", target=target, lens_row=12)
    found = grid(at)
    p = lens.exp()
    ghosts = found["cells"]["ghosts"]
    was = floats(ghosts["ids"], "<u4").reshape(ROWS, 16)
    share = floats(ghosts["probabilities"]).reshape(ROWS, 16)
    assert (was == p.argmax(-1).numpy()).mean() > 0.99
    assert np.allclose(share, p.max(-1).values, atol=1e-5)
    moved = was != found["ids"][..., 0]
    assert not moved[:9].any() and moved[9:].any()  # nothing before block 4's attention
    changed = mini.trace(TEXT, edits=["z.4.3=zero"])
    own = torch.softmax(changed.logits(-1).double(), 0)
    assert found["probabilities"][-1, -1, 0] == pytest.approx(float(own.max()), abs=1e-5)
    bars, curves, _ = charts(at)  # the last row is open: it stands alone
    at_mill = bars["layout"]["yaxis"]["ticktext"].index("·mill")
    assert bars["data"][0]["x"][at_mill] == pytest.approx(float(own[target]), abs=1e-5)
    assert bars["data"][1]["x"][at_mill] == pytest.approx(float(p[-1, -1, target]), abs=1e-5)
    ghost = curves["data"][0]
    assert (ghost["name"], ghost["line"]["dash"]) == ("unchanged", "dash")
    assert np.allclose(ghost["y"], p[:, -1, target], atol=1e-5)
    cells, followed = (frame.value for frame in open_all(at).dataframe)
    assert f"{cells['probability'][ROWS - 1]:.3f}" == "0.183"
    assert f"{cells['unchanged probability'][ROWS - 1]:.3f}" == "0.952"
    assert np.allclose(followed["unchanged probability"][:ROWS], p[:, -1, target], atol=1e-5)


def test_read_by_the_jacobian_lens_and_both_on_trial(run_page, mini, monkeypatch):
    """The cells against its matrices by plain algebra; the trial's picture and table against its function."""
    monkeypatch.setattr(lens_trial, "TEXTS", 3)
    at = run_page("logit_lens", text=TEXT, read_by="jacobian", lens_on_trial="on")
    fitted = jacobian_lens.known(mini)
    sites = plain_forward(mini, mini.encode(TEXT))
    rows = [
        sites[row] @ fitted.maps[row].T + fitted.constants[row]
        for row in row_keys(mini.config)[:-1]
    ]
    with torch.no_grad():
        logits = mini.model.out_head(mini.model.final_norm(torch.stack(rows)))
    top = logits.softmax(-1).topk(10, dim=-1)
    found = grid(at)
    assert (found["ids"][:-1] == top.indices.numpy()).mean() > 0.999
    assert np.allclose(found["probabilities"][:-1], top.values, atol=1e-5)
    trial = lens_trial.lens_trial(mini, 3)
    (chart,) = (one for one in charts(at) if "KL divergence, bits" in str(one["layout"]["yaxis"]))
    for line, name in zip(chart["data"], (lens_trial.LOGIT, lens_trial.JACOBIAN), strict=False):
        assert np.allclose(line["y"], trial.of(name)["kl_bits"], rtol=1e-3)
    said = prose(at)
    assert "3 texts of five books" in said
    assert "Can the lens be believed?" in [one.value for one in at.subheader]


def test_without_a_lens_for_these_weights_the_command_is_said(run_page):
    at = run_page("logit_lens", text="The cat", model="mini-untrained", read_by="jacobian")
    assert "python -m gptviz lens mini-untrained" in prose(at)
    assert "read_by" not in {one.key for one in at.segmented_control}


def test_of_an_upload_no_command_is_said(run_page, monkeypatch):
    """No name loads it: the command would end in an error."""
    upload = Choice("upload:0123456789abcdef")
    monkeypatch.setattr(lenses, "state", SimpleNamespace(model=lambda: upload))
    monkeypatch.setattr(lenses, "is_fitted", lambda _: False)
    said = prose(run_page("logit_lens", text="The cat"))
    assert "No Jacobian lens was fitted to these weights." in said and "gptviz lens" not in said


def test_the_lens_of_the_unchanged_model_says_that_it_knows_no_change(run_page):
    told = "Its matrices are the unchanged model's: they do not know your change."
    for lens, edits in (("jacobian", "z.4.3=zero"), ("jacobian", ""), ("logit", "z.4.3=zero")):
        at = run_page("logit_lens", text="The cat", read_by=lens, edits=edits)
        assert (told in prose(at)) == (lens == "jacobian" and bool(edits))
