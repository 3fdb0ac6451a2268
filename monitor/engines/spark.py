"""Spark as the engine: the interface of the embedded engine, on a cluster or on this machine.

Imported only if the config asks for Spark: pyspark is an optional extra.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import ibis
import ibis.expr.operations as ops
import pyarrow as pa
from ibis.backends.pyspark.datatypes import PySparkType
from ibis.backends.sql.datatypes import DuckDBType
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, NullType

from monitor.core.digest import digest
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.engines.folders import NO_FOLDERS, Folders
from monitor.engines.spark_copies import Copies
from monitor.engines.spark_files import one_file, quoted, read_files
from monitor.engines.spark_sql import SparkBackend

if TYPE_CHECKING:
    import fsspec
    import ibis.expr.types as ir

# PySpark writes each failed query to standard error and raises too; the monitor reports the exception.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

HANG_SECONDS: Final = 20.0
"""After an interrupt, the Java process gets so long to stop; then it is ended."""
_LEAVE_SECONDS: Final = 5.0
_PIECES: Final = 1000  # at most so many tasks; each takes several items
FOLDER: Final = "tables-"
"""The folders of stored tables begin with this; the number of the process follows."""
_GROUP: Final = "recsys-monitor-"
_numbers = itertools.count(1)
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_LOST_FILES = ("PATH_NOT_FOUND", "FILE_NOT_EXIST", "READ_FILE_ERROR.FILE", "\nFileNotFoundError: ")
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
    "spark.sql.ansi.enabled": "true",  # an overflow or a failed cast is an error and not NULL
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # the default is an old form
}


def start_session(url: str, options: Mapping[str, str] | None = None) -> SparkSession:
    """The Spark application of this process at a master's URL: `local[2]`, `spark://host:7077`, `yarn`.

    A process has one application: a later call with another URL returns the first one.

    Args:
        url: the master.
        options: further settings of Spark, by Spark's names; they override the monitor's.
    """
    local = _LOCAL if url.startswith("local") else {}
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else it is the system's, without packages
    # No table is written there, but Spark creates the folder, by default in the working folder.
    warehouse = Path(tempfile.gettempdir()) / f"recsys-monitor-spark-{os.getpid()}"
    own = {**_STATIC, **local, "spark.sql.warehouse.dir": str(warehouse)}
    builder = SparkSession.builder.master(url).appName("recsys-monitor")
    for name, value in {**own, **(options or {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    atexit.register(_leave, session, warehouse)
    return session


def is_alive() -> bool:
    """Whether the Java process of this process's Spark application is there. It is not asked: it may hang."""
    return _java() is not None


def is_stopped(session: SparkSession) -> bool:
    """Whether the application has ended while its Java process goes on, as after an error of the driver."""
    try:
        return bool(session.sparkContext._jsc.sc().isStopped())
    except Exception:
        return True


def end_java() -> None:
    """End the Java process, and forget it, so that `start_session` starts another one."""
    if (process := _java()) is not None:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE_SECONDS)
    with suppress(Exception):
        SparkContext._gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def remove_left_tables(folder: Path) -> None:
    """Delete the stored tables of processes that ended without doing so, as when they were killed."""
    for left in folder.glob(f"{FOLDER}*"):
        number = left.name.removeprefix(FOLDER).partition("-")[0]
        if number.isdecimal() and int(number) != os.getpid() and not _is_running(int(number)):
            shutil.rmtree(left, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True


def _java() -> subprocess.Popen[bytes] | None:
    """The Java process, unless it has ended."""
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process if process is not None and process.poll() is None else None


def _leave(session: SparkSession, warehouse: Path) -> None:
    """Release the executors; if a process just ends, the master waits for a time-out."""
    with suppress(Exception):  # the master may be gone
        session.stop()
    shutil.rmtree(warehouse, ignore_errors=True)


def _within(expression: ir.Table, column: str, span: Window) -> ir.Table:
    start, end = (
        ibis.literal(edge.replace(tzinfo=None)).cast("timestamp(6)") for edge in (span.start, span.end)
    )
    return expression.filter(expression[column] >= start, expression[column] < end)


class SparkEngine(Engine):
    """The tables of one thread, in a Spark session of its own on the process's application.

    A stored table is a folder of Parquet files, written by the executors. So the plan of a query begins at
    the tables that it reads. If Spark only remembered what a table is computed from, the plan of a late query
    would hold those of all before it, and the driver would run out of memory.

    The embedded cursor remains for work on this machine: the sums of stored pairs. After an interrupt every
    further query raises duckdb.InterruptException, which the whole monitor treats as an interrupt.

    Args:
        session: of the application.
        cursor: of the embedded engine.
        folder: for the stored tables; all executors see it under the same path.
    """

    keeps_statements = False
    distributed = True

    def __init__(self, session: SparkSession, cursor: duckdb.DuckDBPyConnection, folder: Path) -> None:
        super().__init__(cursor)
        self.session = session.newSession()
        for name, value in _OWN.items():
            self.session.conf.set(name, value)
        self.group = f"{_GROUP}{os.getpid()}-{next(_numbers)}"
        self.backend = SparkBackend(self.running)
        self.backend.do_connect(self.session)
        self._stop = threading.Event()
        self._last_resort = threading.Timer(HANG_SECONDS, end_java)
        self._last_resort.daemon = True
        self._tables_made = itertools.count(1)
        self._folder = folder / f"{FOLDER}{self.group.removeprefix(_GROUP)}"
        shutil.rmtree(self._folder, ignore_errors=True)  # of an earlier process of the same number
        self._copies = Copies(self.session, self._folder / "copies")
        self._stored: dict[str, Path] = {}  # the folder of each stored table, by the name of its view

    def create(self, name: str, expression: ir.Table) -> ir.Table:
        """Store an expression as a table. It replaces a table or view of that name."""
        frame = self.frame(expression)
        folder = self._folder / str(next(self._tables_made))
        with self.running():
            frame.write.parquet(f"file://{folder}")
            stored = self.session.read.schema(frame.schema).parquet(one_file(str(folder)))
        table = self._named(name, stored)  # first: the expression may read the earlier table of this name
        self._stored[view_name(name)] = folder
        return table

    def view(self, name: str, expression: ir.Table) -> ir.Table:
        return self._named(name, self.frame(expression))

    def view_of_span(self, name: str, expression: ir.Table, column: str, span: Window) -> ir.Table:
        return self.view(name, _within(expression, column, span))

    def table_of_span(self, name: str, expression: ir.Table, column: str, span: Window) -> ir.Table:
        return self.create(name, _within(expression, column, span))

    def empty(self, name: str, schema: ibis.Schema) -> ir.Table:
        return self.add(name, schema.to_pyarrow().empty_table())

    def add(self, name: str, data: pa.Table) -> ir.Table:
        """Make a table of the engine from an Arrow table."""
        with self.running():
            frame = self.session.createDataFrame(data)
        return self._named(name, frame)

    def reader(
        self,
        name: str,
        function: str,
        paths: list[str],
        *,
        like: Hashable = None,  # noqa: ARG002 - Spark looks up no columns
        folders: Folders = NO_FOLDERS,
        **options: Any,
    ) -> ir.Table:
        """A view over files, with the options of the embedded engine; see `monitor.engines.spark_files`."""
        self.drop(name)
        with self.running():
            places = self._copies.take(view_name(name), paths)
            frame = read_files(self.session, function, places, folders, options)
        return self._shown(name, frame)

    def relation(self, table: ir.Table) -> duckdb.DuckDBPyRelation:
        """The rows of a table, to be written to local files. Those of a stored table do not pass through the
        driver.
        """
        read = table.op()
        folder = self._stored.get(read.name) if isinstance(read, ops.DatabaseTable) else None
        files = [] if folder is None else sorted(map(str, folder.glob("*.parquet")))
        if not files:
            return self.cursor.from_arrow(table.to_pyarrow())
        rows = self.cursor.sql(f"FROM {self.call('read_parquet', files)}")
        return rows.select(
            *(
                duckdb.ColumnExpression(name).cast(DuckDBType.to_string(kind)).alias(name)
                for name, kind in table.schema().items()
            )
        )

    def frame(self, expression: ir.Table) -> DataFrame:
        """The expression as a Spark data frame, not yet computed.

        Numbers get the types that Ibis states: Spark gives a row number 32 bits, for example.
        """
        with self.running():
            self.backend._run_pre_execute_hooks(expression)
            frame = self.session.sql(self.backend.compile(expression))
        wanted = expression.schema().items()
        casts = {
            name: frame[quoted(name)].cast(PySparkType.from_ibis(kind))
            for name, kind in wanted
            if kind.is_numeric() and frame.schema[name].dataType != PySparkType.from_ibis(kind)
        }
        casts |= {
            field.name: frame[quoted(field.name)].cast(IntegerType())  # no file can store it without a type
            for field in frame.schema
            if isinstance(field.dataType, NullType)
        }
        return frame.withColumns(casts) if casts else frame

    def stored(self, name: str) -> DataFrame:
        """The data frame of a table or view of this engine."""
        return self.session.table(view_name(name))

    def drop(self, *names: str) -> None:
        for view in map(view_name, names):
            self.session.catalog.dropTempView(view)
            if (folder := self._stored.pop(view, None)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
            self._copies.give_back(view)

    def on_executors(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Generator[Any]:
        """The results of a function for each item, computed by Python on the executors."""
        with self.running():
            pieces = min(len(items), _PIECES)
            found = self.session.sparkContext.parallelize(items, pieces).map(function).collect()
        yield from found

    def register(self, filesystem: fsspec.AbstractFileSystem) -> None:
        """Let the executors open URLs of this filesystem's protocols."""
        self._copies.register(filesystem)

    def interrupt(self) -> None:
        self._stop.set()
        with suppress(RuntimeError):  # it has begun
            self._last_resort.start()  # a process without memory may never answer again
        with suppress(Exception):  # the application may be gone already
            self.session.sparkContext.cancelJobGroup(self.group)

    def close(self) -> None:
        """Drop the stored tables; the Spark application goes on."""
        self._last_resort.cancel()
        if self._last_resort.is_alive():  # it must not end the next Java process
            self._last_resort.join()
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(Exception):
            self.drop(*self._stored)

    def _named(self, name: str, frame: DataFrame) -> ir.Table:
        self.drop(name)
        return self._shown(name, frame)

    def _shown(self, name: str, frame: DataFrame) -> ir.Table:
        frame.createOrReplaceTempView(view_name(name))
        return self.backend.table(view_name(name))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Enter this around code that starts jobs: it puts them into this engine's group and translates
        errors.

        Raises:
            duckdb.InterruptException: the engine was interrupted.
            duckdb.IOException: a file no longer exists.
        """
        if self._stop.is_set():
            raise duckdb.InterruptException("the engine was interrupted")
        self.session.sparkContext.setJobGroup(self.group, "recsys-monitor", interruptOnCancel=True)
        try:
            yield
        except Exception as error:
            if self._stop.is_set():
                raise duckdb.InterruptException("the engine was interrupted") from error
            if isinstance(error, FileNotFoundError) or any(word in str(error) for word in _LOST_FILES):
                raise duckdb.IOException(str(error)) from error
            raise


def view_name(name: str) -> str:
    """A name that Spark accepts. Other characters are replaced, and a hash keeps the name unique.

    >>> view_name("rule_requests"), view_name("user items")
    ('rule_requests', 't_9df6577c_user_items')
    """
    if _PLAIN_NAME.fullmatch(name):
        return name
    return f"t_{digest(name, 8)}_{re.sub('[^a-z0-9_]', '_', name.lower())}"
