"""What the tools of `make bench-peers` share: the names of the files, and how each is timed.

Imported in the environments of the peers too, so it needs nothing but Python.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

LISTS, CATALOG, HISTORY = "lists.parquet", "catalog.parquet", "history.parquet"
CATEGORIES = 20

_LONG = 60.0  # seconds from which on one repetition is enough

Run = Callable[[Path, Sequence[str]], dict[str, float]]


def main(run: Run) -> None:
    """Time each set of metrics that standard input names; print seconds, CPU seconds and values as JSON.

    `run(folder, metrics)` reads what it needs of the folder and gives the values. The imports are made
    before; of several repetitions the fastest counts.
    """
    asked = json.load(sys.stdin)
    found = {}
    for name, metrics in asked["sets"].items():
        seconds, used, values = [], [], {}
        for _ in range(asked["repeat"]):
            gc.collect()
            began, cpu = time.perf_counter(), time.process_time()
            values = run(Path(asked["folder"]), metrics)
            seconds.append(time.perf_counter() - began)
            used.append(time.process_time() - cpu)
            if seconds[-1] > _LONG:
                break
        found[name] = {"seconds": min(seconds), "cpu": min(used), "values": values}
    sys.stdout.write(json.dumps(found))
