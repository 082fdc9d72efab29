"""The Data windows page's sentences, all of them, for small inputs."""

from gptviz.lessons import Windows
from gptviz.ui.views.data_windows import words
from gptviz.ui.views.data_windows.tables import examples_table
from tests.golden_files import check


def cut(n, length=4, stride=1, batch=8, drop=True):
    return Windows(tuple(range(n)), length, stride, batch, drop)


def test_every_sentence():
    some, one, apart, beside = cut(22), cut(5), cut(40, 4, 6, 2), cut(33, 4, 4)
    check(
        "data_windows_words",
        {
            "what to see": words.what_to_see(some),
            "what to see: one window": words.what_to_see(one),
            "what to see: none": words.what_to_see(cut(1, 1)),
            "overlap": words.overlap(some),
            "overlap: none": words.overlap(beside),
            "overlap: a gap": words.overlap(apart),
            "overlap: one window": words.overlap(one),
            "batches: two are left": words.batches(some),
            "batches: two are kept": words.batches(cut(22, drop=False)),
            "batches: exactly": words.batches(beside),
            "batches: one is left": words.batches(cut(13)),
            "batches: a gap": words.batches(apart),
            "title": words.batch_title(some, 1),
            "title: one window": words.batch_title(cut(13, drop=False), 1),
            "title: dropped": words.batch_title(some, 2),
            "printed": words.printed("prompt", some, 0, "mini"),
            "printed: the book's": words.printed("book", beside, 0, "gpt2"),
            "printed: the book's text, otherwise cut": words.printed("book", cut(33, 4, 2), 0, "gpt2"),
            "examples": words.why_so_many(3, 4, 6.0412),
            "examples: something is changed": words.why_so_many(3, 4, 6.0412, 5.2),
            "left out": "\n".join(map(words.left_out, (1, 2))),
            "examples: one, of another tokenizer": words.why_so_many(0, 1, None),
            "cut short": words.cut_short(16, 64),
            "how often": words.how_often(some),
            "how often: no window": words.how_often(cut(1, 1)),
        },
    )


def test_a_long_context_is_written_from_its_end():
    tokens = [f"t{i}" for i in range(20)]
    page = examples_table([tokens[: i + 1] for i in range(20)], tokens[1:], None)
    assert page.count('<tr class="line">') == 16 and "… t4 t5" in page and "loss" not in page
