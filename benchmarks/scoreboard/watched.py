"""The real daemon under a clock of our own: all of it but its schedule and its web server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.scoreboard.series import Key, Recorded
from monitor import __version__
from monitor.service.daemon import Daemon
from monitor.service.prometheus.exporter import Exporter

MINUTE: Final = timedelta(minutes=1)
_URL: Final = "http://127.0.0.1:9108"


class Watched(AbstractContextManager["Watched"]):
    """The monitor of a folder's config, its turns, and what Prometheus would read of it.

    The daemon looks every minute. A look that can find nothing is not made here but counted: only the
    clock's own series differ by it, and they are recorded so. A turn takes no time on our clock.
    """

    def __init__(self, folder: Path, name: str, now: datetime, recorded: Recorded | None = None) -> None:
        self.folder, self.name, self.now = folder, name, now
        self.recorded = Recorded() if recorded is None else recorded
        self.idle = False  # whether the last turn left nothing to do before something comes
        self.daemon = Daemon(folder / "config.yaml", clock=lambda: self.now)
        self._exporter = Exporter(self.daemon.publisher.current, version=__version__, url=_URL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.daemon.close()

    def turn(self, now: datetime) -> None:
        """What the daemon does at this minute, and a scrape after it."""
        self._count_idle_turns(now)
        self.now = now
        watch = self.daemon.watches[self.name]
        with self._shown_once():
            self.daemon.turn(self.name)
            while watch.last_run == now and watch.pending:  # it asks to be run again as soon as can be
                self.daemon.turn(self.name)
        self.idle = watch.last_run == now  # not where the turn failed: then the next minute's is another try
        self._scrape()

    def housekeeping(self) -> None:
        """What the daemon does now and then: drop what is too old."""
        self.daemon.housekeeping()

    def reload(self) -> None:
        """Read the config again, as on SIGHUP."""
        self.daemon.reload()

    @contextmanager
    def _shown_once(self) -> Iterator[None]:
        """A snapshot at the end of the block alone: nobody looks at those that each window is followed by."""
        publisher = self.daemon.publisher
        vars(publisher)["publish"] = lambda **_: None
        try:
            yield
        finally:
            del vars(publisher)["publish"]
            publisher.publish(worked=True)

    def _count_idle_turns(self, now: datetime) -> None:
        if not self.idle:
            return
        for _ in range((now - self.now) // MINUTE - 1):
            self.daemon.tally.ran(self.name, "ok")
        watch = self.daemon.watches[self.name]
        watch.last_run = now - MINUTE

    def _scrape(self) -> None:
        values: dict[Key, float] = {}
        for metric in self._exporter.collect():
            # What slices measure is in no alert, and is most of the series; their states are.
            if metric.name.startswith("recsys_slice_") and not metric.name.endswith("_status"):
                continue
            for sample in metric.samples:
                values[sample.name, tuple(sample.labels.items())] = sample.value
        self.recorded.take(int(self.now.timestamp()) // 60, values, idle=self.idle)
