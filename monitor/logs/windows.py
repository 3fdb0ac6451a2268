"""Which windows are to be judged now: new ones, missed ones, and those that late data has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from monitor.logs.columns import EXPOSURES, FEEDBACK, SAMPLES
from monitor.logs.log import Log
from monitor.logs.settings import TimeSettings
from monitor.logs.source import Source
from monitor.results import Window

LONGEST_GAP: Final = 1000  # windows without a row between two with rows that are judged one by one
_LONGEST_FINGERPRINT = 64
Part = Literal["exposures", "feedback", "samples"]
PARTS: Final[tuple[Part, ...]] = (EXPOSURES, FEEDBACK, SAMPLES)
_SHOWN: Final = (EXPOSURES, FEEDBACK)


@dataclass(frozen=True, slots=True)
class Due:
    """A window to judge. `late` says why its data is not known to be complete, if so.

    A window is judged in parts: what rests on the exposures alone as soon as they are complete, what rests on
    feedback once the actions that may belong to its lists have had time to come, and what rests on the
    samples of the models, up to the window's end, once the online ones are there.
    """

    window: Window
    fingerprint: str
    rows: int
    late: str | None = None
    correction: bool = False
    part: Part = EXPOSURES


@dataclass(frozen=True, slots=True)
class Parts:
    """Which parts the windows of a recommender have, and how far each looks beyond the window.

    `reach` is a whole number of windows: an action may belong to a list of the window before it, and a list
    may be acted on in the window after it. So is `over`, the time whose online samples are looked at
    together. With `joined` these are the exposures, labelled by feedback, and not rows of the samples' log.
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
        """The time whose online samples are looked at, as of the window's end."""
        return Window(window.end - self.over, window.end)

    def span(self, window: Window, part: Part) -> Window:
        """The time whose rows the part reads."""
        if part == EXPOSURES:
            return window
        looked_at = window if part == FEEDBACK else self.samples_of(window)
        reach = self.reach if part == FEEDBACK or self.joined else timedelta(0)
        return Window(looked_at.start - reach, looked_at.end + reach)

    def completeness(self, window: Window, part: Part, now: datetime) -> tuple[bool, str | None]:
        """Whether the part may be judged, and why its data is not known to be complete, if so."""
        source = self.source
        awaited = Window(window.start, self.span(window, part).end)
        logs = [self.timeline(part)]
        if part == FEEDBACK or (part == SAMPLES and self.joined):
            logs.append(source.logs[FEEDBACK])
        # Part of the samples is a smaller sample, as its interval says; a label without its action is wrong.
        any_will_do = part == SAMPLES and not self.joined
        states = [completeness(log, awaited, now, source.time, any_will_do=any_will_do) for log in logs]
        return all(ready for ready, _ in states), next((why for _, why in states if why), None)

    def fingerprint(self, window: Window, part: Part, late: str | None) -> str:
        """Changes when the rows that the part reads change, or when they become complete."""
        span, length = self.span(window, part), self.source.time.window
        windows = (Window.of(span.start + step * length, length) for step in range(span.length // length))
        names = _SHOWN if part != SAMPLES else (*(_SHOWN if self.joined else ()), SAMPLES)
        whole = "".join(self.source.fingerprint(one, names) for one in windows)
        if len(whole) > _LONGEST_FINGERPRINT:
            whole = hashlib.sha256(whole.encode()).hexdigest()
        # A window judged late is judged again once its data is complete, even if no row was added.
        return whole + ("-late" if late else "")


def completeness(
    log: Log, window: Window, now: datetime, time: TimeSettings, *, any_will_do: bool = False
) -> tuple[bool, str | None]:
    """Whether a window may be judged, and why its data is not known to be complete, if so.

    With `any_will_do` the rows that are there once `max_wait` is over are judged as they are.
    """
    watermark = log.watermark
    waited = now >= window.end + time.max_wait
    if (watermark is None or watermark < window.end + time.lateness) and not (waited and any_will_do):
        reached = "nothing yet" if watermark is None else f"{watermark:%Y-%m-%d %H:%M:%S}Z"
        why = f"the log has reached {reached}, not the window's end plus {time.lateness}"
        return waited, why
    if unread := log.unread(window):
        names = ", ".join(one.file.path for one in unread[:3]) + (", ..." if len(unread) > 3 else "")
        return True, f"{len(unread)} file(s) that may hold its rows could not be read: {names}"
    return True, None


def candidate_windows(parts: Parts, part: Part, now: datetime, watching_since: datetime) -> list[Window]:
    """The windows of which this part may have to be judged or judged again, newest first.

    The newest `catch_up` windows of the log whose time has come, and as many that are overdue on the clock.
    Windows without any row count only between rows or from `watching_since` on: else, nobody was there to
    expect rows.
    """
    log, time = parts.timeline(part), parts.source.time
    probe = Window.of(now, time.window)
    waits = parts.span(probe, part).end - probe.end
    held = log.windows()
    # Those that still wait are many where the attribution is long; the newest `catch_up` are behind them.
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
    """How many of the newest windows the log has not passed yet, while they are still waited for."""
    newest = max(log.windows(), default=None)
    if newest is None or log.watermark is None or now >= newest.end + log.time.max_wait + waits:
        return 0
    return max(0, -((log.watermark - newest.end - log.time.lateness) // log.time.window))


def due_windows(
    parts: Parts, part: Part, now: datetime, candidates: Iterable[Window], judged: Mapping[Window, str]
) -> list[Due]:
    """Which candidates have this part to be judged now, in their order.

    `judged` maps the windows whose part was judged so far to its fingerprints.
    """
    due = []
    for window in candidates:
        ready, late = parts.completeness(window, part, now)
        if not ready:
            continue
        fingerprint = parts.fingerprint(window, part, late)
        known = judged.get(window)
        if known != fingerprint:
            rows = parts.timeline(part).rows(window)
            due.append(Due(window, fingerprint, rows, late, known is not None, part))
    return due


def windows_between(log: Log, start: datetime, end: datetime | None, length: timedelta) -> list[Window]:
    """Every window of the span that is asked for, by default up to the last row of the log."""
    last = end or max((one.end for one in log.windows()), default=start)
    return _windows(Window.of(start, length).start, last, length)


def windows_of_log(log: Log, end: datetime | None, length: timedelta) -> tuple[list[Window], list[Window]]:
    """Every window from the first row of the log to the last, or to `end`; and the long gaps left out.

    A gap of more than LONGEST_GAP windows without a row is given as one span, and none of its windows: one
    stray row of 1970 would make half a million of them.
    """
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
