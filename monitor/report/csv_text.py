"""Texts of a log in a file that people open in a spreadsheet."""

from __future__ import annotations

from typing import Final, TypeVar

from monitor.core.text import encodable

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A text that begins with one of these is run by a spreadsheet."""
Other = TypeVar("Other", int, float, None)


def harmless(cell: str | Other) -> str | Other:
    """The cell. A text that a spreadsheet would take for a formula gets a quote before it.

    >>> harmless("=HYPERLINK(1)"), harmless("ranker-v7"), harmless(-2)
    ("'=HYPERLINK(1)", 'ranker-v7', -2)
    """
    if not isinstance(cell, str):
        return cell
    # A NUL ends the text in many programs.
    text = encodable(cell).replace("\0", "\N{SYMBOL FOR NULL}")
    # Some spreadsheets skip spaces before a formula.
    return f"'{text}" if text.lstrip(" \N{NO-BREAK SPACE}").startswith(_FORMULA) else text
