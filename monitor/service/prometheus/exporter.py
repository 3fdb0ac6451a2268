"""The text of /metrics. Each scrape builds every family from one immutable snapshot.

Nothing is kept between scrapes, so a series that leaves the snapshot leaves the scrape. Names, help and
labels come from the table of families.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from monitor.anomalies.detectable import detectable_change
from monitor.anomalies.specs import ANOMALY_SEVERITY, EXPECTED
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
from monitor.service.prometheus.exported import ExportedFamily
from monitor.service.prometheus.families import (
    DETECTABLE,
    MONITOR,
    RULES,
    SLICE_LABELS,
    STATUSES,
    Suffix,
    all_families,
)
from monitor.service.prometheus.families import metric_family_name as family_name
from monitor.service.prometheus.offenders import add_offenders
from monitor.service.prometheus.process import PROCESS, Process
from monitor.service.prometheus.states import Labels, Values, add_status, is_slice, label, set_status, verdict

_PARTS: Final[tuple[Suffix, ...]] = ("", "lower", "upper", "samples")
_REQUIRED: Final = frozenset(family.name for family in (*STATUSES, *RULES, *MONITOR, *PROCESS))


class Exporter(Collector):
    """Exports the snapshot that `current` returns at the time of the scrape.

    `url` is the address at which people reach the status page, `grafana_url` that of the dashboards. Above
    `series_limit` the families of slices are left out, the largest first, then the other families of
    metrics. The families that alerts need (states, rules, the monitor itself) are never left out. The omitted
    series are counted. `clock` says which values are stale.
    """

    def __init__(
        self,
        current: Callable[[], Snapshot],
        *,
        version: str,
        url: str,
        grafana_url: str | None = None,
        series_limit: int = 10_000,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._current = current
        self._version = version
        self._url = url
        self._grafana_url = grafana_url
        self._limit = series_limit
        self._clock = clock
        self._process = Process()

    def scrape(self, accept: str = "") -> tuple[bytes, str]:
        """The body and its content type: OpenMetrics if the Accept header asks for it, else plain text."""
        encode, content_type = choose_encoder(accept)
        return encode(self), content_type

    def collect(self) -> Iterator[Metric]:
        values = snapshot_values(self._current(), self._clock())
        values["recsys_build_info"] = {(self._version,): 1.0}
        values["recsys_web_info"] = {(self._url.rstrip("/"),): 1.0}
        if self._grafana_url is not None:
            values["recsys_dashboards_info"] = {(self._grafana_url,): 1.0}
        values |= self._process.values()
        dropped = drop_families(values, self._limit - 3)  # the three series below count themselves
        values["recsys_series_limit"] = {(): float(self._limit)}
        values["recsys_series_dropped"] = {(): float(dropped)}
        values["recsys_series"] = {(): float(_count(values) + 1)}
        for family in all_families().values():
            series = values.get(family.name)
            if series:
                yield _metric(family, series)


def snapshot_values(snapshot: Snapshot, now: datetime | None = None) -> Values:
    """Every series of a snapshot as family name -> label values -> value.

    A missing or infinite value has no series. It is never exported as NaN or 0. Nor is a value that is stale
    by `now` (default: when the snapshot was taken); its state becomes `late`, unless it is violated.
    """
    now = now or snapshot.taken_at
    values: Values = {name: {} for name in all_families()}
    _add(values, "recsys_config_reload_success", (), float(snapshot.config_error is None))
    _add(values, "recsys_config_reload_timestamp_seconds", (), _seconds(snapshot.config_loaded_at))
    for state in snapshot.recommenders:
        _add_recommender(values, state)
        add_offenders(values["recsys_rule_offender_rows"], state, snapshot.taken_at)
        excused = {
            _cause(one) for one in state.series if one.result.kind is ResultKind.ANOMALY and one.excused
        }
        for known in state.series:
            # The cause of a gap never gets stale: the alert on the gap, which is still violated, needs it.
            is_stale = known.result.kind is not ResultKind.CAUSE and state.is_stale(known, now)
            series = _stale(known) if is_stale else known
            if series.result.kind is ResultKind.RULE:
                _add_rule(values, series)
            elif series.result.metric != ANOMALY_SEVERITY.name or _cause(series) not in excused:
                _add_measurement(values, series)
    _add_counters(values, snapshot)
    return values


def drop_families(values: Values, limit: int) -> int:
    """Remove whole families until at most `limit` series are left. Returns the number of removed series.

    The order depends on sizes and names alone, so the same snapshot always loses the same families.
    """
    excess = _count(values) - limit
    families = all_families()
    optional = [name for name in values if name not in _REQUIRED and values[name]]

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


def _add(values: Values, name: str, labels: Labels, value: float | None) -> None:
    # Keep the first of two series with the same labels: Prometheus rejects a scrape with duplicates.
    if value is not None and math.isfinite(value):
        values[name].setdefault(labels, float(value))


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _cause(series: Series) -> str:
    return series.result.labels.get(CAUSE_LABEL, "")


def _add_recommender(values: Values, state: RecommenderState) -> None:
    own = (label(state.name),)
    _add(values, "recsys_recommender_info", (*own, label(state.owner)), 1.0)
    for rule in state.rules:
        of_rule = (*own, label(rule.rule), label(rule.kind.value), label(rule.owner))
        _add(values, "recsys_rule_info", of_rule, 1.0)
    _add(values, "recsys_recommender_error", own, float(state.error is not None))
    _add(values, "recsys_last_run_timestamp_seconds", own, _seconds(state.last_run))
    end = None if state.last_window is None else state.last_window.end
    _add(values, "recsys_last_window_end_timestamp_seconds", own, _seconds(end))
    _add(values, "recsys_pending_windows", own, state.pending_windows)
    _add(values, "recsys_maintenance", own, float(state.maintenance is not None))
    for check, seconds in state.check_seconds.items():
        _add(values, "recsys_check_duration_seconds", (*own, label(check)), seconds)
    for kind, moment in state.changed_at.items():
        _add(values, "recsys_change_timestamp_seconds", (*own, kind), _seconds(moment))
    for part, moment in state.judged_at.items():
        _add(values, "recsys_last_success_timestamp_seconds", (*own, part), _seconds(moment))
    for name, moment in state.scanned_at.items():
        _add(values, "recsys_log_last_scan_timestamp_seconds", (*own, name), _seconds(moment))
    for log in state.logs:
        labels = (*own, label(log.log))
        _add(values, "recsys_log_watermark_timestamp_seconds", labels, _seconds(log.watermark))
        silence = None if log.stalled_after is None else log.stalled_after.total_seconds()
        _add(values, "recsys_log_stalled_after_seconds", labels, silence)
        _add(values, "recsys_log_files", labels, log.files)
        _add(values, "recsys_log_skipped_files", labels, len(log.skipped))
        _add(values, "recsys_log_lost_files", labels, len(log.lost))
        _add(values, "recsys_log_listing_errors", labels, len(log.unlisted))


def _stale(series: Series) -> Series:
    """The series without the values of its last window, which was too long ago.

    A violation stays until a window clears it, or a log that stops would resolve the alert.
    """
    standing, result = series.standing, series.result
    if standing not in (Status.VIOLATED, Status.UNDEFINED):
        standing = Status.LATE
    status = result.status if result.status is Status.VIOLATED else Status.LATE
    unknown = replace(
        result, status=status, value=None, lower=None, upper=None, samples=None, violations=None
    )
    return replace(series, result=unknown, standing=standing)


def _add_rule(values: Values, series: Series) -> None:
    result = series.result
    if is_slice(result):
        return  # only the page shows a rule by slice: its gauge would look like that of the whole rule
    if series.standing is Status.UNDEFINED:
        return  # the rule does not apply to this log
    rule, kind = result.labels.get("rule", ""), result.labels.get("kind", "")
    labels = (label(series.recommender), label(rule), label(kind))
    if not series.excused:
        set_status(values, "recsys_rule_status", labels, verdict(series.standing), VERDICTS)
    _add(values, "recsys_rule_violation_ratio", labels, result.value)
    _add(values, "recsys_rule_violation_lower_ratio", labels, result.lower)
    _add(values, "recsys_rule_violation_upper_ratio", labels, result.upper)
    _add(values, "recsys_rule_threshold_ratio", labels, result.threshold)
    _add(values, "recsys_rule_window_violations", labels, result.violations)
    _add(values, "recsys_rule_samples", labels, result.samples)
    _add(values, "recsys_rule_since_timestamp_seconds", labels, _seconds(series.since))


def _add_measurement(values: Values, series: Series) -> None:
    result = series.result
    if not series.excused:
        add_status(values, series)
    spec = ALL_SPECS.get(result.metric)
    if spec is None:
        return
    if result.metric == EXPECTED.name and not is_slice(result):
        own = (label(result.labels.get(key, "")) for key in DETECTABLE.labels[1:])
        _add(values, DETECTABLE.name, (label(series.recommender), *own), detectable_change(result))
    families = all_families()
    for part, value in zip(_PARTS, (result.value, result.lower, result.upper, result.samples), strict=True):
        name = family_name(spec, part, sliced=is_slice(result))
        if value is not None and name in families:
            rest = (label(result.labels.get(key, "")) for key in families[name].labels[1:])
            labels = (label(series.recommender), *rest)
            # Each part of a window counts its unexplained series, so the two counts add up.
            more = values[name].pop(labels, 0.0) if result.kind is ResultKind.ANOMALY else 0.0
            _add(values, name, labels, value + more)


def _add_counters(values: Values, snapshot: Snapshot) -> None:
    """Add the counters of the snapshot, and 0 for every other known counter.

    `increase()` misses the first event of a counter that appears with it.
    """
    families = all_families()
    states = {state.name: state for state in snapshot.recommenders}
    for (name, pairs), value in snapshot.counters.items():
        family = families.get(name)
        given = dict(pairs)
        # The store also keeps counters of older versions, and of rules and recommenders that left the config.
        if family is None or family.kind != "counter" or _left_config(given, states):
            continue
        _add(values, name, tuple(label(given.get(key, "")) for key in family.labels), value)
    for state in snapshot.recommenders:
        for name, labels in _known_counters(state):
            _add(values, name, tuple(map(label, labels)), 0.0)


def _left_config(labels: Mapping[str, str], states: Mapping[str, RecommenderState]) -> bool:
    if "recommender" not in labels:
        return False
    state = states.get(labels["recommender"])
    if state is None:
        return True
    has_unknown_rules = state.error is not None and not state.rules
    if "rule" not in labels or has_unknown_rules:
        return False
    return (labels["rule"], labels.get("kind")) not in {(one.rule, one.kind.value) for one in state.rules}


def _known_counters(state: RecommenderState) -> Iterator[tuple[str, Labels]]:
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
