"""The results on a series and its band in a window."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from monitor.anomalies.series import BandedSeries
from monitor.anomalies.specs import DEVIATION, EXPECTED
from monitor.core.numbers import number
from monitor.core.results import Result, Status
from monitor.metrics.family import round12

Side = Literal["above", "below"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A series that is out of its band in a window."""

    metric: str
    by: str
    of: str
    measured: float
    expected: float
    lower: float
    upper: float
    deviation: float  # of the mean of the last windows, in standard deviations, with its sign
    windows: int = 1
    change: float = math.nan  # relative, of these windows
    dimension: str = ""
    value: str = ""

    @property
    def side(self) -> Side:
        return "above" if self.deviation > 0 else "below"

    def says(self) -> str:
        """The values in words.

        >>> Departure(metric="volume", by="requests", of="", measured=80, expected=120, lower=70, upper=170,
        ...           deviation=-6.1, windows=6, change=-0.31).says()
        '80, expected 120 (70 to 170), 31 % lower over 6 windows'
        """
        measured, expected, lower, upper = map(number, (self.measured, self.expected, self.lower, self.upper))
        band = f"{measured}, expected {expected} ({lower} to {upper})"
        if self.windows == 1 or not math.isfinite(self.change):
            return band
        side = "higher" if self.change > 0 else "lower"
        return f"{band}, {100 * abs(self.change):.0f} % {side} over {self.windows} windows"

    def title(self) -> str:
        """The series in words.

        >>> Departure(metric="failure", by="pv", of="", measured=0.5, expected=0.01, lower=0, upper=0.02,
        ...           deviation=50.0, dimension="scene", value="search").title()
        'failure by pv where scene is search'
        """
        return BandedSeries(self.metric, self.by, self.of, self.dimension, self.value).title()


NO_VALUE = "the metric has no value in this window"


@dataclass(frozen=True, slots=True, kw_only=True)
class Banded:
    """A series in a window: its measured value and its band, NaN if it has none.

    `deviation` is of the mean of the last `windows`, which is `change` (relative) away; `reached` is its
    bound. `follows`: it changed only as the number of requests did. `why`: why there is no band. `was`: above
    0 if it was above its band in the window before, below 0 if it was below, NaN if it was within. `learns`:
    it was out of its band until a known change, and has no new band yet.
    """

    series: BandedSeries
    measured: float
    expected: float
    lower: float
    upper: float
    deviation: float
    points: int
    reached: float
    departed: bool
    why: str = ""
    windows: int = 1
    change: float = math.nan
    follows: bool = False
    was: float = math.nan
    learns: bool = False

    @classmethod
    def unseen(cls, series: BandedSeries, was: float) -> Banded:
        """A series that was out of its band before and is not measured in this window."""
        return cls(
            series=series, measured=math.nan, expected=math.nan, lower=math.nan, upper=math.nan,
            deviation=math.nan, points=0, reached=math.nan, departed=False, was=was,
        )  # fmt: skip

    @property
    def is_missing(self) -> bool:
        """Whether it was out of its band and cannot be judged now."""
        return not math.isnan(self.was) and not self.is_judged and not self.learns

    @property
    def place(self) -> tuple[str, str]:
        """Its dimension and value, both empty for the whole."""
        return self.series.dimension, self.series.value

    @property
    def side(self) -> Side:
        """The side on which it is out of its band, or was if it has no value now."""
        return "above" if (self.deviation if self.is_judged else self.was) > 0 else "below"

    @property
    def is_judged(self) -> bool:
        """Whether it had both a value and a band."""
        return math.isfinite(self.deviation)

    def departure(self) -> Departure:
        """The series as evidence of an anomaly; only for one that departed."""
        one = self.series
        return Departure(
            metric=one.metric, by=one.by, of=one.of, dimension=one.dimension, value=one.value,
            measured=round12(self.measured), expected=round12(self.expected),
            lower=round12(self.lower), upper=round12(self.upper), deviation=round12(self.deviation),
            windows=self.windows, change=self.change,
        )  # fmt: skip

    def results(self, definition: str) -> Iterator[Result]:
        """The expected value, and the deviation from it."""
        labels = self.series.labels
        if not math.isfinite(self.expected):
            for spec in (EXPECTED, DEVIATION):
                yield Result(
                    kind=spec.kind, metric=spec.name, labels=labels, definition=definition,
                    status=Status.NO_DATA, samples=self.points, detail=self.why,
                )  # fmt: skip
            return
        yield Result(
            kind=EXPECTED.kind, metric=EXPECTED.name, labels=labels, definition=definition, status=Status.OK,
            value=round12(self.expected), lower=round12(self.lower), upper=round12(self.upper),
            samples=self.points, detail=self.why,
        )  # fmt: skip
        if not self.is_judged:
            yield Result(
                kind=DEVIATION.kind, metric=DEVIATION.name, labels=labels, definition=definition,
                status=Status.NO_DATA, samples=self.points, detail=NO_VALUE,
            )  # fmt: skip
            return
        above = self.deviation > 0
        yield Result(
            kind=DEVIATION.kind,
            metric=DEVIATION.name,
            labels=labels,
            definition=definition,
            status=Status.VIOLATED if self.departed else Status.OK,
            value=round12(self.deviation),
            samples=self.points,
            threshold=round12(self.reached if above else -self.reached),
            bound="max" if above else "min",
            detail=self.departure().says() if self.departed else "",
        )
