"""Recorded series through the real Prometheus, and their alerts through the real Alertmanager."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.scoreboard.alerts import Alert, Episode, read_alerts
from benchmarks.scoreboard.groups import alertmanager, messages
from benchmarks.scoreboard.messages import Message
from benchmarks.scoreboard.openmetrics import Target
from benchmarks.scoreboard.prometheus import episodes, make_blocks
from benchmarks.scoreboard.series import Key, Recorded
from tests.conftest import need

DAY = 29_000_000  # a minute since 1970, far from today
MINUTE = 60


def minutes(moment: int | None, first: int) -> int | None:
    return None if moment is None else moment // MINUTE - first


def keeps(name: str) -> int:
    """Minutes for which an alert keeps firing."""
    (found,) = (one.keep for one in read_alerts() if one.name == name)
    return int(found) // 60


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
        "one": [("RecsysHardRuleViolated", "page", 20, 30 + keeps("RecsysHardRuleViolated"))],
        "two": [("RecsysSoftRuleViolated", "ticket", 40, 50 + keeps("RecsysSoftRuleViolated"))],
        "none": [],
    }
    assert found["one"][0].labels["recommender"] == "one"


def test_an_alert_can_read_a_counter_of_the_day_before() -> None:
    need("promtool", "prometheus")
    first, last = DAY, DAY + 30
    total: Key = (
        "recsys_rule_violations_total",
        (("recommender", "shop"), ("rule", "blacklist"), ("kind", "hard")),
    )
    since: Key = ("recsys_rule_violated_timestamp_seconds", total[1])
    old = Recorded()  # violated five hours before, and told of then
    old.take(first - 300, {total: 3.0, since: (first - 310) * 60.0})
    new = Recorded()  # the same counter, never seen before
    new.take(first, {total: 3.0, since: (first - 310) * 60.0})
    found = episodes([Target("old", old, first, last), Target("new", new, first, last)], read_alerts())
    assert [one.name for one in found["old"]] == []
    assert [one.name for one in found["new"]] == ["RecsysHardRuleViolated"]


def test_a_series_that_ends_resolves_its_alert_and_none_fires_before_the_run() -> None:
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
    assert [(minutes(one.since, DAY), minutes(one.until, DAY)) for one in found["gone"]] == [
        (10, 20 + keeps("RecsysHardRuleViolated"))
    ]
    assert found["risen"] == []


def test_an_alert_that_reads_its_own_state_keeps_firing() -> None:
    need("promtool", "prometheus")
    labels = (("recommender", "shop"), ("cause", "traffic_lost"))
    severity: Key = ("recsys_anomaly_severity_ratio", labels)
    status: Key = ("recsys_anomaly_status", (*labels, ("status", "violated")))

    def run(first: int, *severities: float) -> Recorded:
        recorded = Recorded()
        for number, one in enumerate(severities):
            recorded.take(first + number * 30, {severity: one, status: 1.0})
        return recorded

    targets = [
        Target("stands", run(DAY, 0.6, 0.3, 0.3, 0.1), DAY, DAY + 140),
        Target("never", run(DAY, 0.3, 0.3, 0.3, 0.1), DAY, DAY + 140),
        Target("again", run(DAY, 0.6, 0.1, 0.3, 0.6), DAY, DAY + 110),
    ]
    found = {
        name: [
            (minutes(one.since, DAY), minutes(one.until, DAY))
            for one in some
            if one.name == "RecsysAnomalySevere"
        ]
        for name, some in episodes(targets, read_alerts()).items()
    }
    keep = keeps("RecsysAnomalySevere")
    assert found == {"stands": [(0, 90 + keep)], "never": [], "again": [(0, 30 + keep), (90, None)]}


def test_an_alert_that_reads_the_state_of_another_fires_with_it() -> None:
    need("promtool", "prometheus")
    shop = ("recommender", "shop")

    def run(*errors: float) -> Recorded:
        recorded = Recorded()
        for minute, count in enumerate(errors):
            recorded.take(
                DAY + minute,
                {
                    ("recsys_store_errors_total", (("fault", "full"),)): count,
                    ("recsys_recommender_info", (shop, ("owned_by", ""))): 1.0,
                },
            )
        return recorded

    counts = {"full": range(40), "fine": [0] * 40}
    targets = [Target(name, run(*map(float, some)), DAY, DAY + 39) for name, some in counts.items()]
    found = episodes(targets, read_alerts())
    page, note = (
        next(one for one in found["full"] if one.name == name)
        for name in ("RecsysHistoryErrors", "RecsysNotRecorded")
    )
    assert (note.since, note.until) == (page.since, None)
    assert note.labels["recommender"] == "full"
    assert not {"RecsysHistoryErrors", "RecsysNotRecorded"} & {one.name for one in found["fine"]}


@pytest.mark.parametrize(
    "asked",
    ['alertname=~"B|C", alertstate="firing"', 'alertname="B", alertstate="pending"', 'recommender="x"'],
)
def test_an_alert_that_asks_for_more_than_one_other_that_fires_is_refused(asked: str) -> None:
    need("promtool", "prometheus")
    asks = Alert("A", f"up == 1 and on () ALERTS{{{asked}}} or up", 0, 0, {})
    with pytest.raises(ValueError, match="A asks more than whether one other alert fires"):
        episodes([Target("one", Recorded(), DAY, DAY + 1)], [asks])


def test_two_alerts_deep_is_refused() -> None:
    need("promtool", "prometheus")
    chain = [
        Alert(name, f'up unless on () ALERTS{{alertname="{asked}", alertstate="firing"}}', 0, 0, {})
        for name, asked in (("A", "B"), ("B", "C"))
    ]
    with pytest.raises(ValueError, match="B reads the state of an alert, and another alert reads its own"):
        episodes([Target("one", Recorded(), DAY, DAY + 1)], chain)


def test_invalid_openmetrics_is_an_error(tmp_path: Path) -> None:
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


def sent(url: str, episodes: list[Episode], since: int = 0, end: int = 500) -> list[tuple[float, str, str]]:
    """Minute, receiver and the names of what is told, of each message."""
    found: list[Message] = messages(url, episodes, since * MINUTE, end * MINUTE)
    return [
        (one.moment / MINUTE, one.receiver, " ".join(dict(labels)["alertname"] for labels in one.told))
        for one in found
    ]


def test_a_page_inhibits_tickets_of_its_own_recommender_only(url: str) -> None:
    incident = [
        alert("RecsysAnomalySevere", "page", 10, None, recommender="a", cause="traffic_lost"),
        alert("RecsysAnomaly", "ticket", 10, 90, recommender="a", cause="other"),
        alert("RecsysSoftRuleViolated", "ticket", 12, None, recommender="a", rule="s"),
        alert("RecsysWatchdog", "none", 0, None),
    ]
    page = [(10.5, "page", "RecsysAnomalySevere"), (255.5, "page", "RecsysAnomalySevere")]
    assert sent(url, incident, 9) == page
    elsewhere = alert("RecsysAnomaly", "ticket", 10, 90, recommender="b", cause="other")
    assert sent(url, [*incident, elsewhere], 9) == sorted([*page, (15, "ticket", "RecsysAnomaly")])


def test_maintenance_inhibits_and_sends_nothing(url: str) -> None:
    quiet = alert("RecsysMaintenance", "none", 10, 60, recommender="a")
    one = alert("RecsysAnomaly", "ticket", 10, None, recommender="a", cause="other")
    assert sent(url, [quiet, one]) == [(65, "ticket", "RecsysAnomaly")]


def test_many_tickets_are_one_message_and_a_short_one_sends_none(url: str) -> None:
    many = [alert("RecsysAnomaly", "ticket", 10, 90, recommender="a", cause=str(n)) for n in range(3)]
    assert sent(url, many) == [(15, "ticket", "RecsysAnomaly RecsysAnomaly RecsysAnomaly")]
    short = [alert("RecsysAnomaly", "ticket", 10, 12, recommender="a", cause="other")]
    assert sent(url, short) == []
    again = [alert("RecsysAnomaly", "ticket", 30, 60, recommender="a", cause="other")]
    assert sent(url, [*short, *again]) == [(35, "ticket", "RecsysAnomaly")]


def test_a_ticket_long_before_the_page_has_its_own_message(url: str) -> None:
    ticket = alert("RecsysAnomaly", "ticket", 10, None, recommender="a", cause="other")
    page = alert("RecsysAnomalySevere", "page", 60, None, recommender="a", cause="c")
    assert [receiver for _, receiver, _ in sent(url, [ticket, page], end=100)] == ["ticket", "page"]
    soon = alert("RecsysAnomalySevere", "page", 11, None, recommender="a", cause="c")
    assert [receiver for _, receiver, _ in sent(url, [ticket, soon], end=100)] == ["page"]


def test_an_alert_that_ended_before_the_incident_does_not_count(url: str) -> None:
    before = alert("RecsysAnomaly", "ticket", 10, 50, recommender="a", cause="other")
    assert sent(url, [before], 60) == []
    assert sent(url, []) == []
