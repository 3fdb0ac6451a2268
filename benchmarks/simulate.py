"""How long a simulated day takes, beside writing it down: `python -m benchmarks.simulate`.

The logs of a day of about a million exposures are made hour by hour, by one process, and written as Parquet
in the same run: the ratio of the two is what can be compared from machine to machine.
"""

from __future__ import annotations

import argparse
import io
import time
from datetime import timedelta

import pyarrow.parquet as pq

from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, World


def table(world: World, hours: int) -> str:
    """Make the hours of the world's second day, write them to memory; what is printed of it."""
    simulation = Simulation(world)
    begin = simulation.world.start + timedelta(days=1)
    simulation.files(begin)  # what is made once
    made = written = exposures = 0.0
    for number in range(hours):
        began = time.perf_counter()
        files = simulation.files(begin + number * HOUR)
        made += time.perf_counter() - began
        began = time.perf_counter()
        for one in files:
            pq.write_table(one.table, io.BytesIO())
            exposures += one.table.num_rows * (one.log == "exposures")
        written += time.perf_counter() - began
    return "\n".join(
        [
            "| hours | exposures | made in | written in | made / written |",
            "|---:|---:|---:|---:|---:|",
            f"| {hours} | {exposures:,.0f} | {made:.2f} s | {written:.2f} s | {made / written:.1f} |",
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--hours", type=int, default=24)
    print(table(World(), parser.parse_args().hours))
