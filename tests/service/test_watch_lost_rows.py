"""A window that was judged, and whose rows cannot all be read any more: its verdict stays."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from monitor.core.results import Status, Window
from monitor.history.read_snapshot import read_snapshot
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.logs.listing import Listing, Unlisted
from monitor.metrics.catalogue import SPECS
from monitor.rules.suites import load_rules
from monitor.service.prometheus.values import snapshot_values
from monitor.service.watch import MOST_REPORTED, Watch
from monitor.settings.recommender import RecommenderSettings
from monitor.settings.rules import RuleSettings
from tests.processes import exposures
from tests.service.test_watch import FIRST, HOUR

BAD = 2  # the hour in which a forbidden item is shown
COUNT = 5
NOW = FIRST + COUNT * HOUR + HOUR / 2
NOBODY = 65534
RULES = [RuleSettings(pack="blacklist", parameters={"blacklist": "blacklist.csv"})]


def shown(hour: int, *, forbidden: bool = False, lists: int = 4) -> pd.DataFrame:
    """The rows of an hour; the last one shows a forbidden item, where asked for."""
    rows = exposures(FIRST + hour * HOUR, 3600, lists=lists)
    if forbidden:
        rows.loc[len(rows) - 1, "item_id"] = "forbidden"
    return rows


def begun(hour: int) -> pd.DataFrame:
    """The first rows of an hour that is not over, so that the one before is complete."""
    return exposures(FIRST + hour * HOUR, 1200, lists=2)


def write(path: Path, rows: pd.DataFrame, moment: int = 0) -> Path:
    """Write a CSV file in place; `moment` makes its time of change another one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.to_csv(path, index=False)
    stamp = NOW.timestamp() - 300 + moment
    os.utime(path, (stamp, stamp))
    return path


class Shop:
    """A recommender under watch, with one file an hour in a folder of its own for each half of them."""

    def __init__(self, folder: Path, store: Store, runtime: Runtime) -> None:
        self.folder, self.store, self.runtime = folder, store, runtime
        (folder / "blacklist.csv").write_text("item_id\nforbidden\n")
        self.fill()
        self.restart()

    def fill(self) -> None:
        for hour in range(COUNT):
            write(self.file(hour), shown(hour, forbidden=hour == BAD))
        write(self.file(COUNT), begun(COUNT))

    def file(self, hour: int) -> Path:
        return self.folder / f"logs/{'old' if hour < BAD else 'new'}/{hour}.csv"

    def log(self) -> dict[str, str]:
        return {"path": f"{self.folder}/logs/*/*.csv*"}

    def restart(self) -> None:
        settings = {
            "name": "shop",
            "logs": {"exposures": self.log()},
            "metrics": {"disable": [name for name in SPECS if name != "coverage"]},
        }
        rules = load_rules(RULES, self.folder)
        given = RecommenderSettings.model_validate(settings)
        self.watch = Watch(given, rules, self.store, self.folder / "state", "salt")

    def turn(self, minutes: int = 0) -> None:
        assert self.watch.turn(self.runtime, NOW + timedelta(minutes=minutes)) is False

    def rule(self) -> list[Status]:
        """What the history says of the rule, hour by hour."""
        return [one.status for one in self.results("rule")]

    def results(self, metric: str) -> list[Any]:
        found = [one.result for one in self.store.results() if one.result.metric == metric]
        return [one for one in found if one.labels.get("by", "pv") == "pv"]

    def counter(self, name: str, **labels: str) -> float:
        pairs = tuple(sorted({"recommender": "shop", **labels}.items()))
        return self.store.counters().get((name, pairs), 0)

    def corrections(self) -> float:
        return self.counter("recsys_corrections_total")

    def pages(self) -> float:
        return self.counter("recsys_rule_violations_total", rule="blacklist", kind="hard")

    def is_violated_now(self) -> bool:
        """Whether an alert on the gauge would fire."""
        values = snapshot_values(read_snapshot(self.store, ["shop"], NOW))
        return values["recsys_rule_status"]["shop", "blacklist", "hard", "violated"] == 1


OK, BROKEN, LATE = Status.OK, Status.VIOLATED, Status.LATE
BEFORE = [OK, OK, BROKEN, OK, OK]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that every user can reach; pytest closes its own to others whenever a run starts."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def shop(tmp_path: Path, store: Store, runtime: Runtime) -> Shop:
    made = Shop(tmp_path, store, runtime)
    made.turn()
    assert made.rule() == BEFORE
    assert (made.corrections(), made.pages()) == (0, 1)
    return made


def stands(shop: Shop, late: set[int], *, file: str) -> None:
    """The verdicts stay, those of the windows that miss rows are late, and nobody is told anything twice."""
    for again in range(3):  # once, at the next look, and after a restart
        if again == 2:
            shop.restart()
        shop.turn()
        wanted = [BROKEN if hour == BAD else LATE if hour in late else OK for hour in range(COUNT)]
        assert shop.rule() == wanted
        assert (shop.corrections(), shop.pages()) == (0, 1)
    for hour in late:
        detail = shop.results("log_rows")[hour].detail
        assert re.search("indexed rows? cannot be read any more", detail)
        assert file in detail
        assert "cannot be read any more" in shop.results("rule")[hour].detail
    if BAD in late:
        assert shop.results("rule")[BAD].evidence[0]["item_id"] == "forbidden"
        assert shop.results("coverage")[BAD].status is LATE


def is_as_before(shop: Shop, minutes: int = 1) -> None:
    shop.turn(minutes)
    assert shop.rule() == BEFORE
    assert [one.status for one in shop.results("log_rows")] == [OK] * COUNT
    assert (shop.corrections(), shop.pages()) == (0, 1)
    assert shop.store.gaps("shop", "exposures") == []


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Permissions do not bind root, so the block runs as another user, whom everything here belongs to."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, -1)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_violation_stays_while_its_folder_has_no_permission(shop: Shop, tmp_path: Path) -> None:
    with as_nobody(tmp_path):
        folder = tmp_path / "logs/new"
        folder.chmod(0o000)
        stands(shop, {2, 3, 4}, file="Permission denied")
        (gap,) = [one for one in shop.store.gaps("shop", "exposures") if one.status == "unlisted"]
        assert (gap.path, gap.reason) == (str(folder), "Permission denied")
        assert shop.counter("recsys_windows_total", status="late") == 2  # the violated one was worse already
        folder.chmod(0o755)
        is_as_before(shop)


def test_a_log_whose_folder_cannot_be_listed_is_an_error(shop: Shop, tmp_path: Path) -> None:
    with as_nobody(tmp_path):
        (tmp_path / "logs").chmod(0o000)
        stands(shop, {0, 1, 2, 3, 4}, file="Permission denied")
        assert shop.watch.error == f"exposures: {tmp_path}/logs: cannot be listed: Permission denied"
        (tmp_path / "logs").chmod(0o755)
        is_as_before(shop)
        assert shop.watch.error is None


def test_what_can_be_listed_again_after_a_restart_is_not_kept_as_unlisted(shop: Shop) -> None:
    loop = shop.folder / "logs/new/loop.csv"
    loop.symlink_to(loop.name)
    shop.turn()
    (gap,) = shop.store.gaps("shop", "exposures")
    assert (gap.status, gap.path) == ("unlisted", str(loop))
    loop.unlink()
    shop.restart()
    shop.turn(1)
    assert shop.store.gaps("shop", "exposures") == []


def test_a_violation_stays_while_its_folder_is_moved_away(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "logs").rename(tmp_path / "moved")
    stands(shop, {0, 1, 2, 3, 4}, file="No such file or directory")
    (tmp_path / "moved").rename(tmp_path / "logs")
    is_as_before(shop)


def test_a_violation_stays_while_one_of_several_folders_is_moved_away(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "logs/new").rename(tmp_path / "moved")
    stands(shop, {2, 3, 4}, file="the file is gone")
    (tmp_path / "moved").rename(tmp_path / "logs/new")
    is_as_before(shop)


def cut(path: Path) -> None:
    os.truncate(path, path.read_bytes().rindex(b"\n", 0, -100) + 1)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def shorter(path: Path) -> None:
    write(path, shown(BAD, lists=2))


def garbage(path: Path) -> None:
    path.write_bytes(b"\x00\xff\xfe not a log\n" * 9)


def earlier(path: Path) -> None:
    write(path, shown(BAD - 1, lists=6))


def later_rows_beside_older_files(path: Path) -> None:
    write(path, shown(COUNT - 1, lists=3))


def deleted(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    "happen", [cut, empty, shorter, garbage, earlier, later_rows_beside_older_files, deleted]
)
def test_a_violation_stays_when_its_file_loses_rows(shop: Shop, happen: Callable[[Path], None]) -> None:
    path = shop.file(BAD)
    before, stamp = path.read_bytes(), path.stat().st_mtime
    happen(path)
    if path.exists():
        os.utime(path, (stamp + 60, stamp + 60))
    shop.turn()
    # Rows that came beside the loss are late data of another hour, and a correction of it.
    corrected = happen in (earlier, later_rows_beside_older_files)
    assert shop.corrections() == corrected
    assert shop.rule() == BEFORE
    assert shop.results("coverage")[BAD].status is LATE
    assert "2.csv" in shop.results("coverage")[BAD].detail
    assert shop.pages() == 1
    assert [one.status for one in shop.store.gaps("shop", "exposures")] == ["lost"]
    path.write_bytes(before)
    os.utime(path, (stamp + 120, stamp + 120))
    shop.turn(1)
    assert shop.rule() == BEFORE
    assert shop.corrections() == 2 * corrected
    assert (shop.pages(), shop.store.gaps("shop", "exposures")) == (1, [])
    assert shop.results("coverage")[BAD].status is OK


def test_the_gauge_of_a_violation_stays_while_its_rows_cannot_be_read(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    shop = Shop(tmp_path, store, runtime)
    write(shop.file(COUNT - 1), shown(COUNT - 1, forbidden=True))
    shop.turn()
    assert shop.is_violated_now()
    os.truncate(shop.file(COUNT - 1), 0)
    shop.turn(1)
    assert shop.is_violated_now()


def test_new_rows_of_a_window_with_lost_rows_are_judged_and_its_violation_stays(shop: Shop) -> None:
    shop.file(BAD).unlink()
    shop.turn()
    write(shop.folder / "logs/new/more.csv", shown(BAD, lists=2).assign(user_id="another"))
    shop.turn(1)
    assert shop.rule() == BEFORE
    assert shop.pages() == 1
    write(shop.folder / "logs/new/3b.csv", shown(3, forbidden=True, lists=1))
    shop.file(3).unlink()  # rows as many as those that went are not the same rows
    shop.turn(2)
    assert shop.rule() == [OK, OK, BROKEN, BROKEN, OK]
    assert shop.results("coverage")[3].status is LATE


@pytest.mark.parametrize("gap", [False, True])
def test_a_file_that_is_compressed_or_renamed_loses_nothing(shop: Shop, gap: bool) -> None:
    for number, path in enumerate((shop.file(BAD), shop.file(3))):
        content, stamp = path.read_bytes(), path.stat().st_mtime
        path.unlink()
        if gap:
            shop.turn()
        other = path.with_name(path.name + ".gz") if number else path.with_name("renamed.csv")
        other.write_bytes(gzip.compress(content) if number else content)
        os.utime(other, (stamp, stamp))
        is_as_before(shop)


def test_small_files_that_are_merged_into_one_lose_nothing(shop: Shop) -> None:
    parts = [shop.file(hour) for hour in (2, 3, 4)]
    whole = pd.concat([pd.read_csv(path) for path in parts])
    write(shop.folder / "logs/new/merged.csv", whole)
    for path in parts:
        path.unlink()
    is_as_before(shop)


def test_more_rows_are_a_correction_under_the_same_file_name_or_another(shop: Shop) -> None:
    write(shop.file(3), shown(3, lists=5), moment=60)
    shop.turn(1)
    assert shop.corrections() == 1
    shop.file(BAD).unlink()
    write(shop.folder / "logs/new/2-rewritten.csv", shown(BAD, lists=5))
    shop.turn(2)
    assert shop.corrections() == 2
    assert shop.rule() == [OK] * COUNT


def test_deleted_files_are_lost_until_all_older_files_are_deleted_too(shop: Shop) -> None:
    shop.file(1).unlink()
    shop.turn()
    assert [one.status for one in shop.results("log_rows")] == [OK, LATE, OK, OK, OK]
    shop.file(0).unlink()
    shop.turn(1)
    assert {one.status for one in shop.store.gaps("shop", "exposures")} == {"rotated"}
    assert (shop.rule()[2:], shop.corrections()) == (BEFORE[2:], 0)


def test_a_file_that_starts_again_under_its_name_is_a_rotation(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    shop = Shop(tmp_path, store, runtime)
    shutil.rmtree(tmp_path / "logs")
    current = tmp_path / "logs/new/current.csv"
    write(current, pd.concat([shown(COUNT - 2), shown(COUNT - 1, forbidden=True), begun(COUNT)]))
    shop.turn()
    before = list(store.results())
    assert shop.rule() == [OK, BROKEN]
    write(current, pd.concat([shown(COUNT), begun(COUNT + 1)]), moment=3600)
    shop.turn(60)
    assert (list(store.results())[: len(before)], shop.rule()) == (before, [OK, BROKEN, OK])
    assert shop.corrections() == 0


def test_a_window_that_was_never_judged_is_late_where_rows_of_it_were_lost(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    shop = Shop(tmp_path, store, runtime)
    shop.watch.turn(runtime, NOW, stopping=lambda: True)  # the files are known, nothing is judged
    shop.file(3).unlink()
    shop.turn()
    assert shop.rule() == [OK, OK, BROKEN, LATE, OK]
    assert shop.results("log_rows")[3].status is LATE


def test_a_backfill_accepts_rows_that_were_removed_on_purpose(shop: Shop) -> None:
    from monitor.cli.one_off import OneOff
    from monitor.history.kept import KeptPairs

    shop.file(BAD).unlink()
    write(shop.folder / "logs/new/2.csv", shown(BAD, lists=3), moment=60)
    shop.turn()
    assert shop.rule() == BEFORE
    evaluator = type(shop.watch.evaluator)(
        shop.watch.settings, shop.watch.rules, KeptPairs(shop.folder / "scratch", "shop"), "salt"
    )
    once = OneOff(shop.runtime, evaluator, shop.folder / "scratch")
    once.look(NOW)
    window = Window(FIRST + BAD * HOUR, FIRST + (BAD + 1) * HOUR)
    for evaluation in once.judge([window], NOW, for_history=True):
        shop.watch.record(evaluation, NOW)
    assert shop.rule() == [OK] * COUNT
    shop.turn(1)
    assert shop.rule() == [OK] * COUNT
    shop.turn(2)
    assert shop.store.gaps("shop", "exposures") == []


def test_verdicts_on_feedback_stay_while_it_cannot_be_read(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    for hour in range(COUNT):
        rows = shown(hour)
        clicks = rows[["user_id", "item_id", "ts"]].assign(event="click")
        write(tmp_path / f"logs/{hour}.csv", pd.concat([rows, begun(COUNT)]) if hour == COUNT - 1 else rows)
        write(tmp_path / f"feedback/{hour}.csv", clicks)
    given = {
        "name": "shop",
        "logs": {name: {"path": f"{tmp_path}/{where}/*.csv"} for name, where in LOGS.items()},
        "metrics": {"attribution": "30m", "disable": [name for name in SPECS if name != "action_rate"]},
    }
    watch = Watch(RecommenderSettings.model_validate(given), (), store, tmp_path / "state", "salt")
    watch.turn(runtime, NOW)

    def rates() -> list[tuple[float | None, Status]]:
        kept = [one.result for one in store.results() if one.check == "feedback"]
        return [(one.value, one.status) for one in kept if one.metric == "action_rate"]

    def corrections() -> float:
        return store.counters()["recsys_corrections_total", (("recommender", "shop"),)]

    before = rates()
    assert {status for _, status in before} == {OK}
    (tmp_path / "feedback").rename(tmp_path / "moved")
    watch.turn(runtime, NOW)
    assert rates() == [(value, LATE) for value, _ in before]
    assert corrections() == 0
    (tmp_path / "moved").rename(tmp_path / "feedback")
    watch.turn(runtime, NOW)
    assert (rates(), corrections()) == (before, 0)
    for hour in (0, 1):  # feedback is kept for a shorter time than exposures
        (tmp_path / f"feedback/{hour}.csv").unlink()
        watch.turn(runtime, NOW)
        assert (rates(), corrections()) == (before, 0)


LOGS = {"exposures": "logs", "feedback": "feedback"}


def test_a_file_that_is_being_appended_to_changes_no_verdict(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    shop = Shop(tmp_path, store, runtime)
    shutil.rmtree(tmp_path / "logs")
    day = pd.concat([*(shown(hour, forbidden=hour == BAD) for hour in range(COUNT)), begun(COUNT)])
    path = write(tmp_path / "logs/new/day.csv", day)
    shop.turn()
    before = list(store.results())
    with path.open("a") as file:
        file.write("r-new,u1,")
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    shop.turn()
    assert list(store.results()) == before
    assert shop.corrections() == 0
    with path.open("a") as file:
        file.write(f"{FIRST + COUNT * HOUR:%Y-%m-%d %H:%M:%S},i1,1,0.5\n")
    os.utime(path, (NOW.timestamp() + 60, NOW.timestamp() + 60))
    shop.turn(5)
    assert shop.rule()[:COUNT] == BEFORE
    assert shop.corrections() == 0


@pytest.mark.parametrize("content", [b'"' * 300, b"\xff" * 5000])
def test_a_violation_stays_when_its_file_is_overwritten_during_the_reading(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """The index is of the whole file; the change comes between the index and the reading of the window."""
    write(shop.folder / "logs/new/2b.csv", shown(BAD, lists=1).assign(user_id="late"))
    real = shop.watch.due

    def cut_meanwhile(now: Any) -> Any:
        due = real(now)
        shop.file(BAD).write_bytes(content)
        return due

    monkeypatch.setattr(shop.watch, "due", cut_meanwhile)
    shop.watch.turn(shop.runtime, NOW)
    assert (shop.rule(), shop.pages()) == (BEFORE, 1)
    monkeypatch.undo()
    shop.turn(5)  # by then, no file counts as just being written
    assert (shop.rule(), shop.pages()) == (BEFORE, 1)
    assert shop.results("coverage")[BAD].status is LATE


def test_a_catalog_whose_folder_was_moved_away_is_an_error_and_not_an_absent_catalog(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    write(tmp_path / "catalog/items.csv", pd.DataFrame({"item_id": [f"i{n}" for n in range(9)]}))
    given = {
        "name": "shop",
        "logs": {
            "exposures": {"path": f"{tmp_path}/logs/*.csv"},
            "catalog": {"path": f"{tmp_path}/catalog/*.csv"},
        },
        "metrics": {"disable": [name for name in SPECS if name != "coverage"]},
    }
    rules = load_rules([RuleSettings(pack="catalog")], tmp_path)
    watch = Watch(RecommenderSettings.model_validate(given), rules, store, tmp_path / "state", "salt")

    def verdicts() -> list[Status]:
        found = [one.result for one in store.results()]
        return [one.status for one in found if one.labels.get("rule") == "item_not_in_catalog"]

    write(tmp_path / "logs/0.csv", pd.concat([shown(0), begun(1)]))
    watch.turn(runtime, FIRST + HOUR * 3 / 2)
    assert verdicts() == [OK]
    (tmp_path / "catalog").rename(tmp_path / "moved")
    write(tmp_path / "logs/1.csv", pd.concat([shown(1), begun(2)]))
    watch.turn(runtime, FIRST + HOUR * 5 / 2)
    assert verdicts() == [OK, Status.ERROR]
    assert [one.status for one in store.gaps("shop", "catalog")] == ["unlisted"]


def test_thousands_of_folders_that_cannot_be_listed_cost_little_and_write_few_lines(
    tmp_path: Path, store: Store, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The listing is a mock: root, who runs some tests, can list every folder."""
    shop = Shop(tmp_path, store, runtime)
    shop.watch.turn(runtime, NOW)
    log = shop.watch.evaluator.source.exposures
    one = next(iter(log.entries.values()))
    folders = [f"{tmp_path}/logs/{number}" for number in range(6000)]
    log.entries = {
        path: replace(one, file=replace(one.file, path=path))
        for path in (f"{each}/a.csv" for each in folders)
    }
    listing = Listing({}, [Unlisted(folder, "Permission denied") for folder in folders])
    monkeypatch.setattr("monitor.logs.log.list_log", lambda _: listing)
    caplog.clear()
    seconds = []
    for _ in range(3):
        before = time.process_time()
        scan = log.refresh(runtime.index, NOW)
        seconds.append(time.process_time() - before)
        shop.watch._report(log, scan)
    assert len(log.losses) == len(folders)
    assert min(seconds) < 1.5
    lines = [record.getMessage() for record in caplog.records]
    lines = [line for line in lines if "indexed rows" not in line and "cannot be listed" in line]
    assert len(lines) == MOST_REPORTED + 1
    assert lines[-1].endswith("5,995 more paths cannot be listed")
