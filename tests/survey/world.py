"""Simulated users, their lists, and the answers of those who respond, with a known truth.

The satisfaction of a user depends on the length of their lists, if at all, and on how many lists they have.
Whether they respond depends on how many lists they have. Nothing depends on any other metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptPairs
from monitor.logs.source import Source
from monitor.settings.recommender import RecommenderSettings
from monitor.survey.measure import Survey

START = pd.Timestamp("2026-01-05T00:00:00Z")
DAYS = 2
END = START + pd.Timedelta(days=DAYS)
SPAN = Window(START.to_pydatetime(), END.to_pydatetime())
ITEMS = 60


def people(rng: np.random.Generator, users: int) -> pd.DataFrame:
    """Users with a number of lists and the length of each."""
    return pd.DataFrame(
        {
            "user_id": [f"u{number}" for number in range(users)],
            "lists": rng.integers(1, 9, users),
            "length": rng.integers(2, 9, users),
        }
    )


def exposures(rng: np.random.Generator, users: pd.DataFrame, days: int = DAYS) -> pd.DataFrame:
    """Their lists, at random times of the days; the first half of the users is in the arm `new`."""
    owner = np.repeat(np.arange(len(users)), users["lists"])
    seconds = rng.integers(1, days * 24 * 3600 - 3600, owner.size)
    row = np.repeat(np.arange(owner.size), users["length"].to_numpy()[owner])
    return pd.DataFrame(
        {
            "request_id": [f"r{number}" for number in row],
            "user_id": users["user_id"].to_numpy()[owner[row]],
            "ts": START + pd.to_timedelta(seconds[row], unit="s"),
            "item_id": [f"i{number}" for number in rng.integers(0, ITEMS, row.size)],
            "scene": np.where(owner[row] % 3 == 0, "home", "feed"),
            "position": np.concatenate([np.arange(1, n + 1) for n in users["length"].to_numpy()[owner]]),
            "arm": np.where(owner[row] < len(users) / 2, "new", "control"),
        }
    )


def clicks(rng: np.random.Generator, shown: pd.DataFrame, share: float = 0.2) -> pd.DataFrame:
    """A click on some of the items, a minute later."""
    rows = shown.loc[rng.random(len(shown)) < share, ["request_id", "user_id", "item_id", "ts"]]
    return rows.assign(ts=rows["ts"] + pd.Timedelta(minutes=1), event="click")


def catalog() -> pd.DataFrame:
    return pd.DataFrame(
        {"item_id": [f"i{n}" for n in range(ITEMS)], "category": [f"c{n % 7}" for n in range(ITEMS)]}
    )


def feelings(
    rng: np.random.Generator, users: pd.DataFrame, *, slope: float = 0.0, by_lists: float = 0.0
) -> np.ndarray:
    """What each user would answer from 1 to 5: higher with longer lists (`slope`) and more lists."""
    happy = 3.0 + slope * (users["length"] - 5.0) / 3.0 + by_lists * (users["lists"] - 4.5) / 3.5
    return np.clip(np.round(happy + rng.normal(0, 0.8, len(users))), 1, 5).to_numpy()


def answers(
    rng: np.random.Generator,
    users: pd.DataFrame,
    feeling: np.ndarray,
    question: str,
    *,
    rate: float = 0.4,
    by_lists: float = 0.0,
) -> pd.DataFrame:
    """The answers of those who respond: more often with more lists."""
    odds = np.log(rate / (1 - rate)) + by_lists * (users["lists"] - 4.5) / 3.5
    responds = (rng.random(len(users)) < 1 / (1 + np.exp(-odds))).to_numpy()
    return pd.DataFrame(
        {
            "user_id": users["user_id"].to_numpy()[responds],
            "ts": END - pd.Timedelta(minutes=5),
            "question": question,
            "answer": feeling[responds],
        }
    )


def write(folder: Path, **logs: pd.DataFrame) -> dict[str, Any]:
    """Write the logs, and give the config of a recommender over them."""
    for name, frame in logs.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    paths = {name: {"path": str(folder / f"{name}.parquet")} for name in logs}
    return {"name": "shop", "logs": paths, "window": "1h"}


def open_survey(engine: Engine, folder: Path, config: dict[str, Any], span: Window = SPAN) -> Survey:
    """The survey of a config in a span."""
    settings = RecommenderSettings.model_validate(config)
    source = Source(settings.logs, settings)
    for log in source.logs.values():
        while log.refresh(engine, datetime.now(tz=SPAN.start.tzinfo)).is_cut:
            pass
    return Survey(engine, source, span, settings, KeptPairs(folder / "kept", settings.name))


def rows(*given: Sequence[Any], columns: Sequence[str]) -> pd.DataFrame:
    """A table written row by row."""
    return pd.DataFrame(list(given), columns=list(columns))
