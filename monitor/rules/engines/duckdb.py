"""The rule engine on DuckDB: one GX context on one database, used by one thread.

The window's tables are made on `connection` or a `cursor()`; `judge` counts the rules of a table together.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

import duckdb
import sqlalchemy as sa
from great_expectations.datasource.fluent.interfaces import Batch
from great_expectations.expectations.expectation import Expectation

from monitor.rules.engines.base import Outcome, count_violations, new_context, violating_rows
from monitor.rules.engines.sealed import SealedDatabase, quoted
from monitor.rules.gx import fast_metrics, text_metrics  # noqa: F401 - importing them registers them with GX
from monitor.rules.gx.datasource import Compiled, DuckDBDatasource, DuckDBExecutionEngine, Stopped
from monitor.rules.gx.fused import fused
from monitor.rules.gx.grouped import GroupedPlan
from monitor.rules.gx.messages import shorten
from monitor.rules.gx.plan import Plan, Record, Statement, counts_of, is_fixed
from monitor.rules.list_files import ListContent
from monitor.rules.queries import UnsafeQuery, query_of

_COPIED_ROWS = 100_000  # at a time
_Answer = TypeVar("_Answer")
_Plan = TypeVar("_Plan", bound="_ReadsLists")

# GX writes each failed query to its log before it hands the failure back; the failure is reported by us.
for _name in ("great_expectations.execution_engine", "great_expectations.validator"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)
# It sets its own level, and writes about a docs site that is never built.
logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)


class _ReadsLists(Protocol):
    """A plan: the lists of ids that it reads, and whether as integers."""

    @property
    def lists(self) -> Sequence[tuple[ListContent, bool]]: ...


class _Plans(Generic[_Plan]):
    """The plans of this process, those that were not asked for longest dropped first.

    A plan holds for every engine: it names the table, its columns and the expectations. Recommenders take
    turns on one engine, and an engine lasts for thirty windows; to plan takes as long as a window.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[tuple[str, ...], _Plan] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, ...]) -> _Plan | None:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def keep(self, key: tuple[str, ...], plan: _Plan | None) -> None:
        with self._lock:
            self._held.pop(key, None)
            if plan is not None:
                self._drop_older_lists(plan)
                self._held[key] = plan
            if len(self._held) > self._most:
                self._held.popitem(last=False)

    def _drop_older_lists(self, plan: _Plan) -> None:
        """A list that is replaced every hour would be here in each of its versions, with all its ids."""
        newest = {(one.path, one.column): one.version for one, _ in plan.lists}
        for key, held in list(self._held.items()):
            if any(newest.get((one.path, one.column), one.version) != one.version for one, _ in held.lists):
                del self._held[key]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The query of an expectation's evidence, and the lists of ids that it reads as tables."""

    query: Compiled
    lists: Sequence[tuple[ListContent, bool]]


_plans: _Plans[Plan] = _Plans(256)
_grouped: _Plans[GroupedPlan] = _Plans(64)
_evidence: _Plans[_Evidence] = _Plans(256)


class DuckDBRuleEngine:
    """A GX context, its DuckDB database, and the connections to it.

    It belongs to one thread; only `interrupt` may be called from another. Two engines in two threads work,
    one engine in two threads gives wrong results without an error.

    Args:
        database: the name of the in-memory database; `duckdb.connect(":memory:NAME")` and
            `ibis.duckdb.from_connection(engine.cursor())` see the same ordinary tables. Temporary tables
            belong to one connection and are not seen by GX.

    After an interrupt, close the engine and make a new one; its tables are gone then.
    """

    def __init__(self, database: str) -> None:
        self.database = database
        self._cursors: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self._cursors_lock = threading.Lock()
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(f":memory:{database}")
        self.connection.execute("SET TimeZone = 'UTC'")
        self._context = new_context()
        self._datasource = cast(
            DuckDBDatasource,
            self._context.data_sources.add_duckdb(
                "monitor", connection_string=f"duckdb:///:memory:{database}"
            ),
        )
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
        try:
            rows = self.connection.execute(f"DESCRIBE {quoted(table)}").fetchall()
        except duckdb.CatalogException:
            return {}
        return {name: kind for name, kind, *_ in rows}

    def judge(self, table: str, expectations: Sequence[Expectation]) -> list[Outcome]:
        """See `RuleEngine.judge`. Rules in SQL run alone, in a database that holds nothing but the rows."""
        queries = {number: query for number, one in enumerate(expectations) if (query := query_of(one))}
        others = {number: one for number, one in enumerate(expectations) if number not in queries}
        self.release()  # another table may have this name by now
        with self._interruptible():
            outcomes = {number: self._judge_query(table, query) for number, query in queries.items()}
            if others:
                outcomes |= self._judge(table, others)
        return [outcomes[number] for number in range(len(expectations))]

    def judge_groups(
        self, table: str, expectations: Sequence[Expectation], by: str, groups: Sequence[Hashable]
    ) -> dict[Hashable, dict[int, Outcome]]:
        """See `RuleEngine.judge_groups`."""
        fixed = {number: one for number, one in enumerate(expectations) if not query_of(one)}
        with self._interruptible():
            key = (by, *self._key(table, fixed.values()))
            plan = _grouped.get(key)
            if plan is None:
                with self._gx.recording() as record:
                    outcomes = self._by_gx(table, fixed)
                whole = self._planned(table, fixed, outcomes, record)
                plan = GroupedPlan.of(Plan((), {}) if whole is None else whole, table, by)
                _grouped.keep(key, plan)
            self._make_lists(plan.lists)
            counted = plan.run(self._gx.rows, groups)
        return {
            group: {number: _outcome(*counts) for number, counts in one.items()}
            for group, one in counted.items()
        }

    def _judge(self, table: str, expectations: Mapping[int, Expectation]) -> dict[int, Outcome]:
        """Count by the plan that GX made of the same expectations on the same columns, else by GX."""
        key = self._key(table, expectations.values())
        plan = _plans.get(key)
        if plan is not None:
            with suppress(sa.exc.SQLAlchemyError, duckdb.Error):  # then GX says which rule fails, and why
                self._make_lists(plan.lists)
                counted = plan.run(self._gx.rows)
                outcomes = {number: _outcome(*counts) for number, counts in counted.items()}
                others = {number: one for number, one in expectations.items() if number not in outcomes}
                return outcomes | self._by_gx(table, others)
        with self._gx.recording() as record:
            outcomes = self._by_gx(table, expectations)
        _plans.keep(key, self._planned(table, expectations, outcomes, record))
        return outcomes

    def _by_gx(self, table: str, expectations: Mapping[int, Expectation]) -> dict[int, Outcome]:
        if not expectations:
            return {}
        return count_violations(self._batch(table), expectations, lambda: self._count(table))

    def _planned(
        self,
        table: str,
        expectations: Mapping[int, Expectation],
        outcomes: Mapping[int, Outcome],
        record: Record,
    ) -> Plan | None:
        """The plan of those expectations for which it counts what GX has counted."""
        batch = self._batch(table).id
        counts = {
            number: found
            for number, one in expectations.items()
            if outcomes[number].error is None and (found := counts_of(one, batch, self._gx)) is not None
        }
        try:
            asked = [Statement(self._gx.compiled(one.query), one.metrics) for one in record.statements]
            plan = Plan.of(counts, Record(asked, record.lists))
            plan = replace(plan, statements=fused(plan.statements))
            again = plan.run(self._gx.rows)
        except (sa.exc.SQLAlchemyError, duckdb.Error):
            return None
        return plan.without(
            {number for number, found in again.items() if _outcome(*found) != outcomes[number]}
        )

    def evidence(
        self, table: str, expectation: Expectation, columns: Sequence[str], order: Sequence[str], limit: int
    ) -> list[dict[str, Any]]:
        """See `RuleEngine.evidence`."""
        own = query_of(expectation)
        with self._interruptible():
            if own is not None:
                return self._in_sealed(table, lambda sealed: sealed.rows(own, table, limit))
            key = (*self._key(table, [expectation]), repr((*columns,)), repr((*order,)), str(limit))
            plan = _evidence.get(key)
            if plan is None:
                plan = self._evidence_plan(table, expectation, columns, order, limit)
                if plan is None:
                    return []
                if is_fixed(expectation, self._batch(table).id, self._gx):
                    _evidence.keep(key, plan)
            self._make_lists(plan.lists)
            return [dict(zip(columns, row, strict=True)) for row in self._gx.rows(plan.query).fetchall()]

    def _evidence_plan(
        self, table: str, expectation: Expectation, columns: Sequence[str], order: Sequence[str], limit: int
    ) -> _Evidence | None:
        with self._gx.recording() as record:
            violating = violating_rows(self._gx, self._batch(table), expectation)
        if violating is None or limit < 1:
            return None
        rows, condition = violating
        source = rows.subquery() if isinstance(rows, sa.Select) else rows
        shown: list[Any] = [sa.column(name) for name in columns]
        sorted_by: list[Any] = [sa.column(name) for name in order]
        query = sa.select(*shown).select_from(source).where(condition).order_by(*sorted_by).limit(limit)
        return _Evidence(self._gx.compiled(query), tuple(record.lists))

    def _make_lists(self, lists: Sequence[tuple[ListContent, bool]]) -> None:
        for content, as_integers in lists:
            self._gx.list_table(content, as_integers)

    def _key(self, table: str, expectations: Iterable[Expectation]) -> tuple[str, ...]:
        """All that the statements of these expectations depend on."""
        return (
            table,
            repr(self.columns(table)),
            *(f"{type(one).__name__}{one.__dict__!r}" for one in expectations),
        )

    def release(self) -> None:
        """See `RuleEngine.release`."""
        if self._sealed is not None:
            self._sealed.release()

    def interrupt(self) -> None:
        """Stop what runs, on GX's connection and on every cursor; see `RuleEngine.interrupt`."""
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
        # One asset for each table name: GX's context keeps every asset. It holds the table's name alone.
        if table not in self._datasource.get_asset_names():
            self._datasource.add_table_asset(name=table, table_name=table)
        asset = self._datasource.get_asset(table)
        return asset.get_batch(asset.build_batch_request())  # type: ignore[no-any-return]

    def _count(self, table: str) -> int:
        query = sa.select(sa.func.count()).select_from(sa.table(table))
        return int(self._gx.execute_query(query).scalar())

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


def _outcome(samples: int, violations: int) -> Outcome:
    return Outcome(samples=samples, violations=violations)
