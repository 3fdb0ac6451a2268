"""How slow a drift may be, with weekdays that differ and a model every week: what two pages of docs say."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.drift import drift, drift_bounds, drifts
from tests.conftest import ROOT
from tests.statistics.bands.test_drift import WEEK, weekdays

SHARE = 0.1 / 4  # of the budget, that one check of drift has
DAY_OF_DRIFT, SERIES, COLUMNS = 28, 60, 3000


def told(
    slope: float,
    noise: float,
    over: int,
    *,
    models: float = 0.03,
    known: bool = True,
    budget: float = SHARE,
) -> float:
    """Of 100 series that fall by `slope` a day, how many are told when so many days of it are over."""
    rng = np.random.default_rng(1)
    day = np.arange(DAY_OF_DRIFT + over)
    model = (day + 1) // 7  # the last of them comes on the day before
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
def test_how_soon_a_drift_is_told_is_what_the_page_of_bands_says(slope, noise, over, models, expected):
    assert told(slope, noise, over, models=models, known=bool(models)) == pytest.approx(expected, abs=2)
    assert (
        "With a noise of 0.5 %, a drift of 3 % a day is reported on the third day (98 of 100). "
        "With a noise of 2 %, a drift of 8 % a day is (95), and 2.5 % a day is reported by the seventh "
        "day in 42 (79 without new models)." in page("bands.md")
    )


def test_what_differs_by_weekday_is_told_less_surely_as_the_page_of_statistics_says():
    rates = [told(0.02, 0.005, 3, known=known, budget=0.1) for known in (True, False)]
    assert rates == pytest.approx([73, 40], abs=2)
    assert told(0.08, 0.02, 3, budget=0.1) > 98
    assert (
        "If weekdays differ by up to a tenth, which must be learnt as well, it is reported in 73 (40)"
        in page("statistics.md")
    )
