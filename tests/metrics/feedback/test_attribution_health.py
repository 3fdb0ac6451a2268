"""Every action of the window is in one share of its event, or in one of the counts beside them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitor.core.results import Status
from monitor.metrics.feedback.attribution_health import AttributionHealth
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.worlds import START, World, by_name, lists, results_of, shared_of

NAMES = ("attribution", "other_events", "actions_without_item")
WAYS = ("request", "user", "not_shown", "unattributed")
SETTINGS = MetricSettings(events={"click": EventSettings(), "buy": EventSettings(grade=2)})


def action(user, item, request=None, event="click", minute=1):
    return {
        "user_id": user,
        "item_id": item,
        "request_id": request,
        "event": event,
        "ts": START + timedelta(minutes=minute),
    }


def measured(feedback, settings=SETTINGS):
    world = World(lists(("u", "ab"), ("v", "c")), feedback=feedback)
    return by_name(results_of(world, settings, {"scene": "scene"}, only=NAMES))


def test_the_ways_of_attribution_add_up_and_other_events_are_counted():
    found = measured(
        [
            action("u", "a", "r0"),
            action("u", "a", "r0"),  # logged twice
            action("u", "b"),
            action("u", "z"),
            action("x", "a"),
            action("u", "a", event="buy"),
            action("u", "a", event="<scroll>"),
            action("u", "a", event=None),
            action("u", None, "r0"),
            action("u", None, event="scroll"),
        ]
    )
    assert [found["attribution", way, "click"].value for way in WAYS] == [2 / 5, 1 / 5, 1 / 5, 1 / 5]
    assert {found["attribution", way, "click"].samples for way in WAYS} == {5}
    assert [found["attribution", way, "buy"].value for way in WAYS] == [0, 1, 0, 0]
    assert found["attribution", "request", "click"].lower == pytest.approx(0.117621, abs=1e-6)
    assert (found["other_events", ""].value, found["other_events", ""].samples) == (3, 10)
    assert found["actions_without_item", ""].value == 1
    assert len(found) == 10  # and no slices


def test_a_user_and_an_action_without_a_user_never_count_as_one():
    def lost(prefix):
        feedback = [action(f"{prefix}{n}", "a", minute=n) for n in range(10)]
        feedback += [action(None, "z", minute=n) for n in range(10)]  # these have numbers of their own
        world = World(lists((f"{prefix}0", "ab"), (f"{prefix}1", "c")), feedback=feedback)
        return by_name(results_of(world, SETTINGS, only=("unattributed",)))["unattributed", ""]

    assert lost("").samples == 20
    assert (lost("").lower, lost("").upper) == (lost("user ").lower, lost("user ").upper)


def test_an_event_without_actions_has_no_data_and_the_counts_are_zero():
    found = measured([action("u", "a")])
    assert {found["attribution", way, "buy"].status for way in WAYS} == {Status.NO_DATA}
    assert found["other_events", ""].value == found["actions_without_item", ""].value == 0


def test_without_feedback_nothing_has_a_value():
    found = measured([])
    assert {result.status for result in found.values()} == {Status.NO_DATA}
    assert all(result.detail for result in found.values())


def test_the_declared_series_are_the_measured_ones():
    shared = shared_of(World(lists(("u", "a")), feedback=[action("u", "a")]))
    family = AttributionHealth()
    rows = family.measure(shared, SETTINGS).to_pyarrow().to_pylist()
    given = [(r.metric, dict(r.labels)) for r in family.results(rows, SETTINGS)]
    declared = [(spec.name, labels) for spec, labels in family.series(SETTINGS)]
    assert sorted(given, key=str) == sorted(declared, key=str)
