"""docs/real-traffic.md, written from the sweeps."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median
from string import Template
from typing import Any, Final, Self

from benchmarks.real_traffic.draws import SCENES
from benchmarks.real_traffic.incidents import (
    INCIDENTS,
    MOST_PAGES,
    MOST_TICKETS,
    TRAFFIC_NAMED,
    Incident,
)
from benchmarks.real_traffic.outcomes import Figures
from benchmarks.real_traffic.picture import Compared, picture, picture_name
from benchmarks.real_traffic.traffic import SERIES, SURGE
from benchmarks.real_traffic.watched import ALERTS
from benchmarks.scoreboard.alerts import ROOT
from benchmarks.scoreboard.rates import Share
from monitor import __version__

PAGE: Final = ROOT / "docs" / "real-traffic.md"
_TEMPLATE: Final = Path(__file__).with_name("page.md")
_EXPECTED: Final = (0, 100, 200, 400, 1000)  # requests in the two hours at night
FALSE_ALARMS: Final = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)  # a week, at which the methods are compared in a table


@dataclass(frozen=True, slots=True)
class Made:
    """When and by what a sweep was made; `code` is a digest."""

    code: str
    day: str
    versions: str
    cores: int

    @classmethod
    def now(cls, code: str) -> Self:
        """Made just now, by this machine."""
        versions = f"recsys-monitor {__version__}, Python {platform.python_version()}"
        return cls(code, datetime.now(UTC).date().isoformat(), versions, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Content:
    """What the page says of one series."""

    figures: Figures
    compared: Sequence[Compared]
    made: Made


def write(found: Sequence[Content], page: Path = PAGE) -> str:
    """Write the page; its text."""
    figures = [one.figures for one in found]
    parts: dict[str, Iterator[str] | Sequence[str]] = {
        "scenes": [f"{len(SCENES)} scenes of unequal shares"],
        "alerts": [", ".join(f"`{one}`" for one in ALERTS)],
        "sample": _sample(figures),
        "summary": _summary(figures),
        "incidents": _incidents(figures),
        "night": _night(figures),
        "enough": [f"{INCIDENTS['night'].enough:,}"],
        "named": [f"{100 * TRAFFIC_NAMED:.0f}"],
        "named_table": _table(
            ("series", "first cause is `traffic_*`", "first causes"),
            ((one.name, str(one.named_traffic()), _causes(one)) for one in figures),
        ),
        "tickets": [f"{MOST_TICKETS:g}"],
        "pages": [f"{MOST_PAGES:g}"],
        "false": _false(figures),
        "which": _which(figures),
        "labelled": _reported(
            "an alert began in it",
            "No labelled anomaly lies in the weeks of this sample.",
            [(one, one.caught) for one in figures],
        ),
        "surge": [f"{SURGE:g}"],
        "surges": _reported(
            "reported",
            "No such hour lies in the weeks of this sample.",
            [(one, one.surges) for one in figures],
        ),
        "curves": _curves(found),
        "made": _made(found),
    }
    text = Template(_TEMPLATE.read_text("utf-8")).substitute(
        {name: "\n".join(lines).rstrip() for name, lines in parts.items()}
    )
    page.write_text(text, "utf-8")
    for one in found:
        if drawn := picture(one.compared):
            (page.parent / picture_name(one.figures.name)).write_text(drawn, "utf-8")
    return text


def misses(figures: Sequence[Figures]) -> list[str]:
    """Every way in which the bar is missed."""
    found = []
    for one in figures:
        name = one.name
        for incident in INCIDENTS.values():
            share = one.share(incident)
            if share.n and share.hits < incident.bar.share * share.n:
                wanted = f"{100 * incident.bar.share:.0f} %"
                found.append(f"{name}: {incident.says}: {share} are reported in time, the bar is {wanted}")
        named = one.named_traffic()
        if named.hits < TRAFFIC_NAMED * named.n:
            found.append(f"{name}: `traffic_*` is the first cause in {named}")
        for kind, alerts, most in (("tickets", one.tickets, MOST_TICKETS), ("pages", one.pages, MOST_PAGES)):
            if len(alerts) > most * one.weeks:
                found.append(
                    f"{name}: {len(alerts)} {kind} in {one.weeks:.1f} weeks, the bar is {most:g} a week"
                )
    return found


def _table(head: Sequence[str], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _sample(figures: Sequence[Figures]) -> Iterator[str]:
    missing = [name for name in SERIES if name not in {one.series for one in figures}]
    if all(one.sample.is_whole for one in figures) and not missing:
        yield "Every day of every series."
        return
    yield (
        "**This is a sample, not every day of every series.** With so few cases a bar can be missed or met "
        "by chance."
    )
    yield ""
    for one in figures:
        sample, weeks = one.sample, one.windows / 168 - 4
        last = f"{weeks:.1f} weeks" if sample.weeks is not None else f"all {weeks:.1f} weeks"
        yield (
            f"- {one.name}: {last} after four weeks of history, which begins on {one.start.date()}; "
            f"incidents on one day in {sample.every}."
        )
    yield from (f"- {name}: not run yet." for name in missing)


def _summary(figures: Sequence[Figures]) -> Iterator[str]:
    found = misses(figures)
    if not figures:
        yield "No sweep is kept yet."
        return
    if not found:
        yield "**The bar is met on this sample.**"
        return
    yield f"**The bar is missed {len(found)} times.**"
    yield ""
    yield from (f"- {one}" for one in found)


def _incidents(figures: Sequence[Figures]) -> Iterator[str]:
    head = ["incident", "bar", "followed for", *(one.name for one in figures)]
    rows = (
        [one.says, _bar(one), f"{one.watched} windows", *(_cell(each, one) for each in figures)]
        for one in INCIDENTS.values()
    )
    yield from _table(head, rows)
    yield ""
    yield from (f"- *{one.name}*: {one.title}." for one in SERIES.values())


def _bar(incident: Incident) -> str:
    bar, alert = incident.bar, "a page" if incident.by == "page" else "any alert"
    small = "" if bar.small == bar.windows else f" (small series: {bar.small})"
    still = ", and fires to the end" if incident.stays else ""
    enough = f"; from {incident.enough:,} expected requests on" if incident.enough else ""
    return f"{100 * bar.share:.0f} %: {alert} within {bar.windows} windows{small}{still}{enough}"


def _cell(figures: Figures, incident: Incident) -> str:
    outcomes = [one for one in figures.of_incident(incident) if one.expected >= incident.enough]
    windows = [one.windows for one in outcomes if one.windows is not None]
    after = f"; {median(windows):g} windows, {len(windows)} reported" if windows else ""
    return f"{figures.share(incident)}{after}"


def _night(figures: Sequence[Figures]) -> Iterator[str]:
    """The losses at night by how many requests the hours would have had."""
    head = [f"{low:,} to {high:,}" for low, high in pairwise(_EXPECTED)] + [f"{_EXPECTED[-1]:,} or more"]
    rows = (
        (one.name, *(_of_expected(one, *ends) for ends in pairwise((*_EXPECTED, inf)))) for one in figures
    )
    yield from _table(("series", *head), rows)


def _of_expected(figures: Figures, low: float, high: float) -> str:
    cases = [one for one in figures.of_incident(INCIDENTS["night"]) if low <= one.expected < high]
    return str(Share.of(one.in_time for one in cases)) if cases else "-"


def _causes(figures: Figures) -> str:
    counted = Counter(figures.first_causes()).most_common()
    return ", ".join(f"{cause} {count}" for cause, count in counted) or "-"


def _false(figures: Sequence[Figures]) -> Iterator[str]:
    yield from _table(
        ("series", "weeks", "tickets", "a week", "pages", "a week"),
        (
            (
                one.name, f"{one.weeks:.1f}",
                str(len(one.tickets)), _rate(len(one.tickets), one.weeks),
                str(len(one.pages)), _rate(len(one.pages), one.weeks),
            )
            for one in figures
        ),
    )  # fmt: skip


def _rate(count: int, weeks: float) -> str:
    return f"{count / weeks:.2f}" if weeks else "-"


def _which(figures: Sequence[Figures]) -> Iterator[str]:
    any_alert = False
    for one in figures:
        alerts = Counter(alert.text for alert in (*one.pages, *one.tickets))
        for name, count in alerts.most_common():
            any_alert = True
            yield f"- {one.name}: {name}: {count}"
    if not any_alert:
        yield "None."


def _reported(head: str, nothing: str, found: Sequence[tuple[Figures, Sequence[bool]]]) -> Iterator[str]:
    """How many of some hours or anomalies were reported, for each series that has any."""
    rows = [(one.name, f"{sum(reported)} of {len(reported)}") for one, reported in found if reported]
    if rows:
        yield from _table(("series", head), rows)
    else:
        yield nothing


def _curves(found: Sequence[Content]) -> Iterator[str]:
    for one in found:
        methods = list(dict.fromkeys(each.method for each in one.compared))
        incidents = [name for name in INCIDENTS if any(name in (each.caught or {}) for each in one.compared)]
        if not incidents:
            continue
        yield f"### {one.figures.name}"
        yield ""
        yield f"![What each method catches, by its false alarms]({picture_name(one.figures.name)})"
        yield ""
        cells = {(each.method, each.false): each.caught for each in one.compared}
        columns = [(name, method) for name in incidents for method in methods]
        head = ("false alarms a week", *(f"{name}: {method}" for name, method in columns))
        rows = (
            (f"{false:g}", *(_caught(cells.get((method, false)), name) for name, method in columns))
            for false in FALSE_ALARMS
        )
        yield from _table(head, rows)
        yield ""


def _caught(caught: Mapping[str, Share] | None, name: str) -> str:
    if caught is None:
        return "no such bound"
    return f"{caught[name].hits} of {caught[name].n}"


def _made(found: Sequence[Content]) -> Iterator[str]:
    for one in found:
        figures = one.figures
        yield (
            f"- {figures.name}: on {one.made.day} with {one.made.versions}, on {one.made.cores} cores, "
            f"{figures.seconds:.0f} seconds of the processor. Digest of the code: `{one.made.code}`."
        )
