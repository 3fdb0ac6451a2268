"""A real Chromium for the tests of pages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 60
"""Seconds that a page may take to follow a link."""

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


def _program(*names: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        assert os.environ.get("CI") != "true", f"{names[0]} is missing: install chromium and chromium-driver"
        pytest.skip(f"{names[0]} is missing: install chromium and chromium-driver to run this test")
    return found


def opened(profile: Path) -> webdriver.Chrome:
    """A browser with a profile of its own."""
    driver = _program("chromedriver", "/usr/bin/chromedriver")
    options = Options()
    options.binary_location = _program("chromium", "/usr/bin/chromium", "google-chrome")
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    chrome.set_page_load_timeout(60)
    return chrome


def size(browser: webdriver.Chrome, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def follow(browser: webdriver.Chrome, element: WebElement) -> None:
    """Click what leads to another page, and wait for that page: a click returns before it is there."""
    left = browser.find_element(By.TAG_NAME, "html")
    element.click()
    WebDriverWait(browser, PATIENCE).until(staleness_of(left))
    # `body` is read through the driver, which waits until the page has loaded.
    browser.find_element(By.TAG_NAME, "body")
