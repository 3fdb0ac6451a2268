"""The pages in a real Chromium: what a log holds is shown as text and does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.common.by import By

from monitor.history.snapshot import Snapshot
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import WebServer, serve
from monitor.settings.server import ServerSettings
from tests.service import pictured_bands, pictured_models, pictures
from tests.service.web.chromium import follow, size

CAUSE = f"/recommenders/ranker/gaps/test_online/serving_skew/model-{quote(pictured_models.MODEL, safe='')}"
PAGES = [
    "/",
    "/recommenders/shop",
    "/recommenders/shop/rules/blacklist",
    "/recommenders/ranker",
    CAUSE,
    "/recommenders/feeds",
    "/recommenders/feeds/anomalies/lists_empty",
    *(
        f"/recommenders/shop/sections/{name}"
        for name in ("rules", "objectives", "metrics", "slices/scene", "monitor")
    ),
    "/recommenders/ranker/sections/models",
    "/recommenders/feeds/sections/anomalies",
    "/runbooks/",
    "/runbooks/RecsysAnomaly",
    "/nothing/<script>",
]


@pytest.fixture(scope="module")
def site() -> Iterator[WebServer]:
    server = serve(
        ServerSettings(listen="127.0.0.1:0"),
        full,
        reload=lambda: ReloadOutcome(True),
        not_ready=lambda: "",
        healthy=lambda: True,
    )
    yield server
    server.stop()


def full() -> Snapshot:
    shown = pictures.full()
    return replace(
        shown, recommenders=(*shown.recommenders, pictured_models.ranker(), pictured_bands.feeds())
    )


@pytest.mark.parametrize("path", PAGES)
def test_nothing_that_a_log_holds_is_run_or_becomes_an_element(browser, site, path):
    browser.get_log("browser")
    browser.get(f"{site.address}{path}")
    assert "pwned" not in browser.title
    counted = "return document.querySelectorAll('script:not([src]), img, main b, main scene').length"
    assert browser.execute_script(counted) == 0
    own = "return [...document.scripts].map(script => new URL(script.src).pathname)"
    assert browser.execute_script(own) == ["/static/page.js"]
    # The policy would stop any other script and say so here: there was not even one to stop.
    said = [entry["message"] for entry in browser.get_log("browser") if "404" not in entry["message"]]
    assert said == []


def test_a_hostile_item_id_is_shown_as_text(browser, site):
    size(browser, 1280)
    browser.get(f"{site.address}/recommenders/shop/rules/blacklist")
    shown = [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, ".evidence-rows td:nth-child(4)")]
    assert shown[:5] == [*pictures.NASTY[:3], "safe[U+202E]gnp.exe", "two[LF]lines[TAB]and[NUL]nul"]
    assert shown[5].endswith("… (5,000 characters)")
    assert shown[6:] == ["{{ 7 * 7 }}", "[U+D800] lone", "日本語のアイテム"]
    assert browser.title == "blacklist: violated · shop"


def test_the_evidence_is_one_click_from_the_recommenders_page(browser, site):
    size(browser, 390)
    browser.get(f"{site.address}/?refresh=off")
    follow(browser, browser.find_element(By.LINK_TEXT, "shop"))
    first = browser.find_element(By.CSS_SELECTOR, ".attention li")
    assert "blacklist" in first.text
    assert "since 2026-03-09 11:00 UTC" in first.text
    follow(browser, first.find_element(By.CSS_SELECTOR, "a.evidence"))
    assert browser.find_element(By.CSS_SELECTOR, "h1").text == "blacklist"
    assert pictures.HOSTILE in browser.find_element(By.CSS_SELECTOR, ".evidence-rows").text


def test_the_evidence_of_a_cause_is_one_click_away_whatever_the_model_is_called(browser, site):
    size(browser, 1280)
    browser.get(f"{site.address}/recommenders/ranker/sections/models?refresh=off")
    first = browser.find_element(By.CSS_SELECTOR, ".causes li")
    assert first.text.splitlines()[0] == "serving skew"
    bar = first.find_element(By.CSS_SELECTOR, ".bar")
    full, part = (rect.size["width"] for rect in bar.find_elements(By.TAG_NAME, "rect"))
    assert part / full == pytest.approx(0.68, abs=0.02)
    assert pictured_models.FEATURE in browser.find_element(By.CSS_SELECTOR, ".features").text
    follow(browser, first.find_element(By.CSS_SELECTOR, "a.evidence"))
    assert browser.current_url.endswith(CAUSE)
    assert browser.title == "serving skew: a/b?<script>#%[LF].. · ranker"
    rows = browser.find_elements(By.CSS_SELECTOR, ".evidence-rows tbody tr")
    assert rows[0].text.splitlines() == ["0", pictured_models.FEATURE, pictures.HOSTILE]
    assert len(rows) == len(pictures.NASTY)


def test_the_series_of_an_anomaly_are_one_click_away_and_their_bands_can_be_seen(browser, site):
    size(browser, 1280)
    browser.get(f"{site.address}/recommenders/feeds?refresh=off")
    first = browser.find_element(By.CSS_SELECTOR, ".attention li")
    assert "lists empty" in first.text
    follow(browser, first.find_element(By.CSS_SELECTOR, "a.evidence"))
    assert browser.title == "lists empty: violated · feeds"
    rows = browser.find_elements(By.CSS_SELECTOR, ".rows tbody tr")
    assert pictures.HOSTILE in rows[0].text
    assert [row.find_element(By.CSS_SELECTOR, "[data-label=deviation]").text for row in rows] == [
        "61.3 sd above", "55.1 sd above", "55.1 sd below"
    ]  # fmt: skip
    for row in rows:
        band, out = (row.find_elements(By.CSS_SELECTOR, f".spark {one}") for one in (".band", ".is-violated"))
        assert (len(band), len(out)) == (1, 3)
        assert band[0].rect["height"] >= 2
        assert band[0].rect["width"] > 100  # of 48 windows, not of the newest alone
        assert band[0].value_of_css_property("fill") != "rgb(0, 0, 0)"


@pytest.mark.parametrize("width", [360, 390, 768, 1000, 1280])
@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_wider_than_its_screen(browser, site, path, width):
    size(browser, width)
    browser.get(f"{site.address}{path}")
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(browser, site, scheme):
    size(browser, 1280)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    low = []
    for path in PAGES:
        browser.get(f"{site.address}{path}")
        browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        low += browser.execute_script(CONTRAST)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert low == []


# The ratio of WCAG 2 between each text and the nearest painted ground, where it is below 4.5.
CONTRAST = """
const numbers = text => text.match(/[\\d.]+/g).map(Number);
const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const ground = element => {
  for (; element; element = element.parentElement) {
    const colour = numbers(getComputedStyle(element).backgroundColor);
    if (colour.length < 4 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const low = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].filter(n => n.nodeType === 3 && n.textContent.trim());
  if (!own.length || !element.getClientRects().length || element.closest('svg')) continue;
  const [a, b] = [light(numbers(getComputedStyle(element).color)), light(ground(element))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) low.push(`${own[0].textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
}
return low;
"""


def test_states_can_be_distinguished_without_colour(browser, site):
    size(browser, 1280)
    seen = {}
    for section in ("rules", "metrics"):
        browser.get(f"{site.address}/recommenders/shop/sections/{section}")
        for badge in browser.find_elements(By.CSS_SELECTOR, ".rows .badge"):
            symbols = badge.find_elements(By.TAG_NAME, "svg")
            seen[badge.text] = symbols[0].get_attribute("innerHTML").strip() if symbols else ""
    assert set(seen) == {"ok", "violated", "no data", "late", "error", "undefined", "measured"}
    assert len(set(seen.values())) == len(seen)


def test_the_page_can_be_read_where_scripts_are_switched_off(browser, site):
    size(browser, 1280)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"{site.address}/recommenders/shop")
        text = browser.find_element(By.TAG_NAME, "main").text
        browser.find_element(By.CSS_SELECTOR, "#metrics summary").click()
        follow(browser, browser.find_element(By.CSS_SELECTOR, "#metrics .body a"))
        text += browser.find_element(By.TAG_NAME, "main").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    for part in ("2 of 8 rules violated", "blacklist", "self_information", "9.23 bits"):
        assert part in text


def test_a_screenshot_can_be_taken(browser, site, tmp_path: Path):
    size(browser, 1280)
    browser.get(f"{site.address}/")
    assert browser.save_screenshot(str(tmp_path / "overview.png"))
    assert (tmp_path / "overview.png").stat().st_size > 20_000
