"""The rule engine: one GX context on one DuckDB database, used by one thread.

The window's tables are made on `connection` or a `cursor()`; `judge` counts the rules of a table together.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # read once, when GX is imported

import duckdb
import great_expectations as gx
import sqlalchemy as sa
from great_expectations.core import ExpectationSuite
from great_expectations.datasource.fluent.interfaces import Batch
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.registry import get_metric_kwargs
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.metrics_calculator import MetricsCalculator

from monitor.rules.engines.sealed import SealedDatabase, quoted
from monitor.rules.expectations import custom  # noqa: F401 - importing them registers them
from monitor.rules.gx import fast_metrics  # noqa: F401 - importing them registers them
from monitor.rules.gx.datasource import DuckDBDatasource, DuckDBExecutionEngine, Stopped
from monitor.rules.gx.internals import condition_from_text
from monitor.rules.gx.messages import short_message, shorten
from monitor.rules.queries import UnsafeQuery, check_conditions, query_of

_COPIED_ROWS = 100_000  # at a time
_Answer = TypeVar("_Answer")

BASIC = {"result_format": "BASIC", "partial_unexpected_count": 0}

# GX writes each failed query to its log before it hands the failure back; the failure is reported by us.
for _name in ("great_expectations.execution_engine", "great_expectations.validator"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)
# It sets its own level, and tells of a docs site that is never built.
logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What GX counted for one expectation.

    `samples` are the rows judged (for a column: those with a value), `violations` those that failed.
    An expectation about a table as a whole has no rows to count: one sample, and 0 or 1 violations.
    `whole` marks those. Where `error` is set, it says in a sentence why nothing could be counted.
    """

    samples: int = 0
    violations: int = 0
    whole: bool = False
    error: str | None = None


class Rules(Protocol):
    """What judges rules on the tables of an engine; see `RuleEngine`."""

    def columns(self, table: str) -> dict[str, str]: ...

    def judge(self, table: str, expectations: Sequence[Expectation]) -> list[Outcome]: ...

    def evidence(
        self, table: str, expectation: Expectation, columns: Sequence[str], order: Sequence[str], limit: int
    ) -> list[dict[str, Any]]: ...

    def release(self) -> None: ...

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


class RuleEngine:
    """A GX context, its DuckDB database, and the connections to it.

    It belongs to one thread; only `interrupt` may be called from another. Two engines in two threads are
    fine, one engine in two threads gives wrong results silently.

    Args:
        database: the name of the in-memory database; `duckdb.connect(":memory:NAME")` and
            `ibis.duckdb.from_connection(engine.cursor())` see the same ordinary tables. Temporary tables
            belong to one connection and are not seen by GX.

    After an interrupt: call `recover()`; where it returns False, `close()` the engine and make a new one
    (its tables are gone then).
    """

    def __init__(self, database: str) -> None:
        self.database = database
        self._cursors: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self._cursors_lock = threading.Lock()
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(f":memory:{database}")
        self.connection.execute("SET TimeZone = 'UTC'")
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
        self._datasource = cast(
            DuckDBDatasource,
            context.data_sources.add_duckdb("monitor", connection_string=f"duckdb:///:memory:{database}"),
        )
        self._context = context  # GX finds it through a weak reference
        self._gx.raw.execute("SET TimeZone = 'UTC'")
        self._source = self.cursor()  # what the sealed database copies is read here
        self._sealed: SealedDatabase | None = None

    @property
    def _gx(self) -> DuckDBExecutionEngine:
        return cast(DuckDBExecutionEngine, self._datasource.get_execution_engine())

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A further connection to the same database, which `interrupt` reaches as well."""
        cursor = self.connection.cursor()
        with self._cursors_lock:
            self._cursors.add(cursor)
        return cursor

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table and their DuckDB types; empty where there is no such table."""
        rows = self.connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? "
            "AND schema_name = 'main' ORDER BY column_index",
            [table],
        ).fetchall()
        return dict(rows)

    def judge(self, table: str, expectations: Sequence[Expectation]) -> list[Outcome]:
        """Count the violations of each expectation on one table, in the order given.

        All are validated together, so GX puts the counts of one domain into one query. Those that are
        written in SQL run by themselves, in a database that holds nothing but the rows. An expectation that
        cannot be evaluated gets an `error`, and the others their counts.

        Raises:
            duckdb.InterruptException: `interrupt` was called.
        """
        outcomes = [Outcome(error="Great Expectations gave no result") for _ in expectations]
        queries = {place: query_of(one) for place, one in enumerate(expectations)}
        placed = [marked(one, place) for place, one in enumerate(expectations) if queries[place] is None]
        self.release()  # the table of that name may be another by now
        with self._interruptible():
            for place, query in queries.items():
                if query is not None:
                    outcomes[place] = self._judge_query(table, query)
            if not placed:
                return outcomes
            batch = self._batch(table)
            for place, outcome in self._validate(batch, placed):
                outcomes[place] = outcome
            failed = [one for one in placed if outcomes[_place(one.meta)].error is not None]
            if len(placed) > 1:
                # Of several failures in one query GX gives the last message to all: ask for each alone.
                for one in failed:
                    for place, outcome in self._validate(batch, [one]):
                        outcomes[place] = outcome
        return outcomes

    def _validate(self, batch: Batch, placed: list[Expectation]) -> Iterator[tuple[int, Outcome]]:
        suite = ExpectationSuite(name="window", expectations=placed)
        for result in batch.validate(suite, result_format=BASIC).results:
            place = _place(result.expectation_config.meta)  # type: ignore[union-attr]
            yield place, outcome_of(result, lambda: self._count(batch.data_asset.name))

    def evidence(
        self,
        table: str,
        expectation: Expectation,
        columns: Sequence[str],
        order: Sequence[str],
        limit: int,
    ) -> list[dict[str, Any]]:
        """At most `limit` rows that break the expectation, in the order of the columns named.

        An expectation about a table as a whole has no such rows.

        Raises:
            duckdb.InterruptException: `interrupt` was called.
        """
        own = query_of(expectation)
        with self._interruptible():
            if own is not None:
                return self._in_sealed(table, lambda sealed: sealed.rows(own, table, limit))
            batch = self._batch(table)
            query = self._violating_rows(batch, expectation, columns, order)
            if query is None or limit < 1:
                return []
            return [dict(row) for row in self._gx.execute_query(query.limit(limit)).mappings()]

    def release(self) -> None:
        """Free the copies that rules written in SQL were judged on; their tables may change now."""
        if self._sealed is not None:
            self._sealed.release()

    def interrupt(self) -> None:
        """Stop whatever runs, on GX's connection and on every cursor. May be called from any thread.

        The call in hand raises duckdb.InterruptException, and so does every later one: close the engine.
        """
        self._gx.stop.set()
        with self._cursors_lock:
            cursors = list(self._cursors)
        sealed = () if self._sealed is None else (self._sealed,)
        for connection in (self._gx.raw, self.connection, *cursors, *sealed):
            with suppress(duckdb.Error):  # one of them may be closed by now
                connection.interrupt()

    def close(self) -> None:
        """Close every connection, which frees the database."""
        with self._cursors_lock:
            cursors = list(self._cursors)
        self._gx.close()
        if self._sealed is not None:
            self._sealed.close()
        self._sealed = None
        for connection in (*cursors, self.connection):
            with suppress(duckdb.Error):
                connection.close()

    def _batch(self, table: str) -> Batch:
        # One asset a table name for good: a new one a window would pile up in GX's context. The asset
        # names the table, and the table's content is looked at anew each time.
        if table not in self._datasource.get_asset_names():
            self._datasource.add_table_asset(name=table, table_name=table)
        asset = self._datasource.get_asset(table)
        return asset.get_batch(asset.build_batch_request())  # type: ignore[no-any-return]

    def _count(self, table: str) -> int:
        query = sa.select(sa.func.count()).select_from(sa.table(table))
        return int(self._gx.execute_query(query).scalar())

    def _violating_rows(
        self, batch: Batch, expectation: Expectation, columns: Sequence[str], order: Sequence[str]
    ) -> sa.Select[Any] | None:
        metric = getattr(expectation, "map_metric", None)
        if not metric:
            return None
        name = f"{metric}.condition"
        kwargs = get_metric_kwargs(name, configuration=expectation.configuration)
        domain = {**kwargs["metric_domain_kwargs"], "batch_id": batch.id}
        condition, compute, accessor = MetricsCalculator(self._gx, show_progress_bars=False).get_metric(
            MetricConfiguration(name, domain, kwargs["metric_value_kwargs"])
        )
        source = self._gx.get_domain_records({**compute, **accessor})
        if isinstance(source, sa.Select):
            source = source.subquery()
        shown: list[Any] = [sa.column(name) for name in columns]
        sorted_by: list[Any] = [sa.column(name) for name in order]
        return sa.select(*shown).select_from(source).where(condition).order_by(*sorted_by)

    def _judge_query(self, table: str, query: str) -> Outcome:
        def counted(sealed: SealedDatabase) -> Outcome:
            rows = sealed.count_rows(table)
            return Outcome(samples=rows, violations=min(sealed.count(query, table), rows))

        try:
            return self._in_sealed(table, counted)
        except duckdb.InterruptException:
            raise
        except (duckdb.Error, UnsafeQuery) as error:
            return Outcome(error=shorten(str(error)))

    def _in_sealed(self, table: str, work: Callable[[SealedDatabase], _Answer]) -> _Answer:
        """What the work gives in the sealed database, once that holds a copy of the table.

        Raises:
            Stopped: the engine was asked to stop, before or during the work.
        """
        if self._gx.stop.is_set():
            raise Stopped
        try:
            if self._sealed is None:
                self._sealed = self._new_sealed()
            if not self._sealed.holds(table):
                rows = self._source.execute(f"SELECT * FROM {quoted(table)}")  # noqa: S608 - quoted
                self._sealed.fill(table, self.columns(table), rows.to_arrow_reader(_COPIED_ROWS))
            return work(self._sealed)
        except duckdb.Error as error:
            if self._gx.stop.is_set() or isinstance(error, duckdb.InterruptException):
                raise Stopped from error
            raise

    def _new_sealed(self) -> SealedDatabase:
        asked = "SELECT current_setting('memory_limit'), current_setting('threads'), "
        found = self.connection.execute(f"{asked} current_setting('temp_directory')").fetchone()
        memory, threads, spill = found or ("1GiB", 1, "")
        return SealedDatabase(memory, threads, Path(spill) / "rules")

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        try:
            yield
        except Stopped as stopped:
            raise duckdb.InterruptException("the rules were interrupted") from stopped


def marked(expectation: Expectation, place: int) -> Expectation:
    """A copy that says its place, since GX gives results in an order of its own."""
    copy = expectation.copy()
    copy.meta = {**(expectation.meta or {}), "place": place}
    copy.id = None
    return copy


def _place(meta: Mapping[str, Any] | None) -> int:
    return int((meta or {})["place"])


def build(config: dict[str, Any]) -> Expectation:
    """An expectation from GX's serialised form: `type`, `kwargs`, and optionally `meta`, `severity`.

    A row condition as text becomes a condition object here, since GX means to drop the text form.

    Raises what GX raises: its registry's error for an unknown type, pydantic's for wrong arguments; and
    ValueError for a row condition that is no condition of GX's own.
    """
    kwargs = dict(config.get("kwargs") or {})
    if isinstance(condition := kwargs.get("row_condition"), str):
        parser = kwargs.pop("condition_parser", None)
        if parser not in (None, "great_expectations", "great_expectations__experimental__"):
            raise ValueError(f"a row condition for {parser} does not run here; write it as a mapping")
        kwargs["row_condition"] = condition_from_text(condition)
    expectation = ExpectationConfiguration(**{**config, "kwargs": kwargs}).to_domain_obj()
    check_conditions(expectation)
    return expectation


def outcome_of(result: Any, count_rows: Callable[[], int]) -> Outcome:
    """What one result of GX counted; `count_rows` counts the table where the result does not."""
    error = short_message(result.exception_info)
    if error is not None:
        return Outcome(error=error)
    found: dict[str, Any] = result.result or {}
    violations = found.get("unexpected_count")
    if violations is not None:
        judged = int(found.get("element_count") or 0) - int(found.get("missing_count") or 0)
        return Outcome(samples=judged, violations=int(violations))
    if "element_count" in found:  # counted over no rows at all, where a sum is NULL
        return Outcome()
    if "observed_value" in found and found["observed_value"] is None:
        return Outcome(whole=True)  # such as the maximum of a column without a value
    rows = count_rows()
    if result.expectation_config.type == "unexpected_rows_expectation":  # on Spark
        return Outcome(samples=rows, violations=min(int(found.get("observed_value") or 0), rows))
    return Outcome(samples=min(rows, 1), violations=0 if result.success or not rows else 1, whole=True)
