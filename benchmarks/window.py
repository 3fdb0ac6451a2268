"""One window through every rule and metric, in a process of its own; prints what each part cost as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from monitor.checks import rules
from monitor.checks.tables import prepare
from monitor.config.check import check_config
from monitor.config.load import load_config
from monitor.logs.windows import Due
from monitor.service.once import OneOff, one_off


def plain_read(path: Path, threads: int) -> float:
    """Seconds to read every column once, the best of three."""
    connection = duckdb.connect(config={"threads": threads})
    columns = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()]
    query = f"SELECT {', '.join(f'sum(hash({name}))' for name in columns)} FROM '{path}'"
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        connection.execute(query).fetchall()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def each_rule(judge: OneOff, due: Due) -> dict[str, float]:
    """Seconds of each rule judged alone on the finished tables; together they share their scans."""
    evaluator, runtime = judge.evaluator, judge.runtime
    tables = prepare(runtime.engine, evaluator.source, due.window, evaluator.settings, evaluator.kept)
    made = rules.make_tables(runtime.engine, evaluator.rules, tables)
    seconds = {}
    for rule in evaluator.rules:
        started = time.perf_counter()
        rules.judge(runtime.rules, [rule], made)
        seconds[rule.name] = time.perf_counter() - started
    return seconds


def main(config_path: Path, exposures: Path, threads: int) -> None:
    """Judge the last window of a config's log."""
    before = plain_read(exposures, threads)
    config = load_config(config_path)
    (checked,) = check_config(config, config_path.parent)
    if checked.problems:
        raise SystemExit("\n".join(map(str, checked.problems)))
    now = datetime.now(UTC)
    with one_off(config, checked, "salt") as judge:
        started = time.perf_counter()
        judge.look(now)
        indexing = time.perf_counter() - started
        windows, _ = judge.windows(None, None, now)
        for _ in judge.judge(windows[:-1], now):  # the window before: imports and caches are warm after it
            pass
        started = time.perf_counter()
        parts = judge.judge(windows[-1:], now)
        evaluation = next(parts)  # all rules and the metrics of exposures; the metrics of feedback follow
        total = time.perf_counter() - started
        started = time.perf_counter()
        later = list(parts)
        feedback = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        alone = each_rule(judge, evaluation.due)
    after = plain_read(exposures, threads)
    print(
        json.dumps(
            {
                "rows": evaluation.due.rows,
                "plain_read": min(before, after),
                "indexing": indexing,
                "total": total,
                "feedback": feedback,
                "feedback_parts": {name: cost for one in later for name, cost in one.costs.items()},
                "checks": {run.check: run.seconds for run in evaluation.runs},
                "parts": evaluation.costs,
                "rules": alone,
                "statuses": {
                    status: sum(one.status == status for one in evaluation.results)
                    for status in dict.fromkeys(str(one.status) for one in evaluation.results)
                },
                "not_ok": sorted(
                    {f"{one.metric} {dict(one.labels)} {one.status}: {one.detail}"
                     for one in evaluation.results if one.status != "ok"}
                ),
                "peak_mib": peak,
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
