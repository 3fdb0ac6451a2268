"""Faults that only the whole platform shows: the recommender gains what another system loses."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from monitor.simulate.incidents.clicks import clicked
from monitor.simulate.incidents.incident import Caught, Incident, StruckHour, sizes
from monitor.simulate.incidents.picks import filled
from monitor.simulate.lists import Lists
from monitor.simulate.neighbours import search_clicks

_PAUSE: Final = 60.0  # seconds from a list to its click, on average
_PATIENCE: Final = 600.0  # and at most


def _moved(moment: StruckHour) -> int:
    """How many clicks of the hour move from search to the recommender."""
    world = moment.sim.world
    return int(search_clicks(world, world.hour_of(moment.hour)).num_rows * moment.size + 0.5)


def taken_over(table: pa.Table, lists: Lists, moment: StruckHour) -> pa.Table:
    """The clicks, with those that search loses in this hour. Any shown place of a list gets them."""
    rows, count = filled(lists), _moved(moment)
    if not len(rows) or not count:
        return table
    rng = moment.rng
    rows = rng.choice(rows, count)
    places = (rng.random(count) * lists.lengths[rows]).astype(np.int64)
    pause = np.minimum(rng.exponential(_PAUSE, count), _PATIENCE)
    new = clicked(lists, rows, places, lists.times[rows] + (pause * 1e6).astype(np.int64), table.schema)
    return pa.concat_tables([table, new]).sort_by("ts")


def left_search(table: pa.Table, moment: StruckHour) -> pa.Table:
    """The clicks in search without those that the recommender gets."""
    kept = np.ones(table.num_rows, bool)
    kept[moment.rng.choice(table.num_rows, _moved(moment), replace=False)] = False
    return table.filter(pa.array(kept))


INCIDENTS: Final = (
    Incident(
        name="zero_sum",
        title="The recommender takes over from search",
        says="Recommendations move above the search box. They get the clicks that search would have had, and "
        "the platform gains nothing.",
        knob="share of the clicks in search that move to the recommender",
        sizes=sizes(0.03, 0.6, 0.9),
        caught_by=(Caught("RecsysZeroSum"),),
        windows=72,
        unseen={
            "small": "3 % of search are 4 % of the recommender: chance moves its day by 2 %, and two days "
            "show no less than 10 %."
        },
        feedback=taken_over,
        search=left_search,
    ),
)
