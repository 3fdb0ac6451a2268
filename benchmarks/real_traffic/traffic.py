"""Real series of traffic, hour by hour, with their labelled anomalies and holidays."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from monitor.core.results import Window

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(weeks=1)
LABELS: Final = "labels.json"
SURGE: Final = 6.0
_WEEKS: Final = 4
_MOST_GAP: Final = 0.5  # of an hour's rows; with fewer the hour has no value

# Public holidays of the United States in the time of the series.
HOLIDAYS: Final = frozenset(
    date.fromisoformat(day)
    for day in (
        "2011-07-04", "2011-09-05",
        "2014-07-04", "2014-09-01", "2014-10-13", "2014-11-11", "2014-11-27", "2014-12-25",
        "2015-01-01", "2015-01-19", "2015-02-16",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Traffic:
    """A series as the traffic of a recommender.

    `requests` is the mean of an hour; None: the values of the series are the requests. `is_small`: an
    incident may take more windows to be reported.
    """

    name: str
    file: str
    requests: float | None
    title: str
    is_small: bool = False


SERIES: Final = {
    one.name: one
    for one in (
        Traffic("taxi-large", "nyc_taxi.csv", 14_000.0, "Taxi trips of New York, 14,000 requests an hour"),
        Traffic(
            "taxi-small", "nyc_taxi.csv", 230.0, "Taxi trips of New York, 230 requests an hour", is_small=True
        ),
        Traffic(
            "twitter", "Twitter_volume_GOOG.csv", None, "Tweets that name Google, as many requests",
            is_small=True,
        ),
        Traffic(
            "exchange", "exchange-3_cpc_results.csv", 2_000.0,
            "Cost per click of an advertising exchange, taken as the shape of 2,000 requests an hour",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hours:
    """The expected requests of each hour from `start` on, NaN in a gap, and what is known of them."""

    start: datetime
    rate: npt.NDArray[np.float64]
    labelled: Sequence[Window]

    def window(self, number: int) -> Window:
        """The hour of this number."""
        return Window(self.start + number * HOUR, self.start + (number + 1) * HOUR)

    def after(self, weeks: float) -> Hours:
        """The hours that come so many weeks later."""
        first = round(weeks * (WEEK / HOUR))
        return Hours(self.start + first * HOUR, self.rate[first:], self.labelled)

    @property
    def surges(self) -> list[int]:
        """The hours of many times the median of the same hour in the four weeks before, by number."""
        found = []
        for number in range(_WEEKS * 7 * 24, len(self.rate)):
            past = self.rate[number - _WEEKS * 7 * 24 : number : 24]
            usual = float(np.nanmedian(past)) if np.isfinite(past).any() else math.nan
            if self.rate[number] >= SURGE * usual:
                found.append(number)
        return found

    @property
    def days(self) -> list[date]:
        """Every whole day."""
        first = self.start.date() + (DAY if self.start.hour else timedelta(0))
        end = (self.start + len(self.rate) * HOUR).date()
        return [first + number * DAY for number in range((end - first).days)]

    def is_ordinary(self, window: Window) -> bool:
        """Whether a span touches no labelled anomaly and no holiday."""
        days = (window.start.date(), (window.end - timedelta(microseconds=1)).date())
        return not any(days[0] <= one <= days[1] for one in HOLIDAYS) and not any(
            one.start < window.end and window.start < one.end for one in self.labelled
        )


def read(traffic: Traffic, folder: Path) -> Hours:
    """The hours of a series. Raises OSError where its file is not in the folder."""
    frame = pd.read_csv(folder / f"{traffic.file}.gz", parse_dates=["timestamp"])
    hour = frame["timestamp"].dt.floor("h")
    grouped = frame.groupby(hour)["value"].agg(["mean", "count"]).asfreq("h")
    full = grouped["count"].median()
    rate = (grouped["mean"] * full).where(grouped["count"] >= _MOST_GAP * full)
    if traffic.requests is not None:
        rate *= traffic.requests / rate.mean()
    labels = json.loads((folder / LABELS).read_text("utf-8"))[traffic.file]
    labelled = [Window(*(datetime.fromisoformat(edge).replace(tzinfo=UTC) for edge in one)) for one in labels]
    start = grouped.index[0].to_pydatetime().replace(tzinfo=UTC)
    return Hours(start, rate.to_numpy(np.float64), labelled)
