"""Kill -9 at any moment, start again: the history ends up as that of a run that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from monitor.core.columns import LOGS
from monitor.history.store import Store
from monitor.metrics.catalogue import SPECS
from monitor.report.result_json import result_as_json
from monitor.service.salt import install_salt
from monitor.simulate.demo import write_batch
from monitor.simulate.traffic import Simulator, Traffic
from tests.forked import Forked
from tests.processes import wait_for

SEED = 20260301
KILLS = 22
WINDOWS = 10
PARTS = 2 * WINDOWS  # exposures, and feedback
FIRST = datetime(2026, 2, 28, 23, 55, tzinfo=UTC)  # over a midnight
MINUTE = timedelta(minutes=1)
MEASURED = ("coverage", "update_rate", "gini", "novelty", "score_health", "serendipity")
# What depends on how often the daemon was started, and says nothing of the recommender.
OF_THE_PROCESS = ("recsys_scheduler_runs_total", "recsys_store_errors_total")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The traffic of some minutes, with a blacklisted item now and then."""
    folder = tmp_path_factory.mktemp("logs")
    simulator, rng = Simulator(Traffic(users=200, items=80, length=5), SEED), np.random.default_rng(SEED)
    for number in range(WINDOWS):
        start = FIRST + number * MINUTE
        write_batch(
            folder, start, start + MINUTE, rate=2, rng=rng, simulator=simulator, blacklisted=number % 5 == 1
        )
    pq.write_table(simulator.catalog(), folder / "catalog.parquet")
    (folder / "blacklist.csv").write_text("\n".join(["item_id", *simulator.blacklist, ""]))
    return folder


def write_late_data(logs: Path) -> list[Path]:
    """Rows that arrive when their windows have been judged; some of them hold the first violation."""
    simulator, rng = Simulator(Traffic(users=200, items=80, length=5), SEED), np.random.default_rng(1)
    return [
        write_batch(
            logs, start, start + MINUTE / 4, rate=2, rng=rng, simulator=simulator, blacklisted=number % 4 == 1
        )
        for number in range(1, WINDOWS, 2)
        for start in [FIRST + number * MINUTE + MINUTE / 2]
    ]


def write_config(folder: Path, logs: Path) -> Path:
    recommender = {
        "name": "shop",
        "logs": {
            "exposures": {"path": str(logs / "exposures/*.parquet")},
            "feedback": {"path": str(logs / "feedback/*.parquet")},
            "catalog": {"path": str(logs / "catalog.parquet")},
        },
        "window": "1m",
        "every": "1s",
        "lateness": "5s",
        # Enough to rest on the log, on the remembered pairs and on slices; the rest only takes time.
        "metrics": {
            "history": "5m",
            "attribution": "1m",
            "disable": [name for name in SPECS if name not in MEASURED],
        },
        "slices": {"by": ["scene"], "budget": 2},
        "objectives": [{"metric": "coverage", "labels": {"by": "pv"}, "min": 0.999}],
        "rules": [{"pack": "blacklist", "parameters": {"blacklist": str(logs / "blacklist.csv")}}],
    }
    config = {
        "server": {"listen": "127.0.0.1:0"},
        "engine": {"threads": 1},
        "recommenders": [recommender],
    }
    folder.mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (folder / "state").mkdir()
    (folder / "state/salt").write_text("0" * 32)  # or the hashes of users would differ
    assert install_salt(folder / "state") == "0" * 32
    return folder / "config.yaml"


def progress(config: Path) -> tuple[int, int]:
    """How many parts of windows are judged, and how many corrections of them were made."""
    path = config.parent / "state/history.sqlite"
    if not path.exists():
        return 0, 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as history:
        try:
            query = (
                "SELECT count(*), coalesce(sum(revision), 0) FROM windows "
                "WHERE check_name IN ('exposure', 'feedback')"
            )
            judged, corrected = history.execute(query).fetchone()
        except sqlite3.OperationalError:  # killed before there was a table
            return 0, 0
    return int(judged), int(corrected)


def start(config: Path) -> Forked:
    output = config.with_name("output.log")
    return Forked(["run", "--config", config], cwd=config.parent, env=os.environ, out=output, err=output)


def undisturbed(config: Path, done: tuple[int, int]) -> float:
    """Let a daemon run until this much is done, and stop it in peace; how many seconds it took."""
    process = start(config)
    try:
        wait_for("the daemon to hear signals", lambda: hears_terminate(process.pid), every=0.02)
        began = time.monotonic()
        wait_for(f"{done} parts and corrections", lambda: progress(config) == done, every=0.05)
        seconds = time.monotonic() - began
    except AssertionError:
        print(config.with_name("output.log").read_text())
        raise
    finally:
        process.terminate()
        process.wait(180)
    assert process.returncode == 0
    return seconds


def hears_terminate(pid: int | None) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    (caught,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


class Killer:
    """Starts daemons and kills each at a moment that the seed chooses."""

    def __init__(self, config: Path, pace: float) -> None:
        self.config = config
        self.pace = pace  # seconds a part of a window, on this machine at this hour
        self.random = random.Random(SEED)
        self.kills = {"at any time": 0, "while pairs are written": 0, "while the history is written": 0}
        self.moments: set[tuple[int, int]] = set()

    def kill(self, times: int) -> None:
        ways = list(self.kills) * (times // len(self.kills) + 1)
        for how in self.random.sample(ways, times):
            process = start(self.config)
            try:
                self._moment(how, process)
            finally:
                process.kill()
                process.wait(180)
            assert process.returncode == -signal.SIGKILL, self.config.with_name("output.log").read_text()
            self.kills[how] += 1
            self.moments.add(progress(self.config))

    def _moment(self, how: str, process: Forked) -> None:
        state = self.config.parent / "state"
        if how == "at any time":
            wait_for("the daemon to begin", lambda: hears_terminate(process.pid), every=0.01)
            goal = min(progress(self.config)[0] + self.random.randint(0, 2), PARTS)
            wait_for(f"{goal} parts", lambda: progress(self.config)[0] >= goal, every=0.02)
            time.sleep(self.random.uniform(0, 1.5) * self.pace)
        elif how == "while pairs are written":
            number = self.random.randint(1, 3)
            self._seen(number, lambda: sorted(path.name for path in (state / "kept/shop").glob("*.part*")))
        else:
            number = self.random.randint(1, 25)
            self._seen(number, lambda: size_of(state / "history.sqlite-wal"))
            time.sleep(self.random.uniform(0, 0.003))

    def _seen(self, changes: int, look: Callable[[], Any]) -> None:
        """Wait for this many changes of what is seen, but not for ever: the rest may be done.

        Nor for more than three parts: on a busy machine changes are missed, and later kills need parts too.
        """
        end, before = time.monotonic() + 1 + min(4 * self.pace, 5), look()
        enough, looked_at = progress(self.config)[0] + 3, time.monotonic()
        while changes and time.monotonic() < end:
            time.sleep(0.0005)  # the daemon needs the processor too
            if time.monotonic() - looked_at > 0.05:
                if enough <= progress(self.config)[0] < PARTS:
                    return
                looked_at = time.monotonic()
            now = look()
            changes -= now != before and bool(now)
            before = now


def size_of(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def everything(config: Path) -> dict[str, Any]:
    """All that is kept, but for the time of judging and how long it took."""
    state = config.parent / "state"
    with Store.open(state / "history.sqlite") as store:
        results = [json.dumps(rounded(result_as_json(k.recommender, k.check, k.window, k.result)))
                   for k in store.results()]  # fmt: skip
        counters = {key: value for key, value in store.counters().items() if key[0] not in OF_THE_PROCESS}
        marks = {name: at for name, at in store.watermarks("shop").items() if name in LOGS}
        files = {
            log: sorted(store.files("shop", log).items()) for log in ("exposures", "feedback", "catalog")
        }
        windows = [
            (one.check, one.window, one.definition, one.status, one.fingerprint, one.rows, one.revision)
            for one in store.evaluated("shop")
        ]
    kept = {
        path.name: pd.read_parquet(path).to_dict("list") for path in (state / "kept/shop").glob("*.parquet")
    }
    return {
        "results": sorted(results), "counters": counters, "watermarks": marks, "files": files,
        "windows": sorted(windows, key=repr), "pairs": kept,
    }  # fmt: skip


def rounded(line: dict[str, Any]) -> dict[str, Any]:
    """The last digits of a sum depend on its order, which no engine promises."""
    return {name: float(f"{v:.12g}") if isinstance(v, float) else v for name, v in line.items()}


@pytest.fixture
def late(logs: Path) -> Iterator[Callable[[], int]]:
    """Land the late data; both runs get it at the same stage. The files are the same each time."""
    written: list[Path] = []

    def land() -> int:
        written.extend(write_late_data(logs))
        moment = (FIRST + timedelta(hours=1)).timestamp()
        for path in written:
            for one in (path, logs / "feedback" / path.name):
                os.utime(one, (moment, moment))
        return len(set(written))

    def remove() -> None:
        for path in written:
            path.unlink(missing_ok=True)
            (logs / "feedback" / path.name).unlink(missing_ok=True)

    land.remove = remove  # type: ignore[attr-defined]
    yield land
    remove()


@pytest.mark.timeout(1800)
def test_killed_at_any_moment_it_ends_up_with_the_history_of_an_undisturbed_run(
    tmp_path: Path, logs: Path, late: Any
) -> None:
    config = write_config(tmp_path / "undisturbed", logs)
    pace = undisturbed(config, (PARTS, 0)) / PARTS
    # The exposures of each window that has late rows, and the feedback of every window: each is beside one.
    corrections = late() + WINDOWS
    undisturbed(config, (PARTS, corrections))
    expected = everything(config)
    assert len(expected["pairs"]) == WINDOWS
    assert any('"status": "violated"' in line for line in expected["results"])
    late.remove()

    killer = Killer(write_config(tmp_path / "killed", logs), pace)
    killer.kill(KILLS * 2 // 3)
    undisturbed(killer.config, (PARTS, 0))
    assert late() + WINDOWS == corrections
    killer.kill(KILLS - KILLS * 2 // 3)
    undisturbed(killer.config, (PARTS, corrections))

    assert min(killer.kills.values()) >= 5, killer.kills
    assert len(killer.moments) >= 6, f"most kills came at the same stage: {killer.moments}"
    found = everything(killer.config)
    for what, value in expected.items():
        assert found[what] == value, what
