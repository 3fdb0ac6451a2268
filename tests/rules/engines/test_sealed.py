"""A rule's SQL in the engine: what got past the check of its text reaches nothing either."""

from __future__ import annotations

import threading
import time

import duckdb
import pytest

from monitor.judging.runtime import Runtime
from monitor.rules.engines.base import build
from monitor.rules.engines.duckdb import DuckDBRuleEngine

ATTACKS = {
    "a file as text": "SELECT * FROM {{batch}}, read_text('{secret}')",
    "a file as CSV": "SELECT * FROM {{batch}}, read_csv('{secret}', header=false)",
    "a file as a table": "SELECT * FROM {{batch}}, '{secret}'",
    "a folder": "SELECT * FROM {{batch}}, glob('{folder}/*')",
    "COPY": "COPY {{batch}} TO '{written}'",
    "COPY in a bracket": "SELECT 1) AS x; COPY {{batch}} TO '{written}'; SELECT * FROM (SELECT 1",
    "a second statement": "SELECT * FROM {{batch}}; COPY (SELECT 1) TO '{written}'",
    "ATTACH": "ATTACH '{written}'",
    "EXPORT": "EXPORT DATABASE '{written}'",
    "INSTALL": "INSTALL httpfs",
    "LOAD": "LOAD '{secret}'",
    "SET": "SET memory_limit = '100GB'",
    "SET of what is locked, second": "SELECT 1; SET enable_external_access = true",
    "the environment": "SELECT getenv('HOME') FROM {{batch}}",
    "secrets": "SELECT * FROM {{batch}}, duckdb_secrets()",
    "a table of the other database": "SELECT * FROM {{batch}}, other",
    "a variable of the process": "SELECT * FROM {{batch}}, attacker_frame",
    "the network": "SELECT * FROM {{batch}}, read_csv('https://127.0.0.1:9/x.csv')",
    "a table that is made": "CREATE TABLE mine AS SELECT * FROM {{batch}}",
    "a row that is deleted": "DELETE FROM {{batch}}",
}


@pytest.fixture
def runtime(tmp_path):
    one = Runtime(tmp_path / "spill", memory="200MiB", threads=1)
    yield one
    one.close()


def rule(query):
    return build({"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": query}})


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_an_error_of_that_rule_and_writes_nothing(runtime, tmp_path, attack):
    attacker_frame = duckdb.sql("SELECT 1 AS n").arrow()  # noqa: F841 - the query names it
    secret, written = tmp_path / "secret.csv", tmp_path / "written"
    secret.write_text("password\n")
    engine = runtime.rules
    engine.connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(10)")
    engine.connection.execute("CREATE TABLE other AS SELECT 'of another' AS secret")
    query = ATTACKS[attack].format(secret=secret, folder=tmp_path, written=written)
    fine = rule("SELECT * FROM {batch} WHERE n > 7")
    plain = build({"type": "expect_column_values_to_be_between", "kwargs": {"column": "n", "max_value": 5}})
    stolen, counted, judged = engine.judge("t", [rule(query), fine, plain])
    assert stolen.error
    assert "password" not in stolen.error
    assert (counted.violations, counted.error) == (2, None)
    assert (judged.violations, judged.error) == (4, None)
    with pytest.raises((duckdb.Error, ValueError)):
        engine.evidence("t", rule(query), [], [], 5)
    assert not written.exists()
    assert engine.connection.execute("SELECT count(*) FROM t").fetchone() == (10,)


def test_the_information_schema_shows_only_the_rules_table(runtime):
    engine = runtime.rules
    engine.connection.execute("CREATE TABLE t AS SELECT 1 AS n")
    engine.connection.execute("CREATE TABLE other AS SELECT 1 AS secret")
    listing = rule("SELECT table_name FROM information_schema.tables")
    assert engine.evidence("t", listing, [], [], 9) == [{"table_name": "t"}]


def test_an_endless_query_ends_at_the_deadline_and_the_next_window_is_judged(runtime, tmp_path):
    engine = runtime.rules
    engine.connection.execute("CREATE TABLE t AS SELECT 1 AS n")
    bomb = rule(
        "WITH RECURSIVE bomb AS (SELECT n FROM {batch} UNION ALL SELECT n + 1 FROM bomb) SELECT * FROM bomb"
    )
    timer = threading.Timer(0.5, engine.interrupt)
    timer.start()
    started = time.monotonic()
    with pytest.raises(duckdb.InterruptException):
        engine.judge("t", [bomb])
    assert time.monotonic() - started < 60
    timer.join()
    runtime.renew()
    runtime.rules.connection.execute("CREATE TABLE t AS SELECT 1 AS n")
    assert runtime.rules.judge("t", [rule("SELECT * FROM {batch}")])[0].violations == 1


def test_a_table_with_every_type_of_a_log_is_judged_as_it_is(runtime):
    engine = runtime.rules
    engine.connection.execute(
        "CREATE TABLE t AS SELECT 170141183460469231731687303715884105::HUGEINT AS big, uuid() AS id, "
        "'a'::ENUM('a', 'b') AS word, {'a \"b': 1} AS record, map {'k': [1]} AS named, ['x'] AS list, "
        "TIMESTAMP '2026-01-01 10:00:00.123456' AS ts, TIMESTAMPTZ '2026-01-01 10:00:00+02' AS zoned, "
        '1.25::DECIMAL(10, 2) AS price, \'nan\'::DOUBLE AS score, NULL::VARCHAR AS nothing, 1 AS "a ""b"'
    )
    query = (
        "SELECT * FROM {batch} AS rows WHERE big = 170141183460469231731687303715884105 AND word = 'a' "
        "AND record['a \"b'] = 1 AND named['k'] = [1] AND list[1] = 'x' AND hour(zoned) = 8 "
        "AND microsecond(ts) = 123456 AND price = 1.25 AND isnan(score) AND nothing IS NULL "
        'AND rows."a ""b" = 1 AND length(id::VARCHAR) = 36 -- and a comment'
    )
    (outcome,) = engine.judge("t", [rule(query)])
    assert (outcome.violations, outcome.error) == (1, None)


def test_each_window_is_judged_on_its_own_rows_and_the_copies_are_freed(runtime):
    engine = runtime.rules
    for rows in (5, 7):
        engine.connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT range AS n FROM range({rows})")
        (outcome,) = engine.judge("t", [rule("SELECT * FROM {batch}")])
        assert (outcome.samples, outcome.violations) == (rows, rows)
    engine.release()
    assert not engine._sealed.holds("t")


def test_the_sealed_database_is_opened_only_for_a_rule_in_sql():
    engine = DuckDBRuleEngine("without_a_query")
    try:
        engine.connection.execute("CREATE TABLE t AS SELECT 1 AS n")
        plain = build({"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "n"}})
        assert engine.judge("t", [plain])[0].error is None
        assert engine._sealed is None
    finally:
        engine.close()
