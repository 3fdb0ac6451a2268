"""Long files of tests, which may take turns: a run takes one part of them, and all parts together take all.

`make test` runs every file. `make test PART=2/3` leaves out two thirds of the files below, unless one of the
last commits changed them. See docs/decisions/0074.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

RECENT = 30
"""A file that one of so many last commits changed runs in every part."""
BY_TURNS = (
    # The longest first: the others then keep all workers busy until the end.
    "tests/window/test_together.py",
    "tests/window/test_slices_alone.py",
    "tests/window/test_earlier.py",
    "tests/spark/test_cluster.py",
    "tests/spark/test_spark_ends.py",
    "tests/spark/test_metrics_on_spark.py",
    "tests/models/diagnosis/test_worlds.py",
    "tests/end_to_end/test_takeover.py",
    "tests/anomalies/test_slice_shares.py",
    "tests/benchmarks/test_soak.py",
    "tests/benchmarks/test_scoreboard_rules.py",
    "tests/anomalies/test_small_counts.py",
    "tests/anomalies/test_lasting_anomalies.py",
    "tests/anomalies/test_clock_change.py",
    "tests/anomalies/test_look_back.py",
    "tests/anomalies/test_drift_check.py",
    "tests/anomalies/test_first_day_of_a_season.py",
    "tests/anomalies/test_anomalies_over_weeks.py",
    "tests/benchmarks/test_scoreboard_end_to_end.py",
    "tests/benchmarks/test_scoreboard_workers.py",
    "tests/survey/test_simulated.py",
)


def left_out(part: str, recent: frozenset[str]) -> tuple[str, ...]:
    """The long files that a part leaves out.

    Args:
        part: number/parts. The number may be larger than the parts: 7/3 is 1/3.
        recent: files that run in any case.

    >>> runs = set(BY_TURNS) - set(left_out("2/3", frozenset()))
    >>> [BY_TURNS.index(one) for one in sorted(runs, key=BY_TURNS.index)][:3]
    [1, 4, 7]
    >>> left_out("1/1", frozenset())
    ()

    Raises ValueError where the part is not written so.
    """
    number, slash, parts = part.partition("/")
    if not (slash and number.isdecimal() and parts.isdecimal() and int(parts)):
        raise ValueError(f"a part is written as number/parts, such as 2/3, and not {part!r}")
    turn = int(number) % int(parts)
    others = (one for place, one in enumerate(BY_TURNS, start=1) if place % int(parts) != turn)
    return tuple(one for one in others if one not in recent)


def changed_recently(root: Path) -> frozenset[str]:
    """The files that the last commits changed; those of a checkout without git are not known: all of them."""
    command = ["git", "log", f"-{RECENT}", "--name-only", "--pretty=format:"]
    try:
        found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return frozenset(BY_TURNS)
    return frozenset(found.stdout.split("\n"))
