"""Simulated experiments of known truth: how often a sound split is called broken, how soon a broken one."""

from __future__ import annotations

import ibis
import numpy as np
import pyarrow as pa
import pytest

from monitor.experiments.queries import by_user
from monitor.experiments.split_check import Split, split_of
from monitor.settings.experiments import ExperimentSettings

HOURS = 24


def split_from(rows: pa.Table, experiment: ExperimentSettings) -> Split:
    pairs = ibis.memtable(rows)
    return split_of(pairs, by_user(pairs, experiment.arms), experiment)


def judged(arms: np.ndarray, first: np.ndarray, experiment: ExperimentSettings) -> Split:
    """The split of one user a row."""
    users = np.arange(len(arms)).astype(str)
    rows = pa.table({"user_id": users, "arm": arms, "first": first.astype(np.int64)})
    return split_from(rows, experiment)


def experiment(**shares: float) -> ExperimentSettings:
    return ExperimentSettings(name="e", split=shares, alpha=0.05)


def drawn(random: np.random.Generator, n: int, shares: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    arms = random.choice(list(shares), n, p=np.array(list(shares.values())) / sum(shares.values()))
    return arms, random.integers(0, HOURS, n)


def test_a_correct_split_is_called_broken_at_most_with_probability_alpha() -> None:
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    random = np.random.default_rng(11)
    broken = [
        judged(*drawn(random, 800, shares), experiment(**shares)).broken is not None for _ in range(150)
    ]
    assert np.mean(broken) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 150)


def test_users_who_move_between_arms_at_random_raise_no_alarm() -> None:
    random, alarms = np.random.default_rng(12), 0
    for _ in range(100):
        arms, first = drawn(random, 600, {"a": 1, "b": 1})
        movers = random.choice(600, 60, replace=False)
        rows = pa.table(
            {
                "user_id": np.concatenate([np.arange(600), movers]).astype(str),
                "arm": np.concatenate([arms, np.where(arms[movers] == "a", "b", "a")]),
                "first": np.concatenate([first, np.minimum(first[movers] + 3, HOURS)]).astype(np.int64),
            }
        )
        found = split_from(rows, experiment(a=1, b=1))
        assert (found.mixed, sum(found.counts)) == (60, 540)
        alarms += found.broken is not None
    assert alarms <= 0.05 * 100 + 2 * np.sqrt(0.05 * 0.95 * 100)


def test_one_percent_of_an_arm_lost_is_found_among_very_many_users() -> None:
    random = np.random.default_rng(13)
    arms, first = drawn(random, 2_000_000, {"a": 1, "b": 1})
    assert judged(arms, first, experiment(a=1, b=1)).broken is None
    lost = (arms == "b") & (random.random(len(arms)) < 0.01)
    found = judged(arms[~lost], first[~lost], experiment(a=1, b=1))
    assert found.broken is not None
    assert found.chi_square is not None
    assert found.chi_square.p < 1e-6


@pytest.mark.parametrize(("n", "found"), [(300, False), (3_000, True)])
def test_a_split_of_40_to_60_is_found_with_some_hundreds_of_users(n: int, found: bool) -> None:
    random = np.random.default_rng(14)
    arms, first = drawn(random, n, {"a": 0.4, "b": 0.6})
    one = ExperimentSettings(name="e", split={"a": 1, "b": 1})
    assert (judged(arms, first, one).broken is not None) == found


def test_the_p_value_of_a_window_uses_all_windows_up_to_it() -> None:
    random = np.random.default_rng(15)
    arms, first = drawn(random, 3_000, {"a": 0.45, "b": 0.55})
    ps = [judged(arms[first <= h], first[first <= h], experiment(a=1, b=1)).anytime for h in range(HOURS)]
    assert ps == sorted(ps, reverse=True)
    assert ps[-1] < 0.01 < ps[0]
