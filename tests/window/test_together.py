"""Windows that are measured in one pass get what each gets by itself."""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from monitor.cli.one_off import OneOff, one_off
from monitor.config.load import load_checked
from monitor.core.columns import EXPOSURES
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.engines.duckdb import DeadlineExceeded
from monitor.judging.evaluate import Evaluator
from monitor.logs.windows import Due
from monitor.metrics.exposure.coverage import ListCoverage
from monitor.metrics.history import WINDOW
from monitor.rules import tables
from monitor.window.together import MOST_ROWS, MOST_WINDOWS, Together, together

HOUR = timedelta(hours=1)
START = datetime(2026, 3, 1, 21, tzinfo=UTC)
NOW = START + timedelta(days=9)
WINDOWS = 6  # three before midnight, three after
SETTINGS = {
    "long": "attribution: 2h, history: 28d",
    "short": "attribution: 90m, history: 5h, popularity: exposures, similarity: category",
    "actions": "attribution: 30m, popularity: actions, action_events: [click]",
}
CONFIG = """\
state: state
recommenders:
  - name: shop
    logs:
      exposures: {{path: "exposures/*.parquet"}}
      feedback: {{path: "feedback/*.parquet"}}
      catalog: {{path: catalog.parquet}}
    window: 1h
    metrics:
      {settings}
      events: {{click: {{}}, order: {{grade: 2}}, stars: {{grade: 0}}}}
      k: [1, 3]
      rating: {{event: stars, range: [0, 1]}}
    rules:
      - {{pack: blacklist, parameters: {{blacklist: blacklist.csv}}}}
      - pack: catalog
        parameters: {{available_from: starts, available_until: ends, status: active}}
      - {{pack: lists, parameters: {{max_length: 3}}}}
      - {{pack: category, parameters: {{max_per_category: 1}}}}
      - {{pack: frequency, parameters: {{max_a_day: 2}}}}
      - {{pack: arithmetic, parameters: {{denominators: [latency]}}}}
      - {{pack: scores}}
      - {{pack: order}}
      - {{pack: time}}
      - {{pack: importance}}
      - {{suite: own.yaml}}
    {further}
"""
OWN_RULES = """\
name: own
expectations:
  - {type: expect_column_values_to_be_unique, kwargs: {column: item_id}, meta: {rule: once, kind: hard}}
  - type: expect_compound_columns_to_be_unique
    kwargs: {column_list: [user_id, item_id], ignore_row_if: any_value_is_missing}
    meta: {rule: once_a_user, kind: hard}
  - type: expect_column_values_to_be_in_set
    kwargs:
      column: scene
      value_set: [home]
      row_condition: {type: nullity, column: {name: user_id}, is_null: true}
      mostly: 0.5
    meta: {rule: strangers_at_home, kind: soft}
  - type: expect_column_values_to_match_regex
    kwargs: {column: scene, regex: "^h", mostly: 0.5}
    meta: {rule: begins_with_h, kind: soft}
  - {type: expect_table_row_count_to_be_between, kwargs: {max_value: 9}, meta: {rule: few_rows, kind: hard}}
  - type: expect_column_max_to_be_between
    kwargs: {column: position, max_value: 3}
    meta: {rule: top, kind: hard}
  - type: unexpected_rows_expectation
    kwargs: {unexpected_rows_query: "SELECT * FROM {batch} WHERE position > 3"}
    meta: {rule: by_query, kind: hard}
  - type: expect_column_values_to_not_be_null
    kwargs: {column: category, mostly: 0.9}
    meta: {rule: no_category, kind: soft, table: catalog}
  - type: expect_column_values_to_be_unique
    kwargs: {column: user_id}
    meta: {rule: one_list, kind: hard, table: requests}
  - type: expect_column_values_to_not_be_null
    kwargs: {column: price}
    meta: {rule: no_such_column, kind: hard}
"""
BY_WINDOW = {
    "once", "once_a_user", "few_rows", "top", "by_query", "no_category", "one_list", "item_too_often"
}  # fmt: skip
"""The rules that need the rows of a window by itself."""


@dataclass(frozen=True, slots=True)
class World:
    """What is odd in a log. Without any of it, all windows are measured together."""

    seed: int
    form: str = "long"
    numbers: bool = False  # ids
    lists: bool = False  # an item has several categories
    empty: tuple[int, ...] = ()  # windows without a row
    split: bool = False  # a list has rows in two windows
    early: bool = False  # an action comes long before its list
    old: bool = False  # an action names a list of hours ago
    other_columns: int = -1  # the window whose file has other columns
    further: str = ""
    in_a_row: bool = True


def write(folder: Path, world: World) -> None:
    draw = np.random.default_rng(world.seed)
    for name in ("exposures", "feedback"):
        (folder / name).mkdir(parents=True)
    users, items = (5, 12) if world.numbers else (4, 9)
    number = 0
    for hour in range(WINDOWS):
        shown: list[dict[str, Any]] = []
        actions: list[dict[str, Any]] = []
        begin = START + hour * HOUR
        for _ in range(0 if hour in world.empty else int(draw.integers(1, 9))):
            number += 1
            user = int(draw.integers(0, users)) or None
            at = begin + timedelta(seconds=float(draw.integers(0, 36_000)) / 10)
            length = int(draw.integers(0, 5))
            base = {"request_id": number, "user_id": user, "scene": draw.choice(["home", "feed"])}
            base |= {"status": draw.choice(["ok", "ok", "timeout", "error"]) if length == 0 else "ok"}
            base |= {"latency": float(draw.choice([0.1, 0.2, math.nan])), "propensity": 0.25}
            for place in range(max(length, 1)):
                item = int(draw.integers(0, items)) if length else None
                score = float(draw.choice([0.1, 0.5, 0.5, 0.9, math.nan]))
                row = {"ts": at, "item_id": item, "position": place + 1, "score": score, **base}
                shown.append(row)
                if item is not None and draw.random() < 0.4:
                    named = int(draw.integers(0, 3))
                    later = timedelta(seconds=int(draw.integers(0, 5_000)))
                    if world.form == "actions":
                        later = min(later, timedelta(minutes=29))
                    actions.append(
                        {
                            "ts": at + (later if named else min(later, timedelta(minutes=20))),
                            "user_id": user if named < 2 else int(draw.integers(0, users)) or None,
                            "item_id": item if draw.random() < 0.8 else int(draw.integers(0, items)),
                            "event": draw.choice(["click", "click", "order", "stars", "hover"]),
                            "request_id": number if named == 0 else None,
                            "value": float(draw.choice([0.2, 0.7, 1.0, math.nan, 3.0])),
                        }
                    )
        if world.split and hour == 0:
            again = [{**row, "ts": row["ts"] + HOUR} for row in shown]
            shown += again
            actions += [_named(row, timedelta(minutes=1)) for row in again[::2]]
        if world.early and hour == 4 and shown:
            actions.append(_named(shown[0], -timedelta(hours=3)))
        if world.old and hour == 1 and shown:
            actions.append(_named(shown[0], timedelta(hours=3)))
        actions += actions[:1]  # logged twice
        _store(
            folder / f"exposures/{hour:02}.parquet",
            shown,
            world,
            drop="latency" if hour == world.other_columns else "",
        )
        _store(folder / f"feedback/{hour:02}.parquet", actions, world)
    kinds = [["a", "b"], ["b"], [], ["c", "a"]] if world.lists else ["a", "b", None, "c"]
    rows = [
        {
            "item_id": one,
            "category": kinds[one % 4],
            "vector": [float(one % 3), 1.0, -1.0],
            "starts": START + (one % 3 - 1) * HOUR,
            "ends": START + (one % 5) * HOUR,
            "active": one % 6 != 0,
        }
        for one in range(items - 1)
    ]
    (folder / "blacklist.csv").write_text("item_id\n3\n" if world.numbers else "item_id\ni3\n")
    (folder / "own.yaml").write_text(OWN_RULES)
    _store(folder / "catalog.parquet", rows, world)


def _named(row: dict[str, Any], later: timedelta) -> dict[str, Any]:
    own = {name: row[name] for name in ("user_id", "item_id", "request_id")}
    return {**own, "ts": row["ts"] + later, "event": "click", "value": 1.0, "item_id": own["item_id"] or 1}


def _store(path: Path, rows: list[dict[str, Any]], world: World, drop: str = "") -> None:
    if not rows:
        return
    ids = {
        name: pa.int64() if world.numbers else pa.string() for name in ("request_id", "user_id", "item_id")
    }
    texts = dict.fromkeys(("scene", "status", "event"), pa.string())
    types = {"ts": pa.timestamp("us", "UTC"), "position": pa.int64(), **ids, **texts}
    columns = {}
    for name in rows[0]:
        values = [row.get(name) for row in rows]
        if name in ids and not world.numbers:
            values = [None if one is None else f"{name[0]}{one}" for one in values]
        columns[name] = pa.array(values, types.get(name))
    pq.write_table(pa.table(columns).drop_columns([drop] if drop else []), path)


def judged(folder: Path, world: World, *, alone: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[dict, int]:
    """The results of all windows by name, and how many parts of windows were measured together."""
    config = folder / "config.yaml"
    config.write_text(
        CONFIG.format(settings=SETTINGS[world.form].replace(", ", "\n      "), further=world.further)
    )
    found: dict[Any, Any] = {}
    parts: list[Any] = []

    def counted(self: Evaluator, *given: Any) -> Any:
        measured = {} if alone else original(self, *given)
        parts.extend(measured)
        return measured

    original = Evaluator.measure_together
    with monkeypatch.context() as patched:
        patched.setattr(Evaluator, "measure_together", counted)
        loaded, (checked,) = load_checked(config)
        assert checked.problems == ()
        with one_off(loaded, checked, "salt") as once:
            once.look(NOW)
            once.evaluator._in_a_row = world.in_a_row
            windows, _ = once.windows(None, None, NOW)
            for evaluation in once.judge(windows, NOW):
                for run in evaluation.runs:
                    for one in run.results:
                        key = evaluation.due.window.start, run.check, one.metric, *sorted(one.labels.items())
                        assert key not in found
                        found[key] = one
    return found, len(parts)


_alone: dict[World, dict[Any, Any]] = {}
"""What the windows of a log get by themselves: many tests ask for it, and it takes seconds."""


def by_themselves(folder: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    world = replace(world, in_a_row=True)
    if world not in _alone:
        _alone[world], none = judged(folder, world, alone=True, monkeypatch=monkeypatch)
        assert none == 0
    return _alone[world]


def both(folder: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], int]:
    """The names of results that differ, and how many parts were measured together."""
    write(folder, world)
    by_itself = by_themselves(folder, world, monkeypatch)
    at_once, parts = judged(folder, world, alone=False, monkeypatch=monkeypatch)
    assert at_once.keys() == by_itself.keys()
    return [key for key, one in by_itself.items() if not _same(one, at_once[key])], parts


def _same(one: Result, other: Result) -> bool:
    apart = {"value": None, "lower": None, "upper": None}
    if replace(one, **apart) != replace(other, **apart):
        return False
    numbers = ((one.value, other.value), (one.lower, other.lower), (one.upper, other.upper))
    return all(
        found is wanted
        or (None not in (found, wanted) and found == pytest.approx(wanted, rel=1e-9, abs=1e-12))
        for wanted, found in numbers
    )


def compare(folder: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    """Judge the same log both ways and compare every result; how many parts were measured together."""
    differ, parts = both(folder, world, monkeypatch)
    assert differ == []
    return parts


@pytest.mark.parametrize("form", SETTINGS)
def test_every_window_of_a_plain_log_is_measured_with_others(tmp_path, monkeypatch, form):
    assert compare(tmp_path, World(2, form, lists=form == "long"), monkeypatch) == 2 * WINDOWS


def measured(folder: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Together], set[str]]:
    """What the windows of exposures gave together, and the names of all rules."""
    found: list[Together] = []
    original = Evaluator.measure_together

    def spied(self: Evaluator, *given: Any) -> Any:
        parts = original(self, *given)
        found.extend(one for (_, part), one in parts.items() if part == EXPOSURES)
        return parts

    write(folder, world)
    with monkeypatch.context() as patched:
        patched.setattr(Evaluator, "measure_together", spied)
        results, _ = judged(folder, world, alone=False, monkeypatch=patched)
    return found, {one.labels["rule"] for one in results.values() if one.kind is ResultKind.RULE}


def test_rules_are_judged_together_unless_they_need_the_rows_of_a_window_by_itself(tmp_path, monkeypatch):
    found, rules = measured(tmp_path, World(2), monkeypatch)
    assert len(found) == WINDOWS
    for one in found:
        assert rules - one.rules.keys() == BY_WINDOW
    statuses = {result.status for one in found for result in one.rules.values()}
    assert statuses >= {Status.OK, Status.VIOLATED, Status.ERROR, Status.NO_DATA}
    violated = [result for one in found for result in one.rules.values() if result.status is Status.VIOLATED]
    assert all(result.evidence for result in violated)


def test_rows_from_the_future_are_judged_with_the_window_that_counts_them(tmp_path, monkeypatch):
    world = World(2)
    write(tmp_path, world)
    path = tmp_path / "exposures/03.parquet"
    os.utime(path, times=((START + 3.5 * HOUR).timestamp(),) * 2)
    by_itself, _ = judged(tmp_path, world, alone=True, monkeypatch=monkeypatch)
    at_once, _ = judged(tmp_path, world, alone=False, monkeypatch=monkeypatch)
    assert {key: one.status for key, one in at_once.items()} == {
        key: one.status for key, one in by_itself.items()
    }
    assert any("future" in str(key) and one.status is Status.VIOLATED for key, one in by_itself.items())


@pytest.mark.usefixtures("new_statements")
def test_rules_that_fail_for_all_windows_are_judged_for_each(tmp_path, monkeypatch):
    def failing(*_args, **_kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("monitor.rules.check.judge_together", failing)
    assert compare(tmp_path, World(4), monkeypatch) == 2 * WINDOWS


@pytest.mark.usefixtures("new_statements")
def test_a_table_that_cannot_be_made_of_all_windows_is_made_of_each(tmp_path, monkeypatch):
    original = tables.with_list_columns

    def failing(shared, wanted, key):
        if key is not None:
            raise MemoryError
        return original(shared, wanted, key)

    monkeypatch.setattr(tables, "with_list_columns", failing)
    found, rules = measured(tmp_path, World(2), monkeypatch)
    assert found
    assert all("duplicate_item" not in one.rules and "blacklist" in one.rules for one in found)
    assert "duplicate_item" in rules
    assert compare(tmp_path / "both", World(2), monkeypatch) == 2 * WINDOWS


@pytest.mark.parametrize("sliced", [False, True])
def test_the_same_pairs_are_kept_for_later_windows(tmp_path, monkeypatch, sliced):
    world = World(4, further="slices: {by: [scene]}" if sliced else "")
    kept: list[dict[str, Any]] = []

    def looked(self: OneOff, *given: Any, **named: Any) -> Any:
        yield from original(self, *given, **named)
        files = self.evaluator.kept.folder.glob("*.parquet")
        kept.append({one.name: _sorted(pq.read_table(one)) for one in files})

    original = OneOff.judge
    monkeypatch.setattr(OneOff, "judge", looked)
    write(tmp_path, world)
    for alone in (True, False):
        judged(tmp_path, world, alone=alone, monkeypatch=monkeypatch)
    assert len(kept[0]) == WINDOWS
    assert kept[0] == kept[1]


def _sorted(pairs: pa.Table) -> list[dict[str, Any]]:
    return sorted(pairs.to_pylist(), key=str)


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # an example takes seconds
    suppress_health_check=list(HealthCheck),
)
@given(
    st.builds(
        World,
        seed=st.integers(0, 10_000),
        form=st.sampled_from(sorted(SETTINGS)),
        numbers=st.booleans(),
        lists=st.booleans(),
        empty=st.sampled_from([(), (2,), (3, 4), (0, 5)]),
        split=st.booleans(),
        early=st.booleans(),
        old=st.booleans(),
        in_a_row=st.booleans(),
    )
)
def test_windows_measured_together_get_the_results_of_each_alone(tmp_path_factory, world):
    with pytest.MonkeyPatch.context() as monkeypatch:
        compare(tmp_path_factory.mktemp("world"), world, monkeypatch)


@pytest.mark.parametrize(
    ("odd", "parts"),
    [
        ({"split": True}, WINDOWS + 3),  # not the feedback of the first day
        ({"early": True}, WINDOWS),
        ({"old": True}, WINDOWS),
        ({"other_columns": 1}, 3),  # alone the exposures of the second day do not read that file
    ],
)
def test_windows_that_read_differently_by_themselves_are_judged_one_by_one(tmp_path, monkeypatch, odd, parts):
    world = replace(World(3), **odd)
    assert compare(tmp_path, world, monkeypatch) == parts


def test_windows_measured_together_know_those_of_their_day_before_them(tmp_path, monkeypatch):
    def later(dues):
        yield from (dues[1:3], dues[4:6])

    monkeypatch.setattr("monitor.judging.evaluate.together", later)
    assert compare(tmp_path, World(4), monkeypatch) == 8


def test_windows_beside_large_ones_are_judged_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr("monitor.window.together.MOST_AROUND", 0)
    assert compare(tmp_path, World(4), monkeypatch) == 0


@pytest.fixture
def new_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement of an earlier test is run again."""
    monkeypatch.setattr("monitor.metrics.plans._shared", OrderedDict())


@pytest.mark.usefixtures("new_statements")
@pytest.mark.parametrize("odd", ["split", "early", "old"])
def test_these_windows_would_get_other_results_together(tmp_path, monkeypatch, odd):
    nothing = lambda shared, _: shared.nothing().aggregate(differ=ibis._.count())  # noqa: E731
    monkeypatch.setattr("monitor.window.together.joins_differ", nothing)
    found: list[Any] = []
    for seed in range(3, 7):
        differ, parts = both(tmp_path / str(seed), replace(World(seed), **{odd: True}), monkeypatch)
        assert parts == 2 * WINDOWS
        found += differ
        if found:
            break
    assert found


def test_a_daemon_that_catches_up_gets_the_same_results(tmp_path, monkeypatch):
    assert compare(tmp_path, World(4, in_a_row=False), monkeypatch) == 2 * WINDOWS


def test_slices_and_days_are_measured_as_they_are_without_it(tmp_path, monkeypatch):
    further = "slices: {by: [scene, user_activity]}\n    rollups: [1d]"
    assert compare(tmp_path, World(5, further=further, empty=(0, 1, 2)), monkeypatch) == WINDOWS


@pytest.mark.usefixtures("new_statements")
def test_a_family_that_fails_for_all_windows_is_measured_for_each(tmp_path, monkeypatch):
    measure = ListCoverage.measure

    failed = []

    def failing(self, shared, given_settings, key=None):
        if key is not None:
            failed.append(key)
            raise ZeroDivisionError
        return measure(self, shared, given_settings, key)

    monkeypatch.setattr(ListCoverage, "measure", failing)
    assert compare(tmp_path, World(4), monkeypatch) == 2 * WINDOWS
    assert failed == [WINDOW, WINDOW]


def test_what_fails_as_a_whole_is_judged_one_by_one(tmp_path, monkeypatch):
    def failing(*_args, **_kwargs):
        raise OSError("a file went away")

    monkeypatch.setattr("monitor.judging.evaluate.measure_together", failing)
    assert compare(tmp_path, World(4), monkeypatch) == 0


def test_what_takes_longer_than_the_deadline_is_judged_one_by_one(tmp_path, monkeypatch):
    def slow(*_args, **_kwargs):
        raise DeadlineExceeded("took longer than its deadline")

    monkeypatch.setattr("monitor.judging.evaluate.measure_together", slow)
    assert compare(tmp_path, World(4), monkeypatch) == 0


def due(hour: int, rows: int = 10, late: str | None = None) -> Due:
    start = START.replace(hour=0) + hour * HOUR
    return Due(Window(start, start + HOUR), "", rows, late)


def hours(*dues: Due) -> list[list[int]]:
    return [[(one.window.start - START.replace(hour=0)) // HOUR for one in run] for run in together(dues)]


def test_consecutive_windows_of_a_day_go_together():
    assert hours(*map(due, (20, 21, 22, 23, 24, 25))) == [[20, 21, 22, 23], [24, 25]]
    assert hours(*map(due, (1, 2, 4, 5, 7))) == [[1, 2], [4, 5]]
    assert hours(due(1), due(2, late="it waits"), due(3), due(4)) == [[3, 4]]
    assert hours(due(1)) == []
    assert hours() == []


def test_a_run_has_so_many_rows_and_windows_at_most():
    half = MOST_ROWS // 2
    assert hours(due(1, half), due(2, half), due(3, half), due(4, half + 1), due(5, 1)) == [[1, 2], [4, 5]]
    start = START.replace(hour=0)
    minutes = [Window(start + n * HOUR / 60, start + (n + 1) * HOUR / 60) for n in range(MOST_WINDOWS + 2)]
    runs = list(together([Due(one, "", 1) for one in minutes]))
    assert [len(run) for run in runs] == [MOST_WINDOWS, 2]
