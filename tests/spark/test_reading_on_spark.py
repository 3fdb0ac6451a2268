"""The same files give the same canonical rows on Spark and on DuckDB."""

from __future__ import annotations

import gzip
import json
import math
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.logs.source import Source
from monitor.settings.logs import LogsSettings, TimeSettings

START = datetime(2026, 1, 1, 10, tzinfo=UTC)
HOUR = Window(START, START + timedelta(hours=1))
NAIVE = START.replace(tzinfo=None)
ROWS = [
    {
        "request_id": f"r{n // 3}", "user_id": n % 2 or None, "item_id": ["a,\n\"b\"", "é", None][n % 3],
        "ts": NAIVE + timedelta(minutes=n, microseconds=n), "position": n % 3 + 1,
        "score": [0.5, None, math.nan, math.inf, 1e-310][n % 5], "paid": n % 2 == 0,
        "shelf": ["top", "<b>'\\", ""][n % 3],
    }
    for n in range(20)
]  # fmt: skip
ITEMS = [
    {"item_id": "é", "category": ["x", "y"], "vector": [1.0, 2.0]},
    {"item_id": "é", "category": ["z"], "vector": None},
    {"item_id": "c", "category": [], "vector": [0.5, 0.5]},
]


def parquet(folder, **types):
    table = pa.Table.from_pylist(ROWS)
    for name, kind in types.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(kind))
    pq.write_table(table, folder / "one.parquet")
    return {"path": str(folder / "*.parquet")}


def nanoseconds(folder):
    return parquet(folder, ts=pa.timestamp("ns"), position=pa.int8())


def zone(folder):
    return parquet(folder, ts=pa.timestamp("us", "Asia/Tokyo"), user_id=pa.float64())


def nested(folder):
    requests = [
        {"request_id": f"r{n}", "user_id": "u", "ts": NAIVE, "item_id": items, "score": scores}
        for n, (items, scores) in enumerate(
            [(["a", "b"], [0.1, 0.2]), ([], []), (None, None), (["c", None], [0.3]), (["d"], [None])]
        )
    ]
    pq.write_table(pa.Table.from_pylist(requests), folder / "one.parquet")
    return {"path": str(folder / "*.parquet")}


PATHS = {
    "item_id": "recs[].iid",
    "position": "recs[].place.rank",
    "score": "recs[].pctr",
    "price": "recs[].price",
    "arm": "ab.exp",
}
RECORDS = [
    {
        "request_id": "r1", "user_id": "u", "ab": {"exp": "A"},
        "recs": [
            {"iid": "a", "place": {"rank": 1}, "pctr": 0.5, "price": 3},
            {"iid": "b", "place": None, "pctr": None, "price": 4},
        ],
    },
    {"request_id": "r2", "user_id": "u", "ab": {"exp": "B"}, "recs": []},
    {"request_id": "r3", "user_id": "u", "ab": None, "recs": None},
    {"request_id": "r4", "user_id": "u", "ab": {"exp": None}, "recs": [None, {"iid": "c", "pctr": 0.25}]},
]  # fmt: skip


def records_in_parquet(folder):
    pq.write_table(pa.Table.from_pylist([{**one, "ts": NAIVE} for one in RECORDS]), folder / "one.parquet")
    return {"path": str(folder / "*.parquet"), "columns": PATHS}


def records_in_json(folder):
    lines = [json.dumps({**one, "ts": NAIVE.isoformat()}) + "\n" for one in RECORDS]
    (folder / "one.jsonl").write_text("".join(lines), "utf-8")
    return {"path": str(folder / "*.jsonl"), "columns": PATHS}


def folders(folder):
    for day in ("2026-01-01", "2026-01-02"):
        (folder / f"day={day}" / "shard=7").mkdir(parents=True)
        rows = [{**row, "request_id": day + row["request_id"]} for row in ROWS]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"day={day}" / "shard=7" / f"{day}.parquet")
    return {"path": str(folder / "*" / "*" / "*.parquet")}


def folders_over_columns(folder):
    """The files have columns of folders' names, too."""
    place = folder / "shard=7" / "ts=2026-01-01" / "day=2026-01-01"
    place.mkdir(parents=True)
    table = pa.Table.from_pylist([{**row, "shard": 5} for row in ROWS])
    pq.write_table(table, place / "one.parquet")
    return {"path": str(folder / "**" / "*.parquet")}


def folders_of_csv(folder):
    place = folder / "shelf=7" / "ts=2026-01-01" / "it's=a%20b" / "shard=__HIVE_DEFAULT_PARTITION__"
    place.mkdir(parents=True)
    return {**csv(place), "path": str(folder / "**" / "*.csv")}


def folders_of_json(folder):
    for day in ("2026-01-01", "2026-01-02"):
        (folder / f"shelf={day}" / "shard=a%20b").mkdir(parents=True)
        rows = [{**row, "ts": row["ts"].isoformat(), "request_id": day + row["request_id"]} for row in ROWS]
        lines = [json.dumps(row) + "\n" for row in rows if row["score"] == 0.5]
        (folder / f"shelf={day}" / "shard=a%20b" / "one.jsonl").write_text("".join(lines), "utf-8")
    return {"path": str(folder / "*" / "*" / "*.jsonl")}


def delta(folder):
    """Folder columns whose texts look like other types, and null; a column that only later files have."""
    for number, part in enumerate(("007", "2026-01-01", "a+b %2F", None, "")):
        rows = [{**row, "request_id": f"{number}{row['request_id']}", "part": part} for row in ROWS]
        rows = [{**row, "more": 0.5} for row in rows] if number else rows
        kinds = pa.Table.from_pylist(rows).schema.set(len(ROWS[0]), pa.field("part", pa.string()))
        rows = [{**row, "shard": number} for row in rows]
        table = pa.Table.from_pylist(rows, kinds.append(pa.field("shard", pa.int32())))
        write_deltalake(folder, table, mode="append", partition_by=["part", "shard"], schema_mode="merge")
    DeltaTable(folder).delete("position = 2")
    return {"path": str(folder), "format": "delta"}


def iceberg(folder):
    """Folders named like the partition column, with other texts than its values."""
    catalog = load_catalog("shop", type="sql", uri=f"sqlite:///{folder}/a.db", warehouse=f"file://{folder}")
    catalog.create_namespace("web")
    table = catalog.create_table("web.log", pa.Table.from_pylist(ROWS).schema)
    with table.update_spec() as update:
        update.add_identity("shelf")
    table.append(pa.Table.from_pylist(ROWS))
    return {"path": table.metadata_location, "format": "iceberg"}


def text(value):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "" if value is None else "nan"
    quoted = str(value).replace('"', '""')
    return f'"{quoted}"' if set(quoted) & set(',"\n') else quoted


def csv(folder):
    odd = [
        "r9,7,a,2026-01-01T10:30:00Z,1.0,7d,top,true",
        "r9,7,b,2026-01-01 12:30:00+02:00, 2 ,inf,top,false",
        "r9,7,c,1767263400,x,1e400,top,",
        "r9,7,d,2026-01,1.5,.5,top,",
        "r9,7,e,2026-01-01T10:30Z,1,.5,top,",
        "r9,7,f,2026-01-01 12:30:00.5 +0200,1,.5,top,",
        "r9,7,g,2026-01-01T10:30 UTC,1,.5,top,",
        "r9,7,h,20260101,1,.5,top,",
    ]
    lines = [",".join(ROWS[0]), *(",".join(map(text, row.values())) for row in ROWS), *odd]
    (folder / "a[1].csv").write_text("\ufeff" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
    return {"path": str(folder / "*.csv"), "format": "csv"}


def lists_in_texts(folder):
    """Lists of CSV fields as NumPy and as plain text write them."""
    lists = ["['a' 'b'  'c']", "[]", "", " a  b", "['é']", '[""a"" ""b""]']
    lines = [f'r{n},u,2026-01-01T10:30:00,"{one}"' for n, one in enumerate(lists)]
    (folder / "one.csv").write_text("\n".join(["request_id,user_id,ts,item_id", *lines]) + "\n", "utf-8")
    return {"path": str(folder / "*.csv"), "list_separator": " "}


def json_lines(folder):
    lines = [
        *({**row, "ts": row["ts"].isoformat(), "score": None} for row in ROWS),
        {"request_id": "r9", "user_id": 7, "item_id": "z", "ts": 1767263400000, "score": 1e-7, "more": 1},
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (folder / "one.jsonl.gz").write_bytes(gzip.compress(data))
    return {"path": str(folder / "*.jsonl.gz")}


def lists_beside_texts(folder):
    """Files that clash: one has lists, the others have single values or none."""
    for number, further in enumerate(([["x", "y"], [], None], ["x", "", None], [None, None, None])):
        rows = [{**row, "request_id": f"{number}{n}"} for n, row in enumerate(ROWS[:3])]
        table = pa.Table.from_pylist(rows).append_column("further", pa.array(further))
        sizes = [[1.0, 2.5], [], None] if number == 0 else [7, None, 8]
        pq.write_table(table.append_column("sizes", pa.array(sizes)), folder / f"{number}.parquet")
    return {"path": str(folder / "*.parquet")}


def rows_of(table):
    found = table.to_pyarrow()
    names = sorted(found.column_names)
    return names, sorted(repr([row[name] for name in names]) for row in found.to_pylist())


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(parquet, id="parquet"),
        pytest.param(nanoseconds, id="nanoseconds"),
        pytest.param(zone, id="zone"),
        pytest.param(nested, id="nested"),
        pytest.param(lists_beside_texts, id="lists beside texts"),
        pytest.param(records_in_parquet, id="records in Parquet"),
        pytest.param(records_in_json, id="records in JSON lines"),
        pytest.param(folders, id="folders"),
        pytest.param(folders_over_columns, id="folders over columns"),
        pytest.param(folders_of_csv, id="folders of CSV"),
        pytest.param(folders_of_json, id="folders of JSON lines"),
        pytest.param(delta, id="delta"),
        pytest.param(iceberg, id="iceberg"),
        pytest.param(csv, id="csv"),
        pytest.param(json_lines, id="json_lines"),
        pytest.param(lists_in_texts, id="lists in texts"),
    ],
)
def test_the_rows_of_a_window_are_the_same(spark, tmp_path, make):
    (tmp_path / "log").mkdir()
    pq.write_table(pa.Table.from_pylist(ITEMS), tmp_path / "items.parquet")
    logs = LogsSettings(exposures=make(tmp_path / "log"), catalog={"path": str(tmp_path / "items.parquet")})
    embedded = Engine(duckdb.connect())
    source = Source(logs, TimeSettings())
    for log in source.logs.values():
        log.refresh(embedded, START + timedelta(days=300))
    assert not source.exposures.skipped
    for load in (
        lambda engine: source.load(engine, "exposures", HOUR, table="window"),
        lambda engine: source.load_catalog(engine, table="catalog"),
    ):
        wanted, found = rows_of(load(embedded)), rows_of(load(spark))
        assert len(wanted[1]) > 1
        assert found == wanted
