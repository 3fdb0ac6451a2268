"""From the alerts of a sweep to figures: what was reported in time, and how many alerts were false."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.real_traffic.incidents import INCIDENTS, Incident
from benchmarks.real_traffic.sweep import FALSE_ALARMS, LEARNED, Sample, Struck, Swept
from benchmarks.real_traffic.traffic import HOUR, SERIES, WEEK, Hours
from benchmarks.scoreboard.alerts import Episode, alert_text
from benchmarks.scoreboard.rates import Share
from benchmarks.scoreboard.verdicts import ordinary_alerts
from monitor.core.results import Window

PAGE = "page"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was reported of one incident: after how many windows (None: never), and the first cause.

    `expected` is how many requests the windows of its bar would have without it.
    """

    incident: str
    begins: datetime
    windows: int | None
    cause: str
    in_time: bool
    expected: float


def outcome(struck: Struck, clean: Sequence[Episode], hours: Hours, *, is_small: bool) -> Outcome:
    """What an incident's own alerts say: those that fire neither before it nor in the clean run meanwhile."""
    incident = INCIDENTS[struck.incident]
    since = int(struck.begins.timestamp())
    end = since + len(struck.requests) * 3600
    ordinary = ordinary_alerts(struck.episodes, clean, since, end)
    own = [one for one in struck.episodes if alert_text(one.labels) not in ordinary]
    wanted = [one for one in own if incident.by == "any" or one.severity == PAGE]
    first = min((one.since for one in wanted), default=None)
    windows = None if first is None else -(-(first - since) // 3600)
    most = incident.bar.of(is_small=is_small)
    in_time = windows is not None and windows <= most
    if incident.stays:
        in_time = in_time and any(one.fires(end) for one in wanted)
    number = (struck.begins - hours.start) // HOUR
    expected = round(float(np.nansum(hours.rate[number : number + most])), 1)
    return Outcome(incident.name, struck.begins, windows, _cause(own), in_time, expected)


def _cause(own: Sequence[Episode]) -> str:
    """The cause of the first alert that names one; of several the first by name."""
    named = [(one.since, one.labels["cause"]) for one in own if "cause" in one.labels]
    return min(named, default=(0, ""))[1]


@dataclass(frozen=True, slots=True)
class Alert:
    """A false alarm: the alert in a few words, and when it began."""

    text: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one series.

    `windows` is how many the series had; `weeks` is the part of the clean run in which an alert is false.
    `caught`: of each labelled anomaly in the time that was judged, whether an alert began in it. `surges`: of
    each ordinary hour with many times the usual requests, whether an alert about it began.
    """

    series: str
    start: datetime
    sample: Sample
    seconds: float
    windows: int
    weeks: float
    outcomes: Sequence[Outcome]
    tickets: Sequence[Alert]
    pages: Sequence[Alert]
    caught: Sequence[bool]
    surges: Sequence[bool] = ()

    @property
    def name(self) -> str:
        """The series, with what is unusual of the sample: the weeks that are left out, the false alarms."""
        sample = self.sample
        skipped = f" from week {sample.skip:g}" if sample.skip else ""
        allowed = f", false_alarms {sample.false_alarms:g}" if sample.false_alarms != FALSE_ALARMS else ""
        return f"{self.series}{skipped}{allowed}"

    @classmethod
    def of(cls, swept: Swept, hours: Hours) -> Figures:
        """The figures of a sweep."""
        is_small = SERIES[swept.series].is_small
        ordinary = sum(1 for _ in ordinary_hours(swept, hours))
        surges = {number: hours.window(number) for number in hours.surges}
        false = [
            one
            for one in swept.episodes
            if _is_false(one, swept, hours) and not any(_is_about(one, surge) for surge in surges.values())
        ]
        judged = [one for one in hours.labelled if _is_judged(one, swept)]
        sudden = [surges[number] for number in ordinary_hours(swept, hours) if number in surges]
        return cls(
            series=swept.series,
            start=swept.start,
            sample=swept.sample,
            seconds=swept.seconds,
            windows=len(swept.requests),
            weeks=ordinary * HOUR / WEEK,
            outcomes=[outcome(one, swept.episodes, hours, is_small=is_small) for one in swept.struck],
            tickets=[_alert(one) for one in false if one.severity != PAGE],
            pages=[_alert(one) for one in false if one.severity == PAGE],
            caught=[any(_begins_in(alert, one) for alert in swept.episodes) for one in judged],
            surges=[any(_is_about(alert, one) for alert in swept.episodes) for one in sudden],
        )

    def share(self, incident: Incident) -> Share:
        """How many of these incidents were reported in time, of those with enough requests."""
        return Share.of(one.in_time for one in self.of_incident(incident) if one.expected >= incident.enough)

    def named_traffic(self) -> Share:
        """If only the volume changed and a cause was reported: how often the first is `traffic_*`."""
        return Share.of(cause.startswith("traffic_") for cause in self.first_causes())

    def first_causes(self) -> list[str]:
        """The first cause of each case in which only the volume changed and a cause was reported."""
        volume = [one for one in self.outcomes if INCIDENTS[one.incident].only_volume]
        return [one.cause for one in volume if one.cause]

    def of_incident(self, incident: Incident) -> list[Outcome]:
        """The outcomes of one kind of incident."""
        return [one for one in self.outcomes if one.incident == incident.name]


def ordinary_hours(swept: Swept, hours: Hours) -> Iterator[int]:
    """The numbers of the judged hours in which an alert is false."""
    for number in range(LEARNED // HOUR, len(swept.requests)):
        if swept.requests[number] is not None and hours.is_ordinary(hours.window(number)):
            yield number


def _alert(one: Episode) -> Alert:
    return Alert(alert_text(one.labels), datetime.fromtimestamp(one.since, UTC))


def _is_false(alert: Episode, swept: Swept, hours: Hours) -> bool:
    end = datetime.fromtimestamp(alert.since, UTC)
    return end > swept.start + LEARNED and hours.is_ordinary(Window(end - HOUR, end))


def _is_about(alert: Episode, surge: Window) -> bool:
    """Whether an alert about more traffic begins with a surge: from an hour before it to an hour after it."""
    since = datetime.fromtimestamp(alert.since, UTC)
    is_near = surge.start - HOUR <= since <= surge.end + HOUR
    return alert.labels.get("cause") == "traffic_surge" and is_near


def _is_judged(labelled: Window, swept: Swept) -> bool:
    return (
        swept.start + LEARNED <= labelled.start and labelled.end <= swept.start + len(swept.requests) * HOUR
    )


def _begins_in(alert: Episode, labelled: Window) -> bool:
    begin = datetime.fromtimestamp(alert.since, UTC)
    return labelled.start <= begin <= labelled.end + timedelta(hours=1)
