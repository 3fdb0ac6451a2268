"""What a feedback log says of itself: which events it holds, and how long after its list an action comes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import ibis.expr.types as ir

from monitor.config.profile import TABLE
from monitor.config.synonyms import plain
from monitor.logs import columns as c
from monitor.logs.canonical import canonical
from monitor.logs.engine import Engine
from monitor.logs.settings import LogSettings

MOST_EVENTS: Final = 10
LONGEST_NAME: Final = 60  # of an event, in the settings
FEWEST_DELAYS: Final = 20
WITHIN: Final = 0.95
_SKEW: Final = timedelta(minutes=5)

# The first that a word of the name is among; what a team's own events mean, only the team knows.
_GRADES: Final[tuple[tuple[int, str, tuple[str, ...]], ...]] = (
    (0, "not liked, or taken back", (
        "dislike", "disliked", "unlike", "hide", "hidden", "skip", "skipped", "remove", "removed", "dismiss",
        "dismissed", "report", "block", "unfollow", "unsubscribe", "return", "returned", "refund", "refunded",
        "cancel", "cancelled", "canceled", "uninstall", "downvote", "negative",
    )),
    (3, "bought", (
        "buy", "bought", "purchase", "purchased", "order", "ordered", "checkout", "pay", "paid", "payment",
        "transaction", "sale", "sold", "subscribe", "subscribed", "book", "booked", "booking", "convert",
        "converted", "conversion", "rent", "rented",
    )),
    (2, "put aside or liked", (
        "cart", "basket", "bag", "like", "liked", "love", "loved", "fav", "favorite", "favourite", "wishlist",
        "save", "saved", "bookmark", "bookmarked", "share", "shared", "follow", "followed", "heart", "upvote",
        "install", "installed", "download", "downloaded",
    )),
    (1, "a click", (
        "click", "clicked", "clicks", "tap", "tapped", "view", "viewed", "open", "opened", "visit", "visited",
        "play", "played", "watch", "watched", "read", "listen", "listened", "stream", "streamed", "detail",
        "select", "selected",
    )),
)  # fmt: skip
_NO_ACTION: Final = (
    "impression", "impressions", "exposure", "exposed", "show", "shown", "display", "displayed", "serve",
    "served", "render", "rendered", "viewport", "scroll", "scrolled",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Delays:
    """How long after its list an action comes: `n` actions whose list was found, `typical` a quantile."""

    n: int
    typical: timedelta
    before: float  # the share of the actions that come well before their list


@dataclass(frozen=True, slots=True)
class Actions:
    """A sample of a feedback log: the events by their actions, the most frequent first."""

    total: int
    events: tuple[tuple[str, int], ...]
    delays: Delays | None = None


def grade(event: str) -> tuple[int | None, str]:
    """A guess at how much an event says for its item, by its name, and why; None where it is no action.

    >>> grade("add_to_cart"), grade("removeFromCart")
    ((2, 'put aside or liked'), (0, 'not liked, or taken back'))
    >>> grade("Order placed")[0], grade("42"), grade("impression")[0]
    (3, (1, 'its name does not say what it means'), None)
    """
    words = set(plain(event).split("_"))
    for number, meaning, names in _GRADES:
        if words & set(names):
            return number, meaning
    if words & set(_NO_ACTION):
        return None, "what was shown is no action"
    return 1, "its name does not say what it means"


def look_at_actions(engine: Engine, settings: LogSettings, shown: ir.Table | None, complete: bool) -> Actions:
    """Measure the sampled rows of a feedback log.

    Args:
        engine: has the feedback's sample.
        settings: how to read it.
        shown: the sampled exposures as they are read, None where they cannot be.
        complete: whether both samples are their whole logs. Where they are not, an action without a request
            id might be taken for one of an older list.
    """
    rows = engine.create(f"{TABLE}_actions", canonical(engine.backend.table(TABLE), c.FEEDBACK, settings, {}))
    named = rows.filter(rows[c.EVENT].notnull())
    counted = named.group_by(c.EVENT).aggregate(n=named.count())
    counted = counted.order_by(counted.n.desc(), counted[c.EVENT]).execute()
    events = tuple((str(one[c.EVENT]), int(one["n"])) for one in counted.to_dict("records"))
    judged = rows.filter(rows[c.EVENT].isin([name for name, _ in events if grade(name)[0] is not None]))
    delays = None if shown is None else _delays(judged, shown, complete)
    return Actions(sum(count for _, count in events), events, delays)


def _delays(actions: ir.Table, shown: ir.Table, complete: bool) -> Delays | None:
    """By the request that an action names; where few do, by its user's latest list with the item."""
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
    row = late.aggregate(n=late.count(), typical=late.seconds.quantile(WITHIN), before=before)
    one = row.execute().iloc[0]
    if one["n"] < FEWEST_DELAYS:
        return None
    return Delays(int(one["n"]), timedelta(seconds=float(one["typical"])), float(one["before"]))


def _keyed(rows: ir.Table, keys: list[str], moment: str) -> ir.Table:
    """The keys as text, since one log may write as a number what the other writes as text, and the time."""
    rows = rows.filter(*(rows[name].notnull() for name in (*keys, c.TS)))
    return rows.select(**{key: rows[key].cast("string") for key in keys}, **{moment: rows[c.TS]})
