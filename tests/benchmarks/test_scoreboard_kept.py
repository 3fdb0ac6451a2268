"""Lines that are kept as runs end, and what is left of one that was cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scoreboard import kept


@pytest.mark.parametrize("cut", [b"", b'["c", 3', b'["c", "\xc3', b'["c"\n'])
def test_an_incomplete_line_is_skipped_and_the_next_one_starts_on_its_own_line(
    tmp_path: Path, cut: bytes
) -> None:
    path = tmp_path / "lines.jsonl"
    assert kept.read(path) == []
    kept.append(path, ["a", 1])
    kept.append(path, ["b", 2])
    with path.open("ab") as file:
        file.write(cut)
    assert kept.read(path) == [["a", 1], ["b", 2]]
    kept.append(path, ["d", 4])
    assert kept.read(path) == [["a", 1], ["b", 2], ["d", 4]]
