"""Picks the requests that an incident affects, and replaces rows of lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from monitor.simulate.lists import Lists

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NO_ITEM: Final = -1  # the item of a place beyond the end of a list


def some(candidates: Ints, count: int, rng: np.random.Generator) -> Ints:
    """At most `count` of the candidates, in their order and without repetition.

    >>> some(np.array([3, 5, 8]), 9, np.random.default_rng(0)).tolist()
    [3, 5, 8]
    """
    if count >= len(candidates):
        return candidates
    return np.sort(rng.choice(candidates, count, replace=False))


def share_of(candidates: Ints, share: float, rng: np.random.Generator) -> Ints:
    """A share of the candidates, rounded to the nearest number, in their order.

    >>> len(share_of(np.arange(10), 0.25, np.random.default_rng(0)))
    3
    """
    return some(candidates, int(share * len(candidates) + 0.5), rng)


def of_users(users: Ints, share: float, seed: int) -> Flags:
    """Which rows belong to the share of users that `seed` picks: always the same users.

    >>> of_users(np.array([4, 9, 4]), 1.0, 1).tolist()
    [True, True, True]
    >>> of_users(np.array([4, 9, 4]), 0.0, 1).tolist()
    [False, False, False]
    """
    mixed = pd.util.hash_array(users.astype(np.uint64))
    salted = pd.util.hash_array(mixed ^ np.uint64(seed))
    return np.asarray(salted / 2.0**64 < share)


def filled(lists: Lists) -> Ints:
    """The requests whose list is not empty."""
    return np.flatnonzero(lists.lengths > 0)


def most_shown(lists: Lists) -> Ints:
    """The items that were shown, the most frequent first, then the lowest number."""
    items, counts = np.unique(lists.items[lists.shown & (lists.items >= 0)], return_counts=True)
    return items[np.argsort(-counts, kind="stable")]


def changed(lists: Lists, rows: Ints, **columns: npt.NDArray[Any]) -> Lists:
    """The lists with new values in some rows of these columns; other columns are shared.

    An extra column is given by its own name, such as `impressions`.
    """
    new: dict[str, Any] = {}
    extra = dict(lists.extra)
    for name, values in columns.items():
        column = (lists.extra[name] if name in extra else getattr(lists, name)).copy()
        column[rows] = values
        if name in extra:
            extra[name] = column
        else:
            new[name] = column
    return replace(lists, extra=extra, **new)


def with_items(lists: Lists, rows: Ints, items: Ints) -> Lists:
    """The lists with other items at the places of `rows`; scores stay."""
    return changed(lists, rows, items=np.where(lists.shown[rows], items, NO_ITEM))


def cut(lists: Lists, rows: Ints, lengths: Ints) -> Lists:
    """The lists with `rows` shortened to these lengths."""
    kept = np.arange(lists.items.shape[1]) < lengths[:, None]
    numbers = {"scores": lists.scores, **lists.extra}
    columns = {name: np.where(kept, values[rows], 0.0) for name, values in numbers.items()}
    return changed(lists, rows, items=np.where(kept, lists.items[rows], NO_ITEM), lengths=lengths, **columns)
