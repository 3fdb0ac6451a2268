"""A process that is killed while it records leaves each window as it was before or as it is after."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitor.history.store import Store
from tests.forked import Forked

RECORDER = Path(__file__).with_name("recorder.py").read_text("utf-8")
WINDOWS = 150
KILLS = 12


class Recorder:
    """A process that records windows and says so before each."""

    def __init__(self, url: str, folder: Path) -> None:
        self._said = folder / f"said{len(list(folder.glob('said*')))}"
        error = self._said.with_suffix(".error")
        self.process = Forked(
            [url, WINDOWS], cwd=folder, env=os.environ, out=self._said, err=error, code=RECORDER
        )

    def wait_for(self, windows: int) -> None:
        """Until it records the next window after so many."""
        while not self._said.exists() or self._said.read_text().count("recording") <= windows:
            assert self.process.poll() is None
            time.sleep(0.001)

    def finish(self) -> None:
        assert self.process.wait(120) == 0, self._said.with_suffix(".error").read_text()


def kill_in_the_middle(url: str, folder: Path, windows: int) -> None:
    """Kill it while it records the window after so many, at any moment of that."""
    recorder, begun = Recorder(url, folder), time.monotonic()
    recorder.wait_for(windows)
    time.sleep(random.uniform(0.0, (time.monotonic() - begun) / (windows + 1) / 2))
    recorder.process.kill()
    recorder.process.wait(30)


def test_a_recorder_killed_many_times_writes_the_same_history_as_an_undisturbed_one(
    url: str, tmp_path: Path, dump: Callable[[Store], dict[str, list[Any]]]
) -> None:
    random.seed(7)
    undisturbed = f"sqlite:///{tmp_path}/undisturbed.sqlite"
    Recorder(undisturbed, tmp_path).finish()
    killed_at = set()
    for _ in range(KILLS):
        kill_in_the_middle(url, tmp_path, windows=random.randrange(2 * WINDOWS // KILLS))
        with Store.open(url) as store:
            assert_whole(dump(store))
            killed_at.add(len(store.evaluated("shop", "rules")) + store.counters().get(CORRECTIONS, 0))
    assert len(killed_at) > KILLS // 2
    Recorder(url, tmp_path).finish()
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
        values.setdefault((row[1], row[2]), set()).add(round(row[9] % 1, 3))
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
