"""Checks the SQL of a rule: one SELECT over the rows of its own table, and nothing else.

A team writes a suite, and the monitor, which may have more rights than that team, runs it. So the SQL is
checked first, and the message says what is wrong. On DuckDB it then runs in a database that holds nothing but
the rule's table (`monitor.rules.engines.sealed`). On Spark this check is the only protection.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import Any, Final

import sqlglot
import sqlglot.expressions as exp
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.row_conditions import PassThroughCondition
from sqlglot.errors import SqlglotError

from monitor.core.text import EVIDENCE_LENGTH, SETTING_LENGTH, visible

BATCH: Final = "batch"
QUERY: Final = "unexpected_rows_query"
"""The one argument of any expectation that is SQL; a test looks for others."""
REFUSED: Final[dict[str, str]] = {
    "expect_query_results_to_match_comparison": "it queries a second data source, but the monitor has one",
    "expect_table_row_count_to_equal_other_table": "a rule may read only its own table",
    "expect_column_values_to_be_increasing": "the rows of a log are in no order",
    "expect_column_values_to_be_decreasing": "the rows of a log are in no order",
}
"""Expectations of GX that no rule can have, and why."""
_NO_LIKE: Final = "GX has no LIKE on Spark; expect_column_values_to_match_regex takes an expression"
REFUSED_ON: Final[Mapping[str, dict[str, str]]] = {
    "duckdb": {
        "expect_column_values_to_be_dateutil_parseable": "DuckDB does not guess the form of a date; "
        "expect_column_values_to_match_strftime_format takes a form",
        "expect_column_values_to_match_json_schema": "DuckDB has no JSON schemas; "
        "expect_column_values_to_be_json_parseable or unexpected_rows_expectation may do",
    },
    "spark": {
        "expect_column_values_to_be_dateutil_parseable": "GX cannot judge it on Spark; "
        "expect_column_values_to_match_strftime_format takes a form",
        "expect_column_values_to_match_like_pattern": _NO_LIKE,
        "expect_column_values_to_match_like_pattern_list": _NO_LIKE,
        "expect_column_values_to_not_match_like_pattern": _NO_LIKE,
        "expect_column_values_to_not_match_like_pattern_list": _NO_LIKE,
    },
}
"""The same for one engine."""
NO_CONDITION: Final[Mapping[str, str]] = {
    "expect_column_pair_values_to_be_in_set": "GX counts all rows for this expectation, not those of the "
    "condition; unexpected_rows_expectation can have both",
}
"""Expectations that must have no row condition, and why."""

_SAID: Final = {"duckdb": "DuckDB", "spark": "Spark"}
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TABLE: Final = "recsys_monitor_batch"  # stands for the rows while the text is checked
_ROW_MAKERS: Final = ("range", "generate_series", "unnest", "explode", "posexplode", "inline", "stack")
_FORBIDDEN_FUNCTIONS: Final = re.compile(
    r"getenv|current_setting|getvariable|nextval|currval|query|query_table|glob|sniff_\w+|read_\w+|write_\w+"
    r"|scan_\w+|\w+_scan|duckdb_\w+|pragma_\w+|pg_\w+|parquet_\w+|json_execute\w*|sql_auto\w*|which_secret"
    r"|from_substrait\w*|get_substrait\w*|current_(user|role|schemas?|database|catalog|query)|session_user|user"
    r"|reflect|try_reflect|java_method|input_file\w*|\w*secret|http_\w+|ai_\w+|from_avro|to_avro|sleep\w*"
)
_FORBIDDEN_NODES: Final = (
    exp.DDL, exp.DML, exp.Command, exp.Copy, exp.Set, exp.Pragma, exp.Into, exp.Attach, exp.Detach, exp.Use,
    exp.Describe, exp.Show, exp.Summarize, exp.Install, exp.QueryTransform, exp.SessionParameter,
    exp.Parameter, exp.Placeholder, exp.Drop, exp.Alter, exp.Transaction, exp.Lock,
)  # fmt: skip

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # what it cannot read is refused here, in a sentence


class UnsafeQuery(ValueError):
    """Why a rule's SQL does not run, in a sentence."""


def query_of(expectation: Expectation) -> str | None:
    """The SQL of an expectation; None if it has none."""
    query = getattr(expectation, QUERY, None)
    return query if isinstance(query, str) else None


def over(query: str, table: str) -> str:
    """The query with a table, quoted by the caller, in place of `{batch}`, and `{` in place of `{{`.

    >>> over("SELECT * FROM {batch} WHERE note = '{{}}'", '"exposures"')
    'SELECT * FROM "exposures" WHERE note = \\'{}\\''
    """
    return query.format(**{BATCH: table})


def check_query(query: str, dialect: str = "duckdb") -> None:
    """Refuse SQL that is not one SELECT over `{batch}`.

    Args:
        query: the text, with `{batch}` for the rows of the rule's table.
        dialect: `duckdb` or `spark`.

    Raises:
        UnsafeQuery: it is not; the message says why.

    >>> check_query("WITH old AS (SELECT * FROM {batch} WHERE position > 9) SELECT item_id FROM old")
    >>> check_query("SELECT * FROM read_text('/etc/passwd'), {batch}")
    Traceback (most recent call last):
    monitor.rules.queries.UnsafeQuery: reads read_text(...); a rule may read only {batch}
    """
    _check_placeholders(query)
    try:
        statements = [one for one in sqlglot.parse(over(query, _TABLE), read=dialect) if one is not None]
    except (SqlglotError, RecursionError) as error:
        why = str(error).splitlines()[0].split(". Line ")[0] if str(error) else "it is nested too deeply"
        raise UnsafeQuery(
            f"cannot be read as one SELECT of {_SAID[dialect]}: {visible(why, EVIDENCE_LENGTH)}"
        ) from None
    if len(statements) != 1:
        raise UnsafeQuery(f"holds {len(statements)} statements; a rule must be one SELECT")
    (tree,) = statements
    if not isinstance(tree, exp.Query):
        raise UnsafeQuery("is not a SELECT; a rule may only read")
    for node in tree.walk():
        if isinstance(node, _FORBIDDEN_NODES):
            raise UnsafeQuery(f"holds {type(node).__name__.upper()}; a rule must be one reading SELECT")
        if isinstance(node, exp.Table):
            _check_table(node)
        elif isinstance(node, exp.Func) and _FORBIDDEN_FUNCTIONS.fullmatch(_function(node)):
            raise UnsafeQuery(f"calls {_function(node)}(...), which reaches beyond the rows of {{batch}}")


def check_conditions(expectation: Expectation) -> None:
    """Refuse a row condition that passes text to the engine unchecked.

    Raises:
        UnsafeQuery: it holds one.
    """
    if any(isinstance(one, PassThroughCondition) for one in _conditions(expectation)):
        raise UnsafeQuery(
            "passes text to the engine unchecked; write it as col(\"name\") == 'value', or as a comparison"
        )


def _conditions(expectation: Expectation) -> Iterator[Any]:
    waiting = [getattr(expectation, "row_condition", None)]
    while waiting:
        one = waiting.pop()
        waiting += getattr(one, "conditions", ())
        yield one


def _check_placeholders(query: str) -> None:
    try:
        fields = [
            (name, form, conversion)
            for _, name, form, conversion in Formatter().parse(query)
            if name is not None
        ]
    except ValueError as error:
        raise UnsafeQuery(f"has an unpaired brace ({error}); write {{{{ and }}}} for a brace") from None
    for name, form, conversion in fields:
        if name != BATCH or form or conversion:
            field = name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
            shown = visible(field, SETTING_LENGTH)
            raise UnsafeQuery(f"holds {{{shown}}}; only {{batch}} is filled in, and {{{{ and }}}} are braces")
    if not fields:
        raise UnsafeQuery("does not name {batch}, the rows of its table; write FROM {batch}")


def _check_table(table: exp.Table) -> None:
    what = table.this
    if table.find_ancestor(exp.Hint):  # it repeats an alias
        return
    if isinstance(what, exp.Func):
        if _function(what) not in _ROW_MAKERS:
            raise UnsafeQuery(f"reads {_function(what)}(...); a rule may read only {{batch}}")
        return
    name = table.name
    plain = isinstance(what, exp.Identifier) and not table.db and not table.catalog
    if plain and (name == _TABLE or (_PLAIN.fullmatch(name) and name.lower() in _named_before(table))):
        return
    raise UnsafeQuery(f"reads {visible(table.sql(), SETTING_LENGTH)}; a rule may read only {{batch}}")


def _named_before(table: exp.Table) -> set[str]:
    """The names that WITH has given to queries up to where this table is read."""
    names: set[str] = set()
    within: exp.Expression = table
    outer = table.parent
    while outer is not None:
        if isinstance(outer, exp.With):
            names |= _names(outer, within if isinstance(within, exp.CTE) else None)
        elif not isinstance(within, exp.With):
            own = outer.find(exp.With, bfs=True) if isinstance(outer, exp.Query | exp.DML) else None
            if own is not None and own.parent is outer:
                names |= _names(own, None)
        within, outer = outer, outer.parent
    return names


def _names(with_: exp.With, up_to: exp.CTE | None) -> set[str]:
    names = set()
    for one in with_.expressions:
        if one is up_to and not with_.recursive:
            break
        names.add(str(one.alias).lower())
        if one is up_to:
            break
    return names


def _function(node: exp.Func) -> str:
    name = node.name if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) else node.sql_name()  # type: ignore[no-untyped-call]
    return str(name).lower()
