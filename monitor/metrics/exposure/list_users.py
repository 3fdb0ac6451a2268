"""The lists of each user: how many, how many of them are valid or empty, and their lengths.

The metrics of lists read this instead of the requests: it is grouped once, and it adds up over windows.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import ibis.expr.types as ir

from monitor.core.columns import USER_ID
from monitor.metrics.shared import LENGTH, Shared, listed
from monitor.settings.metrics import MetricSettings

LIST_USERS: Final = "list_users"
REQUESTS: Final = "requests"
VALID: Final = "valid"
FAILED: Final = "failed"
LENGTH_SQUARED: Final = "length_squared"
SUMS: Final = (REQUESTS, VALID, FAILED, LENGTH, LENGTH_SQUARED)


def list_users(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """One row a user (and group) with `SUMS`; the requests without a user are one row with a null."""
    build = partial(_list_users, shared, settings)
    return shared.grouped(LIST_USERS, key, (USER_ID,), build, by_list=True)


def _list_users(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    requests = shared.requests(key)
    length = requests[LENGTH]
    return requests.aggregate(
        by=[USER_ID, *listed(key)],
        **{
            REQUESTS: requests.count(),
            VALID: (length >= settings.valid_list_length).sum(),
            FAILED: (length == 0).sum(),
            LENGTH: length.cast("float64").sum(),
            LENGTH_SQUARED: (length.cast("float64") * length.cast("float64")).sum(),
        },
    )
