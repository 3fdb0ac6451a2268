"""Kills the daemon or a judge at random moments, and notes the stage in which it stopped.

A process is first stopped where it is (SIGSTOP). Then its stage is read, and then it is killed. Some kills
come at any time. The others wait for a stage that has few kills yet, and come a random moment later. If the
process has left the stage by then, it goes on, and the killer waits again.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.soak import stages
from benchmarks.soak.daemon import Supervisor, freeze, send, state_of

DAEMON, JUDGE, ALL = WAYS = ("the daemon", "a judge", "the daemon and its judges")
FEWEST: Final = 2
"""Every stage needs so many kills."""
_AT_ANY_TIME: Final = 0.4
_LONGEST_REST: Final = 5.0
_WHILE_IT_STARTS: Final = 0.25
_OF_A_JUDGE: Final = 0.3  # aimed kills in a stage that daemons and judges have
_AIM_SECONDS: Final = 15.0
_UP_SECONDS: Final = 120.0
_HUNGRY_EVERY: Final = 3.0
_LIST_EVERY: Final = 0.2
_LOOK: Final = 0.0005
# How long a stage about lasts: an aimed kill comes within this time after the stage was seen.
_LASTS: Final = {
    stages.START: 3.0, stages.STOP: 0.2, stages.IDLE: 1.0, stages.METRICS: 0.05, stages.TOGETHER: 0.1,
}  # fmt: skip
_OTHERS_LAST: Final = 0.004
_GONE_SECONDS: Final = 30.0


@dataclass(slots=True)
class Kills:
    """The kills so far.

    Attributes:
        ways: what was killed.
        daemon: stages in which a daemon was killed; it may be in several, as it has threads.
        judge: stages in which a judge was killed.
        in_stage: kills by stage, of a daemon or a judge.
        left: processes that outlived their daemon.
    """

    ways: Counter[str] = field(default_factory=Counter)
    daemon: Counter[str] = field(default_factory=Counter)
    judge: Counter[str] = field(default_factory=Counter)
    in_stage: Counter[str] = field(default_factory=Counter)
    left: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.ways.total()

    def without(self, expected: Sequence[str], fewest: int = FEWEST) -> list[str]:
        """The stages with too few kills."""
        return [stage for stage in expected if self.in_stage[stage] < fewest]


class Killer:
    """A thread that kills when the driver has come to a place of the plan.

    Args:
        supervisor: has the daemon.
        places: the windows at which a kill is due, in order; some may be the same.
        reserve: further windows at which it kills only for the stages that have too few kills.
        expected: the stages of the run.
        seed: of all that is random.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        places: Sequence[int],
        reserve: Sequence[int],
        expected: Sequence[str],
        seed: int,
    ) -> None:
        self.kills = Kills()
        self._supervisor = supervisor
        self._places = sorted([*((place, True) for place in places), *((place, False) for place in reserve)])
        self._expected = expected
        self._random = random.Random(seed)
        self._reached = -1
        self._done = 0
        self._orphans: list[int] = []
        self._is_hungry = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def reached(self, window: int, lag: int) -> None:
        """The driver lands this window. It waits while more than `lag` kills are behind.

        It does not wait if a kill needs a window that is due: an idle daemon is in no other stage.
        """
        with self._changed:
            self._reached = max(window, self._reached)
            self._changed.notify_all()
            due = sum(place <= window for place, _ in self._places)
            self._changed.wait_for(
                lambda: self._done >= due - lag or self._is_hungry or self._error is not None
            )
            self._is_hungry = False
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Wait for the kills that were planned."""
        planned = sum(is_planned for _, is_planned in self._places)
        with self._changed:
            self._reached = max(self._reached, *(place for place, _ in self._places), 0)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._done >= planned or self._error is not None)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join()
        self._look_for_orphans(_GONE_SECONDS)

    def _run(self) -> None:
        try:
            for place, is_planned in self._places:
                with self._changed:
                    self._changed.wait_for(lambda p=place: self._reached >= p or self._stop.is_set())  # type: ignore[misc]
                if self._stop.is_set():
                    return
                if is_planned:
                    done = self._kill()
                    while not done and not self._stop.is_set():
                        done = self._kill_at_any_time()
                elif self.kills.without(self._expected):
                    self._aim(self._rarest())
                with self._changed:
                    self._done += 1
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _kill(self) -> bool:
        """One kill; False if nothing was killed."""
        self._look_for_orphans(0)
        if self._random.random() < _AT_ANY_TIME:
            return self._kill_at_any_time()
        return self._aim(self._rarest())

    def _kill_at_any_time(self) -> bool:
        if self._random.random() >= _WHILE_IT_STARTS:
            self._is_up()
        self._stop.wait(self._random.uniform(0, _LONGEST_REST))
        way = self._random.choice(WAYS)
        pids = self._supervisor.judges() if way == JUDGE else self._supervisor.pids()[:1]
        if not pids:
            return False
        at = self._random.choice(pids)
        return freeze(at) and self._end(way, at)

    def _rarest(self) -> str:
        """One of the stages with the fewest kills."""
        fewest = min(self.kills.in_stage[stage] for stage in self._expected)
        return self._random.choice([one for one in self._expected if self.kills.in_stage[one] <= fewest])

    def _aim(self, stage: str) -> bool:
        """Kill a process that was stopped in this stage; False if none was in it for long.

        A process that has left the stage before it stands still goes on.
        """
        is_judge = stage not in stages.OF_THE_DAEMON and stage != stages.LEASES
        if stage in stages.OF_THE_DAEMON and stage in stages.OF_A_JUDGE:
            is_judge = self._random.random() < _OF_A_JUDGE
        if stage != stages.START:
            self._is_up()
        if stage == stages.STOP:
            for pid in self._supervisor.pids()[:1]:
                self._supervisor.kills.add(pid)
                send(pid, signal.SIGTERM)
        folder, begun, asked = self._supervisor.stages, time.monotonic(), time.monotonic()
        pids: list[int] = []
        looked = 0.0
        while time.monotonic() - begun < _AIM_SECONDS and not self._stop.is_set():
            now = time.monotonic()
            if now - looked > _LIST_EVERY:  # processes end and start
                pids, looked = self._supervisor.judges() if is_judge else self._supervisor.pids()[:1], now
            if now - asked > _HUNGRY_EVERY:  # nothing may be due: another window may land
                self._ask_for_a_window()
                asked = now
            at = next((pid for pid in pids if stage in stages.stages_of(folder, pid)), None)
            if at is None:
                time.sleep(_LOOK)
                continue
            time.sleep(self._random.uniform(0, _LASTS.get(stage, _OTHERS_LAST)))
            if not freeze(at):
                looked = 0.0
            elif stage not in stages.stages_of(folder, at):
                send(at, signal.SIGCONT)
            else:
                way = self._random.choice((JUDGE, ALL) if is_judge else (DAEMON, ALL))
                return self._end(way, at)
        return False

    def _is_up(self) -> None:
        """Wait until the daemon has started, but not for ever."""
        end = time.monotonic() + _UP_SECONDS
        while time.monotonic() < end and not self._stop.is_set():
            pids = self._supervisor.pids()[:1]
            if pids and stages.START not in stages.stages_of(self._supervisor.stages, pids[0]):
                return
            time.sleep(0.05)

    def _ask_for_a_window(self) -> None:
        with self._changed:
            self._is_hungry = True
            self._changed.notify_all()

    def _end(self, way: str, at: int) -> bool:
        """Kill a process that stands still, or with it all of the daemon."""
        if way == JUDGE:
            self._count(way, [], [at])
            return send(at, signal.SIGKILL)
        pids = self._supervisor.pids()
        if not pids or (at != pids[0] and not freeze(pids[0])):
            send(at, signal.SIGCONT)
            return False
        others, judges = pids[1:], self._supervisor.judges()
        frozen = [pid for pid in judges if pid == at or freeze(pid)] if way == ALL else []
        self._count(way, pids[:1], frozen)
        self._supervisor.kills.add(pids[0])
        killed = pids if way == ALL else pids[:1]
        self._random.shuffle(killed)
        for pid in killed:
            send(pid, signal.SIGKILL)
        self._orphans += others
        return True

    def _count(self, way: str, daemons: list[int], judges: list[int]) -> None:
        folder = self._supervisor.stages
        self.kills.ways[way] += 1
        hit: set[str] = set()
        for pids, counter in ((daemons, self.kills.daemon), (judges, self.kills.judge)):
            for pid in pids:
                found = stages.stages_of(folder, pid)
                counter.update(found)
                hit |= found
        self.kills.in_stage.update(hit)

    def _look_for_orphans(self, seconds: float) -> None:
        """Whether the processes of killed daemons have ended; they have a while."""
        end = time.monotonic() + seconds
        while True:
            self._orphans = [pid for pid in self._orphans if state_of(pid) not in ("", "Z", "X")]
            if not self._orphans or time.monotonic() >= end:
                break
            time.sleep(0.1)
        if seconds:
            self.kills.left += self._orphans
