"""The engine on Spark keeps the promises of the embedded one: names, types, interrupts, lost files."""

from __future__ import annotations

import os
import subprocess
import sys
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


def jobs(spark) -> int:
    return len(spark.session.sparkContext.statusTracker().getJobIdsForGroup(spark.group))


def test_a_stored_table_needs_nothing_that_it_was_made_from(spark, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": [1, 2, 2]}), path)
    read = spark.reader("rows", "read_parquet", [str(path)])
    counts = spark.create("counts", read.group_by("n").aggregate(rows=read.count()))
    path.unlink()
    spark.drop("rows")
    more = spark.create("more", counts.mutate(twice=counts.rows * 2))
    assert more.twice.sum().to_pyarrow().as_py() == 6
    plan = spark.stored("more")._jdf.queryExecution().optimizedPlan().toString()
    assert plan.strip().count("\n") == 0, f"only the stored table is read: {plan}"
    folders = [spark._folder / "1", spark._folder / "2"]
    assert all(folder.is_dir() for folder in folders)
    spark.drop("counts")
    assert [folder.is_dir() for folder in folders] == [False, True]
    spark.close()
    assert not spark._folder.exists()


def test_a_table_may_be_made_from_the_one_it_replaces(spark):
    once = spark.create("n", spark.add("one", pa.table({"n": [1]})))
    twice = spark.create("n", once.mutate(n=once.n + 1))
    assert twice.n.to_pyarrow().to_pylist() == [2]


def test_a_column_without_any_value_can_be_stored(spark):
    one = spark.add("one", pa.table({"n": [1]}))
    stored = spark.create("stored", one.mutate(nothing=ibis.null(), text=ibis.null("string")))
    assert stored.to_pyarrow().to_pylist() == [{"n": 1, "nothing": None, "text": None}]


def test_the_rows_of_a_stored_table_do_not_pass_through_the_driver(spark):
    rows = pa.table({"user [1]": ["é", None], "n": [2**62, 1], "at": pa.array([0, 1], pa.timestamp("us"))})
    stored = spark.create("stored", spark.add("rows", rows))
    wanted = spark.cursor.from_arrow(stored.to_pyarrow())
    before = jobs(spark)
    found = spark.relation(stored)
    assert (found.columns, found.types) == (wanted.columns, wanted.types)
    assert sorted(found.fetchall(), key=repr) == sorted(wanted.fetchall(), key=repr)
    assert jobs(spark) == before
    assert len(spark.relation(stored.filter(stored.n > 1)).fetchall()) == 1
    nobody = spark.create("nobody", stored.filter(stored.n > 2**62))
    assert spark.relation(nobody).columns == rows.column_names
    assert spark.relation(nobody).fetchall() == []


def test_tables_of_processes_that_were_killed_are_deleted(tmp_path):
    from monitor.engines.spark import FOLDER, remove_left_tables

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folders = [tmp_path / f"{FOLDER}{pid}-1" for pid in (dead.pid, os.getpid(), os.getppid())]
    for folder in [*folders, tmp_path / "others"]:
        (folder / "1").mkdir(parents=True)
    remove_left_tables(tmp_path)
    assert [folder.exists() for folder in folders] == [False, True, True]
    assert (tmp_path / "others").exists()
