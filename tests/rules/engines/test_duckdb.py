"""The rule engine on real DuckDB and real GX: what it sees, what it keeps, how it is stopped."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import duckdb
import ibis
import pyarrow as pa
import pytest

from monitor.rules.engines.base import build
from monitor.rules.engines.duckdb import DuckDBRuleEngine
from monitor.rules.list_files import FILES

SLOW = "SELECT sum(hash(a.range + b.range)) FROM range(1000000) a, range(100000) b"


@pytest.fixture
def engine(request):
    engine = DuckDBRuleEngine(f"test_{request.node.name[:40]}")
    yield engine
    engine.close()


def expectation(kind, **kwargs):
    return build({"type": kind, "kwargs": kwargs})


BETWEEN = ("expect_column_values_to_be_between",)


def test_gx_and_ibis_see_the_same_tables(engine):
    backend = ibis.duckdb.from_connection(engine.cursor())
    backend.create_table("numbers", ibis.memtable({"n": [1, 2, 30]}))
    (outcome,) = engine.judge("numbers", [expectation(*BETWEEN, column="n", max_value=10)])
    assert (outcome.samples, outcome.violations, outcome.error) == (3, 1, None)


def test_a_replaced_table_is_seen_as_it_is_now_even_with_other_columns(engine):
    rule = expectation(*BETWEEN, column="n", max_value=10)
    engine.connection.execute("CREATE TABLE t AS SELECT 5 AS n")
    assert engine.judge("t", [rule])[0].violations == 0
    engine.connection.execute("CREATE OR REPLACE TABLE t AS SELECT 'x' AS other, 50::DOUBLE AS n")
    assert engine.judge("t", [rule])[0].violations == 1
    engine.connection.execute("CREATE OR REPLACE TABLE t AS SELECT 'x' AS other")
    assert "n" in engine.judge("t", [rule])[0].error


def test_results_come_back_in_the_order_asked_for(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(100)")
    rules = [expectation(*BETWEEN, column="n", max_value=most) for most in (90, 10, 50, 99, 0)]
    assert [one.violations for one in engine.judge("t", rules)] == [9, 89, 49, 0, 99]


def test_the_same_rule_twice_gets_two_results(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(100)")
    rule = expectation(*BETWEEN, column="n", max_value=90)
    assert [one.violations for one in engine.judge("t", [rule, rule])] == [9, 9]


def test_a_broken_rule_gets_its_own_error_and_its_neighbours_their_counts(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT range AS n, range::VARCHAR AS s FROM range(100)")
    good, missing, regex, unknown_table, last = engine.judge(
        "t",
        [
            expectation(*BETWEEN, column="n", max_value=90),
            expectation(*BETWEEN, column="nosuch", max_value=90),
            expectation("expect_column_values_to_match_regex", column="s", regex="["),
            expectation("expect_column_values_to_be_in_catalog", column="n"),
            expectation("expect_column_values_to_match_regex", column="s", regex="^[0-8]"),
        ],
    )
    assert (good.violations, good.error) == (9, None)
    assert "nosuch" in missing.error
    assert "missing ]" in regex.error
    assert "catalog" in unknown_table.error
    assert "SELECT" not in unknown_table.error
    assert (last.violations, last.error) == (11, None)


def test_an_empty_table_gives_no_samples(engine):
    engine.connection.execute("CREATE TABLE t (n BIGINT, m BIGINT)")
    outcomes = engine.judge(
        "t",
        [
            expectation(*BETWEEN, column="n", max_value=1),
            expectation("expect_compound_columns_to_be_unique", column_list=["n", "m"]),
            expectation("expect_columns_to_not_be_zero", column_list=["n"]),
            expectation("expect_column_max_to_be_between", column="n", max_value=1),
            expectation("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM {batch}"),
        ],
    )
    assert [(one.samples, one.violations, one.error) for one in outcomes] == [(0, 0, None)] * 5


def test_an_expectation_about_the_whole_table_is_one_sample(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(100)")
    rules = [expectation("expect_column_max_to_be_between", column="n", max_value=most) for most in (99, 98)]
    fine, broken = engine.judge("t", rules)
    assert (fine.samples, fine.violations, fine.whole) == (1, 0, True)
    assert (broken.samples, broken.violations, broken.whole) == (1, 1, True)


def test_a_column_without_a_value_has_no_maximum_to_judge(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT NULL::DOUBLE AS n FROM range(100)")
    kinds = ("max", "min", "mean", "sum", "median", "stdev")
    rules = [expectation(f"expect_column_{kind}_to_be_between", column="n", max_value=1) for kind in kinds]
    assert [(one.samples, one.violations, one.error) for one in engine.judge("t", rules)] == [
        (0, 0, None)
    ] * 6


@pytest.mark.parametrize(
    ("values", "kind", "arguments", "violated"),
    [
        ("'a'", "expect_column_distinct_values_to_be_in_set", {"value_set": ["a"]}, False),
        ("'b'", "expect_column_distinct_values_to_be_in_set", {"value_set": ["a"]}, True),
        ("'a'", "expect_column_distinct_values_to_contain_set", {"value_set": ["a"]}, False),
        ("'b'", "expect_column_distinct_values_to_contain_set", {"value_set": ["a"]}, True),
        ("'a'", "expect_column_distinct_values_to_equal_set", {"value_set": ["a"]}, False),
        ("'b'", "expect_column_distinct_values_to_equal_set", {"value_set": ["a", "c"]}, True),
        ("'nan'::DOUBLE", "expect_column_max_to_be_between", {"max_value": 1}, True),
        ("'nan'::DOUBLE", "expect_column_mean_to_be_between", {"max_value": 1}, True),
        ("NULL", "expect_column_proportion_of_non_null_values_to_be_between", {"min_value": 1}, True),
    ],
)
def test_an_expectation_about_a_whole_column_is_judged_whatever_its_observed_value(
    engine, values, kind, arguments, violated
):
    engine.connection.execute(f"CREATE TABLE t AS SELECT {values} AS x")
    (outcome,) = engine.judge("t", [expectation(kind, column="x", **arguments)])
    assert (outcome.samples, outcome.violations, outcome.whole) == (1, violated, True), outcome.error


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("expect_column_distinct_values_to_be_in_set", {"value_set": ["a"]}),
        ("expect_column_distinct_values_to_equal_set", {"value_set": ["a"]}),
        ("expect_column_most_common_value_to_be_in_set", {"value_set": ["a"]}),
        ("expect_column_unique_value_count_to_be_between", {"min_value": 1}),
        ("expect_column_proportion_of_unique_values_to_be_between", {"min_value": 0.5}),
    ],
)
def test_a_whole_column_without_a_value_is_never_violated(engine, kind, arguments):
    engine.connection.execute("CREATE TABLE t AS SELECT NULL::VARCHAR AS x")
    (outcome,) = engine.judge("t", [expectation(kind, column="x", **arguments)])
    assert (outcome.samples, outcome.violations, outcome.error) == (0, 0, None)


def test_a_whole_column_has_no_value_where_its_row_condition_leaves_none(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (5, 'a'), (NULL, 'b')) AS t(x, scene)")
    rules = [
        expectation(
            "expect_column_unique_value_count_to_be_between",
            column="x",
            min_value=2,
            row_condition=f"col(\"scene\") == '{scene}'",
        )
        for scene in "abc"
    ]
    assert [(one.samples, one.violations) for one in engine.judge("t", rules)] == [(1, 1), (0, 0), (0, 0)]


def test_the_deviation_of_a_single_value_is_not_judged(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT 7 AS x")
    rule = expectation("expect_column_stdev_to_be_between", column="x", max_value=1)
    assert engine.judge("t", [rule])[0].samples == 0


def test_a_query_expectation_counts_its_rows_and_fetches_only_the_evidence(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(100000)")
    query = "SELECT * FROM {batch} WHERE n >= 10"
    rule = expectation("unexpected_rows_expectation", unexpected_rows_query=query)
    (outcome,) = engine.judge("t", [rule])
    assert (outcome.samples, outcome.violations) == (100000, 99990)
    assert len(engine.evidence("t", rule, ["n"], ["n"], 5)) == 5


def test_a_query_expectation_may_hold_colons_and_doubled_braces(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT range AS n, '10:30 {x}' AS moment FROM range(20)")
    rule = expectation(
        "unexpected_rows_expectation",
        unexpected_rows_query="SELECT n FROM {batch} WHERE moment = '10:30 {{x}}'::VARCHAR AND n >= 18",
    )
    (outcome,) = engine.judge("t", [rule])
    assert (outcome.violations, outcome.error) == (2, None)
    assert sorted(row["n"] for row in engine.evidence("t", rule, ["n"], ["n"], 5)) == [18, 19]


@pytest.mark.parametrize(
    "condition",
    [
        {"row_condition": 'col("odd") == 1', "condition_parser": "great_expectations"},
        {"row_condition": 'col("odd") == 1'},
        {
            "row_condition": {
                "type": "comparison",
                "column": {"name": "odd"},
                "operator": "==",
                "parameter": 1,
            }
        },
    ],
)
@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_evidence_is_ordered_limited_and_within_the_row_condition(engine, condition):
    engine.connection.execute("CREATE TABLE t AS SELECT 99 - range AS n, range % 2 AS odd FROM range(100)")
    rule = expectation(
        *BETWEEN,
        column="n",
        max_value=90,
        **condition,
    )
    (outcome,) = engine.judge("t", [rule])
    assert (outcome.samples, outcome.violations) == (50, 4)
    assert engine.evidence("t", rule, ["n"], ["n"], 3) == [{"n": 92}, {"n": 94}, {"n": 96}]
    assert engine.evidence("t", rule, ["n"], ["n"], 0) == []


def test_a_row_condition_in_the_words_of_another_engine_is_refused():
    with pytest.raises(ValueError, match="pandas"):
        expectation(*BETWEEN, column="n", max_value=1, row_condition="odd == 1", condition_parser="pandas")


def test_a_hundred_windows_stay_flat_and_each_sees_its_own_data(engine):
    rules = [
        expectation(*BETWEEN, column="n", min_value=1),
        expectation("expect_column_values_to_be_finite", column="x"),
    ]
    cursor = engine.cursor()
    memory = []
    for window in range(100):
        cursor.execute(
            "CREATE OR REPLACE TABLE exposures AS SELECT CASE WHEN range < ? THEN 0 ELSE range + 1 END AS n, "
            "random() AS x FROM range(100000)",
            [window],
        )
        between, finite = engine.judge("exposures", rules)
        assert (between.violations, finite.violations) == (window, 0)
        (bytes_used,) = cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()
        memory.append(bytes_used)
    assert max(memory[50:]) <= 1.2 * max(memory[5:25])
    assert len(engine._datasource.assets) == 1
    cursor.execute("DROP TABLE exposures")
    (left,) = cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()
    assert left < 0.5 * max(memory)


def test_an_interrupt_stops_a_running_rule_at_once_and_is_no_rule_error(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT 1 AS n")
    slow = expectation("unexpected_rows_expectation", unexpected_rows_query=f"{SLOW}, {{batch}}")
    timer = threading.Timer(0.5, engine.interrupt)
    timer.start()
    started = time.monotonic()
    with pytest.raises(duckdb.InterruptException):
        engine.judge("t", [expectation(*BETWEEN, column="n", max_value=1), slow])
    assert time.monotonic() - started < 60


def test_after_an_interrupt_every_call_is_refused(engine):
    engine.connection.execute("CREATE TABLE t AS SELECT 5 AS n")
    rule = expectation(*BETWEEN, column="n", max_value=1)
    engine.interrupt()
    with pytest.raises(duckdb.InterruptException):
        engine.judge("t", [rule])
    with pytest.raises(duckdb.InterruptException):
        engine.evidence("t", rule, ["n"], ["n"], 5)


def test_an_interrupt_reaches_the_cursors_that_others_work_on(engine):
    cursor = engine.cursor()
    timer = threading.Timer(0.3, engine.interrupt)
    timer.start()
    with pytest.raises(duckdb.InterruptException):
        cursor.execute(SLOW).fetchall()
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_a_closed_engine_frees_its_database_and_a_new_one_starts_empty():
    first = DuckDBRuleEngine("reused")
    first.connection.execute("CREATE TABLE t AS SELECT 1 AS n")
    first.cursor()
    first.close()
    second = DuckDBRuleEngine("reused")
    try:
        assert second.columns("t") == {}
    finally:
        second.close()


def test_two_engines_in_two_threads_do_not_mix_their_results():
    wrong: list[tuple[int, int]] = []
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            engine = DuckDBRuleEngine(f"thread_{number}")
            rule = expectation(*BETWEEN, column="n", max_value=100 * number)
            for _ in range(8):
                engine.connection.execute(
                    "CREATE OR REPLACE TABLE t AS SELECT range + 1 AS n FROM range(1000)"
                )
                (outcome,) = engine.judge("t", [rule])
                if outcome.violations != 1000 - 100 * number:
                    wrong.append((number, outcome.violations))
            engine.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert not wrong


def test_nothing_is_written_to_the_terminal(engine, capfd):
    engine.connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(10)")
    engine.judge("t", [expectation(*BETWEEN, column=c, max_value=1) for c in ("n", "nosuch")])
    written = capfd.readouterr()
    assert (written.out, written.err) == ("", "")


def test_a_new_engine_counts_by_the_plan_of_an_earlier_one_with_its_list(tmp_path, monkeypatch):
    path = tmp_path / "blacklist.csv"
    path.write_text("item_id\nforbidden\n")
    rows = {"item_id": ["a", "forbidden", None, "forbidden"], "position": [1, 2, None, 4]}
    version = FILES.read(path, "item_id", allow_empty=False).version
    expectations = [
        expectation(
            "expect_column_values_to_not_be_in_list_file",
            column="item_id", list_path=str(path), list_version=version,
        ),
        expectation("expect_column_values_to_not_be_null", column="position"),
    ]  # fmt: skip
    validated = []
    by_gx = DuckDBRuleEngine._by_gx

    def counted(self, table, asked):
        validated.extend(asked)
        return by_gx(self, table, asked)

    monkeypatch.setattr(DuckDBRuleEngine, "_by_gx", counted)
    found = []
    for number in range(3):
        one = DuckDBRuleEngine(f"plans_{number}")
        one.connection.register("given", pa.table(rows))
        one.connection.execute("CREATE TABLE planned AS FROM given")
        found.append([(each.samples, each.violations) for each in one.judge("planned", expectations)])
        one.close()
    assert found == [[(3, 2), (4, 1)]] * 3
    assert validated == [0, 1], "Great Expectations plans once, for the first engine"


def banned_by(path, column="item_id"):
    version = FILES.read(path, column).version
    return expectation(
        "expect_column_values_to_not_be_in_list_file",
        column="item_id",
        list_path=str(path),
        list_column=column,
        list_version=version,
    )


def test_two_columns_of_one_list_file_are_counted_by_one_plan(engine, tmp_path, monkeypatch):
    path = tmp_path / "two.csv"
    path.write_text("item_id,sku\na,b\n")
    engine.connection.execute("CREATE TABLE two AS SELECT unnest(['a', 'b', 'b']) AS item_id")
    rules = [banned_by(path), banned_by(path, "sku")]
    assert [one.violations for one in engine.judge("two", rules)] == [1, 2]
    monkeypatch.setattr(DuckDBRuleEngine, "_by_gx", lambda *_: {})
    assert [one.violations for one in engine.judge("two", rules)] == [1, 2]


def test_a_list_that_is_replaced_again_and_again_does_not_stay_in_memory(engine, tmp_path):
    path = tmp_path / "often.txt"
    engine.connection.execute("CREATE TABLE often AS SELECT unnest(['a', 'b']) AS item_id")
    contents = []
    for number in range(5):
        path.write_text(f"a\nother{number}\n")
        rule = banned_by(path)
        contents.append(weakref.ref(FILES.read(path)))
        assert engine.judge("often", [rule])[0].violations == 1
        assert engine.evidence("often", rule, ["item_id"], [], 5) == [{"item_id": "a"}]
    gc.collect()
    assert [one() is None for one in contents] == [True, True, True, False, False]


def test_the_query_of_evidence_is_planned_once_and_reads_the_table_of_each_window(tmp_path, monkeypatch):
    path = tmp_path / "blacklist.csv"
    planned = []
    plan = DuckDBRuleEngine._evidence_plan

    def counted(self, *asked):
        planned.append(asked)
        return plan(self, *asked)

    def banned(versioned, *ids):
        """The evidence of a window with items a to e, some of them on the list."""
        path.write_text("\n".join(["item_id", *ids, ""]))
        rule = expectation(
            "expect_column_values_to_not_be_in_list_file",
            column="item_id",
            list_path=str(path),
            list_version=FILES.read(path, "item_id", allow_empty=False).version if versioned else None,
        )
        one = DuckDBRuleEngine(f"evidence_{len(found)}_{versioned}")
        rows = {"item_id": [*"abcde", None], "say": ["%(x)s :y $1 '"] * 6, "window": [len(found)] * 6}
        one.connection.register("given", pa.table(rows))
        one.connection.execute("CREATE TABLE shown AS FROM given")
        found.append(one.evidence("shown", rule, ["item_id", "window", "say"], ["item_id"], 2))
        one.close()

    monkeypatch.setattr(DuckDBRuleEngine, "_evidence_plan", counted)
    for versioned, plans in ((True, 3), (False, 4)):
        found: list[list[dict[str, object]]] = []
        planned.clear()
        for ids in (("e", "b", "d"), ("e", "b", "d"), ("c",), ("e", "b", "d")):
            banned(versioned, *ids)
        assert [[row["item_id"] for row in rows] for rows in found] == [["b", "d"]] * 2 + [["c"], ["b", "d"]]
        assert [[row["window"] for row in rows] for rows in found] == [[0, 0], [1, 1], [2], [3, 3]]
        assert {row["say"] for rows in found for row in rows} == {"%(x)s :y $1 '"}
        assert len(planned) == plans, (
            "once for each change of the list; a list without a version may have changed"
        )


def test_values_of_an_expectation_reach_the_kept_query_unchanged(engine):
    hostile = 'it\'s $1 :x %s %% \\ "q" é'
    engine.connection.execute("CREATE TABLE t (s VARCHAR)")
    engine.connection.execute("INSERT INTO t VALUES (?), ('other'), (NULL)", [hostile])
    rule = expectation("expect_column_values_to_not_be_in_set", column="s", value_set=[hostile, "x"])
    for _ in range(2):
        (outcome,) = engine.judge("t", [rule])
        assert (outcome.samples, outcome.violations, outcome.error) == (2, 1, None)
        assert engine.evidence("t", rule, ["s"], [], 5) == [{"s": hostile}]
