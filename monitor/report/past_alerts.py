"""Which alerts on bands the verdicts of a history would have raised, by the shipped alert rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from rich.console import Console
from rich.text import Text

from monitor.anomalies.specs import ANOMALY_SEVERITY
from monitor.core.json_value import iso
from monitor.core.results import Result, ResultKind, Window
from monitor.core.text import plural, visible
from monitor.history.reads import StoredResult
from monitor.history.standing import Signal, signal_of
from monitor.models.specs import CAUSE_LABEL
from monitor.report.judged import title

TICKET, PAGE = "ticket", "page"
SEVERE: Final = 0.4
"""RecsysAnomalySevere fires where this share of what was expected is gone."""
SEVERE_UNTIL: Final = 0.25
"""It resolves where less is gone."""
KEEP_FIRING: Final = timedelta(minutes=15)
"""`keep_firing_for` of these alerts: a shorter pause does not end one."""
PAUSES: Final = {"traffic_surge": timedelta(days=1)}
"""The causes of which a longer pause does not end the ticket either."""
_WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class PastAlert:
    """An alert from the window that raised it to the window that resolved it."""

    alert: str
    severity: str
    what: str
    """The cause, or the series that drifts."""
    since: datetime
    """End of the first window; the alert fires once that window is judged."""
    until: datetime | None
    """End of the window that resolved it; None: it still fires at the end of the span."""
    detail: str
    """What the first window says."""


def past_alerts(results: Iterable[StoredResult]) -> list[PastAlert]:
    """The alerts on anomalies and drifts, the oldest first.

    Args:
        results: of one recommender, in the order of time.
    """
    series: dict[tuple[ResultKind, str], dict[str, list[StoredResult]]] = {}
    severity: dict[tuple[Window, str], float | None] = {}
    for stored in results:
        result = stored.result
        if result.metric == ANOMALY_SEVERITY.name:
            severity[stored.window, result.labels[CAUSE_LABEL]] = result.value
        elif result.kind in (ResultKind.ANOMALY, ResultKind.DRIFT):
            series.setdefault((result.kind, _what(result)), {}).setdefault(stored.check, []).append(stored)
    alerts: list[PastAlert] = []
    for (kind, what), by_check in series.items():
        judged, violated = _of_any([(one, _violated(one)) for one in by_check.values()])
        if kind is ResultKind.DRIFT:
            alerts += _alerts("RecsysDrift", TICKET, what, judged, violated)
        else:
            severe = _severe([severity.get((one.window, what)) for one in judged], violated)
            alerts += _alerts("RecsysAnomaly", TICKET, what, judged, violated)
            alerts += _alerts("RecsysAnomalySevere", PAGE, what, judged, severe)
    return sorted(alerts, key=lambda alert: (alert.since, alert.severity, alert.what))


def _of_any(
    checks: Sequence[tuple[Sequence[StoredResult], Sequence[bool]]],
) -> tuple[list[StoredResult], list[bool]]:
    """The windows of several checks, and whether the cause is violated in any: `other` has two checks."""
    found: dict[Window, tuple[StoredResult, bool]] = {}
    for judged, violated in checks:
        for stored, stands in zip(judged, violated, strict=True):
            if stands or stored.window not in found:
                found[stored.window] = stored, stands
    ordered = [found[window] for window in sorted(found, key=lambda one: one.end)]
    return [stored for stored, _ in ordered], [stands for _, stands in ordered]


def _what(result: Result) -> str:
    return result.labels[CAUSE_LABEL] if result.kind is ResultKind.ANOMALY else title(result)


def _violated(judged: Sequence[StoredResult]) -> list[bool]:
    """Whether the gauge of the status is `violated` after each window: a violation stands until it clears."""
    stands: list[bool] = []
    for stored in judged:
        signal = signal_of(stored.result)
        stands.append(signal is Signal.FIRE or (bool(stands and stands[-1]) and signal is not Signal.CLEAR))
    return stands


def _severe(severity: Sequence[float | None], violated: Sequence[bool]) -> list[bool]:
    """Whether the page fires after each window. A window without a severity resolves none."""
    fires: list[bool] = []
    for gone, stands in zip(severity, violated, strict=True):
        starts = gone is not None and gone >= SEVERE
        goes_on = bool(fires and fires[-1]) and not (gone is not None and gone < SEVERE_UNTIL)
        fires.append(stands and (starts or goes_on))
    return fires


def _alerts(
    alert: str, severity: str, what: str, judged: Sequence[StoredResult], fires: Sequence[bool]
) -> Iterator[PastAlert]:
    """One alert for each stretch of windows that fire; a short pause belongs to it."""
    keep = PAUSES.get(what, KEEP_FIRING) if severity == TICKET else KEEP_FIRING
    current: PastAlert | None = None
    for stored, firing in zip(judged, fires, strict=True):
        end = stored.window.end
        if firing and (current is None or _is_over(current, end, keep)):
            if current is not None:
                yield current
            current = PastAlert(alert, severity, what, end, None, stored.result.detail)
        elif firing and current is not None:
            current = replace(current, until=None)
        elif current is not None and current.until is None:
            current = replace(current, until=end)
    if current is not None:
        yield current


def _is_over(alert: PastAlert, end: datetime, keep: timedelta) -> bool:
    return alert.until is not None and end - alert.until > keep


def print_past_alerts(name: str, alerts: Sequence[PastAlert], span: timedelta, console: Console) -> None:
    """A line for each alert, and how many of each severity there are a week."""
    for alert in alerts:
        until = "still fires     " if alert.until is None else f"{alert.until:%Y-%m-%d %H:%M}"
        line = Text(f"{alert.since:%Y-%m-%d %H:%M}  {until}  ")
        line.append(f"{alert.severity:6}", style="bold red" if alert.severity == PAGE else "yellow")
        line.append(f"  {visible(alert.what)}", style="bold")
        console.print(line, soft_wrap=True)
        if alert.detail:
            console.print(Text(f"{'':36}{visible(alert.detail)}", style="dim"), soft_wrap=True)
    console.print(Text(f"{name}: {summary(alerts, span)}", style="bold"), soft_wrap=True)


def summary(alerts: Sequence[PastAlert], span: timedelta) -> str:
    """How many pages and tickets there are, and how many a week.

    >>> summary([], timedelta(days=14))
    'no page, no ticket in 2 weeks'
    """
    weeks = span / _WEEK
    parts = []
    for severity in (PAGE, TICKET):
        number = sum(alert.severity == severity for alert in alerts)
        rate = f" ({number / weeks:.2g} a week)" if number and weeks else ""
        parts.append(f"{plural(number, severity)}{rate}" if number else f"no {severity}")
    length = f"{weeks:.3g}"
    return f"{', '.join(parts)} in {length} week{'' if length == '1' else 's'}"


def as_json(name: str, alerts: Sequence[PastAlert]) -> str:
    """A line of JSON for each alert."""
    return "\n".join(
        json.dumps(
            {
                "recommender": name, "alert": alert.alert, "severity": alert.severity, "what": alert.what,
                "since": iso(alert.since), "until": alert.until and iso(alert.until), "detail": alert.detail,
            }
        )
        for alert in alerts
    )  # fmt: skip
