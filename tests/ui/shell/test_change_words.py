"""What is changed, in words: every action of every menu, and what is said of it."""

import pytest

from gptviz import SITES, Edit
from gptviz.ui.shell import change_words
from gptviz.ui.shell.change_menu import Part, actions
from tests.conftest import random_lm
from tests.golden_files import check

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
EDITS = [
    *("z.1.0+2+3=zero", "z.1=sample", "z.*=mean", "attn.*=first", "attn.1=previous", "attn.0.1@2=uniform"),
    *("mlp_out.0@1+2=mean", "pos_emb=shuffle7", "pos_emb=zero", "resid_pre.1@-1=ids5+17+9", "final=ids7"),
    *("attn.1.2=hide3", "attn.*=hide9", "k.1.0=zero", "z.0.0+1+2+3+4+5+6+7+8+9=zero"),
]
UNSEEN = ("later", "beside", "later position", "other position")


def test_every_sentence():
    said = {edit: change_words.says(Edit.parse(edit), LABELS) for edit in EDITS}
    for part in PARTS:
        for action in actions(part):
            said[f"{part.name(LABELS)}: {action.label}"] = (
                f"{action.formula}\n{action.means}\n{action.python}\n{change_words.says(action.edit, LABELS)}"
            )
    what = "the prediction after “·old” (position 21)"
    said |= {f"cannot matter: {why}": change_words.cannot_matter(why, what) for why in UNSEEN}
    check("change_words", said)


def test_no_site_is_without_a_name():
    assert set(change_words.PARTS) == set(SITES)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.kind} {part.site}")
def test_every_line_of_python_is_that_change(part):
    lm, text = random_lm(), "one two three four five"
    for action in actions(part):
        assert Edit.parse(str(action.edit)) == action.edit
        found = eval(action.python, {"lm": lm, "text": text})
        assert found.edits == (action.edit,)
        assert (found.logits() == lm.trace(text, keep=[], edits=[action.edit]).logits()).all()
