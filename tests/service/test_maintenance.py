"""Maintenance in what is exported: the gauge by the clock, and no verdict of what was seen in it alone."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from monitor.config.checks.check import Checked
from monitor.config.problems import Problem
from monitor.core.results import Kind, Result, Status, Window
from monitor.history.snapshot import MaintenanceState, RecommenderState
from monitor.history.store import Store
from monitor.service.daemon import Daemon
from monitor.service.publisher import Running, SnapshotPublisher
from monitor.service.tally import Tally
from monitor.service.watch import Watch
from monitor.settings.recommender import RecommenderSettings
from tests.history.recording import record
from tests.service import pictures
from tests.service.prometheus.scrapes import find, scrape
from tests.service.web.test_app import client

TEN = datetime(2026, 11, 20, 22, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
OBJECTIVE = {"recommender": "shop", "metric": "failure", "by": "pv"}


class Shown:
    """A picture of one recommender with maintenance from ten to eleven, at a time that is set by hand."""

    def __init__(self, store: Store, folder: Path, **settings: object) -> None:
        given = {
            "name": "shop",
            "logs": {"exposures": {"path": str(folder / "logs/*.parquet")}},
            "objectives": [{"metric": "failure", "labels": {"by": "pv"}, "max": 0.02, "clear": 0.01}],
            "maintenance": [{"from": TEN, "until": TEN + HOUR, "reason": "a move"}],
            **settings,
        }
        asked = RecommenderSettings.model_validate(given)
        watch = Watch(asked, (), store, folder / "state", "salt")
        self.now = TEN - HOUR
        running = Running(["shop"], {"shop": watch}, {}, self.now)
        self.store = store
        self.publisher = SnapshotPublisher(store, Tally(store), running, lambda: self.now)

    def at(self, now: datetime) -> str:
        """What is exported at this time."""
        self.now = now
        self.publisher.publish(worked=True)
        return scrape(self.publisher.current(), clock=lambda: now)

    def judge(self, hour: int, value: float, check: str = "exposure") -> None:
        """An hour of the day in which the objective has this value."""
        start = TEN + (hour - 22) * HOUR
        status = Status.VIOLATED if value > 0.02 else Status.OK
        result = Result(
            metric="failure", status=status, definition="1", labels={"by": "pv"}, value=value,
            threshold=0.02, bound="max", clear=0.01,
        )  # fmt: skip
        window = Window(start, start + HOUR)
        record(self.store, window, [result], check=check, evaluated_at=window.end)


@pytest.fixture
def shown(store: Store, tmp_path: Path) -> Shown:
    return Shown(store, tmp_path)


def test_the_gauge_exists_from_the_start_and_follows_the_clock(shown: Shown) -> None:
    minutes = {-1: 0, 0: 1, 59: 1, 60: 1, 99: 1, 100: 0}  # an hour, five minutes of lateness, 35 to look back
    told = {number: find(shown.at(TEN + number * MINUTE), "recsys_maintenance", recommender="shop")
            for number in minutes}  # fmt: skip
    assert told == minutes


def test_without_maintenance_the_gauge_is_zero(store: Store, tmp_path: Path) -> None:
    bare = Shown(store, tmp_path, maintenance=[])
    assert find(bare.at(TEN), "recsys_maintenance", recommender="shop") == 0
    assert bare.publisher.current().recommenders[0].maintenance is None


def test_a_history_that_cannot_be_read_does_not_prolong_it(store: Store, tmp_path: Path) -> None:
    with closing(Store.open(tmp_path / "other.sqlite")) as other:
        shown = Shown(other, tmp_path)
        assert find(shown.at(TEN), "recsys_maintenance", recommender="shop") == 1
    (tmp_path / "other.sqlite").unlink()
    (tmp_path / "other.sqlite").mkdir()
    text = shown.at(TEN + 3 * HOUR)
    assert (
        sum(value for (_, _), value in shown.publisher.current().counters.items()) > 0
    )  # an error was counted
    assert find(text, "recsys_maintenance", recommender="shop") == 0


@pytest.mark.parametrize("wrong", [{"rules": [{"suite": "gone.yaml"}]}, {"window": "0s"}])
def test_a_recommender_that_cannot_run_is_in_maintenance_too(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    """The suites are away while they are moved, and the monitor is started again: by nobody's fault."""
    move = {"from": TEN.isoformat(), "until": (TEN + HOUR).isoformat(), "reason": "a move"}
    shop = {"name": "shop", "logs": {"exposures": {"path": "logs/*.parquet"}}, "maintenance": [move], **wrong}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"recommenders": [shop]}), "utf-8")
    clock = [TEN - MINUTE]
    with closing(Daemon(tmp_path / "config.yaml", clock=lambda: clock[-1])) as daemon:
        held = []
        for now in (TEN - MINUTE, TEN, TEN + 3 * HOUR):
            clock.append(now)
            daemon.publisher.publish()
            text = scrape(daemon.publisher.current())
            assert find(text, "recsys_recommender_error", recommender="shop") == 1
            held.append(find(text, "recsys_maintenance", recommender="shop"))
    assert held == [0, 1, 0]


def test_trouble_seen_only_in_maintenance_is_not_exported_for_a_broken_recommender(
    shown: Shown,
) -> None:
    shown.judge(22, 0.5)
    settings = shown.publisher.running.watches["shop"].settings
    broken = Checked(settings, problems=(Problem("rules", "gone.yaml does not exist"),))
    shown.publisher.running = replace(shown.publisher.running, watches={}, broken={"shop": broken})
    text = shown.at(TEN + 24 * HOUR)
    assert find(text, "recsys_objective_status", status="violated", **OBJECTIVE) is None
    soon = shown.at(TEN + 2 * HOUR)
    assert find(soon, "recsys_failure_ratio", recommender="shop", by="pv") == 0.5
    assert shown.publisher.current().recommenders[0].error == "rules: gone.yaml does not exist"


def test_trouble_seen_only_in_maintenance_has_no_verdict_however_late_it_is_judged(shown: Shown) -> None:
    shown.judge(21, 0.005)
    assert find(shown.at(TEN), "recsys_objective_status", status="violated", **OBJECTIVE) is None
    shown.judge(22, 0.5)
    text = shown.at(TEN + 24 * HOUR)  # as what rests on feedback may be
    assert find(text, "recsys_maintenance", recommender="shop") == 0
    assert find(text, "recsys_objective_status", status="violated", **OBJECTIVE) is None
    soon = shown.at(TEN + 2 * HOUR)
    assert find(soon, "recsys_failure_ratio", recommender="shop", by="pv") == 0.5
    assert shown.publisher.current().recommenders[0].series[0].standing is Status.VIOLATED
    shown.judge(23, 0.005)
    assert find(shown.at(TEN + 3 * HOUR), "recsys_objective_status", status="ok", **OBJECTIVE) == 1


def test_trouble_that_lasts_after_maintenance_is_exported(shown: Shown) -> None:
    for hour in (22, 23):
        shown.judge(hour, 0.5)
    assert find(shown.at(TEN + 3 * HOUR), "recsys_objective_status", status="violated", **OBJECTIVE) == 1


def test_a_violation_from_before_maintenance_stays_violated(shown: Shown) -> None:
    for hour in (21, 22):
        shown.judge(hour, 0.5)
    assert find(shown.at(TEN + HOUR), "recsys_objective_status", status="violated", **OBJECTIVE) == 1


@pytest.mark.parametrize("status", [Status.VIOLATED, Status.ERROR, Status.NO_DATA, Status.LATE])
def test_an_excused_rule_has_numbers_and_no_verdict(status: Status) -> None:
    result = pictures.rule("blacklist", status=status, value=0.1, violations=1, samples=10)
    labels = {"recommender": "shop", "rule": "blacklist", "kind": Kind.HARD.value}
    told = {}
    for excused in (False, True):
        one = replace(pictures.series(result), excused=excused)
        state = RecommenderState("shop", series=(one,))
        told[excused] = scrape(replace(pictures.empty(), recommenders=(state,)))
        assert find(told[excused], "recsys_rule_window_violations", **labels) == 1
    assert find(told[False], "recsys_rule_status", status=status.value, **labels) == 1
    assert find(told[True], "recsys_rule_status", status=status.value, **labels) is None


def test_the_page_shows_maintenance_and_its_reason_is_never_markup() -> None:
    held = MaintenanceState(datetime(2999, 1, 1, tzinfo=UTC), f"a move {pictures.HOSTILE}")
    state = replace(pictures.news(), maintenance=held)
    for path in ("/", "/recommenders/news"):
        with client(replace(pictures.full(), recommenders=(state,))) as web:
            text = web.get(path).text
        assert "Maintenance until 2999-01-01 00:00 UTC: a move &lt;script&gt;" in text
        assert pictures.HOSTILE not in text
