"""A judge in a process of its own: if a log makes it slow, hang or crash, the other judges go on."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Final, Literal

from tqdm import tqdm

from monitor.core.redaction import keep_secrets_of, known_secrets
from monitor.history.errors import Fault, StoreError
from monitor.history.store import Store
from monitor.judging.runtimes import open_runtime
from monitor.rules.rule import LoadedRule
from monitor.service.judge import LocalJudge, TurnFailed, TurnInterrupted, Watched
from monitor.service.logging import Forwarded, forward_to
from monitor.service.watch import News, WatchState
from monitor.service.worker import Worker
from monitor.settings.engine import EngineSettings
from monitor.settings.recommender import RecommenderSettings

log = logging.getLogger(__name__)

SILENCE: Final = 300.0
"""Seconds beyond two deadlines of a check that a process may work without a sign. Then it is killed."""
FINISH_SECONDS: Final = 5.0
INTERRUPT_SECONDS: Final = 1.5
_PRELOADED: Final = ("monitor.service.judge_process", "sklearn.ensemble", "monitor.service.frozen")
_MARGIN: Final = 0.5


@dataclass(frozen=True, slots=True)
class Setting:
    """All that a process needs to judge; `history` may hold a password, so it is never logged."""

    engine: EngineSettings
    history: str | Path
    state: Path
    salt: str
    holder: str | None = None  # of the leases


@dataclass(frozen=True, slots=True)
class _Order:
    """One turn. `given` is None if the process has this recommender, `left` are those that it has no more."""

    name: str
    given: tuple[RecommenderSettings, tuple[LoadedRule, ...]] | None
    left: tuple[str, ...]
    now: datetime
    retry_files: bool
    forget: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a process says: a log record, a sign of life, news of a turn, or its end."""

    kind: Literal["log", "alive", "news", "done", "store", "interrupted", "failed"]
    state: WatchState | None = None
    news: News | None = None
    record: Forwarded | None = None
    more: bool = False
    text: str = ""
    fault: Fault | None = None


class ProcessJudge:
    """Starts its process at the first turn, and again if it ended or had to be killed.

    A kill loses nothing: a window is stored in one transaction, and stays due until then.
    """

    def __init__(self, number: int, setting: Callable[[], Setting]) -> None:
        self._number = number
        self._setting = setting
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        self._process: ForkServerProcess | None = None
        self._connection: Connection | None = None
        self._stop: Connection | None = None
        self._known: dict[str, Watched] = {}
        self._idle = threading.Event()
        self._idle.set()

    def turn(
        self, watched: Watched, now: datetime, stopping: Callable[[], bool], news: Callable[[News], None]
    ) -> bool:
        self._idle.clear()
        try:
            return False if stopping() else self._turn(watched, now, stopping, news)
        finally:
            self._idle.set()

    def _turn(
        self, watched: Watched, now: datetime, stopping: Callable[[], bool], news: Callable[[News], None]
    ) -> bool:
        before = watched.state.error
        try:
            connection = self._started()
        except (EOFError, OSError) as exc:
            raise self._ended(watched, f"could not be started: {exc}") from exc
        if stopping():  # to start the first process takes seconds
            return False
        try:
            connection.send(self._order(watched, now))
            limit = 2 * watched.settings.deadline.total_seconds() + SILENCE
            while True:
                if not connection.poll(limit):
                    raise self._ended(watched, f"gave no sign for {limit:,.0f} s and was killed")
                answer: _Answer = connection.recv()
                if answer.kind == "log" and answer.record is not None:
                    answer.record.handle()
                elif answer.news is not None and answer.state is not None:
                    # An error of the last turn lasts until a turn ends well.
                    watched.state = replace(answer.state, error=before or answer.state.error)
                    try:
                        news(answer.news)
                    except Exception:
                        self._forget_process()  # the next turn would read the rest of its answers as its own
                        raise
                elif answer.kind != "alive":
                    return _end_of(answer, watched)
        except (EOFError, OSError) as exc:
            if stopping():
                self._forget_process()
                raise TurnInterrupted from exc
            raise self._ended(watched, "ended") from exc

    def _order(self, watched: Watched, now: datetime) -> _Order:
        left = [name for name, one in self._known.items() if one.judge is not self]
        for name in left:
            del self._known[name]
        known = self._known.get(watched.name) is watched
        self._known[watched.name] = watched
        watched.judge = self
        order = _Order(
            name=watched.name,
            given=None if known else (watched.settings, watched.rules),
            left=tuple(left),
            now=now,
            retry_files=watched.retry_files,
            forget=watched.forget,
        )
        watched.retry_files = watched.forget = False
        return order

    def _started(self) -> Connection:
        """The connection to the process, which is started if there is none."""
        if self._connection is None or self._process is None or not self._process.is_alive():
            self._forget_process()
            ours, theirs = self._context.Pipe()
            # A pipe, and no Event: to set one would wait for ever if the process is killed or hangs.
            listens, self._stop = self._context.Pipe(duplex=False)
            level = logging.getLogger().getEffectiveLevel()
            arguments = (
                self._number, theirs, listens, self._setting(), known_secrets(), dict(os.environ), level,
            )  # fmt: skip
            name = f"recsys-monitor-{self._number}"
            process = self._context.Process(target=_serve, args=arguments, name=name, daemon=True)
            process.start()
            self._process = process
            for end in (theirs, listens):
                end.close()  # so that this side sees when the process ends
            self._connection = ours
        return self._connection

    def _ended(self, watched: Watched, how: str) -> TurnFailed:
        """The process is gone, or is killed now: what the page shows of it."""
        process = self._process
        if process is not None:
            process.join(_MARGIN)
            if process.exitcode is not None and how == "ended":
                how = f"ended with {_exit(process.exitcode)}"
        self._forget_process()
        log.error("%s: the process that judged it %s; another one takes its place", watched.name, how)
        text = f"the last run failed: the process that judged it {how}"
        watched.state = replace(watched.state, error=text)
        return TurnFailed(text)

    def _forget_process(self) -> None:
        """Kill the process without waiting: one that hangs in the system dies later."""
        for one in self._known.values():
            if one.judge is self:
                one.judge = None
        self._known.clear()
        for end in (self._connection, self._stop):
            if end is not None:
                end.close()
        if self._process is not None and self._process.is_alive():
            self._process.kill()
        self._connection = self._stop = self._process = None

    def stop(self) -> None:
        """Tell the process to end its turn: it finishes the window in hand, or interrupts it."""
        end = self._stop
        if end is not None:
            with contextlib.suppress(OSError):  # it has ended by itself
                end.send_bytes(b"stop")

    def finish(self, grant: float, interrupt: float) -> bool:
        self.stop()
        process = self._process
        if process is None:  # none has been started yet
            return True
        if not self._idle.wait(grant + interrupt + _MARGIN):
            process.kill()  # the turn, in another thread, sees the end of the connection
        return self._idle.wait(_MARGIN)

    def close(self) -> None:
        if self._idle.is_set():
            self._forget_process()
        elif self._process is not None:
            self._process.kill()


def _end_of(answer: _Answer, watched: Watched) -> bool:
    """What a turn gives, or raises, in this process."""
    if answer.state is not None:
        watched.state = answer.state
    match answer.kind:
        case "store":
            raise StoreError(answer.text, answer.fault or Fault.OTHER)
        case "interrupted":
            raise TurnInterrupted
        case "failed":
            raise TurnFailed(answer.text)
    return answer.more


def _exit(code: int) -> str:
    """The exit code of a process in words.

    >>> _exit(-9), _exit(3)
    ('SIGKILL, as the system does if memory runs out', 'exit code 3')
    """
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"{name}, as the system does if memory runs out" if name == "SIGKILL" else name


def preload() -> None:
    """Start the server that makes the processes. It imports everything once, and shares that memory."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(_PRELOADED))


class _Link:
    """The way from a process to the daemon; several threads of the process may log."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, answer: _Answer) -> None:
        with self._lock, contextlib.suppress(OSError):  # without a daemon the process ends anyhow
            self._connection.send(answer)


def _serve(
    number: int,
    connection: Connection,
    told: Connection,
    setting: Setting,
    secrets: dict[str, str],
    environment: dict[str, str],
    level: int,
) -> None:
    """The life of a process: an order, its turn, the next order, until the daemon is gone."""
    os.environ.clear()  # the process that forks may have been started with other variables
    os.environ.update(environment)
    time.tzset()
    for one in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # the daemon gets them, and says what to do
        signal.signal(one, signal.SIG_IGN)
    keep_secrets_of(secrets)
    # The lock by default is one between processes: it would be reported as leaked when this one ends.
    tqdm.set_lock(threading.RLock())
    link = _Link(connection)
    forward_to(lambda record: link.send(_Answer("log", record=record)), level)
    histories: list[Store] = []

    def history() -> Store:
        if not histories:
            histories.append(Store.open(setting.history, holder=setting.holder))
        return histories[0]

    spill = setting.state / "spill" / str(number)
    worker = Worker(lambda: open_runtime(setting.engine, spill))
    judge = LocalJudge(
        worker, history, setting.state, setting.salt, alive=lambda: link.send(_Answer("alive"))
    )
    stop = threading.Event()
    threading.Thread(target=_listen, args=[told, stop, worker], name="stop", daemon=True).start()
    held: dict[str, Watched] = {}
    while True:
        try:
            order: _Order = connection.recv()
        except (EOFError, OSError):
            break
        link.send(_carry_out(order, judge, held, stop, link))
    os._exit(0)  # without waiting for threads of libraries


def _carry_out(
    order: _Order, judge: LocalJudge, held: dict[str, Watched], stop: threading.Event, link: _Link
) -> _Answer:
    for name in order.left:
        held.pop(name, None)
    judge.leave(order.left)
    if order.given is not None:
        judge.leave([order.name])
        held[order.name] = Watched(*order.given)
    watched = held[order.name]
    watched.retry_files, watched.forget = order.retry_files, order.forget

    def tell(news: News) -> None:
        link.send(_Answer("news", watched.state, news))

    try:
        more = judge.turn(watched, order.now, stop.is_set, tell)
    except StoreError as error:
        return _Answer("store", watched.state, text=str(error), fault=error.fault)
    except TurnInterrupted:
        return _Answer("interrupted", watched.state)
    except TurnFailed as error:
        return _Answer("failed", watched.state, text=str(error))
    except Exception as error:
        log.exception("%s: the run failed", order.name)
        text = f"the last run failed: {type(error).__name__}"
        return _Answer("failed", replace(watched.state, error=text), text=text)
    return _Answer("done", watched.state, more=more)


def _listen(told: Connection, stop: threading.Event, worker: Worker) -> None:
    """Stop when the daemon says so, and end with it: a killed one must leave nothing that still writes."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    if told in wait([told, parent.sentinel]):
        stop.set()
        worker.finish(FINISH_SECONDS, INTERRUPT_SECONDS)
        wait([parent.sentinel])
    os._exit(1)
