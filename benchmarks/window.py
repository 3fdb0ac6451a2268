"""One window through every rule and metric, in a process of its own; prints what each part cost as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.cli.one_off import OneOff, one_off
from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.engines.duckdb import Engine
from monitor.judging.evaluate import Evaluation
from monitor.logs.windows import Due
from monitor.metrics.catalogue import FEEDBACK_FAMILIES
from monitor.metrics.measure import not_measured
from monitor.rules import check as rules
from monitor.rules.tables import make_tables
from monitor.window.tables import prepare

_REPEAT = 2  # other load on the machine comes and goes; the better of two counts


class Clock:
    """Seconds, and seconds of the processor, since it was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._began[0], time.process_time() - self._began[1]


class PlainRead:
    """Reads every column of a file; keeps the best of all reads."""

    def __init__(self, path: Path, threads: int) -> None:
        self._connection = duckdb.connect(config={"threads": threads})
        columns = [row[0] for row in self._connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()]
        self._query = f"SELECT {', '.join(f'sum(hash({name}))' for name in columns)} FROM '{path}'"
        self.seconds = self.cpu = float("inf")

    def again(self, times: int = 3) -> None:
        for _ in range(times):
            clock = Clock()
            self._connection.execute(self._query).fetchall()
            seconds, cpu = clock.read()
            self.seconds, self.cpu = min(self.seconds, seconds), min(self.cpu, cpu)


@contextmanager
def tables_of(engine: Engine) -> Iterator[dict[str, float]]:
    """Fills in the seconds of each table that the engine stores in the block."""
    seconds: dict[str, float] = {}
    fill = engine.fill

    def timed(name: str, statement: str, schema: ibis.Schema | None = None) -> ir.Table:
        clock = Clock()
        made = fill(name, statement, schema)
        seconds[name] = clock.read()[0]
        return made

    setattr(engine, "fill", timed)  # noqa: B010 - a method is not assigned to
    try:
        yield seconds
    finally:
        delattr(engine, "fill")


def each_rule(judge: OneOff, due: Due) -> dict[str, float]:
    """Seconds of each rule judged alone on the finished tables; together they share their scans."""
    evaluator, runtime = judge.evaluator, judge.runtime
    tables = prepare(runtime.engine, evaluator.source, due.window, evaluator.settings, evaluator.kept)
    made = make_tables(runtime.engine, evaluator.rules, tables)
    seconds = {}
    for rule in evaluator.rules:
        clock = Clock()
        rules.judge(runtime.rules, [rule], made)
        seconds[rule.name] = clock.read()[0]
    return seconds


def each_missing(judge: OneOff, due: Due) -> dict[str, str]:
    """The families of feedback that the benchmark's logs cannot give, and why."""
    evaluator, engine = judge.evaluator, judge.runtime.engine
    around = evaluator.parts.span(due.window, due.part)
    tables = prepare(engine, evaluator.source, due.window, evaluator.settings, evaluator.kept, around)
    reasons = not_measured(tables.shared, evaluator.settings.metrics)
    return {family.name: reasons[family.name] for family in FEEDBACK_FAMILIES if family.name in reasons}


def part(parts: Iterator[Evaluation], engine: Engine) -> dict[str, Any]:
    """What the next part of a window cost, and what it gave."""
    with tables_of(engine) as tables:
        clock = Clock()
        evaluation = next(parts)
        seconds, cpu = clock.read()
    return {
        "due": evaluation.due,
        "seconds": seconds,
        "cpu": cpu,
        "costs": evaluation.costs,
        "tables": tables,
        "checks": {run.check: run.seconds for run in evaluation.runs},
        "statuses": [str(one.status) for one in evaluation.results],
        "not_ok": sorted(
            {f"{one.metric} {dict(one.labels)} {one.status}: {one.detail}"
             for one in evaluation.results if one.status != "ok"}
        ),
    }  # fmt: skip


def main(config_path: Path, exposures: Path, threads: int, *, cpu: bool) -> None:
    """Judge the last window of a config's log; `cpu` counts the processor's time everywhere."""
    if cpu:
        time.perf_counter = time.process_time
    read = PlainRead(exposures, threads)
    read.again()
    config = load_config(config_path)
    (checked,) = check_config(config, config_path.parent)
    if checked.problems:
        raise SystemExit("\n".join(map(str, checked.problems)))
    now = datetime.now(UTC)
    with one_off(config, checked, "salt") as judge:
        clock = Clock()
        judge.look(now)
        indexing, _ = clock.read()
        windows, _ = judge.windows(None, None, now)
        for _ in judge.judge(windows[:-1], now):  # the window before: imports and caches are warm after it
            pass
        whole, later = [], []
        for _ in range(_REPEAT):
            parts = judge.judge(windows[-1:], now)
            whole.append(part(parts, judge.runtime.engine))  # all rules and the metrics of exposures
            read.again()
            later.append(part(parts, judge.runtime.engine))  # the metrics of feedback
            read.again()
        first, second = (min(runs, key=lambda one: one["seconds"]) for runs in (whole, later))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        alone = each_rule(judge, first["due"])
        missing = each_missing(judge, second["due"])
    found = {
        "rows": first.pop("due").rows,
        "read": {"seconds": read.seconds, "cpu": read.cpu},
        "indexing": indexing,
        "window": first,
        "feedback": {key: value for key, value in second.items() if key != "due"},
        "missing": missing,
        "rules": alone,
        "peak_mib": peak,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), cpu="--cpu" in sys.argv)
