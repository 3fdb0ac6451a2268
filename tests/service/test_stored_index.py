"""The index of a log in the history: after the first time, only what has changed is written."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from monitor.engines.duckdb import Engine
from monitor.history.errors import Fault, StoreError
from monitor.history.logstate import IndexedFile
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.logs.log import Log
from monitor.service.file_index import StoredIndex
from monitor.settings.logs import LogSettings, TimeSettings

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def engine(runtime: Runtime) -> Engine:
    return runtime.index


@pytest.fixture
def log(tmp_path: Path) -> Log:
    (tmp_path / "logs").mkdir()
    settings = LogSettings(path=str(tmp_path / "logs" / "*.csv"))
    return Log("exposures", settings, TimeSettings(window=HOUR))


def lists(hour: int, count: int) -> str:
    """A file of lists in the hour of this number."""
    start = START.replace(tzinfo=None) + hour * HOUR
    rows = [
        {"request_id": f"{hour}-{row}", "user_id": "u", "item_id": "i", "ts": start + timedelta(seconds=row)}
        for row in range(count)
    ]
    return pd.DataFrame(rows).to_csv(index=False)


def put(path: Path, text: str, now: datetime) -> None:
    path.write_text(text, "utf-8")
    os.utime(path, (now.timestamp(), now.timestamp()))


def held(store: Store) -> tuple[object, ...]:
    gaps = sorted(store.gaps("shop", "exposures"), key=lambda one: (one.status, one.path))
    return store.files("shop", "exposures"), gaps, store.watermarks("shop")


@pytest.mark.parametrize("seed", range(3))
def test_the_history_holds_the_same_index_as_if_all_of_it_were_written(
    seed: int, engine: Engine, store: Store, log: Log, tmp_path: Path
) -> None:
    draw, index = random.Random(seed), StoredIndex(store, "shop", "exposures")
    whole, seen = tmp_path / "whole.db", set()
    for step in range(30):
        now = START + step * HOUR + HOUR
        path = tmp_path / "logs" / f"{draw.randrange(8)}.csv"
        match draw.choice(["new", "new", "shorter", "broken", "gone", "forget", "nothing"]):
            case "new":
                put(path, lists(step, draw.randrange(1, 9)), now)
            case "shorter" if path.exists():
                put(path, "\n".join(path.read_text("utf-8").splitlines()[:2]) + "\n", now)
            case "broken":
                put(path, "no\x00header\n", now)
            case "gone":
                path.unlink(missing_ok=True)
            case "forget":
                log.forget(now - draw.randrange(2, 20) * HOUR)
        log.refresh(engine, now)
        index.write(log)
        with Store.open(whole) as other:
            StoredIndex(other, "shop", "exposures").write(log)
            assert held(store) == held(other), step
        seen |= {one.status for one in (*held(store)[0].values(), *held(store)[1])}
    assert {"read", "skipped", "lost"} <= seen


def test_a_new_file_writes_one_row(engine: Engine, store: Store, log: Log, tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path / "logs" / f"{number}.csv", lists(number, 3), START + 9 * HOUR)
    log.refresh(engine, START + 10 * HOUR)
    index = StoredIndex(store, "shop", "exposures")
    index.write(log)
    written: list[tuple[list[IndexedFile], list[IndexedFile]]] = []
    own = store.change_files

    def change_files(
        name: str, log: str, changed: Iterable[IndexedFile], gone: Iterable[IndexedFile], **more: Any
    ) -> None:
        written.append((list(changed), list(gone)))
        own(name, log, *written[-1], **more)

    store.change_files = change_files  # type: ignore[method-assign]
    put(tmp_path / "logs" / "5.csv", lists(5, 3), START + 10 * HOUR)
    (tmp_path / "logs" / "0.csv").unlink()
    log.refresh(engine, START + 11 * HOUR)
    index.write(log)
    ((changed, gone),) = written
    assert sorted((one.status, Path(one.path).name) for one in changed) == [
        ("read", "5.csv"),
        ("rotated", "0.csv"),
    ]
    assert [Path(one.path).name for one in gone] == ["0.csv"]


def test_after_a_failure_the_whole_index_is_written(
    engine: Engine, store: Store, log: Log, tmp_path: Path
) -> None:
    put(tmp_path / "logs" / "0.csv", lists(0, 3), START + HOUR)
    log.refresh(engine, START + HOUR)
    index = StoredIndex(store, "shop", "exposures")
    index.write(log)
    own = store.change_files

    def full(*_given: Any, **_more: Any) -> None:
        raise StoreError("the disk is full", Fault.FULL)

    store.change_files = full  # type: ignore[method-assign]
    put(tmp_path / "logs" / "1.csv", lists(1, 3), START + HOUR)
    log.refresh(engine, START + 2 * HOUR)
    with pytest.raises(StoreError, match="disk is full"):
        index.write(log)
    store.replace_files("shop", "exposures", [])  # another monitor was here, or nobody knows
    store.change_files = own  # type: ignore[method-assign]
    index.write(log)
    assert sorted(Path(path).name for path in store.files("shop", "exposures")) == ["0.csv", "1.csv"]
