"""The command `demo`, without its monitor: when its traffic begins and ends."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import typer

from monitor.cli import app
from monitor.service.web.server import ServeError
from monitor.simulate import demo

ANYWHERE = "127.0.0.1:0"


@pytest.fixture(autouse=True)
def _no_monitor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_serve", lambda _: 0)
    monkeypatch.setenv("RECSYS_LISTEN", ANYWHERE)  # the command sets it


def test_the_traffic_ends_before_the_command_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Event()

    def live(_: Path, stop: Event, **__: Any) -> None:
        stop.wait()
        time.sleep(0.2)  # the last batch is being written
        ended.set()

    monkeypatch.setattr(demo, "live", live)
    with pytest.raises(SystemExit) as exited:
        app.demo(tmp_path, ANYWHERE, ANYWHERE)
    assert exited.value.code == 0
    assert ended.is_set()


def test_the_live_traffic_begins_where_the_history_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[datetime | None] = []
    monkeypatch.setattr(demo, "live", lambda *_, start=None: begun.append(start))
    with pytest.raises(SystemExit):
        app.demo(tmp_path, ANYWHERE, ANYWHERE)
    oldest = min((tmp_path / "exposures").iterdir()).name
    history = datetime.strptime(f"{oldest.removesuffix('.parquet')}+0000", "%Y%m%dT%H%M%S.%f%z")
    assert begun == [history + timedelta(minutes=3)]


def test_an_address_in_use_names_the_option_that_chooses_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve(_: Path) -> int:
        raise ServeError("cannot listen on 127.0.0.1:9108: in use")

    monkeypatch.setattr(app, "_serve", serve)
    with pytest.raises(typer.BadParameter, match="cannot listen on 127") as refused:
        app.demo(tmp_path, ANYWHERE, ANYWHERE)
    assert refused.value.param_hint == "--listen"
