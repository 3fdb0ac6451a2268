"""Parts of many rows, chosen by hashes: the same rows always give the same part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import ibis
import ibis.expr.types as ir

HASH: Final = "__monitor_hash"
_NUMBER: Final = "__monitor_number"
_PARTS: Final = 1_000_003  # a prime: which part a row is in has nothing to do with how its id is made


def hashed(rows: ir.Table) -> ir.Table:
    """The rows with a hash of each, nulls included."""
    return rows.mutate(**{HASH: hash_of(rows, rows.columns)})


def told_apart(rows: ir.Table) -> ir.Table:
    """The rows of `hashed`, with a new hash that differs for equal rows.

    By the hash of `hashed` alone, all of many equal rows are in a part or none. It takes memory for all rows.
    """
    number = ibis.row_number().over(ibis.window(group_by=rows[HASH]))  # equal rows need no order
    rows = rows.mutate(**{_NUMBER: number})
    return rows.mutate(**{HASH: hash_of(rows, (HASH, _NUMBER))}).drop(_NUMBER)


def hash_of(rows: ir.Table, names: Sequence[str]) -> ir.Value:
    """One hash of several columns."""
    return ibis.struct({f"_{place}": rows[name] for place, name in enumerate(names)}).hash()


def in_part(number: ir.Value, share: float) -> ir.BooleanValue:
    """Whether the hash is in this share of all hashes."""
    return (number.cast("int64") % _PARTS + _PARTS) % _PARTS < int(share * _PARTS)
