"""The traffic of the demo, made from a seed: requests, lists and clicks.

The same seed gives the same users, items and requests on any machine. All steps use numpy arrays; the last
one makes Arrow tables with the canonical columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from monitor.core import columns as c

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CHUNK = 4096  # requests ranked at once: chunk x items floats are held in memory


@dataclass(frozen=True, slots=True)
class Traffic:
    """The settings of the simulated recommender.

    `user_skew` and `item_skew` are Zipf exponents (0 is uniform). `taste` is how much users differ in the
    categories they see. `empty_share` is the share of requests that return nothing. A shown item is clicked
    with probability `click_rate` * score / position ** `position_bias`.
    """

    users: int = 5000
    items: int = 400
    length: int = 10
    user_skew: float = 0.6
    item_skew: float = 0.9
    taste: float = 1.0
    scenes: tuple[str, ...] = ("home", "search", "detail")
    scene_shares: tuple[float, ...] = (0.6, 0.25, 0.15)
    categories: tuple[str, ...] = ("books", "films", "games", "garden", "kitchen", "music", "sport", "toys")
    model: str = "m1"
    empty_share: float = 0.005
    click_rate: float = 0.3
    position_bias: float = 0.7
    click_delay: float = 2.0  # seconds, on average
    blacklisted: int = 5
    expired: int = 10
    upcoming: int = 5
    opened: datetime = datetime(2025, 1, 1, tzinfo=UTC)  # the oldest item; nothing depends on today

    def __post_init__(self) -> None:
        unseen = self.blacklisted + self.expired + self.upcoming
        if self.items - unseen < self.length:
            raise ValueError(f"{self.items} items less {unseen} that must not be shown do not fill a list")
        if len(self.scenes) != len(self.scene_shares):
            raise ValueError("every scene has one share")


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one span of time: `exposures` and `feedback`, with naive UTC times."""

    exposures: pa.Table
    feedback: pa.Table


class Simulator:
    """A simulated recommender: its users, its items, and the lists that it shows.

    >>> simulator = Simulator(Traffic(users=50, items=60, length=3), seed=1)
    >>> start = datetime(2026, 1, 1, tzinfo=UTC)
    >>> batch = simulator.batch(start, start + timedelta(seconds=10), 5.0, np.random.default_rng(1))
    >>> batch.exposures.column_names
    ['request_id', 'user_id', 'ts', 'item_id', 'position', 'score', 'scene', 'model']
    """

    def __init__(self, traffic: Traffic, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.traffic = traffic
        self.item_ids = np.array([f"i{n:05d}" for n in range(traffic.items)])
        self.user_ids = np.array([f"u{n:06d}" for n in range(traffic.users)])
        self.user_shares = _zipf(traffic.users, traffic.user_skew)
        popularity = np.log(_zipf(traffic.items, traffic.item_skew))
        self.category: Ints = rng.integers(0, len(traffic.categories), traffic.items)
        taste: Floats = rng.normal(0.0, traffic.taste, (traffic.users, len(traffic.categories)))
        self._taste = taste
        self._appeal: Floats = rng.permutation(popularity)
        self.price: Floats = np.round(rng.lognormal(3.0, 0.8, traffic.items), 2)

        hidden = rng.choice(traffic.items, traffic.blacklisted + traffic.expired + traffic.upcoming, False)
        self.blacklisted, expired, upcoming = np.split(
            hidden, [traffic.blacklisted, traffic.blacklisted + traffic.expired]
        )
        opened = np.datetime64(traffic.opened.replace(tzinfo=None), "us")
        age = rng.integers(0, 300 * 86400, traffic.items).astype("timedelta64[s]")
        self.created_at = opened + age
        self.available_from = self.created_at.copy()
        self.available_until = np.full(traffic.items, np.datetime64("NaT"), dtype="datetime64[us]")
        self.available_until[expired] = self.created_at[expired] + np.timedelta64(30, "D")
        self.available_from[upcoming] = np.datetime64("2100-01-01", "us")

    @property
    def blacklist(self) -> list[str]:
        """The items that this recommender must never show."""
        return sorted(self.item_ids[self.blacklisted].tolist())

    def catalog(self) -> pa.Table:
        """One row an item: item_id, category, created_at, available_from, available_until, price."""
        names = np.array(self.traffic.categories)
        return pa.table(
            {
                c.ITEM_ID: self.item_ids,
                c.CATEGORY: names[self.category],
                c.CREATED_AT: self.created_at,
                "available_from": self.available_from,
                "available_until": self.available_until,
                "price": self.price,
            }
        )

    def batch(
        self,
        start: datetime,
        end: datetime,
        rate: float,
        rng: np.random.Generator,
        *,
        blacklisted: bool = False,
    ) -> Batch:
        """The traffic of [start, end) at `rate` requests a second; `blacklisted` leaks one blacklisted item.

        No click is after `end`, so that a batch written at its end has no rows from the future.
        """
        first, last = _micros(start), _micros(end)
        count = max(int(rng.poisson(rate * (last - first) / 1e6)), 1 if blacklisted else 0)
        times: Ints = np.sort(rng.integers(first, last, count))
        users: Ints = rng.choice(self.traffic.users, count, p=self.user_shares)
        scenes = rng.choice(np.array(self.traffic.scenes), count, p=np.array(self.traffic.scene_shares))
        empty = rng.random(count) < self.traffic.empty_share
        if blacklisted:
            empty[0] = False
        items, scores = self.rank(users, start, end, rng)
        if blacklisted:
            items[0, rng.integers(self.traffic.length)] = rng.choice(self.blacklisted)

        # One row for every place of a list; an empty list is one row without an item.
        length = self.traffic.length
        rows = np.repeat(np.arange(count), np.where(empty, 1, length))
        nothing = empty[rows]
        place = np.arange(len(rows)) - np.searchsorted(rows, rows)
        request_ids = np.array([f"r{first // 1000:x}-{n}" for n in range(count)], dtype=str)
        item_ids = self.item_ids[items[rows, place]]
        exposures = pa.table(
            {
                c.REQUEST_ID: pa.array(request_ids[rows]),
                c.USER_ID: pa.array(self.user_ids[users[rows]]),
                c.TS: _timestamps(times[rows]),
                c.ITEM_ID: pa.array(item_ids, mask=nothing),
                c.POSITION: pa.array(place + 1, pa.int64(), mask=nothing),
                c.SCORE: pa.array(scores[rows, place], pa.float64(), mask=nothing),
                c.SCENE: pa.array(scenes[rows]),
                c.MODEL: pa.array(np.full(len(rows), self.traffic.model)),
            }
        )

        chance = self.traffic.click_rate * scores[rows, place] / (place + 1.0) ** self.traffic.position_bias
        clicked = np.flatnonzero(~nothing & (rng.random(len(rows)) < chance))
        delay = (rng.exponential(self.traffic.click_delay, len(clicked)) * 1e6).astype(np.int64)
        feedback = pa.table(
            {
                c.USER_ID: pa.array(self.user_ids[users[rows[clicked]]]),
                c.ITEM_ID: pa.array(item_ids[clicked]),
                c.TS: _timestamps(np.minimum(times[rows[clicked]] + delay, last - 1)),
                c.EVENT: pa.array(np.full(len(clicked), "click")),
                c.REQUEST_ID: pa.array(request_ids[rows[clicked]]),
            }
        )
        return Batch(exposures, feedback)

    def rank(
        self,
        users: Ints,
        start: datetime,
        end: datetime,
        rng: np.random.Generator,
        *,
        noise: float = 1.0,
        personal: bool = True,
    ) -> tuple[Ints, Floats]:
        """Item numbers and falling scores in (0, 1), both requests x length.

        The items with the largest appeal + taste + Gumbel noise are a draw without replacement, with
        probabilities proportional to exp(appeal + taste). Users click by appeal and taste, so less `noise`
        is a better recommender, and one that is not `personal` knows nothing of their taste.
        """
        length = self.traffic.length
        shown = self._shown(start, end)
        items = np.empty((len(users), length), dtype=np.int64)
        scores = np.empty((len(users), length))
        for low in range(0, len(users), _CHUNK):
            part = users[low : low + _CHUNK]
            key = noise * rng.gumbel(size=(len(part), len(shown))) + self._appeal[shown]
            if personal:
                key += self._taste[np.ix_(part, self.category[shown])]
            best = np.argpartition(-key, length - 1, axis=1)[:, :length]
            value = np.take_along_axis(key, best, axis=1)
            order = np.argsort(-value, axis=1)
            items[low : low + _CHUNK] = shown[np.take_along_axis(best, order, axis=1)]
            scores[low : low + _CHUNK] = 1.0 / (1.0 + np.exp(-np.take_along_axis(value, order, axis=1) / 2.0))
        return items, scores

    def _shown(self, start: datetime, end: datetime) -> Ints:
        """The items that may be shown during the whole of [start, end)."""
        first, last = (np.datetime64(edge.replace(tzinfo=None), "us") for edge in (start, end))
        allowed = (self.available_from <= first) & ~(self.available_until < last)  # NaT compares false
        allowed[self.blacklisted] = False
        shown: Ints = np.flatnonzero(allowed)
        if len(shown) < self.traffic.length:
            raise ValueError(f"only {len(shown)} items are available from {start} to {end}")
        return shown


def _zipf(count: int, exponent: float) -> Floats:
    weights: Floats = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    weights /= weights.sum()
    return weights


def _micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _timestamps(micros: Ints) -> pa.Array:
    return pa.array(micros.astype("datetime64[us]"), pa.timestamp("us"))
