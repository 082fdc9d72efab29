"""A name that was meant is asked for, whatever kind of name it is."""

import pytest

import gptviz
from gptviz.teach.guides import GuideError, find
from gptviz.teach.guides.keys import arguments
from gptviz.teach.handout import handout
from gptviz.text.suggest import did_you_mean
from gptviz.tokenizer import get_encoding


def test_the_nearest_name_is_asked_for_and_none_where_none_is_near():
    names = ["attn", "next_token", "gpt2-medium"]
    assert did_you_mean("atn", names) == " (did you mean attn?)"
    assert did_you_mean("Next token", names) == " (did you mean next_token?)"
    assert did_you_mean("GPT2 medium", names) == " (did you mean gpt2-medium?)"
    assert [did_you_mean(given, names) for given in ("something", "", None, 3, "attn " * 50)] == [
        ""
    ] * 5


WRONG = [
    (lambda t: t["atn", 3], "attn"),
    (lambda t: t.lm.trace("x", keep=["residpre"]), "resid_pre"),
    (lambda t: t.lm.trace("x", edits=["atn.3=zero"]), "attn"),
    (lambda t: t.show("atention"), "attention"),
    (lambda t: t.show("Logit lenses"), "logit_lens"),
    (lambda t: handout(t.lm, "x", page="atention"), "attention"),
    (lambda t: gptviz.load("mini-untraind"), "mini-untrained"),
    (lambda t: get_encoding("cl100k-base"), "cl100k_base"),
    (lambda t: find("lesson_2"), "lesson2"),
    (lambda t: arguments("neerest", "token", ()), "nearest"),
]


@pytest.mark.parametrize(("ask", "meant"), WRONG, ids=[meant for _, meant in WRONG])
def test_every_kind_of_name_is_asked_for(mini, ask, meant):
    with pytest.raises((ValueError, GuideError)) as refused:
        ask(mini.trace("The cat"))
    assert f" (did you mean {meant}?)" in str(refused.value)
