"""Logs as frames on which every metric of the catalogue has a value, and the same rows as Parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

START = pd.Timestamp("2026-01-05T00:00:00")
HOURS = 30
REQUESTS = 500
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\"'&"
METRICS = {
    "events": {
        "click": {},
        "buy": {"grade": 3.0},
        "rating": {"grade": 0.0},
        "play": {"grade": 0.0, "length": "length"},
    },
    "k": [1, 3],
    "seed_item": "seed",
    "attribution": "2h",
    "rating": {"event": "rating", "distortion": {"1": {"2": 0.5, "4": 2.0}}},
}


def made_exposures() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 6, REQUESTS)
    which = np.repeat(np.arange(REQUESTS), lengths)
    seconds = np.sort(rng.uniform(0, HOURS * 3600 - 1, REQUESTS)).round()
    items = np.concatenate([rng.choice(40, size, replace=False) for size in lengths])
    rows = pd.DataFrame(
        {
            "request_id": [f"r{n}" for n in which],
            "user_id": [f"u{n}" for n in rng.integers(0, 30, REQUESTS)[which]],
            "ts": START + pd.to_timedelta(seconds[which], unit="s"),
            "item_id": [f"i{n}" for n in items],
            "position": np.concatenate([np.arange(1, size + 1) for size in lengths]),
            "score": rng.uniform(1, 5, len(which)),
            "propensity": rng.uniform(0.005, 1, len(which)),
            "scene": np.where(rng.integers(0, 2, REQUESTS)[which] == 0, "home", "feed"),
            "seed": [f"i{n}" for n in rng.integers(0, 40, REQUESTS)[which]],
            "status": np.where(rng.integers(0, 25, REQUESTS)[which] == 0, "timeout", "ok"),
            "latency": rng.exponential(0.1, REQUESTS)[which],
            "ever_shown": rng.integers(0, 2, len(which)) == 1,
        }
    )
    failed = (rows.status == "timeout").to_numpy()
    rows = rows[~failed | (rows.position.to_numpy() == 1)].reset_index(drop=True)
    rows.loc[(rows.status == "timeout").to_numpy(), "item_id"] = None
    return rows


def made_feedback(exposures: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(6)
    shown = exposures[exposures.item_id.notna()].sample(600, random_state=3)
    events = rng.choice(["click", "click", "buy", "rating", "play"], len(shown))
    values = np.select(
        [events == "rating", events == "play", events == "buy"],
        [rng.integers(1, 6, len(shown)), rng.uniform(0, 100, len(shown)), rng.uniform(1, 50, len(shown))],
        np.nan,
    )
    return pd.DataFrame(
        {
            "user_id": shown.user_id.to_numpy(),
            "item_id": shown.item_id.to_numpy(),
            "ts": shown.ts.to_numpy() + pd.to_timedelta(rng.integers(1, 3000, len(shown)), unit="s"),
            "event": events,
            "request_id": np.where(rng.integers(0, 2, len(shown)) == 0, shown.request_id.to_numpy(), None),
            "value": values,
        }
    )


def made_catalog() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "item_id": [f"i{n}" for n in range(38)],
            "category": [f"c{n % 5}" for n in range(38)],
            "tags": [[f"t{n % 3}", f"t{n % 7}"] for n in range(38)],
            "created_at": START - pd.to_timedelta(np.arange(38), unit="D"),
            "length": rng.uniform(10, 100, 38),
        }
    )


@pytest.fixture(scope="session")
def logs() -> dict[str, pd.DataFrame]:
    exposures = made_exposures()
    return {"exposures": exposures, "feedback": made_feedback(exposures), "catalog": made_catalog()}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, logs: dict[str, pd.DataFrame]) -> Path:
    """The same rows as Parquet, a config over them with a violated rule, and the salt of a daemon."""
    folder = tmp_path_factory.mktemp("frames")
    for name, rows in logs.items():
        rows.to_parquet(folder / f"{name}.parquet")
    (folder / "state").mkdir()
    (folder / "state" / "salt").write_text("0123456789abcdef")
    (folder / "blacklist.csv").write_text("item_id\ni3\n")
    config = {
        "state": "./state",
        "engine": {"threads": 1},
        "recommenders": [
            {
                "name": "shop",
                "logs": {name: {"path": f"{name}.parquet"} for name in logs},
                "window": "6h",
                "rules": [
                    {"pack": "blacklist", "parameters": {"blacklist": "blacklist.csv"}},
                    {"pack": "lists"},
                ],
                "metrics": METRICS,
                "slices": {"by": ["scene"], "metrics": ["coverage", "gini"]},
                "objectives": [{"metric": "failure", "labels": {"by": "pv"}, "max": 0.5}],
            }
        ],
    }
    (folder / "shop.yaml").write_text(yaml.safe_dump(config))
    return folder
