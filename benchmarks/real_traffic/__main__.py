"""`make real-traffic`, or `python -m benchmarks.real_traffic --only twitter --every 10 --weeks 2` for a part.

Sweeps each series, two at a time, and writes docs/real-traffic.md. See that page for what is measured.
Ends with 1 if the bar is missed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.real_traffic import page, peers, results
from benchmarks.real_traffic.runs import run
from benchmarks.real_traffic.sweep import FALSE_ALARMS, Sample
from benchmarks.real_traffic.traffic import SERIES
from benchmarks.scoreboard.alerts import ROOT

FOLDER: Final = ROOT.parent / "shared" / "data" / "series"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and print the page; 1 if the bar is missed."""
    chosen = _parser().parse_args(arguments)
    names = chosen.only or list(SERIES)
    missing = [name for name in names if not (chosen.folder / f"{SERIES[name].file}.gz").is_file()]
    if missing:
        _say(f"no series of {', '.join(missing)} in {chosen.folder}; --folder says where they are")
        return 2
    sample = Sample(chosen.every, chosen.weeks, chosen.skip, chosen.false_alarms)
    python = None if chosen.without_peers else peers.interpreter()
    made = page.Made.now(results.code())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(chosen.processes, len(names)), context) as pool:
        work = [pool.submit(run, name, chosen.folder, sample, python, made) for name in names]
        lines = [one.result() for one in work]
    if chosen.keep:
        results.save(lines)
        text = results.again()
    else:
        peers.WORK.mkdir(parents=True, exist_ok=True)
        text = page.write(lines, peers.WORK / "real-traffic.md")
    print(text)
    return int(bool(page.misses([one.figures for one in lines])))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(SERIES), help="a series; again for more")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the series are")
    parser.add_argument("--every", type=int, default=1, help="one in so many days is struck by incidents")
    parser.add_argument("--weeks", type=float, default=None, help="so many weeks after the four of history")
    parser.add_argument(
        "--skip", type=float, default=0.0, help="so many weeks of the series are left out first"
    )
    parser.add_argument(
        "--false-alarms", type=float, default=FALSE_ALARMS, help="bands.false_alarms of the config"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--without-peers", action="store_true", help="do not compare with STL and MSTL")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep the sweeps, and write docs/real-traffic.md of all that are kept",
    )
    return parser


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
