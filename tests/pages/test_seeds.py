"""What the seeds print, on the page where its subject is: each number is there, and is worked out there."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from gptviz.analysis.anatomy import NOTEBOOK, NOTEBOOK_PRINTS, anatomy
from gptviz.digits import significant
from gptviz.lessons import combined, embedding
from gptviz.training.live import gradients
from gptviz.ui.parts.attention_by_hand.sheets import four
from gptviz.ui.words import GLOSSARY
from tests.specs import charts, left_by_program, opened, paragraph, prose, table, words

TEXT = "The cat sat on the mat"


def test_tokens_has_the_special_words_and_every_words_id(run_page):
    at = run_page("tokens", text="Hello, brave world!", tok_fit="this prompt")
    longer, shorter = table(at, "words in a batch")
    # learnt from the prompt: ! , Hello brave world [BOS] [EOS] [PAD] [UNK]
    assert longer[1] == "[BOS] 5 | Hello 2 | , 1 | brave 3 | world 4 | ! 0 | [EOS] 6"
    assert shorter[1] == "[BOS] 5 | Hello 2 | , 1 | world 4 | ! 0 | [EOS] 6 | [PAD] 7"
    at = run_page("tokens", text="one two " * 30)
    assert "The table shows the first 12 words and punctuation marks of your text." in prose(at)
    longer, shorter = table(at, "words in a batch")
    assert longer[1].count("one") + longer[1].count("two") == 12 and "[UNK]" in shorter[1]


def test_embeddings_has_the_table_after_seed_123_and_the_shapes_of_a_batch(run_page, mini):
    at = opened(run_page("embeddings", text=TEXT), "emb_small")
    rows = table(at, "first table")
    assert [row[2:] for row in rows[:6]] == [
        [four(value) for value in row] for row in embedding.PRINTED
    ]
    assert rows[6][2:] == rows[3][2:]  # one-hot times the table is the row
    shapes = {row[0]: row[1:] for row in table(at, "batch shapes")}
    own = f"1 × {len(mini.encode(TEXT))} × {mini.config.emb_dim}"
    assert shapes["tok_emb(inputs)"] == shapes["their sum"] == ["8 × 4 × 256", own]
    assert shapes["pos_emb(torch.arange(T))"][0] == "4 × 256"
    torch.manual_seed(123)
    expected = torch.nn.Embedding(6, 3).weight.detach()
    assert torch.equal(left_by_program(at, "in_code_small")["picture"], expected)


def test_attention_by_hand_has_the_final_class(run_page):
    at = run_page("attention_by_hand", hand_way="combined")
    rows = table(at, "out_proj")
    assert [row[3:] for row in rows] == [[four(value) for value in row] for row in combined.PRINTED]
    assert "[0.2943, 0.3897]" in paragraph(at, "as printed in the book")
    assert [row[1] for row in table(at, "shapes")][-1] == "2 × 6 × 2"
    for head, chart in enumerate(charts(at)):
        cells = np.array(chart["data"][0]["z"], dtype=float)
        weights = combined.combined().weights[0, head].numpy()
        assert np.allclose(np.nan_to_num(cells), weights, atol=1e-6)
        assert np.isnan(cells).sum() == 15  # masked, and never 0
    picture = left_by_program(at)["picture"]
    assert [[four(value) for value in row] for row in picture.output[1].tolist()] == [
        row[3:] for row in rows
    ]


def test_anatomy_has_the_notebooks_count_and_says_what_is_more(run_page):
    at = run_page("anatomy")
    assert f"{NOTEBOOK_PRINTS:,}" not in prose(at)
    at.button_group(key="anatomy_preset").set_value("Let's build GPT").run()
    said = paragraph(at, f"{NOTEBOOK_PRINTS:,}")
    assert "5,468,928 + 65 = 5,468,993" in said and "5,468,928 parameters" in prose(at)
    at.number_input(key="anatomy_n_layers").set_value(NOTEBOOK.n_layers + 1).run()
    assert f"{NOTEBOOK_PRINTS:,}" not in prose(at)


def test_anatomy_draws_the_memory_of_the_scores(run_page, mini):
    sizes = {"context_length": 1024, "n_heads": 12, "n_layers": 12, "emb_dim": 768}
    at = run_page("anatomy", **{f"cfg_{name}": size for name, size in sizes.items()})
    shown = replace(mini.config, **sizes)
    (chart,) = [one for one in charts(at) if "bytes in float32" in str(one["layout"]["yaxis"])]
    lines = {trace["name"]: trace["y"] for trace in chart["data"]}
    lengths = [2**power for power in range(11)]
    assert [*lines["one head"]] == [4 * n**2 for n in lengths]
    assert [*lines["all blocks"]] == [144 * 4 * n**2 for n in lengths]
    (weights,) = {float(y) for y in lines["all weights, for comparison"]}
    assert weights == 4 * sum(one.parameters for one in anatomy(shown).tensors)
    assert "the scores of one block take **50.3 MB**" in words(
        at
    )  # 12 heads x 1,024 x 1,024 x 4 bytes


def test_layernorm_divides_by_n_and_says_what_n_minus_1_would_give(run_page, mini):
    at = run_page("layernorm", text=TEXT, token=2, ln_norm="block 1 · norm2")
    values = mini.trace(TEXT)["resid_mid", 1][2].double()
    said = words(at)
    for variance in (values.var(unbiased=False), values.var()):
        assert significant(float(variance), 6) in said
    assert f"divides by {mini.config.emb_dim}:" in said


def test_residual_stream_draws_the_vanishing_gradient(run_page):
    at = opened(run_page("residual_stream", text=TEXT, stream_depth=6), "stream_gradient")
    (chart,) = [one for one in charts(at) if "gradient" in str(one["layout"]["yaxis"])]
    measured = gradients.gradients_by_block(6)
    for name in gradients.VARIANTS:
        (drawn,) = [trace["y"] for trace in chart["data"] if trace["name"] == name]
        assert [*drawn] == pytest.approx([*measured[name]])
    rows = table(at, "five layers")
    printed = zip(gradients.PRINTED_WITHOUT, gradients.PRINTED_WITH, strict=True)
    assert [row[1:] for row in rows] == [
        [significant(value, 4) for value in pair] for pair in printed
    ]
    assert significant(measured["neither"][0]) in paragraph(at, "the gradient travels backwards")
    found = left_by_program(at, "in_code_gradients")["picture"]
    assert found.equals(measured)


# a term, and an address where it is asked for
ASKED = {
    "encoder": ("attention_by_hand", {"hand_way": "causal"}),
    "decoder": ("attention_by_hand", {"hand_way": "causal"}),
    "cross-attention": ("attention_by_hand", {"hand_way": "causal"}),
    "pre-norm": ("layernorm", {"text": TEXT}),
    "post-norm": ("layernorm", {"text": TEXT}),
    "one-hot": ("embeddings", {"text": TEXT, "emb_small": "open"}),
    "vanishing gradient": ("residual_stream", {"text": TEXT, "stream_gradient": "open"}),
}


@pytest.mark.parametrize(
    ("page", "query"), {page: (page, query) for page, query in ASKED.values()}.values()
)
def test_the_seeds_words_explain_themselves_where_they_stand(run_page, page, query):
    at = run_page(page, **{name: value for name, value in query.items() if value != "open"})
    at = opened(at, *(name for name, value in query.items() if value == "open"))
    explained = dict.fromkeys(re.findall(r'role="note" aria-label="[^"]*?: ([^"]*)"', prose(at)))
    for term, (where, _) in ASKED.items():
        assert (GLOSSARY[term].replace("'", "&#x27;") in explained) == (where == page), term
