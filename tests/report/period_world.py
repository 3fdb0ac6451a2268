"""Two days of a shop, judged and stored by `backfill`; on the second, much changes and a rule is broken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from monitor.cli.judge import backfill

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 2, tzinfo=UTC)
SECOND, END = FIRST + DAY, FIRST + 2 * DAY
NOON = SECOND + DAY / 2
HOSTILE = "<script>alert(1)</script>\u202e\x1b\"'&"
SCENE = "<img src=x onerror=alert(2)>"


def rows() -> pd.DataFrame:
    """Two days of requests; from noon of the second on by another model, with a blocked item."""
    rng = np.random.default_rng(11)
    requests, size = 2400, 3
    which = np.repeat(np.arange(requests), size)
    seconds = np.sort(rng.integers(0, 2 * 86400, requests))[which]
    moments = pd.Timestamp(FIRST) + pd.to_timedelta(seconds, unit="s")
    picked = [rng.choice(np.arange(5, 50), size, replace=False) for _ in range(requests)]
    items = np.array([f"i{n}" for one in picked for n in one], dtype=object)
    late = moments >= pd.Timestamp(NOON)
    items[late & (rng.random(len(items)) < 0.02)] = HOSTILE
    return pd.DataFrame(
        {
            "request_id": [f"r{n}" for n in which],
            "user_id": [f"u{n}" for n in rng.integers(0, 200, requests)[which]],
            "ts": moments,
            "item_id": items,
            "position": np.tile(np.arange(1, size + 1), requests),
            "model": np.where(late, f"m2{HOSTILE}", "m1"),
            "scene": SCENE,
        }
    )


def config(folder: Path, **changes: Any) -> Path:
    """Write the config; `changes` are settings of the recommender."""
    own = {
        "name": "shop",
        "window": "6h",
        "logs": {"exposures": {"path": "exposures.parquet"}},
        "rules": [{"pack": "blacklist", "parameters": {"blacklist": "blacklist.csv"}}],
        "slices": {"by": ["model", "scene"], "metrics": ["volume"]},
        "objectives": [{"metric": "personalization", "max": 0.5}],
        **changes,
    }
    path = folder / "shop.yaml"
    path.write_text(yaml.safe_dump({"engine": {"threads": 1}, "recommenders": [own]}))
    return path


def judged(folder: Path) -> Path:
    """Judge the first day, change the config, judge the second day, and change the list before its end."""
    rows().to_parquet(folder / "exposures.parquet")
    ban(folder, "i1", HOSTILE)
    backfill(config(folder), FIRST, SECOND, None)
    changed = {
        "rules": [
            {"pack": "blacklist", "parameters": {"blacklist": "blacklist.csv"}},
            {"pack": "lists", "parameters": {"max_length": 9}},
        ],
        "objectives": [{"metric": "personalization", "max": 0.99}],
        "maintenance": [
            {"from": "2026-03-03T03:00:00Z", "until": "2026-03-03T04:00:00Z", "reason": f"disks {HOSTILE}"}
        ],
        "bands": {"changes": [{"at": "2026-03-03T05:00:00Z", "what": "a new home page"}]},
    }
    path = config(folder, **changed)
    backfill(path, SECOND, END - DAY / 4, None)
    ban(folder, "i1", "i2", HOSTILE)
    backfill(path, END - DAY / 4, END, None)
    return path


def ban(folder: Path, *items: str) -> None:
    pd.DataFrame({"item_id": items}).to_csv(folder / "blacklist.csv", index=False)
