"""The health score on the page and in the table of `check`: one line, and why."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from monitor.core.results import Status
from monitor.history.snapshot import Snapshot
from monitor.report.judged import Judged
from monitor.report.page import recommender_page
from monitor.report.table import print_table
from tests.service import pictures
from tests.service.made import HOSTILE, LAST, metric, past, series
from tests.service.web.test_app import client

SCORE = metric("health_score", value=0.625, samples=2, detail="without recall by=macro k=10 (no data)")
PARTS = (
    metric(
        "health_part", labels={"part": HOSTILE}, value=1.0, detail="gini is 0.4; worth 0 at 0.9, 1 at 0.5"
    ),
    metric(
        "health_part", labels={"part": "lists"}, value=0.25, lower=0.2, upper=0.3, detail="coverage is 0.85"
    ),
    metric("health_part", status=Status.NO_DATA, labels={"part": "recall"}, detail="nobody acted"),
)


@pytest.fixture
def snapshot() -> Snapshot:
    points = past([0.9, 0.8, None, 0.625])
    own = (
        series(SCORE, recommender="news", check="health", points=points),
        *(series(part, recommender="news", check="health") for part in PARTS),
    )
    news = pictures.news()
    return replace(pictures.full(), recommenders=(replace(news, series=(*news.series, *own)),))


def test_the_page_has_one_line_and_the_worst_part_first(snapshot):
    view = recommender_page(snapshot, "news", pictures.NOW).recommender
    assert view.health.score.value.replace("\xa0", " ") == "62.5 %"
    assert view.health.score.detail == "without recall by=macro k=10 (no data)"
    assert view.health.score.spark is not None
    assert [row.name for row in view.health.parts] == ["recall", "lists", HOSTILE]
    assert [row.detail for row in view.health.parts][:2] == ["nobody acted", "coverage is 0.85"]
    assert not {group.name for group in view.metrics} & {"health_score", "health_part"}
    assert view.verdict.key == "ok"  # a score is judged by nobody


def test_a_recommender_without_a_score_says_nothing_of_health():
    view = recommender_page(pictures.full(), "news", pictures.NOW).recommender
    assert view.health is None
    with client() as web:
        assert "Health" not in web.get("/recommenders/news").text


@pytest.mark.parametrize("path", ["/", "/recommenders/news"])
def test_the_line_is_laid_out_and_no_name_of_a_part_is_markup(snapshot, path):
    with client(snapshot) as web:
        text = web.get(path).text
        parts = web.get("/recommenders/news/sections/health").text
    assert "<span>Health</span> <strong>62.5\xa0%</strong>" in text
    assert HOSTILE not in text + parts
    assert "&lt;script&gt;" in parts


def test_check_shows_the_score_among_the_judged_results():
    out = io.StringIO()
    judged = [Judged("news", "health", LAST, result) for result in (SCORE, *PARTS)]
    print_table(judged, Console(file=out, width=100))
    lines = [line for line in out.getvalue().splitlines() if "health" in line]
    assert len(lines) == 1
    assert "0.625" in lines[0]
