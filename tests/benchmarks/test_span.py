"""The benchmarks of many windows and of many recommenders: what they print is what was measured."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks import fleet, span


def test_a_span_is_judged_as_a_user_would_and_again_by_hand(tmp_path: Path) -> None:
    span.write(tmp_path, 2, 400)
    cost = span.judge(tmp_path, 2, 400)
    assert cost.windows == 2
    assert cost.seconds > 0
    assert cost.processor > cost.by_hand > 0
    assert cost.mebibytes > 50
    assert (tmp_path / "state" / "history.sqlite").stat().st_size > 0


def test_the_table_of_a_span_gives_the_cost_of_one_window() -> None:
    last = span.table(span.Cost(720, 4000, 60.4, 108.0, 18.0, 420.2)).splitlines()[-1]
    assert last == "| 720 of 4,000 exposures | 60 s | 0.15 s | 0.025 s | 6.0 | 420 MiB |"


def test_the_table_of_a_fleet_gives_its_load_and_memory(monkeypatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    found = fleet.Measured(21.0, 120.0, 300.0, 900.0, 1200, 0.45, (355.2, 150.0, 224.0))
    last = fleet.table(found, 200, 2000).splitlines()[-1]
    assert last.startswith("| 200 with 2,000 exposures in five minutes | 21 s | 120 s | 0.45 s | 30% |")
    assert last.endswith("| 729 MiB: daemon 355, others 150, 224 |")


def test_a_span_with_windows_that_were_left_out_has_no_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows of the future are not judged."""
    monkeypatch.setattr(span, "START", datetime(2099, 1, 1, tzinfo=UTC))
    span.write(tmp_path, 2, 400)
    with pytest.raises(RuntimeError, match="backfill ended with 3, so it has not judged every window"):
        span.judge(tmp_path, 2, 400)
