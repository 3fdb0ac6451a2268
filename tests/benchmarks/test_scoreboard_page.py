"""docs/scoreboard.md: what it says of what was found, of what failed, and of the config."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scoreboard import page
from benchmarks.scoreboard.__main__ import main
from benchmarks.scoreboard.config import NAME, REASONS, config, deviations
from benchmarks.scoreboard.healthy import Health
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.outcomes import Aftermath, Catch, Outcome
from benchmarks.scoreboard.worlds import DAYS, HELD_BACK, Plan, drawn, plan
from monitor.settings.recommender import RecommenderSettings
from monitor.simulate.incidents.incident import Size
from monitor.simulate.world import World
from tests.conftest import ROOT

PLAN = Plan(World(), timedelta(days=14), (timedelta(days=2),))
QUIET = Health(Job(PLAN), {("RecsysDrift", "ticket"): 1}, (0.0,), 1)
BY_RULE, BY_BAND = "RecsysHardRuleViolated (rule=blacklist)", "RecsysAnomaly (cause=other)"
MADE = page.Made("ran", "judged", ["prometheus 2"], "2026-03-01", 4, 1.25)
ASKED_FOR = {"name", "logs", "rules", "experiments", "slices", "bands", "metrics.score_range"}


def run(
    size: Size, minutes: int | None, name: str = "blacklist", alert: str = BY_RULE, **rest: Any
) -> Outcome:
    catch = None if minutes is None else Catch(alert, minutes, 165)
    job = Job(PLAN, name, size, lasting=rest.pop("lasting", False))
    return Outcome(job, catch, rest.pop("beside", ()), 1, 2, 3, **rest)


def written(folder: Path, *outcomes: Outcome, **rest: Any) -> str:
    found: dict[str, Any] = {"healthy": [QUIET], "restarts": {}, "failed": {}, "made": MADE} | rest
    text = page.write(page.Content([PLAN], outcomes, **found), folder / "page.md")
    assert (folder / "page.md").read_text("utf-8") == text
    return text


def row(text: str, begins: str) -> str:
    """The first row of a table that begins so."""
    return next(line for line in text.splitlines() if line.startswith(f"| {begins}"))


def test_the_page_shows_the_outcomes(tmp_path: Path) -> None:
    text = written(
        tmp_path,
        run("large", 76, beside=("RecsysDrift, ticket",)),
        run("middle", None, "order_broken"),
        run("large", 150, "log_stops", "RecsysLogStalled", aftermath=Aftermath(30, (), (), ("A",)), grew=151),
    )
    assert "\n- log_stops-large-seed-1: after 151 minutes\n" in text
    assert row(text, "[blacklist](incidents.md#blacklist)").endswith(
        "| 1: not run | 5: not run | 100: 1 of 1, 76 min (1) | large | 1 of 1 (21 to 100 %) "
        f"| {BY_RULE}: 1 | 1 | 2 | 3 |"
    )
    assert row(text, "[order_broken]").endswith(
        "| 0.2: 0 of 1, 1 never | 1: not run | - | 0 of 1 (0 to 79 %) | - | 1 | 2 | 3 |"
    )
    assert "| blacklist | RecsysDrift, ticket: 1 |" in text
    assert "| log_stops-large-seed-1 | 30 | - | A, ticket |" in text
    assert row(text, "1 | 2.0") == ("| 1 | 2.0 | 0 (0 to 1.85 a week) | 1 (0.01 to 2.79 a week) | 1 | 1 |")
    assert "- RecsysDrift, ticket: 1" in text
    assert "**The bar is missed 1 times; see below.**" in text
    assert "Where the bar is missed:\n\n- order_broken-middle-seed-1: not caught\n" in text
    assert (
        "| tuned on | small incidents | 0 | - | - | 0 |\n"
        "| tuned on | middle incidents | 1 | 0 of 1 (0 to 79 %) | 0 of 1 (0 to 79 %) | 0 |\n"
        "| tuned on | large incidents | 2 | 2 of 2 (34 to 100 %) | 2 of 2 (34 to 100 %) | 0 |\n"
    ) in text
    assert "| tuned on | 2.0 | 0 (0 to 1.85 a week) | 1 (0.01 to 2.79 a week) | 1 |" in text
    assert "| held back | not run | not run | not run | not run |" in text
    assert "- On 2026-03-01 with prometheus 2, on 4 cores.\n" in text
    assert "1.2 seconds of the processor" in text
    assert "Digest of the code that ran: `ran`; of the code that judged: `judged`." in text
    assert "different versions of the code" not in text
    assert "**The bar is met.**" in written(tmp_path, run("large", 76))


def test_the_bar_is_not_met_before_all_has_been_run(tmp_path: Path) -> None:
    text = written(tmp_path, run("large", 76), left=2)
    assert "The bar is met" not in text
    assert "**Nothing misses the bar so far.**\n\n2 runs have no verdict yet.\n" in text
    text = written(tmp_path, run("large", None), left=2)
    assert "**The bar is missed 1 times; see below.**\n\n2 runs" in text


def test_worlds_that_are_held_back_have_rates_of_their_own(tmp_path: Path) -> None:
    hidden = replace(PLAN, world=World(seed=HELD_BACK[0]))
    caught, missed = run("large", 76), run("large", None, "order_broken")
    text = written(
        tmp_path,
        caught,
        replace(missed, job=replace(missed.job, plan=hidden)),
        healthy=[QUIET, Health(Job(hidden), {("A", "page"): 2}, ())],
        failed={Job(hidden, "expired", "large"): "x"},
    )
    assert "| tuned on | large incidents | 1 | 1 of 1 (21 to 100 %) | 1 of 1 (21 to 100 %) | 0 |" in text
    assert "| held back | large incidents | 2 | 0 of 2 (0 to 66 %) | 0 of 2 (0 to 66 %) | 1 |" in text
    assert "| held back | small" not in text
    assert "| held back | 2.0 | 2 (0.12 to 3.62 a week) | 0 (0 to 1.85 a week) | 0 |" in text
    assert (
        f"*Held back*: worlds {HELD_BACK[0]} and {HELD_BACK[1]}, which are never looked at while tuning"
        in text
    )


def test_what_was_drawn_for_a_world_is_on_the_page(tmp_path: Path) -> None:
    world = plan(drawn(HELD_BACK[0]), DAYS)
    text = page.write(page.Content([world], [], [], {}, {}, MADE), tmp_path / "page.md")
    begins = row(text, f"{HELD_BACK[0]}, held back")
    assert f"| {world.world.start:%a %d %b} | {world.switched_on:%a %d %b} |" in begins
    assert f"{world.world.seasons[0].days} days: {world.world.seasons[0].level - 1:+.0%}" in begins
    assert all(f"{one.change:+.1%}" in begins for one in world.world.steps)
    assert begins.count(":00") == len(world.moments) + len(world.world.steps)


def test_an_unknown_value_is_not_shown_as_a_number(tmp_path: Path) -> None:
    failed = {Job(PLAN): "OSError: no room\n[SQL: x]"}
    text = written(tmp_path, healthy=[], failed=failed, made=page.Made("a", "b", [], "2026-03-01", 4))
    assert "| tuned on | not run | not run | not run | not run |" in text
    assert "| 1 | failed | - | - | - | - |" in text
    assert "- healthy-seed-1: the run failed: `OSError: no room`\n" in text
    assert "of the processor." not in text


def test_a_late_alert_is_not_listed_as_the_reporter(tmp_path: Path) -> None:
    text = written(tmp_path, run("large", 76), run("large", 166, alert=BY_BAND), run("large", None))
    cell = "100: 1 of 3, 76 min (1), 1 late, 166 min, 1 never"
    assert row(text, "[blacklist]").endswith(
        f"| {cell} | - | 1 of 3 (6 to 79 %) | {BY_RULE}: 1 | 1 | 2 | 3 |"
    )


def test_unreported_sizes_are_listed_with_their_reason_if_there_is_one(tmp_path: Path) -> None:
    text = written(
        tmp_path, run("small", None, "order_broken"), run("small", 76, "clock_skew"), run("large", 76)
    )
    section = text[text.index("## What was missed") : text.index("## What else fired")]
    assert (
        "| order_broken | small: 0.02 (share of the lists in random order) | 0 of 1 (0 to 79 %) | - |"
        in section
    )
    assert (
        "| clock_skew | small: 3 (minutes by which its clock is ahead) | 1 of 1 (21 to 100 %) | Three minutes"
        in section
    )
    assert "| blacklist |" not in section


def test_lasting_incidents_have_their_own_table(tmp_path: Path) -> None:
    stood = run("large", 76, lasting=True, stood=(BY_RULE,), again=(BY_BAND,), aftermath=Aftermath(90, ()))
    after = Aftermath(0, ("A",), ("B",), ("C", "D"))
    still = run("large", 76, "lists_short", lasting=True, aftermath=after)
    text = written(tmp_path, stood, still)
    section = text[text.index("## Incidents that last") : text.index("## After it is over")]
    assert f"#blacklist) | 2 | 3 | {BY_BAND} | {BY_RULE} | 90 min | - |" in section
    assert "#lists_short) | 2 | 3 | - | - | still: A | B, page; C, ticket; D, ticket |" in section
    assert "\n- lists_short: RecsysAnomaly (cause=other): novelty" in section
    assert "| tuned on | large incidents | 0 | - | - | 0 |" in text


def test_text_of_a_label_breaks_no_table(tmp_path: Path) -> None:
    text = written(tmp_path, run("large", 76, beside=("RecsysDrift (model=a|b<c>\nd), ticket",)))
    assert "| blacklist | RecsysDrift (model=a\\|b&lt;c> d), ticket: 1 |" in text


def test_the_tests_that_the_page_names_exist(tmp_path: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", written(tmp_path))
    assert len(named) > 5
    for path, test in named:
        assert f"def {test}" in (ROOT / path).read_text("utf-8")


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
def test_the_smallest_size_is_the_one_from_which_all_larger_ones_are_caught(
    tmp_path: Path, minutes: tuple[int | None, ...], smallest: str
) -> None:
    sizes: tuple[Size, ...] = ("small", "middle", "large")
    text = written(tmp_path, *(run(size, one) for size, one in zip(sizes, minutes, strict=True)))
    assert row(text, "[blacklist]").split(" | ")[4] == smallest


def test_a_run_that_failed_is_shown_and_is_a_miss(tmp_path: Path) -> None:
    failed = {Job(PLAN, "blacklist", "large"): "OSError: no room", Job(PLAN, "expired", "small"): "x"}
    text = written(tmp_path, run("large", 76), run("middle", 76), failed=failed)
    cells = (
        "| 1: not run | 5: 1 of 1, 76 min (1) | 100: 1 of 2, 76 min (1), 1 failed | - | 2 of 3 (21 to 94 %) |"
    )
    assert f"#blacklist) {cells}" in text
    assert "#expired) | 1: 0 of 1, 1 failed | 5: not run | 100: not run | - | 0 of 1 (0 to 79 %)" in text
    assert "| tuned on | large incidents | 2 | 1 of 2 (9 to 91 %) | 1 of 2 (9 to 91 %) | 1 |" in text
    assert "- blacklist-large-seed-1: the run failed: `OSError: no room`" in text


def test_a_restart_that_changes_something_is_a_miss(tmp_path: Path) -> None:
    restart = Job(PLAN, hours=80)
    text = written(tmp_path, restarts={restart: ("RecsysRunsFail",)})
    assert "- restart-80h-seed-1: changes RecsysRunsFail" in text
    assert "- world 1, 80 hours: RecsysRunsFail" in text
    text = written(tmp_path, restarts={restart: ()})
    assert "**The bar is met.**" in text
    assert "- world 1, 80 hours: nothing" in text


def test_a_page_of_different_versions_of_the_code_says_so(tmp_path: Path) -> None:
    assert "**These runs are from different versions of the code" in written(
        tmp_path, run("large", 76), other_code=True
    )


@pytest.mark.parametrize(
    "part",
    [
        ["--seeds", "1"],
        ["--sizes", "small", "middle", "large"],
        ["--days", "12"],
        ["--only", "blacklist"],
        ["--go-on"],
    ],
)
def test_only_the_whole_scoreboard_is_kept(
    part: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--keep", *part], base=tmp_path)
    assert f"goes without {part[0]}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_world_that_is_held_back_runs_only_with_the_whole_scoreboard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--seeds", "1", str(HELD_BACK[0])], base=tmp_path)
    assert f"the world of seed {HELD_BACK[0]} is held back" in capsys.readouterr().err


def different(here: dict[str, Any], default: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, value in here.items():
        key = above + name
        if key in ASKED_FOR or value == default[name]:
            continue
        if isinstance(value, dict) and isinstance(default[name], dict):
            yield from different(value, default[name], f"{key}.")
        else:
            yield key


def test_every_setting_that_is_not_the_default_has_a_reason(tmp_path: Path) -> None:
    here = RecommenderSettings.model_validate(config(World())["recommenders"][0])
    default = RecommenderSettings(name=NAME, logs=here.logs)
    assert set(different(here.model_dump(), default.model_dump())) == set(REASONS)
    text = written(tmp_path)
    for one in deviations():
        assert one.here != one.default
        assert f"| `{one.key}` | {one.here} | {one.default} | {one.why} |" in text
