"""The share of each category over the windows of a day."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.text import NAME_LENGTH, plural, visible
from monitor.metrics.exposure.categories import CODE, UNKNOWN, with_categories
from monitor.metrics.history import EXPOSURES
from monitor.metrics.shared import Shared
from monitor.report import numbers
from monitor.report.distributions.figure import Axis, Bar, Cell, Figure, Plot, Table
from monitor.report.distributions.rows import Missing, SpanRows
from monitor.report.distributions.span import windows_beside

MOST_STEPS: Final = 24
MOST_CATEGORIES: Final = 8
_OTHER, _STEP = -2, "step"
_WORDS: Final = {UNKNOWN: "no known category", _OTHER: "other"}
EMPTY: Final = Figure(
    name="categories",
    title="Category shares over time",
    how="Each column is one step of time up to the end of the span, divided by the categories of the items "
    "shown: a band that grows takes exposures from the others.",
)


def categories_figure(rows: SpanRows) -> Figure:
    """The shares of the categories with most exposures in the last day, window by window."""
    shared = rows.need_exposures()
    if shared.catalog is None or c.CATEGORY not in shared.catalog.columns:
        what = "The config has no catalog" if shared.catalog is None else "The catalog has no column category"
        raise Missing(f"{what}, so that the categories of the items are unknown.")
    span = windows_beside(rows.span, rows.window)
    step = -(-(span.length // rows.window) // MOST_STEPS) * rows.window
    loaded = rows.source.load(rows.engine, c.EXPOSURES, span, table="drawn_day")
    if loaded is None:
        raise Missing(rows.nothing(c.EXPOSURES))
    steps = -(-span.length // step)
    start = span.end - steps * step
    cells = rows.engine.create("drawn_cells", by_step(shared, Shared(loaded).exposures, start, step))
    totals = cells.aggregate(by=CODE, exposures=cells[EXPOSURES].sum()).order_by(
        ibis.desc(EXPOSURES), ibis.asc(CODE)
    )
    most = totals.limit(MOST_CATEGORIES + 1).to_pyarrow().to_pylist()
    top = [int(row[CODE]) for row in most if row[CODE] != UNKNOWN][:MOST_CATEGORIES]
    shown = ibis.ifelse(cells[CODE].isin([*top, UNKNOWN]), cells[CODE].cast("int64"), _OTHER)
    found = cells.aggregate(by=[_STEP, shown.name("shown")], exposures=cells[EXPOSURES].sum())
    shares: dict[int, Counter[int]] = defaultdict(Counter)
    for row in found.to_pyarrow().to_pylist():
        shares[int(row[_STEP])][int(row["shown"])] = row[EXPOSURES]
    if not shares:
        raise Missing("Nothing was shown in this time: every list was empty.")
    present = {code for counted in shares.values() for code in counted}
    order = [*top, *(code for code in (_OTHER, UNKNOWN) if code in present)]
    names = {**_names(shared, top), **_WORDS}
    bars: list[Bar] = []
    table: list[tuple[Cell, ...]] = []
    for place in sorted(shares):
        counted, bottom = shares[place], 0.0
        total = sum(counted.values())
        at = start + place * step
        for number, code in enumerate(order):
            part = counted[code] / total
            if part:
                said = f"{numbers.moment(at)}: {visible(names[code], NAME_LENGTH)}, {numbers.share(part)}"
                top_of = min(bottom + part, 1.0)
                bars.append(Bar(number, place + 0.04, place + 0.96, bottom, top_of, said))
            bottom += part
            table.append((at.isoformat(), names[code], counted[code], part))
    exposures = sum(sum(counted.values()) for counted in shares.values())
    left_out = steps - len(shares)
    notes = [f"Steps without exposures, and so without a column: {left_out} of {steps}."] if left_out else []
    ticks = tuple((float(at), f"{start + at * step:%d %b %H:%M}") for at in (0, steps // 2, steps))
    return Figure(
        EMPTY.name,
        EMPTY.title,
        EMPTY.how,
        rests_on=f"{plural(exposures, 'exposure')} in steps of {numbers.span(step)}",
        plots=(
            Plot(
                "",
                Axis("time, UTC", 0.0, float(steps), ticks),
                Axis("share of exposures", 0.0, 1.0),
                bars=tuple(bars),
            ),
        ),
        legend=tuple(names[code] for code in order),
        notes=tuple(notes),
        table=Table(("from", "category", "exposures", "share of exposures"), tuple(table)),
    )


def by_step(shared: Shared, rows: ir.Table, start: datetime, step: timedelta) -> ir.Table:
    """One row a step of time (0 begins at `start`) and category: its exposures.

    An item with k categories gives 1 / k of its exposures to each.
    """
    shown = rows.filter(rows[c.ITEM_ID].notnull())
    seconds = shown[c.TS].cast("timestamp(6)").truncate("s").epoch_seconds().cast("int64")
    place = ((seconds - int(start.timestamp())) // int(step.total_seconds())).cast("int64")
    counts = shown.aggregate(by=[place.name(_STEP), c.ITEM_ID], **{EXPOSURES: shown.count()})
    coded = with_categories(shared, counts, c.CATEGORY)
    return coded.aggregate(
        by=[_STEP, CODE], **{EXPOSURES: (coded[EXPOSURES].cast("float64") * coded.share).sum()}
    )


def _names(shared: Shared, codes: list[int]) -> dict[int, str]:
    """The names of these codes; `item_categories` numbers the names in their order."""
    assert shared.catalog is not None
    column = shared.catalog[c.CATEGORY]
    rows = shared.catalog.filter(shared.catalog[c.ITEM_ID].notnull()).select(category=column)
    rows = rows.unnest("category") if column.type().is_array() else rows
    names = rows.select(category=rows.category.cast("string"))
    names = names.filter(names.category.notnull(), names.category != "").distinct()
    coded = names.mutate(**{CODE: ibis.row_number().over(order_by=names.category)})
    found = coded.filter(coded[CODE].isin(codes)).to_pyarrow().to_pylist()
    return {int(row[CODE]): str(row["category"]) for row in found}
