"""`python -m benchmarks.real_traffic.falls`: can any test of daily traffic see a fall of 1 % a day in time?

The cases are those of the sweep: requests fall by 1 % a day for ten days. Holidays and labelled anomalies are
left out of the series. Every six hours each test looks at the last 24 hours and the days before:

    drift   the change in standard errors that the check of drift computes, where that check could fire
    k days  the mean over the last k days of log(requests / median of the same weekday in four weeks before)

A test fires beyond a bound: the smallest with no more false alarms a week than the first column says, there
and at all larger ones. The bound is chosen on the same series, so it flatters every test. Prints the table of
docs/decisions/0071.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.real_traffic.__main__ import FOLDER
from benchmarks.real_traffic.incidents import A_DAY, INCIDENTS
from benchmarks.real_traffic.peers import Floats
from benchmarks.real_traffic.sweep import LEARNED, Sample, strikes
from benchmarks.real_traffic.traffic import HOLIDAYS, HOUR, SERIES, Hours, read
from monitor.statistics.bands import drift as statistics
from monitor.statistics.bands.scales import Scale

FALSE_ALARMS: Final = (0.05, 0.1, 0.2, 0.4)
"""A week."""
_WEEK: Final = 7 * A_DAY
_EVERY: Final = 6  # hours
_SAME: Final = A_DAY * statistics.RECENT // _EVERY  # alarms with fewer turns between them are one
_SUNDAY: Final = 6

Test = Callable[[Hours, Floats, int], float]
"""How far requests have moved up, by the hours before this number; NaN if it cannot say."""


def by_drift(hours: Hours, requests: Floats, end: int) -> float:
    """The change of the shipped check in standard errors; 0 where it would not fire at any bound."""
    days = _days(requests, end)
    weekdays = [_weekday(hours, end - A_DAY * ago) for ago in range(len(days), 0, -1)]
    found = statistics.drift(
        days[:, None], np.full((len(days), 1), np.nan), weekdays, scales=Scale.COUNT, windows=A_DAY
    )
    change, relative = float(found.change[0]), abs(float(found.relative[0]))
    goes_on = found.pace[0] * np.sign(change) >= statistics.GOING_ON
    fires = relative >= statistics.SMALLEST and (
        goes_on or relative >= statistics.LARGE * statistics.SMALLEST
    )
    return change if fires or not np.isfinite(change) else 0.0


def by_days(_: Hours, requests: Floats, end: int, *, days: int) -> float:
    """The mean logarithm of the last days' requests over those of the same weekdays before.

    >>> from datetime import datetime, UTC
    >>> requests = np.tile(np.repeat([100.0, 200.0], [6 * 24, 24]), 6)
    >>> requests[-24:] *= np.e
    >>> hours = Hours(datetime(2024, 1, 1, tzinfo=UTC), requests, ())
    >>> [round(by_days(hours, requests, len(requests), days=days), 6) for days in (1, 2)]
    [1.0, 0.5]
    """
    found = []
    for ago in range(days):
        day = end - A_DAY * ago
        before = [_mean(requests, day - _WEEK * week) for week in range(1, 6)]
        before = [one for week, one in enumerate(before, 1) if _WEEK * week >= A_DAY * (days - ago)][:4]
        known = [one for one in before if np.isfinite(one)]
        if len(known) > 1:
            found.append(np.log(_mean(requests, day) / np.median(known)))
    known_days = [one for one in found if np.isfinite(one)]
    return float(np.mean(known_days)) if 2 * len(known_days) >= days else float("nan")


TESTS: Final[Mapping[str, Test]] = {
    "drift": by_drift,
    **{f"{days} days": partial(by_days, days=days) for days in (3, 5, 7, 10)},
}


def caught(hours: Hours, test: Test) -> dict[float, tuple[int, int]]:
    """False alarms a week -> the cases that a test sees in time, and all cases."""
    last = len(hours.rate)
    ordinary = np.array([hours.is_ordinary(hours.window(number)) for number in range(last)])
    requests = np.where(ordinary, hours.rate, np.nan)
    turns = range(LEARNED // HOUR, last + 1, _EVERY)
    clean = {end: np.nan_to_num(test(hours, requests, end)) for end in turns}
    cases = []
    fall = INCIDENTS["requests_fall"]
    for first, found in strikes(hours, Sample(), last).items():
        if not any(one.incident is fall for one in found):
            continue
        struck = requests.copy()
        struck[first : first + fall.watched] *= [
            fall.change(0, window).requests for window in range(fall.watched)
        ]
        seen = [end for end in turns if first < end <= first + fall.watched]
        cases.append([(np.nan_to_num(test(hours, struck, end)), clean[end]) for end in seen])
    weeks = len(turns) * _EVERY / _WEEK
    sizes = np.abs(list(clean.values()))
    results = {}
    for false in FALSE_ALARMS:
        bound = np.inf
        for one in np.unique(sizes)[::-1]:
            if _alarms(sizes > one) / weeks > false:
                break
            bound = one
        hit = [any(now < -bound and not abs(was) > bound for now, was in one) for one in cases]
        results[false] = sum(hit), len(hit)
    return results


def _days(requests: Floats, end: int) -> Floats:
    """The means of the last 28 days, oldest first; fewer if the series is younger."""
    return np.array(
        [_mean(requests, end - A_DAY * ago) for ago in reversed(range(min(statistics.LAST, end // A_DAY)))]
    )


def _mean(requests: Floats, end: int) -> float:
    """The mean of the 24 hours that end there; NaN if less than half of them have a value."""
    day = requests[max(end - A_DAY, 0) : max(end, 0)]
    known = day[np.isfinite(day)]
    return float(known.mean()) if 2 * len(known) >= A_DAY else float("nan")


def _weekday(hours: Hours, start: int) -> int:
    """Of the 24 hours from this one on; a holiday is a Sunday."""
    middle = (hours.start + start * HOUR + timedelta(hours=12)).date()
    return _SUNDAY if middle in HOLIDAYS else middle.weekday()


def _alarms(fires: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> int:
    """How many alarms begin.

    >>> _alarms(np.array([True, True, False, True] + 12 * [False] + [True]))
    2
    """
    at = np.flatnonzero(fires)
    return int(len(at) > 0) + int((np.diff(at) > _SAME).sum())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 2 if the series are not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the series are")
    parser.add_argument("--series", choices=list(SERIES), default="taxi-large")
    chosen = parser.parse_args(arguments)
    try:
        hours = read(SERIES[chosen.series], chosen.folder)
    except OSError as error:
        print(f"cannot read the series: {error}; --folder says where they are", file=sys.stderr)
        return 2
    print(f"| false alarms a week | {' | '.join(TESTS)} |\n|---|{'---|' * len(TESTS)}")
    found = {name: caught(hours, test) for name, test in TESTS.items()}
    for false in FALSE_ALARMS:
        cells = [f"{one[false][0]} of {one[false][1]}" for one in found.values()]
        print(f"| {false} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
