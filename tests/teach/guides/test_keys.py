"""The keys of questions are what the model gives: each against its own definition, on two models."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
import torch

from gptviz import Edit, LanguageModel, load
from gptviz.analysis.head_roles import roles
from gptviz.analysis.tokens import chapter
from gptviz.digits import fixed, percent
from gptviz.lessons.sentences import SENTENCES
from gptviz.teach.guides import Question, files, keys, read
from gptviz.teach.guides.answers import CannotAsk
from gptviz.teach.guides.keys import KEYS
from gptviz.training.datasets import TokenWindows
from gptviz.training.live import side_by_side
from gptviz.training.live.switched import SwitchedModel
from tests.conftest import random_lm
from tests.models.checkpoints import makers

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"
NUMBERS = "One two three four five six seven eight nine"


@pytest.fixture(params=["mini", "lm"])
def model(request):
    return request.getfixturevalue(request.param)


def asked(lm, name, given=None, *arguments, text=TEXT, position=-1):
    trace = lm.trace(text)
    at = position % len(trace)
    # no more than it says it reads
    kept = lm.trace(text, keep=keys.sites(name, lm, at, given, *arguments))
    return KEYS[name][1](lm, kept, at, given, *arguments), trace


def left(lm, *edits):
    """What these edits leave of the probability of what the model would write next."""
    plain, changed = (lm.trace(TEXT, keep=[], edits=some).logits(-1) for some in ((), edits))
    return float(changed.double().softmax(-1)[int(plain.argmax())])


def losses(lm, *edits):
    """(T - 1,): the loss at every token but the first."""
    ids = torch.tensor(lm.encode(TEXT))
    logits = lm.trace(TEXT, edits=edits).logits()
    return torch.nn.functional.cross_entropy(logits[:-1].double(), ids[1:], reduction="none")


def through_the_head(lm, trace):
    """(L + 1, V): the last token's stream, before all blocks and after each, as the model reads its end."""
    rows = [
        trace["resid_pre", 0][-1],
        *(trace["resid_post", b][-1] for b in range(lm.config.n_layers)),
    ]
    with torch.no_grad():
        return lm.model.final_norm(torch.stack(rows)) @ lm.model.out_head.weight.T


def test_the_strongest_head_of_a_text(model):
    own = NUMBERS
    trace = model.trace(own)
    attn = torch.stack([trace["attn", b] for b in range(model.config.n_layers)])  # (L, H, T, T)
    back = attn.diagonal(-1, 2, 3).mean(-1)  # (L, H)
    for block, head in ((0, 0), divmod(int(back.argmax()), back.shape[1])):
        found, _ = asked(model, "strongest", (own, f"{block}.{head}"), "previous")
        assert found.score == pytest.approx(float(back[block, head]), abs=1e-5)
        assert f"block {block}, head {head}" in found.said
        assert found.right == ((block, head) == found.truth)
    short, _ = asked(model, "strongest", ("too short", "0.0"), "previous")
    assert short.score is None and "too short" in short.said and not short.right


def test_a_circuit_keeps_neither_less_nor_more_and_the_fewest_heads_rank_first(model):
    everyone = [*np.ndindex(model.config.n_layers, model.config.n_heads)]
    every = "+".join(f"{block}.{head}" for block, head in everyone)
    kept, _ = asked(model, "smallest_circuit", (TEXT, every))
    assert kept.right and kept.score == -len(everyone)
    assert kept.truth == pytest.approx(left(model), abs=1e-5)
    one, _ = asked(model, "smallest_circuit", (TEXT, "0.1"))
    heads = range(model.config.n_heads)
    silent = [[h for h in heads if (b, h) != (0, 1)] for b in range(model.config.n_layers)]
    p = left(model, *(Edit("z", b, "mean", some) for b, some in enumerate(silent)))
    assert f"1 head with {percent(p)}" in one.said
    assert (one.score is None) == (not one.right)


def test_the_next_word(model):
    found, trace = asked(model, "next_word")
    p = trace.logits(-1).double().softmax(-1)
    assert found.truth == int(p.argmax()) and found.right is None
    word = model.decode([found.truth])
    # "." stands without a space
    firsts = {model.encode(text)[0] for text in (word, f" {word.lstrip()}")}
    assert asked(model, "next_word", word)[0].right == (found.truth in firsts)
    other, _ = asked(model, "next_word", "umbrella")
    assert other.right is False and other.facts["given_rank"].replace(",", "").isdigit()
    # a space is a token of its own before it, and nobody's guess
    emoji, _ = asked(model, "next_word", "🎉")
    first = model.encode("🎉")[0]
    rank = int((p > p[first]).sum()) + 1
    assert emoji.facts["given_rank"] == f"{rank:,}" and emoji.right == (found.truth == first)


@pytest.mark.parametrize(
    "typed", [str.capitalize, str.upper, "“{}”".format, "·{}".format, "'{}'.".format]
)
def test_a_word_is_right_as_a_phone_or_the_screen_writes_it(mini, typed):
    """A phone begins with a capital, and the screen shows the token with its space as a dot."""
    for key, word, more in (("next_word", "mill", ()), ("lens_word", "red", (0,))):
        found, _ = asked(mini, key, typed(word), *more)
        assert found.right and not asked(mini, key, typed("barn"), *more)[0].right
    assert asked(mini, "next_word", "Mill")[0].facts["given_rank"] == "1"
    assert asked(mini, "next_word", "'s", text="It was the king")[0].said == "`'s`"
    assert asked(mini, "next_word", "“umbrella”.")[0].said == "`·umbre` of `umbrella`"
    assert asked(mini, "token_count", 1_234_567.0)[0].said == "1234567"


def test_a_model_of_characters_is_asked_for_one_that_it_never_saw(tmp_path):
    few = load(makers.save_characters(tmp_path))
    found, _ = asked(few, "next_word", "🎉", text="ABBA")
    assert found.right is False and "given_rank" not in found.facts
    for key in ("chance", "nearest"):
        with pytest.raises(CannotAsk, match="no single token"):
            asked(few, key, None, "a", text="ABBA")


def test_what_a_head_looks_at(model):
    for query in (3, -1):
        found, trace = asked(model, "looked_at", None, 1, 2, position=query)
        row = trace["attn", 1][2, query]
        assert found.truth == int(row.argmax()) and f"position {found.truth}" in found.shown
        assert asked(model, "looked_at", found.truth, 1, 2, position=query)[0].right
        assert not asked(model, "looked_at", (found.truth + 1) % len(trace), 1, 2, position=query)[
            0
        ].right


def test_a_head_with_a_role(mini, lm):
    found, trace = asked(mini, "head_with", None, "previous")
    share = [[float(a.diagonal(-1).mean()) for a in trace["attn", b]] for b in range(6)]
    assert found.truth == np.unravel_index(np.argmax(share), (6, 8)) == (4, 3)
    assert asked(mini, "head_with", (4, 3), "previous")[0].right
    assert not asked(mini, "head_with", (0, 0), "previous")[0].right
    many, _ = asked(mini, "head_with", (5, 7), "induction")
    assert many.right and many.facts["heads"] == "5"
    with pytest.raises(CannotAsk):
        asked(lm, "head_with", None, "induction", text="one")


def test_what_is_left_without_a_part(model):
    edit = "z.1.2=zero"
    share = 100 * left(model, edit)
    assert asked(model, "without", None, edit)[0].truth == pytest.approx(share, rel=1e-4)
    assert asked(model, "without", share + 14, edit)[0].right
    assert not asked(model, "without", share + 16, edit)[0].right


def test_temperature_and_nucleus(model):
    logits = model.trace(TEXT).logits(-1).double()
    found, _ = asked(model, "at_temperature", None, 2.0)
    assert found.truth == pytest.approx(100 * float((logits / 2).softmax(-1).max()))
    word = model.decode([int(model.trace(TEXT).logits(-1).argmax())])
    expected = 100 * left(model)
    assert asked(model, "chance", expected + 14, word)[0].right
    assert asked(model, "chance", None, word)[0].truth == pytest.approx(expected, abs=1e-4)
    count, _ = asked(model, "nucleus", None, 0.9)
    ordered = logits.softmax(-1).sort(descending=True).values
    assert float(ordered[: count.truth].sum()) >= 0.9 > float(ordered[: count.truth - 1].sum())


def test_the_dearest_token(model):
    found, _ = asked(model, "dearest")
    assert found.truth == int(losses(model).argmax()) + 1
    assert asked(model, "dearest", found.truth)[0].right and not asked(model, "dearest", 0)[0].right


def test_when_the_guess_is_settled(model):
    found, trace = asked(model, "settled")
    tops = through_the_head(model, trace).argmax(-1).tolist()
    last = max((at + 1 for at, top in enumerate(tops) if top != tops[-1]), default=0)
    assert found.truth == last


def test_pieces_and_neighbours(mini):
    found, _ = asked(mini, "pieces", 5, "unbelievable")
    assert found.truth == 5 and found.right and len(found.facts["pieces"].split(" ")) == 5
    near, _ = asked(mini, "nearest", None, " red")
    weight = mini.model.tok_emb.weight.detach()
    mine = mini.encode(" red")[0]
    cosine = torch.cosine_similarity(weight, weight[mine], dim=1)
    cosine[mine] = -2
    assert (
        near.truth == int(cosine.argmax()) and near.shown in near.options and len(near.options) == 4
    )
    assert asked(mini, "nearest", near.shown, " red")[0].right


def test_of_tokens_rows_and_windows(model):
    found, trace = asked(model, "token_count")
    assert found.truth == len(trace) == len(model.encode(TEXT)) and found.facts["words"] == "15"
    assert asked(model, "token_count", len(trace))[0].right
    for one, other in ((" the", "the"), (" the", " the")):
        same, _ = asked(model, "same_id", None, one, other)
        assert same.shown == same.options[model.encode(one) != model.encode(other)]
    again, trace = asked(model, "row_again")
    copy = [token.id for token in trace.tokens].index(trace.tokens[-1].id)
    weight = model.model.tok_emb.weight.detach()
    places = model.model.pos_emb.weight.detach()
    row = weight[trace.tokens[-1].id]
    sums = row + places[copy], row + places[len(trace) - 1]
    assert again.shown == again.options[1] and not torch.equal(*sums)
    assert again.facts["cosine"] == f"{float(torch.cosine_similarity(*sums, dim=0)):.2f}".replace(
        "-", "−"
    )
    with pytest.raises(CannotAsk, match="appear earlier in the text"):
        asked(model, "row_again", position=0)


def test_windows(model):
    for length, stride in ((4, 1), (4, 4), (3, 2)):
        found, trace = asked(model, "window_count", None, length, stride)
        starts = [s for s in range(0, len(trace), stride) if s + length < len(trace)]
        assert found.truth == len(starts)
    target, trace = asked(model, "last_target", None, 4, 2)
    dataset = TokenWindows(np.array([token.id for token in trace.tokens]), 4, 1)
    assert trace.tokens[target.truth].id == int(dataset[2][1][-1]) and target.truth == 6


def test_what_is_drawn(model):
    logits = model.trace(TEXT).logits(-1).double()
    found, _ = asked(model, "temperature_changes", None, 2.0)
    assert found.truth == found.options[2] and torch.equal((logits / 2).argsort(), logits.argsort())
    assert found.facts["logit"] == f"{float(logits.max()):.2f}".replace("-", "−")
    assert asked(model, "temperature_changes", None, 1.0)[0].truth == found.options[3]
    top, _ = asked(model, "with_top_k", None, 5)
    assert top.truth == pytest.approx(100 * float(logits.topk(5).values.softmax(0)[0]))
    same, _ = asked(model, "drawn_twice", None, 1.0, 7, 7, 8)
    assert same.truth == same.options[0] and same.facts["first"] == same.facts["second"]
    other, _ = asked(model, "drawn_twice", None, 1.0, 7, 8, 8)
    assert other.truth == other.options[1]
    assert asked(model, "drawn_twice", None, 0.0, 7, 8, 8)[0].truth == other.options[0]


def test_nothing_is_kept_beside_the_text(model):
    found, _ = asked(model, "after_another", None, "A red barn.")
    assert found.truth == found.options[0] and float(found.facts["difference"]) < 1e-4
    with patch.object(
        LanguageModel, "trace", autospec=True, side_effect=LanguageModel.trace
    ) as reading:
        wrote, trace = asked(model, "written_or_read", None, 4)
    ids = [token.id for token in trace.tokens]
    for _ in range(4):
        ids.append(int(model.trace(ids).logits(-1).argmax()))
    assert wrote.truth == wrote.options[0]
    assert reading.call_args.args[1] == ids  # all four, and the list is the fifth token's
    assert wrote.facts["wrote"] == f"“{model.decode(ids[-4:]).strip()}”".replace("\n", " ")


def test_more_of_heads(mini, lm):
    assert (
        asked(mini, "to_later", None, 4, 3)[0].truth
        == asked(lm, "to_later", None, 0, 0)[0].truth
        == 0
    )
    even, trace = asked(mini, "heads_with", None, "even")
    kinds = [[one.kind for one in row] for row in roles(trace)]
    assert even.truth == sum(row.count("even") for row in kinds)
    here, trace = asked(mini, "role_here", None, 5, 0)
    ids = [token.id for token in trace.tokens]
    follows = [
        (q, k + 1) for q, one in enumerate(ids) for k in range(q) if ids[k] == one and k + 1 < q
    ]
    assert np.mean([float(trace["attn", 5][0, q, k]) for q, k in follows]) > 0.7
    assert here.facts["role"] == "induction" and "after an earlier copy" in here.truth


def test_what_is_needed(mini):
    more, _ = asked(mini, "needed_more", None, "5.3", "4.3")
    assert more.truth == "Block 4, head 3" and left(mini, "z.4.3=zero") < left(mini, "z.5.3=zero")
    assert asked(mini, "needed_more", more.truth, "5.3", "4.3")[0].right
    most, _ = asked(mini, "needed_most")
    assert most.truth == min(
        np.ndindex(6, 8), key=lambda head: left(mini, f"z.{head[0]}.{head[1]}=zero")
    )
    lost = left(mini) - left(mini, "z.{}.{}=zero".format(*most.truth))
    assert most.facts["lost"] == f"{100 * lost:.0f} points of 100"
    assert (
        asked(mini, "needed_most", most.truth)[0].right
        and not asked(mini, "needed_most", (3, 3))[0].right
    )
    changed, _ = asked(mini.edited("final=x-1"), "needed_most")
    assert changed == most  # of the unchanged model, its own word and no other's
    both, _ = asked(mini, "without", None, "z.5.0=zero,z.5.3=zero")
    assert both.truth == pytest.approx(100 * left(mini, "z.5.0=zero", "z.5.3=zero"), rel=1e-3)
    assert both.facts["alone"] == "74 % or 91 %"


def test_of_a_models_only_head_it_is_not_asked_which_is_needed_most():
    lm = random_lm(n_layers=1, n_heads=1)
    with torch.no_grad():  # so that the head is missed
        lm.model.trf_blocks[0].att.out_proj.weight.mul_(10)
        lm.model.final_norm.scale.mul_(8)
    with pytest.raises(CannotAsk, match="one head only"):
        asked(lm, "needed_most")


KING, HIS = (f"The king loved his daughter, but {one} did not love" for one in ("she", "he"))


def test_what_a_patch_brings_back(mini):
    clean = mini.trace(HIS)  # as on the page: values of the other text
    corrupt = mini.trace(KING)
    pair = int(clean.logits(-1).argmax()), int(corrupt.logits(-1).argmax())

    def back(edit):
        ends = [
            float(one.logits(-1)[pair[0]] - one.logits(-1)[pair[1]]) for one in (clean, corrupt)
        ]
        logits = mini.trace(KING, edits=[edit]).logits(-1)
        return (float(logits[pair[0]] - logits[pair[1]]) - ends[1]) / (ends[0] - ends[1])

    for block, at in ((3, 7), (4, 10)):
        found, _ = asked(mini, "carries", None, HIS, block, text=KING)
        here = clean["resid_pre", block][at : at + 1]
        assert found.truth == at
        assert found.facts["back"] == percent(back(Edit("resid_pre", block, here, positions=[at])))
    head, _ = asked(mini, "hands_over", None, HIS, text=KING)
    assert head.truth == (3, 7)
    edit = Edit("z", 3, clean["z", 3][7:8], heads=[7])
    assert head.facts["back"] == percent(back(edit))


def less_same_more(change, as_good_as_none):
    """Which of three options is true: 0 for less, 1 for the same, 2 for more."""
    if abs(change) < as_good_as_none:
        return 1
    return 0 if change < 0 else 2


def test_more_of_losses(model):
    assert (
        asked(model, "loss_of", 0.7, 50)[0].right and not asked(model, "loss_of", 1.0, 50)[0].right
    )
    assert asked(model, "blind_loss")[0].truth == pytest.approx(np.log(model.config.vocab_size))
    plain = losses(model)
    mean = float(plain.mean())
    assert asked(model, "mean_loss")[0].truth == pytest.approx(mean, abs=1e-4)
    part, _ = asked(model, "second_part", None, 9)
    first = float(plain[:8].mean())
    second = float(plain[8:].mean())
    assert (
        part.truth == part.options[less_same_more(second - first, 0.1)]
        and part.facts["second"] == f"{second:.2f}"
    )
    without = float(losses(model, "z.1.2=zero").mean())
    found, _ = asked(model, "loss_without", None, "z.1.2=zero")
    assert found.truth == found.options[less_same_more(mean - without, 0.01)]
    assert found.facts["after"] == f"{without:.2f}"


def test_of_the_stream(model):
    found, trace = asked(model, "normalised", None, "block 1 · norm1")
    x = trace["resid_pre", 1][-1].double()
    assert found.truth == pytest.approx(
        float(x.var(correction=0) / (x.var(correction=0) + 1e-5)), abs=1e-4
    )
    norm = model.model.trf_blocks[1].norm1
    with torch.no_grad():
        one, two = (norm(by * trace["resid_pre", 1][-1]) for by in (1, 2))
    moved = float((two - one).abs().max() / one.abs().max())
    doubled, _ = asked(model, "doubled", None, "block 1 · norm1")
    assert (doubled.truth == doubled.options[1]) == (moved < 0.05)
    assert (doubled.facts["moved"] == "0 %") == (moved < 1e-9)
    last = model.config.n_layers - 1
    sizes = [float(trace[site][-1].norm()) for site in (("resid_pre", 0), ("resid_post", last))]
    longer, _ = asked(model, "longer")
    assert (longer.truth == longer.options[0]) == (sizes[1] > 1.25 * sizes[0])
    assert asked(model, "adds_up")[0].truth == asked(model, "adds_up")[0].options[0]
    added = trace["attn_out"].sum(0) + trace["mlp_out"].sum(0)
    assert torch.allclose(trace["resid_pre", 0] + added, trace["resid_post", last], atol=1e-3)


def test_of_the_lens(model):
    first, *blocks = through_the_head(model, model.trace(TEXT))
    word, _ = asked(model, "lens_word", None, 0)
    assert word.truth == int(first.argmax())
    assert asked(model, "lens_word", model.decode([word.truth]), 0)[0].right
    end = int(blocks[-1].argmax())
    rises, _ = asked(model, "lens_rises", None, 1)
    before, after = (row.softmax(-1) for row in blocks[:2])
    assert rises.truth == ("Larger" if after[end] >= before[end] else "Smaller")
    assert rises.facts["rank_after"] == f"{int((after > after[end]).sum()) + 1:,}"


WORDS = ("Your", "journey", "starts", "with", "one", "step")


def test_attention_by_hand(lm):
    x = torch.tensor(SENTENCES["Your journey starts with one step"].vectors)
    weights = torch.softmax(x[1] @ x.T, dim=0)
    most, _ = asked(lm, "hand_most", None, "simple", "journey")
    assert most.options == WORDS and most.truth == WORDS[int(weights.argmax())]
    # as the book prints it
    assert most.facts["weight"] == f"{float(weights.max()):.4f}" == "0.2379"
    assert asked(lm, "hand_sum", 1, "simple", "journey")[0].right
    assert asked(lm, "hand_seen", None, "causal", "starts")[0].truth == 3
    assert asked(lm, "hand_seen", None, "weights", "starts")[0].truth == 6
    torch.manual_seed(789)
    query, key, _ = (torch.nn.Linear(3, 2, bias=False) for _ in range(3))
    with torch.no_grad():
        scores = query(x) @ key(x).T
    mirror, _ = asked(lm, "hand_mirror", None, "weights", "journey", "starts")
    assert mirror.truth == "No" and mirror.facts["forth"] == fixed(float(scores[1, 2]), 4)
    assert mirror.facts["back"] == fixed(float(scores[2, 1]), 4)
    assert asked(lm, "hand_mirror", None, "simple", "journey", "starts")[0].truth != "No"
    wide, narrow = (asked(lm, "hand_width", None, kind)[0].truth for kind in ("heads", "causal"))
    assert wide == 2 * narrow
    draws = torch.randn(2000, 8, generator=torch.Generator().manual_seed(1)).double() * 1024**0.5
    spread = torch.special.entr(draws.softmax(-1)).sum(-1).exp().mean()
    found, _ = asked(lm, "undivided", None, 1024)
    assert found.truth == pytest.approx(float(spread), abs=0.1)


def test_counts_and_one_step(model):
    found, _ = asked(model, "after_character", None, "q")
    text = chapter()
    after = Counter(two for one, two in pairwise(text) if one == "q")
    (best, times), *_ = after.most_common(1)
    assert found.truth == f"`{best}`" and found.facts["probability"] == percent(
        times / after.total()
    )
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    step, trace = asked(model, "one_step", None, 0.001)
    assert all(torch.equal(value, before[name]) for name, value in model.model.state_dict().items())
    # rows of later positions
    unread = (model.config.context_length - len(trace)) * model.config.emb_dim
    total = sum(parameter.numel() for parameter in model.model.parameters())
    assert step.truth <= 100 * (1 - unread / total) + 1e-6 and step.truth > 30
    assert float(step.facts["after"]) < float(step.facts["before"])
    mean = asked(model, "mean_loss")[0].truth
    assert float(step.facts["before"]) == pytest.approx(mean, abs=0.006)


def test_the_five_switches(lm):
    """Against models that are built and trained here: what is asked knows nothing of the model that is shown."""
    config = side_by_side.usual("chapter")
    gpt = config.gpt_config(len({*chapter()}))
    built = {name: SwitchedModel(gpt, on) for name, on in side_by_side.VARIANTS.items()}
    count = {name: sum(w.numel() for w in model.parameters()) for name, model in built.items()}
    for variant, model in built.items():
        share = model.trf_blocks[0].att.W_key.out_features / gpt.emb_dim
        cache, _ = asked(lm, "switch_cache", 100 * share, variant)
        assert cache.right and cache.shown == percent(share) and cache.facts["tokens"] == "64"
        saved, _ = asked(lm, "switch_saves", count["GPT-2"] - count[variant], variant)
        assert saved.right and not asked(lm, "switch_saves", -1, variant)[0].right
        size, _ = asked(lm, "switch_size", None, variant)
        assert (size.truth == "Fewer") == (count[variant] < 0.99 * count["GPT-2"])
        assert (size.truth == "More") == (count[variant] > 1.01 * count["GPT-2"])
    assert asked(lm, "switch_saves", None, "RoPE")[0].truth == gpt.context_length * gpt.emb_dim
    found, _ = asked(lm, "switch_loss", None, "RoPE", 4)
    few = replace(config, steps=4, every=4)
    loss, base = (side_by_side.learn(name, few).final for name in ("RoPE", "GPT-2"))
    assert found.facts == {"loss": fixed(loss, 2), "base": fixed(base, 2)}
    assert (found.truth == "Lower") == (loss < base)
    agree, _ = asked(lm, "seeds_agree", 25, 3)
    assert agree.right and agree.facts["ways"] == "8"  # of eight ways, +++ and ---


@pytest.mark.parametrize(
    ("said", "name", "given", "arguments"),
    [
        ("no block 40", "strongest", (NUMBERS, "40.0"), ["previous"]),
        ("is no head", "strongest", (NUMBERS, "x"), ["previous"]),
        *(("name", "strongest", (NUMBERS, wrong), ["previous"]) for wrong in ("0.0+0.1", "")),
        (r"no head 99\.0", "looked_at", None, [99, 0]),
        ("position 16 was your answer, and this text ends at 15", "looked_at", 16, [0, 0]),
        ("role is 'chief'", "head_with", None, ["chief"]),
        ("cannot be made", "without", None, ["z.99=zero"]),
        ("cannot be made", "without", None, ["nonsense"]),
        ("no single token", "chance", None, ["two words"]),
        ("temperature", "at_temperature", None, [0.0]),
        ("single token", "nearest", None, [" unbelievable"]),
        ("no window 99", "last_target", None, [4, 99]),
        ("too few", "window_count", None, [200, 1]),
        ("no block 9", "role_here", None, [9, 0]),
        ("is no head", "needed_more", None, ["4", "4.3"]),
        ("no block 9", "needed_more", None, ["9.9", "4.3"]),
        ("cannot be patched", "carries", None, ["too short", 3]),
        ("no norm is called", "doubled", None, ["block 99 · norm1"]),
        ("has 6 blocks", "lens_word", None, [99]),
        ("no block 99", "lens_rises", None, [99]),
        ("word is .moon.", "hand_sum", None, ["simple", "moon"]),
        ("other", "hand_width", None, ["other"]),
        ("3", "undivided", None, [3]),
        ("word is .moon.", "hand_mirror", None, ["simple", "moon", "one"]),
        ("has no", "after_character", None, ["ß"]),
        ("variant is 'Lama'", "switch_cache", None, ["Lama"]),
        ("steps is 600; a question may train 40", "switch_loss", None, ["RoPE", 600]),
        ("seeds is 0", "seeds_agree", None, [0]),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(mini, said, name, given, arguments):
    with pytest.raises(CannotAsk, match=said):
        asked(mini, name, given, *arguments)


def test_arguments_are_those_of_the_function():
    assert keys.arguments("looked_at", "token", (("head", 3), ("block", 4))) == (4, 3)
    for name, kind, given, said in (
        ("none", "token", (), "no key 'none'"),
        ("looked_at", "head", (), "of the kind token"),
        ("looked_at", "token", (("block", 4),), "takes block, head, not block"),
        ("looked_at", "token", (("block", "4"), ("head", 3)), "must be int"),
    ):
        with pytest.raises(ValueError, match=said):
            keys.arguments(name, kind, given)


def test_an_answer_is_of_the_text_and_the_token_of_its_place(mini):
    ask = Question("word", "What comes next?", "next_word")
    special = "The cat<|endoftext|>"
    for place, ids in (
        ({"text": TEXT, "token": "3"}, mini.encode(TEXT)[:4]),
        ({"text": TEXT, "token": "999"}, mini.encode(TEXT)),
        ({"text": special, "special": "on"}, mini.encode(special, special_tokens=True)),
    ):
        assert keys.answer_at(place, ask, mini).truth == int(mini.trace(ids).logits(-1).argmax())
    with pytest.raises(CannotAsk, match="no tokens"):
        keys.answer_at({"text": ""}, ask, mini)


@pytest.mark.parametrize("name", files())
def test_every_question_that_ships_has_a_key(name):
    for step in read(files()[name].read_text("utf-8")).steps:
        if step.ask is not None:
            assert isinstance(keys.arguments(step.ask.key, step.ask.kind, step.ask.given), tuple)
            assert len(step.ask.hints) == 3
