"""How many actions a window holds: worked by hand, and counted one by one."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.results import Status
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.worlds import START, World, by_name, lists, results_of

HOSTILE = "click'; DROP TABLE feedback; --"
EVENTS = ("click", "buy", HOSTILE)
SETTINGS = MetricSettings(events={event: EventSettings() for event in EVENTS})
HOUR = timedelta(hours=1)


def action(event, user="u", item="a", request="r0", at=timedelta(minutes=1)):
    return {"user_id": user, "item_id": item, "request_id": request, "event": event, "ts": START + at}


def measured(feedback, given_settings=SETTINGS, **more):
    world = World(lists(("u", "ab"), ("v", "c")), feedback=feedback, **more)
    return by_name(results_of(world, given_settings, {"scene": "scene"}, only=("action_volume",)))


def values(found):
    return {event: found["action_volume", "", event].value for event in EVENTS}


def test_every_row_of_an_event_counts_whether_its_list_is_found_or_not():
    found = measured(
        [
            action("click"),
            action("click"),  # logged twice
            action("click", request=None, item="z"),  # not shown
            action("click", user=None, item=None, request="no such list"),
            action("buy"),
            action("scroll"),
            action(None),
        ]
    )
    assert values(found) == {"click": 4.0, "buy": 1.0, HOSTILE: 0.0}
    assert {one.samples for one in found.values()} == {7}
    assert {one.status for one in found.values()} == {Status.OK}
    assert len(found) == 3  # and no slices


def test_an_event_that_stops_while_others_go_on_is_measured_as_0():
    stopped = measured([action("buy")])["action_volume", "", "click"]
    assert (stopped.status, stopped.value, stopped.samples, stopped.detail) == (Status.OK, 0.0, 1, "")


def test_a_window_without_feedback_has_0_actions_and_is_not_ok():
    found = measured([])
    assert values(found) == dict.fromkeys(EVENTS, 0.0)
    assert {one.status for one in found.values()} == {Status.NO_DATA}
    assert {one.detail for one in found.values()} == {"no feedback in the window"}


def test_only_actions_in_the_window_count():
    own, later = action("click", at=HOUR - timedelta(seconds=1)), action("click", at=HOUR)
    found = measured([own], responses=[own, later], window=(START, START + HOUR))
    assert found["action_volume", "", "click"].value == 1.0


def test_without_a_feedback_log_there_is_no_result():
    assert results_of(World(lists(("u", "a"))), SETTINGS, only=("action_volume",)) == []


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([*EVENTS, "scroll", "CLICK", "", None]), max_size=12))
def test_the_volume_is_the_number_of_rows_of_each_event(events):
    found = measured([action(event) for event in events])
    assert values(found) == {event: float(Counter(events)[event]) for event in EVENTS}
    assert {one.samples for one in found.values()} == {len(events)}
