"""The bench in Python: each of its numbers is that of the function which it calls, with the question filled in."""

from importlib import import_module

import numpy as np
import pytest

from gptviz.analysis.prompts import indirect_objects

TEXT = "When Tom and Mary left the garden, Tom gave the flowers to"
AGAIN = "When Tom and Mary left the garden, Mary gave the flowers to"


def same(one, other):
    assert one.equals(other)


def test_each_method_is_the_function_that_it_names(mini):
    bench = mini.which_part(TEXT, " Mary", " Tom", baseline="zero")
    pair = (" Mary", " Tom")
    assert bench.others == (AGAIN,)
    logits = mini.trace(TEXT).logits(-1)
    mary, tom = (mini.encode(name)[0] for name in pair)
    assert bench.logit_difference == pytest.approx(float(logits[mary] - logits[tom]), abs=1e-5)
    same(bench.votes(), mini.attribution(TEXT, pair))
    assert bench.votes()["contribution"].sum() == pytest.approx(bench.logit_difference, abs=1e-4)
    same(bench.knock_out(), mini.knock_out(TEXT, pair, baseline="zero"))
    same(bench.patching(sites=["z"]), mini.patching(TEXT, AGAIN, pair, sites=["z"]))
    read = [("q", 5, 4)]
    same(bench.path_patching(read), mini.path_patching(TEXT, AGAIN, pair, receivers=read))
    by_token = bench.votes_by_token()
    heads = bench.votes().query("part == 'head'")["contribution"]
    assert by_token.sum(dim=-1).flatten().tolist() == pytest.approx(heads.tolist(), abs=1e-5)
    ranking = bench.ranking()
    assert ranking.whole == pytest.approx(bench.logit_difference, abs=1e-5)


def test_without_a_question_the_text_is_asked(mini):
    bench = mini.which_part(TEXT)
    assert bench.questions == mini.which_part(TEXT, " Mary", " Tom").questions


def test_a_name_of_two_tokens_is_asked_for_by_its_first(mini):
    bench = mini.which_part("When Tom and Anna left the garden, Tom spoke to", " Anna", " Tom")
    assert len(mini.encode(" Anna")) == 2
    assert bench.questions[0][0] == mini.encode(" Anna")[0]
    # with Anna again it has another number of tokens
    assert bench.others == ("When Tom and Anna left the garden, John spoke to",)


@pytest.mark.parametrize("words", [("Mary", " Tom"), (" Mary", "Tom")])
def test_a_name_without_its_space_is_not_another_token_in_silence(mini, words):
    bare = next(word for word in words if not word.startswith(" "))
    assert mini.encode(bare) != mini.encode(f" {bare}")
    with pytest.raises(
        ValueError, match=f"is '{bare}', .* with a space .*: give ' {bare}', or an id"
    ):
        mini.which_part(TEXT, *words)
    # where the space is the text's own, and where the text does not have the word with one, it is what it says
    assert mini.which_part(f"{TEXT} ", "Tom", "Jack").questions[0][0] == mini.encode("Tom")[0]
    assert mini.which_part(TEXT, "John", "Jack").questions[0][0] == mini.encode("John")[0]
    assert mini.which_part(f"Tom: {TEXT}", "Tom", "Jack").questions[0][0] == mini.encode("Tom")[0]


def test_the_probability_is_kept_where_it_is_measured(mini):
    text = "The little birds sang beside the red mill. The little birds sang beside the red"
    bench = mini.which_part(text, " mill", " house", measure="probability")
    chance = mini.trace(text).next_tokens(k=1)["probability"].item()
    assert bench.ranking().whole == pytest.approx(chance, abs=1e-5)


def test_many_texts_have_means_and_no_circuit(mini):
    prompts = indirect_objects(mini, 3)
    texts = [prompt.text for prompt in prompts]
    bench = mini.which_part(
        texts, [prompt.token for prompt in prompts], [prompt.against for prompt in prompts]
    )
    assert bench.differences == pytest.approx(
        [mini.which_part(p.text, p.token, p.against).logit_difference for p in prompts]
    )
    table = bench.votes()
    assert (table["n"] == 3).all() and table["contribution_se"].notna().all()
    with pytest.raises(ValueError, match="circuit is of one text, and this question is asked of 3"):
        bench.circuit()


def test_the_texts_of_each_order_are_asked_apart(mini):
    """With one sentence left out, so that every other one is no order."""
    prompts = indirect_objects(mini, 6)[1:]
    words = zip(*(prompt.target for prompt in prompts), strict=True)
    bench = mini.which_part([prompt.text for prompt in prompts], *map(list, words))
    apart = bench.by_order()
    for order, first in (("ABBA", "token"), ("BABA", "against")):
        own = [prompt for prompt in prompts if prompt.text.split()[1] == getattr(prompt, first)[1:]]
        assert apart[order].texts == tuple(prompt.text for prompt in own) and len(own) in (2, 3)
        assert apart[order].others == tuple(prompt.other for prompt in own)
        same(
            apart[order].knock_out(),
            mini.knock_out([p.text for p in own], [p.target for p in own], baseline="mean"),
        )
    assert bench.orders == [prompt.order for prompt in prompts]
    assert apart["BABA"].by_order() == {} and mini.which_part("The man took off").orders == [None]


def test_the_error_of_the_difference_is_over_pairs_with_the_names_exchanged(mini):
    prompts = indirect_objects(mini, 6, exchanged=True)
    words = zip(*(prompt.target for prompt in prompts), strict=True)
    bench = mini.which_part([prompt.text for prompt in prompts], *map(list, words))
    of_pairs = np.reshape(bench.differences, (3, 2)).mean(axis=1)
    assert bench.logit_difference == pytest.approx(of_pairs.mean())
    assert bench.logit_difference_se == pytest.approx(of_pairs.std(ddof=1) / 3**0.5)
    assert np.isnan(mini.which_part("The man took off").logit_difference_se)


REPEATS = "The little birds sang beside the red mill. The little birds sang beside the red"


@pytest.mark.parametrize(
    ("text", "name", "of"),
    [
        (TEXT, "story", None),
        (REPEATS, "copied_story", REPEATS),
        ([REPEATS, f"Look. {REPEATS}"], "copied_story", [REPEATS, f"Look. {REPEATS}"]),
    ],
)
def test_the_story_is_of_what_the_texts_ask_and_follows_the_baseline(
    mini, monkeypatch, text, name, of
):
    called = []

    def note(lm, texts, **options):
        called.append((texts, options))

    module = import_module("gptviz.analysis.which_part")
    monkeypatch.setattr(module, "story", None)
    monkeypatch.setattr(module, "copied_story", None)
    monkeypatch.setattr(module, name, note)
    mini.which_part(text).story()
    mini.which_part(text, baseline="other").story()
    mini.which_part(text, baseline="mean").story(baseline="zero", progress=print)
    assert called == [
        (of, {"baseline": "sample"}),
        (of, {"baseline": "other"}),
        (of, {"baseline": "zero", "progress": print}),
    ]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"answer": " Mary"}, "give both answer and instead, or neither"),
        ({"answer": " Mary", "instead": " Mary"}, "target is twice"),
        ({"answer": " Mary", "instead": [" Tom", " Tom"]}, "1 texts and 2 of instead"),
        ({"measure": "loss"}, "must be one of logit, probability"),
        ({"baseline": "noise"}, "must be one of zero, mean, sample"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(mini, options, why):
    with pytest.raises(ValueError, match=why):
        mini.which_part(TEXT, **options)


def test_without_another_text_nothing_is_patched(mini):
    bench = mini.which_part("Once upon a", " time", " day")
    with pytest.raises(ValueError, match=r"could be made of 'Once upon a' .*give other="):
        bench.patching()
    two = mini.which_part([TEXT, "Once upon a"], [" Mary", " time"], [" Tom", " day"])
    with pytest.raises(ValueError, match="could be made of 'Once upon a'"):
        two.patching()
