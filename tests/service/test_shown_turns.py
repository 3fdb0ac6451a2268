"""What of a turn is read from the history again: results only if some were recorded, and not after each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.history.errors import StoreError
from monitor.service import daemon as service
from monitor.service.daemon import Daemon
from tests.processes import exposures, land

HOUR = timedelta(hours=1)
START = datetime(2026, 3, 9, tzinfo=UTC)


class Shop:
    """A daemon without a schedule; it notes whose results, and whose logs, are read."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.now = folder, START
        path = folder / "config.yaml"
        recommenders = [{"name": "shop", "logs": {"exposures": {"path": "exposures/*.parquet"}}}]
        path.write_text(
            yaml.safe_dump({"state": str(folder / "state"), "recommenders": recommenders}), "utf-8"
        )
        self.daemon = Daemon(path, clock=lambda: self.now)
        self.read: list[tuple[Collection[str] | None, Collection[str]]] = []
        self.written: list[Collection[str] | None] = []
        publish = self.daemon.publisher.publish

        def noted(**asked: Any) -> None:
            self.read.append((asked.get("of"), asked.get("logs_of", ())))
            self.written.append(asked.get("written"))
            publish(**asked)

        monkeypatch.setattr(self.daemon.publisher, "publish", noted)

    def land(self, hours: int) -> None:
        for hour in range(hours):
            land(self.folder / f"exposures/{hour}.parquet", exposures(START + hour * HOUR, 3600))

    def turn(self, minutes: int) -> None:
        self.read.clear()
        self.written.clear()
        self.now = START + timedelta(minutes=minutes)
        self.daemon.turn("shop")

    @property
    def results_read(self) -> int:
        return sum(of is None or "shop" in of for of, _ in self.read)

    def shown(self) -> dict[str, Any]:
        (state,) = self.daemon.publisher.current().recommenders
        return {
            "until": state.last_window and state.last_window.end,
            "logs": {one.log: one.watermark for one in state.logs},
            "last_run": state.last_run,
        }


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    made = Shop(tmp_path, monkeypatch)
    with closing(made.daemon):
        yield made


def test_a_turn_that_judges_no_window_reads_no_results_and_shows_what_it_found(shop: Shop) -> None:
    shop.land(1)
    shop.turn(30)  # the log ends before the end of its window
    assert shop.results_read == 0
    assert shop.shown()["logs"]["exposures"] is not None, "a new watermark is shown"
    shop.turn(31)
    assert shop.results_read == 0
    assert shop.shown()["last_run"] == START + timedelta(minutes=31)


def test_windows_of_one_turn_are_read_together(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.land(4)
    monkeypatch.setattr(service, "SHOWN_EVERY", 1e6)
    shop.turn(4 * 60 + 10)
    assert shop.results_read == 1
    (written,) = [one for one in shop.written if one is not None]
    assert {"exposure", "rules"} <= set(written)
    assert shop.shown()["until"] > START + HOUR


def test_a_long_turn_shows_its_windows_meanwhile(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.land(4)
    monkeypatch.setattr(service, "SHOWN_EVERY", 0.0)
    shop.turn(4 * 60 + 10)
    assert shop.results_read >= 3
    assert shop.read[-1] == ((), ["shop"]), "all was shown before the end"


def test_after_a_failed_turn_results_are_read_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> bool:
        raise StoreError("the connection broke: was it written?")

    shop.land(1)
    monkeypatch.setattr(shop.daemon._local, "turn", fails)
    shop.turn(70)
    assert shop.results_read == 1
