"""Spark as the engine: the same small interface as the embedded one, on a cluster or on this machine.

Imported only where the config asks for Spark, since pyspark is an optional extra.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import duckdb
import ibis
import ibis.expr.operations as ops
import pyarrow as pa
import sqlglot.expressions as sge
from ibis.backends.pyspark import Backend
from ibis.backends.sql.compilers.pyspark import PySparkCompiler
from ibis.formats.pyarrow import PyArrowData
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

if TYPE_CHECKING:
    import ibis.expr.types as ir

ibis.pyspark.name  # noqa: B018 - registers the backend's options, without which nothing compiles

_numbers = itertools.count(1)
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_LOCAL: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
_STATIC: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # it would write over the monitor's own output
}
_OWN: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.enabled": "true",  # what overflows or cannot be read is an error and not a NULL
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def start_session(url: str, options: Mapping[str, str] | None = None) -> SparkSession:
    """The process's Spark application at a master's URL: `local[2]`, `spark://host:7077`, `yarn`.

    There is one application a process: a later call with another URL gets the first one.

    Args:
        url: the master.
        options: further settings of Spark, by their own names; they win over the monitor's.
    """
    local = _LOCAL if url.startswith("local") else {}
    builder = SparkSession.builder.master(url).appName("recsys-monitor")
    for name, value in {**_STATIC, **local, **(options or {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class SparkEngine:
    """Tables of one thread in a Spark session of its own; see `monitor.logs.engine.Engine`.

    An interrupt is for good: whatever is asked of the engine afterwards raises
    duckdb.InterruptException, the one sign of an interrupt that all the monitor knows.
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session.newSession()  # views of its own, on the same application
        for name, value in _OWN.items():
            self.session.conf.set(name, value)
        self.group = f"recsys-monitor-{os.getpid()}-{next(_numbers)}"
        self.backend = InterruptibleBackend(self)
        self.backend.do_connect(self.session)
        self._stop = threading.Event()
        self._stored: dict[str, DataFrame] = {}

    def create(self, name: str, expression: ir.Table) -> ir.Table:
        """Keep what an expression gives in the executors' memory and disks, as a table of that name.

        It is computed when it is first read.
        """
        frame = self.frame(expression).persist(StorageLevel.MEMORY_AND_DISK)
        self.drop(name)
        frame.createOrReplaceTempView(view_name(name))
        self._stored[name] = frame
        return self.table(name)

    def view(self, name: str, expression: ir.Table) -> ir.Table:
        """Give an expression a name without computing it."""
        frame = self.frame(expression)
        self.drop(name)
        frame.createOrReplaceTempView(view_name(name))
        return self.table(name)

    def add(self, name: str, data: pa.Table) -> ir.Table:
        """Make an Arrow table of this process a table of the engine."""
        with self.running():
            frame = self.session.createDataFrame(data)
        self.drop(name)
        frame.createOrReplaceTempView(view_name(name))
        return self.table(name)

    def table(self, name: str) -> ir.Table:
        """A table or view that was made here."""
        return self.backend.table(view_name(name))

    def frame(self, expression: ir.Table) -> DataFrame:
        """The expression as a Spark data frame, not yet computed."""
        with self.running():
            self.backend._run_pre_execute_hooks(expression)
            return self.session.sql(self.backend.compile(expression))

    def drop(self, *names: str) -> None:
        """Remove tables or views, if they are there."""
        for name in names:
            self.session.catalog.dropTempView(view_name(name))
            if (frame := self._stored.pop(name, None)) is not None:
                frame.unpersist()

    def interrupt(self) -> None:
        """Stop the running jobs; callable from any thread."""
        self._stop.set()
        with suppress(Exception):  # the application may be gone already
            self.session.sparkContext.cancelJobGroup(self.group)

    def close(self) -> None:
        """Give back what is stored; the Spark application goes on."""
        with suppress(Exception):
            self.drop(*self._stored)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around whatever starts jobs: they belong to this engine's group, and an interrupt is named so."""
        if self._stop.is_set():
            raise duckdb.InterruptException("the engine was interrupted")
        self.session.sparkContext.setJobGroup(self.group, "recsys-monitor", interruptOnCancel=True)
        try:
            yield
        except Exception as error:
            if self._stop.is_set():
                raise duckdb.InterruptException("the engine was interrupted") from error
            raise


class SparkCompiler(PySparkCompiler):  # type: ignore[misc]
    """Ibis' own compiler, with NaN and infinity told apart from null as on every other engine."""

    def visit_IsNull(self, op: ops.IsNull, *, arg: sge.Expression) -> sge.Expression:  # noqa: ARG002, N802
        """Ibis' own calls NaN null, whatever the option `treat_nan_as_null` says."""
        return arg.is_(sge.null())

    def visit_NotNull(self, op: ops.NotNull, *, arg: sge.Expression) -> sge.Expression:  # noqa: ARG002, N802
        """See `visit_IsNull`."""
        return arg.is_(sge.not_(sge.null()))

    def visit_IsInf(self, op: ops.IsInf, *, arg: sge.Expression) -> Any:  # noqa: N802
        """Ibis' own compares two Python objects, and is false for every number."""
        if op.arg.dtype.is_floating():
            return self.f.abs(arg).eq(self.POS_INF)
        return sge.false()


class InterruptibleBackend(Backend):  # type: ignore[misc]
    """Ibis' own backend, with results by Arrow: by way of pandas, whole numbers beside nulls lose digits."""

    compiler = SparkCompiler()

    def __init__(self, engine: SparkEngine) -> None:
        super().__init__()
        self._engine = engine

    def to_pyarrow(
        self, expr: ir.Expr, /, *, params: Any = None, limit: Any = None, **kwargs: Any
    ) -> pa.Table | pa.Array | pa.Scalar:
        table = expr.as_table()
        with self._engine.running():
            self._run_pre_execute_hooks(table)
            query = self.compile(table, params=params, limit=limit, **kwargs)
            found = PyArrowData.convert_table(self._session.sql(query).toArrow(), table.schema())
        return expr.__pyarrow_result__(found)

    def execute(self, expr: ir.Expr, /, *, params: Any = None, limit: Any = None, **kwargs: Any) -> Any:
        with self._engine.running():
            return super().execute(expr, params=params, limit=limit, **kwargs)


def view_name(name: str) -> str:
    """The name as Spark takes one: what is not plain is made so, and told apart by a hash.

    >>> view_name("rule_requests"), view_name("user items")
    ('rule_requests', 't_9df6577c_user_items')
    """
    if _PLAIN_NAME.fullmatch(name):
        return name
    told_apart = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"t_{told_apart}_{re.sub('[^a-z0-9_]', '_', name.lower())}"
