"""DuckDB's engine reuses the SQL of equal expressions, and spans of time are half open."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest
from ibis.backends.duckdb import Backend

from monitor.core.results import Window
from monitor.engines import duckdb_backend
from monitor.engines.duckdb import Engine

START = datetime(2026, 1, 1, 10)
HOUR = Window(START.replace(tzinfo=UTC), START.replace(tzinfo=UTC) + timedelta(hours=1))
HOSTILE = 'ts" OR 1=1; --'


@pytest.fixture
def engine() -> Engine:
    return Engine(duckdb.connect())


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The expressions that Ibis compiled."""
    asked: list[Any] = []
    own = Backend.compile

    def compile_and_tell(self: Backend, expr: Any, /, **options: Any) -> Any:
        asked.append(expr)
        return own(self, expr, **options)

    monkeypatch.setattr(Backend, "compile", compile_and_tell)
    monkeypatch.setattr(duckdb_backend, "_known", OrderedDict())
    return asked


def numbers(engine: Engine, values: list[Any]) -> Any:
    engine.drop("numbers")
    return engine.backend.create_table("numbers", pa.table({"n": values}))


def test_equal_expressions_are_compiled_once(engine: Engine, compiled: list[Any]) -> None:
    sums = []
    for values in ([1, 2], [3, 4]):
        table = numbers(engine, values)
        sums.append(table.aggregate(total=table.n.sum()).to_pyarrow().to_pylist())
    assert sums == [[{"total": 3}], [{"total": 7}]]
    assert len(compiled) == 1


def test_an_expression_compiled_by_one_engine_runs_on_the_tables_of_another(compiled: list[Any]) -> None:
    sums = []
    for values in ([1, 2], [3, 4]):
        engine = Engine(duckdb.connect())
        table = numbers(engine, values)
        engine.remember("now", START + timedelta(days=sum(values)))
        asked = table.aggregate(total=table.n.sum(), at=engine.remembered("now"))
        sums += engine.rows(engine.select(asked), asked.schema())
    assert sums == [
        {"total": 3, "at": START + timedelta(days=3)},
        {"total": 7, "at": START + timedelta(days=7)},
    ]
    assert len(compiled) == 1


def test_the_cache_keeps_no_engine_alive(compiled: list[Any]) -> None:
    engine = Engine(duckdb.connect())
    engine.select(numbers(engine, [1]))
    backend = weakref.ref(engine.backend)
    del engine
    compiled.clear()
    gc.collect()
    assert backend() is None
    assert len(duckdb_backend._known) == 1


def test_other_columns_other_values_and_other_options_are_other_sql(
    engine: Engine, compiled: list[Any]
) -> None:
    table = numbers(engine, [1, 2, 3])
    assert [table.filter(table.n > edge).count().to_pyarrow().as_py() for edge in (1, 2)] == [2, 1]
    assert table.filter(table.n > 1).limit(1).count().execute() == 1
    assert "LIMIT 5" in engine.backend.compile(table, limit=5)
    assert "LIMIT" not in engine.backend.compile(table)
    text = numbers(engine, ["1", "2"])
    assert text.aggregate(top=text.n.max()).to_pyarrow().to_pylist() == [{"top": "2"}]
    assert len(compiled) == 6


def test_only_the_newest_expressions_are_cached(
    engine: Engine, compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_backend, "_MOST", 2)
    table = numbers(engine, [1])
    one, two, three = (table.mutate(m=ibis.literal(value)) for value in range(3))
    for expression in (one, two, one, three, one, two):
        engine.select(expression)
    assert len(compiled) == 4  # two was the oldest when three came


def test_in_memory_rows_of_an_expression_are_stored(engine: Engine) -> None:
    for value in (1, 2):
        stored = engine.create("given", ibis.memtable({"n": [value]}))
        assert stored.to_pyarrow().to_pylist() == [{"n": value}]


def test_a_table_replaces_a_view_and_a_view_replaces_a_table(engine: Engine) -> None:
    table = numbers(engine, [1, 2])
    for make in (engine.create, engine.view, engine.create, engine.create, engine.view, engine.view):
        assert make("other", table.filter(table.n > 1)).to_pyarrow().to_pylist() == [{"n": 2}]
    engine.drop("other", "never made")
    assert engine.backend.list_tables() == ["numbers"]


def test_a_span_includes_its_start_but_not_its_end(engine: Engine) -> None:
    second = timedelta(microseconds=1)
    times = [START - second, START, START + timedelta(hours=1) - second, START + timedelta(hours=1), None]
    rows = pa.table({HOSTILE: pa.array(times, pa.timestamp("us")), "n": range(5)})
    table = engine.backend.create_table("rows", rows)
    found = engine.view_of_span("held", table, HOSTILE, HOUR)
    assert sorted(found.n.to_pyarrow().to_pylist()) == [1, 2]
    assert found.schema() == table.schema()
    later = Window(HOUR.end, HOUR.end + timedelta(hours=1))
    assert engine.view_of_span("held", table, HOSTILE, later).n.to_pyarrow().to_pylist() == [3]


def test_a_time_is_read_by_its_name_when_a_statement_runs(engine: Engine) -> None:
    engine.remember("now", START)
    moments = numbers(engine, [1]).select(at=engine.remembered("now"))
    statement = engine.select(moments)
    assert engine.rows(statement, moments.schema()) == [{"at": START}]
    engine.remember("now", START + timedelta(microseconds=7))
    assert engine.rows(statement, moments.schema()) == [{"at": START + timedelta(microseconds=7)}]


def test_a_time_that_is_read_by_its_name_is_the_same_expression_each_time(
    engine: Engine, compiled: list[Any]
) -> None:
    found = []
    for moment in (START, START + timedelta(days=1)):
        engine.remember("now", moment)
        table = numbers(engine, [1])
        found += table.select(at=engine.remembered("now")).to_pyarrow().to_pylist()
    assert [one["at"] for one in found] == [START, START + timedelta(days=1)]
    assert len(compiled) == 1


def test_the_columns_of_a_view_are_looked_up_again_when_its_table_has_others(engine: Engine) -> None:
    for values, kind in (([1, 2], "int64"), (["a"], "string"), ([1.5], "float64"), ([3], "int64")):
        table = numbers(engine, values)
        view = engine.view("seen", table.mutate(twice=table.n))
        assert view.schema()["twice"] == ibis.dtype(kind)
        assert view.to_pyarrow().to_pylist() == [{"n": value, "twice": value} for value in values]


def test_an_expression_is_built_once_for_each_key_and_few_are_held(engine: Engine) -> None:
    table = numbers(engine, [1, 2])
    built: list[str] = []

    def build(key: str) -> Any:
        built.append(key)
        return table.filter(table.n > 1)

    for key in ("a", "a", "b", "a"):
        engine.once(key, lambda key=key: build(key))
    assert built == ["a", "b"]
    for number in range(300):
        engine.once(number, lambda: table)
    engine.once("a", lambda: build("a"))
    assert built == ["a", "b", "a"], "the least used are forgotten"


def test_the_sql_of_the_very_same_expression_is_looked_up_without_its_parts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = numbers(engine, [1, 2])
    total = table.aggregate(total=table.n.sum())
    first = engine.select(total)
    monkeypatch.setattr(duckdb_backend, "_key", lambda _: pytest.fail("its parts were looked at"))
    assert engine.select(total) == first


def test_rows_in_memory_are_part_of_the_sql_and_never_those_of_before(engine: Engine) -> None:
    for values in ([1], [2, 3]):
        given = ibis.memtable({"n": values})
        assert engine.create("given", given).n.to_pyarrow().to_pylist() == values
