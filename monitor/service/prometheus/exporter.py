"""/metrics: one collector that builds every family afresh from one immutable snapshot.

Nothing is kept between scrapes, so a series that is gone from the snapshot is gone from the scrape.
Names, help and labels come from the table of families alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from monitor.anomalies.specs import ANOMALY_SEVERITY
from monitor.catalogue import ALL_SPECS
from monitor.core.results import VERDICTS, Kind, ResultKind, Status
from monitor.history.counters import (
    CHECK_RUNS,
    CORRECTIONS,
    OF_RULES,
    RUN_ENDS,
    SCHEDULED,
    TURN_ENDS,
    UNDEFINED,
    WINDOWS,
)
from monitor.history.snapshot import RecommenderState, Series, Snapshot
from monitor.models.specs import CAUSE_LABEL
from monitor.service.prometheus.families import (
    MONITOR,
    RULES,
    SLICE_LABELS,
    STATUSES,
    ExportedFamily,
    Suffix,
    all_families,
)
from monitor.service.prometheus.families import metric_family_name as family_name
from monitor.service.prometheus.states import Labels, Values, emit_status, label, set_status, verdict

_PARTS: Final[tuple[Suffix, ...]] = ("", "lower", "upper", "samples")
_KEPT: Final = frozenset(family.name for family in (*STATUSES, *RULES, *MONITOR))


class SnapshotCollector(Collector):
    """The families of the snapshot that `current` returns at the time of the scrape.

    `url` is the address of the status page as people reach it. Above `series_limit` the families of
    slices are left out, the largest first, then the metrics' other families; what alerts stand on
    (states, rules, the monitor itself) is never left out. What is missing is counted.
    """

    def __init__(
        self, current: Callable[[], Snapshot], *, version: str, url: str, series_limit: int = 10_000
    ) -> None:
        self._current = current
        self._version = version
        self._url = url
        self._limit = series_limit

    def describe(self) -> list[Metric]:
        """Nothing: registering must not scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        values = snapshot_values(self._current())
        values["recsys_build_info"] = {(self._version,): 1.0}
        values["recsys_web_info"] = {(self._url,): 1.0}
        # The three below count themselves.
        dropped = fit(values, self._limit - 3)
        values["recsys_series_limit"] = {(): float(self._limit)}
        values["recsys_series_dropped"] = {(): float(dropped)}
        values["recsys_series"] = {(): float(_count(values) + 1)}
        for family in all_families().values():
            series = values.get(family.name)
            if series:
                yield _metric(family, series)


class Exporter:
    """Text for a scraper, in the form that it asks for."""

    def __init__(self, collector: SnapshotCollector) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(collector)

    def scrape(self, accept: str = "") -> tuple[bytes, str]:
        """The body and its content type: OpenMetrics where the Accept header asks for it, else classic."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


def snapshot_values(snapshot: Snapshot) -> Values:
    """Every series of a snapshot as family name -> label values -> value.

    A value that is absent or not finite has no series: never NaN, and never 0 for "nothing".
    """
    values: Values = {name: {} for name in all_families()}
    _one(values, "recsys_config_reload_success", (), float(snapshot.config_error is None))
    _one(values, "recsys_config_reload_timestamp_seconds", (), _seconds(snapshot.config_loaded_at))
    for state in snapshot.recommenders:
        _recommender(values, state)
        excused = {
            _cause(one) for one in state.series if one.result.kind is ResultKind.ANOMALY and one.excused
        }
        for series in state.series:
            if series.result.kind is ResultKind.RULE:
                _rule(values, series)
            elif series.result.metric != ANOMALY_SEVERITY.name or _cause(series) not in excused:
                _measurement(values, series)
    _counters(values, snapshot)
    return values


def fit(values: Values, limit: int) -> int:
    """Leave out whole families until at most `limit` series are left; how many series went.

    The order depends on sizes and names alone, so the same snapshot always loses the same families.
    """
    excess = _count(values) - limit
    if excess <= 0:
        return 0
    families = all_families()
    optional = [name for name in values if name not in _KEPT and values[name]]

    def order(name: str) -> tuple[bool, int, str]:
        return not set(SLICE_LABELS) <= set(families[name].labels), -len(values[name]), name

    dropped = 0
    for name in sorted(optional, key=order):
        if dropped >= excess:
            break
        dropped += len(values.pop(name))
    return dropped


def _count(values: Values) -> int:
    return sum(len(series) for series in values.values())


def _metric(family: ExportedFamily, series: dict[Labels, float]) -> Metric:
    base = family.name.removesuffix("_total" if family.kind == "counter" else "")
    base = base.removesuffix("_info" if family.kind == "info" else "")
    metric = Metric(base, family.help, family.kind)
    names = family.labels
    metric.samples = [
        Sample(family.name, dict(zip(names, labels, strict=True)), value) for labels, value in series.items()
    ]
    return metric


def _one(values: Values, name: str, labels: Labels, value: float | None) -> None:
    # Two series with the same labels would make a scraper refuse everything: the first one stays.
    if value is not None and math.isfinite(value):
        values[name].setdefault(labels, float(value))


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _cause(series: Series) -> str:
    return series.result.labels.get(CAUSE_LABEL, "")


def _recommender(values: Values, state: RecommenderState) -> None:
    own = (label(state.name),)
    _one(values, "recsys_recommender_error", own, float(state.error is not None))
    _one(values, "recsys_last_run_timestamp_seconds", own, _seconds(state.last_run))
    end = None if state.last_window is None else state.last_window.end
    _one(values, "recsys_last_window_end_timestamp_seconds", own, _seconds(end))
    _one(values, "recsys_pending_windows", own, state.pending_windows)
    _one(values, "recsys_maintenance", own, float(state.maintenance is not None))
    for check, seconds in state.check_seconds.items():
        _one(values, "recsys_check_duration_seconds", (*own, label(check)), seconds)
    for log in state.logs:
        labels = (*own, label(log.log))
        _one(values, "recsys_log_watermark_timestamp_seconds", labels, _seconds(log.watermark))
        silence = None if log.stalled_after is None else log.stalled_after.total_seconds()
        _one(values, "recsys_log_stalled_after_seconds", labels, silence)
        _one(values, "recsys_log_files", labels, log.files)
        _one(values, "recsys_log_skipped_files", labels, len(log.skipped))
        _one(values, "recsys_log_lost_files", labels, len(log.lost))
        _one(values, "recsys_log_listing_errors", labels, len(log.unlisted))


def _rule(values: Values, series: Series) -> None:
    result = series.result
    given = result.labels
    if any(one in given for one in SLICE_LABELS):
        return  # a rule by slice is the page's matter; as a gauge it would be taken for the whole
    if series.standing is Status.UNDEFINED:
        return  # it does not apply to this log, so it has no verdict
    labels = (label(series.recommender), label(given.get("rule", "")), label(given.get("kind", "")))
    if not series.excused:
        set_status(values, "recsys_rule_status", labels, verdict(series.standing), VERDICTS)
    _one(values, "recsys_rule_violation_ratio", labels, result.value)
    _one(values, "recsys_rule_violation_lower_ratio", labels, result.lower)
    _one(values, "recsys_rule_violation_upper_ratio", labels, result.upper)
    _one(values, "recsys_rule_threshold_ratio", labels, result.threshold)
    _one(values, "recsys_rule_window_violations", labels, result.violations)
    _one(values, "recsys_rule_samples", labels, result.samples)
    _one(values, "recsys_rule_since_timestamp_seconds", labels, _seconds(series.since))


def _measurement(values: Values, series: Series) -> None:
    result = series.result
    given = result.labels
    sliced = any(one in given for one in SLICE_LABELS)
    if not series.excused:
        emit_status(values, series)
    spec = ALL_SPECS.get(result.metric)
    if spec is None:
        return
    known = all_families()
    for part, value in zip(_PARTS, (result.value, result.lower, result.upper, result.samples), strict=True):
        name = family_name(spec, part, sliced=sliced)
        if value is not None and name in known:
            rest = (label(given.get(one, "")) for one in known[name].labels[1:])
            of = (label(series.recommender), *rest)
            # Both parts of a window count the series that no cause explains: they add up.
            more = values[name].pop(of, 0.0) if result.kind is ResultKind.ANOMALY else 0.0
            _one(values, name, of, value + more)


def _counters(values: Values, snapshot: Snapshot) -> None:
    """The counters of the snapshot, then 0 for whatever can be counted and has not happened yet.

    A counter that only appears with its first event hides that event from increase().
    """
    families = all_families()
    states = {state.name: state for state in snapshot.recommenders}
    for (name, pairs), value in snapshot.counters.items():
        family = families.get(name)
        given = dict(pairs)
        # The store keeps counters for good: of older versions, and of what has left the config.
        if family is None or family.kind != "counter" or _has_left(given, states):
            continue
        _one(values, name, tuple(label(given.get(one, "")) for one in family.labels), value)
    for state in snapshot.recommenders:
        for name, labels in _from_the_start(state):
            _one(values, name, tuple(map(label, labels)), 0.0)


def _has_left(labels: Mapping[str, str], states: Mapping[str, RecommenderState]) -> bool:
    if "recommender" not in labels:
        return False
    state = states.get(labels["recommender"])
    if state is None:
        return True
    if "rule" not in labels or (
        state.error is not None and not state.rules
    ):  # broken: its rules are not known
        return False
    return (labels["rule"], labels.get("kind")) not in {(one.rule, one.kind.value) for one in state.rules}


def _from_the_start(state: RecommenderState) -> Iterator[tuple[str, Labels]]:
    own = state.name
    for info in state.rules:
        for name in OF_RULES:
            yield name, (own, info.rule, info.kind.value)
    for series in state.series:
        result = series.result
        if result.kind is ResultKind.RULE:
            kind = result.labels.get("kind", Kind.HARD.value)
            for name in OF_RULES:
                yield name, (own, result.labels.get("rule", ""), kind)
        elif result.metric in ALL_SPECS:
            yield UNDEFINED, (own, result.metric)
    yield CORRECTIONS, (own,)
    for status in VERDICTS:
        yield WINDOWS, (own, status.value)
    for outcome in TURN_ENDS:
        yield SCHEDULED, (own, outcome)
    checks = dict.fromkeys([*state.check_seconds, *(series.check for series in state.series)])
    for check, end in product(checks, RUN_ENDS):
        yield CHECK_RUNS, (own, check, end)
