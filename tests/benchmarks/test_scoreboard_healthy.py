"""What healthy days and a mere restart are held to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from benchmarks.scoreboard.alerts import Episode
from benchmarks.scoreboard.healthy import WEEK, Health, changed_by_restart, health, missed
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.messages import Message
from benchmarks.scoreboard.verdicts import Verdict
from benchmarks.scoreboard.worlds import Plan
from monitor.simulate.world import World

PLAN = Plan(World(), timedelta(days=14), (timedelta(days=2),))
HEALTHY, RESTART = Job(PLAN), Job(PLAN, hours=80)
STRIKES = int(PLAN.moments[0].timestamp())
DAY = 24 * 3600


def alert(name: str, minute: int, until: int | None = None, severity: str = "ticket") -> Episode:
    labels = {"alertname": name, "severity": severity, "recommender": "shop"}
    return Episode(labels, STRIKES + minute * 60, None if until is None else STRIKES + until * 60)


def test_alerts_of_healthy_days_count_with_or_without_a_message() -> None:
    first, again = alert("RecsysAnomaly", 0, 20), alert("RecsysAnomaly", 90, 100)
    page = alert("RecsysLogStalled", 20, severity="page")
    watchdog = alert("RecsysWatchdog", 0, severity="none")
    told = tuple(sorted(first.labels.items()))
    sent = (
        Message(5.0, "ticket", (), (told,)), Message(66.0, "page", (), ()), Message(1.0, "dead-man", (), ())
    )  # fmt: skip
    found = health(HEALTHY, Verdict(HEALTHY.name, (first, page, watchdog, again), sent))
    assert found.weeks == (14 * 24 - 1) / (7 * 24)  # they begin when something has been shown
    assert found.fired == {("RecsysAnomaly", "ticket"): 2, ("RecsysLogStalled", "page"): 1}
    assert (found.pages, found.tickets, found.sent, found.worst_week) == (1, 2, 1, 2)
    assert found.began == (first.since, again.since)


@pytest.mark.parametrize(
    ("days", "worst"), [((), 0), ((1,), 1), ((1, 8), 1), ((1, 7.9), 2), ((1, 5, 9, 11.9), 3), ((3, 3), 2)]
)
def test_the_worst_week_is_any_seven_days(days: tuple[float, ...], worst: int) -> None:
    assert Health(HEALTHY, {}, tuple(STRIKES + day * DAY for day in days)).worst_week == worst
    assert WEEK == 7 * DAY


def changed(restarted: list[Episode], healthy: list[Episode]) -> tuple[str, ...]:
    return changed_by_restart(
        RESTART, Verdict(RESTART.name, tuple(restarted), ()), Verdict(HEALTHY.name, tuple(healthy), ())
    )


def test_a_restart_that_changes_what_fires_is_seen() -> None:
    both, before = alert("RecsysDrift", 100, 200), alert("RecsysNoData", -300, -200)
    kept = alert("RecsysSoftRuleBurnsBudget", -300, 20)
    healthy = [before, kept, both, alert("RecsysWindowLate", 80 * 60, None)]
    assert changed([both], healthy) == ()
    assert changed([alert("RecsysDrift", 110, 150)], [both]) == ()
    assert changed([alert("RecsysRunsFail", 10)], healthy) == ("RecsysDrift", "RecsysRunsFail")
    assert changed([alert("RecsysDrift", 10)], [kept]) == ("RecsysDrift",)


def test_the_same_alert_at_another_time_is_not_the_same() -> None:
    soon, late = alert("RecsysLogStalled", 10, 20), alert("RecsysLogStalled", 60 * 60, 61 * 60)
    assert changed([soon], [late]) == changed([soon, late], [late]) == ("RecsysLogStalled",)


def test_an_alert_that_fires_again_after_the_restart_is_seen() -> None:
    stands, told = alert("RecsysDrift", -60), [alert("RecsysDrift", -60, 10), alert("RecsysDrift", 30)]
    assert changed(told, [stands]) == ("RecsysDrift",)
    assert changed([alert("RecsysDrift", 30)], [stands]) == ()  # it knows nothing of the time before


def test_the_bar_of_healthy_days() -> None:
    quiet = Health(HEALTHY, {("A", "ticket"): 9}, (0.0, 7.0 * DAY, 14.0 * DAY))
    loud = Health(HEALTHY, {("A", "page"): 2}, (0.0, 6.0 * DAY))
    assert list(missed([quiet, loud])) == [
        "healthy-seed-1: 2 of the alerts page",
        "healthy-seed-1: 2 tickets in seven days, one is allowed",
    ]
