"""Series kept as their changes, and written out again a sample a minute."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scoreboard.openmetrics import Target, write
from benchmarks.scoreboard.selectors import lookback, selectors
from benchmarks.scoreboard.series import Key, Recorded, Segment

UP: Key = ("recsys_pending_windows", (("recommender", "shop"),))
RUN: Key = ("recsys_last_run_timestamp_seconds", (("recommender", "shop"),))
OK: Key = ("recsys_scheduler_runs_total", (("recommender", "shop"), ("outcome", "ok")))
FAILED: Key = ("recsys_scheduler_runs_total", (("recommender", "shop"), ("outcome", "failed")))


def by_minute(recorded: Recorded, key: Key, first: int, last: int) -> dict[int, float]:
    return {
        minute: segment.value + segment.slope * (minute - segment.minute)
        for begin, end, segment in recorded.spans(key, first, last)
        for minute in range(begin, end + 1)
    }


@given(st.lists(st.one_of(st.none(), st.sampled_from([0.0, 1.0, 2.5])), min_size=1, max_size=30))
def test_the_scraped_values_of_each_minute_are_restored(values: list[float | None]) -> None:
    recorded = Recorded()
    for minute, value in enumerate(values):
        recorded.take(minute, {} if value is None else {UP: value})
    expected = {minute: value for minute, value in enumerate(values) if value is not None}
    if not expected:
        assert recorded.segments == {}
        return
    assert by_minute(recorded, UP, 0, len(values) - 1) == expected
    assert all(
        a.value != b.value for a, b in zip(recorded.segments[UP], recorded.segments[UP][1:], strict=False)
    )
    half = len(values) // 2
    cut = recorded.between(half, len(values) - 1)
    later = {minute: value for minute, value in expected.items() if minute >= half}
    assert (by_minute(cut, UP, half, len(values) - 1) if UP in cut.segments else {}) == later


def test_series_of_the_clock_rise_during_turns_without_work() -> None:
    recorded = Recorded()
    recorded.take(10, {RUN: 600.0, OK: 5.0, FAILED: 1.0}, idle=True)
    recorded.take(13, {RUN: 780.0, OK: 8.0, FAILED: 1.0}, idle=True)
    recorded.take(14, {RUN: 780.0, OK: 8.0, FAILED: 2.0})
    assert [len(segments) for segments in recorded.segments.values()] == [2, 2, 2]
    assert by_minute(recorded, RUN, 9, 15) == {10: 600, 11: 660, 12: 720, 13: 780, 14: 780, 15: 780}
    assert by_minute(recorded, OK, 9, 15) == {10: 5, 11: 6, 12: 7, 13: 8, 14: 8, 15: 8}
    assert by_minute(recorded, FAILED, 13, 14) == {13: 1, 14: 2}


def test_the_second_scrape_of_a_minute_wins_and_time_never_runs_backwards() -> None:
    recorded = Recorded()
    recorded.take(5, {UP: 1.0})
    recorded.take(5, {UP: 2.0})
    assert recorded.segments[UP] == [Segment(5, 2.0)]
    with pytest.raises(ValueError, match="minute 4 comes after 5"):
        recorded.take(4, {UP: 3.0})


def test_a_file_of_series_has_the_recorded_values(tmp_path: Path) -> None:
    hostile: Key = ("recsys_rule_status", (("rule", 'a"b\\c\nd,{x="y"}'),))
    recorded = Recorded()
    recorded.take(1, {UP: 0.1, RUN: 60.0, hostile: 1.0}, idle=True)
    recorded.take(3, {RUN: 180.0})
    recorded.write(tmp_path / "series.parquet")
    assert Recorded.read(tmp_path / "series.parquet") == recorded
    some = Recorded.read(tmp_path / "series.parquet", lambda key: key != UP)
    assert some.segments == {key: recorded.segments[key] for key in (RUN, hostile)}
    assert Recorded.read(tmp_path / "series.parquet", lambda _: False) == Recorded()
    newest = Recorded.read(tmp_path / "series.parquet", newest=True)
    assert newest.segments == {key: known[-1:] for key, known in recorded.segments.items()}
    assert len(recorded.segments[RUN]) > 1
    Recorded().write(tmp_path / "none.parquet")
    assert Recorded.read(tmp_path / "none.parquet") == Recorded()
    assert Recorded.read(tmp_path / "none.parquet", newest=True) == Recorded()


def test_a_record_continues_an_earlier_one(tmp_path: Path) -> None:
    whole, first = Recorded(), Recorded()
    scrapes: list[tuple[int, dict[Key, float]]] = [
        (1, {UP: 1.0, OK: 3.0}), (4, {UP: 2.0}), (4, {UP: 2.0, OK: 5.0}), (6, {UP: 2.0, RUN: 1.0}), (9, {}),
    ]  # fmt: skip
    for minute, values in scrapes[:2]:
        first.take(minute, values)
    first.write(tmp_path / "first.parquet")
    later = Recorded.read(tmp_path / "first.parquet", newest=True)
    for minute, values in scrapes[2:]:  # the first of them at the minute at which the other ends
        later.take(minute, values)
    for minute, values in scrapes:
        whole.take(minute, values)
    assert later.after(first) == whole
    assert Recorded().after(first) == first
    assert later.after(Recorded()) == later


def test_only_the_needed_time_is_written_with_the_names_of_the_run(tmp_path: Path) -> None:
    recorded = Recorded()
    recorded.take(0, {UP: 1.0, RUN: 0.0, ("recsys_unread", ()): 1.0}, idle=True)
    known = selectors(["recsys_pending_windows > 5", "changes(recsys_last_run_timestamp_seconds[2m]) > 1"])
    target = Target('run"1', recorded, 10, 11)
    path = tmp_path / "samples.om"
    count = write(path, [target], lambda name, labels: lookback(known, name, labels))
    lines = path.read_text("utf-8").splitlines()
    job = 'job="recsys-monitor",instance="run\\"1"'
    own = f'{{recommender="run\\"1",{job}}}'
    assert lines == [
        f"up{{{job}}} 1.0 600",
        f"up{{{job}}} 1.0 660",
        f"recsys_pending_windows{own} 1.0 600",
        f"recsys_pending_windows{own} 1.0 660",
        *(f"recsys_last_run_timestamp_seconds{own} {m * 60.0} {m * 60}" for m in (8, 9, 10, 11)),
        "# EOF",
    ]
    assert count == 8


def test_a_selector_has_its_lookback() -> None:
    known = selectors(
        [
            'max_over_time(rate(a_total{b="x", c!="y"}[5m] offset 1m)[1h:1m] offset 2m) > 3',
            'a_total{b=~"x|z"} offset 3m unless on (b) sum by (b) (-(b_total{c!~"q.*"}))',
        ]
    )
    assert lookback(known, "a_total", {"b": "x"}) == timedelta(minutes=68)
    assert lookback(known, "a_total", {"b": "x", "c": "y"}) == timedelta(minutes=3)
    assert lookback(known, "a_total", {"b": "xx"}) is None
    assert lookback(known, "b_total", {}) == timedelta(0)
    assert lookback(known, "b_total", {"c": "quick"}) is None
    assert lookback(known, "c_total", {}) is None
