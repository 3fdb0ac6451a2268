"""The tables that rules look at beside the logs themselves: lists with what rules ask of a list, arrivals.

Everything here is from Ibis tables to Ibis tables. A column that costs a scan is computed only where a
loaded rule mentions it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.logs.columns import CATEGORY, ITEM_ID, POSITION, REQUEST_ID, SCORE, TS
from monitor.metrics.categories import list_spread
from monitor.metrics.shared import Shared

DUPLICATES: Final = "duplicates"
POSITION_GAPS: Final = "position_gaps"
SCORE_INVERSIONS: Final = "score_inversions"
SCORES_ALL_EQUAL: Final = "scores_all_equal"
CATEGORY_MAX: Final = "category_max"
AHEAD_SECONDS: Final = "ahead_seconds"
WRITTEN_AT: Final = "written_at"

LIST_COLUMNS: Final = {
    DUPLICATES: (),
    POSITION_GAPS: (f"exposures.{POSITION}",),
    SCORE_INVERSIONS: (f"exposures.{POSITION}", f"exposures.{SCORE}"),
    SCORES_ALL_EQUAL: (f"exposures.{SCORE}",),
    CATEGORY_MAX: (f"catalog.{CATEGORY}",),
}
"""The columns that `requests` can be given, and what of the logs each needs."""


def with_list_columns(shared: Shared, wanted: Iterable[str]) -> ir.Table:
    """`requests` with the wanted columns of LIST_COLUMNS, as far as the logs allow.

    | column | what it counts in one list | null where |
    |---|---|---|
    | duplicates | items - distinct items | the list is empty |
    | position_gaps | positions missing or repeated between the lowest and the highest | no positions |
    | score_inversions | items that score higher than the one before them, by position | under two scores |
    | scores_all_equal | whether all scores are the same number | under two scores |
    | category_max | items of the most frequent category | no item has a category |

    Items at the same position are never an inversion, and a NaN is compared with nothing. An item with
    several categories counts for each.

    Args:
        shared: the window; what the metrics have made of it, or will ask for too, is used here.
        wanted: names of LIST_COLUMNS; those that the logs cannot give are left out.
    """
    wanted = set(wanted)
    exposures, result = shared.exposures, shared.requests()
    shown = exposures.filter(exposures[ITEM_ID].notnull(), exposures[REQUEST_ID].notnull())
    has_position, has_score = POSITION in exposures.columns, SCORE in exposures.columns
    steps = {POSITION_GAPS} if has_position else set()
    steps |= {SCORE_INVERSIONS} if has_position and has_score else set()
    if DUPLICATES in wanted:
        result = _joined(result, _duplicates(shown), [DUPLICATES], 0)
        result = result.mutate(**{DUPLICATES: (result["length"] > 0).ifelse(result[DUPLICATES], ibis.null())})
    if wanted & steps:
        made = sorted(wanted & steps)
        result = _joined(result, _steps(shown, SCORE_INVERSIONS in made), made, 0)
        if POSITION_GAPS in made:
            known = result["position_max"].notnull()
            result = result.mutate(**{POSITION_GAPS: known.ifelse(result[POSITION_GAPS], ibis.null())})
        if SCORE_INVERSIONS in made:
            known = result["scored"] > 1
            result = result.mutate(**{SCORE_INVERSIONS: known.ifelse(result[SCORE_INVERSIONS], ibis.null())})
    if SCORES_ALL_EQUAL in wanted and has_score:
        # SQL engines hold NaN for the largest number, so one NaN makes the maximum NaN.
        known = (result["scored"] > 1) & ~result["score_max"].isnan()
        equal = result["score_min"] == result["score_max"]
        result = result.mutate(**{SCORES_ALL_EQUAL: known.ifelse(equal, ibis.null())})
    has_category = shared.catalog is not None and CATEGORY in shared.catalog.columns
    if CATEGORY_MAX in wanted and has_category:
        spread = list_spread(shared, CATEGORY, None)
        most = spread.select(found_request=spread[REQUEST_ID], **{CATEGORY_MAX: spread["most"]})
        result = _joined(result, most, [CATEGORY_MAX], None)
    return result


def arrivals(exposures: ir.Table, future: ir.Table | None) -> ir.Table:
    """The exposures and the rows that claim a time later than their file was written.

    Those rows are in no window, so `exposures` does not hold them; a rule about the future needs them.
    `ahead_seconds` says how far a row is ahead of its file: 0.0 for every ordinary exposure.

    Args:
        exposures: the window's exposures.
        future: the rows from the future with `written_at`, or None.
    """
    zero = ibis.literal(0.0)
    unknown = ibis.null("timestamp")
    present = exposures.mutate(**{AHEAD_SECONDS: zero, WRITTEN_AT: unknown})
    if future is None:
        return present
    schema = exposures.schema()
    ahead = (future[TS].epoch_seconds() - future[WRITTEN_AT].epoch_seconds()).cast("float64")
    columns = {
        name: future[name].cast(dtype) if name in future.columns else ibis.null(dtype)
        for name, dtype in schema.items()
    }
    late = future.select(
        **columns, **{AHEAD_SECONDS: ahead, WRITTEN_AT: future[WRITTEN_AT].cast("timestamp")}
    )
    return present.union(late)


def _joined(requests: ir.Table, found: ir.Table, columns: list[str], otherwise: int | None) -> ir.Table:
    renamed = found.select("found_request", *columns)
    joined = requests.left_join(renamed, requests[REQUEST_ID] == renamed["found_request"]).drop(
        "found_request"
    )
    if otherwise is None:
        return joined
    return joined.mutate(**{name: joined[name].fill_null(otherwise) for name in columns})


def _duplicates(shown: ir.Table) -> ir.Table:
    """Requests with a repeated item. A list per request is twice as fast as grouping by the item."""
    lists = shown.group_by(found_request=shown[REQUEST_ID]).aggregate(items=shown[ITEM_ID].collect())
    counted = lists.select(
        "found_request", **{DUPLICATES: lists["items"].length() - lists["items"].unique().length()}
    )
    return counted.filter(counted[DUPLICATES] > 0)


def _steps(shown: ir.Table, with_scores: bool) -> ir.Table:
    """Requests whose positions do not go up by one, or whose scores go up; one pass over the lists."""
    placed = shown.filter(shown[POSITION].notnull())
    order: list[ir.Value] = [placed[POSITION]]
    score = ibis.null("float64")
    if with_scores:
        number = placed[SCORE].cast("float64")
        score = number.isnan().ifelse(ibis.null("float64"), number)
        order.append(score.desc())
    window = ibis.window(group_by=placed[REQUEST_ID], order_by=order)
    steps = placed.select(
        found_request=placed[REQUEST_ID],
        step=placed[POSITION] - placed[POSITION].lag().over(window),
        rises=(score > score.lag().over(window)).fill_null(False) if with_scores else ibis.literal(False),
    )
    broken = steps.filter((steps["step"] != 1) | steps["rises"])
    gap = (broken["step"] == 0).ifelse(1, broken["step"] - 1)
    return broken.group_by("found_request").aggregate(
        **{POSITION_GAPS: gap.sum().fill_null(0), SCORE_INVERSIONS: broken["rises"].cast("int64").sum()}
    )
