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

ALL, FEW, CATALOG, HISTORY = "lists.parquet", "few_lists.parquet", "catalog.parquet", "history.parquet"
CATEGORIES = 20

Run = Callable[[Path, str, Sequence[str]], dict[str, float]]


def main(run: Run) -> None:
    """Time each set of metrics that standard input names; print seconds, CPU seconds and values as JSON.

    `run(folder, file, metrics)` reads `file` (and what else it needs of the folder) and gives the values. The
    imports are made before; of several repetitions the fastest counts.
    """
    asked = json.load(sys.stdin)
    found = {}
    for name, (file, metrics) in asked["sets"].items():
        seconds, used, values = [], [], {}
        for _ in range(asked["repeat"]):
            gc.collect()
            began, cpu = time.perf_counter(), time.process_time()
            values = run(Path(asked["folder"]), file, metrics)
            seconds.append(time.perf_counter() - began)
            used.append(time.process_time() - cpu)
        found[name] = {"seconds": min(seconds), "cpu": min(used), "values": values}
    sys.stdout.write(json.dumps(found))
