"""Experiments over the logs of several systems whose users are not all known."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from monitor.cli.platform import watched
from monitor.core.results import Result, Status
from tests.platform import shop

DAYS = 10


def judged(
    folder: Path, change: Any, log: str = "search", start: str | None = None, **platform: Any
) -> dict[str, Result]:
    """The results of the experiment after a change of every file of a log, by metric and system."""
    shop.world_of_arms(folder, DAYS, DAYS)
    for path in (folder / log).glob("*.parquet"):
        change(pd.read_parquet(path)).to_parquet(path)
    one = shop.config(folder, platform, experiments=[{**shop.RANKER, "start": start}])
    config = {"state": str(folder / "state"), "engine": {"threads": 1}, "recommenders": [one]}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (report,), _ = watched(folder / "config.yaml", None, None, None)
    found = [one.result for one in report.last if "experiment" in one.result.labels]
    return {one.labels.get("system", "verdict"): one for one in found}


def without(every: int) -> Any:
    """A change that takes the user from every so manieth row."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        table.loc[table.index % every == 0, "user_id"] = None
        return table

    return change


@pytest.mark.parametrize(
    "change", [lambda table: table.drop(columns="user_id"), without(1)], ids=["no column", "null"]
)
def test_a_log_without_users_is_not_a_system_without_actions(tmp_path: Path, change: Any) -> None:
    found = judged(tmp_path, change)
    assert {one.status for one in found.values()} == {Status.NO_DATA}
    assert found["verdict"].detail == "the rows of search have no user, and no other system has a log"


def test_a_recommender_without_users_has_no_experiment(tmp_path: Path) -> None:
    found = judged(tmp_path, without(1), "feedback")
    assert {one.status for one in found.values()} == {Status.NO_DATA}
    assert found["verdict"].detail == "the rows of the recommender's log have no user"


def test_a_log_without_users_beside_another_is_left_out_and_named(tmp_path: Path) -> None:
    mail = {**shop.search(tmp_path), "name": "mail"}
    mail["log"] = {**mail["log"], "path": f"{tmp_path}/mail/*.parquet"}
    shop.world_of_arms(tmp_path, DAYS, DAYS)
    (tmp_path / "search").rename(tmp_path / "mail")
    found = judged(tmp_path, without(1), "mail", systems=[shop.search(tmp_path), mail])
    assert found["mail"].status is Status.NO_DATA
    assert found["mail"].detail == "the rows of its log have no user"
    assert found["verdict"].value is not None
    assert "without mail, whose users are not known" in found["verdict"].detail


def test_many_rows_without_a_user_give_no_verdict(tmp_path: Path) -> None:
    found = judged(tmp_path, without(2))
    assert {name: one.status for name, one in found.items()} == {
        "recommender": Status.OK,
        "search": Status.NO_DATA,
        "platform": Status.NO_DATA,
        "verdict": Status.NO_DATA,
    }
    assert found["verdict"].detail == "50.0 % of the orders of search have no known user, more than 5.0 %"


def test_few_rows_without_a_user_are_named_beside_the_verdict(tmp_path: Path) -> None:
    found = judged(tmp_path, without(50))
    assert found["verdict"].value is not None
    for name in ("verdict", "recommender"):
        assert re.search(r"; without a known user: 2\.\d % of search", found[name].detail)


def since(day: int, hour: int = 0) -> Any:
    """A change that keeps the rows from a time on."""
    start = (shop.FIRST + day * shop.DAY).replace(tzinfo=None) + timedelta(hours=hour)
    return lambda table: table[table["ts"] >= start]


@pytest.mark.parametrize("start", [None, "2026-03-02"])
def test_a_small_part_of_an_experiment_gives_no_verdict(tmp_path: Path, start: str | None) -> None:
    found = judged(tmp_path, since(7), start=start)
    assert {one.status for one in found.values()} == {Status.NO_DATA}
    every = 40 if start else 39  # a log's first window is never added up: its beginning may be gone
    missing = every - 11
    assert found["verdict"].detail.startswith(
        f"some system lacks {missing} of the experiment's {every} windows, more than 10.0 %; "
        "from 2026-03-09 06:00Z to 2026-03-12 00:00Z"
    )


def test_an_experiment_that_starts_later_misses_no_window(tmp_path: Path) -> None:
    found = judged(tmp_path, since(7), start="2026-03-10")
    assert found["verdict"].status is not Status.NO_DATA
    assert "lacks" not in found["verdict"].detail


def test_few_missing_windows_are_named_beside_the_verdict(tmp_path: Path) -> None:
    found = judged(tmp_path, since(0, 6))
    for name in ("verdict", "recommender"):
        assert found[name].status is not Status.NO_DATA
        assert "; some system lacks 1 of the experiment's 39 windows" in found[name].detail
