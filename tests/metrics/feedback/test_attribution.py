"""Which list an action belongs to: by hand, and against a search through all lists."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from monitor.metrics.attribution import acted, attributed, other_events, relevant
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.worlds import START, World, lists, shared_of

MINUTE = timedelta(minutes=1)
SETTINGS = MetricSettings(
    attribution="30m",
    events={"click": EventSettings(), "buy": EventSettings(grade=3), "hide": EventSettings(grade=0)},
)


def action(user, item, minute, event="click", request=None, value=None):
    return {
        "user_id": user,
        "item_id": item,
        "ts": START + minute * MINUTE,
        "event": event,
        "request_id": request,
        "value": value,
    }


def world(exposures, feedback, **more):
    return World(
        exposures,
        feedback=feedback,
        columns=("position", "score"),
        feedback_columns=("request_id", "value"),
        **more,
    )


def found(world, settings=SETTINGS):
    """(user, item, minute, event) -> how it was found, and its list."""
    rows = attributed(shared_of(world), settings).to_pyarrow().to_pylist()
    return {
        (r["user_id"], r["item_id"], (r["ts"] - START) // MINUTE, r["event"]): (r["found"], r["request_id"])
        for r in rows
    }


def test_the_request_id_names_the_list_else_it_is_the_latest_with_the_item():
    shown = lists(("u", "ab"), ("u", "ab"), ("u", "c"))
    done = [
        action("u", "a", 5, request="r0"),
        action("u", "b", 5),
        action("u", "z", 5),
        action("u", "z", 6, request="r1"),
        action("v", "a", 5),
        action("u", "c", 1),
    ]
    assert found(world(shown, done)) == {
        ("u", "a", 5, "click"): ("request", "r0"),
        ("u", "b", 5, "click"): ("user", "r1"),
        ("u", "z", 5, "click"): ("not_shown", "r2"),
        ("u", "z", 6, "click"): ("not_shown", "r1"),
        ("v", "a", 5, "click"): ("unattributed", None),
        # c was shown a minute later: the list of that moment did not hold it
        ("u", "c", 1, "click"): ("not_shown", "r1"),
    }


def test_an_action_counts_up_to_the_end_of_the_attribution_by_request_and_by_user():
    shown = lists(("u", "ab"))
    done = [
        action("u", "a", 30, request="r0"),
        action("u", "a", 31, request="r0"),
        action("u", "b", 30),
        action("u", "b", 31),
        action("u", "a", -1, request="r0"),
        action("u", "b", -1),
    ]
    assert [how for how, _ in found(world(shown, done)).values()].count("unattributed") == 3
    assert found(world(shown, done))["u", "a", -1, "click"] == ("request", "r0")


def test_an_unknown_request_id_is_matched_by_user_and_item():
    assert found(world(lists(("u", "a")), [action("u", "a", 1, request="elsewhere")])) == {
        ("u", "a", 1, "click"): ("user", "r0")
    }


def test_every_action_is_in_one_window():
    everything = lists(("u", "a"), ("u", "a"), ("u", "a"), ("u", "a"))  # minutes 0 to 3
    done = [action("u", "a", minute) for minute in range(40)] + [
        action("x", "a", minute) for minute in range(4)
    ]
    total = []
    for start, end in ((0, 2), (2, 4), (4, 60)):
        edges = (START + start * MINUTE, START + end * MINUTE)
        own = [row for row in everything if edges[0] <= row["ts"] < edges[1]]
        total += list(found(world(own, done, around=everything, window=edges)).values())
    assert len(total) == len(done)
    assert sorted({request for how, request in total if how == "user"}) == ["r0", "r1", "r2", "r3"]
    assert [how for how, _ in total].count("unattributed") == 4 + 6  # of x, and of u after minute 33


def test_actions_on_an_item_of_a_list_are_summed():
    shown = lists(("u", "ab"), ("u", ""))
    done = [
        action("u", "a", 1, request="r0", value=2.0),
        action("u", "a", 2, request="r0", value=3.0),
        action("u", "a", 2, request="r0", value=3.0),  # logged twice
        action("u", "a", 3, "buy", "r0", value=float("nan")),
        action("u", "b", 3, "hide", "r0"),
        action("u", "z", 3, "buy"),
        action("u", "a", 3, "scroll", "r0"),
        action("u", None, 3),
    ]
    shared = shared_of(world(shown, done))
    rows = {(r["request_id"], r["item_id"]): r for r in relevant(shared, SETTINGS).to_pyarrow().to_pylist()}
    assert rows.keys() == {("r0", "a"), ("r0", "b"), ("r1", "z")}
    a, b, z = rows["r0", "a"], rows["r0", "b"], rows["r1", "z"]
    assert (a["relevance"], a["n_0"], a["value_0"], a["values_0"]) == (3.0, 3, 8.0, 3)
    assert (a["n_1"], a["values_1"], a["n_2"]) == (1, 0, 0)
    assert (b["relevance"], b["n_2"], b["shown"]) == (0.0, 1, 1)
    assert (z["relevance"], z["shown"]) == (3.0, 0)
    assert {r["item_id"] for r in acted(shared, SETTINGS).to_pyarrow().to_pylist()} == {"a", "b"}
    assert other_events(shared, SETTINGS).to_pyarrow().to_pylist() == [{"other_events": 1}]


def test_an_item_is_completed_by_its_share_of_the_length_in_the_catalog():
    catalog = [
        {"item_id": item, "category": None, "length": length}
        for item, length in (("a", 10.0), ("b", 0.0), ("c", None), ("d", 10.0))
    ]
    done = [action("u", item, 1, "play", "r0", 8.0) for item in "abc"] + [
        action("u", "d", 1, "play", "r0", 7.0)
    ]
    settings = MetricSettings(events={"play": EventSettings(length="length", complete=0.8)})
    shared = shared_of(
        world(lists(("u", "abcd")), done, catalog=catalog, catalog_columns=("category", "length"))
    )
    rows = {r["item_id"]: r for r in relevant(shared, settings).to_pyarrow().to_pylist()}
    assert {item: (r["completable_0"], r["completed_0"]) for item, r in rows.items()} == {
        "a": (1, 1),
        "b": (0, 0),
        "c": (0, 0),
        "d": (1, 0),
    }


def searched(exposures, feedback, attribution):
    """What `attributed` finds, looked for action by action."""
    answer = {}
    requests = {}
    for row in exposures:
        requests.setdefault(row["request_id"], []).append(row)
    starts = {request: min(row["ts"] for row in rows) for request, rows in requests.items()}
    for one in feedback:
        key = (one["user_id"], one["item_id"], (one["ts"] - START) // MINUTE, one["event"])

        def latest(candidates, one=one):
            near = [(t, r) for t, r in candidates if t <= one["ts"] <= t + attribution]
            return max(near)[1] if near else None

        named = one["request_id"]
        if named in requests:
            held = any(row["item_id"] == one["item_id"] for row in requests[named])
            soon = one["ts"] <= starts[named] + attribution
            answer[key] = (("request" if held else "not_shown"), named) if soon else ("unattributed", None)
            continue
        mine = [row for row in exposures if row["user_id"] == one["user_id"] is not None]
        held = latest([(row["ts"], row["request_id"]) for row in mine if row["item_id"] == one["item_id"]])
        any_list = latest([(starts[row["request_id"]], row["request_id"]) for row in mine])
        answer[key] = (
            ("user", held) if held else ("not_shown", any_list) if any_list else ("unattributed", None)
        )
    return answer


@pytest.mark.parametrize("seed", range(20))
def test_attribution_agrees_with_a_search_through_all_lists(seed):
    dice = random.Random(seed)
    shown = lists(
        *(
            (dice.choice(["u", "v", "w", None]), "".join(dice.sample("abcdef", dice.randrange(4))))
            for _ in range(dice.randrange(1, 40))
        )
    )
    names = [None, None, "elsewhere", *{row["request_id"] for row in shown}]
    keys = {
        (
            dice.choice(["u", "v", "w", "x", None]),
            dice.choice("abcdefg"),
            dice.randrange(-2, 60),
            dice.choice(["click", "buy"]),
        )
        for _ in range(60)
    }
    done = [action(*key, request=dice.choice(names)) for key in sorted(keys, key=str)]
    settings = SETTINGS.model_copy(update={"attribution": 7 * MINUTE})
    assert found(world(shown, done), settings) == searched(shown, done, 7 * MINUTE)
