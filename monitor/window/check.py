"""What a check is: it looks at one window and says what it found.

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
from monitor.window.verdicts import window_status

HISTORY: Final = "history"
"""The part of the checks that read no log, but what other checks found."""


@dataclass(frozen=True, slots=True)
class Recommender:
    """What the checks of one recommender are made from.

    Attributes:
        settings: the recommender's part of the config.
        source, parts: its logs, and which of their rows each part of a window reads.
        kept: what earlier windows left for later ones; its folder is for others that keep such files.
        rules: the `LoadedRule`s of its suites, which a layer above this one loads.
        salt: hides user ids in evidence.
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
        rule_engine: Great Expectations on the same tables; of a type that a layer above this one defines.
        tables: makes the window's tables at the first call.
        costs: takes the seconds of what is worth telling apart.
    """

    due: Due
    engine: Engine
    rule_engine: Any
    tables: Callable[[], WindowTables]
    costs: dict[str, float]

    @property
    def window(self) -> Window:
        return self.due.window


@dataclass(frozen=True, slots=True)
class HistoryJob:
    """One window to judge by what the history has of it and of those before.

    Attributes:
        window: the window.
        store: the history.
        quiet: spans that count as no past, such as maintenance.
    """

    window: Window
    store: Store
    quiet: Sequence[Window] = ()


@dataclass(frozen=True, slots=True)
class ResultsJob:
    """One window to judge by what the other checks found in it."""

    results: Sequence[Result]


Job = TypeVar("Job")


class Check(ABC, Generic[Job]):
    """Judges windows of one recommender. It belongs to one thread and may remember what it read.

    Attributes:
        name: under which the history keeps its results.
        part: the part of a window that it belongs to: it runs once the rows of this part can be judged.
        definition: the version of the check; a window judged under another one is judged anew.
    """

    name: str
    part: Part | Literal["history"]
    definition: str = "1"

    @classmethod
    @abstractmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        """The checks of this class that the config asks for: mostly one, or none."""

    @abstractmethod
    def run(self, job: Job) -> Sequence[Result]:
        """What the window shows. Raises StoreError where something cannot be kept for later windows."""

    def failed(self, why: str) -> Sequence[Result]:  # noqa: ARG002
        """The results where `run` failed; by default none, and each series has the window's status."""
        return ()

    def status(self, results: Sequence[Result]) -> Status:
        """The verdict on the window by this check."""
        return window_status(results)


def run_check(check: Check[Job], job: Job) -> CheckRun:
    """The check's results of one window, with its verdict and what it took."""
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
