"""GX's metrics of texts that it has no DuckDB operator for: patterns, lists of them, dates, JSON.

See `fast_metrics`. Regular expressions have the syntax of RE2, and dates that of DuckDB's `strptime`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from monitor.rules.gx.datasource import DuckDBExecutionEngine
from monitor.rules.gx.internals import ColumnMapMetricProvider, column_condition

_Condition = sa.ColumnElement[bool]


def _matches(column: Any, regex: str) -> _Condition:
    return sa.func.regexp_matches(sa.cast(column, sa.String), regex)


def _like(column: Any, pattern: str) -> _Condition:
    return sa.cast(column, sa.String).like(pattern)


def _some(
    match: Callable[[Any, str], _Condition], column: Any, patterns: Sequence[str], on: str
) -> _Condition:
    """Whether a value matches any of the patterns, or all of them."""
    if on not in ("any", "all"):
        raise ValueError("match_on must be any or all")
    return (sa.or_ if on == "any" else sa.and_)(*[match(column, one) for one in patterns])


class MatchRegexList(ColumnMapMetricProvider):
    """`expect_column_values_to_match_regex_list`."""

    condition_metric_name = "column_values.match_regex_list"
    condition_value_keys = ("regex_list", "match_on")

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column: Any, regex_list: Sequence[str], match_on: str = "any", **_: Any) -> Any:  # noqa: N805
        return _some(_matches, column, regex_list, match_on or "any")


class NotMatchRegexList(ColumnMapMetricProvider):
    """`expect_column_values_to_not_match_regex_list`: a value matches none of them."""

    condition_metric_name = "column_values.not_match_regex_list"
    condition_value_keys = ("regex_list",)

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column: Any, regex_list: Sequence[str], **_: Any) -> Any:  # noqa: N805
        return sa.not_(_some(_matches, column, regex_list, "any"))


class MatchLike(ColumnMapMetricProvider):
    """`expect_column_values_to_match_like_pattern`."""

    condition_metric_name = "column_values.match_like_pattern"
    condition_value_keys = ("like_pattern",)

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column: Any, like_pattern: str, **_: Any) -> Any:  # noqa: N805
        return _like(column, like_pattern)


class NotMatchLike(ColumnMapMetricProvider):
    """`expect_column_values_to_not_match_like_pattern`."""

    condition_metric_name = "column_values.not_match_like_pattern"
    condition_value_keys = ("like_pattern",)

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column: Any, like_pattern: str, **_: Any) -> Any:  # noqa: N805
        return sa.not_(_like(column, like_pattern))


class MatchLikeList(ColumnMapMetricProvider):
    """`expect_column_values_to_match_like_pattern_list`."""

    condition_metric_name = "column_values.match_like_pattern_list"
    condition_value_keys = ("like_pattern_list", "match_on")

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(
        cls,  # noqa: N805
        column: Any,
        like_pattern_list: Sequence[str],
        match_on: str = "any",
        **_: Any,
    ) -> Any:
        return _some(_like, column, like_pattern_list, match_on or "any")


class NotMatchLikeList(ColumnMapMetricProvider):
    """`expect_column_values_to_not_match_like_pattern_list`: a value matches none of them."""

    condition_metric_name = "column_values.not_match_like_pattern_list"
    condition_value_keys = ("like_pattern_list",)

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column: Any, like_pattern_list: Sequence[str], **_: Any) -> Any:  # noqa: N805
        return sa.not_(_some(_like, column, like_pattern_list, "any"))


class MatchStrftime(ColumnMapMetricProvider):
    """`expect_column_values_to_match_strftime_format`."""

    condition_metric_name = "column_values.match_strftime_format"
    condition_value_keys = ("strftime_format",)

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column: Any, strftime_format: str, **_: Any) -> Any:  # noqa: N805
        return sa.func.try_strptime(sa.cast(column, sa.String), strftime_format).is_not(None)


class JsonParseable(ColumnMapMetricProvider):
    """`expect_column_values_to_be_json_parseable`."""

    condition_metric_name = "column_values.json_parseable"

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column: Any, **_: Any) -> Any:  # noqa: N805
        return sa.func.json_valid(sa.cast(column, sa.String))
