"""The real daemon with a simulated clock, without its scheduler and its web server."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.scoreboard.series import Key, Recorded
from monitor import __version__
from monitor.service.daemon import Daemon
from monitor.service.prometheus.exporter import Exporter
from monitor.service.prometheus.families import all_families
from monitor.service.watch import WatchState

MINUTE: Final = timedelta(minutes=1)
_URL: Final = "http://127.0.0.1:9108"

# No alert reads the values of slices, which are most of the series; alerts read their status. Nor does one
# read the process, which is the scoreboard's here, or the time of the last look at a log: most are counted.
_UNREAD: Final = ("recsys_slice_", "process_", "python_", "recsys_log_last_scan_")


class Watched(AbstractContextManager["Watched"]):
    """The monitor of a folder's config, its turns, and the series that Prometheus would scrape.

    The daemon takes a turn every minute. A turn without work is skipped but counted: it changes only the
    series of the clock, which are recorded accordingly. A turn takes no time on the simulated clock.
    """

    def __init__(self, folder: Path, name: str, now: datetime, recorded: Recorded | None = None) -> None:
        self.folder, self.name, self.now = folder, name, now
        self.recorded = Recorded() if recorded is None else recorded
        self._last_idle: datetime | None = None  # when the last skipped turn was due
        self.idle = False  # whether there is no work until a file arrives
        self.daemon = Daemon(folder / "config.yaml", clock=lambda: self.now)
        self._exporter = Exporter(
            self.daemon.publisher.current, version=__version__, url=_URL, clock=lambda: self.now
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.daemon.close()

    def turn(self, now: datetime, *, scraped: bool = True) -> None:
        """One turn of the daemon at this minute, and a scrape after it."""
        self._count_idle_turns(now)
        self.now = now
        self.daemon.turn(self.name)
        while self._state.last_run == now and self._state.pending:  # it asks for another turn at once
            self.daemon.turn(self.name)
        if self._state.last_run != now and self._last_idle:  # the turn failed
            watch = self.daemon.watches[self.name]
            watch.state = replace(watch.state, last_run=self._last_idle)
            self.daemon.publisher.publish()
        self.idle = self._state.last_run == now  # a failed turn is tried again in the next minute
        if scraped:
            self._scrape()

    @property
    def _state(self) -> WatchState:
        return self.daemon.watches[self.name].state

    def housekeeping(self) -> None:
        self.daemon.housekeeping()

    def reload(self) -> None:
        """Read the config again, as on SIGHUP."""
        self.daemon.reload()

    def _count_idle_turns(self, now: datetime) -> None:
        if not self.idle:
            return
        for _ in range((now - self.now) // MINUTE - 1):
            self.daemon.tally.ran(self.name, "ok")
        self._last_idle = now - MINUTE

    def _scrape(self) -> None:
        values: dict[Key, float] = {}
        for name, series in self._exporter.values().items():
            if name.startswith(_UNREAD) and not name.endswith("_status"):
                continue
            labels = all_families()[name].labels
            for texts, value in series.items():
                values[name, tuple(zip(labels, texts, strict=True))] = value
        self.recorded.take(int(self.now.timestamp()) // 60, values, idle=self.idle)
