"""Values of a log as JSON: bounded, and writable in every encoding."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest

from monitor.core.json_value import json_value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("1.5"), 1.5),
        (2**63, str(2**63)),
        (True, True),
        (b"a\xff", "a\\xff"),
        ("a\udce9b", "a?b"),
        ({"\ud800": ["\udfff"]}, {"?": ["?"]}),
        ({1: {2: {3: {4: {5: {6: 7}}}}}}, {"1": {"2": {"3": {"4": {"5": "{6: 7}"}}}}}),
        (range(80), list(range(50))),
    ],
)
def test_a_value_becomes_json_that_every_encoding_can_write(value, expected):
    found = json_value(value)
    assert found == expected
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8")
