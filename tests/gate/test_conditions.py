"""The conditions of a gate: each outcome, its edges, and never `passed` without data."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from monitor.core.results import Result, ResultKind, Status
from monitor.gate.conditions import Judgement, Outcome, Override, Sides, judge, overall
from monitor.settings.gate import Condition
from monitor.settings.recommender import USER_GROUP

PASSED, FAILED, NOT_KNOWN = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_KNOWN


def condition(**asks: object) -> Condition:
    return Condition.model_validate({"name": "one", "owner": "ops", "reason": "it must hold", **asks})


def metric(
    value: float | None,
    half: float | None = 0.01,
    name: str = "ndcg",
    status: Status = Status.OK,
    **labels: str,
) -> Result:
    ends = (None, None) if half is None or value is None else (value - half, value + half)
    return Result(
        metric=name, status=status, definition="1", labels=labels, value=value, samples=1000, lower=ends[0],
        upper=ends[1], detail="" if status is Status.OK else "nobody came",
    )  # fmt: skip


def rule(status: Status, violations: int = 0, kind: str = "hard", name: str = "blacklist") -> Result:
    return Result(
        kind=ResultKind.RULE, metric="rule", status=status, definition="1", samples=100,
        labels={"rule": name, "kind": kind}, violations=violations, value=violations / 100,
        evidence=({"item_id": "i3"},) * (violations > 0), detail="" if status is Status.OK else "no rows",
    )  # fmt: skip


def outcome(asks: Condition, *candidate: Result, other: tuple[Result, ...] = (), **why: str) -> Outcome:
    return judge(asks, Sides(candidate, other, **why)).outcome


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule(Status.OK)], PASSED),
        ([rule(Status.OK), rule(Status.VIOLATED, 1, name="banned")], FAILED),
        ([rule(Status.OK), rule(Status.NO_DATA, name="banned")], NOT_KNOWN),
        ([rule(Status.ERROR, name="banned"), rule(Status.VIOLATED, 1)], FAILED),
        ([rule(Status.LATE)], NOT_KNOWN),
        ([rule(Status.OK, kind="soft")], NOT_KNOWN),
        ([], NOT_KNOWN),
    ],
)
def test_hard_rules_hold_if_all_were_judged_and_none_is_violated(rules, expected) -> None:
    assert outcome(condition(rules="hard"), *rules) is expected


def test_all_rules_include_soft_ones_and_the_violating_rows_are_evidence() -> None:
    found = judge(condition(rules="all"), Sides([rule(Status.OK), rule(Status.VIOLATED, 2, "soft", "lists")]))
    assert (found.outcome, found.detail) == (FAILED, "violated: lists (2 rows)")
    assert found.rows == [{"rule": "lists", "item_id": "i3"}]
    assert outcome(condition(rules="hard"), rule(Status.OK), rule(Status.VIOLATED, 2, "soft")) is PASSED


def test_one_rule_with_one_row_is_counted_as_one() -> None:
    asked = condition(rules="hard")
    assert judge(asked, Sides([rule(Status.VIOLATED, 1)])).detail == "violated: blacklist (1 row)"
    assert judge(asked, Sides([replace(rule(Status.OK), samples=1)])).detail == "1 rule, 1 row"
    assert judge(asked, Sides([rule(Status.OK), rule(Status.OK, name="b")])).detail == "2 rules, 100 rows"


@pytest.mark.parametrize(
    ("bound", "shown"),
    [(1234567.8, "1,234,567.8"), (12_345_678, "12,345,678"), (0.07, "0.07"), (-0.0005, "-0.0005")],
)
def test_a_bound_is_shown_as_it_is_in_the_config(bound: float, shown: str) -> None:
    asked = condition(metric="volume", max=bound)
    assert judge(asked, Sides()).asks == f"volume is at most {shown}"


@pytest.mark.parametrize(
    ("bound", "value", "expected"),
    [
        ({"min": 0.5}, 0.52, PASSED),
        ({"min": 0.5}, 0.51, PASSED),  # the interval ends at the bound
        ({"min": 0.5}, 0.505, NOT_KNOWN),
        ({"min": 0.5}, 0.495, NOT_KNOWN),
        ({"min": 0.5}, 0.48, FAILED),
        ({"max": 0.5}, 0.48, PASSED),
        ({"max": 0.5}, 0.495, NOT_KNOWN),
        ({"max": 0.5}, 0.52, FAILED),
        ({"max": -0.5}, -0.52, PASSED),
    ],
)
def test_the_whole_interval_keeps_a_bound_or_misses_it(bound, value, expected) -> None:
    assert outcome(condition(metric="ndcg", **bound), metric(value)) is expected


def test_a_value_without_an_interval_keeps_a_bound_by_itself() -> None:
    for value, expected in ((3.0, PASSED), (2.9, FAILED)):
        found = judge(condition(metric="volume", min=3), Sides([metric(value, None, "volume")]))
        assert (found.outcome, found.detail) == (
            expected,
            "judged by the value alone, since it has no interval",
        )


def test_a_count_of_no_data_is_not_known_although_its_value_is_0() -> None:
    nobody = metric(0.0, None, "volume", Status.NO_DATA, by="requests")
    for bound in ({"max": 10}, {"min": 0}, {"min": 10}):
        found = judge(condition(metric="volume", labels={"by": "requests"}, **bound), Sides([nobody]))
        assert (found.outcome, found.detail) == (NOT_KNOWN, "the candidate: no_data, nobody came")


def test_a_value_that_violates_its_objective_is_a_value() -> None:
    found = metric(0.9, status=Status.VIOLATED)
    assert outcome(condition(metric="ndcg", min=0.5), found) is PASSED
    assert outcome(condition(metric="ndcg", max=0.5), found) is FAILED


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("list_length", {}, NOT_KNOWN),
        ("action_rate", {"by": "uv", "event": "click"}, NOT_KNOWN),
        ("coverage", {"by": "pv"}, NOT_KNOWN),
        ("coverage", {"by": "item"}, PASSED),
        ("precision", {"by": "micro", "k": "5"}, PASSED),
        ("gini_exposed", {}, PASSED),
    ],
)
def test_too_few_samples_for_an_interval_are_not_enough(name, labels, expected) -> None:
    asked = condition(metric=name, labels=labels, min=0.1)
    found = judge(asked, Sides([metric(0.9, None, name, **labels)]))
    assert found.outcome is expected
    if expected is NOT_KNOWN:
        assert found.detail == "too few samples for an interval"
    one_answer = replace(answer(5.0), lower=None, upper=None)
    assert outcome(condition(survey="How was it?", min=3.5), one_answer) is NOT_KNOWN


@pytest.mark.parametrize(
    "result",
    [
        None,
        metric(None, status=Status.NO_DATA),
        metric(None, status=Status.ERROR),
        metric(0.9, status=Status.LATE),
        metric(math.nan),
        metric(math.inf),
        metric(0.9, k="5"),
    ],
)
def test_a_gate_never_passes_without_a_value(result) -> None:
    given = () if result is None else (result,)
    asked = condition(metric="ndcg", min=0.0)
    assert outcome(asked, *given) is NOT_KNOWN
    not_worse = condition(metric="ndcg", margin=0.5)
    assert outcome(not_worse, *given, other=(metric(0.1),)) is NOT_KNOWN
    assert outcome(not_worse, metric(0.9), other=given) is NOT_KNOWN
    for every in (asked, not_worse, condition(rules="hard")):
        found = judge(
            every, Sides([metric(0.9), rule(Status.OK)], [metric(0.1)], broken="the log has no row")
        )
        assert (found.outcome, found.detail) == (NOT_KNOWN, "the log has no row")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ndcg", 0.52, PASSED),  # 0.02 ± 0.0141, bound -0.01
        ("ndcg", 0.505, PASSED),
        ("ndcg", 0.5, NOT_KNOWN),
        ("ndcg", 0.47, FAILED),
        ("log_loss", 0.48, PASSED),
        ("log_loss", 0.5, NOT_KNOWN),
        ("log_loss", 0.53, FAILED),
        ("category_entropy", 0.5, NOT_KNOWN),
        ("category_entropy", 0.53, FAILED),
        ("category_entropy", 0.47, FAILED),
    ],
)
def test_not_worse_than_the_other_side_by_more_than_the_margin(name, value, expected) -> None:
    asked = condition(metric=name, margin=0.02)
    assert outcome(asked, metric(value, name=name), other=(metric(0.5, name=name),)) is expected


def test_a_metric_without_a_better_direction_may_move_by_the_margin() -> None:
    one, other = (metric(value, 0.001, "category_entropy") for value in (0.505, 0.5))
    found = judge(condition(metric="category_entropy", margin=0.02), Sides([one], [other]))
    assert (found.outcome, found.asks) == (PASSED, "category_entropy moves by 2 % at most")


def _entropies(value: float) -> tuple[list[Result], list[Result]]:
    return [metric(value, name="category_entropy")], [metric(0.5, name="category_entropy")]


def test_what_would_decide_and_why_the_other_side_is_missing_are_said() -> None:
    asked = condition(metric="ndcg", margin=0.02)
    found = judge(asked, Sides([metric(0.5)], [metric(0.5)]))
    # 0.01 from the bound; half the width with one sample a side is 0.01 sqrt(2) sqrt(1000).
    assert "about 4,087 samples a side would decide" in found.detail
    moved = judge(condition(metric="category_entropy", margin=0.02), Sides(*_entropies(0.505)))
    assert "about 16,3" in moved.detail  # 0.005 from the nearer of both bounds
    assert moved.detail == judge(moved.condition, Sides(*_entropies(0.495))).detail
    assert found.interval is not None
    assert found.bound == pytest.approx(-0.01)
    found = judge(asked, Sides([metric(0.5)], without_other="old has no row"))
    assert (found.outcome, found.detail) == (NOT_KNOWN, "old has no row")
    no_interval = judge(asked, Sides([metric(0.5, None)], [metric(0.1, None)]))
    assert (no_interval.outcome, no_interval.detail) == (NOT_KNOWN, "it has no interval")


def _group(number: int) -> dict[str, str]:
    return {"dimension": USER_GROUP, "value": str(number)}


def test_the_same_users_on_both_sides_decide_sooner() -> None:
    asked = condition(metric="ndcg", margin=0.02)
    groups = [
        replace(
            metric(0.0),
            value=(number * 37 % 101) / 101,
            labels={"dimension": USER_GROUP, "value": str(number)},
        )
        for number in range(100)
    ]
    assert outcome(asked, metric(0.5), other=(metric(0.5),)) is NOT_KNOWN
    assert outcome(asked, metric(0.5), *groups, other=(metric(0.5), *groups)) is PASSED


def test_the_gate_fails_first_is_unknown_next_and_overrides_hold() -> None:
    def found(outcome: Outcome, *, overridden: bool = False) -> Judgement:
        override = Override("kim", "tested by hand") if overridden else None
        return Judgement(condition(rules="all"), "", outcome, "", override=override)

    assert overall([found(PASSED)]) is PASSED
    assert overall([found(PASSED), found(NOT_KNOWN)]) is NOT_KNOWN
    assert overall([found(NOT_KNOWN), found(FAILED), found(PASSED)]) is FAILED
    assert overall([found(NOT_KNOWN, overridden=True), found(FAILED, overridden=True)]) is PASSED
    assert overall([found(FAILED, overridden=True), found(NOT_KNOWN)]) is NOT_KNOWN


@pytest.mark.parametrize(
    ("asks", "message"),
    [
        ({}, "exactly one of rules, metric, survey"),
        ({"rules": "hard", "metric": "ndcg", "min": 1}, "exactly one of rules, metric, survey"),
        ({"rules": "hard", "min": 1}, "min belongs to a condition on a metric"),
        ({"metric": "ndcg"}, "exactly one of margin, min and max"),
        ({"metric": "ndcg", "min": 0, "max": 1}, "exactly one of margin, min and max"),
        ({"metric": "ndcg", "experiment": "lists", "min": 0}, "it needs a margin"),
        ({"metric": "ndcg", "arm": "b", "min": 0}, "name the experiment too"),
        ({"metric": "ndcg", "margin": 2}, "less than 1"),
        ({"metric": "ndcg", "min": math.nan}, "finite"),
        ({"rules": "hard", "reason": ""}, "at least 1 character"),
    ],
)
def test_a_condition_that_asks_for_nothing_or_for_too_much_is_refused(asks, message) -> None:
    with pytest.raises(ValueError, match=message):
        condition(**asks)


def answer(value: float | None, half: float = 0.1, status: Status = Status.OK) -> Result:
    return metric(value, half, "survey_answer", status, question="How was it?")


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (answer(4.0), PASSED),
        (answer(3.55), NOT_KNOWN),
        (answer(3.2), FAILED),
        (answer(None, status=Status.NO_DATA), NOT_KNOWN),
    ],
)
def test_users_must_say_that_they_like_it(candidate: Result, expected: Outcome) -> None:
    found = judge(condition(survey="How was it?", min=3.5), Sides([candidate]))
    assert found.outcome is expected
    assert found.asks == "the mean answer to 'How was it?' is at least 3.5"


@pytest.mark.parametrize(
    ("candidate", "expected"), [(answer(4.2), PASSED), (answer(4.0), NOT_KNOWN), (answer(3.0), FAILED)]
)
def test_a_higher_answer_is_better(candidate: Result, expected: Outcome) -> None:
    asks = condition(survey="How was it?", margin=0.02)
    assert outcome(asks, candidate, other=(answer(4.0),)) is expected
    assert judge(asks, Sides([candidate], without_other="old has no logs.survey")).outcome is NOT_KNOWN
    assert judge(asks, Sides(broken="nobody answered")).outcome is NOT_KNOWN
