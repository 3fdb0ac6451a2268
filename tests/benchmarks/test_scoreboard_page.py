"""docs/scoreboard.md: what it says of what was found, of what failed, and of the config."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scoreboard import page
from benchmarks.scoreboard.__main__ import main, plan
from benchmarks.scoreboard.config import NAME, REASONS, config, deviations
from benchmarks.scoreboard.jobs import Job, Plan
from benchmarks.scoreboard.outcomes import Aftermath, Catch, Health, Outcome
from monitor.checks.settings import RecommenderSettings
from monitor.simulate.incidents.incident import Size
from monitor.simulate.world import World
from tests.conftest import need

PLAN = Plan(World(), timedelta(days=14), timedelta(days=2))
QUIET = Health(Job(PLAN), 2.0, (), (("RecsysDrift",),))
BY_RULE, BY_BAND = "RecsysHardRuleViolated (blacklist)", "RecsysAnomaly (other)"
ASKED_FOR = {"name", "logs", "rules", "experiments", "slices", "bands", "metrics.score_range"}


@pytest.fixture(autouse=True)
def _programs() -> None:
    need("prometheus", "prometheus")
    need("prometheus-alertmanager", "prometheus-alertmanager")


def run(
    size: Size, minutes: int | None, name: str = "blacklist", alert: str = BY_RULE, **rest: Any
) -> Outcome:
    catch = None if minutes is None else Catch(alert, minutes, 165)
    return Outcome(Job(PLAN, name, size), catch, rest.pop("beside", ()), 1, 2, **rest)


def written(folder: Path, *outcomes: Outcome, **rest: Any) -> str:
    found: dict[str, Any] = {"healthy": [QUIET], "restarts": {}, "failed": {}, "seconds": 1.25} | rest
    text = page.write(page.Found([PLAN], outcomes, **found), folder / "page.md")
    assert (folder / "page.md").read_text("utf-8") == text
    return text


def test_the_page_tells_what_was_found(tmp_path: Path) -> None:
    text = written(
        tmp_path,
        run("large", 76, beside=("RecsysDrift",)),
        run("middle", None, "order_broken"),
        run("large", 150, "log_stops", "RecsysLogStalled", aftermath=Aftermath(30, ("RecsysNoData",))),
    )
    assert f"| blacklist | not run | not run | 1 of 1, 76 min | large | {BY_RULE} | 1 | 2 |" in text
    assert "| order_broken | not run | 0 of 1 | not run | - | - | 1 | 2 |" in text
    assert "| blacklist | RecsysDrift 1 |" in text
    assert "| log_stops-large-seed-1 | 30 | RecsysNoData |" in text
    assert "| seed-1 | 2.0 | 0 | 1 | 0.50 |" in text
    assert "- RecsysDrift: 1" in text
    assert (
        "**The bar is missed in 2 points:**\n\n- order_broken-middle-seed-1: not caught\n- log_stops" in text
    )
    assert "Wednesday 00:00 (seed 1, day 2)" in text
    assert "1.2 seconds of the processor" in text
    assert "Not of one piece" not in text
    assert "**The bar is met.**" in written(tmp_path, run("large", 76))


def test_an_alert_that_told_too_late_is_not_what_told(tmp_path: Path) -> None:
    text = written(tmp_path, run("large", 76), run("large", 166, alert=BY_BAND))
    assert f"| 1 of 2, 166 min | - | {BY_RULE} | 1 | 2 |" in text


@pytest.mark.parametrize(
    ("minutes", "smallest"),
    [
        ((70, 70, 70), "small"),
        ((None, 70, 70), "middle"),
        ((70, None, 70), "large"),  # one that is caught below one that is not says nothing
        ((70, 70, None), "-"),
        ((70, 70, 166), "-"),
    ],
)
def test_the_smallest_size_is_that_from_which_all_larger_ones_are_caught(
    tmp_path: Path, minutes: tuple[int | None, ...], smallest: str
) -> None:
    sizes: tuple[Size, ...] = ("small", "middle", "large")
    text = written(tmp_path, *(run(size, one) for size, one in zip(sizes, minutes, strict=True)))
    (line,) = (line for line in text.splitlines() if line.startswith("| blacklist |") and line.count("|") > 3)
    assert line.split(" | ")[4] == smallest


def test_a_run_that_failed_is_shown_and_is_a_miss(tmp_path: Path) -> None:
    failed = {Job(PLAN, "blacklist", "large"): "OSError: no room", Job(PLAN, "expired", "small"): "x"}
    text = written(tmp_path, run("large", 76), run("middle", 76), failed=failed)
    assert "| blacklist | not run | 1 of 1, 76 min | 1 of 2, 76 min, 1 failed | - |" in text
    assert "| expired | 0 of 1, 1 failed | not run | not run | - | - | 0 | 0 |" in text
    assert "| large | 2 | 1 | 1 |" in text
    assert "- blacklist-large-seed-1: the run failed: OSError: no room" in text


def test_a_restart_that_changes_something_is_a_miss(tmp_path: Path) -> None:
    restart = Job(PLAN, hours=80)
    text = written(tmp_path, restarts={restart: ("RecsysRunsFail",)})
    assert "- restart-80h-seed-1: changes RecsysRunsFail" in text
    assert "**The bar is met.**" in written(tmp_path, restarts={restart: ()})


def test_a_page_of_different_codes_says_so(tmp_path: Path) -> None:
    assert "**Not of one piece:" in written(tmp_path, run("large", 76), other_code=True)


@pytest.mark.parametrize(
    "part",
    [["--seeds", "1"], ["--sizes", "large"], ["--days", "12"], ["--only", "blacklist"], ["--go-on"]],
)
def test_only_the_whole_scoreboard_is_kept(
    part: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--keep", *part], base=tmp_path)
    assert f"goes without {part[0]}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def different(here: dict[str, Any], default: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, value in here.items():
        key = above + name
        if key in ASKED_FOR or value == default[name]:
            continue
        if isinstance(value, dict) and isinstance(default[name], dict):
            yield from different(value, default[name], f"{key}.")
        else:
            yield key


def test_every_number_of_the_config_that_is_no_default_has_its_reason(tmp_path: Path) -> None:
    here = RecommenderSettings.model_validate(config(World())["recommenders"][0])
    default = RecommenderSettings(name=NAME, logs=here.logs)
    assert set(different(here.model_dump(), default.model_dump())) == set(REASONS)
    text = written(tmp_path)
    for one in deviations():
        assert one.here != one.default
        assert f"| `{one.key}` | {one.here} | {one.default} | {one.why} |" in text


def test_the_worlds_are_struck_at_different_times_of_the_day_and_the_week() -> None:
    plans = [plan(World(seed=seed), 30) for seed in (1, 2, 3)]
    assert [f"{one.strikes:%A %H:%M}" for one in plans] == [
        "Tuesday 10:00",
        "Tuesday 03:00",
        "Saturday 20:00",
    ]
    assert all(one.strikes + timedelta(hours=80) < one.ends for one in plans)
    assert plan(World(), 0.125).fork == timedelta(hours=2)
