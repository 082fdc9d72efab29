"""The LayerNorm page's sentences and tables, all of them, for small inputs."""

import re

import numpy as np
import torch

from gptviz.analysis.norms import Place, norm_steps, variance_parts
from gptviz.engine.layer_norms import Norm
from gptviz.ui.views.layernorm import tables, words
from tests.golden_files import check

NAMES, LABELS = ["block 0 · norm1", "block 0 · norm2", "final"], ["The", "·`cat`", "."]


def ends(low, high):
    return Place(low, 0, 1), Place(high, 2, 0)


def steps(shift=True):
    scale, shifts = torch.tensor([0.5, 1.5, 1.0, 2.0]), torch.tensor([0.1, -0.2, 0.0, 0.3])
    norm = Norm("final", None, ("resid_post", 0), 1e-5, scale, shifts if shift else None)
    return norm_steps(norm, np.array([1.0, -2.0, 0.5, 3.5], dtype=np.float32))


def test_every_sentence():
    one, bare = steps(), steps(shift=False)
    check(
        "layernorm_words",
        {
            "what to see": words.what_to_see(
                "variance", ends(0.0055, 825.4), ends(0.117, 6.49), NAMES, LABELS, 256
            ),
            "what to see: no common size": words.what_to_see(
                "variance", ends(0.5, 2.0), ends(0.01, 100.0), NAMES, LABELS, 256
            ),
            "what to see: a variance of 0": words.what_to_see(
                "variance", ends(0.0, 2.0), ends(0.0, 0.0), NAMES, LABELS, 256
            ),
            "what to see: means": words.what_to_see(
                "mean", ends(-1.5, 2.0), ends(-0.01, 0.02), NAMES, LABELS, 256
            ),
            "here": words.here("variance", LABELS[1], NAMES[1], 12.345, 0.98765),
            "what to see: the difference is drawn": words.what_to_see(
                "variance", ends(0.0055, 825.4), ends(0.117, 6.49), NAMES, LABELS, 256, drawn=False
            ),
            **{
                f"what changed: {quantity}{' drawn' * drawn}": words.what_changed(
                    quantity, 88, 1286, NAMES[1], (LABELS[1], "final"), (234.0, 156.0), drawn
                )
                for quantity in ("variance", "mean")
                for drawn in (False, True)
            },
            "unchanged here": words.unchanged_here(12.345, 0.98765),
            "one norm": words.one_norm("block 2 · norm1", LABELS[1]),
            "one norm: the last": words.one_norm("final", LABELS[1]),
            "histograms": words.histograms(7),
            "histograms, changed": words.histograms(7, ghosts=True),
            "weights": words.weights(True),
            "weights: no shift": words.weights(False),
            "why not 1": words.why_not_one(one, variance_parts(one)),
            "why not 1: no shift": words.why_not_one(bare, variance_parts(bare)),
            "step by step": words.step_by_step(3),
        },
    )


def cells(html):
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr class=.*?</tr>", html)]


def test_the_tables_are_the_steps():
    one = steps()
    stages = {
        row[0]: [float(text.replace("−", "-")) for text in row[1:]] for row in cells(tables.stages(one))
    }
    assert list(stages) == ["before", "normalised", "scaled", "after"]
    for name, (mean, variance, low, high) in stages.items():
        values = one.stage(name)
        assert np.allclose(
            [mean, variance, low, high],
            [values.mean(), values.var(), values.min(), values.max()],
            rtol=1e-3,
            atol=1e-9,
        )
    lines = cells(tables.worked_out(one, 1))
    assert [row[0] for row in lines][-2:] == ["times scale", "plus shift"]
    assert float(lines[-1][-1].replace("−", "-")) == round(one.after[1], 3)
    assert len(cells(tables.worked_out(steps(shift=False), 1))) == len(lines) - 1
