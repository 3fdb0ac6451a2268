"""The check `platform`: the totals of a day, and whether the recommender gains at the cost of other systems.

It is of days and not of windows, and of other systems as well as of the recommender's logs. So `schedule.py`
says when a day is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from monitor.core.columns import EXPOSURES
from monitor.core.results import Result, Status, worst_status
from monitor.engines.duckdb import Engine
from monitor.experiments.assignments import Assignments
from monitor.platform import specs
from monitor.platform.arms import ArmsOfPlatform
from monitor.platform.days import DailyTotals, zone_of
from monitor.platform.judge import PlatformJudge
from monitor.platform.systems import Systems
from monitor.settings.platform import DEMAND, PlatformSettings
from monitor.window.check import HISTORY, Check, Recommender

NAME: Final = "platform"


@dataclass(frozen=True, slots=True)
class DayJob:
    """One day to judge: the totals of all systems up to it, its end, and an engine for the users of arms."""

    table: DailyTotals
    end: datetime
    engine: Engine


class PlatformCheck(Check[DayJob]):
    """Used by one thread: it knows the kept totals of the logs, and the queries that are under way."""

    name = NAME
    part = HISTORY

    def __init__(self, recommender: Recommender, platform: PlatformSettings) -> None:
        settings, source, beside = recommender.settings, recommender.source, recommender.kept.folder
        self.platform = platform
        self.zone = zone_of(settings, platform)
        self.systems = Systems(settings, platform, source, beside)
        self.judge = PlatformJudge(settings, platform)
        experiments = settings.experiments if EXPOSURES in source.logs else ()
        logs = {name: log for name, log in self.systems.logs.items() if name != DEMAND}
        self._arms = ArmsOfPlatform(
            platform, self.judge, experiments, logs, source,
            Assignments(settings, beside), settings.window,
        )  # fmt: skip

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        if recommender.settings.platform is not None:
            yield cls(recommender, recommender.settings.platform)

    def run(self, job: DayJob) -> list[Result]:
        """The results of the last day of the table. Raises StoreError if users cannot be kept."""
        return [*self.judge.run(job.table), *self._arms.run(job.engine, job.end)]

    def status(self, results: Sequence[Result]) -> Status:
        """The worst verdict, and what says that an amount could not be read."""
        found = [
            one.status for one in results if one.threshold is not None or one.metric == specs.AMOUNT.name
        ]
        return worst_status(one for one in found if one is not Status.UNDEFINED)
