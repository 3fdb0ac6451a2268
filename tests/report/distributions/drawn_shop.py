"""A shop with all its logs, whose names are hostile, and the figures of a span of it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from monitor.config.load import load_checked
from monitor.core.results import Window
from monitor.report.distributions.desk import Desk, Drawn
from monitor.settings.config import Config

HOUR = timedelta(hours=1)
START = datetime(2026, 3, 1, 22, tzinfo=UTC)
HOURS = 28
END = START + HOURS * HOUR
LAST = Window(END - 3 * HOUR, END - 2 * HOUR)
"""The last hour whose actions are all there."""
HOSTILE = "=<script>document.title='pwned'</script>\u202e&\"'"
CATEGORIES = ["news", "sport", HOSTILE, *(f"c{number}" for number in range(9))]
ITEMS = 80
WRITTEN = END + HOUR


def items() -> pd.DataFrame:
    """The catalog: some items have two categories, some none, some are never shown."""
    return pd.DataFrame(
        {
            "item_id": [name(number) for number in range(ITEMS)],
            "category": [
                [] if number % 20 == 7 else [CATEGORIES[number % 12], *(["news"] if number % 10 == 3 else [])]
                for number in range(ITEMS)
            ],
        }
    )


def name(number: int) -> str:
    return HOSTILE if number == 3 else f"i{number}"


def exposures(hours: int = HOURS, lists: int = 40) -> pd.DataFrame:
    """Lists of 0 to 6 items; the score is the chance of a click."""
    rng = np.random.default_rng(3)
    rows = []
    for request in range(hours * lists):
        at = START.replace(tzinfo=None) + timedelta(seconds=3600 * request / lists + 1)
        length = int(rng.integers(0, 7))
        shown = np.minimum(rng.geometric(0.06, length), ITEMS + 1) - 1
        own = {"request_id": f"r{request}", "user_id": f"u{rng.integers(30)}", "ts": at}
        if not length:
            rows.append({**own, "item_id": None, "position": None, "score": None})
        for position, item in enumerate(shown, start=1):
            score = round(float(rng.beta(2, 8)) / position, 3)
            rows.append({**own, "item_id": name(int(item)), "position": position, "score": score})
    return pd.DataFrame(rows)


def feedback(shown: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    seen = shown[shown.item_id.notna()]
    clicked = seen[rng.random(len(seen)) < seen.score]
    return pd.DataFrame(
        {
            "request_id": clicked.request_id,
            "user_id": clicked.user_id,
            "item_id": clicked.item_id,
            "ts": clicked.ts + pd.Timedelta(seconds=30),
            "event": np.where(rng.random(len(clicked)) < 0.8, "click", "buy"),
        }
    )


def samples(model: str = f"m1{HOSTILE}", seed: int = 5) -> pd.DataFrame:
    """Train, test, online and offline rows of one model; a share of the online rows has a wrong feature."""
    rng = np.random.default_rng(seed)
    parts = []
    for split, n in (("train", 900), ("test", 500), ("online", 400)):
        age = rng.normal(size=n)
        rows = pd.DataFrame(
            {f"age{HOSTILE}": age, "clicks": rng.normal(size=n), "city": rng.choice(["a", "b"], n)}
        )
        rows["score"] = np.round(1 / (1 + np.exp(-age)), 2)
        rows["label"] = (rng.random(n) < rows.score).astype(int)
        rows["split"], rows["model"] = split, model
        rows["request_id"] = [f"{split}-{seed}-{row}" for row in range(n)]
        rows["item_id"] = "i1"
        rows["user_id"] = [f"u{row % 90}" for row in range(n)]
        rows["ts"] = [LAST.start.replace(tzinfo=None) + timedelta(seconds=8 * row) for row in range(n)]
        parts.append(rows)
    online = parts[-1]
    parts.append(online.assign(split="offline"))
    wrong = rng.random(len(online)) < 0.3
    online.loc[wrong, f"age{HOSTILE}"] = 0.0
    return pd.concat(parts)


def write(folder: Path, *, with_samples: bool = False, **changes: Any) -> Path:
    """Write the logs and a config; `changes` are settings of the recommender. The path of the config."""
    shown = exposures()
    logs = {"exposures": shown, "feedback": feedback(shown), "catalog": items()}
    if with_samples:
        logs["samples"] = pd.concat([samples(), samples("m2", 6)])
    for log, frame in logs.items():
        put(frame, folder / f"{log}.parquet")
    return configured(folder, dict.fromkeys(logs), **changes)


def put(frame: pd.DataFrame, path: Path) -> None:
    """Write a log, last changed at WRITTEN."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path)
    os.utime(path, (WRITTEN.timestamp(), WRITTEN.timestamp()))


def configured(folder: Path, logs: dict[str, Any], **changes: Any) -> Path:
    own = {
        "name": "shop",
        "window": "1h",
        "logs": {log: {"path": f"{log}.parquet"} for log in logs},
        "metrics": {"events": {"click": {}, "buy": {}}},
        **changes,
    }
    path = folder / "shop.yaml"
    values = {"state": "state", "engine": {"threads": 1, "memory": "256MiB"}, "recommenders": [own]}
    path.write_text(yaml.safe_dump(values))
    return path


def loaded(path: Path) -> Config:
    return load_checked(path)[0]


def drawn(path: Path, span: Window = LAST) -> Drawn:
    """The figures of the span."""
    config = loaded(path)
    return Desk().figures(config, config.recommenders[0], span)
