"""One series from its first hour to its last, with the incidents that strike on some of its days."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.real_traffic.draws import NO_CHANGE, Change, draw, settings
from benchmarks.real_traffic.incidents import INCIDENTS, Incident
from benchmarks.real_traffic.traffic import DAY, HOUR, WEEK, Hours, Traffic
from benchmarks.real_traffic.watched import Judged, Watched, alerts
from benchmarks.scoreboard.alerts import Episode
from benchmarks.scoreboard.openmetrics import Target
from benchmarks.scoreboard.prometheus import episodes
from benchmarks.scoreboard.series import Recorded
from monitor.core.results import Window

LEARNED: Final = 4 * WEEK
"""The history before the first incident, and before alerts count as false."""
SWITCHED_ON: Final = 3 * WEEK
"""The history before the bands are switched on; they judge a week before the first incident."""
FALSE_ALARMS: Final = 0.1  # a week: the default of bands.false_alarms
CLEAN: Final = "clean"
_SEED: Final = 1
_BY_DAY: Final = (8, 20)
_AT_NIGHT: Final = (0, 4)
_TREND_DAYS: Final = 4  # of the days that are struck, one in so many begins a fall of ten days


@dataclass(frozen=True, slots=True)
class Sample:
    """Which part of a sweep runs: one in `every` days is struck, in weeks after the learned ones."""

    every: int = 1
    weeks: float | None = None
    skip: float = 0.0
    """Weeks of the series that are left out first."""
    false_alarms: float = FALSE_ALARMS

    @property
    def is_whole(self) -> bool:
        """Whether every day of the series is struck."""
        return (self.every, self.weeks, self.skip) == (1, None, 0.0)


@dataclass(frozen=True, slots=True)
class Struck:
    """One incident: its start; of each of its windows the requests and their deviation; the alerts."""

    incident: str
    begins: datetime
    place: int
    requests: list[int | None] = field(default_factory=list)
    deviations: list[float | None] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Swept:
    """What came of a series: of the clean run, from `start` on, and of each incident."""

    series: str
    start: datetime
    sample: Sample
    seconds: float
    requests: list[int | None] = field(default_factory=list)
    deviations: list[float | None] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    struck: list[Struck] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Strike:
    incident: Incident
    place: int
    """Which of the incidents of this name it is."""


def sweep(
    traffic: Traffic, hours: Hours, sample: Sample, say: Callable[[str], None] = lambda _: None
) -> Swept:
    """Judge a series and its incidents, and ask Prometheus which alerts fire."""
    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="real-traffic-") as scratch:
        folder = Path(scratch)
        watched = Watched(folder, settings(folder, false_alarms=sample.false_alarms))
        try:
            run = _Run(traffic, hours, sample, watched, say)
            run.go()
        finally:
            watched.close()
    targets = [Target(CLEAN, watched.recorded, run.minute(0), run.minute(run.last))]
    targets += [
        Target(
            f"{number}", recorded, _minutes(one.begins) - 60, _minutes(one.begins) + 60 * len(one.requests)
        )
        for number, (one, recorded) in enumerate(run.struck)
    ]
    fired = episodes(targets, alerts())
    for number, (one, _) in enumerate(run.struck):
        one.episodes.extend(fired[f"{number}"])
    seconds = round(time.process_time() - began, 1)
    struck = [one for one, _ in run.struck]
    return Swept(
        traffic.name, hours.start, sample, seconds, run.requests, run.deviations, fired[CLEAN], struck
    )


class _Run:
    def __init__(
        self, traffic: Traffic, hours: Hours, sample: Sample, watched: Watched, say: Callable[[str], None]
    ) -> None:
        self._traffic, self._hours, self._watched, self._say = traffic, hours, watched, say
        self._settings = settings(Path())
        self._mean = float(np.nanmean(hours.rate))
        learned = math.ceil(LEARNED / HOUR)
        asked = math.inf if sample.weeks is None else learned + sample.weeks * (WEEK / HOUR)
        self.last = int(min(len(hours.rate), asked))
        self._strikes = strikes(hours, sample, self.last)
        self.requests: list[int | None] = []
        self.deviations: list[float | None] = []
        self.struck: list[tuple[Struck, Recorded]] = []

    def minute(self, number: int) -> int:
        return _minutes(self._hours.window(number).start)

    def go(self) -> None:
        before = Judged(frozenset(), frozenset(), None)
        for number in range(self.last):
            for strike in self._strikes.get(number, ()):
                self._strike(strike, number, before)
            judged, requests = self._judge(number, NO_CHANGE, CLEAN)
            before = judged or before
            self.requests.append(requests)
            self.deviations.append(_rounded(judged))
            if number % (WEEK // HOUR) == 0:
                self._watched.forget(self._hours.window(number))
                self._say(f"{self._traffic.name}: week {number // 168} of {self.last / 168:.0f}")

    def _strike(self, strike: _Strike, first: int, before: Judged) -> None:
        incident, small = strike.incident, self._traffic.is_small
        struck = Struck(incident.name, self._hours.window(first).start, strike.place)
        with self._watched.fork() as recorded:
            for window in range(min(incident.watched, self.last - first)):
                change = incident.change(strike.place, window)
                judged, requests = self._judge(first + window, change, f"{incident.name}-{first}")
                struck.requests.append(requests)
                struck.deviations.append(_rounded(judged))
                if incident.stays or judged is None or window + 1 < incident.bar.of(is_small=small):
                    continue
                new = (
                    judged.pages - before.pages if incident.by == "page" else judged.tickets - before.tickets
                )
                if new:
                    break
        self.struck.append((struck, recorded))

    def _judge(self, number: int, change: Change, data: str) -> tuple[Judged | None, int | None]:
        rate = float(self._hours.rate[number])
        if math.isnan(rate):
            return None, None
        rng = np.random.default_rng([_SEED, number, *data.encode()])
        drawn = draw(rate, self._mean, rng, change)
        window, results = self._hours.window(number), drawn.results(self._settings)
        if number * HOUR < SWITCHED_ON:
            self._watched.measure(window, *results, data)
            return None, drawn.requests
        return self._watched.judge(window, *results, data), drawn.requests


def strikes(hours: Hours, sample: Sample, last: int) -> dict[int, list[_Strike]]:
    """Number of an hour -> the incidents that strike in it.

    None meets a labelled anomaly or a holiday while it is watched, and all end before the series does.
    """
    rng = np.random.default_rng(_SEED)
    found: dict[int, list[_Strike]] = {}
    places = dict.fromkeys(INCIDENTS, 0)
    struck = 0
    for day in hours.days:
        by_day, at_night = (
            int(rng.integers(*_BY_DAY)),
            int(rng.integers(*_AT_NIGHT)),
        )  # the same in any sample
        start = datetime(day.year, day.month, day.day, tzinfo=hours.start.tzinfo)
        if start < hours.start + LEARNED or not hours.is_ordinary(Window(start, start + DAY)):
            continue
        struck += 1
        if (struck - 1) % sample.every:
            continue
        for name, incident in INCIDENTS.items():
            if incident.stays and (struck - 1) // sample.every % _TREND_DAYS:
                continue
            begin = start + (at_night if incident.at_night else by_day) * HOUR
            number = (begin - hours.start) // HOUR
            span = Window(begin, begin + incident.watched * HOUR)
            if number + incident.watched > last or not hours.is_ordinary(span):
                continue
            found.setdefault(number, []).append(_Strike(incident, places[name]))
            places[name] += 1
    return found


def _minutes(moment: datetime) -> int:
    return int(moment.timestamp()) // 60


def _rounded(judged: Judged | None) -> float | None:
    return None if judged is None or judged.deviation is None else round(judged.deviation, 2)
