"""A rule that does not apply to its log: told as such; no gauge, verdict or CI server takes it for bad."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from monitor.core.results import Kind, Result, ResultKind, Status
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.report.fleet import Fleet
from monitor.report.judged import Judged, as_junit
from monitor.report.page import recommender_page
from monitor.report.table import summary
from monitor.service.prometheus.exporter import Exporter
from tests.service import pictures

WHY = "not applicable: the exposures log has no column position"
GAPS = pictures.rule("position_gaps", Kind.SOFT, Status.UNDEFINED, detail=WHY, threshold=0.001)


def snapshot() -> Snapshot:
    news = pictures.news()
    gaps = pictures.series(GAPS, recommender="news", check="rules", hours=3)
    return replace(pictures.full(), recommenders=(replace(news, series=(*news.series, gaps)),))


def test_the_page_shows_it_and_all_is_well():
    page = Fleet(snapshot(), pictures.NOW).page()
    assert page.summary == "All is well with news"
    found = recommender_page(snapshot(), "news", pictures.NOW)
    assert found is not None
    assert found.recommender.summary == "1 rule ok"
    assert found.recommender.problems == ()
    (row,) = [row for row in found.recommender.rules if row.name == "position_gaps"]
    assert row.verdict.key == "undefined"


def test_if_no_rule_applies_the_state_is_that_of_the_log():
    rows = Result(
        metric="log_rows", kind=ResultKind.LOG, labels={"log": "exposures"}, status=Status.OK, definition="1"
    )
    for status, word in ((Status.OK, "All is well with shop"), (Status.NO_DATA, "shop needs attention")):
        log = pictures.series(replace(rows, status=status), recommender="shop", check="logs")
        state = RecommenderState("shop", series=(pictures.series(GAPS, recommender="shop"), log))
        only = replace(pictures.full(), recommenders=(state,))
        assert Fleet(only, pictures.NOW).page().summary == word
        found = recommender_page(only, "shop", pictures.NOW)
        assert found is not None
        assert found.recommender.summary == "no rule applies to the logs"


def test_it_has_no_status_among_the_gauges():
    exporter = Exporter(snapshot, version="0.1.0", url="http://monitor.test")
    lines = exporter.scrape()[0].decode().splitlines()
    assert any('rule="empty_list"' in line for line in lines)
    assert not any("position_gaps" in line for line in lines if "_total{" not in line)


def test_a_ci_server_sees_it_skipped_and_the_table_counts_no_verdict():
    judged = [Judged("news", "rules", pictures.LAST, GAPS)]
    (case,) = ElementTree.fromstring(as_junit(judged)).iter("testcase")
    assert [(child.tag, child.get("message")) for child in case] == [("skipped", WHY)]
    assert summary(judged) == "1 window: nothing was judged"
