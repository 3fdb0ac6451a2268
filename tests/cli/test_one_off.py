"""Windows judged without a daemon: as the log is, with nothing left behind, or as the daemon would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.cli.judge import backfill
from monitor.cli.one_off import one_off
from monitor.config.checks.check import Checked, check_config
from monitor.config.load import load_config
from monitor.core.results import Status, Window
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.service.salt import install_salt
from monitor.service.watch import Watch
from monitor.settings.config import Config
from tests.processes import exposures, land

CONFIG = """\
recommenders:
  - name: shop
    logs: {exposures: {path: "logs/*.parquet"}}
    window: 1h
    rules: [{pack: blacklist, parameters: {blacklist: blacklist.csv}}]
"""
HOUR = timedelta(hours=1)


def shop(folder: Path, newest: datetime) -> tuple[Config, Checked]:
    """Three hours of a log, the last of which ends with its last row."""
    last = Window.of(newest, HOUR)
    for back in range(3):
        start = last.start - back * HOUR
        land(
            folder / f"logs/{back}.parquet",
            exposures(start, 3600 if back else 600, items=["forbidden"][:back]),
        )
    (folder / "blacklist.csv").write_text("item_id\nforbidden\n")
    (folder / "config.yaml").write_text(CONFIG)
    config = load_config(folder / "config.yaml")
    return config, check_config(config, folder)[0]


def judged(config: Config, checked: Checked, now: datetime) -> dict[Window, Status | None]:
    with one_off(config, checked, "salt") as once:
        once.look(now)
        windows, gaps = once.windows(None, None, now)
        assert gaps == []
        found = {e.due.window: e.runs[1].status for e in once.judge(windows, now)}
    return found


def test_a_log_is_judged_as_it_is_after_max_wait_and_is_late_before(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    config, checked = shop(tmp_path, now)
    last = Window.of(now, HOUR)
    before, after = judged(config, checked, now), judged(config, checked, last.end + HOUR)
    assert (
        list(before)
        == list(after)
        == [Window(last.start - back * HOUR, last.end - back * HOUR) for back in (2, 1, 0)]
    )
    assert list(before.values()) == [Status.VIOLATED, Status.VIOLATED, Status.LATE]
    assert list(after.values()) == [Status.VIOLATED, Status.VIOLATED, Status.OK]


def test_a_blacklist_without_an_id_is_an_error_unless_that_is_meant(tmp_path: Path) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    config, checked = shop(tmp_path, now)
    (tmp_path / "blacklist.csv").write_text("item_id\n")
    assert set(judged(config, checked, datetime.now(UTC)).values()) == {Status.ERROR}
    meant = CONFIG.replace("blacklist.csv}", "blacklist.csv, allow_empty: true}")
    (tmp_path / "config.yaml").write_text(meant)
    config = load_config(tmp_path / "config.yaml")
    (checked,) = check_config(config, tmp_path)
    assert set(judged(config, checked, datetime.now(UTC)).values()) == {Status.OK}


def test_judging_once_leaves_nothing_behind(tmp_path: Path) -> None:
    config, checked = shop(tmp_path, datetime(2026, 3, 1, 12, tzinfo=UTC))
    before = sorted(path.name for path in tmp_path.iterdir())
    judged(config, checked, datetime.now(UTC))
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_backfill_and_daemon_do_not_correct_each_other(tmp_path: Path) -> None:
    config, checked = shop(tmp_path, datetime(2026, 3, 1, 12, tzinfo=UTC))
    backfill(tmp_path / "config.yaml", None, None, None)
    with Store.open(config.history.location(config.state)) as store:
        results, counters = list(store.results()), store.counters()
        assert counters["recsys_windows_total", (("recommender", "shop"), ("status", "violated"))] == 2
        runtime = Runtime(tmp_path / "spill", threads=1)
        watch = Watch(checked.settings, checked.rules, store, config.state, install_salt(config.state))
        assert watch.turn(runtime, datetime.now(UTC)) is False
        runtime.close()
        assert (list(store.results()), store.counters()) == (results, counters)
    backfill(tmp_path / "config.yaml", None, None, None)
    with Store.open(config.history.location(config.state)) as store:
        assert (list(store.results()), store.counters()) == (results, counters)


def test_a_backfill_leaves_windows_that_still_wait_for_rows_to_the_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC)
    config, _ = shop(tmp_path, now)
    begun = Window.of(now, HOUR)
    assert backfill(tmp_path / "config.yaml", begun.start - 2 * HOUR, begun.end + 1000 * HOUR, None) == 0
    with Store.open(config.history.location(config.state)) as store:
        kept = [one.window for one in store.evaluated("shop", "logs")]
    assert kept in (
        [Window(begun.start - 2 * HOUR, begun.start - HOUR)],
        [Window(begun.start - 2 * HOUR, begun.start - HOUR), Window(begun.start - HOUR, begun.start)],
    )
    assert f"{3 - len(kept)} window(s) still wait for rows" in capsys.readouterr().err
    assert backfill(tmp_path / "config.yaml", begun.end + HOUR, begun.end + 9 * HOUR, None) == 3
