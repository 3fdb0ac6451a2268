"""Scores that are broken, an order that is, and denominators of 0."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from monitor.simulate.incidents.incident import SIZES, StruckHour
from monitor.simulate.incidents.scores import saturated
from tests.simulate.incidents.conftest import SINCE

ALL_BECOME = {
    "score_nan": (np.isnan, {"small": 0.001, "middle": 0.05}),
    "score_infinite": (np.isposinf, {"small": 0.001, "middle": 0.05}),
    "score_constant": (lambda scores: scores == 0.5, {"small": 0.02, "middle": 0.2}),
    "score_underflown": (
        lambda scores: (scores > 0) & (scores < sys.float_info.min),
        {"small": 0.001, "middle": 0.05},
    ),
}


@pytest.mark.parametrize("name", ALL_BECOME)
@pytest.mark.parametrize("size", SIZES)
def test_only_the_given_share_of_lists_has_changed_scores(name, size, hour, strike):
    is_such, shares = ALL_BECOME[name]
    found = strike(name, size).lists(SINCE)
    such = is_such(found.scores) & found.shown
    rows = such.any(axis=1)
    assert rows.sum() == int(shares.get(size, 1.0) * (hour.lengths > 0).sum() + 0.5)
    assert (such == (rows[:, None] & found.shown)).all()
    assert (found.scores[~rows] == hour.scores[~rows]).all()
    assert not (is_such(hour.scores) & hour.shown).any()


def test_items_with_constant_scores_are_shuffled_with_their_other_columns(hour, strike):
    found = strike("score_constant", "large").lists(SINCE)
    full = hour.lengths == hour.items.shape[1]
    now, then = np.argsort(found.items[full], axis=1), np.argsort(hour.items[full], axis=1)
    for one, other in ((found.items, hour.items), (found.extra["impressions"], hour.extra["impressions"])):
        assert (
            np.take_along_axis(one[full], now, axis=1) == np.take_along_axis(other[full], then, axis=1)
        ).all()
    first = (found.items[full, 0] == hour.items[full, 0]).mean()
    assert first == pytest.approx(1 / hour.items.shape[1], abs=0.04)


def test_underflown_scores_still_fall_along_the_list(hour, strike):
    found = strike("score_underflown", "large").lists(SINCE)
    assert (np.diff(np.where(found.shown, found.scores, -1.0), axis=1) <= 0).all()
    lost = found.scores[found.shown] / 1e-312 != hour.scores[found.shown]
    assert lost.mean() > 0.9


@pytest.mark.parametrize(("size", "share"), [("small", 0.02), ("middle", 0.2), ("large", 0.8)])
def test_the_largest_scores_become_1_and_the_others_stay(size, share, hour, strike):
    found = strike("score_saturated", size).lists(SINCE)
    ones = (found.scores == 1.0) & found.shown
    assert ones.sum() / hour.shown.sum() == pytest.approx(share, abs=0.002)
    assert hour.scores[ones].min() >= hour.scores[hour.shown & ~ones].max()
    assert (found.scores[~ones] == hour.scores[~ones]).all()


def test_all_scores_become_1_at_full_size(hour, healthy):
    moment = StruckHour(healthy, SINCE, SINCE, 1.0, np.random.default_rng(0))
    assert (saturated(hour, moment).scores[hour.shown] == 1.0).all()


@pytest.mark.parametrize(("size", "share"), [("small", 0.02), ("middle", 0.2), ("large", 1.0)])
def test_the_given_share_of_lists_is_in_another_order(size, share, hour, strike):
    found = strike("order_broken", size).lists(SINCE)
    rows = (found.items != hour.items).any(axis=1)
    wanted = share * (hour.lengths > 0).sum()
    assert abs(rows.sum() - wanted) <= 1 + 0.01 * wanted  # a short list may be drawn as it was
    order, before = np.argsort(found.items, axis=1), np.argsort(hour.items, axis=1)
    counts = found.extra["impressions"], hour.extra["impressions"]
    for now, then in ((found.items, hour.items), (found.scores, hour.scores), counts):
        assert (np.take_along_axis(now, order, 1) == np.take_along_axis(then, before, 1)).all()
    rising = (np.diff(found.scores, axis=1) > 0) & found.shown[:, 1:]
    assert rising.any(axis=1)[rows].mean() > 0.99
    assert not rising.any(axis=1)[~rows].any()


@pytest.mark.parametrize(("size", "count"), [("small", 1), ("middle", 10), ("large", 1000)])
def test_the_given_number_of_denominators_is_0(size, count, hour, strike):
    found = strike("zero_denominators", size).lists(SINCE)
    assert ((found.extra["impressions"] == 0.0) & found.shown).sum() == count
    assert not ((hour.extra["impressions"] == 0.0) & hour.shown).any()
