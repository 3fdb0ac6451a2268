from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import fields, replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.simulate import ranking
from monitor.simulate.draws import Stage, _mixed, keyed
from monitor.simulate.lists import Lists, item_names, micros, to_exposures
from monitor.simulate.retraining import LEAST, MOST, click_level, in_force_from, model_of, sharpness
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, Scene, World

SMALL = World(seed=3, scenes=(Scene("home", 300.0), Scene("search", 60.0)), users=400, items=300)


def same(one: Lists, other: Lists) -> bool:
    arrays = [field.name for field in fields(Lists) if field.name not in ("start", "end", "extra")]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays) and all(
        np.array_equal(one.extra[name], other.extra[name]) for name in one.extra.keys() | other.extra.keys()
    )


@pytest.fixture(scope="module")
def evening() -> Lists:
    return Simulation(SMALL).lists(SMALL.start + timedelta(days=8, hours=19), hours=3)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 400), max_size=3), st.integers(0, 400))
def test_an_hour_does_not_depend_on_earlier_calls(before: list[int], hour: int):
    fresh, used = Simulation(SMALL), Simulation(SMALL)
    for other in before:
        used.files(SMALL.moment(other))
    one, other = fresh.lists(SMALL.moment(hour)), used.lists(SMALL.moment(hour))
    assert same(one, other)
    assert fresh.feedback(one).equals(used.feedback(other))
    assert fresh.samples(SMALL.moment(hour)).equals(used.samples(SMALL.moment(hour)))


def test_several_hours_equal_the_single_hours(evening: Lists):
    simulation = Simulation(SMALL)
    single = [simulation.lists(evening.start + hour * HOUR) for hour in range(3)]
    assert np.array_equal(evening.items, np.concatenate([one.items for one in single]))
    assert (evening.start, evening.end) == (single[0].start, single[-1].end)
    assert len(np.unique(evening.request_ids)) == len(evening)


def test_another_process_with_another_order_of_sets_makes_the_same_logs():
    code = "from tests.simulate.test_world_simulation import SMALL, digest\nprint(digest(SMALL))"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == digest(SMALL)
    assert digest(replace(SMALL, seed=4)) != digest(SMALL)


def digest(world: World) -> str:
    """Of the files of two hours, to the byte."""
    found = hashlib.sha256()
    for hour in (30, 172):
        for file in Simulation(world).files(world.moment(hour)):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, file.table.schema) as writer:
                writer.write_table(file.table)
            found.update(f"{file.log} {file.name} {file.arrives}".encode() + sink.getvalue().to_pybytes())
    return found.hexdigest()


def test_keyed_chance_mixes_as_published_and_is_uniform():
    assert int(_mixed(np.array([0], np.uint64))[0]) == 0xE220A8397B1DCDAF  # splitmix64's first of seed 0
    numbers = keyed(1, Stage.CLICK, np.arange(100_000), np.array([4]))
    counts, _ = np.histogram(numbers, 100, (0, 1))
    assert ((counts - 1000) ** 2 / 1000).sum() == pytest.approx(99, abs=5 * np.sqrt(198))
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.015


def test_times_lie_within_the_hours_and_never_fall(evening: Lists):
    assert evening.times.min() >= micros(evening.start)
    assert evening.times.max() < micros(evening.end)
    assert (np.diff(evening.times) >= 0).all()


def test_lists_hold_distinct_items_of_the_shelf_with_falling_scores(evening: Lists):
    simulation = Simulation(SMALL)
    for hour in range(3):
        lists = simulation.lists(evening.start + hour * HOUR)
        shelf = simulation.shop.shelf(SMALL.hour_of(lists.start))
        assert np.isin(lists.items[lists.shown], shelf).all()
        full = lists.items[lists.lengths == SMALL.length]
        assert (np.diff(np.sort(full, axis=1), axis=1) > 0).all()
        assert (np.diff(lists.scores[lists.lengths == SMALL.length], axis=1) <= 0).all()
        assert ((lists.scores[lists.shown] > 0) & (lists.scores[lists.shown] < 1)).all()
        catalog = simulation.catalog(lists.start)["item_id"].to_pylist()
        shown = to_exposures(lists, SMALL)["item_id"].drop_null().to_pylist()
        assert set(shown) <= set(catalog) - set(simulation.blacklist)


def test_places_beyond_the_length_of_a_list_are_empty(evening: Lists):
    beyond = ~evening.shown
    assert beyond.any()
    assert (evening.items[beyond] == -1).all()
    assert (evening.scores[beyond] == 0).all()
    assert (evening.items[evening.shown] >= 0).all()
    assert (evening.extra["impressions"][evening.shown] > 0).all()


def test_empty_and_short_lists_have_the_rates_of_the_world():
    world = replace(SMALL, scenes=(Scene("home", 20_000.0),), empty_share=0.03, short_share=0.1)
    lengths = Simulation(world).lists(world.start + timedelta(hours=12)).lengths
    assert (lengths == 0).mean() == pytest.approx(0.03, abs=0.006)
    assert ((lengths > 0) & (lengths < 10)).mean() == pytest.approx(0.1, abs=0.01)
    assert set(np.unique(lengths)) == {0, 5, 6, 7, 8, 9, 10}


@pytest.mark.parametrize("items", [10, 30, 300])
def test_lists_are_full_in_a_shop_of_any_size(items: int):
    world = replace(SMALL, items=items, new_items_per_hour=0.25, empty_share=0.0, short_share=0.0)
    lists = Simulation(world).lists(world.start)
    assert (np.diff(np.sort(lists.items, axis=1), axis=1) > 0).all()
    assert lists.items.shape == (len(lists), 10)


@pytest.mark.parametrize("items", [12, 300])
def test_lists_do_not_depend_on_the_chunk_size(items: int, monkeypatch: pytest.MonkeyPatch):
    world = replace(SMALL, items=items, new_items_per_hour=0.25)
    whole = Simulation(world).lists(world.start)
    monkeypatch.setattr(ranking, "CHUNK", 7)
    assert same(Simulation(world).lists(world.start), whole)


def test_lists_are_personal_and_change_from_request_to_request():
    world = replace(SMALL, users=2, new_user_share=0.0, user_skew=0.0, empty_share=0.0, short_share=0.0)
    lists = Simulation(world).lists(world.start + timedelta(hours=20))
    first, second = (lists.items[lists.users == user][:100] for user in (0, 1))
    overlap = lambda a, b: np.mean([np.isin(x, y).mean() for x in a for y in b if x is not y])  # noqa: E731
    assert overlap(first, first) > 1.2 * overlap(first, second)
    assert (first[1:] != first[:-1]).any(axis=1).all()


def test_a_little_shop_at_night_may_have_an_hour_without_a_request():
    quiet = replace(SMALL, scenes=(Scene("home", 0.0),))
    simulation = Simulation(quiet)
    lists = simulation.lists(quiet.start)
    assert len(lists) == 0
    assert lists.items.shape == (0, 10)
    assert simulation.feedback(lists).num_rows == 0
    # Visits have a row for each minute, also for one without a visit.
    assert {one.log for one in simulation.files(quiet.start)} == {"catalog", "samples", "visits"}


def test_models_follow_each_other_and_each_shifts_clicks_and_sharpness_a_little():
    world = World(retrain_days=7)
    hours = [in_force_from(world, model) for model in range(5)]
    assert [model_of(world, hour) for hour in hours] == [0, 1, 2, 3, 4]
    assert [model_of(world, hour - 1) for hour in hours[1:]] == [0, 1, 2, 3]
    models = np.arange(40)
    for shifts in (click_level(world, models), sharpness(world, models)):
        assert shifts[0] == 1
        assert ((abs(shifts[1:] - 1) >= LEAST) & (abs(shifts[1:] - 1) <= MOST)).all()
        assert 10 < (shifts[1:] > 1).sum() < 30
    assert Simulation(world).lists(world.moment(172)).models.tolist().count(1) > 0


def test_an_invalid_span_is_refused():
    simulation = Simulation(SMALL)
    for start, hours in ((SMALL.start - HOUR, 1), (SMALL.start + HOUR / 2, 1), (SMALL.start, 0)):
        with pytest.raises(ValueError):
            simulation.lists(start, hours)


def test_the_blacklist_names_items_of_the_catalog():
    simulation = Simulation(SMALL)
    assert simulation.blacklist == item_names(simulation.shop.blacklisted).tolist()
    assert set(simulation.blacklist) < set(simulation.catalog(SMALL.start)["item_id"].to_pylist())


def test_a_large_scene_beside_a_small_one_is_ranked_within_bounded_memory():
    """In a process of its own: the peak of memory is of the whole process."""
    code = (
        "import resource\nfrom monitor.simulate.simulation import Simulation\n"
        "from monitor.simulate.world import Scene, World\n"
        "world = World(scenes=(Scene('large', 200_000.0, 1.0), Scene('small', 200.0, 1.0)))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "lists = Simulation(world).lists(world.start)\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(len(lists), (lists.scenes == 1).sum(), (after - before) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    requests, small, megabytes = map(int, done.stdout.split())
    assert requests == pytest.approx(190_000, rel=0.1)
    assert small == pytest.approx(190, rel=0.4)
    # The hour's own arrays are about 60 MB; one of all candidates would be 46, and there are a dozen.
    assert megabytes < 250
