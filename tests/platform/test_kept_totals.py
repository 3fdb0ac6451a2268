"""The kept totals of a log: what is added up once is there after a restart, unless its file is damaged."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.platform.kept import KeptTotals
from monitor.settings.platform import TotalSettings
from tests.platform.shop import FIRST

HOUR = timedelta(hours=1)
FIRST_HOUR, SECOND = (Window(FIRST + number * HOUR, FIRST + (number + 1) * HOUR) for number in range(2))


@pytest.mark.parametrize("damage", ["cut", "zeros"])
def test_a_file_that_a_crash_has_damaged_is_a_window_that_is_not_kept(tmp_path: Path, damage: str) -> None:
    def kept() -> KeptTotals:
        return KeptTotals(tmp_path, "search", [TotalSettings()], by_user=False, read_as=None)

    before = kept()
    before.keep(Engine(duckdb.connect()), None, {FIRST_HOUR: "a", SECOND: "b"})
    assert set(kept().known(HOUR)) == {FIRST_HOUR, SECOND}
    path = before.path(SECOND)
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    pages = len(content) - footer
    path.write_bytes(content[: len(content) // 2] if damage == "cut" else bytes(pages) + content[-footer:])
    assert set(kept().known(HOUR)) == {FIRST_HOUR}
