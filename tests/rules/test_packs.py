"""The rules of every pack on logs that break them and on a log that breaks none."""

from __future__ import annotations

import json
import math
from datetime import timedelta

import pytest

from monitor.core.results import Status
from monitor.rules.packs import pack_names
from monitor.settings.rules import RuleSettings
from monitor.statistics.intervals import wilson
from tests.judged_world import LISTS, PACKS, START, put, several

HOSTILE = '\'; DROP TABLE exposures; --\n<b>"x"</b>'


def catalog_is(**changes):
    return lambda world: world.catalog[1].update(changes)


def twice(world):
    for request in range(10):
        put(world, request, 3, item_id="item1")


def too_long(world):
    for request in range(10):
        world.rows += [world.row(request, position, item_id=f"x{position}") for position in range(4, 12)]


def emptied(world):
    gone = {f"r{request:04}" for request in range(30)}
    world.rows = [row for row in world.rows if row["request_id"] not in gone or row["position"] == 1]
    for row in world.rows:
        if row["request_id"] in gone:
            row.update(item_id=None, position=None, score=None, propensity=None)


def holes(world):
    for request in range(5):
        world.find(request, 3)["position"] = 7
    for request in range(5, 10):
        world.find(request, 3)["position"] = 2


def one_category(world):
    for item in world.catalog:
        item["category"] = "same"


def equal_scores(world):
    for request in range(30):
        for position in (1, 2, 3):
            put(world, request, position, score=0.5)


def rising(world):
    for request in range(30):
        put(world, request, 3, score=0.95)


def from_the_future(world):
    world.future = [
        {**world.row(9000 + n, 1), "ts": START + timedelta(days=1), "written_at": START} for n in range(9)
    ]


def seen_often(world):
    world.day = [
        {"user_id": f"u{n}", "item_id": "item1", "exposures": 4 if n < 30 else 3} for n in range(LISTS)
    ]


# rule: (what is done to the good log, violations, samples, what the evidence must show)
SHOWN = 3 * LISTS


BROKEN = {
    "blacklist": (several(2, item_id="banned"), 2, SHOWN, {"item_id": "banned"}),
    "item_not_in_catalog": (several(30, item_id=HOSTILE), 30, SHOWN, {"item_id": HOSTILE}),
    "item_not_yet_available": (
        catalog_is(starts=START + timedelta(seconds=LISTS - 2)),
        LISTS - 2,
        SHOWN,
        {"item_id": "item1"},
    ),
    "item_expired": (catalog_is(ends=START + timedelta(seconds=LISTS - 3)), 3, SHOWN, {"item_id": "item1"}),
    "item_off_shelf": (catalog_is(active=False), LISTS, SHOWN, {"item_id": "item1"}),
    "duplicate_item": (twice, 10, LISTS, {"duplicates": 1}),
    "list_too_long": (too_long, 10, LISTS, {"length": 11}),
    "list_too_short": (emptied, 30, LISTS, {"length": 0}),
    "position_gaps": (holes, 10, LISTS, {"position_gaps": 4}),
    "category_cap": (one_category, LISTS, LISTS, {"category_max": 3}),
    "score_null": (several(30, score=None), 30, SHOWN, {"score": None}),
    "score_not_finite": (several(1, score=math.nan), 1, SHOWN, {"score": "NaN"}),
    "score_out_of_range": (several(1, score=1.5), 1, SHOWN, {"score": 1.5}),
    "score_saturated": (several(60, score=1.0), 60, SHOWN, {"score": 1.0}),
    "scores_all_equal": (equal_scores, 30, LISTS, {"scores_all_equal": True}),
    "score_not_falling": (rising, 30, LISTS, {"score_inversions": 1}),
    "zero_denominator": (several(1, shown=0), 1, SHOWN, {"shown": 0}),
    "zero_factor": (several(4, boost=0.0), 4, SHOWN, {"boost": 0.0, "price": 2.0}),
    "underflow_to_zero": (several(1, product=0.0), 1, SHOWN, {"product": 0.0}),
    "denormal": (several(1, score=5e-324), 1, SHOWN, {"score": 5e-324}),
    "item_too_often": (seen_often, 30, LISTS, {"exposures": 4, "item_id": "item1"}),
    "time_in_future": (from_the_future, 9, SHOWN + 9, {"ahead_seconds": 86400.0}),
    "propensity_missing": (several(1, propensity=None), 1, SHOWN, {"propensity": None}),
    "propensity_out_of_range": (several(2, propensity=1e-6), 2, SHOWN, {"propensity": 1e-6}),
}


def test_every_rule_of_every_pack_is_tested_here(world):
    assert set(PACKS) == set(pack_names())
    assert {rule.name for rule in world.rules()} == set(BROKEN)


def test_a_healthy_log_breaks_no_rule(world):
    results = world.check()
    assert {name: (r.status, r.detail) for name, r in results.items() if r.status is not Status.OK} == {}
    for result in results.values():
        assert (result.value, result.violations, result.evidence) == (0.0, 0, ())


@pytest.mark.parametrize("rule", BROKEN)
def test_a_log_that_breaks_the_rule_is_counted_and_shown(world, rule):
    change, violations, samples, shown = BROKEN[rule]
    change(world)
    result = world.check(rows=5)[rule]
    assert (result.status, result.violations, result.samples) == (Status.VIOLATED, violations, samples), (
        result.detail
    )
    assert result.value == pytest.approx(violations / samples)
    assert (result.lower, result.upper) == tuple(wilson(violations, samples))
    assert len(result.evidence) == min(5, violations)
    assert shown.items() <= result.evidence[0].items()
    json.dumps(result.evidence, allow_nan=False)


def test_a_nan_is_no_null_and_in_range_nowhere(world):
    put(world, score=math.nan)
    results = world.check(RuleSettings(pack="scores", parameters={"scored": 0.99999}))
    assert results["score_null"].violations == 0
    assert results["score_not_finite"].violations == 1
    assert results["score_out_of_range"].violations == 1


def test_only_lists_with_two_scores_can_have_equal_or_rising_ones(world):
    world.rows = [row for row in world.rows if row["position"] == 1]
    results = world.check()
    assert results["scores_all_equal"].status is Status.NO_DATA
    assert results["score_not_falling"].status is Status.NO_DATA
    assert results["position_gaps"].samples == LISTS


def test_ids_may_be_numbers(world):
    (world.folder / "blacklist.csv").write_text("item_id\n2\n")
    for row in world.rows:
        row.update(
            item_id=row["position"], user_id=int(row["user_id"][1:]), request_id=int(row["request_id"][1:])
        )
    for n, item in enumerate(world.catalog):
        item["item_id"] = n
    results = world.check()
    assert results["blacklist"].violations == LISTS
    assert {name for name, result in results.items() if result.status is not Status.OK} == {"blacklist"}


def test_tiny_propensities_of_a_real_log_are_found(shared, world):
    """The policy bts of the fashion shop gives some items a chance of one in a million."""
    path = shared / "data" / "obd" / "exposures.csv.gz"
    read = "SELECT *, score AS propensity FROM read_csv(?) WHERE policy = ?"
    counted = {}
    for policy in ("random", "bts"):
        rows = world.engine.cursor.execute(read, [str(path), policy]).to_arrow_table()
        world.rows = rows.to_pylist()
        counted[policy] = world.check(RuleSettings(pack="importance"))["propensity_out_of_range"]
    assert counted["random"].status is Status.OK
    assert counted["bts"].status is Status.VIOLATED
    assert counted["bts"].violations == sum(row["propensity"] < 0.001 for row in world.rows) > 0
    assert all(row["propensity"] < 0.001 for row in counted["bts"].evidence)
