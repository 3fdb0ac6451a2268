"""The check of exposure health: every metric that needs no feedback, overall and by slice."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.core.results import Result, Status
from monitor.metrics.catalogue import EXPOSURE_FAMILIES
from monitor.metrics.family import Family
from monitor.metrics.measure import measure_all, resolved
from monitor.settings.metrics import MetricSettings
from monitor.window.tables import WindowTables

NAME = "exposure"
FAMILIES = EXPOSURE_FAMILIES


class MetricsCheck:
    """Measures one window; what was measured before a failure is kept.

    Args:
        settings: the recommender's metric settings.
        families: the metrics of this check.
        seconds: is filled with what each family of metrics took.
        sliced: the metrics that are repeated by slice; none named: all that can be.
    """

    def __init__(
        self,
        settings: MetricSettings,
        families: Sequence[Family],
        seconds: dict[str, float],
        sliced: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self._families = tuple(families)
        self._seconds = seconds
        self._sliced = tuple(sliced)
        self._found: list[Result] = []
        self._tables: WindowTables | None = None

    def run(self, tables: WindowTables) -> list[Result]:
        """The metrics that the logs at hand can give, in the catalogue's order."""
        self._tables = tables
        for measured in measure_all(
            tables.shared,
            self._settings,
            tables.dimensions(),
            families=self._families,
            sliced=self._sliced,
        ):
            self._found += sorted(measured.results, key=_slice)  # a GROUP BY gives them in any order
            self._seconds[measured.family] = measured.seconds
        return self._found

    def failed(self, why: str) -> list[Result]:
        """What was measured so far, and an error for each metric that the logs could have given."""
        if self._tables is None:
            return []
        shared = self._tables.shared
        settings = resolved(self._settings, shared)
        left = [
            family
            for family in self._families
            if family.name not in self._seconds and family.reason_not(shared, settings) is None
        ]
        errors = [one for family in left for one in family.without_rows(settings, Status.ERROR, why)]
        return self._found + errors


def _slice(result: Result) -> tuple[str, str]:
    return result.labels.get("dimension", ""), result.labels.get("value", "")
