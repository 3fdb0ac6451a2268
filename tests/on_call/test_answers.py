"""What the metrics of an Alertmanager say about the receivers of a drill.

The servers here are no Alertmanager: Debian's is older than the one that tells receivers apart.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.on_call.alertmanager import AlertmanagerApi, AlertmanagerError, Integration, Requests
from monitor.on_call.drill import Answer, Drill
from monitor.on_call.routes import Muted
from monitor.settings.access import HttpServer
from tests.on_call.test_drill import answering

MADE, FAILED = "alertmanager_notification_requests_total", "alertmanager_notification_requests_failed_total"
TOLD_APART = f"""
# TYPE {MADE} counter
{MADE}{{integration="webhook",receiver_name="page"}} 3
{MADE}{{integration="webhook",receiver_name="dead-man"}} 40
# TYPE {FAILED} counter
{FAILED}{{integration="webhook",receiver_name="page"}} 2
"""


def requests(text: str) -> dict[Integration, Requests]:
    with answering(lambda: (200, text)) as url:
        return AlertmanagerApi(HttpServer(url=url)).requests()


def drill(**given: object) -> Drill:
    found = {
        "number": "1", "labels": {}, "ends": datetime(2026, 3, 2, tzinfo=UTC),
        "receivers": {"page": ("webhook",)}, "alike": {"webhook": ("page", "dead-man")},
    }  # fmt: skip
    return Drill(**{**found, **given})  # type: ignore[arg-type]


def test_receivers_are_told_apart_where_the_metrics_name_them() -> None:
    before, now = requests(TOLD_APART), requests(TOLD_APART.replace("} 3", "} 5").replace("} 40", "} 90"))
    assert drill().answers(before, now) == [Answer("page", "webhook", 2, 0)]


def test_receivers_of_one_kind_are_counted_together_where_they_are_not_named() -> None:
    to = Integration("webhook", None)
    found = drill().answers({to: Requests(1, 0)}, {to: Requests(4, 1)})
    assert found == [Answer("page", "webhook", 3, 1, ("dead-man",))]
    alone = drill(alike={"webhook": ("page",)}).answers({}, {to: Requests(4, 1)})
    assert alone == [Answer("page", "webhook", 4, 1)]


def test_every_integration_answers_and_one_that_is_surely_muted_is_left_out() -> None:
    receivers = {"page": ("slack", "email"), "night": ("slack",)}
    found = drill(receivers=receivers, muted={"night": Muted("at night", certain=True)}, alike={})
    now = {Integration("slack", None): Requests(1, 0)}
    assert found.answers({}, now) == [Answer("page", "slack", 1, 0), Answer("page", "email", 0, 0)]


def test_fewer_requests_than_before_are_a_restart() -> None:
    to = Integration("webhook", "page")
    assert drill().answers({to: Requests(9, 1)}, {to: Requests(2, 0)}) == [Answer("page", "webhook", -7, -1)]


@pytest.mark.parametrize("text", ["", "<html>", f"{MADE} 3", f'{MADE}{{integration="x"}} +Inf', "a{ 3"])
def test_metrics_that_do_not_count_requests_are_an_error(text: str) -> None:
    with pytest.raises(AlertmanagerError, match="/metrics does not count the requests to receivers"):
        requests(text)
