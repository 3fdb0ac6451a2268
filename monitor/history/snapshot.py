"""The snapshot: an immutable record of everything that is shown. The exporter and the page read only this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from monitor.core.columns import SAMPLES
from monitor.core.results import Kind, Result, ResultKind, Status, Window
from monitor.settings.recommender import RecommenderSettings

STALE_AFTER: Final = 3
"""So many windows may be missing before the values of the last one are stale."""
_OF_SAMPLES: Final = (ResultKind.MODEL, ResultKind.GAP, ResultKind.CAUSE)


@dataclass(frozen=True, slots=True)
class Point:
    """One past window of a series, for the sparkline, with the interval that was kept with it."""

    window: Window
    value: float | None
    status: Status
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """A window in which a series was violated, with the evidence that was kept of it."""

    window: Window
    result: Result


@dataclass(frozen=True, slots=True)
class Series:
    """A result's newest window and its recent past.

    Attributes:
        standing: the status that alerts use. A soft rule fires when its interval is above the threshold, and
            clears when the rate itself is back at the threshold.
        since: start of the first window with this standing.
        violation: the newest violated window: this one, one of the recent past, or the one that began the
            current violation. So its evidence outlives the next window.
        excused: the standing is not ok, but only in windows of maintenance: nobody is alerted.
    """

    recommender: str
    check: str
    window: Window
    result: Result
    evaluated_at: datetime
    standing: Status
    since: datetime
    past: tuple[Point, ...] = ()  # oldest first, the newest window last
    violation: Violation | None = None
    excused: bool = False


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that cannot be read or lacks rows, or a folder that cannot be listed; and why."""

    path: str
    reason: str
    rows: int = 0  # how many rows of it were lost


@dataclass(frozen=True, slots=True)
class LogState:
    """How far a log was read, and what cannot be read.

    Attributes:
        lost: files whose rows were read before and cannot be read now.
        unlisted: folders or globs that cannot be listed.
        stalled_after: the log counts as stalled once its newest row is older than this, if it is known.
    """

    log: str
    watermark: datetime | None = None
    files: int = 0
    skipped: tuple[SkippedFile, ...] = ()
    lost: tuple[SkippedFile, ...] = ()
    unlisted: tuple[SkippedFile, ...] = ()
    stalled_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """The description of a rule. It comes from the config, so it is known before any window is judged."""

    rule: str
    kind: Kind
    description: str = ""
    owner: str = ""
    runbook: str = ""
    severity: str = ""
    threshold: float = 0.0
    table: str = ""
    pack: str = ""
    expectation: str = ""  # its type
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the expectation
    definition: str = ""


@dataclass(frozen=True, slots=True)
class MaintenanceState:
    """Maintenance that holds alerts back now: until when it was said to last, and why."""

    until: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that changed at a time: a file was written, a definition is new, a team declared it."""

    at: datetime
    what: str


@dataclass(frozen=True, slots=True)
class RecommenderState:
    """`error` is set if the recommender cannot be run; then nothing else in it is new.

    Attributes:
        clock_change: why the time zone of the bands seems wrong; empty if it does not.
        settings: those of the loaded config.
        patience: how much later than the one before a window may be judged, beside its length; None if it
            is unknown, as without a config.
        changed_at: kind of change -> when the newest one took effect.
        judged_at: part of a window -> when one was last judged without an error.
        scanned_at: log -> when it was last listed and read without an error, since the start of the daemon.
        judged_by: the address of another monitor that judges it, empty if none does yet; None if this one
            does.
    """

    name: str
    owner: str = ""
    series: tuple[Series, ...] = ()
    logs: tuple[LogState, ...] = ()
    last_run: datetime | None = None
    last_window: Window | None = None
    pending_windows: int = 0
    check_seconds: Mapping[str, float] = field(default_factory=dict)  # check -> its last duration
    error: str | None = None
    rules: tuple[RuleInfo, ...] = ()  # every rule of the config, in its order
    maintenance: MaintenanceState | None = None
    clock_change: str = ""
    changes: tuple[Change, ...] = ()
    settings: RecommenderSettings | None = None
    patience: timedelta | None = None
    changed_at: Mapping[str, datetime] = field(default_factory=dict)
    judged_at: Mapping[str, datetime] = field(default_factory=dict)
    scanned_at: Mapping[str, datetime] = field(default_factory=dict)
    judged_by: str | None = None

    def stale_after(self, series: Series) -> datetime | None:
        """The time after which the values of a series are too old to be current; None if there is none.

        1. No newer window was judged, as after a refused config or with a history that cannot be written.
        2. The newest window is late because its log has stopped: the zeros in it are of missing rows. Samples
        may come once a day, so their log counts only for what is measured on them.
        """
        if self.patience is None:
            return None
        known = [series.evaluated_at]
        if series.result.status is Status.LATE:
            of_samples = series.result.kind in _OF_SAMPLES
            logs = [log for log in self.logs if of_samples or log.log != SAMPLES]
            known += [log.watermark for log in logs if log.watermark is not None]
        return min(known) + STALE_AFTER * series.window.length + self.patience

    def is_stale(self, series: Series, now: datetime) -> bool:
        """Whether the values of a series are too old to be current."""
        until = self.stale_after(series)
        return until is not None and now > until


CounterKey = tuple[str, tuple[tuple[str, str], ...]]  # family name, sorted (label, value) pairs


@dataclass(frozen=True, slots=True)
class Snapshot:
    taken_at: datetime  # when the history was read; long ago while it cannot be read
    recommenders: tuple[RecommenderState, ...] = ()
    counters: Mapping[CounterKey, float] = field(default_factory=dict)
    config_loaded_at: datetime | None = None
    config_error: str | None = None  # why the last reload was refused; the older config runs on
    worked_at: datetime | None = None  # when the thread that judges last showed that it is alive
    history_error: str = ""  # why the history cannot be read or written now
    shared_history: str = ""  # the id of the history, if several monitors may share it
