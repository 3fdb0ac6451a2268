"""From what the check of bands wrote into a real history to what the pages say of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from monitor.anomalies.band_check import NAME, BandCheck
from monitor.anomalies.causes import CAUSES
from monitor.history.read_snapshot import read_snapshot
from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from monitor.report.anomaly import anomaly_page
from monitor.report.page import recommender_page
from monitor.settings.bands import BandSettings
from tests.anomalies.banded import SHOP, changed, hour, judge, store_hour, usual_hour
from tests.service.web.test_app import client

LAST = 219
NOW = hour(LAST).end + timedelta(minutes=5)
BROKEN = {("failure", ""): 0.31, ("failure", "search"): 0.93, ("volume", "search"): None}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    """Nine days of sound hours; in the last two hours lists fail, and one scene has no requests at all."""
    check = BandCheck(SHOP, NAME, BandSettings(least=24))
    with Store.open(tmp_path_factory.mktemp("history") / "history.db") as store:
        for number in range(LAST + 1):
            results = usual_hour(number)
            store_hour(store, number, changed(results, BROKEN) if number > LAST - 2 else results)
            if number > LAST - 6:
                judge(store, check, number)
        yield read_snapshot(store, [SHOP], NOW)


def test_every_measured_series_is_found_beside_its_band(snapshot: Snapshot):
    page = recommender_page(snapshot, SHOP, NOW)
    assert page is not None
    rows = [row for group in page.recommender.metrics for row in group.rows]
    rows += [row for group in page.recommender.slices for row in group.rows]
    assert len(rows) == 6
    for row in rows:
        assert row.band is not None
        assert row.band.lacking == ""
        assert re.fullmatch(r".+ to .+", row.band.between)
        assert row.spark is not None
        (area,), (line,) = row.spark.bands, row.spark.expected
        assert len(area.split(" ")) == 2 * len(line.split(" ")) > 4
    off = {(row.name, row.note) for row in rows if row.band and row.band.verdict.key == "violated"}
    assert off == {("pv", ""), ("search", "failure pv")}


def test_the_page_lists_only_the_found_causes_with_their_series(snapshot: Snapshot):
    page = recommender_page(snapshot, SHOP, NOW)
    assert page is not None
    shown = page.recommender.anomalies
    assert shown is not None
    assert {row.name for row in shown.found} == {"scene lost", "lists empty"}
    assert page.recommender.verdict.key == "violated"
    assert page.recommender.summary == "2 anomalies"
    empty = anomaly_page(snapshot, SHOP, "lists_empty", NOW)
    assert empty is not None
    assert {(one.name, one.slice) for one in empty.series} == {
        ("failure by pv", "scene = search"),
        ("failure by pv", ""),
    }
    assert all(one.spark is not None and one.source.startswith("from ") for one in empty.series)
    assert empty.row.detail.startswith(CAUSES["lists_empty"])
    assert empty.means == ""


def test_a_lost_slice_has_a_row_although_it_is_no_longer_measured(snapshot: Snapshot):
    found = anomaly_page(snapshot, SHOP, "scene_lost", NOW)
    assert found is not None
    (one,) = found.series
    assert (one.name, one.slice, one.measured, one.spark) == (
        "volume by requests",
        "scene = search",
        "0",
        None,
    )
    assert one.deviation.endswith("sd below")
    assert one.source.startswith("from ")


def test_the_pages_are_served(snapshot: Snapshot):
    with client(snapshot) as web:
        answers = [
            web.get(path) for path in ("/", "/recommenders/shop", "/recommenders/shop/anomalies/scene_lost")
        ]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert "scene = search" in answers[2].text
