"""The series of a snapshot, in three parts: what results say, the rest of each recommender, the monitor.

The results change with a window, the rest with each run. So a scrape can keep the one and rebuild the other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import product
from typing import Final

from monitor.anomalies.detectable import detectable_change
from monitor.anomalies.specs import ANOMALY_SEVERITY, EXPECTED
from monitor.catalogue import ALL_SPECS, DETECTABLE
from monitor.core.results import VERDICTS, Kind, ResultKind, Status, Window
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
from monitor.history.snapshot import CounterKey, RecommenderState, Series, Snapshot
from monitor.logs.files import STILL_WRITTEN
from monitor.logs.index import DUPLICATE
from monitor.metrics.exported import RECOMMENDER, Suffix, metric_family_name
from monitor.models.specs import CAUSE_LABEL
from monitor.service.prometheus.families import all_families
from monitor.service.prometheus.offenders import add_offenders
from monitor.service.prometheus.states import Labels, Values, add_status, is_slice, label, set_status, verdict
from monitor.settings.recommender import ROLLUP

Counters = Mapping[CounterKey, float]

EVERYTHING: Final = frozenset(all_families())
_BOUNDS: Final[tuple[Suffix, ...]] = ("lower", "upper")
_PARTS: Final[tuple[Suffix, ...]] = ("", *_BOUNDS, "samples")
_WITH_OBJECTIVES: Final = (ResultKind.METRIC, ResultKind.LOG, ResultKind.HEALTH)


def snapshot_values(
    snapshot: Snapshot, now: datetime | None = None, chosen: frozenset[str] = EVERYTHING
) -> Values:
    """Every series of a snapshot as family name -> label values -> value.

    Args:
        snapshot: what is exported.
        now: says which values are stale; default: when the snapshot was taken.
        chosen: the exported families of metrics; default: all. Those of an objective are always exported.
    """
    now = now or snapshot.taken_at
    values: Values = {name: {} for name in all_families()}
    counters = counters_by_recommender(snapshot)
    parts = [monitor_values(snapshot, counters.get("", {}))]
    for state in snapshot.recommenders:
        parts.append(recommender_values(state, counters.get(state.name, {})))
        parts.append(result_values(state, now, chosen))
    for part in parts:
        for name, series in part.items():
            for labels, value in series.items():
                values[name].setdefault(labels, value)
    return values


def counters_by_recommender(snapshot: Snapshot) -> dict[str, dict[CounterKey, float]]:
    """The counters of each recommender; those of the monitor itself under an empty name."""
    found: dict[str, dict[CounterKey, float]] = {}
    for key, value in snapshot.counters.items():
        owner = next((text for name, text in key[1] if name == RECOMMENDER), "")
        found.setdefault(owner, {})[key] = value
    return found


def monitor_values(snapshot: Snapshot, counters: Counters) -> Values:
    """What is about the monitor as a whole."""
    values: Values = defaultdict(dict)
    _add(values, "recsys_config_reload_success", (), float(snapshot.config_error is None))
    _add(values, "recsys_config_reload_timestamp_seconds", (), _seconds(snapshot.config_loaded_at))
    if snapshot.shared_history:
        _add(values, "recsys_shared_history_info", (label(snapshot.shared_history),), 1.0)
    for state in snapshot.recommenders if snapshot.shared_history else ():
        _add(values, "recsys_lease", (label(state.name),), float(state.judged_by is None))
    _add_counters(values, _exported(counters))
    return values


def result_values(state: RecommenderState, now: datetime, chosen: frozenset[str]) -> Values:
    """What the results of a recommender say.

    A missing or infinite value has no series. It is never exported as NaN or 0. Nor is a value that is stale
    by `now`; its state becomes `late`, unless it is violated.
    """
    values: Values = defaultdict(dict)
    add_offenders(values["recsys_rule_offender_rows"], state, now)
    excused = {_cause(one) for one in state.series if one.result.kind is ResultKind.ANOMALY and one.excused}
    ends = stale_times(state)
    for known in state.series:
        end = ends[_time_key(known)]
        # The cause of a gap never gets stale: the alert on the gap, which is still violated, needs it.
        is_stale = end is not None and now > end and known.result.kind is not ResultKind.CAUSE
        series = _stale(known) if is_stale else known
        if series.result.kind is ResultKind.RULE:
            _add_rule(values, series)
        elif series.result.metric != ANOMALY_SEVERITY.name or _cause(series) not in excused:
            _add_measurement(values, series, chosen)
    return values


_TimeKey = tuple[datetime, Window, bool]


def _time_key(series: Series) -> _TimeKey:
    return series.evaluated_at, series.window, series.result.status is Status.LATE


def stale_times(state: RecommenderState) -> dict[_TimeKey, datetime | None]:
    """When values get stale: hundreds of series have the same few times."""
    return {key: state.stale_after(one) for key, one in {_time_key(one): one for one in state.series}.items()}


def recommender_values(state: RecommenderState, counters: Counters) -> Values:
    """What a recommender has beside its results: its logs, its runs, its counters."""
    values: Values = defaultdict(dict)
    _add_recommender(values, state)
    _add_counters(values, counters_of(state, counters))
    # `increase()` misses the first event of a counter that appears with it.
    for name, labels in _known_counters(state):
        _add(values, name, tuple(map(label, labels)), 0.0)
    return values


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
        unreadable = [one for one in log.skipped if not one.reason.startswith((STILL_WRITTEN, DUPLICATE))]
        _add(values, "recsys_log_skipped_files", labels, len(unreadable))
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
        set_status(values, "recsys_rule_status", labels, verdict(series.standing))
    _add(values, "recsys_rule_violation_ratio", labels, result.value)
    _add(values, "recsys_rule_violation_lower_ratio", labels, result.lower)
    _add(values, "recsys_rule_violation_upper_ratio", labels, result.upper)
    _add(values, "recsys_rule_threshold_ratio", labels, result.threshold)
    _add(values, "recsys_rule_window_violations", labels, result.violations)
    _add(values, "recsys_rule_samples", labels, result.samples)
    _add(values, "recsys_rule_since_timestamp_seconds", labels, _seconds(series.since))
    if series.violation is not None:
        violated_at = _seconds(series.violation.window.start)
        _add(values, "recsys_rule_violated_timestamp_seconds", labels, violated_at)


@lru_cache(maxsize=4096)
def _families(
    metric: str, chosen: frozenset[str], *, sliced: bool, rolled_up: bool = False
) -> tuple[tuple[str, Suffix, tuple[str, ...]], ...]:
    """Name, part and labels of each exported family of a metric; the value of a roll-up is always one."""
    families = all_families()
    named = ((metric_family_name(ALL_SPECS[metric], part, sliced=sliced), part) for part in _PARTS)
    return tuple(
        (name, part, families[name].labels)
        for name, part in named
        if name in chosen or (rolled_up and not part and name in families)
    )


def bounds_with_objective(state: RecommenderState) -> frozenset[str]:
    """The families of bounds of those metrics of a recommender that have an objective."""
    return frozenset(
        metric_family_name(ALL_SPECS[series.result.metric], part, sliced=is_slice(series.result))
        for series in state.series
        if series.result.threshold is not None
        and series.result.kind in _WITH_OBJECTIVES
        and series.result.metric in ALL_SPECS
        for part in _BOUNDS
    )


def _add_measurement(values: Values, series: Series, chosen: frozenset[str]) -> None:
    result = series.result
    if not series.excused:
        add_status(values, series)
    if result.metric not in ALL_SPECS:
        return
    if result.metric == EXPECTED.name and not is_slice(result) and DETECTABLE.name in chosen:
        own = (label(result.labels.get(key, "")) for key in DETECTABLE.labels[1:])
        _add(values, DETECTABLE.name, (label(series.recommender), *own), detectable_change(result))
    if result.threshold is not None and result.kind in _WITH_OBJECTIVES:
        chosen = EVERYTHING
    rolled_up = result.labels.get("dimension") == ROLLUP
    families = _families(result.metric, chosen, sliced=is_slice(result), rolled_up=rolled_up)
    if not families:
        return
    parts = {"": result.value, "lower": result.lower, "upper": result.upper, "samples": result.samples}
    for name, part, keys in families:
        value = parts[part]
        if value is not None:
            labels = (label(series.recommender), *(label(result.labels.get(key, "")) for key in keys[1:]))
            # Each part of a window counts its unexplained series, so the two counts add up.
            more = values[name].pop(labels, 0.0) if result.kind is ResultKind.ANOMALY else 0.0
            _add(values, name, labels, value + more)


def _rules(state: RecommenderState) -> set[tuple[str | None, str | None]]:
    return {(one.rule, one.kind.value) for one in state.rules}


def counters_of(state: RecommenderState, counters: Counters) -> Iterator[tuple[CounterKey, float]]:
    """The stored counters of a recommender that are shown: not those of rules that left the config."""
    rules = None if state.error and not state.rules else _rules(state)  # None: it is not known
    own = ("recommender", state.name)
    return _exported({key: value for key, value in counters.items() if own in key[1]}, rules)


def _exported(
    counters: Counters, rules: Collection[tuple[str | None, str | None]] | None = None
) -> Iterator[tuple[CounterKey, float]]:
    for (name, pairs), value in counters.items():
        family = all_families().get(name)
        # The store also keeps counters of older versions.
        if family is None or family.kind != "counter" or (name == UNDEFINED and value == 0):
            continue
        given = dict(pairs)
        if rules is not None and "rule" in given and (given["rule"], given.get("kind")) not in rules:
            continue
        yield (name, pairs), value


def _add_counters(values: Values, counters: Iterable[tuple[CounterKey, float]]) -> None:
    for (name, pairs), value in counters:
        given = dict(pairs)
        _add(values, name, tuple(label(given.get(key, "")) for key in all_families()[name].labels), value)


def counted_by(state: RecommenderState) -> tuple[dict[str, None], dict[tuple[str, str], None]]:
    """The checks, and the rules with their kinds, whose counters the series of a recommender name."""
    rules = (one.result.labels for one in state.series if one.result.kind is ResultKind.RULE)
    return (
        dict.fromkeys(one.check for one in state.series),
        dict.fromkeys((one.get("rule", ""), one.get("kind", Kind.HARD.value)) for one in rules),
    )


def _known_counters(state: RecommenderState) -> Iterator[tuple[str, Labels]]:
    own = state.name
    checks, rules = counted_by(state)
    for rule, kind in (*((one.rule, one.kind.value) for one in state.rules), *rules):
        for name in OF_RULES:
            yield name, (own, rule, kind)
    yield CORRECTIONS, (own,)
    for status in VERDICTS:
        yield WINDOWS, (own, status.value)
    for outcome in TURN_ENDS:
        yield SCHEDULED, (own, outcome)
    for check, end in product({**state.check_seconds, **checks}, RUN_ENDS):
        yield CHECK_RUNS, (own, check, end)
