"""A page in a real Chromium keeps itself up to date, and the reader keeps the place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from monitor.core.results import Status
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import WebServer, serve
from monitor.settings.server import ServerSettings
from tests.service import pictured_bands, pictured_models, pictures
from tests.service.web.chromium import size

# What the script does every 30 seconds; a test does not wait for it.
REFRESH = "refresh().then(arguments[arguments.length - 1])"


class Site:
    """A server whose snapshot a test can change."""

    def __init__(self) -> None:
        self.shown = many()
        self.server: WebServer = serve(
            ServerSettings(listen="127.0.0.1:0"),
            lambda: self.shown,
            reload=lambda: ReloadOutcome(True),
            not_ready=lambda: "",
            healthy=lambda: True,
        )

    def url(self, path: str) -> str:
        return f"{self.server.address}{path}"


def many() -> Snapshot:
    others = [replace(pictures.news(), name=f"other-{number:02}") for number in range(40)]
    made = (pictures.shop(), pictured_models.ranker(), pictured_bands.feeds(), *others)
    return replace(pictures.full(), recommenders=made)


def well(state: RecommenderState) -> RecommenderState:
    """The recommender after its violated rule has become ok."""
    first, *rest = state.series
    calm = replace(first.result, status=Status.OK, value=0.0, violations=0, detail="", evidence=())
    return replace(state, series=(replace(first, result=calm, standing=Status.OK), *rest))


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.server.stop()


def until(browser, condition) -> None:
    WebDriverWait(browser, pictures.PATIENCE).until(condition)


def names(browser) -> list[str]:
    return browser.execute_script(
        "return [...document.querySelectorAll('.fleet tbody th')].map(e => e.innerText)"
    )


def test_typing_searches_in_place_and_the_address_can_be_shared(browser, site):
    size(browser, 1280)
    browser.get(site.url("/"))
    browser.execute_script("window.mark = 'the same page'")
    field = browser.find_element(By.ID, "q")
    field.send_keys("OTHER-1")
    until(browser, lambda _: len(names(browser)) == 10)
    assert browser.find_element(By.ID, "shown").text == "10 of 43 recommenders"
    assert browser.find_element(By.ID, "shown").get_attribute("role") == "status"
    assert browser.current_url.endswith("?q=OTHER-1")
    assert browser.switch_to.active_element == field
    assert browser.execute_script("return window.mark") == "the same page"
    browser.refresh()
    assert len(names(browser)) == 10
    assert browser.find_element(By.ID, "q").get_attribute("value") == "OTHER-1"


def test_a_state_filters_in_place(browser, site):
    browser.get(site.url("/"))
    browser.find_element(By.CSS_SELECTOR, "#state option[value=violated]").click()
    until(browser, lambda _: len(names(browser)) == 3)
    assert set(names(browser)) == {"shop", "ranker", "feeds"}


def test_a_refresh_keeps_the_scroll_position_the_focus_and_what_is_typed(browser, site):
    size(browser, 390)
    browser.get(site.url("/"))
    link = browser.find_element(By.LINK_TEXT, "other-31")
    browser.execute_script("arguments[0].focus()", link)
    field = browser.find_element(By.ID, "q")
    browser.execute_script("arguments[0].value = 'typed, not sent'", field)
    top = "return [window.scrollY, arguments[0].getBoundingClientRect().top]"
    before = browser.execute_script(top, link)
    assert before[0] > 500
    shop = well(pictures.shop())
    site.shown = replace(site.shown, recommenders=(shop, *site.shown.recommenders[1:]))
    browser.execute_async_script(REFRESH)
    assert "blacklist" not in browser.find_element(By.CSS_SELECTOR, ".fleet").text
    assert browser.execute_script(top, link)[0] == pytest.approx(before[0], abs=40)
    assert browser.switch_to.active_element == link
    assert field.get_attribute("value") == "typed, not sent"


def test_the_focus_follows_its_recommender_when_the_order_changes(browser, site):
    size(browser, 1280)
    browser.get(site.url("/"))
    assert names(browser)[0] == "shop"
    link = browser.find_element(By.LINK_TEXT, "shop")
    browser.execute_script("arguments[0].focus()", link)
    state = site.shown.recommenders[0]
    site.shown = replace(
        site.shown, recommenders=(replace(state, series=state.series[2:3]), *site.shown.recommenders[1:])
    )
    browser.execute_async_script(REFRESH)
    assert names(browser)[0] != "shop"
    assert browser.switch_to.active_element.text == "shop"


def test_a_section_is_fetched_when_it_is_opened_and_stays_open_and_fresh(browser, site):
    size(browser, 1280)
    browser.get(site.url("/recommenders/shop"))
    assert browser.find_elements(By.CSS_SELECTOR, "table") == []
    browser.find_element(By.CSS_SELECTOR, "#rules > summary").click()
    until(browser, lambda _: browser.find_elements(By.CSS_SELECTOR, "#rules table"))
    link = browser.find_element(By.CSS_SELECTOR, "#rules tbody a")
    assert link.get_attribute("href") == site.url("/recommenders/shop/rules/blacklist")
    assert "violated" in browser.find_element(By.CSS_SELECTOR, "#rules tbody tr").text
    site.shown = replace(site.shown, recommenders=(well(pictures.shop()), *site.shown.recommenders[1:]))
    browser.execute_async_script(REFRESH)
    until(
        browser, lambda _: "duplicate_item" in browser.find_element(By.CSS_SELECTOR, "#rules tbody tr").text
    )
    assert browser.find_element(By.ID, "rules").get_attribute("open")
    problems = browser.find_element(By.CSS_SELECTOR, ".attention")
    assert "blacklist" not in problems.text


@pytest.mark.parametrize(
    ("path", "section"),
    [("/recommenders/ranker#models", "models"), ("/recommenders/feeds#anomalies", "anomalies")],
)
def test_the_link_of_an_alert_to_a_section_opens_it(browser, site, path, section):
    size(browser, 1280)
    browser.get("about:blank")
    browser.get(site.url(path))
    until(browser, lambda _: browser.find_elements(By.CSS_SELECTOR, f"#{section} table"))


def test_an_address_that_ends_in_any_text_leaves_the_page_alive(browser, site):
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(site.url("/?state=violated#100%"))
    until(browser, lambda _: browser.execute_script("return document.readyState") == "complete")
    assert [one for one in browser.get_log("browser") if "URIError" in one["message"]] == []
    browser.find_element(By.ID, "q").send_keys("nobody")
    until(browser, lambda _: "q=nobody" in browser.current_url)


def test_a_monitor_that_does_not_answer_is_said_and_the_page_stays(browser, site):
    browser.get(site.url("/recommenders/shop"))
    note = browser.find_element(By.ID, "update")
    assert not note.is_displayed()
    site.server.stop()
    browser.execute_async_script(REFRESH)
    assert note.is_displayed()
    assert note.text.startswith("The monitor has not answered as it should since ")
    assert note.text.endswith(" UTC: this page may be out of date.")
    assert note.get_attribute("role") == "status"
    assert "blacklist" in browser.find_element(By.CSS_SELECTOR, ".attention").text


def test_everything_is_reached_by_keyboard_and_has_a_name(browser, site):
    size(browser, 1280)
    browser.get(site.url("/"))
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    first = browser.switch_to.active_element
    assert first.text == "Skip to the content"
    first.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "content"
    for path in ("/", "/recommenders/shop", "/recommenders/shop/sections/rules", "/runbooks/RecsysAnomaly"):
        browser.get(site.url(path))
        assert browser.execute_script(FAULTS) == []
    browser.get(site.url("/recommenders/shop"))
    summary = browser.find_element(By.CSS_SELECTOR, "#rules > summary")
    summary.send_keys(Keys.ENTER)
    until(browser, lambda _: browser.find_elements(By.CSS_SELECTOR, "#rules table"))
    outline = browser.switch_to.active_element.value_of_css_property("outline-style")
    assert outline == "solid"


# What a screen reader stumbles over: landmarks, the order of headings, names, labels, headers of columns.
FAULTS = """
const faults = [];
for (const landmark of ['header', 'nav', 'main', 'footer', 'h1'])
  if (document.querySelectorAll(landmark).length !== 1) faults.push(`not one ${landmark}`);
let level = 0;
for (const heading of document.querySelectorAll('h1, h2, h3, h4, h5')) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) faults.push(`${heading.textContent} skips a level`);
  level = own;
}
for (const element of document.querySelectorAll('a[href], button, summary'))
  if (!element.textContent.trim()) faults.push(`no name: ${element.outerHTML}`);
for (const field of document.querySelectorAll('input:not([type=hidden]), select'))
  if (!field.labels.length) faults.push(`no label: ${field.outerHTML}`);
for (const cell of document.querySelectorAll('thead th'))
  if (cell.scope !== 'col') faults.push(`no scope: ${cell.outerHTML}`);
for (const picture of document.querySelectorAll('svg[role=img]'))
  if (!picture.getAttribute('aria-label') && !picture.querySelector('title')) faults.push('picture');
const links = [...document.querySelectorAll('.attention a')].map(link => link.textContent.trim());
for (const text of ['runbook', 'evidence', 'silence'])
  if (links.includes(text)) faults.push(`${text} of what?`);
if (!document.documentElement.lang) faults.push('no language');
return faults;
"""


def test_a_phone_shows_the_problem_of_each_recommender_without_scrolling_aside(browser, site):
    size(browser, 360)
    browser.get(site.url("/"))
    row = browser.find_element(By.CSS_SELECTOR, ".fleet tbody tr")
    assert "blacklist" in row.text
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    small = browser.execute_script(
        "return [...document.querySelectorAll('.search input, .search select, .search button')]"
        ".filter(one => one.getBoundingClientRect().height < 32).length"
    )
    assert small == 0
