"""User AUC (GAUC): how well scores order the items of each user, averaged over users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import LABEL, USER_ID
from monitor.core.results import Result
from monitor.metrics.family import AggregateRow, Family, make
from monitor.metrics.scores.auc import placed
from monitor.metrics.scores.labelled import (
    LABELS,
    NO_REQUEST,
    labelled,
    labelled_users,
    left_out,
    nothing_scored,
    score_counts,
    score_spec,
    sentences,
)
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.effects import RatioSums, ratio_within

WEIGHTS: Final = ("equal", "samples", "positives")

USER_AUC = score_spec(
    name="user_auc",
    better="higher",
    help="AUC within each user's exposures, averaged over the users.",
    by=WEIGHTS,
    by_help="what a user weighs: 1, their exposures, or their positives",
    interval="Wilson of means",
    range=(0.0, 1.0),
    formula="sum w_u AUC_u / sum w_u over the users with labels of both classes, AUC_u as in auc over the "
    "user's exposures, w_u = 1 (`equal`), the user's exposures with a finite score (`samples`), or those of "
    "label 1 (`positives`). Interval by the users' variance, U / (U - 1) sum "
    "w_u^2 (AUC_u - A)^2 / (sum w_u)^2 with U users and the mean A: Wilson's of a share of A with this "
    "variance. " + LABELS,
    answers="Does the model order the items for a user, apart from knowing which users act more?",
    misleads="Users who acted on nothing, or on everything, have no AUC and are left out (and counted), "
    "often most of them. With `equal` a user of two exposures weighs as much as one of a thousand; with "
    "`samples` and `positives` a few heavy users can be the whole value. " + NO_REQUEST,
    samples="users with labels of both classes",
    no_data="nothing was shown; no exposure has a finite score; none of those has a user id",
    undefined="no user has labels of both classes",
)


class UserAuc(Family):
    """The mean of the users' own AUCs, under three weights."""

    name = "user_auc"
    outputs = ((USER_AUC, WEIGHTS),)
    needs = ("feedback", "exposures.score")

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        by = listed(key)
        users = labelled_users(shared, settings, key)
        every = users.aggregate(by=by, users=users.count())
        sums = weighted_sums(_of_users(shared, settings, key), *by)
        return shared.side_by_side(key, score_counts(shared, key), every, sums)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        users, n = int(row["users"] or 0), int(row["mixed"] or 0)
        nothing = nothing_scored(row) or (None if users else "no exposure with a score has a user id")
        for by in WEIGHTS:
            builder = make(USER_AUC, settings, by)
            if nothing:
                yield builder.no_data(nothing)
            elif n == 0:
                yield builder.undefined(f"none of {users:,} users has labels of both classes", 0)
            else:
                one_class = (
                    f"{users - n:,} of {users:,} users have labels of one class only" if n < users else ""
                )
                value = float(row[f"{by}_wa"]) / float(row[f"{by}_w"])
                interval = ratio_within(weighted_mean_sums(row, by))
                yield builder.value(value, n, interval, detail=sentences(one_class, left_out(row)))


def _of_users(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    """The `user_aucs` of the window."""

    def build(key: str | None) -> ir.Table:
        rows = labelled(shared, settings, key)
        rows = rows.filter(rows[USER_ID].notnull())
        return user_aucs(rows, labelled_users(shared, settings, key), USER_ID, *listed(key))

    return shared.grouped("user_aucs", key, (USER_ID,), build)


def user_counts(rows: ir.Table, user: str, *by: str) -> ir.Table:
    """One row a user (of a group): `n` rows, and of them `positives` of label 1."""
    return rows.aggregate(by=[user, *by], n=rows.count(), positives=rows[LABEL].sum())


def user_aucs(rows: ir.Table, users: ir.Table, user: str, *by: str) -> ir.Table:
    """One row a user (of a group) with labels of both classes: `auc`, `n`, `positives`.

        AUC = (2 * sum of the positives' mid-ranks - M (M + 1)) / (2 M N), with whole numbers above the line

    Args:
        rows: score (finite), label (0 or 1), the user, and the columns of `by`.
        users: the `user_counts` of the rows; users with one class are not sorted.
        user: the column of the users, never null.
        by: the columns of a group.
    """
    owner = [user, *by]
    mixed = users.filter((users.positives > 0) & (users.positives < users.n))
    hits = placed(rows.semi_join(mixed, owner), owner)
    ranks = hits.aggregate(by=owner, twice_ranks=(hits.below + hits.upto + 1).sum())
    both = mixed.join(ranks, owner)
    m = both.positives
    wins = (both.twice_ranks - m * (m + 1)).cast("float64")
    pairs = m.cast("float64") * (both.n - m).cast("float64")
    return both.select(*owner, "n", "positives", auc=wins / (2.0 * pairs))


def weighted_sums(aucs: ir.Table, *by: str) -> ir.Table:
    """One row a group: `mixed` users, and for each weight w the sums of w, w^2, w AUC, w^2 AUC, (w AUC)^2."""
    weights = (ibis.literal(1), aucs.n, aucs.positives)
    aucs = aucs.mutate(**{name: w.cast("float64") for name, w in zip(WEIGHTS, weights, strict=True)})
    sums = {"mixed": aucs.count()}
    for name in WEIGHTS:
        w, wa = aucs[name], aucs[name] * aucs.auc
        sums |= {
            f"{name}_w": w.sum(),
            f"{name}_ww": (w * w).sum(),
            f"{name}_wa": wa.sum(),
            f"{name}_wwa": (w * wa).sum(),
            f"{name}_wwaa": (wa * wa).sum(),
        }
    return aucs.aggregate(by=list(by), **sums)


def weighted_mean_sums(row: AggregateRow, weight: str) -> RatioSums:
    """A row of `weighted_sums` as a ratio: the users' weighted AUCs over their weights."""
    wa, w, wwaa, ww, wwa = (float(row[f"{weight}_{name}"]) for name in ("wa", "w", "wwaa", "ww", "wwa"))
    return RatioSums(int(row["mixed"]), wa, w, wwaa, ww, wwa)
