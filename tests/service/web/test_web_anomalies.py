"""The addresses of anomalies, and what stands on the page of a recommender that has bands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from monitor.anomalies.causes import CAUSES
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import serve
from monitor.settings.server import ServerSettings
from tests.service import pictured_bands, pictures
from tests.service.pictured_bands import FOUND, feeds
from tests.service.web.test_app import client

SECTIONS = "/recommenders/feeds/sections"
PATH = "/recommenders/feeds/anomalies/lists_empty"


def shown(*states: RecommenderState) -> Snapshot:
    return Snapshot(pictures.NOW, states or (feeds(), pictures.news()))


@pytest.fixture(scope="module")
def web() -> Iterator[httpx.Client]:
    with client(shown()) as opened:
        yield opened


def test_every_cause_is_linked_and_has_a_page(web):
    links = re.findall(
        r'href="(?:\.\./)+(recommenders/[^"]+/anomalies/[^"]+)"', web.get(f"{SECTIONS}/anomalies").text
    )
    answers = [web.get(f"/{link}") for link in dict.fromkeys(links)]
    assert {link.rsplit("/", 1)[1] for link in links} == set(CAUSES)
    assert [answer.status_code for answer in answers] == [200] * len(CAUSES)
    for answer, link in zip(answers, dict.fromkeys(links), strict=True):
        assert CAUSES[link.rsplit("/", 1)[1]].split(":")[0].replace("'", "&#39;") in answer.text


def test_the_page_of_an_anomaly_shows_hostile_text_as_text_and_links_back(web):
    answer = web.get(PATH)
    assert answer.status_code == 200
    assert "scene = &lt;script&gt;document.title=&#39;pwned&#39;&lt;/script&gt;[LF][U+202E]" in answer.text
    for markup in (pictures.HOSTILE, "<script>", "<img", "style=", "<b>", "\u202e"):
        assert markup not in answer.text
    assert 'href="../../../recommenders/feeds#anomalies"' in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("text", pictures.NASTY)
def test_a_hostile_slice_or_detail_is_never_markup(text: str):
    row = {**FOUND.evidence[0], "dimension": text, "value": text, "by": text, "of": f"event={text}"}
    state = feeds(replace(FOUND, detail=text, evidence=(row,)))
    with client(shown(state)) as web:
        for path in ("/", "/recommenders/feeds", f"{SECTIONS}/anomalies", PATH):
            answer = web.get(path)
            assert answer.status_code == 200
            for markup in ("<script>", "<img", "<b>bold", "\u202e"):
                assert markup not in answer.text
            assert ("{{ 7 * 7 }}" in answer.text) == (text == "{{ 7 * 7 }}")


def test_a_recommender_of_any_name_is_linked_and_found():
    name = "a/b <i>?#%"
    state = feeds()
    made = replace(state, name=name, series=tuple(replace(one, recommender=name) for one in state.series))
    with client(shown(made)) as web:
        text = web.get("/").text
    assert "<i>" not in text
    assert 'href="./recommenders/a%2Fb%20%3Ci%3E%3F%23%25/anomalies/lists_empty"' in text


@pytest.mark.parametrize(
    "path",
    [
        "/recommenders/feeds/anomalies/nonsense",
        "/recommenders/feeds/anomalies/",
        "/recommenders/feeds/anomalies/%3Cscript%3Ealert(1)%3C/script%3E",
        "/recommenders/feeds/anomalies/lists_empty/",
        "/recommenders/news/anomalies/lists_empty",
        "/recommenders/nobody/anomalies/lists_empty",
    ],
)
def test_an_unknown_anomaly_is_a_readable_404(web, path: str):
    answer = web.get(path)
    assert answer.status_code == 404
    assert "There is no anomaly of this name in any window." in answer.text
    assert "<script>" not in answer.text


def test_the_page_of_a_recommender_without_bands_has_no_column_and_no_section_for_them(web):
    of_news, of_feeds, both = (
        web.get(path).text for path in ("/recommenders/news", "/recommenders/feeds", "/")
    )
    assert [text.count('id="anomalies"') for text in (of_news, of_feeds, both)] == [0, 1, 0]
    news, feeds = (web.get(f"/recommenders/{name}/sections/metrics").text for name in ("news", "feeds"))
    assert '<th scope="col">Expected</th>' not in news
    assert '<th scope="col">Expected</th>' in feeds
    assert web.get("/recommenders/news/sections/anomalies").status_code == 404


def test_a_row_of_the_page_has_its_value_expected_band_and_deviation(web):
    metrics, anomalies = (
        re.sub(r"<[^>]+>|\s+", " ", web.get(f"{SECTIONS}/{name}").text).replace("\xa0", " ")
        for name in ("metrics", "anomalies")
    )
    row = re.sub(" +", " ", metrics[metrics.index("Share of requests, or of users") :])
    assert (
        row.index("41 %") < row.index("1.02 %") < row.index("0.52 % to 1.52 %") < row.index("55.1 sd above")
    )
    assert "5 of 6 series have a band; the others need more past windows." in anomalies
    assert "7 of 24 windows" in metrics
    assert "fell from 0.031 to 0.027 in three days" in anomalies


def test_the_runbook_is_a_link_to_the_cause_where_the_docs_have_an_address():
    settings = ServerSettings(listen="127.0.0.1:0", docs_url="https://git.test/main")
    server = serve(
        settings, shown, reload=lambda: ReloadOutcome(True), not_ready=lambda: "", healthy=lambda: True
    )
    try:
        with httpx.Client(base_url=server.address, timeout=pictures.PATIENCE) as web:
            text = web.get(PATH).text
    finally:
        server.stop()
    assert 'href="https://git.test/main/docs/runbooks/causes/lists_empty.md"' in text
    assert pictured_bands.TOLD.split(";")[0] in text
