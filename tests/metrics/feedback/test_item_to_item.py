"""Item-to-item recall: by hand, and against a walk along each user's actions."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import timedelta
from itertools import pairwise

import pyarrow as pa
import pytest

from monitor.core.results import Status
from monitor.metrics.feedback.item_to_item import ItemToItem
from monitor.metrics.measure import not_measured
from monitor.metrics.shared import Shared
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.oracle import Expected
from tests.metrics.worlds import START, World, by_name, embedded, lists, results_of, shared_of

NAME = "item_to_item_recall"
COLUMNS = ("position", "score", "scene", "page")


def settings_of(*k, **more):
    return MetricSettings(k=k, seed_item="page", **more)


def on_pages(*shown):
    """Lists given as (page, items), a minute apart."""
    rows = lists(*(("someone", items) for _, items in shown))
    for row in rows:
        row["page"] = shown[int(row["request_id"][1:])][0]
    return rows


def walked(user, items, event="click"):
    return [
        {
            "user_id": user,
            "item_id": item,
            "ts": START + timedelta(minutes=minute),
            "event": event,
            "request_id": None,
        }
        for minute, item in enumerate(items)
    ]


def measured(shown, done, settings, dimensions=None):
    world = World(shown, feedback=done, columns=COLUMNS)
    return by_name(results_of(world, settings, dimensions, only=(NAME,)))


def test_the_list_of_an_item_is_compared_with_the_next_action():
    shown = on_pages(("a", "xyb"), ("b", "cd"), ("c", ""), (None, "z"))
    done = walked("u", "abcdz") + walked("v", "ax") + walked(None, "ab") + walked("w", "b")
    found = measured(shown, done, settings_of(1, 2, 3))
    # u: a to b (place 3), b to c (1), c to d (an empty list), d to z (no list); v: a to x (1)
    assert [found[NAME, "", k].value for k in "123"] == [2 / 4, 2 / 4, 3 / 4]
    result = found[NAME, "", "3"]
    assert result.samples == 4
    assert (result.lower, result.upper) == (
        pytest.approx(0.300642, abs=1e-6),
        pytest.approx(0.954413, abs=1e-6),
    )
    assert result.detail == "left out: 1 of 5 pairs without a list"


def test_the_latest_list_of_an_item_counts():
    shown = on_pages(("a", "b"), ("a", "c"))
    assert measured(shown, walked("u", "ab"), settings_of(1))[NAME, "", "1"].value == 0.0
    assert measured(shown, walked("u", "ac"), settings_of(1))[NAME, "", "1"].value == 1.0


def test_only_graded_actions_are_steps_and_repeats_at_one_time_count_once():
    events = {"click": EventSettings(), "buy": EventSettings(grade=2), "hide": EventSettings(grade=0)}
    done = (
        walked("u", "ab") + walked("u", "a", "buy") + walked("u", "zz", "hide") + walked("u", "zz", "scroll")
    )
    found = measured(on_pages(("a", "b")), done, settings_of(1, events=events))
    assert (found[NAME, "", "1"].value, found[NAME, "", "1"].samples) == (1.0, 1)


def test_an_item_twice_in_its_list_is_one_hit():
    found = measured(on_pages(("a", "bb")), walked("u", "ab"), settings_of(1, 5))
    assert (found[NAME, "", "5"].value, found[NAME, "", "5"].samples) == (1.0, 1)


def test_without_steps_or_lists_there_is_no_data():
    lonely = measured(on_pages(("a", "b")), walked("u", "a"), settings_of(1))[NAME, "", "1"]
    assert (lonely.status, lonely.detail) == (Status.NO_DATA, "nobody acted twice")
    unlisted = measured(on_pages((None, "b")), walked("u", "ab"), settings_of(1))[NAME, "", "1"]
    assert (unlisted.status, unlisted.detail) == (
        Status.NO_DATA,
        "no item that was acted on first has a list",
    )
    assert measured([], [], settings_of(1))[NAME, "", "1"].status is Status.NO_DATA


def test_without_the_seed_column_the_reason_says_what_is_missing():
    world = World(on_pages(("a", "b")), feedback=walked("u", "ab"), columns=("position",))
    assert "needs the setting seed_item" in not_measured(shared_of(world), MetricSettings())["item_to_item"]
    reason = not_measured(shared_of(world), settings_of(1))["item_to_item"]
    assert reason == "needs the column page of the log exposures"


@pytest.mark.parametrize("ids", [pa.int64(), pa.string()], ids=str)
def test_pages_of_a_numeric_column_with_gaps_are_found(ids):
    backend = embedded()
    shown = pa.table(
        {
            "request_id": [1, 1, 2],
            "user_id": [1, 1, 1],
            "item_id": pa.array([8, 9, 7]).cast(ids),
            "ts": [START] * 3,
            "position": [1, 2, 1],
            "page": [7.0, 7.0, float("nan")],
        }
    )
    done = pa.table(
        {
            "user_id": [1, 1],
            "item_id": pa.array([7, 9]).cast(ids),
            "ts": [START, START + timedelta(minutes=1)],
            "event": ["click"] * 2,
        }
    )
    shared = Shared(backend.create_table("exposures", shown), feedback=backend.create_table("feedback", done))
    settings = settings_of(1, 2)
    rows = ItemToItem().measure(shared, settings).to_pyarrow().to_pylist()
    assert [result.value for result in ItemToItem().results(rows, settings)] == [0.0, 1.0]


def searched(shown, done, settings):
    requests = defaultdict(list)
    for row in shown:
        requests[row["page"], row["request_id"]].append(row)
    latest = {}
    for (page, request), rows in requests.items():
        key = (rows[0]["ts"], request)
        if page is not None and (page not in latest or key > latest[page][0]):
            items = [r["item_id"] for r in rows if r["item_id"] is not None]
            latest[page] = (key, items)
    paths = defaultdict(set)
    for one in done:
        if one["event"] == "click" and one["user_id"] is not None and one["item_id"] is not None:
            paths[one["user_id"]].add((one["ts"], one["item_id"]))
    steps = [(a, b) for path in paths.values() for (_, a), (_, b) in pairwise(sorted(path))]
    judged = [(a, b) for a, b in steps if a in latest]
    found = Expected()
    for k in settings.k:
        found.share(NAME, str(k), sum(b in latest[a][1][:k] for a, b in judged), len(judged))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_random_windows_agree_with_a_loop_over_the_actions(seed):
    dice = random.Random(seed)
    letters = "abcde"
    shown = on_pages(
        *(
            (dice.choice([*letters, None]), "".join(dice.choices(letters, k=dice.randrange(5))))
            for _ in range(12)
        )
    )
    for row in shown:
        row["scene"] = dice.choice(["home", "feed"]) if seed % 2 else f"s{row['request_id'][-1]}"
    done = []
    for user in ("u", "v", "w", None):
        done += walked(user, dice.choices([*letters, "f", None], k=dice.randrange(8)))
        done += walked(user, dice.choices(letters, k=2), dice.choice(["click", "scroll"]))
    settings = settings_of(1, 2, 4)
    found = measured(shown, done, settings, {"place": "scene"})
    assert_same({k[2]: r for k, r in found.items() if len(k) == 3}, searched(shown, done, settings))
    for scene in {row["scene"] for row in shown}:
        own = [row for row in shown if row["scene"] == scene]
        of_slice = {k[2]: r for k, r in found.items() if k[3:] == ("place", scene)}
        assert_same(of_slice, searched(own, done, settings))


def assert_same(found, wanted):
    assert {(NAME, k) for k in found} == wanted.keys()
    for (_, k), want in wanted.items():
        if want == "no_data":
            assert found[k].status is Status.NO_DATA
        else:
            _, value, samples, lower, upper = want
            assert (found[k].value, found[k].samples) == (pytest.approx(value), samples)
            assert (found[k].lower, found[k].upper) == (pytest.approx(lower), pytest.approx(upper))
