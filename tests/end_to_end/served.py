"""A model that was trained and tested well, and is served the default of a feature for most requests."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd

from tests.processes import land

ROWS = 8000


def land_samples(folder: Path, start: datetime, end: datetime, wrong: float = 0.6) -> None:
    """Files of train, test, online (from `start` to `end`) and the offline fellows of online.

    `wrong` is the share of the requests that are served the default.
    """
    rng = np.random.default_rng(11)
    age, price = rng.normal(size=(2, ROWS))
    label = rng.random(ROWS) < 1 / (1 + np.exp(-2 * age - price))
    served = np.where(rng.random(ROWS) < wrong, 0.0, age)
    for split in ("train", "test", "offline", "online"):
        seen = served if split == "online" else age
        requests = "served" if split in ("offline", "online") else split
        frame = pd.DataFrame(
            {
                "split": split,
                "model": "ranker-v7",
                "request_id": [f"{requests}{row}" for row in range(ROWS)],
                "item_id": "i1",
                "user_id": [f"u{row % 100}" for row in range(ROWS)],
                "age": seen,
                "price": price,
                "score": 1 / (1 + np.exp(-2 * seen - price)),
                "label": label.astype(int),
            }
        )
        if split == "online":
            frame["ts"] = [start + (end - start) * (row / ROWS) for row in range(ROWS)]
        land(folder / "samples" / f"{split}.parquet", frame)
