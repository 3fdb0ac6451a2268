"""What each window keeps for the metrics of days and weeks: tables that add up, and the sums of families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

import ibis.expr.types as ir

from monitor.core.columns import EXPOSURES, FEEDBACK, ITEM_ID, SCORE, USER_ID
from monitor.logs.windows import Part
from monitor.metrics.catalogue import EXPOSURE_FAMILIES, FEEDBACK_FAMILIES
from monitor.metrics.exposure.concentration import ACTED_ITEMS, acted_items
from monitor.metrics.exposure.list_users import LIST_USERS, list_users
from monitor.metrics.family import Family
from monitor.metrics.feedback.business import BUSINESS_USERS, KNOWN, users
from monitor.metrics.feedback.ranking import RANKED_USERS, ranked_users
from monitor.metrics.scores.label_counts import LABEL_COUNTS, LARGEST_SCORE, SMALLEST, label_counts
from monitor.metrics.shared import ITEM_COUNTS, Shared
from monitor.settings.metrics import MetricSettings

FAMILY_SUMS: Final = "family_sums"
"""The table of the families' own rows: family, column, value."""
FAMILY, COLUMN, VALUE = "family", "column", "value"


@dataclass(frozen=True, slots=True)
class Addend:
    """A table that each window keeps. Several windows' are one: grouped by `keys`, other columns summed.

    Attributes:
        name: its name in `Shared.once`.
        part: it can be made when this part of a window is judged.
        build: the table of a window.
        keys: the columns that are grouped by.
        smallest, largest: columns of which the smallest or the largest value counts.
        alone: rows with a null key each stay a row of their own.
    """

    name: str
    part: Part
    build: Callable[[Shared, MetricSettings], ir.Table]
    keys: tuple[str, ...]
    smallest: tuple[str, ...] = ()
    largest: tuple[str, ...] = ()
    alone: bool = False


def _of_items(shared: Shared, _: MetricSettings) -> ir.Table:
    return shared.item_counts()


ADDENDS: Final = (
    Addend(LIST_USERS, EXPOSURES, list_users, (USER_ID,)),
    Addend(ITEM_COUNTS, EXPOSURES, _of_items, (ITEM_ID,)),
    Addend(BUSINESS_USERS, FEEDBACK, users, (USER_ID,), largest=(KNOWN,), alone=True),
    Addend(RANKED_USERS, FEEDBACK, ranked_users, (USER_ID,)),
    Addend(ACTED_ITEMS, FEEDBACK, acted_items, (ITEM_ID,)),
    Addend(LABEL_COUNTS, FEEDBACK, label_counts, (SCORE,), smallest=(SMALLEST,), largest=(LARGEST_SCORE,)),
)
"""The pairs of users and items, which the families read as well, are kept for the history anyway."""


@cache
def families_of(part: Part) -> tuple[Family, ...]:
    """The families of a part of a window that add up."""
    every = EXPOSURE_FAMILIES if part == EXPOSURES else FEEDBACK_FAMILIES
    return tuple(family for family in every if family.adds_up is not None)


def wanted(part: Part, measured: set[str]) -> list[Addend]:
    """The tables that the measured families of a part need, by the families' names."""
    needed = {
        name
        for family in families_of(part)
        if family.name in measured and family.adds_up is not None
        for name in family.adds_up.tables
    }
    return [one for one in ADDENDS if one.part == part and one.name in needed]
