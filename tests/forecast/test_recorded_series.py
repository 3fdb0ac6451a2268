"""Recorded series as offline and business metrics: unrelated ones do not predict, related ones do.

Taxi rides in New York, costs of an advertisement and tweets about a company, from other years and places. The
figures of docs/forecast.md are from here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Status
from monitor.forecast.candidate import forecast_of
from monitor.history.store import Store
from monitor.statistics.forecast import Days, Relation, relation
from tests.forecast.past_days import put_days, settings

SERIES = Path(__file__).parents[3] / "shared" / "data" / "series"
SPAN = 56
WEEK = 7


def recorded(name: str) -> pd.Series:
    path = SERIES / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip("the recorded series are not on this machine")
    return pd.read_csv(path, parse_dates=["timestamp"]).set_index("timestamp")["value"]


def rides() -> pd.DataFrame:
    """Rides of each day from a Monday on: in the evening, and in all."""
    half_hours = recorded("nyc_taxi")["2014-07-07":]
    evening = half_hours[half_hours.index.hour >= 16].resample("1D").sum()
    return pd.DataFrame({"evening": evening, "all": half_hours.resample("1D").sum()})


def related(x: np.ndarray, y: np.ndarray) -> Relation | None:
    """None where neighbouring days are too alike to tell."""
    day = np.arange(len(x))
    return relation(Days(day, day % 7, x, y, day))


@pytest.mark.parametrize("span", [28, 40, 56])
def test_series_that_have_nothing_to_do_with_each_other_are_rarely_called_related(span: int) -> None:
    taxi = recorded("nyc_taxi").resample("1D").sum().to_numpy(float)
    costs = recorded("exchange-3_cpc_results").resample("1D").mean().to_numpy(float)
    found = [
        related(taxi[at : at + span], costs[other : other + span])
        for at in range(0, len(taxi) - span, WEEK)
        for other in range(0, len(costs) - span, WEEK)
    ]
    assert len(found) > 40
    assert np.mean([one is not None and one.predicts(0.95) for one in found]) < 0.1


def test_the_rides_of_the_evening_predict_those_of_the_next_week(tmp_path: Path) -> None:
    table = rides()
    evening, every = (table[name].to_numpy(float) / 1e6 for name in ("evening", "all"))
    came_true, widths = [], []
    for first in range(0, len(table) - SPAN - WEEK, WEEK):
        with Store.open(f"sqlite:///{tmp_path}/{first}.sqlite") as store:
            put_days(store, SPAN, lambda n, at=first: evening[at + n], lambda n, at=first: every[at + n])
            coming = slice(first + SPAN, first + SPAN + WEEK)
            made = forecast_of(
                store, settings(), "m9", "ctr", given=[("ndcg", {}, float(evening[coming].mean()))]
            )
        if made.status is Status.OK and made.lower is not None and made.upper is not None:
            came_true.append(made.lower <= every[coming].mean() <= made.upper)
            widths.append((made.upper - made.lower) / every[coming].mean())
    assert len(came_true) >= 15
    assert np.mean(came_true) >= 0.9
    assert np.mean(widths) < 0.4
