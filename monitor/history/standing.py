"""The status that alerts use: the standing of a series, from the signals of its windows in time order.

Each window leaves one signal, which depends on that window alone. The standing is a function of the signals
in time order, computed when it is read, so the order in which windows were evaluated, caught up or corrected
makes no difference. See docs/decisions/0004-standing.md for the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Final

from monitor.core.results import Result, ResultKind, Status, Window


class Signal(IntEnum):
    """What one window says about a series, on its own. The numbers are stored: never renumber them."""

    CLEAR = 0  # judged, and back at the bound: ends a violation
    HOLD = 1  # judged ok, but still beyond the bound: neither fires nor ends a violation
    FIRE = 2  # judged violated
    NO_DATA = 3
    LATE = 4
    ERROR = 5
    UNDEFINED = 6


UNJUDGED: Final = (Signal.NO_DATA, Signal.LATE, Signal.ERROR, Signal.UNDEFINED)
BLANK: Final = (Status.NO_DATA, Status.LATE, Status.ERROR)
"""A window of a check with such a status and without any result could not be judged."""

_STATUS: Final[Mapping[Signal, Status]] = {
    Signal.CLEAR: Status.OK,
    Signal.HOLD: Status.OK,
    Signal.FIRE: Status.VIOLATED,
    Signal.NO_DATA: Status.NO_DATA,
    Signal.LATE: Status.LATE,
    Signal.ERROR: Status.ERROR,
    Signal.UNDEFINED: Status.UNDEFINED,
}


def signal_of(result: Result) -> Signal:
    """The signal of one window's result.

    A rule that allows a rate, and a metric with an objective, fires when its interval is beyond the threshold
    (the check judges that: status `violated`). It clears only when the value itself is back at the result's
    `clear`, or at the threshold if there is no `clear`. A rule with threshold 0 never holds.

    >>> from dataclasses import replace
    >>> soft = {"rule": "few_unknown", "kind": "soft"}
    >>> over = Result(kind=ResultKind.RULE, metric="rule", status=Status.OK, definition="1", labels=soft)
    >>> over = replace(over, value=0.2, threshold=0.1)
    >>> signal_of(over).name
    'HOLD'
    >>> failure = Result(metric="failure", status=Status.OK, definition="1", value=0.015, threshold=0.02)
    >>> most = replace(failure, bound="max")
    >>> signal_of(most).name, signal_of(replace(most, clear=0.01)).name
    ('CLEAR', 'HOLD')
    """
    if result.status is not Status.OK:
        return _UNCLEAR[result.status]
    if result.value is None or result.threshold is None:
        return Signal.CLEAR
    bound = "max" if result.kind is ResultKind.RULE and result.threshold > 0 else result.bound
    clear = result.threshold if result.clear is None else result.clear
    if bound == "max" and result.value > clear:
        return Signal.HOLD
    if bound == "min" and result.value < clear:
        return Signal.HOLD
    return Signal.CLEAR


_UNCLEAR: Final[Mapping[Status, Signal]] = {
    Status.VIOLATED: Signal.FIRE,
    Status.NO_DATA: Signal.NO_DATA,
    Status.LATE: Signal.LATE,
    Status.ERROR: Signal.ERROR,
    Status.UNDEFINED: Signal.UNDEFINED,
}


@dataclass(frozen=True, slots=True)
class Standing:
    """The current status, and the window in which it began."""

    status: Status
    since: Window


def fold(verdicts: Iterable[tuple[Window, Signal]], before: Standing | None = None) -> Standing:
    """The standing after these windows, given oldest first, and after `before`.

    A violation lasts until a judged window clears it. Otherwise the newest window's status is the standing,
    so that no data, late and error are never shown as ok.

    Raises:
        ValueError: there is no window and no `before`.

    >>> from datetime import UTC, datetime, timedelta
    >>> hours = [Window.of(datetime(2026, 1, 1, h, tzinfo=UTC), timedelta(hours=1)) for h in range(4)]
    >>> now = fold(zip(hours, [Signal.CLEAR, Signal.FIRE, Signal.NO_DATA, Signal.HOLD]))
    >>> now.status.value, now.since.start.hour
    ('violated', 1)
    """
    standing = before
    held = before is not None and before.status is Status.VIOLATED
    for window, signal in verdicts:
        held = signal is Signal.FIRE or (held and signal is not Signal.CLEAR)
        status = Status.VIOLATED if held else _STATUS[signal]
        if standing is None or standing.status is not status:
            standing = Standing(status, window)
    if standing is None:
        raise ValueError("a series without a window has no standing")
    return standing


@dataclass(frozen=True, slots=True)
class Question:
    """Asks for the first window after a time (None: since the beginning) with one of these signals."""

    signals: tuple[Signal, ...]
    after: datetime | None


def from_last(last: Mapping[Signal, datetime]) -> tuple[Status, tuple[Question, ...]]:
    """The status that `fold` gives, from the end of the last window of each signal, without reading the past.

    The standing began with the latest of the windows that answer the questions. A test compares this with
    `fold` on random histories.

    >>> from datetime import UTC, datetime
    >>> status, questions = from_last({Signal.FIRE: datetime(2026, 1, 2, tzinfo=UTC)})
    >>> status.value, [signal.name for signal in questions[0].signals]
    ('violated', ['FIRE'])
    """
    fired, cleared = last.get(Signal.FIRE), last.get(Signal.CLEAR)
    if fired is not None and (cleared is None or cleared < fired):
        return Status.VIOLATED, (Question((Signal.FIRE,), cleared),)
    newest = max(last, key=lambda signal: last[signal])
    if newest in UNJUDGED:
        others = (moment for signal, moment in last.items() if signal is not newest)
        return _STATUS[newest], (Question((newest,), max(others, default=None)),)
    blind = max((last[signal] for signal in UNJUDGED if signal in last), default=None)
    questions = [Question((Signal.CLEAR, Signal.HOLD), blind)]
    if fired is not None:  # what only holds does not end a violation
        questions.append(Question((Signal.CLEAR,), fired))
    return Status.OK, tuple(questions)
