"""A simulation's logs, delivered to a monitor as the hours pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from benchmarks.scoreboard.config import BLACKLIST, LOGS, MAX_WAIT
from benchmarks.scoreboard.watched import MINUTE, Watched
from monitor.simulate.delivery import Delivery
from monitor.simulate.neighbours import SEARCH, VISITS
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR

_ROTATED: Final = ("exposures", "feedback", SEARCH, VISITS)
_KEPT: Final = timedelta(hours=8)
_AFTER_THE_HOUR: Final = timedelta(minutes=5)  # by which the last file of an hour has come, but for held ones
_STILL_COMING: Final = 3  # hours after its end by which every file of an hour has come
_MEASURES_AT: Final = 31  # the minute of an hour by which rows have come that end the hour before
_BY_THE_CLOCK: Final = (0, MAX_WAIT)  # minutes of an hour: it has ended; a window is waited for no longer

Operation = Callable[[Watched, datetime], bool]
"""Does something to the monitor at a minute; returns whether it did anything."""


def play(
    watched: Watched,
    simulation: Simulation,
    begin: datetime,
    end: datetime,
    operation: Operation = lambda _watched, _minute: False,
    *,
    is_on: bool = True,
) -> Iterator[datetime]:
    """Deliver the files from `begin` to `end` and give the monitor its turns; yields the end of each hour.

    `is_on`: whether alerts count. Until then the monitor only measures: one turn an hour, without a scrape.

    Files are written when they arrive, with that time, and rotated later. Files of the last hours before
    `begin` are there from the beginning.
    """
    for log in LOGS:
        (watched.folder / "logs" / log).mkdir(parents=True, exist_ok=True)
    (watched.folder / BLACKLIST).write_text("\n".join(["item_id", *simulation.blacklist, ""]), "utf-8")
    first = max(simulation.world.start, begin - _STILL_COMING * HOUR)
    waiting = [one for hour in hours(first, begin) for one in simulation.files(hour)]
    for one in sorted(waiting, key=lambda one: one.arrives):
        if one.arrives <= begin:  # a restored folder has these files already
            land(watched.folder, one)
    waiting = [one for one in waiting if one.arrives > begin]
    for hour in hours(begin, end):
        waiting += simulation.files(hour)
        for minute in (hour + past * MINUTE for past in range(1, 61)):
            landed = [one for one in waiting if one.arrives <= minute]
            for one in landed:
                land(watched.folder, one)
            if landed:
                waiting = [one for one in waiting if one.arrives > minute]
            done = operation(watched, minute)
            if not is_on:
                if minute.minute == _MEASURES_AT:
                    watched.turn(minute, scraped=False)
            elif landed or done or not watched.idle or minute.minute in _BY_THE_CLOCK:
                watched.turn(minute)
        if not is_on:
            watched.now = hour + HOUR
        rotate(watched.folder, hour)
        yield hour + HOUR


def hours(begin: datetime, end: datetime) -> list[datetime]:
    """The start of every hour from `begin` on that ends by `end`."""
    return [begin + number * HOUR for number in range((end - begin) // HOUR)]


def land(folder: Path, delivery: Delivery) -> None:
    """Write a file under a temporary name, set its time of arrival, and rename it."""
    path = folder / "logs" / delivery.log / delivery.name
    part = path.with_name(f".{path.name}.part")
    pq.write_table(delivery.table, part)
    moment = delivery.arrives.timestamp()
    os.utime(part, (moment, moment))
    part.replace(path)


def rotate(folder: Path, now: datetime) -> None:
    """Delete old files of the rotated logs."""
    oldest = (now - _KEPT + _AFTER_THE_HOUR).timestamp()
    for log in _ROTATED:
        for path in (folder / "logs" / log).glob("*.parquet"):
            if path.stat().st_mtime < oldest:
                path.unlink()
