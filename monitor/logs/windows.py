"""Which windows are due: new ones, missed ones, and those that late data has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from monitor.core.columns import EXPOSURES, FEEDBACK, SAMPLES
from monitor.core.digest import digest
from monitor.core.results import Window
from monitor.core.text import plural
from monitor.logs.log import Log
from monitor.logs.source import Source
from monitor.settings.logs import TimeSettings

LONGEST_GAP: Final = 1000  # the most windows without a row, between two with rows, that are judged
_LONGEST_FINGERPRINT = 64
ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
"""For a daemon that has watched since the log began."""
Part = Literal["exposures", "feedback", "samples"]
PARTS: Final[tuple[Part, ...]] = (EXPOSURES, FEEDBACK, SAMPLES)
_SHOWN: Final = (EXPOSURES, FEEDBACK)
_LATE: Final = "-late"
_LOST: Final = "-lost"


@dataclass(frozen=True, slots=True)
class Due:
    """A part of a window that must be judged.

    The part of the exposures is due as soon as they are complete; that of the feedback once actions on the
    window's lists have had time to come; that of the samples once the online ones are there.

    Attributes:
        late: why the data may be incomplete.
        correction: the window was judged before, with other data.
        lost: indexed rows of it cannot be read any more.
        is_kept: apart from lost rows nothing has changed, so the verdict stays and becomes late.
    """

    window: Window
    fingerprint: str
    rows: int
    late: str | None = None
    correction: bool = False
    part: Part = EXPOSURES
    lost: bool = False
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a recommender's windows, and how far each reads beyond its window.

    Attributes:
        reach: whole windows before and after, because an action may belong to a list of an earlier window.
        over: whole windows whose online samples are judged together.
        joined: the online samples are the exposures, labelled by feedback, not rows of the samples' log.
    """

    source: Source
    reach: timedelta
    over: timedelta
    joined: bool = False

    @classmethod
    def of(
        cls, source: Source, attribution: timedelta, over: timedelta = timedelta(0), *, joined: bool = False
    ) -> Parts:
        length = source.time.window
        return cls(source, -(-attribution // length) * length, -(-over // length) * length, joined)

    @property
    def names(self) -> tuple[Part, ...]:
        logs = self.source.logs
        shown = EXPOSURES in logs
        there = {EXPOSURES: shown, FEEDBACK: shown and FEEDBACK in logs, SAMPLES: SAMPLES in logs}
        return tuple(part for part in PARTS if there[part])

    def timeline(self, part: Part) -> Log:
        """The log whose windows the part follows."""
        return self.source.logs[SAMPLES if part == SAMPLES and not self.joined else EXPOSURES]

    def samples_of(self, window: Window) -> Window:
        """The time whose online samples are judged at the window's end."""
        return Window(window.end - self.over, window.end)

    def span(self, window: Window, part: Part) -> Window:
        """The time whose rows the part reads."""
        if part == EXPOSURES:
            return window
        looked_at = window if part == FEEDBACK else self.samples_of(window)
        reach = self.reach if part == FEEDBACK or self.joined else timedelta(0)
        return Window(looked_at.start - reach, looked_at.end + reach)

    def completeness(
        self, window: Window, part: Part, now: datetime, watched_since: datetime = ALWAYS
    ) -> tuple[bool, str | None]:
        """Whether the part may be judged, and why its data may be incomplete, if so."""
        source = self.source
        awaited = Window(window.start, self.span(window, part).end)
        logs = [self.timeline(part)]
        if part == FEEDBACK or (part == SAMPLES and self.joined):
            logs.append(source.logs[FEEDBACK])
        # A part of the samples has a wider interval, but a label without its action is wrong.
        any_will_do = part == SAMPLES and not self.joined
        states = [
            completeness(log, awaited, now, source.time, any_will_do=any_will_do, watched_since=watched_since)
            for log in logs
        ]
        return all(ready for ready, _ in states), next((why for _, why in states if why), None)

    def names_of(self, part: Part) -> tuple[str, ...]:
        """The logs whose rows the part reads."""
        wanted = _SHOWN if part != SAMPLES else (*(_SHOWN if self.joined else ()), SAMPLES)
        return tuple(name for name in wanted if name in self.source.logs)

    def lost(self, window: Window, part: Part) -> str | None:
        """Which rows that the part reads were lost; None if none was."""
        span = self.span(window, part)
        found = ((name, self.source.logs[name].lost(span)) for name in self.names_of(part))
        return "; ".join(f"{name}: {why}" for name, why in found if why) or None

    def is_settled(self, window: Window, part: Part) -> bool:
        """Whether a verdict on the part stays as it is now.

        It does if some of its rows were rotated away and cannot be read again, or if their file is just
        being appended to and will be complete at one of the next looks.
        """
        span = self.span(window, part)
        logs = [self.source.logs[name] for name in self.names_of(part)]
        return any(log.has_rotated(span) or log.awaits(span) for log in logs)

    def has_changed(self, window: Window, part: Part) -> bool:
        """Whether a file that the part reads has changed since it was indexed."""
        span = self.span(window, part)
        return any(self.source.logs[name].has_changed(span) for name in self.names_of(part))

    def fingerprint(self, window: Window, part: Part, late: str | None, *, present: bool = False) -> str:
        """Changes when the rows that the part reads change, or when they become complete.

        Missing rows count as if they were there; with `present` they do not.
        """
        span, length, names = self.span(window, part), self.source.time.window, self.names_of(part)
        windows = (Window.of(span.start + step * length, length) for step in range(span.length // length))
        whole = "".join(self.source.fingerprint(one, names, present=present) for one in windows)
        if len(whole) > _LONGEST_FINGERPRINT:
            whole = digest(whole, 64)
        # A window judged late is judged again once its data is complete, even if no row was added.
        return whole + (_LATE if late else "")


def of_whole_data(fingerprint: str) -> str:
    """The fingerprint of the data as it was before rows were lost.

    >>> of_whole_data("0a1b-lost"), of_whole_data("0a1b-late")
    ('0a1b', '0a1b-late')
    """
    return fingerprint.removesuffix(_LOST)


def is_late(fingerprint: str) -> bool:
    """Whether a window with this fingerprint was judged on rows that may be incomplete.

    >>> is_late("0a1b-late"), is_late("0a1b-late-lost"), is_late("0a1b-lost")
    (True, True, False)
    """
    return of_whole_data(fingerprint).endswith(_LATE)


def completeness(
    log: Log,
    window: Window,
    now: datetime,
    time: TimeSettings,
    *,
    any_will_do: bool = False,
    watched_since: datetime = ALWAYS,
) -> tuple[bool, str | None]:
    """Whether a window may be judged, and why its data may be incomplete.

    After `max_wait`, the present rows count as complete in two cases: with `any_will_do`, and if the log is
    finished. A log is finished if it ends inside this window and ended before the daemon began to watch. A
    log that ends while the daemon watches has stopped, and its last window is late.

    Args:
        log: the log whose rows are awaited.
        window: from the window's start to the end of the rows that its part reads.
        now: the time on the clock.
        time: the recommender's settings.
        any_will_do: some of the rows are enough: they are a smaller sample.
        watched_since: when the daemon began to watch; the clock's time if it never did.
    """
    watermark, needed = log.watermark, window.end + time.lateness
    waited = now >= window.end + time.max_wait
    finished = watermark is not None and watermark >= window.start and window.end <= watched_since
    if (watermark is None or watermark < needed) and not (waited and (any_will_do or finished)):
        reached = "nothing yet" if watermark is None else f"{watermark:%Y-%m-%d %H:%M:%S}Z"
        wanted = f"the window needs its {log.name} up to {needed:%Y-%m-%d %H:%M:%S}Z"
        return waited, f"the log has reached {reached}; {wanted}"
    if growing := log.awaits(window):
        return waited, growing
    if unread := log.unread(window):
        names = ", ".join(one.file.path for one in unread[:3]) + (", ..." if len(unread) > 3 else "")
        return True, f"{plural(len(unread), 'file')} that may hold its rows could not be read: {names}"
    return True, None


def candidate_windows(parts: Parts, part: Part, now: datetime, watching_since: datetime) -> list[Window]:
    """The windows whose part may have to be judged, for the first time or again, newest first.

    They are the newest `catch_up` windows of the log that no longer wait, and as many that are overdue on the
    clock. A window without rows counts only between rows, or from `watching_since` on: before that time, no
    rows were expected.
    """
    log, time = parts.timeline(part), parts.source.time
    probe = Window.of(now, time.window)
    waits = parts.span(probe, part).end - probe.end
    held = log.windows()
    # With a long attribution many windows still wait; the newest `catch_up` come before them.
    waiting = waits // time.window + _filling(log, now, waits)
    steps = [back * time.window for back in range(waiting + time.catch_up)]
    starts: set[datetime] = set()
    expected_from = watching_since
    if held:
        oldest, newest = min(held).start, max(held).start
        starts = {newest - step for step in steps if newest - step >= oldest}
        expected_from = max(watching_since, newest + time.window)
    overdue = Window.of(now - time.max_wait - waits, time.window).start - time.window
    starts |= {overdue - step for step in steps[: time.catch_up] if overdue - step >= expected_from}
    return [Window(start, start + time.window) for start in sorted(starts, reverse=True)]


def _filling(log: Log, now: datetime, waits: timedelta) -> int:
    """How many of the newest windows still wait for the log to pass them."""
    newest = max(log.windows(), default=None)
    if newest is None or log.watermark is None or now >= newest.end + log.time.max_wait + waits:
        return 0
    return max(0, -((log.watermark - newest.end - log.time.lateness) // log.time.window))


def due_windows(
    parts: Parts,
    part: Part,
    now: datetime,
    candidates: Iterable[Window],
    judged: Mapping[Window, str],
    watched_since: datetime = ALWAYS,
) -> list[Due]:
    """The candidates whose part must be judged now, in their order.

    `judged` maps the windows whose part was judged before to its fingerprints.
    """
    due = []
    for window in candidates:
        ready, late = parts.completeness(window, part, now, watched_since)
        known = judged.get(window)
        if not ready or (known is not None and parts.is_settled(window, part)):
            continue
        one = _due(parts, part, window, late, known)
        if one is not None:
            due.append(one)
    return due


def _due(parts: Parts, part: Part, window: Window, late: str | None, known: str | None) -> Due | None:
    rows, lost = parts.timeline(part).rows(window), parts.lost(window, part)
    if lost is None:
        fingerprint = parts.fingerprint(window, part, late)
        if known == fingerprint:
            return None
        corrected = known is not None and of_whole_data(known) != fingerprint
        return Due(window, fingerprint, rows, late, corrected, part)
    fingerprint = parts.fingerprint(window, part, None)
    if known is None:
        return Due(window, fingerprint + _LOST, rows, lost, part=part, lost=True)
    before = of_whole_data(known)
    if before.removesuffix(_LATE) != fingerprint:
        if was_accepted(parts, part, window, known):
            return None
        return Due(window, fingerprint + _LOST, rows, lost, correction=True, part=part, lost=True)
    if known != before:
        return None  # the loss is recorded already
    return Due(window, before + _LOST, rows, lost, part=part, lost=True, is_kept=True)


def was_accepted(parts: Parts, part: Part, window: Window, known: str) -> bool:
    """Whether the window was judged on the remaining rows, as `backfill` does on demand."""
    return known.removesuffix(_LATE) == parts.fingerprint(window, part, None, present=True)


def windows_between(log: Log, start: datetime, end: datetime | None) -> list[Window]:
    """Every window of a span, by default up to the last row of the log."""
    last = end or max((one.end for one in log.windows()), default=start)
    return _windows(Window.of(start, log.time.window).start, last, log.time.window)


def windows_of_log(log: Log, end: datetime | None) -> tuple[list[Window], list[Window]]:
    """Every window from the first row of the log to the last, or to `end`; and the long gaps left out.

    A gap of more than LONGEST_GAP windows without a row is one span, without its windows: one stray row of
    1970 would make half a million of them.
    """
    length = log.time.window
    windows: list[Window] = []
    gaps: list[Window] = []
    held = sorted(one for one in log.windows() if end is None or one.start < end)
    for one, after in zip(held, [*(other.start for other in held[1:]), end], strict=False):
        windows.append(one)
        if after is None or after <= one.end:
            continue
        if after - one.end > LONGEST_GAP * length:
            gaps.append(Window(one.end, after))
        else:
            windows += _windows(one.end, after, length)
    return windows, gaps


def _windows(first: datetime, last: datetime, length: timedelta) -> list[Window]:
    count = max(0, -((first - last) // length))
    return [Window(first + i * length, first + (i + 1) * length) for i in range(count)]
