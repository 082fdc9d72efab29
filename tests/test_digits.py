"""How numbers are written."""

import pytest
from hypothesis import given, strategies as st

from gptviz.digits import fixed, gigabytes, many, percent, plus_minus, significant


def test_a_minus_is_a_minus_and_zero_has_none():
    assert fixed(-0.25, 2) == "−0.25"
    assert fixed(-0.001, 2) == "0.00"
    assert fixed(float("-inf"), 2) == "−inf"


WRITTEN = {
    significant: {
        34.21: "34.2", 0.011723: "0.0117", 1234.5: "1230", 9.996: "10.0", 0.99996: "1.00", -0.5: "−0.500",
        0.0: "0", 3.14e-6: "3.14 × 10⁻⁶", -1e-12: "−1.00 × 10⁻¹²", float("inf"): "inf",
        999_499_999: "999000000", -6.01e16: "−6.01 × 10¹⁶",
    },
    percent: {  # two digits, and all only where it is all
        0.02: "2 %", 0.025: "2.5 %", 0.13941: "14 %", 0.00031: "0.031 %", 0.0: "0 %", 1.0: "100 %",
        0.9961: "99.6 %", 0.9996: "more than 99.9 %", 1.2712: "127 %", -0.051: "−5.1 %",
    },
    many: {
        999: "999", 10_000: "10,000", 1_234_567: "1.23 million", 4.5e10: "45.0 billion",
        2e13: "20.0 trillion",
    },
    gigabytes: {0: "0", 999: "999 bytes", 999_499: "999 kB", 999_500: "1.00 MB", 497_759_232: "498 MB"},
    lambda both: plus_minus(*both): {  # a mean has the decimals of its error
        (2.061, 0.251): "+2.06 ± 0.25", (-0.5, 0.0031): "−0.5000 ± 0.0031",
        (3, float("nan")): "+3.0000", (0, 0): "0.0000 ± 0.0000",
        (-1.00000017, 1.7e-7): "−1.0000 ± 0.0000", (0.00012, 0.000031): "+0.000120 ± 0.000031",
    },
}  # fmt: skip


def test_numbers_as_a_person_writes_them():
    for write, texts in WRITTEN.items():
        assert {value: write(value) for value in texts} == texts


@given(st.floats(1e-4, 9e8), st.integers(1, 8))
def test_what_is_written_is_near_what_is_meant(value, digits):
    read = float(significant(value, digits))
    assert abs(read - value) <= 0.5000001 * 10.0 ** (1 - digits) * 10 * value
    assert significant(-value, digits) == "−" + significant(value, digits)


def test_no_digits_is_no_number():
    with pytest.raises(ValueError, match="digits is 0"):
        significant(1.0, 0)
