"""No output of any command, and nothing that is kept, shows a secret that came from the environment."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from tests.processes import ROOT, Monitor, Running, exposures, get, land, monitor, wait_for

SECRETS = {
    "S3_KEY": "AKIA-of-the-environment",
    "S3_SECRET": "secret of the environment / 'quoted' & <marked>",
    "S3_TOKEN": "token-of-the-environment",
    "DB_PASSWORD": "password%20of-the-environment",
}
AT = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=5)
LISTED = """
<ListBucketResult><Name>listed</Name><Prefix></Prefix><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys>
<IsTruncated>false</IsTruncated>
<Contents><Key>1.parquet</Key><Size>500</Size><ETag>&quot;1&quot;</ETag><StorageClass>STANDARD</StorageClass>
<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>""".strip()


class Repeating(http.server.BaseHTTPRequestHandler):
    """An object store that refuses everything but one listing, and repeats every secret in its answer."""

    def do_GET(self) -> None:
        if self.path.startswith("/listed?"):
            return self._answer(200, LISTED)
        said = [f"{name} {value}" for name, value in SECRETS.items() if name.startswith("S3_")]
        said.append(f"you sent {self.headers['Authorization']} {self.headers['X-Amz-Security-Token']}")
        text = "; ".join(said).replace("&", "&amp;").replace("<", "&lt;")
        return self._answer(403, f"<Error><Code>AccessDenied</Code><Message>{text}</Message></Error>")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Repeating)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def recommender(name: str, path: str, endpoint: str) -> dict[str, Any]:
    options = {
        "key": "${S3_KEY}", "secret": "${S3_SECRET}", "token": "${S3_TOKEN}",
        "client_kwargs": {"endpoint_url": endpoint, "region_name": "us-east-1"},
    }  # fmt: skip
    log = {"path": path, "storage_options": options}
    return {"name": name, "logs": {"exposures": log}, "window": "1m", "every": "1s"}


def refused(endpoint: str) -> list[dict[str, Any]]:
    """One log that cannot be listed, one whose only file cannot be read, one with a bad second log."""
    return [
        recommender("unlisted", "s3://denied/*.parquet", endpoint),
        recommender("unread", "s3://listed/*.parquet", endpoint),
        {
            "name": "half",
            "window": "1m",
            "logs": {
                "exposures": {"path": "logs/*.parquet"},
                "catalog": recommender("x", "s3://listed/*.parquet", endpoint)["logs"]["exposures"],
            },
        },
    ]


def config_in(folder: Path, endpoint: str) -> dict[str, Any]:
    land(folder / "logs" / "1.parquet", exposures(AT, 50))
    return {"recommenders": refused(endpoint), "log": {"level": "debug"}}


def shows(text: str) -> list[str]:
    """The secrets that a text shows."""
    parts = {name: (value[:12], unquote(value)[:12]) for name, value in SECRETS.items()}
    return [name for name, either in parts.items() if any(part in text for part in either)]


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "monitor", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "RECSYS_MONITOR_TRACEBACK": "1"},
    )  # fmt: skip


def kept_in(state: Path) -> str:
    return "".join(one.read_bytes().decode("latin-1") for one in state.rglob("*") if one.is_file())


@pytest.mark.parametrize("kind", ["plain", "json"])
def test_the_daemon_shows_and_keeps_no_secret(tmp_path: Path, endpoint: str, kind: str) -> None:
    config = config_in(tmp_path, endpoint)
    config["log"]["format"] = kind
    with monitor(tmp_path, config) as daemon:
        assert isinstance(daemon.running, Running)
        names = [one["name"] for one in config["recommenders"]]
        for name in names:
            wait_for(
                f"a run of {name}",
                lambda name=name: daemon.value("recsys_scheduler_runs_total", recommender=name, outcome="ok"),
            )
        pages = [daemon.page("/"), daemon.page("/metrics")]
        pages += [daemon.page(f"/recommenders/{name}") for name in names]
        assert "S3_KEY ${S3_KEY}" in pages[0] + pages[2]
        pages.append(get(f"{daemon.url}/-/reload", data=b"")[1])
    assert shows("".join(pages)) == []
    assert shows(daemon.running.output) == []
    assert shows(kept_in(tmp_path / "state")) == []


def test_the_commands_show_no_secret(tmp_path: Path, endpoint: str) -> None:
    made = Monitor(tmp_path, config_in(tmp_path, endpoint))
    made.write()
    span = ["--from", f"{AT:%Y-%m-%dT%H:%M:%SZ}", "--to", f"{AT + timedelta(minutes=2):%Y-%m-%dT%H:%M:%SZ}"]
    for arguments in (
        ["validate", "--format", "json"], ["check", "--format", "json", "--all"],
        ["backfill", *span], ["history", "export"],
    ):  # fmt: skip
        done = command(tmp_path, *arguments, "--config", "config.yaml")
        assert shows(done.stdout + done.stderr) == [], arguments
        if arguments[0] in ("validate", "check"):
            assert "S3_KEY ${S3_KEY}" in done.stdout + done.stderr
    assert shows(kept_in(tmp_path / "state")) == []


@pytest.mark.parametrize("arguments", [["run"], ["history", "export"]])
def test_a_history_that_cannot_be_reached_shows_no_password(tmp_path: Path, arguments: list[str]) -> None:
    land(tmp_path / "logs" / "1.parquet", exposures(datetime(2026, 1, 1, tzinfo=UTC), 50))
    config = {
        "history": {"url": "postgresql://me:${DB_PASSWORD}@127.0.0.1:1/history"},
        "recommenders": [{"name": "shop", "logs": {"exposures": {"path": "logs/*.parquet"}}}],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    done = command(tmp_path, *arguments, "--config", "config.yaml")
    assert done.returncode == 2
    assert "the history store cannot be opened or reached" in done.stderr
    assert shows(done.stdout + done.stderr) == []
