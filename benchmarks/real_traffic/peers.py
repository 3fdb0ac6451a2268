"""Other ways to watch a count, on the same requests and at the same number of false alarms."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.environments import install
from benchmarks.real_traffic.incidents import INCIDENTS
from benchmarks.real_traffic.outcomes import ordinary_hours
from benchmarks.real_traffic.sweep import Struck, Swept
from benchmarks.real_traffic.traffic import HOUR, SERIES, WEEK, Hours
from benchmarks.scoreboard.alerts import ROOT
from benchmarks.scoreboard.rates import Share

OURS, THREE_SIGMA, STL, MSTL = "bands", "three sigma", "STL", "MSTL"
COMPARED: Final = ("half", "third", "night")
REQUIREMENTS: Final = Path(__file__).with_name("peers-requirements.txt")
WORK: Final = ROOT / "benchmarks" / "work" / "real-traffic"
_HOURS_A_WEEK: Final = WEEK // HOUR
_WEEKS: Final = 4

Floats = npt.NDArray[np.float64]
Score = Callable[[Floats, int], Floats]
"""The deviations of these requests in the hours from this number on, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected of each hour on some scale, and the spread around it."""

    expected: Floats
    spread: Floats
    is_log: bool = False

    def deviations(self, requests: Floats, first: int) -> Floats:
        values = np.log1p(requests) if self.is_log else requests
        last = first + len(requests)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (values - self.expected[first:last]) / self.spread[first:last]
        return np.asarray(found, dtype=np.float64)


def three_sigma(requests: Floats) -> Forecast:
    """Mean and standard deviation of the same hour of the four weeks before.

    >>> past = np.tile(np.arange(168.0), 5)
    >>> past[::168] = [1, 2, 3, 4, 9]
    >>> found = three_sigma(past)
    >>> round(float(found.expected[4 * 168]), 2), round(float(found.spread[4 * 168]), 2)
    (2.5, 1.29)
    """
    expected, spread = np.full((2, len(requests)), np.nan)
    for number in range(_WEEKS * _HOURS_A_WEEK, len(requests)):
        past = requests[number - _WEEKS * _HOURS_A_WEEK : number : _HOURS_A_WEEK]
        past = past[np.isfinite(past)]
        if len(past) > 1:
            expected[number], spread[number] = past.mean(), past.std(ddof=1)
    return Forecast(expected, spread)


def stl(requests: Floats, python: str) -> Forecast:
    """Season and trend of the four weeks before by STL, fitted once a day, with the MAD of what is left."""
    return _ask(STL, requests, python)


def mstl(requests: Floats, python: str) -> Forecast:
    """The forecast of statsforecast's MSTL from the four weeks before, once a day, with its own intervals."""
    return _ask(MSTL, requests, python)


def _ask(method: str, requests: Floats, python: str) -> Forecast:
    plain = [None if np.isnan(one) else float(one) for one in requests]
    command = [python, "-W", "ignore", str(Path(__file__).with_name("peer_fits.py")), method]
    done = subprocess.run(command, input=json.dumps(plain), stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout)
    expected, spread = (np.array(answer[name], dtype=np.float64) for name in ("expected", "spread"))
    return Forecast(expected, spread, is_log=True)


def interpreter() -> str:
    """The Python of the peers' environment."""
    return install(REQUIREMENTS, WORK / "env")


@dataclass(frozen=True, slots=True)
class Curve:
    """The trade-off of one way on a series: by bound the false alarms a week, and the incidents caught.

    A window is out if it and the one before are beyond the bound on the same side.
    """

    bounds: Sequence[float]
    false: Sequence[float]
    caught: Mapping[str, Sequence[Share]]

    def at_most(self, false: float) -> int | None:
        """The place of the smallest bound with no more false alarms a week than these."""
        return next((place for place, one in enumerate(self.false) if one <= false), None)


BOUNDS: Final = tuple(float(one) for one in np.round(np.geomspace(1.0, 60.0, 120), 3))


def curve(swept: Swept, hours: Hours, deviations: Floats, score: Score | None = None) -> Curve:
    """The trade-off by the deviations of the clean hours.

    `score` gives the deviations of an incident; None: those that were measured.
    """
    ordinary = np.zeros(len(deviations), dtype=np.bool_)
    ordinary[list(ordinary_hours(swept, hours))] = True
    weeks = ordinary.sum() / _HOURS_A_WEEK
    clean = two_in_a_row(deviations)
    of_incidents: dict[str, list[float]] = {}
    for one in swept.struck:
        if one.incident in COMPARED:
            of_incidents.setdefault(one.incident, []).append(_highest(one, swept, deviations, score))
    false = []
    for bound in BOUNDS:
        out = clean > bound
        begins = out & ~np.append(False, out[:-1])
        false.append(float((begins & ordinary).sum() / weeks) if weeks else 0.0)
    return Curve(
        BOUNDS,
        false,
        {
            name: [Share.of(one > bound for one in found) for bound in BOUNDS]
            for name, found in of_incidents.items()
        },
    )


def two_in_a_row(deviations: Floats) -> Floats:
    """For each window the smaller distance of it and the one before, 0 if they are on two sides or unknown.

    >>> two_in_a_row(np.array([3.0, 5.0, -4.0, -6.0, np.nan])).tolist()
    [0.0, 3.0, 0.0, 4.0, 0.0]
    """
    before = np.append(np.nan, deviations[:-1])
    same = np.sign(before) == np.sign(deviations)
    return np.where(same, np.minimum(np.abs(before), np.abs(deviations)), 0.0)


def _highest(struck: Struck, swept: Swept, clean: Floats, score: Score | None) -> float:
    first = (struck.begins - swept.start) // HOUR
    bar = INCIDENTS[struck.incident].bar.of(is_small=SERIES[swept.series].is_small)
    requests = np.array(struck.requests[:bar], dtype=np.float64)
    mine = np.array(struck.deviations[:bar], dtype=np.float64) if score is None else score(requests, first)
    found = two_in_a_row(np.append(clean[first - 1], mine))[1:]
    return float(found.max(initial=0.0))


def curves(swept: Swept, hours: Hours, python: str | None) -> dict[str, Curve]:
    """The curve of each way; without the peers' interpreter none of STL and MSTL."""
    requests = np.array(swept.requests, dtype=np.float64)
    found = {OURS: curve(swept, hours, np.array(swept.deviations, dtype=np.float64))}
    forecasts = {THREE_SIGMA: three_sigma(requests)}
    if python is not None:
        forecasts |= {STL: stl(requests, python), MSTL: mstl(requests, python)}
    for name, one in forecasts.items():
        found[name] = curve(swept, hours, one.deviations(requests, 0), one.deviations)
    return found
