"""The work of one process: a series is read, swept and compared."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.real_traffic import peers, results
from benchmarks.real_traffic.page import Content, Made
from benchmarks.real_traffic.sweep import Sample, sweep
from benchmarks.real_traffic.traffic import SERIES, read


def run(name: str, folder: Path, sample: Sample, python: str | None, made: Made) -> Content:
    """Sweep a series of the folder. `python`: the interpreter of the peers, None to leave out STL."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{text}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    hours = read(SERIES[name], folder).after(sample.skip)
    swept = sweep(SERIES[name], hours, sample, say)
    return results.content(swept, hours, peers.curves(swept, hours, python), made)
