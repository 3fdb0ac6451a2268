"""The page of the distributions: what its template lays out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from monitor.core.json_value import iso
from monitor.core.results import Window
from monitor.core.text import DETAIL_LENGTH, NAME_LENGTH, VALUE_LENGTH, visible
from monitor.history.snapshot import Snapshot
from monitor.report import numbers
from monitor.report.distributions import drawing
from monitor.report.distributions.desk import Drawn
from monitor.report.distributions.figure import Cell, Figure
from monitor.report.frame import frame
from monitor.report.rows import recommender_href
from monitor.report.views import Frame


@dataclass(frozen=True, slots=True)
class FigureView:
    """One figure as text and pixels."""

    name: str
    title: str
    how: str
    rests_on: str
    plots: tuple[drawing.Drawn, ...]
    legend: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    csv_href: str
    why: str


@dataclass(frozen=True, slots=True)
class DistributionsPage:
    """The figures of a span, or why there are none.

    Attributes:
        start, end: of the span, for the form.
        older, newer: the query of the span before and of the one after; empty if that has not begun.
        refusal: a sentence in place of the figures.
    """

    frame: Frame
    recommender: str
    recommender_href: str
    window: str
    start: str
    end: str
    older: str
    newer: str
    read: str
    figures: tuple[FigureView, ...]
    refusal: str = ""


def distributions_page(
    snapshot: Snapshot,
    recommender: str,
    now: datetime,
    span: Window | None,
    drawn: Drawn | None = None,
    refusal: str = "",
    *,
    by_another_engine: bool = False,
) -> DistributionsPage:
    """The content of the page.

    Args:
        snapshot: for the frame.
        recommender: its name.
        now: the time on the clock.
        span: what was asked for, if that is known.
        drawn: the figures.
        refusal: why there are no figures.
        by_another_engine: windows are judged by Spark.
    """
    return DistributionsPage(
        frame=frame(snapshot, now),
        recommender=visible(recommender),
        recommender_href=recommender_href(recommender),
        window="" if span is None else numbers.window(span),
        start="" if span is None else iso(span.start),
        end="" if span is None else iso(span.end),
        older="" if span is None else _query(span, -span.length),
        newer="" if span is None or span.end >= now else _query(span, span.length),
        read="" if drawn is None else _read(drawn, by_another_engine),
        figures=() if drawn is None else tuple(_view(one, drawn.span) for one in drawn.figures),
        refusal=refusal,
    )


def query_of(span: Window) -> str:
    """The query of the address of a span.

    >>> from datetime import UTC
    >>> hour = Window.of(datetime(2026, 3, 1, 10, tzinfo=UTC), timedelta(hours=1))
    >>> query_of(hour)
    'start=2026-03-01T10%3A00%3A00Z&end=2026-03-01T11%3A00%3A00Z'
    """
    return urlencode({"start": iso(span.start), "end": iso(span.end)})


def _query(span: Window, by: timedelta) -> str:
    return query_of(Window(span.start + by, span.end + by))


def _read(drawn: Drawn, by_another_engine: bool) -> str:
    text = f"Read from the logs at {numbers.moment(drawn.read_at)} in {numbers.seconds(drawn.seconds)}."
    if by_another_engine:
        text += " Spark judges the windows; these pictures are drawn with the embedded engine."
    return text


def _view(one: Figure, span: Window) -> FigureView:
    table = one.table
    return FigureView(
        name=one.name,
        title=one.title,
        how=one.how,
        rests_on=one.rests_on,
        plots=tuple(drawing.drawn(plot) for plot in one.plots),
        legend=tuple(visible(name, NAME_LENGTH) for name in one.legend),
        facts=tuple((visible(name), value) for name, value in one.facts),
        notes=tuple(visible(note, DETAIL_LENGTH) for note in one.notes),
        columns=() if table is None else tuple(map(visible, table.columns)),
        rows=() if table is None else tuple(tuple(map(_cell, row)) for row in table.rows),
        csv_href="" if table is None else f"distributions/{one.name}.csv?{query_of(span)}",
        why=visible(one.why, DETAIL_LENGTH),
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, str) or cell is None:
        return visible(cell, VALUE_LENGTH)
    return numbers.count(cell) if isinstance(cell, int) else numbers.number(cell)
