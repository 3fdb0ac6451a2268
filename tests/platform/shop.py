"""A shop with search beside its recommender: logs of days whose totals are known, and settings for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from monitor.metrics.catalogue import SPECS
from monitor.settings.recommender import RecommenderSettings

FIRST = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
Count = Callable[[int], int]


def rows(day: int, count: int, event: str = "order", users: int = 7, **more: Any) -> pd.DataFrame:
    """So many actions, spread evenly over the day of this number from its first minute on."""
    start = (FIRST + day * DAY).replace(tzinfo=None)
    return pd.DataFrame(
        {
            "user_id": [f"u{number % users}" for number in range(count)],
            "item_id": [f"i{number % 5}" for number in range(count)],
            "ts": [
                start + timedelta(seconds=60 + number * 86_000 / max(count, 1)) for number in range(count)
            ],
            "event": event,
            **more,
        }
    )


def write(folder: Path, log: str, day: int, table: pd.DataFrame) -> Path:
    """A file of a log for a day."""
    path = folder / log / f"{day:03d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_parquet(path)
    return path


def world(folder: Path, days: int, own: Count, search: Count) -> None:
    """The logs of so many days, and an hour of the next, so that the last one is complete."""
    for day in range(days):
        exposed = rows(day, 24).assign(request_id=[f"{day}-{number}" for number in range(24)])
        write(folder, "exposures", day, exposed.drop(columns="event"))
        write(folder, "feedback", day, rows(day, own(day)))
        write(folder, "search", day, rows(day, search(day), event="found"))
    for log in ("exposures", "feedback", "search"):
        event = "found" if log == "search" else "order"
        after = rows(days, 24, event).head(3).assign(request_id="after")
        write(folder, log, days, after)


def world_of_arms(folder: Path, days: int, shifted: int) -> None:
    """The logs of so many days; from a day on the treatment orders at the cost of its searches."""
    rng = np.random.default_rng(4)
    own, found = steady(300, 1, 120, shifted), steady(700, 2, -120, shifted)
    for day in range(days + 1):
        shown = rows(day, 400).assign(request_id=[f"{day}-{number}" for number in range(400)])
        shown["user_id"] = [f"u{number}" for number in range(400)]
        shown["arm"] = ["treatment" if number % 2 else "control" for number in range(400)]
        write(folder, "exposures", day, shown.drop(columns="event"))
        write(folder, "feedback", day, _actions(rng, day, own(day), 1.5, "order"))
        write(folder, "search", day, _actions(rng, day, found(day), 0.75, "found"))


def _actions(rng: np.random.Generator, day: int, level: int, treated: float, event: str) -> pd.DataFrame:
    """Actions of 400 users, those of the treatment so many times as often."""
    weights = np.array([treated if user % 2 else 1.0 for user in range(400)])
    users = rng.choice(400, level, p=weights / weights.sum())
    return rows(day, level, event).assign(user_id=[f"u{user}" for user in users], value=2.5)


RANKER = {"name": "ranker", "split": {"control": 1, "treatment": 1}}
"""The experiment of `world_of_arms`."""


def settings(folder: Path, platform: Mapping[str, Any] | None = None, **more: Any) -> RecommenderSettings:
    """A recommender that measures nothing but its platform."""
    return RecommenderSettings.model_validate(config(folder, platform, **more))


def config(folder: Path, platform: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "name": "shop",
        "logs": {name: {"path": f"{folder}/{name}/*.parquet"} for name in ("exposures", "feedback")},
        "window": "6h",
        "catch_up": 1,
        "metrics": {"disable": list(SPECS)},
        "platform": {
            "totals": {"orders": {"event": "order"}},
            "systems": [search(folder)],
            "recent": "7d",
            "before": "28d",
            **(platform or {}),
        },
        **more,
    }


def search(folder: Path) -> dict[str, Any]:
    """Search as a neighbour with a log of its own event."""
    log = {"path": f"{folder}/search/*.parquet", "totals": {"orders": {"event": "found"}}}
    return {"name": "search", "log": log}


def steady(level: int, seed: int, step: int = 0, since: int = 10**6) -> Count:
    """A count for each day: a level with 2 % of noise, and a step from a day on."""
    draws = np.random.default_rng(seed).normal(size=400)

    def count(day: int) -> int:
        return round(level * (1 + 0.02 * draws[day])) + (step if day >= since else 0)

    return count
