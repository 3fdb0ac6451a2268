"""What the metrics of the business share: one table of users, and ratios of sums over them.

Users are independent of each other; requests and exposures of one user are not. So everything is summed by
user first, and the intervals rest on the spread between users.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ibis
import ibis.expr.types as ir

from monitor.core.columns import REQUEST_ID, USER_ID
from monitor.metrics.attribution import COMPLETABLE, COMPLETED, COUNT, VALUES, acted, of_event
from monitor.metrics.family import AggregateRow, Family, MetricSpec, Theme
from monitor.metrics.shared import EXPOSURES, LENGTH, Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.effects import RatioSums, ratio_delta
from monitor.statistics.intervals import Interval, wilson

_NEEDS = ("exposures", "feedback")
_MEANT = (
    "actions = those of the event that belong to a list of the window (see attribution) which held the item, "
    "each as often as it was logged"
)
_REPEATS = "An action that is logged twice counts twice"
_LATER = "Actions later than `attribution` after the list, and actions that were not logged, do not count"
_USERS = "Users are the units of the interval; a request without a user counts as a user of its own"
_ZERO = (
    "where nobody acted, from 0 to the rate at which Wilson's upper bound of the users would each act once"
)

ACTION_RATE = MetricSpec(
    name="action_rate",
    theme=Theme.ACTIONS,
    of_rows=True,
    help="How often an event happens by page view, by user, or by exposure (of clicks: pv, uv rate, CTR).",
    by=("pv", "uv", "exposure"),
    labels=("event",),
    interval="delta",
    range=(0.0, math.inf),
    parameters=("attribution",),
    formula="pv: actions / requests. uv: actions of known users / users. exposure: actions / exposures; of "
    f"clicks this is the CTR. {_MEANT}. {_USERS}; {_ZERO}.",
    answers="Do users act on the items that they are shown?",
    misleads=f"{_REPEATS}: it is never cut at 1, and a CTR above 1 means that the log has repeated rows. A "
    "longer list lowers the rate by exposure and raises the rate by pv. Clickbait raises all three. A few "
    "busy users can dominate it: see top_user_share and trimmed_action_rate. If many requests have no user, "
    f"the interval is too narrow, since requests of one person are correlated. {_LATER}.",
    requires=_NEEDS,
    samples="requests (pv); users (uv); exposures (exposure)",
    no_data="no requests (pv); no known user (uv); nothing shown (exposure)",
)
CONVERSION = MetricSpec(
    name="conversion",
    theme=Theme.ACTIONS,
    help="Share of the users with at least one action of the event (of clicks: uv conversion).",
    unit="ratio",
    labels=("event",),
    interval="Wilson",
    parameters=("attribution",),
    formula=f"users with an action / users who made a request; {_MEANT}",
    answers="How many users act at all?",
    misleads="It grows with the window's length and with the requests of a user, without any improvement: "
    "compare windows of one length. {_LATER}. Requests without a user are left out (and counted).",
    requires=_NEEDS,
    samples="users",
    no_data="no request of a known user",
)
ACTIONS_PER_USER = MetricSpec(
    name="actions_per_user",
    theme=Theme.ACTIONS,
    help="Actions of the event per acting user (clicks per clicking user).",
    labels=("event",),
    interval="normal",
    range=(0.0, math.inf),
    parameters=("attribution",),
    formula=f"actions of known users / users with an action; {_MEANT}",
    answers="Do acting users act again?",
    misleads="It rises when occasional users stop acting, since only busy users are left: read it together "
    "with conversion. One robot can dominate the mean: see top_user_share. {_REPEATS}.",
    requires=_NEEDS,
    samples="users with an action",
    no_data="no known user acted",
)
ACTION_VALUE = MetricSpec(
    name="action_value",
    theme=Theme.ACTIONS,
    of_rows=True,
    help="Sum and mean of the values of the event's actions (of orders: GMV; of plays: dwell time).",
    by=("sum", "mean"),
    labels=("event",),
    interval="delta",
    parameters=("attribution",),
    formula="sum: sum of the values; 0 where there are requests and no action. mean: sum of the values / "
    f"values, with users as the units of the interval. Values that are null, NaN or infinite are left out; "
    f"{_MEANT}",
    answers="How much value do the actions have?",
    misleads="The sum grows with the traffic: compare windows of the same kind. A single large order moves "
    "both. The values are as logged: cancelled orders and players left running count. The unit is that of "
    "the column, and mixed currencies are added up as if they were one.",
    requires=("exposures", "feedback.value"),
    samples="finite values",
    no_data="no requests; actions, but none with a finite value; no action (mean)",
    undefined="the sums run out of the range of float64",
)
COMPLETION = MetricSpec(
    name="completion",
    theme=Theme.ACTIONS,
    of_rows=True,
    help="Share of the event's actions whose value reaches enough of the item's length (plays to the end).",
    unit="ratio",
    labels=("event",),
    interval="Wilson of means",
    parameters=("events", "attribution"),
    formula="actions with value >= `complete` x the item's length / actions with a finite value on an item "
    f"whose length is above 0; `complete` and `length` of the event's settings; {_MEANT}. {_USERS}.",
    answers="Do users finish what they start?",
    misleads="Short items are completed more often: a shift to them looks like success. Several plays of "
    "one item are several actions: an item that was finished on the second day has one unfinished play. "
    "Actions without a value or on an item of unknown length are left out (and counted).",
    requires=("exposures", "feedback.value", "catalog"),
    samples="actions with a value and a length",
    no_data="no action has both a finite value and a length above 0",
)
TOP_USER_SHARE = MetricSpec(
    name="top_user_share",
    theme=Theme.ACTIONS,
    help="Share of the event's actions that the most active user makes, and the most active 1 % of users.",
    unit="ratio",
    by=("top_user", "top_1_percent"),
    labels=("event",),
    parameters=("attribution",),
    formula="of the k known users with an action, the actions of the one with most, and of the ceil(k / 100) "
    f"with most / actions of known users; {_MEANT}",
    answers="Do a few users, or a robot, dominate the numbers?",
    misleads="Few actions are always concentrated: of one action, one user made all. Under 101 users with an "
    "action the top 1 % is the top user. A crawler that changes its user id is not seen.",
    requires=_NEEDS,
    samples="actions of known users",
    no_data="no known user acted",
)
TRIMMED_ACTION_RATE = MetricSpec(
    name="trimmed_action_rate",
    theme=Theme.ACTIONS,
    help="Actions by exposure without the users who made most of them (of clicks: trimmed CTR).",
    labels=("event",),
    interval="delta",
    range=(0.0, math.inf),
    parameters=("attribution", "trim"),
    formula="actions / exposures of all but the ceil(`trim` x k) users with most actions, k = known users "
    "with an action; nobody is left out where k = 1; ties by user id, the smaller one first. "
    f"{_MEANT}. {_USERS}; {_ZERO}.",
    answers="What is the rate of all other users?",
    misleads="It also leaves out genuine heavy users, so it is lower than action_rate by design; the two "
    "should move together. The interval treats the remaining users as a random sample.",
    requires=_NEEDS,
    samples="exposures of the users left",
    no_data="nothing shown",
)


REQUESTS = "requests"
VALUE = "value"
KNOWN = "known"
_ALONE = "alone"
_SUMS = (COUNT, VALUE, VALUES, COMPLETABLE, COMPLETED)

NO_REQUESTS = "the window holds no requests"


def users(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """One row a user (and group), all in float64: `requests`, `exposures`, and of each event its sums.

    A request without a user is a row of its own, with `known` 0 in place of 1: nothing says which other
    requests the same person made.
    """
    return shared.once("business_users", key, lambda: _users(shared, settings, key))


def _users(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    by = listed(key)
    columns = [of_event(column, number) for number in range(len(settings.events)) for column in _SUMS]
    done = acted(shared, settings, key)
    done = done.aggregate(by=[REQUEST_ID, *by], **{name: done[name].sum() for name in columns})
    done = done.rename({f"done_{name}": name for name in (REQUEST_ID, *by)})
    # The user is the list's, not the action's: a broken log may hold a request of two users.
    lists = shared.requests(key).select(REQUEST_ID, USER_ID, LENGTH, *by)
    rows = lists.left_join(done, [lists[name] == done[f"done_{name}"] for name in (REQUEST_ID, *by)])
    nobody = ibis.null(rows[REQUEST_ID].type())
    rows = rows.mutate(**{_ALONE: ibis.ifelse(rows[USER_ID].isnull(), rows[REQUEST_ID], nobody)})
    found = rows.aggregate(
        by=[USER_ID, _ALONE, *by],
        **{
            REQUESTS: rows.count().cast("float64"),
            EXPOSURES: rows[LENGTH].sum().cast("float64"),
            **{name: rows[name].cast("float64").fill_null(0.0).sum() for name in columns},
        },
    )
    return found.mutate(**{KNOWN: ibis.ifelse(found[USER_ID].notnull(), 1.0, 0.0)}).drop(_ALONE)


def ratio_columns(name: str, numerator: Any, denominator: Any) -> dict[str, Any]:
    """The aggregates over units that `ratio_sums` reads; units with a denominator of 0 are none."""
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

    Where nobody acted there is no spread to go by: then up to the rate that there would be if as many users
    acted, once each, as Wilson's upper bound of 0 of n allows.

    >>> rate_interval(RatioSums(100, 0, 500, 0, 2500, 0))
    Interval(lower=0.0, upper=0.007398...)
    """
    if sums.denominator and not sums.numerator:
        none = wilson(0, sums.n)
        return none and Interval(0.0, none.upper * sums.n / sums.denominator)
    found = ratio_delta(sums)
    return found and Interval(max(0.0, found.interval.lower), found.interval.upper)


class OfEvents(Family):
    """A family whose metrics are measured for each event."""

    needs: tuple[str, ...] = ("feedback",)

    def events(self, settings: MetricSettings) -> dict[str, int]:
        """The events that are measured, each with its number in the settings."""
        return {event: number for number, event in enumerate(settings.events)}

    def series(self, settings: MetricSettings) -> Iterator[tuple[MetricSpec, dict[str, str]]]:
        for spec, labels in super().series(settings):
            for event in self.events(settings):
                yield spec, {**labels, "event": event}
