"""The metrics of lists at k once more, list by list and place by place, from the definitions alone.

Every action names its list here; which list an action without a name belongs to is tested with the join.
"""

from __future__ import annotations

import math
from collections import defaultdict

from tests.metrics.oracle import Expected

MACRO_ONLY = ("reciprocal_rank", "average_precision", "average_precision_full", "ndcg")
BOTH = ("precision", "precision_strict", "recall", "f_score", "adjusted_precision")


def in_order(rows):
    """The items of a list from its top."""

    def place(row):
        position, score = row.get("position"), row.get("score")
        unknown = score is None or math.isnan(score)
        return (
            (position is None, position or 0),
            (unknown, 0 if unknown else -score),
            row["item_id"],
        )

    return [row["item_id"] for row in sorted(rows, key=place)]


def grades(feedback, settings):
    """request -> item -> the highest grade of the actions on it."""
    found = defaultdict(dict)
    for action in feedback:
        if action["event"] in settings.events and action["item_id"] is not None:
            grade = settings.events[action["event"]].grade
            of_list = found[action["request_id"]]
            of_list[action["item_id"]] = max(grade, of_list.get(action["item_id"], 0))
    return found


def of_list(items, rel, k, settings):
    """The value of each metric for one list with these grades of its relevant items; None: it has none."""
    seen, at, precisions, dcg = set(), [], 0.0, 0.0

    def gain(grade):
        return 2**grade - 1 if settings.gain == "exponential" else grade

    for place, item in enumerate(items[:k], start=1):
        if item in rel and item not in seen:
            seen.add(item)
            at.append(place)
            precisions += len(at) / place
            dcg += gain(rel[item]) / math.log2(place + 1)
    best = sorted(rel.values(), reverse=True)[:k]
    ideal = sum(gain(grade) / math.log2(place + 1) for place, grade in enumerate(best, start=1))
    hits, n, filled = len(at), len(rel), min(k, len(items))
    p, r, b2 = (hits / filled if filled else None), hits / n, settings.beta**2
    f = None if p is None else 0.0 if hits == 0 else (1 + b2) * p * r / (b2 * p + r)
    return {
        "precision": p,
        "precision_strict": hits / k,
        "recall": r,
        "f_score": f,
        "adjusted_precision": hits / min(k, n),
        "reciprocal_rank": 1 / at[0] if at else 0.0,
        "average_precision": precisions / min(k, n),
        "average_precision_full": precisions / n,
        "ndcg": dcg / ideal,
        "hits": hits,
        "filled": filled,
        "possible": min(k, n),
    }


def expected(exposures, feedback, settings):
    """(metric, by, k) -> what the results must say."""
    found = Expected()
    requests = defaultdict(list)
    for row in exposures:
        if row["request_id"] is not None:
            requests[row["request_id"]].append(row)
    rel = grades(feedback, settings)
    for k in settings.k:
        judged = []
        for request, rows in requests.items():
            liked = {item: grade for item, grade in rel[request].items() if grade > 0}
            if not liked:
                continue
            kept = {"as_negative": None, "ignore": rel[request], "liked_only": liked}[settings.unrated]
            shown = [r for r in rows if r["item_id"] is not None and (kept is None or r["item_id"] in kept)]
            judged.append((rows[0]["user_id"], of_list(in_order(shown), liked, k, settings), len(liked)))
        _macro(found, judged, str(k))
        _micro(found, judged, k, settings)
    return found


def _macro(found, judged, k):
    for metric in (*BOTH, *MACRO_ONLY):
        users = defaultdict(list)
        for user, values, _ in judged:
            if user is not None:
                users[user].append(values[metric])
        known = {user: [v for v in values if v is not None] for user, values in users.items()}
        means = [sum(values) / len(values) for values in known.values() if values]
        key = (metric, "macro" if metric in BOTH else "")
        one = Expected()
        one.mean(*key, means, 1.0)
        found[(*key, k)] = "undefined" if users and not means else one[key]


def _micro(found, judged, k, settings):
    hits = sum(values["hits"] for _, values, _ in judged)
    filled = sum(values["filled"] for _, values, _ in judged)
    relevant = sum(n for *_, n in judged)
    possible = sum(values["possible"] for _, values, _ in judged)
    lists = len(judged)
    for metric in (*BOTH, "hit_rate"):
        found[metric, "micro", str(k)] = "no_data"
    one = Expected()
    one.share("hit_rate", "any", sum(values["hits"] > 0 for _, values, _ in judged), lists)
    found["hit_rate", "any", str(k)] = one["hit_rate", "any"]
    if not judged:
        return
    b2 = settings.beta**2
    p, r = hits / filled if filled else None, hits / relevant
    values = {
        "precision": p,
        "precision_strict": hits / (k * lists),
        "recall": r,
        "f_score": None if p is None else 0.0 if hits == 0 else (1 + b2) * p * r / (b2 * p + r),
        "adjusted_precision": hits / possible,
        "hit_rate": r,
    }
    for metric, value in values.items():
        n = relevant if metric == "hit_rate" else lists
        found[metric, "micro", str(k)] = "undefined" if value is None else ("ok", value, n, None, None)
