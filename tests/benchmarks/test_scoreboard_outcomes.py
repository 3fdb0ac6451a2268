"""What counts as caught, as beside, as ordinary, and as told too often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from benchmarks.scoreboard.alerts import Episode
from benchmarks.scoreboard.jobs import LASTS, Job
from benchmarks.scoreboard.messages import Message
from benchmarks.scoreboard.outcomes import Aftermath, Catch, Outcome, missed, outcome
from benchmarks.scoreboard.verdicts import Verdict, ordinary_alerts
from benchmarks.scoreboard.worlds import Plan
from monitor.simulate.world import HOUR, World

PLAN = Plan(World(), timedelta(days=14), (timedelta(days=2),))
BLACKLIST = Job(PLAN, "blacklist", "small")
LEAK = replace(BLACKLIST, size="middle")
LASTING = replace(BLACKLIST, size="large", lasting=True)
CLICKS = Job(PLAN, "click_logging_broken", "large")
STRIKES = int(PLAN.moments[0].timestamp())
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


def test_the_first_message_with_a_named_alert_counts_and_others_are_listed_beside_it() -> None:
    other = alert("RecsysAnomaly", 70, cause="other")
    watchdog = alert("RecsysWatchdog", 1, severity="none")
    sent = [
        message(75, other),
        message(76, leak(75), receiver="page"),
        message(90, leak(75), receiver="page"),
    ]
    found = seen([watchdog, other, leak(75)], sent)
    assert found.catch == Catch("RecsysHardRuleViolated (rule=blacklist)", 76, 105)
    assert found.catch.windows == 1
    assert found.beside == ("RecsysAnomaly (cause=other), ticket",)
    assert (found.in_time, found.groups, found.pages, found.tickets) == (True, 2, 2, 1)


def test_a_known_hazard_is_no_second_group_unless_its_message_has_other_alerts() -> None:
    stale = alert("RecsysAnomaly", 90, cause="lists_stale")
    expired = alert("RecsysHardRuleViolated", 36, 60, severity="page", rule="item_expired")
    job = Job(PLAN, "lists_stale", "large")
    sent = [message(37, expired, receiver="page"), message(95, stale)]
    found = seen([expired, stale], sent, job)
    assert (found.groups, found.pages, found.tickets) == (1, 1, 1)
    assert found.beside == ("RecsysHardRuleViolated (rule=item_expired), page",)
    leaked = [message(37, expired, leak(37), receiver="page"), message(95, stale)]
    assert seen([expired, leak(37), stale], leaked, job).groups == 2
    assert seen([expired, stale], sent, replace(job, incident="novelty_gone")).groups == 2


def grown(*after: Message) -> Outcome:
    few, lost = (
        alert("RecsysDrift", 90, metric="conversion"),
        alert("RecsysAnomaly", 210, cause="clicks_lost"),
    )
    severe = alert("RecsysAnomalySevere", 210, severity="page", cause="clicks_lost")
    sent = [message(95, few), message(155, few), message(211, severe, receiver="page"), *after]
    return seen([few, lost, severe], sent, replace(CLICKS, incident="category_takeover"))


def test_a_ticket_that_becomes_a_page_is_no_second_group() -> None:
    found = grown(message(451, alert("RecsysAnomalySevere", 210, cause="x"), receiver="page"))
    assert (found.groups, found.grew, found.pages, found.tickets) == (1, 211, 2, 2)


@pytest.mark.parametrize(
    "after",
    [
        message(221, alert("RecsysDrift", 90, metric="conversion")),  # the page has not held it back
        message(221, leak(220), receiver="page"),  # a page of something else
        message(94, alert("RecsysWindowLate", 90)),  # a ticket of something else
    ],
)
def test_a_ticket_that_does_not_become_a_page_is_its_own_group(after: Message) -> None:
    assert (grown(after).groups, grown(after).grew) == (2, None)


def test_the_first_alert_of_a_message_is_named() -> None:
    lost = alert("RecsysAnomaly", 150, cause="clicks_lost")
    stalled = alert("RecsysFeedbackStalled", 149)
    found = seen([stalled, lost], [message(155, lost, stalled)], CLICKS)
    assert found.catch == Catch("RecsysFeedbackStalled", 155, 165)


def test_an_alert_without_a_message_catches_nothing() -> None:
    lost = alert("RecsysAnomaly", 150, cause="clicks_lost")
    page = alert("RecsysObjectiveViolated", 140, severity="page")
    found = seen([page, lost], [message(141, page, receiver="page")], CLICKS)
    assert (found.catch, found.in_time) == (None, False)
    assert found.beside == ("RecsysObjectiveViolated, page",)


@pytest.mark.parametrize(
    ("job", "name", "cause", "sent", "in_time"),
    [
        (LEAK, "RecsysHardRuleViolated", "", 165, True),
        (LEAK, "RecsysHardRuleViolated", "", 166, False),
        (BLACKLIST, "RecsysHardRuleViolated", "", 105, True),  # one row in each window: the first is told
        (BLACKLIST, "RecsysHardRuleViolated", "", 106, False),
        (CLICKS, "RecsysAnomaly", "clicks_lost", 225, True),  # bands of actions are judged a window later
        (CLICKS, "RecsysAnomaly", "clicks_lost", 226, False),
        (CLICKS, "RecsysFeedbackStalled", "", 166, False),  # and nothing else is
    ],
)
def test_an_incident_must_be_reported_within_its_windows_and_the_time_to_judge_one(
    job: Job, name: str, cause: str, sent: int, in_time: bool
) -> None:
    one = alert(name, 90, cause=cause, rule="" if job is CLICKS else "blacklist")
    found = seen([one], [message(sent, one)], job)
    assert found.catch is not None
    assert (found.catch.minutes, found.in_time) == (sent, in_time)


def test_if_the_first_alert_is_late_a_later_one_in_time_counts() -> None:
    stalled = alert("RecsysFeedbackStalled", 165)
    lost = alert("RecsysAnomaly", 170, cause="clicks_lost")
    found = seen([stalled, lost], [message(170, stalled), message(220, lost)], CLICKS)
    assert found.catch == Catch("RecsysAnomaly (cause=clicks_lost)", 220, 225)
    late = seen([stalled], [message(170, stalled)], CLICKS)
    assert late.catch == Catch("RecsysFeedbackStalled", 170, 165)
    assert not late.in_time


def test_an_alert_is_ordinary_if_it_fired_before_or_fires_without_the_incident() -> None:
    since, end = STRIKES, STRIKES + 4 * 3600
    fired = [leak(-10, 90), alert("RecsysDrift", 1), alert("RecsysNoData", 0)]
    without = [
        alert("RecsysWindowLate", -90, 1),
        alert("RecsysAnomaly", -90, 0, cause="over"),
        alert("RecsysSkippedFiles", 240),
        alert("RecsysLogStalled", 241),
    ]
    assert ordinary_alerts(fired, without, since, end) == {
        "RecsysHardRuleViolated (rule=blacklist)",
        "RecsysNoData",
        "RecsysWindowLate",
        "RecsysSkippedFiles",
    }


def test_an_ordinary_alert_does_not_count_anywhere() -> None:
    drift, lists = alert("RecsysDrift", 80), alert("RecsysAnomaly", 80, cause="lists_empty")
    sent = [message(76, leak(75), receiver="page"), message(85, drift, lists), message(200, drift)]
    found = seen(
        [leak(75), drift, lists], sent, ordinary=["RecsysHardRuleViolated (rule=blacklist)", "RecsysDrift"]
    )
    assert (found.catch, found.beside) == (None, ("RecsysAnomaly (cause=lists_empty), ticket",))
    assert (found.groups, found.pages, found.tickets) == (1, 0, 1)


def test_a_page_repeated_within_four_hours_is_too_often() -> None:
    def alert_text(*minutes: int, job: Job = BLACKLIST, receiver: str = "page") -> tuple[str, ...]:
        sent = [message(minute, leak(5), receiver=receiver) for minute in minutes]
        return seen([leak(5)], sent, job).again

    assert alert_text(76) == alert_text(76, 316) == ()
    assert alert_text(76, 315) == alert_text(76, 106, 136) == ("RecsysHardRuleViolated (rule=blacklist)",)
    assert (
        alert_text(76, 106, receiver="ticket") == ()
    )  # what is long watched has to keep its tickets apart as well
    assert alert_text(76, 106, receiver="ticket", job=LASTING) == ("RecsysHardRuleViolated (rule=blacklist)",)
    assert alert_text(76, 76 + 3 * 24 * 60, receiver="ticket", job=LASTING) == ()


def test_a_lasting_incident_must_be_reported_until_it_ends() -> None:
    end = LASTS // HOUR * 60
    assert LASTING.name == "blacklist-large-lasting-seed-1"
    assert LASTING.over == PLAN.moments[0] + LASTS
    assert LASTING.ends > LASTING.over
    stood = seen([leak(75, end + 90)], [message(76, leak(75))], LASTING)
    assert stood.stood == ("RecsysHardRuleViolated (rule=blacklist)",)
    assert stood.aftermath == Aftermath(90, ())
    assert list(missed([stood])) == []
    gone = seen([leak(75, end - 1), alert("RecsysNoData", 90)], [message(76, leak(75))], LASTING)
    assert gone.stood == ()
    paused = seen([leak(75, 200), leak(180, 500), leak(620)], [message(76, leak(75))], LASTING)
    assert (stood.gap, gone.gap, paused.gap) == (0, 1, 120)
    assert f"{LASTING.name}: for 120 minutes, no alert that names it fired" in missed([paused])
    assert list(missed([gone])) == [
        f"{LASTING.name}: no alert that names it still fired when it ended",
        f"{LASTING.name}: long after its end, RecsysNoData still fired",
    ]


def test_the_aftermath_of_an_incident_is_reported() -> None:
    stops = Job(PLAN, "log_stops", "middle")
    assert stops.over == PLAN.moments[0] + 3 * HOUR
    assert stops.ends == PLAN.moments[0] + 7 * HOUR
    late, stalled = alert("RecsysWindowLate", 100, 200), alert("RecsysLogStalled", 70, 185, severity="page")
    assert seen([stalled, late], [], stops).aftermath == Aftermath(20, ())
    still = alert("RecsysNoData", 100)
    assert seen([stalled, still], [], stops).aftermath == Aftermath(5, ("RecsysNoData",))
    assert seen([stalled, still], [], stops, ["RecsysNoData"]).aftermath == Aftermath(5, ())
    assert seen([], [], stops).aftermath is None
    assert seen([leak(75)], []).aftermath is None
    again, lost = message(190, stalled, receiver="page"), message(400, leak(400), receiver="page")
    told = [message(71, stalled, receiver="page"), again, lost]
    assert seen([stalled, leak(400, 410)], told, stops).aftermath == Aftermath(
        230, (), ("RecsysHardRuleViolated (rule=blacklist)",)
    )
    assert seen([leak(400, 410)], [lost], stops).aftermath == Aftermath(230, ())  # it was not told of before


@pytest.mark.parametrize(
    ("receiver", "aftermath"),
    [
        ("page", Aftermath(230, (), ("RecsysHardRuleViolated (rule=blacklist)",))),
        ("ticket", Aftermath(230, (), (), ("RecsysHardRuleViolated (rule=blacklist)",))),
    ],
)
def test_only_alerts_after_the_first_message_count_as_new_after_the_end(
    receiver: str, aftermath: Aftermath
) -> None:
    """Whether a page or a ticket told of the incident, and of that very alert as well."""
    stops = Job(PLAN, "log_stops", "middle")
    late, before, after = alert("RecsysWindowLate", 100, 200), leak(75, 150), leak(400, 410)
    last = message(400, after, receiver=receiver)
    assert seen([late, after], [message(105, late), last], stops).aftermath == aftermath
    first = message(76, before, receiver=receiver)
    assert seen([before, late, after], [first, last], stops).aftermath == aftermath
    stands = leak(75, 410)  # told again because it stands
    assert seen([stands], [first, message(316, stands, receiver=receiver)], stops).aftermath == Aftermath(
        230, ()
    )


def test_a_run_lasts_until_the_incident_should_be_caught_or_has_been_over_for_hours() -> None:
    hours = {
        (name, size): (Job(PLAN, name, size).ends - PLAN.moments[0]) // HOUR
        for name in ("blacklist", "slow_drift", "log_stops", "history_full")
        for size in ("small", "large")
    }
    assert hours == {
        ("blacklist", "small"): 4,
        ("blacklist", "large"): 4,
        ("slow_drift", "small"): 74,
        ("slow_drift", "large"): 74,
        ("log_stops", "small"): 5,
        ("log_stops", "large"): 16,
        ("history_full", "small"): 5,  # six minutes, four hours, and the hour made whole
        ("history_full", "large"): 7,
    }
