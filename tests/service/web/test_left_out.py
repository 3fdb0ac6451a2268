"""What a scrape leaves out of a recommender, on its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import httpx

from monitor.history.snapshot import Snapshot
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import serve
from monitor.settings.server import ServerSettings
from tests.service import pictures
from tests.service.prometheus.scrapes import samples

HREF = re.compile(r'<a href="([^"]*RecsysSeriesBudgetReached[^"]*)"')
RUNBOOK = "runbooks/RecsysSeriesBudgetReached"


@contextmanager
def client(snapshot: Snapshot, **settings) -> Iterator[httpx.Client]:
    server = serve(
        ServerSettings(listen="127.0.0.1:0", **settings),
        lambda: snapshot,
        reload=lambda: ReloadOutcome(True),
        not_ready=lambda: "",
        healthy=lambda: True,
    )
    try:
        with httpx.Client(base_url=server.address, timeout=pictures.PATIENCE) as web:
            yield web
    finally:
        server.stop()


def test_the_page_names_the_families_that_the_last_scrape_left_out_and_the_setting() -> None:
    snapshot = replace(pictures.wide(300), recommenders=(pictures.news(), *pictures.wide(300).recommenders))
    with client(snapshot, series_limit=500, export=("*",)) as web:
        scraped = samples(web.get("/metrics").text)
        page = web.get("/recommenders/shop").text
        other = web.get("/recommenders/news").text
        runbook = web.get(f"/{RUNBOOK}")
    dropped = scraped["recsys_series_dropped", frozenset({("recommender", "shop")})]
    assert dropped >= 304, "the slices that are in the picture, and the 300"
    assert f"{dropped:,.0f} series are left out of /metrics" in page
    assert "<code>recsys_slice_coverage_ratio</code>" in page
    assert "<code>server.series_limit</code>" in page
    assert "left out of /metrics" not in other
    assert HREF.findall(page) == [f"../{RUNBOOK}"]  # as it stands there: a browser keeps a double slash
    assert runbook.status_code == 200


def test_a_recommender_alone_has_the_notice_on_the_first_page_and_only_above_the_limit() -> None:
    with client(pictures.wide(300), series_limit=400, export=("*",)) as web:
        web.get("/metrics")
        page = web.get("/").text
        assert "series are left out of /metrics" in page
        assert HREF.findall(page) == [f"./{RUNBOOK}"]
    with client(pictures.wide(300)) as web:
        web.get("/metrics")
        assert "left out of /metrics" not in web.get("/").text


def test_the_runbook_of_the_notice_is_the_teams_own_if_the_config_says_where() -> None:
    with client(pictures.wide(300), series_limit=400, docs_url="https://docs.test/main") as web:
        web.get("/metrics")
        (href,) = HREF.findall(web.get("/").text)
    assert href == "https://docs.test/main/docs/runbooks/RecsysSeriesBudgetReached.md"
