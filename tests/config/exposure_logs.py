"""A small log of exposures."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd

START = datetime(2026, 1, 5, tzinfo=UTC)


def frame(requests: int = 400, length: int = 5) -> pd.DataFrame:
    """Exposures of six hours, with our own column names."""
    rng = np.random.default_rng(7)
    which = np.repeat(np.arange(requests), length)
    seconds = np.sort(rng.uniform(0, 6 * 3600, requests))
    scores = np.sort(rng.uniform(0.01, 0.99, (requests, length)), axis=1)[:, ::-1]
    return pd.DataFrame(
        {
            "request_id": [f"r{n:05d}" for n in which],
            "user_id": [f"u{n}" for n in rng.integers(0, 120, requests)[which]],
            "ts": (pd.Timestamp(START) + pd.to_timedelta(seconds[which].round(), unit="s")),
            "item_id": np.concatenate([rng.choice(500, length, replace=False) for _ in range(requests)]),
            "position": np.tile(np.arange(1, length + 1), requests),
            "score": scores.ravel(),
            "scene": rng.choice(["home", "detail"], requests)[which],
        }
    )


def nested(flat: pd.DataFrame) -> pd.DataFrame:
    keys = ["request_id", "user_id", "ts", "scene"]
    return flat.groupby(keys, sort=False).agg({"item_id": list, "score": list}).reset_index()
