"""The tables that rules look at besides the logs: lists with extra columns, and arrivals.

Ibis tables in, Ibis tables out. A column that costs a scan is computed only if a loaded rule mentions it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import CATEGORY, ITEM_ID, POSITION, REQUEST_ID, SCORE, TS
from monitor.metrics.arrays import repeats
from monitor.metrics.exposure.categories import list_spread
from monitor.metrics.shared import ITEMS, Shared, listed

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
"""The extra columns of `requests`, and the columns of the logs that each needs."""


def with_list_columns(shared: Shared, wanted: Iterable[str], key: str | None = None) -> ir.Table:
    """`requests` (by a key) with the wanted columns of LIST_COLUMNS, as far as the logs allow.

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
        key: as in `Shared.requests`.
    """
    wanted = set(wanted)
    exposures, result = shared.exposures, shared.requests(key)
    has_position, has_score = POSITION in exposures.columns, SCORE in exposures.columns
    steps = {POSITION_GAPS} if has_position else set()
    steps |= {SCORE_INVERSIONS} if has_position and has_score else set()
    if DUPLICATES in wanted:
        result = result.mutate(**{DUPLICATES: repeats(result[ITEMS])})
    result = result.drop(ITEMS)
    if wanted & steps:
        made = sorted(wanted & steps)
        result = _joined(result, _broken_steps(shared, SCORE_INVERSIONS in made, key), made, key, 0)
        if POSITION_GAPS in made:
            known = result["position_max"].notnull()
            result = result.mutate(**{POSITION_GAPS: known.ifelse(result[POSITION_GAPS], ibis.null())})
        if SCORE_INVERSIONS in made:
            known = result["scored"] > 1
            result = result.mutate(**{SCORE_INVERSIONS: known.ifelse(result[SCORE_INVERSIONS], ibis.null())})
    if SCORES_ALL_EQUAL in wanted and has_score:
        # SQL engines sort NaN above every number, so one NaN makes the maximum NaN.
        known = (result["scored"] > 1) & ~result["score_max"].isnan()
        equal = result["score_min"] == result["score_max"]
        result = result.mutate(**{SCORES_ALL_EQUAL: known.ifelse(equal, ibis.null())})
    has_category = shared.catalog is not None and CATEGORY in shared.catalog.columns
    if CATEGORY_MAX in wanted and has_category:
        spread = list_spread(shared, CATEGORY, key)
        most = spread.select(*listed(key), found_request=spread[REQUEST_ID], **{CATEGORY_MAX: spread["most"]})
        result = _joined(result, most, [CATEGORY_MAX], key, None)
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


def _joined(
    requests: ir.Table, found: ir.Table, columns: list[str], key: str | None, otherwise: int | None
) -> ir.Table:
    by = listed(key)
    renamed = found.select("found_request", *columns, **{f"found_{name}": found[name] for name in by})
    matches = [requests[name] == renamed[f"found_{name}"] for name in by]
    joined = requests.left_join(renamed, [requests[REQUEST_ID] == renamed["found_request"], *matches])
    joined = joined.drop("found_request", *(f"found_{name}" for name in by))
    if otherwise is None:
        return joined
    return joined.mutate(**{name: joined[name].fill_null(otherwise) for name in columns})


def _broken_steps(shared: Shared, with_scores: bool, key: str | None) -> ir.Table:
    """Requests whose positions do not go up by one, or whose scores go up."""
    by = ["found_request", *listed(key)]
    if shared.distributed:
        return _broken_steps_sorted(_placed(shared, with_scores, key), by)
    # Stored, because it is small, and to read it twice in one query the engine would copy all exposures.
    name = f"list_steps_{with_scores}"
    lists = shared.once(name, key, lambda: _steps_as_read(_placed(shared, with_scores, key), by))
    in_order = lists.filter(lists.loose == 1)
    in_order = in_order.select(
        *by, **{POSITION_GAPS: ibis.literal(0, "int64"), SCORE_INVERSIONS: in_order.rises.cast("int64")}
    )
    others = _placed(shared, with_scores, key).semi_join(lists.filter(lists.loose > 1), by)
    return in_order.union(_broken_steps_sorted(others, by))


def _placed(shared: Shared, with_scores: bool, key: str | None) -> ir.Table:
    exposures = shared.rows(key)
    rows = exposures.filter([exposures[c].notnull() for c in (ITEM_ID, REQUEST_ID, POSITION)])
    score = ibis.null("float64")
    if with_scores:
        number = rows[SCORE].cast("float64")
        score = number.isnan().ifelse(ibis.null("float64"), number)
    return rows.select(*listed(key), found_request=rows[REQUEST_ID], position=rows[POSITION], score=score)


def _steps_as_read(placed: ir.Table, by: list[str]) -> ir.Table:
    """The lists that are not in order (`loose` > 1), or in which scores rise.

    Most logs hold a list's rows one after the other, by position, so each row is compared with the row
    that happens to be read before it. A row has at most one such follower, so where all rows of a list
    but one follow the position before their own, they are the whole list in its order, in whatever order
    the engine reads. Only the other lists need sorting.
    """
    as_read = ibis.window()
    together = ibis.and_(*(placed[name] == placed[name].lag().over(as_read) for name in by))
    # Positions of two lists are never compared: their difference may be too large for a number.
    step = together.ifelse(placed.position - placed.position.lag().over(as_read), ibis.null())
    read = placed.select(
        *by,
        follows=(step == 1).fill_null(False),
        rises=(placed.score > placed.score.lag().over(as_read)).fill_null(False),
    )
    read = read.filter(~read.follows | read.rises)  # before the grouping: in most lists only the first row
    lists = read.aggregate(
        by=by,
        loose=read.count() - read.follows.sum(),
        rises=(read.follows & read.rises).sum(),
    )
    return lists.filter((lists.loose > 1) | (lists.rises > 0))


def _broken_steps_sorted(placed: ir.Table, by: list[str]) -> ir.Table:
    window = ibis.window(group_by=by, order_by=[placed.position, placed.score.desc()])
    steps = placed.select(
        *by,
        step=placed.position - placed.position.lag().over(window),
        rises=(placed.score > placed.score.lag().over(window)).fill_null(False),
    )
    broken = steps.filter((steps.step != 1) | steps.rises)
    gap = (broken.step == 0).ifelse(1, broken.step - 1)
    return broken.aggregate(
        by=by,
        **{POSITION_GAPS: gap.sum().fill_null(0), SCORE_INVERSIONS: broken.rises.sum()},
    )
