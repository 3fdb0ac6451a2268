"""Estimates of another policy: by hand, against the published formulas row by row, and in simulated worlds.

The reference below is written from the definitions that the Open Bandit Pipeline documents: IPS with and
without a largest weight, self-normalised IPS, the direct method, doubly robust, independent-positions IPS.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.statistics.effects import RatioSums
from monitor.statistics.intervals import bounded_mean
from monitor.statistics.off_policy import (
    LEAST_EFFECTIVE,
    Rows,
    clipped_ips,
    direct_method,
    doubly_robust,
    effective,
    from_sums,
    importance_weights,
    ips,
    ips_by_position,
    overlap,
    ratio_sums,
    self_normalised_ips,
    unsupported_share,
)

ROOT = Path(__file__).resolve().parents[2]
EIGHTHS = st.integers(0, 8).map(lambda n: n / 8)
LOGGED = st.tuples(
    st.integers(1, 8).map(lambda n: n / 8),  # propensity
    EIGHTHS,  # target
    EIGHTHS,  # reward
    EIGHTHS,  # predicted
    EIGHTHS,  # expected
    st.integers(0, 5),  # request
)
LOGS = st.lists(LOGGED, min_size=2, max_size=30)


def reference(log, cap=math.inf):
    """Every estimator as its definition, one round after the other."""
    n, requests = len(log), {row[5] for row in log}
    found = dict.fromkeys(("ips", "clipped", "dm", "dr", "by_position"), 0.0)
    weighted = normaliser = 0.0
    for p, q, r, predicted, expected, _ in log:
        w = q / p
        found["ips"] += w * r / n
        found["clipped"] += min(w, cap) * r / n
        found["dm"] += expected / n
        found["dr"] += (expected + w * (r - predicted)) / n
        found["by_position"] += w * r / len(requests)
        weighted += w * r
        normaliser += w
    found["snips"] = weighted / normaliser if normaliser else None
    return found


def columns(log):
    return (np.array(column) for column in zip(*log, strict=True))


@given(log=LOGS, cap=st.sampled_from([0.5, 1.0, 3.0, 100.0]))
@settings(max_examples=200, deadline=None)
def test_every_estimator_is_that_of_the_published_formula(log, cap):
    p, q, r, predicted, expected, requests = columns(log)
    rows = Rows.of(importance_weights(q, p).values, r)
    found = {
        "ips": ips(rows),
        "clipped": clipped_ips(rows, cap),
        "snips": self_normalised_ips(rows),
        "dm": direct_method(expected),
        "dr": doubly_robust(rows, predicted, expected),
        "by_position": ips_by_position(rows, requests),
    }
    known = reference(log, cap)
    without = {name for name, one in found.items() if one is None}
    all_0, one_list = not q.any(), len(set(requests)) < 2
    assert without == ({"by_position"} if one_list else set()) | (set(found) - {"dm"} if all_0 else set())
    for name in found.keys() - without:
        assert found[name].value == pytest.approx(known[name], abs=1e-12), name
        lower, upper = found[name].interval
        assert lower <= found[name].value <= upper


@given(log=LOGS, units=st.lists(st.integers(0, 4), min_size=30, max_size=30))
@settings(max_examples=100, deadline=None)
def test_sums_over_units_are_those_of_a_loop(log, units):
    p, q, r, *_ = columns(log)
    by_unit = {}
    for unit, x, y in zip(units, q / p * r, q / p, strict=False):
        so_far = by_unit.get(unit, (0.0, 0.0))
        by_unit[unit] = (so_far[0] + x, so_far[1] + y)
    x, y = np.array(list(by_unit.values())).T
    expected = RatioSums(len(x), x.sum(), y.sum(), (x**2).sum(), (y**2).sum(), (x * y).sum())
    assert ratio_sums(q / p * r, q / p, units[: len(log)]) == pytest.approx(expected)


@given(log=LOGS)
@settings(max_examples=100, deadline=None)
def test_the_order_of_rows_and_the_names_of_units_do_not_matter(log):
    p, q, r, *_, units = columns(log)
    turned = slice(None, None, -1)
    one = self_normalised_ips(Rows.of(q / p, r, units))
    other = self_normalised_ips(Rows.of((q / p)[turned], r[turned], 7 + 2 * units[turned]))
    assert (one is None) == (other is None)
    if one is not None:
        assert [*one[:2], *one.interval] == pytest.approx([*other[:2], *other.interval])


@given(rewards=st.lists(EIGHTHS, min_size=2, max_size=40))
@settings(max_examples=100, deadline=None)
def test_a_target_that_is_the_logging_policy_earns_the_mean_of_the_log(rewards):
    rows = Rows.of(np.ones(len(rewards)), rewards)
    for found in (ips(rows), self_normalised_ips(rows), clipped_ips(rows, 1.0)):
        assert found.value == pytest.approx(np.mean(rewards))
        own = bounded_mean(len(rewards), sum(rewards), sum(r * r for r in rewards))
        # The floor of the variance is that of zeros and ones; spread rewards have less.
        assert found.interval.lower <= own.lower + 1e-9
        assert found.interval.upper >= own.upper - 1e-9
    clicks = np.array(rewards) > 0.5
    rows = Rows.of(np.ones(len(clicks)), clicks)
    assert ips(rows).interval == pytest.approx(
        bounded_mean(len(clicks), clicks.sum(), clicks.sum()), rel=0.05
    )


@given(log=LOGS)
@settings(max_examples=100, deadline=None)
def test_the_estimators_are_each_other_in_their_limits(log):
    p, q, r, _, expected, _ = columns(log)
    rows = Rows.of(q / p, r)
    if not q.any():
        assert ips(rows) is None
        return
    zero = np.zeros(len(r))
    assert doubly_robust(rows, zero, zero) == ips(rows)
    assert clipped_ips(rows, float((q / p).max())) == ips(rows)
    perfect = doubly_robust(rows, r, expected)
    assert perfect.value == pytest.approx(direct_method(expected).value)
    assert self_normalised_ips(Rows.of(3 * q / p, r)).value == pytest.approx(self_normalised_ips(rows).value)
    every_request = ips_by_position(rows, np.arange(len(r)))
    assert [every_request.value, *every_request.interval] == pytest.approx(
        [ips(rows).value, *ips(rows).interval]
    )


def test_a_log_worked_by_hand():
    weights = importance_weights([0.5, 0.1, 0.4, 0.2], [0.25, 0.2, 0.4, 0.1])
    assert weights.values.tolist() == [2.0, 0.5, 1.0, 2.0]
    rows = Rows.of(weights.values, [1, 1, 0, 0])
    assert ips(rows).value == 2.5 / 4
    assert clipped_ips(rows, 1.5).value == 2.0 / 4
    assert self_normalised_ips(rows).value == 2.5 / 5.5
    model, value = [0.5, 0.25, 0.25, 0.5], [0.5, 0.5, 0.25, 0.25]
    assert direct_method(value).value == 1.5 / 4
    # 2 * 0.5 + 0.5 * 0.75 - 1 * 0.25 - 2 * 0.5 = 0.125
    assert doubly_robust(rows, model, value).value == (1.5 + 0.125) / 4
    assert ips_by_position(rows, [0, 0, 1, 1]).value == 2.5 / 2
    assert effective(weights.values) == 5.5**2 / 9.25
    # The delta method by hand, about 0.625: 1.375, -0.125, -0.625, -0.625.
    assert ips(rows).error == pytest.approx(math.sqrt(4 / 3 * 2.6875) / 4)


def test_rows_without_a_weight_are_counted_by_their_fault():
    p = [0.5, 0.0, -0.1, 1.5, None, math.nan, math.inf, -math.inf, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0, 5e-324, 1.0]
    q = [0.5, 0.5, 0.50, 0.5, 0.50, 0.50, 0.5, 0.5, math.nan, -1, 2, math.inf, 0.0, -1, 1.0, 1.0]
    found = importance_weights(q, p)
    assert found.faults == {
        "propensity 0": 2,
        "propensity missing": 2,
        "propensity negative": 1,
        "propensity infinite": 2,
        "propensity above 1": 1,
        "target missing": 1,
        "target negative": 1,
        "target above 1": 1,
        "target infinite": 1,
        "overflow": 1,
    }
    assert found.values[found.usable].tolist() == [1.0, 0.0, 1.0]
    assert sum(found.faults.values()) + found.usable.sum() == len(p)


@pytest.mark.parametrize(
    ("target", "logged", "unsupported", "reason"),
    [
        ([], [], None, "the log has no row"),
        ([0.5, 0.5], [0.0, math.nan], None, "none of 2 rows has a weight"),
        ([0.5], [0.0], None, "none of 1 row has a weight"),
        ([0.5], [0.5], None, "1 row is worth 1 by their weights, less than 100"),
        ([0.5] * 200, [0.0] * 11 + [0.5] * 189, None, "11 of 200 rows have no weight, more than 5%"),
        ([0.5] * 200, [0.0] * 10 + [0.5] * 190, None, ""),
        ([0.5] * 200, [0.5] * 200, 0.06, "0.06 of the target's probability is on items that the log never"),
        ([0.5] * 200, [0.5] * 200, 0.05, ""),
        ([0.5] * 99, [0.5] * 99, 0.0, "99 rows are worth 99 by their weights, less than 100"),
        ([0.5] * 100, [0.5] * 100, 0.0, ""),
        ([1.0] * 9999 + [1.0], [1.0] * 9999 + [1e-6], 0.0, "10,000 rows are worth 1.02 by their weights"),
        ([0.0] * 200, [0.5] * 200, None, "200 rows are worth 0 by their weights, less than 100"),
    ],
)
def test_too_little_overlap_has_a_reason(target, logged, unsupported, reason):
    found = overlap(importance_weights(target, logged), unsupported=unsupported)
    assert found.reason.startswith(reason)
    assert bool(found.reason) == bool(reason)


def test_the_overlap_has_the_largest_weight_and_the_mean_by_unit():
    found = overlap(importance_weights([0.5, 0.1, 0.4, 0.2], [0.25, 0.2, 0.4, 0.0]), [3, 3, 0, 1])
    assert (found.rows, found.left_out, found.largest) == (4, 1, 2.0)
    assert found.effective == 3.5**2 / 5.25
    assert found.mean.value == 3.5 / 3  # two units remain


def test_the_share_without_support_is_by_the_rows_of_each_context():
    target, shown = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], [[4, 0, 1], [2, 9, 0]]
    assert unsupported_share(target, shown, [30, 10]) == pytest.approx((30 * 0.3 + 10 * 0.8) / 40)
    assert unsupported_share(target, shown, [0, 0]) is None
    with pytest.raises(ValueError, match="shapes"):
        unsupported_share(target, shown, [1, 1, 1])
    with pytest.raises(ValueError, match="not negative"):
        unsupported_share([[math.nan]], [[1]], [1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1]), "expected 2 values"),
        (([-1.0, 2.0], [1, 0]), "not negative"),
        (([math.nan, 2.0], [1, 0]), "finite"),
        (([math.inf, 2.0], [1, 0]), "finite"),
        (([1.0, 2.0], [1, math.nan]), "finite"),
        (([1.0, 2.0], [1, 2]), "within 0 and 1"),
        (([1.0, 2.0], [1, 0], [0]), "2 units"),
        (([1.0, 2.0], [1, 0], [0, -1]), "whole numbers"),
        (([1.0, 2.0], [1, 0], [0.0, 0.5]), "whole numbers"),
        (([[1.0]], [[1]]), "a vector"),
    ],
)
def test_impossible_rows_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Rows.of(*arguments)


def test_other_impossible_input_is_refused():
    rows = Rows.of([1.0, 2.0], [1, 0])
    for cap in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="cap"):
            clipped_ips(rows, cap)
    with pytest.raises(ValueError, match="expected 2 values"):
        doubly_robust(rows, [0.5], [0.5, 0.5])
    with pytest.raises(ValueError, match="within"):
        direct_method([0.5, 1.5])
    with pytest.raises(ValueError, match="one length"):
        importance_weights([0.5], [0.5, 0.5])
    with pytest.raises(ValueError, match="between 0 and 1"):
        overlap(importance_weights([0.5], [0.5]), unsupported=1.5)


@pytest.mark.parametrize("rewards", [[], [1]])
def test_no_row_and_one_row_give_no_estimate(rewards):
    rows = Rows.of(np.ones(len(rewards)), rewards)
    assert ips(rows) is None
    assert self_normalised_ips(rows) is None
    assert doubly_robust(rows, rewards, rewards) is None
    assert ips_by_position(rows, np.zeros(len(rewards), int)) is None
    assert direct_method(rewards) is None


def test_huge_and_tiny_weights_give_a_number_or_none():
    huge = Rows.of([1e200, 1e200, 1e200], [1, 0, 1])
    assert ips(huge) is None  # the squares overflow
    assert effective(huge.weights) == 3.0
    tiny = Rows.of([1e-150, 1e-150, 2e-150], [1, 0, 1])
    assert self_normalised_ips(tiny).value == pytest.approx(0.75)
    usual = self_normalised_ips(Rows.of([1.0, 1.0, 2.0], [1, 0, 1]))
    for size in (1e-300, 1e200):  # the same at any size
        assert self_normalised_ips(Rows.of([size, size, 2 * size], [1, 0, 1])) == usual
    assert effective(tiny.weights) == pytest.approx(16 / 6)
    assert effective(np.zeros(3)) == 0.0


def test_without_a_reward_the_interval_still_has_a_width():
    rows = Rows.of([4.0] * 50 + [0.5] * 150, np.zeros(200))
    for found in (ips(rows), self_normalised_ips(rows), clipped_ips(rows, 2.0)):
        assert found.value == 0
        assert found.interval.lower == 0
        assert 0.01 < found.interval.upper < 0.1


@pytest.mark.parametrize(("total", "lower", "upper"), [(1020.0, 0.922, 1.02), (-20.0, -0.02, 0.078)])
def test_a_value_beyond_the_bounds_keeps_its_error(total, lower, upper):
    """There Wilson's interval has no variance: 1.02 with an error of 0.05 had the interval 0.985 to 1.02."""
    squares = 0.05**2 * 1000 * 999 + total**2 / 1000
    found = from_sums(RatioSums(1000, total, 1000.0, squares, 1000.0, total), (0.0, 1.0), effective=250.0)
    assert found.error == pytest.approx(0.05)
    assert found.interval == pytest.approx((lower, upper), abs=1e-4)


def test_intervals_hold_the_truth_where_nearly_every_row_has_a_click():
    """A mean weight above 1 by chance takes the value above 1; one below 1 takes it far below the truth."""
    held, beyond = [], []
    for seed in range(600):
        world = World(seed)
        world.rates = 0.9 + 0.08 * world.random.random(ITEMS)
        rows = world.rows(*world.log(500))
        if effective(rows.weights) < LEAST_EFFECTIVE:
            continue
        found = ips(rows)
        held.append(found.interval.lower <= float(world.q @ world.rates) <= found.interval.upper)
        beyond += held[-1:] if found.value > 1 else []
    assert len(beyond) > 50
    assert np.mean(beyond) > 0.8
    assert 0.92 < np.mean(held) < 0.98


def test_rewards_without_bounds_have_the_interval_of_the_delta_method():
    money = Rows.of([2.0, 0.5, 1.0], [12.5, 0, -3.0], bounds=None)
    found = ips(money)
    assert found.value == 22 / 3
    assert found == from_sums(ratio_sums(np.array([25, 0, -3.0]), np.ones(3)), None)


# In simulated worlds the truth is known.

ITEMS = 15


class World:
    """A logging and a target policy over items with known click rates."""

    def __init__(self, seed, rate=0.05, contrast=0.8):
        self.random = np.random.default_rng(seed)
        self.p = self.policy(contrast)
        self.q = self.policy(contrast)
        self.rates = rate * self.random.gamma(2, 0.5, ITEMS)
        self.truth = float(self.q @ self.rates)

    def policy(self, contrast):
        chances = np.exp(contrast * self.random.normal(size=ITEMS))
        return chances / chances.sum()

    def log(self, n):
        """The items shown and the clicks."""
        items = self.random.choice(ITEMS, n, p=self.p)
        return items, (self.random.random(n) < self.rates[items]).astype(float)

    def rows(self, items, clicks, units=None):
        weights = importance_weights(self.q[items], self.p[items])
        return Rows.of(weights.values, clicks, units)


def by_halves(world, items, clicks):
    """A model of each half of the rows, fitted on the other: predictions of the items, and of the target."""
    predicted, expected = np.empty(len(items)), np.empty(len(items))
    for half in (0, 1):
        own = np.arange(len(items)) % 2 == half
        other = ~own
        shown = np.bincount(items[other], minlength=ITEMS)
        clicked = np.bincount(items[other], clicks[other], minlength=ITEMS)
        model = (clicked + 10 * clicks[other].mean()) / (shown + 10)
        predicted[own], expected[own] = model[items[own]], world.q @ model
    return predicted, expected


@pytest.mark.parametrize(("rate", "n"), [(0.005, 5000), (0.05, 1000), (0.3, 500)])
def test_intervals_hold_the_truth_at_their_level(rate, n):
    """Between 93 and 98 of 100. In worlds where clicks are rare they are a little wide on purpose."""
    held = dict.fromkeys(("ips", "clipped", "snips", "dr"), 0)
    tried = 0
    for seed in range(600):
        world = World(seed, rate)
        items, clicks = world.log(n)
        rows = world.rows(items, clicks)
        if effective(rows.weights) < LEAST_EFFECTIVE:
            continue
        tried += 1
        clipped_truth = float(np.minimum(world.q, 5 * world.p) @ world.rates)
        found = {
            "ips": (ips(rows), world.truth),
            "clipped": (clipped_ips(rows, 5.0), clipped_truth),
            "snips": (self_normalised_ips(rows), world.truth),
            "dr": (doubly_robust(rows, *by_halves(world, items, clicks)), world.truth),
        }
        for name, (estimate, truth) in found.items():
            held[name] += estimate.interval.lower <= truth <= estimate.interval.upper
    assert tried > 350
    for name, count in held.items():
        assert 0.93 <= count / tried <= 0.985, name


EDGES = (10, 30, 100, 300, 1000, 2000)


def measured_coverage():
    """The lines of the table in docs/statistics.md: of 100 intervals, how many hold the truth."""
    held = {
        name: [[] for _ in EDGES[1:]]
        for name in ("IPS", "self-normalised IPS", "the same, delta method alone", "doubly robust")
    }
    widths = [[] for _ in EDGES[1:]]
    for seed in range(2000):
        world = World(seed, rate=(0.005, 0.05, 0.3)[seed % 3], contrast=0.3 + seed % 10 / 6)
        items, clicks = world.log(2000)
        rows = world.rows(items, clicks)
        size = int(np.searchsorted(EDGES, effective(rows.weights))) - 1
        if not 0 <= size < len(widths):
            continue
        own = self_normalised_ips(rows)
        found = (
            ips(rows),
            own,
            from_sums(ratio_sums(rows.weights * clicks, rows.weights), None),
            doubly_robust(rows, *by_halves(world, items, clicks)),
        )
        for name, one in zip(held, found, strict=True):
            held[name][size].append(one.interval.lower <= world.truth <= one.interval.upper)
        widths[size].append((own.interval.upper - own.interval.lower) / world.truth)
    lines = [
        f"| {name} | {' | '.join(f'{100 * np.mean(cell):.0f}' for cell in cells)} |"
        for name, cells in held.items()
    ]
    width = " | ".join(f"{np.median(cell):.1f}" for cell in widths)
    return [*lines, f"| median width, as a multiple of the true value | {width} |"]


def test_the_page_shows_the_measured_coverage():
    text = (ROOT / "docs" / "statistics.md").read_text("utf-8")
    for line in measured_coverage():
        assert line in text


def test_the_delta_method_alone_is_too_narrow_for_rare_clicks_and_large_weights():
    plain = floored = tried = 0
    for seed in range(400):
        world = World(seed, rate=0.01, contrast=1.2)
        rows = world.rows(*world.log(1000))
        if effective(rows.weights) < LEAST_EFFECTIVE:
            continue
        tried += 1
        sums = ratio_sums(rows.weights * rows.rewards, rows.weights)
        delta = from_sums(sums, None)
        found = self_normalised_ips(rows)
        plain += delta is not None and delta.interval.lower <= world.truth <= delta.interval.upper
        floored += found.interval.lower <= world.truth <= found.interval.upper
    assert tried > 100
    assert plain / tried < 0.85
    assert floored / tried >= 0.93


def means(tries, estimate):
    """The mean of an estimate over simulated logs of one world, and four of its standard errors."""
    values = np.array([estimate(seed) for seed in range(tries)])
    return values.mean(), 4 * values.std() / math.sqrt(tries)


def logs_of(world, seed, n):
    world.random = np.random.default_rng(10_000 + seed)
    return world.log(n)


def test_the_bias_of_each_estimator_is_as_theory_says():
    world, n, tries = World(3), 200, 1500
    wrong_model = np.full(n, 0.2)

    def on(seed, of):
        items, clicks = logs_of(world, seed, n)
        return of(world.rows(items, clicks), items).value

    mean, error = means(tries, lambda seed: on(seed, lambda rows, _: ips(rows)))
    assert abs(mean - world.truth) < error
    cut = float(np.minimum(world.q, 2 * world.p) @ world.rates)
    mean, error = means(tries, lambda seed: on(seed, lambda rows, _: clipped_ips(rows, 2.0)))
    assert abs(mean - cut) < error < world.truth - cut
    mean, error = means(
        tries, lambda seed: on(seed, lambda rows, _: doubly_robust(rows, wrong_model, wrong_model))
    )
    assert abs(mean - world.truth) < error  # the propensities are right
    assert direct_method(wrong_model).value == 0.2  # the model is wrong, and so is its mean

    def with_wrong_propensities(seed):
        items, clicks = logs_of(world, seed, n)
        wrong = importance_weights(world.q[items], np.full(n, 0.5))
        right_model = np.full(n, world.q @ world.rates)
        return doubly_robust(Rows.of(wrong.values, clicks), world.rates[items], right_model).value

    mean, error = means(tries, with_wrong_propensities)
    assert abs(mean - world.truth) < error  # the model is right


def test_the_bias_of_self_normalised_ips_falls_with_the_rows():
    world = World(5, rate=0.3, contrast=1.2)

    def bias(n, tries):
        def one(seed):
            return self_normalised_ips(world.rows(*logs_of(world, seed, n))).value

        mean, _ = means(tries, one)
        return abs(mean - world.truth)

    assert bias(500, 1500) < 0.5 * bias(10, 4000)


def test_what_the_log_never_shows_is_missing_from_ips_and_is_measured():
    world = World(7)
    never = int(world.q.argmax())
    world.p[never] = 0
    world.p /= world.p.sum()
    world.rates[never], world.truth = 0.1, world.truth + world.q[never] * (0.1 - world.rates[never])
    lost = world.q[never] * world.rates[never]
    mean, error = means(1500, lambda seed: ips(world.rows(*logs_of(world, seed, 300))).value)
    assert abs(mean - (world.truth - lost)) < error < lost
    items, _ = logs_of(world, 0, 20_000)
    shown = np.bincount(items, minlength=ITEMS)
    assert unsupported_share(world.q[None], shown[None], [20_000]) == pytest.approx(world.q[never])
    found = overlap(importance_weights(world.q[items], world.p[items]))
    assert found.mean.interval.upper < 1
    assert found.mean.value == pytest.approx(1 - world.q[never], abs=0.05)


def test_users_of_many_rows_need_intervals_by_user():
    by_user = by_row = 0
    for seed in range(300):
        world = World(seed, rate=0.3, contrast=0.3)
        users = np.repeat(np.arange(60), 30)
        items, _ = world.log(len(users))
        taste = world.random.choice([0.0, 2.0], 60)  # whole users click or do not; on average once
        clicks = world.random.random(len(users)) < np.minimum(1, taste[users] * world.rates[items])
        truth = float(world.q @ (np.minimum(1, 2 * world.rates) / 2))
        for units in (users, None):
            found = self_normalised_ips(world.rows(items, clicks, units)).interval
            held = found.lower <= truth <= found.upper
            by_user, by_row = by_user + (held and units is users), by_row + (held and units is None)
    assert 0.92 <= by_user / 300 <= 0.98
    assert by_row / 300 < 0.7


def lists_of(world, requests, continues):
    """Lists of three; a user looks at the next position with `continues` after a click, else surely."""
    items = np.stack([world.random.choice(ITEMS, requests, p=world.p) for _ in range(3)], axis=1)
    wanted = world.random.random(items.shape) < world.rates[items]
    goes_on = world.random.random(items.shape) < continues
    looks = np.ones(requests, bool)
    clicks = np.zeros(items.shape)
    for position in range(3):
        clicks[:, position] = wanted[:, position] & looks
        looks &= ~wanted[:, position] | goes_on[:, position]
    return items, clicks


@pytest.mark.parametrize("continues", [1.0, 0.0])
def test_the_sum_over_positions_is_right_if_positions_are_independent_and_only_then(continues):
    held, values = 0, []
    for seed in range(300):
        world = World(11, rate=0.4)
        world.random = np.random.default_rng(seed)
        items, clicks = lists_of(world, 400, continues)
        requests = np.repeat(np.arange(400), 3)
        rows = world.rows(items.ravel(), clicks.ravel())
        found = ips_by_position(rows, requests)
        # Where a click ends the look, each further position needs that nothing was clicked before.
        missed = 1 - (1 - continues) * world.truth
        truth = world.truth * (1 + missed + missed**2)
        held += found.interval.lower <= truth <= found.interval.upper
        values.append(found.value)
    error = 4 * np.std(values) / math.sqrt(300)
    if continues:
        assert 0.93 <= held / 300 <= 0.99
        assert abs(np.mean(values) - truth) < error
    else:
        assert abs(np.mean(values) - truth) > error
