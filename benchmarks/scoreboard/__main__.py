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
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Final

from benchmarks.scoreboard import page
from benchmarks.scoreboard.alerts import ROOT
from benchmarks.scoreboard.healthy import changed_by_restart, health
from benchmarks.scoreboard.jobs import JUDGING_CODE, RUN_CODE, Job, Plan, digest
from benchmarks.scoreboard.outcomes import outcome
from benchmarks.scoreboard.servers import NotInstalledError, version
from benchmarks.scoreboard.verdicts import Verdicts
from benchmarks.scoreboard.workers import done, seconds, work_on
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import SIZES, Size
from monitor.simulate.world import HOUR, World

WORK: Final = ROOT / "benchmarks" / "work" / "scoreboard"
_MIXED: Final = "other-code"
_LASTING: Final = (  # what each kind of check makes of an incident that lasts: seen in the first world
    "blacklist", "lists_short", "popularity_collapse", "click_logging_broken", "feature_default",
)  # fmt: skip
_SEEDS: Final = (1, 2, 3)
_DAYS: Final = 30
_STRIKES: Final = (  # of the first three seeds: a Tuesday's morning and night, a Saturday's evening
    timedelta(days=22, hours=10),
    timedelta(days=22, hours=3),
    timedelta(days=19, hours=20),
)


def main(arguments: Sequence[str] | None = None, world: World | None = None, base: Path = WORK) -> int:
    """Run what is asked for, print the page; 1 where the bar is missed."""
    chosen = _chosen(arguments)
    try:
        versions = [
            version("prometheus"),
            version("promtool"),
            version("prometheus-alertmanager", "alertmanager"),
        ]
    except NotInstalledError as error:
        _say(str(error))
        return 2
    world = world or World(file_minutes=30)
    plans = [plan(replace(world, seed=seed), chosen.days) for seed in chosen.seeds]
    if chosen.fresh:
        shutil.rmtree(base, ignore_errors=True)
    code = partial(digest, RUN_CODE, replace(world, seed=0), plans[0].lasts, _STRIKES)
    work, judging = _folder(base, code(), go_on=chosen.go_on), digest(JUDGING_CODE)
    mixed = work / _MIXED
    _mark(mixed, code() != work.name)
    healthy = [Job(plan) for plan in plans]
    incidents = _incidents(plans, chosen.only or list(INCIDENTS), chosen.sizes)
    restarts = list(dict.fromkeys(job.baseline for job in incidents if job.baseline is not None))
    longest_first = sorted(incidents, key=lambda job: job.begins - job.ends)  # or one is left alone at last
    failed = _run([*healthy, *restarts, *longest_first], work, chosen.processes)
    verdicts = Verdicts(work / "verdicts.jsonl", judging)
    finished = [job for job in (*healthy, *restarts, *incidents) if job not in failed]
    for job, error in verdicts.judge(finished, work):
        _say(f"judged {job.name} {error}")
        if error:
            failed[job] = f"not judged: {error}"
    _mark(mixed, code() != work.name)
    found = page.Found(
        plans,
        [outcome(job, verdicts[job]) for job in incidents if job in verdicts],
        [health(job, verdicts[job]) for job in healthy if job in verdicts],
        {
            job: changed_by_restart(job, verdicts[job], verdicts[Job(job.plan)])
            for job in restarts
            if job in verdicts and Job(job.plan) in verdicts
        },
        failed,
        page.Made(work.name, judging, versions, fmean(seconds(work).values()) if seconds(work) else None),
        other_code=mixed.exists() or digest(JUDGING_CODE) != judging,
    )
    if chosen.keep and found.other_code:
        _say("docs/scoreboard.md is left as it is: the code has changed since the first of these runs")
    print(page.write(found, page.PAGE if chosen.keep and not found.other_code else work / "scoreboard.md"))
    return int(bool(found.misses))


def _incidents(plans: Sequence[Plan], names: Sequence[str], sizes: Sequence[Size]) -> list[Job]:
    """Every incident, and those that last, with a restart of its world that lasts as long as the longest."""
    jobs = [Job(plan, name, size) for name in names for size in sizes for plan in plans]
    jobs += [
        Job(plans[0], name, "large", lasting=True) for name in names if name in _LASTING and "large" in sizes
    ]
    longest = max((job.ends - job.begins for job in jobs), default=HOUR) // HOUR
    return [replace(job, baseline=Job(job.plan, hours=longest)) for job in jobs]


def _chosen(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    chosen = parser.parse_args(arguments)
    whole = {"only": None, "seeds": list(_SEEDS), "sizes": list(SIZES), "days": _DAYS, "go_on": False}
    parts = [name.replace("_", "-") for name, value in whole.items() if getattr(chosen, name) != value]
    if chosen.keep and parts:
        parser.error(f"--keep writes the whole scoreboard, so it goes without --{parts[0]}")
    return chosen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--only", action="append", choices=list(INCIDENTS), help="an incident; again for more"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=list(_SEEDS), help="one world each")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--days", type=float, default=_DAYS, help="healthy days of each world")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fresh", action="store_true", help="forget what was finished before")
    parser.add_argument(
        "--go-on", action="store_true", help="go on with the last work, though the code has changed"
    )
    parser.add_argument("--keep", action="store_true", help="write docs/scoreboard.md")
    return parser


def plan(world: World, days: float) -> Plan:
    """Incidents strike after three weeks or, of fewer days, with a quarter of the hours to come."""
    lasts, strikes = timedelta(hours=round(days * 24)), _STRIKES[(world.seed - 1) % len(_STRIKES)]
    return Plan(world, lasts, strikes if lasts > strikes else lasts * 3 // 4 // HOUR * HOUR)


def _folder(base: Path, code: str, *, go_on: bool) -> Path:
    """Where the runs of this code lie, or with `go_on` those that were last at work."""
    newest = max((one for one in base.glob("*/") if one.is_dir()), key=_touched, default=None)
    work = newest if go_on and newest is not None else base / code
    work.mkdir(parents=True, exist_ok=True)
    return work


def _mark(mixed: Path, other_code: bool) -> None:
    """Remember of a folder for good that not all that is in it was made by the code of its name."""
    if other_code and not mixed.exists():
        mixed.touch()


def _touched(folder: Path) -> float:
    return folder.stat().st_mtime


def _run(jobs: Sequence[Job], work: Path, processes: int) -> dict[Job, str]:
    """Finish the jobs; each that failed, with why. So has an incident without what it is compared with."""
    failed: dict[Job, str] = {}
    began, count = time.monotonic(), sum(not done(job, work) for job in jobs)
    for number, (job, error) in enumerate(work_on(jobs, work, processes), 1):
        if error:
            failed[job] = error
        left = (time.monotonic() - began) / number * (count - number)
        _say(f"{number} of {count} runs, about {left / 60:.0f} minutes left: {job.name} {error}")
    for job in jobs:
        if job.baseline in failed and job not in failed:
            failed[job] = f"there is no {job.baseline.name} to compare it with"
    return failed


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
