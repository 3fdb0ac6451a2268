"""What the counts of a rule say; and what goes wrong with a rule stays with it."""

from __future__ import annotations

import hashlib
import threading

import duckdb
import pytest

from monitor.core.results import Status
from monitor.rules.check import RuleCheck, check_rules
from monitor.rules.engines.base import Outcome
from monitor.rules.verdict import verdict
from monitor.settings.rules import RuleSettings
from monitor.statistics.intervals import wilson
from tests.judged_world import LISTS, PACKS, START


def soft(world, mostly=0.99):
    return world.suite(
        "  - type: expect_column_values_to_be_between\n"
        f"    kwargs: {{column: score, max_value: 0.85, mostly: {mostly}}}\n"
        "    meta: {rule: r, kind: soft}\n"
    )


def test_a_soft_rule_is_violated_once_wilsons_lower_bound_passes_the_threshold(world):
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


def test_one_row_violates_and_two_violate(world):
    (rule,) = world.rules(RuleSettings(pack="blacklist", parameters=PACKS["blacklist"]))
    details = [verdict(rule, Outcome(samples=1000, violations=n)).detail for n in (1, 2)]
    assert details == ["1 of 1,000 violates the rule (0.001)", "2 of 1,000 violate the rule (0.002)"]


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


def test_a_rule_whose_condition_no_row_meets_says_so(world):
    condition = 'col("scene") == "gone"'
    source = world.suite(
        "  - type: expect_column_values_to_not_be_null\n"
        f"    kwargs: {{column: score, row_condition: '{condition}', condition_parser: great_expectations}}\n"
        "    meta: {rule: r, kind: hard}\n"
    )
    result = world.check(source)["r"]
    assert result.status is Status.NO_DATA
    assert result.detail == (
        f"nothing to judge: no row of exposures meets the condition {condition} and has a value in score"
    )


def test_an_expectation_about_the_whole_table_has_no_interval(world):
    source = world.suite(
        "  - type: expect_column_max_to_be_between\n    kwargs: {column: score, max_value: 0.5}\n"
        "    meta: {rule: r, kind: hard}\n"
    )
    result = world.check(source)["r"]
    assert (result.status, result.value, result.lower, result.samples) == (Status.VIOLATED, 1.0, None, 1)
    assert "as a whole" in result.detail


def test_a_missing_column_is_an_error_of_its_rules_only(world):
    world.without("score", "propensity")
    results = world.check()
    assert results["score_not_finite"].status is Status.ERROR
    assert results["score_not_finite"].detail == (
        "no rule of the pack scores can be judged; not applicable: the exposures log has no column score"
    )
    assert results["score_not_falling"].status is Status.ERROR
    assert results["denormal"].status is Status.UNDEFINED  # the pack's other rules have their columns
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
        "  - {type: unexpected_rows_expectation, kwargs: {unexpected_rows_query: 'SELECT no FROM {batch}'},"
        " meta: {rule: no-such-column, kind: hard}}\n"
        "  - {type: expect_column_values_to_be_between, kwargs: {column: item_id, min_value: 1},"
        " meta: {rule: text-range, kind: hard}}\n"
        "  - {type: expect_column_values_to_not_be_null, kwargs: {column: item_id},"
        " meta: {rule: good, kind: hard}}\n"
    )
    results = world.check(source)
    assert [results[name].status for name in ("broken", "no-such-column", "text-range", "good")] == [
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
    empty = world.check(source)["blacklist"]
    assert empty.status is Status.ERROR
    assert "is empty: it holds no id" in empty.detail
    meant = RuleSettings(pack="blacklist", parameters={**PACKS["blacklist"], "allow_empty": True})
    assert world.check(meant)["blacklist"].status is Status.OK


def test_an_interrupt_is_raised_and_not_reported_as_an_error_of_a_rule(world):
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
        check_rules(world.rule_engine, world.engine, rules, lambda: tables)


def test_a_check_that_could_not_run_is_an_error_of_every_rule(world):
    results = RuleCheck(world.rules(), 20, None).failed("took too long")
    assert {(result.status, result.detail) for result in results} == {(Status.ERROR, "took too long")}
    assert len(results) == len(world.rules())


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
