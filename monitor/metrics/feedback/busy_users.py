"""Users with very many actions: their share, and the action rate without them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ibis
import ibis.expr.types as ir

from monitor.core.columns import USER_ID
from monitor.core.results import Result
from monitor.metrics.attribution import COUNT, of_event
from monitor.metrics.family import NOTHING_SHOWN, AddsUp, AggregateRow, Family, make
from monitor.metrics.feedback.action_rates import NOBODY_ACTED, actions_without_user
from monitor.metrics.feedback.business import (
    BUSINESS_USERS,
    KNOWN,
    MEANT,
    USERS,
    ZERO,
    action_spec,
    rate_interval,
    ratio_columns,
    ratio_sums,
    users,
)
from monitor.metrics.history import EXPOSURES
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.effects import RatioSums

TOP_USER_SHARE = action_spec(
    name="top_user_share",
    help="Share of the event's actions that the most active user makes, and the most active 1 % of users.",
    unit="ratio",
    by=("top_user", "top_1_percent"),
    formula="of the k known users with an action, the actions of the one with most, and of the ceil(k / 100) "
    f"with most / actions of known users; {MEANT}",
    answers="Do a few users, or a robot, dominate the numbers?",
    misleads="Few actions are always concentrated: of one action, one user made all. Under 101 users with an "
    "action the top 1 % is the top user. A crawler that changes its user id is not seen.",
    samples="actions of known users",
    no_data="no known user acted",
)

TRIMMED_ACTION_RATE = action_spec(
    name="trimmed_action_rate",
    better="higher",
    help="Actions by exposure without the users who made most of them (of clicks: trimmed CTR).",
    interval="delta",
    range=(0.0, math.inf),
    parameters=("attribution", "trim"),
    formula="actions / exposures of all but the ceil(`trim` x k) users with most actions, k = known users "
    "with an action; nobody is left out where k = 1; ties by user id, the smaller one first. "
    f"{MEANT}. {USERS}; {ZERO}.",
    answers="What is the rate of all other users?",
    misleads="It also leaves out genuine heavy users, so it is lower than action_rate by design; the two "
    "should move together. The interval treats the remaining users as a random sample.",
    samples="exposures of the users left",
    no_data="nothing shown",
)

_NUMBER, _RANK, _ACTING = "event_number", "rank", "acting"
_ALL, _GONE, _OF_KNOWN = "all", "trimmed", "of_known"
_ROUNDING = 1e-9  # 0.07 * 100 is a little more than 7


class BusyUsers(Family):
    """The users with most actions of each event, ranked once for all events."""

    name = "busy_users"
    outputs = ((TOP_USER_SHARE, TOP_USER_SHARE.by), (TRIMMED_ACTION_RATE, ()))
    needs = ("feedback",)
    adds_up = AddsUp(tables=(BUSINESS_USERS,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        by, numbers = listed(key), list(self.events(settings).values())
        every = users(shared, settings, key)
        sums: dict[str, Any] = {}
        for number in numbers:
            actions = every[of_event(COUNT, number)]
            sums |= ratio_columns(of_event(_ALL, number), actions, every[EXPOSURES])
            sums[of_event(_OF_KNOWN, number)] = (every[KNOWN] * actions).sum()
        ranked = _ranked(every, numbers, by)
        busiest = ranked.aggregate(
            by=by, **{name: one for number in numbers for name, one in _busiest(ranked, number, settings)}
        )
        return shared.side_by_side(key, every.aggregate(by=by, **sums), busiest)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        for event, number in self.events(settings).items():
            whole = ratio_sums(row, of_event(_ALL, number))
            of_known = int(row[of_event(_OF_KNOWN, number)] or 0)
            detail = actions_without_user(whole.numerator, of_known)
            for by in TOP_USER_SHARE.by:
                builder = make(TOP_USER_SHARE, settings, by, event=event)
                yield builder.share(row[of_event(by, number)], of_known, NOBODY_ACTED, detail=detail)
            builder = make(TRIMMED_ACTION_RATE, settings, event=event)
            gone = ratio_sums(row, of_event(_GONE, number))
            left = _without(whole, gone)
            if not left.denominator:
                yield builder.no_data(NOTHING_SHOWN)
                continue
            acting = int(row[of_event(_ACTING, number)] or 0)
            detail = f"left out: {gone.n:,} of {acting:,} users with an action" if gone.n else ""
            value, interval = left.numerator / left.denominator, rate_interval(left)
            yield builder.value(value, int(left.denominator), interval, detail=detail)


def _without(whole: RatioSums, part: RatioSums) -> RatioSums:
    n, *sums = (one - other for one, other in zip(whole, part, strict=True))
    return RatioSums(int(n), *sums)


def _ranked(every: ir.Table, numbers: list[int], by: list[str]) -> ir.Table:
    """One row an event and known user with an action of it; `rank` from 0, the busiest first."""
    of_events = []
    for number in numbers:
        acting = every.filter(every[KNOWN] == 1.0, every[of_event(COUNT, number)] > 0)
        own = {COUNT: acting[of_event(COUNT, number)], _NUMBER: ibis.literal(number, type="int64")}
        of_events.append(acting.select(USER_ID, EXPOSURES, *by, **own))
    rows = ibis.union(of_events[0], *of_events[1:]) if len(of_events) > 1 else of_events[0]
    group = [_NUMBER, *by]
    busiest_first = ibis.window(group_by=group, order_by=[rows[COUNT].desc(), rows[USER_ID]])
    return rows.mutate(
        **{
            _RANK: ibis.row_number().over(busiest_first).cast("float64"),
            _ACTING: rows.count().over(ibis.window(group_by=group)).cast("float64"),
        }
    )


def _busiest(ranked: ir.Table, number: int, settings: MetricSettings) -> Iterator[tuple[str, Any]]:
    mine = ranked[_NUMBER] == number
    rank, acting = ranked[_RANK], ranked[_ACTING]
    # rank < x holds for ceil(x) users; if only one user acted, nobody is trimmed.
    trimmed = (rank < acting * settings.trim - _ROUNDING) | (rank == 0)
    gone = ibis.ifelse(mine & trimmed & (acting > 1), 1.0, 0.0)
    tops = {"top_user": rank == 0, "top_1_percent": rank * 100 < acting}
    for by, at_top in tops.items():
        yield of_event(by, number), ibis.ifelse(mine & at_top, ranked[COUNT], 0.0).sum()
    yield of_event(_ACTING, number), ibis.ifelse(mine, 1.0, 0.0).sum()
    yield from ratio_columns(of_event(_GONE, number), gone * ranked[COUNT], gone * ranked[EXPOSURES]).items()
