"""The check of drift: does a value change too slowly for a single window to show it?

Every six hours the value of each series over the last 24 hours is stored, and the last three days are
compared with the weeks before. Series of slices are left out: a drift that matters moves the whole. So is
what the number of requests explains: if they drift, that is one drift.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

import numpy as np

from monitor.anomalies import band_check as bands
from monitor.anomalies.band_state import CHECKS
from monitor.anomalies.causes import DRIVEN_BY_VOLUME
from monitor.anomalies.daily_traffic import requests_by_day
from monitor.anomalies.model_changes import models_by_day
from monitor.anomalies.moments import DAY, weekday_of
from monitor.anomalies.past import Day, Floats, Ints, PastWindows, aligned, markers, read_day, read_windows
from monitor.anomalies.results import Side
from monitor.anomalies.series import VOLUME, WHOLE_REQUESTS, BandedSeries
from monitor.anomalies.specs import DAILY, DEVIATION, DRIFT
from monitor.anomalies.verdicts import Bools, begun_anew, verdicts
from monitor.core.digest import digest
from monitor.core.numbers import number
from monitor.core.results import Result, Status, Window, worst_status
from monitor.core.text import plural
from monitor.history.store import Store
from monitor.metrics.catalogue import EXPOSURE_CHECK
from monitor.metrics.family import round12
from monitor.settings.bands import BandSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.bands import drift as statistics
from monitor.statistics.bands.scales import Scale
from monitor.window.check import HISTORY, Check, HistoryJob, Recommender
from monitor.window.verdicts import is_judged

NAME: Final = "drift"
OF_FEEDBACK: Final = "drift_feedback"
BANDS: Final[Mapping[str, str]] = {NAME: bands.NAME, OF_FEEDBACK: bands.OF_FEEDBACK}
"""For each check of drift, the check of bands whose series it watches."""
DEFINITION: Final = "7"
_STEPS: Final = tuple(timedelta(hours=hours) for hours in (6, 8, 12))
REMEMBERED: Final = 56
"""A day on which a series drifted is left out of its past for so many days."""
_RECENT: Final = statistics.FIRST - 1  # the days that are judged, and the one before them
_FULL: Final = 0.5  # the part of a day's windows that its value needs
_EXPLAINED: Final = 0.5
"""A series follows the requests if their change is this part of its own, or more."""


def step(length: timedelta) -> timedelta:
    """How often a day is judged: every six hours, or the next longer step that windows divide.

    >>> [str(step(timedelta(hours=hours))) for hours in (1, 4, 24)]
    ['6:00:00', '8:00:00', '1 day, 0:00:00']
    """
    return next((one for one in _STEPS if one % length == timedelta(0)), DAY)


@dataclass(frozen=True, slots=True)
class _Value:
    """The value of a series on a day; NaN and the reason if there is none."""

    value: float
    samples: float
    definition: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Drifted:
    """How many days ago a series drifted, its side now, and for how many days it has been there.

    The side is 1 above, -1 below, and 0 if it is back.
    """

    at: tuple[int, ...] = ()
    side: int = 0
    since: int = 0

    @classmethod
    def of(cls, ago: Ints, change: Floats, drifts: Bools) -> Self:
        """From the judgements of a series, the newest first: how many days ago, its change, and the verdict.

        A judgement without a change does not end a drift.
        """
        judged = np.isfinite(change)
        back = judged & ~drifts
        standing = drifts[: back.argmax() if back.any() else len(drifts)]
        at = tuple(np.unique(ago[drifts]).tolist())
        if not standing.any():
            return cls(at)
        return cls(at, int(np.sign(change[judged.argmax()])), int(ago[np.flatnonzero(standing)[-1]]) + 1)

    @property
    def days(self) -> tuple[int, ...]:
        """Those days, and the three days before each, which are part of the drift."""
        return tuple(sorted({one + before for one in self.at for before in range(_RECENT)}))


_NEVER: Final = _Drifted()


class DriftCheck(Check[HistoryJob]):
    """A check of drift of a recommender. Not thread-safe: it caches what it read last."""

    part = HISTORY
    definition = DEFINITION

    def __init__(self, recommender: str, name: str, settings: BandSettings, length: timedelta) -> None:
        self.name = name
        self._recommender, self._settings, self._length = recommender, settings, length
        self._measured = PastWindows(recommender, bands.MEASURED[BANDS[name]])
        self._departed = PastWindows(recommender, BANDS[name], DEVIATION.name)
        self._daily = PastWindows(recommender, name, DAILY.name)
        self._drifts = PastWindows(recommender, name, DRIFT.name)
        self._volume = PastWindows(recommender, EXPOSURE_CHECK, VOLUME)

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        return cls.of_settings(recommender.settings)

    @classmethod
    def of_settings(cls, settings: RecommenderSettings) -> Iterable[Self]:
        """Its checks of drift; none without `bands`, or where windows do not divide a day."""
        if settings.bands is not None and DAY % settings.window == timedelta(0):
            for name in BANDS:
                yield cls(settings.name, name, settings.bands, settings.window)

    def run(self, job: HistoryJob) -> list[Result]:
        """Judge 24 hours, beginning at any hour, after their windows were measured and have bands.

        Quiet spans are left out of the day. Raises StoreError.
        """
        store, day, quiet = job.store, job.window, job.quiet
        today = self._today(store, day, quiet)
        drifted = self._drifted(store, day, today)
        alike: dict[_Drifted, list[BandedSeries]] = {}
        for one in sorted(today):
            alike.setdefault(drifted.get(one, _NEVER), []).append(one)
        results: dict[BandedSeries, list[Result]] = {}
        for was, series in alike.items():
            results |= self._judge(job, {one: today[one] for one in series}, was, len(today))
        return [result for one in sorted(results) for result in results[one]]

    def _judge(
        self,
        job: HistoryJob,
        today: Mapping[BandedSeries, _Value],
        was: _Drifted,
        tested: int,
    ) -> dict[BandedSeries, list[Result]]:
        """The results of series that drifted on the same days; these days are left out of their past."""
        store, day, series = job.store, job.window, list(today)
        older = [number for number in range(_RECENT, statistics.LAST + REMEMBERED) if number not in was.days]
        back = [*reversed(older[: statistics.LAST - _RECENT]), *reversed(range(_RECENT))]
        starts = [day.start - number * DAY for number in back]
        past, weights = self._before(store, starts[:-1], [(one, today[one].definition) for one in series])
        values = np.vstack([past, [today[one].value for one in series]])
        samples = np.vstack([weights, [today[one].samples for one in series]])
        requests, models = self._traffic(store, starts, job.quiet)
        every = [*series, WHOLE_REQUESTS]
        values = np.column_stack([values, requests])
        samples = np.column_stack([samples, np.full(len(starts), np.nan)])
        values[begun_anew(every, starts, day.end, self._settings)] = np.nan
        values[self._in_another_season(starts)] = np.nan
        found = statistics.drift(
            values, samples, self._weekdays(starts), models,
            scales=np.array([one.scale for one in every], dtype=np.int64), windows=DAY // self._length,
        )  # fmt: skip
        follows, as_requests = _follows(every, found), _moved(float(found.relative[-1]))
        budget = self._settings.false_alarms / CHECKS
        bounds = statistics.drift_bounds(max(1, tested), found, budget=budget)
        drifts = statistics.stays(found, bounds, was.side) if was.side else statistics.drifts(found, bounds)
        return {
            one: list(
                _results(
                    one, today[one], found, bounds, place,
                    _Verdict(bool(drifts[place]), as_requests if follows[place] else "", was.since),
                )
            )
            for place, one in enumerate(series)
        }  # fmt: skip

    def _drifted(
        self, store: Store, day: Window, series: Collection[BandedSeries]
    ) -> dict[BandedSeries, _Drifted]:
        """The series that drifted in one of the last judgements."""
        every = step(self._length)
        ends = [day.end - number * every for number in range(1, REMEMBERED * DAY // every + 1)]
        with store.reading() as connection:
            judged = self._drifts.read(connection, ends, DAY)
            numbers = [one.series for one in judged.values()]
            names = self._drifts.names(connection, np.unique(np.concatenate(numbers))) if numbers else {}
        number_of = {BandedSeries.banded(name): number for number, name in names.items()}
        known = [one for one in series if one in number_of]
        newest_first = [end for end in ends if end in judged]
        change, drifts = verdicts(
            [judged[end] for end in newest_first], np.array([number_of[one] for one in known], int)
        )
        starts = [end - DAY for end in newest_first]
        drifts &= ~begun_anew(known, starts, day.end, self._settings)
        ago = np.array([(day.end - end) // DAY for end in newest_first], dtype=np.int64)
        return {
            known[place]: _Drifted.of(ago, change[:, place], drifts[:, place])
            for place in np.flatnonzero(drifts.any(axis=0)).tolist()
        }

    def status(self, results: Sequence[Result]) -> Status:
        return worst_status(one.status for one in results if is_judged(one))

    def _today(self, store: Store, day: Window, quiet: Sequence[Window]) -> dict[BandedSeries, _Value]:
        """The watched series, each with its value of the day."""
        length = self._length
        least = _FULL * (DAY // length)
        ends = [
            end
            for end in _ends(day.start, length)
            if not any(one.start < end and end - length < one.end for one in quiet)
        ]
        with store.reading() as connection:
            windows = markers(connection, self._recommender, bands.MEASURED[BANDS[self.name]], ends, length)
            if not windows:
                return {}
            # A failed window has no series: take those of all others, each by its newest definition.
            definitions: dict[int, str] = {}
            for past in read_windows(connection, sorted(windows, key=lambda one: one.end)):
                definitions.update(zip(past.series.tolist(), past.definition.tolist(), strict=True))
            names = self._measured.names(connection, np.array(sorted(definitions), dtype=np.int64))
            added = read_day(connection, windows, definitions)
            judged = self._departed.read(connection, ends, length).values()
            out = [one.series[one.violated] for one in judged]
            left = self._departed.names(connection, np.unique(np.concatenate(out))) if out else {}
        departed = {BandedSeries.banded(name) for name in left.values()}
        sums = {number: place for place, number in enumerate(added.series.tolist())}
        found = {}
        for key, name in names.items():
            one = BandedSeries.named(name)
            if one.dimension or not one.is_banded(self._settings):
                continue
            definition = f"{DEFINITION};of={digest(f'{definitions[key]} {length}', 12)}"
            if (
                one.scale is Scale.COUNT and len(ends) < DAY // length
            ):  # the sum of the remaining windows is not the sum of the day
                found[one] = _Value(math.nan, math.nan, definition, "maintenance took a part of the day")
                continue
            found[one] = _value(one, definition, added, sums.get(key), one in departed, least)
        return found

    def _in_another_season(self, starts: Sequence[datetime]) -> list[bool]:
        """Which days lie in a season that the last day does not lie in."""
        middles = [(start + DAY / 2).astimezone(self._settings.zone).date() for start in starts]
        seasons = [self._settings.season_of(one) for one in middles]
        return [one not in (None, seasons[-1]) for one in seasons]

    def _weekdays(self, starts: Sequence[datetime]) -> list[int]:
        zone, holidays = self._settings.zone, self._settings.days_off
        return [weekday_of((start + DAY / 2).astimezone(zone), holidays) for start in starts]

    def _traffic(
        self, store: Store, starts: Sequence[datetime], quiet: Sequence[Window]
    ) -> tuple[Floats, list[int]]:
        """The requests of a mean window of each day, and a number for the model that served most on it.

        NaN for a day with maintenance, or with less than half of its windows; -1 where the model is unknown.
        A day on which the requests left their band has a value here.
        """
        ends = [end for start in starts for end in _ends(start, self._length)]
        with store.reading() as connection:
            windows = list(self._volume.read(connection, ends, self._length).values())
            seen = np.unique(np.concatenate([one.series for one in windows])) if windows else np.empty(0, int)
            names = self._volume.names(connection, seen)
        requests = requests_by_day(windows, names, self._length, starts, least=_FULL, quiet=quiet)
        models = models_by_day(windows, names, self._length, starts[0])
        numbers = {model: number for number, model in enumerate(sorted(set(models.values())))}
        return requests, [numbers[models[start]] if start in models else -1 for start in starts]

    def _before(
        self, store: Store, starts: Sequence[datetime], series: Sequence[tuple[BandedSeries, str]]
    ) -> tuple[Floats, Floats]:
        """Values and samples of series of these definitions on days; NaN where there are none."""
        ends = [start + DAY for start in starts]
        with store.reading() as connection:
            days = self._daily.read(connection, ends, DAY)
            numbers = [one.series for one in days.values()]
            names = self._daily.names(connection, np.unique(np.concatenate(numbers))) if numbers else {}
        number_of = {BandedSeries.banded(name): number for number, name in names.items()}
        known = np.array([number_of.get(one, -1) for one, _ in series], dtype=np.int64)
        definitions = np.array([definition for _, definition in series], dtype=object)
        order = np.argsort(known, kind="stable")
        rows = np.array([place for place, end in enumerate(ends) if end in days], dtype=np.int64)
        found = aligned([days[end] for end in ends if end in days], known[order], definitions[order])
        values, samples = np.full((2, len(ends), len(series)), np.nan)
        values[np.ix_(rows, order)] = found.value
        samples[np.ix_(rows, order)] = np.where(found.samples > 0, found.samples, np.nan)
        return values, samples


def _ends(start: datetime, length: timedelta) -> list[datetime]:
    """The ends of a day's windows."""
    return [start + (number + 1) * length for number in range(DAY // length)]


def _value(
    one: BandedSeries, definition: str, added: Day, place: int | None, departed: bool, least: float
) -> _Value:
    windows = 0 if place is None else int(added.windows[place])
    if departed:
        return _Value(math.nan, math.nan, definition, "it left its band that day")
    if place is None or windows < least or not windows:
        have = "has" if windows == 1 else "have"
        return _Value(math.nan, math.nan, definition, f"{windows} of the day's windows {have} a value")
    samples = float(added.samples[place])
    weighted = one.scale is Scale.SHARE and samples > 0
    value = float((added.weighted if weighted else added.mean)[place])
    return _Value(value, samples or math.nan, definition)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Whether a series drifts, what the requests did if it follows them, and for how many days it is away."""

    drifts: bool
    follows: str
    since: int


def _results(
    one: BandedSeries,
    today: _Value,
    found: statistics.Drift,
    bounds: statistics.DriftBounds,
    place: int,
    verdict: _Verdict,
) -> Iterator[Result]:
    if not math.isfinite(today.value):
        for spec in (DAILY, DRIFT):
            yield Result(
                kind=spec.kind, metric=spec.name, labels=one.labels, definition=today.definition,
                status=Status.NO_DATA, detail=today.why,
            )  # fmt: skip
        return
    yield Result(
        kind=DAILY.kind, metric=DAILY.name, labels=one.labels, definition=today.definition,
        status=Status.OK, value=round12(today.value),
        samples=None if math.isnan(today.samples) else int(today.samples),
    )  # fmt: skip
    change, days = float(found.change[place]), int(found.days[place])
    if not math.isfinite(change):
        yield Result(
            kind=DRIFT.kind, metric=DRIFT.name, labels=one.labels, definition=today.definition,
            status=Status.NO_DATA, samples=days, detail=_why_not(days),
        )  # fmt: skip
        return
    above = change > 0
    bound = float(bounds.change[place])
    yield Result(
        kind=DRIFT.kind,
        metric=DRIFT.name,
        labels=one.labels,
        definition=today.definition,
        status=Status.VIOLATED if verdict.drifts and not verdict.follows else Status.OK,
        value=round12(change),
        samples=days,
        threshold=round12(bound if above else -bound),
        clear=round12(float(bounds.clear[place]) * (1 if above else -1)),
        bound="max" if above else "min",
        detail=_detail(float(found.before[place]), float(found.now[place]), verdict),
    )


def _detail(before: float, now: float, verdict: _Verdict) -> str:
    if not verdict.drifts:
        return ""
    moved = f"{_moved(now - before)} from {number(before)} to {number(now)}"
    if verdict.follows:
        return f"{moved}, as the requests {verdict.follows}"
    return f"{moved}, {f'away for {verdict.since} days' if verdict.since > 1 else 'over three days'}"


def _moved(change: float) -> str:
    return "rose" if change > 0 else "fell"


def _follows(series: Sequence[BandedSeries], found: statistics.Drift) -> Bools:
    """Which series changed because the requests did, the last of them."""
    requests = float(found.relative[-1])
    traffic = "traffic_surge" if requests > 0 else "traffic_lost"
    moved = []
    for one, change in zip(series, found.relative.tolist(), strict=True):
        side: Side = "above" if change > 0 else "below"
        driven = any(sign.fits(one, side) for sign in DRIVEN_BY_VOLUME[traffic])
        counted = one.scale is Scale.COUNT and change * requests > 0
        moved.append(one != WHOLE_REQUESTS and (driven or counted))
    return np.array(moved, np.bool_) & (abs(requests) >= _EXPLAINED * np.abs(found.relative))


def _why_not(days: int) -> str:
    if days < statistics.LEAST:
        return f"{plural(days, 'day')} before can be used, and {statistics.LEAST} are needed"
    return "one of the last four days cannot be used"
