"""A process that is killed while it records leaves each window as it was before or as it is after."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitor.history.store import Store

RECORDER = Path(__file__).with_name("recorder.py")
WINDOWS = 150
KILLS = 12


def start(url: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(RECORDER), url, str(WINDOWS)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_killed_again_and_again_the_history_ends_as_that_of_an_undisturbed_run(
    url: str, tmp_path: Path, dump: Callable[[Store], dict[str, list[Any]]]
) -> None:
    random.seed(7)
    undisturbed = f"sqlite:///{tmp_path}/undisturbed.sqlite"
    process, began = start(undisturbed), time.monotonic()
    assert process.wait(120) == 0
    longest = 2 * (time.monotonic() - began) / KILLS  # of this machine, as busy as it is
    killed_at = set()
    for _ in range(KILLS):
        process = start(url)
        time.sleep(random.uniform(0.0, longest))
        process.kill()
        process.wait(30)
        with Store.open(url) as store:
            assert_whole(dump(store))
            killed_at.add(len(store.evaluated("shop", "rules")) + store.counters().get(CORRECTIONS, 0))
    assert len(killed_at) > KILLS // 3, "hardly any kill came while windows were being recorded"
    process = start(url)
    assert process.wait(120) == 0
    with Store.open(undisturbed) as other, Store.open(url) as store:
        assert dump(store) == dump(other)
        assert list(store.results()) == list(other.results())


CORRECTIONS = ("recsys_corrections_total", (("recommender", "shop"),))


def assert_whole(found: dict[str, list[Any]]) -> None:
    """Every window has all of its results, all of one revision, and the counters fit the windows."""
    windows = {(row[1], row[2]): row for row in found["windows"]}
    assert len(found["results"]) == sum(30 if check == "rules" else 3 for check, _ in windows)
    assert len(found["evidence"]) == 4 * len(found["results"])
    revisions = {place: row[-2] for place, row in windows.items()}
    values: dict[Any, set[float]] = {}
    for row in found["results"]:
        values.setdefault((row[1], row[2]), set()).add(round(row[10] % 1, 3))
    assert values == {place: {revision / 10} for place, revision in revisions.items()}
    contents = {(row[1], row[2], row[-1]["revision"]) for row in found["evidence"]}
    assert contents == {(*place, revision) for place, revision in revisions.items()}
    counted = {(name, labels.get("status", "")): value for name, labels, value in found["counters"]}
    hours = {start for _, start in windows}
    if hours:
        assert counted["recsys_windows_total", "violated"] == len(hours)
        assert counted["recsys_corrections_total", ""] == sum(revisions["rules", start] for start in hours)
    sizes = {row[3] for row in found["log_files"]}
    assert len(sizes) <= 1
    assert len(found["log_files"]) in (0, 100)
