"""`recsys_monitor.open_history`: frames of what a daemon stored, which can be read and not changed."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psycopg
import pytest
from sqlalchemy import text

import recsys_monitor
from monitor.cli.judge import backfill
from monitor.core.results import Status
from tests.cli.conftest import run_monitor
from tests.history.conftest import postgres_server  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def backfilled(folder: Path) -> Path:
    """The config whose history holds every window of the logs."""
    from datetime import UTC, datetime

    assert (
        backfill(
            folder / "shop.yaml", datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, 6, tzinfo=UTC), None
        )
        == 0
    )
    return folder


@pytest.fixture
def history(backfilled: Path) -> Iterator[recsys_monitor.History]:
    with recsys_monitor.open_history(backfilled / "state") as opened:
        yield opened


def test_results_are_those_of_the_export(history: recsys_monitor.History, backfilled: Path) -> None:
    assert history.recommenders == ["shop"]
    frame = history.results()
    lines = run_monitor("history", "export", "--config", "shop.yaml", cwd=backfilled).out.splitlines()
    exported = pd.DataFrame(map(json.loads, lines))
    assert len(frame) == len(exported) > 300
    assert frame.metric.tolist() == exported.metric.tolist()
    assert frame.labels.tolist() == exported.labels.tolist()
    assert frame.value.fillna(-1).tolist() == exported.value.fillna(-1).tolist()
    assert frame.window_end.dt.strftime("%Y-%m-%dT%H:%M:%SZ").tolist() == exported.window_end.tolist()


def test_the_plot_of_the_page_has_a_line_for_each_series(history: recsys_monitor.History) -> None:
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text("utf-8")
    asked, drawn = re.findall(
        r"^    (?:found = )?((?:history|found)\..*?\))(?:  #|\.plot)", page, re.MULTILINE
    )
    found = eval(asked, {"history": history})
    lines = eval(drawn, {"found": found})
    assert {"failure by=pv", "failure by=uv"} <= set(lines.columns)
    for name, line in lines.items():
        assert line.dropna().tolist() == found[found.series == name].value.dropna().tolist()


def test_one_metric_of_a_span_is_ready_for_a_plot(history: recsys_monitor.History) -> None:
    frame = history.results("shop", metric="list_length", start="2026-01-05T06:00", end="2026-01-05T18:00")
    assert frame.window_start.dt.hour.tolist() == [6, 12]
    line = frame.set_index("window_end").value
    assert line.index.is_monotonic_increasing
    assert line.between(1, 5).all()


def test_windows_have_a_verdict_for_each_check(history: recsys_monitor.History) -> None:
    frame = history.windows("shop")
    assert set(frame.check) == {"logs", "rules", "exposure", "feedback"}
    assert frame.groupby("check").size().tolist() == [5, 5, 5, 5]
    assert set(frame[frame.check == "rules"].status) == {"violated"}
    assert (frame[frame.check == "exposure"].rows > 0).all()
    assert str(frame.evaluated_at.dtype) == "datetime64[us, UTC]"


def test_a_violation_is_one_row_from_its_first_window_with_its_evidence(
    history: recsys_monitor.History,
) -> None:
    frame = history.violations()
    rule = frame[frame.series == "rule blacklist (hard)"]
    assert len(rule) == 1
    assert rule.iloc[0].since == pd.Timestamp("2026-01-05", tz="UTC")
    assert pd.isna(rule.iloc[0].until)
    assert rule.iloc[0].windows == 5
    assert {row["item_id"] for row in rule.iloc[0].evidence} == {"i3"}
    part = history.violations(metric="rule", end="2026-01-05T12:00")
    assert part[part.series == "rule blacklist (hard)"].windows.tolist() == [2]
    none = history.violations(start="2027-01-01")
    assert len(none) == 0
    assert none.dtypes.to_dict() == frame.dtypes.to_dict()


def test_the_file_and_the_url_open_the_same(backfilled: Path) -> None:
    file = backfilled / "state" / "history.sqlite"
    for where in (file, str(file), f"sqlite:///{file}"):
        with recsys_monitor.open_history(where) as opened:
            assert opened.recommenders == ["shop"]


def test_a_folder_may_have_characters_that_mean_something_in_a_url(backfilled: Path, tmp_path: Path) -> None:
    state = tmp_path / "50%20 a?b#c"
    state.mkdir()
    shutil.copy(backfilled / "state" / "history.sqlite", state)
    for where in (state, state / "history.sqlite"):
        with recsys_monitor.open_history(where) as opened:
            assert opened.recommenders == ["shop"]


@pytest.mark.parametrize("url", ["mysql://reader:hidden@db/history", "sqlite://", "://reader:hidden@db"])
def test_a_url_of_no_history_is_a_sentence_without_its_password(url: str) -> None:
    with pytest.raises(recsys_monitor.StoreError, match="write it as sqlite:///") as raised:
        recsys_monitor.open_history(url)
    assert "hidden" not in str(raised.value)


def test_nothing_can_be_written(history: recsys_monitor.History, backfilled: Path) -> None:
    before = (backfilled / "state" / "history.sqlite").read_bytes()
    with (
        pytest.raises(recsys_monitor.StoreError, match="readonly"),
        history._history.reading() as connection,
    ):
        connection.execute(text("DELETE FROM windows"))
    history.results()
    assert (backfilled / "state" / "history.sqlite").read_bytes() == before


def test_what_is_no_history_is_said_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(recsys_monitor.StoreError, match="there is no history at"):
        recsys_monitor.open_history(tmp_path)
    assert list(tmp_path.iterdir()) == []
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE notes (text)")
    with pytest.raises(recsys_monitor.StoreError, match="is no history of recsys-monitor"):
        recsys_monitor.open_history(other)
    (tmp_path / "text.sqlite").write_text("no database at all, but long enough to have a header " * 30)
    with pytest.raises(recsys_monitor.StoreError, match="is not a database"):
        recsys_monitor.open_history(tmp_path / "text.sqlite")


def test_a_history_of_another_version_is_not_read_and_not_upgraded(backfilled: Path, tmp_path: Path) -> None:
    copy = tmp_path / "history.sqlite"
    with sqlite3.connect(backfilled / "state" / "history.sqlite") as source, sqlite3.connect(copy) as target:
        source.backup(target)
        target.execute("UPDATE alembic_version SET version_num = '0005'")
    with pytest.raises(recsys_monitor.StoreError, match="has schema 0005, and this version"):
        recsys_monitor.open_history(tmp_path)
    with sqlite3.connect(copy) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0005",)]


def test_an_unknown_recommender_is_named_with_those_that_there_are(history: recsys_monitor.History) -> None:
    with pytest.raises(recsys_monitor.HistoryError, match="no recommender 'shp'; it has: 'shop'"):
        history.results("shp")


def test_an_unknown_metric_is_an_error_and_one_without_results_is_not(
    history: recsys_monitor.History,
) -> None:
    with pytest.raises(recsys_monitor.HistoryError, match="no metric 'giny'; did you mean 'gini'"):
        history.results(metric="giny")
    with pytest.raises(recsys_monitor.HistoryError, match="no metric 'qqqqqq'; docs/metrics"):
        history.violations(metric="qqqqqq")
    assert not history.results(metric="log_rows").empty
    assert history.results(metric="log_rows", end="2026-01-01").empty
    assert history.results(metric="forecast_error").empty


def test_postgresql_is_read_and_not_changed(
    postgres_server: str,  # noqa: F811
    folder: Path,
) -> None:
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE of_python")
    url = f"{postgres_server}/of_python"
    config = (folder / "shop.yaml").read_text()
    (folder / "postgres.yaml").write_text(f"history: {{url: '{url}'}}\n{config}")
    start, end = pd.Timestamp("2026-01-05", tz="UTC"), pd.Timestamp("2026-01-05T12:00", tz="UTC")
    assert backfill(folder / "postgres.yaml", start.to_pydatetime(), end.to_pydatetime(), None) == 0
    with recsys_monitor.open_history(url) as opened:
        assert opened.recommenders == ["shop"]
        assert opened.violations(metric="rule").windows.tolist() == [2]
        assert set(opened.windows().status) >= {Status.OK.value, Status.VIOLATED.value}
        with (
            pytest.raises(recsys_monitor.StoreError, match="read-only"),
            opened._history.reading() as connection,
        ):
            connection.execute(text("DELETE FROM windows"))
        assert "kept-to-itself" not in repr(opened._history)
    with pytest.raises(recsys_monitor.StoreError) as refused:
        recsys_monitor.open_history(url.replace("kept-to-itself", "wrong"))
    assert "wrong" not in str(refused.value)
