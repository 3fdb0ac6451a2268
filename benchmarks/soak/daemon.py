"""The daemon of a soak: its config, its processes, and a supervisor that starts it again when it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import yaml

from benchmarks.processes import descendants
from benchmarks.soak.stages import FOLDER
from benchmarks.soak.traffic import RECOMMENDERS
from monitor.metrics.catalogue import SPECS

ROOT: Final = Path(__file__).resolve().parents[2]
MEASURED: Final = ("coverage", "novelty", "serendipity", "action_rate")
CATCH_UP: Final = 40
_AGAIN: Final = 0.3  # seconds between the end of the daemon and its next start


def write_config(path: Path, *, logs: Path, state: Path, history: str) -> None:
    """Two recommenders with two processes that judge."""
    recommenders = [_recommender(name, logs / name) for name in RECOMMENDERS]
    config = {
        "server": {"listen": "127.0.0.1:0"},
        "state": str(state),
        # The windows are months old; they and the salt must be the same in both runs.
        "history": {"retention": "36500d", "salt": "0" * 32, **({"url": history} if history else {})},
        "engine": {"threads": 1, "workers": 2},
        "recommenders": recommenders,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config), "utf-8")


def _recommender(name: str, logs: Path) -> dict[str, object]:
    return {
        "name": name,
        "logs": {
            "exposures": {"path": str(logs / "exposures/*.parquet")},
            "feedback": {"path": str(logs / "feedback/*.parquet")},
            "catalog": {"path": str(logs / "catalog.parquet")},
        },
        "window": "1m",
        "every": "1s",
        "lateness": "5s",
        # No window becomes late by the clock, only by its files: so both runs judge the same.
        "max_wait": "36500d",
        "catch_up": CATCH_UP,
        # Enough to rest on the log, on the remembered pairs and on slices; the rest only takes time.
        "metrics": {
            "history": "5m",
            "attribution": "1m",
            "disable": [each for each in SPECS if each not in MEASURED],
        },
        "slices": {"by": ["scene"] if name == RECOMMENDERS[0] else [], "budget": 2},
        "objectives": [{"metric": "coverage", "labels": {"by": "pv"}, "min": 0.999}],
        "health": {"parts": [{"metric": "coverage", "labels": {"by": "pv"}, "zero": 0.9, "one": 1}]},
        "rules": [
            {"pack": "blacklist", "parameters": {"blacklist": str(logs / "blacklist.csv")}},
        ],
    }


class Supervisor:
    """Runs the daemon, and starts it again when it ends: as systemd does.

    Attributes:
        starts: how often it was started.
        exits: how it ended by itself, with the time on the clock and its last words.
    """

    def __init__(self, config: Path, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self.output = folder / "output.log"
        self.stages = folder / "stages"
        self.starts = 0
        self.exits: list[str] = []
        self.kills: set[int] = set()
        self.started_at = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        shutil.rmtree(self.stages, ignore_errors=True)
        self.stages.mkdir(parents=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float = 60) -> int:
        """End the daemon in peace; its exit code."""
        with self._lock:
            self._stopping.set()
            process = self._process
        if process is None:
            return 0
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        self._thread.join(seconds)
        return code

    def close(self) -> None:
        """End everything at once, whatever its state."""
        self._stopping.set()
        pids = self.pids()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for pid in pids[1:]:
            send(pid, signal.SIGKILL)

    def pids(self) -> list[int]:
        """The daemon's process, then those below it; empty while none runs."""
        process = self._process
        if process is None or process.poll() is not None:
            return []
        return [process.pid, *descendants(process.pid)]

    def judges(self) -> list[int]:
        """The processes that judge: those below the daemon that note their stage."""
        return [pid for pid in self.pids()[1:] if (self.stages / str(pid)).exists()]

    def last_words(self, lines: int = 3) -> str:
        text = self.output.read_text(errors="replace") if self.output.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _run(self) -> None:
        command = [sys.executable, "-m", "benchmarks.soak.bootstrap", "run", "--config", str(self._config)]
        environment = os.environ | {FOLDER: str(self.stages), "PYTHONPATH": str(ROOT)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of many starts would compile all modules
        while True:
            with self._lock:
                if self._stopping.is_set():
                    return
                with self.output.open("ab") as output:
                    self._process = subprocess.Popen(
                        command, cwd=ROOT, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                        env=environment,
                    )  # fmt: skip
                self.starts += 1
                self.started_at = time.monotonic()
                pid = self._process.pid
            code = self._process.wait()
            if self._stopping.is_set():
                return
            if pid not in self.kills:
                self.exits.append(f"code {code}: {self.last_words(2)}")
            time.sleep(_AGAIN)


def send(pid: int, number: signal.Signals) -> bool:
    """Send a signal; False if the process is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def freeze(pid: int, seconds: float = 5) -> bool:
    """Stop a process where it is, and wait until it stands; False if it is gone, or does not stop."""
    if not send(pid, signal.SIGSTOP):
        return False
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        state = state_of(pid)
        if state in ("T", "t"):
            return True
        if state in ("", "Z", "X"):
            return False
        time.sleep(0.0005)
    send(pid, signal.SIGCONT)  # it must not stay between stopped and killed
    return False


def state_of(pid: int) -> str:
    """The state of a process, as a letter of /proc; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def wait_until(what: str, look: Callable[[], bool], seconds: float, every: float = 0.1) -> None:
    """Wait for something; SoakError if it does not come."""
    end = time.monotonic() + seconds
    while not look():
        if time.monotonic() > end:
            raise SoakError(f"waited {seconds:g} s, and still not: {what}")
        time.sleep(every)


class SoakError(Exception):
    """The soak found that something is wrong; its message says what."""
