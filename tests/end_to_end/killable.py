"""A daemon in a forked process: a start costs a fraction of a second, so it can be killed many times."""

from __future__ import annotations

import multiprocessing
from multiprocessing.process import BaseProcess
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["monitor.service.daemon", "monitor.expectations.suites", "monitor.service.logging"]
)


def run(config: str, output: str) -> None:
    """The daemon of a config, with its output in a file."""
    import os
    import sys

    from monitor.service.daemon import Daemon
    from monitor.service.logging import configure

    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    configure("plain", "warning")
    sys.exit(Daemon(Path(config)).run())


def start(config: Path) -> BaseProcess:
    """The daemon of a config, started from a process that has imported everything already."""
    process = _FORKS.Process(target=run, args=(str(config), str(config.with_name("output.log"))), daemon=True)
    process.start()
    return process
