"""The lists of two sides, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from monitor.comparison.lists import Lists, Moved, Users
from monitor.core.text import plural, visible
from monitor.report.numbers import number, share
from monitor.statistics.effects import Estimate

_NAME: Final = 40


def lists_text(lists: Lists | None) -> Iterator[str]:
    """A line for each thing that is known of the lists."""
    if lists is None:
        return
    a, b = lists.requests
    if not lists.common:
        yield f"lists: no request is on both sides ({a:,} and {b:,}), so no list can be compared with another"
    else:
        are = "is" if lists.common == 1 else "are"
        text = f"lists: {plural(lists.common, 'request')} {are} on both sides, of {a:,} and {b:,}"
        if lists.both_empty:
            text += f"; empty on both: {lists.both_empty:,}"
        yield text
        yield f"  overlap, the share of a request's items that are on both lists: {_estimate(lists.overlap)}"
        of = f"{plural(lists.ranked, 'request')} with two common items or more"
        yield f"  order, the rank correlation of the common items: {_estimate(lists.rank)}; {of}"
    for words, items in (("gain", lists.winners), ("lose", lists.losers)):
        if items:
            yield f"  items that {words} most: {_moved(items, share)}"
    if lists.users is not None:
        yield from _users(lists.users)
    for example in lists.examples:
        both = f"A {short(example.one)} | B {short(example.other)}"
        yield f"  request {visible(example.request, _NAME)}: {both}"


def _users(users: Users) -> Iterator[str]:
    event = visible(users.event)
    others = f"{users.fewer:,} fewer, {users.same:,} as many"
    text = f"{plural(users.more, 'user')} with more {event} actions under B, {others}"
    if users.share is not None and users.interval is not None:
        between = f"{share(users.interval.lower)} to {share(users.interval.upper)}"
        text += f"; more for {share(users.share)} of those that differ ({between})"
    yield f"  {text}"
    for words, moved in (("win", users.winners), ("lose", users.losers)):
        if moved:
            yield f"  users who {words} most, which chance alone can make: {_moved(moved, number)}"


def _moved(moved: Sequence[Moved], text: Any) -> str:
    return ", ".join(f"{visible(one.name, _NAME)} ({text(one.one)} to {text(one.other)})" for one in moved)


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "no_data"
    return (
        f"{number(estimate.value)} ({number(estimate.interval.lower)} to {number(estimate.interval.upper)})"
    )


def short(items: Sequence[str]) -> str:
    """A list of items on one line.

    >>> short(["i1", "i2"]), short([])
    ('i1 i2', 'nothing')
    """
    return " ".join(visible(item, _NAME) for item in items) or "nothing"


def lists_json(lists: Lists) -> dict[str, Any]:
    """The same for programs; null for what is not known."""
    users = lists.users
    return {
        "requests": {"a": lists.requests[0], "b": lists.requests[1], "common": lists.common},
        "both_empty": lists.both_empty,
        "overlap": _estimate_json(lists.overlap),
        "rank_correlation": _estimate_json(lists.rank),
        "ranked_requests": lists.ranked,
        "items": {"winners": _moved_json(lists.winners), "losers": _moved_json(lists.losers)},
        "users": None
        if users is None
        else {
            "event": users.event,
            "more": users.more,
            "fewer": users.fewer,
            "same": users.same,
            "share_more": users.share,
            "lower": None if users.interval is None else users.interval.lower,
            "upper": None if users.interval is None else users.interval.upper,
            "winners": _moved_json(users.winners),
            "losers": _moved_json(users.losers),
        },
        "examples": [
            {"request": one.request, "a": list(one.one), "b": list(one.other)} for one in lists.examples
        ],
    }


def _estimate_json(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {
        "value": estimate.value, "lower": estimate.interval.lower, "upper": estimate.interval.upper
    }  # fmt: skip


def _moved_json(moved: Sequence[Moved]) -> list[dict[str, Any]]:
    return [{"name": one.name, "a": one.one, "b": one.other} for one in moved]
