"""How many requests come: by hour and weekday, holidays, seasons, growth, level steps, and noise."""

from __future__ import annotations

import math

import numpy as np

from monitor.simulate.draws import Stage, bell, keyed, stream
from monitor.simulate.lists import Floats, Ints
from monitor.simulate.world import Scene, World

DAY_LUCK = 0.02
"""Standard deviation of the log of a day's level, which all scenes share."""
HOUR_LUCK = 0.015
"""Standard deviation of the log of an hour's level, for each scene."""
HOLIDAY = 1.05
"""Requests of a holiday / of a Sunday."""
EVENING = 0.05
"""Relative increase of clicks at 21:00 against the average; the same decrease at 9:00."""

_TURN = 2 * np.pi / 24
_SATURDAY = 5
_WEEK = 168
_FORGOTTEN = 0.001  # an hour counts in later ones until its weight is this part of the newest one's


def day_shapes(scene: Scene) -> Floats:
    """The requests of each hour / the mean of a week, 2 x 24: a weekday, a day of the weekend.

    A weekday has a peak before noon and its highest one in the evening; its lowest hour is `night` times the
    highest. A day of the weekend starts later, hardly has a peak at noon, and has `weekend` times the mean of
    a weekday. The mean over a week is 1.

    >>> shapes = day_shapes(Scene("home", 100.0, night=0.25, weekend=1.2))
    >>> float(round(shapes[0].min() / shapes[0].max(), 4))
    0.25
    >>> float(round(shapes[1].mean() / shapes[0].mean(), 4))
    1.2
    """
    weekday, weekend = _day(scene.night, late=0.0, noon=0.35), _day(scene.night, late=2.0, noon=0.1)
    weekend *= scene.weekend * weekday.mean() / weekend.mean()
    shapes = np.stack([weekday, weekend])
    return np.asarray(shapes / (shapes.mean(axis=1) @ np.array([5, 2]) / 7))


def _day(night: float, *, late: float, noon: float) -> Floats:
    hours = np.arange(24) + 0.5 - late
    wave = np.cos(_TURN * (hours - 18)) + noon * np.cos(2 * _TURN * (hours - 21.5))
    return np.asarray(night + (1 - night) * (wave - wave.min()) / (wave.max() - wave.min()))


def expected_requests(world: World, hour: int) -> Floats:
    """The expected requests of each scene in an hour.

        requests_per_hour x shape of the day x (1 + growth) ** weeks since the start x steps x seasons

    A holiday has the shape of a Sunday, and `HOLIDAY` times its requests. A weekday of a season has a shape
    between that of a weekday and that of the weekend.
    """
    moment = world.moment(hour)
    day = moment.date()
    holiday = day in world.holidays
    seasons = [one for one in world.seasons if one.has(day)]
    level = (HOLIDAY if holiday else 1.0) * (1 + world.growth) ** (hour / _WEEK)
    level *= math.prod(one.level for one in seasons)
    level *= math.prod(1 + one.change for one in world.steps if one.at <= moment)
    like_weekend = max((one.like_weekend for one in seasons), default=0.0)
    if holiday or moment.weekday() >= _SATURDAY:
        like_weekend = 1.0
    shapes = [
        ((1 - like_weekend) * weekday + like_weekend * weekend) * scene.requests_per_hour
        for scene in world.scenes
        for weekday, weekend in [day_shapes(scene)[:, moment.hour]]
    ]
    return np.asarray(level * np.array(shapes))


def luck(world: World, hour: int) -> Floats:
    """The random factor of each scene's requests in an hour: near 1, and reproducible."""
    day = stream(world.seed, Stage.DAY_LEVEL, hour // 24).normal(0, DAY_LUCK)
    hours = stream(world.seed, Stage.HOUR_LEVEL, hour).normal(0, HOUR_LUCK, len(world.scenes))
    return np.asarray(np.exp(day + hours) * weather(world, np.array([hour])))


def weather(world: World, hours: Ints) -> Floats:
    """The factor of the requests of all scenes by the weather of these hours; 1 in a world without weather.

    Each hour is a sum over its own chance and those of the hours before; it does not depend on other calls.

    >>> from monitor.simulate.unsteady import Weather
    >>> logs = np.log(weather(World(weather=Weather()), np.arange(20_000)))
    >>> round(float(logs.std()), 2), round(float(np.corrcoef(logs[1:], logs[:-1])[0, 1]), 2)
    (0.07, 0.95)
    """
    if world.weather is None:
        return np.ones(len(hours))
    memory = world.weather.memory
    back = math.ceil(math.log(_FORGOTTEN) / math.log(memory)) if memory > _FORGOTTEN else 1
    ago = np.arange(back)
    fade = memory**ago
    fade /= np.sqrt((fade**2).sum())
    chance = bell(keyed(world.seed, Stage.WEATHER, hours[:, None] - ago))
    return np.asarray(np.exp(world.weather.sd * (chance @ fade)))


def mood(hours: Floats) -> Floats:
    """The factor of clicks at these hours of a day, UTC: 1 on average.

    >>> mood(np.array([21.0, 9.0])).round(2).tolist()
    [1.05, 0.95]
    """
    return np.asarray(1 + EVENING * np.cos(_TURN * (hours - 21)))
