"""`make soak`, or `python -m benchmarks.soak --windows 200 --kills 40 --history sqlite` for a part of it.

Two runs of the real daemon judge the same windows of the same files; in the second one it is killed, its disk
is full, its history is locked, and PostgreSQL is restarted. Then both histories must be equal, and memory and
open files flat. Ends with 1 if they are not, or if no kill fell into some stage. See docs/soak.md.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.page import keep
from benchmarks.postgres import NotInstalledError, Postgres, binaries
from benchmarks.soak import page, stages, traffic, trouble
from benchmarks.soak.comparison import shown
from benchmarks.soak.daemon import SoakError
from benchmarks.soak.plan import AHEAD, plan
from benchmarks.soak.report import Report, report
from benchmarks.soak.run import Disturbance, Place, run

HISTORIES: Final = ("sqlite", "postgresql")
_WINDOWS_A_ROUND: Final = 100  # each trouble comes once in so many windows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak and print its tables; 1 if it failed, 2 if it cannot run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--windows", type=int, default=1000, help="of each of the two recommenders")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--history", choices=HISTORIES, default="sqlite")
    parser.add_argument("--seed", type=int, default=traffic.SEED, help="of the plan and of the kills")
    parser.add_argument("--folder", type=Path, help="for logs, states and output; by default a temporary one")
    parser.add_argument("--keep", action="store_true", help="write the tables into docs/soak.md")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the daemon and its disk must not stay
    with ExitStack() as stack:
        folder = chosen.folder
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="recsys-monitor-soak-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            found = soak(folder.absolute(), chosen.windows, chosen.kills, chosen.history, chosen.seed)
        except NotInstalledError as error:
            print(error, file=sys.stderr)
            return 2
        except SoakError as error:
            print(f"\nthe soak failed: {error}", file=sys.stderr)
            return 1
    print(page.text(found))
    if found.differences:
        print(f"\n{shown(found.differences)}")
    for problem in found.problems:
        print(f"\nfailed: {problem}")
    if chosen.keep:
        keep(chosen.history, page.text(found), page.PAGE)
        keep("not compared", f"{page.excluded()}\n\n{page.bounds()}", page.PAGE)
    return int(bool(found.problems))


def soak(folder: Path, windows: int, kills: int, history: str, seed: int = traffic.SEED) -> Report:
    """Both runs. Raises SoakError and NotInstalledError."""
    steps = plan(windows, seed)
    source, logs = folder / "source", folder / "logs"
    traffic.write(source, windows + AHEAD)
    with ExitStack() as stack:
        server: Postgres | None = None
        if history == "postgresql":
            server = Postgres(binaries())
            stack.callback(server.remove)
            server.start()

        def place(name: str) -> Place:
            url = server.create(name) if server is not None else ""
            return Place(folder / name, logs, source, url, disk_mebibytes=128 + windows // 2)

        undisturbed = run(steps, place("undisturbed"))
        in_use = place("disturbed")
        expected = stages.expected(history)
        disturbed = run(
            steps,
            in_use,
            Disturbance(
                kills=kills,
                troubles=lambda disk: trouble.troubles(in_use.url, disk, server),
                rounds=max(1, windows // _WINDOWS_A_ROUND),
                barriers=undisturbed.barriers,
                expected_stages=expected,
                seed=seed,
            ),
        )
    left_out = [] if disturbed.has_disk else [trouble.FULL]
    return report(
        steps, undisturbed, disturbed, history=history, windows=windows, left_out=left_out, stages=expected,
        is_proven=kills >= 2 * len(expected),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
