"""Recorded series through the real Prometheus, and their alerts through the real Alertmanager."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.scoreboard.alerts import Episode, read_alerts
from benchmarks.scoreboard.groups import alertmanager, notified
from benchmarks.scoreboard.openmetrics import Target
from benchmarks.scoreboard.prometheus import episodes, make_blocks
from benchmarks.scoreboard.series import Key, Recorded
from tests.conftest import need

DAY = 29_000_000  # a minute since 1970, far from today
MINUTE = 60


def minutes(moment: int | None, first: int) -> int | None:
    return None if moment is None else moment // MINUTE - first


def violated(rule: str, kind: str, since: int, until: int, first: int, last: int) -> Recorded:
    """A rule that stands violated from one minute to before another, and is gone a while later."""
    labels = (("recommender", "shop"), ("rule", rule), ("kind", kind))
    status: Key = ("recsys_rule_status", (*labels, ("status", "violated")))
    late: Key = ("recsys_rule_status", (*labels, ("status", "late")))
    recorded = Recorded()
    for minute in (first, since, until):
        recorded.take(minute, {status: float(minute == since), late: 0.0})
    recorded.take(last - 5, {})
    return recorded


def test_each_run_has_its_own_alerts_and_the_time_that_they_fire() -> None:
    need("promtool", "prometheus")
    first, last = DAY, DAY + 100
    targets = [
        Target("one", violated("blacklist", "hard", first + 20, first + 30, first, last), first, last),
        Target("two", violated("lists", "soft", first + 40, first + 50, first, last), first + 10, last + 30),
        Target("none", Recorded(), first, last),
    ]
    found = episodes(targets, read_alerts())
    assert list(found) == ["one", "two", "none"]
    told = {
        name: [(one.name, one.severity, minutes(one.since, first), minutes(one.until, first)) for one in some]
        for name, some in found.items()
    }
    assert told == {
        "one": [("RecsysHardRuleViolated", "page", 20, 30)],
        "two": [("RecsysSoftRuleViolated", "ticket", 40, 65)],  # it keeps firing for 15 minutes
        "none": [],
    }
    assert found["one"][0].labels["recommender"] == "one"


def test_a_counter_of_the_day_before_is_known_where_an_alert_reads_it() -> None:
    need("promtool", "prometheus")
    first, last = DAY, DAY + 30
    total: Key = (
        "recsys_rule_violations_total",
        (("recommender", "shop"), ("rule", "blacklist"), ("kind", "hard")),
    )
    since: Key = ("recsys_rule_since_timestamp_seconds", total[1])
    old = Recorded()  # violated five hours before, and told of then
    old.take(first - 300, {total: 3.0, since: (first - 310) * 60.0})
    new = Recorded()  # the same counter, never seen before
    new.take(first, {total: 3.0, since: (first - 310) * 60.0})
    found = episodes([Target("old", old, first, last), Target("new", new, first, last)], read_alerts())
    assert [one.name for one in found["old"]] == []
    assert [one.name for one in found["new"]] == ["RecsysHardRuleViolated"]


def test_a_series_that_is_gone_ends_its_alert_at_once_and_none_fires_before_the_run_begins() -> None:
    need("promtool", "prometheus")
    labels = (("recommender", "shop"), ("rule", "blacklist"), ("kind", "hard"))
    status: Key = ("recsys_rule_status", (*labels, ("status", "violated")))
    total: Key = ("recsys_rule_violations_total", labels)
    gone = Recorded()
    gone.take(DAY + 10, {status: 1.0})
    gone.take(DAY + 20, {})
    risen = Recorded()  # what has been told of before the run that is looked at
    risen.take(DAY, {total: 0.0})
    risen.take(DAY + 10, {total: 1.0})
    targets = [Target("gone", gone, DAY, DAY + 100), Target("risen", risen, DAY + 60, DAY + 100)]
    found = episodes(targets, read_alerts())
    assert [(minutes(one.since, DAY), minutes(one.until, DAY)) for one in found["gone"]] == [(10, 20)]
    assert found["risen"] == []


def test_text_that_is_no_openmetrics_is_an_error(tmp_path) -> None:
    need("promtool", "prometheus")
    (tmp_path / "bad.om").write_text("recsys_x{ 1\n# EOF\n", "utf-8")
    with pytest.raises(RuntimeError, match="promtool"):
        make_blocks(tmp_path / "bad.om", tmp_path / "data")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    need("prometheus-alertmanager", "prometheus-alertmanager")
    with alertmanager() as found:
        yield found


def alert(name: str, severity: str, since: int, until: int | None, **labels: str) -> Episode:
    return Episode(
        {"alertname": name, "severity": severity, **labels}, since * MINUTE, until and until * MINUTE
    )


def test_a_page_holds_back_the_tickets_of_its_recommender_alone(url: str) -> None:
    incident = [
        alert("RecsysHardRuleViolated", "page", 10, None, recommender="a", rule="r"),
        alert("RecsysAnomaly", "ticket", 10, 90, recommender="a", cause="other"),
        alert("RecsysSoftRuleViolated", "ticket", 12, None, recommender="a", rule="s"),
        alert("RecsysWatchdog", "none", 0, None),
    ]
    page = ("page", (("recommender", "a"),))
    assert notified(url, incident, 9 * MINUTE) == {page}
    elsewhere = alert("RecsysAnomaly", "ticket", 10, 90, recommender="b", cause="other")
    assert notified(url, [*incident, elsewhere], 9 * MINUTE) == {page, ("ticket", (("recommender", "b"),))}


def test_many_tickets_are_one_group_and_one_that_is_over_at_once_sends_nothing(url: str) -> None:
    many = [alert("RecsysAnomaly", "ticket", 10, 90, recommender="a", cause=str(n)) for n in range(5)]
    ticket = ("ticket", (("recommender", "a"),))
    assert notified(url, many, 0) == {ticket}
    short = [alert("RecsysAnomaly", "ticket", 10, 12, recommender="a", cause="other")]
    assert notified(url, short, 0) == set()
    again = [alert("RecsysAnomaly", "ticket", 30, 60, recommender="a", cause="other")]
    assert notified(url, [*short, *again], 0) == {ticket}


def test_a_ticket_that_comes_long_before_the_page_is_a_message_of_its_own(url: str) -> None:
    ticket = alert("RecsysAnomaly", "ticket", 10, None, recommender="a", cause="other")
    page = alert("RecsysHardRuleViolated", "page", 60, None, recommender="a", rule="r")
    assert {receiver for receiver, _ in notified(url, [ticket, page], 0)} == {"ticket", "page"}
    soon = alert("RecsysHardRuleViolated", "page", 11, None, recommender="a", rule="r")
    assert {receiver for receiver, _ in notified(url, [ticket, soon], 0)} == {"page"}


def test_what_fired_before_the_incident_and_is_over_then_counts_no_more(url: str) -> None:
    before = alert("RecsysAnomaly", "ticket", 10, 50, recommender="a", cause="other")
    assert notified(url, [before], 60 * MINUTE) == set()
    assert notified(url, [], 0) == set()
