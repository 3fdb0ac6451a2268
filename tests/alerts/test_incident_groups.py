"""One incident, one message; maintenance and silences hold everything back: the real Alertmanager says so."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from tests.alerts.posted import SEVERITIES, Group, alert, assert_groups, delete, post, resolved, running
from tests.end_to_end.servers import Alertmanager
from tests.processes import ROOT

CONFIG = yaml.safe_load((ROOT / "deploy/alertmanager.yml").read_text("utf-8"))
OF_THE_MONITOR = {
    "RecsysMonitorDown",
    "RecsysWatchdog",
    "RecsysConfigReloadFailed",
    "RecsysHistoryErrors",
    "RecsysSeriesBudgetReached",
    "RecsysSpareMonitorDown",
}
OF_A_RECOMMENDER = {name: to for name, to in SEVERITIES.items() if name not in OF_THE_MONITOR}


@pytest.fixture
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    with running(tmp_path_factory.mktemp("alertmanager")) as server:
        yield server


def of(severity: str) -> tuple[str, ...]:
    """Every alert on a recommender with this severity, one of each."""
    return tuple(sorted(name for name, to in OF_A_RECOMMENDER.items() if to == severity))


def test_an_incident_with_every_page_and_ticket_that_there_is_is_one_message(
    alertmanager: Alertmanager,
) -> None:
    post(alertmanager, [alert(name) for name in (*of("page"), *of("ticket"))])
    # The first two say less than RecsysLogStalled, the last less than RecsysPrunedFeatures of the same model.
    held = ("RecsysMonitorStuck", "RecsysRecommenderError", "RecsysServingSkew")
    assert_groups(
        alertmanager,
        Group("page", "shop", tuple(name for name in of("page") if name not in held), held=held),
        Group("ticket", "shop", (), held=of("ticket")),
    )


def test_tickets_of_one_incident_are_one_message_and_two_recommenders_are_two(
    alertmanager: Alertmanager,
) -> None:
    lists = [alert("RecsysAnomaly", cause=cause) for cause in ("lists_empty", "few_items")]
    drifts = [alert("RecsysDrift", metric=metric, by="pv", of="") for metric in ("failure", "coverage")]
    elsewhere = [
        alert("RecsysAnomaly", "news", cause="lists_empty"),
        alert("RecsysHardRuleViolated", "video"),
    ]
    post(alertmanager, [*lists, *drifts, alert("RecsysSoftRuleViolated", rule="price"), *elsewhere])
    assert_groups(
        alertmanager,
        Group(
            "ticket",
            "shop",
            ("RecsysAnomaly", "RecsysAnomaly", "RecsysDrift", "RecsysDrift", "RecsysSoftRuleViolated"),
        ),
        Group("ticket", "news", ("RecsysAnomaly",)),
        Group("page", "video", ("RecsysHardRuleViolated",)),
    )


def test_tickets_are_sent_when_the_page_that_held_them_back_resolves(alertmanager: Alertmanager) -> None:
    page, ticket = alert("RecsysAnomalySevere", cause="lists_empty"), alert("RecsysDrift", metric="failure")
    post(alertmanager, [page, ticket])
    assert_groups(
        alertmanager,
        Group("page", "shop", ("RecsysAnomalySevere",)),
        Group("ticket", "shop", (), held=("RecsysDrift",)),
    )
    post(alertmanager, [resolved(page), ticket])
    assert_groups(alertmanager, Group("ticket", "shop", ("RecsysDrift",)))


def test_a_hard_rules_page_holds_back_no_ticket_for_it_explains_nothing_else(
    alertmanager: Alertmanager,
) -> None:
    stale = alert("RecsysAnomaly", cause="lists_stale")
    post(alertmanager, [alert("RecsysHardRuleViolated", rule="item_expired"), stale])
    assert_groups(
        alertmanager,
        Group("page", "shop", ("RecsysHardRuleViolated",)),
        Group("ticket", "shop", ("RecsysAnomaly",)),
    )


def test_a_page_about_the_monitor_itself_holds_back_no_ticket_of_the_monitor(
    alertmanager: Alertmanager,
) -> None:
    about = {"instance": "m:9108"}
    post(
        alertmanager,
        [
            alert("RecsysHistoryErrors", "", fault="full", **about),
            alert("RecsysConfigReloadFailed", "", **about),
        ],
    )
    assert_groups(
        alertmanager,
        Group("page", "", ("RecsysHistoryErrors",)),
        Group("ticket", "", ("RecsysConfigReloadFailed",)),
    )


def test_a_spare_monitor_that_is_down_is_a_ticket_and_holds_back_nothing_until_no_monitor_is_left(
    alertmanager: Alertmanager,
) -> None:
    spare = alert("RecsysSpareMonitorDown", "", job="recsys-monitor", instance="a:9108")
    late = alert("RecsysRunsMissed")
    post(alertmanager, [spare, late])
    assert_groups(
        alertmanager,
        Group("ticket", "", ("RecsysSpareMonitorDown",)),
        Group("ticket", "shop", ("RecsysRunsMissed",)),
    )
    down = [
        alert("RecsysMonitorDown", "", job="recsys-monitor", instance=one) for one in ("a:9108", "b:9108")
    ]
    post(alertmanager, [spare, late, *down])
    assert_groups(
        alertmanager,
        Group("page", "", ("RecsysMonitorDown", "RecsysMonitorDown")),
        Group("ticket", "", (), held=("RecsysSpareMonitorDown",)),
        Group("ticket", "shop", ("RecsysRunsMissed",)),  # it may come from a third monitor
    )
    none_is_left = alert("RecsysMonitorDown", "", job="recsys-monitor")
    post(alertmanager, [spare, late, *down, none_is_left])
    assert_groups(
        alertmanager,
        Group("page", "", ("RecsysMonitorDown", "RecsysMonitorDown", "RecsysMonitorDown")),
        Group("ticket", "", (), held=("RecsysSpareMonitorDown",)),
        Group("ticket", "shop", (), held=("RecsysRunsMissed",)),
    )


def test_a_history_out_of_reach_is_one_message_and_holds_back_no_verdict(alertmanager: Alertmanager) -> None:
    runs = [alert("RecsysRunsFail"), alert("RecsysMonitorStuck", instance="m:9108")]
    runs.append(alert("RecsysWindowLate", "blog"))
    verdicts = [
        alert("RecsysHardRuleViolated", "news"),
        alert("RecsysMonitorStuck", "video", instance="n:9108"),
        *(alert(name, "of another history") for name in ("RecsysRunsFail", "RecsysWindowLate")),
    ]
    history = [
        alert("RecsysHistoryErrors", "", fault="full", instance="m:9108"),
        *(alert("RecsysNotRecorded", name) for name in ("shop", "blog")),
    ]
    post(alertmanager, [*history, *runs, *verdicts])
    others = (
        Group("page", "news", ("RecsysHardRuleViolated",)),
        Group("page", "video", ("RecsysMonitorStuck",)),
        Group("ticket", "of another history", ("RecsysRunsFail", "RecsysWindowLate")),
    )
    assert_groups(
        alertmanager,
        *(Group("nobody", name, ("RecsysNotRecorded",)) for name in ("shop", "blog")),
        Group("page", "", ("RecsysHistoryErrors",)),
        Group("page", "shop", (), held=("RecsysMonitorStuck",)),
        Group("ticket", "shop", (), held=("RecsysRunsFail",)),
        Group("ticket", "blog", (), held=("RecsysWindowLate",)),
        *others,
    )
    # What stands when the history is well again has another reason.
    post(alertmanager, [*map(resolved, history), *runs, *verdicts])
    assert_groups(
        alertmanager,
        Group("page", "shop", ("RecsysMonitorStuck",)),
        Group("ticket", "shop", (), held=("RecsysRunsFail",)),
        Group("ticket", "blog", ("RecsysWindowLate",)),
        *others,
    )


def test_a_log_that_has_stopped_is_one_message(alertmanager: Alertmanager) -> None:
    tickets = ("RecsysFeedbackStalled", "RecsysNoData", "RecsysWindowLate")
    gone = ("RecsysRecommenderError",)  # in the end there is no file left
    post(alertmanager, [alert("RecsysLogStalled"), *map(alert, (*tickets, *gone))])
    assert_groups(
        alertmanager,
        Group("page", "shop", ("RecsysLogStalled",), held=gone),
        Group("ticket", "shop", (), held=tickets),
    )


def test_a_log_that_is_slower_when_it_comes_again_is_no_second_message(alertmanager: Alertmanager) -> None:
    stalled, returns, late = map(alert, ("RecsysLogStalled", "RecsysLogReturns", "RecsysWindowLate"))
    quiet, page = Group("nobody", "shop", ("RecsysLogReturns",)), Group("page", "shop", ("RecsysLogStalled",))
    post(alertmanager, [stalled, returns, late, alert("RecsysWindowLate", "news")])
    news = Group("ticket", "news", ("RecsysWindowLate",))
    assert_groups(alertmanager, quiet, page, news, Group("ticket", "shop", (), held=("RecsysWindowLate",)))
    post(alertmanager, [resolved(stalled), late])
    assert_groups(alertmanager, quiet, news, Group("ticket", "shop", (), held=("RecsysWindowLate",)))
    post(alertmanager, [resolved(returns), late])
    assert_groups(alertmanager, news, Group("ticket", "shop", ("RecsysWindowLate",)))


def test_a_hard_rule_explains_numbers_without_a_cause_and_no_other_ticket(alertmanager: Alertmanager) -> None:
    other, stale = (alert("RecsysAnomaly", cause=cause) for cause in ("other", "lists_stale"))
    elsewhere = alert("RecsysAnomaly", "news", cause="other")
    post(alertmanager, [alert("RecsysHardRuleViolated", rule="blacklist"), other, stale, elsewhere])
    assert_groups(
        alertmanager,
        Group("page", "shop", ("RecsysHardRuleViolated",)),
        Group("ticket", "shop", ("RecsysAnomaly",), held=("RecsysAnomaly",)),
        Group("ticket", "news", ("RecsysAnomaly",)),
    )


def test_returning_feedback_does_not_page_for_the_missing_actions(alertmanager: Alertmanager) -> None:
    returns = alert("RecsysFeedbackReturns")
    lost = alert("RecsysAnomalySevere", cause="clicks_lost")
    post(
        alertmanager,
        [
            returns,
            lost,
            alert("RecsysAnomaly", cause="clicks_lost"),
            alert("RecsysAnomalySevere", "news", cause="clicks_lost"),
        ],
    )
    news = Group("page", "news", ("RecsysAnomalySevere",))
    quiet = Group("nobody", "shop", ("RecsysFeedbackReturns",))
    ticket = Group("ticket", "shop", (), held=("RecsysAnomaly",))
    assert_groups(alertmanager, quiet, news, Group("page", "shop", (), held=("RecsysAnomalySevere",)), ticket)
    empty = alert("RecsysAnomalySevere", cause="lists_empty")
    post(alertmanager, [empty])
    held = Group("page", "shop", ("RecsysAnomalySevere",), held=("RecsysAnomalySevere",))
    assert_groups(alertmanager, quiet, news, held, ticket)
    post(alertmanager, [resolved(returns), resolved(empty), lost])
    assert_groups(alertmanager, news, Group("page", "shop", ("RecsysAnomalySevere",)), ticket)


def test_maintenance_holds_back_all_of_its_recommender_and_nothing_of_another_or_of_the_monitor(
    alertmanager: Alertmanager,
) -> None:
    mine = [alert(name) for name in (*of("page"), *of("ticket"))]
    post(
        alertmanager,
        [
            *mine,
            alert("RecsysMaintenance"),
            alert("RecsysHardRuleViolated", "news"),
            alert("RecsysWatchdog", ""),
            alert("RecsysMonitorDown", "", instance="m:9108"),
            alert("RecsysMonitorDown", "shop", instance="m:9108"),
        ],
    )
    assert_groups(
        alertmanager,
        Group("dead-man", "", ("RecsysWatchdog",)),
        Group("nobody", "shop", ("RecsysMaintenance",)),
        Group("page", "", ("RecsysMonitorDown",)),
        Group("page", "news", ("RecsysHardRuleViolated",)),
        Group("page", "shop", ("RecsysMonitorDown",), held=of("page")),
        Group("ticket", "shop", (), held=of("ticket")),
    )


def test_alerts_that_still_fire_when_maintenance_ends_are_sent(alertmanager: Alertmanager) -> None:
    quiet, page = alert("RecsysMaintenance"), alert("RecsysHardRuleViolated", rule="blacklist")
    post(alertmanager, [quiet, page])
    assert_groups(
        alertmanager,
        Group("nobody", "shop", ("RecsysMaintenance",)),
        Group("page", "shop", (), held=("RecsysHardRuleViolated",)),
    )
    post(alertmanager, [resolved(quiet), page])
    assert_groups(alertmanager, Group("page", "shop", ("RecsysHardRuleViolated",)))


def test_a_silence_on_a_recommender_holds_everything_of_it_back_until_it_is_expired(
    alertmanager: Alertmanager,
) -> None:
    now = datetime.now(UTC)
    silence = {
        "matchers": [{"name": "recommender", "value": "shop", "isRegex": False, "isEqual": True}],
        "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(hours=2)).isoformat(),
        "createdBy": "test",
        "comment": "move of the shop",
    }
    made = post(alertmanager, silence, "silences")["silenceID"]
    post(alertmanager, [alert("RecsysHardRuleViolated"), alert("RecsysRunsFail")])
    post(alertmanager, [alert("RecsysAnomaly", "news", cause="few_items")])
    news = Group("ticket", "news", ("RecsysAnomaly",))
    assert_groups(
        alertmanager,
        Group("page", "shop", (), held=("RecsysHardRuleViolated",)),
        Group("ticket", "shop", (), held=("RecsysRunsFail",)),
        news,
    )
    delete(alertmanager, f"silence/{made}")
    assert_groups(
        alertmanager,
        Group("page", "shop", ("RecsysHardRuleViolated",)),
        Group("ticket", "shop", ("RecsysRunsFail",)),
        news,
    )


def test_an_incident_of_days_is_not_sent_every_hour() -> None:
    told_again = {route["receiver"]: route.get("repeat_interval") for route in CONFIG["route"]["routes"]}
    assert told_again["page"] == "4h"
    assert CONFIG["route"]["repeat_interval"] == "3d"
    assert told_again["ticket"] is None, "tickets go by the root's"


def test_every_route_groups_by_the_recommender_alone_but_for_the_watchdog() -> None:
    assert CONFIG["route"]["group_by"] == ["recommender"]
    apart = [route["receiver"] for route in CONFIG["route"]["routes"] if "group_by" in route]
    assert apart == ["dead-man"]
    assert not [route for route in CONFIG["route"]["routes"] if "routes" in route]
