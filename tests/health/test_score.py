"""The health score: worked by hand, what is missing, and what its settings refuse."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.results import Result, Status
from monitor.health.score import HealthCheck, health
from monitor.settings.health import HealthPart, HealthSettings

COVERAGE = {"metric": "coverage", "labels": {"by": "pv"}, "weight": 2, "zero": 0.8, "one": 1.0}
GINI = {"metric": "gini", "zero": 0.9, "one": 0.5}
NOVELTY = {"metric": "novelty", "labels": {"by": "item"}, "zero": 0.0, "one": 0.4}


def settings(*parts, **more):
    return HealthSettings.model_validate({"parts": parts, **more})


def measured(metric, value=None, status=Status.OK, labels=None, **more):
    return Result(metric=metric, status=status, value=value, labels=labels or {}, definition="1", **more)


WELL = [
    measured("coverage", 0.95, labels={"by": "pv"}, samples=400, lower=0.9, upper=1.0),
    measured("coverage", 0.1, labels={"by": "uv"}),
    measured("gini", 0.6),
    measured("novelty", 0.5, labels={"by": "item"}),
]


def scored(results, *parts, **more):
    found = health(results, settings(*(parts or (COVERAGE, GINI, NOVELTY)), **more))
    assert found[0].metric == "health_score"
    assert {one.metric for one in found[1:]} == {"health_part"}
    return found[0], {one.labels["part"]: one for one in found[1:]}


def test_the_score_is_the_weighted_mean_of_the_worth_of_its_parts():
    score, parts = scored(WELL)
    assert {name: one.value for name, one in parts.items()} == {
        "coverage by=pv": pytest.approx(0.75),
        "gini": pytest.approx(0.75),  # the lower the better: 0.9 is nothing, 0.5 is all
        "novelty by=item": 1.0,  # above its target a part is worth no more
    }
    assert score.value == pytest.approx((2 * 0.75 + 0.75 + 1) / 4)
    assert (score.status, score.samples, score.detail) == (Status.OK, 3, "")


def test_a_part_reports_its_value_targets_and_weight():
    part = scored(WELL)[1]["coverage by=pv"]
    assert (part.samples, part.lower, part.upper) == (400, pytest.approx(0.5), 1.0)
    assert part.detail == "coverage is 0.95; worth 0 at 0.8, 1 at 1; 50% of the score"


def test_the_interval_is_reversed_if_lower_values_are_better():
    part = scored([measured("gini", 0.6, lower=0.55, upper=0.8)], GINI)[1]["gini"]
    assert (part.lower, part.upper) == (pytest.approx(0.25), pytest.approx(0.875))


def test_a_value_beyond_its_targets_is_worth_0_or_1():
    assert scored([measured("gini", 0.95)], GINI)[0].value == 0.0
    assert scored([measured("gini", 0.1)], GINI)[0].value == 1.0


@pytest.mark.parametrize(
    ("status", "said", "of_part"),
    [
        (Status.NO_DATA, "no data", Status.NO_DATA),
        (Status.UNDEFINED, "undefined", Status.NO_DATA),
        (Status.ERROR, "error", Status.ERROR),
        (Status.LATE, "late", Status.LATE),
    ],
)
def test_a_part_without_a_value_is_named_and_the_others_make_the_score(status, said, of_part):
    value = 0.6 if status is Status.LATE else None
    score, parts = scored([WELL[0], measured("gini", value, status, detail="of its own"), WELL[3]])
    assert score.value == pytest.approx((2 * 0.75 + 1) / 3)
    assert (score.detail, score.samples) == (f"without gini ({said})", 2)
    assert (parts["gini"].status, parts["gini"].value, parts["gini"].detail) == (of_part, None, "of its own")


def test_a_violated_metric_counts_with_its_value():
    assert scored([measured("gini", 0.6, Status.VIOLATED)], GINI)[0].value == pytest.approx(0.75)


def test_there_is_no_score_if_too_little_of_the_weight_has_a_value():
    score, parts = scored(WELL[2:3])
    assert (score.status, score.value, score.samples) == (Status.NO_DATA, None, 1)
    assert score.detail == (
        "25% of the weight has a value, but 50% is needed; without coverage by=pv (not measured), novelty "
        "by=item (not measured)"
    )
    assert parts["coverage by=pv"].detail == "it was not measured in this window"
    assert scored(WELL[2:3], min_weight=0.25)[0].value == pytest.approx(0.75)
    assert scored([])[0].status is Status.NO_DATA
    parts = [{**GINI, "metric": "gini", "weight": 0.4996}, {**GINI, "metric": "novelty", "weight": 0.5004}]
    few = scored([measured("gini", 0.5)], *parts)[0].detail
    assert few.startswith("49.96% of the weight has a value, but 50% is needed; ")


def test_exactly_the_minimum_weight_is_enough_despite_rounding():
    parts = [{**GINI, "metric": name, "weight": 0.1} for name in ("gini", "a", "b")]
    there = [measured("gini", 0.5), measured("a", 0.5)]
    assert scored(there, *parts, min_weight=2 / 3)[0].value == 1.0


def test_targets_may_be_the_largest_floats():
    part = {"metric": "action_value", "zero": -1.7e308, "one": 1.7e308}
    assert scored([measured("action_value", 0.0)], part)[0].value == 0.5


def test_the_definition_changes_with_weights_and_targets_but_not_with_names():
    def definition(**change):
        return scored(WELL, {**COVERAGE, **change}, GINI)[0].definition

    assert len({definition(), definition(weight=3), definition(zero=0.7), definition(one=0.9)}) == 4
    assert definition() == definition(name="lists that hold something")


def test_the_score_waits_for_the_actions_only_if_a_part_needs_them():
    assert HealthCheck(settings(COVERAGE, GINI)).needs == {EXPOSURES}
    clicks = {"metric": "action_rate", "labels": {"by": "pv", "event": "click"}, "zero": 0, "one": 0.1}
    assert HealthCheck(settings(COVERAGE, clicks)).needs == {EXPOSURES, FEEDBACK}


@pytest.mark.parametrize(
    "change",
    [{"weight": 0}, {"weight": -1}, {"weight": math.inf}, {"one": 0.9}, {"zero": math.nan}, {"name": ""}],
)
def test_an_invalid_part_is_refused(change):
    with pytest.raises(ValidationError):
        HealthPart.model_validate({**GINI, **change})


@pytest.mark.parametrize("change", [{"parts": ()}, {"min_weight": 0}, {"min_weight": 1.1}])
def test_a_score_without_parts_or_with_an_invalid_weight_is_refused(change):
    with pytest.raises(ValidationError):
        HealthSettings.model_validate({"parts": (GINI,), **change})
