"""A simulation with an incident: healthy hours until the incident begins."""

from __future__ import annotations

import math
import zlib
from datetime import datetime
from enum import IntEnum

import numpy as np
import pyarrow as pa

from monitor.simulate.delivery import Delivery, Hour
from monitor.simulate.incidents.incident import Incident, StruckHour
from monitor.simulate.lists import Lists
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR


class _Stage(IntEnum):
    """The purposes of random numbers. The values are parts of seeds: never change them."""

    LISTS = 1
    FEEDBACK = 2
    SAMPLES = 3
    CATALOG = 4
    DELIVER = 5
    SEARCH = 6


class Struck(Simulation):
    """A simulation of the same world with an incident from an hour on.

    Hours before `since` have byte-identical rows. Their last files arrive after `since`, so a stopped or slow
    pipeline delays them too.

    Args:
        healthy: the simulation without any incident.
        incident: one of `catalogue.INCIDENTS`.
        size: the number of the incident's knob, such as one of its `sizes`.
        since: the full hour in which it begins.

    Raises ValueError if `since` is not a full hour of the world, if the size is not one of the knob, or if
    `healthy` has an incident already.
    """

    def __init__(self, healthy: Simulation, incident: Incident, size: float, since: datetime) -> None:
        if isinstance(healthy, Struck):
            raise ValueError(f"a simulation has one incident, and this one has {healthy._incident.name}")
        if not (math.isfinite(size) and size >= 0 and (size <= 1 or not incident.is_share)):
            bounds = "from 0 to 1" if incident.is_share else "0 or more"
            raise ValueError(f"the size of {incident.name} ({incident.knob}) is {bounds}, got {size}")
        super().__init__(healthy.world)
        self._first = healthy.world.hour_of(since)
        self._healthy: Simulation = healthy
        self._incident: Incident = incident
        self._size = size
        self._since = self.world.moment(self._first)

    def catalog(self, at: datetime) -> pa.Table:
        table = super().catalog(at)
        stage = self._incident.catalog
        if stage is None or at < self._since:
            return table
        hour = (at - self.world.start) // HOUR
        return stage(table, self._moment(hour, _Stage.CATALOG))

    def feedback(self, lists: Lists) -> pa.Table:
        """The actions on the lists of one hour.

        Raises ValueError if the incident changes feedback and the lists cover more than one hour.
        """
        table = super().feedback(lists)
        stage = self._incident.feedback
        if stage is None or lists.end <= self._since:
            return table
        if lists.end - lists.start != HOUR:
            raise ValueError(f"lists of one hour are needed, these are of {lists.start} to {lists.end}")
        return stage(table, lists, self._moment(self.world.hour_of(lists.start), _Stage.FEEDBACK))

    def samples(self, start: datetime) -> pa.Table:
        table = super().samples(start)
        stage = self._incident.samples
        if stage is None or start < self._since:
            return table
        return stage(table, self._moment(self.world.hour_of(start), _Stage.SAMPLES))

    def search(self, start: datetime) -> pa.Table:
        table = super().search(start)
        stage = self._incident.search
        if stage is None or start < self._since:
            return table
        return stage(table, self._moment(self.world.hour_of(start), _Stage.SEARCH))

    def deliver(self, hour: Hour) -> list[Delivery]:
        files = super().deliver(hour)
        stage = self._incident.deliver
        if stage is None:
            return files
        changed = stage(files, self._moment(self.world.hour_of(hour.start), _Stage.DELIVER))
        return sorted(changed, key=lambda one: one.arrives)

    def _hour(self, hour: int) -> Lists:
        lists = super()._hour(hour)
        stage = self._incident.lists
        if stage is None or hour < self._first:
            return lists
        return stage(lists, self._moment(hour, _Stage.LISTS))

    def _moment(self, hour: int, stage: _Stage) -> StruckHour:
        seed = [self.world.seed, zlib.crc32(self._incident.name.encode()), int(stage), hour]
        return StruckHour(
            self._healthy, self._since, self.world.moment(hour), self._size, np.random.default_rng(seed)
        )
