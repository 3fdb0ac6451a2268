"""The benchmark of roll-ups: what it prints is what was measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks import rollups


def test_a_day_is_judged_by_windows_added_up_and_judged_from_the_log(tmp_path: Path) -> None:
    cost = rollups.measure(tmp_path, 1, 200)
    assert cost.windows > cost.keeping > 0
    assert cost.adding_up > 0
    assert cost.from_log > 0
    assert len(list((tmp_path / "hours/kept/small/rollups").glob("*/item_counts/*.parquet"))) == 24


def test_the_table_gives_shares_of_the_windows() -> None:
    last = rollups.table(rollups.Cost(3, 4000, 40.0, 1.6, 1.2, 2.0)).splitlines()[-1]
    assert last == "| 3 with 4,000 exposures a window | 40.0 s | 4.0% | 3.0% | 5.0% |"
