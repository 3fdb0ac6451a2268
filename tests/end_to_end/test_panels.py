"""Every panel of every dashboard, asked of a real Prometheus that scraped the real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitor.simulate.traffic import Simulator, Traffic
from tests.end_to_end.panel_queries import queries
from tests.end_to_end.served import land_samples
from tests.end_to_end.servers import Prometheus
from tests.processes import land, monitor, wait_for

MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that has watched a monitor judge a window of a shop with every log and column."""
    folder = tmp_path_factory.mktemp("panels")
    simulator = Simulator(Traffic(users=60, items=80, length=5), 7)
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    write(folder, simulator, now - timedelta(days=1), MINUTE)  # what was shown the day before
    for back in (3, 2, 1):
        write(folder, simulator, now - back * MINUTE, MINUTE)
    write(folder, simulator, now, timedelta(seconds=10))
    land_samples(folder, now - 3 * MINUTE, now + timedelta(seconds=10))
    catalog = simulator.catalog()
    pq.write_table(
        catalog.append_column("length", pa.array([60.0] * len(catalog))), folder / "catalog.parquet"
    )
    (folder / "blacklist.csv").write_text("\n".join(["item_id", *simulator.blacklist, ""]))
    recommender = {
        "name": "shop",
        "logs": {
            "exposures": {"stalled_after": "1h", "path": "exposures/*.parquet"},
            "feedback": {"path": "feedback/*.parquet"},
            "catalog": {"path": "catalog.parquet"},
            "samples": {"path": "samples/*.parquet"},
        },
        "window": "1m",
        "every": "1s",
        "lateness": "1s",
        "catch_up": 2,
        "rules": [{"pack": "blacklist", "parameters": {"blacklist": "blacklist.csv"}}],
        "metrics": {
            "score_range": [0, 1],
            "attribution": "1m",
            "seed_item": "seed",
            "rating": {
                "event": "rating",
                "distortion": {"0": {str(rating): rating for rating in range(1, 6)}},
            },
            "events": {"click": {"length": "length"}, "rating": {"grade": 0}},
        },
        "experiments": [
            {
                "name": "order",
                "column": "arm",
                "split": {"a": 1, "b": 1},
                "control": "a",
                "buckets": {"column": "bucket", "count": 4},
            },
            {"name": "colour", "column": "layer", "split": {"x": 1, "y": 1}, "control": "x"},
        ],
        "health": {
            "parts": [
                {"metric": "coverage", "labels": {"by": "pv"}, "zero": 0.5, "one": 1.0},
                {"metric": "gini", "zero": 1.0, "one": 0.0},
            ]
        },
        "slices": {"by": ["scene"]},
        "bands": {"changes": [{"at": (now - timedelta(days=2)).isoformat(), "what": "a new home page"}]},
        "objectives": [
            {"metric": "coverage", "labels": {"by": "pv"}, "min": 0.5},
            {"metric": "coverage", "labels": {"by": "pv", "dimension": "scene", "value": "home"}, "min": 0.5},
        ],
    }
    with monitor(folder, {"recommenders": [recommender], "server": {"export": ["*"]}}) as made:
        server = Prometheus(folder, made.url.removeprefix("http://"))
        try:
            server.up()
            wait_for("the window to be scraped", lambda: server.ask("recsys_coverage_ratio"))
            wait_for("causes to be scraped", lambda: server.ask("recsys_auc_gap_cause_ratio"))
            wait_for("what users did to be scraped", lambda: server.ask("recsys_attribution_ratio"))
            # A rate needs two scrapes; so does what is counted at the end of a run.
            wait_for("rates", lambda: server.ask("increase(recsys_windows_total[1m])"))
            yield server
        finally:
            server.stop()


def write(folder: Path, simulator: Simulator, start: datetime, length: timedelta) -> None:
    rng = np.random.default_rng(int(start.timestamp()))
    batch = simulator.batch(start, start + length, 3.0, rng)
    shown: pd.DataFrame = batch.exposures.to_pandas()
    shown["latency"] = rng.uniform(0.01, 0.2, len(shown))
    shown["status"], shown["ever_shown"] = "ok", rng.random(len(shown)) < 0.5
    shown["propensity"] = rng.uniform(0.005, 0.5, len(shown))
    user = shown["user_id"].str[1:].astype(int)
    shown["arm"], shown["layer"] = np.where(user % 2, "a", "b"), np.where(user // 2 % 2, "x", "y")
    shown["bucket"] = (user % 4).astype(str)
    shown["seed"] = rng.choice(shown["item_id"].dropna(), len(shown))
    done: pd.DataFrame = batch.feedback.to_pandas()
    rated = done.assign(event="rating", value=rng.integers(1, 6, len(done)).astype(float))
    name = f"{start:%Y%m%dT%H%M}.parquet"
    land(folder / "exposures" / name, shown)
    land(folder / "feedback" / name, pd.concat([done.assign(value=30.0), rated]))


@pytest.mark.parametrize("expression", list(queries("windows")))
def test_a_panel_has_data(expression: str, prometheus: Prometheus) -> None:
    prometheus.data(expression)
