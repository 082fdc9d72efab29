"""The table of sites is the whole truth: shapes, places, and what an edit of each has to do."""

import ast
from pathlib import Path

import pytest
import torch

from gptviz.engine import capture
from gptviz.engine.sites import SITES, all_keys, check_key, expand
from tests.conftest import random_lm


@pytest.mark.parametrize("site", SITES.values(), ids=list(SITES))
def test_every_row_names_modules_and_sites_that_there_are(lm, site):
    for path in (site.module, site.edited_module):
        assert lm.model.get_submodule(path.format(b=1))
    assert (site.edit_at is None) or ("{b}" in site.edit_at) == site.per_block
    if site.shortcut is not None:
        order = list(SITES)
        assert (
            order.index(site.name)
            < order.index(site.shortcut.plus)
            < order.index(site.shortcut.end)
        )
        assert (
            SITES[site.shortcut.end].per_block
            == SITES[site.shortcut.plus].per_block
            == site.per_block
        )


def test_the_capture_names_no_site_but_the_last():
    """A special case belongs into a row of the table; `final` is where the logits come from."""
    tree = ast.parse(Path(capture.__file__).read_text(encoding="utf-8"))
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} & set(SITES)
    assert named == {"final"}


@pytest.mark.parametrize("name", list(SITES))
def test_shapes_are_as_the_table_says(lm, name):
    trace = lm.trace([5, 6, 7])
    sizes = {"T": 3, "D": 32, "H": 4, "4D": 128, "D/H": 8}
    expected = tuple(sizes[part] for part in SITES[name].shape.strip("()").split(", "))
    value = trace[name, 0] if SITES[name].per_block else trace[name]
    assert tuple(value.shape) == expected
    assert SITES[name].floats(3, lm.config) == value.numel()


@pytest.mark.parametrize("name", list(SITES))
def test_restore_is_the_reverse_of_present(lm, name):
    site = SITES[name]
    seed = torch.Generator().manual_seed(0)
    value = torch.randn(*((1, 4, 3, 3) if site.form == "weights" else (1, 3, 32)), generator=seed)
    assert torch.equal(site.restore(site.present(value, lm.config), value), value)


def test_all_keys_are_every_site_of_every_block(lm):
    keys = all_keys(lm.config)
    assert len(set(keys)) == len(keys) == 4 + 12 * lm.config.n_layers
    assert set(keys) == set(expand(list(SITES), lm.config)) and keys == expand(None, lm.config)


def test_a_key_of_a_model_of_any_depth():
    assert check_key("z", 99, None) == ("z", 99)
    with pytest.raises(ValueError, match=r"no block 1\.5; give a whole number"):
        check_key("z", 1.5, None)
    assert expand(["z"], random_lm(n_layers=3).config) == [("z", 0), ("z", 1), ("z", 2)]
