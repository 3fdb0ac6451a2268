"""The window's exposures as rows with score and label, for AUC, log loss and calibration.

The metrics take any table with the columns `score` and `label` (0 or 1), so samples of models are measured
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, LABEL, REQUEST_ID, SCORE, USER_ID
from monitor.metrics.attribution import RELEVANCE, acted_rows, relevant
from monitor.metrics.family import NOTHING_SHOWN, OF_SAMPLES, AggregateRow, MetricSpec, Theme
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings

LABELS: Final = (
    "The label of an exposure is 1 where an event of a grade above 0 belongs to it (see `events` and "
    "`attribution`), else 0."
)
NO_REQUEST: Final = (
    "An exposure without a request id belongs to no list, so its label is 0. One whose score is null, NaN or "
    "infinite is left out and counted."
)
score_spec = partial(
    MetricSpec,
    theme=Theme.SCORES,
    of_samples=OF_SAMPLES,
    parameters=("events", "attribution"),
    requires=("exposures.score", "feedback"),
)
"""A metric of labelled scores: of exposures, or of the samples of a model."""
NO_SCORES: Final = "no exposure has a finite score"
NO_POSITIVE: Final = "no exposure with a score has an action of a grade above 0"


def labelled(
    shared: Shared, settings: MetricSettings, key: str | None = None, further: Sequence[str] = ()
) -> ir.Table:
    """The exposures with a finite score: `score`, `label` (0 or 1), user_id, the group `key`, and `further`.

    An item twice in a list is two exposures with the same label. Unless the engine is distributed, nothing is
    stored: to join the few rows of feedback during the scan costs less than to store millions of rows.
    """
    if shared.distributed and not further:
        return shared.once("labelled", key, lambda: _labelled(shared, settings, key, ()))
    return _labelled(shared, settings, key, further)


def _labelled(shared: Shared, settings: MetricSettings, key: str | None, further: Sequence[str]) -> ir.Table:
    found = relevant(shared, settings)
    found = found.filter(found[RELEVANCE] > 0)
    found = found.select(acted_request=found[REQUEST_ID], acted_item=found[ITEM_ID])
    rows = scored(shared.shown(key))
    rows = rows.left_join(found, [rows[REQUEST_ID] == found.acted_request, rows[ITEM_ID] == found.acted_item])
    label = rows.acted_request.notnull().cast("int64")
    return rows.select(USER_ID, *listed(key), *further, **{SCORE: rows[SCORE], LABEL: label})


def scored(rows: ir.Table) -> ir.Table:
    """The rows whose score is a finite number, as float64."""
    score = rows[SCORE].cast("float64")
    return rows.mutate(**{SCORE: score}).filter(_finite(score))


def scored_users(shared: Shared, key: str | None = None) -> ir.Table:
    """One row a user (and group): `shown` exposures, and of them `scored` with a finite score.

    The exposures without a user are one row with a null.
    """
    return shared.grouped("scored_users", key, (USER_ID,), partial(_scored_users, shared))


def _scored_users(shared: Shared, key: str | None) -> ir.Table:
    rows = shared.shown(key)
    finite = _finite(rows[SCORE].cast("float64")).fill_null(False)
    return rows.aggregate(by=[USER_ID, *listed(key)], shown=rows.count(), scored=finite.sum())


def score_counts(shared: Shared, key: str | None = None) -> ir.Table:
    """One row (a group): `shown` exposures, and of them `scored` with a finite score."""

    def build() -> ir.Table:
        users = scored_users(shared, key)
        return users.aggregate(
            by=listed(key), shown=users.shown.sum().fill_null(0), scored=users.scored.sum().fill_null(0)
        )

    return shared.once("score_counts", key, build)


def labelled_users(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """One row a user (of a group) with a finite score: `n` rows of `labelled`, and of them `positives`."""
    build = partial(_labelled_users, shared, settings)
    return shared.grouped("labelled_users", key, (USER_ID,), build)


def _labelled_users(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    owner = [USER_ID, *listed(key)]
    users = scored_users(shared, key)
    users = users.filter(users[USER_ID].notnull(), users.scored > 0)
    hits = scored(acted_rows(shared, settings, key))
    hits = hits.filter(hits[RELEVANCE] > 0)
    hits = hits.aggregate(by=owner, positives=hits.count())
    both = users.left_join(hits, owner)
    return both.select(*owner, n=both.scored, positives=both.positives.fill_null(0))


def _finite(score: ir.Value) -> ir.BooleanValue:
    return score.notnull() & ~(score.isnan() | score.isinf())


def left_out(row: AggregateRow) -> str:
    """A sentence about the exposures without a finite score, from `score_counts`; empty if none.

    >>> left_out({"shown": 10, "scored": 8})
    '2 of 10 exposures have no finite score'
    """
    shown = int(row["shown"] or 0)
    missing = shown - int(row["scored"] or 0)
    return f"{missing:,} of {shown:,} exposures have no finite score" if missing else ""


def nothing_scored(row: AggregateRow) -> str | None:
    """Why there is nothing to measure; None if there is something."""
    if not row["shown"]:
        return NOTHING_SHOWN
    return None if row["scored"] else NO_SCORES


def sentences(*parts: str) -> str:
    """The parts that are not empty, joined to one detail.

    >>> sentences("", "2 of 10 exposures have no finite score", "3 scores lie outside [0, 1]")
    '2 of 10 exposures have no finite score; 3 scores lie outside [0, 1]'
    """
    return "; ".join(filter(None, parts))


def one_class(positives: int, n: int) -> str | None:
    """Why there is no AUC: only one class of labels; None if there are both."""
    if positives == 0:
        return f"{_all(n)} 0: {NO_POSITIVE}"
    if positives == n:
        return f"{_all(n)} 1: every exposure with a score was acted on"
    return None


def _all(labels: int) -> str:
    return "the only label is" if labels == 1 else f"all {labels} labels are"
