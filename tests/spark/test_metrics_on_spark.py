"""Every metric of the catalogue, on Spark and on DuckDB: the same results to 1e-9."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from monitor.core.results import Status
from monitor.metrics.catalogue import FAMILIES
from monitor.metrics.measure import measure_all, not_measured
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.worlds import by_name, shared_of
from tests.spark.worlds import EMPTY, ONE_CATEGORY, SEVERAL_CATEGORIES, VECTORS

EVENTS = {
    "click": EventSettings(),
    "buy": EventSettings(grade=3),
    "play": EventSettings(length="length"),
    "watch": EventSettings(length="duration"),
}
# Places whose fractions no decimal holds: Spark must not compute in decimals.
SETTINGS = MetricSettings(
    score_range=(0, 1),
    events=EVENTS,
    seed_item="page",
    k=(1, 3),
    rating={"event": "click", "unrated": "as_negative", "rounded": True, "distortion": {0: {1: 1.0}}},
)
NUMBERS = ("value", "lower", "upper")


class Tables:
    """Ibis' own way to make a table, on a SparkEngine."""

    def __init__(self, engine):
        self.engine = engine

    def create_table(self, name, data):
        return self.engine.add(name, data) if isinstance(data, pa.Table) else self.engine.create(name, data)


def results(world, settings, dimensions, backend=None):
    measured = measure_all(shared_of(world, backend), settings, dimensions)
    return by_name([result for family in measured for result in family.results])


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for key, want in wanted.items():
        got = found[key]
        for name in NUMBERS:
            number = getattr(want, name)
            close = None if number is None else pytest.approx(number, rel=1e-9, abs=1e-9)
            assert getattr(got, name) == close, (key, name, got.detail)
        blank = dict.fromkeys(NUMBERS)
        assert dataclasses.replace(got, **blank) == dataclasses.replace(want, **blank), key


@pytest.mark.parametrize(
    ("world", "settings", "dimensions"),
    [
        pytest.param(ONE_CATEGORY, SETTINGS, {"on shelf": "shelf"}, id="slices"),
        pytest.param(
            SEVERAL_CATEGORIES,
            MetricSettings(action_events=("buy",), popularity="actions", valid_list_length=2),
            {},
            id="several_categories",
        ),
        pytest.param(VECTORS, SETTINGS, {}, id="vectors"),
        pytest.param(EMPTY, SETTINGS, {}, id="an_empty_window"),
    ],
)
def test_every_metric_is_the_same_on_spark_and_on_duckdb(spark, world, settings, dimensions):
    wanted = results(world, settings, dimensions)
    assert not [one.detail for one in wanted.values() if one.status is Status.ERROR]
    assert_same(results(world, settings, dimensions, Tables(spark)), wanted)


def test_every_family_of_the_catalogue_is_compared():
    left = set.intersection(
        *(
            set(not_measured(shared_of(world), SETTINGS))
            for world in (ONE_CATEGORY, SEVERAL_CATEGORIES, VECTORS)
        )
    )
    assert left == set(), "give a world of tests/spark/worlds.py the columns that these need"
    assert FAMILIES
