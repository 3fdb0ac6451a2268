"""Values of features of any type: missing or not, number or text, equal or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from monitor.core.text import EVIDENCE_LENGTH

Kind = Literal["number", "text"]

BATCH: Final = 25
"""Features that one query reads: more are not faster, but need more memory."""


def batches(features: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The features in batches of one query each.

    >>> [len(one) for one in batches([f"f{i}" for i in range(60)])]
    [25, 25, 10]
    """
    rest = iter(features)
    while batch := tuple(islice(rest, BATCH)):
        yield batch


def kind_of(dtype: dt.DataType) -> Kind:
    """Booleans are numbers; types other than numbers and text are read as text.

    >>> kind_of(dt.boolean), kind_of(dt.Array(dt.int64))
    ('number', 'text')
    """
    return "number" if dtype.is_numeric() or dtype.is_boolean() else "text"


def known(column: ir.Value) -> ir.Value:
    """The column with nulls instead of NaN: both mean missing. Empty text is a value."""
    return ibis.ifelse(column.isnan(), None, column) if column.type().is_floating() else column


def as_number(column: ir.Value) -> ir.Value:
    """The column as float64; text that is not a number, such as `NaN`, becomes null."""
    if column.type().is_boolean():
        column = column.cast("int64")
    elif not column.type().is_numeric():
        return known(as_text(column).try_cast("float64"))
    return column.cast("float64")


def as_text(column: ir.Value) -> ir.Value:
    """The column as text."""
    return column if column.type().is_string() else column.cast("string")


def grouped_as(column: ir.Value, kind: Kind) -> ir.Value:
    """The column in the form in which its values are counted; minus zero becomes zero."""
    if kind == "number" and column.type().is_integer():
        return column
    return known(as_number(column)) + 0.0 if kind == "number" else as_text(known(column))


def exactly(number: float) -> ir.Value:
    """The exact number as float64: some engines read a literal of many digits as a decimal.

    >>> float(exactly(0.1 + 0.2).execute()) == 0.1 + 0.2
    True
    """
    return ibis.literal(repr(float(number))).cast("float64")


def same(one: ir.Value, other: ir.Value, tolerance: float) -> ir.Value:
    """Whether two values are equal; never null if neither is missing.

    - Integers, booleans, text and times: exactly.
    - Other numbers: |a - b| <= tolerance * max(|a|, |b|). An infinity equals itself only, and 0 equals 0
    only.
    - A number and a text: the text is read as a number; any other text differs.
    - Other types, and two unrelated types: equal as text.
    """
    types = one.type(), other.type()
    if kind_of(types[0]) == "number" or kind_of(types[1]) == "number":
        if all(each.is_integer() for each in types) or all(each.is_boolean() for each in types):
            return one == other
        return _close(as_number(one), as_number(other), tolerance)
    if types[0] == types[1] and not types[0].is_nested():
        return one == other
    return as_text(one) == as_text(other)


def _close(a: ir.Value, b: ir.Value, tolerance: float) -> ir.Value:
    apart = (a - b).abs()
    near = (apart <= exactly(tolerance) * ibis.greatest(a.abs(), b.abs())) & ~apart.isinf()
    return ((a == b) | near).fill_null(False)


def written(value: Any) -> str:
    """A value from a log as text: numbers in a short form, long text shortened.

    >>> written(0.0), written(0), written(0.1 + 0.2), written("a b")
    ('0', '0', '0.3', 'a b')
    """
    return f"{value + 0.0:.12g}" if isinstance(value, float) else str(value)[:EVIDENCE_LENGTH]
