"""Level steps, seasons and weather: each is in the traffic, with its size."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
import pytest

from monitor.simulate.seasons import HOLIDAY, expected_requests, luck, weather
from monitor.simulate.simulation import Simulation
from monitor.simulate.unsteady import Season, Step, Weather
from monitor.simulate.world import HOUR, Scene, World

WEEK = 7 * 24
PLAIN = World(scenes=(Scene("home", 100.0), Scene("search", 20.0, 0.2, 0.5)), growth=0.0, holidays=())
SMALL = replace(PLAIN, scenes=(Scene("home", 800.0),), items=48, length=2, oddities=False)
TAXIS = replace(PLAIN, scenes=(Scene("home", 14_000.0),), weather=Weather())


def expected(world: World, hours: int = WEEK) -> np.ndarray:
    return np.array([expected_requests(world, hour) for hour in range(hours)])


def requests(world: World, first: int, hours: int) -> np.ndarray:
    """The requests in the logs of these hours."""
    simulation = Simulation(world)
    return np.array(
        [len(simulation.lists(world.start + hour * HOUR)) for hour in range(first, first + hours)]
    )


def test_a_step_changes_all_requests_from_its_hour_on_and_stays() -> None:
    stepped = replace(PLAIN, steps=(Step(PLAIN.start + 30 * HOUR, -0.08),))
    ratio = expected(stepped, 2 * WEEK) / expected(PLAIN, 2 * WEEK)
    assert ratio[:30] == pytest.approx(np.ones((30, 2)))
    assert ratio[30:] == pytest.approx(np.full((2 * WEEK - 30, 2), 0.92))


def test_a_step_within_an_hour_begins_with_the_next() -> None:
    stepped = replace(PLAIN, steps=(Step(PLAIN.start + 5.5 * HOUR, 0.2),))
    ratio = expected(stepped, 24)[:, 0] / expected(PLAIN, 24)[:, 0]
    assert ratio == pytest.approx(np.repeat([1.0, 1.2], [6, 18]))


def test_steps_add_up_and_are_in_the_logs() -> None:
    steps = (Step(SMALL.start + 5 * HOUR, 0.2), Step(SMALL.start + 10 * HOUR, 0.5))
    ratio = requests(replace(SMALL, steps=steps), 0, 24) / requests(SMALL, 0, 24)
    assert ratio[:5] == pytest.approx(np.ones(5))
    assert ratio[5:10].mean() == pytest.approx(1.2, rel=0.05)
    assert ratio[10:].mean() == pytest.approx(1.8, rel=0.05)


def test_a_season_has_another_level_and_another_shape_and_passes() -> None:
    season = Season(date(2026, 1, 7), days=8, level=1.15, like_weekend=0.5)  # from a Wednesday on
    days = expected(replace(PLAIN, seasons=(season,)), 3 * WEEK)[:, 0].reshape(21, 24)
    plain = expected(PLAIN, 3 * WEEK)[:, 0].reshape(21, 24)
    within = range(2, 10)
    assert [day for day in range(21) if days[day] != pytest.approx(plain[day])] == list(within)
    for day in within:
        shape = plain[day] if day % 7 >= 5 else (plain[0] + plain[6]) / 2
        assert days[day] == pytest.approx(1.15 * shape)


def test_a_season_is_in_the_logs() -> None:
    season = Season(date(2026, 1, 5), days=1, level=0.6)
    ratio = requests(replace(SMALL, seasons=(season,)), 20, 8) / requests(SMALL, 20, 8)
    assert ratio[:4] == pytest.approx(np.full(4, 0.6), rel=0.15)
    assert ratio[4:] == pytest.approx(np.ones(4))


def test_a_holiday_in_a_season_still_looks_like_a_sunday() -> None:
    season = Season(date(2026, 1, 5), days=7, level=1.2, like_weekend=0.25)
    days = expected(replace(PLAIN, seasons=(season,), holidays=(date(2026, 1, 7),))).reshape(7, 24, 2)
    assert days[2] == pytest.approx(1.2 * HOLIDAY * expected(PLAIN).reshape(7, 24, 2)[6])


def test_weather_has_its_size_and_is_remembered_from_hour_to_hour() -> None:
    logs = np.log(weather(TAXIS, np.arange(40_000)))
    assert logs.std() == pytest.approx(0.067, rel=0.05)
    assert logs.mean() == pytest.approx(0, abs=0.006)
    for later in (1, 2, 10):
        assert np.corrcoef(logs[later:], logs[:-later])[0, 1] == pytest.approx(0.95**later, abs=0.03)
    short = np.log(weather(replace(TAXIS, weather=Weather(sd=0.2, memory=0.0)), np.arange(40_000)))
    assert short.std() == pytest.approx(0.2, rel=0.05)
    assert np.corrcoef(short[1:], short[:-1])[0, 1] == pytest.approx(0, abs=0.02)


def test_drawn_requests_remember_the_hour_before_despite_the_noise_of_hours_and_counts() -> None:
    hours, rng = range(3000), np.random.default_rng(1)
    means = np.array([expected_requests(TAXIS, hour)[0] for hour in hours])
    counts = rng.poisson(means * [luck(TAXIS, hour)[0] for hour in hours])
    logs = np.log(counts / means)
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(0.89, abs=0.04)
    assert logs.std() == pytest.approx(0.07, rel=0.2)


def test_weather_is_in_the_logs() -> None:
    world = replace(SMALL, weather=Weather(sd=0.3, memory=0.9))
    seen = np.log(requests(world, 0, 48) / requests(SMALL, 0, 48))
    assert np.corrcoef(seen, np.log(weather(world, np.arange(48))))[0, 1] > 0.95


def test_all_scenes_have_the_same_weather_and_it_depends_on_no_other_call() -> None:
    world = replace(PLAIN, weather=Weather())
    assert luck(world, 30) / luck(PLAIN, 30) == pytest.approx(np.full(2, weather(world, np.array([30]))[0]))
    assert weather(world, np.array([59, 0, 31])) == pytest.approx(weather(world, np.arange(60))[[59, 0, 31]])
    assert not np.isclose(weather(replace(world, seed=2), np.arange(60)), weather(world, np.arange(60))).any()


def test_a_world_is_steady_by_default() -> None:
    assert (World().steps, World().seasons, World().weather) == ((), (), None)
    assert weather(World(), np.arange(3)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Step(datetime(2026, 1, 5), 0.1),
        lambda: Step(PLAIN.start, -1.0),
        lambda: Step(PLAIN.start, 1.5),
        lambda: Season(date(2026, 1, 5), days=0, level=1.0),
        lambda: Season(date(2026, 1, 5), days=7, level=0.0),
        lambda: Season(date(2026, 1, 5), days=7, level=1.0, like_weekend=1.1),
        lambda: Weather(sd=-0.1),
        lambda: Weather(memory=1.0),
    ],
)
def test_wrong_numbers_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match=r"step|season|weather|like_weekend"):
        wrong()


def test_a_season_has_its_days() -> None:
    season = Season(date(2026, 1, 5), days=7, level=1.0)
    days = [date(2026, 1, 4) + timedelta(days=number) for number in range(9)]
    assert [season.has(day) for day in days] == [False, *[True] * 7, False]
