"""A bad value is null and counted, whatever its type, and its file is read."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitor.core.results import Window
from monitor.logs.source import Source
from monitor.settings.logs import LogsSettings, TimeSettings
from tests.logs.conftest import NOW

HOUR = Window(datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC))
HEADER = "request_id,user_id,ts,item_id\n"

ODD = {
    "truth": pa.array([True, False]),
    "day": pa.array([datetime(2026, 3, 1).date()] * 2),
    "clock": pa.array([datetime(2026, 3, 1, 10).time()] * 2),
    "decimal": pa.array([Decimal("1.50"), None]),
    "large decimal": pa.array([Decimal(10**30), None], pa.decimal128(38, 0)),
    "bytes": pa.array([b"\xff\x00", b"a"]),
    "record": pa.array([{"a b>": 1}, {"a b>": 2}]),
    "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    "numbers": pa.array([[1, 2], None]),
    "texts": pa.array([["a", "1"], ["2"]]),
    "records": pa.array([[{"x y": 1}], []]),
    "lists": pa.array([[[1]], []]),
    "odd numbers": pa.array([[float("inf"), float("nan"), 1.0], [2.5]]),
    "nothing": pa.array([None, None]),
    "length of time": pa.array([1, 2], pa.duration("s")),
    "not a number": pa.array([1.0, np.nan], pa.float32()),
    "infinity": pa.array([float("inf"), 1.5]),
    "half": pa.array(np.array([1, 2], dtype=np.float16)),
    "beyond 64 bits": pa.array([2**64 - 1, 3], pa.uint64()),
    "before Christ": pa.array([-(10**17), 0], pa.timestamp("us")),
    "words": pa.array(["x", "y"]).dictionary_encode(),
}
COLUMNS = ["request_id", "user_id", "ts", "item_id", "position", "score", "scene", "propensity", "further"]


@pytest.fixture
def parquet(tmp_path):
    def write(**columns):
        plain = {
            "request_id": pa.array(["r1", "r2"]),
            "user_id": pa.array(["u", "v"]),
            "ts": pa.array([datetime(2026, 3, 1, 10), datetime(2026, 3, 1, 10, 30)]),
            "item_id": pa.array(["a", "b"]),
        }
        pq.write_table(pa.table({**plain, **columns}), tmp_path / "a.parquet")
        os.utime(tmp_path / "a.parquet", (NOW.timestamp(),) * 2)

    return write


LISTS = {"numbers", "texts", "odd numbers"}
RECORDS = {"record", "map", "records", "lists"}


def is_refused(column, kind):
    """Records are no values; lists are none but those of items."""
    return column != "further" and (kind in RECORDS or (kind in LISTS and column != "item_id"))


@pytest.mark.parametrize("kind", sorted(RECORDS | LISTS))
@pytest.mark.parametrize("column", COLUMNS)
def test_a_file_with_a_record_or_list_for_a_value_is_refused(column, kind, parquet, source_of, engine):
    parquet(**{column: ODD[kind]})
    source = source_of()
    source.exposures.refresh(engine, NOW)
    (entry,) = source.exposures.entries.values()
    if is_refused(column, kind):
        assert entry.reason.startswith(f"column {column}: {column!r} is a ")
        assert source.load(engine, "exposures", HOUR, table="exposures") is None
    else:
        assert entry.reason is None


@pytest.mark.parametrize(
    ("column", "kind"), [(one, kind) for one in COLUMNS for kind in ODD if not is_refused(one, kind)]
)
def test_a_file_with_any_scalar_type_is_read(column, kind, parquet, source_of, engine):
    parquet(**{column: ODD[kind]})
    source = source_of()
    source.exposures.refresh(engine, NOW)
    (entry,) = source.exposures.entries.values()
    assert entry.reason is None
    assert entry.rows >= 2
    table = source.load(engine, "exposures", HOUR, table="exposures")
    assert (0 if table is None else len(table.execute())) == source.exposures.rows(HOUR)


@pytest.mark.parametrize("column", ["item_id", "user_id", "position"])
def test_a_fraction_is_a_bad_whole_number_and_not_rounded(column, parquet, source_of, engine):
    parquet(**{column: pa.array([1.5, 7.0])})
    source = source_of()
    source.exposures.refresh(engine, NOW)
    rows = source.load(engine, "exposures", HOUR, table="exposures").execute().sort_values("request_id")
    assert rows[column].isna().tolist() == [True, False]
    assert rows[column].iloc[1] == 7
    assert source.exposures.bad_values(HOUR) == 1


def test_differences_of_positions_do_not_overflow(parquet, source_of, engine):
    parquet(position=pa.array([-9 * 10**18, 3]))
    source = source_of()
    source.exposures.refresh(engine, NOW)
    rows = source.load(engine, "exposures", HOUR, table="exposures").execute()
    assert sorted(rows["position"].dropna()) == [3]
    assert source.exposures.bad_values(HOUR) == 1


@pytest.mark.parametrize(
    "moment", ["0044-03-15 (BC) 10:00:00", "0001-01-01 00:00:00", "infinity", "-infinity"]
)
def test_a_time_beyond_the_calendar_is_in_no_window(moment, written, source_of, engine):
    written("a.csv", f"{HEADER}r,u,2026-03-01 10:00:00,a\nr,u,{moment},b\n")
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.exposures.windows() == {HOUR}
    (entry,) = source.exposures.entries.values()
    assert entry.unplaced + entry.future == 1
    assert len(source.load(engine, "exposures", HOUR, table="exposures").execute()) == 1


def test_a_time_just_before_a_windows_end_is_in_that_window(written, source_of, engine):
    written("a.csv", f"{HEADER}r,u,2026-03-01 10:59:59.999999,a\n")
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.exposures.windows() == {HOUR}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.parquet", [True, False]),
        ("a.csv", "split,score,label,ts\ntest,0.9,True,\ntest,0.1,false,\n"),
        (
            "a.jsonl",
            '{"split":"test","score":0.9,"label":true}\n{"split":"test","score":0.1,"label":false}\n',
        ),
    ],
)
def test_a_label_may_be_true_or_false(name, content, tmp_path, engine):
    if name == "a.parquet":
        pq.write_table(
            pa.table({"split": ["test"] * 2, "score": [0.9, 0.1], "label": content}), tmp_path / name
        )
    else:
        (tmp_path / name).write_text(content)
    os.utime(tmp_path / name, (NOW.timestamp(),) * 2)
    source = Source(LogsSettings.model_validate({"samples": {"path": str(tmp_path / name)}}), TimeSettings())
    log = source.logs["samples"]
    log.refresh(engine, NOW)
    rows = source.load_files(engine, "samples", log.read_entries, table="samples").execute()
    assert rows.sort_values("score")["label"].tolist() == [0.0, 1.0]
    assert all(bucket.bad_values == 0 for one in log.read_entries for bucket in one.buckets.values())


def test_a_star_in_only_matches_a_value_with_a_line_break(written, source_of, engine):
    head = HEADER.replace("\n", ",scene\n")
    written("a.csv", head + 'r,u,2026-03-01 10:00:00,a,"home\nx"\nr,u,2026-03-01 10:00:00,b,else\n')
    source = source_of(only={"scene": "home*"})
    source.exposures.refresh(engine, NOW)
    rows = source.load(engine, "exposures", HOUR, table="exposures").execute()
    assert rows["scene"].tolist() == ["home\nx"]


FIRST_ROWS = 30_000  # more than an engine guesses a type from


@pytest.mark.parametrize(
    ("values", "last", "read"),
    [
        (["1", "2"], "3.5", [1.0, 2.0, 3.5]),
        (["1", "2"], "n/a", ["1", "2", "n/a"]),
        (["1", ""], "12345678901234567890", [1.0, None, 12345678901234567890.0]),
        (["1", "2"], "30", [1, 2, 30]),
        (["0.5", "1.5"], "high", ["0.5", "1.5", "high"]),
        (["0.5", "1.5"], "nan", [0.5, 1.5, float("nan")]),
        (["true", "false"], "perhaps", ["true", "false", "perhaps"]),
        (["2026-03-01 10:00:00", "2026-03-02 10:00:00"], "soon",
         ["2026-03-01 10:00:00", "2026-03-02 10:00:00", "soon"]),
    ],
)  # fmt: skip
def test_a_further_column_of_a_csv_has_a_type_that_holds_all_of_its_values(
    values, last, read, written, source_of, engine
):
    rows = enumerate([*values * (FIRST_ROWS // 2), last])
    lines = "".join(f"r{number},u,2026-03-01T10:00:00Z,a,{value}\n" for number, value in rows)
    written("a.csv", HEADER.replace("\n", ",further\n") + lines)
    source = source_of()
    source.exposures.refresh(engine, NOW)
    rows = source.load(engine, "exposures", HOUR, table="exposures")
    found = rows.select("further").distinct().to_pyarrow()["further"].to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, read))
    assert source.exposures.bad_values(HOUR) == 0
