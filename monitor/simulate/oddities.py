"""Oddities that are not incidents: a dip at a deploy, a retried file, a doubled file, a late hour."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from monitor.simulate.draws import Stage, keyed, stream
from monitor.simulate.lists import Flags, Ints, micros
from monitor.simulate.world import World

DEPLOYS = ((1, 13), (3, 13))
"""Weekday (0: Monday) and hour, UTC, of the deploys; none on holidays."""
DIP_FROM, DIP_UNTIL = 30, 32
"""The minutes of such an hour in which requests are lost."""
DIP_LEFT = 0.1
"""The share of these requests that is answered anyway."""
LATE = timedelta(minutes=40)
"""The delay of the files of a late hour."""

_WEEK = 7 * 24
_MONTH = 30 * 24
_MINUTE = 60_000_000  # microseconds
_LATE, _TWICE = 0, 1  # purposes of random numbers


def has_deploy(world: World, hour: int) -> bool:
    """Whether an hour has a deploy: two a week.

    >>> [hour for hour in range(7 * 24) if has_deploy(World(), hour)]
    [37, 85]
    """
    moment = world.moment(hour)
    deploys = (moment.weekday(), moment.hour) in DEPLOYS
    return world.oddities and deploys and moment.date() not in world.holidays


def answered(world: World, hour: int, times: Ints, scenes: Ints) -> Flags:
    """Which requests of an hour are answered: all, except most of those in two minutes of a deploy."""
    if not has_deploy(world, hour):
        return np.ones(len(times), bool)
    minute = (times - micros(world.moment(hour))) // _MINUTE
    down = (minute >= DIP_FROM) & (minute < DIP_UNTIL)
    return ~down | (keyed(world.seed, Stage.ODDITIES, times, scenes) < DIP_LEFT)


def is_late(world: World, hour: int) -> bool:
    """Whether the files of an hour are late: one hour in 30 days, after the first week."""
    month, rest = divmod(hour, _MONTH)
    if not world.oddities or hour < 0:
        return False
    return rest == int(stream(world.seed, Stage.ODDITIES, _LATE, month).integers(_WEEK, _MONTH))


def is_doubled(world: World, hour: int) -> bool:
    """Whether a file of an hour is delivered a second time under another name: one hour a week."""
    return world.oddities and hour % _WEEK == _twice(world, hour)[0]


def is_retried(world: World, hour: int) -> bool:
    """Whether a file of an hour is incomplete at first: one hour a week, not the doubled one."""
    return world.oddities and hour % _WEEK == _twice(world, hour)[1]


def _twice(world: World, hour: int) -> tuple[int, int]:
    rng = stream(world.seed, Stage.ODDITIES, _TWICE, hour // _WEEK)
    doubled, retried = rng.choice(_WEEK, 2, replace=False)
    return int(doubled), int(retried)


def held_until(world: World, hour: int) -> timedelta | None:
    """How long after its start the first files of an hour arrive, if the hour before was late.

    Files keep their order: they wait for delayed earlier ones.
    """
    return LATE if hour > 0 and is_late(world, hour - 1) else None


def hold(world: World, hour: int) -> timedelta:
    """The delay of the files of an hour.

    >>> sum(hold(World(), hour).seconds // 60 for hour in range(30 * 24))
    40
    """
    return LATE if is_late(world, hour) else timedelta(0)
