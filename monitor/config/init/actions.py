"""Measures a feedback log: its events, and how long after its list an action comes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.config.init.synonyms import EVENT_GRADES, NOT_ACTIONS, plain
from monitor.config.init.zones import is_zone
from monitor.core import columns as c
from monitor.core.settings import parse_duration
from monitor.engines.duckdb import Engine
from monitor.logs.canonical import canonical, only
from monitor.metrics.feedback.time_shift import JoiningShift, joining_shift
from monitor.settings.logs import LogSettings
from monitor.settings.metrics import MetricSettings

MOST_EVENTS: Final = 10
LONGEST_NAME: Final = 60  # of an event, in the settings
FEWEST_DELAYS: Final = 20
WITHIN: Final = 0.95
SPANS: Final = tuple(
    map(parse_duration, ("30m", "1h", "2h", "4h", "8h", "12h", "1d", "2d", "3d", "7d", "14d"))
)
_SKEW: Final = timedelta(minutes=5)
_TABLE: Final = "sample_actions"


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of `n` actions after their lists; `typical` is the quantile WITHIN."""

    n: int
    typical: timedelta
    before: float  # the share of the actions that come well before their list
    within: tuple[float, ...]  # the share that comes within each of `SPANS`


@dataclass(frozen=True, slots=True)
class Actions:
    """A sample of a feedback log: each event with its actions, the most frequent first."""

    total: int
    events: tuple[tuple[str, int], ...]
    delays: Delays | None = None
    shift: JoiningShift | None = None


def grade(event: str) -> tuple[int | None, str]:
    """The guessed grade of an event, by its name, and why; None for an event that is no action.

    >>> grade("add_to_cart"), grade("removeFromCart")
    ((2, 'saved for later or liked'), (0, 'disliked, or undone'))
    >>> grade("Order placed")[0], grade("42"), grade("impression")[0]
    (3, (1, 'its name has no known meaning'), None)
    """
    words = set(plain(event).split("_"))
    for number, meaning, names in EVENT_GRADES:
        if words & set(names):
            return number, meaning
    if words & NOT_ACTIONS:
        return None, "an exposure is not an action"
    return 1, "its name has no known meaning"


def look_at_actions(
    engine: Engine, sample: str, settings: LogSettings, shown: ir.Table | None, complete: bool
) -> Actions:
    """Measure the sampled rows of a feedback log.

    If another time zone would make most actions join, the delays are those of the corrected times.

    Args:
        engine: has the feedback's sample.
        sample: its table.
        settings: how to read it.
        shown: the sampled exposures as they are read; None if they cannot be read.
        complete: whether both samples are their whole logs. If not, an action without a request id might
            join an older list than its own.
    """
    read = only(canonical(engine.backend.table(sample), c.FEEDBACK, settings, {}), settings)
    rows = engine.create(_TABLE, read)
    named = rows.filter(rows[c.EVENT].notnull())
    counted = named.group_by(c.EVENT).aggregate(n=named.count())
    counted = counted.order_by(counted.n.desc(), counted[c.EVENT]).execute()
    events = tuple((str(one[c.EVENT]), int(one["n"])) for one in counted.to_dict("records"))
    judged = rows.filter(rows[c.EVENT].isin([name for name, _ in events if grade(name)[0] is not None]))
    total = sum(count for _, count in events)
    if shown is None:
        return Actions(total, events)
    shift = joining_shift(shown, judged, MetricSettings().attribution)
    if shift is not None and shift.helps and shift.actions >= FEWEST_DELAYS and is_zone(shift.shift):
        moved = judged[c.TS] + ibis.interval(seconds=int(shift.shift.total_seconds()))
        judged = judged.mutate(**{c.TS: moved})
    else:
        shift = None
    return Actions(total, events, _delays(judged, shown, complete), shift)


def _delays(actions: ir.Table, shown: ir.Table, complete: bool) -> Delays | None:
    """By the request that an action names; if few name one, by the user's latest list with the item."""
    if c.REQUEST_ID in actions.columns:
        found = _measure(actions, shown, [c.REQUEST_ID, c.ITEM_ID], latest=False)
        if found is not None:
            return found
    return _measure(actions, shown, [c.USER_ID, c.ITEM_ID], latest=True) if complete else None


def _measure(actions: ir.Table, shown: ir.Table, keys: list[str], *, latest: bool) -> Delays | None:
    acted, lists = _keyed(actions, keys, "acted_at"), _keyed(shown, keys, "shown_at")
    if latest:
        found = acted.asof_join(lists, on=acted.acted_at >= lists.shown_at, predicates=keys)
        found = found.filter(found.shown_at.notnull())
    else:
        found = acted.join(lists.aggregate(by=keys, shown_at=lists.shown_at.min()), keys)
    late = found.select(seconds=found.acted_at.epoch_seconds() - found.shown_at.epoch_seconds())
    before = (late.seconds < -_SKEW.total_seconds()).mean()
    within = {
        f"within_{place}": (late.seconds <= span.total_seconds()).mean() for place, span in enumerate(SPANS)
    }
    row = late.aggregate(n=late.count(), typical=late.seconds.quantile(WITHIN), before=before, **within)
    one = row.execute().iloc[0]
    if one["n"] < FEWEST_DELAYS:
        return None
    typical = timedelta(seconds=float(one["typical"]))
    return Delays(int(one["n"]), typical, float(one["before"]), tuple(float(one[name]) for name in within))


def _keyed(rows: ir.Table, keys: list[str], moment: str) -> ir.Table:
    """The keys and the time. Keys are texts: one log may write numbers where the other writes texts."""
    rows = rows.filter(*(rows[name].notnull() for name in (*keys, c.TS)))
    return rows.select(**{key: rows[key].cast("string") for key in keys}, **{moment: rows[c.TS]})
