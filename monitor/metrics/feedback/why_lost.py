"""Why actions join no list although their times are right: unknown or missing ids, or a short attribution."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, REQUEST_ID, USER_ID
from monitor.metrics.feedback.time_shift import FARTHEST, as_text, delays, sampled_actions

_FEW: Final = 0.5
_MOST: Final = 0.95


def why_lost(exposures: ir.Table, feedback: ir.Table, attribution: timedelta) -> str:
    """The most likely reason, as half a sentence with its figures.

    It uses the tables and the sample of actions of `joining_shift`.

    >>> from datetime import datetime
    >>> at = datetime(2026, 1, 1, 10)
    >>> shown = ibis.memtable({"user_id": ["ann"], "item_id": ["a"], "ts": [at]})
    >>> why_lost(shown, shown.mutate(user_id=ibis.literal("ANN")), timedelta(minutes=30))[:64]
    'the user ids differ in case or in blanks: 0% of the actions have'
    """
    sampled = sampled_actions(feedback)
    row = _figures(exposures, sampled, attribution)
    n = int(row["n"] or 0)
    if not n:
        return "no action has an item, and a user or a request id"
    allowed = _short(attribution)
    share = {name: int(row[name] or 0) / n for name in row if name not in ("n", "later_seconds")}
    without_user = share["without_user"] >= _FEW
    if without_user and share["requests"] < _FEW:
        return (
            f"{share['without_user']:.0%} of the actions have no user id, and {share['requests']:.0%} have a "
            "request id of the exposures: log the user id with each action, or the request id of its list"
        )
    for what, plain, folded in (("user", "users", "users_folded"), ("item", "items", "items_folded")):
        if share[plain] >= _FEW or (what == "user" and without_user):
            continue
        figure = f"{share[plain]:.0%} of the actions have {'a user' if what == 'user' else 'an item'}"
        if share[folded] >= max(_FEW, 2 * share[plain]):
            return (
                f"the {what} ids differ in case or in blanks: {figure} of the exposures, {share[folded]:.0%} "
                "if case and blanks are ignored"
            )
        return (
            f"{figure} of the exposures: the {what} ids may be of another type or system, or the actions of "
            "another scene or shop"
        )
    if share["later"] >= _FEW:
        needed = timedelta(minutes=-(-int(row["later_seconds"]) // 60))
        return (
            f"{share['later']:.0%} come later than metrics.attribution ({allowed}) after the item "
            f"was shown to the user, {_MOST:.0%} of these within {_short(needed)}: raise metrics.attribution"
        )
    return (
        f"{share['users']:.0%} of the actions have a user and {share['items']:.0%} an item of the exposures: "
        "the actions may start elsewhere (search, another scene); log the request id with each action, leave "
        "such actions out, or raise metrics.max_unattributed"
    )


def _figures(exposures: ir.Table, sampled: ir.Table, attribution: timedelta) -> dict[str, Any]:
    """How many sampled actions have a user, an item or a request of the exposures, or come too late."""
    figures = sampled.aggregate(n=sampled.count(), without_user=sampled.acted_user.isnull().sum())
    requests = as_text(exposures[REQUEST_ID]) if REQUEST_ID in exposures.columns else ibis.null("string")
    lists = exposures.select(known=requests).distinct()
    named = sampled.semi_join(lists, sampled.acted_request == lists.known)
    figures = figures.cross_join(named.aggregate(requests=named.count()))
    for name, column, own in (("users", USER_ID, "acted_user"), ("items", ITEM_ID, "acted_item")):
        for folded in (False, True):
            known = exposures.select(known=_id(as_text(exposures[column]), folded=folded)).distinct()
            rows = sampled.mutate(acted_id=_id(sampled[own], folded=folded))
            rows = rows.semi_join(known, rows.acted_id == known.known)
            label = f"{name}_folded" if folded else name
            figures = figures.cross_join(rows.aggregate(**{label: rows.count()}))
    pairs = delays(exposures, sampled, FARTHEST + attribution)
    pairs = pairs.filter(pairs.delay >= 0)
    soonest = pairs.aggregate(by="number", delay=pairs.delay.min())
    late = soonest.filter(soonest.delay > int(attribution.total_seconds()))
    later = late.aggregate(later=late.count(), later_seconds=late.delay.quantile(_MOST))
    found: list[dict[str, Any]] = figures.cross_join(later).to_pyarrow().to_pylist()
    return found[0]


def _id(text: ir.StringValue, *, folded: bool) -> ir.StringValue:
    return text.strip().lower() if folded else text


def _short(span: timedelta) -> str:
    """A span as the config writes it.

    >>> _short(timedelta(minutes=90)), _short(timedelta(days=2)), _short(timedelta(seconds=30))
    ('90m', '48h', '30s')
    """
    seconds = int(span.total_seconds())
    if seconds % 3600 == 0:
        return f"{seconds // 3600}h"
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"
