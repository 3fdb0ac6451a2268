"""Can the windows be added up to days? No window lies in two of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from monitor.config.problems import Problem
from monitor.core.settings import show_duration
from monitor.settings.recommender import ROLLUP, RecommenderSettings

_SUMMER, _WINTER = datetime(2026, 7, 1), datetime(2026, 1, 1)


def check_rollups(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem where roll-ups can never be made."""
    if ROLLUP in settings.slices.by:
        yield Problem(
            f"{where}.slices.by",
            f"{ROLLUP!r} is the name of the metrics over days; give the column another name",
        )
    lengths = settings.rollups
    for number, length in enumerate(lengths):
        if length in lengths[:number]:
            yield Problem(f"{where}.rollups[{number}]", f"{show_duration(length)} is named twice")
    if lengths and settings.logs.exposures is None:
        yield Problem(f"{where}.rollups", "needs logs.exposures, which is not given")
    if not lengths or settings.window < timedelta(seconds=1):
        return
    written = show_duration(settings.window)
    if not settings.divides_a_day:
        yield Problem(
            f"{where}.window",
            f"windows of {written} do not add up to a day, which `rollups` needs; write 15m, 1h, 6h or 1d",
        )
    elif settings.bands is not None and not _begin_at_midnight(settings.window, settings.bands.timezone):
        yield Problem(
            f"{where}.rollups",
            f"windows of {written} do not begin at midnight in {settings.bands.timezone}; write a shorter "
            "window",
        )


def _begin_at_midnight(window: timedelta, zone: str) -> bool:
    """Whether a window begins at each midnight of a zone, in summer and in winter."""
    midnights = (moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for moment in (_SUMMER, _WINTER))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return all((moment - epoch) % window == timedelta(0) for moment in midnights)
