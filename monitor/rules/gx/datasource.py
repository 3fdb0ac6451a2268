"""Great Expectations on an embedded DuckDB: an execution engine and a datasource of our own.

Stock GX has no DuckDB datasource, and its generic SQL datasource fails on one: it reads a result after
the connection has gone back to the pool, whose rollback drops the result. Both classes here only
subclass what GX offers; nothing of GX is patched. GX looks a metric up along the execution engine's
method resolution order, so every SQL metric of GX is inherited, and `fast_metrics` overrides single ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import duckdb
import sqlalchemy as sa
from duckdb_engine import ConnectionWrapper
from great_expectations.datasource.fluent.sql_datasource import SQLDatasource

from monitor.rules.gx.internals import SqlAlchemyExecutionEngine
from monitor.rules.gx.plan import MetricId, Record, Statement
from monitor.rules.list_files import ListContent

EngineClass = type[SqlAlchemyExecutionEngine]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query as text, and the values of its placeholders."""

    text: str
    values: tuple[Any, ...]


class Stopped(BaseException):
    """An interrupt on its way through GX, which turns every ordinary exception into a rule's result."""


class DuckDBExecutionEngine(SqlAlchemyExecutionEngine):
    """Runs GX's queries on one held DuckDB connection to a named in-memory database.

    Every query is read to its end and its transaction closed before the answer is given out. An open
    transaction would go on seeing tables that have been replaced since, and would keep their memory.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.stop = threading.Event()
        self._raw: duckdb.DuckDBPyConnection | None = None
        self._lists: dict[tuple[str, str, bool], str] = {}  # path, column, as integers: its newest table
        self._record: Record | None = None
        self._bundles: list[Sequence[MetricId]] = []  # the metrics of the bundled queries to come
        self._alone: list[Any] = []  # the queries of the metric that is computed by itself
        super().__init__(**kwargs)

    def _setup_engine(
        self,
        kwargs: Any,  # noqa: ARG002 - GX's signature
        connection_string: str | None = None,
        credentials: dict[str, Any] | None = None,  # noqa: ARG002
        url: str | None = None,  # noqa: ARG002
    ) -> None:
        # duckdb-engine opens its connections with settings of its own, and DuckDB refuses any other
        # connection to the same database then; so the connection is opened here, with none.
        database = sa.make_url(connection_string or "").database or ":memory:"
        self._raw = duckdb.connect(database)
        self.engine = sa.create_engine(
            f"duckdb:///{database}",
            creator=lambda: ConnectionWrapper(self._raw),
            poolclass=sa.pool.StaticPool,
        )

    @property
    def raw(self) -> duckdb.DuckDBPyConnection:
        """The DuckDB connection that GX's queries run on."""
        if self._raw is None:
            raise RuntimeError("this execution engine has no connection of its own")
        return self._raw

    @contextmanager
    def get_connection(self) -> Generator[sa.Connection, None, None]:
        """Lend the one connection; its transaction ends where the block ends."""
        if self._connection is None or self._connection.closed:
            self._connection = self.engine.connect()
        try:
            yield self._connection
        finally:
            with suppress(sa.exc.SQLAlchemyError, duckdb.Error):
                self._connection.rollback()

    def execute_query(self, query: Any) -> Any:
        """Run one query and give its rows, read to the end.

        Raises:
            Stopped: the engine was asked to stop, before or during the query.
        """
        bundle = self._bundles.pop(0) if self._bundles else None
        rows = self._run(query, lambda _: None)
        if bundle is None:
            self._alone.append(query)
        elif self._record is not None:
            self._record.statements.append(Statement(query, bundle))
        return rows

    def compiled(self, query: Any) -> Compiled:
        """The query as text for DuckDB, so that SQLAlchemy need not compile it again for each window."""
        made = query.compile(dialect=self.engine.dialect, compile_kwargs={"render_postcompile": True})
        values = made.construct_params(escape_names=False)
        return Compiled(made.string, tuple(values[name] for name in made.positiontup or ()))

    def rows(self, query: Compiled) -> duckdb.DuckDBPyConnection:
        """Run a compiled query; its rows must be read to the end before the next one.

        Raises:
            Stopped: the engine was asked to stop, before or during the query.
        """
        if self.stop.is_set():
            raise Stopped
        try:
            return self.raw.execute(query.text, query.values)
        except duckdb.Error as error:
            if self.stop.is_set() or isinstance(error, duckdb.InterruptException):
                raise Stopped from error
            raise

    def execute_query_in_transaction(self, query: Any) -> Any:
        """Run one statement and commit it (GX makes its temporary tables this way)."""
        return self._run(query, lambda connection: connection.commit())

    def _run(self, query: Any, after: Callable[[sa.Connection], None]) -> Any:
        if self.stop.is_set():
            raise Stopped
        with self.get_connection() as connection:
            try:
                result: Any = connection.execute(query)
                if result.returns_rows:
                    result = result.freeze()()
                after(connection)
            except sa.exc.DBAPIError as error:
                if self.stop.is_set() or isinstance(error.orig, duckdb.InterruptException):
                    raise Stopped from error
                raise
        return result

    @contextmanager
    def recording(self) -> Generator[Record, None, None]:
        """In the block, the statements that give counts are kept, each with its metrics, and their lists."""
        record = Record()
        self._record = record
        try:
            yield record
        finally:
            self._record = None

    def resolve_metric_bundle(self, metric_fn_bundle: Iterable[Any]) -> dict[Any, Any]:
        """As GX, which puts the metrics of the same rows into one query."""
        try:
            found: dict[Any, Any] = super().resolve_metric_bundle(metric_fn_bundle)
        finally:
            self._bundles = []
        return found

    def _organize_metrics_by_domain(self, *given: Any, **named: Any) -> list[dict[Any, Any]]:
        queries: list[dict[Any, Any]] = super()._organize_metrics_by_domain(*given, **named)
        self._bundles = [tuple(one["metric_ids"]) for one in queries]
        return queries

    def _process_direct_and_bundled_metric_computation_configurations(
        self, metric_fn_direct_configurations: list[Any], metric_fn_bundle_configurations: list[Any]
    ) -> dict[Any, Any]:
        if self._record is not None:
            metric_fn_direct_configurations = [
                replace(one, metric_fn=partial(self._by_itself, one.metric_configuration.id, one.metric_fn))
                for one in metric_fn_direct_configurations
            ]
        found: dict[Any, Any] = super()._process_direct_and_bundled_metric_computation_configurations(
            metric_fn_direct_configurations, metric_fn_bundle_configurations
        )
        return found

    def _by_itself(self, metric: MetricId, compute: Callable[..., Any], **arguments: Any) -> Any:
        """Compute a metric that is in no bundle. A count by one query of its own is recorded."""
        self._alone = []
        value = compute(**arguments)
        if metric.metric_name.endswith("_count") and len(self._alone) == 1 and self._record is not None:
            self._record.statements.append(Statement(self._alone[0], (metric,)))
        return value

    def get_compute_domain(self, *given: Any, **named: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """As GX, but the rows of a condition are a subquery, which its metrics of whole columns can read."""
        rows, compute, accessor = super().get_compute_domain(*given, **named)
        return (rows.subquery() if isinstance(rows, sa.Select) else rows), compute, accessor

    def get_inspector(self) -> sa.Inspector:
        """A new inspector each time: a cached one would go on naming the columns of a replaced table."""
        return sa.inspect(self.engine)

    def list_table(self, content: ListContent, as_integers: bool) -> sa.TableClause:
        """The table `(value)` that holds a list file's ids, made once for each version of the file."""
        if self._record is not None and (content, as_integers) not in self._record.lists:
            self._record.lists.append((content, as_integers))
        name = f"list_{content.version}_{'integers' if as_integers else 'strings'}"
        place = (content.path, content.column, as_integers)
        old = self._lists.get(place)
        if old != name:
            self.raw.register("list_content", content.arrow(as_integers))
            try:
                # The name is made of hexadecimal digits and our own words.
                self.raw.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT value FROM list_content')  # noqa: S608
            finally:
                self.raw.unregister("list_content")
            self._lists[place] = name
            if old is not None and old not in self._lists.values():
                self.raw.execute(f'DROP TABLE IF EXISTS "{old}"')
        return sa.table(name, sa.column("value"))

    def close(self) -> None:
        """Close the held connection; a closed engine cannot be used again."""
        if self._connection is not None:
            with suppress(sa.exc.SQLAlchemyError, duckdb.Error):
                self._connection.close()
        self.engine.dispose()
        if self._raw is not None:
            self._raw.close()


class DuckDBDatasource(SQLDatasource):
    """`context.data_sources.add_duckdb(name, connection_string="duckdb:///:memory:NAME")`."""

    type: Literal["duckdb"] = "duckdb"  # type: ignore[assignment]

    @property
    def execution_engine_type(self) -> EngineClass:
        return DuckDBExecutionEngine

    def get_engine(self) -> sa.Engine:
        """The execution engine's own: a second one would be a second connection."""
        engine: sa.Engine = self.get_execution_engine().engine
        return engine
