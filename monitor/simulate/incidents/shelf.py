"""Reads a catalog for incidents: item numbers, expired items, and categories."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from monitor.core import columns as c
from monitor.simulate.incidents.picks import Ints

UNTIL = "available_until"


def numbers(names: pa.Array | pa.ChunkedArray) -> Ints:
    """The numbers of items from their ids.

    >>> numbers(pa.array(["i000042", "i000007"])).tolist()
    [42, 7]
    """
    digits = pc.utf8_slice_codeunits(names, 1, 20)
    return np.asarray(pc.cast(digits, pa.int64()))


def expired(catalog: pa.Table, at: datetime) -> Ints:
    """The items that had expired at this moment."""
    over = pc.less_equal(catalog[UNTIL], pa.scalar(at.replace(tzinfo=None), pa.timestamp("us")))
    return numbers(catalog.filter(over)[c.ITEM_ID])  # an item without an end is null here, and filtered out


def categories(catalog: pa.Table) -> tuple[Ints, npt.NDArray[np.object_]]:
    """Items in ascending order, and the category of each."""
    items = numbers(catalog[c.ITEM_ID])
    order = np.argsort(items)
    return items[order], catalog[c.CATEGORY].to_numpy(zero_copy_only=False)[order]
