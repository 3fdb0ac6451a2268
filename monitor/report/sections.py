"""The content of the sections of a recommender's page that are tables of its own series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from monitor.catalogue import ALL_SPECS
from monitor.core.text import plural, visible
from monitor.history import counters
from monitor.history.snapshot import LogState, Series, SkippedFile, Snapshot
from monitor.report import bands, numbers, rows
from monitor.report.views import Group, LogView

_SLICE_ROWS: Final = 200  # of one dimension on a page; /metrics has them all
_COUNTERS: Final = {
    counters.WINDOWS: "windows judged",
    counters.CORRECTIONS: "windows corrected by late data",
    counters.CHECK_RUNS: "runs of a check",
    counters.SCHEDULED: "scheduled runs",
    counters.UNDEFINED: "results without a value",
}


def metric_groups(series: Iterable[Series], known: bands.Bands, now: datetime) -> tuple[Group, ...]:
    """The results of each metric, in the order of the catalogue."""
    grouped: dict[str, list[Series]] = {name: [] for name in ALL_SPECS}
    for each in series:
        grouped.setdefault(each.result.metric, []).append(each)
    return tuple(
        Group(
            name=visible(name),
            help=ALL_SPECS[name].help if name in ALL_SPECS else "",
            rows=tuple(bands.with_band(rows.metric_row(each, now), each, known) for each in members),
        )
        for name, members in grouped.items()
        if members
    )


def by_dimension(series: Iterable[Series]) -> dict[str, list[Series]]:
    """The slices of each dimension, sorted by its name."""
    grouped: dict[str, list[Series]] = {}
    for each in series:
        grouped.setdefault(each.result.labels["dimension"], []).append(each)
    return dict(sorted(grouped.items()))


def slice_group(dimension: str, series: Sequence[Series], known: bands.Bands, now: datetime) -> Group:
    """The slices of a dimension. A page shows some of them."""
    shown = tuple(bands.with_band(rows.slice_row(each, now), each, known) for each in series[:_SLICE_ROWS])
    return Group(visible(dimension), "", shown, max(0, len(series) - _SLICE_ROWS))


def log_view(log: LogState, now: datetime) -> LogView:
    """How far a log was read, and what of it cannot be read."""
    return LogView(
        name=visible(log.log),
        watermark=None if log.watermark is None else rows.moment(log.watermark, now),
        files=numbers.count(log.files),
        skipped=_reasons(log.skipped),
        lost=tuple((visible(f.path), f"{plural(f.rows, 'row')}: {visible(f.reason)}") for f in log.lost),
        unlisted=_reasons(log.unlisted),
    )


def _reasons(files: Iterable[SkippedFile]) -> tuple[tuple[str, str], ...]:
    return tuple((visible(one.path), visible(one.reason)) for one in files)


def counter_rows(snapshot: Snapshot, name: str) -> Iterable[tuple[str, str]]:
    """The counters of a recommender that people ask about."""
    for (family, pairs), value in sorted(snapshot.counters.items()):
        labels = dict(pairs)
        if family not in _COUNTERS or labels.pop("recommender", None) != name or value == 0:
            continue
        rest = ", ".join(visible(text) for text in labels.values())
        yield f"{_COUNTERS[family]}{': ' if rest else ''}{rest}", numbers.count(value)
