"""How long a log may be silent, as the daemon learns it and /metrics says it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.metrics.catalogue import SPECS
from monitor.service.watch import Watch
from monitor.settings.recommender import RecommenderSettings
from tests.processes import exposures, land, monitor, wait_for

MINUTE = timedelta(minutes=1)
STALLED_AFTER = "recsys_log_stalled_after_seconds"


def watch(folder: Path, store: Store, **log: object) -> Watch:
    given = {
        "name": "shop",
        "logs": {"exposures": {"path": str(folder / "logs/*.csv"), **log}},
        "metrics": {"disable": [name for name in SPECS if name != "coverage"]},
    }
    return Watch(RecommenderSettings.model_validate(given), (), store, folder / "state", "salt")


def write(path: Path, moment: datetime, *, rows: int = 1) -> None:
    """A file that was written at a moment, with as many rows, the newest of that moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    times = (moment - number * timedelta(seconds=1) for number in range(rows))
    lines = [f"r,u,{time:%Y-%m-%dT%H:%M:%SZ},i" for time in times]
    path.write_text("\n".join(["request_id,user_id,ts,item_id", *lines, ""]), "utf-8")
    os.utime(path, (moment.timestamp(), moment.timestamp()))


def write_minutes(folder: Path, count: int) -> datetime:
    """A file for each of the minutes until now; the time of the newest."""
    newest = datetime.now(UTC).replace(microsecond=0) - MINUTE
    for number in range(count):
        write(folder / f"logs/{number}.csv", newest - number * MINUTE)
    return newest


def test_a_log_with_a_file_a_minute_stalls_after_four_minutes_also_after_a_restart(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    newest = write_minutes(tmp_path, 40)
    shop = watch(tmp_path, store)
    assert shop.stalled_after == {}
    shop.turn(runtime, newest + MINUTE)
    assert shop.stalled_after == {"exposures": 4 * MINUTE}
    again = watch(tmp_path, store)
    again.turn(runtime, newest + MINUTE)
    assert again.stalled_after == {"exposures": 4 * MINUTE}


def test_a_configured_stalled_after_is_used_unchanged(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    newest = write_minutes(tmp_path, 2)
    shop = watch(tmp_path, store, stalled_after="10m")
    shop.turn(runtime, newest)
    assert shop.stalled_after == {"exposures": 10 * MINUTE}


def test_a_log_stays_stalled_until_rows_come(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    newest = write_minutes(tmp_path, 40)
    shop = watch(tmp_path, store)
    shop.turn(runtime, newest)
    shop.turn(runtime, newest + 5 * MINUTE)
    for number in range(30):  # what is left of the log has another pace
        (tmp_path / f"logs/{10 + number}.csv").unlink()
    shop.turn(runtime, newest + 10 * MINUTE)
    assert shop.stalled_after == {"exposures": 4 * MINUTE}
    write(tmp_path / "logs/new.csv", newest + 10 * MINUTE)
    shop.turn(runtime, newest + 11 * MINUTE)
    assert shop.stalled_after == {}


def test_nothing_is_learned_of_files_that_keep_growing(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    newest = write_minutes(tmp_path, 40)
    shop = watch(tmp_path, store)
    shop.turn(runtime, newest)
    for rows in (2, 3):
        write(tmp_path / "logs/0.csv", newest + rows * timedelta(seconds=20), rows=rows)
        shop.turn(runtime, newest + rows * timedelta(seconds=20))
        assert shop.stalled_after == {"exposures": 4 * MINUTE}, "a file that is written in parts"
    write(tmp_path / "logs/0.csv", newest + 2 * MINUTE, rows=4)
    shop.turn(runtime, newest + 2 * MINUTE)
    assert shop.stalled_after == {}


def test_one_file_that_grows_has_no_pace(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    shop, now = watch(tmp_path, store), datetime.now(UTC) - 60 * MINUTE
    for minute in range(1, 20):
        write(tmp_path / "logs/log.csv", now + minute * MINUTE, rows=minute)
        shop.turn(runtime, now + minute * MINUTE)
    assert shop.stalled_after == {}


def test_nothing_is_learned_while_a_folder_cannot_be_listed(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    newest = write_minutes(tmp_path, 40)
    shop = watch(tmp_path, store, path=[str(tmp_path / "logs/*.csv"), str(tmp_path / "loop/*.csv")])
    (tmp_path / "loop").symlink_to("loop")
    shop.turn(runtime, newest)
    assert shop.evaluator.source.main.unlisted
    assert shop.stalled_after == {}
    (tmp_path / "loop").unlink()
    shop.turn(runtime, newest)
    assert shop.stalled_after == {"exposures": 4 * MINUTE}


def test_the_daemon_exports_the_silence_of_each_log_that_has_one(tmp_path: Path) -> None:
    write_minutes(tmp_path, 40)
    land(tmp_path / "few/0.parquet", exposures(datetime.now(UTC) - MINUTE, 30, lists=4))
    config = {
        "recommenders": [
            {"name": "quick", "logs": {"exposures": {"path": "logs/*.csv"}}},
            {"name": "few", "logs": {"exposures": {"path": "few/*.parquet"}}},
            {"name": "set", "logs": {"exposures": {"path": "few/*.parquet", "stalled_after": "10m"}}},
        ]
    }
    with monitor(tmp_path, config) as running:
        for name in ("quick", "few", "set"):  # two of them run at once
            ran = partial(running.value, "recsys_last_run_timestamp_seconds", recommender=name)
            wait_for(f"a run of {name}", ran)
        wait_for("the setting", lambda: running.value(STALLED_AFTER, recommender="set") == 600)
        assert running.value(STALLED_AFTER, recommender="quick", log="exposures") == 240
        assert running.value(STALLED_AFTER, recommender="few") is None
