"""The metrics of the business once more, action by action: no sums of squares, no joins, no ranks in SQL."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from scipy.stats import binomtest, norm

from tests.metrics.oracle import of_shares

Z = norm.ppf(0.975)


def delta(pairs):
    """Ratio of sums over (x, y) units, and the interval by linearisation; no interval of one unit."""
    pairs = [(x, y) for x, y in pairs if y > 0]
    x, y = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    ratio = x.sum() / y.sum()
    if len(pairs) < 2:
        return ratio, None
    influence = (x - ratio * y) / y.mean()
    half = Z * influence.std(ddof=1) / math.sqrt(len(pairs))
    return ratio, (ratio - half, ratio + half)


def wilson(hits, n):
    ci = binomtest(hits, n).proportion_ci(0.95, "wilson")
    return ci.low, ci.high


def rate(pairs):
    pairs = [(x, y) for x, y in pairs if y > 0]
    if not pairs:
        return "no_data"
    ratio, interval = delta(pairs)
    below = sum(y for _, y in pairs)
    if ratio == 0:
        interval = (0.0, wilson(0, len(pairs))[1] * len(pairs) / below)
    elif interval:
        interval = (max(0.0, interval[0]), interval[1])
    return "ok", ratio, below, interval


def expected(exposures, actions, settings, catalog):
    """(metric, by, event) -> ("ok", value, samples, interval) or the name of another state.

    `exposures` are the rows, each list with one user; `actions` are (request, item, event, value) of what
    was done with items that the lists held.
    """
    shown = defaultdict(int)
    user_of = {}
    for row in exposures:
        user_of[row["request_id"]] = row["user_id"]
        shown[row["request_id"]] += row["item_id"] is not None
    units = defaultdict(list)  # a user's requests; a request without a user is alone
    for request, user in user_of.items():
        units[("user", user) if user is not None else ("request", request)].append(request)
    known = [unit for unit in units if unit[0] == "user"]
    found = {}
    for event, one in settings.events.items():
        mine = [action for action in actions if action[2] == event]
        of = {unit: [a for a in mine if a[0] in requests] for unit, requests in units.items()}
        n = {unit: len(done) for unit, done in of.items()}
        exposed = {unit: sum(shown[r] for r in requests) for unit, requests in units.items()}
        found["action_rate", "pv", event] = rate([(n[u], len(units[u])) for u in units])
        found["action_rate", "uv", event] = rate([(n[u], 1) for u in known])
        found["action_rate", "exposure", event] = rate([(n[u], exposed[u]) for u in units])
        acting = sorted((u for u in known if n[u]), key=lambda u: (-n[u], u[1]))
        found["conversion", "", event] = (
            ("ok", len(acting) / len(known), len(known), wilson(len(acting), len(known)))
            if known
            else "no_data"
        )
        _of_acting(found, event, [n[u] for u in acting])
        cut = math.ceil(round(settings.trim * len(acting), 6)) if len(acting) > 1 else 0
        left = [u for u in units if u not in acting[:cut]]
        found["trimmed_action_rate", "", event] = rate([(n[u], exposed[u]) for u in left])
        _values(found, event, of, user_of)
        if one.length:
            _completion(found, event, of, one, catalog)
    return found


def _of_acting(found, event, counts):
    if not counts:
        for key in (
            ("actions_per_user", ""),
            ("top_user_share", "top_user"),
            ("top_user_share", "top_1_percent"),
        ):
            found[*key, event] = "no_data"
        return
    mean, interval = delta([(count, 1) for count in counts])
    interval = interval and (max(0.0, interval[0]), interval[1])
    found["actions_per_user", "", event] = ("ok", mean, len(counts), interval)
    for by, top in (("top_user", 1), ("top_1_percent", math.ceil(len(counts) / 100))):
        found["top_user_share", by, event] = ("ok", sum(counts[:top]) / sum(counts), sum(counts), None)


def _values(found, event, of, user_of):
    numbers = {
        unit: [a[3] for a in done if a[3] is not None and math.isfinite(a[3])] for unit, done in of.items()
    }
    every = [number for own in numbers.values() for number in own]
    if every:
        mean, interval = delta([(sum(own), len(own)) for own in numbers.values()])
        found["action_value", "sum", event] = ("ok", sum(every), len(every), None)
        found["action_value", "mean", event] = ("ok", mean, len(every), interval)
        return
    nothing_done = user_of and not any(of.values())
    found["action_value", "sum", event] = ("ok", 0.0, 0, None) if nothing_done else "no_data"
    found["action_value", "mean", event] = "no_data"


def _completion(found, event, of, one, catalog):
    lengths = {row["item_id"]: row[one.length] for row in catalog}
    pairs = []
    for done in of.values():
        shares = [
            value / lengths[item]
            for _, item, _, value in done
            if value is not None and math.isfinite(value) and (lengths.get(item) or 0) > 0
        ]
        if shares:
            pairs.append((sum(share >= one.complete for share in shares), len(shares)))
    if not pairs:
        found["completion", "", event] = "no_data"
        return
    share, _ = delta(pairs)
    many = len(pairs) > 1
    interval = of_shares([x / y for x, y in pairs], [y for _, y in pairs]) if many else None
    found["completion", "", event] = ("ok", share, sum(y for _, y in pairs), interval)
