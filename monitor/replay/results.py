"""What the log of a run says: how its requests ended, and the metrics of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import duckdb

from monitor.core.columns import OK, REQUEST_ID, STATUS, TS
from monitor.core.results import Result, Window
from monitor.core.text import plural
from monitor.engines.duckdb import Engine
from monitor.metrics.catalogue import EXPOSURE_FAMILIES
from monitor.metrics.exposure.answers import ANSWER_ERRORS, ANSWER_TIMEOUTS, EVER_SHOWN_SPEC, LATENCY_SPEC
from monitor.metrics.exposure.coverage import FAILURE
from monitor.metrics.exposure.volume import LIST_LENGTH
from monitor.metrics.measure import measure_all
from monitor.metrics.shared import Shared
from monitor.settings.metrics import MetricSettings

MEASURED: Final = (LATENCY_SPEC, ANSWER_ERRORS, ANSWER_TIMEOUTS, FAILURE, LIST_LENGTH, EVER_SHOWN_SPEC)
_AN_INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Measured:
    """The requests of a log by status, their span, and the results of its metrics."""

    statuses: Mapping[str, int]
    span: Window
    results: tuple[Result, ...]

    @property
    def answered(self) -> int:
        return self.statuses.get(OK, 0)


def measured(log: Path) -> Measured:
    """Measure the log of a run, by the metrics that `check` measures too."""
    wanted = [spec.name for spec in MEASURED]
    with duckdb.connect() as database:
        engine = Engine(database.cursor())
        rows = engine.reader("replayed", "read_parquet", [str(log)])
        counted = rows.aggregate(by=STATUS, requests=rows[REQUEST_ID].nunique()).to_pyarrow().to_pylist()
        edges = rows.aggregate(first=rows[TS].min(), last=rows[TS].max()).to_pyarrow().to_pylist()[0]
        families = [one for one in EXPOSURE_FAMILIES if any(spec.name in wanted for spec, _ in one.outputs)]
        shared = Shared(rows, materialise=engine.create)
        results = [
            result
            for family in measure_all(shared, MetricSettings(), families=families)
            for result in family.results
            if result.metric in wanted and result.labels.get("by") not in ("uv", "item")
        ]
    order = {name: place for place, name in enumerate(wanted)}
    return Measured(
        {row[STATUS]: row["requests"] for row in counted},
        Window(edges["first"].astimezone(UTC), edges["last"].astimezone(UTC) + _AN_INSTANT),
        tuple(sorted(results, key=lambda one: order[one.metric])),
    )


def time_travel(*, now_passed: bool, first: datetime, last: datetime, at: datetime) -> str:
    """Whether the endpoint could know the future of the requests, as a sentence; empty if there is none yet.

    Args:
        now_passed: whether each request carries its time.
        first, last: the times of the requests.
        at: when they were sent.
    """
    days = (at - last) / timedelta(days=1)
    if now_passed:
        return (
            "Each request carries its own time. Whether the endpoint keeps to it is up to the endpoint."
            if days > 0
            else ""
        )
    if at - first < timedelta(minutes=1):
        return ""
    return (
        f"The requests are up to {_age(at - first)} old, and the endpoint is not told their time. It answers "
        "with what it knows now, which may include what users did after these requests. So its accuracy on "
        "the logged feedback may be too good. If the endpoint accepts a time, pass {{ now }}."
    )


def _age(length: timedelta) -> str:
    if length >= timedelta(days=2):
        return f"{length.days:,} days"
    hours = length / timedelta(hours=1)
    return f"{hours:.0f} hours" if hours >= 2 else plural(round(length / timedelta(minutes=1)), "minute")
