"""Sums of a model's samples for each split, from which AUC, user AUC, log loss and calibration are computed.

Each metric takes one query for all models and splits, and one more for each column of slices. The result is a
few numbers for each group, so that those of train and test can be cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import ibis.expr.types as ir

from monitor.core.columns import LABEL, MODEL, SCORE, SPLIT, USER_ID
from monitor.metrics.plans import ASK_ONCE, Ask, Build
from monitor.metrics.scores.auc import auc_sums, cluster_sums, rank_sums
from monitor.metrics.scores.calibration import probability_sums
from monitor.metrics.scores.user_auc import user_aucs, user_counts, weighted_sums
from monitor.models.parts import HASH, hashed, in_part, told_apart
from monitor.statistics.auc import AucSums

AggregateRow = Mapping[str, Any]
Group = tuple[str, ...]
_GROUP: Final = (MODEL, SPLIT)
_ROWS: Final = 500_000  # about so many rows of a split give the variance between users
_USERS: Final = 5_000


@dataclass(frozen=True, slots=True)
class SplitSums:
    """The sums of one split of one model (or of one slice of it).

    `rows` counts all rows, `n` the usable ones with a finite score and a label of 0 or 1. `users` and
    `probabilities` are rows of `weighted_sums` and `probability_sums`, or None.
    """

    rows: int
    unscored: int
    unlabelled: int
    n: int
    positives: int
    auc: AucSums | None = None
    known_users: int = 0
    users: AggregateRow | None = None
    probabilities: AggregateRow | None = None

    @property
    def negatives(self) -> int:
        return self.n - self.positives


@dataclass(frozen=True, slots=True)
class Sums:
    """All splits: by (model, split), and for each dimension by (model, split, value)."""

    whole: dict[Group, SplitSums] = field(default_factory=dict)
    slices: dict[str, dict[Group, SplitSums]] = field(default_factory=dict)

    def of(self, model: str, split: str) -> SplitSums | None:
        return self.whole.get((model, split))

    def models(self, split: str) -> dict[str, int]:
        """Model -> its rows in the split, for models that have any."""
        return {model: sums.rows for (model, own), sums in self.whole.items() if own == split}


def measure_splits(rows: ir.Table, clip: float, dimensions: Sequence[str] = (), ask: Ask = ASK_ONCE) -> Sums:
    """The sums of every model and split of these rows.

    Args:
        rows: split, model (never null), score, label, optionally user_id; the columns of `dimensions`, which
            are text, never null, and have few values.
        clip: as in `probability_sums`.
        dimensions: the columns of slices.
        ask: runs the queries.
    """
    slices = {name: _measure(rows, clip, (*_GROUP, name), ask) for name in dimensions}
    return Sums(_measure(rows, clip, _GROUP, ask), slices)


def judgeable(rows: ir.Table) -> ir.Table:
    """The rows with a finite score and a label of 0 or 1, the score as float64 and the label as int64."""
    sound = _finite(rows[SCORE].cast("float64")) & rows[LABEL].cast("float64").isin((0.0, 1.0))
    rows = rows.filter(sound.fill_null(False))
    return rows.mutate(**{SCORE: rows[SCORE].cast("float64"), LABEL: rows[LABEL].cast("int64")})


def _finite(score: ir.Value) -> ir.BooleanValue:
    return score.notnull() & ~(score.isnan() | score.isinf())


def _measure(rows: ir.Table, clip: float, by: Sequence[str], ask: Ask) -> dict[Group, SplitSums]:
    def small() -> ir.Table:
        return judgeable(rows).select(*by, SCORE, LABEL)

    builds = {
        "totals": lambda: _totals(small(), by),
        "ranks": lambda: rank_sums(small(), by),
        "probabilities": lambda: probability_sums(small(), clip, by),
    }
    found = [_by(ask, name, build, by) for name, build in builds.items()]
    users, known = _users(rows, by, ask)
    clusters = _clusters(rows, by, ask, totals=found[0], known=known)
    groups = {}
    for group, row in _by(ask, "counts", lambda: _counts(rows, by), by).items():
        total, ranks, probabilities = (one.get(group) for one in found)
        n = int(total["n"]) if total else 0
        groups[group] = SplitSums(
            rows=int(row["rows"]),
            unscored=int(row["unscored"]),
            unlabelled=int(row["unlabelled"]),
            n=n,
            positives=int(total["positives"]) if total else 0,
            auc=auc_sums(ranks, n, clusters.get(group)) if ranks else None,
            known_users=int(known.get(group, {}).get("users", 0)),
            users=users.get(group),
            probabilities=probabilities,
        )
    return groups


def _counts(rows: ir.Table, by: Sequence[str]) -> ir.Table:
    unscored = ~_finite(rows[SCORE].cast("float64")).fill_null(False)
    unlabelled = ~rows[LABEL].cast("float64").isin((0.0, 1.0)).fill_null(False)
    return rows.aggregate(
        by=list(by), rows=rows.count(), unscored=unscored.sum(), unlabelled=unlabelled.sum()
    )


def _totals(sound: ir.Table, by: Sequence[str]) -> ir.Table:
    return sound.aggregate(by=list(by), n=sound.count(), positives=sound[LABEL].sum())


def _users(
    rows: ir.Table, by: Sequence[str], ask: Ask
) -> tuple[dict[Group, AggregateRow], dict[Group, AggregateRow]]:
    if USER_ID not in rows.columns:
        return {}, {}

    def known() -> ir.Table:
        sound = judgeable(rows)
        return sound.filter(sound[USER_ID].notnull()).select(USER_ID, *by, SCORE, LABEL)

    def aucs() -> ir.Table:
        of_users = known()
        users = user_counts(of_users, USER_ID, *by)
        return weighted_sums(user_aucs(of_users, users, USER_ID, *by), *by)

    def sizes() -> ir.Table:
        users = user_counts(known(), USER_ID, *by)
        return users.aggregate(by=list(by), users=users.count(), rows=users.n.sum())

    return _by(ask, "users", aucs, by), _by(ask, "known users", sizes, by)


def _clusters(
    rows: ir.Table,
    by: Sequence[str],
    ask: Ask,
    totals: Mapping[Group, AggregateRow],
    known: Mapping[Group, AggregateRow],
) -> dict[Group, AggregateRow]:
    """The rows of `cluster_sums`; empty if no user has several rows.

    If there are many rows, a part of the users is enough for their variance: always the same users, with all
    their rows, and at least `_USERS` of them. The same share of the rows without a user is taken, each of
    which is a user of its own.
    """
    own = [row for group, row in known.items() if group in totals]
    if not any(int(row["rows"]) > int(row["users"]) for row in own):
        return {}
    most = max(int(totals[group]["n"]) for group in known if group in totals)
    part = max(_ROWS / most, _USERS / min(int(row["users"]) for row in own))

    def build() -> ir.Table:
        chosen = judgeable(rows).select(*by, USER_ID, SCORE, LABEL)
        if part < 1:
            of_users = chosen.filter(chosen[USER_ID].notnull())
            of_users = of_users.filter(in_part(of_users[USER_ID].cast("string").hash(), part))
            # The hash of a null is the same for all of these rows.
            alone = told_apart(hashed(chosen.filter(chosen[USER_ID].isnull())))
            chosen = of_users.union(alone.filter(in_part(alone[HASH], part)).drop(HASH))
        return cluster_sums(chosen, USER_ID, by)

    # The part varies with the number of rows, so its statement is not worth keeping.
    return _by(ASK_ONCE if part < 1 else ask, "clusters", build, by)


def _by(ask: Ask, name: str, build: Build, by: Sequence[str]) -> dict[Group, AggregateRow]:
    rows = ask(f"{name} by {', '.join(by)}", build)
    return {tuple(str(row[one]) for one in by): row for row in rows}
