"""Of 100 intervals of 95 %, between 93 and 97 hold the truth: every interval that the package offers.

Drawn from seeds, so that the same numbers come out each time.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from monitor.statistics.auc import auc_gap, auc_sums, delong_interval, delong_variance
from monitor.statistics.effects import Moments, RatioSums, ratio_delta, ratio_difference, welch
from monitor.statistics.intervals import normal_mean, wilson_bounds


def held(intervals, truth):
    return np.mean([low <= truth <= high for low, high in intervals])


def moments_of(rows):
    n = rows.shape[1]
    return [
        Moments.of_sums(n, total, squares)
        for total, squares in zip(rows.sum(axis=1), (rows**2).sum(axis=1), strict=True)
    ]


@pytest.mark.parametrize("n", [20, 50, 1000])
def test_wilson(n):
    """Counts are a lattice, so that at one share it can be 98 %; over many shares it is 95 %."""
    random = np.random.default_rng(1)
    shares = random.uniform(0.01, 0.99, 20_000)
    lower, upper = wilson_bounds(random.binomial(n, shares), n)
    assert 0.93 <= np.mean((lower <= shares) & (shares <= upper)) <= 0.97


@pytest.mark.parametrize(("n", "m"), [(5, 40), (40, 40), (1000, 10)])
def test_welch(n, m):
    random = np.random.default_rng(2)
    control, treatment = random.normal(5, 3, (3000, n)), random.normal(6, 1, (3000, m))
    pairs = zip(moments_of(control), moments_of(treatment), strict=True)
    assert 0.93 <= held([welch(one, other).interval for one, other in pairs], 1.0) <= 0.97


def users(random, tries, n, factor=1.0):
    """Clicks and exposures of n users each: tastes differ, and so does how much they are shown."""
    seen = random.geometric(0.1, (tries, n))
    clicks = random.binomial(seen, np.minimum(1.0, factor * random.beta(2, 18, (tries, n))))
    sums = (clicks, seen, clicks**2, seen**2, clicks * seen)
    return [RatioSums(n, *map(float, row)) for row in np.stack([s.sum(axis=1) for s in sums], axis=1)]


def test_ratio_delta():
    found = [ratio_delta(sums).interval for sums in users(np.random.default_rng(3), 3000, 400)]
    assert 0.93 <= held(found, 0.1) <= 0.97


def test_ratio_difference():
    random = np.random.default_rng(4)
    pairs = zip(users(random, 3000, 400), users(random, 3000, 600, 1.2), strict=True)
    # 1.2 times a beta(2, 18) passes 1 about never, so that the mean is 1.2 / 10.
    assert 0.93 <= held([ratio_difference(one, other).interval for one, other in pairs], 0.02) <= 0.97


def test_the_interval_of_a_mean_holds_over_users_and_not_over_rows():
    random = np.random.default_rng(5)
    own = random.normal(3, 1, (2000, 60))
    rows = own[:, :, None] + random.normal(0, 1, (2000, 60, 10))
    by_user = rows.mean(axis=2)
    found = [normal_mean(60, u.sum(), (u**2).sum()) for u in by_user]
    assert 0.93 <= held(found, 3.0) <= 0.97
    by_row = [normal_mean(600, r.sum(), (r**2).sum()) for r in rows]
    assert held(by_row, 3.0) < 0.7


def binormal(random, tries, m, n, auc):
    """Sums of samples whose true AUC is known: positives are shifted by sqrt(2) times its normal quantile."""
    shift = math.sqrt(2) * stats.norm.ppf(auc)
    labels = np.r_[np.ones(m), np.zeros(n)]
    scores = np.concatenate([random.normal(shift, 1, (tries, m)), random.normal(0, 1, (tries, n))], axis=1)
    return [auc_sums(row, labels) for row in scores]


@pytest.mark.parametrize(
    ("m", "n", "auc"), [(40, 40, 0.5), (30, 100, 0.7), (50, 500, 0.9), (150, 300, 0.97), (300, 300, 0.99)]
)
def test_delong(m, n, auc):
    found = [delong_interval(sums) for sums in binormal(np.random.default_rng(6), 2000, m, n, auc)]
    assert 0.93 <= held(found, auc) <= 0.97


def test_delongs_plain_interval_loses_its_coverage_near_1():
    sums = binormal(np.random.default_rng(7), 2000, 150, 150, 0.985)
    plain = [
        (s.auc - 1.96 * math.sqrt(v), s.auc + 1.96 * math.sqrt(v)) for s in sums for v in [delong_variance(s)]
    ]
    assert held(plain, 0.985) < 0.93
    assert 0.93 <= held([delong_interval(s) for s in sums], 0.985) <= 0.97


@pytest.mark.parametrize(
    ("one", "other"), [((60, 200, 0.75), (60, 200, 0.75)), ((200, 400, 0.97), (100, 200, 0.8))]
)
def test_the_gap_of_two_aucs(one, other):
    random = np.random.default_rng(8)
    pairs = zip(binormal(random, 1500, *one), binormal(random, 1500, *other), strict=True)
    found = [auc_gap(first, second).interval for first, second in pairs]
    assert 0.93 <= held(found, one[2] - other[2]) <= 0.97


def of_users(random, users, rows):
    """Rows of users with a level and a skill of their own, and whose rows they are."""
    who = np.repeat(np.arange(users), rows)
    level, skill, bias = (
        random.normal(0, 1, users),
        random.normal(1, 0.5, users),
        random.normal(0, 0.3, users),
    )
    x = random.normal(size=len(who))
    labels = random.random(len(who)) < 1 / (1 + np.exp(1 - level[who] - skill[who] * x))
    return x + bias[who], labels, who


@pytest.mark.parametrize("users", [20, 50])
def test_healthy_gaps_of_few_users_alarm_no_more_often_than_the_level(users):
    random = np.random.default_rng(users)
    worlds = [[of_users(random, users, 60) for _ in range(2)] for _ in range(200)]

    def alarms(clustered):
        found = [
            auc_gap(*(auc_sums(x, y, who if clustered else None) for x, y, who in world)) for world in worlds
        ]
        return np.mean([gap.interval.lower > 0 for gap in found])

    assert alarms(clustered=True) <= 0.055  # 2.5 %, and what 200 worlds may be off by
    assert alarms(clustered=False) > 0.08


@pytest.mark.parametrize("seed", range(5))
def test_the_clustered_variance_is_delongs_if_every_row_is_a_user(seed):
    random = np.random.default_rng(seed)
    x, labels, _ = of_users(random, 30, 10)
    own, plain = auc_sums(x, labels, np.arange(300)), auc_sums(x, labels)
    assert delong_variance(own) == pytest.approx(delong_variance(plain), rel=1e-12)


def test_fewer_than_ten_users_have_no_interval():
    x, labels, who = of_users(np.random.default_rng(0), 9, 100)
    assert delong_interval(auc_sums(x, labels, who)) is None
    x, labels, who = of_users(np.random.default_rng(0), 10, 100)
    assert delong_interval(auc_sums(x, labels, who)) is not None
