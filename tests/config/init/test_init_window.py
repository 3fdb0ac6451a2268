"""The window follows from the pace of the whole log, not of its first rows."""

from __future__ import annotations

from datetime import timedelta

import duckdb
import numpy as np
import pandas as pd
import pytest
import yaml

from monitor.config.init import measured_pace
from monitor.config.init.guess import guess_columns
from monitor.config.init.measured_pace import measure_pace
from monitor.config.init.profile import profile
from monitor.config.init.traits import traits
from monitor.config.init.wizard import write_config
from monitor.core import columns as c
from monitor.engines.duckdb import Engine
from monitor.settings.logs import LogSettings
from tests.config.exposure_logs import START

ROWS = 400_000  # requests of one item within a day, about 4,170 in 15 minutes


def _requests(rows: int = ROWS) -> pd.DataFrame:
    """A day of requests in the order of their users, as an export writes them."""
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "request_id": np.arange(rows),
            "user_id": np.sort(rng.integers(0, 5_000, rows)),
            "ts": pd.Timestamp(START) + pd.to_timedelta(rng.integers(0, 86_400, rows), unit="s"),
            "item_id": rng.integers(0, 900, rows),
        }
    )


def _window(text: str) -> tuple[str, str]:
    line = next(line for line in text.splitlines() if line.startswith("    window: "))
    return yaml.safe_load(text)["recommenders"][0]["window"], line


@pytest.mark.parametrize("files", [1, 16])
def test_the_pace_counts_every_row_of_the_log(tmp_path, files):
    rows = _requests()
    for number, part in enumerate(np.array_split(rows.index, files)):
        rows.loc[part].to_parquet(tmp_path / f"part-{number:02d}.parquet")
    window, line = _window(write_config([str(tmp_path)], tmp_path).text)
    assert window == "5m"
    assert f"400,000 requests in 1d (counted in the whole log, {files} file" in line


def _measured(tmp_path, seconds):
    with duckdb.connect() as connection:
        engine = Engine(connection)
        found = profile(engine, LogSettings(path=str(tmp_path / "*.parquet")))
        guesses = guess_columns(c.EXPOSURES, found, engine.backend.table(found.table))
        settings = LogSettings(
            path=str(tmp_path / "*.parquet"), columns={role: one.column for role, one in guesses.items()}
        )
        sample = traits(engine, found.table, settings, guesses)
        return measure_pace(connection, found, settings, guesses, sample, seconds)


def test_the_pace_of_a_slow_log_is_estimated_from_some_files(tmp_path, monkeypatch):
    rows = _requests(80_000)
    for number, part in enumerate(np.array_split(rows.sort_values("ts").index, 40)):
        rows.loc[part].to_parquet(tmp_path / f"part-{number:02d}.parquet")
    counted = measured_pace._count
    asked = []

    def slow_for_all(*arguments):
        asked.append(len(arguments[-1]))
        if len(arguments[-1]) == 40:
            raise duckdb.InterruptException("as the deadline does")
        return counted(*arguments)

    monkeypatch.setattr(measured_pace, "_count", slow_for_all)
    pace = _measured(tmp_path, 20)
    assert asked == [40, 8]
    assert pace.basis == "estimated by size from 8 of 40 files"
    assert pace.requests == pytest.approx(80_000, rel=0.05)
    assert pace.span == pytest.approx(timedelta(days=1), abs=timedelta(minutes=5))


def test_the_pace_of_a_very_slow_log_comes_from_the_sample(tmp_path):
    _requests(2_000).to_parquet(tmp_path / "part.parquet")
    pace = _measured(tmp_path, 0)
    assert pace.requests == 2_000
    assert "2,000 rows of the log; this is wrong if" in pace.basis
