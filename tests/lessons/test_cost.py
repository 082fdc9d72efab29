"""What attention costs: its bytes are exact; of times only that they are measured, and can be stopped."""

import pytest
import torch

from gptviz.lessons import cost


def test_two_matrices_a_head_of_T_times_T():
    found = list(cost.measure(4, 8, sizes=(16, 32), repeats=2))
    assert [(c.tokens, c.bytes) for c in found] == [(n, 2 * 4 * n * n * 4) for n in (16, 32)]
    assert all(c.seconds > 0 for c in found)


def test_what_is_measured_is_attention():
    q, k, v = torch.randn(3, 2, 10, 4)
    mask = torch.triu(torch.ones(10, 10, dtype=torch.bool), diagonal=1)
    kept = {}

    class Noted(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kept["last"] = result = func(*args, **(kwargs or {}))
            if func is torch.Tensor.__matmul__ or func is torch.Tensor.matmul:
                kept["product"] = result
            return result

    with Noted():
        cost.attend(q, k, v, mask)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(kept["product"], expected, atol=1e-5)


def test_it_stops_where_nobody_asks_for_more():
    asked = cost.measure(1, 2, sizes=(4, 8, 10**9), repeats=1)  # the last would not fit into any memory
    assert [next(asked).tokens, next(asked).tokens] == [4, 8]
    asked.close()


def test_the_table_stands_beside_T_squared():
    table = cost.table([cost.Cost(64, 0.5, 100), cost.Cost(128, 1.0, 400), cost.Cost(256, 4.0, 1600)])
    assert table["seconds by T²"].tolist() == [0.25, 1.0, 4.0]
    assert table["times"].tolist()[1:] == [2.0, 4.0] and table["times"].isna()[0]
    assert cost.table([]).empty


@pytest.mark.parametrize("wrong", [{"heads": 0}, {"head_dim": 0}, {"sizes": (0,)}, {"repeats": 0}])
def test_nothing_is_measured_of_nothing(wrong):
    with pytest.raises(ValueError, match="at least 1"):
        cost.measure(**{"heads": 1, "head_dim": 1, "sizes": (4,), "repeats": 1} | wrong)
