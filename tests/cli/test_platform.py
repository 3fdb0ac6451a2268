"""`recsys-monitor platform`: the table, JSON, exit codes, and wrong usage with what to do."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
import yaml

from monitor.cli.platform import watched
from monitor.platform.system_log import SystemLog
from tests.cli.kept import run_keeping
from tests.platform import shop

DAYS = 37
SHIFTED = DAYS - 7


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("platform")
    shop.world_of_arms(folder, DAYS, SHIFTED)
    with closing(sqlite3.connect(folder / "ads.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE ads (day TEXT, n INTEGER)")
        values = [((shop.FIRST + day * shop.DAY).date().isoformat(), 40) for day in range(DAYS)]
        connection.executemany("INSERT INTO ads VALUES (?, ?)", values)
    recommender = shop.config(Path("."), experiments=[shop.RANKER])
    ads = {"url": "sqlite:///ads.sqlite", "query": "SELECT day, n AS orders FROM ads WHERE day >= :first"}
    recommender["platform"]["systems"].append({"name": "ads", "sql": ads})
    write(folder / "config.yaml", recommender)
    broken = json.loads(json.dumps(recommender))
    broken["platform"]["systems"][1]["sql"]["query"] = "SELECT missing_column"
    write(folder / "broken.yaml", broken)
    write(folder / "plain.yaml", {**recommender, "platform": None})
    return folder


def write(path: Path, recommender: object) -> None:
    path.write_text(yaml.safe_dump({"state": "state", "recommenders": [recommender]}), "utf-8")


def command(world: Path, *arguments: str, config: str = "config.yaml"):
    return run_keeping("platform", "--config", config, *arguments, cwd=world, COLUMNS="80")


def test_the_table_has_every_day_the_changes_and_the_verdicts(world: Path) -> None:
    ran = command(world)
    assert (ran.code, ran.err) == (1, "")
    lines = ran.out.splitlines()
    assert lines[0] == "shop  2026-03-04 to 2026-04-07, days of UTC"
    assert sum(line.startswith("2026-0") for line in lines) == 35
    assert all(len(line) <= 80 for line in lines)
    assert any(line.startswith("✗ zero-sum  orders search") for line in lines)
    assert any(line.startswith("✓ ok        orders ads") for line in lines)
    assert any(line.startswith("✗ zero-sum  orders experiment ranker, arm treatment") for line in lines)
    assert "without ads, whose users are not" in " ".join(ran.out.split())
    assert not (world / "state").exists()


def test_json_has_the_shape_of_check_and_the_experiments_difference_is_that_of_its_arms(world: Path) -> None:
    ran = command(world, "--format", "json")
    found = json.loads(ran.out)
    assert ran.code == 1
    amounts = [one for one in found if one["metric"] == "platform_amount"]
    assert len(amounts) == 35 * 4
    difference = {one["labels"]["system"]: one for one in found if one["metric"] == "platform_arm_difference"}
    assert set(difference) == {"recommender", "search", "platform"}
    own, platform = difference["recommender"], difference["platform"]
    assert own["lower"] > 0
    assert platform["value"] == pytest.approx(own["value"] + difference["search"]["value"])
    assert own["samples"] == 400
    gain = next(one for one in found if one["metric"] == "substitution_in_experiment")
    assert gain["value"] == pytest.approx(platform["value"] / own["value"])
    assert gain["upper"] < 0.5


def test_a_span_before_the_shift_is_ok_and_shorter_spans_are_not_judged(world: Path) -> None:
    before = command(world, "--to", "2026-03-31", "--format", "json")
    judged = [one for one in json.loads(before.out) if one["metric"] == "substitution"]
    assert {one["status"] for one in judged} == {"ok"}
    short = command(world, "--from", "2026-03-20", "--to", "2026-03-25", "--format", "json")
    assert {one["status"] for one in json.loads(short.out) if one["metric"] == "substitution"} == {"no_data"}
    assert len([one for one in json.loads(short.out) if one["metric"] == "platform_amount"]) == 5 * 4


def test_a_broken_query_is_an_error_of_its_system_and_the_exit_code_says_so(world: Path) -> None:
    ran = command(world, "--to", "2026-03-31", config="broken.yaml")
    assert ran.code in (1, 3)
    assert "ads: the query failed: no such column: missing_column" in " ".join(ran.out.split())
    assert "Traceback" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("arguments", "config", "why"),
    [
        ((), "plain.yaml", "no recommender of this config has a `platform`"),
        (("-r", "shp"), "config.yaml", "shop"),
        (("--from", "2026-03-20", "--to", "2026-03-19"), "config.yaml", "must be later than --from"),
        (("--from", "2200-01-01"), "config.yaml", "must lie between 1970 and 2199"),
        (("--from", "2026-04-08"), "config.yaml", "no whole day of this span is over"),
        (("--from", "2020-01-01"), "config.yaml", "a span has at most 366 days"),
    ],
)
def test_wrong_usage_ends_with_what_to_do(world: Path, arguments, config, why) -> None:
    ran = command(world, *arguments, config=config)
    assert ran.code == 2
    assert why in ran.err
    assert ran.out == ""


def test_a_span_that_is_too_long_is_refused_before_windows_are_added_up(world, monkeypatch) -> None:
    kept: list[object] = []
    monkeypatch.chdir(world)
    monkeypatch.setattr(SystemLog, "keep", lambda _self, _engine, windows: kept.append(windows))
    with pytest.raises(typer.BadParameter, match="at most 366 days"):
        watched(Path("config.yaml"), None, datetime(2020, 1, 1, tzinfo=UTC), None)
    assert not kept


@pytest.mark.parametrize("zone", ["Etc/GMT+6", "UTC", "Etc/GMT-6"])
def test_dates_are_those_of_the_platforms_zone(world: Path, zone: str) -> None:
    whole = yaml.safe_load((world / "config.yaml").read_text())
    whole["recommenders"][0]["platform"]["timezone"] = zone
    name = f"{zone.partition('/')[2] or zone}.yaml"
    (world / name).write_text(yaml.safe_dump(whole))
    ran = command(world, "--from", "2026-03-10", "--to", "2026-03-20", config=name)
    assert ran.out.splitlines()[0] == f"shop  2026-03-10 to 2026-03-19, days of {zone}"
