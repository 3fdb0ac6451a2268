"""When each part was last judged without an error, and when each log was last read without one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from monitor.service.daemon import Daemon
from monitor.service.prometheus.exporter import Exporter
from tests.processes import exposures, land
from tests.service.prometheus.scrapes import samples

HOUR = timedelta(hours=1)
JUDGED, SCANNED = "recsys_last_success_timestamp_seconds", "recsys_log_last_scan_timestamp_seconds"


class Shop:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 12 * HOUR
        self.now = self.start
        shop = {
            "name": "shop",
            "logs": {
                "exposures": {"path": "exposures/*.parquet"},
                "feedback": {"path": "feedback/*.parquet"},
            },
            "metrics": {"attribution": "1m"},
            "rules": [{"pack": "blacklist", "parameters": {"blacklist": "blacklist.csv"}}],
        }
        self.blacklist = folder / "blacklist.csv"
        self.blacklist.write_text("item_id\nnone\n")
        config = {"state": str(folder / "state"), "recommenders": [shop]}
        (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
        self.open()

    def open(self) -> None:
        self.daemon = Daemon(self.folder / "config.yaml", clock=lambda: self.now)

    def hour(self, number: int) -> None:
        """One more hour of both logs, and a turn ten minutes later, when the hour before is complete."""
        frame = exposures(self.start + number * HOUR, 3600)
        land(self.folder / f"exposures/{number}.parquet", frame)
        land(self.folder / f"feedback/{number}.parquet", frame.assign(event="click"))
        self.turn(number * 60 + 70)

    def turn(self, minute: int) -> None:
        self.now = self.start + timedelta(minutes=minute)
        self.daemon.turn("shop")

    def times(self, family: str) -> dict[str, float]:
        """Label -> minutes since the start."""
        scraped = Exporter(
            self.daemon.publisher.current, version="1", url="u", clock=lambda: self.now
        ).scrape()
        return {
            value: (at - self.start.timestamp()) / 60
            for (name, labels), at in samples(scraped[0].decode()).items()
            if name == family
            for label, value in labels
            if label != "recommender"
        }


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.daemon.close()


def test_each_part_says_when_it_was_last_judged_and_a_restart_does_not_forget_it(shop: Shop) -> None:
    assert shop.times(JUDGED) == {}, "never, which is not now"
    shop.hour(0)
    shop.hour(1)
    assert shop.times(JUDGED) == {"exposures": 130}, "the actions of the first hour may still come"
    shop.hour(2)
    assert shop.times(JUDGED) == {"exposures": 190, "feedback": 190}
    shop.daemon.close()
    shop.open()
    assert shop.times(JUDGED) == {"exposures": 190, "feedback": 190}
    assert shop.times(SCANNED) == {}, "this process has not looked yet"


def test_a_rule_that_ends_in_an_error_leaves_the_time_of_its_part_as_it_was(shop: Shop) -> None:
    for hour in range(3):
        shop.hour(hour)
    shop.blacklist.unlink()
    shop.hour(3)
    assert shop.times(JUDGED) == {"exposures": 190, "feedback": 250}
    shop.blacklist.write_text("item_id\nnone\n")
    shop.hour(4)
    assert shop.times(JUDGED) == {"exposures": 310, "feedback": 310}


def test_a_log_that_cannot_be_listed_keeps_the_time_of_its_last_scan(shop: Shop) -> None:
    shop.hour(0)
    assert shop.times(SCANNED) == {"exposures": 70, "feedback": 70}
    (shop.folder / "feedback").rename(shop.folder / "away")
    (shop.folder / "feedback").write_text("no folder")
    shop.turn(80)
    assert shop.times(SCANNED) == {"exposures": 80, "feedback": 70}
    (shop.folder / "feedback").unlink()
    (shop.folder / "away").rename(shop.folder / "feedback")
    shop.turn(90)
    assert shop.times(SCANNED) == {"exposures": 90, "feedback": 90}
