"""The daemon: schedules the recommenders, owns the worker thread, serves, reloads, stops."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from monitor.config.checks.check import Checked
from monitor.config.load import ConfigError, load_checked
from monitor.history.counters import TurnEnd
from monitor.history.errors import StoreError
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.judging.runtimes import open_runtime
from monitor.service.publisher import Running, SnapshotPublisher
from monitor.service.salt import install_salt
from monitor.service.schedule import Schedule
from monitor.service.signals import arriving
from monitor.service.state_lock import StateLock
from monitor.service.tally import Tally
from monitor.service.watch import Watch
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import WebServer, serve
from monitor.service.web.web_config import WebConfigError
from monitor.service.worker import Worker
from monitor.settings.config import Config

log = logging.getLogger(__name__)

# A stop takes 10 seconds at most: the window in hand, its interruption, the web requests in hand.
FINISH_SECONDS = 5.0
INTERRUPT_SECONDS = 1.5
WEB_SECONDS = 2.5
LEAVE_SECONDS = 9.5  # whatever does not answer by then is left behind


class Daemon:
    """One process: a worker thread that judges, a web server that shows, a scheduler between them.

    In place of `run`, whoever has a schedule calls `turn` and `housekeeping`, and `close` at the end.
    """

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = path
        self._clock = clock
        self.config, checked = load_checked(path)
        self._started_with = self.config
        self._lock = StateLock(self.config.state)
        self.store = Store.open(self.config.history.location(self.config.state))
        self._state = self.config.state  # another one takes effect with a restart
        self._salt = install_salt(self._state)
        self.tally = Tally(self.store, self._state)
        self._worker = Worker(self._new_runtime)
        self._web: WebServer | None = None
        self._stop = threading.Event()
        self._swap = threading.Lock()
        self._running = Running((), {}, {}, clock())
        self._schedule = Schedule(
            turn=self.turn,
            not_run=self._not_run,
            housekeeping=self.housekeeping,
            alive=self._alive,
            clock=clock,
        )
        self._watch(checked)
        self.publisher = SnapshotPublisher(self.store, self.tally, self._running, clock)

    @property
    def watches(self) -> Mapping[str, Watch]:
        """The recommenders that are run, by their names."""
        return self._running.watches

    def run(self, announce: Callable[[str], None] = lambda _: None) -> int:
        """Serve and judge until SIGTERM or SIGINT; the exit code.

        From the signal on the process has 10 seconds; what hangs then is left behind, and so is the caller.
        Raises ServeError or WebConfigError where the web server cannot start.
        """
        with arriving(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            self._web = web = serve(
                self.config.server,
                self.publisher.current,
                reload=self.reload,
                not_ready=self.publisher.history_error,  # the first snapshot is taken before anything listens
                healthy=lambda: self._schedule.running,
            )
            announce(f"status page  {web.address}/\nmetrics      {web.address}/metrics")
            if web.url != web.address:
                announce(f"links begin  {web.url}/")
            gc.collect()
            gc.freeze()  # what is loaded by now stays; a snapshot's many objects are then collected faster
            self._schedule.start()
            for number in signals:
                if number != signal.SIGHUP:
                    break
                # Not here: while a slow disk or history holds up the reload, this must see a SIGTERM.
                threading.Thread(target=self._hung_up, name="reload", daemon=True).start()
            return self._shut(web)

    def _hung_up(self) -> None:
        try:
            self.reload()
        except Exception:
            log.exception("the reload failed")

    def reload(self) -> ReloadOutcome:
        """Read the config again. A bad one changes nothing, and is said in a gauge and on the page."""
        with self._swap:
            try:
                config, checked = load_checked(self._path)
                problems = [problem for one in checked for problem in one.problems]
                if problems:
                    raise ConfigError(self._path, problems)
                if self._web is not None:
                    self._web.reload_web_config()
            except (ConfigError, WebConfigError) as exc:
                self._show(replace(self._running, refused=str(exc)))
                log.error("the config was not reloaded, the old one stays in use: %s", exc)
                return ReloadOutcome(False, str(exc))
            self.config = config
            self._watch(checked)
            self._show(self._running)
        restart = _only_at_start(self._started_with, config)
        message = "the config was reloaded"
        if restart:
            message += f"; these take effect only with a restart: {', '.join(restart)}"
        log.info(message)
        return ReloadOutcome(True, message)

    def _show(self, running: Running) -> None:
        self._running = self.publisher.running = running
        self.publisher.publish()

    def _watch(self, checked: list[Checked]) -> None:
        """Make the scheduler run exactly these recommenders."""
        before = self._running.watches
        watches: dict[str, Watch] = {}
        broken: dict[str, Checked] = {}
        for one in checked:
            name = one.settings.name
            if one.problems:
                broken[name] = one
                log.error("%s cannot run: %s", name, "; ".join(map(str, one.problems)))
                continue
            known = before.get(name)
            same = known is not None and known.settings == one.settings and known.rules == one.rules
            if known is None or not same:
                known = Watch(one.settings, one.rules, self.store, self._state, self._salt)
            if before:  # a reload; after a restart the files wait as they did
                known.retry_files = True
            watches[name] = known
            self.tally.declare(name, one.rules)
        names = [one.settings.name for one in checked]
        self._running = Running(names, watches, broken, self._clock())
        self._schedule.set({name: watch.settings.every for name, watch in watches.items()})

    def _new_runtime(self) -> Runtime:
        return open_runtime(self._started_with.engine, self._state / "spill")

    def turn(self, name: str) -> None:
        """One run of one recommender, in the worker thread."""
        with self._worker.at_work():
            watch = self._running.watches.get(name)
            if watch is not None and not self._stop.is_set():
                self._run(name, watch)

    def _run(self, name: str, watch: Watch) -> None:
        outcome: TurnEnd | None = "failed"
        try:
            more = watch.turn(self._worker.runtime(), self._clock(), self._stop.is_set, self._worked)
            outcome = "ok"
            if more and not self._stop.is_set():
                self._schedule.soon(name)
        except StoreError as exc:
            self.tally.store_failed(exc)
            log.error("%s: the history cannot be written, the window stays due: %s", name, exc)
        except duckdb.InterruptException:
            if self._stop.is_set():
                outcome = None
                log.info("%s: interrupted; the current window will be judged after the restart", name)
            else:
                log.error("%s: the run was interrupted", name)
                self._worker.drop_runtime()
        except Exception as exc:
            log.exception("%s: the run failed", name)
            watch.error = f"the last run failed: {type(exc).__name__}"
            self._worker.drop_runtime()
        finally:
            if outcome is not None:  # a run that a stop cut short is nobody's failure
                self.tally.ran(name, outcome)
            self.publisher.write_counters()
            self._worked()

    def _worked(self) -> None:
        self.publisher.publish(worked=True)

    def _alive(self) -> None:
        """Show that the worker thread does its work, also where a recommender is run once a day."""
        with self._worker.at_work():
            if not self._stop.is_set():
                self.publisher.write_counters()
                self._worked()

    def housekeeping(self) -> None:
        """Drop what is older than the retention."""
        with self._worker.at_work():
            if self._stop.is_set():
                return
            try:
                now = self._clock()
                # A recommender that cannot run may be mended: its windows would be due again as well.
                keep = dict.fromkeys(self._running.broken, datetime.min.replace(tzinfo=UTC))
                keep |= {name: watch.wanted_from(now) for name, watch in self._running.watches.items()}
                dropped = self.store.drop_before(now - self.config.history.retention, keep)
                for watch in self._running.watches.values():
                    watch.forget(self._clock())
                log.debug("housekeeping dropped %d windows", dropped)
            except StoreError as exc:
                self.tally.store_failed(exc)
                log.error("housekeeping failed: %s", exc)
            except Exception:
                log.exception("housekeeping failed")

    def _not_run(self, name: str, outcome: TurnEnd) -> None:
        if not self._stop.is_set():
            self.tally.ran(name, outcome)
            self.publisher.publish()  # the worker is busy, and may be for long

    def _shut(self, web: WebServer) -> int:
        """Finish or interrupt the window in hand, and leave within 10 seconds."""
        log.info("stopping")
        last_resort = threading.Timer(LEAVE_SECONDS, _leave)
        last_resort.daemon = True  # it goes on while the interpreter waits for threads at its end
        last_resort.start()
        self._stop.set()
        self._schedule.pause()
        clean = self._worker.finish(FINISH_SECONDS, INTERRUPT_SECONDS)
        web.stop(WEB_SECONDS)
        if not clean:
            _leave()  # its thread would keep the process alive
        self._schedule.end()
        self.close()
        log.info("stopped")
        return 0

    def close(self) -> None:
        """Write what was counted, and let go of the history, the engine and the state folder."""
        self.publisher.write_counters()
        self.store.close()
        self._worker.drop_runtime()
        self._lock.release()


def _leave() -> None:
    log.warning("a thread does not stop; exiting without it")
    logging.shutdown()
    os._exit(0)


def _only_at_start(running: Config, config: Config) -> list[str]:
    """The keys of a new config that take effect only with a restart."""
    keys = ("state", "server", "log", "engine")
    changed = [key for key in keys if getattr(config, key) != getattr(running, key)]
    return changed + (["history.url"] if config.history.url != running.history.url else [])
