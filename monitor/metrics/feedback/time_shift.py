"""The time shift of the feedback after which most actions join an exposure.

A log whose local times are read as UTC joins almost nothing. Its rates then look like those of a very bad
recommender. Moved by the right number of hours, the same actions join at once.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, REQUEST_ID, TS, USER_ID

USERS: Final = 2_000
ACTIONS_OF_A_USER: Final = 20
FARTHEST: Final = timedelta(hours=14)  # no zone is farther from UTC
STEP: Final = timedelta(minutes=15)  # all zones in use today differ from UTC by a multiple of this
_SOON: Final = STEP - timedelta(seconds=1)  # an action is so soon after one shift only
_CLEARLY_MORE: Final = 0.1
_UNITS: Final = (
    timedelta(hours=1),
    timedelta(minutes=30),
    STEP,
)  # whole hours first: most zones differ by one


class JoiningShift(NamedTuple):
    """How many sampled actions join an exposure now, and how many after the best shift.

    `actions` is the size of the sample, `joined` the share of it that joins now. `shift` must be added to the
    times of the feedback; it is 0 if no shift is better. `shifted` is the share that joins after the shift.
    """

    actions: int
    joined: float
    shift: timedelta
    shifted: float

    @property
    def helps(self) -> bool:
        """Whether most actions join after the shift, and at least twice as many as now.

        >>> JoiningShift(500, 0.12, timedelta(hours=-8), 0.97).helps
        True
        >>> JoiningShift(500, 0.4, timedelta(hours=1), 0.6).helps
        False
        """
        return bool(self.shift) and self.shifted >= max(0.5, 2 * self.joined)


def joining_shift(exposures: ir.Table, feedback: ir.Table, attribution: timedelta) -> JoiningShift | None:
    """The shift of the feedback's times after which most actions join an exposure.

    An action joins if its item was shown to its user, or in the list that it names, within `attribution`
    before it. The shifts are the multiples of 15 minutes up to 14 hours in both directions. A half or a
    quarter of an hour is chosen only where it joins clearly more than the best whole hour.

    The sample is the same at every call: the first 20 items of up to 2,000 users, chosen by a hash of the
    user. The engine does the work; one row a shift comes back.

    Args:
        exposures: user_id, item_id, ts, and request_id where the log has it. They must reach 14 hours and
            `attribution` beyond the actions for every shift to be seen.
        feedback: user_id, item_id, ts, and request_id where the log has it.
        attribution: how long after it was shown an action may come.

    Returns None if no action has an item and a user or a request.

    >>> from datetime import datetime
    >>> at = datetime(2026, 1, 1, 10)
    >>> shown = ibis.memtable({"user_id": ["ann", "bob"], "item_id": ["a", "b"], "ts": [at, at]})
    >>> clicks = shown.mutate(ts=shown.ts + ibis.interval(hours=8, minutes=5))  # local times, read as UTC
    >>> found = joining_shift(shown, clicks, timedelta(minutes=30))
    >>> found.actions, found.joined, shift_text(found.shift), found.shifted
    (2, 0.0, '-8 h', 1.0)
    """
    sampled = sampled_actions(feedback)
    steps = _joined_by_step(delays(exposures, sampled, FARTHEST + attribution), attribution)
    total = sampled.aggregate(step=ibis.null("int64"), soon=sampled.count(), joined=ibis.literal(0, "int64"))
    rows = total.union(steps).to_pyarrow().to_pylist()
    actions = next(int(row["soon"]) for row in rows if row["step"] is None)
    if actions == 0:
        return None
    soon = {int(row["step"]): int(row["soon"]) for row in rows if row["step"] is not None}
    joined = {int(row["step"]): int(row["joined"]) for row in rows if row["step"] is not None}
    best = _best(soon, actions)
    if joined.get(best, 0) <= joined.get(0, 0):
        best = 0
    return JoiningShift(actions, joined.get(0, 0) / actions, best * STEP, joined.get(best, 0) / actions)


def shift_text(shift: timedelta) -> str:
    """A shift as text.

    >>> shift_text(timedelta(hours=-8)), shift_text(timedelta(hours=5, minutes=30)), shift_text(timedelta(0))
    ('-8 h', '+5:30 h', '0 h')
    """
    minutes = abs(shift) // timedelta(minutes=1)
    sign = "" if not shift else "-" if shift < timedelta(0) else "+"
    rest = f":{minutes % 60:02d}" if minutes % 60 else ""
    return f"{sign}{minutes // 60}{rest} h"


def sampled_actions(feedback: ir.Table) -> ir.Table:
    """`number`, `who`, and the keys of the sampled actions: one of each user and item, the earliest."""
    request = as_text(feedback[REQUEST_ID]) if REQUEST_ID in feedback.columns else ibis.null("string")
    rows = feedback.select(
        acted_user=as_text(feedback[USER_ID]),
        acted_item=as_text(feedback[ITEM_ID]),
        acted_request=request,
        acted_at=feedback[TS],
    )
    rows = rows.mutate(who=ibis.coalesce(rows.acted_user, rows.acted_request))
    rows = rows.filter(rows.who.notnull(), rows.acted_item.notnull(), rows.acted_at.notnull())
    first = rows.aggregate(
        by=["who", "acted_user", "acted_item", "acted_request"], acted_at=rows.acted_at.min()
    )
    people = first.select("who").distinct()
    people = people.order_by(people.who.hash(), people.who).limit(USERS)
    first = first.semi_join(people, "who")
    order = [first.acted_at, first.acted_item, first.acted_request]
    place = ibis.row_number().over(ibis.window(group_by=first.who, order_by=order))
    first = first.mutate(place=place)
    first = first.filter(first.place < ACTIONS_OF_A_USER)
    return first.mutate(number=ibis.row_number().over(order_by=[first.who, first.place])).drop("place")


def delays(exposures: ir.Table, sampled: ir.Table, longest: timedelta) -> ir.Table:
    """`number` of a sampled action and `delay`, the seconds since its item was shown, for every such time.

    Only delays from FARTHEST before to `longest` after are there.
    """
    request = as_text(exposures[REQUEST_ID]) if REQUEST_ID in exposures.columns else ibis.null("string")
    shown = exposures.select(
        user=as_text(exposures[USER_ID]),
        item=as_text(exposures[ITEM_ID]),
        request=request,
        shown_at=exposures[TS],
    )
    joins = [
        shown.join(sampled, [shown[ours] == sampled[theirs], shown.item == sampled.acted_item])
        for ours, theirs in (("user", "acted_user"), ("request", "acted_request"))
    ]
    both = joins[0].select("number", "acted_at", "shown_at")
    both = both.union(joins[1].select("number", "acted_at", "shown_at"), distinct=True)
    delay = both.acted_at.epoch_seconds().cast("int64") - both.shown_at.epoch_seconds().cast("int64")
    pairs = both.select("number", delay=delay)
    return pairs.filter(
        pairs.delay >= -int(FARTHEST.total_seconds()), pairs.delay <= int(longest.total_seconds())
    )


def _joined_by_step(pairs: ir.Table, attribution: timedelta) -> ir.Table:
    """One row a shift: how many actions join within `attribution`, and how many soon after."""
    last = FARTHEST // STEP
    every = ibis.literal(list(range(-last, last + 1)), "array<int64>")  # Spark unnests no cast of a range
    pairs = pairs.mutate(step=every.unnest())
    after = pairs.delay + pairs.step * int(STEP.total_seconds())
    pairs = pairs.mutate(after=after)
    pairs = pairs.filter(pairs.after >= 0, pairs.after <= int(attribution.total_seconds()))
    soonest = pairs.aggregate(by=["number", "step"], after=pairs.after.min())
    soon = ibis.ifelse(soonest.after <= int(min(_SOON, attribution).total_seconds()), 1, 0)
    return soonest.aggregate(
        by="step", soon=soon.sum().cast("int64"), joined=soonest.count().cast("int64")
    ).select("step", "soon", "joined")


def _best(soon: dict[int, int], actions: int) -> int:
    """The step with most actions soon after the exposure.

    With a long `attribution` several shifts join as many actions. Most actions come soon, which distinguishes
    them.
    """
    best = 0
    for unit in _UNITS:
        some = [step for step in soon if not (step * STEP) % unit]
        found = max(some, key=lambda step: (soon[step], -abs(step), step), default=0)
        least = 0.0 if unit is _UNITS[0] else _CLEARLY_MORE * actions
        if soon.get(found, 0) > soon.get(best, 0) + least:
            best = found
    return best


def as_text(column: ir.Value) -> ir.Value:
    """An id as text: one log may have it as a number and the other as text."""
    if column.type().is_floating():  # whole numbers with gaps, as pandas writes them
        column = ibis.ifelse(column.isnan(), ibis.null("int64"), column.cast("int64"))
    return column if column.type().is_string() else column.cast("string")
