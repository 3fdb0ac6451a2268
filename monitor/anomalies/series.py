"""Which series of a window have a band, on which scale, and by which name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from monitor.anomalies.past import SeriesName
from monitor.anomalies.specs import BY_LABEL, METRIC_LABEL, OF_LABEL, written_of
from monitor.core.columns import ARM, MODEL
from monitor.metrics.catalogue import SPECS
from monitor.settings.bands import BandSettings
from monitor.settings.recommender import DERIVED
from monitor.statistics.bands.scales import Scale

VOLUME: Final = "volume"
# Slices that come and go: models, arms, hours and weekdays. So do groups of users and items by their
# past: a day of short lists leaves few heavy users.
PASSING: Final = frozenset({MODEL, ARM, *DERIVED})
DIMENSION: Final = "dimension"
SLICE_VALUE: Final = "value"
DIMENSION_OTHER: Final = "other"  # the value of all slices beyond the budget
_EVENER: Final = {
    "popularity_share": -1, "gini": -1, "gini_exposed": -1, "average_popularity": -1, "self_information": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class BandedSeries:
    """A measured series, by the labels of the results on its band."""

    metric: str
    by: str
    of: str
    dimension: str = ""
    value: str = ""

    @classmethod
    def named(cls, name: SeriesName) -> BandedSeries:
        labels = name.labels
        place = labels.get(DIMENSION, ""), labels.get(SLICE_VALUE, "")
        return cls(name.metric, labels.get(BY_LABEL, ""), written_of(labels), *place)

    @classmethod
    def banded(cls, name: SeriesName) -> BandedSeries:
        """The measured series that a result on its band is about."""
        labels = name.labels
        own = labels.get(METRIC_LABEL, ""), labels.get(BY_LABEL, ""), labels.get(OF_LABEL, "")
        return cls(*own, labels.get(DIMENSION, ""), labels.get(SLICE_VALUE, ""))

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its results.

        >>> BandedSeries("failure", "pv", "").labels
        {'metric': 'failure', 'by': 'pv', 'of': ''}
        """
        own = {METRIC_LABEL: self.metric, BY_LABEL: self.by, OF_LABEL: self.of}
        return own | ({DIMENSION: self.dimension, SLICE_VALUE: self.value} if self.dimension else {})

    def title(self) -> str:
        """The series in words.

        >>> BandedSeries("failure", "pv", "", "scene", "search").title()
        'failure by pv where scene is search'
        """
        by = f" by {self.by}" if self.by else ""
        of = f" ({self.of.replace(',', ', ')})" if self.of else ""
        where = f" where {self.dimension} is {self.value}" if self.dimension else ""
        return f"{self.metric}{by}{of}{where}"

    @property
    def scale(self) -> Scale:
        """The scale of its noise: share, count or level."""
        return SPECS[self.metric].scale

    @property
    def is_total(self) -> bool:
        """Whether it says that users are harmed now: the requests, the lists with items, the actions."""
        if self.dimension:
            return False
        is_list = (self.metric, self.by) == ("failure", "pv")
        return is_list or (self.metric, self.by) == (VOLUME, "requests") or self.metric == "action_volume"

    @property
    def rate(self) -> BandedSeries:
        """The share of the lists with such an action, of a number of actions."""
        return BandedSeries("action_rate", "pv", self.of, self.dimension, self.value)

    @property
    def actions(self) -> BandedSeries:
        """The number of actions of the same event, of the whole; only series of an event have it."""
        return BandedSeries("action_volume", "", self.of)

    @property
    def driver(self) -> BandedSeries:
        """The requests that it may follow: those of its slice; of a slice's requests those of the whole."""
        if (self.metric, self.by) == (VOLUME, "requests"):
            return WHOLE_REQUESTS
        return BandedSeries(VOLUME, "requests", "", self.dimension, self.value)

    @property
    def whole(self) -> BandedSeries:
        """The series of the whole recommender; of a series of the whole, itself."""
        return BandedSeries(self.metric, self.by, self.of)

    @property
    def is_of_harm(self) -> bool:
        """Whether it tells how many users or requests get nothing."""
        return self.metric == "failure" or (self.metric == "coverage" and self.by in ("pv", "uv"))

    @property
    def is_of_popularity(self) -> bool:
        """Whether it tells how popular the shown items are, which each retrained model changes a little."""
        return self.metric in _EVENER

    @property
    def evener(self) -> int:
        """The side on which the exposures are spread more evenly: 1 above, -1 below, 0 if neither is."""
        return _EVENER.get(self.metric, 0)

    @property
    def is_missed(self) -> bool:
        """Whether its value is 0 without rows: the volume of a slice."""
        return self.metric == VOLUME and bool(self.dimension)

    def is_banded(self, settings: BandSettings) -> bool:
        """Whether these settings ask for its band."""
        if self.metric not in SPECS or self.metric in settings.without:
            return False
        if not self.dimension:
            return True
        passing = self.metric == VOLUME and self.dimension in PASSING
        return self.metric in settings.sliced and not passing


WHOLE_REQUESTS: Final = BandedSeries(VOLUME, "requests", "")
"""The requests of the whole recommender."""
