"""The rate of actions by position in the list."""

from __future__ import annotations

from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import POSITION
from monitor.core.results import Result
from monitor.core.text import plural
from monitor.metrics.feedback.action_rates import ACTION_RATE, ActionRates
from monitor.metrics.shared import NO_SLICE
from monitor.report import numbers
from monitor.report.distributions.figure import Axis, Cell, Figure, Line, Plot, Point, Table
from monitor.report.distributions.rows import Missing, SpanRows

MOST_POSITIONS: Final = 50
MOST_EVENTS: Final = 4
_KEY: Final = "drawn_position"
EMPTY: Final = Figure(
    name="positions",
    title="Actions by position",
    how="Each dot is the actions per exposure at that position, the line through it its 95 % interval: a "
    "rate usually falls from the first position on.",
)


def positions_figure(rows: SpanRows) -> Figure:
    """The action rate by exposure at each position, with the interval of the metric; an event has a plot."""
    shared = rows.need_exposures(POSITION)
    rows.need_feedback()
    shared.add_key(_KEY, _with_position)
    results = [
        one
        for one in rows.results(ActionRates(), _KEY)
        if one.metric == ACTION_RATE.name and one.labels["by"] == "exposure" and one.value is not None
    ]
    if not results:
        raise Missing("Nothing was shown in this span: every list was empty.")
    events = list(rows.metrics.events)
    drawn = events[:MOST_EVENTS]
    plots, table, notes = [], [], list(rows.incomplete())
    for event in events:
        own = {one.labels["value"]: one for one in results if one.labels["event"] == event}
        points = [_point(int(name), one) for name, one in own.items() if name.lstrip("-").isdigit()]
        points.sort(key=lambda point: point.x)
        names = sorted(own, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))
        table += [_row(event, name, own[name]) for name in names]
        if event in drawn and points:
            most = max(1e-9, *(point.upper or point.y for point in points))
            across = Axis("position", points[0].x - 0.5, points[-1].x + 0.5, whole=True)
            plots.append(
                Plot(
                    event,
                    across,
                    Axis(f"{event} per exposure", 0.0, most),
                    lines=(Line(0, tuple(points), marked=True),),
                )
            )
    if not plots:
        raise Missing(f"No position is a whole number from 0 to {MOST_POSITIONS}.")
    if len(events) > MOST_EVENTS:
        notes.append(f"In the table only: {plural(len(events) - MOST_EVENTS, 'more event')}.")
    if any(not one.labels["value"].isdigit() for one in results):
        notes.append(f"Positions above {MOST_POSITIONS}, below 0 or unknown are in the table only.")
    exposures = sum(one.samples or 0 for one in results if one.labels["event"] == events[0])
    return Figure(
        EMPTY.name,
        EMPTY.title,
        EMPTY.how,
        rests_on=plural(exposures, "exposure"),
        plots=tuple(plots),
        notes=tuple(notes),
        table=Table(
            ("event", "position", "actions per exposure", "lower", "upper", "exposures"), tuple(table)
        ),
    )


def _with_position(table: ir.Table) -> ir.Table:
    """The rows with their position as text: few values, whatever the log holds."""
    position = table[POSITION]
    text = ibis.cases(
        (position > MOST_POSITIONS, f"above {MOST_POSITIONS}"),
        (position < 0, "below 0"),
        else_=position.cast("int64").cast("string"),
    )
    return table.mutate(**{_KEY: text.fill_null(NO_SLICE)})


def _point(position: int, one: Result) -> Point:
    assert one.value is not None
    rate = numbers.number(one.value)
    between = ""
    if one.lower is not None and one.upper is not None:
        between = f" ({numbers.number(one.lower)} to {numbers.number(one.upper)})"
    said = f"position {position}: {rate}{between}, {plural(one.samples or 0, 'exposure')}"
    return Point(float(position), one.value, said, one.lower, one.upper)


def _row(event: str, position: str, one: Result) -> tuple[Cell, ...]:
    return (event, position, one.value, one.lower, one.upper, one.samples)
