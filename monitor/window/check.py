"""The interface of a check: one window in, results out.

A check is a class in a file of its own, in the folder of its feature. `monitor/judging/registry.py` names it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Self, TypeVar

from monitor.core.results import Result, Status, Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptPairs
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.logs.source import Source
from monitor.logs.windows import Due, Part, Parts
from monitor.settings.recommender import RecommenderSettings
from monitor.window.tables import WindowTables
from monitor.window.together import Together
from monitor.window.verdicts import window_status

HISTORY: Final = "history"
"""The part of checks that read the results of other checks and no log."""


@dataclass(frozen=True, slots=True)
class Recommender:
    """Everything that the checks of one recommender are built from.

    Attributes:
        settings: the recommender's part of the config.
        source: its logs.
        parts: which rows each part of a window reads.
        kept: pairs of users and items of earlier windows; checks may keep files of their own in its folder.
        rules: the `LoadedRule`s of its suites; their type belongs to a higher layer.
        salt: added to user ids before they are hashed in evidence.
    """

    settings: RecommenderSettings
    source: Source
    parts: Parts
    kept: KeptPairs
    rules: tuple[Any, ...]
    salt: str


@dataclass(frozen=True, slots=True)
class WindowJob:
    """One window of the logs to judge.

    Attributes:
        due: the window, its part, and why it is late, if so.
        engine: computes on the tables of the logs.
        rule_engine: Great Expectations on the same tables; its type belongs to a higher layer.
        tables: prepares the window's tables at the first call.
        costs: seconds by step; checks add their own.
        together: what this window and those beside it gave in one pass, if they were measured so.
    """

    due: Due
    engine: Engine
    rule_engine: Any
    tables: Callable[[], WindowTables]
    costs: dict[str, float]
    together: Together | None = None

    @property
    def window(self) -> Window:
        return self.due.window


@dataclass(frozen=True, slots=True)
class HistoryJob:
    """One window to judge by its stored results and by earlier ones.

    Attributes:
        window: the window.
        store: the history.
        quiet: spans to leave out of the past, such as maintenance.
    """

    window: Window
    store: Store
    quiet: Sequence[Window] = ()


@dataclass(frozen=True, slots=True)
class ResultsJob:
    """One window to judge by the results of the other checks."""

    results: Sequence[Result]


Job = TypeVar("Job")


class Check(ABC, Generic[Job]):
    """Judges windows of one recommender. It belongs to one thread and may cache what it read.

    Attributes:
        name: the name of its results in the history.
        part: it runs when the rows of this part of a window can be judged.
        definition: the version of the check. A window judged under another version is judged again.
    """

    name: str
    part: Part | Literal["history"]
    definition: str = "1"

    @classmethod
    @abstractmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        """The checks of this class that the config asks for, usually one or none."""

    @abstractmethod
    def run(self, job: Job) -> Sequence[Result]:
        """The results of the window. Raises StoreError if data for later windows cannot be stored."""

    def failed(self, why: str) -> Sequence[Result]:  # noqa: ARG002
        """The results if `run` failed; none by default, and each series has the window's status."""
        return ()

    def status(self, results: Sequence[Result]) -> Status:
        """The verdict on the window by this check."""
        return window_status(results)


def run_check(check: Check[Job], job: Job) -> CheckRun:
    """Run a check on one window and time it."""
    started = time.perf_counter()
    results = check.run(job)
    return CheckRun(
        check=check.name,
        results=results,
        status=check.status(results),
        definition=check.definition,
        seconds=time.perf_counter() - started,
        outcome="ok",
    )
