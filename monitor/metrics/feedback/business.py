"""The base of the metrics of actions: one table of users, and ratios of sums over users.

Users are independent of each other; requests and exposures of one user are not. So everything is summed by
user first, and the intervals come from the variance between users.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import REQUEST_ID, USER_ID
from monitor.metrics.attribution import COMPLETABLE, COMPLETED, COUNT, VALUES, acted, of_event
from monitor.metrics.family import AggregateRow, MetricSpec, Theme
from monitor.metrics.history import EXPOSURES
from monitor.metrics.shared import LENGTH, Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.effects import RatioSums, ratio_delta
from monitor.statistics.intervals import Interval, wilson

MEANT = (
    "actions = those of the event that belong to a list of the window (see attribution) which held the item, "
    "each as often as it was logged"
)
REPEATS = "An action that is logged twice counts twice"
LATER = "Actions later than `attribution` after the list, and actions that were not logged, do not count"
USERS = "Users are the units of the interval; a request without a user counts as a user of its own"
ZERO = "where nobody acted, from 0 to the rate at which Wilson's upper bound of the users would each act once"

action_spec = partial(
    MetricSpec,
    theme=Theme.ACTIONS,
    labels=("event",),
    parameters=("attribution",),
    requires=("exposures", "feedback"),
)
"""A metric of the actions of one event."""

BUSINESS_USERS: Final = "business_users"
REQUESTS = "requests"
VALUE = "value"
KNOWN = "known"
_SUMS = (COUNT, VALUE, VALUES, COMPLETABLE, COMPLETED)


def users(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """One row a user (and group), all in float64: `requests`, `exposures`, and of each event its sums.

    A request without a user is a row of its own, with `known` 0 in place of 1.
    """
    build = partial(_users, shared, settings)
    return shared.grouped(BUSINESS_USERS, key, (USER_ID,), build, by_list=True)


def _users(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    owner = [USER_ID, *listed(key)]
    columns = [of_event(column, number) for number in range(len(settings.events)) for column in _SUMS]
    every = shared.requests(key).select(REQUEST_ID, LENGTH, *owner)
    done = acted(shared, settings, key)
    # The user of the list, not of the action: a broken log may have a request with two users.
    done = done.drop(USER_ID).join(every, [REQUEST_ID, *listed(key)])

    def sums_of(alone: bool) -> ir.Table:
        """The sums of each user, or of each request without a user."""
        lists, actions = (
            rows.filter(rows[USER_ID].isnull() if alone else rows[USER_ID].notnull())
            for rows in (every, done)
        )
        by = [REQUEST_ID, *listed(key)] if alone else owner
        lists = lists.aggregate(by=by, **{REQUESTS: lists.count(), EXPOSURES: lists[LENGTH].sum()})
        actions = actions.aggregate(by=by, **{name: actions[name].sum() for name in columns})
        both = lists.left_join(actions, by)
        return both.select(
            *listed(key),
            **{USER_ID: ibis.null(every[USER_ID].type()) if alone else both[USER_ID]},
            **{name: both[name].cast("float64") for name in (REQUESTS, EXPOSURES)},
            **{name: both[name].cast("float64").fill_null(0.0) for name in columns},
            **{KNOWN: ibis.literal(0.0 if alone else 1.0)},
        )

    return sums_of(alone=False).union(sums_of(alone=True))


def ratio_columns(name: str, numerator: Any, denominator: Any) -> dict[str, Any]:
    """The aggregates over units that `ratio_sums` reads; units with a denominator of 0 do not count."""
    return {
        f"{name}_n": (denominator > 0).cast("float64").sum(),
        f"{name}_x": numerator.sum(),
        f"{name}_y": denominator.sum(),
        f"{name}_xx": (numerator * numerator).sum(),
        f"{name}_yy": (denominator * denominator).sum(),
        f"{name}_xy": (numerator * denominator).sum(),
    }


def ratio_sums(row: AggregateRow, name: str) -> RatioSums:
    """The sums of one ratio; 0 where a group has no rows."""
    n, *sums = (float(row[f"{name}_{part}"] or 0.0) for part in ("n", "x", "y", "xx", "yy", "xy"))
    return RatioSums(int(n), *sums)


def rate_interval(sums: RatioSums) -> Interval | None:
    """The delta method's interval of a rate that is never negative.

    If nobody acted, there is no variance. The upper end is then the rate if as many users as Wilson's upper
    bound of 0 of n acted once each.

    >>> rate_interval(RatioSums(100, 0, 500, 0, 2500, 0))
    Interval(lower=0.0, upper=0.007398...)
    """
    if sums.denominator and not sums.numerator:
        none = wilson(0, sums.n)
        return none and Interval(0.0, none.upper * sums.n / sums.denominator)
    found = ratio_delta(sums)
    return found and Interval(max(0.0, found.interval.lower), found.interval.upper)
