"""What is changed, in words: every action of every menu, and what is said of it."""

import pytest

from gptviz import Edit
from gptviz.engine.sites import ALL_SITES
from gptviz.ui.shell import change_words
from gptviz.ui.shell.change_menu import Part, actions
from tests.conftest import random_lm
from tests.llama_models import both

LABELS = ["S", "even", "·green", "·par", "r"]
PARTS = [
    Part("head", 1, 3),
    Part("attention", 1),
    Part("feed-forward", 0),
    Part("token", position=2),
    Part("token", 1, 3, position=2),
    Part("site", site="embed", position=1),
    Part("site", 1, site="resid_pre", position=4),
    Part("site", 0, site="attn"),
]
EDITS = {
    "z.1.0+2+3=zero": "block 1 heads 0, 2, 3 off",
    "z.1=sample": "block 1, all heads, averaged over a sample of text",
    "attn.*=first": "all blocks, all heads look only at the first token",
    "attn.0.1@2=uniform": "block 0 head 1 looks at all tokens equally at “·green” (position 2)",
    "mlp_out.0@1+2=mean": "block 0 feed-forward at positions 1, 2 averaged over this text",
    "pos_emb=shuffle7": "position embeddings shuffled (7)",
    "resid_pre.1@-1=ids5+17+9": "block 1 stream going in at “r” (position 4) as in another text of 3 tokens",
    "attn.1.2=hide3": "“·par” (position 3) hidden from later tokens in block 1 head 2",
    "attn.*=hide9": "position 9 hidden from later tokens",
    "z.1.3=x0.5": "block 1 head 3 times 0.5",
    "mlp_out.1=x-1": "block 1 feed-forward times −1",
    "resid_post.1@-1=+2*tok5-out9+0.5*mean5+17-ids7": "block 1 stream going out at “r” (position 4) plus 2 × "
    "the embedding of “token 5” minus the output row of “token 9” plus 0.5 × the mean of another text of 2 "
    "tokens minus that of another text of 1 token",
    "k.1.0=zero": "block 1 head 0 keys off",
    "z.0.0+1+2+3+4+5+6+7+8+9=zero": "block 0 heads 0, 1, 2, 3, 4, 5, 6 and 3 more off",
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_change_in_words(edit):
    assert change_words.says(Edit.parse(edit), LABELS) == EDITS[edit]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("k.1.0=zero", "block 1 group 0 keys off"),
        ("v.1.0+1=zero", "block 1 groups 0, 1 values off"),
        ("q.1.4=zero", "block 1 head 4 queries off"),
        ("z.1.4=x0.5", "block 1 head 4 times 0.5"),
        ("attn.1.4=first", "block 1 head 4 looks only at the first token"),
        ("final=zero", "output of the last RMSNorm off"),
    ],
)
def test_a_change_of_a_model_with_groups_in_words(edit, said):
    config = both("llama")[0].config
    assert change_words.says(Edit.parse(edit), LABELS, config=config) == said


def test_no_site_is_without_a_name():
    assert set(change_words.PARTS) == set(ALL_SITES)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.kind} {part.site}")
def test_every_line_of_python_is_that_change(part):
    lm = random_lm()
    text = "one two three four five"
    for action in actions(part):
        assert Edit.parse(str(action.edit)) == action.edit
        found = eval(action.python, {"lm": lm, "text": text})
        assert found.edits == (action.edit,)
        assert (found.logits(-1) == lm.trace(text, keep=[], edits=[action.edit]).logits(-1)).all()
