"""The daemon: schedules the recommenders, owns the judges, serves, reloads, stops."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from monitor.config.checks.check import Checked
from monitor.config.load import load_checked
from monitor.config.problems import ConfigError
from monitor.history.counters import TurnEnd
from monitor.history.errors import Fault, StoreError
from monitor.history.leases import Holdings, OtherSaltError
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.judging.runtimes import open_runtime
from monitor.service.judge import Judge, LocalJudge, TurnFailed, TurnInterrupted, Watched
from monitor.service.judge_process import ProcessJudge, Setting, preload
from monitor.service.pool import TurnPool
from monitor.service.publisher import Running, SnapshotPublisher
from monitor.service.reports import write_due
from monitor.service.salt import install_id, salt_of
from monitor.service.schedule import Schedule
from monitor.service.sharing import RENEW_EVERY, Sharing
from monitor.service.signals import arriving
from monitor.service.state_lock import StateLock
from monitor.service.tally import Tally
from monitor.service.watch import News
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
LEAVE_SECONDS = 9.5  # then the process exits without the threads that still run
SHOWN_EVERY = 2.0  # seconds between two readings of what one turn records; at its end there is another one


class Daemon:
    """The whole process: judges, a web server, and a schedule.

    One recommender is judged in this process. Several have processes of their own, `engine.workers` of them.
    Instead of `run`, a caller with its own schedule calls `turn` and `housekeeping`, then `close`.
    """

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = path
        self._clock = clock
        self.config, checked = load_checked(path)
        self._started_with = self.config
        self._lock = StateLock(self.config.state)
        self._state = self.config.state  # a change takes effect with a restart
        history = self.config.history
        self._salt = salt_of(history, self._state)
        self._holder = install_id(self._state) if history.is_shared else None
        self.store = Store.open(history.location(self._state), holder=self._holder)
        url = self.config.server.public_url()
        self._sharing = Sharing(self.store, self._state, self._salt, url) if history.is_shared else None
        self.tally = Tally(self.store, self._state)
        self._worker = Worker(self._new_runtime)
        self._local = LocalJudge(self._worker, lambda: self.store, self._state, self._salt)
        self._pool = TurnPool(self.config.engine.processes)
        self._processes = [ProcessJudge(number, self._setting) for number in range(self._pool.size)]
        self._web: WebServer | None = None
        self._stop = threading.Event()
        self._swap = threading.Lock()
        self._watched: Mapping[str, Watched] = {}
        self._held: frozenset[str] = frozenset()  # those that this monitor judges
        self._busy: set[str] = set()
        # By recommender: the checks that recorded results after they were last read, and when that was.
        self._not_shown: dict[str, set[str]] = {}
        self._shown_at: dict[str, float] = {}
        self._is_complete = False
        self._running = Running((), {}, {}, clock())
        self._schedule = Schedule(
            turn=self.turn,
            not_run=self._not_run,
            housekeeping=self.housekeeping,
            alive=self._alive,
            clock=clock,
            pool=self._pool,
            renew=self._renew if self._sharing else None,
            renew_every=RENEW_EVERY,
        )
        self._watch(checked)
        self.publisher = SnapshotPublisher(self.store, self.tally, self._running, clock)
        self._is_complete = True

    @property
    def watches(self) -> Mapping[str, Watched]:
        """The recommenders that can run, by name."""
        return self._watched

    def run(self, announce: Callable[[str], None] = lambda _: None) -> int:
        """Serve and judge until SIGTERM or SIGINT. Returns the exit code.

        After the signal it ends within 10 seconds. If a thread hangs, the whole process exits without it.
        Raises ServeError or WebConfigError if the web server cannot start.
        """
        preload()
        with arriving(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            self._web = web = serve(
                self.config.server,
                self.publisher.current,
                reload=self.reload,
                not_ready=self.publisher.history_error,  # the first snapshot is taken before anything listens
                healthy=lambda: self._schedule.running,
                store=self.store,
                config=lambda: self.config,
            )
            if self._sharing is not None:
                self._sharing.serve_at(web.url)
            announce(f"status page  {web.address}/\nmetrics      {web.address}/metrics")
            if web.url != web.address:
                announce(f"links begin  {web.url}/")
            gc.collect()
            gc.freeze()  # never scan the loaded modules again: a snapshot's many objects are collected faster
            try:
                self._schedule.start()
                for number in signals:
                    if number != signal.SIGHUP:
                        break
                    # In a thread: a slow disk may hold up the reload, and this loop must see a SIGTERM.
                    threading.Thread(target=self._reload_and_log, name="reload", daemon=True).start()
                return self._shut_down(web)
            finally:
                for process in self._processes:
                    process.close()  # Python would wait for one that is left

    def _reload_and_log(self) -> None:
        try:
            self.reload()
        except Exception:
            log.exception("the reload failed")

    def reload(self) -> ReloadOutcome:
        """Read the config again. A bad config changes nothing; a gauge and the page report it."""
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
        before = self._watched
        watches: dict[str, Watched] = {}
        broken: dict[str, Checked] = {}
        for one in checked:
            name = one.settings.name
            if one.problems:
                broken[name] = one
                log.error("%s cannot run: %s", name, "; ".join(map(str, one.problems)))
                continue
            known = before.get(name)
            if known is None or (known.settings, known.rules) != (one.settings, one.rules):
                known = Watched(one.settings, one.rules)
            if before:  # at a reload, but not after a restart
                known.retry_files = True
            watches[name] = known
            self.tally.declare(name, one.rules)
        for name, old in before.items():
            if watches.get(name) is not old:
                old.judge = None  # which drops it
        self._watched = watches
        names = [one.settings.name for one in checked]
        last = self._running  # it knows the leases, should the history not say them now
        self._running = Running(
            names, watches, broken, self._clock(),
            elsewhere=last.elsewhere, shared_history=last.shared_history,
        )  # fmt: skip
        self._schedule.set({})
        self._hold(self._holdings(watches))

    def _holdings(self, watches: Mapping[str, Watched]) -> Holdings:
        """What this monitor judges: everything, or what its leases allow."""
        if self._sharing is None:
            return Holdings(frozenset(watches))
        try:
            return self._sharing.renew(watches, frozenset(self._busy))
        except StoreError as exc:
            if not self._is_complete:
                raise
            self.tally.store_failed(exc)
            log.error("the leases cannot be renewed; this monitor goes on with what it has: %s", exc)
            return Holdings(self._held, others=self._running.elsewhere, history=self._running.shared_history)
        except OtherSaltError as exc:  # after a long freeze, in which a new monitor has started
            if not self._is_complete:
                raise
            log.error("this monitor judges nothing: %s", exc)
            return Holdings(frozenset(), history=self._running.shared_history)

    def _renew(self) -> None:
        """Renew the leases. What another monitor has taken over is no longer judged here."""
        if self._stop.is_set():
            return
        watched = self._watched
        found = self._holdings(watched)
        with self._swap:
            # If a reload came between, it has renewed the leases itself, with the names of the new config.
            if watched is self._watched and self._hold(found):
                self.publisher.running = self._running
                self.publisher.publish()

    def _hold(self, found: Holdings) -> bool:
        """Judge exactly these recommenders of the config. True if anything is new."""
        watches = dict(self._watched)
        mine = found.mine & watches.keys()
        elsewhere = {name: found.others.get(name, "") for name in watches.keys() - mine}
        elsewhere |= {name: found.others[name] for name in found.others.keys() - watches.keys()}
        changed = mine != self._held or elsewhere != self._running.elsewhere
        if self._sharing is not None:
            for name in (mine ^ self._held) & watches.keys():
                # Nobody knows what happened to it meanwhile: it starts again, from the history.
                watches[name].judge = None
                watches[name] = Watched(watches[name].settings, watches[name].rules)
            for name in sorted(mine - self._held):
                log.info("%s: judged by this monitor from now on", name)
            for name in sorted((self._held & watches.keys()) - mine):
                log.warning("%s: judged by another monitor from now on: %s", name, elsewhere[name])
        self._watched, self._held = watches, mine
        self._running = replace(
            self._running, watches=watches, elsewhere=elsewhere, shared_history=found.history
        )
        self._schedule.change({name: watches[name].settings.every for name in watches if name in mine})
        return changed

    def _new_runtime(self) -> Runtime:
        return open_runtime(self._started_with.engine, self._state / "spill")

    def _setting(self) -> Setting:
        """What a process needs to judge; the processes share the engine's memory."""
        engine, history = self._started_with.engine, self._started_with.history
        share = engine.model_copy(update={"memory": engine.shared(self._pool.size)})
        return Setting(share, history.location(self._state), self._state, self._salt, self._holder)

    def _judge(self) -> Judge:
        """The judge of this thread."""
        place = self._pool.place
        if place is None or self._pool.size == 1 or len(self._watched) == 1:
            return self._local
        return self._processes[place]

    def _judges(self) -> Sequence[Judge]:
        return self._local, *self._processes

    def turn(self, name: str) -> None:
        """Run one recommender once, by the judge of this thread; outside of the pool, in this process."""
        watched = self._watched.get(name)
        if watched is not None and name in self._held and not self._stop.is_set():
            self._run(name, watched)

    def _run(self, name: str, watched: Watched) -> None:
        outcome: TurnEnd | None = "failed"
        self._shown_at[name] = time.monotonic()  # most turns are short: their end shows all
        self._busy.add(name)
        try:
            more = self._judge().turn(
                watched, self._clock(), self._stop.is_set, partial(self._show_news, name)
            )
            outcome = "ok"
            if more and not self._stop.is_set():
                self._schedule.soon(name)
        except StoreError as exc:
            if exc.fault is Fault.NOT_HELD:  # the next renewal stops its turns
                outcome = None
                log.warning("%s", exc)
            else:
                self.tally.store_failed(exc)
                log.error("%s: the history cannot be written, the window stays due: %s", name, exc)
        except TurnInterrupted:
            if self._stop.is_set():
                outcome = None
                log.info("%s: interrupted; the current window will be judged after the restart", name)
            else:
                log.error("%s: the run was interrupted", name)
        except TurnFailed:
            pass  # the judge has logged why, and the page shows it
        except Exception as exc:
            log.exception("%s: the run failed", name)
            error = f"the last run failed: {type(exc).__name__}"
            watched.state = replace(watched.state, error=error)
        finally:
            self._busy.discard(name)
            with self._worker.at_work():
                if outcome is not None:  # a run that was interrupted by the stop has not failed
                    self.tally.ran(name, outcome)
                self.publisher.write_counters()
                self._show_end(name, outcome)

    def _show_end(self, name: str, outcome: TurnEnd | None) -> None:
        """Show what a turn recorded and nobody has seen yet; after a failure, that may be anything."""
        if outcome != "ok":
            self._show_results(name, None)
        elif name in self._not_shown:
            self._show_results(name, self._not_shown[name])
        else:
            self._show_news(name, frozenset())

    def _show_news(self, name: str, news: News) -> None:
        """Show the news of a turn, and the sign of life of its thread. Results may wait until its end."""
        if not news:
            self.publisher.publish(worked=True, of=(), logs_of=[name])
            return
        self._not_shown.setdefault(name, set()).update(news)
        if time.monotonic() - self._shown_at.get(name, -SHOWN_EVERY) >= SHOWN_EVERY:
            self._show_results(name, self._not_shown[name])

    def _show_results(self, name: str, checks: Collection[str] | None) -> None:
        """Show what these checks of a recommender have in the history now; None: all of them."""
        self._not_shown.pop(name, None)
        self._shown_at[name] = time.monotonic()
        self.publisher.publish(worked=True, of=[name], written=checks)

    def _alive(self) -> None:
        """Show that a thread of the pool is free, even if the recommenders run only once a day."""
        with self._worker.at_work():
            if not self._stop.is_set():
                self.publisher.write_counters()
                self.publisher.publish(worked=True)  # a backfill may have changed any history

    def housekeeping(self) -> None:
        """Delete what is older than the retention."""
        with self._worker.at_work():
            if self._stop.is_set():
                return
            try:
                now = self._clock()
                # Keep every window of a recommender that cannot run: once fixed, it would judge them again.
                keep_all = datetime.min.replace(tzinfo=UTC)
                keep = dict.fromkeys([*self._running.broken, *self._running.elsewhere], keep_all)
                watches = [one for name, one in self._watched.items() if name in self._held]
                keep |= {one.name: one.state.needed_from or keep_all for one in watches}
                dropped = self.store.drop_before(now - self.config.history.retention, keep)
                for one in watches:
                    one.forget = one.judge is not self._local  # its next turn, in its own process, forgets
                self._local.forget(watches, now)
                log.debug("housekeeping dropped %d windows", dropped)
                self._write_reports(now)
            except StoreError as exc:
                self.tally.store_failed(exc)
                log.error("housekeeping failed: %s", exc)
            except Exception:
                log.exception("housekeeping failed")

    def _write_reports(self, now: datetime) -> None:
        """Write the reports on the last period that are not there yet. A full disk stops nothing else."""
        if self.config.reports is None:
            return
        try:
            mine = [one for one in self.config.recommenders if one.name not in self._running.elsewhere]
            write_due(self.config.reports, mine, self.store, now, self._stop.is_set)
        except OSError as exc:
            log.error("a report cannot be written: %s", exc)

    def _not_run(self, name: str, outcome: TurnEnd) -> None:
        if not self._stop.is_set():
            self.tally.ran(name, outcome)
            self.publisher.publish(of=())  # the judges are busy, maybe for long

    def _shut_down(self, web: WebServer) -> int:
        """Finish or interrupt the current window, and end within 10 seconds."""
        log.info("stopping")
        last_resort = threading.Timer(LEAVE_SECONDS, _exit_at_once)
        last_resort.daemon = True  # so it also fires while the interpreter waits for threads at its end
        last_resort.start()
        self._stop.set()
        self._schedule.pause()
        has_finished = self._finish()
        web.stop(WEB_SECONDS)
        if not has_finished:
            _exit_at_once()  # the worker thread would keep the process alive
        self._schedule.end()
        self.close()
        log.info("stopped")
        return 0

    def _finish(self) -> bool:
        """Let every judge finish its window, or interrupt it. True if all have ended."""
        for process in self._processes:
            process.stop()  # all at once
        granted = time.monotonic() + FINISH_SECONDS
        ended = []
        for judge in self._judges():
            now = time.monotonic()
            interrupt = max(0.0, granted + INTERRUPT_SECONDS - max(now, granted))
            ended.append(judge.finish(max(0.0, granted - now), interrupt))
        return all(ended)

    def close(self) -> None:
        """Write the counters; close the history and the engines; release the state folder."""
        self.publisher.write_counters()
        for judge in self._judges():
            judge.close()
        if self._sharing is not None:
            try:
                self._sharing.release()
            except StoreError as exc:
                log.warning("the leases cannot be given back; other monitors wait until they end: %s", exc)
        self.store.close()
        self._lock.release()


def _exit_at_once() -> None:
    log.warning("a thread does not stop; exiting without it")
    logging.shutdown()
    os._exit(0)


def _only_at_start(running: Config, config: Config) -> list[str]:
    """The keys that differ and take effect only with a restart."""
    keys = ("state", "server", "log", "engine")
    changed = [key for key in keys if getattr(config, key) != getattr(running, key)]
    history, before = config.history, running.history
    return changed + [
        f"history.{key}" for key in ("url", "salt") if getattr(history, key) != getattr(before, key)
    ]
