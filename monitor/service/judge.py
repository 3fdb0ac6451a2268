"""What runs the turns of recommenders: in this process, or (see `judge_process`) in one of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

import duckdb

from monitor.core.errors import ExpectedError
from monitor.history.errors import StoreError
from monitor.history.store import Store
from monitor.rules.rule import LoadedRule
from monitor.service.watch import News, Watch, WatchState
from monitor.service.worker import Worker
from monitor.settings.recommender import RecommenderSettings

log = logging.getLogger(__name__)


class TurnFailed(ExpectedError):
    """A turn ended with an exception; the text names its type alone, for the log has the rest."""


class TurnInterrupted(Exception):
    """The engine was interrupted from outside, and the window in hand was not judged."""


class Watched:
    """A recommender of the loaded config, and what its last turn found. Any thread may read it.

    A reload that changes its settings or its rules makes a new one.
    """

    def __init__(self, settings: RecommenderSettings, rules: Sequence[LoadedRule]) -> None:
        self.settings = settings
        self.rules = tuple(rules)
        self.state = WatchState()
        self.judge: Judge | None = None  # the one that had its last turn, and knows its files
        self.retry_files = False  # the next look retries unreadable files at once
        self.forget = False  # the next turn drops what no window needs any more

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def error(self) -> str | None:
        """Why its log cannot be read, or why its last run failed."""
        return self.state.error


class Judge(Protocol):
    """Runs one turn at a time."""

    def turn(
        self, watched: Watched, now: datetime, stopping: Callable[[], bool], news: Callable[[News], None]
    ) -> bool:
        """Run the turn of a recommender, and update its state. True if windows are left for another turn.

        `news` is called with each of its news, once the state of the recommender is up to date.

        Raises:
            StoreError: the history cannot be read or written; the window stays due.
            TurnInterrupted: the judge was interrupted.
            TurnFailed: anything else.
        """

    def finish(self, grant: float, interrupt: float) -> bool:
        """Wait `grant` seconds for the current turn, then interrupt it. True if it has ended."""

    def close(self) -> None:
        """Release everything; there are no further turns."""


class LocalJudge:
    """Judges in this process.

    Args:
        worker: makes the engines.
        history: opens the history at the first turn, or gives it.
        state: the state folder.
        salt: added to user ids before they are hashed in evidence.
        alive: called often while it works.
    """

    def __init__(
        self,
        worker: Worker,
        history: Callable[[], Store],
        state: Path,
        salt: str,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._worker = worker
        self._history = history
        self._state = state
        self._salt = salt
        self._alive = alive
        self._turns = threading.Lock()
        self._watches: dict[str, tuple[Watched, Watch]] = {}

    def turn(
        self, watched: Watched, now: datetime, stopping: Callable[[], bool], news: Callable[[News], None]
    ) -> bool:
        with self._turns, self._worker.at_work():
            if stopping():  # `finish` waits for this block, so no stop is missed
                return False
            self.leave([name for name, (one, _) in self._watches.items() if one.judge is not self])
            watch = self._watch(watched)

            def step(what: News) -> None:
                watched.state = watch.state
                news(what)

            try:
                more = watch.turn(self._worker.runtime(), now, stopping, step, self._alive)
                if watched.forget:
                    watched.forget = False
                    watch.forget(now)
            except StoreError:
                raise
            except duckdb.InterruptException as error:
                self._worker.drop_runtime()
                raise TurnInterrupted from error
            except Exception as error:
                log.exception("%s: the run failed", watched.name)
                watch.error = f"the last run failed: {type(error).__name__}"
                self._worker.drop_runtime()
                raise TurnFailed(watch.error) from error
            finally:
                watched.state = watch.state
            return more

    def forget(self, known: Iterable[Watched], now: datetime) -> None:
        """Drop what no window of these recommenders needs any more."""
        with self._turns:
            for watched in known:
                held = self._watches.get(watched.name)
                if held is not None and held[0] is watched:
                    held[1].forget(now)

    def leave(self, names: Iterable[str]) -> None:
        """Drop recommenders that another judge has, or that left the config."""
        for name in names:
            self._watches.pop(name, None)

    def _watch(self, watched: Watched) -> Watch:
        held = self._watches.get(watched.name)
        if held is None or held[0] is not watched:
            made = Watch(watched.settings, watched.rules, self._history(), self._state, self._salt)
            held = self._watches[watched.name] = watched, made
            watched.judge = self
        watch = held[1]
        watch.retry_files, watched.retry_files = watch.retry_files or watched.retry_files, False
        return watch

    def finish(self, grant: float, interrupt: float) -> bool:
        return self._worker.finish(grant, interrupt)

    def close(self) -> None:
        self._worker.drop_runtime()
