"""A time zone of the bands that seems wrong: from the history to the page."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.report.page import recommender_page
from monitor.service.publisher import Running, SnapshotPublisher
from monitor.service.tally import Tally
from monitor.service.watch import Watch
from monitor.settings.recommender import RecommenderSettings
from tests.anomalies.test_clock_change import day, store_traffic
from tests.processes import exposures, land
from tests.service import pictures
from tests.service.pictured_bands import feeds
from tests.service.web.test_app import client

LAST = day("2026-10-30")


def state_of(folder: Path, store: Store, runtime: Runtime, **bands: object) -> RecommenderState:
    """The state of a recommender whose users are in Berlin, after a turn."""
    land(folder / "logs/1.parquet", exposures(LAST, 600, lists=4))
    given = {"name": "shop", "logs": {"exposures": {"path": str(folder / "logs/*.parquet")}}, "bands": bands}
    watch = Watch(RecommenderSettings.model_validate(given), (), store, folder / "state", "salt")
    now = LAST + timedelta(minutes=15)
    while watch.turn(runtime, now):
        pass
    running = Running(("shop",), {"shop": watch}, {}, now)
    (state,) = SnapshotPublisher(store, Tally(store), running, lambda: now).current().recommenders
    return state


def test_the_page_says_that_the_zone_seems_wrong(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    store_traffic(store, "Europe/Berlin", day("2026-10-12"), LAST)
    assert "Set `bands.timezone`" in state_of(tmp_path, store, runtime).clock_change
    assert state_of(tmp_path, store, runtime, timezone="Europe/Berlin").clock_change == ""


def test_the_note_stands_beside_the_anomalies_in_full_and_is_never_markup() -> None:
    note = "moved <b>by an hour</b> " + "x" * 400 + " end"
    state = replace(feeds(), clock_change=note)
    page = recommender_page(Snapshot(pictures.NOW, (state,)), state.name, pictures.NOW)
    assert page is not None
    assert page.recommender.anomalies is not None
    assert page.recommender.anomalies.clock_change == note
    with client(Snapshot(pictures.NOW, (state,))) as web:
        shown = web.get(f"/recommenders/{state.name}/sections/anomalies").text
    assert "moved &lt;b&gt;by an hour&lt;/b&gt;" in shown
    assert "<b>" not in shown


def test_without_a_note_there_is_no_empty_box() -> None:
    with client(Snapshot(pictures.NOW, (feeds(),))) as web:
        assert "notice is-late" not in web.get("/recommenders/feeds/sections/anomalies").text
