"""Random windows: every metric of exposure health, overall and by slice, against brute-force definitions."""

from __future__ import annotations

import math
from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from monitor.core.results import Status
from monitor.metrics.catalogue import EXPOSURE_FAMILIES
from monitor.settings.metrics import MetricSettings
from tests.metrics.oracle import expected
from tests.metrics.worlds import START, World, by_name, results_of, shared_of

# Ids and categories that would break a query or a page that pastes them in.
ITEMS = ["a", "b", "c", "d'; DROP TABLE exposures; --", "<b>e</b>\n", "é"]
CATEGORIES = ["x", "y'", "ｚ", None, ""]
USERS = ["u1", "u2", "u'3", None]
SCORES = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 5e-324, -1e-310, 0.5, 0.25, 2.0, -1e300]
# Weights past 1e154 overflow when squared, which the oracle (not the product) would do.
PROPENSITIES = [None, math.nan, math.inf, -0.5, 0.0, 1e-6, 0.009, 0.01, 0.5, 1.0, 1.5]
STATUSES = [None, "ok", "ok", "delivered", "error", "timeout", "interrupted", "wrong_user", "OK'; --"]
LATENCIES = [None, math.nan, math.inf, -1.0, 0.0, 5e-324, 0.25, 0.5, 0.75, 3.0, 1e300]
NUMBERS = [-1.0, 0.0, 0.5, 2.0, 1e200, 1e-200, None, math.nan, math.inf]

OF_EXPOSURES = tuple({spec.name for family in EXPOSURE_FAMILIES for spec, _ in family.outputs})
HEALTH = (*OF_EXPOSURES, "matthew_effect", "serendipity")

item = st.sampled_from(ITEMS)
user = st.sampled_from(USERS)
known_user = st.sampled_from(USERS[:-1])
pair = st.tuples(known_user, item)


LOGGED = ("position", "score", "propensity", "scene", "shelf")
ALL_LOGGED = (*LOGGED, "status", "latency", "ever_shown")


@st.composite
def exposures(draw):
    rows = []
    for number in range(draw(st.sampled_from([0, 1, 3, 10, 20]))):
        request = {
            "request_id": f"r{number}",
            "user_id": draw(user),
            "scene": draw(st.sampled_from(["home", "feed", None])),
            "ts": START + timedelta(minutes=draw(st.integers(0, 5))),
            "status": draw(st.sampled_from(STATUSES)),
            "latency": draw(st.sampled_from(LATENCIES)),
        }
        for shown in draw(st.lists(item, max_size=5)) or [None]:
            rows.append(
                request
                | {
                    "item_id": shown,
                    "position": None if shown is None else draw(st.sampled_from([None, 1, 2, 3])),
                    "shelf": draw(st.sampled_from(["top", "left", "right", "<b>", "'"])),
                    "score": None if shown is None else draw(st.sampled_from(SCORES)),
                    "propensity": None if shown is None else draw(st.sampled_from(PROPENSITIES)),
                    "ever_shown": draw(st.sampled_from([None, True, False])),
                }
            )
    return rows


def catalogs(row):
    return st.none() | st.lists(item, unique=True).flatmap(
        lambda ids: st.tuples(*(row for _ in ids)).map(
            lambda rows: [{"item_id": i} | r for i, r in zip(ids, rows, strict=True)]
        )
    )


def worlds(row, **fixed):
    return st.builds(
        World,
        exposures=exposures(),
        catalog=catalogs(row),
        feedback=st.none()
        | st.lists(
            st.fixed_dictionaries(
                {
                    "user_id": user,
                    "item_id": item | st.none(),
                    "event": st.sampled_from(["click", "buy"]),
                    "request_id": st.sampled_from(["r0", "r1", "r2", None]),
                }
            ),
            max_size=8,
        ),
        history=st.none()
        | st.lists(st.tuples(known_user, item, st.integers(1, 9)), max_size=8, unique_by=lambda x: x[:2]),
        history_actions=st.none() | st.lists(pair, max_size=6),
        yesterday=st.none() | st.lists(pair, max_size=6),
        today=st.none() | st.lists(pair, max_size=6),
        columns=st.sampled_from([LOGGED, ALL_LOGGED, (*LOGGED, "latency")]),
        **{name: st.just(value) for name, value in fixed.items()},
    )


metric_settings = st.builds(
    MetricSettings,
    valid_list_length=st.integers(1, 3),
    score_range=st.sampled_from([None, (0.0, 1.0)]),
    action_events=st.sampled_from([None, ("buy",)]),
    events=st.sampled_from([{"click": {}}, {"click": {}, "buy": {"grade": 2}}]),
    popularity=st.sampled_from(["exposures", "actions"]),
    similarity=st.sampled_from([None, "category"]),
)

ONE_CATEGORY = worlds(st.fixed_dictionaries({"category": st.sampled_from(CATEGORIES)}))
SEVERAL_CATEGORIES = worlds(
    st.fixed_dictionaries({"category": st.none() | st.lists(st.sampled_from(CATEGORIES), max_size=3)}),
    category=pa.list_(pa.string()),
)
VECTORS = worlds(
    st.fixed_dictionaries(
        {
            "category": st.sampled_from(CATEGORIES),
            "vector": st.none()
            | st.lists(st.sampled_from(NUMBERS), min_size=3, max_size=3)
            | st.lists(st.sampled_from(NUMBERS[:3]), max_size=3),
        }
    ),
    catalog_columns=("category", "vector"),
)


def test_the_random_windows_hold_what_every_family_of_exposures_needs():
    nothing: list[dict] = []
    world = World(
        nothing, nothing, nothing, [], [], [], [],
        columns=ALL_LOGGED, catalog_columns=("category", "vector"),
    )  # fmt: skip
    shared = shared_of(world)
    lacking = {family.name: family.reason_not(shared, MetricSettings()) for family in EXPOSURE_FAMILIES}
    assert {name: why for name, why in lacking.items() if why} == {}


def assert_as_defined(world, given_settings):
    found = by_name(results_of(world, given_settings, {"scene": "scene", "on shelf": "shelf"}, only=HEALTH))
    assert not [r.detail for r in found.values() if r.status is Status.ERROR]
    assert_same({k: r for k, r in found.items() if len(k) == 2}, expected(world, given_settings))
    for dimension, column in (("scene", "scene"), ("on shelf", "shelf")):
        values = {r[column] or "unknown" for r in world.exposures}
        assert {k[3] for k in found if len(k) == 4 and k[2] == dimension} == values
        for value in values:
            of_slice = {k[:2]: r for k, r in found.items() if k[2:] == (dimension, value)}
            wanted = expected(world.where(column, value), given_settings)
            for not_sliced in (("matthew_effect", ""), ("update_rate", "day"), ("catalog_items", "")):
                wanted.pop(not_sliced, None)
            assert_same(of_slice, wanted)


def assert_same(found, wanted):
    assert set(found) == set(wanted)
    for key, want in wanted.items():
        result = found[key]
        if isinstance(want, str):
            assert (key, result.status.value, result.value) == (key, want, None)
            assert result.detail
            assert result.lower is result.upper is None
        else:
            status, value, samples, lower, upper = want
            assert (key, result.status) == (key, Status(status))
            assert result.value == pytest.approx(value, rel=1e-9, abs=1e-9), key
            assert result.samples == samples, key
            assert result.lower == (None if lower is None else pytest.approx(lower, rel=1e-6, abs=1e-7)), key
            assert result.upper == (None if upper is None else pytest.approx(upper, rel=1e-6, abs=1e-7)), key


modest = settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking such a window takes many minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@modest
@given(world=ONE_CATEGORY, given_settings=metric_settings)
def test_items_with_one_category_each(world, given_settings):
    assert_as_defined(world, given_settings)


@modest
@given(world=SEVERAL_CATEGORIES, given_settings=metric_settings)
def test_items_with_several_categories(world, given_settings):
    assert_as_defined(world, given_settings)


@modest
@given(world=VECTORS, given_settings=metric_settings)
def test_items_with_vectors_good_and_bad(world, given_settings):
    assert_as_defined(world, given_settings)
