"""The past of a check's series as arrays, the input of bands and drift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
from sqlalchemy import BigInteger, ColumnElement, Connection, func, select, type_coerce

from monitor.core.results import Status
from monitor.history import schema
from monitor.history.packing import WindowResults
from monitor.history.rows import batches, window_results

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PastWindow:
    """One judged window of a check: its results in the order of the ids of their series.

    `value` is NaN if there was none, or if the result was late or an error; an empty count is 0. `samples` is
    NaN if unknown. `error` is half of the interval, NaN without one.
    """

    end: datetime
    series: Ints
    value: Floats
    samples: Floats
    error: Floats
    violated: npt.NDArray[np.bool_]
    definition: npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class SeriesName:
    """The metric and labels of a stored series."""

    metric: str
    labels: dict[str, str]


def series_of(connection: Connection, recommender: str, check: str) -> dict[int, SeriesName]:
    """Every series of a check by its id."""
    columns = schema.series.c
    query = select(columns.id, columns.metric, columns.labels).where(
        columns.recommender == recommender, columns.check_name == check
    )
    return {number: SeriesName(metric, labels) for number, metric, labels in connection.execute(query)}


@dataclass(frozen=True, slots=True)
class Marker:
    """One judged window of a check: its id, and a state that changes when it is judged again."""

    id: int
    end: datetime
    state: tuple[object, ...]


def markers(
    connection: Connection, recommender: str, check: str, ends: Iterable[datetime], length: timedelta
) -> list[Marker]:
    """The windows of this length with one of these ends that the check has judged."""
    found: list[Marker] = []
    for part in batches(sorted(set(ends))):
        found += _marked(
            connection, length, *_judged(recommender, check), schema.windows.c.window_end.in_(part)
        )
    return found


def markers_between(
    connection: Connection,
    recommender: str,
    check: str,
    after: datetime,
    until: datetime,
    length: timedelta,
) -> list[Marker]:
    """The windows of this length that the check has judged, in the order of time.

    Args:
        connection: to the history.
        recommender: whose windows.
        check: which judged them.
        after: the end of a window is later than this,
        until: and not later than this.
        length: of a window.
    """
    return _marked(connection, length, *_between(recommender, check, after, until))


def _marked(connection: Connection, length: timedelta, *conditions: ColumnElement[bool]) -> list[Marker]:
    columns = schema.windows.c
    query = select(
        columns.id,
        columns.window_start,
        columns.window_end,
        columns.fingerprint,
        columns.revision,
        columns.evaluated_at,
    ).where(*conditions)
    return [
        Marker(number, end, (number, *state))
        for number, start, end, *state in connection.execute(query.order_by(columns.window_end))
        if end - start == length
    ]


def stamp(
    connection: Connection,
    recommender: str,
    check: str,
    after: datetime,
    until: datetime,
    length: timedelta,
) -> tuple[object, ...]:
    """What changes if one of these windows is judged again, added or removed. See `markers_between`."""
    columns = schema.windows.c
    query = select(
        func.count(), func.sum(columns.revision), func.max(columns.id), func.max(columns.evaluated_at)
    ).where(
        *_between(recommender, check, after, until),
        type_coerce(columns.window_end, BigInteger) - type_coerce(columns.window_start, BigInteger)
        == schema.microseconds(schema.EPOCH + length),
    )
    return tuple(connection.execute(query).one())


def _judged(recommender: str, check: str) -> tuple[ColumnElement[bool], ...]:
    columns = schema.windows.c
    return columns.recommender == recommender, columns.check_name == check, columns.current


def _between(
    recommender: str, check: str, after: datetime, until: datetime
) -> tuple[ColumnElement[bool], ...]:
    end = schema.windows.c.window_end
    return *_judged(recommender, check), end > after, end <= until


def read_windows(
    connection: Connection, wanted: Sequence[Marker], metric: str | None = None
) -> list[PastWindow]:
    """The results of these windows, or those of one metric alone."""
    columns = schema.series.c
    asked = None
    if metric is not None:
        asked = set(connection.scalars(select(columns.id).where(columns.metric == metric)))
    found = []
    for part in batches(wanted, 50):
        stored = window_results(connection, [one.id for one in part])
        for one in part:
            results = stored[one.id] if asked is None else stored[one.id].of(asked)
            found.append(_window(one.end, results))
    return found


def _window(end: datetime, results: WindowResults) -> PastWindow:
    named = ("value", "samples", "lower", "upper", "status", "definition")
    value, samples, lower, upper, status, definition = (results.column(name) for name in named)
    told = np.array(status, dtype=object)
    violated = np.asarray(told == Status.VIOLATED.value, dtype=np.bool_)
    # An empty count has status `no_data` and value 0: a band must see the fall.
    counted = np.isin(told, (Status.OK.value, Status.VIOLATED.value, Status.NO_DATA.value))
    measured = np.where(counted, np.array(value, dtype=np.float64), np.nan)
    error = (np.array(upper, dtype=np.float64) - np.array(lower, dtype=np.float64)) / 2
    return PastWindow(
        end,
        np.array(results.series, dtype=np.int64),
        measured,
        np.array(samples, dtype=np.float64),
        error,
        violated,
        np.array(definition, dtype=object),
    )


@dataclass(frozen=True, slots=True)
class Day:
    """A check's series over a day: number of values, plain mean, and mean weighted by samples.

    Without known samples `weighted` is NaN and `samples` is 0.
    """

    series: Ints
    windows: Ints
    mean: Floats
    weighted: Floats
    samples: Floats


def read_day(connection: Connection, wanted: Sequence[Marker], definitions: Mapping[int, str]) -> Day:
    """Sum these windows; only the given definition of each series counts."""
    sums: dict[int, list[float]] = {}
    for results in window_results(connection, [one.id for one in wanted]).values():
        named = ("status", "definition", "value", "samples")
        rows = zip(results.series, *(results.column(name) for name in named), strict=True)
        for number, status, definition, value, samples in rows:
            # An empty count has status `no_data` and value 0: without it, quiet hours would raise the mean.
            counted = status == Status.OK.value or (status == Status.NO_DATA.value and value is not None)
            if not counted or definitions.get(number) != definition:
                continue
            weight = samples or 0
            added = (0, 0.0, 0.0) if value is None else (1, value, value * weight)
            held = sums.setdefault(number, [0.0] * 4)
            sums[number] = [one + more for one, more in zip(held, (*added, weight), strict=True)]
    series = np.array(sorted(sums), dtype=np.int64)
    count, total, weighted, samples = np.array([sums[one] for one in series.tolist()]).reshape(-1, 4).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return Day(series, count.astype(np.int64), total / count, weighted / samples, samples)


class PastWindows:
    """A cache of the windows of one check that were read last, so that the next window reads few more.

    Not thread-safe. A window that was judged again since is read again.
    """

    def __init__(self, recommender: str, check: str, metric: str | None = None) -> None:
        self._recommender, self._check, self._metric = recommender, check, metric
        self._kept: dict[datetime, tuple[tuple[object, ...], PastWindow]] = {}
        self._names: dict[int, SeriesName] = {}

    def read(
        self, connection: Connection, ends: Iterable[datetime], length: timedelta
    ) -> dict[datetime, PastWindow]:
        """The judged windows with these ends; all others leave the cache."""
        found = markers(connection, self._recommender, self._check, ends, length)
        kept = {one.end: self._kept[one.end] for one in found if self._is_kept(one)}
        new = [one for one in found if one.end not in kept]
        for one, window in zip(new, read_windows(connection, new, self._metric), strict=True):
            kept[one.end] = one.state, window
        self._kept = kept
        return {end: window for end, (_, window) in kept.items()}

    def names(self, connection: Connection, wanted: Ints) -> dict[int, SeriesName]:
        """What these series are of."""
        if not self._names.keys() >= set(wanted.tolist()):
            self._names = series_of(connection, self._recommender, self._check)
        return {number: self._names[number] for number in wanted.tolist()}

    def _is_kept(self, marker: Marker) -> bool:
        kept = self._kept.get(marker.end)
        return kept is not None and kept[0] == marker.state


@dataclass(frozen=True, slots=True)
class Aligned:
    """Results of windows (rows) by series (columns); NaN and not violated without a result.

    `there`: the window has a result of the series, even without a value or of another definition.
    """

    value: Floats
    samples: Floats
    violated: npt.NDArray[np.bool_]
    there: npt.NDArray[np.bool_]


def aligned(
    windows: Sequence[PastWindow], series: Ints, definition: npt.NDArray[np.object_] | None = None
) -> Aligned:
    """The windows side by side.

    Args:
        windows: n of them.
        series: m ids of series, sorted.
        definition: of each series; a value of another definition counts as missing. None: any will do.
    """
    shape = len(windows), len(series)
    values, samples = np.full(shape, np.nan), np.full(shape, np.nan)
    violated, found = np.zeros((2, *shape), dtype=np.bool_)
    for row, window in enumerate(windows):
        place = np.searchsorted(series, window.series)
        there = place < len(series)
        there[there] = series[place[there]] == window.series[there]
        found[row, place[there]] = True
        if definition is not None:
            there[there] = definition[place[there]] == window.definition[there]
        values[row, place[there]] = window.value[there]
        samples[row, place[there]] = window.samples[there]
        violated[row, place[there]] = window.violated[there]
    return Aligned(values, samples, violated, found)
