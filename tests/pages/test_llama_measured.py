"""What is measured over many texts or tokens of a Llama, a Qwen2 and a Qwen3, against transformers' model.

"What each head does", Loops, Beam search, Data windows and Baselines.
"""

import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from gptviz.analysis.head_general import MEASURES, General
from gptviz.analysis.head_trial import passages_of, trial
from gptviz.analysis.tokens import chapter
from gptviz.engine.sample import passages
from gptviz.ui import heads
from gptviz.ui.parts.generate.written import text_of
from tests.llama_models import FAMILIES, TEXT, both
from tests.pages.test_any_model import use
from tests.specs import charts, in_numbers, opened, table, words

CLOSE = {"atol": 1e-4, "rtol": 1e-4}
BLOCK = 1
HEAD = 4
OUT = "model.layers.{}.self_attn.o_proj"


@pytest.fixture(params=FAMILIES)
def model(request, monkeypatch):
    """Our model, in use, and transformers' model of the same weights."""
    lm, theirs = both(request.param)
    use(lm, request.param, monkeypatch)
    return lm, theirs


def log_chances(theirs, ids, changed=None):
    """(T, V) logarithms of the probabilities; `changed` is (block, what z becomes: (1, T, n) -> (1, T, n))."""
    handles = []
    for block, change in changed or ():
        out = theirs.get_submodule(OUT.format(block))
        handles.append(out.register_forward_pre_hook(lambda m, x, change=change: (change(x[0]),)))
    try:
        with torch.no_grad():
            return theirs(torch.tensor([[*ids]])).logits[0].double().log_softmax(-1)
    finally:
        for handle in handles:
            handle.remove()


def without(head, d):
    """z with the columns of one head zero."""

    def change(z):
        z = z.clone()
        z[..., head * d : (head + 1) * d] = 0
        return z

    return change


def given_to(log_p, ids):
    """ln of what each token but the first was given: (T - 1,)."""
    return log_p[:-1].gather(1, torch.tensor([*ids[1:]])[:, None])[:, 0]


# ---- What each head does ----


def shares_of(weights, ids):
    """What a head gives to each kind of token, by loops over its weights (T, T)."""
    found = {"induction": [], "copies": [], "first": [], "previous": [], "itself": []}
    for q in range(1, len(ids)):
        row = weights[q]
        later = range(1, q - 1)  # neither the first, nor the one before, nor the query
        keys = {
            "induction": [k for k in later if ids[k - 1] == ids[q]],
            "copies": [k for k in later if ids[k] == ids[q]],
            "first": [0],
            "previous": [q - 1],
            "itself": [q],
        }
        for name, meant in keys.items():
            if meant:
                found[name].append(sum(float(row[k]) for k in meant))
    return {name: np.mean(of) if of else math.nan for name, of in found.items()}


def test_where_each_head_looks_is_what_transformers_weights_say(run_page, model):
    lm, theirs = model
    ids = lm.encode(TEXT)
    with torch.no_grad():
        attentions = theirs(torch.tensor([ids]), output_attentions=True).attentions
    at = run_page("heads", text=TEXT, block=BLOCK, head=HEAD, null="zero", measure="probability")
    shown = in_numbers(at, "heads-here").set_index(["block", "head"])
    drawn = next(chart for chart in charts(at) if chart["data"][0].get("orientation") == "h")
    for block, weights in enumerate(attentions):
        for head in range(lm.config.n_heads):
            expected = shares_of(weights[0, head], ids)
            for name, share in expected.items():
                np.testing.assert_allclose(shown[f"to_{name}"][block, head], share, **CLOSE)
            if (block, head) == (BLOCK, HEAD):
                bars = np.nan_to_num(np.array([*expected.values()], float))
    order = ["induction", "copies", "first", "previous", "itself"]
    np.testing.assert_allclose(drawn["data"][0]["x"][: len(order)], bars, **CLOSE)
    # what the answer loses without the opened head
    d = lm.config.head_dim
    own = log_chances(theirs, ids)[-1]
    token = int(own.argmax())
    left = log_chances(theirs, ids, [(BLOCK, without(HEAD, d))])[-1, token].exp()
    said = re.search(r"the probability of .*? goes \*\*(.*?)\*\*", words(at).replace("\xa0", " "))
    numbers = [float(part.strip(" %")) / 100 for part in said[1].split("→")]
    np.testing.assert_allclose(numbers, [own[token].exp(), left], atol=0.006)


def evenly(theirs, ids, keys, lm):
    """z with the head looking evenly at these keys, by query; as it looks where there are none."""
    d = lm.config.head_dim
    group = HEAD // (lm.config.n_heads // lm.config.n_kv_groups)
    values = []
    projection = theirs.get_submodule(f"model.layers.{BLOCK}.self_attn.v_proj")
    handle = projection.register_forward_hook(lambda m, x, out: values.append(out[0]))
    log_chances(theirs, ids)
    handle.remove()
    v = values[0][:, group * d : (group + 1) * d]  # (T, d)

    def change(z):
        z = z.clone()
        for q, meant in keys.items():
            z[0, q, HEAD * d : (HEAD + 1) * d] = v[meant].mean(dim=0)
        return z

    return change


def in_general(lm):
    """Heads in general as if they had been measured: a trial asks it only which have the same label."""
    count = lm.config.n_layers * lm.config.n_heads
    rows = pd.DataFrame(0.5, range(count), [*MEASURES, "share", "rest", "share_of_rest"])
    rows["block"], rows["head"] = np.divmod(np.arange(count), lm.config.n_heads)
    return General(rows.assign(role="previous"), 1, 1, 1, 1, None)


@pytest.mark.parametrize(
    "model", ["qwen3"], indirect=True
)  # a minute each; it has all that the others have
def test_a_trial_is_the_losses_of_transformers_with_the_head_changed(run_page, model, monkeypatch):
    lm, theirs = model
    usual = in_general(lm)
    held = trial(lm, BLOCK, HEAD, "previous", known=usual, disk=False)
    done = {"state": "done", "active": False}
    monkeypatch.setattr(heads, "general_job", lambda run: SimpleNamespace(**done, result=usual))
    monkeypatch.setattr(
        heads, "trial_job", lambda *_: SimpleNamespace(**done, result=held, look=lambda *_: None)
    )
    at = run_page("heads", text=TEXT, block=BLOCK, head=HEAD, claim="previous")
    costs = next(chart for chart in charts(at) if "repeated passages" in str(chart["layout"]))
    own = costs["data"][1]["x"]
    d = lm.config.head_dim
    losses = {"own": [], "zero": [], "even": [], "label": []}
    texts = [text for pair in passages_of(lm) for text in pair]
    for ids in texts:
        seen = {q: [*range(q + 1)] for q in range(1, len(ids))}
        before = {q: [q - 1] for q in seen}
        changes = {
            "own": [],
            "zero": [(BLOCK, without(HEAD, d))],
            "even": [(BLOCK, evenly(theirs, ids, seen, lm))],
            "label": [(BLOCK, evenly(theirs, ids, before, lm))],
        }
        half = len(ids) // 2
        for name, changed in changes.items():
            given_ = given_to(log_chances(theirs, ids, changed), ids)
            losses[name].append(-float(given_[half:].mean()))
    rises = {
        # passages after themselves, and after others: (P, 2)
        name: (np.array(of) - losses["own"]).reshape(-1, 2).mean(axis=0)
        for name, of in losses.items()
    }
    expected = [*rises["zero"], rises["even"].mean(), rises["label"].mean()]
    np.testing.assert_allclose([*own[:2], *own[4:]], expected, **CLOSE)
    shown = {name: row for name, *row in table(at, "The trial")}
    said = float(shown["replaced by zero"][2].split(" ±")[0].replace("−", "-"))
    assert said == pytest.approx(rises["zero"].mean(), abs=1e-3)
    assert max(np.abs(expected)) > 1e-4


# ---- Generate: loops and beams ----


def greedy(theirs, ids, count):
    new = theirs.generate(
        torch.tensor([ids]), max_new_tokens=count, do_sample=False, eos_token_id=None
    )
    return new[0, len(ids) :].tolist()


def test_the_greedy_text_that_repeats_is_transformers(run_page, model):
    lm, theirs = model
    ids = lm.encode(TEXT)
    at = run_page("generate", text=TEXT, temperature=0.0, ask="loops", loop_tokens=30)
    at = opened(at, "numbers_generate-loops")
    rows = at.dataframe[-1].value
    rows = rows[rows["text"] == rows["text"].iloc[0]]
    new = greedy(theirs, ids, 30)
    assert rows["id"].tolist() == new
    whole = [*ids, *new]
    pieces = [tuple(whole[end - 3 : end]) for end in range(3, len(whole) + 1)]  # ends at end - 1
    again = [piece in pieces[:place] for place, piece in enumerate(pieces)][-30:]
    assert rows["repeats"].tolist() == again
    np.testing.assert_allclose(rows["share"], np.cumsum(again) / np.arange(1, 31), atol=1e-9)
    said = re.search(
        r"with (?:head|the heads) ([\d., ]+) \(block\.head\) off, the greedy text's 30 tokens have a mean "
        r"probability of (\d+\.\d+) instead of (\d+\.\d+)",
        words(at),
    )
    muted = [tuple(map(int, one.split("."))) for one in said[1].split(", ")]
    changes = [(block, without(head, lm.config.head_dim)) for block, head in muted]
    for shown, changed in ((said[2], changes), (said[3], [])):
        chances = given_to(log_chances(theirs, whole, changed), whole)[-30:].exp()
        assert float(shown) == pytest.approx(float(chances.mean()), abs=0.0051)


def test_the_beams_are_those_of_transformers(run_page, model):
    lm, theirs = model
    ids = lm.encode(TEXT)
    at = run_page("generate", text=TEXT, temperature=0.0, ask="beams", beams=3, beam_tokens=5)
    shown = opened(at, "numbers_generate_beams").dataframe[-1].value
    last = shown[(shown["tokens"] == 5) & (shown["kept"] == "kept")]
    special = lm.tokenizer.special_tokens_set
    ends = "<|end_of_text|>" if "<|end_of_text|>" in special else "<|endoftext|>"
    end = lm.tokenizer.encode_single_token(ends)
    found = theirs.generate(
        torch.tensor([ids]), max_new_tokens=5, num_beams=3, num_return_sequences=3,
        do_sample=False, eos_token_id=end, pad_token_id=end, length_penalty=0.0,
        return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    np.testing.assert_allclose(last["ln p"], found.sequences_scores, **CLOSE)
    new = found.sequences[:, len(ids) :].tolist()
    # transformers fills up a beam that has ended
    new = [beam[: beam.index(end) + 1] if end in beam else beam for beam in new]
    expected = [text_of(lm, tuple(beam)) for beam in new]
    assert last["text"].tolist() == expected and len({*expected}) > 1
    ways = table(at, "beams")
    alone = greedy(theirs, ids, 5)
    ln = given_to(log_chances(theirs, [*ids, *alone]), [*ids, *alone])[-5:].sum()
    assert float(ways[1][3].replace("−", "-")) == pytest.approx(float(ln), abs=0.006)


# ---- what a model pays for a text ----


@pytest.mark.parametrize("source", ["prompt", "chapter"])
def test_a_window_costs_what_transformers_gives_its_targets(run_page, model, source):
    lm, theirs = model
    at = run_page("data_windows", text=TEXT, dw_text=source, dw_length=7, dw_stride=3, dw_window=2)
    ids = lm.encode({"prompt": TEXT, "chapter": chapter()}[source])
    window = ids[6 : 6 + 8]
    chances = given_to(log_chances(theirs, window), window)
    shown = in_numbers(at, "examples")
    assert shown["target"].tolist() == window[1:]
    np.testing.assert_allclose(shown["probability"], chances.exp(), **CLOSE)
    np.testing.assert_allclose(shown["loss"], -chances, **CLOSE)
    assert [float(row[4]) for row in table(at, "examples")] == pytest.approx(
        (-chances).tolist(), rel=6e-3
    )


def test_a_gpt_of_today_pays_for_every_byte_of_the_books(run_page, model):
    """In windows that overlap in one token, after whatever the model begins a text with."""
    lm, theirs = model
    at = run_page("baselines", base_steps=50, base_measure="on")
    scale = charts(at)[0]["data"][0]
    bits = dict(zip(charts(at)[0]["layout"]["yaxis"]["ticktext"], scale["x"], strict=True))
    special = lm.tokenizer.special_tokens_set
    begin = "<|begin_of_text|>" if "<|begin_of_text|>" in special else "<|endoftext|>"
    nats = 0.0
    size = 0
    for passage in passages():
        ids = [i for i in lm.encode(passage.text) if i != lm.tokenizer.encode_single_token(begin)]
        ids = [lm.tokenizer.encode_single_token(begin), *ids]
        size += len(passage.text.encode())
        for start in range(0, len(ids) - 1, 63):  # a context of 64 ids predicts 63
            window = ids[start : start + 64]
            nats -= float(given_to(log_chances(theirs, window), window).sum())
    assert bits[lm.name] == pytest.approx(nats / math.log(2) / size, rel=1e-4)
