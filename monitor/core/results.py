"""The words that every layer shares: window, status, evidence, result.

A result is one judged or measured number of one window. Rules and metrics give the same kind of
object, so the store, the gauges, the page and the command line have one thing to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final


class Status(StrEnum):
    """What a result says. Never mix these up: an empty window is not a healthy one.

    The five verdicts are `ok`, `violated`, `no_data`, `late` and `error`. A measurement without an
    objective can also be `undefined`: there was data, but the formula has no value on it (a denominator of
    0, one class only).
    """

    OK = "ok"
    VIOLATED = "violated"
    NO_DATA = "no_data"
    LATE = "late"
    ERROR = "error"
    UNDEFINED = "undefined"


MOST_EVIDENCE: Final = 100
"""Rows of evidence that one result can have."""

VERDICTS = (Status.OK, Status.VIOLATED, Status.NO_DATA, Status.LATE, Status.ERROR)
_WORST_FIRST: Final = (
    Status.VIOLATED, Status.ERROR, Status.LATE, Status.NO_DATA, Status.UNDEFINED, Status.OK
)  # fmt: skip


def rank(status: Status) -> int:
    """The rank of a status by severity: 0 is the worst."""
    return _WORST_FIRST.index(status)


def worst_status(statuses: Iterable[Status], default: Status = Status.NO_DATA) -> Status:
    """The worst status; without any status it is `no_data`, never `ok`.

    >>> worst_status([Status.OK, Status.VIOLATED, Status.ERROR]).value, worst_status([]).value
    ('violated', 'no_data')
    """
    return min(statuses, key=rank, default=default)


class Kind(StrEnum):
    """How a rule is judged: see docs/rules.md."""

    HARD = "hard"
    SOFT = "soft"
    NUMERIC = "numeric"


class ResultKind(StrEnum):
    """What sort of number a result is: by this alone code decides how to judge, store and show it.

    A metric's spec has the kind of its results. Only the results on the samples of a model have another one:
    the AUC of what was shown is a `metric`, the AUC of a split of samples is of a `model`.
    """

    RULE = "rule"
    METRIC = "metric"
    """A measurement of what was shown and what users did, of the whole or of a slice."""
    LOG = "log"
    """A statement on a log itself: its rows, its files."""
    EXPERIMENT = "experiment"
    MODEL = "model"
    """A measurement of a model's samples, features or scores."""
    GAP = "gap"
    """The gap of a model's AUC between two splits, with a verdict."""
    CAUSE = "cause"
    """A cause of such a gap."""
    BAND = "band"
    """A number made from a band: what was expected, how far a value is off, how severe a cause is."""
    DRIFT = "drift"
    """The verdict on a slow change."""
    ANOMALY = "anomaly"
    """The verdict on one cause of anomalies."""
    HEALTH = "health"
    """The health score, or a part of it."""
    PLATFORM = "platform"
    """A number of the platform around the recommender: a total of a day, a share, a change."""
    SUBSTITUTION = "substitution"
    """The verdict on whether the recommender gains at the cost of other systems."""
    FORECAST = "forecast"
    """What past days say about a pair of metrics, or the record of the forecasts."""

    @property
    def is_of_models(self) -> bool:
        return self in (ResultKind.MODEL, ResultKind.GAP, ResultKind.CAUSE)

    @property
    def is_of_the_past(self) -> bool:
        """Whether it compares other series with their own past."""
        return self in (ResultKind.BAND, ResultKind.DRIFT, ResultKind.ANOMALY)

    @property
    def is_of_the_platform(self) -> bool:
        return self in (ResultKind.PLATFORM, ResultKind.SUBSTITUTION)


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A half-open span of time [start, end), both in UTC.

    >>> Window.of(datetime(2026, 1, 1, 10, 25, tzinfo=UTC), timedelta(hours=1)).start.isoformat()
    '2026-01-01T10:00:00+00:00'
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for edge in (self.start, self.end):
            if edge.utcoffset() != timedelta(0):
                raise ValueError(f"a window's edges are UTC times, got {edge!r}")
        if self.start >= self.end:
            raise ValueError(f"a window ends after it starts, got {self.start} to {self.end}")

    @classmethod
    def of(cls, moment: datetime, length: timedelta) -> Window:
        """The window of this length that holds the moment, aligned to 1970-01-01 UTC."""
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        start = epoch + ((moment - epoch) // length) * length
        return cls(start, start + length)

    @property
    def length(self) -> timedelta:
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One number of one window, with what it rests on.

    `metric` is a name of the metric catalogue, or `rule` (then `labels` hold the rule and how it is judged,
    `value` is the violation ratio, and the last four fields are set). `samples` is the count that
    the value rests on (the denominator of a ratio). `value` is None unless the status is `ok`,
    `violated` or `late` with something measured. `detail` says in one sentence why a status is
    not `ok`. `threshold` is a rule's, or that of a metric's objective; `bound` says on which side of it
    the trouble lies for an objective: `max` above, `min` below (a rule's trouble is always above). `clear`
    is where a violation ends, on the easier side of the threshold; None: at the threshold itself.
    """

    metric: str
    status: Status
    definition: str
    kind: ResultKind = ResultKind.METRIC
    labels: Mapping[str, str] = field(default_factory=dict)
    value: float | None = None
    samples: int | None = None
    lower: float | None = None
    upper: float | None = None
    detail: str = ""
    violations: int | None = None
    threshold: float | None = None
    bound: str | None = None
    clear: float | None = None
    severity: str | None = None
    evidence: tuple[Mapping[str, Any], ...] = ()
