"""On a log that nobody writes to any more `check`, `backfill` and the daemon give the same verdicts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from monitor.cli.judge import backfill, judge
from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.core.results import Status, Window
from monitor.history.store import Store
from monitor.history.watched import watched_since
from monitor.judging.runtime import Runtime
from monitor.service.salt import install_salt
from monitor.service.watch import Watch

HOUR = timedelta(hours=1)
SUITE = {
    "expectations": [
        {
            "type": "expect_column_values_to_be_in_set",
            "kwargs": {"column": "item_id", "value_set": [f"i{n}" for n in range(50)], "mostly": 0.9},
            "severity": "warning",
            "meta": {"rule": "few_odd_items", "kind": "soft"},
        },
        {
            "type": "expect_column_values_to_not_be_in_set",
            "kwargs": {"column": "item_id", "value_set": ["banned"]},
            "severity": "critical",
            "meta": {"rule": "no_banned_item", "kind": "hard"},
        },
    ]
}


def written(folder: Path, end: datetime, odd: float = 0.3) -> Path:
    """Four hours of lists and clicks, up to 20 minutes before `end`; the last hour has odd items."""
    draw = np.random.default_rng(1)
    begin, stop = end - 4 * HOUR, end - timedelta(minutes=20)
    n = 1200
    at = pd.to_datetime(begin) + (stop - begin) * np.sort(draw.random(n))
    shown = pd.DataFrame({"ts": at, "request_id": np.arange(n).astype(str)})
    shown["user_id"] = "u" + pd.Series(draw.integers(0, 200, n)).astype(str)
    shown["item_id"] = "i" + pd.Series(draw.integers(0, 50, n)).astype(str)
    last = shown.ts >= pd.Timestamp(end - HOUR)
    shown.loc[last & (draw.random(n) < odd), "item_id"] = "odd"
    acted = shown[draw.random(n) < 0.2].copy()
    acted["ts"] += pd.to_timedelta(draw.exponential(60, len(acted)), unit="s")
    acted["event"] = "click"
    acted = acted[acted.ts < pd.Timestamp(stop)].drop(columns="request_id")
    shown.to_parquet(folder / "exposures.parquet", index=False)
    acted.to_parquet(folder / "feedback.parquet", index=False)
    (folder / "suite.yaml").write_text(yaml.safe_dump(SUITE))
    shop = {
        "name": "shop",
        "window": "1h",
        "logs": {name: {"path": f"{name}.parquet"} for name in ("exposures", "feedback")},
        "rules": [{"suite": "suite.yaml"}],
        "objectives": [
            {"metric": "action_rate", "labels": {"by": "exposure", "event": "click"}, "min": 0.5},
            {"metric": "failure", "labels": {"by": "pv"}, "max": 0.1},
            {"metric": "volume", "labels": {"by": "requests"}, "min": 250},
        ],
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump({"state": str(folder / "state"), "recommenders": [shop]}))
    return config


def by_check(path: Path) -> dict[tuple, tuple]:
    found, _ = judge(path, None, None, None)
    return {key(one.window, one.result): verdict(one.result) for one in found}


def by_history(path: Path) -> dict[tuple, tuple]:
    config = load_config(path)
    with Store.open(config.history.location(config.state)) as store:
        return {key(one.window, one.result): verdict(one.result) for one in store.results()}


def by_daemon(path: Path, now: datetime) -> dict[tuple, tuple]:
    config = load_config(path)
    (checked,) = check_config(config, path.parent)
    with Store.open(config.history.location(config.state)) as store:
        runtime = Runtime(path.parent / "spill", threads=1)
        watch = Watch(checked.settings, checked.rules, store, config.state, install_salt(config.state))
        while watch.turn(runtime, now):
            pass
        runtime.close()
    return by_history(path)


def key(window: Window, result) -> tuple:
    return window, result.metric, tuple(sorted(result.labels.items()))


def verdict(result) -> tuple:
    return result.status, result.value, result.lower, result.threshold, result.detail


LONG_AGO = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_check_backfill_and_the_daemon_agree_on_every_verdict(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("check", "backfill", "daemon")]
    for folder in folders:
        folder.mkdir()
        written(folder, LONG_AGO)
    checked = by_check(folders[0] / "config.yaml")
    backfill(folders[1] / "config.yaml", None, None, None)
    filled = by_history(folders[1] / "config.yaml")
    watched = by_daemon(folders[2] / "config.yaml", datetime.now(UTC))
    assert len(checked) > 100
    assert checked == filled == watched
    last = Window(LONG_AGO - HOUR, LONG_AGO)
    assert Status.LATE not in {found[0] for found in checked.values()}
    rules = {dict(labels)["rule"]: found[0] for (window, metric, labels), found in checked.items()
             if window == last and metric == "rule"}  # fmt: skip
    assert rules == {"few_odd_items": Status.VIOLATED, "no_banned_item": Status.OK}


def test_after_a_backfill_neither_the_daemon_nor_check_says_otherwise(tmp_path: Path) -> None:
    config = written(tmp_path, LONG_AGO)
    backfill(config, None, None, None)
    filled = by_history(config)
    assert by_daemon(config, datetime.now(UTC)) == filled
    assert by_check(config) == filled
    with Store.open(load_config(config).history.location(tmp_path / "state")) as store:
        assert not store.counters().get(("recsys_corrections_total", (("recommender", "shop"),)))


def test_a_log_that_stops_while_the_daemon_watches_is_late_for_all_three(tmp_path: Path) -> None:
    """The daemon starts in the middle of the last window, so it saw the log stop."""
    now = datetime.now(UTC)
    end = Window.of(now - 6 * HOUR, HOUR).end
    config = written(tmp_path, end)
    settings = load_config(config)
    with Store.open(settings.history.location(settings.state)) as store:
        store.set_watermark("shop", "watching_since", end - timedelta(minutes=30))
    watched = by_daemon(config, now)
    last = {k: v for k, v in watched.items() if k[0] == Window(end - HOUR, end)}
    assert Status.LATE in {found[0] for found in last.values()}
    (soft,) = [v for k, v in last.items() if dict(k[2]).get("rule") == "few_odd_items"]
    assert soft[0] is Status.VIOLATED
    assert "the window is not complete" in soft[4]
    # The daemon also judges the empty hours since, in which it waited for rows.
    of_log = {k: v[0] for k, v in watched.items() if k[0].end <= end}
    assert {k: v[0] for k, v in by_check(config).items()} == of_log
    backfill(config, None, None, None)
    assert {k: v[0] for k, v in by_history(config).items() if k[0].end <= end} == of_log


@pytest.mark.parametrize("folder", ["plain", "with #1"])
def test_a_check_beside_a_daemon_does_not_change_the_history(tmp_path: Path, folder: str) -> None:
    tmp_path = tmp_path / folder
    tmp_path.mkdir()
    config = written(tmp_path, LONG_AGO)
    settings = load_config(config)
    location = settings.history.location(settings.state)
    assert watched_since(location, "shop") is None
    by_check(config)
    assert not (tmp_path / "state").exists()
    with Store.open(location) as store:
        store.set_watermark("shop", "watching_since", LONG_AGO)
        assert watched_since(location, "shop") == LONG_AGO  # while the daemon has it open
    assert watched_since(location, "shop") == LONG_AGO
    assert watched_since(location, "other") is None


@pytest.mark.parametrize("content", [b"", b"no database"])
def test_a_history_that_cannot_be_read_does_not_stop_a_check(tmp_path: Path, content: bytes, capsys) -> None:
    config = written(tmp_path, LONG_AGO)
    (tmp_path / "state").mkdir()
    settings = load_config(config)
    path = Path(settings.history.location(settings.state).removeprefix("sqlite:///"))
    path.write_bytes(content)
    assert Status.LATE not in {found[0] for found in by_check(config).values()}
    assert "the windows are judged without it" in capsys.readouterr().err
