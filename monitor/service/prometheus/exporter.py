"""The text of /metrics, from one immutable snapshot.

A series that leaves the snapshot leaves the scrape. What has not changed since the last scrape is not built
again: of hundreds of recommenders, few have a new window or a new run between two scrapes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from prometheus_client.exposition import choose_encoder

from monitor.core.results import Status
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.service.prometheus import text
from monitor.service.prometheus.budget import LeftOut, Sizes, leave_out
from monitor.service.prometheus.chosen import chosen_families, spare_families
from monitor.service.prometheus.families import all_families
from monitor.service.prometheus.offenders import RECENT
from monitor.service.prometheus.process import Process
from monitor.service.prometheus.states import Values, label
from monitor.service.prometheus.values import (
    Counters,
    bounds_with_objective,
    counted_by,
    counters_by_recommender,
    monitor_values,
    recommender_values,
    result_values,
    stale_times,
)

_COUNTED: Final = ("recsys_series", "recsys_series_limit")
"""The series that say how many there are, beside the two of each recommender."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Series that are built together.

    `key` is what they are made from, `until` when values in them end, `judged` are the bounds of metrics with
    an objective, which are no spare families.
    """

    key: object
    values: Values
    until: datetime | None = None
    judged: Collection[str] = ()
    _lines: dict[str, str] = field(default_factory=dict)

    def lines(self, family: str) -> str:
        if family not in self._lines:
            self._lines[family] = text.lines(all_families()[family], self.values[family])
        return self._lines[family]


class Exporter:
    """Exports the snapshot that `current` returns at the time of the scrape. Threads may share it.

    `url` is the address at which people reach the status page, `grafana_url` that of the dashboards.
    `export` are patterns of families of metrics that are exported beside those that alerts and dashboards
    use. Above `series_limit` each recommender that is above its share leaves out families of slices, the
    largest first, then other families of metrics. States, rules and the monitor itself are never left out,
    because alerts need them. The bounds of intervals that dashboards draw are exported while there is room.
    `clock` says which values are stale.
    """

    def __init__(
        self,
        current: Callable[[], Snapshot],
        *,
        version: str,
        url: str,
        grafana_url: str | None = None,
        series_limit: int = 100_000,
        export: Iterable[str] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._current = current
        self._own: Values = {
            "recsys_build_info": {(version,): 1.0},
            "recsys_web_info": {(url.rstrip("/"),): 1.0},
        }
        if grafana_url is not None:
            self._own["recsys_dashboards_info"] = {(grafana_url,): 1.0}
        self._limit = series_limit
        self._chosen = chosen_families(export)
        self._clock = clock
        self._process = Process()
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], _Part] = {}
        self._spare = spare_families() - self._chosen
        self._left_out: Mapping[str, LeftOut] = {}

    def scrape(self, accept: str = "") -> tuple[bytes, str]:
        """The body and its content type: OpenMetrics if the Accept header asks for it, else plain text."""
        try:
            _, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # a version that is no number
            _, content_type = choose_encoder("")
        openmetrics = content_type.startswith("application/openmetrics-text")
        with self._lock:
            found: dict[str, list[str]] = {}
            for part, families in self._parts():
                for name in families:
                    found.setdefault(name, []).append(part.lines(name))
        written: list[str] = []
        for name, family in all_families().items():
            if name in found:
                written += (text.header(family, openmetrics=openmetrics), *found[name])
        if openmetrics:
            written.append(text.END)
        return "".join(written).encode(), content_type

    def values(self) -> Values:
        """The series of a scrape: family -> label values -> value."""
        found: Values = {}
        with self._lock:
            for part, families in self._parts():
                for name in families:
                    found.setdefault(name, {}).update(part.values[name])
        return found

    def left_out(self, recommender: str) -> LeftOut | None:
        """What the last scrape left out of a recommender; None if nothing."""
        return self._left_out.get(recommender)

    def _parts(self) -> Iterator[tuple[_Part, Collection[str]]]:
        """The parts of a scrape, each with its families that are not left out."""
        snapshot, now = self._current(), self._clock()
        counters = counters_by_recommender(snapshot)
        monitor = monitor_values(snapshot, counters.get("", {})) | self._own | self._process.values()
        mine = {
            state.name: (self._results(state, now), self._rest(state, counters.get(state.name, {})))
            for state in snapshot.recommenders
            if state.judged_by is None  # another monitor exports the others: an old verdict must not fire
        }
        self._kept = {
            (name, kind): part
            for name, parts in mine.items()
            for kind, part in zip(("results", "rest"), parts, strict=True)
        }
        sizes, spare = self._sizes(mine, is_spare=False), self._sizes(mine, is_spare=True)
        around = _count(monitor) + len(_COUNTED) + 2 * len(mine)
        self._left_out = left_out = leave_out(sizes, self._limit - around)
        held = around + _total(sizes) - _gone(left_out)
        no_room = leave_out(spare, max(self._limit - held, 0))
        for name, gone in (("recsys_series_dropped", left_out), ("recsys_series_without_room", no_room)):
            monitor[name] = {(label(one),): float(gone[one].series if one in gone else 0) for one in mine}
        monitor["recsys_series_limit"] = {(): float(self._limit)}
        monitor["recsys_series"] = {(): float(held + _total(spare) - _gone(no_room))}
        yield _Part(None, monitor), [name for name, series in monitor.items() if series]
        for name, parts in mine.items():
            absent = {
                family for gone in (left_out, no_room) if name in gone for family in gone[name].families
            }
            for part in parts:
                yield part, [one for one, series in part.values.items() if series and one not in absent]

    def _sizes(self, parts_of: Mapping[str, Sequence[_Part]], *, is_spare: bool) -> dict[str, dict[str, int]]:
        """Recommender -> family -> its series."""
        return {
            name: {
                family: len(series)
                for part in parts
                for family, series in part.values.items()
                if (family in self._spare and family not in part.judged) == is_spare
            }
            for name, parts in parts_of.items()
        }

    def _results(self, state: RecommenderState, now: datetime) -> _Part:
        key = _key_of_results(state)
        kept = self._kept.get((state.name, "results"))
        if kept is not None and kept.key == key and (kept.until is None or now <= kept.until):
            return kept
        values = result_values(state, now, self._chosen | self._spare)
        return _Part(key, values, _until(state, now), bounds_with_objective(state))

    def _rest(self, state: RecommenderState, counters: Counters) -> _Part:
        key = (replace(state, series=()), counted_by(state), counters)
        kept = self._kept.get((state.name, "rest"))
        if kept is not None and kept.key == key:
            return kept
        return _Part(key, recommender_values(state, counters))


def _key_of_results(state: RecommenderState) -> object:
    """What `result_values` reads. The past of a series is not in it: no family shows it."""
    is_late = any(one.result.status is Status.LATE for one in state.series)
    return (
        state.patience,
        min((log.watermark for log in state.logs if log.watermark), default=None) if is_late else None,
        [
            (one.result, one.window, one.evaluated_at, one.standing, one.since, one.excused, one.violation)
            for one in state.series
        ],
    )


def _until(state: RecommenderState, now: datetime) -> datetime | None:
    """The first time after `now` at which a value gets stale, or a violation too old to name its rows."""
    ends = list(stale_times(state).values())
    ends += [one.violation.window.end + RECENT for one in state.series if one.violation is not None]
    return min((end for end in ends if end is not None and end >= now), default=None)


def _total(sizes: Mapping[str, Sizes]) -> int:
    return sum(sum(one.values()) for one in sizes.values())


def _gone(left_out: Mapping[str, LeftOut]) -> int:
    return sum(one.series for one in left_out.values())


def _count(values: Values) -> int:
    return sum(len(series) for series in values.values())
