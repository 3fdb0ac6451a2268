"""Cuts an hour of every log into files, each with its time of arrival."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from monitor.core import columns as c
from monitor.simulate.draws import Stage, stream
from monitor.simulate.lists import Lists, micros, to_exposures
from monitor.simulate.neighbours import SEARCH, VISITS
from monitor.simulate.oddities import held_until, hold, is_doubled, is_retried
from monitor.simulate.world import HOUR, World

WRITING = timedelta(seconds=5)
"""The time between the end of a file's rows and its arrival."""
AGAIN = timedelta(minutes=2)
"""The time until a file is sent a second time."""
LABELLING = timedelta(minutes=25)
"""The delay of scored rows: they wait for their labels."""

_MINUTE = 60_000_000  # microseconds


@dataclass(frozen=True)
class Delivery:
    """One file: its log, its name, its rows, and its time of arrival.

    A file with the name of an earlier one replaces it.
    """

    log: str
    name: str
    table: pa.Table
    arrives: datetime


@dataclass(frozen=True)
class Hour:
    """All logs of one hour, before they are cut into files."""

    start: datetime
    lists: Lists
    feedback: pa.Table
    """The actions on these lists; the last ones are in the next hour."""
    samples: pa.Table
    catalog: pa.Table
    search: pa.Table
    """The clicks in search, another system of the platform."""
    visits: pa.Table
    """How many came to the platform in each minute."""


def deliver(hour: Hour, world: World) -> list[Delivery]:
    """The files of an hour in the order of arrival.

    Exposures, feedback, search and visits come every `file_minutes`. Feedback has the actions of that time on
    the lists of this hour, so some of it comes in the next hour. The catalog comes when the hour begins.
    Online samples come once their labels are known, train and test rows when their model goes into service.
    Empty files are not written.

    A row of the exposures with a time outside the hour is in the first or the last file.
    """
    number = world.hour_of(hour.start)
    exposures = _parts(c.EXPOSURES, to_exposures(hour.lists, world), hour.start, world, last=60)
    exposures = _doubled(exposures, world, number) if is_doubled(world, number) else exposures
    exposures = _retried(exposures) if is_retried(world, number) else exposures
    feedback = _parts(c.FEEDBACK, hour.feedback, hour.start, world, last=120)
    held = [_held(one, world, number) for one in (*exposures, *feedback)]
    catalog = Delivery(c.CATALOG, "catalog.parquet", hour.catalog, hour.start)
    platform = [
        one
        for log, rows in ((SEARCH, hour.search), (VISITS, hour.visits))
        for one in _parts(log, rows, hour.start, world, last=60)
    ]
    return sorted([catalog, *held, *_samples(hour), *platform], key=lambda one: one.arrives)


def _parts(log: str, rows: pa.Table, start: datetime, world: World, *, last: int) -> list[Delivery]:
    """One file for each part of the time, up to `last` minutes after the start."""
    length = world.file_minutes
    times = rows[c.TS].to_numpy().astype("datetime64[us]").astype(np.int64)
    part = ((times - micros(start)) // (length * _MINUTE)).clip(0, last // length - 1)
    found = []
    for one in np.unique(part).tolist():
        name = f"{start:%Y%m%dT%H}-{one * length:03d}.parquet"
        ends = start + timedelta(minutes=(one + 1) * length)
        found.append(Delivery(log, name, rows.take(pa.array(np.flatnonzero(part == one))), ends + WRITING))
    return found


def _doubled(files: list[Delivery], world: World, hour: int) -> list[Delivery]:
    """Adds a copy of the last file under another name, with its rows in another order."""
    if not files:
        return files
    last = files[-1]
    order = stream(world.seed, Stage.SHUFFLE, hour).permutation(last.table.num_rows)
    rows = last.table.take(pa.array(order))
    return [*files, Delivery(last.log, f"copy-{last.name}", rows, last.arrives + AGAIN)]


def _retried(files: list[Delivery]) -> list[Delivery]:
    """Replaces the first file by an incomplete one, followed by the complete one a little later."""
    if not files:
        return files
    first = files[0]
    half = first.table.slice(0, first.table.num_rows // 2)
    whole = Delivery(first.log, first.name, first.table, first.arrives + AGAIN)
    return [Delivery(first.log, first.name, half, first.arrives), whole, *files[1:]]


def _held(file: Delivery, world: World, hour: int) -> Delivery:
    """The file with the delay of a late hour."""
    arrives = file.arrives + hold(world, hour)
    before = held_until(world, hour)
    if before is not None:
        arrives = max(arrives, world.moment(hour) + before + WRITING)
    return Delivery(file.log, file.name, file.table, arrives)


def _samples(hour: Hour) -> list[Delivery]:
    found = []
    splits = hour.samples[c.SPLIT].to_numpy(zero_copy_only=False)
    for split in (c.TRAIN, c.TEST, c.ONLINE):
        rows = hour.samples.take(pa.array(np.flatnonzero(splits == split)))
        if not rows.num_rows:
            continue
        arrives = hour.start + HOUR + LABELLING if split == c.ONLINE else hour.start + WRITING
        found.append(Delivery(c.SAMPLES, f"{split}-{hour.start:%Y%m%dT%H}.parquet", rows, arrives))
    return found
