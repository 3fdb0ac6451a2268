"""A shop with everything that the API shows, judged by the real daemon from real logs, and served.

Forty hours of traffic. In hours 30 and 31 and in the last one a banned item is shown, in the last three most
lists are empty, and from hour 20 on another model serves. Names are hostile wherever a log names something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import yaml

from monitor.metrics.catalogue import SPECS
from monitor.service.daemon import Daemon
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import serve
from monitor.settings.server import ServerSettings
from tests.end_to_end.served import land_samples
from tests.processes import land
from tests.service.made import HOSTILE

FIRST = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURS = 40
LAST = FIRST + (HOURS - 1) * HOUR
LISTS = 60
MODEL, NEXT_MODEL = "m/1 ?", f"../m2%2F&=+# \u202e{HOSTILE}\nä"
MEASURED = ("volume", "failure", "coverage", "gini", "score_health", "action_rate", "ndcg")
PATIENCE = 180  # seconds: only what hangs takes so long, however busy the machine is


def config(folder: Path) -> dict[str, Any]:
    """The config of the shop, and of another recommender that has no log yet."""
    return {
        "state": str(folder / "state"),
        "engine": {"threads": 1},
        "recommenders": [
            {
                "name": "shop",
                "logs": {
                    "exposures": {"path": str(folder / "exposures/*.parquet")},
                    "feedback": {"path": str(folder / "feedback/*.parquet")},
                    "samples": {"path": str(folder / "samples/*.parquet")},
                },
                "window": "1h",
                "max_wait": "30d",
                "rules": [
                    {"pack": "blacklist", "parameters": {"blacklist": str(folder / "banned.csv")}},
                    {"suite": str(folder / "ours.yaml")},
                ],
                "metrics": {
                    "attribution": "10m",
                    "events": {"click": {"grade": 1}},
                    # The pages and the API show each metric in the same way, so a few do for all.
                    "disable": [name for name in SPECS if name not in MEASURED],
                },
                "slices": {"by": ["model", "scene"], "metrics": ["volume", "failure"]},
                "objectives": [{"metric": "failure", "labels": {"by": "pv"}, "max": 0.5, "clear": 0.2}],
                "experiments": [
                    {"name": "ranking", "split": {"control": 1, "new": 3}, "start": FIRST.isoformat()}
                ],
                "health": {"parts": [{"metric": "failure", "labels": {"by": "pv"}, "zero": 1, "one": 0}]},
                "bands": {
                    "false_alarms": 50,
                    "changes": [
                        {"at": "2026-03-01T10:00:00Z", "what": f"new page {HOSTILE}", "metrics": ["gini"]}
                    ],
                    "seasons": [{"from": "2026-12-20", "to": "2026-12-24", "what": "Christmas"}],
                },
                "maintenance": [
                    {"from": "2026-03-02T05:30:00Z", "until": "2026-03-02T06:30:00Z", "reason": "a move"}
                ],
            },
            {"name": "news", "logs": {"exposures": {"path": str(folder / "news/*.parquet")}}},
        ],
    }


def suite() -> dict[str, Any]:
    """A suite of a team: one rule with a hostile description."""
    return {
        "name": "ours",
        "expectations": [
            {
                "type": "expect_column_values_to_be_between",
                "kwargs": {"column": "position", "min_value": 1, "max_value": 2},
                "meta": {"rule": "positions", "kind": "hard", "description": f"<i>positions</i> {HOSTILE}"},
            }
        ],
    }


def write_hour(folder: Path, number: int, *, banned: bool = False, empty: float = 0.0) -> None:
    """The logs of one hour: lists of two items, a click on every fourth list."""
    rng = np.random.default_rng([3, number])
    start = (FIRST + number * HOUR).replace(tzinfo=None)
    gone = rng.random(LISTS) < empty
    rows, clicks = [], []
    for one in range(LISTS):
        ts = start + timedelta(seconds=one * 3600 / LISTS)
        request = f"{number}-{one}"
        for position in (1, 2) if not gone[one] else (1,):
            item = f"i{rng.integers(40)}" if not (banned and one == 0) else "banned"
            rows.append(
                {
                    "request_id": request,
                    "user_id": f"u{number * LISTS + one}",
                    "ts": ts,
                    "item_id": None if gone[one] else item,
                    "position": None if gone[one] else position,
                    "score": None if gone[one] else float("inf") if item == "banned" else 1.0 / position,
                    "scene": HOSTILE if one % 10 == 0 else "home",
                    "model": MODEL if number < 20 else NEXT_MODEL,
                    "arm": "control" if one % 4 == 0 else "new",
                }
            )
        if one % 4 == 1 and not gone[one]:
            clicks.append(
                {
                    "request_id": request,
                    "user_id": rows[-1]["user_id"],
                    "ts": ts + timedelta(seconds=20),
                    "item_id": rows[-1]["item_id"],
                    "event": "click",
                }
            )
    land(folder / f"exposures/{number:03}.parquet", pd.DataFrame(rows))
    land(folder / f"feedback/{number:03}.parquet", pd.DataFrame(clicks))


class JudgedShop:
    """The daemon of the shop. `judge` judges what is due at a time, `serving` serves it on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = FIRST + HOURS * HOUR + timedelta(minutes=30)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "banned.csv").write_text("item_id\nbanned\n", "utf-8")
        (folder / "ours.yaml").write_text(yaml.safe_dump(suite()), "utf-8")
        (folder / "config.yaml").write_text(yaml.safe_dump(config(folder)), "utf-8")
        (folder / "news").mkdir()
        for number in range(HOURS):
            is_last = number >= HOURS - 3
            banned = number in (30, 31) or number == HOURS - 1
            write_hour(folder, number, banned=banned, empty=0.7 if is_last else 0.0)
        close_hour(folder, HOURS)
        land_samples(folder, LAST.replace(tzinfo=None), (LAST + HOUR).replace(tzinfo=None))
        later = pd.read_parquet(folder / "samples/online.parquet").tail(1)
        land(folder / "samples/later.parquet", later.assign(ts=later["ts"] + HOUR / 3, request_id="later"))
        self.daemon = Daemon(folder / "config.yaml", clock=lambda: self.now)
        self.judge()

    def judge(self) -> None:
        """Judge every window that is due."""
        for _ in range(20):
            before = len(self.daemon.store.evaluated("shop"))
            for name in self.daemon.watches:
                self.daemon.turn(name)
            if len(self.daemon.store.evaluated("shop")) == before:
                return
        raise AssertionError("it never came to an end")

    def next_hour(self) -> None:
        """One more hour, which is judged."""
        number = round((self.now - FIRST) / HOUR - 0.5)
        write_hour(self.folder, number)
        close_hour(self.folder, number + 1)
        self.now += HOUR
        self.judge()

    @contextmanager
    def serving(self, **settings: Any) -> Iterator[httpx.Client]:
        """A client of a real server on the real history."""
        server = serve(
            ServerSettings(**{"listen": "127.0.0.1:0", "external_url": "https://monitor.test"} | settings),
            self.daemon.publisher.current,
            reload=lambda: ReloadOutcome(True),
            not_ready=lambda: "",
            healthy=lambda: True,
            store=self.daemon.store,
            config=lambda: self.daemon.config,
        )
        try:
            with httpx.Client(base_url=server.address, timeout=PATIENCE) as client:
                yield client
        finally:
            server.stop()

    def close(self) -> None:
        """End the daemon."""
        self.daemon.close()


def close_hour(folder: Path, number: int) -> None:
    """Rows of the next hour, so that the logs have moved past the hour before."""
    ts = (FIRST + number * HOUR + timedelta(minutes=20)).replace(tzinfo=None)
    row = {"request_id": f"c{number}", "user_id": "u", "ts": ts, "item_id": "i1"}
    land(folder / "exposures/end.parquet", pd.DataFrame([{**row, "position": 1, "score": 0.5, "scene": "home",
                                                          "model": NEXT_MODEL, "arm": "new"}]))  # fmt: skip
    land(folder / "feedback/end.parquet", pd.DataFrame([{**row, "event": "click"}]))
