"""The daemon over two thousand windows: does its memory grow? `python -m benchmarks.rest`.

The real daemon catches up on a log of two thousand windows of an hour; its resident memory is read from the
operating system every hundred windows.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from monitor.simulate.demo import write_batch
from monitor.simulate.traffic import Simulator, Traffic

HERE = Path(__file__).parent
LIMIT_MIB, GROWTH_MIB = 400, 20
CONFIG = """\
state: {folder}/state
server: {{listen: "127.0.0.1:{port}"}}
log: {{level: warning}}
recommenders:
  - name: rest
    logs:
      exposures: {{path: {folder}/exposures/*.parquet}}
      feedback: {{path: {folder}/feedback/*.parquet}}
    window: 1h
    every: 1s
    lateness: 0s
    catch_up: {windows}
    metrics: {{history: 1d}}
    rules:
      - pack: lists
      - pack: scores
"""


def main() -> int:
    """Write the log, let the daemon catch up, print its memory; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=2000)
    windows = parser.parse_args().windows
    folder = HERE / "work" / "rest"
    shutil.rmtree(folder, ignore_errors=True)
    write_log(folder, windows)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "config.yaml").write_text(CONFIG.format(folder=folder, port=port, windows=windows + 100))
    command = [sys.executable, "-m", "monitor", "run", "--config", str(folder / "config.yaml")]
    daemon = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        samples = watch(daemon.pid, port, windows)
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(20)
    return report(samples)


def write_log(folder: Path, windows: int) -> None:
    """About two hundred requests an hour, in a file a day."""
    simulator = Simulator(Traffic(), 1)
    rng = np.random.default_rng(1)
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    start = end - timedelta(hours=windows)
    while start < end:
        until = min(start + timedelta(days=1), end)
        write_batch(folder, start, until, rate=0.05, rng=rng, simulator=simulator)
        start = until


def watch(pid: int, port: int, windows: int) -> list[tuple[int, float, float]]:
    """(windows judged, MiB, seconds) every hundred windows, until all are judged and it has rested."""
    began = time.monotonic()
    samples: list[tuple[int, float, float]] = []
    while not samples or samples[-1][0] < windows - 1:
        time.sleep(1)
        try:
            text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        except OSError:
            continue
        judged = sum(float(n) for n in re.findall(r"^recsys_windows_total\{.*\} (\S+)$", text, re.M))
        if judged and (not samples or judged >= samples[-1][0] + 100 or judged >= windows - 1):
            samples.append((int(judged), resident_mib(pid), time.monotonic() - began))
    time.sleep(10)
    samples.append((samples[-1][0], resident_mib(pid), time.monotonic() - began))
    return samples


def resident_mib(pid: int) -> float:
    """The resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def report(samples: list[tuple[int, float, float]]) -> int:
    """Print the table; the second half of the windows must not need more than the first."""
    print("| windows | resident MiB | seconds |\n|--------:|-------------:|--------:|")
    for judged, mib, seconds in samples:
        print(f"| {judged:7,} | {mib:12.0f} | {seconds:7.0f} |")
    half = samples[len(samples) // 2][1]
    rest = samples[-1][1]
    print(f"\nat rest: {rest:.0f} MiB (at most {LIMIT_MIB})")
    print(f"growth over the second half: {rest - half:+.0f} MiB (at most {GROWTH_MIB})")
    return int(rest > LIMIT_MIB or rest - half > GROWTH_MIB)


if __name__ == "__main__":
    sys.exit(main())
