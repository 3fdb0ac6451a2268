"""Importance weights on windows worked by hand."""

from __future__ import annotations

import math

import pytest

from monitor.core.results import Status
from monitor.settings.metrics import MetricSettings
from tests.metrics.worlds import World, by_name, lists, results_of

ONLY = ("importance_weight", "effective_sample_size", "low_propensity")


def found(*propensities, **settings):
    rows = [
        {**row, "propensity": p}
        for row, p in zip(lists(("u1", "x" * len(propensities))), propensities or [None], strict=True)
    ]
    return by_name(results_of(World(rows, columns=("propensity",)), MetricSettings(**settings), only=ONLY))


def test_weights_are_the_inverse_of_the_propensities():
    results = found(0.5, 0.25, 1.0)  # weights 2, 4, 1
    assert results["importance_weight", "min"].value == 1.0
    assert results["importance_weight", "max"].value == 4.0
    assert results["effective_sample_size", ""].value == pytest.approx(7**2 / (4 + 16 + 1))
    assert results["effective_sample_size", ""].samples == 3
    assert results["low_propensity", ""].value == 0.0


def test_equal_propensities_are_worth_all_their_samples():
    assert found(*[0.03] * 7)["effective_sample_size", ""].value == pytest.approx(7.0)


def test_one_tiny_propensity_gives_an_effective_sample_size_of_1():
    results = found(1e-200, 0.5, 0.5)
    assert results["effective_sample_size", ""].value == pytest.approx(1.0)
    assert results["importance_weight", "max"].value == pytest.approx(1e200)
    assert results["low_propensity", ""].value == pytest.approx(1 / 3)


def test_a_weight_beyond_float64_is_undefined_and_the_others_have_values():
    results = found(5e-324, 0.5, 1.5)
    assert results["importance_weight", "max"].status is Status.UNDEFINED
    assert results["importance_weight", "max"].detail == (
        "the sums ran out of the range of float64; 1 of 3 propensities do not lie in (0, 1]"
    )
    assert results["importance_weight", "min"].value == 2.0
    assert results["effective_sample_size", ""].value == pytest.approx(1.0)


def test_invalid_propensities_are_left_out_and_counted():
    results = found(0.5, 0.0, -1.0, 1.5, math.nan, math.inf, None)
    assert results["importance_weight", "max"].value == 2.0
    assert results["importance_weight", "max"].detail == "5 of 6 propensities do not lie in (0, 1]"
    # 0 and -1 are below the bound, of four finite ones.
    assert (results["low_propensity", ""].value, results["low_propensity", ""].samples) == (0.5, 4)


def test_a_denominator_of_0_is_undefined_and_never_infinite():
    results = found(0.0, 0.0)
    for key in (("importance_weight", "min"), ("importance_weight", "max"), ("effective_sample_size", "")):
        assert results[key].status is Status.UNDEFINED
    assert results["low_propensity", ""].value == 1.0


def test_the_bound_of_low_propensities_is_a_setting_and_part_of_the_definition():
    result = found(0.05, 0.5, min_propensity=0.1)["low_propensity", ""]
    assert (result.value, result.definition) == (0.5, "1;min_propensity=0.1")


@pytest.mark.parametrize("propensities", [(), (None,)])
def test_no_propensities_are_no_data(propensities):
    assert {r.status for r in found(*propensities).values()} == {Status.NO_DATA}
