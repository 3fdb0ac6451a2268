"""From a pandas, Polars or Arrow frame to an Arrow table for DuckDB. No row passes through Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import pandas as pd
import pyarrow as pa

from monitor.core.text import EVIDENCE_LENGTH, cut, one_line, quoted
from monitor.logs.frames import FrameError


@runtime_checkable
class Frame(Protocol):
    """A table in memory: a pandas or Polars DataFrame, an Arrow table, or whatever gives an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def rows_of(frame: object, log: str) -> pa.Table:
    """The rows of a frame as an Arrow table, with types that DuckDB has.

    Args:
        frame: what the caller passed.
        log: the log that it is, for messages.

    Raises FrameError.

    >>> import pandas as pd
    >>> rows_of(pd.DataFrame({"item_id": ["a", "b"]}), "catalog").num_rows
    2
    >>> rows_of([{"item_id": "a"}], "catalog")
    Traceback (most recent call last):
    monitor.logs.frames.FrameError: catalog is of type list; pass a pandas, Polars or Arrow frame
    """
    if not isinstance(frame, Frame):
        kind = type(frame).__name__
        if hasattr(frame, "collect"):
            raise FrameError(f"{log} is a lazy frame ({kind}); pass the result of its collect()")
        raise FrameError(f"{log} is of type {kind}; pass a pandas, Polars or Arrow frame")
    try:
        frame = _without_periods(frame)
        table = frame if isinstance(frame, pa.Table) else pa.RecordBatchReader.from_stream(frame).read_all()
    except (pa.ArrowException, TypeError, ValueError) as exc:  # such as a column with texts and numbers
        raise FrameError(f"{log}: the frame cannot be read: {_first(exc)}") from exc
    if not table.num_columns:
        raise FrameError(f"{log}: the frame has no column")
    if twice := _twice(table.column_names):
        raise FrameError(f"{log}: the frame has two columns called {quoted(twice)}")
    return table.cast(pa.schema([_readable(field) for field in table.schema]))


def _without_periods(frame: Frame) -> Frame:
    """The frame with the start of each pandas period: Arrow would get its number, without its unit."""
    if not isinstance(frame, pd.DataFrame):
        return frame
    periods = [number for number, kind in enumerate(frame.dtypes) if isinstance(kind, pd.PeriodDtype)]
    if periods:
        frame = frame.copy(deep=False)
        for number in periods:
            frame.isetitem(number, frame.iloc[:, number].dt.start_time)
    return frame


def _twice(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _readable(field: pa.Field) -> pa.Field:
    """The field with a type that DuckDB has, and reads as it would from a Parquet file."""
    kind = field.type
    if pa.types.is_float16(kind):
        return field.with_type(pa.float32())
    if pa.types.is_decimal256(kind):
        return field.with_type(pa.float64())
    if pa.types.is_fixed_size_list(kind):
        return field.with_type(pa.list_(kind.value_type))
    return field


def _first(exc: Exception) -> str:
    return cut(one_line(" ".join(str(arg) for arg in exc.args)), EVIDENCE_LENGTH)
