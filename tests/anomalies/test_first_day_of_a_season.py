"""The first day of a season: its windows together say what its level is, and a loss is seen all the same."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from monitor.anomalies.band_state import Step
from monitor.anomalies.past import SeriesName
from tests.anomalies.stepped import WEEK, hour, stepped

REQUESTS, FAILED, HIT = range(3)
NAMES = {
    REQUESTS: SeriesName("volume", {"by": "requests"}),
    FAILED: SeriesName("failure", {"by": "pv"}),
    HIT: SeriesName("hit_rate", {"by": "any", "k": "5"}),
}
BEGIN = 3 * WEEK + 5 * 24
SEASON = {
    "from": f"{hour(BEGIN).start:%Y-%m-%d}",
    "to": f"{hour(BEGIN + WEEK).start:%Y-%m-%d}",
    "what": "sale",
}


def season(variant: int, hours: int, lost: int | None = None) -> list[Step]:
    """The first hours of a season with a seventh fewer requests; half are gone from hour `lost` on."""

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        rng = np.random.default_rng([variant if number >= BEGIN else 0, number])
        usual = 1500 * (1 + 0.6 * np.sin(2 * np.pi * (number - 9) / 24))
        level = 0.86 if number >= BEGIN else 1.0
        if lost is not None and number >= BEGIN + lost:
            level /= 2
        made = int(rng.poisson(usual * level))
        seen = made // 10
        failed, hits = int(rng.binomial(made, 0.003)), int(rng.binomial(seen, 0.85))
        return {REQUESTS: (made, made), FAILED: (failed / made, made), HIT: (hits / seen, seen)}

    return stepped(values, BEGIN + hours, NAMES, {"seasons": [SEASON]})[0][BEGIN:]


def test_no_first_hour_decides_what_is_usual() -> None:
    """The night has few requests, so its first hour may have no empty list at all."""
    out = [variant for variant in range(1, 25) if any(step.departed.any() for step in season(variant, 36))]
    assert out == []


@pytest.mark.parametrize("lost", [10, 18, 30])
def test_a_loss_on_the_first_day_is_seen(lost: int) -> None:
    for variant in (1, 2, 3):
        found = season(variant, lost + 6, lost)
        assert not any(step.departed[REQUESTS] for step in found[:lost])
        assert all(step.departed[REQUESTS] for step in found[lost + 1 :])
