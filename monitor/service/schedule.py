"""The schedule: every recommender runs in its own interval, in the threads of a pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from monitor.history.counters import TurnEnd
from monitor.service.pool import TurnExecutor, TurnPool

MISFIRE_GRACE_SECONDS = 60
HOUSEKEEPING = "(housekeeping)"
HOUSEKEEPING_EVERY = timedelta(hours=1)
FIRST_HOUSEKEEPING = timedelta(minutes=1)
SIGN_OF_LIFE = "(sign of life)"
SIGN_OF_LIFE_EVERY = timedelta(minutes=5)
RENEWAL = "(renewal of the leases)"

Turn = Callable[[str], None]


class Schedule:
    """Calls `turn` with a recommender's name, `housekeeping` and `alive`, in threads of the pool.

    `not_run` gets each turn that could not start: `missed` if it waited for a thread longer than the grace
    time, `overrun` if the turn before it still ran or waited. `renew`, if given, has a thread of its own: it
    must not wait for a judge.
    """

    def __init__(
        self,
        *,
        turn: Turn,
        not_run: Callable[[str, TurnEnd], None],
        housekeeping: Callable[[], None],
        alive: Callable[[], None],
        clock: Callable[[], datetime],
        pool: TurnPool,
        renew: Callable[[], None] | None = None,
        renew_every: timedelta = timedelta(0),
    ) -> None:
        self._turn, self._not_run, self._clock = turn, not_run, clock
        self._housekeeping, self._alive = housekeeping, alive
        self._renew, self._renew_every = renew, renew_every
        self._names: frozenset[str] = frozenset()
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": TurnExecutor(pool), RENEWAL: ThreadPoolExecutor(1)},
            job_defaults={
                "coalesce": True,
                "max_instances": 1,
                "misfire_grace_time": MISFIRE_GRACE_SECONDS,
            },
        )
        self._scheduler.add_listener(self._missed, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)

    @property
    def running(self) -> bool:
        return bool(self._scheduler.running)

    def start(self) -> None:
        self._scheduler.start()

    def pause(self) -> None:
        """Start no further turns."""
        self._scheduler.pause()

    def end(self) -> None:
        self._scheduler.shutdown(wait=False)

    def set(self, every: Mapping[str, timedelta]) -> None:
        """Run exactly these recommenders: each at once, then in its own interval."""
        self._scheduler.remove_all_jobs()
        self._names = frozenset()
        self.change(every)
        self._scheduler.add_job(
            self._housekeeping, "interval", id=HOUSEKEEPING,
            seconds=HOUSEKEEPING_EVERY.total_seconds(), next_run_time=self._clock() + FIRST_HOUSEKEEPING,
            misfire_grace_time=None,  # or judges that are always busy would delay it for ever
        )  # fmt: skip
        self._scheduler.add_job(
            self._alive, "interval", id=SIGN_OF_LIFE,
            seconds=SIGN_OF_LIFE_EVERY.total_seconds(), misfire_grace_time=None,
        )  # fmt: skip

        if self._renew is not None:
            self._scheduler.add_job(
                self._renew, "interval", id=RENEWAL, executor=RENEWAL,
                seconds=self._renew_every.total_seconds(), misfire_grace_time=None,
            )  # fmt: skip

    def change(self, every: Mapping[str, timedelta]) -> None:
        """Run exactly these recommenders: new ones at once; the others keep their pace."""
        for name in self._names - every.keys():
            for job in (name, _more(name)):
                with suppress(JobLookupError):
                    self._scheduler.remove_job(job)
        added, self._names = every.keys() - self._names, frozenset(every)
        for name in every:
            if name in added:
                self._scheduler.add_job(
                    self._turn, "interval", args=[name], id=name, seconds=every[name].total_seconds()
                )
                # Not by the job above: while a turn from before a reload runs, it would be dropped.
                self.soon(name)

    def soon(self, name: str) -> None:
        """Add one more turn behind those that already wait. It is never missed."""
        # Two instances: the turn that asks for one more may be such a turn itself, which still runs. The pool
        # lets the second one wait. With one instance APScheduler would drop it.
        self._scheduler.add_job(
            self._turn, args=[name], id=_more(name), replace_existing=True, misfire_grace_time=None,
            max_instances=2,
        )  # fmt: skip

    def _missed(self, event: JobEvent) -> None:
        name = event.job_id
        if name not in self._names:
            return
        missed = event.code == EVENT_JOB_MISSED
        if missed:  # long runs of another recommender delayed it; without this they could starve it
            self.soon(name)
        self._not_run(name, "missed" if missed else "overrun")


def _more(name: str) -> str:
    return f"({name}: more)"
