"""The zero-sum incident of the scoreboard in small worlds, with the real daemon: caught, and else silent.

The worlds have the calendar, steps, seasons and weather of the scoreboard, a tenth of its traffic, and only
the check of the platform. The scoreboard itself runs it with every other check, Prometheus and Alertmanager.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.scoreboard import checkpoints, config
from benchmarks.scoreboard.play import play
from benchmarks.scoreboard.watched import Watched
from benchmarks.scoreboard.worlds import drawn, plan
from monitor.core.results import Status
from monitor.metrics.catalogue import SPECS
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, Scene, World

INCIDENT = INCIDENTS["zero_sum"]


def small(seed: int) -> World:
    """A world of the scoreboard with a tenth of its traffic."""
    return replace(drawn(seed), users=2_000, items=300, scenes=(Scene("home", 415.0),), new_users_per_hour=6)


def write(folder: Path, world: World) -> None:
    """The config of the scoreboard, without the checks that have no part in this."""
    whole = config.config(world)
    shop: dict[str, Any] = whole["recommenders"][0]
    for name in ("rules", "models", "experiments", "slices"):
        del shop[name]
    del shop["logs"]["samples"]
    shop["metrics"] = {"disable": list(SPECS)}
    shop["bands"]["sliced"] = []
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(whole), "utf-8")


def violated(watched: Watched) -> bool:
    (state,) = watched.daemon.publisher.current().recommenders
    judged = [one for one in state.series if one.result.metric == "substitution"]
    return any(one.standing is Status.VIOLATED for one in judged)


def run(folder: Path, simulation: Simulation, begin: datetime, end: datetime) -> list[datetime]:
    """The hours after which substitution is violated."""
    found = []
    with Watched(folder, config.NAME, begin) as watched:
        for at in play(watched, simulation, begin, end, is_on=False):
            watched.daemon.publisher.publish()
            if violated(watched):
                found.append(at)
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_caught_within_three_days_and_healthy_days_are_silent(tmp_path: Path, seed: int) -> None:
    world = small(seed)
    planned = plan(world, 25)
    strike = planned.moments[planned.strike_of(INCIDENT.name)]
    write(tmp_path / "healthy", world)
    healthy = Simulation(world)
    assert run(tmp_path / "healthy", healthy, world.start, strike) == []
    with Watched(tmp_path / "healthy", config.NAME, strike) as watched:
        checkpoints.save(watched, tmp_path / "fork")
    assert run(tmp_path / "healthy", healthy, strike, planned.ends) == []
    for size in ("middle", "large"):
        folder = tmp_path / size
        checkpoints.restore(tmp_path / "fork", folder)
        struck = Struck(Simulation(world), INCIDENT, INCIDENT.sizes[size], strike)
        assert run(folder, struck, strike, strike + INCIDENT.windows * HOUR), size
