"""The requests of a log, and a sample of its users: with all of their requests, the same at each run.

Users are drawn in the proportions of the strata: the scene and the quarter of the day in which a user asks
most often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, REQUEST_ID, SCENE, TS, USER_ID
from monitor.engines.duckdb import Engine

LIST_LENGTH: Final = "list_length"
"""The name under which a template finds how many items the request showed, if the log has no such column."""
_QUARTER: Final = 6  # hours
_EARLIEST: Final = datetime(1000, 1, 1)  # an older time lies in no window either
_UNIT, _BLOCK, _PLACE, _STRATUM = "__monitor_unit", "__monitor_block", "__monitor_place", "__monitor_scene"


@dataclass(frozen=True, slots=True)
class Stratum:
    """The requests of one scene in one quarter of the day: in the log, and in the sample."""

    scene: str
    hours: str
    requests: int
    sampled: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A table of requests, one row each, ordered by time, and where they come from.

    Attributes:
        table: the requests.
        requests, sampled_requests: how many the log has, and the sample.
        users, sampled_users: whose they are; a request without a user counts as one.
        without_user, sampled_without_user: the requests without a user.
        strata: the requests by scene and quarter of the day.
    """

    table: ir.Table
    requests: int
    users: int
    sampled_requests: int
    sampled_users: int
    without_user: int
    sampled_without_user: int
    strata: Sequence[Stratum]


def requests_of(rows: ir.Table, first: datetime | None, last: datetime | None) -> ir.Table:
    """One row a request: its user, time and further columns. If rows differ, the smallest value counts."""
    begin = _EARLIEST if first is None else max(first.replace(tzinfo=None), _EARLIEST)
    rows = rows.filter(rows[TS] >= ibis.literal(begin).cast("timestamp(6)"))
    if last is not None:
        rows = rows.filter(rows[TS] < ibis.literal(last.replace(tzinfo=None)).cast("timestamp(6)"))
    rows = rows.filter(rows[REQUEST_ID].notnull())
    wanted = [name for name in rows.columns if name not in (REQUEST_ID, ITEM_ID)]
    values = [rows[name].min().name(name) for name in wanted]
    if ITEM_ID in rows.columns and LIST_LENGTH not in map(str.casefold, rows.columns):
        values.append(rows[ITEM_ID].count().name(LIST_LENGTH))
    return rows.aggregate(values, by=REQUEST_ID)


def sampled(engine: Engine, requests: ir.Table, users: int | Fraction | None, seed: int) -> Sample | None:
    """All requests of a sample of users; None if there is no request.

    Args:
        engine: stores the tables.
        requests: one row a request.
        users: how many users, or which share of them; None for all.
        seed: another one gives another sample. A request without a user is a unit of its own.
    """
    unit = ibis.coalesce(
        ibis.literal("u") + requests[USER_ID].cast("string"),
        ibis.literal("r") + requests[REQUEST_ID].cast("string"),
    )
    scene = requests[SCENE].cast("string").fill_null("") if SCENE in requests.columns else ibis.literal("")
    block = (requests[TS].hour() // _QUARTER).cast("int64")
    marked = engine.create(
        "replay_requests", requests.mutate(**{_UNIT: unit, _STRATUM: scene, _BLOCK: block})
    )
    units = engine.create("replay_units", _units(marked, seed))
    whole = int(units.count().to_pyarrow().as_py())
    if not whole:
        return None
    wanted = whole if users is None else users if isinstance(users, int) else max(1, int(users * whole))
    wanted = min(wanted, whole)
    # Every (whole / wanted)-th place of the order is chosen, from a start that the seed gives.
    rank, offset = units[_PLACE], seed % whole
    chosen = units.filter(((rank + 1) * wanted + offset) // whole > (rank * wanted + offset) // whole)
    kept = engine.create("replay_sample", marked.semi_join(chosen, _UNIT))
    counted = _by_stratum(marked).left_join(
        _by_stratum(kept).rename(sampled="requests"), [_STRATUM, _BLOCK], rname="{name}_kept"
    )
    counts = counted.order_by(counted[_STRATUM], counted[_BLOCK]).to_pyarrow().to_pylist()
    return Sample(
        kept.drop(_UNIT, _STRATUM, _BLOCK).order_by(kept[TS], kept[REQUEST_ID]),
        sum(one["requests"] for one in counts),
        whole,
        sum(one["sampled"] or 0 for one in counts),
        wanted,
        _without_user(marked),
        _without_user(kept),
        [_stratum(one) for one in counts],
    )


def _without_user(rows: ir.Table) -> int:
    return int(rows.filter(rows[USER_ID].isnull()).count().to_pyarrow().as_py())


def _units(marked: ir.Table, seed: int) -> ir.Table:
    """One row a user, with the place in the order of strata and, within a stratum, of a hash."""
    own = marked.aggregate(by=[_UNIT, _STRATUM, _BLOCK], n=marked.count())
    most_first = ibis.window(group_by=own[_UNIT], order_by=[own.n.desc(), own[_STRATUM], own[_BLOCK]])
    own = own.mutate(which=ibis.row_number().over(most_first))
    own = own.filter(own.which == 0)
    drawn = (ibis.literal(f"{seed}:") + own[_UNIT]).hexdigest("md5")
    order = ibis.window(order_by=[own[_STRATUM], own[_BLOCK], drawn, own[_UNIT]])
    return own.select(_UNIT, **{_PLACE: ibis.row_number().over(order).cast("int64")})


def _by_stratum(rows: ir.Table) -> ir.Table:
    return rows.aggregate(by=[_STRATUM, _BLOCK], requests=rows.count())


def _stratum(row: dict[str, Any]) -> Stratum:
    begin = int(row[_BLOCK]) * _QUARTER
    hours = f"{begin:02}-{begin + _QUARTER:02}"
    return Stratum(row[_STRATUM], hours, int(row["requests"]), int(row["sampled"] or 0))
