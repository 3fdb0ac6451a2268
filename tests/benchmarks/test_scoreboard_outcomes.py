"""What counts as caught, as beside, as a healthy ticket, and as a miss of the bar."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.scoreboard import page
from benchmarks.scoreboard.alerts import Episode
from benchmarks.scoreboard.jobs import Job, Plan
from benchmarks.scoreboard.outcomes import Health, Outcome, health, missed, outcome, windows_until
from benchmarks.scoreboard.verdicts import Verdict, Verdicts
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.world import World

PLAN = Plan(World(), timedelta(days=14), timedelta(days=2))
HEALTHY = Job(PLAN)
BLACKLIST = Job(PLAN, "blacklist", "small")
STRIKES = int(PLAN.strikes.timestamp())
PAGE = ("page", (("recommender", "shop"),))


def alert(
    name: str, minute: int, until: int | None = None, severity: str = "ticket", **labels: str
) -> Episode:
    told = {"alertname": name, "severity": severity, "recommender": "shop", **labels}
    return Episode(told, STRIKES + minute * 60, until and STRIKES + until * 60)


def leak(minute: int) -> Episode:
    return alert("RecsysHardRuleViolated", minute, severity="page", rule="blacklist")


def seen(fired: list[Episode], healthy: list[Episode] | None = None, job: Job = BLACKLIST) -> Outcome:
    verdict = Verdict(job.name, tuple(fired), (PAGE,))
    return outcome(job, verdict, Verdict(HEALTHY.name, tuple(healthy or ()), ()))


def test_the_first_alert_that_is_named_counts_and_the_rest_stands_beside_it() -> None:
    other = alert("RecsysAnomaly", 76, cause="other")
    found = seen([alert("RecsysWatchdog", 1, severity="none"), leak(75), other, leak(200)])
    assert found.caught_by == ("RecsysHardRuleViolated (blacklist)",)
    assert found.beside == ("RecsysAnomaly (other)",)
    assert (found.windows, found.in_time, found.groups) == (1, True, 1)


@pytest.mark.parametrize(
    "fired",
    [
        [],
        [alert("RecsysHardRuleViolated", 75, severity="page", rule="item_expired")],
        [leak(-10)],  # it stood before
        [leak(0)],
        [leak(-90), leak(75)],  # it comes and goes anyway
    ],
)
def test_what_is_another_alert_or_came_before_catches_nothing(fired: list[Episode]) -> None:
    found = seen(fired)
    assert (found.caught_by, found.windows, found.in_time) == ((), None, False)


def test_what_fires_in_the_same_hours_without_the_incident_catches_nothing() -> None:
    assert seen([leak(75)], [leak(30)]).windows is None
    over = alert("RecsysHardRuleViolated", -90, -30, severity="page", rule="blacklist")
    assert seen([leak(75)], [over]).windows == 1
    assert seen([leak(75)], [leak(60 * 24)]).windows == 1


def test_windows_are_counted_by_the_clock_and_of_actions_an_hour_later() -> None:
    shown, clicks = INCIDENTS["blacklist"], INCIDENTS["click_logging_broken"]
    minutes = (5, 59, 76, 119, 121, 136, 196)
    assert [windows_until(minute * 60, shown) for minute in minutes] == [1, 1, 1, 1, 2, 2, 3]
    assert [windows_until(minute * 60, clicks) for minute in minutes] == [1, 1, 1, 1, 1, 1, 2]


def test_healthy_tickets_that_stand_at_the_same_time_are_one() -> None:
    fired = [
        alert("RecsysAnomaly", 0, 20, cause="a"),
        alert("RecsysAnomaly", 10, 40, cause="b"),
        alert("RecsysDrift", 30, 35),
        alert("RecsysAnomaly", 40, 50, cause="a"),
        alert("RecsysAnomaly", 51, 60, cause="c"),
        alert("RecsysWindowLate", 500),
        alert("RecsysDrift", 9000),
        alert("RecsysLogStalled", 20, severity="page"),
        alert("RecsysWatchdog", 0, severity="none"),
    ]
    found = health(HEALTHY, Verdict(HEALTHY.name, tuple(fired), ()))
    assert found.weeks == (14 * 24 - 1) / (7 * 24)  # they begin when something has been shown
    assert found.pages == ("RecsysLogStalled",)
    assert found.tickets == (
        ("RecsysAnomaly (a)", "RecsysAnomaly (b)", "RecsysDrift"),
        ("RecsysAnomaly (c)",),
        ("RecsysWindowLate", "RecsysDrift"),
    )


def made(name: str, size: str, windows: int | None, groups: int = 1) -> Outcome:
    return Outcome(Job(PLAN, name, size), (), windows, (), groups)  # type: ignore[arg-type]


def healthy(pages: int, tickets: int) -> Health:
    return Health(HEALTHY, 2.0, ("page",) * pages, (("ticket",),) * tickets)


@pytest.mark.parametrize(
    ("outcomes", "days", "misses"),
    [
        ([made("blacklist", "small", 2), made("order_broken", "middle", 2)], [healthy(0, 2)], []),
        ([made("order_broken", "small", None)], [], []),
        ([made("blacklist", "small", None)], [], ["blacklist-small-seed-1: not caught, of 2 allowed"]),
        (
            [made("order_broken", "large", 3)],
            [],
            ["order_broken-large-seed-1: caught only after 3 windows, of 2"],
        ),
        ([made("slow_drift", "large", 72)], [], []),
        ([made("slow_drift", "large", 73)], [], ["slow_drift-large-seed-1: caught only after 73 windows"]),
        ([made("blacklist", "large", 1, groups=2)], [], ["blacklist-large-seed-1: 2 groups of messages"]),
        ([], [healthy(1, 0)], ["healthy-seed-1: 1 pages in healthy days"]),
        ([], [healthy(0, 3)], ["healthy days: 3 tickets in 2.0 weeks"]),
        ([], [healthy(0, 3), healthy(0, 1)], []),
    ],
)
def test_the_bar(outcomes, days, misses) -> None:
    found = list(missed(outcomes, days))
    assert len(found) == len(misses)
    assert all(one.startswith(start) for one, start in zip(found, misses, strict=True))


def test_the_page_tells_what_was_found(tmp_path: Path) -> None:
    outcomes = [
        Outcome(
            Job(PLAN, "blacklist", "large"), ("RecsysHardRuleViolated (blacklist)",), 1, ("RecsysDrift",), 1
        ),
        made("order_broken", "middle", None, 0),
    ]
    misses = list(missed(outcomes, [healthy(0, 1)]))
    text = page.write([PLAN], outcomes, [healthy(0, 1)], misses, 1.25, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text("utf-8") == text
    assert (
        "| blacklist | not run | not run | 1 of 1, 1 w | large | RecsysHardRuleViolated (blacklist) | 1 |"
        in text
    )
    assert "| order_broken | not run | 0 of 1 | not run | - | - | 0 |" in text
    assert "| blacklist | RecsysDrift 1 |" in text
    assert "| seed-1 | 2.0 | 0 | 1 | 0.50 |" in text
    assert "- ticket: 1" in text
    assert "**The bar is missed in 1 points:**\n\n- order_broken-middle-seed-1: not caught" in text
    assert "Incidents strike 2 days and 0 hours after" in text
    assert "1.2 seconds of the processor" in text
    assert "**The bar is met.**" in page.write([PLAN], outcomes[:1], [], [], 0, tmp_path / "page.md")


def test_verdicts_are_kept_for_the_rules_that_they_were_given_by(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    path.write_text(
        '{"rules": "a", "name": "blacklist-small-seed-1", "groups": [["page", [["recommender", "x"]]]],'
        ' "episodes": [{"labels": {"alertname": "A"}, "since": 60, "until": null}]}\n',
        "utf-8",
    )
    kept = Verdicts(path, "a")
    assert BLACKLIST in kept
    assert kept[BLACKLIST].groups == (("page", (("recommender", "x"),)),)
    assert kept[BLACKLIST].episodes == (Episode({"alertname": "A"}, 60, None),)
    assert HEALTHY not in kept
    assert BLACKLIST not in Verdicts(path, "b")
    assert list(kept.judge([BLACKLIST], tmp_path)) == []
