"""The schedule: which turns it starts, with real threads and a real scheduler."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_SUBMITTED

from monitor.history.counters import TurnEnd
from monitor.service import schedule as schedule_module
from monitor.service.pool import TurnPool
from monitor.service.schedule import Schedule

PATIENCE = 30.0
MORE = 5


def started(
    turn: Callable[[str], None],
    not_run: Callable[[str, TurnEnd], None] = lambda *_: None,
    housekeeping: Callable[[], None] = lambda: None,
) -> Schedule:
    """A running schedule of one recommender and one judge."""
    schedule = Schedule(
        turn=turn,
        not_run=not_run,
        housekeeping=housekeeping,
        alive=lambda: None,
        clock=lambda: datetime.now(UTC),
        pool=TurnPool(1),
    )
    schedule.set({"shop": timedelta(minutes=30)})
    schedule.start()
    return schedule


def test_housekeeping_runs_although_it_waited_long_for_a_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_module, "MISFIRE_GRACE_SECONDS", 1)
    monkeypatch.setattr(schedule_module, "FIRST_HOUSEKEEPING", timedelta(seconds=0.1))
    kept = threading.Event()
    schedule = started(turn=lambda _: time.sleep(3.0), housekeeping=kept.set)  # longer than the grace time
    try:
        assert kept.wait(PATIENCE), "housekeeping was left out"
    finally:
        schedule.end()


def test_a_reload_during_a_turn_is_followed_by_a_turn_at_once() -> None:
    turns: list[str] = []
    began, reloaded, handled, again = (threading.Event() for _ in range(4))
    not_run: list[tuple[str, TurnEnd]] = []

    def turn(name: str) -> None:
        turns.append(name)
        if len(turns) > 1:
            again.set()
            return
        began.set()
        reloaded.wait(PATIENCE)
        handled.wait(PATIENCE)

    schedule = started(turn=turn, not_run=lambda name, outcome: not_run.append((name, outcome)))
    try:
        assert began.wait(PATIENCE)
        handling = EVENT_JOB_SUBMITTED | EVENT_JOB_MAX_INSTANCES
        schedule._scheduler.add_listener(lambda _: handled.set(), handling)
        schedule.set({"shop": timedelta(minutes=30)})
        reloaded.set()
        assert again.wait(5), "the new config waits for the next interval"
    finally:
        reloaded.set()
        handled.set()
        schedule.end()
    assert not not_run


def test_every_turn_that_asks_for_one_more_gets_it_at_once():
    turns: list[str] = []
    enough, handled = threading.Event(), threading.Event()
    not_run: list[tuple[str, TurnEnd]] = []

    def turn(name: str) -> None:
        turns.append(name)
        if len(turns) <= MORE:
            handled.clear()
            schedule.soon(name)
            handled.wait(PATIENCE)  # as in the daemon, where a turn still runs after it has asked for another
        else:
            enough.set()

    schedule = Schedule(
        turn=turn,
        not_run=lambda name, outcome: not_run.append((name, outcome)),
        housekeeping=lambda: None,
        alive=lambda: None,
        clock=lambda: datetime.now(UTC),
        pool=TurnPool(1),
    )
    handling = EVENT_JOB_SUBMITTED | EVENT_JOB_MAX_INSTANCES
    schedule._scheduler.add_listener(lambda _: handled.set(), handling)
    schedule.set({"shop": timedelta(minutes=30)})
    schedule.start()
    try:
        assert enough.wait(PATIENCE), f"only {len(turns)} turns ran, of 1 and {MORE} more"
    finally:
        schedule.end()
    assert turns == ["shop"] * (1 + MORE)
    assert not not_run
