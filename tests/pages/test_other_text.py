"""A muted part gives its value in the other text: each number is a forward of the plain model with hooks of torch.

And the ways from page to page of the bench, which carry what it asks.
"""

from urllib.parse import parse_qs

import numpy as np
import pytest
import torch

from gptviz.analysis.circuit_passes import all_heads
from gptviz.analysis.templates import filled, read_lists
from gptviz.digits import fixed
from gptviz.ui.shell import slow
from tests.conftest import random_lm
from tests.pages.conftest import turn, whole_app
from tests.pages.test_circuit import here
from tests.specs import charts, given, left_by_program, links, opened, prose

TEXT = "When Tom and Mary left the garden, Tom gave the flowers to"
AGAIN = "When Tom and Mary left the garden, Mary gave the flowers to"


def forward(mini, text, other, heads):
    """(V,): the logits of a text where these heads hand on what they hand on in the other one."""
    size = mini.config.head_dim
    given_there = {}
    layers = {b: block.att.out_proj for b, block in enumerate(mini.model.trf_blocks)}

    def keeping(block):
        return lambda _, inputs: given_there.update({block: inputs[0]})

    def putting(block):
        def put(_, inputs):
            z = inputs[0].clone()  # (1, T, H d)
            for head in (h for b, h in heads if b == block):
                part = slice(head * size, (head + 1) * size)
                z[..., part] = given_there[block][..., part]
            return (z,)

        return put

    for read, hook in ((other, keeping), (text, putting)):
        handles = [layer.register_forward_pre_hook(hook(b)) for b, layer in layers.items()]
        try:
            with torch.no_grad():
                logits = mini.model(torch.tensor([mini.encode(read)]))[0, -1]
        finally:
            for handle in handles:
                handle.remove()
    return logits.double()


def lead(mini, logits):
    mary, tom = (mini.encode(name)[0] for name in (" Mary", " Tom"))
    return float(logits[mary] - logits[tom])


@pytest.fixture(scope="module")
def whole(mini):
    return lead(mini, forward(mini, TEXT, AGAIN, []))


@pytest.mark.parametrize(
    "typed", [None, "When Mary and Tom left the garden, Mary gave the flowers to"]
)
def test_knock_out_takes_the_values_of_the_other_text(run_page, mini, whole, typed):
    query = {"null": "other"} | ({"other": typed} if typed else {})
    at = run_page("knock_out", text=TEXT, **query, block=4, head=3)
    found = np.array(charts(at)[0]["data"][0]["z"])
    heads = all_heads(mini)[::5]
    without = [lead(mini, forward(mini, TEXT, typed or AGAIN, [head])) for head in heads]
    assert [found[head] for head in heads] == pytest.approx(whole - np.array(without), abs=1e-4)
    assert np.abs(found).max() > 0.1
    assert at.query_params["null"] == "other"
    assert "(it outputs its value in the other text)" in prose(at)
    lines = given(at, "knock_out_guess")["saved"]["lines"]
    assert f"Other text: {typed or AGAIN}" in lines


def test_a_circuits_other_heads_give_their_values_in_the_other_text(run_page, mini, whole):
    kept = [(0, 5), (4, 3), (5, 0)]
    at = run_page("circuit", text=TEXT, circuit="0.5+4.3+5.0", heads_order="off", null="other")
    others = [head for head in all_heads(mini) if head not in kept]
    wanted = lead(mini, forward(mini, TEXT, AGAIN, others))
    assert here(at)[:2] == (3, pytest.approx(wanted, abs=1e-4))
    assert abs(wanted - whole) > 0.1
    link = next(block.value for block in at.code if "score=" in block.value)
    assert "null=other" in link


def test_heads_says_what_the_answer_loses(run_page, mini, whole):
    at = run_page("heads", text=TEXT, block=4, head=3, null="other")
    without = lead(mini, forward(mini, TEXT, AGAIN, [(4, 3)]))
    said = (
        "if it outputs its value in the other text, the lead of `·Mary` over `·Tom` goes "
        f"**{fixed(whole, 2)} → {fixed(without, 2)}**"
    )
    assert said in prose(at)


def test_the_votes_stand_beside_what_muting_takes_away(run_page, mini, whole):
    at = run_page("why", text=TEXT, null="other", mute="on")
    opened(at, "numbers_muting")
    table = next(one.value for one in at.dataframe if "takes away" in one.value)
    row = table[(table["kind"] == "head") & (table["block"] == 4) & (table["head"] == 3)]
    without = lead(mini, forward(mini, TEXT, AGAIN, [(4, 3)]))
    assert row["takes away"].item() == pytest.approx(whole - without, abs=1e-4)


def test_over_many_texts_each_takes_those_of_its_own_other_text(run_page, mini, monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    template = "When {A} and {B} left, {B} spoke to"
    lists = "A, B: Tom, Mary, John"
    written = {"many": "template", "many_template": template, "many_lists": lists}
    at = run_page("knock_out", text=TEXT, null="other", **written)
    prompts = filled(mini, template, read_lists(lists)).prompts
    pairs = [(p.text, p.other, *(mini.encode(word)[0] for word in p.target)) for p in prompts]
    found = {}
    for head in ((0, 1), (5, 3)):
        falls = []
        for text, other, token, against in pairs:
            own, muted = (forward(mini, text, other, some) for some in ([], [head]))
            falls.append(float((own - muted)[token] - (own - muted)[against]))
        found[head] = np.mean(falls)
    opened(at, "numbers_many")
    table = next(one.value for one in at.dataframe if "effect_se" in one.value)
    heads = table[table["kind"] == "head"].set_index(["block", "head"])["effect"]
    assert [-heads[head] for head in found] == pytest.approx([*found.values()], abs=1e-4)
    picture = left_by_program(at, "in_code_many")["picture"]
    assert np.allclose(picture["effect"].to_numpy(float), table["effect"], atol=2e-5)


def test_in_python_the_other_text_is_a_baseline(mini, whole):
    bench = mini.which_part(TEXT, baseline="other")
    table = bench.knock_out()
    row = table[(table["block"] == 4) & (table["head"] == 3)]
    without = lead(mini, forward(mini, TEXT, AGAIN, [(4, 3)]))
    assert row["effect"].item() == pytest.approx(without - whole, abs=1e-4)
    small = random_lm()  # with mini's tokenizer
    asked = small.which_part(TEXT, " Mary", " Tom", baseline="other")
    nobody = lead(mini, forward(small, TEXT, AGAIN, all_heads(small)))
    assert asked.ranking().values[0] == pytest.approx(nobody, abs=1e-4)
    assert asked.circuit().empty == pytest.approx(nobody, abs=1e-4)
    with pytest.raises(ValueError, match="must be one of zero, mean, sample, other"):
        mini.which_part(TEXT, baseline="abc").story()


def test_a_link_to_knock_out_opens_the_measure_that_it_comes_from():
    at = turn(whole_app(text="The man took off", whole="on"), "knock_out")
    assert at.selectbox(key="measure").value is None  # the page's own: the probability
    at.session_state["mute"] = True
    at = turn(at, "why")
    label = "Switch parts off: the same, and by other measures"
    for name, (value,) in parse_qs(links(at)[label].query_string).items():
        at.query_params[name] = value
    at = turn(at, "knock_out")
    assert at.selectbox(key="measure").value == at.query_params["measure"] == "logit"
    at.selectbox(key="measure").set_value("loss").run()
    assert at.selectbox(key="measure").value == at.query_params["measure"] == "loss"
