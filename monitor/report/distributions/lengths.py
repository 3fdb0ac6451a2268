"""The lengths of the lists, empty ones included."""

from __future__ import annotations

from typing import Final

from monitor.core.text import plural
from monitor.metrics.exposure.coverage import FAILURE, ListCoverage
from monitor.metrics.exposure.volume import LIST_LENGTH, Volume
from monitor.metrics.shared import LENGTH
from monitor.report import numbers
from monitor.report.distributions.figure import Axis, Bar, Figure, Plot, Table
from monitor.report.distributions.rows import Missing, SpanRows

MOST_BARS: Final = 60
EMPTY: Final = Figure(
    name="list-lengths",
    title="List lengths",
    how="Each bar is the number of requests whose list has that many items; a bar at 0 is of empty lists.",
)


def lengths_figure(rows: SpanRows) -> Figure:
    """The histogram of items by request."""
    requests = rows.need_exposures().requests()
    longest = requests[LENGTH].max().as_table().to_pyarrow().column(0)[0].as_py()
    if longest is None:
        raise Missing("The window holds no requests: no row has a request id.")
    # Empty lists have a bar of their own, whatever the width of the others.
    width = max(1, -(-int(longest) // MOST_BARS))
    part = ((requests[LENGTH] + (width - 1)) // width).cast("int64")
    found = requests.aggregate(by=[part.name("part")], requests=requests.count()).to_pyarrow().to_pylist()
    counted = {int(row["part"]): int(row["requests"]) for row in found}
    total = sum(counted.values())
    bars, table = [], []
    for number, count in sorted(counted.items()):
        first, last = (0, 0) if number == 0 else ((number - 1) * width + 1, number * width)
        name = str(first) if first == last else f"{first} to {last}"
        said = f"{name} items: {plural(count, 'request')}, {numbers.share(count / total)}"
        bars.append(Bar(1 if number == 0 else 0, first - 0.5, last + 0.5, 0.0, float(count), said))
        table.append((first, last, count, count / total))
    mean = rows.result(Volume(), LIST_LENGTH.name)
    empty = rows.result(ListCoverage(), FAILURE.name, by="pv")
    facts = [("Mean length", numbers.number(mean.value))] if mean and mean.value is not None else []
    if empty is not None and empty.value is not None:
        facts.append(("Empty lists", numbers.share(empty.value)))
    across = Axis("items in the list", -0.5, max(float(max(counted) * width), 1.0) + 0.5, whole=True)
    up = Axis("requests", 0.0, float(max(counted.values())), whole=True)
    return Figure(
        EMPTY.name,
        EMPTY.title,
        EMPTY.how,
        rests_on=plural(total, "request"),
        plots=(Plot("", across, up, bars=tuple(bars)),),
        legend=("lists with items", "empty lists") if 0 in counted else (),
        facts=tuple(facts),
        table=Table(("shortest", "longest", "requests", "share of requests"), tuple(table)),
    )
