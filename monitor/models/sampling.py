"""Samples a model's rows as arrays for the diagnosis; the same rows always give the same sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_
from typing import Any, Final

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from monitor.core.columns import ITEM_ID, LABEL, REQUEST_ID, ROW_NUMBERS, SAMPLES, SCORE, TS, TYPES, USER_ID
from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.models.feature_values import as_text, known
from monitor.models.parts import HASH, hash_of, hashed, in_part, told_apart
from monitor.models.splits import judgeable
from monitor.settings.models import ModelSettings
from monitor.window.slices import text_of

LIMIT: Final = 50_000
_IDS: Final = (REQUEST_ID, USER_ID, ITEM_ID)
_AT: Final = "__monitor_at_{}"
_OFFLINE: Final = "__monitor_offline_{}"
_OFFLINE_AT: Final = "__monitor_offline_at_{}"
_KEY: Final = "__monitor_key_{}"
_SLICE: Final = "__monitor_slice_{}"


def features_of(tables: Iterable[ir.Table | None], models: ModelSettings) -> tuple[str, ...]:
    """The features: the columns that the settings name, else all columns without another meaning.

    Only columns of all tables with numbers, booleans or text count. The row numbers that pandas writes are
    not a feature, unless the settings name them.
    """
    present = [table for table in tables if table is not None]
    if not present:
        return ()
    first = present[0]
    taken = {*TYPES[SAMPLES], *models.by, *models.feature_times.values(), *models.pair_by}
    wanted = models.features or [
        name for name in first.columns if name not in taken and not ROW_NUMBERS.fullmatch(name)
    ]
    shared = [name for name in wanted if all(name in table.columns for table in present)]
    return tuple(name for name in shared if _is_value(first[name].type()))


def _is_value(kind: ibis.DataType) -> bool:
    return bool(kind.is_numeric() or kind.is_boolean() or kind.is_string())


def sample_rows(rows: ir.Table, features: Sequence[str], models: ModelSettings, limit: int = LIMIT) -> Sample:
    """About `limit` usable rows at most, with the columns of the diagnosis."""
    sound = judgeable(rows)
    few = _some_rows(sound.select(**_columns(sound, features, models)), limit)
    return _sample(_ordered(few.to_pyarrow()), features, models)


def sample_pairs(
    online: ir.Table,
    offline: ir.Table,
    features: Sequence[str],
    models: ModelSettings,
    limit: int = LIMIT,
) -> Pairs | None:
    """About `limit` online rows at most, paired with the offline rows of their requests; None without pairs.

    A key that a side has twice, or with a missing part, has no pair.
    """
    keys = [name for name in models.pair_by if name in online.columns and name in offline.columns]
    if not keys:
        return None
    sound = judgeable(online)
    left = _once(_some_keys(_keyed(sound, keys), len(keys), limit), len(keys))
    right = _once(_keyed(offline, keys), len(keys))
    own = {_OFFLINE.format(name): right[name] for name in features}
    own |= {_OFFLINE_AT.format(name): right[at] for name, at in _times(right, features, models).items()}
    names = {_KEY.format(i): f"__monitor_other_{i}" for i in range(len(keys))}
    right = right.select(**{other: right[key] for key, other in names.items()}, **own)
    pairs = left.join(right, [left[key] == right[other] for key, other in names.items()])
    found = pairs.select(**_columns(pairs, features, models), **{name: pairs[name] for name in own})
    table = _ordered(found.to_pyarrow())
    if table.num_rows == 0:
        return None
    served = _sample(table, features, models)
    values = {name: _values(table[_OFFLINE.format(name)]) for name in features}
    times = {
        name: _seconds(table[_OFFLINE_AT.format(name)])
        for name in features
        if _OFFLINE_AT.format(name) in table.column_names
    }
    return Pairs(served, values, times)


def _some_rows(rows: ir.Table, limit: int) -> ir.Table:
    """About `limit` rows, each chosen independently of the others.

    The hash is of the whole row: an id may be null in all rows, and rows may share a user or a score.
    """
    some = hashed(rows)
    counts = some.aggregate(rows=some.count(), distinct=some[HASH].nunique())
    (found,) = counts.to_pyarrow().to_pylist()
    n = int(found["rows"])
    if n <= limit:
        return rows
    if found["distinct"] < n:
        some = told_apart(some)
    return some.filter(in_part(some[HASH], limit / n)).drop(HASH)


def _some_keys(rows: ir.Table, keys: int, limit: int) -> ir.Table:
    """About `limit` rows of `_keyed`. The rows of a key stay together, so that `_once` sees all of them."""
    n = int(rows.count().to_pyarrow().as_py())
    if n <= limit:
        return rows
    return rows.filter(in_part(hash_of(rows, [_KEY.format(i) for i in range(keys)]), limit / n))


def _ordered(table: pa.Table) -> pa.Table:
    """The rows in a fixed order: an engine with several threads returns them in any order."""
    ids = [name for name in _IDS if name in table.column_names]
    names = dict.fromkeys([*ids, *table.column_names])
    return table.sort_by([(name, "ascending") for name in names if not pa.types.is_nested(table[name].type)])


def _keyed(rows: ir.Table, keys: Sequence[str]) -> ir.Table:
    """The rows with their keys as text, without rows that lack a key."""
    named = {_KEY.format(i): as_text(known(rows[key])) for i, key in enumerate(keys)}
    rows = rows.mutate(**named)
    return rows.filter(reduce(and_, [rows[name].notnull() for name in named]))


def _once(rows: ir.Table, keys: int) -> ir.Table:
    by = [rows[_KEY.format(i)] for i in range(keys)]
    counted = rows.mutate(__monitor_rows=rows.count().over(ibis.window(group_by=by)))
    return counted.filter(counted["__monitor_rows"] == 1).drop("__monitor_rows")


def _times(rows: ir.Table, features: Sequence[str], models: ModelSettings) -> dict[str, str]:
    given = {name: at for name, at in models.feature_times.items() if name in features}
    return {name: at for name, at in given.items() if at in rows.columns and rows[at].type().is_timestamp()}


def _columns(rows: ir.Table, features: Sequence[str], models: ModelSettings) -> dict[str, ir.Value]:
    wanted = (SCORE, LABEL, TS, *_IDS, *features)
    # As the slices of a split write them: a column may hold lists.
    slices = {_SLICE.format(name): text_of(rows[name]) for name in models.by if name in rows.columns}
    times = {_AT.format(name): rows[at] for name, at in _times(rows, features, models).items()}
    return {name: rows[name] for name in dict.fromkeys(wanted) if name in rows.columns} | slices | times


def _sample(table: pa.Table, features: Sequence[str], models: ModelSettings) -> Sample:
    present = table.column_names
    at = {name: _AT.format(name) for name in features if _AT.format(name) in present}
    entities = [name for name in (USER_ID, ITEM_ID) if name in present]
    return Sample(
        scores=table[SCORE].to_numpy().astype(np.float64),
        labels=table[LABEL].to_numpy().astype(np.int64),
        features={name: _values(table[name]) for name in features},
        times=_seconds(table[TS]) if TS in present else None,
        feature_times={name: _seconds(table[column]) for name, column in at.items()},
        slices={
            name: _text(table[_SLICE.format(name)]) for name in models.by if _SLICE.format(name) in present
        },
        ids=_text(table[REQUEST_ID]) if REQUEST_ID in present else None,
        entities={name: _codes(table[name]) for name in entities},
    )


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    """Numbers as float64 with NaN for missing values; other types as text with None."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if (
        pa.types.is_decimal(column.type)
        or pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
    ):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    return _text(column)


def _text(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(column.cast(pa.string()).to_numpy(zero_copy_only=False), object)


def _codes(column: pa.ChunkedArray) -> NDArray[Any]:
    """A code for each id, as text, that hides the id."""
    codes = column.combine_chunks().dictionary_encode().indices
    return np.asarray(codes.cast(pa.string()).to_numpy(zero_copy_only=False), object)


def _seconds(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Times as seconds since 1970; NaN if missing."""
    whole = column.cast(pa.timestamp("us"), safe=False)  # pandas writes nanoseconds
    moments = whole.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.asarray(moments, np.float64) / 1e6
