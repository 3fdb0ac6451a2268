"""The lists of a span of time as arrays, one row for each request, and their log of exposures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from monitor.core import columns as c
from monitor.simulate.world import World

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]

BUCKET = "bucket"
"""The column of the exposures that holds the user's bucket."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Lists:
    """The lists of [start, end): n requests, each with up to L items.

    Places beyond the length of a list have item -1, score 0 and extras 0; they are not written.
    """

    start: datetime
    end: datetime
    times: Ints
    """n microseconds since 1970 UTC, not falling."""
    users: Ints
    scenes: Ints
    """n indices of the world's scenes."""
    models: Ints
    """0 is the world's first model."""
    buckets: Ints
    """The hash bucket of each request's user."""
    arms: Ints
    items: Ints
    """n x L item numbers."""
    scores: Floats
    """n x L"""
    lengths: Ints
    """0 for a request that returned nothing."""
    request_ids: Texts
    extra: dict[str, Floats] = field(default_factory=dict)
    """Further columns of the exposures, n x L each."""

    def __len__(self) -> int:
        return len(self.times)

    @property
    def shown(self) -> Flags:
        """n x L: whether the place is within the length of the list."""
        return np.asarray(np.arange(self.items.shape[1]) < self.lengths[:, None])


def micros(moment: datetime) -> int:
    """Microseconds since 1970.

    >>> micros(datetime(1970, 1, 2, tzinfo=UTC))
    86400000000
    """
    return (moment - _EPOCH) // timedelta(microseconds=1)


def user_names(users: Ints) -> Texts:
    """The ids of users in the logs.

    >>> user_names(np.array([7, 12345678])).tolist()
    ['u0000007', 'u12345678']
    """
    return _names("u", 7, users)


def item_names(items: Ints) -> Texts:
    """The ids of items in the logs.

    >>> item_names(np.array([42])).tolist()
    ['i000042']
    """
    return _names("i", 6, items)


def _names(letter: str, digits: int, numbers: Ints) -> Texts:
    if not numbers.size:  # zfill fails on an empty array
        return np.empty(numbers.shape, np.str_)
    return np.asarray(np.strings.add(letter, np.strings.zfill(numbers.astype(str), digits)))


def named(numbers: Ints, names: Sequence[str] | Texts) -> pa.Array:
    """The name of each number, as strings.

    >>> named(np.array([1, 0, 1]), ["home", "search"]).to_pylist()
    ['search', 'home', 'search']
    """
    return pa.array(names, pa.string()).take(pa.array(numbers))


def timestamps(times: Ints) -> pa.Array:
    """Microseconds since 1970 as Arrow's times without a zone."""
    return pa.array(times.astype("datetime64[us]"), pa.timestamp("us"))


def join(parts: Sequence[Lists]) -> Lists:
    """Joins consecutive spans.

    Raises ValueError if there is none, or if a span does not begin at the end of the previous one.
    """
    if not parts:
        raise ValueError("no lists to join")
    for one, other in pairwise(parts):
        if one.end != other.start:
            raise ValueError(f"lists until {one.end} are not followed by lists from {other.start}")
    if len(parts) == 1:
        return parts[0]
    arrays = [one.name for one in fields(Lists) if one.name not in ("start", "end", "extra")]
    return Lists(
        start=parts[0].start,
        end=parts[-1].end,
        extra={name: np.concatenate([one.extra[name] for one in parts]) for name in parts[0].extra},
        **{name: np.concatenate([getattr(one, name) for one in parts]) for name in arrays},
    )


def to_exposures(lists: Lists, world: World) -> pa.Table:
    """The log of exposures: one row for each place of a list, in the order of the requests.

    An empty list is one row without item, position, score and extras. A place with item -1 within the length
    of the list is a row without an item. NaN stays NaN.
    """
    counts = np.maximum(lists.lengths, 1)
    rows = np.repeat(np.arange(len(lists)), counts)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    nothing = lists.lengths[rows] == 0
    items = lists.items[rows, place]
    people, person = np.unique(lists.users, return_inverse=True)
    goods, good = np.unique(items, return_inverse=True)
    models = 1 + int(lists.models.max(initial=0))
    no_item = nothing | (items < 0)
    columns = {
        c.REQUEST_ID: pa.array(lists.request_ids, pa.string()).take(pa.array(rows)),
        c.USER_ID: named(person[rows], user_names(people)),
        c.TS: timestamps(lists.times[rows]),
        c.ITEM_ID: pa.array(item_names(goods), pa.string()).take(pa.array(good, mask=no_item)),
        c.POSITION: pa.array(place + 1, pa.int64(), mask=nothing),
        c.SCORE: pa.array(lists.scores[rows, place], pa.float64(), mask=nothing),
        c.SCENE: named(lists.scenes[rows], [scene.name for scene in world.scenes]),
        c.MODEL: named(lists.models[rows], [model_name(one) for one in range(models)]),
        c.ARM: named(lists.arms[rows], world.arms),
        BUCKET: pa.array(lists.buckets[rows]),
    }
    for name, values in lists.extra.items():
        columns[name] = pa.array(values[rows, place], pa.float64(), mask=nothing)
    return pa.table(columns)


def model_name(model: int) -> str:
    """The id of a model in the logs.

    >>> model_name(0)
    'm1'
    """
    return f"m{model + 1}"
