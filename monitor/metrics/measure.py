"""Runs every family of the catalogue over one window."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import duckdb

from monitor.core.columns import POSITION
from monitor.core.redaction import redact
from monitor.core.results import Result, Status
from monitor.core.text import MESSAGE_LENGTH, printable
from monitor.metrics.catalogue import FAMILIES
from monitor.metrics.exposure.similarity import similarity_of
from monitor.metrics.family import Family, MetricSpec
from monitor.metrics.plans import Records
from monitor.metrics.shared import Shared
from monitor.settings.metrics import MetricSettings


class Measured(NamedTuple):
    """What one family gave, and what it cost."""

    family: str
    results: list[Result]
    seconds: float


def measure_all(
    shared: Shared,
    settings: MetricSettings,
    dimensions: Mapping[str, str] | None = None,
    families: Iterable[Family] = FAMILIES,
    sliced: Collection[str] = (),
) -> Iterator[Measured]:
    """Measure every family that the logs allow, one at a time, overall and by slice.

    A family is computed when the iterator reaches it, so the caller can stop in between. If a family fails,
    its metrics get the status `error` and the rest goes on. An interrupt of the engine is raised.

    Args:
        shared: the window's logs.
        settings: the recommender's metric settings.
        dimensions: name of a slice -> the column of exposures with its (few) values. Results of a slice have
            the labels `dimension` (that name) and `value`.
        families: the metrics to measure, as the catalogue lists them.
        sliced: the metrics that are repeated by slice; all possible ones if empty.
    """
    settings = resolved(settings, shared)
    for family in families:
        if wanted(family, settings) and family.reason_not(shared, settings) is None:
            started = time.perf_counter()
            by = {
                name: key
                for name, key in (dimensions or {}).items()
                if any(_by_slice(spec, name, sliced) for spec, _ in family.outputs)
            }
            specs = {spec.name: spec for spec, _ in family.outputs}
            results = [
                one
                for one in _measure(family, shared, settings, by)
                if "dimension" not in one.labels
                or _by_slice(specs[one.metric], one.labels["dimension"], sliced)
            ]
            yield Measured(family.name, results, time.perf_counter() - started)


def measure_slices(
    shared: Shared, settings: MetricSettings, dimension: str, column: str, families: Iterable[Family]
) -> Iterator[Result]:
    """The results of some families by one slice alone, without the whole; as in `measure_all`."""
    settings = resolved(settings, shared)
    for family in families:
        if wanted(family, settings) and family.reason_not(shared, settings) is None:
            yield from _measure_slices(family, shared, settings, dimension, column)


def resolved(settings: MetricSettings, shared: Shared) -> MetricSettings:
    """The settings, completed by what depends on the columns of the logs."""
    known = () if shared.catalog is None else shared.catalog.columns
    novelty = tuple(dict.fromkeys(one for one in settings.novelty if one in known))
    return settings.model_copy(update={"similarity": similarity_of(shared, settings), "novelty": novelty})


def not_measured(shared: Shared, settings: MetricSettings) -> dict[str, str]:
    """Family name -> why it is not measured: switched off, or a log or column is missing."""
    reasons = {}
    for family in FAMILIES:
        reason = family.reason_not(shared, settings) if wanted(family, settings) else "switched off"
        if reason is not None:
            reasons[family.name] = reason
    return reasons


def _by_slice(spec: MetricSpec, dimension: str, sliced: Collection[str]) -> bool:
    """Whether a metric is repeated by a dimension; by position only metrics of single rows are."""
    wanted = not sliced or spec.name in sliced
    return wanted and (spec.of_rows or dimension != POSITION)


def wanted(family: Family, settings: MetricSettings) -> bool:
    """Whether one of its metrics is not switched off."""
    return any(spec.name not in settings.disable for spec, _ in family.outputs)


def _measure(
    family: Family, shared: Shared, settings: MetricSettings, dimensions: Mapping[str, str]
) -> list[Result]:
    try:
        results = family.results(_rows(family, shared, settings), settings)
    except duckdb.InterruptException:
        raise
    except Exception as error:
        return family.without_rows(settings, Status.ERROR, explain(error))
    for dimension, column in dimensions.items() if family.sliced else ():
        results += _measure_slices(family, shared, settings, dimension, column)
    return results


def _measure_slices(
    family: Family, shared: Shared, settings: MetricSettings, dimension: str, column: str
) -> list[Result]:
    try:
        rows = _rows(family, shared, settings, column)
        return family.results(rows, settings, dimension, column)
    except duckdb.InterruptException:
        raise
    except Exception as error:
        return [
            replace(failed, labels={**failed.labels, "dimension": dimension, "value": ""})
            for failed in family.without_rows(settings, Status.ERROR, explain(error))
        ]


def _rows(family: Family, shared: Shared, settings: MetricSettings, key: str | None = None) -> Records:
    return shared.answer(family.name, key, lambda: family.measure(shared, settings, key))


def explain(error: Exception) -> str:
    """The first line of an error, without control characters.

    >>> explain(ValueError("no column x\\nLINE 1: ..."))
    'ValueError: no column x'
    """
    first = next(iter(redact(str(error)).splitlines()), "")
    return f"{type(error).__name__}: {printable(first)}"[:MESSAGE_LENGTH].removesuffix(": ")
