"""Faults of clicks: fraud by a few users, broken logging, or a slow loss of interest."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np
import pyarrow as pa

from monitor.core import columns as c
from monitor.simulate.incidents.incident import Caught, Incident, StruckHour, sizes
from monitor.simulate.incidents.picks import Ints, filled, share_of
from monitor.simulate.lists import Lists, item_names, timestamps, user_names

ROBOTS: Final = 5  # the users with the lowest numbers: those who come most often
DRIFT: Final = timedelta(days=14)
_PAUSE: Final = 30.0  # seconds from a list to a robot's click, on average
_PATIENCE: Final = 600.0  # and at most
_CLICK: Final = "click"
_OF_CLICKS: Final = ("action_rate", "action_volume", "actions_per_user", "conversion")  # metrics that fall


def by_robots(table: pa.Table, lists: Lists, moment: StruckHour) -> pa.Table:
    """Adds clicks of five users, up to the share `size` of all clicks.

    The users are the same in every hour and click on shown items again and again. An hour without lists for
    them has no such clicks.
    """
    if moment.size >= 1.0:
        raise ValueError("five users cannot make all clicks: others click too")
    rows = filled(lists)
    own = rows[lists.users[rows] < ROBOTS]
    count = int(len(table) * moment.size / (1.0 - moment.size) + 0.5)
    if not len(own) or not count:
        return table
    rng = moment.rng
    rows = rng.choice(own, count)
    places = (rng.random(count) * lists.lengths[rows]).astype(np.int64)
    pause = np.minimum(rng.exponential(_PAUSE, count), _PATIENCE)
    new = clicked(lists, rows, places, lists.times[rows] + (pause * 1e6).astype(np.int64), table.schema)
    return pa.concat_tables([table, new]).sort_by(c.TS)


def clicked(lists: Lists, rows: Ints, places: Ints, times: Ints, schema: pa.Schema) -> pa.Table:
    columns = {
        c.USER_ID: pa.array(user_names(lists.users[rows]), pa.string()),
        c.ITEM_ID: pa.array(item_names(lists.items[rows, places]), pa.string()),
        c.TS: timestamps(times),
        c.EVENT: pa.array(np.full(len(rows), _CLICK), pa.string()),
        c.REQUEST_ID: pa.array(lists.request_ids[rows], pa.string()),
    }
    return pa.table({name: columns.get(name, pa.nulls(len(rows))) for name in schema.names}).cast(schema)


def _thinned(table: pa.Table, share: float, rng: np.random.Generator) -> pa.Table:
    kept = np.ones(len(table), bool)
    kept[share_of(np.arange(len(table)), share, rng)] = False
    return table.filter(kept)


def not_logged(table: pa.Table, lists: Lists, moment: StruckHour) -> pa.Table:  # noqa: ARG001 - as every stage
    return _thinned(table, moment.size, moment.rng)


def drifted(table: pa.Table, lists: Lists, moment: StruckHour) -> pa.Table:  # noqa: ARG001 - as every stage
    """Without a share of the clicks: every hour loses the same share of the rest, for two weeks."""
    left = (1.0 - moment.size) ** min(1.0, moment.age / DRIFT)
    return _thinned(table, 1.0 - left, moment.rng)


INCIDENTS: Final = (
    Incident(
        name="click_fraud",
        title="Click fraud by few users",
        says="Five users, or scripts that use their accounts, click on what they are shown again and again.",
        knob="their share of all clicks",
        sizes=sizes(0.02, 0.2, 0.6),
        caught_by=(Caught("RecsysAnomaly", cause="few_clickers"),),
        feedback=by_robots,
    ),
    Incident(
        name="click_logging_broken",
        title="The logging of clicks is broken",
        says="A new version of the app loses clicks; the lists are unchanged.",
        knob="share of the clicks that are not logged",
        sizes=sizes(0.1, 0.4, 1.0),
        caught_by=(
            Caught("RecsysAnomaly", cause="clicks_lost"),
            Caught("RecsysAnomalySevere", cause="clicks_lost"),
            Caught("RecsysFeedbackStalled"),
        ),
        feedback=not_logged,
    ),
    Incident(
        name="slow_drift",
        title="A slow drift over two weeks",
        says="Users lose interest: every day the same share of those who still click stops, 2.5, 13 or 19 %.",
        knob="share of the clicks that is gone after two weeks",
        sizes=sizes(0.3, 0.85, 0.95),
        caught_by=(
            *(Caught("RecsysDrift", metric=metric) for metric in _OF_CLICKS),
            Caught("RecsysAnomaly", cause="clicks_lost"),
        ),
        windows=72,
        unseen={
            "small": "Not within three days: on the third day 5 % is lost, while chance moves a day by 2 % "
            "and a new model of the day before may change it by 3 %."
        },
        feedback=drifted,
    ),
)
