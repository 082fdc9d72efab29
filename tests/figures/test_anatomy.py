"""The pictures are to scale: sides are dimensions, areas are parameters, and no tensor hides another."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gptviz.analysis.anatomy import anatomy, part_table
from gptviz.engine.config import GPTConfig
from gptviz.engine.llama_config import LlamaConfig
from gptviz.figures.anatomy import block_boxes, block_map, enlargement, model_map, share_bars
from gptviz.figures.anatomy_layout import SQUARE, TALLEST, WIDTH, lay_out, square_parameters
from gptviz.figures.theme import palette
from gptviz.models.checkpoints.hub import HUB_MODELS

SIDE = 117.0  # pixels of a GPT-2's emb_dim in one block
SMALL = GPTConfig(61, 24, 16, 4, 3)
GPT2 = HUB_MODELS["gpt2"].config
CONFIGS = {
    "small": SMALL,
    "mini": GPTConfig(8192, 256, 256, 8, 6, tie_embeddings=True),
    "characters": GPTConfig(65, 256, 384, 6, 6, norm_bias=False, linear_bias=False),
    "gpt2": GPT2,
    "gpt2-xl": HUB_MODELS["gpt2-xl"].config,
    "largest": GPTConfig(999_999, 999_999, 65_536, 64, 200),
    "narrow": GPTConfig(99_999, 10, 1, 1, 200),
    "smollm2": HUB_MODELS["smollm2-135m"].config,
    "qwen3": HUB_MODELS["qwen3-0.6b"].config,
    "largest llama": LlamaConfig(999_999, 9, 65_536, 1024, 200, 262_144, 1, head_dim=1024),
    "wide heads": LlamaConfig(50, 9, 1, 64, 3, 1, 8, head_dim=128, qkv_bias=True, qk_norm=True),
}


def overlap(a, b):
    slack = 1e-6
    return (
        a.x + a.width > b.x + slack
        and b.x + b.width > a.x + slack
        and a.y + a.height > b.y + slack
        and b.y + b.height > a.y + slack
    )


@st.composite
def llamas(draw):
    groups = draw(st.sampled_from([1, 2, 8]))
    switches = ("qkv_bias", "qk_norm", "tie_embeddings")
    return LlamaConfig(
        draw(st.integers(1, 60_000)),
        9,
        draw(st.sampled_from([1, 7, 64, 768, 5120])),
        groups * draw(st.integers(1, 4)),
        draw(st.integers(1, 12)),
        draw(st.sampled_from([1, 50, 2000, 20_000])),
        groups,
        head_dim=draw(st.sampled_from([2, 16, 128])),
        **{name: draw(st.booleans()) for name in switches},
    )


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_every_tensor_is_drawn_once_and_to_scale(config):
    found = anatomy(config)
    layout = lay_out(found)
    assert sorted(t.name for box in layout.boxes for t in box.tensors) == sorted(
        t.name for t in found.tensors
    )
    for box in layout.boxes:
        if len(box.tensors) == 1 and len(box.tensors[0].shape) == 2:
            sides = sorted((box.width / layout.scale, box.height / layout.scale))
            assert sides == pytest.approx(sorted(box.tensors[0].shape))
        numbers = sum(math.prod(t.shape) for t in box.tensors)
        assert box.width * box.height / layout.scale**2 == pytest.approx(numbers)
        assert box.x >= 0 and box.x + box.width <= WIDTH + 1e-6
        assert box.y + box.height <= layout.height
    assert layout.height <= TALLEST + 1e-6
    count = square_parameters(layout.scale)
    assert layout.square.width * layout.square.height / layout.scale**2 == pytest.approx(count)
    assert layout.square.width <= SQUARE + 1e-6 or count == 1
    assert str(count).strip("0") in ("1", "2", "5")


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 60_000),
    st.integers(1, 5000),
    st.sampled_from([1, 7, 64, 768, 5120]),
    st.integers(1, 12),
)
def test_no_box_lies_on_another(vocab_size, context_length, emb_dim, n_layers):
    config = GPTConfig(vocab_size, context_length, emb_dim, 1, n_layers, qkv_bias=True)
    layout = lay_out(anatomy(config))
    for a, b in itertools.combinations([*layout.boxes, layout.square], 2):
        assert not overlap(a, b)
    boxes = block_boxes(anatomy(config).block(0))
    for a, b in itertools.combinations(boxes, 2):
        assert not overlap(a, b)


@settings(max_examples=40, deadline=None)
@given(llamas())
def test_no_box_of_a_llama_lies_on_another(config):
    found = anatomy(config)
    layout = lay_out(found)
    for a, b in itertools.combinations([*layout.boxes, layout.square], 2):
        assert not overlap(a, b)
    boxes = block_boxes(found.block(0))
    assert [box.tensors[0] for box in boxes] == list(found.block(0))
    for a, b in itertools.combinations(boxes, 2):
        assert not overlap(a, b)
    scale = enlargement(found) * layout.scale
    for box in boxes:
        shape = box.tensors[0].shape
        assert box.width * box.height / scale**2 == pytest.approx(math.prod(shape))
        assert box.x + box.width <= 1000 + 1e-6
    block_map(found, "light")
    model_map(found, "dark")


def test_the_bars_are_the_boxes_and_say_what_they_are():
    found = anatomy(GPT2)
    layout = lay_out(found)
    fig = model_map(found, "light")
    bar = fig.data[0]
    assert np.allclose(bar.x - bar.width / 2, [box.x for box in layout.boxes])
    assert np.allclose(bar.base, [box.y for box in layout.boxes])
    assert np.allclose(bar.y, [box.height for box in layout.boxes])
    said = dict(zip([box.tensors[0].name for box in layout.boxes], bar.hovertext, strict=True))
    assert said["trf_blocks.3.att.W_query.weight"] == (
        "trf_blocks.3.att.W_query.weight is 768 × 768:<br>589,824 parameters, 0.47 % of the model"
    )
    assert "counted there" in said["out_head.weight"]
    assert said["trf_blocks.2.att.W_query.bias"].startswith(
        "the 10 vectors of block 2: 9,984 parameters, 0.0080 % of the model"
    )
    fills = dict(
        zip([box.tensors[0].local_name for box in layout.boxes], bar.marker.color, strict=True)
    )
    colors = palette("light")  # which mean what they mean everywhere
    names = [f"att.{name}.weight" for name in ("W_query", "W_key", "W_value", "out_proj")]
    assert [fills[name] for name in names] == [
        colors.query,
        colors.key,
        colors.value,
        colors.output,
    ]
    patterns = dict(zip(said, bar.marker.pattern.shape, strict=True))
    assert [name for name, shape in patterns.items() if shape] == ["out_head.weight"]
    assert fig.layout.yaxis.scaleanchor == "x"  # squares are squares on every screen
    # what is thinner than a pixel is outlined
    thin = np.minimum(bar.width, bar.y) < 1
    assert thin.any() and (bar.marker.line.width[thin] == 1).all()
    solid = ~thin & (np.array(bar.marker.pattern.shape) == "")
    assert (bar.marker.line.width[solid] == 0).all()


def test_one_block_is_to_scale_and_parts_its_heads():
    found = anatomy(GPT2)
    fig = block_map(found, "light")
    boxes = block_boxes(found.block(0))
    assert np.allclose(fig.data[0].width, [box.width for box in boxes])
    assert len(boxes) == 16
    for box in boxes:
        assert box.width / SIDE * 768 == pytest.approx(max(box.tensors[0].shape))
    # matrix, line, point, xy
    lines = np.stack([fig.data[1].x, fig.data[1].y], axis=1).reshape(4, 11, 3, 2)
    query = boxes[0]
    out_proj = boxes[6]
    assert [boxes[i].tensors[0].local_name for i in (0, 6)] == [
        "att.W_query.weight",
        "att.out_proj.weight",
    ]
    between = np.arange(1, 12) * 64 / 768
    assert np.allclose(lines[0, :, :2, 1], (query.y + between * query.height)[:, None])
    assert np.allclose(lines[3, :, :2, 0], (out_proj.x + between * out_proj.width)[:, None])
    assert enlargement(found) == pytest.approx(SIDE / (768 * lay_out(found).scale))


def test_the_groups_of_a_block_are_parted_where_they_begin():
    """Qwen3 0.6B: 16 heads of 128 numbers in 8 groups, at a width of 1,024."""
    found = anatomy(HUB_MODELS["qwen3-0.6b"].config)
    fig = block_map(found, "light")
    boxes = {box.tensors[0].local_name: box for box in block_boxes(found.block(0))}
    lines = np.stack([fig.data[1].x, fig.data[1].y], axis=1).reshape(-1, 3, 2)  # line, point, xy
    parts = {"W_query": 16, "W_key": 8, "W_value": 8, "out_proj": 16}
    ends = np.cumsum([count - 1 for count in parts.values()])
    for (name, count), of_matrix in zip(parts.items(), np.split(lines, ends[:-1]), strict=True):
        box = boxes[f"att.{name}.weight"]
        between = np.arange(1, count) / count
        if name in ("W_query", "out_proj"):  # 2,048 long: they lie
            assert np.allclose(of_matrix[:, :2, 0], (box.x + between * box.width)[:, None])
        else:
            assert np.allclose(of_matrix[:, :2, 1], (box.y + between * box.height)[:, None])
    said = " ".join(note.text for note in fig.layout.annotations).replace("<br>", " ")
    assert "the 16 heads: 128 rows each of W_query" in said
    assert "Each of the 8 groups of heads has 128 rows of W_key and of W_value." in said
    assert "q_norm · scale, 128" in said


def test_a_low_matrix_has_its_name_below_it():
    """Qwen2 0.5B: keys of 2 groups, 128 rows of 896."""
    config = LlamaConfig(151_936, 32_768, 896, 14, 24, 4864, 2, qkv_bias=True)
    fig = block_map(anatomy(config), "light")
    notes = {note.text: note for note in fig.layout.annotations}
    box = next(
        b for b in block_boxes(anatomy(config).block(0)) if "W_key.bias" in b.tensors[0].name
    )
    assert notes["<b>W_key</b> · 128 × 896<br>bias, 128"].y > box.y
    assert "<b>W_key</b>" not in "".join(fig.data[0].text)


def test_shares_fill_the_bar():
    tables = {"a <b>": part_table(GPT2), "small": part_table(SMALL)}
    fig = share_bars(tables, "light")
    assert np.allclose(sum(bar.x for bar in fig.data), [100, 100])
    by_part = {bar.name: bar for bar in fig.data}
    assert by_part["token embedding"].x[0] == pytest.approx(100 * 38_597_376 / 124_439_808)
    assert by_part["output head"].text == ("", "output head 8.1 %")  # 976 of 12,064
    assert list(fig.layout.yaxis.ticktext) == ["a &lt;b&gt;", "small"]
