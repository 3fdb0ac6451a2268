"""The engines of one worker: what they keep between windows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.judging.runtime import Runtime


def resident() -> float:
    """MiB of this process that belong to no file."""
    status = Path("/proc/self/status").read_text("ascii")
    found = re.search(r"RssAnon:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 1024


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    runtime = Runtime(tmp_path / "spill", memory="512MiB", threads=2)
    yield runtime
    runtime.close()


def test_the_memory_of_a_window_goes_back_to_the_operating_system(runtime: Runtime) -> None:
    cursor = runtime.engine.cursor
    before = resident()
    for number in range(5):
        rows = f"SELECT range i, hash(range) h FROM range({2_000_000 + number})"
        cursor.execute(f"CREATE OR REPLACE TABLE much AS {rows}")
        cursor.execute("SELECT count(DISTINCT h) FROM much").fetchall()
    cursor.execute("DROP TABLE much")
    kept = resident() - before
    runtime.give_back()
    left = resident() - before
    assert kept > 30, "nothing to give back: the test says nothing"
    assert left < kept / 2


def test_giving_back_leaves_tables_and_limit_as_they_are(runtime: Runtime) -> None:
    cursor = runtime.engine.cursor
    setting = "SELECT current_setting('memory_limit')"
    cursor.execute("CREATE TABLE kept AS SELECT range i FROM range(1000)")
    before = cursor.execute(setting).fetchone()
    runtime.give_back()
    assert cursor.execute(setting).fetchone() == before == ("512.0 MiB",)
    assert cursor.execute("SELECT sum(i) FROM kept").fetchone() == (499500,)


def test_a_small_window_takes_one_thread_and_a_large_one_all(runtime: Runtime) -> None:
    def threads() -> int:
        found = runtime.engine.cursor.execute("SELECT current_setting('threads')").fetchone()
        assert found is not None
        return int(found[0])

    assert threads() == 2
    for rows, expected in ((0, 1), (250_000, 1), (250_001, 2), (10_000_000, 2), (4_000, 1)):
        runtime.fit(rows)
        assert threads() == expected, rows
    runtime.renew()
    assert threads() == 2
    runtime.fit(4_000)
    assert threads() == 1
