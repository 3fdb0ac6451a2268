"""A shop whose ranker is a formula, so that what goes wrong in service is known to the last row."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from tests.shop import hour

WEIGHTS = {"age": 1.6, "clicks": 0.9, "price": -0.7}


def scored(frame: pd.DataFrame) -> pd.Series:
    """What the ranker gives for these features."""
    logit = sum(weight * frame[name] for name, weight in WEIGHTS.items())
    return 1 / (1 + np.exp(-logit))


def rows(split: str, n: int, seed: int, at: int | None = None) -> pd.DataFrame:
    """Rows whose labels are as likely as the ranker says, from the features as they really are."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.normal(size=n) for name in WEIGHTS})
    frame["city"] = rng.choice(["bern", "basel", "biel"], n)
    frame["score"] = scored(frame)
    frame["label"] = (rng.random(n) < frame["score"]).astype(int)
    frame["split"], frame["model"] = split, "ranker-v7"
    frame["request_id"] = [f"{split}-{seed}-{row // 10}" for row in range(n)]
    frame["item_id"] = [f"i{row % 10}" for row in range(n)]
    frame["user_id"] = [f"u{row // 10 % 200}" for row in range(n)]
    if at is not None:
        start = hour(at).start.replace(tzinfo=None)
        frame["ts"] = [start + timedelta(seconds=3600 * row / n) for row in range(n)]
    return frame


def with_default(frame: pd.DataFrame, feature: str, share: float, default: float = 0.0) -> pd.DataFrame:
    """The rows as they are served where a share of them gets a default in place of a feature."""
    served = frame.copy()
    hit = np.random.default_rng(5).random(len(frame)) < share
    served.loc[hit, feature] = default
    served["score"] = scored(served)
    return served


def offline_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The same requests as the offline pipeline joins them."""
    return frame.assign(split="offline")


def write_world(folder: Path, share: float = 0.6, n: int = 10_000) -> None:
    """Train, test, online rows of which a share was served with a default, and the same as they should be."""
    folder.mkdir(parents=True, exist_ok=True)
    right = rows("online", n, 3, at=5)
    parts = {
        "train": rows("train", 2 * n, 1),
        "test": rows("test", n, 2),
        "online": with_default(right, "age", share),
        "offline": offline_of(right),
    }
    for name, frame in parts.items():
        frame.to_parquet(folder / f"{name}.parquet")
