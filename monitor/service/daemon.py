"""The daemon: schedules the recommenders, owns the worker thread, serves, reloads, stops."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from monitor.checks.runtime import Runtime
from monitor.config.check import Checked, check_config
from monitor.config.load import ConfigError, load_config
from monitor.history.errors import StoreError
from monitor.history.snapshot import RecommenderState, RuleInfo, Snapshot
from monitor.history.store import Store
from monitor.history.take import take_snapshot
from monitor.logs.columns import LOGS
from monitor.service.salt import install_salt
from monitor.service.server import WebServer, serve
from monitor.service.signals import arriving
from monitor.service.tally import OUTCOMES, Tally
from monitor.service.watch import Watch
from monitor.service.web import ReloadOutcome
from monitor.service.web_config import WebConfigError
from monitor.service.worker import Worker

log = logging.getLogger(__name__)

# A stop takes 10 seconds at most: the window in hand, its interruption, the web requests in hand.
FINISH_SECONDS = 5.0
INTERRUPT_SECONDS = 1.5
WEB_SECONDS = 2.5
MISFIRE_GRACE_SECONDS = 60
HOUSEKEEPING = "(housekeeping)"
FIRST_HOUSEKEEPING = timedelta(minutes=1)


class Daemon:
    """One process: a worker thread that judges, a web server that shows, a scheduler between them."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = path
        self._clock = clock
        self.config = load_config(path)
        self.store = Store.open(self.config.history.location(self.config.state))
        self._state = self.config.state  # another one takes effect with a restart
        self._salt = install_salt(self._state)
        self._tally = Tally(self.store)
        self._worker = Worker(self._new_runtime)
        self._web: WebServer | None = None
        self._stop = threading.Event()
        self._swap = threading.Lock()
        self._publishing = threading.Lock()
        self._config_loaded_at, self._config_error = clock(), ""
        self._watches: dict[str, Watch] = {}
        self._broken: dict[str, str] = {}
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={
                "coalesce": True,
                "max_instances": 1,
                "misfire_grace_time": MISFIRE_GRACE_SECONDS,
            },
        )
        self._scheduler.add_listener(self._not_run, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        self._watch(check_config(self.config, path.parent.absolute()))
        self._snapshot = self._take()

    def run(self, announce: Callable[[str], None] = lambda _: None) -> int:
        """Serve and judge until SIGTERM or SIGINT; the exit code.

        Raises ServeError or WebConfigError where the web server cannot start.
        """
        with arriving(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            self._web = web = serve(
                self.config.server,
                self.current,
                reload=self.reload,
                ready=lambda: True,  # the first snapshot is taken before anything listens
                healthy=lambda: self._scheduler.running,
            )
            announce(f"status page  {web.url}/\nmetrics      {web.url}/metrics")
            gc.collect()
            gc.freeze()  # what is loaded by now stays; a snapshot's many objects are then collected faster
            self._scheduler.start()
            for number in signals:
                if number != signal.SIGHUP:
                    break
                try:
                    self.reload()
                except Exception:
                    log.exception("the reload failed")
            return self._shut(web)

    def current(self) -> Snapshot:
        """What is shown now."""
        return self._snapshot

    def reload(self) -> ReloadOutcome:
        """Read the config again. A bad one changes nothing, and is said in a gauge and on the page."""
        with self._swap:
            try:
                config = load_config(self._path)
                checked = check_config(config, self._path.parent.absolute())
                problems = [problem for one in checked for problem in one.problems]
                if problems:
                    raise ConfigError(self._path, problems)
                if self._web is not None:
                    self._web.reload_web_config()
            except (ConfigError, WebConfigError) as exc:
                self._config_error = str(exc)
                log.error("the config was not reloaded, the older one runs on: %s", exc)
                self._publish()
                return ReloadOutcome(False, str(exc))
            restart = [
                name
                for name in ("state", "history", "server", "log", "engine")
                if getattr(config, name) != getattr(self.config, name)
            ]
            self.config = config
            self._config_loaded_at, self._config_error = self._clock(), ""
            self._watch(checked)
            self._publish()
        message = "the config was reloaded"
        if restart:
            message += f"; these take effect only with a restart: {', '.join(restart)}"
        log.info(message)
        return ReloadOutcome(True, message)

    def _watch(self, checked: list[Checked]) -> None:
        """Make the scheduler run exactly these recommenders."""
        before = self._watches
        watches: dict[str, Watch] = {}
        broken: dict[str, str] = {}
        for one in checked:
            name = one.settings.name
            if one.problems:
                broken[name] = "; ".join(map(str, one.problems))
                log.error("%s cannot be run: %s", name, broken[name])
                continue
            known = before.get(name)
            same = known is not None and known.settings == one.settings and known.rules == one.rules
            if known is None or not same:
                known = Watch(one.settings, one.rules, self.store, self._state, self._salt)
            watches[name] = known
            self._tally.declare(name, one.rules)
        self._watches, self._broken = watches, broken
        self._scheduler.remove_all_jobs()
        for name, watch in watches.items():
            self._scheduler.add_job(
                self._turn,
                "interval",
                args=[name],
                id=name,
                seconds=watch.settings.every.total_seconds(),
                next_run_time=self._clock(),
            )
        self._scheduler.add_job(
            self._housekeeping, "interval", id=HOUSEKEEPING, hours=1,
            next_run_time=self._clock() + FIRST_HOUSEKEEPING,
        )  # fmt: skip

    def _new_runtime(self) -> Runtime:
        engine = self.config.engine
        return Runtime(self._state / "spill", memory=engine.memory, threads=engine.threads)

    def _turn(self, name: str) -> None:
        """One scheduled run of one recommender, in the worker thread."""
        with self._worker.at_work():
            watch = self._watches.get(name)
            if watch is not None and not self._stop.is_set():
                self._run(name, watch)

    def _run(self, name: str, watch: Watch) -> None:
        outcome = "failed"
        try:
            more = watch.turn(self._worker.runtime(), self._clock(), self._stop.is_set, self._publish)
            outcome = "ok"
            if more and not self._stop.is_set():
                self._scheduler.add_job(self._turn, args=[name], id=f"({name}: more)", replace_existing=True)
        except StoreError as exc:
            self._tally.store_failed(exc)
            log.error("%s: the history cannot be written, the window stays due: %s", name, exc)
        except duckdb.InterruptException:
            if self._stop.is_set():
                outcome = "interrupted"
                log.info("%s: interrupted; the window in hand will be judged after the restart", name)
            else:
                log.error("%s: the run was interrupted", name)
                self._worker.drop_runtime()
        except Exception as exc:
            log.exception("%s: the run failed", name)
            watch.error = f"the last run failed: {type(exc).__name__}"
            self._worker.drop_runtime()
        finally:
            if outcome in OUTCOMES:  # a run that a stop cut short is nobody's failure
                self._tally.ran(name, outcome)
            if outcome != "failed":  # else the history may be what failed; the next run writes it
                with self._publishing:  # or a picture could show what is written and waiting as well
                    self._tally.write()
            self._publish()

    def _housekeeping(self) -> None:
        """Drop what is older than the retention."""
        with self._worker.at_work():
            if self._stop.is_set():
                return
            try:
                now = self._clock()
                # A recommender that cannot run may be mended: its windows would be due again as well.
                keep = dict.fromkeys(self._broken, datetime.min.replace(tzinfo=UTC))
                keep |= {name: watch.wanted_from(now) for name, watch in self._watches.items()}
                dropped = self.store.drop_before(now - self.config.history.retention, keep)
                for watch in self._watches.values():
                    watch.forget(self._clock())
                log.debug("housekeeping dropped %d windows", dropped)
            except StoreError as exc:
                self._tally.store_failed(exc)
                log.error("housekeeping failed: %s", exc)
            except Exception:
                log.exception("housekeeping failed")

    def _publish(self) -> None:
        with self._publishing:  # or an older picture could take the place of a newer one
            try:
                self._snapshot = self._take()
            except StoreError as exc:
                self._tally.store_failed(exc)
                log.error("the history cannot be read, the page shows what it showed: %s", exc)
                self._snapshot = replace(
                    self._snapshot,
                    taken_at=self._clock(),
                    counters=self._tally.over(self._snapshot.counters),
                    config_loaded_at=self._config_loaded_at,
                    config_error=self._config_error or None,
                )

    def _take(self) -> Snapshot:
        names = [one.name for one in self.config.recommenders]
        snapshot = take_snapshot(self.store, names, self._clock())
        return replace(
            snapshot,
            recommenders=tuple(self._completed(state) for state in snapshot.recommenders),
            counters=self._tally.over(snapshot.counters),
            config_loaded_at=self._config_loaded_at,
            config_error=self._config_error or None,
        )

    def _completed(self, state: RecommenderState) -> RecommenderState:
        """A recommender's state with what only the running daemon knows."""
        watch = self._watches.get(state.name)
        return replace(
            state,
            logs=tuple(one for one in state.logs if one.log in LOGS),
            last_run=watch.last_run if watch and watch.last_run else state.last_run,
            pending_windows=watch.pending if watch else 0,
            error=self._broken.get(state.name) or (watch.error if watch else None),
            rules=tuple(
                RuleInfo(one.name, one.kind, one.description, one.owner, one.runbook)
                for one in (watch.rules if watch else ())
            ),
        )

    def _not_run(self, event: JobEvent) -> None:
        outcome = "missed" if event.code == EVENT_JOB_MISSED else "overrun"
        if event.job_id in self._watches:
            self._tally.ran(event.job_id, outcome)
            self._publish()  # the worker is busy, and may be for long

    def _shut(self, web: WebServer) -> int:
        """Finish or interrupt the window in hand, and leave within 10 seconds."""
        log.info("stopping")
        self._stop.set()
        self._scheduler.pause()
        clean = self._worker.finish(FINISH_SECONDS, INTERRUPT_SECONDS)
        web.stop(WEB_SECONDS)
        if not clean:
            log.warning("the worker does not answer; leaving without it")
            logging.shutdown()
            os._exit(0)  # its thread would keep the process alive
        self._scheduler.shutdown(wait=False)
        self.store.close()
        log.info("stopped")
        return 0
