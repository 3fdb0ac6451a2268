"""Logs of two recommenders with everything that can be wrong in them, and their config."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

START = pd.Timestamp("2026-01-05T10:00:00Z")
CONFIG = """\
state: ./state
engine: {threads: 1}
recommenders:
  - &shop
    name: logged
    logs:
      exposures: {path: logged.parquet}
      feedback: {path: feedback.parquet}
    window: 1h
    metrics: {events: {click: {}, order: {}}}
  - <<: *shop
    name: wanted
    logs: {exposures: {path: wanted.parquet}}
"""


@dataclass(frozen=True)
class Logs:
    """The logs as data frames, and the config over their files."""

    config: Path
    logged: pd.DataFrame
    wanted: pd.DataFrame
    feedback: pd.DataFrame


def shown(random, chances, lists, length, by_policy):
    """Lists of `length` items, each drawn anew with the policy's chances at its position."""
    items = np.stack([random.choice(len(chances[0]), lists, p=chances[k]) for k in range(length)], axis=1)
    place = np.tile(np.arange(1, length + 1), lists)
    return pd.DataFrame(
        {
            "request_id": np.repeat([f"{by_policy}{n}" for n in range(lists)], length),
            "user_id": np.repeat([f"u{n}" for n in random.integers(0, 40, lists)], length),
            "ts": START
            + pd.to_timedelta(np.repeat(np.sort(random.integers(1, 7000, lists)), length), unit="s"),
            "item_id": [f"i{n}" for n in items.ravel()],
            "position": place,
            "propensity": [chances[k - 1][n] for k, n in zip(place, items.ravel(), strict=True)],
        }
    )


def write(folder: Path, name: str, frame: pd.DataFrame) -> None:
    columns = {}
    for column in frame.columns:
        values = frame[column]
        if column in ("propensity", "own"):  # null and NaN are two things in Parquet
            columns[column] = pa.array(values.tolist(), pa.float64(), from_pandas=False)
        else:
            columns[column] = pa.Array.from_pandas(values)
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def make_logs(folder: Path, seed: int, *, length: int = 2, broken: bool = True, lists: int = 600) -> Logs:
    random = np.random.default_rng(seed)
    logging, target = (random.dirichlet(np.full(8, 3.0), length) for _ in range(2))
    logged = shown(random, logging, lists, length, "r").astype({"propensity": object, "user_id": object})
    wanted = shown(random, target, lists, length, "w").drop(columns="propensity")
    clicked = random.random(len(logged)) < 0.2
    feedback = logged.loc[clicked, ["request_id", "user_id", "item_id", "ts"]]
    feedback = feedback.assign(event="click", ts=feedback["ts"] + pd.Timedelta(seconds=5))
    orders = feedback.iloc[::3].assign(event="order")
    feedback = pd.concat([feedback, feedback.iloc[:9], orders], ignore_index=True)  # nine clicks twice
    logged["own"] = random.random(len(logged)).round(3)
    if broken:
        bad = [None, math.nan, math.inf, -math.inf, 0.0, -0.1, 1.5, 5e-324]
        for row, value in zip(random.choice(len(logged), 16, replace=False), bad * 2, strict=True):
            logged.at[row, "propensity"] = value
        logged.loc[logged["request_id"].isin(["r3", "r4", "r5"]), "user_id"] = None
    for name, frame in (("logged", logged), ("wanted", wanted), ("feedback", feedback)):
        write(folder, name, frame)
    (folder / "config.yaml").write_text(CONFIG)
    return Logs(folder / "config.yaml", logged, wanted, feedback)


@pytest.fixture
def logs_of(tmp_path):
    return lambda seed, **further: make_logs(tmp_path, seed, **further)
