"""Whether the time intervals of an Alertmanager's routes hold an alert back, read from its configuration.

Its API says so of no new alert: versions before 0.28 never do, later ones once they have sent the group.
"""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from monitor.core.text import visible

_MATCHER: Final = re.compile(
    r'("(?:[^"\\]|\\.)*"|[^"=!~\s]+)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")', re.DOTALL
)
_WEEKDAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


@dataclass(frozen=True, slots=True)
class Muted:
    """Why the routes to a receiver send it nothing; if not `certain`, it cannot be known here."""

    why: str
    certain: bool = True


def muted_receivers(config: Mapping[str, Any], labels: Mapping[str, str], at: datetime) -> dict[str, Muted]:
    """The receivers of an alert that get nothing at this time, each with the reason.

    Args:
        config: the configuration as Alertmanager shows it, so with its own spelling of matchers and times.
        labels: those of the alert.
        at: the time.

    >>> times = [{"start_time": "22:00", "end_time": "24:00"}]
    >>> night = {"name": "night", "time_intervals": [{"times": times}]}
    >>> route = {"receiver": "chat", "matchers": ['severity="ticket"'], "mute_time_intervals": ["night"]}
    >>> config = {"route": {"receiver": "page", "routes": [route]}, "time_intervals": [night]}
    >>> late = datetime.fromisoformat("2026-03-01T23:00Z")
    >>> muted_receivers(config, {"severity": "ticket"}, late)["chat"].why
    'its route is muted now: mute_time_intervals night'
    >>> muted_receivers(config, {"severity": "page"}, late)
    {}
    """
    intervals = {
        str(one["name"]): one["time_intervals"]
        for key in ("time_intervals", "mute_time_intervals")
        for one in config.get(key) or ()
    }
    if not intervals:
        return {}
    reasons: dict[str, list[Muted | None]] = {}
    for receiver, route in _taken(config["route"], labels, ""):
        reasons.setdefault(receiver, []).append(_reason(route, intervals, at))
    found: dict[str, Muted] = {}
    for receiver, some in reasons.items():
        muted = [one for one in some if one is not None]
        if len(muted) == len(some):  # else another route to it sends
            found[receiver] = next((one for one in muted if not one.certain), muted[0])
    return found


def _taken(
    route: Mapping[str, Any], labels: Mapping[str, str], receiver: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The routes that take an alert which matches `route`, each with its receiver."""
    receiver = str(route.get("receiver") or receiver)
    below = False
    for child in route.get("routes") or ():
        if all(_matches(child, labels)):
            below = True
            yield from _taken(child, labels, receiver)
            if not child.get("continue"):
                break
    if not below:
        yield receiver, route


def _matches(route: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[bool]:
    for name, value in (route.get("match") or {}).items():
        yield labels.get(name, "") == str(value)
    for name, value in (route.get("match_re") or {}).items():
        yield re.fullmatch(str(value), labels.get(name, "")) is not None
    for text in route.get("matchers") or ():
        parts = _MATCHER.fullmatch(text)
        if parts is None:
            raise ValueError(f"{text!r} is no matcher")
        name = json.loads(parts[1]) if parts[1].startswith('"') else parts[1]
        value, actual = json.loads(parts[3], strict=False), labels.get(name, "")
        equal = re.fullmatch(value, actual) is not None if "~" in parts[2] else actual == value
        yield equal != parts[2].startswith("!")


def _reason(route: Mapping[str, Any], intervals: Mapping[str, Any], at: datetime) -> Muted | None:
    mute, active = (route.get(f"{kind}_time_intervals") or () for kind in ("mute", "active"))
    try:
        now = [name for name in mute if any(_holds(one, at) for one in intervals[name])]
        if now:
            return Muted(f"its route is muted now: mute_time_intervals {visible(now[0])}")
        if active and not any(_holds(one, at) for name in active for one in intervals[name]):
            names = visible(", ".join(active))
            return Muted(f"its route is not active now: active_time_intervals {names}")
    except (KeyError, ValueError):  # such as the location `Local`, the zone of Alertmanager's machine
        names = visible(", ".join([*mute, *active]))
        return Muted(f"its route has the time intervals {names}, which cannot be judged here", certain=False)
    return None


def _holds(interval: Mapping[str, Any], at: datetime) -> bool:
    """Whether a time is in one interval: in one range of each kind that it names."""
    local = at.astimezone(ZoneInfo(interval.get("location") or "UTC"))
    days = monthrange(local.year, local.month)[1]

    def day(text: str) -> int:
        return int(text) + days + 1 if int(text) < 0 else int(text)

    kinds = (
        ("weekdays", _WEEKDAYS.index, local.isoweekday() % 7),
        ("days_of_month", day, local.day),
        ("months", int, local.month),
        ("years", int, local.year),
    )
    times = interval.get("times")
    minute = f"{local:%H:%M}"  # as text: Alertmanager writes two digits each, up to 24:00
    if times and not any(one["start_time"] <= minute < one["end_time"] for one in times):
        return False
    return all(
        any(low <= value <= high for low, high in _ranges(interval[name], read))
        for name, read, value in kinds
        if interval.get(name)
    )


def _ranges(texts: Sequence[Any], read: Any) -> Iterator[tuple[int, int]]:
    for text in texts:
        low, _, high = str(text).partition(":")
        yield read(low), read(high or low)
