"""`make scoreboard`, or `python -m benchmarks.scoreboard --seeds 1 --only blacklist` for a part of it.

Days of healthy traffic and every incident go through the real monitor, Prometheus and Alertmanager; see
docs/scoreboard.md. What is finished is kept in benchmarks/work/scoreboard, for the code that it was made by,
so that an interrupted scoreboard goes on where it was. Ends with 1 where the bar is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import fmean
from typing import Final

from benchmarks.scoreboard import page
from benchmarks.scoreboard.alerts import ROOT
from benchmarks.scoreboard.jobs import JUDGING_CODE, RUN_CODE, Job, Plan, digest
from benchmarks.scoreboard.outcomes import health, missed, outcome
from benchmarks.scoreboard.verdicts import Verdicts
from benchmarks.scoreboard.workers import done, seconds, work_on
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import SIZES
from monitor.simulate.world import HOUR, World

WORK: Final = ROOT / "benchmarks" / "work" / "scoreboard"
_SEEDS: Final = (1, 2, 3)
_STRIKES: Final = timedelta(days=22, hours=10)
_ENOUGH: Final = 12  # finished runs that are judged together


def main(arguments: Sequence[str] | None = None, world: World | None = None, base: Path = WORK) -> int:
    """Run what is asked for, print the page; 1 where the bar is missed."""
    chosen = _parser().parse_args(arguments)
    world = world or World(file_minutes=30)
    plans = [_plan(replace(world, seed=seed), chosen.days) for seed in chosen.seeds]
    names = chosen.only or list(INCIDENTS)
    healthy = [Job(plan) for plan in plans]
    incidents = [Job(plan, name, size) for name in names for size in chosen.sizes for plan in plans]
    if chosen.fresh:
        shutil.rmtree(base, ignore_errors=True)
    work = _folder(base, plans[0], go_on=chosen.go_on)
    verdicts = Verdicts(work / "verdicts.jsonl", digest(JUDGING_CODE))
    failed = _run([*healthy, *incidents], work, verdicts, chosen.processes)
    days = [health(job, verdicts[job]) for job in healthy if job in verdicts]
    outcomes = [
        outcome(job, verdicts[job], verdicts[Job(job.plan)])
        for job in incidents
        if job in verdicts and Job(job.plan) in verdicts
    ]
    misses = [*(f"{name}: {why}" for name, why in failed.items()), *missed(outcomes, days)]
    spent = seconds(work).values()
    where = page.PAGE if chosen.keep else work / "scoreboard.md"
    print(page.write(plans, outcomes, days, misses, fmean(spent) if spent else 0.0, where))
    return int(bool(misses))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--only", action="append", choices=list(INCIDENTS), help="an incident; again for more"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=list(_SEEDS), help="one world each")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--days", type=float, default=30, help="healthy days of each world")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fresh", action="store_true", help="forget what was finished before")
    parser.add_argument(
        "--go-on", action="store_true", help="go on with the last work, though the code has changed"
    )
    parser.add_argument("--keep", action="store_true", help="write docs/scoreboard.md")
    return parser


def _plan(world: World, days: float) -> Plan:
    """Incidents strike on day 22, or, where there are fewer days, with a quarter of the hours to come."""
    lasts = timedelta(hours=round(days * 24))
    return Plan(world, lasts, _STRIKES if lasts > _STRIKES else lasts * 3 // 4 // HOUR * HOUR)


def _folder(base: Path, plan: Plan, *, go_on: bool) -> Path:
    """Where the runs of this code and this world lie."""
    newest = max((one for one in base.glob("*/") if one.is_dir()), key=_touched, default=None)
    if go_on and newest is not None:
        return newest
    work = base / digest(RUN_CODE, replace(plan.world, seed=0), plan.lasts, plan.fork)
    work.mkdir(parents=True, exist_ok=True)
    return work


def _touched(folder: Path) -> float:
    return folder.stat().st_mtime


def _run(jobs: Sequence[Job], work: Path, verdicts: Verdicts, processes: int) -> dict[str, str]:
    """Finish and judge the jobs; name of each that failed -> why."""
    failed: dict[str, str] = {}
    began, count = time.monotonic(), sum(not done(job, work) for job in jobs)
    unjudged = [job for job in jobs if done(job, work)]
    for number, (job, error) in enumerate(work_on(jobs, work, processes), 1):
        if error:
            failed[job.name] = error
        else:
            unjudged.append(job)
        left = (time.monotonic() - began) / number * (count - number)
        _say(f"{number} of {count} runs, about {left / 60:.0f} minutes left: {job.name} {error}")
        if len(unjudged) >= _ENOUGH:
            _judge(unjudged, work, verdicts)
            unjudged = []
    _judge(unjudged, work, verdicts)
    return failed


def _judge(jobs: Sequence[Job], work: Path, verdicts: Verdicts) -> None:
    for one in verdicts.judge(jobs, work):
        _say(f"judged {one.name}: {len(one.episodes)} alerts, {len(one.groups)} groups of messages")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
