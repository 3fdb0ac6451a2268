"""What is shown of results: the command's table, a frame, and HTML that no text of a log can break."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recsys_monitor
from tests.cli.conftest import run_monitor
from tests.python.conftest import HOSTILE


@pytest.fixture(scope="session")
def results(folder: Path, logs: dict[str, pd.DataFrame]) -> recsys_monitor.Results:
    return recsys_monitor.check(**logs, config=folder / "shop.yaml")


@pytest.fixture(scope="session")
def hostile(folder: Path, logs: dict[str, pd.DataFrame]) -> recsys_monitor.Results:
    """A blacklisted item and a scene whose names are HTML, control characters and quotes."""
    exposures = logs["exposures"].copy()
    exposures.loc[exposures.index[5], "item_id"] = HOSTILE
    exposures["scene"] = HOSTILE
    exposures[HOSTILE] = 1
    pd.DataFrame({"item_id": [HOSTILE]}).to_csv(folder / "hostile.csv", index=False)
    blacklist = {"pack": "blacklist", "parameters": {"blacklist": str(folder / "hostile.csv")}}
    config = {"window": "2d", "rules": [blacklist], "slices": {"by": ["scene"], "metrics": ["coverage"]}}
    return recsys_monitor.check(exposures, config=config)


class Tags(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(results: recsys_monitor.Results, **options: Any) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        results.show(**options)
    return out.getvalue()


@pytest.mark.parametrize("everything", [False, True])
def test_in_a_terminal_it_is_the_table_of_the_command(
    everything: bool, results: recsys_monitor.Results, folder: Path
) -> None:
    ran = run_monitor("check", "--config", "shop.yaml", *["--all"] * everything, cwd=folder)
    printed = shown(results, everything=everything)
    assert printed == ran.out.replace("--all shows them", "everything=True shows them")
    assert "✗ violated" in printed


def test_a_metric_shows_its_values_though_nothing_judges_them(logs: dict[str, pd.DataFrame]) -> None:
    measured = recsys_monitor.metric("coverage", logs["exposures"])
    assert "coverage by=pv" in shown(measured)
    assert "coverage by=pv" in measured.to_html()
    assert "coverage by=pv" not in shown(measured, everything=False)


def test_a_frame_has_a_row_for_each_result_and_the_same_types_without_rows(
    results: recsys_monitor.Results, logs: dict[str, pd.DataFrame]
) -> None:
    frame = results.frame()
    empty = recsys_monitor.check(logs["exposures"].head(0)).frame()
    assert len(frame) == len(results) > 300
    assert len(empty) == 0
    assert frame.dtypes.to_dict() == empty.dtypes.to_dict()
    assert str(frame.window_end.dtype) == "datetime64[us, UTC]"
    rule = frame[frame.series == "rule blacklist (hard)"].iloc[0]
    assert (rule.status, rule.labels, rule.evidence[0]["item_id"]) == (
        "violated",
        {"rule": "blacklist", "kind": "hard"},
        "i3",
    )
    by_scene = frame[frame.series == "coverage by=pv dimension=scene value=home"]
    assert by_scene.value.notna().all()
    assert len(by_scene) == 5


def test_a_page_loads_nothing_and_its_policy_allows_its_own_style_alone(
    results: recsys_monitor.Results,
) -> None:
    page = Tags(results.to_html(everything=True))
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not {"src", "href", "style", "onclick"} & {name for name, _ in page.attributes}
    (policy,) = [value for _, value in page.attributes if value and "default-src" in value]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "violated" in page.text
    assert "coverage by=pv" in page.text


def test_the_text_of_a_log_stays_text(hostile: recsys_monitor.Results) -> None:
    assert hostile.status == "violated"
    for text in (hostile.to_html(everything=True), hostile._repr_html_()):
        page = Tags(text)
        assert "script" not in page.tags
        assert "alert(1)" in page.text
        assert "\x1b" not in text
        assert "\u202e" not in text
    printed = shown(hostile, everything=True)
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert HOSTILE in {row["item_id"] for rows in hostile.frame().evidence for row in rows}


def test_a_notebook_shows_a_fragment_whose_style_reaches_nothing_else(
    results: recsys_monitor.Results,
) -> None:
    fragment = results._repr_html_()
    page = Tags(fragment)
    assert not {"html", "head", "body", "script", "link"} & set(page.tags)
    style = fragment.partition("<style>")[2].partition("</style>")[0]
    selectors = [line.partition("{")[0] for line in style.splitlines() if line.strip()]
    assert selectors
    assert all(part.strip().startswith(".recsys-monitor") for one in selectors for part in one.split(","))
    assert len(fragment) < 100_000


def test_the_text_of_a_result_says_what_it_is(results: recsys_monitor.Results) -> None:
    assert repr(results).startswith("<Results violated: 5 windows, 35 verdicts: ")
    assert results[0].recommender == "shop"
