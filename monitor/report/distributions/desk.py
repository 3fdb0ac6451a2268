"""Computes the figures of a span on demand: one request at a time, within a deadline, in its own engine.

Nothing is shared with the thread that judges windows: engine, source and spill folder are opened for the
request and closed after it.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb

from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.digest import digest
from monitor.core.errors import ExpectedError
from monitor.core.results import Window
from monitor.engines.duckdb import DeadlineExceeded, deadline
from monitor.judging.runtime import Runtime
from monitor.logs.log import Log
from monitor.logs.source import Source
from monitor.metrics.measure import explain
from monitor.report.distributions.figure import Figure
from monitor.report.distributions.rows import Missing, SpanRows, parts_of
from monitor.report.distributions.span import windows_beside
from monitor.report.distributions.themes import THEMES, Memo, Theme
from monitor.settings.config import Config
from monitor.settings.recommender import RecommenderSettings

logger = logging.getLogger(__name__)

DEADLINE_SECONDS: Final = 30.0
WAIT_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 30
_MOST_WAITING: Final = 4  # each of them holds a thread of the web server
_MOST_KEPT: Final = 8
_KEPT_SECONDS: Final = 300.0
_STOP_SECONDS: Final = 2.0
_SPILL: Final = "spill-distributions"


class Busy(ExpectedError):
    """Other people's figures are being computed."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The figures of a span, when their rows were read, and how long that took."""

    span: Window
    figures: tuple[Figure, ...]
    read_at: datetime
    seconds: float
    finished: int  # so many figures, before the deadline

    @property
    def is_complete(self) -> bool:
        return self.finished == len(self.figures)

    def figure(self, name: str) -> Figure | None:
        return next((one for one in self.figures if one.name == name), None)


@dataclass(frozen=True, slots=True)
class _Key:
    recommender: str
    span: Window
    files: str  # changes with the files that the figures read


@dataclass(frozen=True, slots=True)
class _Kept:
    settings: RecommenderSettings
    drawn: Drawn
    until: float


class Desk:
    """Gives the figures to any thread.

    Args:
        restore: fills the index of a log of the recommender as it is known already, so that only new files
            are read; by default every file is.
        deadline_seconds: so long a request may compute.
        wait_seconds: so long a request waits for another one.
    """

    def __init__(
        self,
        restore: Callable[[str, Log], None] = lambda _recommender, _log: None,
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._restore = restore
        self._deadline, self._wait = deadline_seconds, wait_seconds
        self._turn = threading.Lock()
        self._waiting = threading.Semaphore(_MOST_WAITING)
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._runtime: Runtime | None = None

    def figures(self, config: Config, settings: RecommenderSettings, span: Window) -> Drawn:
        """The figures of a recommender in a span of whole windows.

        Raises:
            Busy: another request is computing, and did not end while this one waited.
        """
        source = Source(settings.logs.model_copy(update={"survey": None}), settings)
        for log in source.logs.values():
            self._restore(settings.name, log)
        key = _Key(settings.name, span, _files(source, settings, span))
        drawn = self._find(key, settings)
        if drawn is not None:
            return drawn
        with self._its_turn():
            drawn = self._find(key, settings)  # the request before may have asked for the same
            if drawn is None:
                drawn = self._compute(config, settings, source, span)
                self._keep(key, settings, drawn)
            return drawn

    def stop(self) -> None:
        """Interrupt what is being computed. Later requests are refused."""
        self._stopped.set()
        until = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < until:  # repeatedly: an interrupt between two statements is lost
            runtime = self._runtime
            if runtime is not None:
                runtime.interrupt()
            if self._turn.acquire(timeout=0.1):
                self._turn.release()
                return

    @contextmanager
    def _its_turn(self) -> Iterator[None]:
        if not self._waiting.acquire(blocking=False):
            raise Busy("Several people have asked for distributions.")
        try:
            if not self._turn.acquire(timeout=self._wait):
                raise Busy("The distributions of another span are being read.")
        finally:
            self._waiting.release()
        try:
            if self._stopped.is_set():
                raise Busy("The monitor is stopping.")
            yield
        finally:
            self._turn.release()

    def _compute(self, config: Config, settings: RecommenderSettings, source: Source, span: Window) -> Drawn:
        started, now = time.perf_counter(), datetime.now(UTC)
        folder = config.state / _SPILL
        figures: list[Figure] = []
        why = ""
        try:
            # The embedded engine, with Spark too: the files are the same, and a picture starts no session.
            with _opened(config, folder) as runtime:
                self._runtime = runtime
                rows = SpanRows(runtime.engine, source, settings, span, now)
                try:
                    with deadline(self._deadline, runtime.interrupt) as over:
                        self._draw(runtime, rows, over, figures)
                except DeadlineExceeded:
                    why = f"Reading was stopped after {self._deadline:g} s. Choose a shorter span."
                except duckdb.InterruptException:
                    why = "Reading was stopped: the monitor is stopping."
                finally:
                    self._runtime = None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        finished = len(figures)
        figures += [theme.empty.without(why) for theme in THEMES[finished:]]
        return Drawn(span, tuple(figures), now, time.perf_counter() - started, finished)

    def _draw(self, runtime: Runtime, rows: SpanRows, over: threading.Event, figures: list[Figure]) -> None:
        """Index the files and compute one figure after the other; each is added once it is whole."""

        def go_on(*_: object) -> None:
            if over.is_set() or self._stopped.is_set():
                raise duckdb.InterruptException("the time is over")

        for log in rows.source.logs.values():
            while log.refresh(runtime.index, rows.now, go_on).is_cut:
                go_on()
        memo = Memo(rows)
        for theme in THEMES:
            go_on()
            figures.append(_figure(theme, memo, go_on))

    def _find(self, key: _Key, settings: RecommenderSettings) -> Drawn | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None or found.settings is not settings or found.until < time.monotonic():
                return None
            self._kept.move_to_end(key)
            return found.drawn

    def _keep(self, key: _Key, settings: RecommenderSettings, drawn: Drawn) -> None:
        with self._lock:
            seconds = _KEPT_SECONDS if drawn.is_complete else RETRY_SECONDS
            self._kept[key] = _Kept(settings, drawn, time.monotonic() + seconds)
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)


def _figure(theme: Theme, memo: Memo, go_on: Callable[[], None]) -> Figure:
    """One figure, or why there is none. An error of one does not stop the others."""
    try:
        return theme.compute(memo)
    except Missing as missing:
        return theme.empty.without(missing.why)
    except duckdb.InterruptException:
        raise
    except Exception as error:
        go_on()  # an interrupted statement may fail in any way
        logger.exception("the figure %s cannot be drawn", theme.empty.name)
        return theme.empty.without(f"It cannot be drawn because of an error: {explain(error)}.")


@contextmanager
def _opened(config: Config, folder: Path) -> Iterator[Runtime]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    runtime = Runtime(folder, memory=config.engine.memory, threads=config.engine.threads)
    try:
        yield runtime
    finally:
        runtime.close()


def _files(source: Source, settings: RecommenderSettings, span: Window) -> str:
    """Changes if a file that the figures of the span read does, as far as the index knows."""
    reach = parts_of(source, settings, span.length).span(span, FEEDBACK)
    day = windows_beside(span, settings.window)
    around = Window(min(reach.start, day.start), reach.end)
    known: list[tuple[object, ...]] = []
    for log in source.logs.values():
        of_time = log.name in (EXPOSURES, FEEDBACK)
        entries = log.files_in(around) if of_time else log.entries.values()
        known += [(log.name, one.file.path, one.file.size, one.file.modified, one.digest) for one in entries]
    return digest(repr(sorted(known)), 32)
