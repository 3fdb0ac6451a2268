"""Files whose rows all lie in a span are read without looking at their times, and no row is read too much."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.logs.source import Source
from tests.logs.conftest import NOW

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = Window(START, START + timedelta(hours=1))
DAY = Window(START - timedelta(hours=10), START + timedelta(hours=14))


def rows(*minutes: float, request: str | None = "r") -> pd.DataFrame:
    ts = [pd.Timestamp(START) + pd.Timedelta(minutes=one) for one in minutes]
    return pd.DataFrame({"request_id": request, "user_id": "u", "item_id": "i", "ts": ts})


def loaded(engine: Engine, source: Source, span: Window) -> tuple[int, bool]:
    """The rows of a span, and whether their times were looked at."""
    source.logs["exposures"].refresh(engine, NOW)
    table = source.load(engine, "exposures", span, table="span")
    assert table is not None
    ((query,),) = engine.cursor.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'span'").fetchall()
    return int(table.count().execute()), f"{span.start:%Y-%m-%d %H:%M:%S}" in str(query)


Write = Callable[..., Path]
SourceOf = Callable[..., Source]


def test_files_in_the_span_are_read_whole(engine: Engine, written: Write, source_of: SourceOf) -> None:
    written("a.parquet", rows(0, 30))
    written("b.parquet", rows(59.99))
    assert loaded(engine, source_of(), HOUR) == (3, False)
    assert loaded(engine, source_of(), DAY) == (3, False)


@pytest.mark.parametrize("other", [-1, 60, 60 * 24 * 7, -60 * 24 * 365])
def test_a_file_with_a_row_outside_is_filtered(
    engine: Engine, written: Write, source_of: SourceOf, other: float
) -> None:
    written("a.parquet", rows(0, 30))
    written("b.parquet", rows(10, other))
    assert loaded(engine, source_of(), HOUR) == (3, True)


def test_a_row_without_a_time_is_not_read(engine: Engine, written: Write, source_of: SourceOf) -> None:
    ancient = rows(0, 30)
    ancient["ts"] = ancient["ts"].dt.tz_localize(None).astype("datetime64[us]")
    ancient.loc[1, "ts"] = datetime(500, 1, 1)
    written("a.parquet", ancient)
    assert loaded(engine, source_of(), HOUR) == (1, True)
    written("a.parquet", pd.concat([rows(0), rows(1, request=None)]))
    assert loaded(engine, source_of(), HOUR) == (1, True)


def test_a_row_later_than_its_file_is_not_read(engine: Engine, written: Write, source_of: SourceOf) -> None:
    written("a.parquet", rows(0, 30), modified=START + timedelta(minutes=1))
    assert loaded(engine, source_of(time={"future_tolerance": "1m"}), HOUR) == (1, True)


def test_a_file_that_is_replaced_after_the_look_is_right_after_the_next(
    engine: Engine, written: Write, source_of: SourceOf
) -> None:
    written("a.parquet", rows(0, 30))
    source = source_of()
    assert loaded(engine, source, HOUR) == (2, False)
    written("a.parquet", rows(0, 90), modified=NOW + timedelta(seconds=1))
    assert loaded(engine, source, HOUR) == (1, True)
