"""The engine on Spark keeps the promises of the embedded one: names, types, interrupts, lost files."""

from __future__ import annotations

import time

import duckdb
import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitor.engines.duckdb import DeadlineExceeded, deadline


def test_a_table_of_any_name_is_replaced_and_dropped(spark):
    for n in (1, 2):
        made = spark.create("made 'x'. `y`", spark.add("rows", pa.table({"n": [n]})))
    assert made.n.max().to_pyarrow().as_py() == 2
    spark.view("made 'x'. `y`", made.filter(made.n > 5))
    spark.drop("made 'x'. `y`", "rows", "never there")
    assert spark.session.catalog.listTables() == []


def test_stored_tables_have_the_types_that_ibis_states(spark):
    rows = spark.add("rows", pa.table({"n": pa.array([3, None, 2**62], pa.int64())}))
    numbered = spark.create("numbered", rows.mutate(place=ibis.row_number().over(order_by=rows.n)))
    assert numbered.schema() == rows.mutate(place=ibis.row_number()).schema()
    assert sorted(map(str, numbered.n.to_pyarrow().to_pylist())) == ["3", str(2**62), "None"]
    empty = spark.empty("empty", ibis.schema({"ts": "timestamp(6)", "tags": "array<string>", "n": "int64"}))
    assert empty.count().to_pyarrow().as_py() == 0


def test_a_query_past_its_deadline_and_all_later_ones_are_stopped(spark):
    ten = spark.add("ten", pa.table({"n": list(range(10))}))
    many = ten
    for step in range(9):
        many = many.cross_join(ten.select(**{f"n{step}": ten.n}))
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded), deadline(1.0, spark.interrupt):
        many.aggregate(total=(many.n * many.n8).sum()).to_pyarrow()
    assert time.monotonic() - began < 60
    with pytest.raises(duckdb.InterruptException):
        ten.count().to_pyarrow()


def test_a_lost_file_raises_an_io_error(spark, tmp_path):
    path = tmp_path / "gone.parquet"
    pq.write_table(pa.table({"n": [1]}), path)
    table = spark.reader("files", "read_parquet", [str(path)])
    path.unlink()
    with pytest.raises(duckdb.IOException):
        table.n.max().to_pyarrow()
    with pytest.raises(duckdb.IOException):
        spark.reader("files", "read_parquet", [str(path)])
