"""Did the forecasts come true? How many intervals contained the truth, once the candidates were online."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from monitor.core.json_value import iso
from monitor.forecast.candidate import days_of, online_days, recommender_of
from monitor.forecast.days import DayTable, zone_of
from monitor.forecast.study import Study
from monitor.history.forecasts import Outcome, StoredForecast
from monitor.history.store import Store
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.intervals import Interval, wilson


@dataclass(frozen=True, slots=True)
class Calibration:
    """How many of the decided forecasts came true, and how many are not decided yet."""

    came_true: int
    decided: int
    pending: int

    @property
    def share(self) -> float | None:
        return self.came_true / self.decided if self.decided else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's interval of the share."""
        return wilson(self.came_true, self.decided)


def calibration(stored: Iterable[StoredForecast], target: str | None = None) -> Calibration:
    """The record of the forecasts, of one target or of all."""
    outcomes = [one.outcome for one in stored if target in (None, one.target)]
    came_true, missed = outcomes.count(Outcome.CAME_TRUE), outcomes.count(Outcome.MISSED)
    return Calibration(came_true, came_true + missed, outcomes.count(Outcome.PENDING))


def newly_decided(
    store: Store, found: Study, everybody: Sequence[RecommenderSettings], now: datetime
) -> list[StoredForecast]:
    """The pending forecasts whose candidate has been online long enough, with the truth and their outcome.

    The truth is the mean of its first days online, in the number that the config asks for, that begin after
    the forecast was made and are not left out. Raises StoreError.
    """
    if found.table is None:
        return []
    targets = {one.name: one for one in found.forecast.targets}
    tables: dict[str, DayTable | None] = {}
    decided = []
    for one in store.forecasts(recommenders=[found.settings.name]):
        if one.outcome is not Outcome.PENDING or one.target not in targets:
            continue
        other = recommender_of(one.candidate, found.settings, everybody)
        if other is not None and other.name not in tables:
            tables[other.name] = days_of(store, found, other)
        table = found.table if other is None else tables[other.name]
        if table is None:
            continue
        model = one.candidate if other is None else None
        since = one.made_at.astimezone(zone_of(other or found.settings)).date()
        days = [(day, value) for day, value in online_days(table, targets[one.target], model) if day > since][
            : found.forecast.truth_days
        ]
        if len(days) == found.forecast.truth_days:
            truth = sum(value for _, value in days) / len(days)
            decided.append(_decided(one, truth, now, first=days[0][0].isoformat()))
    return decided


def _decided(one: StoredForecast, truth: float, now: datetime, first: str) -> StoredForecast:
    content: Mapping[str, object] = {
        **one.content, "truth": truth, "truth_from": first, "judged_at": iso(now),
    }  # fmt: skip
    holds = one.content["lower"] <= truth <= one.content["upper"]
    return replace(one, content=content, outcome=Outcome.CAME_TRUE if holds else Outcome.MISSED)
