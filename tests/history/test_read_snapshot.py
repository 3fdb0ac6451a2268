"""The picture of the store that the exporter and the page show."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from monitor.core.results import Result, ResultKind, Status, Window
from monitor.history.logstate import IndexedFile
from monitor.history.read_snapshot import Kept, read_snapshot
from monitor.history.snapshot import RecommenderState, SkippedFile
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import record

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
GINI = Result(metric="gini", status=Status.OK, definition="1", value=0.4, samples=10)
RULE = Result(
    kind=ResultKind.RULE,
    metric="rule",
    status=Status.OK,
    definition="1",
    labels={"rule": "blacklist", "kind": "hard"},
    value=0.0,
    samples=10,
    violations=0,
    threshold=0.0,
)
BROKEN = replace(RULE, status=Status.VIOLATED, value=0.1, violations=1, evidence=({"item_id": "<b>"},))


def put(
    store: Store, number: int, *results: Result, check: str = "rules", status: Status | None = None
) -> None:
    record(
        store,
        hour(number),
        results,
        check=check,
        fingerprint=f"{results}",
        seconds=number / 10,
        evaluated_at=NOON + timedelta(hours=number),
        status=status,
    )


def state(store: Store, past: int = 48) -> RecommenderState:
    (found,) = read_snapshot(store, ["shop"], NOON, past).recommenders
    return found


def test_an_empty_store_gives_a_recommender_without_anything(store: Store) -> None:
    snapshot = read_snapshot(store, ["shop", "news"], NOON)
    assert snapshot.recommenders == (RecommenderState("shop"), RecommenderState("news"))
    assert (snapshot.taken_at, snapshot.counters) == (NOON, {})


def test_the_newest_result_of_each_series_with_its_past(store: Store) -> None:
    for number in (2, 0, 1):
        put(store, number, replace(GINI, value=number / 10), RULE)
    put(store, 5, GINI, check="exposure")
    found = state(store)
    assert [(one.check, one.result.metric) for one in found.series] == [
        ("exposure", "gini"),
        ("rules", "gini"),
        ("rules", "rule"),
    ]
    gini = found.series[1]
    assert (gini.window, gini.result, gini.evaluated_at) == (
        hour(2),
        replace(GINI, value=0.2),
        NOON + timedelta(hours=2),
    )
    assert [(point.window, point.value, point.status) for point in gini.past] == [
        (hour(number), number / 10, Status.OK) for number in range(3)
    ]
    assert (gini.standing, gini.since) == (Status.OK, hour(0).start)
    assert found.last_window == hour(5)
    assert found.last_run == NOON + timedelta(hours=5)
    assert found.check_seconds == {"rules": 0.2, "exposure": 0.5}


@pytest.mark.parametrize(
    ("longer", "shorter", "standing", "since"),
    [
        (Status.OK, Status.NO_DATA, Status.NO_DATA, 1),
        (Status.OK, Status.LATE, Status.LATE, 1),
        (Status.NO_DATA, Status.OK, Status.OK, 1),
        (Status.OK, Status.VIOLATED, Status.VIOLATED, 1),
        (Status.VIOLATED, Status.OK, Status.OK, 1),
        (Status.VIOLATED, Status.ERROR, Status.VIOLATED, 1),
        (Status.OK, Status.OK, Status.OK, 0),
    ],
)
def test_windows_of_two_lengths_with_one_end_have_the_standing_of_the_shorter(
    store: Store, longer: Status, shorter: Status, standing: Status, since: int
) -> None:
    half = Window(hour(1).start + timedelta(minutes=30), hour(1).end)  # `window` of the config became shorter
    for window, status in ((hour(0), Status.OK), (hour(1), longer), (half, shorter)):
        value = None if status in (Status.NO_DATA, Status.ERROR) else GINI.value
        record(store, window, [replace(GINI, status=status, value=value)])
    (gini,) = state(store).series
    assert gini.standing is standing
    assert gini.since in ((hour(since).start,) if since == 0 else (hour(1).start, half.start))


def test_a_series_that_the_newest_window_does_not_have_is_gone(store: Store) -> None:
    put(store, 0, GINI, RULE)
    put(store, 1, RULE)
    assert [one.result.metric for one in state(store).series] == ["rule"]
    put(store, 2, GINI)
    (gini,) = state(store).series
    assert [point.window for point in gini.past] == [hour(0), hour(2)]


def test_a_window_that_was_judged_and_has_no_results_shows_none(store: Store) -> None:
    put(store, 0, RULE)
    put(store, 1, status=Status.OK)
    assert state(store).series == ()


def test_a_failed_run_neither_ends_a_violation_nor_leaves_a_series_ok(store: Store) -> None:
    put(store, 0, GINI, BROKEN)
    put(store, 1, status=Status.NO_DATA)
    put(store, 2, status=Status.ERROR)
    put(store, 3, status=Status.ERROR)
    gini, rule = state(store).series
    assert (gini.window, gini.result.status, gini.result.value) == (hour(3), Status.ERROR, None)
    assert (gini.standing, gini.since) == (Status.ERROR, hour(2).start)
    assert [point.status for point in gini.past] == [Status.OK, Status.NO_DATA, Status.ERROR, Status.ERROR]
    assert (rule.standing, rule.since) == (Status.VIOLATED, hour(0).start)
    assert (rule.result.status, rule.result.violations, rule.result.evidence) == (Status.ERROR, None, ())
    assert rule.violation is not None
    assert rule.violation.result == BROKEN


def test_the_evidence_of_a_violation_outlives_the_window_that_cleared_it(store: Store) -> None:
    put(store, 0, BROKEN)
    put(store, 1, RULE)
    (rule,) = state(store).series
    assert (rule.standing, rule.since, rule.result) == (Status.OK, hour(1).start, RULE)
    assert rule.violation is not None
    assert (rule.violation.window, rule.violation.result) == (hour(0), BROKEN)
    for number in range(2, 6):
        put(store, number, RULE)
    (rule,) = state(store, past=3).series
    assert rule.violation is None


def test_a_current_violation_keeps_its_evidence_however_old_it_is(store: Store) -> None:
    put(store, 0, BROKEN)
    for number in range(1, 9):
        put(store, number, replace(RULE, status=Status.NO_DATA, value=None))
    (rule,) = state(store, past=3).series
    assert (rule.standing, rule.since) == (Status.VIOLATED, hour(0).start)
    assert rule.violation is not None
    assert rule.violation.result.evidence == BROKEN.evidence
    assert len(rule.past) == 3


def test_a_correction_of_a_past_window_changes_the_standing_at_once(store: Store) -> None:
    put(store, 0, RULE)
    put(store, 1, BROKEN)
    put(store, 2, RULE)
    put(store, 2, BROKEN)
    put(store, 1, RULE)
    (rule,) = state(store).series
    assert (rule.standing, rule.since) == (Status.VIOLATED, hour(2).start)


def test_a_window_judged_by_a_newer_definition_counts_once(store: Store) -> None:
    put(store, 0, RULE)
    put(store, 1, BROKEN)
    record(store, hour(1), [RULE], definition="2")
    (rule,) = state(store).series
    assert (rule.standing, rule.since, rule.violation) == (Status.OK, hour(0).start, None)
    assert len(rule.past) == 2


def test_the_longer_windows_of_a_changed_config_follow_the_shorter_ones(store: Store) -> None:
    put(store, 22, BROKEN)
    put(store, 23, RULE)
    day = Window(hour(0).start, hour(23).end)
    record(store, day, [RULE])
    following = Window(day.end, day.end + timedelta(days=1))
    record(store, following, [BROKEN])
    (rule,) = state(store).series
    assert (rule.window, rule.standing, rule.since) == (following, Status.VIOLATED, following.start)


def test_logs_show_their_watermark_their_files_and_what_was_skipped(store: Store) -> None:
    read = IndexedFile(path="a.parquet", size=1, modified="x")
    bad = [
        IndexedFile(path=f"{n}.csv", size=1, modified="x", status="skipped", reason=f"cut {n}")
        for n in (2, 1)
    ]
    store.replace_files("shop", "exposures", [read, *bad], watermark=NOON)
    store.set_watermark("shop", "feedback", NOON)
    exposures, feedback = state(store).logs
    assert (exposures.log, exposures.watermark, exposures.files) == ("exposures", NOON, 3)
    assert exposures.skipped == (SkippedFile("1.csv", "cut 1"), SkippedFile("2.csv", "cut 2"))
    assert (feedback.log, feedback.files, feedback.skipped) == ("feedback", 0, ())


def test_the_counters_are_in_the_snapshot(store: Store) -> None:
    put(store, 0, BROKEN)
    counters = read_snapshot(store, ["shop"], NOON).counters
    assert counters == store.counters()
    labels = (("kind", "hard"), ("recommender", "shop"), ("rule", "blacklist"))
    assert counters["recsys_rule_violations_total", labels] == 1


@pytest.mark.parametrize("late", [False, True])
def test_the_cost_of_a_snapshot_does_not_grow_with_the_history(tmp_path: Path, late: bool) -> None:
    """Counted in steps of SQLite's virtual machine, so that no clock is needed."""
    with Store.open(tmp_path / "history.sqlite") as store:
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        @event.listens_for(store._database._engine, "checkout")
        def watch(connection: object, *_: object) -> None:
            connection.set_progress_handler(count, 100)  # type: ignore[attr-defined]

        def results(number: int) -> list[Result]:
            flap = RULE if number % 10 else BROKEN
            return [replace(GINI, metric=f"m{n}", value=number / 9) for n in range(20)] + [flap]

        costs = []
        for part in range(3):
            for number in range(part * 100, part * 100 + 100):
                put(store, number, *results(number))
            if late:
                put(store, part * 100 + 50, *[replace(one, status=Status.LATE) for one in results(1)])
            before = steps
            state(store)
            costs.append(steps - before)
        assert costs[2] < costs[0] * 1.3 + 10


def test_unchanged_points_are_not_read_again(store: Store) -> None:
    kept: dict[str, Kept] = {}
    for number in range(4):
        put(store, number, replace(GINI, value=number / 10))
    first = read_snapshot(store, ["shop"], NOON, kept=kept)
    held = {number: points for number, (_, points) in kept["shop"].checks["rules"].points.items()}
    put(store, 1, replace(GINI, value=0.9))
    put(store, 4, replace(GINI, value=0.4))
    second = read_snapshot(store, ["shop"], NOON, kept=kept)
    assert second == read_snapshot(store, ["shop"], NOON)
    (before,), (after,) = first.recommenders[0].series, second.recommenders[0].series
    assert [point.value for point in before.past] == [0.0, 0.1, 0.2, 0.3]
    assert [point.value for point in after.past] == [0.0, 0.9, 0.2, 0.3, 0.4]
    points_now = kept["shop"].checks["rules"].points
    assert sum(points is held.get(number) for number, (_, points) in points_now.items()) == 3
    read_snapshot(store, ["other"], NOON, kept=kept)
    assert len(points_now) == 5, "what is kept of others stays"
    read_snapshot(store, ["shop"], NOON, past=2, kept=kept)
    assert len(points_now) == 2


def test_a_result_that_did_not_change_is_the_same_object_and_a_corrected_one_is_not(store: Store) -> None:
    kept: dict[str, Kept] = {}

    def shown() -> Result:
        (series,) = read_snapshot(store, ["shop"], NOON, kept=kept).recommenders[0].series
        return series.result

    put(store, 0, replace(GINI, value=0.1))
    put(store, 1, replace(GINI, value=0.2))
    first = shown()
    put(store, 0, replace(GINI, value=0.15))
    assert shown() is first
    put(store, 1, replace(GINI, value=0.3))
    assert shown().value == 0.3
    put(store, 2, replace(GINI, value=0.4))
    assert shown().value == 0.4
    held = kept["shop"].checks["rules"].results
    assert held is not None
    assert [result.value for result in held[2].values()] == [0.4], "only the newest window's"


_Write = tuple[int, str, int]  # number of a window, check, which results


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 9), st.sampled_from(["rules", "bands", "drift"]), st.integers(0, 4))
        ),
        max_size=6,
    )
)
def test_reading_only_what_was_written_gives_the_snapshot_of_reading_all(turns: list[list[_Write]]) -> None:
    """Windows may be written in any order, again, and behind those that are shown."""
    choices = ((GINI,), (GINI, RULE), (GINI, BROKEN), (BROKEN,), ())
    kept: dict[str, Kept] = {}
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "history.sqlite") as store:
        for turn in turns:
            for number, check, which in turn:
                put(store, number, *choices[which], check=check, status=Status.ERROR if which == 4 else None)
            written = {"shop": store.written("shop")}
            assert written["shop"] == {check for _, check, _ in turn}
            read = read_snapshot(store, ["shop"], NOON, past=3, kept=kept, written=written)
            assert read == read_snapshot(store, ["shop"], NOON, past=3)


def test_a_check_without_anything_new_is_not_read_again(store: Store) -> None:
    put(store, 0, GINI, check="exposure")
    put(store, 0, RULE)
    kept: dict[str, Kept] = {}
    before = read_snapshot(store, ["shop"], NOON, kept=kept).recommenders[0].series
    put(store, 1, BROKEN)
    after = (
        read_snapshot(store, ["shop"], NOON, kept=kept, written={"shop": {"rules"}}).recommenders[0].series
    )
    assert [one.check for one in after] == ["exposure", "rules"]
    assert after[0] is before[0]
    assert after[1].result.status is Status.VIOLATED
    by_default = read_snapshot(store, ["shop"], NOON, kept=kept).recommenders[0].series
    assert by_default == after
    assert by_default[0] is not after[0], "anything may have been written"
