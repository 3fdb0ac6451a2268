"""How slow a drift may be if weekdays differ and a new model comes every week: two pages of docs say it."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.drift import drift, drift_bounds, drifts
from tests.conftest import ROOT
from tests.statistics.bands.test_drift import WEEK, weekdays

SHARE = 0.1 / 4  # the budget of one check of drift
DAY_OF_DRIFT, SERIES, COLUMNS = 28, 60, 3000


def drift_rate(
    slope: float,
    noise: float,
    over: int,
    *,
    models: float = 0.03,
    known: bool = True,
    budget: float = SHARE,
) -> float:
    """How many of 100 series that fall by `slope` a day are reported after `over` days."""
    rng = np.random.default_rng(1)
    day = np.arange(DAY_OF_DRIFT + over)
    model = (day + 1) // 7  # the last model comes one day before
    levels = rng.uniform(1 - models, 1 + models, (model[-1] + 1, COLUMNS))
    values = 1 + WEEK[weekdays(len(day))][:, None] + noise * rng.normal(size=(len(day), COLUMNS))
    values *= (
        levels[model] * np.where(day < DAY_OF_DRIFT, 1, (1 - slope) ** (day - DAY_OF_DRIFT + 1.0))[:, None]
    )
    found = drift(values, np.full(values.shape, np.nan), day % 7, model if known else None)
    return 100 * float(drifts(found, drift_bounds(SERIES, found, budget=budget)).mean())


def page(name: str) -> str:
    return " ".join((ROOT / "docs" / name).read_text("utf-8").split())


@pytest.mark.parametrize(
    ("slope", "noise", "over", "models", "expected"),
    [
        (0.03, 0.005, 3, 0.03, 98),
        (0.08, 0.02, 3, 0.03, 95),
        (0.025, 0.02, 7, 0.03, 42),
        (0.025, 0.02, 7, 0.0, 79),
    ],
)
def test_bands_md_says_how_soon_a_drift_is_reported(slope, noise, over, models, expected):
    assert drift_rate(slope, noise, over, models=models, known=bool(models)) == pytest.approx(expected, abs=2)
    assert (
        "With a noise of 0.5 %, a drift of 3 % a day is reported on the third day in 98. "
        "With a noise of 2 %, a drift of 8 % a day is reported on the third day in 95, and a drift of "
        "2.5 % a day by the seventh day in 42 (79 without new models)." in page("bands.md")
    )


def test_statistics_md_says_how_often_a_drift_is_reported_if_weekdays_differ():
    rates = [drift_rate(0.02, 0.005, 3, known=known, budget=0.1) for known in (True, False)]
    assert rates == pytest.approx([73, 40], abs=2)
    assert drift_rate(0.08, 0.02, 3, budget=0.1) > 98
    assert (
        "If weekdays differ by up to a tenth, which must be learnt as well, it is reported in 73 (40)"
        in page("statistics.md")
    )
