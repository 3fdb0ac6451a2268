"""How many series each recommender may have in a scrape, and what it leaves out.

Every recommender may have an equal share of the limit. What one does not use, the others may.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from monitor.service.prometheus.families import REQUIRED, all_families

Sizes = Mapping[str, int]
"""Family -> its series."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a scrape left out of a recommender: family -> its series, in the order of leaving out."""

    families: Sizes
    share: int  # the most series that the recommender may have

    @property
    def series(self) -> int:
        return sum(self.families.values())


def leave_out(sizes: Mapping[str, Sizes], limit: int) -> dict[str, LeftOut]:
    """What each recommender leaves out, so that all together have at most `limit` series.

    A recommender whose series do not fit its share leaves out families of slices, the largest first, then
    other families of metrics, until the rest fits. Required families stay, even above the share.

    >>> leave_out({"a": {"recsys_gini": 1}, "b": {"recsys_slice_gini": 9, "recsys_gini": 1}}, limit=4)
    {'b': LeftOut(families={'recsys_slice_gini': 9}, share=3)}
    """
    totals = {name: sum(one.values()) for name, one in sizes.items()}
    needed = {
        name: sum(count for family, count in one.items() if family in REQUIRED) for name, one in sizes.items()
    }
    share = _share([(needed[name], totals[name]) for name in sizes], limit)
    return {
        name: LeftOut(_dropped(sizes[name], total - share), share)
        for name, total in totals.items()
        if total > share and total > needed[name]
    }


def _share(wanted: Collection[tuple[int, int]], limit: int) -> int:
    """The largest number of series for each that keeps all within the limit; at least 0.

    `wanted` has what each must have and what it has in all. One that must have more than the share has it.
    """

    def used(share: int) -> int:
        return sum(max(needed, min(total, share)) for needed, total in wanted)

    most = max((total for _, total in wanted), default=0)
    return max(bisect_right(range(most + 1), limit, key=used) - 1, 0)


def _dropped(sizes: Sizes, excess: int) -> Sizes:
    families = all_families()

    def order(name: str) -> tuple[bool, int, str]:
        return not families[name].is_sliced, -sizes[name], name

    left_out: dict[str, int] = {}
    for name in sorted((name for name in sizes if name not in REQUIRED and sizes[name]), key=order):
        if excess <= 0:
            break
        left_out[name] = sizes[name]
        excess -= sizes[name]
    return left_out
