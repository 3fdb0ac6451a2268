"""The addresses of a model's gaps, whatever a model is called."""

from __future__ import annotations

import re

import httpx
import pytest

from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import serve
from monitor.settings.server import ServerSettings
from tests.service import pictured_models, pictures
from tests.service.pictured_models import MODEL, causes, violated_gap
from tests.service.web.test_app import client


def of(model: str, recommender: str = "ranker") -> Snapshot:
    made = [violated_gap(model), *causes(model)]
    series = tuple(pictures.series(one, recommender=recommender, check="models") for one in made)
    return Snapshot(pictures.NOW, (RecommenderState(recommender, series=series),))


SECTION = "/recommenders/a%20b%20%23%3F/sections/models"


def whole() -> Snapshot:
    return Snapshot(pictures.NOW, (pictured_models.ranker(),))


@pytest.mark.parametrize(
    "model", ["v1", "", "a/b?<script>#%\n..", "..", "a//b/", "%2F", "two words", "日本語", "x\x00y", "model-"]
)
def test_every_link_to_a_cause_leads_to_its_page(model):
    with client(of(model, "a b #?")) as web:
        links = re.findall(r'href="(?:\.\./)+(recommenders/[^"]+/gaps/[^"]+)"', web.get(SECTION).text)
        answers = [web.get(f"/{link}") for link in dict.fromkeys(links)]
    assert [answer.status_code for answer in answers] == [200] * 3


def test_the_page_of_a_cause_shows_hostile_text_as_text_and_links_back():
    path = pictured_models.ranker().name
    with client(whole()) as web:
        link = re.findall(
            r'href="\.\./(recommenders/[^"]+/serving_skew/[^"]+)"', web.get(f"/recommenders/{path}").text
        )
        answer = web.get(f"/{link[0]}")
    assert answer.status_code == 200
    text = answer.text
    assert "&lt;script&gt;document.title=&#39;pwned&#39;&lt;/script&gt;" in text
    for markup in (pictures.HOSTILE, "<script>", "<img", "style=", "<b>", "\u202e"):
        assert markup not in text
    root = "../" * (link[0].count("/"))
    assert f'href="{root}recommenders/ranker#models"' in text


@pytest.mark.parametrize(
    "path",
    [
        "/recommenders/ranker/gaps/test_online/serving_skew/model-",
        "/recommenders/ranker/gaps/test_online/serving_skew/v1",
        "/recommenders/ranker/gaps/test_online/time_travel/model-v1",
        "/recommenders/ranker/gaps/train_test/serving_skew/model-v1",
        "/recommenders/nobody/gaps/test_online/serving_skew/model-v1",
        "/recommenders/ranker/gaps/%3Cscript%3E/x/model-%0A%3Cscript%3E",
    ],
)
def test_an_unknown_cause_is_a_readable_404(path):
    with client(of("v1")) as web:
        answer = web.get(path)
    assert answer.status_code == 404
    assert "Nothing here" in answer.text
    assert "<script>" not in answer.text


def test_the_runbook_of_a_cause_is_the_teams_own_if_the_docs_have_an_address():
    settings = ServerSettings(listen="127.0.0.1:0", docs_url="https://git.test/main")
    server = serve(
        settings, whole, reload=lambda: ReloadOutcome(True), not_ready=lambda: "", healthy=lambda: True
    )
    link = 'href="https://git.test/main/docs/runbooks/RecsysServingSkew.md"'
    try:
        with httpx.Client(base_url=server.address, timeout=pictures.PATIENCE) as web:
            assert link in web.get("/").text
            assert link in web.get("/recommenders/ranker/sections/models").text
    finally:
        server.stop()
    with client(whole()) as web:
        assert 'href="../runbooks/RecsysServingSkew"' in web.get("/recommenders/ranker").text


def test_the_models_have_one_anchor_on_a_page_and_no_row_among_the_metrics():
    with client(Snapshot(pictures.NOW, (pictured_models.ranker(), pictures.news()))) as web:
        assert 'id="models"' not in web.get("/").text
        page = web.get("/recommenders/ranker").text
        text = web.get("/recommenders/ranker/sections/models").text
    assert page.count('id="models"') == 1
    assert 'id="metrics"' not in page
    assert "(no name)" in text
    assert MODEL not in text
