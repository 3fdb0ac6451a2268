"""Runs over several processes: what fails, what is killed, and what was finished before."""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from benchmarks.scoreboard import jobs, workers
from benchmarks.scoreboard.jobs import LASTS, Job
from benchmarks.scoreboard.play import Operation, hours
from benchmarks.scoreboard.watched import MINUTE
from benchmarks.scoreboard.workers import done, seconds, work_on
from benchmarks.scoreboard.worlds import Plan
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, World

PLANS = [Plan(World(seed=seed), timedelta(days=1), (timedelta(hours=2),)) for seed in range(2)]
HEALTHY = [Job(plan) for plan in PLANS]


def dies(job: Job, work: Path) -> float:
    """A run whose process is killed: at every try that of the first world, else at the first try."""
    tries = work / f"tries-{job.name}"
    with tries.open("a") as file:
        file.write("x")
    if job == HEALTHY[0] or tries.read_text() == "x":
        os.kill(os.getpid(), signal.SIGKILL)
    return finishes(job, work)


def finishes(job: Job, work: Path) -> float:
    """A run that ends at once."""
    job.series(work).touch()
    return 0.5


def test_a_run_whose_process_is_killed_is_tried_once_more_and_others_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "run", dies)
    (first, why), second = work_on(HEALTHY, tmp_path, 1)
    assert (first, why.partition(":")[0]) == (HEALTHY[0], "BrokenProcessPool")
    assert second == (HEALTHY[1], "")
    assert [(tmp_path / f"tries-{job.name}").read_text() for job in HEALTHY] == ["xx", "xx"]
    assert seconds(tmp_path) == {HEALTHY[1].name: 0.5}


def test_finished_runs_are_not_repeated(tmp_path: Path) -> None:
    finishes(HEALTHY[0], tmp_path)
    assert done(HEALTHY[0], tmp_path)
    assert list(work_on(HEALTHY[:1], tmp_path, 1)) == []


def test_a_run_without_its_fork_fails(tmp_path: Path) -> None:
    forked = [Job(PLANS[0], "blacklist", "small"), Job(PLANS[0], hours=2)]
    assert list(work_on(forked, tmp_path, 1)) == [(job, "its healthy days are not there") for job in forked]


def test_a_run_that_fails_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        assert [path.name for path in tmp_path.glob("live-*")] == ["live-healthy-seed-1"]
        raise RuntimeError("broken")

    monkeypatch.setattr(jobs, "_settle", lambda _log: None)
    monkeypatch.setattr(jobs, "play", broken)
    with pytest.raises(RuntimeError, match="broken"):
        jobs.run(HEALTHY[1], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_fork_is_not_saved_again_when_healthy_days_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, saved = HEALTHY[1], list[str]()

    def save(_: object, where: Path) -> None:
        saved.append(where.name)
        where.mkdir(exist_ok=True)

    monkeypatch.setattr(jobs, "_settle", lambda _log: None)
    monkeypatch.setattr(jobs, "Watched", MagicMock())
    monkeypatch.setattr(jobs, "play", lambda *given, **_: ends(given[2], given[3]))
    monkeypatch.setattr("benchmarks.scoreboard.checkpoints.save", save)
    for _ in range(2):
        jobs.run(job, tmp_path, say=lambda _: None)
    assert saved == ["fork-1-0", "midnight-1", "midnight-1"]


def test_a_world_is_only_measured_before_everything_is_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    def play(
        _: object, __: Simulation, begin: datetime, end: datetime, *, is_on: bool = True
    ) -> list[datetime]:
        done.append((begin - plan.world.start, end - plan.world.start, is_on))
        return ends(begin, end)

    plan = Plan(World(seed=1), 30 * HOUR, (9 * HOUR, 26 * HOUR), learned=24 * HOUR)
    watched = MagicMock()
    watched.return_value.__enter__.return_value.reload.side_effect = lambda: done.append("reload")
    monkeypatch.setattr(jobs, "_settle", lambda _log: None)
    monkeypatch.setattr(jobs, "Watched", watched)
    monkeypatch.setattr(jobs, "play", play)
    monkeypatch.setattr(jobs, "write_config", lambda *_, measured=False: done.append(f"{measured=}"))
    monkeypatch.setattr("benchmarks.scoreboard.checkpoints.save", lambda _, where: done.append(where.name))
    jobs.run(Job(plan), tmp_path, say=lambda _: None)
    assert done == [
        "measured=True", (HOUR, 24 * HOUR, False), "midnight-1",
        "measured=False", "reload", (24 * HOUR, 30 * HOUR, True), "fork-1-1",
    ]  # fmt: skip
    assert Job(plan).begins == plan.switched_on == plan.world.start + 24 * HOUR


def ends(begin: datetime, end: datetime) -> list[datetime]:
    """The end of each hour."""
    return [one + HOUR for one in hours(begin, end)]


def test_a_lasting_incident_is_restarted_in_the_middle_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[tuple[Simulation, datetime, datetime]] = []

    def play(
        _: object, simulation: Simulation, begin: datetime, end: datetime, *rest: object
    ) -> list[datetime]:
        played.append((simulation, begin, end))
        return []

    monkeypatch.setattr(jobs, "_settle", lambda _log: None)
    monkeypatch.setattr(jobs, "checkpoints", MagicMock())
    monkeypatch.setattr(jobs, "Watched", watched := MagicMock())
    monkeypatch.setattr(jobs, "play", play)
    job = Job(PLANS[1], "empty_everyone", "large", lasting=True)
    jobs.run(job, tmp_path, say=lambda _: None)
    middle, over = job.begins + LASTS / 2, job.begins + LASTS
    assert [(begin, end) for _, begin, end in played] == [(job.begins, middle), (middle, job.ends)]
    assert [call.args[2] for call in watched.call_args_list] == [job.begins, middle]
    assert job.ends > over
    simulation, healthy = played[0][0], Simulation(job.plan.world)
    assert rows(simulation, over - HOUR) < rows(healthy, over - HOUR)
    assert rows(simulation, over) == rows(healthy, over)


@pytest.mark.parametrize("name", ["history_full", "rule_file_broken"])
def test_an_operation_is_applied_to_the_monitor(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[object, ...]] = []

    def play(_: object, __: Simulation, begin: datetime, ___: datetime, act: Operation) -> list[datetime]:
        done.append((name, *(act(MagicMock(), begin + minute * MINUTE) for minute in range(3))))
        return []

    monkeypatch.setattr(jobs, "_settle", lambda _log: None)
    monkeypatch.setattr(jobs, "checkpoints", MagicMock())
    monkeypatch.setattr(jobs, "Watched", MagicMock())
    monkeypatch.setattr(jobs, "play", play)
    monkeypatch.setattr("benchmarks.scoreboard.operations.sqlite3", MagicMock())
    monkeypatch.setattr("benchmarks.scoreboard.operations.event", MagicMock())
    jobs.run(Job(PLANS[1], name, "large"), tmp_path, say=lambda _: None)
    assert done == [(name, False, True, False)]


def rows(simulation: Simulation, hour: datetime) -> int:
    """Rows with an item that the files of an hour hold."""
    files = [one.table for one in simulation.files(hour) if one.log == "exposures"]
    return sum(table.num_rows - table["item_id"].null_count for table in files)
