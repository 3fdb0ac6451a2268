"""Numbers in sentences."""

from __future__ import annotations

import math
from typing import Final

_LARGEST: Final = 16  # digits before the point: from here on float64 does not know all of them
AS_GIVEN: Final = 15
"""The digits of a number that somebody wrote into the config."""


def number(value: float, digits: int = 4) -> str:
    """So many significant digits, no digit before the point lost, and never 0 for a tiny number.

    From 1e16 on a number has an exponent: float64 does not know all of its digits.

    >>> [number(x) for x in (0.0, 12345.678, 2, 0.6180339, 1.2e-7, -0.05, 1.5e300)]
    ['0', '12,346', '2', '0.618', '1.2e-07', '-0.05', '1.5e+300']
    >>> number(0.6180339, digits=6), number(1234567.0, digits=6)
    ('0.618034', '1,234,567')
    """
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("infinite" if value > 0 else "-infinite")
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if not -4 <= magnitude < _LARGEST:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        return f"{_trim(mantissa)}e{exponent}"
    return _trim(f"{value:,.{max(0, digits - 1 - magnitude)}f}")


def signed(value: float, digits: int = 4) -> str:
    """The number with its sign, also if it rises.

    >>> signed(14049.3), signed(-0.05), signed(0.0)
    ('+14,049', '-0.05', '0')
    """
    return f"+{number(value, digits)}" if value > 0 else number(value, digits)


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
