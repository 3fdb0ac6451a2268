"""What lies around the simulated recommender: the clicks in search, and the visits to the platform."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from monitor.core import columns as c
from monitor.simulate.draws import Stage, bell, keyed, stream, zipf
from monitor.simulate.lists import micros, timestamps, user_names
from monitor.simulate.seasons import expected_requests, luck
from monitor.simulate.world import World

SEARCH: Final = "search"
FOUND: Final = "search_click"
VISITS: Final = "visits"
VISITED: Final = "visit"
LEVEL: Final = 0.9
"""The clicks of search / the requests of the recommender."""
DAY_LUCK: Final = 0.02
"""Standard deviation of the log of a day's level of search, apart from the demand that all systems share."""
VISIT_LUCK: Final = 0.01
"""The same for visits."""
_MINUTE: Final = 60_000_000  # microseconds
_HOUR: Final = 60 * _MINUTE


def search_clicks(world: World, hour: int) -> pa.Table:
    """The clicks in search of an hour, in the order of their times: user_id, ts, event.

    Seasons, weather and steps move them as they move the requests of the recommender.

    >>> clicks = search_clicks(World(seed=1), 20)
    >>> clicks.column_names, clicks.num_rows == search_clicks(World(seed=1), 20).num_rows
    (['user_id', 'ts', 'event'], True)
    """
    rng = stream(world.seed, Stage.SEARCH, hour)
    count = int(rng.poisson(_demand(world, hour) * LEVEL * _day(world, Stage.SEARCH_DAY, hour, DAY_LUCK)))
    times = np.sort(rng.integers(0, _HOUR, count)) + micros(world.moment(hour))
    users = rng.choice(world.users, count, p=zipf(world.users, world.user_skew))
    return pa.table(
        {
            c.USER_ID: pa.array(user_names(users), pa.string()),
            c.TS: timestamps(times),
            c.EVENT: pa.array(np.full(count, FOUND), pa.string()),
        }
    )


def visits(world: World, hour: int) -> pa.Table:
    """How many came in each minute of an hour: ts, event, value. No incident changes it.

    >>> visits(World(seed=1), 20).num_rows
    60
    """
    level = _demand(world, hour) * _day(world, Stage.VISITS_DAY, hour, VISIT_LUCK) / 60
    counts = stream(world.seed, Stage.VISITS, hour).poisson(level, 60)
    return pa.table(
        {
            c.TS: timestamps(micros(world.moment(hour)) + np.arange(60) * _MINUTE),
            c.EVENT: pa.array(np.full(60, VISITED), pa.string()),
            c.VALUE: pa.array(counts.astype(np.float64)),
        }
    )


def _demand(world: World, hour: int) -> float:
    """What moves all systems of the platform in an hour."""
    return float((expected_requests(world, hour) * luck(world, hour)).sum())


def _day(world: World, stage: Stage, hour: int, spread: float) -> float:
    """The luck of a day."""
    return float(np.exp(spread * bell(keyed(world.seed, stage, np.array([hour // 24])))[0]))
