"""`history bands`: what the bands of a config would have reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monitor.history.store import Store
from tests.anomalies.banded import store_hour, usual_hour
from tests.cli.conftest import run_monitor
from tests.cli.kept import run_keeping

CONFIG = """\
state: ./state
recommenders:
  - name: shop
    logs: {exposures: {path: "log/*.parquet"}}
    window: 1h
"""
LOST = range(400, 406)  # hours in which most requests are gone


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of measured hours, without any verdict on bands, and two configs."""
    folder = tmp_path_factory.mktemp("past")
    (folder / "plain.yaml").write_text(CONFIG)
    (folder / "bands.yaml").write_text(CONFIG + "    bands: {}\n")
    (folder / "dull.yaml").write_text(CONFIG + "    bands: {least_volume_change: 1, least_change: 1}\n")
    (folder / "state").mkdir(mode=0o700)
    with Store.open(folder / "state/history.sqlite") as store:
        for number in range(420):
            measured = usual_hour(number, factor=0.2 if number in LOST else 1.0)
            # A lost afternoon is seen in the volume alone; each further series takes its time to judge.
            store_hour(store, number, [one for one in measured if one.metric == "volume"])
    return folder


def test_the_page_of_a_lost_afternoon_is_printed_and_nothing_is_written(folder: Path) -> None:
    before = run_monitor("history", "export", "-c", "bands.yaml", cwd=folder).out
    ran = run_keeping("history", "bands", "-c", "bands.yaml", cwd=folder)
    assert ran.code == 0, ran.err
    pages = [line for line in ran.out.splitlines() if "  page  " in line]
    assert len(pages) == 1
    assert pages[0].endswith("traffic_lost")
    assert "2026-03-18 17:00" in pages[0] or "2026-03-18 18:00" in pages[0]
    assert ran.out.splitlines()[-1].startswith("shop: 1 page (0.4 a week), ")
    assert run_monitor("history", "export", "-c", "bands.yaml", cwd=folder).out == before


def test_other_settings_report_other_alerts(folder: Path) -> None:
    ran = run_monitor("history", "bands", "-c", "dull.yaml", cwd=folder)
    assert "page  " not in ran.out
    assert ran.out.splitlines()[-1].startswith("shop: no page, ")


def test_json_has_a_line_for_each_alert_of_the_span(folder: Path) -> None:
    arguments = ("history", "bands", "-c", "bands.yaml", "-f", "json")
    alerts = [json.loads(line) for line in run_keeping(*arguments, cwd=folder).out.splitlines()]
    assert {one["what"] for one in alerts if one["severity"] == "page"} == {"traffic_lost"}
    early = run_monitor(*arguments, "--to", "2026-03-04", cwd=folder)
    assert (early.code, [line for line in early.out.splitlines() if '"page"' in line]) == (0, [])
    assert "shop: no series had a band yet in 24 of 48 windows; nothing was compared there" in early.err


@pytest.mark.parametrize(
    ("config", "more", "code", "sentence"),
    [
        ("plain.yaml", (), 2, "no recommender of this config has bands; write `bands: {}` below the"),
        ("plain.yaml", ("-r", "shop"), 2, "'shop' does not have bands; write `bands: {}` below the"),
        ("bands.yaml", ("-r", "other"), 2, "no recommender is called 'other'"),
        ("bands.yaml", ("--from", "2027-01-01"), 3, "the history has no window in this span; `backfill`"),
        (
            "bands.yaml",
            ("--to", "2026-03-02T12:00"),
            3,
            "no series has a band in the 12 windows of this span, so nothing was compared; a band needs 24",
        ),
    ],
)
def test_what_cannot_be_judged_is_a_sentence(folder: Path, config, more, code, sentence) -> None:
    ran = run_monitor("history", "bands", "-c", config, *more, cwd=folder)
    assert (ran.code, ran.out) == (code, "")
    assert sentence in " ".join(ran.err.split())


def test_without_a_history_it_says_what_writes_one(tmp_path: Path) -> None:
    (tmp_path / "bands.yaml").write_text(CONFIG + "    bands: {}\n")
    ran = run_monitor("history", "bands", "-c", "bands.yaml", cwd=tmp_path)
    assert ran.code == 2
    assert "there is no history at" in ran.err
    assert "`recsys-monitor run` and `backfill` write one" in ran.err
