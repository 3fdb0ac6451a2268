"""Verdicts on two sides: by chance, by margin, and where there is no value."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from monitor.comparison.compare import Verdict, compare
from monitor.core.results import Result, ResultKind, Status
from monitor.statistics.intervals import wilson
from monitor.statistics.mover import Estimate, difference


def metric(
    name: str, value: float | None, half: float | None = 0.01, samples: int = 1000, **labels: str
) -> Result:
    ends = (None, None) if half is None or value is None else (value - half, value + half)
    status = Status.NO_DATA if value is None else Status.OK
    return Result(
        metric=name, status=status, definition="1", labels=labels, value=value, samples=samples,
        lower=ends[0], upper=ends[1], detail="nobody came" if value is None else "",
    )  # fmt: skip


def rule(violations: int, rows: int = 10_000, kind: str = "soft", name: str = "blacklist") -> Result:
    interval = wilson(violations, rows)
    assert interval is not None
    return Result(
        kind=ResultKind.RULE, metric="rule", status=Status.OK, definition="1", samples=rows,
        labels={"rule": name, "kind": kind}, value=violations / rows, violations=violations,
        lower=interval.lower, upper=interval.upper, threshold=0.001,
    )  # fmt: skip


def verdict(one, other, margin: float = 0.02) -> Verdict:
    (found,) = compare([one] if one else [], [other] if other else [], margin=margin)
    return found.verdict


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("ndcg", 0.5, 0.6, Verdict.BETTER),
        ("ndcg", 0.6, 0.5, Verdict.WORSE),
        ("log_loss", 0.5, 0.6, Verdict.WORSE),
        ("log_loss", 0.6, 0.5, Verdict.BETTER),
        ("category_entropy", 0.5, 0.6, Verdict.DIFFERENT),
        ("category_entropy", 0.6, 0.5, Verdict.DIFFERENT),
        ("ndcg", 0.5, 0.505, Verdict.UNKNOWN),
        ("ndcg", 0.5, 0.5 + 0.01 * math.sqrt(2) + 1e-9, Verdict.BETTER),  # the interval just leaves out 0
        ("ndcg", 0.5, 0.5 + 0.01 * math.sqrt(2) - 1e-9, Verdict.UNKNOWN),
    ],
)
def test_a_difference_that_chance_cannot_make_is_a_verdict(name, a, b, expected) -> None:
    assert verdict(metric(name, a), metric(name, b)) is expected


def test_what_lies_within_the_margin_is_the_same_even_if_it_surely_differs() -> None:
    one, other = metric("ndcg", 0.5, 0.0001), metric("ndcg", 0.505, 0.0001)
    assert verdict(one, other, margin=0.02) is Verdict.SAME
    assert verdict(one, other, margin=0.01) is Verdict.BETTER
    assert verdict(other, one, margin=0.001) is Verdict.WORSE


def test_the_margin_of_a_share_near_zero_is_a_tenth_of_the_margin() -> None:
    assert verdict(metric("failure", 0.0, 0.001), metric("failure", 0.0, 0.001)) is Verdict.SAME
    assert verdict(metric("failure", 0.0, 0.002), metric("failure", 0.0, 0.002)) is Verdict.UNKNOWN
    assert verdict(metric("log_loss", 0.0, 0.001), metric("log_loss", 0.0, 0.001)) is Verdict.UNKNOWN


def test_the_interval_is_as_wide_as_so_many_comparisons_need() -> None:
    names = ["ndcg", "recall", "auc", "hit_rate"]
    found = compare([metric(one, 0.5) for one in names], [metric(one, 0.53) for one in names], margin=0.0)
    expected = difference(Estimate(0.5, 0.49, 0.51), Estimate(0.53, 0.52, 0.54), comparisons=4)
    assert [one.interval for one in found] == [pytest.approx(expected)] * 4
    alone = compare([metric(one, 0.5) for one in names], [metric(one, 0.53) for one in names], margin=0.0,
                    metrics=["auc"])  # fmt: skip
    assert [one.result.metric for one in alone] == ["auc"]
    assert alone[0].interval == pytest.approx(
        difference(Estimate(0.5, 0.49, 0.51), Estimate(0.53, 0.52, 0.54))
    )


def test_what_is_not_tested_by_chance_widens_no_interval() -> None:
    one = [metric("ndcg", 0.5), metric("gini", 0.5, None), rule(0), metric("auc", None)]
    other = [metric("ndcg", 0.53), metric("gini", 0.6, None), rule(0), metric("auc", 0.7)]
    found = {item.result.metric: item for item in compare(one, other, margin=0.0)}
    assert found["ndcg"].interval == pytest.approx(
        difference(Estimate(0.5, 0.49, 0.51), Estimate(0.53, 0.52, 0.54))
    )
    assert found["gini"].verdict is Verdict.NOT_JUDGED
    assert found["gini"].difference == pytest.approx(0.1)
    assert found["gini"].why == "it has no interval"


def test_a_value_on_one_side_alone_is_unknown_and_on_neither_is_not_judged() -> None:
    (alone,) = compare([metric("auc", None)], [metric("auc", 0.7)], margin=0.0)
    assert (alone.verdict, alone.why) == (Verdict.UNKNOWN, "A: no_data, nobody came")
    (nobody,) = compare([metric("auc", None)], [metric("auc", None)], margin=0.0)
    assert (nobody.verdict, nobody.why) == (
        Verdict.NOT_JUDGED, "A: no_data, nobody came; B: no_data, nobody came"
    )  # fmt: skip
    (absent,) = compare([metric("auc", 0.7)], [], margin=0.0)
    assert (absent.verdict, absent.why) == (Verdict.UNKNOWN, "B: does not have it")
    assert absent.result.metric == "auc"
    (strange,) = compare([metric("auc", math.nan)], [metric("auc", 0.7)], margin=0.0)
    assert strange.verdict is Verdict.UNKNOWN


def test_other_settings_make_another_metric() -> None:
    one, other = metric("ndcg", 0.5), metric("ndcg", 0.9)
    other = Result(
        **{name: getattr(other, name) for name in other.__dataclass_fields__} | {"definition": "2"}
    )
    (found,) = compare([one], [other], margin=0.0)
    assert (found.verdict, found.why) == (Verdict.UNKNOWN, "the sides measure it with different settings")


def test_labels_tell_series_apart() -> None:
    one = [metric("ndcg", 0.5, k="5"), metric("ndcg", 0.6, k="10")]
    other = [metric("ndcg", 0.6, k="10"), metric("ndcg", 0.7, k="5")]
    found = compare(one, other, margin=0.0)
    assert [(item.result.labels["k"], item.difference) for item in found] == [
        ("5", pytest.approx(0.2)),
        ("10", 0.0),
    ]


def test_a_hard_rule_that_one_side_keeps_decides_at_once() -> None:
    assert verdict(rule(0, kind="hard"), rule(1, kind="hard")) is Verdict.WORSE
    assert verdict(rule(1, kind="hard"), rule(0, kind="hard")) is Verdict.BETTER
    assert verdict(rule(0), rule(1)) is Verdict.UNKNOWN  # of a soft rule one row of 10,000 is chance
    assert verdict(rule(10, kind="hard"), rule(12, kind="hard")) is Verdict.UNKNOWN
    assert verdict(rule(10, kind="hard"), rule(100, kind="hard")) is Verdict.WORSE


def test_a_rule_that_nobody_violates_is_the_same() -> None:
    assert verdict(rule(0), rule(0)) is Verdict.SAME
    assert verdict(rule(0, rows=10, kind="hard"), rule(0, rows=10**6, kind="hard")) is Verdict.SAME


def test_the_samples_that_would_decide() -> None:
    z = 1.959964
    one_sample = 0.01 * math.sqrt(2) * math.sqrt(1000)  # half the width with one sample a side
    (found,) = compare([metric("ndcg", 0.5)], [metric("ndcg", 0.505)], margin=0.0)
    assert found.needed == pytest.approx((one_sample * (1 + 0.841621 / z) / 0.005) ** 2, abs=1)
    (wide,) = compare([metric("ndcg", 0.5)], [metric("ndcg", 0.5)], margin=0.02)
    assert wide.needed == pytest.approx((one_sample * (1 + 1.281552 / z) / 0.01) ** 2, abs=1)
    (never,) = compare([metric("log_loss", 0.5)], [metric("log_loss", 0.5)], margin=0.0)
    assert never.needed is None
    half_of_so_many = 0.01 * math.sqrt(1000 / (found.needed + 1))
    enough = [metric("ndcg", value, half_of_so_many) for value in (0.5, 0.505)]
    assert verdict(*enough, margin=0.0) is Verdict.BETTER


def test_so_many_samples_put_equal_sides_within_the_margin_in_80_of_100_cases() -> None:
    def side(p: float, n: int) -> Result:
        interval = wilson(round(p * n), n)
        assert interval is not None
        return replace(metric("ndcg", p, None, n), lower=interval.lower, upper=interval.upper)

    (found,) = compare([side(0.4, 1000)], [side(0.4, 1000)], margin=0.05)
    rng = np.random.default_rng(8)
    counts = rng.binomial(found.needed, 0.4, (500, 2)) / found.needed
    same = sum(
        verdict(side(a, found.needed), side(b, found.needed), margin=0.05) is Verdict.SAME for a, b in counts
    )
    assert 375 <= same <= 440


def test_other_kinds_of_results_are_not_compared() -> None:
    health = Result(
        metric="health_score", status=Status.OK, definition="1", kind=ResultKind.HEALTH, value=1.0
    )
    found = compare([metric("auc", 0.5), health], [], margin=0.0)
    assert [one.result.metric for one in found] == ["auc"]


def test_nothing_to_compare() -> None:
    assert compare([], [], margin=0.0) == []


def test_a_slice_of_one_side_is_not_judged() -> None:
    labels = {"dimension": "weekday", "value": "mon"}
    both = [replace(metric("ndcg", value), labels=labels) for value in (0.5, None)]
    (found,) = compare(both[:1], [], margin=0.0)
    assert (found.verdict, found.why) == (Verdict.NOT_JUDGED, "B: does not have it")
    (lost,) = compare(both[:1], both[1:], margin=0.0)
    assert lost.verdict is Verdict.UNKNOWN
