"""`python -m monitor` as a process of its own that does not import the libraries again.

A server process imports them once and forks itself for each command: a start takes a tenth of a second, not
three. Only third parties and what reads no environment when imported is there before the fork.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "tests.forked",
        "rich.progress",
        "typer",
        "monitor.service.daemon",
        "monitor.cli.one_off",
        "monitor.service.logging",
        "monitor.config.init.wizard",
        "monitor.config.look",
        "monitor.rules.suites",
        "monitor.report.judged",
        "monitor.report.table",
        "monitor.simulate.demo",
        "sklearn.ensemble",
    ]
)


class Forked:
    """A started `python -m monitor ARGUMENTS`, used as a `subprocess.Popen` is."""

    def __init__(
        self,
        arguments: Sequence[object],
        *,
        cwd: Path,
        env: Mapping[str, str],
        out: Path,
        err: Path,
        code: str = "",
    ) -> None:
        """`out` and `err` are files to which the output is appended; `code` runs in place of the module."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.arguments = [str(one) for one in arguments]
        given = (self.arguments, str(cwd), dict(env), str(out), str(err), files, code)
        self._process = _FORKS.Process(target=_run, args=given)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("monitor", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_forked(
    *arguments: object, cwd: Path, env: Mapping[str, str] = os.environ, timeout: float = 180, code: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `python -m monitor ARGUMENTS` to its end, with its output in files and not on a terminal.

    `code` runs in place of the module.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        process = Forked(arguments, cwd=cwd, env=env, out=out, err=err, code=code)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        said, noted = (path.read_text("utf-8") if path.exists() else "" for path in (out, err))
        return subprocess.CompletedProcess(process.arguments, code, said, noted)


def _run(
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    out: str,
    err: str,
    files: tuple[int, int],
    code: str,
) -> None:
    """Become the command: its folder, environment, output and limits; then run it."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    for path, number in ((out, 1), (err, 2)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    # New streams: those of the server may not become streams of a terminal or a pipe.
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    errors = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = sys.__stderr__ = errors
    paths = environment.get("PYTHONPATH", "").split(":")
    sys.path[1:1] = [one for one in paths if one and one not in sys.path]
    sys.argv = ["monitor", *arguments]
    try:
        if code:
            exec(code, {"__name__": "__main__"})
        else:
            runpy.run_module("monitor", run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()
