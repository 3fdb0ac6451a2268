"""One browser for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver

from tests.service.web.chromium import opened


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[webdriver.Chrome]:
    chrome = opened(tmp_path_factory.mktemp("chromium"))
    yield chrome
    chrome.quit()
