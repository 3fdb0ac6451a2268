"""The realistic logs of a recommender, hour by hour, made from a world."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa

from monitor.simulate.clicks import clicks
from monitor.simulate.delivery import Delivery, Hour, deliver
from monitor.simulate.draws import Stage, stream
from monitor.simulate.lists import Ints, Lists, item_names, join, micros
from monitor.simulate.neighbours import search_clicks, visits
from monitor.simulate.oddities import answered
from monitor.simulate.people import People
from monitor.simulate.ranking import Ranking
from monitor.simulate.retraining import model_of, sharpness
from monitor.simulate.samples import samples
from monitor.simulate.seasons import expected_requests, luck
from monitor.simulate.shop import Shop
from monitor.simulate.world import HOUR, World

IMPRESSIONS = "impressions"
"""An extra column of the exposures: a positive number that a ranker divides by."""

_HOUR = 3_600_000_000  # microseconds


class Simulation:
    """The logs of one world.

    An hour depends only on the world and the number of the hour, not on earlier calls.

    >>> from monitor.simulate.world import Scene
    >>> simulation = Simulation(World(items=48, scenes=(Scene("home", 20.0),)))
    >>> lists = simulation.lists(simulation.world.start, hours=2)
    >>> simulation.feedback(lists).column_names
    ['user_id', 'item_id', 'ts', 'event', 'request_id']
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.people = People(world)
        self.shop = Shop(world)
        self._ranking = Ranking(world, self.people, self.shop)

    @property
    def blacklist(self) -> list[str]:
        """The ids of the items that must never be shown."""
        return [str(name) for name in item_names(self.shop.blacklisted)]

    def catalog(self, at: datetime) -> pa.Table:
        """The catalog at a moment; see `Shop.catalog`."""
        return self.shop.catalog(at)

    def model(self, at: datetime) -> int:
        """The number of the model in service in the hour that begins now; see `model_name`."""
        return model_of(self.world, self.world.hour_of(at))

    def lists(self, start: datetime, hours: int = 1) -> Lists:
        """The lists of the `hours` from `start` on.

        Raises ValueError if `start` is not a full hour or before the world's start, or if `hours` is below 1.
        """
        first = self.world.hour_of(start)
        return join([self._hour(first + more) for more in range(hours)])

    def feedback(self, lists: Lists) -> pa.Table:
        """The clicks on these lists; see `clicks`."""
        return clicks(lists, self.world, self._ranking)

    def samples(self, start: datetime) -> pa.Table:
        """The labelled samples written in the hour that begins now; see `samples.samples`."""
        return samples(self.world, self.people, self.shop, self.world.hour_of(start))

    def search(self, start: datetime) -> pa.Table:
        """The clicks in search in the hour that begins now; see `neighbours.search_clicks`."""
        return search_clicks(self.world, self.world.hour_of(start))

    def hour(self, start: datetime) -> Hour:
        """All logs of an hour. You may change them before `deliver` cuts them into files."""
        number = self.world.hour_of(start)
        start = self.world.moment(number)  # UTC, as in the names of files
        lists = self.lists(start)
        visited = visits(self.world, number)
        return Hour(
            start, lists, self.feedback(lists), self.samples(start), self.catalog(start),
            self.search(start), visited,
        )  # fmt: skip

    def deliver(self, hour: Hour) -> list[Delivery]:
        """The files of an hour in the order of arrival; see `delivery.deliver`."""
        return deliver(hour, self.world)

    def files(self, start: datetime) -> list[Delivery]:
        """The files of the hour that begins now."""
        return self.deliver(self.hour(start))

    def _hour(self, hour: int) -> Lists:
        world = self.world
        times, scenes = self._requests(hour)
        count = len(times)
        users = self.people.draw(stream(world.seed, Stage.PEOPLE, hour), hour, count)
        buckets = self.people.buckets(users)
        models = np.full(count, model_of(world, hour), np.int64)
        sharp = float(sharpness(world, np.array([model_of(world, hour)]))[0])
        items, scores = self._ranking.rank(
            hour,
            sharp,
            users,
            scenes,
            stream(world.seed, Stage.RANKING, hour),
            stream(world.seed, Stage.SMALL_SHOP, hour),
        )
        lengths = self._lengths(hour, count)
        beyond = np.arange(world.length) >= lengths[:, None]
        impressions = self.shop.impressions(items)
        items[beyond], scores[beyond], impressions[beyond] = -1, 0.0, 0.0
        return Lists(
            start=world.moment(hour),
            end=world.moment(hour) + HOUR,
            times=times,
            users=users,
            scenes=scenes,
            models=models,
            buckets=buckets,
            arms=self.people.arms(buckets),
            items=items,
            scores=scores,
            lengths=lengths,
            request_ids=np.strings.add(f"r{hour:05d}-", np.arange(count).astype(str)),
            extra={IMPRESSIONS: impressions},
        )

    def _requests(self, hour: int) -> tuple[Ints, Ints]:
        """The times of requests, in order, and their scenes."""
        rng = stream(self.world.seed, Stage.REQUESTS, hour)
        counts = rng.poisson(expected_requests(self.world, hour) * luck(self.world, hour))
        scenes = np.repeat(np.arange(len(counts)), counts)
        times = micros(self.world.moment(hour)) + rng.integers(0, _HOUR, len(scenes))
        order = np.argsort(times, kind="stable")
        order = order[answered(self.world, hour, times[order], scenes[order])]
        return times[order], scenes[order]

    def _lengths(self, hour: int, count: int) -> Ints:
        """How many items each request returns: mostly all, sometimes fewer, rarely none."""
        kind, part = stream(self.world.seed, Stage.LENGTHS, hour).random((count, 2)).T
        full, none = self.world.length, self.world.empty_share
        short = (np.ceil(full / 2) + np.floor(part * (full - np.ceil(full / 2)))).astype(np.int64)
        return np.where(kind < none, 0, np.where(kind < none + self.world.short_share, short, full))
