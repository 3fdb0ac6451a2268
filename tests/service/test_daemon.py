"""The real daemon over logs that grow: when windows close, what late data changes, who stops whom."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.processes import Monitor, exposures, get, land, monitor, wait_for

MINUTE = timedelta(minutes=1)
SLOW_QUERY = "SELECT one.item_id FROM " + ", ".join(
    f"(SELECT item_id, ts FROM {{batch}} WHERE item_id = 'slow') {name}"
    for name in ("one", "two", "three", "four", "five", "six")
)
SLOW_QUERY += " WHERE hash(one.ts, two.ts, three.ts, four.ts, five.ts, six.ts) = 1"


def recommender(name: str, **settings: Any) -> dict[str, Any]:
    return {
        "name": name,
        "logs": {"exposures": {"path": f"logs/{name}/*.parquet"}},
        "window": "1m",
        "every": "1s",
        "lateness": "10s",
        "max_wait": "1h",
        "rules": [{"pack": "blacklist", "parameters": {"blacklist": "blacklist.csv"}}],
        **settings,
    }


def write_suite(path: Path, **queries: str) -> None:
    expectations = [
        {
            "type": "unexpected_rows_expectation",
            "kwargs": {"unexpected_rows_query": query},
            "meta": {"rule": name, "kind": "hard", "table": "exposures"},
        }
        for name, query in queries.items()
    ]
    path.write_text(yaml.safe_dump({"name": "ours", "expectations": expectations}), "utf-8")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitor]:
    """One daemon for all tests of this file, with a recommender for each."""
    folder = tmp_path_factory.mktemp("house")
    (folder / "blacklist.csv").write_text("item_id\nforbidden\n")
    write_suite(folder / "slow.yaml", slow=SLOW_QUERY)
    config = {
        "log": {"format": "json", "level": "debug"},
        "recommenders": [
            recommender("steady"),
            recommender("stalled", window="2s", lateness="1s", max_wait="3s"),
            recommender("corrected"),
            recommender("hurried", rules=[{"suite": "slow.yaml"}], deadline="8s"),
            recommender("nosuite", rules=[{"suite": "gone.yaml"}]),
            recommender("nofolder"),
        ],
    }
    with monitor(folder, config) as running:
        yield running


def this_minute() -> datetime:
    """The start of the present minute. Rows may be ahead of the clock: a log's own time is what counts."""
    now = datetime.now(UTC)
    return now - timedelta(seconds=now.second, microseconds=now.microsecond)


def looked_again(house: Monitor, name: str) -> None:
    """Wait until the recommender has run twice from now on."""
    before = house.value("recsys_scheduler_runs_total", recommender=name, outcome="ok") or 0
    wait_for(
        f"two more runs of {name}",
        lambda: (
            (house.value("recsys_scheduler_runs_total", recommender=name, outcome="ok") or 0) >= before + 2
        ),
    )


def windows(house: Monitor, name: str, **labels: str) -> float | None:
    return house.value("recsys_windows_total", recommender=name, **labels)


def test_it_is_ready_and_alive(house: Monitor) -> None:
    assert get(f"{house.url}/-/healthy")[0] == get(f"{house.url}/-/ready")[0] == 200


def test_a_window_is_judged_once_the_log_has_passed_its_end_and_the_lateness(house: Monitor) -> None:
    first = this_minute()
    land(house.folder / "logs/steady/a.parquet", exposures(first, 60))
    land(house.folder / "logs/steady/b.parquet", exposures(first + MINUTE, 9))  # up to 8.1 s past its end
    wait_for("the file to be seen", house.has("recsys_log_files", 2, recommender="steady"))
    looked_again(house, "steady")
    assert windows(house, "steady") == 0
    assert house.value("recsys_last_window_end_timestamp_seconds", recommender="steady") is None
    land(house.folder / "logs/steady/c.parquet", exposures(first + MINUTE, 12))
    wait_for("the window to be judged", lambda: windows(house, "steady", status="ok") == 1)
    looked_again(house, "steady")
    assert windows(house, "steady") == 1
    assert house.value("recsys_rule_status", recommender="steady", rule="blacklist", status="ok") == 1
    end = house.value("recsys_last_window_end_timestamp_seconds", recommender="steady")
    assert end == (first + MINUTE).timestamp()
    reached = house.value("recsys_log_watermark_timestamp_seconds", recommender="steady")
    assert reached is not None
    assert end + 10 < reached < end + 12


def test_a_log_that_stops_makes_its_windows_late_and_a_violation_seen_in_them_stays(house: Monitor) -> None:
    folder = house.folder / "logs/stalled"
    land(folder / "a.parquet", exposures(datetime.now(UTC), 0.1, items=["i1", "forbidden"]))
    wait_for("the window with the rows", lambda: windows(house, "stalled", status="violated") == 1)
    coverage = {"recommender": "stalled", "by": "pv"}
    wait_for("a later window, without rows", lambda: house.value("recsys_coverage_ratio", **coverage) is None)
    assert house.value("recsys_metric_status", metric="coverage", status="late", **coverage) == 1
    assert house.value("recsys_rule_violations", recommender="stalled", rule="blacklist") is None
    # What was seen stands until a window clears it.
    standing = {"recommender": "stalled", "rule": "blacklist", "status": "violated"}
    assert house.value("recsys_rule_status", **standing) == 1
    wait_for("a late window", lambda: (windows(house, "stalled", status="late") or 0) >= 1)


def test_late_data_corrects_the_history_and_is_counted_but_no_second_page(house: Monitor) -> None:
    first = this_minute() - 3 * MINUTE
    folder = house.folder / "logs/corrected"
    rule = {"recommender": "corrected", "rule": "blacklist"}
    land(folder / "a.parquet", exposures(first, 60))
    land(folder / "b.parquet", exposures(first + MINUTE, 30))
    wait_for("the first window", lambda: windows(house, "corrected", status="ok") == 1)
    assert house.value("recsys_rule_violations_total", **rule) == 0
    land(folder / "late.parquet", exposures(first, 50, lists=3, items=["forbidden"]))
    wait_for("the correction", house.has("recsys_corrections_total", recommender="corrected"))
    assert house.value("recsys_rule_violations_total", **rule) == 1
    assert windows(house, "corrected", status="violated") == 1
    land(folder / "later.parquet", exposures(first, 40, lists=4, items=["forbidden", "forbidden"]))
    wait_for("another one", house.has("recsys_corrections_total", 2, recommender="corrected"))
    assert house.value("recsys_rule_violations_total", **rule) == 1
    (kept,) = [
        line
        for line in house.export()
        if line["recommender"] == "corrected" and line["labels"].get("rule") == "blacklist"
    ]
    assert (kept["status"], kept["violations"], kept["samples"]) == ("violated", 3, 34)
    assert {row["item_id"] for row in kept["evidence"]} == {"forbidden"}


def test_a_check_past_its_deadline_is_counted_and_the_next_window_is_judged(house: Monitor) -> None:
    first = this_minute()
    folder = house.folder / "logs/hurried"
    land(folder / "a.parquet", exposures(first, 60, lists=150, items=["slow"] * 300))
    land(folder / "b.parquet", exposures(first + MINUTE, 60))
    runs = {"recommender": "hurried", "check": "rules"}
    wait_for("an interruption", house.has("recsys_check_runs_total", status="interrupted", **runs))
    assert house.value("recsys_rule_status", recommender="hurried", rule="slow", status="error") == 1
    assert house.value("recsys_coverage_ratio", recommender="hurried", by="pv") == 1
    land(folder / "c.parquet", exposures(first + 2 * MINUTE, 60))
    wait_for("a good window", house.has("recsys_check_runs_total", status="ok", **runs))
    assert house.value("recsys_rule_status", recommender="hurried", rule="slow", status="ok") == 1


def test_a_recommender_that_cannot_run_is_reported_and_does_not_stop_others(house: Monitor) -> None:
    for name, why in (("nosuite", "gone.yaml"), ("nofolder", "no file matches")):
        wait_for(f"{name} to say so", house.has("recsys_recommender_error", recommender=name))
        assert why in house.page(f"/recommenders/{name}")
    assert house.value("recsys_recommender_error", recommender="steady") == 0
    looked_again(house, "steady")
    land(house.folder / "logs/nofolder/a.parquet", exposures(this_minute(), 60))
    wait_for("the folder to be there", house.has("recsys_recommender_error", 0, recommender="nofolder"))


def test_every_log_line_is_one_json_object(house: Monitor) -> None:
    assert house.running is not None
    lines = [json.loads(line) for line in house.running.err.read_text("utf-8").splitlines()]
    assert {"time", "level", "logger", "message"} <= set.intersection(*(set(line) for line in lines))
    assert any("nosuite cannot run" in line["message"] for line in lines)
    assert not [line for line in lines if "traceback" in line]


def test_a_restart_keeps_counters_and_verdicts_and_judges_nothing_twice(house: Monitor) -> None:
    def counters() -> dict[Any, float]:
        kept = ("recsys_windows_total", "recsys_rule_violations_total", "recsys_corrections_total")
        return {
            key: value
            for key, value in house.series().items()
            if key[0] in kept and ("recommender", "stalled") not in key[1]  # its clock goes on
        }

    before, judged = counters(), house.value("recsys_rule_samples", recommender="steady")
    runs = house.value("recsys_scheduler_runs_total", recommender="steady", outcome="ok")
    assert house.running is not None
    house.running.send(15)
    assert house.running.ended(10) == 0
    house.start()
    assert house.value("recsys_rule_samples", recommender="steady") == judged
    looked_again(house, "steady")
    assert counters() == before
    assert (house.value("recsys_scheduler_runs_total", recommender="steady", outcome="ok") or 0) > (runs or 0)
