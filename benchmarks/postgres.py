"""A real PostgreSQL server that can be stopped and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

PASSWORD = "kept-to-itself"


class NotInstalledError(Exception):
    """PostgreSQL is not on this machine; the message says what to install."""


class PostgresFailedError(Exception):
    """The server did not start; the message has its log."""


def binaries() -> Path:
    """The folder of the programs of PostgreSQL. Raises NotInstalledError."""
    found = shutil.which("initdb")
    places = (
        [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    for place in places:
        if (place / "postgres").exists():
            return place
    raise NotInstalledError(
        "PostgreSQL's initdb and postgres are not installed (Debian: apt-get install postgresql)"
    )


class Postgres:
    """A server on a free loopback port; `url` is without a database. PostgreSQL refuses to run as root."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._who: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
        self._folder = Path(tempfile.mkdtemp(prefix="recsys-monitor-postgres-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        self._server: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://monitor:{PASSWORD}@127.0.0.1:{self._port}"
        password = self._folder / "password"
        password.write_text(PASSWORD)
        if self._who:
            shutil.chown(self._folder, **self._who)
            shutil.chown(password, **self._who)
        subprocess.run(
            [binaries / "initdb", "-D", self._folder / "data", "-U", "monitor", "-A", "scram-sha-256",
             "--pwfile", password, "-E", "UTF8", "--locale", "C", "--no-sync"],
            check=True, capture_output=True, cwd=self._folder, **self._who,
        )  # fmt: skip

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._folder / "data", "-h", "127.0.0.1",
                 "-p", str(self._port), "-k", self._folder, "-c", "fsync=off", "-c", "timezone=Asia/Tokyo"],
                stdout=log, stderr=log, cwd=self._folder, **self._who,
            )  # fmt: skip
        for _ in range(150):
            if self._server.poll() is not None:
                break
            try:
                psycopg.connect(f"{self.url}/postgres", connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.2)
        log_text = (self._folder / "log").read_text(errors="replace")
        raise PostgresFailedError(f"PostgreSQL did not start: {log_text}")

    def create(self, database: str) -> str:
        """Make a database; its URL."""
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}"'.encode())
        return f"{self.url}/{database}"

    def stop(self) -> None:
        """Stop it as an administrator does who does not wait for the clients to leave."""
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(30)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
