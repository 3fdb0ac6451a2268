"""What each address answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from monitor.core.results import Status
from monitor.history.snapshot import Change, RecommenderState, Snapshot
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import serve
from monitor.settings.server import ServerSettings
from tests.service import pictures

PAGES = [
    "/",
    "/recommenders/shop",
    "/recommenders/shop/rules/blacklist",
    "/recommenders/news",
    "/runbooks/RecsysAnomaly",
]


@contextmanager
def client(shown: Snapshot | Callable[[], Snapshot] = pictures.full, **given) -> Iterator[httpx.Client]:
    """A client of a server that really runs."""
    settings = ServerSettings(listen="127.0.0.1:0", external_url="https://monitor.example.org")
    callables = {
        "reload": lambda: ReloadOutcome(True),
        "not_ready": lambda: "",
        "healthy": lambda: True,
    } | given
    server = serve(settings, shown if callable(shown) else lambda: shown, **callables)
    try:
        with httpx.Client(base_url=server.address, timeout=pictures.PATIENCE) as opened:
            yield opened
    finally:
        server.stop()


@pytest.fixture(scope="module")
def web() -> Iterator[httpx.Client]:
    """The full snapshot, served for all tests that only read it."""
    with client() as opened:
        yield opened


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_html_and_its_policy_allows_its_own_script_alone(web, path):
    answer = web.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "form-action 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    (script,) = re.findall("<script.*?</script>", answer.text, re.DOTALL)
    assert re.fullmatch(r'<script src="[./]+static/page\.js" defer></script>', script)
    assert "style=" not in answer.text
    assert '<noscript><meta http-equiv="refresh" content="30"></noscript>' in answer.text


@pytest.mark.parametrize("path", [*PAGES, "/recommenders/shop/rules/brand_new", "/?refresh=off", "/<b>'\""])
def test_foreign_text_is_never_markup(web, path):
    text = web.get(path).text
    for markup in (pictures.HOSTILE, "<img", "<b>", "<scene>", "\u202e", 'href="javascript'):
        assert markup not in text


def test_the_evidence_page_shows_the_hostile_item_as_text(web):
    text = web.get("/recommenders/shop/rules/blacklist").text
    assert "&lt;script&gt;document.title=&#39;pwned&#39;&lt;/script&gt;" in text
    assert "two[LF]lines[TAB]and[NUL]nul" in text


def test_hostile_names_of_recommenders_and_rules_are_linked_and_found():
    name = "a/b <i>?#%"
    result = pictures.rule(f"{name}\"'", status=Status.VIOLATED, value=1.0, samples=1, violations=1)
    state = RecommenderState(name, series=(pictures.series(result, recommender=name),))
    with client(Snapshot(pictures.NOW, (state,))) as web:
        text = web.get("/").text
        assert "<i>" not in text
        href = "recommenders/a%2Fb%20%3Ci%3E%3F%23%25/rules/a%2Fb%20%3Ci%3E%3F%23%25%22%27"
        assert f'href="./{href}"' in text
    plain = replace(state, name="ab", series=(pictures.series(result, recommender="ab"),))
    with client(Snapshot(pictures.NOW, (plain,))) as web:
        answer = web.get("/recommenders/ab/rules/a%2Fb%20%3Ci%3E%3F%23%25%22%27")
    assert answer.status_code == 200
    assert 'href="../../../static/style.css"' in answer.text


def test_the_page_shows_what_changed_shortly_before_the_newest_problem():
    shown = pictures.full()
    (shop,) = (one for one in shown.recommenders if one.name == "shop")
    newest = max(one.since for one in shop.series if one.result.status in (Status.VIOLATED, Status.ERROR))

    def page(*changes: Change) -> str:
        changed = replace(shop, changes=changes)
        others = tuple(one for one in shown.recommenders if one.name != "shop")
        with client(replace(shown, recommenders=(*others, changed))) as web:
            return web.get("/recommenders/shop").text

    old = Change(newest - timedelta(days=1, minutes=1), "an old list")
    near = Change(newest - timedelta(hours=23), "a <b>new</b> list")
    found = page(old, near)
    assert "<h2>Changes since one day before the newest problem</h2>" in found
    assert "<bdi>a &lt;b&gt;new&lt;/b&gt; list</bdi>" in found
    assert "an old list" not in found
    without = page(old)
    assert "Changes since" not in without
    assert "No change of a model, the config, a list or the catalog is known" in without


def test_the_monitor_serves_its_own_runbooks(web):
    assert '<h1 id="recsysanomaly">RecsysAnomaly</h1>' in web.get("/runbooks/RecsysAnomaly").text
    assert '<a href="RecsysAnomaly">' in web.get("/runbooks/").text
    of_cause = web.get("/runbooks/causes/lists_empty").text
    assert 'href="../RecsysAnomaly#what-to-do"' in of_cause
    assert 'href="../../static/style.css"' in of_cause
    assert web.get("/runbooks/..%2f..%2fREADME").status_code == 404
    assert "There is no runbook of this name." in web.get("/runbooks/nothing").text


def test_links_are_relative_so_that_a_proxy_may_add_a_prefix(web):
    assert 'href="./static/style.css"' in web.get("/").text
    deep = web.get("/recommenders/shop/rules/blacklist").text
    assert 'href="../../../recommenders/shop"' in deep
    assert 'href="/' not in deep


def test_the_refresh_can_be_paused(web):
    assert "http-equiv" not in web.get("/?refresh=off").text


@pytest.mark.parametrize(
    "path", ["/nothing", "/recommenders/nobody", "/recommenders/shop/rules/nothing", "/recommenders/shop/"]
)
def test_an_unknown_address_is_a_readable_404(web, path):
    answer = web.get(path)
    assert answer.status_code == 404
    assert "Nothing here" in answer.text
    assert "content-security-policy" in answer.headers


def test_an_empty_start_is_written_out():
    with client(pictures.empty()) as web:
        assert "No window has been judged yet: no readable rows" in web.get("/").text
        assert web.get("/metrics").status_code == 200


def test_a_refused_config_is_reported_on_every_page():
    with client(replace(pictures.full(), config_error="a: wrong\nb: <b>wrong</b>")) as web:
        for path in PAGES:
            text = web.get(path).text
            assert "the old one stays in use" in text
            assert "a: wrong\nb: &lt;b&gt;wrong" in text


def test_metrics_come_in_the_form_that_is_asked_for(web):
    classic = web.get("/metrics")
    open_metrics = web.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"})
    assert classic.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'recsys_web_info{url="https://monitor.example.org"} 1.0' in classic.text
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert open_metrics.text.endswith("# EOF\n")
    assert classic.headers["content-encoding"] == "gzip"


def test_readiness_and_liveness_are_answered_apart():
    with client(not_ready=lambda: "the history is locked\n<b>now</b>") as web:
        answer = web.get("/-/ready")
        assert (answer.status_code, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert answer.text == "recsys-monitor is not ready: the history is locked[LF]<b>now</b>\n"
        assert web.get("/-/healthy").status_code == 200
    with client(healthy=lambda: False) as web:
        assert web.get("/-/healthy").status_code == 503
        assert web.get("/-/ready").status_code == 200


def test_a_history_that_is_down_is_reported_on_every_page():
    with client(replace(pictures.full(), history_error="the store is locked: <b>x</b>")) as web:
        for path in PAGES:
            text = web.get(path).text
            assert "The history is down: no window can be judged." in text
            assert "the store is locked: &lt;b&gt;x" in text


def test_a_reload_takes_a_post_and_says_how_it_ended():
    outcomes = [ReloadOutcome(False, "recommenders[0].window: missing"), ReloadOutcome(True)]
    with client(reload=outcomes.pop) as web:
        assert web.get("/-/reload").status_code == 405
        assert len(outcomes) == 2
        good, bad = web.post("/-/reload"), web.post("/-/reload")
    assert (good.status_code, good.text) == (200, "The config was reloaded.\n")
    assert (bad.status_code, bad.text) == (500, "recommenders[0].window: missing\n")


def test_a_reload_that_another_site_asks_a_browser_for_is_refused():
    calls = []
    with client(reload=lambda: calls.append(1) or ReloadOutcome(True)) as web:
        refused = web.post("/-/reload", headers={"Sec-Fetch-Site": "cross-site"})
        taken = web.post("/-/reload", headers={"Sec-Fetch-Site": "same-origin"})
    assert (refused.status_code, taken.status_code) == (403, 200)
    assert calls == [1]


def test_a_failure_inside_is_a_500_that_tells_nothing_of_the_inside(caplog):
    def fails() -> Snapshot:
        raise RuntimeError("password=hunter2")

    with client(fails) as web:
        answer = web.get("/")
        assert web.get("/-/healthy").status_code == 200
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert "GET / failed" in caplog.messages
