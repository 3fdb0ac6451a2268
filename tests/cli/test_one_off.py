"""Windows judged without a daemon: as the log is, with nothing left behind, or as the daemon would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.cli.judge import backfill, judge
from monitor.cli.one_off import one_off
from monitor.config.checks.check import Checked, check_config
from monitor.config.load import load_config
from monitor.core.results import Status, Window
from monitor.history.store import Store
from monitor.history.watched import WATCHING
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
    assert f"rows are still to come in {3 - len(kept)} window" in capsys.readouterr().err
    assert backfill(tmp_path / "config.yaml", begun.end + HOUR, begun.end + 9 * HOUR, None) == 3


def test_a_backfill_stores_nothing_outside_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = datetime(2026, 3, 1, 12, tzinfo=UTC)
    config, _ = shop(tmp_path, last)
    path, location = tmp_path / "config.yaml", config.history.location(config.state)

    def stored() -> set[datetime]:
        with Store.open(location) as store:
            return {one.window.start for one in store.evaluated("shop", "logs")}

    for start in (last - 8760 * HOUR, last + 24 * HOUR):
        assert backfill(path, start, start + 3 * HOUR, None) == 3
        assert stored() == set()
        out, err = capsys.readouterr()
        assert out.startswith("shop: judged 0 windows")
        assert "shop: the log does not reach 3 windows of this span, so nothing is stored there" in err
        assert "the log holds windows from 2026-03-01T10:00:00Z to 2026-03-01T13:00:00Z" in err
    assert backfill(path, last - 4 * HOUR, last + 3 * HOUR, None) == 0
    assert stored() == {last - 2 * HOUR, last - HOUR, last}
    # While a daemon watches, an hour without rows is a fault.
    with Store.open(location) as store:
        store.set_watermark("shop", WATCHING, last + 2 * HOUR)
    backfill(path, last + HOUR, last + 4 * HOUR, None)
    assert stored() == {last - 2 * HOUR, last - HOUR, last, last + 2 * HOUR, last + 3 * HOUR}


def test_a_backfill_counts_windows_and_not_their_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = datetime(2026, 3, 1, 12, tzinfo=UTC)
    shop(tmp_path, last)
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG.replace('"}}\n', '"}, feedback: {path: actions.csv}}\n', 1))
    (tmp_path / "actions.csv").write_text(
        "user_id,item_id,ts,event\n"
        + "".join(f"u1,i1,2026-03-01T{hour}:30:00Z,click\n" for hour in (10, 11, 12))
    )
    assert backfill(path, last - 2 * HOUR, last + HOUR, None) == 0
    assert "judged 3 windows, 3 of them new or changed" in capsys.readouterr().out


def test_a_check_of_a_live_log_judges_what_is_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC)
    shop(tmp_path, now)
    path, begun = tmp_path / "config.yaml", Window.of(now, HOUR)
    path.write_text(CONFIG + "    lateness: 5m\n    max_wait: 2d\n")
    (tmp_path / "blacklist.csv").write_text("item_id\nnever\n")
    found, code = judge(path, None, None, None)
    err = capsys.readouterr().err
    assert code == 0
    assert begun not in {one.window for one in found}
    assert "shop: rows are still to come in 1 window, from " in err or "come in 2 windows, from " in err
    assert "on, and what needs them is not judged; --to" in err
    assert f"--to {begun.end:%Y-%m-%dT%H:%M:%SZ} judges it on the rows so far, as late" in err
    found, code = judge(path, None, begun.end, None)
    assert (code, capsys.readouterr().err) == (3, "")
    assert Status.LATE in {one.result.status for one in found if one.window == begun}
    # Where nothing is complete, the rows so far are shown.
    found, code = judge(path, begun.start, None, None)
    assert (code, {one.window for one in found}) == (3, {begun})
