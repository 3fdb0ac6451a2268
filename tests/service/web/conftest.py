"""One browser for the tests of a file, and one judged shop for all tests that only read it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from selenium import webdriver

from tests.service.web.api.judged_shop import JudgedShop
from tests.service.web.chromium import opened


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[webdriver.Chrome]:
    chrome = opened(tmp_path_factory.mktemp("chromium"))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="session")
def judged_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JudgedShop]:
    made = JudgedShop(tmp_path_factory.mktemp("api") / "shop")
    yield made
    made.close()


@pytest.fixture(scope="session")
def api(judged_shop: JudgedShop) -> Iterator[httpx.Client]:
    with judged_shop.serving() as client:
        yield client
