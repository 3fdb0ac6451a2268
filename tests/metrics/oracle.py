"""The metrics of section 1 once more, from the definitions, row by row and pair by pair.

Nothing here is shared with the product: no closed form, no sums of squares, no counting in place
of comparing. It is slow and meant to be read beside docs/metrics/README.md.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import combinations, pairwise

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binomtest, norm
from scipy.stats import t as student

from tests.metrics.oracle_catalog import (
    Likeness,
    categories,
    category_entropy,
    diversity,
    is_action,
    serendipity,
)


def of_shares(values, weights=None):
    """The shares p whose distance from the mean is at most t times the error that p would have.

    The error is that of `effective` draws of 0 or 1, which have the same variance as the mean of the values
    and one more value as far away from it as 0 to 1 allows.
    """
    values = np.asarray(values, float)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, float)
    n, units = len(values), weights.sum() ** 2 / (weights**2).sum()
    mean = float(np.average(values, weights=weights))
    most = mean * (1 - mean) if 1e-9 < mean < 1 - 1e-9 else 0.0
    residual = weights * (values - mean) / weights.sum()
    variance = (n * (residual**2).sum() + most / units) / n
    effective = most / variance if most else units
    t = student.ppf(0.975, units - 1)

    def beyond(p):
        return (mean - p) ** 2 - t * t * p * (1 - p) / effective

    if not most:  # all values are at one end
        far = t * t / (effective + t * t)
        return (0.0, far) if mean < 0.5 else (1 - far, 1.0)
    return brentq(beyond, 0.0, mean, xtol=1e-14), brentq(beyond, mean, 1.0, xtol=1e-14)


def most_of(values):
    """The bound of values that lie between 0 and 1 in all but odd logs."""
    return 1.0 if max(values, default=0) <= 1 + 1e-9 else math.inf


class Expected(dict):
    """(metric, by) -> ("ok", value, samples, lower, upper), or the name of another state."""

    def share(self, metric, by, hits, n):
        if n == 0:
            self[metric, by] = "no_data"
        else:
            ci = binomtest(hits, n).proportion_ci(0.95, "wilson")
            self[metric, by] = ("ok", hits / n, n, ci.low, ci.high)

    def mean(self, metric, by, values, most=math.inf):
        """The mean of values from 0 to `most`."""
        n = len(values)
        if n == 0:
            self[metric, by] = "no_data"
            return
        mean = float(np.mean(values))
        if n == 1:
            ends = (None, None)
        elif math.isfinite(most):
            ends = [most * end for end in of_shares(np.array(values) / most)]
        else:
            half = norm.ppf(0.975) * np.std(values, ddof=1) / math.sqrt(n)
            ends = (max(0.0, mean - half), mean + half)
        self[metric, by] = ("ok", mean, n, *ends)

    def bare(self, metric, by, value, samples):
        self[metric, by] = ("ok", value, samples, None, None)

    def count(self, metric, by, value, samples, empty):
        self[metric, by] = ("no_data" if empty else "ok", value, samples, None, None)


def expected(world, settings) -> Expected:
    found = Expected()
    rows = [r for r in world.exposures if not ("status" in world.columns and is_failed(r))]
    shown = [r for r in rows if r["item_id"] is not None]
    requests = defaultdict(list)
    for r in rows:
        requests[r["request_id"]].append(r)
    shown_lists = {q: [r["item_id"] for r in rs if r["item_id"] is not None] for q, rs in requests.items()}
    user_of = {q: rs[0]["user_id"] for q, rs in requests.items()}

    _volume(found, world, shown_lists, user_of, shown)
    _coverage(found, world, settings, shown_lists, user_of, shown)
    _update_rate(found, world, requests, shown_lists, user_of)
    _concentration(found, world, settings, shown)
    if world.catalog is not None and "category" in world.catalog_columns:
        category_entropy(found, world, shown, shown_lists)
    if world.catalog is not None:
        like = Likeness(world, settings)
        diversity(found, shown_lists, like)
        if world.feedback is not None:
            serendipity(found, world, settings, shown, like)
    _personalization(found, shown)
    _novelty(found, world, settings, shown)
    if "score" in world.columns:
        _score_health(found, settings, shown, requests)
    if "propensity" in world.columns:
        _importance(found, settings, shown)
    if "latency" in world.columns:
        _latency(found, world)
    if "status" in world.columns:
        _answers(found, world)
    if "ever_shown" in world.columns:
        known = [r["ever_shown"] for r in shown if r["ever_shown"] is not None]
        found.share("ever_shown", "", sum(known), len(known))
    return found


FAILURES = {"error", "timeout", "refused", "garbage", "too_large", "wrong_user", "interrupted"}


def is_failed(row):
    """Whether a row is a request without an answer: it shows nothing and its status is a failure."""
    return row["item_id"] is None and row["status"] in FAILURES


def _latency(found, world):
    values = []
    for row in {r["request_id"]: r for r in world.exposures}.values():
        given_up = "status" in world.columns and row["status"] in FAILURES - {"timeout"}
        if not given_up and row["latency"] is not None and 0 <= row["latency"] < math.inf:
            values.append(row["latency"])
    values.sort()
    n = len(values)
    for by, p in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        if not n:
            found["latency", by] = "no_data"
            continue
        at = next(v for k, v in enumerate(values, 1) if k >= n * p - 1e-9)
        ends = order_interval(values, p)
        found["latency", by] = "undefined" if ends is None else ("ok", at, n, *ends)


def order_interval(values, p):
    """The narrowest ends of which each is beyond the quantile in at most 2.5 % of all samples."""
    n = len(values)
    chance = [math.comb(n, b) * p**b * (1 - p) ** (n - b) for b in range(n + 1)]
    lower = [k for k in range(1, n + 1) if sum(chance[:k]) <= 0.025]
    upper = [k for k in range(1, n + 1) if sum(chance[k:]) <= 0.025]
    return (values[lower[-1] - 1], values[upper[0] - 1]) if lower and upper else None


def _answers(found, world):
    statuses = defaultdict(set)
    for row in world.exposures:
        statuses[row["request_id"]].add(row["status"])
    judged = [own for own in statuses.values() if own & ({"ok"} | FAILURES - {"interrupted"})]
    found.share(
        "answer_errors", "", sum(bool(own & FAILURES - {"interrupted"}) for own in judged), len(judged)
    )
    found.share("answer_timeouts", "", sum("timeout" in own for own in judged), len(judged))


def _volume(found, world, shown_lists, user_of, shown):
    requests, empty = len(shown_lists), not shown_lists
    found.count("volume", "requests", requests, requests, empty)
    found.count("volume", "users", len({u for u in user_of.values() if u is not None}), requests, empty)
    found.count("volume", "exposures", len(shown), len(shown), empty)
    found.count("volume", "items", len({r["item_id"] for r in shown}), len(shown), empty)
    found.mean("list_length", "", [len(items) for items in shown_lists.values()])
    if world.catalog is not None:
        size = len({r["item_id"] for r in world.catalog})
        found.count("catalog_items", "", size, size, size == 0)


def _coverage(found, world, settings, shown_lists, user_of, shown):
    c = settings.valid_list_length
    lengths = {q: len(items) for q, items in shown_lists.items()}
    found.share("coverage", "pv", sum(n >= c for n in lengths.values()), len(lengths))
    found.share("failure", "pv", sum(n == 0 for n in lengths.values()), len(lengths))
    users = {u for u in user_of.values() if u is not None}
    reached = {user_of[q] for q, n in lengths.items() if n >= c} - {None}
    failed = {user_of[q] for q, n in lengths.items() if n == 0} - {None}
    found.share("coverage", "uv", len(reached), len(users))
    found.share("failure", "uv", len(failed), len(users))
    if world.catalog is None:
        return
    known = {r["item_id"] for r in world.catalog}
    items = {r["item_id"] for r in shown}
    if not items:
        found["coverage", "item"] = found["coverage_unknown_items", ""] = "no_data"
        return
    found.bare("coverage_unknown_items", "", len(items - known), len(items))
    if known:
        found.bare("coverage", "item", len(items & known) / len(known), len(known))
    else:
        found["coverage", "item"] = "undefined"


def _update_rate(found, world, requests, shown_lists, user_of):
    courses = defaultdict(list)
    for q, rs in requests.items():
        if user_of[q] is not None:
            courses[user_of[q], rs[0].get("scene")].append((rs[0]["ts"], q))
    rates, empty = [], 0
    for course in courses.values():
        course.sort()
        for (_, older), (_, newer) in pairwise(course):
            if shown_lists[older]:
                new = [i for i in shown_lists[newer] if i not in shown_lists[older]]
                rates.append(len(new) / len(shown_lists[older]))
            else:
                empty += 1
    if not rates and empty:
        found["update_rate", "refresh"] = "undefined"
    else:
        found.mean("update_rate", "refresh", rates, most_of(rates))
    if world.today is not None:
        rates = []
        for user in {u for u, _ in world.yesterday or []} & {u for u, _ in world.today}:
            before = {i for u, i in world.yesterday if u == user}
            now = {i for u, i in world.today if u == user}
            rates.append(len(now - before) / len(before))
        found.mean("update_rate", "day", rates, most_of(rates))


def gini(counts):
    """By the mean absolute difference of all pairs: half of it over the mean, scaled to reach 1."""
    n = len(counts)
    differences = sum(abs(a - b) for a, b in combinations(counts, 2)) * 2
    return differences / (2 * n * sum(counts)) * (n / (n - 1))


def _concentration(found, world, settings, shown):
    counts = Counter(r["item_id"] for r in shown)
    if not counts:
        found["gini_exposed", ""] = "no_data"
    elif len(counts) == 1:
        found["gini_exposed", ""] = "undefined"
    else:
        found.bare("gini_exposed", "", gini(list(counts.values())), len(counts))
    best = sorted(counts.values(), reverse=True)
    for by, top in (
        ("top_1_percent", math.ceil(len(best) / 100)),
        ("top_10_percent", math.ceil(len(best) / 10)),
        ("top_item", 1),
    ):
        if best:
            found.bare("popularity_share", by, sum(best[:top]) / len(shown), len(shown))
        else:
            found["popularity_share", by] = "no_data"
    if world.catalog is None:
        return
    items = sorted({r["item_id"] for r in world.catalog})
    of_catalog = [counts.get(i, 0) for i in items]
    if not shown:
        found["gini", ""] = "no_data"
    elif len(items) < 2 or not sum(of_catalog):
        found["gini", ""] = "undefined"
    else:
        found.bare("gini", "", gini(of_catalog), len(items))
    if world.feedback is None:
        return
    acts = [f for f in world.feedback if f["item_id"] is not None and is_action(f, settings)]
    actions = [sum(f["item_id"] == i for f in acts) for i in items]
    if not shown or not acts:
        found["matthew_effect", ""] = "no_data"
    elif len(items) < 2 or not sum(of_catalog) or not sum(actions):
        found["matthew_effect", ""] = "undefined"
    else:
        found.bare("matthew_effect", "", gini(of_catalog) - gini(actions), len(items))


def _personalization(found, shown):
    items = sorted({r["item_id"] for r in shown})
    users = sorted({r["user_id"] for r in shown if r["user_id"] is not None})
    if len(users) < 2:
        found["personalization", ""] = "undefined" if users else "no_data"
        return
    matrix = np.zeros((len(users), len(items)))
    for r in shown:
        if r["user_id"] is not None:
            matrix[users.index(r["user_id"]), items.index(r["item_id"])] = 1
    cosines = [a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in combinations(list(matrix), 2)]
    found.bare("personalization", "", 1 - float(np.mean(cosines)), len(users))


def _novelty(found, world, settings, shown):
    bys = {"item": lambda item: {item}}
    if world.catalog is not None and "category" in world.catalog_columns:
        known = categories(world)
        bys["category"] = lambda item: known.get(item, set())
    history = world.history
    for by, values in bys.items():
        if not history:
            found["novelty", by] = found["novelty", "user"] = "no_data"
            continue
        now = {(r["user_id"], v) for r in shown if r["user_id"] is not None for v in values(r["item_id"])}
        before = {(u, v) for u, item, _ in history for v in values(item)}
        found.share("novelty", by, len(now - before), len(now))
        if by == "item":
            found.share("novelty", "user", len({u for u, _ in now - before}), len({u for u, _ in now}))
    if history:
        everyone = {u for u, _, _ in history}
        seen_by = {i: {u for u, item, _ in history if item == i} for i in {r["item_id"] for r in shown}}
        bits = [-math.log2(max(1, len(seen_by[r["item_id"]])) / len(everyone)) for r in shown]
        found.mean("self_information", "", bits)
    else:
        found["self_information", ""] = "no_data"
    if settings.popularity == "actions":
        past = [item for _, item in world.history_actions or []]
    else:
        past = [item for _, item, n in history or [] for _ in range(n)]
    if past and shown:
        counts = [past.count(r["item_id"]) for r in shown]
        found.bare("average_popularity", "", float(np.mean(counts)), len(counts))
    else:
        found["average_popularity", ""] = "no_data"


def _score_health(found, settings, shown, requests):
    scores = [r["score"] for r in shown if r["score"] is not None]
    finite = [s for s in scores if math.isfinite(s)]
    found.share("score_health", "null", len(shown) - len(scores), len(shown))
    found.share("score_health", "nan", sum(math.isnan(s) for s in scores), len(scores))
    found.share("score_health", "infinite", sum(math.isinf(s) for s in scores), len(scores))
    found.share("score_health", "zero", sum(s == 0 for s in scores), len(scores))
    found.share("score_health", "one", sum(s == 1 for s in scores), len(scores))
    tiny = np.finfo(np.float64).tiny
    found.share("score_health", "denormal", sum(0 < abs(s) < tiny for s in scores), len(scores))
    if settings.score_range is not None:
        low, high = settings.score_range
        found.share("score_health", "out_of_range", sum(s < low or s > high for s in scores), len(scores))
    of_lists = [
        ["nan" if math.isnan(r["score"]) else r["score"] for r in rs if r["score"] is not None]
        for rs in requests.values()
    ]
    several = [x for x in of_lists if len(x) >= 2]
    found.share("score_health", "all_equal_lists", sum(len(set(x)) == 1 for x in several), len(several))
    if finite:
        found.bare("score_health", "distinct", len(set(finite)) / len(finite), len(finite))
    else:
        found["score_health", "distinct"] = "no_data"


def _importance(found, settings, shown):
    logged = [r["propensity"] for r in shown if r["propensity"] is not None]
    usable = [p for p in logged if 0 < p <= 1]
    finite = [p for p in logged if math.isfinite(p)]
    for key in (("importance_weight", "min"), ("importance_weight", "max"), ("effective_sample_size", "")):
        found[key] = "undefined" if logged else "no_data"
    if usable:
        weights = [1 / p for p in usable]
        found.bare("importance_weight", "min", min(weights), len(usable))
        found.bare("importance_weight", "max", max(weights), len(usable))
        size = math.fsum(weights) ** 2 / math.fsum(w * w for w in weights)
        found.bare("effective_sample_size", "", size, len(usable))
    if finite:
        low = sum(p < settings.min_propensity for p in finite) / len(finite)
        found.bare("low_propensity", "", low, len(finite))
    else:
        found["low_propensity", ""] = "no_data"
