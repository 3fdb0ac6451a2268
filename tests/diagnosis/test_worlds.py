"""The proof: in worlds with real models the right cause comes first, and in healthy ones none is named."""

from __future__ import annotations

import pytest

from monitor.diagnosis.diagnose import CAUSES, diagnose
from monitor.statistics.auc import auc_gap, auc_sums
from tests.diagnosis.worlds import KINDS, healthy, world

SEEDS = range(5)
HEALTHY = range(10)
THRESHOLD = 0.02


def gap_of(one):
    return auc_gap(*(auc_sums(sample.scores, sample.labels) for sample in (one.better, one.worse)))


@pytest.fixture(scope="module")
def verdicts():
    found = []
    for make in KINDS:
        for seed in SEEDS:
            one = world(make, seed)
            causes = diagnose(one.pair, one.better, one.worse, train=one.train, pairs=one.pairs)
            found.append((one, gap_of(one), causes))
    return found


def test_every_cause_is_among_the_worlds(verdicts):
    assert {one.cause for one, _, _ in verdicts} == set(CAUSES)


def test_every_gap_of_the_worlds_is_asserted_at_the_threshold(verdicts):
    assert [one.name for one, gap, _ in verdicts if gap.interval.lower <= THRESHOLD] == []


def test_the_right_cause_comes_first_in_95_of_100_worlds(verdicts):
    wrong = [
        (one.name, one.cause, [(cause.cause, cause.share) for cause in causes])
        for one, _, causes in verdicts
        if not causes or causes[0].cause != one.cause
    ]
    assert len(wrong) <= 0.05 * len(verdicts), wrong


def test_the_right_feature_comes_first(verdicts):
    wrong = [
        (one.name, one.features, causes[0].features)
        for one, _, causes in verdicts
        if one.features
        and causes
        and causes[0].cause == one.cause
        and causes[0].features[0] not in one.features
    ]
    assert wrong == []


def test_the_right_cause_explains_most_of_the_gap(verdicts):
    shares = [causes[0].share for one, _, causes in verdicts if causes and causes[0].cause == one.cause]
    assert sum(share >= 0.5 for share in shares) >= 0.9 * len(shares)


def test_every_finding_comes_with_rows_that_prove_it(verdicts):
    for _, _, causes in verdicts:
        for cause in causes:
            assert 1 <= len(cause.evidence) <= 20


@pytest.mark.parametrize("seed", HEALTHY)
def test_where_nothing_is_wrong_no_gap_is_asserted_and_no_cause_named(seed):
    one = world(healthy, seed)
    assert gap_of(one).interval.lower <= THRESHOLD
    assert diagnose(one.pair, one.better, one.worse, train=one.train, pairs=one.pairs) == ()
