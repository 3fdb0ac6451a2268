"""docs/simulation.md runs, and says of the world what the world is."""

from __future__ import annotations

import doctest
import re
from dataclasses import fields, replace
from pathlib import Path

from monitor.simulate.delivery import Hour
from monitor.simulate.lists import BUCKET
from monitor.simulate.luck import CLICK_DAY, CLICK_HOUR, MIX
from monitor.simulate.neighbours import LEVEL
from monitor.simulate.oddities import DEPLOYS, DIP_FROM, DIP_LEFT, DIP_UNTIL, LATE
from monitor.simulate.people import BUCKETS
from monitor.simulate.retraining import AT_HOUR, LEAST, MOST
from monitor.simulate.samples import ONLINE_ROWS
from monitor.simulate.seasons import DAY_LUCK, HOLIDAY, HOUR_LUCK
from monitor.simulate.simulation import Simulation
from monitor.simulate.unsteady import Weather
from monitor.simulate.world import Scene, World

PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulation.md"


def test_the_example_of_the_page_runs():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 7


def test_the_numbers_of_the_page_are_those_of_the_code():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    world = World()
    assert DEPLOYS == ((1, 13), (3, 13))
    assert round(DIP_LEFT * 10) == 1
    assert DIP_UNTIL - DIP_FROM == 2
    for said in (
        f"like a Sunday with {HOLIDAY - 1:.0%}".replace("%", " %"),
        f"{world.growth:.0%} a week".replace("%", " %"),
        f"a day is usually {100 * DAY_LUCK:g} % off, an hour {100 * HOUR_LUCK:g} %",
        f"people click {100 * CLICK_DAY:g} % more or less by day, and {100 * CLICK_HOUR:g} % by hour",
        f"of popularity and of the price is {100 * MIX:g} % off by day",
        f"{100 * world.new_user_share:g} % of the requests",
        f"every seven days at {AT_HOUR:02d}:00",
        f"clicks and popularity move by {100 * LEAST:g} to {100 * MOST:g} %",
        f"from one to the next by up to {200 * MOST:g} %",
        f"into {BUCKETS} buckets, logged as `{BUCKET}`",
        f"the second clicks {100 * world.arm_lift:g} % more",
        f"{ONLINE_ROWS:,} labelled rows an hour",
        f"clicks in search, {LEVEL:g} times the recommender's requests",
        f"a deploy at 13:{DIP_FROM}",
        f"An hour is usually {100 * Weather().sd:g} % off, and its correlation with the hour before is "
        f"{Weather().memory}",
    ):
        assert said in text
    assert world.retrain_days == 7
    simulation = Simulation(replace(world, scenes=(Scene("home", 60.0),)))
    for log in {one.log for one in simulation.files(world.start)}:
        assert f"logs/{log}" in text
    parts = re.search(r"gives the parts of an hour: ([^.]*)\.", text)
    assert parts
    assert set(re.findall(r"`(\w+)`", parts[1])) == {one.name for one in fields(Hour)} - {"start"}
    assert LATE.total_seconds() == 40 * 60
