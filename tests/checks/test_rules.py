"""The rules of every pack on logs that break them and on a log that breaks none; verdicts and evidence."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

from monitor.checks.rules import check_rules, failed, verdict
from monitor.checks.tables import WindowTables
from monitor.expectations.engine import Outcome, RuleEngine
from monitor.expectations.packs import pack_names
from monitor.expectations.settings import RuleSettings
from monitor.expectations.suites import load_rules
from monitor.logs.engine import Engine
from monitor.metrics.shared import Shared
from monitor.results import Status
from monitor.statistics.intervals import wilson

START = datetime(2026, 1, 1, 10)
LISTS = 1000
HOSTILE = '\'; DROP TABLE exposures; --\n<b>"x"</b>'

PACKS = {
    "blacklist": {"blacklist": "blacklist.csv"},
    "catalog": {"available_from": "starts", "available_until": "ends", "status": "active"},
    "lists": {"max_length": 10},
    "category": {"max_per_category": 2},
    "scores": {},
    "order": {},
    "arithmetic": {"denominators": ["shown"], "factors": ["price", "boost"], "underflow": ["product"]},
    "frequency": {"max_a_day": 3},
    "time": {},
    "importance": {},
}


class World:
    """A window's logs as plain rows, and the check run on them."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.rule_engine = RuleEngine(f"world_{id(self)}")
        self.engine = Engine(self.rule_engine.cursor())
        (folder / "blacklist.csv").write_text("item_id\nbanned\n")
        self.catalog = [
            {
                "item_id": f"item{n}",
                "category": f"category{n}",
                "starts": START - timedelta(days=n),
                "ends": START + timedelta(days=n + 1),
                "active": True,
            }
            for n in range(5)
        ]
        self.rows = [self.row(request, position) for request in range(LISTS) for position in (1, 2, 3)]
        self.day: list[dict] | None = None
        self.future: list[dict] | None = None
        self.feedback: list[dict] | None = None

    @staticmethod
    def row(request: int, position: int, **changes) -> dict:
        return {
            "request_id": f"r{request:04}",
            "user_id": f"u{request:04}",
            "ts": START + timedelta(seconds=request),
            "item_id": f"item{position}",
            "position": position,
            "score": 0.9 - position / 10,
            "scene": "home",
            "propensity": 0.5,
            "shown": 10,
            "price": 2.0,
            "boost": 1.0,
            "product": 1e-5,
            **changes,
        }

    def find(self, request: int, position: int) -> dict:
        return next(
            row for row in self.rows if row["request_id"] == f"r{request:04}" and row["position"] == position
        )

    def without(self, *columns: str) -> None:
        self.rows = [{k: v for k, v in row.items() if k not in columns} for row in self.rows]

    def _table(self, name, rows, schema=None):
        cursor = self.engine.cursor
        cursor.register("given", pa.Table.from_pylist(rows, schema=schema))
        cursor.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')
        cursor.unregister("given")
        return self.engine.backend.table(name)

    def tables(self) -> WindowTables:
        schema = None if self.rows else pa.Table.from_pylist([self.row(0, 1)]).schema
        catalog = self._table("catalog", self.catalog) if self.catalog else None
        shared = Shared(
            self._table("exposures", self.rows, schema), catalog=catalog, materialise=self.engine.create
        )
        return WindowTables(
            shared=shared,
            dimensions={},
            user_items_day=self._table("day", self.day) if self.day else shared.user_items(),
            catalog=catalog,
            feedback=self._table("feedback", self.feedback) if self.feedback else None,
            future=self._table("future_exposures", self.future) if self.future else None,
        )

    def rules(self, *sources: RuleSettings):
        sources = sources or tuple(RuleSettings(pack=name, parameters=given) for name, given in PACKS.items())
        return load_rules(sources, self.folder)

    def check(self, *sources: RuleSettings, **options):
        """Results by the name of their rule."""
        tables = self.tables()
        results = check_rules(self.rule_engine, self.engine, self.rules(*sources), tables, **options)
        self.engine.drop(*tables.made)
        return {result.labels["rule"]: result for result in results}

    def suite(self, text: str) -> RuleSettings:
        (self.folder / "ours.yaml").write_text("name: ours\nexpectations:\n" + text)
        return RuleSettings(suite="ours.yaml")


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.rule_engine.close()


def put(world, request=0, position=1, **changes):
    world.find(request, position).update(changes)


def several(count, **changes):
    """Change the first item of each of the first lists."""

    def change(world):
        for request in range(count):
            put(world, request, 1, **changes)

    return change


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


# --- verdicts ---


def soft(world, mostly=0.99):
    return world.suite(
        "  - type: expect_column_values_to_be_between\n"
        f"    kwargs: {{column: score, max_value: 0.85, mostly: {mostly}}}\n"
        "    meta: {rule: r, kind: soft}\n"
    )


def test_a_soft_rule_is_violated_exactly_from_where_wilsons_lower_bound_passes_the_threshold(world):
    (rule,) = world.rules(soft(world))
    first = next(n for n in range(1000) if wilson(n, 1000).lower > rule.threshold)
    assert first > 10  # ten of a thousand are allowed, and a few more prove nothing
    below = verdict(rule, Outcome(samples=1000, violations=first - 1))
    above = verdict(rule, Outcome(samples=1000, violations=first))
    assert (below.status, above.status) == (Status.OK, Status.VIOLATED)
    assert below.value > below.threshold == 0.01


def test_the_same_share_of_few_rows_violates_nothing(world):
    (rule,) = world.rules(soft(world, mostly=0.9))
    assert verdict(rule, Outcome(samples=10, violations=2)).status is Status.OK
    assert verdict(rule, Outcome(samples=10000, violations=2000)).status is Status.VIOLATED


def test_one_violation_in_millions_breaks_a_hard_rule(world):
    (rule,) = world.rules(RuleSettings(pack="blacklist", parameters=PACKS["blacklist"]))
    assert verdict(rule, Outcome(samples=10_000_000, violations=1)).status is Status.VIOLATED


def test_a_numeric_rule_is_hard_unless_it_says_mostly(world):
    text = (
        "  - type: expect_column_values_to_be_finite\n    kwargs: {column: score%s}\n"
        "    meta: {rule: r, kind: numeric}\n"
    )
    (hard,) = world.rules(world.suite(text % ""))
    (lenient,) = world.rules(world.suite(text % ", mostly: 0.9"))
    once = Outcome(samples=100, violations=1)
    assert (verdict(hard, once).status, verdict(lenient, once).status) == (Status.VIOLATED, Status.OK)
    assert (verdict(hard, once).threshold, verdict(lenient, once).threshold) == (0, 0.1)


def test_an_empty_window_is_never_ok(world):
    world.rows = []
    results = world.check()
    assert {result.status for result in results.values()} == {Status.NO_DATA}
    assert all(result.value is None and result.samples == 0 for result in results.values())


def test_an_expectation_about_the_whole_table_has_no_interval(world):
    source = world.suite(
        "  - type: expect_column_max_to_be_between\n    kwargs: {column: score, max_value: 0.5}\n"
        "    meta: {rule: r, kind: hard}\n"
    )
    result = world.check(source)["r"]
    assert (result.status, result.value, result.lower, result.samples) == (Status.VIOLATED, 1.0, None, 1)
    assert "as a whole" in result.detail


# --- what goes wrong stays with its rule ---


def test_a_missing_column_is_an_error_of_its_rules_only(world):
    world.without("score", "propensity")
    results = world.check()
    assert results["score_not_finite"].status is Status.ERROR
    assert results["score_not_finite"].detail == "the table exposures has no column score"
    assert results["score_not_falling"].detail == (
        "the table requests has no column score_inversions, "
        "which needs exposures.position and exposures.score"
    )
    assert results["propensity_missing"].status is Status.ERROR
    for rule in ("blacklist", "duplicate_item", "position_gaps", "category_cap", "item_too_often"):
        assert results[rule].status is Status.OK, results[rule].detail


def test_without_a_catalog_the_rules_that_need_it_are_errors(world):
    world.catalog = []
    results = world.check()
    unable = {
        "item_not_in_catalog",
        "item_not_yet_available",
        "item_expired",
        "item_off_shelf",
        "category_cap",
    }
    assert {name for name, result in results.items() if result.status is Status.ERROR} == unable
    assert "no catalog" in results["item_expired"].detail


def test_a_catalog_column_that_does_not_exist_is_an_error_that_names_it(world):
    source = RuleSettings(pack="catalog", parameters={"available_until": "no_such"})
    results = world.check(source)
    assert results["item_expired"].status is Status.ERROR
    assert "no_such" in results["item_expired"].detail
    assert results["item_not_in_catalog"].status is Status.OK


def test_a_broken_rule_does_not_stop_its_neighbours(world):
    source = world.suite(
        "  - {type: expect_column_values_to_match_regex, kwargs: {column: item_id, regex: '['},"
        " meta: {rule: broken, kind: hard}}\n"
        "  - {type: unexpected_rows_expectation, kwargs: {unexpected_rows_query: 'SELEC {batch}'},"
        " meta: {rule: not-sql, kind: hard}}\n"
        "  - {type: expect_column_values_to_be_between, kwargs: {column: item_id, min_value: 1},"
        " meta: {rule: text-range, kind: hard}}\n"
        "  - {type: expect_column_values_to_not_be_null, kwargs: {column: item_id},"
        " meta: {rule: good, kind: hard}}\n"
    )
    results = world.check(source)
    assert [results[name].status for name in ("broken", "not-sql", "text-range", "good")] == [
        Status.ERROR, Status.ERROR, Status.ERROR, Status.OK
    ]  # fmt: skip
    assert "missing ]" in results["broken"].detail
    assert "VARCHAR" in results["text-range"].detail
    assert all(result.value is None for name, result in results.items() if name != "good")


def test_a_list_file_can_be_replaced_while_the_monitor_runs(world):
    source = RuleSettings(pack="blacklist", parameters=PACKS["blacklist"])
    listed = world.folder / "blacklist.csv"

    def version() -> str:
        return hashlib.sha256(b"item_id\0" + listed.read_bytes()).hexdigest()[:12]

    assert world.check(source)["blacklist"].status is Status.OK
    listed.write_text("item_id\nitem1\n")
    first = world.check(source, rows=1)["blacklist"]
    assert (first.violations, first.evidence[0]["list_version"]) == (LISTS, version())
    listed.write_text("item_id\nitem1\nitem2\n")
    second = world.check(source, rows=1)["blacklist"]
    assert (second.violations, second.evidence[0]["list_version"]) == (2 * LISTS, version())
    assert first.definition == second.definition
    listed.unlink()
    gone = world.check(source)["blacklist"]
    assert gone.status is Status.ERROR
    assert "cannot be read: No such file" in gone.detail
    listed.write_text("item_id\n")
    assert world.check(source)["blacklist"].status is Status.OK


def test_an_interrupt_is_no_error_of_a_rule(world):
    slow = (
        "SELECT b.* FROM (SELECT * FROM {batch}) b, (SELECT sum(hash(x.range + y.range)) AS s "
        "FROM range(1000000) x, range(100000) y) WHERE s = 0"
    )
    source = world.suite(
        f"  - {{type: unexpected_rows_expectation, kwargs: {{unexpected_rows_query: '{slow}'}},"
        " meta: {rule: slow, kind: hard}}\n"
    )
    tables, rules = world.tables(), world.rules(source)
    threading.Timer(0.5, world.rule_engine.interrupt).start()
    with pytest.raises(duckdb.InterruptException):
        check_rules(world.rule_engine, world.engine, rules, tables)


def test_a_check_that_could_not_run_is_an_error_of_every_rule(world):
    results = failed(world.rules(), "took too long")
    assert {(result.status, result.detail) for result in results} == {(Status.ERROR, "took too long")}
    assert len(results) == len(BROKEN)


# --- evidence ---


def test_users_are_hashed_with_the_salt_unless_hashing_is_off(world):
    put(world, item_id="banned")
    source = RuleSettings(pack="blacklist", parameters=PACKS["blacklist"])
    hashed = {salt: world.check(source, salt=salt)["blacklist"].evidence[0] for salt in ("a", "b", None)}
    assert hashed[None]["user_id"] == "u0000"
    assert hashed["a"]["user_id"] != hashed["b"]["user_id"]
    assert len(hashed["a"]["user_id"]) == 12
    assert "u0000" not in json.dumps(hashed["a"])


def test_evidence_is_bounded_in_rows_and_in_the_length_of_a_value(world):
    for request in range(50):
        put(world, request, item_id="x" * 10_000_0)
    result = world.check(RuleSettings(pack="catalog"), rows=20)["item_not_in_catalog"]
    assert (result.violations, len(result.evidence)) == (50, 20)
    assert max(len(str(value)) for row in result.evidence for value in row.values()) <= 200


def test_evidence_is_the_same_each_time_and_the_earliest_first(world):
    several(50, item_id="banned")(world)
    source = RuleSettings(pack="blacklist", parameters=PACKS["blacklist"])
    first, second = (world.check(source, rows=10)["blacklist"].evidence for _ in range(2))
    assert first == second
    assert [row["ts"] for row in first[:2]] == ["2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z"]
    assert list(first[0]) == [
        "request_id", "user_id", "item_id", "ts", "position", "score", "list_version"
    ]  # fmt: skip


def test_a_rule_on_the_catalog_or_the_feedback_sees_those_tables(world):
    world.catalog[2]["category"] = None
    world.feedback = [{"user_id": "u1", "item_id": "item1", "ts": START, "event": e} for e in ("click", "hm")]
    source = world.suite(
        "  - {type: expect_column_values_to_not_be_null, kwargs: {column: category},"
        " meta: {rule: no-category, kind: hard, table: catalog}}\n"
        "  - {type: expect_column_values_to_be_in_set, kwargs: {column: event, value_set: [click]},"
        " meta: {rule: event, kind: hard, table: feedback}}\n"
    )
    results = world.check(source)
    assert results["no-category"].evidence[0]["item_id"] == "item2"
    assert results["event"].evidence[0]["event"] == "hm"
    assert (results["no-category"].samples, results["event"].samples) == (5, 2)


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
