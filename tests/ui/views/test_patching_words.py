"""The sentences of the page "Patching", all in one golden file."""

import pytest

from gptviz.ui.views.patching import other_words, words
from gptviz.ui.views.patching.words import DENOISING, LOGITS, NOISING, Cell, Said
from tests.golden_files import check

MILL, BARN = Said("·mill", 0.906), Said("·barn", 0.899)


def test_the_sentences():
    first, last = Cell(0, 10, "·mill", "·barn", 1.0), Cell(5, 21, "·old", "·old", 0.0193)
    lost, none = Cell(5, 21, "·old", "·old", -0.95), Cell(2, 1, "a", "a", 0.001)
    apart = Cell(3, 4, "a", "b", -0.4)
    parts = {"z": 0.41, "q": 0.13, "k": -0.083, "v": 0.41, "attn": 0.0003}
    said = {
        "denoising": words.sentence(DENOISING, "resid_pre", "·old", MILL, BARN, first, last, 0.01),
        "noising": words.sentence(NOISING, "attn_out", "·old", MILL, BARN, lost, apart, 0.01),
        "the wrong way": words.sentence(DENOISING, "mlp_out", "·old", MILL, BARN, apart, none, 0.01),
        "no place alone": words.sentence(DENOISING, "mlp_out", "·old", MILL, BARN, none, None, 0.02),
        "the same answer": words.sentence(NOISING, "resid_pre", "·old", MILL, MILL, first, None, 0.02),
        "scale": words.scale("·barn", "·mill", 10.8, -8.53, DENOISING),
        "scale, noising": words.scale("·barn", "·mill", 10.8, -8.53, NOISING),
        "scale, changed": words.scale("·barn", "·mill", 10.8, -8.53, DENOISING, (11.2, -3.0)),
        "scale, too close": words.scale("·barn", "·mill", 0.14, -0.22, LOGITS),
        "scale, unchanged too close": words.scale("·barn", "·mill", 3.0, -0.22, LOGITS, (0.3, 0.1)),
        "too close": words.sentence(LOGITS, "attn_out", "·old", MILL, BARN, lost, apart, 0.02),
        "too close, no place": words.sentence(LOGITS, "resid_pre", "·old", MILL, BARN, none, None, 0.02),
        "too close, unchanged": words.then(LOGITS, words.FIRST, 0.18),
        "too close, heads": words.head_sentence(LOGITS, 0, 1, 0.41, parts, [(5, 0, -0.03)]),
        "too close, patches": words.together(1, 0.18, LOGITS) + " " + words.together(2, -0.5, LOGITS),
        "too close, numbers": words.numbers(LOGITS) + words.unit(LOGITS),
        "unchanged": words.then(DENOISING, words.FIRST, 0.93),
        "unchanged, noising": words.then(NOISING, words.OUTPUT, 0.2),
        "unchanged, nothing": words.then(DENOISING, words.FIRST, 0.001),
        "heads": words.head_sentence(DENOISING, 0, 1, 0.41, parts, [(0, 5, 0.2), (5, 0, -0.03)]),
        "one head": words.head_sentence(NOISING, 0, 0, -0.41, parts, []),
        "one token more": other_words.different_counts(15, 16, [("·now", '?"', 4)], True),
        "five tokens more": other_words.different_counts(
            9, 4, [("a", "b", 0), ("c", None, 4), ("d", None, 4), ("e", None, 4), ("f", None, 4)], False
        ),
        "same answer": words.same_answer("·the"),
        "no scale": words.no_scale("·the", "·a", 1.2, 1.2),
        "made": other_words.made("·mill", "·man", 10),
        "one patch": words.together(1, 0.98, DENOISING),
        "three patches, noising": words.together(3, -0.5, NOISING),
        "offer": words.offer(36864),
        "progress": words.patching(3, 132),
        "directions": words.DIRECTIONS,
        "click": words.CLICK,
        "head map": words.HEADS,
        "nothing": other_words.NOTHING_MADE,
        "none found": other_words.NONE_FOUND,
        "the same text": other_words.SAME,
        "numbers": words.numbers(DENOISING),
        "tokens": words.TOKENS,
    }
    check("patching_words", said | {f"watch {site}": text for site, text in words.WATCH.items()})


@pytest.mark.parametrize("way", words.WAYS)
def test_the_two_texts_have_the_two_roles(way):
    assert sorted(words.roles(way)) == ["clean", "corrupt"]
    assert words.roles(way)[0] == ("corrupt" if way == DENOISING else "clean")
