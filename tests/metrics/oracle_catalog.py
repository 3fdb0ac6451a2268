"""The part of the oracle that compares items by their categories and vectors: see oracle.py."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np

UNKNOWN = "no category"


def is_action(action, settings):
    return settings.action_events is None or action["event"] in settings.action_events


def categories(world) -> dict[str, set[str]]:
    """Item -> its categories; only items that have one."""
    found = {}
    for row in world.catalog:
        value = row.get("category")
        values = value if isinstance(value, list) else [value]
        values = {v for v in values if v not in (None, "")}
        if values:
            found[row["item_id"]] = values
    return found


def _entropy(items, known):
    weights = Counter()
    for item in items:
        own = known.get(item, {UNKNOWN})
        for category in own:
            weights[category] += 1 / len(own)
    shares = np.array(list(weights.values())) / len(items)
    return float(-(shares * np.log(shares)).sum())


def category_entropy(found, world, shown, shown_lists):
    known = categories(world)
    names = set().union(*known.values()) if known else set()
    strangers = [r for r in shown if r["item_id"] not in known]
    if any(r["item_id"] not in known for r in world.catalog):
        names = names | {UNKNOWN}
    m = len(names)
    items = [r["item_id"] for r in shown]
    of_users = defaultdict(list)
    for r in shown:
        if r["user_id"] is not None:
            of_users[r["user_id"]].append(r["item_id"])
    if not items:
        found["category_entropy", "overall"] = found["unknown_category", ""] = "no_data"
    else:
        found.bare("unknown_category", "", len(strangers) / len(items), len(items))
        if m < 2:
            found["category_entropy", "overall"] = "undefined"
        else:
            found.bare("category_entropy", "overall", _entropy(items, known) / math.log(m), len(items))
    for by, owners in (("pv", shown_lists), ("uv", of_users)):
        valid = [x for x in owners.values() if len(x) >= 2]
        if valid and m < 2:
            found["category_entropy", by] = "undefined"
        else:
            values = [_entropy(x, known) / math.log(min(m, len(x))) for x in valid]
            found.mean(
                "category_entropy", by, values, 1.0 if max(values, default=0) <= 1 + 1e-9 else math.inf
            )


class Likeness:
    """The similarity of two items, and which items can be compared."""

    def __init__(self, world, settings):
        self.by_vector = settings.similarity == "vector" or (
            settings.similarity is None and "vector" in world.catalog_columns
        )
        self.most = 2.0 if self.by_vector else 1.0
        if self.by_vector:
            given = {r["item_id"]: r.get("vector") for r in world.catalog}
            lengths = Counter(len(r["vector"]) for r in world.catalog if r.get("vector"))
            usual = max(lengths, key=lambda n: (lengths[n], n), default=0)
            self.vectors = {
                i: np.array(v)
                for i, v in given.items()
                if v is not None
                and len(v) == usual
                and all(x is not None and math.isfinite(x) for x in v)
                and any(v)
            }
        else:
            self.known = categories(world)

    def comparable(self, item):
        return not self.by_vector or item in self.vectors

    def of(self, a, b):
        if self.by_vector:
            x, y = self.vectors[a], self.vectors[b]
            x, y = x / np.abs(x).max(), y / np.abs(y).max()
            return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))
        x, y = self.known.get(a, {UNKNOWN}), self.known.get(b, {UNKNOWN})
        return len(x & y) / math.sqrt(len(x) * len(y))


def diversity(found, shown_lists, like):
    values = []
    for every in shown_lists.values():
        items = [i for i in every if like.comparable(i)]
        if len(items) >= 2:
            values.append(np.mean([1 - like.of(a, b) for a, b in combinations(items, 2)]))
    found.mean("intra_list_diversity", "", values, like.most)


def belongs_to(action, rows):
    """The list that held what the action is on: the one it names, else the latest of its user that did."""
    named = [r for r in rows if r["request_id"] == action.get("request_id") is not None]
    held = [r for r in rows if r["item_id"] == action["item_id"]]
    mine = [r for r in held if r["user_id"] == action["user_id"] is not None]
    if named:
        return named[0]["request_id"] if any(r in held for r in named) else None
    return max(mine, key=lambda r: (r["ts"], r["request_id"]))["request_id"] if mine else None


def serendipity(found, world, settings, shown, like):
    acts = [f for f in world.feedback if f["item_id"] is not None and f["event"] in settings.events]
    acted = {(belongs_to(f, world.around or world.exposures), f["item_id"]) for f in acts}

    values = []
    for row in {(r["request_id"], r["item_id"]): r for r in shown}.values():
        if row["user_id"] is None or (row["request_id"], row["item_id"]) not in acted:
            continue
        earlier = {i for u, i in world.history_actions or [] if u == row["user_id"] and like.comparable(i)}
        if earlier and like.comparable(row["item_id"]):
            values.append(1 - max(like.of(row["item_id"], i) for i in earlier))
    found.mean("serendipity", "", values, like.most)
