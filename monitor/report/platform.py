"""The output of `platform`: the totals by day, the changes, and the verdicts on substitution."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from monitor.core.results import Result, ResultKind, Status
from monitor.core.text import visible
from monitor.platform import specs
from monitor.platform.days import DailyTotals
from monitor.platform.judge import Total
from monitor.report.judged import Judged
from monitor.report.numbers import number, share
from monitor.report.result_json import result_as_json
from monitor.settings.platform import ALL, OWN, PlatformSettings

_WIDEST = 110
_MOST_REASONS = 10
_MARKS = {
    Status.OK: ("✓", "green"),
    Status.VIOLATED: ("✗", "bold red"),
    Status.ERROR: ("!", "red"),
}


@dataclass(frozen=True)
class PlatformReport:
    """A span of days of one recommender's platform.

    Attributes:
        judged: the amounts of every day, and all results of the last day.
        totals: every total of all systems on all days.
    """

    recommender: str
    zone: str
    table: DailyTotals
    judged: Sequence[Judged]
    totals: Sequence[Total]
    platform: PlatformSettings

    @property
    def last(self) -> list[Judged]:
        """The results of the last day."""
        newest = max(one.window for one in self.judged)
        return [one for one in self.judged if one.window == newest]

    @property
    def verdicts(self) -> list[Result]:
        return [one.result for one in self.last if one.result.kind is ResultKind.SUBSTITUTION]


def as_json(reports: Sequence[PlatformReport]) -> str:
    """The results in the shape of `check --format json`."""
    content = [
        result_as_json(one.recommender, one.check, one.window, one.result)
        for report in reports
        for one in report.judged
    ]
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False)


def print_report(report: PlatformReport, console: Console) -> None:
    """Print the totals by day, then the changes and verdicts of the last days."""
    days = report.table.days
    title = f"{report.recommender}  {days[0]} to {days[-1]}, days of {report.zone}"
    _line(console, title, "bold")
    width = min(console.width, _WIDEST)
    for total in report.totals:
        _line(console, f"\n{total.name} by day", "bold")
        for line in _by_day(report, total):
            _line(console, line)
        for line in _reasons(report, total, width):
            _line(console, line, "dim")
    recent, before = report.platform.recent.days, report.platform.before.days
    heading = f"\nthe last {recent} days against the {before} before, intervals of "
    _line(console, f"{heading}{report.platform.confidence:.4g}", "bold")
    results = [one.result for one in report.last]
    for result in results:
        if result.metric in (specs.CHANGE.name, specs.LEAST_RISE.name):
            for line in _measured(result, width):
                _line(console, line)
    _line(console, "\nsubstitution: what the platform gains of each unit that the recommender gains", "bold")
    for result in report.verdicts:
        for text in _verdict(result, width):
            console.print(text, soft_wrap=True)


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def _by_day(report: PlatformReport, total: Total) -> Iterator[str]:
    """One line a day: the recommender, each system, the platform, and the share."""
    columns = {OWN: (report.table.own, total.own)}
    columns |= {name: (report.table.systems[name], series) for name, series in total.systems.items()}
    widths = {name: max(len(name), 12) for name in (*columns, ALL)}
    yield f"{'day':<12}" + "".join(f"{name:>{widths[name] + 1}}" for name in widths) + f"{'share':>9}"
    for place, day in enumerate(report.table.days):
        cells = []
        for name, (reading, series) in columns.items():
            value = float(series[place])
            text = number(value) if math.isfinite(value) else _word(reading.status[place])
            cells.append(f"{text:>{widths[name] + 1}}")
        whole, own = float(total.whole[place]), float(total.own[place])
        known = math.isfinite(whole)
        cells.append(f"{number(whole) if known else _word(total.status[place]):>{widths[ALL] + 1}}")
        part = share(own / whole) if known and whole > 0 and math.isfinite(own) else "-"
        yield f"{day.isoformat():<12}" + "".join(cells) + f"{part:>9}"


def _word(status: Status) -> str:
    return "no data" if status in (Status.OK, Status.NO_DATA) else status.value


def _reasons(report: PlatformReport, total: Total, width: int) -> Iterator[str]:
    """Why days have no total: each reason once, with the days that it holds for."""
    found: dict[str, list[str]] = {}
    for place, day in enumerate(report.table.days):
        for name, reading in {OWN: report.table.own, **report.table.systems}.items():
            if total.name in reading.why and (why := reading.why[total.name][place]):
                found.setdefault(f"{name}: {why}", []).append(day.isoformat())
    for text, days in list(found.items())[:_MOST_REASONS]:
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}, {len(days)} days"
        yield from textwrap.wrap(f"{when}: {visible(text)}", width, subsequent_indent="  ")
    if (more := len(found) - _MOST_REASONS) > 0:
        yield f"and {more} more reasons; --format json has them"


def _measured(result: Result, width: int) -> Iterator[str]:
    name = " ".join(result.labels.values())
    if result.metric == specs.LEAST_RISE.name:
        if result.value is not None:
            yield f"  {name}: a rise of the recommender below {share(result.value)} could not be judged"
        return
    if result.value is None:
        yield f"  {name:<30} {_word(result.status)}"
        yield from _indented(result.detail, width)
        return
    assert result.lower is not None
    assert result.upper is not None
    yield f"  {name:<30} {_signed(result.value):>9}   {_signed(result.lower)} to {_signed(result.upper)}"


def _verdict(result: Result, width: int) -> Iterator[Text]:
    mark, style = _MARKS.get(result.status, ("?", "yellow"))
    labels = result.labels
    of_arm = specs.EXPERIMENT in labels
    name = f"{labels[specs.TOTAL]} " + (
        f"experiment {labels[specs.EXPERIMENT]}, arm {labels[specs.ARM]}" if of_arm else labels[specs.SYSTEM]
    )
    value = ""
    if result.value is not None:
        value = f"  {result.value:.2f}"
        if result.lower is not None and result.upper is not None:
            value += f" ({result.lower:.2f} to {result.upper:.2f})"
    shown = "zero-sum" if result.status is Status.VIOLATED else result.status.value.replace("_", " ")
    fitted = visible(name)
    yield Text.assemble(
        (f"{mark} {shown}".ljust(12), style), fitted + " " * max(0, 30 - cell_len(fitted)), value
    )
    for line in _indented(result.detail, width):
        yield Text(line, style="dim")


def _indented(text: str, width: int) -> list[str]:
    return textwrap.wrap(visible(text, 2000), width, initial_indent="    ", subsequent_indent="    ")


def _signed(value: float) -> str:
    return f"{value:+.1%}".replace("%", " %")
