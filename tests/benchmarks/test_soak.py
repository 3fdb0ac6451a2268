"""The soak: a small one passes, and it finds what it must find."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.soak import page, stages
from benchmarks.soak.__main__ import soak
from benchmarks.soak.actions import Action
from benchmarks.soak.comparison import EXCLUDED, Everything, compared, differences
from benchmarks.soak.killer import WAYS, Kills
from benchmarks.soak.plan import AHEAD, EVENTS, plan
from benchmarks.soak.samples import MOST_MEMORY, Sample, fit, growth, longest_life
from benchmarks.soak.stages import Marks, stages_of
from benchmarks.soak.trouble import FULL, LOCKED

ONE = ("shop", "exposure", "2026-03-01T00:00:00+00:00", "coverage", "{}")


def history(**changed: dict) -> Everything:
    full = {
        "windows": {("shop", "exposure", "00:00", "1"): ("ok", "0a1b", 300, 0)},
        "results": {ONE: {"value": 0.25, "samples": 4, "status": "ok"}},
        "evidence": {ONE: '[{"item_id": "i1"}]'},
        "signals": {("shop", 1): True},
        "watermarks": {("shop", "exposures"): 5},
        "counters": {("recsys_windows_total", (("recommender", "shop"),)): 7.0},
        "files": {("shop", "exposures", "/a.parquet"): (10, "read")},
        "pairs": {("shop", "a"): ["u1 i1"]},
    }
    return Everything(**(full | changed))


def test_equal_histories_have_no_differences() -> None:
    assert differences(history(), history()) == []


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("results", {ONE: {"value": 0.26, "samples": 4, "status": "ok"}}),
        ("evidence", {ONE: '[{"item_id": "i2"}]'}),
        ("counters", {("recsys_windows_total", (("recommender", "shop"),)): 8.0}),
        ("watermarks", {("shop", "exposures"): 6}),
        ("windows", {("shop", "exposure", "00:00", "1"): ("ok", "0a1b", 300, 1)}),
        ("windows", {}),
        ("pairs", {("shop", "a"): ["u1 i1"], ("shop", "b"): []}),
    ],
)
def test_each_difference_is_found(what: str, changed: dict) -> None:
    (line,) = differences(history(), history(**{what: changed}))
    assert line.startswith(f"{what}: ")


def test_a_difference_names_the_value_and_what_it_should_be() -> None:
    found = history(results={ONE: {"value": 0.26, "samples": 4, "status": "ok"}})
    assert "value: 0.25, not 0.26" in differences(history(), found)[0]


def test_only_the_last_digits_and_the_number_of_files_are_left_out_of_a_result() -> None:
    assert compared({"metric": "gini", "value": 0.1 + 0.2, "samples": 3}) == {
        "metric": "gini", "value": 0.3, "samples": 3,
    }  # fmt: skip
    assert "samples" not in compared({"metric": "log_skipped_files", "value": 1.0, "samples": 3})
    assert all(why for why in EXCLUDED.values())


def test_a_leak_of_one_percent_a_window_is_found_and_noise_is_not() -> None:
    noise = random.Random(1)
    level = [(n, 400 + noise.gauss(0, 12)) for n in range(0, 400, 2)]
    # A judge that starts again is small for a while.
    level = [(n, value - 150 if n % 90 < 4 else value) for n, value in level]
    assert fit(level).is_flat(MOST_MEMORY * fit(level).level)
    leak = [(n, value + 0.01 * 400 * n) for n, value in level]
    assert not fit(leak).is_flat(MOST_MEMORY * fit(leak).level)


def test_growth_is_that_of_the_longest_life_and_is_not_judged_if_it_is_short() -> None:
    lives = [Sample(n, 1, 100 + 50 * n, 10 + n) for n in range(20)]
    lives += [Sample(n, 2, 100 + n % 3, 20) for n in range(20, 320)]
    assert {one.life for one in longest_life(lives)} == {2}
    assert growth(lives).is_flat
    assert growth(lives).windows == 299
    leaking = [replace(one, files=one.files + one.window // 20) for one in lives]
    assert not growth(leaking).is_flat
    short = growth(lives[:20])
    assert short.is_flat
    assert not short.memory.is_long_enough


def test_every_process_shows_the_stages_of_its_threads(tmp_path: Path) -> None:
    assert stages_of(tmp_path, 7) == {stages.START}
    marks = Marks(tmp_path / "7")
    assert stages_of(tmp_path, 7) == {stages.IDLE}
    with marks.during(stages.TURN), marks.during(stages.READ):
        assert stages_of(tmp_path, 7) == {stages.READ}
        with marks.kept():
            marks.put(stages.HISTORY)
            assert stages_of(tmp_path, 7) == {stages.HISTORY}
        assert stages_of(tmp_path, 7) == {stages.READ}
    assert stages_of(tmp_path, 7) == {stages.IDLE}


def test_a_stage_without_kills_is_named() -> None:
    kills = Kills()
    kills.in_stage.update([stages.START, stages.START, stages.STOP])
    assert kills.without((stages.START, stages.STOP, stages.IDLE)) == [stages.STOP, stages.IDLE]
    assert stages.LEASES not in stages.expected("sqlite")
    assert set(stages.expected("postgresql")) == set(stages.STAGES)


def test_the_plan_is_the_same_each_time_and_has_every_event() -> None:
    steps = plan(300)
    assert steps == plan(300)
    assert {step.event for step in steps} - {""} == set(EVENTS)
    assert [window for step in steps for window in step.windows] == list(range(300 + AHEAD))


def test_a_whole_window_follows_each_file_that_is_half_there() -> None:
    """Else the window of the file is never complete, and the barrier after it waits in vain."""
    halves = [step for windows in range(20, 120) for step in plan(windows) if step.event == "half-written"]
    assert len(halves) > 100
    assert min(len(step.windows) for step in halves) >= 2


def test_no_action_of_the_plan_removes_a_file_that_is_not_there() -> None:
    there: set[str] = set()
    for step in plan(400):
        for action in (one for actions in step.actions for one in actions):
            if action.kind == "remove":
                there.remove(action.path)
            else:
                there.add(action.path)
    assert len(there) < 4 * 110, "old files are rotated away"


def test_a_half_written_file_has_half_of_the_bytes_and_another_time_of_change(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/a").write_bytes(bytes(100))
    times = []
    for kind, size in (("half", 50), ("put", 100)):
        Action(kind, "a", 3, source="a").apply(tmp_path / "source", tmp_path)
        assert (tmp_path / "a").stat().st_size == size
        times.append((tmp_path / "a").stat().st_mtime)
    assert times[0] < times[1]


@pytest.mark.timeout(900)
def test_a_small_soak_ends_with_equal_histories(tmp_path: Path) -> None:
    found = soak(tmp_path, windows=12, kills=3, history="sqlite")
    assert found.problems == [], "\n".join([*found.problems, *found.differences[:20]])
    assert found.undisturbed.starts == 1
    assert found.undisturbed.history.counts()["results"] > 500
    assert found.disturbed.kills.total == 3
    assert found.disturbed.starts > 1
    assert found.disturbed.troubles[LOCKED] == 1
    assert found.disturbed.troubles[FULL] + len(found.left_out) == 1
    text = page.text(found)
    assert all(re.search(rf"^\| {re.escape(way)} killed \| \d+ \|$", text, re.MULTILINE) for way in WAYS)
    assert "| results |" in text
