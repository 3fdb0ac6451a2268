"""What counts as a miss of the scoreboard's bar."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.outcomes import Aftermath, Catch, Outcome, missed
from benchmarks.scoreboard.worlds import Plan
from monitor.simulate.incidents.incident import Size
from monitor.simulate.world import World

PLAN = Plan(World(), timedelta(days=14), (timedelta(days=2),))


def made(name: str, size: Size, minutes: int | None, groups: int = 1, **rest: Any) -> Outcome:
    catch = None if minutes is None else Catch("RecsysDrift", minutes, 165)
    return Outcome(Job(PLAN, name, size), catch, (), groups, 1, 0, **rest)


@pytest.mark.parametrize(
    ("one", "misses"),
    [
        (made("blacklist", "small", 165), []),
        (made("order_broken", "middle", 90), []),
        (made("order_broken", "small", None), []),
        (made("slow_drift", "small", None), []),
        (made("blacklist", "small", None), ["blacklist-small-seed-1: not caught"]),
        (
            made("order_broken", "large", 170),
            ["order_broken-large-seed-1: caught only after 170 minutes, of 165 allowed"],
        ),
        (made("blacklist", "large", 1, groups=2), ["blacklist-large-seed-1: 2 groups of messages, not one"]),
        (
            made("blacklist", "large", 1, again=("A",)),
            ["blacklist-large-seed-1: repeated too soon: A"],
        ),
        (made("log_stops", "large", 70, aftermath=Aftermath(0, ("RecsysDrift (metric=novelty)",))), []),
        (made("lists_short", "large", 70, aftermath=Aftermath(0, ("RecsysAnomaly (cause=other)",))), []),
        (
            made("lists_short", "large", 70, aftermath=Aftermath(0, ("RecsysAnomaly (cause=few_items)",))),
            ["lists_short-large-seed-1: long after its end, RecsysAnomaly (cause=few_items) still fired"],
        ),
        (
            made("log_stops", "large", 70, aftermath=Aftermath(0, ("A", "RecsysDrift", "B"), ("C",))),
            [
                "log_stops-large-seed-1: long after its end, A, B still fired",
                "log_stops-large-seed-1: after its end, C paged again",
            ],
        ),
    ],
)
def test_the_bar(one: Outcome, misses: list[str]) -> None:
    assert list(missed([one])) == misses
