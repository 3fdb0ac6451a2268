"""Windows that hold every log and column that a metric may ask for, and what is broken in real ones."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa

from tests.metrics.worlds import START, World, lists

HOSTILE = "d'; DROP TABLE exposures; --"
SCORES = (0.5, 0.25, None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 5e-324, -1e300, 2.0)
STATUSES = ("ok", None, "ok", "ok", "delivered", "timeout", "ok", "error", "ok", "ok")
LATENCIES = (0.25, 0.1, math.nan, None, -1.0, 3.0, 0.5, 0.01, 0.2, 0.3)
PROPENSITIES = (0.5, 1.0, 0.009, None, math.nan, math.inf, -0.5, 0.0, 1e-6, 1.5)


def _shown() -> list[dict]:
    rows = lists(
        ("u1", "abc"), ("u2", "abd"), ("u1", "bce"), ("u'3", "a"), (None, "ab"), ("u2", ""), ("u1", "aab"),
        ("u'3", "edcba"), ("u4", "fa"), ("u4", "af"),
    )  # fmt: skip
    for number, row in enumerate(rows):
        shown = row["item_id"] is not None
        row |= {
            "item_id": {"d": HOSTILE, "e": "<b>é</b>\n"}.get(row["item_id"], row["item_id"]),
            "score": SCORES[number % len(SCORES)] if shown else None,
            "propensity": PROPENSITIES[number % len(PROPENSITIES)] if shown else None,
            "scene": ("home", "feed", None)[int(row["request_id"][1:]) % 3],
            "shelf": ("top", "<b>'", "ｚ")[number % 3],
            "page": ("b", "a", None)[int(row["request_id"][1:]) % 3],
            "status": STATUSES[int(row["request_id"][1:]) % len(STATUSES)],
            "latency": LATENCIES[int(row["request_id"][1:]) % len(LATENCIES)],
            "ever_shown": (True, None, False)[number % 3],
        }
    return rows


def _action(
    user: str | None,
    item: str | None,
    request: str | None,
    event: str = "click",
    value: float | None = None,
) -> dict:
    return {
        "user_id": user,
        "item_id": item,
        "request_id": request,
        "event": event,
        "value": value,
        "ts": START,
    }


ONE_CATEGORY = World(
    _shown(),
    [
        {"item_id": item, "category": category, "length": float(len(item)), "duration": duration}
        for item, category, duration in (
            ("a", "x", "1"), ("b", "y'", "n/a"), ("c", "x", " 2.5 "), (HOSTILE, None, ""),
            ("<b>é</b>\n", "", None), ("g", "z", "nan"),
        )
    ],
    feedback=[
        _action("u1", "a", "r0"),
        _action("u1", "b", None, "buy"),
        _action("u2", HOSTILE, "r1", "buy"),
        _action("u4", "f", "r8"),
        _action("u1", "zz", None),
        _action(None, "a", "r3"),
        _action("u1", None, "r0"),
        _action("u1", "a", "r0", "play", 1.0),
        _action("u1", "b", "r0", "play", 0.5),
        _action("u2", HOSTILE, "r1", "play", math.nan),
        _action("u'3", "c", "r7", "play", 0.95),
        _action("u1", "a", "r0", "watch", 1.0),
        _action("u1", "b", "r0", "watch", 1.0),
        _action("u2", HOSTILE, "r1", "watch", 1.0),
        _action("u'3", "c", "r7", "watch", 1.0),
    ],
    history=[("u1", "a", 3), ("u1", "g", 1), ("u2", "a", 2), ("u'3", HOSTILE, 9)],
    history_actions=[("u1", "c"), ("u2", "b"), ("u4", "a"), ("u4", "a")],
    yesterday=[("u1", "a"), ("u1", "b"), ("u2", "c")],
    today=[("u1", "a"), ("u1", "c"), ("u2", "c"), ("u4", "a")],
    columns=("position", "score", "propensity", "scene", "shelf", "page", "status", "latency", "ever_shown"),
    catalog_columns=("category", "length", "duration"),
    feedback_columns=("request_id", "value"),
)  # fmt: skip
SEVERAL_CATEGORIES = replace(
    ONE_CATEGORY,
    catalog=[
        {"item_id": item, "category": categories, "tags": categories}
        for item, categories in (
            ("a", ["x", "y'"]), ("b", ["y'"]), ("c", ["x", "y'", "ｚ"]), (HOSTILE, []), ("f", None),
            ("g", ["x"]),
        )
    ],
    category=pa.list_(pa.string()),
    catalog_columns=("category", "tags"),
)  # fmt: skip
VECTORS = replace(
    ONE_CATEGORY,
    catalog=[
        {"item_id": item, "category": "x", "vector": vector}
        for item, vector in (
            ("a", [1.0, 0.0, 0.5]), ("b", [0.5, 2.0, -1.0]), ("c", [1e200, 1e200, 0.0]),
            (HOSTILE, [0.0, 0.0, 0.0]),
            ("f", [1.0, None, 2.0]), ("g", [math.nan, 1.0, 1.0]), ("<b>é</b>\n", [1e-200, 0.0, 1e-200]),
            ("h", [1.0]), ("i", None),
        )
    ],
    catalog_columns=("category", "vector"),
)  # fmt: skip
EMPTY = replace(ONE_CATEGORY, exposures=[], feedback=[])
