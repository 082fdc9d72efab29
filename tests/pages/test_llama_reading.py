"""What the pages of a text show of a Llama and of a Qwen3, against transformers and hooks on every module.

Nine heads in three groups; the first has a beginning of text, the second query and key norms.
"""

import re

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

import gptviz
from gptviz.analysis.patches import Patch
from gptviz.digits import gigabytes
from gptviz.models.loading import load
from tests import llamas
from tests.llama_models import TEXT, both
from tests.pages.conftest import open_all
from tests.pages.test_any_model import use
from tests.specs import charts, floats, given, in_numbers, left_by_program, prose, words
from tests.tokenizer import families

FAMILIES = ("llama", "qwen3")
CLOSE = {"atol": 1e-4, "rtol": 1e-4}
BLOCK = 1
HEAD = 4
GROUP = 1  # which head 4 is in


@pytest.fixture(params=FAMILIES)
def family(request, monkeypatch):
    """The family of the model that the app shows in this test, and that a page's program loads."""
    lm, _ = both(request.param)
    use(lm, request.param, monkeypatch)
    monkeypatch.setattr(gptviz, "load", lambda *_, **__: lm)
    return request.param


@pytest.fixture
def passed(family):
    """Our model, the ids of the text, every site by hooks, and what transformers' model gives."""
    lm, theirs = both(family)
    ids = lm.encode(TEXT)
    with torch.no_grad():
        out = theirs(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    return lm, ids, llamas.sites_of(lm.model, ids), out


def matrix(sent):
    """A matrix as the browser decodes it; the future of a triangle is 0."""
    numbers = floats(sent["base64"])
    if not sent["triangle"]:
        return numbers.reshape(-1, sent["columns"])
    whole = np.zeros((sent["columns"], sent["columns"]), dtype=numbers.dtype)
    whole[np.tril_indices(sent["columns"])] = numbers
    return whole


def test_attention_has_the_turned_query_and_key_and_those_of_the_group(run_page, family, passed):
    lm, ids, sites, out = passed
    at = open_all(run_page("attention", text=TEXT, block=BLOCK, head=HEAD, token=9, key=4))
    arrays = given(at, "matrix_steps")["arrays"]
    d = lm.config.head_dim
    value = sites["v", BLOCK].unflatten(1, (-1, d))[:, GROUP]  # (T, d)
    output = sites["z", BLOCK].unflatten(1, (-1, d))[:, HEAD]
    expected = {"q": sites["q_rot", BLOCK][HEAD], "k": sites["k_rot", BLOCK][GROUP]}
    for name, numbers in (expected | {"v": value, "z": output}).items():
        np.testing.assert_allclose(matrix(arrays[name]), numbers, **CLOSE)
    weights = out.attentions[BLOCK][0, HEAD].numpy()
    np.testing.assert_allclose(matrix(arrays["weights"]), weights, **CLOSE)
    # softmax of the scores that the browser works out is what transformers' head gives
    scores = torch.from_numpy(matrix(arrays["q"]) @ matrix(arrays["k"]).T) / d**0.5
    own = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    np.testing.assert_allclose(own.softmax(-1), weights, **CLOSE)
    said = words(at)
    assert "Head 4 is in **group 1**: heads 3 to 5 share its" in said
    assert ("normalised, then turned by their positions (RoPE)" in said) == (family == "qwen3")
    cell = left_by_program(at, "in_code_cell")["picture"]
    np.testing.assert_allclose(cell.weight, weights[9, 4], **CLOSE)
    assert len(ids) > 9


@pytest.mark.parametrize("special", [False, True])
def test_tokens_names_the_special_ones_and_what_stands_before_a_text(
    run_page, family, passed, special
):
    lm, _, _, _ = passed
    text = f"{TEXT} <|eot_id|>"
    at = run_page("tokens", text=text, special=special)
    chips = [chip["id"] for chip in given(at, "chips")["tokens"]]
    said = prose(at)
    if family == "qwen3":
        assert chips == lm.encode(text) and "stands before every text" not in said
        assert "marks the end of a text in training" in said
        return
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=families.tokenizer_of("llama3"))
    # transformers reads special tokens in every text
    assert (chips == tokenizer(text)["input_ids"]) == special
    assert chips[0] == tokenizer.convert_tokens_to_ids("<|begin_of_text|>")
    assert "`<|begin_of_text|>`, `<|end_of_text|>` and `<|eot_id|>`" in said
    assert f"`<|begin_of_text|>`, id {chips[0]}, stands before every text" in said
    assert ("The switch is **on**" in said) == special
    assert "3 blocks × 9 heads in 3 groups, 72 dimensions" in at.sidebar.caption[0].value


# ---- what is read off the stream: the lens, the sum, the votes ----


def halves(sites, n_layers):
    """The stream at each depth by hooks, (R, T, D): into block 0, and after each attention and feed-forward."""
    rows = [sites["resid_pre", 0]]
    for block in range(n_layers):
        rows += [sites["resid_mid", block], sites["resid_post", block]]
    return torch.stack(rows)


def test_each_cell_of_the_lens_is_transformers_norm_and_head(run_page, family, passed):
    lm, ids, sites, out = passed
    theirs = both(family)[1]
    at = open_all(run_page("logit_lens", text=TEXT))
    cells = left_by_program(at)["picture"]
    stream = halves(sites, lm.config.n_layers)
    with torch.no_grad():
        expected = theirs.lm_head(theirs.model.norm(stream)).softmax(-1)
    np.testing.assert_allclose(expected[-1], out.logits[0].softmax(-1), **CLOSE)
    first = len(ids) - cells.ids.shape[1]
    for row, column in np.ndindex(cells.ids.shape[:2]):
        chances = expected[row, first + column]
        np.testing.assert_allclose(
            cells.probabilities[row, column], chances[cells.ids[row, column]], **CLOSE
        )
        assert chances.max() - chances[cells.ids[row, column, 0]] < 1e-6
    assert "put it through the final RMSNorm" in words(at)


def test_the_stream_is_as_long_and_the_writes_as_large_as_in_transformers(run_page, family, passed):
    lm, _, sites, out = passed
    at = open_all(run_page("residual_stream", text=TEXT, block=1))
    found = left_by_program(at)["picture"]
    stream = halves(sites, lm.config.n_layers)
    np.testing.assert_allclose(stream[::2][:-1], torch.stack(out.hidden_states[:-1])[:, 0], **CLOSE)
    writes = stream.diff(dim=0)
    np.testing.assert_allclose(found.sizes, stream.norm(dim=-1), **CLOSE)
    np.testing.assert_allclose(found.writes, writes.norm(dim=-1), **CLOSE)
    cosines = torch.cosine_similarity(stream[:-1], writes, dim=-1)
    np.testing.assert_allclose(found.cosines, cosines, **CLOSE)
    end = stream[-1]
    parts = torch.cat([stream[:1], writes])
    np.testing.assert_allclose(found.shares, (parts * end).sum(-1) / end.square().sum(-1), **CLOSE)
    assert "drop" not in words(at)  # of the lines of a block it shows those that this one has


def test_the_votes_are_the_heads_outputs_along_the_logits_direction(run_page, family, passed):
    lm, ids, sites, out = passed
    theirs = both(family)[1]
    mine, other = out.logits[0, -1].topk(2).indices.tolist()
    at = open_all(run_page("why", text=TEXT, target=mine, against=other, block=BLOCK, head=HEAD))
    table = left_by_program(at)["picture"]
    end = sites["resid_post", lm.config.n_layers - 1][-1].double()
    norm = theirs.model.norm
    root = (end.square().mean() + norm.variance_epsilon).sqrt()
    head = theirs.lm_head.weight.detach().double()
    direction = (head[mine] - head[other]) * norm.weight.detach().double() / root  # (D,)
    d = lm.config.head_dim
    rows = table.set_index(["part", "block", "head"])["contribution"]
    for block, layer in enumerate(theirs.model.layers):
        out_proj = layer.self_attn.o_proj.weight.detach().double()
        z = sites["z", block][-1].double()
        for h in range(lm.config.n_heads):
            own = slice(h * d, (h + 1) * d)
            vote = float(direction @ out_proj[:, own] @ z[own])
            assert rows["head", block, h] == pytest.approx(vote, abs=1e-4)
    parts = table[table["part"].isin(["embedding", "head", "feed-forward"])]
    difference = float(out.logits[0, -1, mine] - out.logits[0, -1, other])
    assert parts["contribution"].sum() == pytest.approx(difference, abs=1e-4)
    assert len(table) == len(parts) + 2  # the sum, and the model's own number
    # which token the opened head read: its weight times the group's value
    read = left_by_program(at, "in_code_read")["picture"]
    weights = out.attentions[BLOCK][0, HEAD, -1].double()
    value = sites["v", BLOCK].unflatten(1, (-1, d))[:, GROUP].double()
    own = slice(HEAD * d, (HEAD + 1) * d)
    out_proj = theirs.model.layers[BLOCK].self_attn.o_proj.weight.detach().double()
    given_by = weights * (value @ (direction @ out_proj[:, own]))  # (T,)
    np.testing.assert_allclose(read.given[HEAD], given_by, **CLOSE)
    assert "the final RMSNorm divides" in words(at)
    assert len(ids) == len(given_by)


# ---- the bench: what a patch and a muted head do, in transformers' model ----

OTHER = "The mat sat on the cat, and the mat slept."


def patched_in(model, ids, changes):
    """The last logits of transformers' model where some modules give, or get, something else.

    `changes`: (module's name, whether its input, how it is changed: (1, T, n) -> (1, T, n)).
    """
    handles = []
    for name, is_input, change in changes:
        module = model.get_submodule(name)
        if is_input:
            handles.append(
                module.register_forward_pre_hook(lambda m, x, change=change: (change(x[0]),))
            )
        else:
            handles.append(module.register_forward_hook(lambda m, x, y, change=change: change(y)))
    try:
        with torch.no_grad():
            return model(torch.tensor([ids])).logits[0, -1].double()
    finally:
        for handle in handles:
            handle.remove()


def taken(model, ids, name, is_input):
    """What the module gives, or gets, for a text: (1, T, n)."""
    found = []

    def keep(x):
        found.append(x)
        return x

    patched_in(model, ids, [(name, is_input, keep)])
    return found[0]


def gradient_at(model, ids, name, is_input, answers):
    """The gradient of the difference of two last logits by what the module gives, or gets: (1, T, n)."""
    found = []

    def watch(x):
        x = x.detach().requires_grad_()
        found.append(x)
        return x

    module = model.get_submodule(name)
    if is_input:
        handle = module.register_forward_pre_hook(lambda m, x: (watch(x[0]),))
    else:
        handle = module.register_forward_hook(lambda m, x, y: watch(y))
    try:
        logits = model(torch.tensor([ids])).logits[0, -1]
    finally:
        handle.remove()
    return torch.autograd.grad(logits[answers[0]] - logits[answers[1]], found[0])[0]


PLACES = {
    "z": ("o_proj", True),
    "q": ("q_proj", False),
    "k": ("k_proj", False),
    "v": ("v_proj", False),
}


def head_columns(old, new, index, d):
    """`old` with the columns of one head, or group, from `new`."""
    mixed = old.clone()
    mixed[..., index * d : (index + 1) * d] = new[..., index * d : (index + 1) * d]
    return mixed


def test_a_patch_of_keys_is_one_of_a_whole_group_as_in_transformers(run_page, family, passed):
    lm, ids, _, _ = passed
    theirs = both(family)[1]
    other = lm.encode(OTHER)
    apart = patched_in(theirs, ids, []) - patched_in(theirs, other, [])
    last = int(apart.argmax()), int(apart.argmin())  # the words between which the texts differ most
    assert len(other) == len(ids)
    at = open_all(
        run_page("patching", text=TEXT, other=OTHER, target=last[0], against=last[1], patch_go=True)
    )
    table = left_by_program(at)["picture"]
    d = lm.config.head_dim
    own = patched_in(theirs, ids, [])
    before = float(own[last[0]] - own[last[1]])
    for site, (projection, is_input) in PLACES.items():
        rows = table[(table["site"] == site) & (table["block"] == BLOCK)].set_index("head")
        count = lm.config.n_kv_groups if site in "kv" else lm.config.n_heads
        assert [*rows.index] == [*range(count)]
        name = f"model.layers.{BLOCK}.self_attn.{projection}"
        new = taken(theirs, other, name, is_input)
        for index in range(count):
            change = lambda x, index=index, new=new: head_columns(x, new, index, d)  # noqa: E731
            logits = patched_in(theirs, ids, [(name, is_input, change)])
            expected = float(logits[last[0]] - logits[last[1]]) - before
            assert rows["change"][index] == pytest.approx(expected, abs=1e-4), (site, index)
        slope = gradient_at(theirs, ids, name, is_input, last)
        guessed = ((new - taken(theirs, ids, name, is_input)) * slope)[0].unflatten(1, (count, d))
        np.testing.assert_allclose(rows["estimate"], guessed.sum(dim=(0, 2)), **CLOSE)
    # the map has a column a head: those of a group show its number
    maps = [chart for chart in charts(at) if len(chart["data"]) == len(PLACES) + 1]
    (drawn,) = maps
    keys = np.array(drawn["data"][2]["z"], float)
    changes = table[table["site"] == "k"]["change"].to_numpy().reshape(-1, lm.config.n_kv_groups)
    unit = "change" if "logits" in drawn["data"][2]["hovertemplate"] else "effect"
    effects = table[table["site"] == "k"][unit].to_numpy().reshape(changes.shape)
    np.testing.assert_allclose(keys, np.repeat(effects, 3, axis=1), atol=1e-3)
    assert "heads 0 to 2 share" in words(at) or "heads 3 to 5" in words(at) or "6 to 8" in words(at)


def test_a_path_to_a_groups_keys_is_that_of_three_passes_of_transformers(run_page, family, passed):
    """Wang et al.'s: the sender's output from the other text, all other heads' kept; then the keys alone."""
    lm, ids, _, _ = passed
    theirs = both(family)[1]
    other = lm.encode(OTHER)
    apart = patched_in(theirs, ids, []) - patched_in(theirs, other, [])
    last = int(apart.argmax()), int(apart.argmin())  # the words between which the texts differ most
    reader = 2  # the block of the reader, whose group is `GROUP`
    at = open_all(
        run_page("patching", text=TEXT, other=OTHER, target=last[0], against=last[1], patch_go=True,
                 path_into=f"k{reader}.{GROUP}", path_go=True)
    )  # fmt: skip
    table = left_by_program(at, "in_code_path")["picture"].set_index(["block", "head"])
    d = lm.config.head_dim
    outputs = {b: f"model.layers.{b}.self_attn.o_proj" for b in range(lm.config.n_layers)}
    own_z = {b: taken(theirs, ids, name, True) for b, name in outputs.items()}
    other_z = {b: taken(theirs, other, name, True) for b, name in outputs.items()}
    keys = f"model.layers.{reader}.self_attn.k_proj"
    own = patched_in(theirs, ids, [])
    for block, head in [(0, 0), (0, 7), (1, 4)]:
        frozen = []
        for b, name in outputs.items():
            z = own_z[b]
            if b == block:
                z = head_columns(own_z[b], other_z[b], head, d)
            frozen.append((name, True, lambda x, z=z: z))
        found = []
        patched_in(
            theirs, ids, [*frozen, (keys, False, lambda x, found=found: found.append(x) or x)]
        )
        change = lambda x, new=found[0]: head_columns(x, new, GROUP, d)  # noqa: E731
        logits = patched_in(theirs, ids, [(keys, False, change)])
        expected = (logits - own)[last[0]] - (logits - own)[last[1]]
        assert table["change"][block, head] == pytest.approx(float(expected), abs=1e-4)
    assert f"the keys of group {reader}·{GROUP}" in [button.label for button in at.button]


def test_a_patch_of_a_groups_keys_is_framed_for_its_heads_and_said(run_page, family, passed):
    lm, ids, _, _ = passed
    edit = Patch("k", BLOCK, head=GROUP).edit(lm.encode(OTHER))
    words_of = {"target": ids[-1], "against": ids[-2]}
    at = run_page("patching", text=TEXT, other=OTHER, edits=str(edit), patch_go=True, **words_of)
    (drawn,) = [chart for chart in charts(at) if len(chart["data"]) == len(PLACES) + 1]
    shapes = drawn["layout"]["shapes"]
    assert len(shapes) == lm.config.n_heads // lm.config.n_kv_groups
    assert f"block {BLOCK} group {GROUP} keys as in another text" in str(given(at, "changes"))


def test_what_a_head_brings_to_a_circuit_is_that_of_transformers(run_page, family, passed):
    lm, ids, _, out = passed
    theirs = both(family)[1]
    token, against = out.logits[0, -1].topk(2).indices.tolist()
    inside = {(0, 2), (1, 4), (2, 7)}
    at = run_page("circuit", text=TEXT, target=token, against=against, null="zero",
                  circuit="0.2+1.4+2.7", measure="probability")  # fmt: skip
    brings = left_by_program(at)["picture"]  # (L, H)
    d = lm.config.head_dim

    def only(heads):
        """The probability of the token where all other heads give zero."""

        def muted(z, block):
            kept = torch.zeros_like(z)
            for _, head in (one for one in heads if one[0] == block):
                kept = head_columns(kept, z, head, d)
            return kept

        changes = [
            (f"model.layers.{b}.self_attn.o_proj", True, lambda z, b=b: muted(z, b))
            for b in range(lm.config.n_layers)
        ]
        return float(patched_in(theirs, ids, changes).softmax(-1)[token])

    for head in [(0, 2), (1, 4), (2, 7), (0, 0), (1, 5)]:
        expected = only(inside | {head}) - only(inside - {head})
        assert brings[head] == pytest.approx(expected, abs=1e-5)
    assert "The embeddings and the RMSNorms always stay." in words(at)


# ---- writing, and two models side by side ----


def test_the_cache_has_a_key_and_a_value_for_each_group(run_page, family, passed):
    lm, ids, _, _ = passed
    at = run_page("generate", text=TEXT, written=4, temperature=0.0, ask="cache")
    said = words(at)
    read = len(ids) + 3
    cache = transformers_cache(both(family)[1], [*ids, *ids[:3]])
    assert f"{read} tokens × 3 groups × {lm.config.head_dim} numbers × 4 bytes" in said
    kept = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert f"= {gigabytes(kept)} now" in said
    assert "With a key and a value for each of the 9 heads it would be 3 times as much." in said


def transformers_cache(model, ids):
    """transformers' own cache after a text."""
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=True).past_key_values


def test_a_token_taken_out_of_the_cache_is_one_that_transformers_masks(run_page, family, passed):
    _, ids, _, _ = passed
    theirs = both(family)[1]
    at = run_page("generate", text=TEXT, temperature=0.0, ask="surgery", surgery_at=3)
    table = left_by_program(at, "in_code_surgery")["picture"].set_index("id")
    seen = torch.ones(1, len(ids), dtype=torch.long)
    seen[0, 3] = 0
    with torch.no_grad():
        logits = theirs(
            torch.tensor([ids[-1:]]),
            attention_mask=seen,
            position_ids=torch.tensor([[len(ids) - 1]]),
            past_key_values=transformers_cache(theirs, ids[:-1]),
        ).logits[0, -1]
    np.testing.assert_allclose(table["logit_after"], logits[[*table.index]], **CLOSE)
    assert (table["logit_after"] - table["logit_before"]).abs().max() > 0.01


@pytest.mark.parametrize("right", ["text", "mini-untrained"])
def test_a_llama_beside_itself_or_a_gpt2(run_page, family, passed, right):
    _, _, _, out = passed
    lm, theirs = both(family)
    own = out.logits[0]
    if right == "text":
        at = run_page("compare", text=TEXT, vs="text", vs_text=OTHER)
        place = own.shape[0] - 1
        other = patched_in(theirs, lm.encode(OTHER), [])
    else:
        at = run_page("compare", text=TEXT, vs="model", vs_model=right)
        place, theirs_at = places(words(at))
        with torch.no_grad():
            gpt2 = load(right)
            other = gpt2.model(torch.tensor([gpt2.encode(TEXT)]))[0, theirs_at]
    table = in_numbers(at, "compare-next")
    for side, logits in (("left", own[place]), ("right", other)):
        rows = table.dropna(subset=[f"{side}_id", side])
        expected = logits.softmax(-1)[rows[f"{side}_id"].astype(int).to_numpy()]
        np.testing.assert_allclose(rows[side], expected, **CLOSE)
        assert len(rows) >= 10


def places(said):
    """The positions of the two tokens that the page compares, as it says them."""
    found = re.search(r"We compare .*?position (\d+)\) with .*?position (\d+)\)", said)
    return int(found[1]), int(found[2])
