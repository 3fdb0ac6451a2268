"""The spec of a metric, the interface of a family of metrics, and the builder of their results."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Literal

import ibis.expr.types as ir

from monitor.core.results import Result, ResultKind, Status
from monitor.core.settings import Settings
from monitor.metrics.shared import Shared
from monitor.settings.metrics import MetricSettings
from monitor.statistics.bands.scales import Scale
from monitor.statistics.intervals import Interval, bounded_mean, normal_mean, wilson

AggregateRow = Mapping[str, Any]

NOTHING_SHOWN = "the window holds no exposures"
NO_REQUESTS = "the window holds no requests"
_TOO_LARGE = "the sums ran out of the range of float64"
_ROUNDING = 1e-9

SPLIT_LABEL: Final = "split"
MODEL_LABEL: Final = "model"
OF_SAMPLES: Final = (SPLIT_LABEL, MODEL_LABEL)
"""The labels of a metric that is measured on the samples of a model."""


class Theme(StrEnum):
    """A row of the generated dashboard of what users did."""

    ANSWERS = "Latency and failed answers"
    ACTIONS = "Actions by event"
    SCORES = "Scores against actions"
    LISTS = "Lists at k"
    EXPERIMENTS = "Experiments"
    HEALTH = "Health score"
    PLATFORM = "Platform"
    OTHER = "Other metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One metric of the catalogue: its name, its meaning, and how to read it.

    Attributes:
        unit: suffix of the exported gauge: `ratio`, `seconds`, `bits`, or nothing for an index.
        by: values of its label `by`, if it has one. `by_help` says if they come from the settings.
        labels: its further labels, such as `k` and `event`; their values come from the settings.
        of_samples: labels that it has only if it is measured on the samples of a model.
        parameters: the settings that change what is measured.
        without_interval: the values of `by` that never have the interval, however many samples there are.
        range: possible values, which its interval never leaves; by default 0 to 1 for a ratio, else any
            number.
        sliced: False if the metric is never given by slice.
        of_rows: True if it is measured on single exposures or actions, not on lists or users. Only then does
            it have a meaning by position.
        counted: False if its number of samples is not exported.
        kind: the kind of its results.
        is_count: True if its values are counts; their band has the scale of counts.
        better: which of two values is better, where that is the same for all of its `by`.
        theme: its row on the dashboard of metrics that no other dashboard shows.
    """

    name: str
    help: str
    formula: str
    answers: str
    misleads: str
    unit: Literal["", "ratio", "bits", "seconds"] = ""
    by: tuple[str, ...] = ()
    by_help: str = ""
    labels: tuple[str, ...] = ()
    of_samples: tuple[str, ...] = ()
    interval: Literal[
        "",
        "Wilson",
        "Wilson of means",
        "normal",
        "delta",
        "DeLong",
        "order statistics",
        "Welch or delta",
        "anytime",
        "mapped",
        "band",
        "AR(1)",
        "Fieller",
        "Fisher",
    ] = ""
    without_interval: tuple[str, ...] = ()
    range: tuple[float, float] | None = None
    requires: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    samples: str = ""
    no_data: str = ""
    undefined: str = ""
    version: str = "1"
    sliced: bool = True
    of_rows: bool = False
    counted: bool = True
    kind: ResultKind = ResultKind.METRIC
    is_count: bool = False
    better: Literal["", "higher", "lower"] = ""
    theme: Theme = Theme.OTHER

    @property
    def scale(self) -> Scale:
        """How its values vary by chance: as a share of the samples, a count, or a level."""
        if self.is_count:
            return Scale.COUNT
        of_so_many = self.unit == "ratio" and self.interval in ("", "Wilson")
        return Scale.SHARE if of_so_many else Scale.LEVEL

    def has_interval(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels has an interval, given enough samples."""
        return bool(self.interval) and labels.get("by") not in self.without_interval

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        if self.range is not None:
            return self.range
        return (0.0, 1.0) if self.unit == "ratio" else (-math.inf, math.inf)

    def definition(self, settings: MetricSettings) -> str:
        """The version, and the settings that change the definition.

        Results of different definitions are never put into one series.
        """
        parts = [self.version]
        for name in self.parameters:
            value = getattr(settings, name)
            if value != MetricSettings.model_fields[name].default:
                parts.append(f"{name}={_written(value)}")
        return ";".join(parts)


def _written(value: object) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.0f}s"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{_written(one)}" for name, one in sorted(value.items())) + "}"
    if isinstance(value, Settings):
        return "(" + ",".join(f"{name}={_written(one)}" for name, one in value) + ")"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


ALL: Final = "*"
LARGEST: Final = "_most"
"""The end of the name of a column of which the largest value counts, not the sum."""


@dataclass(frozen=True, slots=True)
class AddsUp:
    """How a family's metrics of many windows follow from what each window keeps; see `monitor.rollups`.

    Attributes:
        tables: the tables, by their names in `Shared.once`, that each window keeps. The family is measured
            on their sums.
        columns: the columns of the window's own row that are summed; `ALL`: the row needs nothing else.
        without: the metrics, with their label `by`, that need the rows of the log.
        bounded: True if a metric is not exact; its detail then has the largest possible error.
    """

    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    without: tuple[tuple[str, str], ...] = ()
    bounded: bool = False

    def adds(self, column: str) -> bool:
        """Whether a column of the window's row is summed."""
        return ALL in self.columns or column in self.columns


class Family(ABC):
    """Metrics that come out of one query.

    `measure` is pure: Ibis tables in, one Ibis table out. It has one row a group (without a key, one row in
    all) with sums and counts. `outcomes` turns such a row into results. `sliced` is False if a slice makes no
    sense or there is no column to slice by. `together` is False if the groups cannot be windows, with the key
    `WINDOW`. `looks_back` is True if it compares with what was shown before the window. `adds_up` is None if
    several windows need the rows of the log.
    """

    name: str
    outputs: tuple[tuple[MetricSpec, tuple[str, ...]], ...]  # each spec with the `by` values given here
    needs: tuple[str, ...] = ()  # logs and columns (`catalog.category`) without which it cannot be measured
    sliced: bool = True
    together: bool = True
    looks_back: bool = False
    adds_up: AddsUp | None = None

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        """Why the logs cannot give this family, or None if they can."""
        return next(filter(None, map(shared.lack, self.needs)), None)

    def events(self, settings: MetricSettings) -> dict[str, int]:
        """The events that are measured, each with its number in the settings."""
        return {event: number for number, event in enumerate(settings.events)}

    def series(self, settings: MetricSettings) -> Iterator[tuple[MetricSpec, dict[str, str]]]:
        """Every metric that the family gives overall, with its own labels."""
        known = {"event": tuple(self.events(settings)), "k": tuple(map(str, settings.k))}
        for spec, by in self.outputs:
            values = ({"by": by} if by else {}) | {label: known[label] for label in spec.labels}
            for combination in itertools.product(*values.values()):
                yield spec, dict(zip(values, combination, strict=True))

    @abstractmethod
    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        """One row a group with the aggregates that `outcomes` reads; the group in the column `key`."""

    @abstractmethod
    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        """The results of one group."""

    def measure_kept(self, shared: Shared, settings: MetricSettings) -> ir.Table:
        """As `measure`, from the tables of `adds_up` alone, which `shared` holds. Without a key."""
        return self.measure(shared, settings)

    def outcomes_kept(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        """The results of a row of `measure_kept`."""
        return self.outcomes(row, settings)

    def results(
        self,
        rows: Sequence[AggregateRow],
        settings: MetricSettings,
        dimension: str | None = None,
        key: str | None = None,
    ) -> list[Result]:
        """The results of all groups, those of a slice labelled with `dimension` and `value`."""
        found = []
        for row in rows:
            slice_labels = (
                {} if dimension is None else {"dimension": dimension, "value": str(row[key or dimension])}
            )
            for result in self.outcomes(row, settings):
                if result.metric not in settings.disable:
                    found.append(replace(result, labels={**result.labels, **slice_labels}))
        return found

    def without_rows(self, settings: MetricSettings, status: Status, detail: str) -> list[Result]:
        """One result of this status for every metric of the family, overall."""
        return [
            Result(
                kind=spec.kind,
                metric=spec.name,
                status=status,
                definition=spec.definition(settings),
                labels=labels,
                detail=detail,
            )
            for spec, labels in self.series(settings)
            if spec.name not in settings.disable
        ]


def round12(value: float) -> float:
    """The number to 12 digits: threads add in any order, and the same window must give the same number.

    >>> round12(0.1 + 0.2)
    0.3
    """
    return float(f"{value:.12g}")


@dataclass(frozen=True, slots=True)
class ResultBuilder:
    """Builds the results of one metric, so that no family forgets a state or an interval.

    `bounds` and `kind` override those of the spec. `nothing` is the reason if there are no samples.
    """

    spec: MetricSpec
    definition: str
    labels: Mapping[str, str] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None
    kind: ResultKind | None = None

    def _result(self, status: Status, **fields: Any) -> Result:
        return Result(
            kind=self.kind or self.spec.kind,
            metric=self.spec.name,
            status=status,
            definition=self.definition,
            labels=self.labels,
            **fields,
        )

    def no_data(self, detail: str, samples: int = 0) -> Result:
        return self._result(Status.NO_DATA, samples=samples, detail=detail)

    def undefined(self, detail: str, samples: int) -> Result:
        return self._result(Status.UNDEFINED, samples=samples, detail=detail)

    def value(
        self, value: float | None, samples: int, interval: Interval | None = None, *, detail: str = ""
    ) -> Result:
        """A measured number; one that is not finite is `undefined`, never shown."""
        if value is None or not math.isfinite(value):
            return self.undefined("; ".join(filter(None, (_TOO_LARGE, detail))), samples)
        lower, upper = (None, None) if interval is None else map(round12, self._within(value, interval))
        return self._result(
            Status.OK, value=round12(value), samples=samples, lower=lower, upper=upper, detail=detail
        )

    def up_to(self, most: float | None) -> ResultBuilder:
        """The same builder for values up to `most`: if that is at most 1, their range is 0 to 1."""
        return replace(self, bounds=(0.0, 1.0)) if (most or 0.0) <= 1 + _ROUNDING else self

    def _within(self, value: float, interval: Interval) -> Interval:
        """The interval, cut to the metric's range."""
        low, high = self.bounds or self.spec.bounds
        return Interval(max(interval.lower, min(low, value)), min(interval.upper, max(high, value)))

    def count(self, n: int, samples: int, nothing: str) -> Result:
        """A whole number.

        With `nothing`, the reason why there was nothing to count, it is `no_data`: an empty window is never
        ok. Its value is 0 all the same, so that the series shows the drop.
        """
        if nothing:
            return self._result(Status.NO_DATA, value=0.0, samples=0, detail=nothing)
        return self.value(float(n), samples)

    def share(self, hits: int | None, n: int | None, nothing: str, *, detail: str = "") -> Result:
        """hits / n with Wilson's interval, if the metric has one; `no_data` if n is 0."""
        hits, n = int(hits or 0), int(n or 0)
        if n == 0:
            return self.no_data(nothing)
        return self.value(
            hits / n, n, wilson(hits, n) if self.spec.interval == "Wilson" else None, detail=detail
        )

    def mean(
        self,
        n: int | None,
        total: float | None,
        total_of_squares: float | None,
        nothing: str,
        *,
        detail: str = "",
    ) -> Result:
        """The mean of n values with its interval; `no_data` if n is 0.

        Values with two bounds get Wilson's interval of means, all others the normal one.
        """
        n, total = int(n or 0), float(total or 0.0)
        if n == 0:
            return self.no_data(nothing)
        squares = float(total_of_squares or 0.0)
        interval, bounds = None, self.bounds or self.spec.bounds
        if self.spec.interval == "Wilson of means" and math.isfinite(bounds[1]):
            interval = bounded_mean(n, total, squares, bounds)
        elif self.spec.interval in ("normal", "Wilson of means"):
            interval = normal_mean(n, total, squares)
        return self.value(total / n, n, interval, detail=detail)


def make(spec: MetricSpec, settings: MetricSettings, by: str = "", **labels: str) -> ResultBuilder:
    """The builder of one metric's results under these settings, with its own labels."""
    own = {"by": by, **labels} if by else labels
    return ResultBuilder(spec, spec.definition(settings), own)
