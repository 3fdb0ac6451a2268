"""`make scoreboard`, or `python -m benchmarks.scoreboard --seeds 1 --only blacklist` for a part of it.

Days of healthy traffic and every incident go through the real monitor, Prometheus and Alertmanager; see
docs/scoreboard.md. Without --keep, the worlds that are held back do not run. What is finished is kept in
benchmarks/work/scoreboard, for the code that it was made by, so that an interrupted scoreboard goes on where
it was. Ends with 1 where the bar is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.scoreboard import page, results
from benchmarks.scoreboard.alerts import ROOT
from benchmarks.scoreboard.jobs import JUDGING_CODE, Job, digest
from benchmarks.scoreboard.planned import Planned
from benchmarks.scoreboard.servers import NotInstalledError, version
from benchmarks.scoreboard.verdicts import Verdicts
from benchmarks.scoreboard.workers import done, seconds, work_on
from benchmarks.scoreboard.worlds import DAYS, HELD_BACK, SEEDS, TUNED, drawn
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import SIZES
from monitor.simulate.world import World

WORK: Final = ROOT / "benchmarks" / "work" / "scoreboard"
_MIXED: Final = "other-code"


def main(
    arguments: Sequence[str] | None = None, world: Callable[[int], World] = drawn, base: Path = WORK
) -> int:
    """Run what is asked for, print the page; 1 where the bar is missed."""
    chosen = _chosen(arguments)
    try:
        servers = [
            version("prometheus"),
            version("promtool"),
            version("prometheus-alertmanager", "alertmanager"),
        ]
    except NotInstalledError as error:
        _say(str(error))
        return 2
    planned = Planned.of(
        world,
        seeds=chosen.seeds or (SEEDS if chosen.keep else TUNED),
        days=chosen.days,
        names=chosen.only or list(INCIDENTS),
        sizes=chosen.sizes or (),
    )
    if chosen.fresh:
        shutil.rmtree(base, ignore_errors=True)
    work, judging = _folder(base, planned.code(), go_on=chosen.go_on), digest(JUDGING_CODE)
    if chosen.keep and not chosen.fresh:
        results.restore(work)
    mixed = work / _MIXED
    _mark(mixed, planned.code() != work.name)
    verdicts = Verdicts(work / results.VERDICTS, judging)
    failed = {} if chosen.so_far else _run(_to_do(planned, verdicts), work, chosen.processes)
    finished = [job for job in planned.jobs if job not in failed and (done(job, work) or job in verdicts)]
    for job, why in verdicts.judge(finished, work, chosen.processes):
        _say(f"judged {job.name} {why}")
        if why:
            failed[job] = f"not judged: {why}"
    _mark(mixed, planned.code() != work.name)
    other_code = mixed.exists() or digest(JUDGING_CODE) != judging
    made = page.Made.now(work.name, judging, servers, seconds(work).values())
    found = results.found(planned, verdicts, failed, made, other_code=other_code)
    if chosen.keep and other_code:
        _say("docs/scoreboard.md is left as it is: the code has changed since the first of these runs")
    elif chosen.keep:
        results.save(work, made)
    is_page = chosen.keep and not other_code and not chosen.so_far
    print(page.write(found, page.PAGE if is_page else work / "scoreboard.md"))
    return int(bool(found.misses))


def _to_do(planned: Planned, verdicts: Verdicts) -> list[Job]:
    """What has no verdict yet, the longest incidents first, or one is left alone at last.

    And the healthy days of each world in which something strikes: what they forked from may be on another
    machine.
    """
    incidents = sorted(planned.incidents, key=lambda job: job.begins - job.ends)
    forked = [job for job in (*planned.restarts, *incidents) if job not in verdicts]
    worlds = {job.plan for job in forked}
    return [*(job for job in planned.healthy if job not in verdicts or job.plan in worlds), *forked]


def _chosen(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    chosen = parser.parse_args(arguments)
    whole = {"only": None, "seeds": None, "sizes": None, "days": DAYS, "go_on": False}
    parts = [name.replace("_", "-") for name, value in whole.items() if getattr(chosen, name) != value]
    if chosen.keep and parts:
        parser.error(f"--keep writes the whole scoreboard, so it goes without --{parts[0]}")
    if held := sorted(set(chosen.seeds or ()) & set(HELD_BACK)):
        parser.error(f"the world of seed {held[0]} is held back, so only --keep runs it")
    return chosen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--only", action="append", choices=list(INCIDENTS), help="an incident; again for more"
    )
    parser.add_argument("--seeds", type=int, nargs="+", help="one world each")
    parser.add_argument(
        "--sizes", nargs="+", choices=SIZES, help="all of these in each world; else one in each, as sampled"
    )
    parser.add_argument("--days", type=float, default=DAYS, help="healthy days of each world")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fresh", action="store_true", help="forget what was finished before")
    parser.add_argument(
        "--go-on", action="store_true", help="go on with the last work, though the code has changed"
    )
    parser.add_argument("--so-far", action="store_true", help="run nothing, judge what is finished")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="write docs/scoreboard.md and, beside the code, the verdicts that it is made of:\n"
        "what is kept of the same code is not run again, on whichever machine;\n"
        "with --so-far the verdicts alone",
    )
    return parser


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
