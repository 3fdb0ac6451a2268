"""Files as Spark data frames, with the options of the embedded engine's readers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import ibis.expr.datatypes as dt
import pyarrow.parquet as pq
from ibis.backends.pyspark.datatypes import PySparkType
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from monitor.core.columns import ROW_NUMBERS
from monitor.engines.folders import Folders, folder_values

_PATTERN = re.compile(r"([*?\[\]{}\\,])")


def read_files(
    session: SparkSession,
    function: str,
    places: Mapping[str, str],
    folders: Folders,
    options: Mapping[str, Any],
) -> DataFrame:
    """One data frame over files of one shape.

    Args:
        session: reads them.
        places: where to read each path, which is the path itself unless it is a URL.
        function: `read_parquet`, `read_csv` or `read_json`.
        folders: the columns to take from folders named `key=value`; no other folder gives a column.
        options: as of the embedded engine; `filename` names a column for the path of each row's file.
    """
    readers: dict[str, Callable[[list[str]], DataFrame]] = {
        "read_parquet": lambda some: _parquet(session, some),
        "read_csv": lambda some: _csv(session, some, options),
        "read_json": lambda some: _json(session, some, options),
    }
    read = readers[function]
    values = {path: folder_values(path) for path in places}
    path_column = options.get("filename")
    groups: dict[tuple[object, ...], list[str]] = {}
    for path in places:
        key = tuple(values[path].get(name) for name in folders)
        groups.setdefault((*key, path if path_column else ""), []).append(path)
    frames = []
    for group in groups.values():
        frame = read([places[path] for path in group])
        for name, kind in folders.items():
            value = f.lit(values[group[0]].get(name)).cast(PySparkType.from_ibis(kind))
            frame = frame.withColumn(name, value)
        frames.append(frame if path_column is None else frame.withColumn(path_column, f.lit(group[0])))
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)


def _parquet(session: SparkSession, paths: list[str]) -> DataFrame:
    # pandas writes times in nanoseconds. Spark reads them only as whole numbers.
    names = [
        field.name
        for field in pq.read_schema(paths[0])
        if str(field.type).startswith("timestamp[ns")
    ]  # fmt: skip
    session.conf.set("spark.sql.legacy.parquet.nanosAsLong", str(bool(names)).lower())
    merged = str(len(paths) > 1).lower()  # merging costs a job
    frame = session.read.option("mergeSchema", merged).parquet(*map(one_file, paths))
    for name in names:
        micros = f.expr(f"timestamp_micros({quoted(name)} div 1000)")
        frame = frame.withColumn(name, micros)
    return frame


def _csv(session: SparkSession, paths: list[str], options: Mapping[str, Any]) -> DataFrame:
    # Spark compares the header with the names, but columns without a name in the file have names from us.
    named_by_us = any(ROW_NUMBERS.fullmatch(name) for name in options["columns"])
    reader = session.read.schema(_schema(options["columns"])).options(
        header=True, sep=options["delim"], quote=options["quote"], escape=options["escape"],
        multiLine=True, mode="FAILFAST", enforceSchema=named_by_us, encoding="UTF-8",
        maxCharsPerColumn=options["max_line_size"], maxColumns=20480,
    )  # fmt: skip
    return reader.csv(list(map(one_file, paths)))


def _json(session: SparkSession, paths: list[str], options: Mapping[str, Any]) -> DataFrame:
    reader = session.read.schema(_schema(options["columns"])).options(mode="FAILFAST", encoding="UTF-8")
    return reader.json(list(map(one_file, paths)))


def _schema(columns: Mapping[str, dt.DataType]) -> StructType:
    return StructType([StructField(name, PySparkType.from_ibis(kind)) for name, kind in columns.items()])


def one_file(path: str) -> str:
    """The path of a file or folder of this machine, escaped: Spark expects a pattern.

    >>> one_file("/logs/a[1].csv")
    'file:///logs/a\\\\[1\\\\].csv'
    """
    return "file://" + _PATTERN.sub(r"\\\1", os.path.abspath(path))


def quoted(name: str) -> str:
    """The name as an identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"
