"""AUC: how well scores separate exposures with actions from the others, over a whole window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import LABEL, SCORE
from monitor.core.results import Result
from monitor.core.text import plural
from monitor.metrics.family import AddsUp, AggregateRow, Family, ResultBuilder, make
from monitor.metrics.scores.label_counts import DIGITS, LABEL_COUNTS, label_counts, wins_of_counts
from monitor.metrics.scores.labelled import (
    LABELS,
    NO_REQUEST,
    labelled,
    left_out,
    nothing_scored,
    one_class,
    score_counts,
    score_spec,
    sentences,
)
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.auc import FEWEST_CLUSTERS, AucSums, ClusterSums, delong_interval

AUC = score_spec(
    name="auc",
    better="higher",
    of_rows=True,
    help="Chance that an exposure acted on was scored above one that was not; 0.5 is no better than chance.",
    interval="DeLong",
    range=(0.0, 1.0),
    formula="(sum of the positives' mid-ranks - M (M + 1) / 2) / (M N) over M exposures of label 1 and N of "
    "label 0, ranked by score, ties at their average rank; exact. " + LABELS,
    answers="Do items that users act on have higher scores than the others, over all exposures?",
    misleads="It compares the scores of different users and places: a model that only knows which users "
    "click a lot gets a high AUC and orders no single list (see user_auc). It is measured on the items that "
    "the recommender chose to show, and knows nothing about items that were never shown. The interval "
    "treats exposures as independent; if one user has many, it is too narrow. (Of samples it adds up what "
    "each user contributes, by Obuchowski 1997; with fewer than 10 users there is none.) " + NO_REQUEST,
    samples="exposures with a finite score",
    no_data="nothing was shown; no exposure has a finite score",
    undefined="all labels are of one class",
)


_STEP: Final = "__monitor_step"
_STEPS: Final = 4096
Place = Callable[[ir.Table, Sequence[str]], ir.Table]


class Auc(Family):
    """The area under the ROC curve over all exposures of the window."""

    name = "auc"
    outputs = ((AUC, ()),)
    needs = ("feedback", "exposures.score")
    adds_up = AddsUp(tables=(LABEL_COUNTS,), columns=("shown", "scored"), bounded=True)

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        place = placed_by_steps if shared.distributed else placed
        sums = rank_sums(labelled(shared, settings, key), listed(key), place)
        return shared.side_by_side(key, score_counts(shared, key), sums)

    def measure_kept(self, shared: Shared, settings: MetricSettings) -> ir.Table:
        return wins_of_counts(label_counts(shared, settings))

    def outcomes_kept(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        builder = make(AUC, settings)
        if (without := _without_classes(row, builder)) is not None:
            yield without
            return
        n, positives = int(row["scored"]), int(row["positives"])
        pairs = 2.0 * positives * (n - positives)
        error = float(row["unsure"]) / pairs
        about = f"scores are kept with {DIGITS} digits: the error is at most {error:.1g}" if error else ""
        yield builder.value(float(row["wins"]) / pairs, n, detail=sentences(about, left_out(row)))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        builder = make(AUC, settings)
        if (without := _without_classes(row, builder)) is not None:
            yield without
            return
        n = int(row["scored"])
        sums = auc_sums(row, n)
        assert sums is not None  # there are both classes
        yield builder.value(sums.auc, n, delong_interval(sums), detail=left_out(row))


def _without_classes(row: AggregateRow, builder: ResultBuilder) -> Result | None:
    """The result where nothing is scored or all labels are equal; None if there is an AUC."""
    if nothing := nothing_scored(row):
        return builder.no_data(nothing)
    n = int(row["scored"])
    why = one_class(int(row["positives"] or 0), n)
    return None if why is None else builder.undefined(why, n)


def placed(rows: ir.Table, by: Sequence[str] = ()) -> ir.Table:
    """The rows of label 1 with the number of rows in their group that score less (`below`), or at most as
    much (`upto`).

    It costs one sort of the rows. The mid-rank of a row is (below + upto + 1) / 2.

    Args:
        rows: score (finite), label (0 or 1), and the columns of `by`.
        by: the columns of a group; rows are ranked within it.
    """
    ranked = rows.mutate(
        below=ibis.rank().over(ibis.window(group_by=list(by), order_by=rows[SCORE])),
        upto=rows.count().over(
            ibis.range_window(preceding=None, following=0, group_by=list(by), order_by=rows[SCORE])
        ),
    )
    return ranked.filter(ranked[LABEL] == 1)


def placed_by_steps(rows: ir.Table, by: Sequence[str] = ()) -> ir.Table:
    """As `placed`, by many sorts of few rows, which an engine can share among tasks.

    The range of the scores is divided into equal steps. Rows are ranked within their step, and the rows of
    lower steps are added. A larger score never has a lower step, however the division rounds. If most scores
    lie in one step, it takes as long as `placed`.
    """
    by = list(by)
    half = rows[SCORE] / 2.0  # so that the range of all finite numbers is finite
    ends = rows.aggregate(low=half.min(), high=half.max())
    rows = rows.cross_join(ends)
    share = (rows[SCORE] / 2.0 - rows.low) / (rows.high - rows.low).nullif(0.0)
    rows = rows.mutate(**{_STEP: (share * _STEPS).floor().cast("int64").fill_null(0)}).drop("low", "high")
    sizes = rows.aggregate(by=[*by, _STEP], rows=rows.count())
    so_far = ibis.window(group_by=by, order_by=sizes[_STEP], preceding=None, following=0)
    sizes = sizes.mutate(lower=sizes.rows.sum().over(so_far) - sizes.rows)
    hits = placed(rows, [*by, _STEP]).join(sizes.drop("rows"), [*by, _STEP])
    return hits.mutate(below=hits.below + hits.lower, upto=hits.upto + hits.lower).drop(_STEP, "lower")


def rank_sums(rows: ir.Table, by: Sequence[str] = (), place: Place = placed) -> ir.Table:
    """One row a group (without `by`: one row) with the sums for AUC and DeLong's variance.

    With p_s positives of score s, B_s and T_s the negatives below s and at s, and P_s the positives above s:

        positives = sum p_s = M
        wins      = sum p_s (2 B_s + T_s)                                    = 2 M N AUC, whole numbers
        v10       = sum p_s (2 B_s + T_s)^2                                  = 4 N^2 sum of v10^2
        v01       = sum p_s (4 B_s (2 P_s + p_s) + T_s (4 P_s + p_s))        = 4 M^2 sum of v01^2

    `wins` stays below n^2 / 2, which fits an int64 up to four billion rows. `v01` sums (2 P + p)^2 over the
    negatives by its increments at the positives' scores, so only positives are read. Only whole numbers are
    subtracted.

    A second sort ranks the positives among themselves. It is cheaper than to group them by score: most scores
    of a model are distinct.

    Args:
        rows: as in `placed`.
        by: as in `placed`. A group without a positive has no row.
        place: `placed`, or another function that gives the same.
    """
    by = list(by)
    hits = place(rows, by)
    order = {"group_by": by, "order_by": hits[SCORE]}
    hits = hits.mutate(
        own_below=ibis.rank().over(ibis.window(**order)),
        own_upto=hits.count().over(ibis.range_window(preceding=None, following=0, **order)),
        # Counted from this score on, it would be the number above; Spark would go through all rows for each.
        every=hits.count().over(ibis.window(group_by=by)),
    )
    tied_positives = hits.own_upto - hits.own_below
    sums = hits.select(
        *by,
        p=tied_positives.cast("float64"),
        lower=hits.below - hits.own_below,
        tied=hits.upto - hits.below - tied_positives,
        above=(hits.every - hits.own_upto).cast("float64"),
    )
    sums = sums.mutate(beaten=2 * sums.lower + sums.tied)
    beaten, lower, tied = (sums[name].cast("float64") for name in ("beaten", "lower", "tied"))
    # One row is one positive, so p_s of the formulas is the number of rows.
    return sums.aggregate(
        by=by,
        positives=sums.count(),
        wins=sums.beaten.sum(),
        v10=(beaten * beaten).sum(),
        v01=(4.0 * lower * (2.0 * sums.above + sums.p) + tied * (4.0 * sums.above + sums.p)).sum(),
    )


def cluster_sums(rows: ir.Table, user: str, by: Sequence[str] = ()) -> ir.Table:
    """One row a group (without `by`: one row) with the sums for the clustered variance of AUC.

    A positive's `won` is twice the number of negatives that it beats, a negative's `lost` twice the number of
    positives that beat it, ties half: whole numbers, 2 N v10 and 2 M v01. They are summed by user, then their
    squares and products over users. A row without a user counts as a user of its own.

    Args:
        rows: score (finite), label (0 or 1), the user, and the columns of `by`.
        user: the column of the users.
        by: the columns of a group.
    """
    by = list(by)
    order = {"group_by": by, "order_by": rows[SCORE]}
    upto = ibis.range_window(preceding=None, following=0, **order)
    tied = ibis.range_window(preceding=0, following=0, **order)
    ranked = rows.select(
        *by,
        user,
        LABEL,
        below=ibis.rank().over(ibis.window(**order)),
        upto=rows.count().over(upto),
        hits_upto=rows[LABEL].sum().over(upto),
        hits_tied=rows[LABEL].sum().over(tied),
        hits=rows[LABEL].sum().over(ibis.window(group_by=by)),
    )
    positive = ranked[LABEL] == 1
    misses_below = ranked.below - (ranked.hits_upto - ranked.hits_tied)
    won = misses_below + ranked.upto - ranked.hits_upto
    lost = 2 * (ranked.hits - ranked.hits_upto) + ranked.hits_tied
    placed_rows = ranked.select(
        *by,
        user,
        m=ranked[LABEL],
        n=1 - ranked[LABEL],
        won=ibis.ifelse(positive, won, 0),
        lost=ibis.ifelse(positive, 0, lost),
    )
    names = ("m", "n", "won", "lost")
    known = placed_rows.filter(placed_rows[user].notnull())
    users = known.aggregate(by=[*by, user], **{name: known[name].sum().cast("float64") for name in names})
    alone = placed_rows.filter(placed_rows[user].isnull())
    alone = alone.select(*by, **{name: alone[name].cast("float64") for name in names})
    every = users.select(*by, *names).union(alone)
    products = {f"{one}_{other}": (every[one] * every[other]).sum() for one, other in _PRODUCTS}
    return every.aggregate(
        by=by,
        clusters=every.count(),
        with_positives=(every.m > 0).sum(),
        with_negatives=(every.n > 0).sum(),
        positives=every.m.sum(),
        negatives=every.n.sum(),
        wins=every.won.sum(),
        **products,
    )


_PRODUCTS = (
    ("won", "won"), ("won", "m"), ("m", "m"), ("lost", "lost"), ("lost", "n"), ("n", "n"),
    ("won", "lost"), ("won", "n"), ("m", "lost"), ("m", "n"),
)  # fmt: skip


def auc_sums(row: AggregateRow, n: int, clusters: AggregateRow | None = None) -> AucSums | None:
    """A row of `rank_sums` as `AucSums`; None if there is only one class.

    Args:
        row: of `rank_sums`.
        n: the number of rows behind it.
        clusters: the row of `cluster_sums` of the same rows, or of all rows of some users; None if rows are
            independent.
    """
    positives = int(row["positives"] or 0)
    negatives = n - positives
    if positives == 0 or negatives == 0:
        return None
    auc = int(row["wins"]) / (2 * positives * negatives)
    v10 = float(row["v10"]) / (4.0 * negatives * negatives)
    v01 = float(row["v01"]) / (4.0 * positives * positives)
    own = None if clusters is None else _clusters(clusters, n)
    placements = _possible(v10, positives, auc), _possible(v01, negatives, auc)
    return AucSums(positives, negatives, auc, *placements, own)


def _clusters(row: AggregateRow, n: int) -> ClusterSums | None:
    """A row of `cluster_sums` as `ClusterSums`, scaled to n rows if it covers only some of them.

    None if every row has a user of its own, or if there is only one class.
    """
    users, up, down = int(row["clusters"]), 2.0 * row["negatives"], 2.0 * row["positives"]
    rows = row["positives"] + row["negatives"]
    if users == rows or up == 0 or down == 0:
        return None
    auc = 2.0 * float(row["wins"]) / (up * down)
    of = {f"{one}_{other}": float(row[f"{one}_{other}"]) for one, other in _PRODUCTS}
    c10 = of["won_won"] / up**2 - 2 * auc * of["won_m"] / up + auc**2 * of["m_m"]
    c01 = of["lost_lost"] / down**2 - 2 * auc * of["lost_n"] / down + auc**2 * of["n_n"]
    c11 = of["won_lost"] / (up * down) - auc * (of["won_n"] / up + of["m_lost"] / down) + auc**2 * of["m_n"]
    part = n / rows
    counts = [round(part * int(row[name])) for name in ("clusters", "with_positives", "with_negatives")]
    sums = [part * one for one in (max(0.0, c10), max(0.0, c01), c11)]
    return ClusterSums(counts[0], counts[1], counts[2], sums[0], sums[1], sums[2])


def few_users(sums: AucSums) -> str:
    """Why there is no interval if the rows have few users; empty if there is one.

    >>> few_users(AucSums(2, 2, 0.75, 1.25, 1.25))
    ''
    """
    own = sums.clusters
    if own is None or own.clusters >= FEWEST_CLUSTERS:
        return ""
    return f"the rows come from {plural(own.clusters, 'user')}; an interval needs at least {FEWEST_CLUSTERS}"


def _possible(squares: float, n: int, auc: float) -> float:
    """The sum of squares of n placements with this mean, cut to the possible range."""
    return min(max(squares, n * auc * auc), n * auc)
