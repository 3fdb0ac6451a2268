"""One log in many formats gives the same table."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from monitor.core.results import Window
from tests.logs.conftest import NOW

HOUR = Window(datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC))
FLAT = pd.DataFrame(
    {
        "request_id": ["r1", "r1", "r2"],
        "user_id": ["u1", "u1", "u2"],
        "ts": pd.to_datetime(["2026-03-01 10:00:00", "2026-03-01 10:00:00", "2026-03-01 10:30:00"]),
        "item_id": ["a", "b", None],
        "position": [1, 2, None],
        "score": [0.9, 0.5, None],
        "scene": ["home", "home", "feed"],
        "price": [3, 4, None],
    }
)
NESTED = [
    {"request_id": "r1", "user_id": "u1", "ts": "2026-03-01T10:00:00Z", "item_id": ["a", "b"],
     "score": [0.9, 0.5], "scene": "home"},
    {"request_id": "r2", "user_id": "u2", "ts": "2026-03-01T10:30:00Z", "item_id": [], "score": [],
     "scene": "feed"},
]  # fmt: skip


def rows_of(source, engine, window=HOUR):
    source.exposures.refresh(engine, NOW)
    assert not source.exposures.skipped, source.exposures.skipped
    table = source.load(engine, "exposures", window, table="exposures")
    frame = table.execute().sort_values(["request_id", "item_id"], na_position="last")
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def content(name):
    if name.startswith("nested.jsonl"):
        text = "".join(json.dumps(one) + "\n" for one in NESTED)
        return gzip.compress(text.encode()) if name.endswith(".gz") else text
    if name == "nested.parquet":
        frame = pd.DataFrame(NESTED)
        frame["ts"] = pd.to_datetime(frame["ts"])
        return frame
    if "csv" in name:
        text = FLAT.to_csv(index=False, sep="\t" if "tab" in name else ",")
        return gzip.compress(text.encode()) if name.endswith(".gz") else text
    if "jsonl" in name:
        text = FLAT.to_json(orient="records", lines=True, date_format="iso")
        return gzip.compress(text.encode()) if name.endswith(".gz") else text
    return FLAT


@pytest.mark.parametrize(
    "name",
    ["flat.parquet", "flat.csv", "flat.csv.gz", "tab.csv", "flat.jsonl", "flat.jsonl.gz", "nested.jsonl",
     "nested.jsonl.gz", "nested.parquet"],
)  # fmt: skip
def test_every_format_gives_the_same_rows(name, written, source_of, engine):
    written(name, content(name))
    rows = rows_of(source_of(), engine)
    seen = [
        (r["request_id"], r["user_id"], r["item_id"], r["position"], r["score"], r["scene"]) for r in rows
    ]
    first, second, third = seen
    assert first == ("r1", "u1", "a", 1, 0.9, "home")
    assert second == ("r1", "u1", "b", 2, 0.5, "home")
    assert third[:3] == ("r2", "u2", None)
    assert third[4:] == (None, "feed")
    assert [r["ts"].isoformat() for r in rows] == ["2026-03-01T10:00:00"] * 2 + ["2026-03-01T10:30:00"]


def test_a_further_column_keeps_its_type_from_a_text_file(written, source_of, engine):
    written("flat.csv", FLAT)
    assert [r["price"] for r in rows_of(source_of(), engine)] == [3, 4, None]


@pytest.mark.parametrize("day", ["13/01/2026", "01/13/2026", "13.01.2026", "13-01-2026", "01/13/26"])
@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_date_in_a_form_that_is_not_read_stays_a_text(name, day, written, source_of, engine):
    rows = FLAT.assign(released=day)
    lines = rows.to_json(orient="records", lines=True, date_format="iso")
    written(name, rows.to_csv(index=False) if "csv" in name else lines)
    assert [row["released"] for row in rows_of(source_of(), engine)] == [day] * len(FLAT)


def test_a_csv_file_in_which_pandas_wrote_its_row_numbers_is_read(written, source_of, engine):
    written("log.csv", FLAT.to_csv())
    source = source_of()
    assert [(r["item_id"], r["price"]) for r in rows_of(source, engine)] == [("a", 3), ("b", 4), (None, None)]
    assert "Unnamed: 0" in source.schema("exposures")


def test_columns_are_read_by_their_mapped_names(written, source_of, engine):
    renamed = FLAT.rename(columns={"request_id": "req", "item_id": 'sku\'s "id"', "ts": "when"})
    written("log.csv", renamed)
    source = source_of(columns={"request_id": "req", "item_id": 'sku\'s "id"', "ts": "when"})
    assert [r["item_id"] for r in rows_of(source, engine)] == ["a", "b", None]


@pytest.mark.parametrize(
    ("text", "options", "utc"),
    [
        ("2026-03-01 12:00:00", {"timezone": "Europe/Berlin"}, "2026-03-01T11:00:00"),
        ("2026-07-01 12:00:00", {"timezone": "Europe/Berlin"}, "2026-07-01T10:00:00"),
        ("2026-03-01", {"timezone": "Europe/Berlin"}, "2026-02-28T23:00:00"),
        ("2026-03-01T12:00:00+02:00", {"timezone": "Europe/Berlin"}, "2026-03-01T10:00:00"),
        ("2026-03-01 12:00:00.25-0530", {}, "2026-03-01T17:30:00.250000"),
        ("2026-03-01T12:00:00Z", {"timezone": "Asia/Tokyo"}, "2026-03-01T12:00:00"),
        ("2026-03-01 12:00:00 UTC", {"timezone": "Asia/Tokyo"}, "2026-03-01T12:00:00"),
        ("2026-03-01 12:00:00.5 GMT", {"timezone": "America/New_York"}, "2026-03-01T12:00:00.500000"),
        ("1772366400", {}, "2026-03-01T12:00:00"),
        ("1772366400123", {}, "2026-03-01T12:00:00.123000"),
        ("1772366400123456", {}, "2026-03-01T12:00:00.123456"),
        ("1772366400", {"timestamp_unit": "ms"}, "1970-01-21T12:19:26.400000"),
    ],
)
def test_times_are_read_as_utc(text, options, utc, written, source_of, engine):
    late = datetime(2027, 1, 1, tzinfo=UTC)
    written("log.csv", f"request_id,user_id,ts,item_id\nr,u,{text},i\n", late)
    source = source_of(**options)
    source.exposures.refresh(engine, late)
    (window,) = source.exposures.windows()
    (row,) = source.load(engine, "exposures", window, table="exposures").execute().to_dict("records")
    assert row["ts"].isoformat() == utc
    assert source.exposures.bad_values(window) == 0


def test_whole_number_ids_stay_numbers_only_where_every_log_has_them_so(written, source_of, engine):
    numbers = FLAT.assign(item_id=[1, 2, None], request_id=[1, 1, 2], user_id=[7, 7, 8])
    written("a.parquet", numbers)
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.id_types() == {"request_id": "int64", "user_id": "int64", "item_id": "int64"}
    written("b.csv", FLAT)
    source.exposures.refresh(engine, NOW)
    assert set(source.id_types().values()) == {"string"}
    rows = source.load(engine, "exposures", HOUR, table="exposures").execute()
    assert set(rows["item_id"].dropna()) == {"1", "2", "a", "b"}


def test_files_of_different_columns_are_read_as_one_log(written, source_of, engine):
    written("a.parquet", FLAT.drop(columns=["price", "scene"]))
    written("b.jsonl", content("flat.jsonl").replace("r1", "r3").replace("r2", "r4"))
    rows = rows_of(source_of(), engine)
    assert len(rows) == 6
    assert sum(r["scene"] is None for r in rows) == 3


def test_a_whole_number_is_the_same_text_in_files_of_every_type(written, source_of, engine):
    for name, values in {"int": [0, 1, 1], "float": [0.0, 1.0, None], "text": ["0", "1", "b"]}.items():
        written(f"{name}.parquet", FLAT.assign(arm=values, variant=values))
    found = rows_of(source_of("*.parquet"), engine)
    for column in ("arm", "variant"):
        assert {one[column] for one in found} == {"0", "1", "b", None}
    kept = rows_of(source_of("[fi]*.parquet", only={"arm": "1"}), engine)
    assert [one["arm"] for one in kept] == ["1"] * 3


def test_a_window_is_half_open(written, source_of, engine):
    times = ["2026-03-01 10:00:00", "2026-03-01 10:59:59.999999", "2026-03-01 11:00:00"]
    frame = FLAT.assign(ts=pd.to_datetime(times, format="ISO8601"))
    written("a.parquet", frame)
    assert len(rows_of(source_of(), engine)) == 2


def test_a_list_of_a_hundred_thousand_items_is_read(written, source_of, engine):
    line = {**NESTED[0], "item_id": [str(i) for i in range(100_000)], "score": [0.5] * 100_000}
    written("a.jsonl", json.dumps(line) + "\n")
    rows = rows_of(source_of(), engine)
    assert len(rows) == 100_000
    assert {r["position"] for r in rows} == set(range(1, 100_001))


def test_hostile_names_and_ids_are_treated_as_text(written, source_of, engine):
    hostile = "'; DROP TABLE exposures; --\n<script>\"$(rm)"
    frame = FLAT.assign(item_id=[hostile] * 3, user_id=[hostile] * 3)
    written("it's; DROP TABLE x; --.parquet", frame)
    assert {r["item_id"] for r in rows_of(source_of(), engine)} == {hostile}


def test_new_files_are_found_and_gone_files_are_forgotten(written, source_of, engine):
    source = source_of()
    first = written("a.parquet", FLAT)
    scan = source.exposures.refresh(engine, NOW)
    assert [one.file.path for one in scan.changed] == [str(first)]
    written("b.parquet", FLAT.assign(request_id=["x", "x", "y"]))
    assert len(source.exposures.refresh(engine, NOW).changed) == 1
    assert source.exposures.rows(HOUR) == 6
    first.unlink()
    assert source.exposures.refresh(engine, NOW).gone == (str(first),)
    assert source.exposures.rows(HOUR) == 3


def test_a_restored_index_reads_no_file_again(written, source_of, engine):
    written("a.parquet", FLAT)
    before = source_of()
    before.exposures.refresh(engine, NOW)
    after = source_of()
    after.exposures.restore(before.exposures.entries.values())
    assert after.exposures.refresh(engine, NOW).changed == ()
    assert after.exposures.rows(HOUR) == 3
    other_settings = source_of(timezone="Europe/Berlin")
    other_settings.exposures.restore(before.exposures.entries.values())
    assert len(other_settings.exposures.refresh(engine, NOW).changed) == 1


def test_the_fingerprint_of_a_window_follows_its_rows_and_not_their_order(written, source_of, engine):
    source = source_of()
    written("a.parquet", FLAT)
    source.exposures.refresh(engine, NOW)
    before = source.exposures.fingerprint(HOUR)
    written("a.parquet", FLAT.iloc[::-1], NOW + timedelta(seconds=1))
    source.exposures.refresh(engine, NOW)
    assert source.exposures.fingerprint(HOUR) == before
    written("a.parquet", FLAT.assign(score=[0.9, 0.4, None]), NOW + timedelta(seconds=2))
    source.exposures.refresh(engine, NOW)
    assert source.exposures.fingerprint(HOUR) != before


@pytest.mark.parametrize("column", ["scene", "price", "score"])
def test_a_column_that_the_config_names_otherwise_is_never_the_files_own(column, written, source_of, engine):
    """Its values mean something else: a column that is gone must not be replaced by them in silence."""
    written("flat.parquet", FLAT)
    rows = rows_of(source_of(columns={column: "gone"}), engine)
    assert len(rows) == 3
    assert [row.get(column) for row in rows] == [None] * 3
