"""The sums of an off-policy estimate, computed in the engine: no row of a log leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, POSITION, PROPENSITY, REQUEST_ID, USER_ID
from monitor.metrics.attribution import COUNT, acted, of_event
from monitor.metrics.feedback.business import ratio_columns
from monitor.metrics.shared import Shared
from monitor.off_policy.reward_model import GROUP, GROUPS, HITS, ROWS
from monitor.off_policy.reward_model import ITEM as _ITEM
from monitor.off_policy.reward_model import PLACE as _PLACE
from monitor.off_policy.reward_model import Q as _Q
from monitor.settings.metrics import MetricSettings
from monitor.window.slices import text_of

IPS: Final = "ips"
CLIPPED: Final = "clipped_ips"
SELF_NORMALISED: Final = "self_normalised_ips"
WEIGHT: Final = "weight"
LOGGED: Final = "logged"
DIRECT: Final = "direct_method"
DOUBLY_ROBUST: Final = "doubly_robust"
MODEL_ERROR: Final = "model_error"

FAULT: Final = "fault"
W, REWARD, ALONE = "w", "reward", "alone"
_P: Final = "p"


def cells(rows: ir.Table, by_position: bool) -> ir.Table:
    """How often a log shows each item at each position: `place`, `item`, `rows`."""
    rows = rows.filter(rows[ITEM_ID].notnull())
    rows = rows.select(**_cell(rows, by_position))
    return rows.aggregate(by=[_PLACE, _ITEM], **{ROWS: rows.count()})


def shares(counted: ir.Table) -> ir.Table:
    """The share `q` of an item among all items at its position; see docs/off-policy.md for why not a mean."""
    places = counted.aggregate(by=_PLACE, total=counted[ROWS].sum())
    both = counted.join(places, _PLACE)
    return both.select(_PLACE, _ITEM, **{_Q: both[ROWS].cast("float64") / both.total.cast("float64")})


def weighted(
    shared: Shared,
    settings: MetricSettings,
    event: str,
    target: ir.Table | str,
    by_position: bool,
    context: Sequence[str] = (),
) -> ir.Table:
    """One row an exposure: its cell, its unit, `w` (null if it has none), `fault` (or null), and `reward`.

    `group` is the random group of its unit, for the models of the reward; the context is text.

    Args:
        shared: the log's tables.
        settings: of its metrics.
        event: the event that is the reward: 1 if the user did it at least once with this item of the list.
        target: the table of `shares`, or the column of the exposures that has the target's probability.
        by_position: whether positions are told apart.
        context: further columns of the exposures that a model of the reward reads, see `context_names`.
    """
    rows = shared.shown()
    further = {_Q: rows[target].cast("float64")} if isinstance(target, str) else {}
    rows = rows.select(
        REQUEST_ID,
        USER_ID,
        ITEM_ID,
        **{POSITION: rows[POSITION] if POSITION in rows.columns else ibis.null("int64")},
        **_cell(rows, by_position),
        **{_P: rows[PROPENSITY].cast("float64")},
        **further,
        **{
            name: text_of(rows[column]).fill_null("")
            for name, column in zip(context_names(context), context, strict=True)
        },
    )
    if not isinstance(target, str):
        wanted = target.rename(other_place=_PLACE, other_item=_ITEM)
        same = [rows[_PLACE] == wanted.other_place, rows[_ITEM] == wanted.other_item]
        rows = rows.left_join(wanted, same).drop("other_place", "other_item")
        rows = rows.mutate(**{_Q: rows[_Q].fill_null(0.0)})  # an item that the target never shows
    number = list(settings.events).index(event)
    done = acted(shared, settings)
    done = done.filter(done[of_event(COUNT, number)] > 0)
    done = done.select(done_request=done[REQUEST_ID], done_item=done[ITEM_ID])
    rows = rows.left_join(done, [rows[REQUEST_ID] == done.done_request, rows[ITEM_ID] == done.done_item])
    p, q = rows[_P], rows[_Q]
    weight = q / p
    fault = ibis.cases(
        *_faults(p, "propensity"),
        (p == 0, "propensity 0"),
        *_faults(q, "target"),
        (weight.isinf(), "overflow"),
    )
    nobody = ibis.null(rows[REQUEST_ID].type())
    unit = ibis.coalesce(rows[USER_ID].cast("string"), rows[REQUEST_ID].cast("string"))
    rows = rows.mutate(
        **{
            GROUP: (unit.hash() % GROUPS + GROUPS) % GROUPS,  # a hash may be negative
            FAULT: fault,
            REWARD: rows.done_request.notnull().cast("float64"),
            ALONE: ibis.ifelse(rows[USER_ID].isnull(), rows[REQUEST_ID], nobody),
        }
    )
    return rows.mutate(**{W: ibis.ifelse(rows[FAULT].isnull(), weight, ibis.null("float64"))})


def context_names(context: Sequence[str]) -> list[str]:
    """The names of the columns of the context in the table of `weighted`."""
    return [f"context_{number}" for number in range(len(context))]


LISTS, SEVERAL, REPEATED = "lists", "several", "repeated"
VARYING, VALUES, OF_AN_ITEM, OF_A_PLACE = "varying", "values", "of_an_item", "of_a_place"


def kinds_of_context(rows: ir.Table, context: Sequence[str]) -> ir.Table:
    """One row that says whether columns of the context belong to lists or to items.

    `lists`, those with `several` rows, and the items with `repeated` rows; and of each column, by its name in
    `context_names`: the lists with `varying` values, the number of its `values`, and the most values
    `of_an_item` and `of_a_place`.

    Args:
        rows: of `weighted`.
        context: as in `weighted`.
    """
    names = context_names(context)
    lists = rows.aggregate(
        by=[REQUEST_ID, USER_ID, ALONE], n=rows.count(), **{name: rows[name].nunique() for name in names}
    )
    items = rows.filter(rows[_ITEM].notnull())
    items = items.aggregate(by=_ITEM, n=items.count(), **{name: items[name].nunique() for name in names})
    of_lists = lists.aggregate(
        **{LISTS: lists.count(), SEVERAL: (lists.n > 1).sum()},
        **{f"{name}_{VARYING}": (lists[name] > 1).sum() for name in names},
    )
    of_items = items.aggregate(
        **{REPEATED: (items.n > 1).sum()}, **{f"{name}_{OF_AN_ITEM}": items[name].max() for name in names}
    )
    places = rows.aggregate(by=_PLACE, **{name: rows[name].nunique() for name in names})
    of_places = places.aggregate(**{f"{name}_{OF_A_PLACE}": places[name].max() for name in names})
    whole = rows.aggregate(**{f"{name}_{VALUES}": rows[name].nunique() for name in names})
    return of_lists.cross_join(of_items).cross_join(of_places).cross_join(whole)


def rewards(rows: ir.Table, context: Sequence[str]) -> ir.Table:
    """How often each kind of row occurs with a weight, and is rewarded: what `reward_model` learns from."""
    rows = rows.filter(rows[W].notnull())
    by = [GROUP, _PLACE, _ITEM, *context_names(context)]
    return rows.aggregate(by=by, **{ROWS: rows.count(), HITS: rows[REWARD].sum()})


def corrected(rows: ir.Table, predicted: ir.Table, expected: ir.Table, context: Sequence[str]) -> ir.Table:
    """One row: the sums over units of doubly robust, and of the weighted error of its model.

    Args:
        rows: of `weighted`.
        predicted, expected: of `reward_model.Predictions`.
        context: as in `weighted`.
    """
    rows = rows.filter(rows[W].notnull())
    where = [GROUP, _PLACE, *context_names(context)]
    rows = rows.join(expected, where).join(predicted, [*where, _ITEM])
    error = rows[W] * (rows[REWARD] - rows.predicted)
    rows = rows.mutate(error=error, term=rows.expected + error)
    units = rows.aggregate(
        by=[USER_ID, ALONE], n=rows.count().cast("float64"), error=rows.error.sum(), term=rows.term.sum()
    )
    return units.aggregate(
        **ratio_columns(DOUBLY_ROBUST, units.term, units.n),
        **ratio_columns(MODEL_ERROR, units.error, units.n),
    )


def faults(rows: ir.Table) -> ir.Table:
    """One row for each fault, null for none: `rows`, and the `largest` weight."""
    return rows.aggregate(by=FAULT, **{ROWS: rows.count()}, largest=rows[W].max())


def totals(rows: ir.Table, largest: float, cap: float) -> ir.Table:
    """One row: the sums over units of each estimator, and of the weights over rows.

    Weights are divided by the largest for their own sums, so that no square overflows.
    """
    rows = rows.filter(rows[W].notnull())
    w, reward = rows[W], rows[REWARD]
    cut = ibis.least(w, cap)
    part, cut_part = w / largest, cut / min(largest, cap)
    rows = rows.mutate(
        wr=w * reward, cut_reward=cut * reward, part=part, square=part * part, cut_part=cut_part,
        cut_square=cut_part * cut_part,
    )  # fmt: skip
    units = rows.aggregate(
        by=[USER_ID, ALONE],
        n=rows.count().cast("float64"),
        **{name: rows[name].sum() for name in (*_SUMMED, W, REWARD)},
    )
    sums: dict[str, Any] = {
        **ratio_columns(LOGGED, units[REWARD], units.n),
        **ratio_columns(IPS, units.wr, units.n),
        **ratio_columns(CLIPPED, units.cut_reward, units.n),
        **ratio_columns(SELF_NORMALISED, units.wr, units[W]),
        **ratio_columns(WEIGHT, units[W], units.n),
    }
    row_sums = {name: units[name].sum() for name in _SUMMED[2:]}
    return units.aggregate(**sums, **row_sums)


_SUMMED: Final = ("wr", "cut_reward", "part", "square", "cut_part", "cut_square")


def supported(rows: ir.Table, target: ir.Table, counted: ir.Table) -> ir.Table:
    """One row: the share `supported` of the target's probability on items that the log shows with a weight.

    A position counts by its rows in the log. A position that the target's log does not have adds nothing. One
    that the log does not have is without support, by its share of the target's rows.

    Args:
        rows: of `weighted`.
        target: of `shares`.
        counted: of `cells`, of the target's log.
    """
    rows = rows.filter(rows[W].notnull())
    shown = rows.aggregate(by=[_PLACE, _ITEM], **{ROWS: rows.count()})
    places = shown.aggregate(by=_PLACE, here=shown[ROWS].sum().cast("float64"))
    found = shown.join(target, [_PLACE, _ITEM]).join(places, _PLACE)
    sums = found.aggregate(mass=(found[_Q] * found.here).sum())
    whole = places.aggregate(total=places.here.sum())
    here = counted.semi_join(places, _PLACE)
    seen = here.aggregate(seen=here[ROWS].sum().cast("float64"))
    asked = counted.aggregate(asked=counted[ROWS].sum().cast("float64"))
    both = sums.cross_join(whole).cross_join(seen).cross_join(asked)
    share = both.mass.fill_null(0.0) / both.total * (both.seen.fill_null(0.0) / both.asked)
    return both.select(supported=share)


def _cell(rows: ir.Table, by_position: bool) -> dict[str, Any]:
    """The position and the item as text, so that logs with other types of ids can be compared."""
    place = rows[POSITION].cast("string").fill_null("") if by_position else ibis.literal("")
    return {_PLACE: place, _ITEM: rows[ITEM_ID].cast("string")}


def _faults(column: Any, name: str) -> tuple[tuple[Any, str], ...]:
    return (
        (column.isnull(), f"{name} null"),
        (column.isnan(), f"{name} NaN"),
        (column.isinf(), f"{name} infinite"),
        (column < 0, f"{name} negative"),
        (column > 1, f"{name} above 1"),
    )
