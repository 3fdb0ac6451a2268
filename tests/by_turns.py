"""Slow tests may take turns: a run takes one part of them, and all parts together take all.

`make test` runs every test. `make test PART=2/3` leaves out two thirds of the slow tests of the files below,
unless one of the last commits changed the file. See docs/decisions/0074.
"""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path
from typing import Final

RECENT: Final = 15
"""A file that one of so many last commits changed runs in every part."""
TAKE_TURNS: Final = (
    "tests/alerts/", "tests/anomalies/", "tests/benchmarks/", "tests/cli/", "tests/config/",
    "tests/end_to_end/test_takeover.py", "tests/examples/", "tests/experiments/", "tests/forecast/",
    "tests/models/", "tests/off_policy/", "tests/python/", "tests/replay/", "tests/report/",
    "tests/simulate/", "tests/spark/", "tests/statistics/", "tests/survey/", "tests/window/",
)  # fmt: skip
"""Folders and files."""
EVERY_TURN: Final = (
    "tests/cli/test_check.py", "tests/cli/test_commands.py",
    "tests/spark/test_small_windows_on_spark.py",
)  # fmt: skip
"""Files of these that run in every part all the same."""
LONGEST: Final = (
    "tests/window/test_together.py",
    "tests/window/test_slices_alone.py",
    "tests/window/test_earlier.py",
    "tests/spark/test_cluster.py",
    "tests/spark/test_spark_ends.py",
    "tests/spark/test_check_on_spark.py",
    "tests/anomalies/test_slice_shares.py",
    "tests/config/init/test_init.py",
    "tests/end_to_end/test_takeover.py",
    "tests/models/diagnosis/test_worlds.py",
    "tests/anomalies/test_small_counts.py",
    "tests/anomalies/test_clock_change.py",
    "tests/anomalies/test_lasting_anomalies.py",
    "tests/benchmarks/test_soak.py",
    "tests/benchmarks/test_scoreboard_rules.py",
    "tests/alerts/test_alert_rules.py",
    "tests/cli/test_output.py",
    "tests/cli/test_replay.py",
    "tests/spark/test_metrics_on_spark.py",
    "tests/anomalies/test_look_back.py",
    "tests/anomalies/test_drift_check.py",
    "tests/config/init/test_init_faults.py",
    "tests/cli/test_platform.py",
    "tests/config/init/test_init_actions.py",
    "tests/anomalies/test_follows_requests.py",
    "tests/cli/test_diagnose.py",
    "tests/anomalies/test_band_state.py",
    "tests/benchmarks/test_scoreboard_end_to_end.py",
    "tests/anomalies/test_first_day_of_a_season.py",
    "tests/survey/test_simulated.py",
)
"""The longest files, the longest first: they begin first, and each part has as many of them."""


def takes_turns(path: str) -> bool:
    """Whether the slow tests of a file take turns.

    >>> takes_turns("tests/window/test_together.py"), takes_turns("tests/metrics/test_auc.py")
    (True, False)
    """
    return path.startswith(TAKE_TURNS) and path not in EVERY_TURN


def is_in(path: str, part: str) -> bool:
    """Whether a file that takes turns is in a part.

    Args:
        path: of the file, from the root of the checkout.
        part: number/parts. The number may be larger than the parts: 7/3 is 1/3.

    >>> [number for number in (1, 2, 3) if is_in("tests/window/test_earlier.py", f"{number}/3")]
    [3]

    Raises ValueError where the part is not written so.
    """
    number, slash, parts = part.partition("/")
    if not (slash and number.isdecimal() and parts.isdecimal() and int(parts)):
        raise ValueError(f"a part is written as number/parts, such as 2/3, and not {part!r}")
    turn = LONGEST.index(path) + 1 if path in LONGEST else zlib.crc32(path.encode())
    return (turn - int(number)) % int(parts) == 0


def changed_recently(root: Path) -> frozenset[str]:
    """The files that the last commits changed.

    Raises CalledProcessError where the folder is no checkout of git.
    """
    command = ["git", "log", f"-{RECENT}", "--name-only", "--pretty=format:"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return frozenset(found.stdout.split("\n"))
