"""The table of a figure as a CSV file that is harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io
from typing import Final

from monitor.core.text import encodable
from monitor.report.distributions.figure import Cell, Table

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A text that begins with one of these is run by a spreadsheet."""


def as_csv(table: Table) -> str:
    r"""The table with a header. A text that a spreadsheet would take for a formula gets a quote before it.

    >>> as_csv(Table(("item", "rows"), (("=1+1", -2), ("a, b", None))))
    'item,rows\r\n\'=1+1,-2\r\n"a, b",\r\n'
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([_harmless(name) for name in table.columns])
    writer.writerows([_harmless(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _harmless(cell: Cell) -> str | int | float | None:
    if not isinstance(cell, str):
        return cell
    # A NUL ends the text in many programs.
    text = encodable(cell).replace("\0", "\N{SYMBOL FOR NULL}")
    # Some spreadsheets skip spaces before a formula.
    return f"'{text}" if text.lstrip(" \N{NO-BREAK SPACE}").startswith(_FORMULA) else text
