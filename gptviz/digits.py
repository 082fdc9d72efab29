"""Numbers as a person writes them: the digits that mean something, and a true minus sign.

ui/components/kernel.js has the same rules for the browser.
"""

import math

ROUNDING = 1e-6  # of a mean: an error below that is float32's rounding


def fixed(value: float, decimals: int) -> str:
    """A number with `decimals` decimals: `fixed(-0.25, 2)` is "−0.25". Zero has no sign."""
    text = f"{value:.{decimals}f}"
    if float(text):
        return text.replace("-", "−")
    return text.lstrip("-")


def significant(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits: 34.2, 0.0117, 1230; below 0.0001 as 3.1 × 10⁻⁶, from 10⁹ on
    as 6.0 × 10¹⁶.

    Trailing zeros are kept: a 1.00 was measured to two decimals.
    """
    if digits < 1:
        raise ValueError(f"digits is {digits}; it must be at least 1")
    if value == 0 or not math.isfinite(value):
        return fixed(value, 0)
    mantissa, power = f"{value:.{digits - 1}e}".split("e")  # rounding may carry: 9.996 is 1.00e1
    exponent = int(power)
    if not -5 < exponent < 9:
        return f"{mantissa.replace('-', '−')} × 10{str(exponent).translate(_RAISED)}"
    return fixed(float(f"{mantissa}e{power}"), max(0, digits - 1 - exponent))


def term(number: str) -> str:
    """A number after a plus or minus sign: in brackets if it has a sign of its own."""
    if number.startswith("−"):
        return f"({number})"
    return number


def plus_minus(value: float, error: float) -> str:
    """A mean with its sign and its standard error, to the same decimals: "+2.06 ± 0.25"."""
    known = math.isfinite(error)
    decimals = 4
    if known and error > ROUNDING * abs(value):
        decimals = max(0, 1 - math.floor(math.log10(error)))
    mean = fixed(value, decimals)
    if value > 0:
        mean = f"+{mean}"
    if known:
        return f"{mean} ± {fixed(error, decimals)}"
    return mean


def percent(share: float) -> str:
    """A share in percent: "14 %", "2.5 %", "0.031 %"; less than all never reads as "100 %"."""
    if 0.9995 <= share < 1:
        return "more than 99.9 %"
    value = 100 * share
    if math.isclose(value, round(value), abs_tol=1e-9):
        return f"{fixed(value, 0)} %"
    digits = 3 if value >= 99.5 else 2
    return f"{significant(value, digits)} %"


def weight(value: float) -> str:
    """An attention weight: two decimals, or two significant digits where it is small."""
    if abs(value) >= 0.0995 or value == 0:
        return fixed(value, 2)
    return significant(value, 2)


def number(value: float) -> str:
    """Any other number of the model, beside many others: two decimals, none from 1,000 on."""
    return fixed(value, 0 if abs(value) >= 1000 else 2)


def many(value: float) -> str:
    """A large number that can be compared at a glance: "1.23 million", "45.6 billion"."""
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{significant(value / size)} {name}"
    return f"{value:,.0f}"


def gigabytes(size: int) -> str:
    """Bytes in powers of 1,000, as disks are sold: 497,759,232 is "498 MB"."""
    value = float(size)
    unit = 0
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    while value >= 999.5 and unit < len(units) - 1:
        value = value / 1000
        unit = unit + 1
    if size == 0:
        return "0"
    if unit == 0:
        return f"{size} bytes"
    return f"{significant(value)} {units[unit]}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
