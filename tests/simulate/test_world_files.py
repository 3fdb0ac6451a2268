from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitor.engines.duckdb import Engine
from monitor.logs.files import LogFile
from monitor.logs.index import index_file
from monitor.settings.logs import LogSettings, TimeSettings
from monitor.simulate.delivery import Delivery
from monitor.simulate.lists import micros, to_exposures
from monitor.simulate.oddities import has_deploy, is_doubled, is_late, is_retried
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, Scene, World

WORLD = World(seed=6, scenes=(Scene("home", 600.0),), users=500, items=300)
PLAIN = replace(WORLD, oddities=False)
MONTH = range(30 * 24)


def of(files: list[Delivery], log: str) -> list[Delivery]:
    return [one for one in files if one.log == log]


def hours(what) -> list[int]:
    return [hour for hour in MONTH if what(WORLD, hour)]


def test_the_files_of_an_hour_hold_all_its_rows_once():
    simulation = Simulation(PLAIN)
    hour = simulation.hour(PLAIN.moment(20))
    files = simulation.deliver(hour)
    shown = pa.concat_tables([one.table for one in of(files, "exposures")])
    assert shown.equals(to_exposures(hour.lists, PLAIN))
    assert pa.concat_tables([one.table for one in of(files, "feedback")]).equals(hour.feedback)
    assert of(files, "catalog")[0].table.equals(hour.catalog)
    assert sum(one.table.num_rows for one in of(files, "samples")) == hour.samples.num_rows


def test_the_names_of_files_are_of_utc_whatever_the_zone_of_the_hour_that_is_asked_for():
    simulation = Simulation(PLAIN)
    start = PLAIN.moment(20)
    files = simulation.files(start.astimezone(ZoneInfo("Asia/Kolkata")))
    assert [(one.log, one.name) for one in files] == [(one.log, one.name) for one in simulation.files(start)]


def test_a_file_arrives_right_after_its_quarter_of_an_hour():
    start = PLAIN.moment(20)
    files = Simulation(PLAIN).files(start)
    ends = [one.arrives - start for one in of(files, "exposures")]
    assert ends == [timedelta(minutes=minutes, seconds=5) for minutes in (15, 30, 45, 60)]
    for one in of(files, "exposures") + of(files, "feedback"):
        times = one.table["ts"].to_numpy()
        arrives = np.datetime64(one.arrives.astimezone(UTC).replace(tzinfo=None))
        assert times.max() < arrives
        assert times.min() > arrives - np.timedelta64(16, "m")
    assert [one.arrives for one in files] == sorted(one.arrives for one in files)
    assert of(files, "catalog")[0].arrives == start


def test_file_names_are_unique_except_the_catalog():
    simulation = Simulation(PLAIN)
    names = [(one.log, one.name) for hour in range(30) for one in simulation.files(PLAIN.moment(hour))]
    others = [one for one in names if one[0] != "catalog"]
    assert len(set(others)) == len(others)
    assert names.count(("catalog", "catalog.parquet")) == 30


def test_feedback_on_the_last_lists_of_an_hour_is_delivered_in_the_next():
    start = PLAIN.moment(20)
    late = [
        one for one in of(Simulation(PLAIN).files(start), "feedback") if one.arrives > start + 61 * HOUR / 60
    ]
    assert next(one.arrives - start for one in late) == timedelta(minutes=75, seconds=5)
    assert all(one.table["ts"].to_numpy().min() >= np.datetime64("2026-01-05T21:00") for one in late)


def test_a_row_with_a_time_in_another_hour_is_in_the_first_or_last_file():
    simulation = Simulation(PLAIN)
    hour = simulation.hour(PLAIN.moment(20))
    ahead = replace(hour, lists=replace(hour.lists, times=hour.lists.times + 2 * 3_600_000_000))
    files = of(simulation.deliver(ahead), "exposures")
    assert [one.arrives for one in files] == [hour.start + timedelta(hours=1, seconds=5)]
    assert files[0].table.num_rows == to_exposures(hour.lists, PLAIN).num_rows


def test_a_changed_part_is_delivered():
    simulation = Simulation(PLAIN)
    hour = simulation.hour(PLAIN.moment(20))
    fewer = replace(hour, feedback=hour.feedback.slice(0, 5), catalog=hour.catalog.slice(0, 1))
    files = simulation.deliver(fewer)
    assert sum(one.table.num_rows for one in of(files, "feedback")) == 5
    assert of(files, "catalog")[0].table.num_rows == 1


def test_oddities_come_as_often_as_they_are_declared():
    assert len(hours(is_late)) == 1
    assert hours(is_late)[0] >= 7 * 24
    assert [hour // 168 for hour in hours(is_doubled)][:4] == [0, 1, 2, 3]
    assert [hour // 168 for hour in hours(is_retried)][:4] == [0, 1, 2, 3]
    assert not set(hours(is_doubled)) & set(hours(is_retried))
    assert hours(has_deploy)[:4] == [37, 85, 37 + 168, 85 + 168]
    plain = [what(PLAIN, hour) for what in (is_late, is_doubled, is_retried, has_deploy) for hour in MONTH]
    assert not any(plain)


def test_nothing_is_deployed_on_a_holiday():
    assert not has_deploy(replace(WORLD, holidays=(date(2026, 1, 6),)), 37)


def test_a_deploy_loses_nine_of_ten_requests_in_two_minutes():
    world = replace(WORLD, scenes=(Scene("home", 30_000.0),), items=30, length=2)
    hit, spared = (Simulation(one).lists(world.moment(37)) for one in (world, replace(world, oddities=False)))
    minute = lambda lists: (lists.times - micros(lists.start)) // 60_000_000  # noqa: E731
    counts, before = (np.bincount(minute(one), minlength=60) for one in (hit, spared))
    assert np.array_equal(np.delete(counts, [30, 31]), np.delete(before, [30, 31]))
    assert counts[30:32].sum() / before[30:32].sum() == pytest.approx(0.1, abs=0.04)


@pytest.mark.parametrize("log", ["exposures", "feedback"])
def test_files_of_a_late_hour_arrive_forty_minutes_late_and_in_order(
    log: str,
) -> None:
    hour = hours(is_late)[0]
    late, plain = (of(Simulation(one).files(one.moment(hour)), log) for one in (WORLD, PLAIN))
    first = {one.name: one.arrives for one in plain}
    assert {one.name for one in late} == set(first)
    assert {one.arrives - first[one.name] for one in late} == {timedelta(minutes=40)}
    behind = of(Simulation(WORLD).files(WORLD.moment(hour + 1)), log)
    assert behind[0].arrives == late[3].arrives == WORLD.moment(hour + 1) + timedelta(minutes=40, seconds=5)
    assert behind[3].arrives == WORLD.moment(hour + 2) + timedelta(seconds=5)


def test_a_retried_file_is_first_incomplete_and_then_complete():
    hour = hours(is_retried)[0]
    cut, whole = of(Simulation(WORLD).files(WORLD.moment(hour)), "exposures")[:2]
    assert cut.name == whole.name
    assert whole.arrives - cut.arrives == timedelta(minutes=2)
    assert cut.table.equals(whole.table.slice(0, whole.table.num_rows // 2))
    assert 0 < cut.table.num_rows < whole.table.num_rows


def test_the_readers_recognise_a_doubled_file_by_its_rows(tmp_path: Path):
    hour = hours(is_doubled)[0]
    *_, last, copy = of(Simulation(WORLD).files(WORLD.moment(hour)), "exposures")
    assert copy.name == f"copy-{last.name}"
    assert not copy.table.equals(last.table)
    settings = LogSettings(path=str(tmp_path / "*.parquet"))
    engine = Engine(duckdb.connect())
    time = TimeSettings(window=HOUR)
    entries = []
    for one in (last, copy):
        path = tmp_path / one.name
        pq.write_table(one.table, path)
        file = LogFile(str(path), path.stat().st_size, one.arrives)
        entries.append(index_file(engine, "exposures", settings, file, time, one.arrives))
    assert entries[0].rows == last.table.num_rows
    assert entries[0].content == entries[1].content
