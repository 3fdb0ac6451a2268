"""Sample sizes against what R prints, against simulation, and against their own inverses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from monitor.statistics.sample_size import Mean, Plan, Share, detectable_effect, power_at, sample_size


@pytest.mark.parametrize(
    ("metric", "effect", "plan", "users"),
    [
        # R 4: power.prop.test(p1, p2, power, sig.level, alternative) and power.t.test(delta, sd, power)
        (Share(0.5), 0.25, Plan(power=0.9), 76.7),
        (Share(0.05), 0.001, Plan(), 752_702.5),
        (Mean(1.0), 1.0, Plan(power=0.9), 22.02110),
        (Mean(1.0), 1.0, Plan(power=0.9, two_sided=False), 17.84713),
    ],
)
def test_sample_sizes_agree_with_r(metric, effect, plan, users):
    assert sample_size(metric, effect, plan) == math.ceil(users)


@pytest.mark.parametrize(
    ("metric", "effect", "n", "power"),
    [(Share(0.5), 0.25, 50, 0.7401659), (Mean(1.0), 1.0, 20, 0.8689528)],
)
def test_powers_agree_with_r(metric, effect, n, power):
    assert power_at(metric, effect, n, Plan()) == pytest.approx(power, abs=1e-6)


@given(
    baseline=st.floats(0.01, 0.9),
    part=st.floats(0.05, 0.9),
    ratio=st.sampled_from([0.25, 1.0, 3.0]),
    two_sided=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_the_size_for_shares_agrees_with_the_closed_formula(baseline, part, ratio, two_sided):
    effect = part * (1 - baseline)
    plan = Plan(0.05, 0.8, ratio, two_sided)
    other = baseline + effect
    pooled = (baseline + ratio * other) / (1 + ratio)
    one = stats.norm.isf(0.025 if two_sided else 0.05) * math.sqrt(pooled * (1 - pooled) * (1 + 1 / ratio))
    two = stats.norm.ppf(0.8) * math.sqrt(baseline * (1 - baseline) + other * (1 - other) / ratio)
    assert sample_size(Share(baseline), effect, plan) == max(
        1, math.ceil((one + two) ** 2 / effect**2 - 1e-9)
    )


@given(
    metric=st.one_of(st.floats(0.001, 0.5).map(Share), st.floats(0.01, 1000).map(Mean)),
    n=st.integers(30, 10**7),
    ratio=st.sampled_from([0.5, 1.0, 2.0]),
)
@settings(max_examples=100, deadline=None)
def test_the_three_questions_are_inverses_of_each_other(metric, n, ratio):
    plan = Plan(ratio=ratio)
    effect = detectable_effect(metric, n, plan)
    if effect is None:
        assert power_at(metric, metric.most, n, plan) < plan.power
        return
    assert power_at(metric, effect, n, plan) == pytest.approx(0.8, abs=1e-6)
    assert n - 1 <= sample_size(metric, effect, plan) <= n


@pytest.mark.parametrize("ratio", [1.0, 0.25])
def test_a_simulation_finds_the_effect_as_often_as_promised(ratio):
    random, plan, tries = np.random.default_rng(2), Plan(ratio=ratio), 20_000
    n = sample_size(Share(0.1), 0.03, plan)
    m = math.ceil(ratio * n)
    one, other = random.binomial(n, 0.1, tries) / n, random.binomial(m, 0.13, tries) / m
    pooled = (n * one + m * other) / (n + m)
    z = (other - one) / np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    assert np.mean(z > 1.959964) == pytest.approx(0.8, abs=0.015)
    n = sample_size(Mean(2.0), 1.5, plan)
    m = math.ceil(ratio * n)
    groups = random.normal(0, 2, (tries, n)), random.normal(1.5, 2, (tries, m))
    found = stats.ttest_ind(groups[1], groups[0], axis=1)
    assert np.mean((found.pvalue < 0.05) & (found.statistic > 0)) == pytest.approx(0.8, abs=0.02)


def test_a_fall_needs_the_same_size_as_a_rise_for_means_and_not_for_shares():
    assert sample_size(Mean(3.0), -0.5, Plan()) == sample_size(Mean(3.0), 0.5, Plan())
    assert sample_size(Share(0.05), -0.01, Plan()) < sample_size(Share(0.05), 0.01, Plan())


def test_tiny_effects_need_very_many_users_and_huge_ones_two():
    assert sample_size(Mean(1.0), 1e-7, Plan()) == pytest.approx(1.5698e15, rel=1e-3)
    assert sample_size(Mean(1.0), 1e6, Plan()) == 2
    with pytest.raises(ValueError, match="too small"):
        sample_size(Mean(1.0), 1e-200, Plan())
    with pytest.raises(ValueError, match="too small"):
        sample_size(Share(1e-320), 2e-322, Plan())


def test_as_many_users_as_the_command_takes_show_a_small_rise_of_a_mean():
    n = 5 * 10**14
    two_errors = (1.959964 + 0.841621) * 30.0 * (2 / n) ** 0.5  # the normal distribution holds here
    assert detectable_effect(Mean(30.0), n, Plan()) == pytest.approx(two_errors, rel=1e-6)


def test_one_user_an_arm_has_no_power():
    assert detectable_effect(Mean(1.0), 1, Plan()) is None
    assert detectable_effect(Share(0.05), 1, Plan()) is None
    assert power_at(Mean(1.0), 5.0, 1, Plan()) == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Plan(alpha=0),
        lambda: Plan(alpha=0.9),
        lambda: Plan(power=1),
        lambda: Plan(power=math.nan),
        lambda: Plan(ratio=0),
        lambda: Plan(ratio=math.inf),
        lambda: Share(0),
        lambda: Share(math.nan),
        lambda: Mean(0),
        lambda: Mean(math.inf),
        lambda: sample_size(Share(0.5), 0, Plan()),
        lambda: sample_size(Share(0.5), 0.6, Plan()),
        lambda: sample_size(Mean(1), math.nan, Plan()),
        lambda: power_at(Mean(1), 1, 0, Plan()),
        lambda: detectable_effect(Mean(1), math.inf, Plan()),
    ],
)
def test_an_invalid_plan_is_refused(wrong):
    with pytest.raises(ValueError, match=r"got|is no share"):
        wrong()
