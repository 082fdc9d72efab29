"""What a page draws is what its analysis gives: of the model as it is, and of a changed one beside it.

Each analysis has an independent truth in its own test. That sentences and tables have both numbers is in
the tests of the pages.
"""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from gptviz.analysis import attribution, knock_out, source_tokens
from gptviz.analysis.embeddings import SITES, lengths_table, nearest_tokens, position_similarity
from gptviz.analysis.feed_forward import units
from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.head_roles import roles
from gptviz.analysis.norms import inside, norm_grids
from gptviz.analysis.stream import stream
from gptviz.lessons.positions import position_rows, products_by_distance
from tests.pages.conftest import run_page
from tests.specs import charts, opened

TEXT = "Sam and the dog and the cat"
AT = 3
EDITS = "embed@2=mean,z.4.3=zero"


# for each page, what there is to see of a run: (chart, axis) -> the numbers of its traces


def spread(lm, t):
    grids = norm_grids(lm, t, "variance")
    norm = inside(lm, t, "final", AT)
    return {
        (0, "z"): [np.log10(grid) for grid in grids],
        (1, "y"): [grid[:, AT] for grid in grids],
        (2, "y"): [norm.scale],
        (3, "y"): [norm.shift],
    }


def middle(lm, t):
    grids = norm_grids(lm, t, "mean")
    return {(0, "z"): grids, (1, "y"): [grid[:, AT] for grid in grids]}


def ladder(lm, t):
    found = stream(lm, t)
    nothing = np.full((1, len(t)), np.nan)  # the embedding joins nothing
    writes = found.writes[:, AT]
    cosines = found.cosines[:, AT]
    return {
        (0, "y"): [found.sizes[:, AT], writes[::2], writes[1::2], cosines[::2], cosines[1::2]],
        (1, "z"): [np.log10(found.sizes), np.log10(np.concatenate([nothing, found.ratios]))],
        (2, "y"): [100 * found.shares[:, AT]],
    }


def rows(lm, t):
    parts = [t[site].numpy() for site in SITES]
    lengths = lengths_table(lm, t)
    similarity = position_similarity(lm.model.pos_emb.weight)
    return {
        (1, "z"): [[part[AT] for part in parts]],
        (0, "x"): [nearest_tokens(lm.model.tok_emb.weight, t.tokens[AT].id, 10, "dot")["dot"]],
        (2, "z"): [part.T for part in parts],
        (3, "y"): [lengths[f"{name}_norm"] for name in ("token", "position", "sum")],
        (4, "z"): [similarity],
        (5, "y"): [similarity[AT]],
    }


def strips(lm, t):
    found = units(lm, t, 5, AT)
    return {
        (0, "z"): [found.given, found.before, found.after, found.written],
        (2, "y"): [t["mlp_act", 5][:, 7]],
    }


def direct(lm, t):
    table = attribution(t, lm.model, 12, 300, AT)
    sources = source_tokens(t, lm.model, 12, 300, AT)[5][:, : AT + 1]
    return {
        (1, "z"): [sources, t["attn", 5][:, AT, : AT + 1]],
        (2, "y"): [sources.sum(0)],
        (-1, "z"): [table[table["block"].notna()]["contribution"]],
    }


def lost(lm, t):
    own = float(t.logits(AT).double().softmax(0)[12])
    return {(0, "z"): [own - knock_out(lm, TEXT, 12, "mean", AT)["probability"]]}


def habits(lm, t):
    shares = roles(t)[5][1].shares
    return {(2, "x"): [[shares[name] or 0 for name in SHARES]]}


def scheme(name):
    def drawn(lm, t):
        rows = position_rows(lm, name)
        return {(0, "z"): [rows[:128]], (1, "y"): [products_by_distance(rows)["mean"]]}

    return drawn


def nats(lm, t):
    logits = torch.stack([t.logits(position) for position in range(len(t) - 1)])
    targets = torch.tensor([token.id for token in t.tokens[1:]])
    return {(0, "y"): [cross_entropy(logits, targets, reduction="none")]}


@pytest.mark.parametrize("edits", ["", EDITS])
@pytest.mark.parametrize(
    ("page", "query", "drawn"),
    [
        ("layernorm", {"ln_norm": "final"}, spread),
        ("layernorm", {"ln_quantity": "mean"}, middle),
        ("residual_stream", {}, ladder),
        ("layernorm", {"ln_quantity": "mean", "shown": "difference"}, middle),
        ("embeddings", {"emb_measure": "dot product"}, rows),
        ("embeddings", {"emb_measure": "dot product", "shown": "unchanged"}, rows),
        ("feed_forward", {"block": 5, "ff_unit": 7}, strips),
        ("loss", {}, nats),
        ("heads", {"block": 5, "head": 1}, habits),
        ("why", {"block": 5, "target": 12, "against": 300}, direct),
        ("knock_out", {"null": "mean", "target": 12}, lost),
        *(
            ("positions", {"pos_scheme": name}, scheme(name))
            for name in ("learned", "sinusoidal", "rope")
        ),
    ],
)
def test_what_is_drawn_is_what_the_analysis_gives(mini, page, query, drawn, edits):
    shown = query.get("shown", "changed")
    at = run_page(page, text=TEXT, token=AT, edits=edits, **query | {"shown": shown})
    pictures = charts(opened(at, "emb_rows", "emb_positions", "map_why"))
    lm = mini.edited(*edits.split(",")) if edits else mini
    old = drawn(mini, mini.trace(TEXT))
    new = drawn(lm, lm.trace(TEXT))
    for (chart, axis), expected in new.items():
        own = []
        ghosts = []
        for trace in (trace for trace in pictures[chart]["data"] if axis in trace):
            (ghosts if trace.get("name") == "unchanged" else own).append(
                np.ravel(trace[axis]).astype(float)
            )
        assert len(own) >= len(expected)
        for found, new_values, old_values in zip(own, expected, old[chart, axis], strict=False):
            values = old_values if shown == "unchanged" and axis == "z" else new_values
            if shown == "difference" and axis == "z" and edits:
                values = np.subtract(new_values, old_values)
            np.testing.assert_allclose(
                found, np.ravel(values), rtol=1e-4, atol=1e-5, err_msg=(chart, axis)
            )
        now, was = (
            np.sort(np.concatenate([*map(np.ravel, runs[chart, axis])])) for runs in (new, old)
        )
        if ghosts:  # the same numbers, however many traces they are
            np.testing.assert_allclose(np.sort(np.concatenate(ghosts)), was, rtol=1e-4, atol=1e-5)
        assert edits or not ghosts
        assert ghosts or axis == "z" or np.allclose(now, was)
