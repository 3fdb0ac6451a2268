"""The alerts that a history would have raised: by hand, and by the rules as they are shipped."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from rich.console import Console

from monitor.core.results import Result, ResultKind, Status, Window
from monitor.history.reads import StoredResult
from monitor.report import past_alerts as report
from monitor.report.past_alerts import PastAlert, as_json, past_alerts, print_past_alerts, summary
from tests.conftest import ROOT

START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
OK, OUT, NONE = Status.OK, Status.VIOLATED, Status.NO_DATA


def anomalies(
    statuses: list[Status],
    gone: list[float | None] | None = None,
    *,
    length: timedelta = HOUR,
    cause: str = "traffic_lost",
    check: str = "bands",
) -> list[StoredResult]:
    """A cause window by window, with its severity."""
    stored = []
    for number, status in enumerate(statuses):
        window = Window(START + number * length, START + (number + 1) * length)
        labels = {"cause": cause}
        anomaly = Result(
            kind=ResultKind.ANOMALY, metric="anomaly", labels=labels, definition="1", status=status,
            value=float(status is OUT), threshold=0.0, detail=f"window {number}",
        )  # fmt: skip
        severity = Result(
            kind=ResultKind.BAND, metric="anomaly_severity", labels=labels, definition="1",
            status=OK, value=gone[number] if gone else 0.0,
        )  # fmt: skip
        stored += [StoredResult("shop", check, window, one) for one in (anomaly, severity)]
    return stored


def hour(number: int) -> datetime:
    return START + number * HOUR


def told(alerts: list[PastAlert]) -> list[tuple[str, datetime, datetime | None]]:
    return [(one.severity, one.since, one.until) for one in alerts]


def test_an_anomaly_of_two_windows_is_one_ticket() -> None:
    (alert,) = past_alerts(anomalies([OK, OUT, OUT, OK]))
    assert alert == PastAlert(
        "RecsysAnomaly", "ticket", "traffic_lost", hour(2), hour(4), "window 1"
    )  # judged at its end


def test_two_anomalies_with_an_hour_between_are_two_tickets() -> None:
    assert told(past_alerts(anomalies([OUT, OK, OUT, OK]))) == [
        ("ticket", hour(1), hour(2)),
        ("ticket", hour(3), hour(4)),
    ]


def test_a_pause_of_a_quarter_of_an_hour_does_not_end_an_alert() -> None:
    minutes = timedelta(minutes=5)
    three_quiet = anomalies([OUT, OK, OK, OUT, OK], length=minutes)
    assert told(past_alerts(three_quiet)) == [("ticket", START + minutes, START + 5 * minutes)]
    long_quiet = anomalies([OUT, *[OK] * 5, OUT, OK], length=minutes)
    assert len(past_alerts(long_quiet)) == 2


def test_a_surge_that_comes_back_the_next_night_is_the_same_ticket() -> None:
    night = [*[OUT] * 3, *[OK] * 21]
    (alert,) = past_alerts(anomalies([*night, *night], cause="traffic_surge"))
    assert (alert.since, alert.until) == (hour(1), hour(28))
    assert len(past_alerts(anomalies([*night, *night]))) == 2
    late = [*[OUT] * 3, *[OK] * 26, OUT]
    assert len(past_alerts(anomalies(late, cause="traffic_surge"))) == 2


def test_a_cause_that_two_checks_look_for_is_one_ticket() -> None:
    """Exposures and feedback both have `other`: one is violated for hours, the other is not."""
    exposures = anomalies([OK, OUT, OUT, OUT, OK], cause="other")
    feedback = anomalies([OK, OK, OK, OK, OK], cause="other", check="bands_feedback")
    (alert,) = past_alerts([one for pair in zip(exposures, feedback, strict=True) for one in pair])
    assert (alert.since, alert.until) == (hour(2), hour(5))


def test_windows_that_cannot_be_judged_do_not_end_an_alert() -> None:
    assert told(past_alerts(anomalies([OUT, NONE, NONE, OK]))) == [("ticket", hour(1), hour(4))]


def test_an_alert_that_has_not_ended_has_no_end() -> None:
    assert told(past_alerts(anomalies([OK, OUT, OUT]))) == [("ticket", hour(2), None)]


@pytest.mark.parametrize(
    ("gone", "pages"),
    [
        ([0.3, 0.39, 0.3, 0.0], []),
        ([0.3, 0.4, 0.3, 0.0], [("page", hour(2), hour(4))]),
        ([0.6, 0.24, 0.3, 0.0], [("page", hour(1), hour(2))]),
        ([0.6, None, 0.3, 0.0], [("page", hour(1), hour(4))]),
    ],
)
def test_a_page_starts_at_two_fifths_and_ends_below_a_quarter(gone, pages) -> None:
    alerts = past_alerts(anomalies([OUT, OUT, OUT, OK], gone))
    assert told([one for one in alerts if one.severity == "page"]) == pages
    assert told([one for one in alerts if one.severity == "ticket"]) == [("ticket", hour(1), hour(4))]


def test_the_limits_are_those_of_the_shipped_rules() -> None:
    groups = yaml.safe_load((ROOT / "rules/alerts/bands.yaml").read_text())["groups"]
    rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
    longer = re.findall(r'max_over_time\(\S+ cause="(\w+)"}\[1d\]', rules["RecsysAnomaly"]["expr"])
    assert {cause: timedelta(days=1) for cause in longer} == report.PAUSES
    for name in ("RecsysAnomaly", "RecsysAnomalySevere", "RecsysDrift"):
        assert rules[name]["keep_firing_for"] == f"{report.KEEP_FIRING // timedelta(minutes=1)}m"
        assert "for" not in rules[name]
        assert rules[name]["labels"]["severity"] == ("page" if name.endswith("Severe") else "ticket")
    severe = rules["RecsysAnomalySevere"]["expr"]
    assert re.findall(r"(>=|<) (0\.\d+)", severe) == [
        (">=", str(report.SEVERE)),
        ("<", str(report.SEVERE_UNTIL)),
    ]


def test_a_drift_is_a_ticket_with_the_name_of_its_series() -> None:
    labels = {"metric": "failure", "by": "pv", "of": ""}
    day = Window(START, START + 24 * HOUR)
    result = Result(
        kind=ResultKind.DRIFT, metric="drift", labels=labels, definition="1", status=OUT, value=-9.0,
        threshold=-5.0, bound="min", detail="fell from 0.05 to 0.04, over three days",
    )  # fmt: skip
    (alert,) = past_alerts([StoredResult("shop", "drift", day, result)])
    assert (alert.alert, alert.severity) == ("RecsysDrift", "ticket")
    assert "failure" in alert.what


def test_the_summary_counts_by_the_week() -> None:
    alerts = past_alerts(anomalies([OUT, OK, OUT, OK], [0.9, 0.0, 0.0, 0.0]))
    assert summary(alerts, timedelta(weeks=4)) == "1 page (0.25 a week), 2 tickets (0.5 a week) in 4 weeks"
    assert summary([], timedelta(weeks=1)) == "no page, no ticket in 1 week"


def test_hostile_names_reach_no_terminal_and_json_is_a_line_an_alert(capsys) -> None:
    alert = PastAlert("RecsysDrift", "ticket", "gini \x1b[31m[red]", START, None, "rose\nfrom")
    print_past_alerts("shop", [alert], timedelta(weeks=1), Console())
    shown = capsys.readouterr().out
    assert "\x1b[31m" not in shown
    assert "still fires" in shown
    (line,) = as_json("shop", [alert]).splitlines()
    assert json.loads(line) == {
        "recommender": "shop", "alert": "RecsysDrift", "severity": "ticket", "what": "gini \x1b[31m[red]",
        "since": "2026-03-02T00:00:00Z", "until": None, "detail": "rose\nfrom",
    }  # fmt: skip
