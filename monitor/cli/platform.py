"""The work of `platform`: the totals of a span of days, and the verdict on its last day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import typer

from monitor.cli.export import who_lacks
from monitor.cli.judge import load, monitor_salt
from monitor.cli.one_off import OneOff, one_off
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED, fail, note, progress
from monitor.config.checks.check import Checked
from monitor.core.results import Status
from monitor.logs.windows import ALWAYS
from monitor.platform import specs
from monitor.platform.days import DAY, day_of, days_until, last_day
from monitor.platform.platform_check import DayJob, PlatformCheck
from monitor.report.judged import Judged
from monitor.report.platform import PlatformReport
from monitor.settings.config import Config

_GRACE: Final = timedelta(seconds=10)
_MOST_DAYS: Final = 366


def watched(
    path: Path, only: str | None, first: datetime | None, last: datetime | None
) -> tuple[list[PlatformReport], int]:
    """The totals and verdicts of each recommender that has a platform, and the exit code."""
    config, checked = load(path, only)
    chosen = [one for one in checked if one.settings.platform is not None]
    if not chosen:
        fail(f"{who_lacks(only)} a `platform`; docs/platform.md says how to write one")
    reports = [_report(config, one, first, last) for one in chosen]
    statuses = {one.status for report in reports for one in report.verdicts}
    statuses |= {one.result.status for report in reports for one in report.last if one.result.value is None
                 and one.result.metric == specs.AMOUNT.name}  # fmt: skip
    if Status.VIOLATED in statuses:
        return reports, VIOLATED
    return reports, OK if statuses <= {Status.OK} else NOT_JUDGED


def _report(config: Config, one: Checked, first: datetime | None, last: datetime | None) -> PlatformReport:
    name, now = one.settings.name, datetime.now(UTC)
    platform = one.settings.platform
    assert platform is not None
    with one_off(config, one, monitor_salt(config)) as once:
        check = next(each for each in once.evaluator.checks if isinstance(each, PlatformCheck))
        with progress(0, f"{name}: reading the logs") as step:
            _look(once, check, now, step)
            days = _days(once, check, first, last, now)
            _add_up(once, check, now, first, step)
        with progress(0, f"{name}: asking the other systems") as step:
            step(f"{name}: {len(days)} days")
            check.systems.ask(days, now, patience=(platform.timeout + _GRACE).total_seconds())
        table = check.systems.table(days, now)
        judged: list[Judged] = []
        for place, day in enumerate(days[:-1]):
            window = day_of(day, check.zone)
            amounts = check.judge.amounts(table.between(place, place + 1))
            judged += [Judged(name, check.name, window, result) for result in amounts]
        window = day_of(days[-1], check.zone)
        part = table.between(max(0, len(days) - check.judge.days), len(days))
        results = check.run(DayJob(part, window.end, once.runtime.index))
        judged += [Judged(name, check.name, window, result) for result in results]
    return PlatformReport(name, str(check.zone), table, tuple(judged), check.judge.totals(table), platform)


def _look(once: OneOff, check: PlatformCheck, now: datetime, step: Callable[[str], None]) -> None:
    """Index every log."""
    once.look(now, step)
    engine = once.runtime.index
    for source in check.systems.sources.values():
        for log in source.logs.values():
            while log.refresh(engine, now, step).is_cut:
                pass  # the next refresh skips the file that took too long


def _add_up(
    once: OneOff, check: PlatformCheck, now: datetime, first: datetime | None, step: Callable[[str], None]
) -> None:
    """Add up all windows of each log, or those since the day before the first."""
    engine = once.runtime.index
    begins = [one.begins(once.evaluator.settings.window) for one in once.evaluator.settings.experiments]
    since = ALWAYS if first is None else min([first - DAY, *(one for one in begins if one is not None)])
    for name, system in check.systems.logs.items():
        for windows in system.due(now, since, now):
            step(f"{name} {windows[0].start:%Y-%m-%d}")
            system.keep(engine, windows)
            if system.error:
                break


def _days(
    once: OneOff, check: PlatformCheck,
    first: datetime | None, last: datetime | None, now: datetime,
) -> Sequence[date]:  # fmt: skip
    """The days of the span; by default as many as are judged, up to the last that every log has reached."""
    settings = once.evaluator.settings
    reached = [one.log.watermark for one in check.systems.logs.values()]
    known = [one - settings.lateness for one in reached if one is not None]
    end = last_day(min([now - settings.lateness, *known]), check.zone)
    if last is not None:
        asked = _from(last, check.zone) - DAY
        if asked > last_day(now, check.zone):
            note(f"{settings.name}: the days after {last_day(now, check.zone)} are not over yet")
        end = min(asked, last_day(now, check.zone))
    count = check.judge.days
    if first is not None:
        begin = _from(first, check.zone)
        count = (end - begin).days + 1
        if count < 1:
            raise typer.BadParameter("no whole day of this span is over", param_hint="--from")
        if count > _MOST_DAYS:
            raise typer.BadParameter(f"a span has at most {_MOST_DAYS} days", param_hint="--from")
    return days_until(end, count)


def _from(moment: datetime, zone: ZoneInfo) -> date:
    """The first whole day from a moment on. A midnight of UTC, as a date is read, names a date of the zone.

    >>> _from(datetime(2026, 1, 1, tzinfo=UTC), ZoneInfo("America/New_York")).isoformat()
    '2026-01-01'
    >>> _from(datetime(2026, 1, 1, 12, tzinfo=UTC), ZoneInfo("America/New_York")).isoformat()
    '2026-01-02'
    """
    if moment.time() == time():
        return moment.date()
    day = moment.astimezone(zone).date()
    return day if day_of(day, zone).start >= moment else day + DAY
