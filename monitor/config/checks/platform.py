"""Can a platform be watched? Its names, its totals, its systems, and the days that windows add up to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from monitor.config.problems import Problem, nearest
from monitor.core.columns import FEEDBACK
from monitor.core.settings import show_duration
from monitor.core.text import NAME_LENGTH, quoted
from monitor.settings.platform import DEMAND, OWN, RESERVED, DemandSettings, Measured, PlatformSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.substitution import LEAST_BEFORE, LEAST_NOW

_DAY: Final = timedelta(days=1)
_MOST_DAYS: Final = 366
_LEAST_RETENTION: Final = timedelta(days=14)
_LONGEST_TIMEOUT: Final = timedelta(hours=1)
_LONGEST_WAIT: Final = timedelta(days=3)


def check_platform(where: str, settings: RecommenderSettings, retention: timedelta) -> Iterator[Problem]:
    """A problem for each part of a platform that can never be judged."""
    platform = settings.platform
    if platform is None:
        return
    yield from _names(where, platform)
    yield from _spans(where, settings, platform)
    if DEMAND in platform.totals:
        yield Problem(f"{where}.totals.{DEMAND}", f"{DEMAND} has a meaning of its own; choose another name")
    if platform.own is None and FEEDBACK not in settings.logs.named():
        yield Problem(
            f"{where}.own",
            "is not given, and there is no logs.feedback: nothing says what the recommender brings",
        )
    measured: list[tuple[str, Measured]] = [(f"{where}.own", platform.own)] if platform.own else []
    measured += [(f"{where}.demand", platform.demand)] if platform.demand else []
    measured += [(f"{where}.systems[{number}]", one) for number, one in enumerate(platform.systems)]
    for place, one in measured:
        yield from _totals(place, one, platform)
    for total in platform.totals:
        if total not in platform.given_by(platform.own):
            yield Problem(f"{where}.totals.{total}", f"the recommender ({OWN}) does not give it; see `own`")
        elif not any(total in platform.given_by(one) for one in platform.systems):
            yield Problem(f"{where}.totals.{total}", "no system gives it")
    if retention < _LEAST_RETENTION:
        yield Problem(
            where,
            f"needs history.retention of {show_duration(_LEAST_RETENTION)} or more, so that no day is judged "
            "twice",
        )


def _names(where: str, platform: PlatformSettings) -> Iterator[Problem]:
    first: dict[str, int] = {}
    wholes = []
    for number, one in enumerate(platform.systems):
        place = f"{where}.systems[{number}]"
        if one.name in RESERVED:
            yield Problem(
                f"{place}.name", f"{one.name} has a meaning of its own in the results; choose another"
            )
        elif one.name in first:
            yield Problem(
                f"{place}.name", f"{quoted(one.name)} is already the name of systems[{first[one.name]}]"
            )
        first.setdefault(one.name, number)
        if one.whole:
            wholes.append(number)
    if len(wholes) > 1:
        yield Problem(
            f"{where}.systems[{wholes[1]}].whole", f"systems[{wholes[0]}] is the whole platform already"
        )


def _spans(where: str, settings: RecommenderSettings, platform: PlatformSettings) -> Iterator[Problem]:
    recent, before = platform.recent // _DAY, platform.before // _DAY
    if recent < LEAST_NOW:
        yield Problem(f"{where}.recent", f"must be at least {LEAST_NOW}d")
    if before < LEAST_BEFORE:
        yield Problem(
            f"{where}.before", f"must be at least {LEAST_BEFORE}d: chance cannot be estimated from less"
        )
    if recent + before > _MOST_DAYS:
        yield Problem(f"{where}.before", f"recent and before are {_MOST_DAYS} days at most together")
    if platform.timeout > _LONGEST_TIMEOUT:
        yield Problem(f"{where}.timeout", f"must be at most {show_duration(_LONGEST_TIMEOUT)}")
    if platform.wait > _LONGEST_WAIT:
        yield Problem(f"{where}.wait", f"must be at most {show_duration(_LONGEST_WAIT)}")
    by_log = any(one is None or one.log is not None for one in platform.measured.values())
    if not by_log or settings.window < timedelta(seconds=1):
        return
    zone = platform.timezone or (settings.bands.timezone if settings.bands is not None else "UTC")
    if settings.window > _DAY or _DAY % settings.window or _offset_is_off(zone, settings.window):
        length = show_duration(settings.window)
        yield Problem(
            f"{where}.timezone",
            f"windows of {length} do not add up to a day of {zone}; choose another `window`, such as 1h or "
            "15m, or timezone: UTC",
        )


def _offset_is_off(zone: str, window: timedelta) -> bool:
    """Whether a day of the zone does not begin with a window, in some part of a year."""
    months = (datetime(2026, month, 1, tzinfo=UTC).astimezone(ZoneInfo(zone)) for month in range(1, 13))
    return any((month.utcoffset() or timedelta(0)) % window for month in months)


def _totals(place: str, one: Measured, platform: PlatformSettings) -> Iterator[Problem]:
    named: list[tuple[str, str]] = []
    if one.sql is not None:
        named = [(f"{place}.sql.totals[{number}]", name) for number, name in enumerate(one.sql.totals)]
    if one.prometheus is not None:
        named = [(f"{place}.prometheus.queries.{name}", name) for name in one.prometheus.queries]
    if one.log is not None:
        named = [(f"{place}.log.totals.{name}", name) for name in one.log.totals]
    known_totals = [DEMAND] if isinstance(one, DemandSettings) else list(platform.totals)
    for where, name in named:
        if name not in known_totals:
            meant = nearest(name, known_totals)
            known = f"did you mean {meant}?" if meant else f"there are: {', '.join(known_totals)}"
            yield Problem(where, f"the platform has no total {quoted(name, NAME_LENGTH)}; {known}")
