"""The state of a recommender and the series that need attention, as its page has them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from monitor.core.results import Status, rank
from monitor.history.snapshot import RecommenderState, Series, Snapshot
from monitor.report.page import RecommenderView


@dataclass(frozen=True, slots=True)
class Attention:
    """The state of a recommender, and the series that need attention, the worst first."""

    status: Status
    series: tuple[Series, ...]

    @property
    def violated(self) -> tuple[Series, ...]:
        """The series that are violated now."""
        return tuple(one for one in self.series if one.standing is Status.VIOLATED)

    @property
    def unjudged(self) -> tuple[Series, ...]:
        """The series that should have a verdict and have none: no data, late, or an error."""
        return tuple(one for one in self.series if one.standing is not Status.VIOLATED)

    @property
    def since(self) -> datetime | None:
        """When the state began: the earliest start of a series that has it. None if no series has it."""
        return min((one.since for one in self.series if one.standing is self.status), default=None)


def attention_of(state: RecommenderState, now: datetime) -> Attention:
    """What of a recommender needs attention now. The view of its page makes no part that nobody reads."""
    view = RecommenderView(state, Snapshot(now, (state,)), now)
    found = {id(one.series): one.series for one in view.troubles}
    needs = [one for one in found.values() if one.standing not in (Status.OK, Status.UNDEFINED)]
    return Attention(view.status, tuple(sorted(needs, key=lambda one: rank(one.standing))))
