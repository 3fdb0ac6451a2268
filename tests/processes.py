"""Real processes on loopback: free ports, start, stop, and waiting with a deadline."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.forked import Forked, run_forked

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 180  # seconds: only what hangs takes so long, however busy the machine is
T = TypeVar("T")


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, look: Callable[[], T], seconds: float = PATIENCE, every: float = 0.1) -> T:
    """What `look` gives as soon as it is true, or an AssertionError that says what was awaited."""
    end = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < end:
        try:
            last = found = look()
            if found:
                return found
        except (OSError, AssertionError, LookupError, ValueError) as exc:
            last = exc
        time.sleep(every)
    raise AssertionError(f"waited {seconds:g} s in vain for {what}; at last: {last!r}")


def get(url: str, *, data: bytes | None = None, timeout: float = 10) -> tuple[int, str]:
    """Status and body of a GET, or of a POST where there is data."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=timeout) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as exc:
        return exc.code, exc.read().decode()


class Running:
    """A started program; its output goes to files, so that no pipe can fill up."""

    def __init__(self, command: Sequence[str | Path], folder: Path, name: str, **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        self.process = self._start([str(part) for part in command], os.environ | environment)

    def _start(self, command: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes] | Forked:
        with self.out.open("ab") as out, self.err.open("ab") as err:
            return subprocess.Popen(
                command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=ROOT, env=environment
            )

    @property
    def output(self) -> str:
        return self.out.read_text(errors="replace") + self.err.read_text(errors="replace")

    def up(self, url: str, seconds: float = PATIENCE) -> None:
        """Wait until a GET of the URL is answered with 200."""

        def look() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.output}")
            return get(url, timeout=2)[0] == 200

        wait_for(f"{self.name} to answer at {url}", look, seconds)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self, seconds: float) -> int:
        """The exit code, once the process has ended by itself."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{self.name} still runs after {seconds:g} s:\n{self.output[-4000:]}"
            ) from None

    def stop(self, seconds: float = 12) -> int:
        """Ask it to end, and kill it where it does not."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait(seconds)


class RunningMonitor(Running):
    """A started `python -m monitor`; `command` is its arguments, `code` what runs in place of the module."""

    def __init__(self, command: Sequence[str | Path], folder: Path, name: str, code: str = "") -> None:
        self._code = code
        super().__init__(command, folder, name)

    def _start(self, command: list[str], environment: Mapping[str, str]) -> Forked:
        return Forked(command, cwd=ROOT, env=environment, out=self.out, err=self.err, code=self._code)


class Monitor:
    """The daemon of a config that lies in `folder`, on a port of its own."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.path = folder / "config.yaml"
        self.config: dict[str, Any] = {
            "state": "state",
            "engine": {"threads": 1},
            **config,
            "server": {"listen": f"127.0.0.1:{self.port}", **config.get("server", {})},
        }
        self.running: Running | None = None

    def write(self) -> None:
        self.path.write_text(yaml.safe_dump(self.config), "utf-8")

    def start(self, *, wait: bool = True, code: str = "") -> Running:
        """Start it; `code` runs in place of the module `monitor`."""
        self.write()
        self.running = RunningMonitor(["run", "--config", self.path], self.folder, "monitor", code)
        if wait:
            self.running.up(f"{self.url}/-/ready")
        return self.running

    def stop(self) -> None:
        if self.running is not None:
            self.running.stop()

    def reload(self) -> tuple[int, str]:
        self.write()
        return get(f"{self.url}/-/reload", data=b"")

    def page(self, path: str = "/") -> str:
        status, body = get(self.url + path)
        assert status == 200, body
        return body

    def series(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """Every series of one scrape."""
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.page("/metrics"))
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        """The sum of the series of this name that carry these labels; None where there is none."""
        wanted = set(labels.items())
        found = [v for (series, given), v in self.series().items() if series == name and wanted <= given]
        return sum(found) if found else None

    def has(self, name: str, value: float = 1, **labels: str) -> Callable[[], bool]:
        """A look for `wait_for`: whether the series has this value."""
        return lambda: self.value(name, **labels) == value

    def export(self) -> list[dict[str, Any]]:
        """What `history export` prints."""
        done = run_forked("history", "export", "--config", self.path, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def monitor(folder: Path, config: Mapping[str, Any], *, start: bool = True) -> Iterator[Monitor]:
    """A daemon that is stopped when the block is left; its output is printed where the block fails."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Monitor(folder, config)
    try:
        if start:
            made.start()
        yield made
    except BaseException:
        if made.running is not None:
            print(made.running.output[-6000:])
        raise
    finally:
        made.stop()


def exposures(start: datetime, seconds: float, *, lists: int = 10, items: Sequence[str] = ()) -> pd.DataFrame:
    """Lists of two items spread over some seconds; `items` are what the first rows show."""
    count = 2 * lists
    step = timedelta(seconds=seconds) / lists
    naive = start.astimezone(UTC).replace(tzinfo=None)
    shown = [*items, *(f"i{row % 7}" for row in range(len(items), count))]
    return pd.DataFrame(
        {
            "request_id": [f"{naive.isoformat()}-{row // 2}" for row in range(count)],
            "user_id": [f"u{(row // 2) % 5}" for row in range(count)],
            "ts": [naive + (row // 2) * step for row in range(count)],
            "item_id": shown,
            "position": [1 + row % 2 for row in range(count)],
            "score": [0.9 - 0.5 * (row % 2) for row in range(count)],
        }
    )


def land(path: Path, frame: pd.DataFrame) -> Path:
    """Write a file as a careful writer does: readers see the whole of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    frame.to_parquet(part)
    part.replace(path)
    return path


class Webhook:
    """A receiver of an Alertmanager's notifications: `alerts` is every alert that came, in order."""

    def __init__(self) -> None:
        received: list[dict[str, Any]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                for alert in json.loads(body)["alerts"]:
                    received.append({**alert, "path": self.path, "received": time.monotonic()})
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.alerts = received
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
