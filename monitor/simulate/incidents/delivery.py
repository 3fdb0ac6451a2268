"""Faults of the log pipeline: it stops, slows down, writes twice, loses rows, or its clock is wrong.

Requests are picked by a hash of their id, so that a file that is delivered twice has the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from monitor.core import columns as c
from monitor.simulate.delivery import Delivery
from monitor.simulate.incidents.incident import Caught, Incident, StruckHour, sizes
from monitor.simulate.incidents.picks import Flags

_SKEWED: Final = 0.1  # of the requests: one server of ten
# Clicks on requests that were never logged join no list: "the log lacks lists, or ids changed".
_WITHOUT_LIST: Final = Caught("RecsysAnomaly", cause="attribution_lost")


def of_hash(ids: pa.ChunkedArray, share: float, seed: int) -> Flags:
    """Which rows belong to the share of requests that `seed` picks; rows without an id do not.

    >>> of_hash(pa.chunked_array([["a", "b", None]]), 1.0, 7).tolist()
    [True, True, False]
    """
    values = ids.to_numpy().astype(object)
    places = pd.util.hash_array(values, hash_key=f"{seed % 10**16:016d}") / 2.0**64
    return np.asarray((places < share) & ids.is_valid().to_numpy())


def _exposures(
    change: Callable[[pa.Table, StruckHour], pa.Table],
) -> Callable[[Sequence[Delivery], StruckHour], list[Delivery]]:
    """A stage that applies the change to every file of the exposures, and to no other file.

    Files of hours before the incident stay the same, even if they arrive later.
    """

    def stage(deliveries: Sequence[Delivery], moment: StruckHour) -> list[Delivery]:
        return [
            replace(one, table=change(one.table, moment))
            if one.log == c.EXPOSURES and moment.hour >= moment.since
            else one
            for one in deliveries
        ]

    return stage


def stopped(deliveries: Sequence[Delivery], moment: StruckHour) -> list[Delivery]:
    """Files that would arrive while the pipeline is stopped arrive when it runs again."""
    again = moment.since + timedelta(hours=moment.size)
    return [replace(one, arrives=again) if moment.since <= one.arrives < again else one for one in deliveries]


def slowed(deliveries: Sequence[Delivery], moment: StruckHour) -> list[Delivery]:
    """Every file of the exposures that would arrive from now on arrives later."""
    late = timedelta(minutes=moment.size)
    return [
        replace(one, arrives=one.arrives + late)
        if one.log == c.EXPOSURES and one.arrives >= moment.since
        else one
        for one in deliveries
    ]


def _picked(table: pa.Table, share: float, moment: StruckHour) -> Flags:
    return of_hash(table[c.REQUEST_ID], share, moment.sim.world.seed)


def doubled(table: pa.Table, moment: StruckHour) -> pa.Table:
    """The rows of the picked requests twice, each copy after its row."""
    times = 1 + _picked(table, moment.size, moment)
    return table.take(np.repeat(np.arange(len(table)), times))


def lost(table: pa.Table, moment: StruckHour) -> pa.Table:
    """Without the rows of the picked requests."""
    return table.filter(~_picked(table, moment.size, moment))


def scene_lost(table: pa.Table, moment: StruckHour) -> pa.Table:
    """Without the picked requests of the second largest scene, or of the only one."""
    by_size = sorted(moment.sim.world.scenes, key=lambda scene: -scene.requests_per_hour)
    name = by_size[min(1, len(by_size) - 1)].name
    there = pc.equal(table[c.SCENE], name).fill_null(False).to_numpy()
    return table.filter(~(there & _picked(table, moment.size, moment)))


def skewed(table: pa.Table, moment: StruckHour) -> pa.Table:
    """The requests of one server of ten with a clock that is ahead."""
    ahead = pc.add(table[c.TS], pa.scalar(timedelta(minutes=moment.size), pa.duration("us")))
    times = pc.if_else(pa.array(_picked(table, _SKEWED, moment)), ahead, table[c.TS])
    return table.set_column(table.column_names.index(c.TS), c.TS, times)


INCIDENTS: Final = (
    Incident(
        name="log_stops",
        title="The log pipeline stops",
        says="Files of all logs stop arriving. When the pipeline runs again, all delayed files arrive at "
        "once.",
        knob="hours until the pipeline runs again",
        sizes=sizes(1, 3, 12),
        caught_by=(
            Caught("RecsysLogStalled"),
            Caught("RecsysWindowLate"),
            Caught("RecsysNoData"),
            Caught("RecsysAnomaly", cause="traffic_lost"),
        ),
        deliver=stopped,
    ),
    Incident(
        name="log_slows",
        title="The log pipeline slows down",
        says="The files of the exposures are complete, but each arrives late.",
        knob="minutes by which every file is late",
        sizes=sizes(5, 60, 240),
        caught_by=(
            Caught("RecsysWindowLate"),
            Caught("RecsysLogStalled"),
            Caught("RecsysNoData"),
        ),
        unseen={"small": "Windows wait for their rows for up to `max_wait`: five minutes more lose nothing."},
        deliver=slowed,
    ),
    Incident(
        name="log_doubles",
        title="The log pipeline writes twice",
        says="A writer that retries too eagerly puts all rows of a request into the log a second time.",
        knob="share of the requests whose rows are written twice",
        sizes=sizes(0.3, 0.6, 1.0),
        caught_by=(
            Caught("RecsysAnomaly", cause="traffic_surge"),
            Caught("RecsysSoftRuleViolated", rule="duplicate_item"),
        ),
        deliver=_exposures(doubled),
    ),
    Incident(
        name="log_loses",
        title="The log pipeline loses rows",
        says="Some writers fail silently: their requests are served as usual, but never logged.",
        knob="share of the requests that are missing from the exposures",
        sizes=sizes(0.1, 0.3, 0.7),
        caught_by=(
            Caught("RecsysAnomaly", cause="traffic_lost"),
            Caught("RecsysAnomalySevere", cause="traffic_lost"),
            _WITHOUT_LIST,
        ),
        deliver=_exposures(lost),
    ),
    Incident(
        name="log_loses_scene",
        title="The log pipeline loses one scene",
        says="The second largest scene is served as usual, but its requests no longer reach the log.",
        knob="share of that scene's requests that are missing",
        sizes=sizes(0.2, 0.6, 1.0),
        caught_by=(
            Caught("RecsysAnomaly", cause="scene_lost"),
            Caught("RecsysAnomaly", cause="traffic_lost"),
            Caught("RecsysAnomalySevere", cause="traffic_lost"),
            _WITHOUT_LIST,
        ),
        deliver=_exposures(scene_lost),
    ),
    Incident(
        name="clock_skew",
        title="A server's clock is ahead",
        says="One server of ten writes times in the future.",
        knob="minutes by which its clock is ahead",
        sizes=sizes(3, 20, 180),
        caught_by=(Caught("RecsysSoftRuleViolated", rule="time_in_future"),),
        unseen={"small": "Three minutes are within the tolerance for clocks of five minutes."},
        deliver=_exposures(skewed),
    ),
)
