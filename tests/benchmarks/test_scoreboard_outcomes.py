"""What counts as caught, as beside, as ordinary, as a healthy ticket, and as a miss of the bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from benchmarks.scoreboard.alerts import Episode
from benchmarks.scoreboard.jobs import Job, Plan
from benchmarks.scoreboard.messages import Message
from benchmarks.scoreboard.outcomes import (
    Aftermath,
    Catch,
    Health,
    Outcome,
    changed_by_restart,
    health,
    missed,
    outcome,
)
from benchmarks.scoreboard.verdicts import Verdict, ordinary_alerts
from monitor.simulate.incidents.incident import Size
from monitor.simulate.world import HOUR, World

PLAN = Plan(World(), timedelta(days=14), timedelta(days=2))
HEALTHY = Job(PLAN)
RESTART = Job(PLAN, hours=80)
BLACKLIST = Job(PLAN, "blacklist", "small", baseline=RESTART)
CLICKS = Job(PLAN, "click_logging_broken", "large", baseline=RESTART)
STRIKES = int(PLAN.strikes.timestamp())
GROUP = (("recommender", "shop"),)


def alert(
    name: str, minute: int, until: int | None = None, severity: str = "ticket", **labels: str
) -> Episode:
    told = {"alertname": name, "severity": severity, "recommender": "shop", **labels}
    return Episode(told, STRIKES + minute * 60, until and STRIKES + until * 60)


def leak(minute: int, until: int | None = None) -> Episode:
    return alert("RecsysHardRuleViolated", minute, until, severity="page", rule="blacklist")


def message(minute: int, *told: Episode, receiver: str = "ticket") -> Message:
    labels = tuple(sorted(tuple(sorted(one.labels.items())) for one in told))
    return Message(STRIKES + minute * 60, receiver, GROUP, labels)


def seen(
    fired: Sequence[Episode], messages: Sequence[Message], job: Job = BLACKLIST, ordinary: Sequence[str] = ()
) -> Outcome:
    return outcome(job, Verdict(job.name, tuple(fired), tuple(messages), frozenset(ordinary)))


def test_the_first_message_with_an_alert_that_is_named_counts_and_the_rest_stands_beside_it() -> None:
    other = alert("RecsysAnomaly", 70, cause="other")
    watchdog = alert("RecsysWatchdog", 1, severity="none")
    sent = [
        message(75, other),
        message(76, leak(75), receiver="page"),
        message(90, leak(75), receiver="page"),
    ]
    found = seen([watchdog, other, leak(75)], sent)
    assert found.catch == Catch("RecsysHardRuleViolated (blacklist)", 76, 165)
    assert found.beside == ("RecsysAnomaly (other)",)
    assert (found.in_time, found.groups, found.messages) == (True, 2, 3)


def test_a_hazard_that_comes_along_is_no_second_group_unless_its_message_tells_of_more() -> None:
    stale = alert("RecsysAnomaly", 90, cause="lists_stale")
    expired = alert("RecsysHardRuleViolated", 36, 60, severity="page", rule="item_expired")
    job = Job(PLAN, "lists_stale", "large", baseline=RESTART)
    sent = [message(37, expired, receiver="page"), message(95, stale)]
    found = seen([expired, stale], sent, job)
    assert (found.groups, found.messages) == (1, 2)
    assert found.beside == ("RecsysHardRuleViolated (item_expired)",)
    leaked = [message(37, expired, leak(37), receiver="page"), message(95, stale)]
    assert seen([expired, leak(37), stale], leaked, job).groups == 2
    assert seen([expired, stale], sent, replace(job, incident="novelty_gone")).groups == 2


def test_of_alerts_that_one_message_tells_of_the_one_that_fired_first_is_named() -> None:
    lost = alert("RecsysAnomaly", 150, cause="clicks_lost")
    stalled = alert("RecsysFeedbackStalled", 149)
    found = seen([stalled, lost], [message(155, lost, stalled)], CLICKS)
    assert found.catch == Catch("RecsysFeedbackStalled", 155, 165)


def test_an_alert_that_nobody_is_told_of_catches_nothing() -> None:
    lost = alert("RecsysAnomaly", 150, cause="clicks_lost")
    page = alert("RecsysObjectiveViolated", 140, severity="page")
    found = seen([page, lost], [message(141, page, receiver="page")], CLICKS)
    assert (found.catch, found.in_time) == (None, False)
    assert found.beside == ("RecsysObjectiveViolated",)


@pytest.mark.parametrize(
    ("job", "name", "cause", "sent", "in_time"),
    [
        (BLACKLIST, "RecsysHardRuleViolated", "", 165, True),
        (BLACKLIST, "RecsysHardRuleViolated", "", 166, False),
        (CLICKS, "RecsysAnomaly", "clicks_lost", 225, True),  # bands of actions are judged a window later
        (CLICKS, "RecsysAnomaly", "clicks_lost", 226, False),
        (CLICKS, "RecsysFeedbackStalled", "", 166, False),  # and nothing else is
    ],
)
def test_somebody_is_told_within_the_windows_and_what_it_takes_to_judge_one(
    job: Job, name: str, cause: str, sent: int, in_time: bool
) -> None:
    one = alert(name, 90, cause=cause, rule="blacklist" if job is BLACKLIST else "")
    found = seen([one], [message(sent, one)], job)
    assert found.catch is not None
    assert (found.catch.minutes, found.in_time) == (sent, in_time)


def test_where_the_first_alert_is_late_a_later_one_that_is_not_counts() -> None:
    stalled = alert("RecsysFeedbackStalled", 165)
    lost = alert("RecsysAnomaly", 170, cause="clicks_lost")
    found = seen([stalled, lost], [message(170, stalled), message(220, lost)], CLICKS)
    assert found.catch == Catch("RecsysAnomaly (clicks_lost)", 220, 225)
    late = seen([stalled], [message(170, stalled)], CLICKS)
    assert late.catch == Catch("RecsysFeedbackStalled", 170, 165)
    assert not late.in_time


def test_ordinary_is_what_fired_before_or_fires_without_the_incident_in_the_same_hours() -> None:
    since, end = STRIKES, STRIKES + 4 * 3600
    fired = [leak(-10, 90), alert("RecsysDrift", 1), alert("RecsysNoData", 0)]
    without = [
        alert("RecsysWindowLate", -90, 1),
        alert("RecsysAnomaly", -90, 0, cause="over"),
        alert("RecsysSkippedFiles", 240),
        alert("RecsysLogStalled", 241),
    ]
    assert ordinary_alerts(fired, without, since, end) == {
        "RecsysHardRuleViolated (blacklist)",
        "RecsysNoData",
        "RecsysWindowLate",
        "RecsysSkippedFiles",
    }


def test_what_is_ordinary_neither_catches_nor_stands_beside() -> None:
    fired = [leak(75), alert("RecsysDrift", 80)]
    found = seen(fired, [], ordinary=["RecsysHardRuleViolated (blacklist)", "RecsysDrift"])
    assert (found.catch, found.beside) == (None, ())


def test_what_comes_after_an_incident_that_ends_is_told() -> None:
    stops = Job(PLAN, "log_stops", "middle", baseline=RESTART)
    assert stops.over == PLAN.strikes + 3 * HOUR
    assert stops.ends == PLAN.strikes + 7 * HOUR
    late, stalled = alert("RecsysWindowLate", 100, 200), alert("RecsysLogStalled", 70, 185, severity="page")
    assert seen([stalled, late], [], stops).aftermath == Aftermath(20, ())
    still = alert("RecsysNoData", 100)
    assert seen([stalled, still], [], stops).aftermath == Aftermath(5, ("RecsysNoData",))
    assert seen([stalled, still], [], stops, ["RecsysNoData"]).aftermath == Aftermath(5, ())
    assert seen([], [], stops).aftermath is None
    assert seen([leak(75)], []).aftermath is None


def test_a_run_lasts_until_an_incident_should_be_caught_or_is_long_over() -> None:
    hours = {
        (name, size): (Job(PLAN, name, size).ends - PLAN.strikes) // HOUR
        for name in ("blacklist", "slow_drift", "log_stops", "history_full")
        for size in ("small", "large")
    }
    assert hours == {
        ("blacklist", "small"): 4,
        ("blacklist", "large"): 4,
        ("slow_drift", "small"): 80,
        ("slow_drift", "large"): 80,
        ("log_stops", "small"): 5,
        ("log_stops", "large"): 16,
        ("history_full", "small"): 5,  # six minutes, four hours, and the hour made whole
        ("history_full", "large"): 7,
    }


def test_each_message_of_healthy_days_that_goes_to_those_with_tickets_is_a_ticket() -> None:
    first, second = alert("RecsysAnomaly", 0, cause="a"), alert("RecsysAnomaly", 90, cause="b")
    page = alert("RecsysLogStalled", 20, severity="page")
    sent = [message(5, first, second), message(66, first), message(21, page, receiver="page")]
    found = health(HEALTHY, Verdict(HEALTHY.name, (first, page, second), tuple(sent)))
    assert found.weeks == (14 * 24 - 1) / (7 * 24)  # they begin when something has been shown
    assert found.pages == ("RecsysLogStalled",)
    assert found.tickets == (("RecsysAnomaly (a)", "RecsysAnomaly (b)"), ("RecsysAnomaly (a)",))


def test_a_restart_that_changes_what_fires_is_seen() -> None:
    both, before = alert("RecsysDrift", 100, 200), alert("RecsysNoData", -300, -200)
    kept = alert("RecsysSoftRuleBurnsBudget", -300, 20)
    healthy = Verdict(HEALTHY.name, (before, kept, both, alert("RecsysWindowLate", 80 * 60, None)), ())
    assert changed_by_restart(RESTART, Verdict(RESTART.name, (both,), ()), healthy) == ()
    new = Verdict(RESTART.name, (alert("RecsysRunsFail", 10),), ())
    assert changed_by_restart(RESTART, new, healthy) == ("RecsysDrift", "RecsysRunsFail")


def made(name: str, size: Size, minutes: int | None, allowed: int = 165, groups: int = 1) -> Outcome:
    catch = None if minutes is None else Catch("RecsysDrift", minutes, allowed)
    return Outcome(Job(PLAN, name, size), catch, (), groups, groups)


def days(pages: int, tickets: int) -> Health:
    return Health(HEALTHY, 2.0, ("page",) * pages, (("ticket",),) * tickets)


STILL = Outcome(
    Job(PLAN, "log_stops", "large"), Catch("RecsysLogStalled", 70, 165), (), 1, 1, Aftermath(0, ("A", "B"))
)


@pytest.mark.parametrize(
    ("outcomes", "healthy", "misses"),
    [
        ([made("blacklist", "small", 165), made("order_broken", "middle", 90)], [days(0, 2)], []),
        ([made("order_broken", "small", None)], [], []),
        ([made("blacklist", "small", None)], [], ["blacklist-small-seed-1: not caught"]),
        (
            [made("order_broken", "large", 170)],
            [],
            ["order_broken-large-seed-1: caught only after 170 minutes, of 165 allowed"],
        ),
        (
            [made("blacklist", "large", 1, groups=2)],
            [],
            ["blacklist-large-seed-1: 2 groups of messages, not one"],
        ),
        ([STILL], [], ["log_stops-large-seed-1: when it was long over, A, B fired still"]),
        ([], [days(1, 0)], ["healthy-seed-1: 1 pages in healthy days"]),
        ([], [days(0, 3)], ["healthy-seed-1: 3 tickets in 2.0 weeks, of one a week allowed"]),
        ([], [days(0, 3), days(0, 1)], ["healthy-seed-1: 3 tickets in 2.0 weeks, of one a week allowed"]),
    ],
)
def test_the_bar(outcomes: list[Outcome], healthy: list[Health], misses: list[str]) -> None:
    assert list(missed(outcomes, healthy)) == misses
