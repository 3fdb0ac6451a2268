"""The SQL that a rule may bring along: one SELECT over the rows of its own table."""

from __future__ import annotations

import pytest
from great_expectations.execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.registry import (
    _registered_metrics,
    get_expectation_impl,
    list_registered_expectation_implementations,
)

from monitor.rules.queries import QUERY, REFUSED, REFUSED_ON, UnsafeQuery, check_query
from monitor.rules.rule import SuiteErrors
from monitor.rules.suites import load_rules
from monitor.settings.rules import RuleSettings

OF_TYPES = {"expect_column_values_to_be_of_type", "expect_column_values_to_be_in_type_list"}

# fmt: off
FINE = [
    'SELECT * FROM {batch} WHERE position > 3',
    'SELECT b.item_id FROM {batch} AS b JOIN (SELECT item_id FROM {batch} GROUP BY 1) c USING (item_id)',
    'WITH a AS (SELECT * FROM {batch}), c AS (SELECT * FROM a) SELECT * FROM c, a',
    'WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n+1 FROM t WHERE n < 5) SELECT * FROM t, {batch}',
    'SELECT * FROM {batch} UNION ALL SELECT * FROM {batch}',
    'SELECT item_id, unnest(range(3)) FROM {batch}',
    'SELECT * FROM {batch}, range(10) r(i)',
    'SELECT * FROM {batch}, generate_series(1,3)',
    'SELECT * FROM {batch}, unnest([1,2]) u(x)',
    'SELECT item_id FROM {batch} QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY ts) > 3',
    'FROM {batch} SELECT item_id',
    "SELECT * EXCLUDE (ts) FROM {batch} WHERE item_id ILIKE 'a%' AND ts::date = date '2026-01-01'",
    "SELECT n FROM {batch} WHERE moment = '10:30 {{x}}'::VARCHAR",
    "SELECT * FROM {batch} WHERE regexp_matches(item_id, '^a{{2}}')",
    "SELECT * FROM {batch} WHERE list_contains([1,2], position) AND x -> 'a' = 1 ;",
    'SELECT list_filter([1,2], lambda x: x > 1) FROM {batch}',
    'SELECT * FROM {batch} TABLESAMPLE 10%',
    '(SELECT * FROM {batch})',
    'SELECT * FROM (VALUES (1)) v(x), {batch}',
    'SELECT quantile_cont(score, 0.5) FROM {batch} GROUP BY ALL',
    'SELECT * FROM {batch} a ASOF JOIN {batch} b ON a.ts >= b.ts',
    "SELECT COLUMNS('a.*') FROM {batch}",
    'SELECT count(*) FILTER (WHERE position=1) FROM {batch} -- done',
    'SELECT * FROM {batch} WHERE EXISTS (WITH a AS (SELECT 1 x) SELECT * FROM a)',
    'WITH a AS (SELECT * FROM {batch}) SELECT * FROM (SELECT * FROM a) z',
    'SELECT struct_pack(a := 1), hash(item_id) FROM {batch}',
    'SELECT user FROM {batch}',
    'SELECT one.item_id FROM (SELECT item_id FROM {batch}) one, (SELECT ts FROM {batch}) two',
]
FINE_ON_SPARK = [
    'SELECT * FROM {batch} WHERE position = 4',
    'SELECT item_id FROM {batch} LATERAL VIEW explode(items) t AS x',
    'SELECT /*+ BROADCAST(a) */ * FROM {batch} a',
    'SELECT * FROM {batch}, explode(array(1,2))',
    'SELECT `item_id` FROM {batch}',
    "SELECT * FROM {batch} WHERE item_id RLIKE 'a' AND ts > timestamp '2026-01-01'",
]
REFUSED_ON_BOTH = [
    "SELECT * FROM read_text('/etc/passwd'), {batch}",
    "SELECT * FROM read_csv('/etc/passwd'), {batch}",
    "SELECT * FROM '/etc/passwd', {batch}",
    'SELECT * FROM "/etc/passwd.csv", {batch}',
    "COPY (SELECT * FROM {batch}) TO '/tmp/x'",
    "SELECT * FROM {batch}; COPY (SELECT 1) TO '/tmp/x'",
    "ATTACH '/tmp/x' /* {batch} */",
    "ATTACH '{batch}'",
    'INSTALL httpfs; SELECT * FROM {batch}',
    'LOAD {batch}',
    "SET x = '{batch}'",
    "SELECT getenv('HOME') FROM {batch}",
    'SELECT * FROM duckdb_settings(), {batch}',
    'SELECT * FROM duckdb_secrets(), {batch}',
    'SELECT * FROM other, {batch}',
    'SELECT * FROM main.t, {batch}',
    'SELECT * FROM information_schema.tables, {batch}',
    "SELECT current_setting('temp_directory') FROM {batch}",
    'SELECT {batch.__class__}',
    'SELECT * FROM {batch!r}',
    'SELECT * FROM {batch:>10}',
    'SELECT 1',
    "SELECT * FROM {batch} WHERE 1 IN (SELECT 1 FROM read_text('/x'))",
    'PRAGMA database_list -- {batch}',
    'CREATE TABLE x AS SELECT * FROM {batch}',
    'INSERT INTO x SELECT * FROM {batch}',
    "SELECT * FROM query('select 1'), {batch}",
    "SELECT * FROM glob('/*'), {batch}",
    'SELECT * FROM a, (WITH a AS (SELECT 1) SELECT * FROM a), {batch}',
    'WITH a AS (SELECT * FROM b), b AS (SELECT * FROM {batch}) SELECT * FROM a',
    'WITH "/etc/p.csv" AS (SELECT 1) SELECT * FROM "/etc/p.csv", {batch}',
    'FROM (SHOW ALL TABLES), {batch}',
    'FROM (DESCRIBE {batch})',
    'SUMMARIZE {batch}',
    'DESCRIBE {batch}',
    'SELECT * INTO x FROM {batch}',
    'EXPLAIN SELECT * FROM {batch}',
    'CALL duckdb_functions() -- {batch}',
    "SELECT * FROM {batch} WHERE getvariable('x') = 1",
    "SELECT system.main.current_setting('x') FROM {batch}",
    'SELECT * FROM {batch} x, LATERAL read_text(x.item_id)',
    "SELECT * FROM {batch} POSITIONAL JOIN read_text('/x')",
    'PIVOT {batch} ON a',
    'SELECT ? FROM {batch}',
    'SELECT $x FROM {batch}',
    'SELEKT nothing FROM {batch}',
    "SELECT * FROM parquet_scan('/x'), {batch}",
    'TABLE other -- {batch}',
    "SELECT * FROM 's3://bucket/x.parquet', {batch}",
    "SELECT write_log('a') FROM {batch}",
    'WITH x AS (DELETE FROM {batch} RETURNING *) SELECT * FROM x',
    'SELECT * FROM {batch} FOR UPDATE',
    "VALUES ('{batch}')",
    "EXPORT DATABASE '{batch}'",
    "SELECT * FROM pragma_table_info('x'), {batch}",
    "SELECT * FROM sniff_csv('/etc/passwd'), {batch}",
    'USE x; SELECT * FROM {batch}',
]
REFUSED_ON_SPARK = [
    'SELECT * FROM csv.`/etc/passwd`, {batch}',
    'SELECT * FROM text.`/etc/passwd` UNION SELECT item_id FROM {batch}',
    "SELECT reflect('java.lang.System','getenv','HOME') FROM {batch}",
    "SELECT java_method('java.lang.System','getenv','HOME') FROM {batch}",
    'SELECT input_file_name() FROM {batch}',
    "SELECT TRANSFORM(item_id) USING 'cat' AS (x) FROM {batch}",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT * FROM {batch}",
    'SELECT * FROM exposures, {batch}',
    'SET spark.x={batch}',
    'CACHE TABLE x AS SELECT * FROM {batch}',
    "ADD JAR '{batch}'",
    'SELECT * FROM {batch}; DROP TABLE x',
    "SELECT * FROM read_files('/x'), {batch}",
    "SELECT * FROM IDENTIFIER('exposures'), {batch}",
    "SELECT try_reflect('a','b') FROM {batch}",
    "MAP item_id USING 'cat' FROM {batch}",
    'FROM {batch} INSERT INTO x SELECT *',
    'SELECT * FROM global_temp.x, {batch}',
    'DESCRIBE {batch}',
    'SHOW TABLES -- {batch}',
    "FROM {batch} SELECT TRANSFORM(item_id) USING 'cat'",
    "SELECT `reflect`('java.lang.System','getenv','HOME') FROM {batch}",
    "SELECT system.builtin.reflect('java.lang.System','getenv','HOME') FROM {batch}",
]
# fmt: on


@pytest.mark.parametrize(
    ("query", "dialect"),
    [*((query, "duckdb") for query in FINE), *((query, "spark") for query in FINE_ON_SPARK)],
)
def test_a_select_over_the_rows_of_the_rule_is_fine(query, dialect):
    check_query(query, dialect)


@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        *((query, dialect) for query in REFUSED_ON_BOTH for dialect in ("duckdb", "spark")),
        *((query, "spark") for query in REFUSED_ON_SPARK),
    ],
)
def test_a_query_that_reads_anything_else_is_refused_with_a_reason(query, dialect):
    with pytest.raises(
        UnsafeQuery, match=r"^(reads|calls|holds|is not|does not|has a|cannot be read) .{10,}"
    ):
        check_query(query, dialect)


def test_a_query_that_is_nested_too_deep_is_refused():
    with pytest.raises(UnsafeQuery):
        check_query("SELECT " + "(" * 5000 + "1" + ")" * 5000 + " FROM {batch}")


def suite(tmp_path, *entries):
    text = "name: ours\nexpectations:\n" + "".join(f"  - {one}\n" for one in entries)
    (tmp_path / "ours.yaml").write_text(text)
    return RuleSettings(suite="ours.yaml")


def problems(tmp_path, *entries, **options):
    with pytest.raises(SuiteErrors) as caught:
        load_rules([suite(tmp_path, *entries)], tmp_path, **options)
    return [str(one) for one in caught.value.problems]


def of_query(query, name="thief"):
    return (
        f"{{type: unexpected_rows_expectation, kwargs: {{{QUERY}: {query!r}}}, "
        f"meta: {{rule: {name}, kind: hard}}}}"
    )


def test_a_refused_query_names_the_rule_and_the_place(tmp_path, capsys):
    assert problems(
        tmp_path,
        of_query("SELECT * FROM {batch}", "fine"),
        of_query('SELECT * FROM read_text("/etc/passwd"), {batch}'),
        of_query("SELECT 1", "nothing"),
    ) == [
        "ours.yaml: expectations[1].kwargs.unexpected_rows_query: the query of the rule 'thief' "
        "reads read_text(...); a rule may read only {batch}",
        "ours.yaml: expectations[2].kwargs.unexpected_rows_query: the query of the rule 'nothing' "
        "does not name {batch}, the rows of its table; write FROM {batch}",
    ]
    assert capsys.readouterr().out == ""  # Great Expectations prints a warning where {batch} is missing


def test_a_query_that_comes_from_a_parameter_is_checked_as_well(tmp_path):
    source = suite(tmp_path, of_query("x").replace("'x'", "{$PARAMETER: query}"))
    query = "COPY (SELECT * FROM {batch}) TO 'stolen.csv'"
    with pytest.raises(SuiteErrors, match="is not a SELECT"):
        load_rules([source.model_copy(update={"parameters": {"query": query}})], tmp_path)


def test_the_sql_of_a_rule_is_that_of_the_engine(tmp_path):
    query = of_query("SELECT `item_id` FROM {batch} LATERAL VIEW explode(items) t AS x")
    assert "cannot be read as one SELECT of DuckDB" in problems(tmp_path, query)[0]
    (rule,) = load_rules([suite(tmp_path, query)], tmp_path, dialect="spark")
    assert rule.name == "thief"


@pytest.mark.parametrize(
    "condition",
    [
        "{type: pass_through, pass_through_filter: \"reflect('java.lang.System', 'getenv', 'HOME') = ''\"}",
        "{type: and, conditions: [{type: pass_through, pass_through_filter: '1 = 1'}]}",
    ],
)
def test_a_row_condition_that_is_text_for_the_engine_is_refused(tmp_path, condition):
    entry = (
        "{type: expect_column_values_to_not_be_null, "
        f"kwargs: {{column: item_id, row_condition: {condition}}}, meta: {{rule: thief, kind: hard}}}}"
    )
    (problem,) = problems(tmp_path, entry)
    assert problem.startswith(
        "ours.yaml: expectations[0].kwargs.row_condition: the row condition passes text to the engine"
    )


@pytest.mark.parametrize("kind", REFUSED)
def test_an_expectation_that_no_rule_can_have_is_refused(tmp_path, kind):
    entry = f"{{type: {kind}, kwargs: {{}}, meta: {{rule: thief, kind: hard}}}}"
    (problem,) = problems(tmp_path, entry)
    assert problem == f"ours.yaml: expectations[0].type: {kind} is not supported: {REFUSED[kind]}"


@pytest.mark.parametrize("kind", REFUSED_ON["duckdb"])
def test_an_expectation_that_duckdb_cannot_judge_is_refused_there(tmp_path, kind):
    kwargs = "{column: a, json_schema: {}}" if "json" in kind else "{column: a}"
    entry = f"{{type: {kind}, kwargs: {kwargs}, meta: {{rule: form, kind: hard}}}}"
    (problem,) = problems(tmp_path, entry)
    assert (
        problem == f"ours.yaml: expectations[0].type: {kind} is not supported: {REFUSED_ON['duckdb'][kind]}"
    )
    (tmp_path / "ours.yaml").write_text(f"expectations:\n  - {entry}\n")
    if kind not in REFUSED_ON["spark"]:
        assert len(load_rules([RuleSettings(suite="ours.yaml")], tmp_path, dialect="spark")) == 1


@pytest.mark.parametrize("kind", REFUSED_ON["spark"])
def test_an_expectation_that_spark_cannot_judge_is_refused_there(tmp_path, kind):
    entry = f"{{type: {kind}, kwargs: {{column: a}}, meta: {{rule: form, kind: hard}}}}"
    (tmp_path / "ours.yaml").write_text(f"expectations:\n  - {entry}\n")
    with pytest.raises(SuiteErrors) as raised:
        load_rules([RuleSettings(suite="ours.yaml")], tmp_path, dialect="spark")
    why = REFUSED_ON["spark"][kind]
    assert str(raised.value) == f"ours.yaml: expectations[0].type: {kind} is not supported: {why}"


def test_great_expectations_can_judge_on_spark_what_is_not_refused_there():
    """Without a metric for Spark, the rule is an error in each window that Spark computes."""
    of_spark = SparkDFExecutionEngine.__name__
    others = REFUSED.keys() | REFUSED_ON["spark"].keys() | OF_TYPES  # those of types read the schema
    for kind in set(list_registered_expectation_implementations()) - others:
        implementation = get_expectation_impl(kind)
        if not implementation.__module__.startswith("great_expectations."):
            continue  # `tests/spark` judges the monitor's own
        metric = getattr(implementation, "map_metric", None)
        wanted = (f"{metric}.condition",) if metric else implementation.metric_dependencies
        lacking = [one for one in wanted if of_spark not in _registered_metrics[one]["providers"]]
        assert not lacking, kind


def test_a_condition_that_great_expectations_does_not_heed_is_a_mistake(tmp_path):
    entry = (
        "{type: expect_column_pair_values_to_be_in_set, "
        "kwargs: {column_A: a, column_B: b, value_pairs_set: [[1, 2]], row_condition: 'col(\"a\") > 1', "
        "condition_parser: great_expectations}, meta: {rule: pairs, kind: hard}}"
    )
    (problem,) = problems(tmp_path, entry)
    assert problem.startswith("ours.yaml: expectations[0].kwargs.row_condition: GX counts all rows")


def test_no_other_expectation_takes_sql():
    """A new version of Great Expectations may bring one."""
    for kind in set(list_registered_expectation_implementations()) - REFUSED.keys():
        words = {word for name in get_expectation_impl(kind).__fields__ for word in name.split("_")}
        names = [name for name in get_expectation_impl(kind).__fields__ if "query" in name or "sql" in name]
        assert names in ([], [QUERY]), kind
        assert not words & {"sql", "expression", "template", "statement"}, kind
