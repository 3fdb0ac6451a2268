"""`recsys-monitor` whose functions note their stage: `python -m benchmarks.soak.bootstrap run --config ...`.

Two things differ from the daemon of users: the notes, and the pace of housekeeping. A soak takes two days of
data in an hour, so housekeeping comes every few seconds. The processes that judge import this module too,
as Python does with the main module of a program.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from benchmarks.soak import stages
from benchmarks.soak.stages import Marks

FIRST_HOUSEKEEPING: Final = timedelta(seconds=1)
HOUSEKEEPING_EVERY: Final = timedelta(seconds=2)


def install(marks: Marks) -> None:
    """Make the functions of each stage note it."""
    from monitor.history import record
    from monitor.history.kept import KeptPairs
    from monitor.history.store import Store
    from monitor.judging import evaluate
    from monitor.judging.metrics_check import FeedbackMetrics, MetricsCheck
    from monitor.rules.check import RuleCheck
    from monitor.service import judge_process, schedule
    from monitor.service.daemon import Daemon
    from monitor.service.publisher import SnapshotPublisher
    from monitor.service.schedule import Schedule
    from monitor.service.watch import Watch

    owners: tuple[tuple[Any, str, str], ...] = (
        (Watch, "turn", stages.TURN),
        (Watch, "look", stages.INDEX),
        (Watch, "forget", stages.HOUSEKEEPING),
        (evaluate.Evaluator, "_measured_together", stages.TOGETHER),
        (evaluate, "prepare", stages.READ),
        (RuleCheck, "run", stages.RULES),
        (MetricsCheck, "run", stages.METRICS),
        (FeedbackMetrics, "run", stages.METRICS),
        (KeptPairs, "keep", stages.PAIRS),
        (SnapshotPublisher, "publish", stages.PUBLISH),
        (SnapshotPublisher, "write_counters", stages.COUNTERS),
        (Daemon, "housekeeping", stages.HOUSEKEEPING),
        (Daemon, "_renew", stages.LEASES),
        (Daemon, "_shut_down", stages.STOP),
    )
    for owner, name, stage in owners:
        _wrap(owner, name, functools.partial(marks.during, stage))
    # From inside the transaction to its end: `record` begins the stage, the method of the store ends it.
    _before(record, "record", lambda: marks.put(stages.HISTORY))
    _wrap(Store, "record_window", marks.kept)
    _before(Schedule, "start", lambda: marks.put(None))
    _before(judge_process, "_carry_out", lambda: marks.put(None))
    schedule.FIRST_HOUSEKEEPING = FIRST_HOUSEKEEPING
    schedule.HOUSEKEEPING_EVERY = HOUSEKEEPING_EVERY


def _wrap(owner: Any, name: str, context: Callable[[], Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        with context():
            return original(*arguments, **named)

    setattr(owner, name, wrapped)


def _before(owner: Any, name: str, call: Callable[[], None]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        call()
        return original(*arguments, **named)

    setattr(owner, name, wrapped)


if __name__ in ("__main__", "__mp_main__"):
    _marks = Marks(Path(os.environ[stages.FOLDER]) / str(os.getpid()))
    _marks.put(stages.START)
    install(_marks)

if __name__ == "__main__":
    from monitor.cli.app import main

    main()
