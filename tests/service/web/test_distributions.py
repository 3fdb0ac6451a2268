"""The page of distributions: what it shows, what it refuses, and that names of a log do no harm."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import yaml
from selenium.webdriver.common.by import By

from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.history.store import Store
from monitor.report.distributions import desk as desks
from monitor.report.distributions.themes import THEMES
from monitor.service.daemon import Daemon
from monitor.service.web.distributions import known_files
from monitor.settings.config import Config
from tests.report.distributions import drawn_shop
from tests.report.distributions.drawn_shop import HOSTILE, LAST, WRITTEN
from tests.service import pictures
from tests.service.web.chromium import follow, size
from tests.service.web.test_app import client
from tests.service.web.test_browser import CONTRAST

PAGE = "/recommenders/shop/distributions"
NAMES = [theme.empty.name for theme in THEMES]


def snapshot(**fields: object) -> Snapshot:
    shop = RecommenderState("shop", **{"last_window": LAST, **fields})
    return Snapshot(pictures.NOW, (shop, RecommenderState("other")))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return drawn_shop.loaded(drawn_shop.write(tmp_path_factory.mktemp("web"), with_samples=True))


@pytest.fixture(scope="module")
def web(config: Config) -> Iterator[httpx.Client]:
    with client(snapshot(), config=lambda: config) as opened:
        yield opened


def test_the_page_has_every_figure_of_the_newest_window_with_its_rows_and_its_table(web):
    answer = web.get(PAGE)
    assert answer.status_code == 200
    for name in NAMES:
        (section,) = re.findall(
            rf'<section class="card figure[^"]*" id="{name}">(.*?)</section>', answer.text, re.DOTALL
        )
        assert '<svg class="plot"' in section
        assert "<title>" in section
        assert re.search(r"Made of [\d,]+ \w+", section)
        assert section.count("<details>") == 1
        assert section.count("<tr>") > 3
        assert f"/distributions/{name}.csv?start=2026-03-02T23%3A00%3A00Z&amp;end=" in section
    assert "2026-03-02 23:00 to 2026-03-03 00:00 UTC. Read from the logs at" in answer.text
    assert 'http-equiv="refresh"' not in answer.text  # each version would read the logs again


def test_the_policy_is_that_of_every_page_and_nothing_is_styled_or_run_inline(web):
    answer = web.get(PAGE)
    assert answer.headers["content-security-policy"] == web.get("/").headers["content-security-policy"]
    assert "style=" not in answer.text
    assert "unsafe-inline" not in answer.headers["content-security-policy"]
    assert re.findall("<script.*?>", answer.text) == ['<script src="../../static/page.js" defer>']


def test_hostile_categories_features_and_models_are_text_in_html_and_svg(web):
    text = web.get(PAGE).text
    for markup in ("<script>document", "\u202e", 'pwned"'):
        assert markup not in text
    assert text.count("&lt;script&gt;document.title=&#39;pwned&#39;&lt;/scri") > 10
    titles = re.findall(r"<title>(.*?)</title>", text, re.DOTALL)
    assert any("&lt;script&gt;" in title for title in titles)


@pytest.mark.parametrize("name", NAMES)
def test_the_csv_has_the_numbers_of_the_table(web, name):
    answer = web.get(f"{PAGE}/{name}.csv")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == (
        f'attachment; filename="shop-{name}-20260302T230000Z.csv"'
    )
    rows = list(csv.reader(io.StringIO(answer.text, newline="")))
    page = re.search(rf'id="{name}">.*?<tbody>(.*?)</tbody>', web.get(PAGE).text, re.DOTALL)
    assert page is not None
    assert len(rows) - 1 == page[1].count("<tr>")
    assert {len(row) for row in rows} == {len(rows[0])}


def test_no_cell_of_a_csv_is_a_formula(web):
    for name in ("categories", "features"):
        rows = csv.reader(io.StringIO(web.get(f"{PAGE}/{name}.csv").text, newline=""))
        cells = [cell for row in rows for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "@", "+"))]
        assert any(HOSTILE in cell for cell in cells)
    rows = csv.reader(io.StringIO(web.get(f"{PAGE}/categories.csv").text, newline=""))
    assert f"'{HOSTILE}" in {row[1] for row in rows}


def test_a_span_of_the_query_is_read_and_links_lead_to_its_neighbours(web):
    answer = web.get(PAGE, params={"start": "2026-03-02T10:10:00Z", "end": "2026-03-02T11:00:00+00:00"})
    assert "2026-03-02 10:00 to 11:00 UTC." in answer.text
    assert 'href="?start=2026-03-02T09%3A00%3A00Z&amp;end=2026-03-02T10%3A00%3A00Z"' in answer.text
    assert 'href="?start=2026-03-02T11%3A00%3A00Z&amp;end=2026-03-02T12%3A00%3A00Z"' in answer.text
    newest = web.get(PAGE)
    rows = [re.search(r"Made of ([\d,]+) exposures of", one.text)[1] for one in (answer, newest)]
    assert rows[0] != rows[1]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("start=yesterday", "is no time between 1970 and 2199"),
        ("end=1969-12-31", "is no time between 1970 and 2199"),
        ("start=9999-12-31T23:59:59-23:00", "is no time between 1970 and 2199"),
        (
            "start=2026-03-02T11:00:00Z&end=2026-03-02T10:00:00Z",
            "The start of the span must be before its end.",
        ),
        ("start=1970-01-01&end=2199-12-31", "A span may have at most 1,000 windows."),
        ("start=" + quote(HOSTILE), "&lt;script&gt;"),
        ("start=%00", "is no time between 1970 and 2199"),
        ("start=" + "9" * 3000, "is no time between 1970 and 2199"),
        (
            "from=2026-03-02T10:00:00Z",
            "There is no parameter &#39;from&#39; at this address. It takes start, end.",
        ),
        (quote(HOSTILE) + "=1", "&lt;script&gt;"),
    ],
)
def test_a_wrong_span_is_refused_with_a_sentence(web, query, sentence):
    answer = web.get(f"{PAGE}?{query}")
    assert answer.status_code == 400
    assert sentence in answer.text
    assert "<script>document" not in answer.text
    assert '<svg class="plot"' not in answer.text
    assert len(answer.text) < 6000
    assert web.get(f"{PAGE}/items.csv?{query}").status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/recommenders/nobody/distributions",
        "/recommenders/other/distributions",  # in no config
        "/recommenders/shop/distributions/nothing.csv",
        "/recommenders/shop/distributions/%3Cscript%3E.csv",
        "/recommenders/shop/distributions/..%2F..%2Fshop.csv",
        "/recommenders/nobody/distributions/items.csv",
    ],
)
def test_what_is_not_there_is_a_readable_404(web, path):
    answer = web.get(path)
    assert answer.status_code == 404
    assert "Nothing here" in answer.text
    assert "<script>" not in answer.text


def test_without_a_config_there_is_no_page_and_no_link():
    with client(snapshot()) as opened:
        answer = opened.get(PAGE)
        assert answer.status_code == 404
        assert "There is no config" in answer.text
        assert "distributions" not in opened.get("/recommenders/shop").text


def test_the_page_of_a_recommender_links_to_its_distributions(web):
    text = web.get("/recommenders/shop").text
    (link,) = re.findall(r'href="\.\./(recommenders/shop/distributions)"', text)
    assert web.get(f"/{link}").status_code == 200


def test_a_figure_that_cannot_be_drawn_has_no_picture_and_no_csv(web):
    long_ago = {"start": "2025-01-01T00:00:00Z"}
    answer = web.get(PAGE, params=long_ago)
    assert answer.status_code == 200
    (section,) = re.findall(r'id="items">(.*?)</section>', answer.text, re.DOTALL)
    assert "The log of exposures now begins at 2026-03-01 22:00 UTC" in section
    assert "<svg" not in section
    assert "csv" not in section
    refused = web.get(f"{PAGE}/items.csv", params=long_ago)
    assert refused.status_code == 404
    assert "now begins at" in refused.text


def test_before_any_window_is_judged_a_span_can_still_be_drawn(config):
    with client(snapshot(last_window=None), config=lambda: config) as opened:
        answer = opened.get(PAGE)
        assert answer.status_code == 200
        assert "No window has been judged yet" in answer.text
        assert opened.get(f"{PAGE}/items.csv").status_code == 404
        assert '<svg class="plot"' in opened.get(PAGE, params={"start": "2026-03-02T10:00:00Z"}).text


def test_with_spark_the_page_says_which_engine_draws(config):
    spark = config.model_copy(update={"engine": config.engine.model_copy(update={"kind": "spark"})})
    with client(snapshot(), config=lambda: spark) as opened:
        text = opened.get(PAGE).text
    assert "Spark judges the windows; these pictures are drawn with the embedded engine." in text
    assert text.count('<svg class="plot"') > 9


def test_while_another_request_reads_the_answer_is_503_with_a_time_to_ask_again(config, monkeypatch):
    arrived, go = threading.Event(), threading.Event()
    real = desks.Memo

    def waits(rows: object) -> object:
        arrived.set()
        assert go.wait(60)
        return real(rows)

    monkeypatch.setattr(desks, "Memo", waits)
    monkeypatch.setattr("monitor.service.web.server.Desk", partial(desks.Desk, wait_seconds=0.2))
    with client(snapshot(), config=lambda: config) as opened:
        first: list[httpx.Response] = []
        thread = threading.Thread(target=lambda: first.append(opened.get(PAGE)))
        thread.start()
        assert arrived.wait(60)
        answers = [opened.get(f"{PAGE}{more}?start=2026-03-02T10:00:00Z") for more in ("", "/items.csv")]
        assert opened.get("/recommenders/shop").status_code == 200  # other pages do not wait
        go.set()
        thread.join(60)
    assert [answer.status_code for answer in answers] == [503, 503]
    assert [answer.headers["retry-after"] for answer in answers] == ["30", "30"]
    assert "The distributions of another span are being read." in answers[0].text
    assert '<svg class="plot"' not in answers[0].text
    assert first[0].status_code == 200


def test_a_deadline_that_comes_before_the_first_figure_is_503(config, monkeypatch):
    monkeypatch.setattr("monitor.service.web.server.Desk", partial(desks.Desk, deadline_seconds=0.0))
    with client(snapshot(), config=lambda: config) as opened:
        answer = opened.get(PAGE)
    assert answer.status_code == 503
    assert answer.text.count("Reading was stopped after 0 s. Choose a shorter span.") == len(NAMES)


def test_a_stop_of_the_server_ends_what_is_read(config, monkeypatch):
    arrived = threading.Event()

    def endless(memo: desks.Memo) -> object:
        arrived.set()
        query = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3"
        memo.rows.engine.cursor.execute(query)
        raise AssertionError("the query was not interrupted")

    monkeypatch.setattr(desks, "THEMES", (desks.Theme(THEMES[0].empty, endless),))
    with client(snapshot(), config=lambda: config) as opened:
        answers: list[object] = []

        def ask() -> None:
            try:
                answers.append(opened.get(PAGE).text)
            except httpx.HTTPError as error:
                answers.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        assert arrived.wait(60)
    thread.join(20)  # the query alone would take hours
    assert not thread.is_alive()
    assert answers


def test_a_daemon_draws_from_the_index_that_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No file is indexed a second time, and nothing of the judging is touched."""
    path = drawn_shop.write(tmp_path)
    values = yaml.safe_load(path.read_text())
    values["server"] = {"listen": "127.0.0.1:0"}
    path.write_text(yaml.safe_dump(values))
    daemon = Daemon(path, clock=lambda: WRITTEN + timedelta(hours=1))
    try:
        daemon.turn("shop")
        state = daemon.config.state
        before = {one: one.stat().st_mtime_ns for one in state.rglob("*.parquet")}
        indexed: list[str] = []
        monkeypatch.setattr("monitor.logs.log.index_file", lambda *given: indexed.append(given[3].path))
        with client(snapshot(), config=lambda: daemon.config, store=daemon.store) as opened:
            text = opened.get(PAGE).text
        assert indexed == []
        assert text.count('<svg class="plot"') == len(NAMES)  # two events, and no features
        assert text.count('class="empty-state"') == 1
        assert {one: one.stat().st_mtime_ns for one in state.rglob("*.parquet")} == before
        assert not (state / "spill-distributions").exists()
    finally:
        daemon.close()


def test_an_index_that_cannot_be_read_is_made_from_the_files(config, tmp_path, caplog):
    path = tmp_path / "history.sqlite"
    with Store.open(path, wait_seconds=0.1) as store:
        with closing(sqlite3.connect(path)) as other:
            other.execute("DROP TABLE log_files")
        drawn = desks.Desk(known_files(store)).figures(config, config.recommenders[0], LAST)
    assert "is read from its files, not from the history" in caplog.text
    assert all(one.plots for one in drawn.figures)


@pytest.fixture
def shop_page(browser, web):
    browser.get_log("browser")
    return f"{web.base_url}{PAGE}"


def test_chromium_draws_every_figure_and_says_values_on_hover(browser, shop_page):
    size(browser, 1280)
    browser.get(shop_page)
    assert browser.title.startswith("Distributions · shop")
    for name in NAMES:
        plots = browser.find_elements(By.CSS_SELECTOR, f"#{name} svg.plot")
        assert plots
        for plot in plots:
            assert plot.is_displayed()
            assert plot.rect["width"] > 250
            drawn = plot.find_elements(By.CSS_SELECTOR, "polyline.line, rect, circle:not(.on-hover)")
            assert any(one.rect["width"] * one.rect["height"] > 4 for one in drawn)
            assert drawn[0].value_of_css_property("stroke") != "rgb(0, 0, 0)"
        assert browser.find_elements(By.CSS_SELECTOR, f"#{name} svg.plot title")
    colours = {
        one.value_of_css_property("fill")
        for one in browser.find_elements(By.CSS_SELECTOR, "#categories .key rect")
    }
    assert len(colours) == 10
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def test_chromium_runs_nothing_that_a_log_holds(browser, shop_page):
    browser.get(shop_page)
    assert browser.title == "Distributions · shop"
    counted = "return document.querySelectorAll('script:not([src]), img, main b').length"
    assert browser.execute_script(counted) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_chromium_shows_every_text_with_enough_contrast(browser, shop_page, scheme):
    size(browser, 1280)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(shop_page)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    low = browser.execute_script(CONTRAST)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert low == []


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_chromium_shows_no_page_wider_than_its_screen(browser, shop_page, width):
    size(browser, width)
    browser.get(shop_page)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_chromium_sends_the_form_without_javascript(browser, shop_page):
    size(browser, 1280)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(shop_page)
        start = browser.find_element(By.NAME, "start")
        end = browser.find_element(By.NAME, "end")
        for field, text in ((start, "2026-03-02T10:00:00Z"), (end, "2026-03-02T11:00:00Z")):
            field.clear()
            field.send_keys(text)
        follow(browser, browser.find_element(By.CSS_SELECTOR, "form.search button"))
        assert "start=2026-03-02T10%3A00%3A00Z" in browser.current_url
        assert "2026-03-02 10:00 to 11:00 UTC" in browser.find_element(By.TAG_NAME, "main").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
