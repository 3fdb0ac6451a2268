"""The proof: in worlds with real models the right cause comes first, and in healthy ones none is named."""

from __future__ import annotations

from functools import cache

import pytest

from monitor.models.diagnosis.diagnose import CAUSES, diagnose
from monitor.statistics.auc import auc_gap, auc_sums
from tests.models.diagnosis.worlds import KINDS, healthy, world

WORLDS = [(make, seed) for make in KINDS for seed in range(5)]
HEALTHY = range(10)
THRESHOLD = 0.02


def gap_of(one):
    return auc_gap(*(auc_sums(sample.scores, sample.labels) for sample in (one.better, one.worse)))


@cache
def verdict(make, seed):
    """What the world is, and what is said of it."""
    one = world(make, seed)
    return one, diagnose(one.pair, one.better, one.worse, train=one.train, pairs=one.pairs)


@pytest.mark.parametrize(("make", "seed"), WORLDS)
def test_every_finding_of_a_gap_has_evidence(make, seed):
    one, causes = verdict(make, seed)
    assert gap_of(one).interval.lower > THRESHOLD
    assert causes
    for cause in causes:
        assert 1 <= len(cause.evidence) <= 20
        assert 0.15 <= cause.share <= 1


def test_every_cause_is_among_the_worlds():
    assert {verdict(*which)[0].cause for which in WORLDS} == set(CAUSES)


def test_the_right_cause_comes_first_in_95_of_100_worlds():
    wrong = [
        (one.name, one.cause, [(cause.cause, cause.share) for cause in causes])
        for one, causes in (verdict(*which) for which in WORLDS)
        if not causes or causes[0].cause != one.cause
    ]
    assert len(wrong) <= 0.05 * len(WORLDS), wrong


def test_the_right_feature_comes_first_and_the_cause_explains_most_of_the_gap():
    right = [
        (one, causes[0])
        for one, causes in (verdict(*which) for which in WORLDS)
        if causes and causes[0].cause == one.cause
    ]
    assert [one.name for one, cause in right if one.features and cause.features[0] not in one.features] == []
    assert sum(cause.share >= 0.5 for _, cause in right) >= 0.9 * len(right)


@pytest.mark.parametrize("seed", HEALTHY)
def test_healthy_worlds_have_no_gap_and_no_cause(seed):
    one, causes = verdict(healthy, seed)
    assert gap_of(one).interval.lower <= THRESHOLD
    assert causes == ()
