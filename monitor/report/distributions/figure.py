"""One figure as plain data: what its plots, its numbers and its table hold, before any pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

Cell = str | int | float | None
"""A cell of a table. Text may come from a log: whoever shows it escapes it."""
MOST_SERIES: Final = 10
"""The series of a plot that can be told apart."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line. `said` is shown on hover; an empty one is part of the line alone."""

    x: float
    y: float
    said: str = ""
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a plot. `series` is its number in the legend; `marked` draws a dot at each point."""

    series: int
    points: tuple[Point, ...]
    marked: bool = False
    joined: bool = True


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle between two places of each axis."""

    series: int
    left: float
    right: float
    bottom: float
    top: float
    said: str


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`. Without `ticks` round numbers are chosen, `whole` ones for counts."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """One pair of axes. `reference` is a dashed line to compare with, from one place to another."""

    title: str
    across: Axis
    up: Axis
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()
    reference: tuple[tuple[float, float], tuple[float, float]] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a figure, for its page and its CSV file."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        name: in addresses.
        how: one sentence on how to read it.
        rests_on: the number of rows it is made of, in words.
        plots: empty if nothing can be drawn; then `why` says in one sentence what is missing.
        legend: the names of the series, by their number; empty if there is only one.
        facts: numbers that belong to it, as metrics have them.
        notes: sentences on what is left out.
    """

    name: str
    title: str
    how: str
    rests_on: str = ""
    plots: tuple[Plot, ...] = ()
    legend: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    table: Table | None = None
    why: str = ""

    def without(self, why: str, notes: Sequence[str] = ()) -> Figure:
        """The figure that says why it cannot be drawn.

        >>> Figure("roc", "ROC curve", "Up is better.").without("No row has a score.").why
        'No row has a score.'
        """
        return replace(self, why=why, notes=(*self.notes, *notes))


@dataclass(slots=True)
class Drawing:
    """Collects the parts of a figure while they are computed."""

    plots: list[Plot] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
