"""The check `experiments`: does the split of users into arms match the intended split?

It reads the exposures only. The check `experiment_arms` measures the effects of the arms later, if the split
is not broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Self

import ibis.expr.types as ir
import numpy as np

from monitor.core.columns import EXPOSURES
from monitor.core.results import Result, Status, Window
from monitor.core.text import NAME_LENGTH, quoted
from monitor.engines.duckdb import Engine
from monitor.experiments import specs
from monitor.experiments.assignments import Assignments, with_columns
from monitor.experiments.queries import (
    AT,
    CHANGE,
    USERS,
    assigned,
    by_user,
    changes,
    in_both,
    of_column,
    per_bucket,
    totals,
    unknown_arms,
)
from monitor.logs.source import Source
from monitor.metrics.family import ResultBuilder
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.chi_square import ChiSquare, shares
from monitor.statistics.experiments import (
    anytime_shares,
    bucket_uniformity,
    layer_orthogonality,
    log_bayes_factors,
    sample_ratio_mismatch,
    sequential_split,
)
from monitor.window.check import Check, Recommender, WindowJob

NAME = "experiments"
NOBODY: Final = "no user of the experiment was seen"
_NAMED: Final = 5  # unknown arms that are named


@dataclass(frozen=True, slots=True)
class Split:
    """The users of an experiment since it began.

    Attributes:
        counts: users of each arm of the split.
        users: all users of the experiment.
        mixed: users in several arms.
        unknown: users in an arm that the split does not name; `names` names the largest such arms.
        anytime: p-value of the anytime-valid test over all windows so far.
        chi_square: the classical test of the current counts.
    """

    experiment: ExperimentSettings
    counts: tuple[int, ...]
    users: int
    mixed: int
    unknown: int
    names: str
    anytime: float
    chi_square: ChiSquare | None

    @property
    def broken(self) -> str | None:
        """Why the arms cannot be compared; None if they can."""
        alpha = self.experiment.alpha
        if self.unknown:
            return (
                f"the split is broken: {self.unknown:,} of {self.users:,} users were in arms that it does "
                f"not name ({self.names}); the arms' metrics cannot be used"
            )
        if self.anytime < alpha:
            return (
                f"the split is broken: {self.described}, anytime-valid p = {self.anytime:.3g}, below "
                f"{alpha:g}; the arms' metrics cannot be used"
            )
        return None

    @property
    def described(self) -> str:
        intended = shares(self.experiment.weights)
        total = max(sum(self.counts), 1)
        arms = zip(self.experiment.arms, self.counts, intended, strict=True)
        return "; ".join(
            f"{arm!r} has {n} users, {n / total:.4%} instead of {share:.4%}" for arm, n, share in arms
        )


def split_of(pairs: ir.Table, users: ir.Table, experiment: ExperimentSettings) -> Split:
    """The current split. Each window counts as one look, whether or not it was judged at the time.

    Args:
        pairs: each user and arm once, with the first window.
        users: the same, `by_user`.
    """
    arms = experiment.arms
    (row,) = totals(users).to_pyarrow().to_pylist()
    rows = changes(pairs, users, arms).to_pyarrow().to_pylist()
    times = {at: number for number, at in enumerate(sorted({step[AT] for step in rows}))}
    steps = np.zeros((len(times) + 1, len(arms)))  # the first row: no users before the first window
    for step in rows:
        if step["arm"] is not None:
            steps[times[step[AT]] + 1, arms.index(step["arm"])] += step[CHANGE]
    looks = steps.cumsum(axis=0)
    earlier = float(log_bayes_factors(looks[:-1], shares(experiment.weights)).max(initial=0.0))
    test = sequential_split(looks[-1], experiment.weights, float(np.exp(-earlier)))
    unknown = int(row["unknown"] or 0)
    return Split(
        experiment=experiment,
        counts=tuple(int(n) for n in looks[-1]),
        users=int(row["users"]),
        mixed=int(row["mixed"] or 0),
        unknown=unknown,
        names=_names(pairs, arms) if unknown else "",
        anytime=test.p,
        chi_square=sample_ratio_mismatch(looks[-1], experiment.weights),
    )


def _names(pairs: ir.Table, arms: Sequence[str]) -> str:
    unknown = unknown_arms(pairs, arms, _NAMED + 1).to_pyarrow().to_pylist()
    shown = [f"{_short(row['arm'])} {row[USERS]}" for row in unknown[:_NAMED]]
    return ", ".join(shown) + (", ..." if len(unknown) > _NAMED else "")


def _short(name: str) -> str:
    """A name from a log, on one line and of bounded length."""
    return quoted(name, NAME_LENGTH, "...")


def not_judged(experiment: ExperimentSettings, source: Source, window: Window, rows: int) -> str | None:
    """Why the experiment cannot be judged in this window; None if it can."""
    begins = experiment.begins(window.length)
    if begins is not None and window.start < begins:
        return f"the experiment begins at {begins:%Y-%m-%d %H:%M:%S}Z"
    if experiment.column not in source.known("exposures"):
        return f"the exposures have no column {_short(experiment.column)}"
    return None if rows else "the window holds no exposures"


def columns_of(settings: RecommenderSettings) -> list[str]:
    """The columns of exposures that the experiments read, each once."""
    arms = [experiment.column for experiment in settings.experiments]
    buckets = [experiment.buckets.column for experiment in settings.experiments if experiment.buckets]
    return list(dict.fromkeys([*arms, *buckets]))


class ExperimentCheck(Check[WindowJob]):
    """A check of every experiment of a recommender, which knows the users of earlier windows."""

    def __init__(self, settings: RecommenderSettings, source: Source, kept: Assignments) -> None:
        self._settings = settings
        self._source = source
        self._kept = kept

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        settings, source = recommender.settings, recommender.source
        if settings.experiments:
            yield cls(settings, source, Assignments(settings, recommender.kept.folder))


class SplitCheck(ExperimentCheck):
    """Users by arm, sample ratio mismatch, buckets and layers of every experiment."""

    name = NAME
    part = EXPOSURES

    def run(self, job: WindowJob) -> list[Result]:
        """Raises StoreError if the users of this window cannot be stored for later windows."""
        settings, source, kept = self._settings, self._source, self._kept
        engine, window = job.engine, job.window
        columns, users = columns_of(settings), None
        if job.due.rows:
            shared = job.tables().shared
            exposures = with_columns(shared.exposures, columns)
            users = shared.once("experiment_users", None, lambda: assigned(exposures, columns))
        kept.keep_missing(engine, source, window.start)
        kept.keep(engine, window, users, columns)
        results: list[Result] = []
        for experiment in settings.experiments:
            reason = not_judged(experiment, source, window, int(users is not None))
            split = None
            if not reason:
                with current_split(engine, experiment, kept, window) as known:
                    split = known and known[0]
            results += split_results(experiment, split, settings.metrics, reason or NOBODY)
            if experiment.buckets is not None:
                results.append(_bucket_result(experiment, settings.metrics, users, columns, reason))
        for one, other in combinations(settings.experiments, 2):
            if one.column != other.column:
                reason = not_judged(one, source, window, int(users is not None))
                reason = reason or not_judged(other, source, window, 1)
                results.append(_layer_result(one, other, settings.metrics, users, columns, reason))
        return results


@contextmanager
def current_split(
    engine: Engine, experiment: ExperimentSettings, kept: Assignments, window: Window
) -> Iterator[tuple[Split, ir.Table] | None]:
    """The split at the end of the window and its users `by_user`; None if no user was seen.

    The table of users exists inside the block only.
    """
    try:
        pairs = kept.pairs(engine, experiment, window, "arms_of_users")
        if pairs is None:
            yield None
            return
        users = engine.create("users_of_arms", by_user(pairs, experiment.arms))
        split = split_of(pairs, users, experiment)
        yield (split, users) if split.users else None
    finally:
        engine.drop("arms_of_users", "arms_of_users_files", "users_of_arms")


def split_results(
    experiment: ExperimentSettings, split: Split | None, settings: MetricSettings, reason: str
) -> Iterator[Result]:
    """The results of a split; without one, `no_data` with the reason."""
    within = anytime_shares(split.counts, experiment.weights) if split else None
    total = sum(split.counts) if split else 0
    for number, arm in enumerate(experiment.arms):
        count = specs.builder(specs.USERS, experiment, settings, arm=arm)
        share = specs.builder(specs.SHARE, experiment, settings, arm=arm)
        if split is None:
            yield from (count.no_data(reason), share.no_data(reason))
            continue
        users = split.counts[number]
        yield count.value(users, users)
        if within is None:
            yield share.no_data("no user is in one arm of the split alone")
        else:
            yield share.value(users / total, total, within[number])
    mixed = specs.builder(specs.MIXED_USERS, experiment, settings)
    unknown = specs.builder(specs.UNKNOWN_ARM_USERS, experiment, settings)
    anytime = specs.builder(specs.SPLIT_P, experiment, settings, by="anytime")
    once = specs.builder(specs.SPLIT_P, experiment, settings, by="chi_square")
    if split is None:
        yield mixed.no_data(reason)
        yield _bounded(unknown.no_data(reason), 0.0, "max")
        yield _bounded(anytime.no_data(reason), experiment.alpha, "min")
        yield once.no_data(reason)
        return
    yield mixed.value(split.mixed, split.users)
    stray = unknown.value(split.unknown, split.users, detail=split.names and f"the largest: {split.names}")
    yield _bounded(stray, 0.0, "max", broken=split.unknown > 0)
    judged = anytime.value(split.anytime, total, detail=split.described)
    yield _bounded(judged, experiment.alpha, "min", broken=split.anytime < experiment.alpha)
    yield _p(once, split.chi_square, total, "no user is in one arm of the split alone")


def _bounded(result: Result, threshold: float, bound: str, *, broken: bool = False) -> Result:
    status = Status.VIOLATED if broken else result.status
    return replace(result, threshold=threshold, bound=bound, status=status)


def _p(builder: ResultBuilder, test: ChiSquare | None, n: int, reason: str, further: str = "") -> Result:
    if test is None:
        return builder.no_data(reason) if n == 0 else builder.undefined(reason, n)
    detail = (
        f"chi-square {test.statistic:.6g} on {test.df} df, {test.method.value.replace('_', '-')}{further}"
    )
    return builder.value(test.p, n, detail=detail)


def _bucket_result(
    experiment: ExperimentSettings, settings: MetricSettings,
    users: ir.Table | None, columns: Sequence[str], why: str | None,
) -> Result:  # fmt: skip
    builder = specs.builder(specs.BUCKET_P, experiment, settings)
    buckets = experiment.buckets
    if users is None or why or buckets is None:
        return builder.no_data(why or NOBODY)
    table = per_bucket(users, columns.index(buckets.column), buckets.count + 1)
    counts = table.to_pyarrow().column(USERS).to_pylist()
    if len(counts) > buckets.count:
        return builder.undefined(f"more than {buckets.count} buckets are in the log", sum(counts))
    counts += [0] * (buckets.count - len(counts))
    reason = f"no user of the window has a {_short(buckets.column)}"
    return _p(builder, bucket_uniformity(counts), sum(counts), reason)


def _layer_result(
    one: ExperimentSettings, other: ExperimentSettings, settings: MetricSettings,
    users: ir.Table | None, columns: Sequence[str], why: str | None,
) -> Result:  # fmt: skip
    builder = specs.builder(specs.LAYER_P, one, settings, against=other.name)
    if users is None or why:
        return builder.no_data(why or NOBODY)
    here, there = columns.index(one.column), columns.index(other.column)
    table = np.zeros((len(one.arms), len(other.arms)))
    for row in in_both(users, here, there, one.arms, other.arms).to_pyarrow().to_pylist():
        table[one.arms.index(row[of_column(here)]), other.arms.index(row[of_column(there)])] = row[USERS]
    n = int(table.sum())
    if n == 0:
        return builder.no_data("no user of the window is in one arm of each")
    layers = layer_orthogonality(table)
    reason = "all users are in one arm of one of the two experiments"
    strength = f", Cramer's V {layers.cramers_v:.3g}" if layers else ""
    return _p(builder, layers and layers.test, n, reason, strength)
