"""The real daemon on simulated logs, under a clock of its own: turns, forks, and what is done to it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.scoreboard import checkpoints
from benchmarks.scoreboard.operations import operation
from benchmarks.scoreboard.play import play, rotate
from benchmarks.scoreboard.series import Key
from benchmarks.scoreboard.watched import MINUTE, Watched
from monitor.engines.duckdb import Engine
from monitor.logs.files import LogFile
from monitor.logs.index import FileEntry, index_file
from monitor.metrics.catalogue import SPECS
from monitor.settings.logs import LogSettings
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, Scene, World

WORLD = World(
    users=40, items=48, length=5, new_users_per_hour=1, scenes=(Scene("home", 40.0),), oddities=False
)
SIMULATION = Simulation(WORLD)
BEGIN = WORLD.start + HOUR
SHOP = ("recommender", "shop")
RULES = """\
name: {name}
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {{column: user_id}}
    meta: {{rule: {name}, kind: hard, table: exposures, description: Nobody, owner: a, runbook: b}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A monitor that asks little, so that its windows are quick."""
    live = tmp_path / "live"
    (live / "rules").mkdir(parents=True)
    for name in ("one", "two"):
        (live / "rules" / f"{name}.yaml").write_text(RULES.format(name=name), "utf-8")
    shop = {
        "name": "shop",
        "logs": {"exposures": {"path": "logs/exposures/*.parquet"}},
        "max_wait": "30m",
        "rules": [{"suite": "rules/one.yaml"}, {"suite": "rules/two.yaml"}],
        "metrics": {"disable": [name for name in SPECS if name != "coverage"]},
    }
    config = {"state": "state", "engine": {"threads": 1}, "recommenders": [shop]}
    (live / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    return live


def until(watched: Watched, hours: int, *rest: object) -> Watched:
    for _ in play(watched, SIMULATION, watched.now, watched.now + hours * HOUR, *rest):  # type: ignore[arg-type]
        pass
    return watched


def value(watched: Watched, name: str, moment: datetime, *labels: tuple[str, str]) -> float | None:
    key: Key = (name, labels)
    minute = int(moment.timestamp()) // 60
    spans = watched.recorded.spans(key, minute, minute)
    return next((segment.at(minute) for _, _, segment in spans), None)


def judged(watched: Watched) -> dict[datetime, datetime]:
    """Start of each window -> when it was judged."""
    return {one.window.start: one.evaluated_at for one in watched.daemon.store.evaluated("shop", "exposure")}


def test_windows_are_judged_once_their_files_have_arrived(
    folder: Path,
) -> None:
    with until(Watched(folder, "shop", BEGIN), 3) as watched:
        assert judged(watched) == {
            WORLD.start + n * HOUR: WORLD.start + (n + 1) * HOUR + 16 * MINUTE for n in range(3)
        }
        files = sorted((folder / "logs/exposures").iterdir())
        assert [datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in files] == [
            WORLD.start + n * 15 * MINUTE + timedelta(seconds=5) for n in range(1, 16)
        ]
        for minute in (1, 17, 90, 180):
            now = BEGIN + minute * MINUTE
            runs = value(watched, "recsys_scheduler_runs_total", now, SHOP, ("outcome", "ok"))
            assert runs == minute
            assert value(watched, "recsys_last_run_timestamp_seconds", now, SHOP) == now.timestamp()
        end = value(watched, "recsys_last_window_end_timestamp_seconds", BEGIN + 76 * MINUTE, SHOP)
        assert end == (BEGIN + HOUR).timestamp()
        assert not any(name.startswith("recsys_slice_") for name, _ in watched.recorded.segments)


def test_a_monitor_that_only_measures_judges_the_same_windows_and_is_not_scraped(folder: Path) -> None:
    with Watched(folder, "shop", BEGIN) as watched:
        for _ in play(watched, SIMULATION, BEGIN, BEGIN + 3 * HOUR, is_on=False):
            pass
        assert watched.recorded.segments == {}
        assert watched.now == BEGIN + 3 * HOUR
        assert judged(watched) == {
            WORLD.start + n * HOUR: WORLD.start + (n + 1) * HOUR + 31 * MINUTE for n in range(3)
        }
        until(watched, 1)
        assert list(judged(watched)) == [WORLD.start + n * HOUR for n in range(4)]
        assert watched.recorded.segments


def test_a_fork_continues_like_the_monitor_itself(folder: Path, tmp_path: Path) -> None:
    with until(Watched(folder, "shop", BEGIN), 2) as watched:
        checkpoints.save(watched, tmp_path / "fork")
        until(watched, 2)
        there, results = watched.recorded, list(watched.daemon.store.results())
    assert checkpoints.moment(tmp_path / "fork") == BEGIN + 2 * HOUR
    assert checkpoints.moment(tmp_path / "none") is None
    checkpoints.restore(tmp_path / "fork", tmp_path / "other")
    now, series = BEGIN + 2 * HOUR, checkpoints.series(tmp_path / "fork")
    with until(Watched(tmp_path / "other", "shop", now, series), 2) as fork:
        own = ("recsys_check_duration_seconds", "recsys_config_reload_timestamp_seconds")
        kept = {key: value for key, value in there.segments.items() if key[0] not in own}
        assert {key: value for key, value in fork.recorded.segments.items() if key[0] not in own} == kept
        assert [(one.window, one.result) for one in fork.daemon.store.results()] == [
            (one.window, one.result) for one in results
        ]
    assert (tmp_path / "fork/state/history.sqlite").stat().st_size > 0


def test_a_fork_does_not_read_old_files_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(engine: Engine, log: str, settings: LogSettings, file: LogFile, *rest: Any) -> FileEntry:
        read.append(Path(file.path).name)
        return index_file(engine, log, settings, file, *rest)

    monkeypatch.setattr("monitor.logs.log.index_file", counted)
    with until(Watched(folder, "shop", BEGIN), 2) as watched:
        checkpoints.save(watched, tmp_path / "fork")
    before = read.copy()
    checkpoints.restore(tmp_path / "fork", tmp_path / "other")
    with until(Watched(tmp_path / "other", "shop", BEGIN + 2 * HOUR), 1):
        pass
    assert len(before) == len(set(before)) == 11  # one a quarter; the last has not come yet
    assert len(read) == len(set(read)) == 15


def test_files_of_whole_hours_are_rotated_away(folder: Path) -> None:
    with until(Watched(folder, "shop", BEGIN), 1):
        pass
    rotate(folder, BEGIN + 8 * HOUR)
    left = sorted(path.name for path in (folder / "logs/exposures").iterdir())
    assert left == ["20260105T01-000.parquet", "20260105T01-015.parquet", "20260105T01-030.parquet"]


def test_a_full_history_fails_every_minute_until_there_is_space(folder: Path) -> None:
    config = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    config["recommenders"][0]["evidence"] = {"rows": 100}  # little would find room in pages that are there
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (folder / "rules/one.yaml").write_text(
        RULES.format(name="one").replace("not_be_null", "be_null"), "utf-8"
    )
    full = operation(INCIDENTS["history_full"], 0.25, BEGIN + HOUR + 5 * MINUTE)
    with until(Watched(folder, "shop", BEGIN), 3, full) as watched:
        errors = ("recsys_store_errors_total", ("fault", "full"))

        def count(minute: int) -> float | None:
            return value(watched, errors[0], BEGIN + HOUR + minute * MINUTE, errors[1])

        assert count(5) == 0
        assert count(20) == 5  # from the next file on, at minute 16
        assert count(21) == count(120) == 5
        looked = [
            value(watched, "recsys_last_run_timestamp_seconds", BEGIN + n * MINUTE, SHOP)
            for n in range(1, 181)
        ]
        rises = [after - before for before, after in pairwise(one for one in looked if one is not None)]
        assert len(rises) == 179
        assert min(rises) == 0  # no look succeeds while the history is full
        assert max(rises) == 6 * 60
        late = BEGIN + HOUR + 21 * MINUTE
        assert judged(watched)[WORLD.start + HOUR] == late
        assert list(judged(watched)) == [WORLD.start + n * HOUR for n in range(3)]


def test_a_full_history_has_no_free_page(folder: Path) -> None:
    full = operation(INCIDENTS["history_full"], 0.25, BEGIN)
    with (
        Watched(folder, "shop", BEGIN) as watched,
        closing(sqlite3.connect(folder / "state" / "history.sqlite")) as history,
    ):
        history.execute("CREATE TABLE filler AS SELECT zeroblob(1000000) AS room")
        history.execute("DROP TABLE filler")
        history.commit()
        assert history.execute("PRAGMA freelist_count").fetchone()[0] > 200
        full(watched, BEGIN + MINUTE)
        assert history.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_a_broken_rule_file_is_refused_and_the_old_rules_stay(folder: Path) -> None:
    broken = operation(INCIDENTS["rule_file_broken"], 2, BEGIN)
    with until(Watched(folder, "shop", BEGIN), 2, broken) as watched:
        for minute, expected in ((1, 0.0), (120, 0.0)):
            assert value(watched, "recsys_config_reload_success", BEGIN + minute * MINUTE) == expected
        assert "two.yaml" in (watched.daemon.publisher.current().config_error or "")
        assert len(judged(watched)) == 2
        rules = {
            dict(labels)["rule"] for name, labels in watched.recorded.segments if name == "recsys_rule_status"
        }
        assert rules == {"one", "two"}


def test_an_unknown_operation_is_refused() -> None:
    strange = replace(INCIDENTS["history_full"], operation="unplugged")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unplugged"):
        operation(strange, 1, BEGIN)


class Looking(Watched):
    """A daemon that makes each look, though nothing can have come."""

    idle = property(lambda _: False, lambda _self, _value: None)  # type: ignore[assignment]


def test_a_turn_without_work_changes_only_its_counters(folder: Path, tmp_path: Path) -> None:
    """Every series at every minute, whether the looks are made or counted; but for how long a check took."""
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    with until(Watched(folder, "shop", BEGIN), 3) as counted, until(Looking(other, "shop", BEGIN), 3) as made:
        minutes = [BEGIN + number * MINUTE for number in range(1, 181)]
        names = counted.recorded.segments.keys() | made.recorded.segments.keys()
        different = {
            key[0]
            for key in names
            for minute in minutes
            if value(counted, key[0], minute, *key[1]) != value(made, key[0], minute, *key[1])
        }
    assert len(names) > 50  # of windows, rules, files and the daemon itself
    assert different <= {"recsys_check_duration_seconds"}
