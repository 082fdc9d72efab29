"""The Logit lens page through AppTest: what it draws and says against the model's own modules."""

import base64
import json
import math

import numpy as np
import pytest
import torch

from gptviz.engine.config import GPTConfig
from gptviz.engine.edits import Edit
from gptviz.model import GPT_CONFIG_124M
from gptviz.tokenizer import show_token, token_bytes
from gptviz.ui.shell.state import DEFAULT_TEXT
from gptviz.ui.views.logit_lens import streaming
from gptviz.ui.views.logit_lens.choice import MOST, PINNED
from gptviz.ui.views.logit_lens.snippet import says_next
from tests.specs import charts

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"
ROWS = 13


def grid(at):
    """The component's data, its arrays decoded: (R, K, k) ids and probabilities, (R, K) the others."""
    (element,) = [e for e in at.get("bidi_component") if e.proto.component_name == "gptviz.lens"]
    data = json.loads(element.proto.json)
    cells = data["cells"]
    columns, each = sum(stop - start for start, stop in cells["known"]), cells["each"]

    def array(text, kind, *shape):
        return np.frombuffer(base64.b64decode(text), kind).reshape(len(data["rows"]), columns, *shape)

    data["ids"] = array(cells["ids"], "<u4" if cells["wide"] else "<u2", each)
    data["probabilities"] = array(cells["probabilities"], "<f4", each)
    data["color"] = array(cells["color"], "<f4")
    data["numbers"] = {n["label"]: array(n["values"], "<f4") for n in cells["numbers"]}
    return data


@pytest.fixture(scope="module")
def lens(mini):
    """(R, T, V) float64 log-probabilities: each half block's stream through the model's own norm and head."""
    model, ids = mini.model, mini.encode(TEXT)
    rows = []
    with torch.no_grad():
        x = model.tok_emb(torch.tensor(ids)) + model.pos_emb(torch.arange(len(ids)))
        rows.append(x)
        for block in model.trf_blocks:
            x = x + block.att(block.norm1(x)[None])[0]
            rows.append(x)
            x = x + block.ff(block.norm2(x))
            rows.append(x)
        logits = model.out_head(model.final_norm(torch.stack(rows)))
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
    assert (found["ids"] == top.indices.numpy()).mean() > 0.999  # two almost equal may change places
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
    assert all(found["cells"]["shown"][str(i)] == show(mini, i) for i in np.unique(found["ids"])[::40])


def test_pieces_of_characters_are_said_to_be_some(run_page, mini):
    for text in ("你好 🙂", "the old", DEFAULT_TEXT):
        at = run_page("logit_lens", text=text)
        data = grid(at)
        raws = {int(i): token_bytes(mini.tokenizer, int(i)) for i in np.unique(data["ids"])}
        pieces = {i for i, raw in raws.items() if "\ufffd" in raw.decode(errors="replace")}
        assert set(data["cells"]["pieces"]) == pieces
        top = data["ids"][..., 0]
        count = int(np.isin(top, list(pieces)).sum())
        said = [note.value for note in at.markdown if "piece of a character" in note.value]
        assert bool(said) == bool(count)
        if count:
            assert f"In {count} of {top.size} cells" in said[0]
            assert f"such as `{show(mini, next(i for i in top.flat if i in pieces))}`" in said[0]


def test_the_last_row_is_next_tokens(run_page, mini):
    found, t = grid(run_page("logit_lens", text=TEXT)), mini.trace(TEXT, keep=[])
    for position in range(len(t)):
        table = t.next_tokens(10, position)
        assert found["ids"][-1, position, 0] == table["id"][0]
        assert np.allclose(found["probabilities"][-1, position], table["probability"], atol=1e-6)


def test_the_sentence_and_the_row_that_is_open(run_page, mini, lens):
    at = run_page("logit_lens", text=TEXT)
    top = lens[:, -1].argmax(-1).tolist()
    settled = max(i for i, token in enumerate(top) if token != top[-1]) + 1
    assert grid(at)["row"] == settled - 1 and grid(at)["position"] == 15
    said = at.markdown[1].value
    for shown in (show(mini, top[-1]), show(mini, top[settled - 1]), "position 15"):
        assert shown in said
    assert f"{100 * lens[-1, -1].exp().max():.0f} %" in said
    other = run_page("logit_lens", text=TEXT, token=5, lens_row=2)
    assert (grid(other)["row"], grid(other)["position"]) == (2, 5)
    assert grid(run_page("logit_lens", text=TEXT, lens_row=13))["row"] == settled - 1  # there is no such row


def test_a_cell_beside_the_end(run_page, mini, lens):
    at = run_page("logit_lens", text=TEXT, token=9, lens_row=6)
    here, end = charts(at)[0]["data"]
    ids = here["customdata"].tolist()
    p = lens[:, 9].exp()
    assert set(ids) == {*p[6].topk(10).indices.tolist(), *p[-1].topk(10).indices.tolist()}
    assert np.allclose(here["x"], p[6][ids], atol=1e-6) and np.allclose(end["x"], p[-1][ids], atol=1e-6)
    assert list(here["y"]) == list(range(len(ids)))  # a row a token: equal labels never merge
    assert here["x"].tolist() == sorted(here["x"], reverse=True)


def test_followed_tokens_through_the_depth(run_page, mini, lens):
    mill, town = mini.encode(" mill")[0], mini.encode(" town")[0]
    at = run_page("logit_lens", text=TEXT, target=town, pinned=f"{mill}.x.{town}.{10**6}")
    lines = charts(at)[1]["data"]
    assert [line["meta"] for line in lines] == [town, town, mill, mill]
    for n, token in enumerate((town, mill)):
        assert np.allclose(lines[2 * n]["y"], lens[:, -1, token].exp(), atol=1e-6)
        ranks = 1 + (lens[:, -1] > lens[:, -1, token : token + 1]).sum(-1)
        assert np.abs(np.array(lines[2 * n + 1]["y"]) - ranks.numpy()).max() <= 1
    assert at.multiselect(key="pinned").value == [mill, town]
    own = charts(run_page("logit_lens", text=TEXT))[1]["data"]
    top = lens[:, -1].argmax(-1).tolist()
    leaders = list(dict.fromkeys(reversed(top)))[:3]
    assert [line["meta"] for line in own[::2]] == leaders  # nobody chose: those that some depth has on top


def test_who_is_offered_stands_by_the_most_that_it_ever_has(run_page, mini, lens):
    """Also one that peaks in the middle and loses (ndif#161)."""
    at, p = run_page("logit_lens", text=TEXT), lens[:, -1].exp()
    peak = p.amax(0)
    ids = sorted(set(p.topk(10).indices.flatten().tolist()), key=lambda i: -peak[i].item())
    assert len(at.multiselect(key="pinned").options) == len(ids)
    assert at.multiselect(key="pinned").options[:10] == [show(mini, i) for i in ids[:10]]


def test_pins_in_the_address():
    assert PINNED.parse("12.7.12") == [12, 7]
    assert PINNED.parse("") == [] and PINNED.parse("a.-1.5") == [5]
    assert len(PINNED.parse(".".join(map(str, range(50))))) == MOST
    assert PINNED.written([12, 7]) == "12.7"


def test_what_is_read_unasked_is_quick_and_has_the_selected_token():
    mini = GPTConfig.from_dict({"vocab_size": 8192, "emb_dim": 256, "n_heads": 8, "n_layers": 6} | CONTEXT)
    gpt2 = GPTConfig.from_dict(GPT_CONFIG_124M)
    for config, longest in ((mini, 256), (gpt2, 1024)):
        for count in (1, 20, 64, 225, longest):
            parts = streaming.parts_of(config, count)
            assert [i for part in parts for i in range(*part)] == list(range(count))
            for position in {0, count // 2, count - 1}:
                some = streaming.unasked(config, count, position)
                assert any(start <= position < stop for start, stop in some) and set(some) <= set(parts)
                assert sum(b - a for a, b in some) * streaming.work(config) <= streaming.UNASKED
    assert streaming.unasked(mini, 256, 3) == streaming.parts_of(mini, 256)
    assert streaming.unasked(gpt2, 64, 3) == streaming.parts_of(gpt2, 64)


CONTEXT = {"context_length": 256, "qkv_bias": False}


@pytest.fixture
def little(mini, monkeypatch):
    """As if the bundled model were so large that four positions are all that is read unasked."""
    monkeypatch.setattr(streaming, "UNASKED", 4 * streaming.work(mini.config))
    monkeypatch.setattr(streaming, "PART", 2 * streaming.work(mini.config))
    monkeypatch.setattr(streaming, "AT_ONCE", 3)


def test_the_rest_is_read_when_somebody_asks(run_page, little, mini):
    at = run_page("logit_lens", text=TEXT, token=10)
    assert grid(at)["cells"]["known"] == [[8, 12]]
    at.session_state["token"] = 3  # selecting a token reads those around it, and what was read stays
    at.run()
    assert grid(at)["cells"]["known"] == [[0, 4], [8, 12]]
    known = grid(at)["ids"].copy()
    at.button(key="lens_all").click().run()
    assert not at.exception
    assert grid(at)["cells"]["known"] == [[0, 16]] and "lens_all" not in [b.key for b in at.button]
    assert (grid(at)["ids"][:, [0, 1, 2, 3, 8, 9, 10, 11]] == known).all()
    whole = grid(run_page("logit_lens", text=TEXT, token=10))["ids"]
    assert whole.shape == (ROWS, 4, 10)  # another person's page reads what that person looks at


def test_ranks_are_read_where_they_are_looked_at_and_nothing_is_lost_meanwhile(run_page, little, mini, lens):
    """The rank of a token needs every cell's logits once more: part by part, as the cells themselves."""
    mill = mini.encode(" mill")[0]
    at = run_page("logit_lens", text=TEXT, token=10, target=mill)
    at.session_state["token"] = 3
    at.run()
    at.session_state["lens_colour"] = "rank"
    at.run()
    assert grid(at)["cells"]["known"] == [[0, 4]]
    ranks = 1 + (lens[:, :4] > lens[:, :4, mill : mill + 1]).sum(-1).numpy()
    assert np.abs(grid(at)["numbers"]["·mill has rank"] - ranks).max() <= 1
    at.session_state["lens_colour"] = "kl"
    at.run()
    assert grid(at)["cells"]["known"] == [[0, 4], [8, 12]]


def test_in_numbers_has_every_number(run_page, mini, lens):
    mill = mini.encode(" mill")[0]
    at = run_page("logit_lens", text=TEXT, lens_colour="rank", target=mill, lens_row=6)
    for key in ("logit_lens", "logit_lens_row6", "logit_lens_followed", "logit_lens_grid"):
        at.session_state[f"numbers_{key}"] = True
    at.run()
    rows, cell, curves, whole = (frame.value for frame in at.dataframe)
    p = lens[:, -1].exp()
    assert np.allclose(rows["probability"], p.amax(-1), atol=1e-6) and len(rows) == ROWS
    assert np.allclose(rows["entropy_bits"], -(p * lens[:, -1]).sum(-1) / math.log(2), atol=1e-3)
    assert rows["kl_bits"].iloc[-1] == 0
    assert np.allclose(cell["probability"], p[6][cell["id"].tolist()], atol=1e-6)
    assert np.allclose(cell["final_probability"], p[-1][cell["id"].tolist()], atol=1e-6)
    assert np.allclose(curves["probability"][:ROWS], p[:, mill], atol=1e-6)
    assert len(whole) == ROWS * 16
    one = whole[(whole["position"] == 15) & (whole["depth"] == 11)].iloc[0]
    assert one["id"] == p[11].argmax().item()
    assert one["probability of ·mill"] == pytest.approx(p[11, mill].item(), abs=1e-5)


@pytest.mark.parametrize("start, stop", [(0, None), (3, 9)])
def test_in_code_is_the_same_picture(mini, lens, capsys, start, stop):
    mill = mini.encode(" mill")[0]
    picture = says_next(mini, TEXT, 15, 10, start, stop, [mill])
    assert (picture == lens[:, start:stop].argmax(-1).numpy()).all()
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 * ROWS + 12
    itself = int((picture[0] == np.array(mini.encode(TEXT))[start:stop]).sum())
    assert printed[-1].startswith(f"the embedding gives back the token itself in {itself} of ")
    best, own = printed[2 * 12], printed[2 * 12 + 1]
    assert "' mill'" in best and "kl   0.00" in best and own.endswith("rank 1")


def test_a_changed_model_is_read_beside_the_unchanged_one(run_page, mini, lens):
    """Head 3 of block 4, off: the unchanged cells are those of the modules, the changed ones of the trace."""
    target = mini.encode(" mill")[0]
    at = run_page("logit_lens", text=TEXT, edits="z.4.3=zero", target=target, lens_row=12)
    found, p = grid(at), lens.exp()
    ghosts = found["cells"]["ghosts"]
    was = np.frombuffer(base64.b64decode(ghosts["ids"]), "<u4").reshape(ROWS, 16)
    share = np.frombuffer(base64.b64decode(ghosts["probabilities"]), "<f4").reshape(ROWS, 16)
    assert (was == p.argmax(-1).numpy()).mean() > 0.99
    assert np.allclose(share, p.max(-1).values, atol=1e-5)
    moved = was != found["ids"][..., 0]
    assert not moved[:9].any() and moved[9:].any()  # nothing before block 4's attention
    changed = mini.trace(TEXT, edits=[Edit("z", 4, heads=[3])])
    own = torch.softmax(changed.logits().double(), 0)
    assert found["probabilities"][-1, -1, 0] == pytest.approx(float(own.max()), abs=1e-5)
    bars, curves = charts(at)
    at_mill = list(bars["data"][0]["customdata"]).index(target)
    assert bars["data"][0]["x"][at_mill] == pytest.approx(float(own[target]), abs=1e-5)
    assert bars["data"][1]["x"][at_mill] == pytest.approx(float(p[-1, -1, target]), abs=1e-5)
    ghost = next(line for line in curves["data"] if line["meta"] == target)
    assert (ghost["name"], ghost["line"]["dash"]) == ("unchanged", "dash")
    assert np.allclose(ghost["y"], p[:, -1, target], atol=1e-5)
    for name in ("numbers_logit_lens", "numbers_logit_lens_followed", "numbers_logit_lens_grid"):
        at.session_state[name] = True
    at.run()
    column, followed, cells = (frame.value for frame in at.dataframe)
    assert f"{column['probability'].iloc[-1]:.3f}" == "0.183"
    assert f"{column['unchanged probability'].iloc[-1]:.3f}" == "0.952"
    assert np.allclose(followed["unchanged probability"][:ROWS], p[:, -1, target], atol=1e-5)
    assert np.allclose(cells["unchanged probability"], p.max(-1).values.T.reshape(-1), atol=1e-5)
