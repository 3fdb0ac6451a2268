"""Reports that the daemon writes into a folder, one for each recommender and period, and their page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from monitor.config.load import load_checked
from monitor.service.daemon import Daemon
from tests.report.period_world import END, SECOND, judged
from tests.service.web.test_app import client

NAME = "shop_2026-03-03_2026-03-04.html"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = judged(tmp_path_factory.mktemp("daily"))
    values = yaml.safe_load(path.read_text())
    values["reports"] = {"every": "1d", "folder": "reports"}
    path.write_text(yaml.safe_dump(values))
    return path


def kept_house(config: Path, now: datetime) -> list[str]:
    """The reports after a housekeeping of the daemon at this time."""
    daemon = Daemon(config, clock=lambda: now)
    try:
        daemon.housekeeping()
    finally:
        daemon.close()
    folder = config.parent / "reports"
    return sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []


def test_a_report_is_written_once_after_its_last_window_had_time_to_be_judged(config: Path) -> None:
    assert NAME not in kept_house(config, END + timedelta(minutes=10))
    assert NAME in kept_house(config, END + timedelta(hours=3))
    path = config.parent / "reports" / NAME
    assert "rule blacklist (hard)" in path.read_text("utf-8")
    path.write_text("read and annotated")
    assert NAME in kept_house(config, END + timedelta(hours=5))
    assert path.read_text() == "read and annotated"
    path.unlink()
    kept_house(config, END + timedelta(hours=5))


def test_a_period_in_which_nothing_was_judged_says_so(config: Path) -> None:
    names = kept_house(config, END + timedelta(days=2, hours=5))
    assert "shop_2026-03-05_2026-03-06.html" in names
    text = (config.parent / "reports" / "shop_2026-03-05_2026-03-06.html").read_text("utf-8")
    assert "No window of this period was judged" in text


def test_a_folder_that_cannot_be_written_stops_nothing(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    values = yaml.safe_load(config.read_text())
    values["reports"]["folder"] = "blacklist.csv/reports"  # below a file
    broken = config.parent / "broken.yaml"
    broken.write_text(yaml.safe_dump(values))
    kept_house(broken, SECOND + timedelta(hours=9))
    assert "a report cannot be written" in caplog.text
    assert "housekeeping failed" not in caplog.text


@pytest.fixture(scope="module")
def served(config: Path) -> Iterator[httpx.Client]:
    kept_house(config, END + timedelta(hours=3))
    (config.parent / "reports" / "<script>.html").write_text("not ours")
    with client(config=lambda: load_checked(config)[0]) as opened:
        yield opened


def test_the_page_of_reports_lists_them_and_is_linked_from_every_page(served: httpx.Client) -> None:
    assert '<a href="./reports/">reports</a>' in served.get("/").text
    listed = served.get("/reports/")
    assert f'<a href="../reports/{NAME}">' in listed.text
    assert "not ours" not in listed.text
    assert "&lt;script&gt;" not in listed.text
    assert '<a href="../reports/">reports</a>' in served.get("/recommenders/shop").text


def test_a_report_is_served_under_a_policy_without_scripts(served: httpx.Client, config: Path) -> None:
    answer = served.get(f"/reports/{NAME}")
    assert answer.text == (config.parent / "reports" / NAME).read_text("utf-8")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert "script-src" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["%3Cscript%3E.html", "..%2Fshop.yaml", "shop_2020-01-01_2020-01-02.html"])
def test_nothing_but_a_report_is_served(name: str, served: httpx.Client) -> None:
    assert served.get(f"/reports/{name}").status_code == 404


def test_without_reports_there_is_no_link_and_no_page() -> None:
    with client() as opened:
        assert "reports" not in opened.get("/").text
        assert opened.get("/reports/").status_code == 404
        assert opened.get(f"/reports/{NAME}").status_code == 404


def test_chromium_shows_a_report_with_its_style_and_runs_nothing(
    browser: Any, served: httpx.Client, config: Path
) -> None:
    """From the server, and as a file: then the policy in the file alone holds."""
    path = config.parent / "reports" / NAME
    for address in (f"{served.base_url}/reports/{NAME}", path.as_uri()):
        browser.get(address)
        assert browser.title == "recsys-monitor: 2026-03-03 00:00 to 2026-03-04 00:00 UTC"
        width = browser.execute_script("return getComputedStyle(document.querySelector('main')).maxWidth")
        assert width == "1152px"  # 72rem: the style is allowed
        drawn = browser.execute_script(
            "return [...document.querySelectorAll('svg .line')].filter(e => e.getTotalLength() > 100).length"
        )
        assert drawn >= 10
        loud = [one for one in browser.get_log("browser") if "favicon" not in one["message"]]
        assert loud == []
