"""The benchmark of the history's size counts what the daemon records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.history_size import record, sizes, table


def test_the_bytes_of_each_table_are_shown_beside_those_of_the_file(tmp_path: Path) -> None:
    path = record(tmp_path, 12)
    shown = table(path)
    assert shown.startswith("12 hours, 77 series with bands, ")
    whole, results = path.stat().st_size, int(re.findall(r"([\d,]+) results", shown)[0].replace(",", ""))
    assert results > 12 * 3 * 77
    assert f"| all | {whole / 1e6:.2f} | | {whole / results:.2f} |" in shown
    if not sizes(path):
        pytest.skip("this SQLite does not count the bytes of a table")
    assert {"results", "windows", "signals"} < set(re.findall(r"^\| (\w+) \|", shown, re.MULTILINE))
