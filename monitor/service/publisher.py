"""Publishes one immutable snapshot: the stored history plus the state of the running daemon."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from monitor.anomalies.band_check import MEASURED
from monitor.anomalies.drift_check import BANDS
from monitor.anomalies.specs import OF_SERIES
from monitor.config.checks.check import Checked
from monitor.core.columns import LOGS
from monitor.core.results import Result, ResultKind, Status
from monitor.experiments.specs import EXPERIMENT
from monitor.forecast.series import ForecastSeries
from monitor.forecast.specs import ROLE_LABEL, TARGET_LABEL, USED
from monitor.history.errors import StoreError
from monitor.history.read_snapshot import Kept, read_logs, read_snapshot
from monitor.history.snapshot import Change, MaintenanceState, RecommenderState, RuleInfo, Series, Snapshot
from monitor.history.store import Store
from monitor.history.watched import JUDGED
from monitor.judging.registry import CHECKS_OF
from monitor.metrics.feedback.attribution_health import LOST
from monitor.platform.specs import of_platform
from monitor.rules.rule import LoadedRule
from monitor.service.changes import changed_at
from monitor.service.tally import Tally
from monitor.service.watch import WatchState
from monitor.settings.forecast import ForecastSettings
from monitor.settings.maintenance import Maintenance, began_within, now_quiet
from monitor.settings.recommender import RecommenderSettings

log = logging.getLogger(__name__)

_SHORTEST: Final = timedelta(seconds=1)  # a recommender with a shorter window cannot run
_PROBE_SECONDS: Final = 5.0
_MEASURES: Final = {check: log for log, checks in CHECKS_OF.items() for check in checks}
_BANDED: Final = {check: _MEASURES[measured] for check, measured in MEASURED.items()}
_DRIFTING: Final = {check: _BANDED[bands] for check, bands in BANDS.items()}
_LOG_OF: Final[Mapping[str, str]] = {**_MEASURES, **_BANDED, **_DRIFTING}
"""Check -> the log whose windows it judges."""
_FEW: Final = 50  # recommenders whose counters are read by name; for more it is faster to read all


class Shown(Protocol):
    """A recommender that runs: its config, and what its last turn found."""

    settings: RecommenderSettings
    rules: tuple[LoadedRule, ...]

    @property
    def state(self) -> WatchState: ...


@dataclass(frozen=True, slots=True)
class Running:
    """The recommenders of the loaded config. A reload replaces it as a whole, so no snapshot mixes two."""

    names: Sequence[str]
    watches: Mapping[str, Shown]
    broken: Mapping[str, Checked]  # the recommenders that cannot run, with their problems
    loaded_at: datetime
    refused: str = ""  # why a newer config was refused
    elsewhere: Mapping[str, str] = field(default_factory=dict)  # recommender -> the monitor that judges it
    shared_history: str = ""  # its id, if other monitors may use it too

    def settings(self, name: str) -> RecommenderSettings | None:
        """The settings of a recommender, even if it cannot run."""
        known = self.watches.get(name) or self.broken.get(name)
        return None if known is None else known.settings

    def error(self, name: str) -> str | None:
        """Why a recommender cannot run, or why its last run could not read the log."""
        if name in self.broken:
            return "; ".join(map(str, self.broken[name].problems))
        return self.watches[name].state.error if name in self.watches else None


class SnapshotPublisher:
    """Takes snapshots, from any thread. `current` returns the last one and never waits.

    Each snapshot starts from the last reading of the history, never from an earlier snapshot. So the state of
    the daemon is added once, however long the history cannot be read.

    Raises StoreError if the first reading fails.
    """

    def __init__(self, store: Store, tally: Tally, running: Running, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._tally = tally
        self._clock = clock
        self._lock = threading.Lock()
        self._worked_at = clock()
        self.running = running
        self._kept: dict[str, Kept] = {}
        self._states: dict[str, RecommenderState] = {}  # as last read
        self._shown: dict[str, _Shown] = {}  # as last published
        self._read_error = self._write_error = ""
        self._probed_at = time.monotonic()
        self._probing = threading.Lock()
        self._stored = self._read_history()
        self._published = self._complete()

    def current(self) -> Snapshot:
        return self._published

    def publish(
        self,
        *,
        worked: bool = False,
        of: Collection[str] | None = None,
        written: Collection[str] | None = None,
        logs_of: Collection[str] = (),
    ) -> None:
        """Publish a new snapshot. A thread of the pool sets `worked`: its sign of life.

        Only the history of the recommenders `of` is read again, by default that of all: to read two hundred
        takes seconds. If only some of their checks have `written` results, the others are read only if their
        newest windows have changed. Of `logs_of`, only the state of the logs is read.
        """
        with self._lock:  # or an older snapshot could replace a newer one
            if worked:
                self._worked_at = self._clock()
            try:
                self._stored = self._read_history(of, written, logs_of)
            except StoreError as exc:
                self._read_error = str(exc)
                self._tally.store_failed(exc)
                log.error("the history cannot be read; the page shows the last state that was read: %s", exc)
            self._published = self._complete()

    def write_counters(self) -> None:
        """Write the new counts to the history."""
        with self._lock:  # during a reading, a count could be shown twice
            try:
                self._tally.write()
                self._write_error = ""
            except StoreError as exc:
                self._write_error = str(exc)
                log.error("the counters cannot be written to the history; the next run tries again: %s", exc)

    def history_error(self) -> str:
        """Why the history cannot be read or written; empty if it works.

        Reads the history in the caller's thread, at most every few seconds. One caller reads at a time; the
        others get the last answer.
        """
        if time.monotonic() - self._probed_at >= _PROBE_SECONDS and self._probing.acquire(blocking=False):
            try:
                self._probe()
            finally:
                self._probed_at = time.monotonic()
                self._probing.release()
        return self._read_error or self._write_error

    def _probe(self) -> None:
        """Try a read. A write may wait long for a lock, so the worker's next turn tries that."""
        try:
            self._store.counters()
        except StoreError as exc:
            with self._lock:
                self._read_error = str(exc)
                self._published = self._complete()
            return
        if self._read_error:
            self.publish()

    def _read_history(
        self,
        of: Collection[str] | None = None,
        written: Collection[str] | None = None,
        logs_of: Collection[str] = (),
    ) -> Snapshot:
        names = list(dict.fromkeys(self.running.names))
        # After an error all of them may have changed.
        every = of is None or bool(self._read_error)
        wanted = [name for name in names if every or name in (of or ()) or name not in self._states]
        only = len(wanted) <= _FEW and not every
        of_names = None if every or written is None else dict.fromkeys(wanted, written)
        snapshot = read_snapshot(
            self._store, wanted, self._clock(), kept=self._kept, only=only, written=of_names
        )
        self._states |= {state.name: state for state in snapshot.recommenders}
        looked = [name for name in logs_of if name in self._states and name not in wanted]
        for name, logs in read_logs(self._store, looked).items() if looked else ():
            if logs != self._states[name].logs:
                self._states[name] = replace(self._states[name], logs=logs)
        for name in self._states.keys() - set(names):
            del self._states[name]
            self._kept.pop(name, None)
            self._shown.pop(name, None)
        self._tally.read(snapshot.counters, wanted if only else None)
        self._read_error = ""
        return replace(snapshot, recommenders=tuple(self._states[name] for name in names))

    def _completed(
        self, name: str, state: RecommenderState | None, running: Running, now: datetime
    ) -> RecommenderState:
        """What is published of a recommender; made again only if something is new."""
        inputs = _inputs(name, state, running, now)
        known = self._shown.get(name)
        if known is None or not known.made_from.same(inputs):
            made = _completed(state or RecommenderState(name), inputs, now, known)
            known = self._shown[name] = _Shown(inputs, made)
        return known.state

    def _complete(self) -> Snapshot:
        """The last reading of the history, with the state of the running daemon."""
        running, now = self.running, self._clock()
        known = {state.name: state for state in self._stored.recommenders}
        return replace(
            self._stored,
            recommenders=tuple(
                self._completed(name, known.get(name), running, now) for name in dict.fromkeys(running.names)
            ),
            counters=self._tally.shown(),
            config_loaded_at=running.loaded_at,
            shared_history=running.shared_history,
            config_error=running.refused or None,
            worked_at=self._worked_at,
            history_error=self._read_error or self._write_error,
        )


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a published state is made from. Objects that are never changed are compared by identity."""

    state: RecommenderState | None
    watch: Shown | None
    found: WatchState
    settings: RecommenderSettings | None
    error: str | None
    judged_by: str | None
    maintenance: MaintenanceState | None
    declared: int  # changes of the config that have taken effect

    def same(self, other: _Inputs) -> bool:
        return (
            self.state is other.state
            and self.watch is other.watch
            and self.found is other.found
            and self.settings is other.settings
            and (self.error, self.judged_by, self.maintenance, self.declared)
            == (other.error, other.judged_by, other.maintenance, other.declared)
        )


@dataclass(frozen=True, slots=True)
class _Shown:
    made_from: _Inputs
    state: RecommenderState


_NOTHING_YET: Final = WatchState()


def _inputs(name: str, state: RecommenderState | None, running: Running, now: datetime) -> _Inputs:
    watch, settings = running.watches.get(name), running.settings(name)
    declared = settings.bands.changes if settings and settings.bands else ()
    return _Inputs(
        state=state,
        watch=watch,
        found=_NOTHING_YET if watch is None else watch.state,
        settings=settings,
        error=running.error(name),
        judged_by=running.elsewhere.get(name),
        maintenance=_maintenance(settings, now),
        declared=sum(one.at <= now for one in declared),
    )


def _completed(
    state: RecommenderState, inputs: _Inputs, now: datetime, before: _Shown | None
) -> RecommenderState:
    settings, watch, found = inputs.settings, inputs.watch, inputs.found
    owner = (settings.owner if settings else None) or ""
    named = settings.logs.named() if settings else LOGS  # a log that left the config is shown no more
    return replace(
        state,
        owner=owner,
        series=_shown_series(state.series, inputs, before),
        logs=tuple(
            replace(one, stalled_after=found.stalled_after.get(one.log))
            for one in state.logs
            if one.log in named
        ),
        last_run=found.last_run or state.last_run,
        pending_windows=found.pending,
        error=inputs.error,
        clock_change=found.clock_change,
        check_seconds={
            check: seconds for check, seconds in state.check_seconds.items() if _is_of(check, named)
        },
        patience=settings.max_wait + settings.every if settings else None,
        changed_at=changed_at(state.series, settings, found.lists_changed_at, now) if settings else {},
        judged_at={
            one.log.removeprefix(JUDGED): one.watermark
            for one in state.logs
            if one.log.startswith(JUDGED) and one.log.removeprefix(JUDGED) in named and one.watermark
        },
        scanned_at=dict(found.scanned_at),
        changes=tuple(_changes(state, watch)),
        maintenance=inputs.maintenance,
        rules=tuple(_info(one, owner) for one in watch.rules) if watch else (),
        settings=settings,
        judged_by=inputs.judged_by,
    )


def _info(rule: LoadedRule, owner: str) -> RuleInfo:
    """What is shown of a rule; one without an owner has that of the recommender."""
    return RuleInfo(
        rule=rule.name,
        kind=rule.kind,
        description=rule.description,
        owner=rule.owner or owner,
        runbook=rule.runbook,
        severity=rule.severity,
        threshold=rule.threshold,
        table=rule.table,
        pack=rule.pack,
        expectation=rule.expectation.expectation_type,
        arguments=rule.kwargs,
        definition=rule.definition,
    )


def _changes(state: RecommenderState, watch: Shown | None) -> Iterator[Change]:
    """What the history, the files and the config say about recent changes."""
    yield from state.changes
    if watch is not None:
        yield from watch.state.changes
        for declared in watch.settings.bands.changes if watch.settings.bands else ():
            yield Change(declared.at.astimezone(UTC), declared.what)


def _maintenance(settings: RecommenderSettings | None, now: datetime) -> MaintenanceState | None:
    """The maintenance that suppresses alerts now.

    It depends on the clock alone: an unreadable history must not prolong it. It also holds for a recommender
    that cannot run, because the maintenance may be the reason.
    """
    if settings is None:
        return None
    window = max(settings.window, _SHORTEST)
    span = now_quiet(settings.maintenance, now, window=window, lateness=settings.lateness)
    return None if span is None else MaintenanceState(span.until, span.reason)


def _shown_series(series: tuple[Series, ...], inputs: _Inputs, before: _Shown | None) -> tuple[Series, ...]:
    """The series that the config asks for; those of `before` if neither they nor the config have changed."""
    watch, settings = inputs.watch, inputs.settings
    if before is not None and before.made_from.state is not None:
        made_from = before.made_from.state.series, before.made_from.watch, before.made_from.settings
        if all(one is other for one, other in zip(made_from, (series, watch, settings), strict=True)):
            return before.state.series
    asked = series if watch is None else _configured(series, watch)
    return tuple(_excused(asked, settings.maintenance if settings else ()))


def _excused(series: Iterable[Series], spans: Sequence[Maintenance]) -> Iterator[Series]:
    """Mark the series whose trouble was seen in maintenance alone."""
    for one in series:
        is_excused = one.standing is not Status.OK and began_within(spans, one.window, one.since)
        yield replace(one, excused=True) if is_excused else one


def _configured(series: Sequence[Series], watch: Shown) -> Iterator[Series]:
    """Leave out verdicts and scores that the config no longer asks for, and all results of a removed log.

    The last window was judged by an older config. After a team removes a rule or an objective, its alert must
    resolve at once, and not with the next window, which may be a day away. After it removes a log, no further
    window of its checks comes: their results would be late for ever.
    """
    logs = watch.settings.logs.named()
    rules = {(one.name, one.kind.value) for one in watch.rules}
    experiments = {one.name for one in watch.settings.experiments}
    for one in series:
        result = one.result
        if not _is_of(one.check, logs):
            continue
        if result.kind is ResultKind.HEALTH and watch.settings.health is None:
            continue
        if result.kind.is_of_the_past and watch.settings.bands is None:
            continue
        if result.kind.is_of_the_platform and not of_platform(result, watch.settings):
            continue
        if result.kind is ResultKind.FORECAST and not _is_asked(result, watch.settings.forecast):
            continue
        if result.kind is ResultKind.RULE:
            if (result.labels.get("rule"), result.labels.get("kind")) in rules:
                yield one
        elif (
            result.threshold is None
            or result.kind.is_of_models  # the bounds of these four kinds are not objectives
            or result.kind.is_of_the_past
            or result.kind.is_of_the_platform
            or result.labels.get(EXPERIMENT) in experiments
            or (result.metric == LOST.name and watch.settings.metrics.max_unattributed is not None)
            or any(
                each.metric == result.metric and each.labels == result.labels
                for each in watch.settings.objectives
            )
        ):
            yield one
        else:
            yield _unjudged(one)


def _is_of(check: str, logs: Collection[str]) -> bool:
    """Whether a check judges windows of one of these logs, or of none."""
    return _LOG_OF.get(check) in (None, *logs)


def _is_asked(result: Result, forecast: ForecastSettings | None) -> bool:
    """Whether the config asks for this result of a forecast."""
    if forecast is None:
        return False
    asked = {one.name: one.used for one in forecast.targets}
    target = result.labels.get(TARGET_LABEL)
    if target is None:
        return True
    if result.labels.get(ROLE_LABEL) != USED:
        return target in asked
    own = {name: result.labels.get(name, "") for name in OF_SERIES}
    return any(ForecastSeries.asked(one).own_labels() == own for one in asked.get(target, ()))


def _unjudged(series: Series) -> Series:
    """The series without its objective, which left the config. The measured value stays."""
    result, standing = replace(series.result, threshold=None, bound=None, clear=None), series.standing
    if result.status is Status.VIOLATED:
        result = replace(result, status=Status.OK, detail="")
    if standing is Status.VIOLATED:
        standing = Status.OK
    return replace(series, result=result, standing=standing, violation=None)
