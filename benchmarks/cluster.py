"""A standalone Spark cluster on loopback: a master and workers, each a Java process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_STARTS = 120.0
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@dataclass(frozen=True)
class Cluster:
    """Its URL, and the processes of its workers."""

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Workers of one core and Spark's default memory. Their Python is this one."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, main: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        command = [str(home / "bin" / "spark-class"), main, "--host", "127.0.0.1", "--webui-port", "0"]
        with log.open("wb") as output:
            started.append(
                subprocess.Popen([*command, *arguments], stdout=output, stderr=output, env=environment)
            )
        return log

    try:
        log = start("master", _MASTER, "--port", "0")
        url = _found(log, r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            place = folder / f"worker-{number}"
            log = start(place.name, _WORKER, "--cores", "1", "--memory", "1g", "--work-dir", str(place), url)
            _found(log, r"Successfully registered with master (\S+)")
        yield Cluster(url, tuple(started[1:]))
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def _found(log: Path, pattern: str) -> str:
    """What a process has logged."""
    end = time.monotonic() + _STARTS
    while time.monotonic() < end:
        if match := re.search(pattern, log.read_text(errors="replace")):
            return match[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} has no {pattern}: {log.read_text(errors='replace')[-2000:]}")
