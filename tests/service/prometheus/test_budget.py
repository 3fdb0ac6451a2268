"""How many series each recommender may have, and what it leaves out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from monitor.history.snapshot import Snapshot
from monitor.service.prometheus.budget import LeftOut, leave_out
from monitor.service.prometheus.chosen import spare_families
from monitor.service.prometheus.exporter import Exporter
from monitor.service.prometheus.families import REQUIRED
from tests.conftest import ROOT
from tests.service import pictures
from tests.service.prometheus.scrapes import find, samples, scrape

STATES = "recsys_rule_status"
GINI, COVERAGE = "recsys_gini", "recsys_coverage_ratio"
SLICED_GINI, SLICED_COVERAGE = "recsys_slice_gini", "recsys_slice_coverage_ratio"


def test_nothing_is_left_out_at_the_limit_itself():
    sizes = {"a": {STATES: 10, GINI: 5}, "b": {STATES: 1, GINI: 84}}
    assert leave_out(sizes, 100) == {}
    assert leave_out(sizes, 99) == {"b": LeftOut({GINI: 84}, share=84)}


def test_what_one_does_not_use_goes_to_the_others():
    sizes = {"small": {GINI: 10}, "middle": {GINI: 40}, "large": {SLICED_GINI: 200, GINI: 40}}
    found = leave_out(sizes, 120)  # 40 each, and 30 that the first does not use
    assert found == {"large": LeftOut({SLICED_GINI: 200}, share=70)}


def test_slices_go_first_the_largest_family_first_then_other_metrics_and_states_never():
    one = {STATES: 50, GINI: 30, COVERAGE: 40, SLICED_GINI: 5, SLICED_COVERAGE: 9}
    order = [SLICED_COVERAGE, SLICED_GINI, COVERAGE, GINI]
    for limit, gone in ((134, 0), (133, 1), (125, 1), (124, 2), (119, 3), (79, 4), (10, 4), (-5, 4)):
        found = leave_out({"a": one}, limit)
        assert list(found["a"].families if found else ()) == order[:gone], limit


def test_families_of_the_same_size_go_in_the_order_of_their_names():
    found = leave_out({"a": {SLICED_GINI: 5, SLICED_COVERAGE: 5, GINI: 1}}, 6)
    assert found == {"a": LeftOut({SLICED_COVERAGE: 5}, share=6)}


def test_states_count_in_the_share_of_their_own_recommender():
    sizes = {"states": {STATES: 70, SLICED_GINI: 10}, "slices": {STATES: 5, SLICED_GINI: 25}}
    assert leave_out(sizes, 100) == {"states": LeftOut({SLICED_GINI: 10}, share=70)}


def test_a_recommender_of_states_alone_has_nothing_to_leave_out():
    assert leave_out({"a": {STATES: 500}, "b": {GINI: 1}}, 100) == {"b": LeftOut({GINI: 1}, share=0)}


FAMILIES = st.dictionaries(
    st.sampled_from([STATES, "recsys_rule_samples", GINI, COVERAGE, SLICED_GINI, SLICED_COVERAGE]),
    st.integers(0, 500),
)
FLEETS = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), FAMILIES, min_size=1, max_size=12)


def needed(sizes: dict[str, int]) -> int:
    return sum(count for name, count in sizes.items() if name in REQUIRED)


@given(FLEETS, st.integers(-10, 5000))
def test_the_limit_holds_and_nobody_below_the_share_loses_anything(fleet, limit):
    found = leave_out(fleet, limit)
    left = {name: sum(one.values()) for name, one in fleet.items()}
    for name, gone in found.items():
        assert gone.families
        assert not REQUIRED & set(gone.families)
        assert all(fleet[name][family] == count > 0 for family, count in gone.families.items())
        assert left[name] > gone.share, "it fits its share and loses nothing"
        left[name] -= gone.series
    required = {name: needed(one) for name, one in fleet.items()}
    if sum(required.values()) <= limit:
        assert sum(left.values()) <= limit
    else:
        assert left == required, "all but the required families is gone"
    # An equal part of what those that must have more than it do not need is everybody's.
    part = (limit - sum(required.values())) // len(fleet)
    for name in found:
        assert sum(fleet[name].values()) > part


@given(FLEETS, st.integers(-10, 5000), st.randoms())
def test_the_order_of_recommenders_and_families_changes_nothing(fleet, limit, random):
    names = random.sample(sorted(fleet), len(fleet))
    mixed = {name: dict(random.sample(sorted(fleet[name].items()), len(fleet[name]))) for name in names}
    assert leave_out(mixed, limit) == leave_out(fleet, limit)


@pytest.fixture
def hostile() -> Snapshot:
    """Three recommenders with one slice each, and one with fifty."""
    (modest,), (huge,) = pictures.wide(1).recommenders, pictures.wide(50).recommenders

    def named(state, name):
        return replace(state, name=name, series=tuple(replace(one, recommender=name) for one in state.series))

    states = (named(modest, "cart"), named(modest, "home"), named(huge, "huge"), named(modest, "mail"))
    return replace(pictures.full(), recommenders=states)


def test_one_recommender_with_fifty_slices_loses_its_own_slices_alone(hostile):
    whole = scrape(hostile)
    by_owner = {
        name: {key for key in samples(whole) if ("recommender", name) in key[1]}
        for name in ("cart", "home", "mail", "huge")
    }
    assert len(by_owner["huge"]) > len(by_owner["cart"]) + 190
    limit = int(find(whole, "recsys_series")) - 150
    limited = samples(scrape(hostile, series_limit=limit))
    assert len(limited) <= limit
    for name in ("cart", "home", "mail"):
        assert by_owner[name] <= set(limited)
        assert limited["recsys_series_dropped", frozenset({("recommender", name)})] == 0
    gone = by_owner["huge"] - set(limited)
    assert {name for name, _ in gone} <= {f"recsys_slice_coverage_{part}" for part in PARTS}
    assert limited["recsys_series_dropped", frozenset({("recommender", "huge")})] == len(gone) >= 150


PARTS = ("ratio", "lower_ratio", "upper_ratio", "samples")


def test_bounds_take_only_the_room_that_all_others_leave(hostile):
    whole = samples(scrape(hostile, export=()))
    spare = {key for key in whole if key[0] in spare_families() and not has_objective(hostile, key)}
    assert len(spare) > 20
    for room in (0, 10, len(spare) - 1, len(spare)):
        limit = len(whole) - len(spare) + room
        limited = samples(scrape(hostile, series_limit=limit, export=()))
        gone = set(whole) - set(limited)
        assert len(limited) <= limit
        assert gone <= spare
        assert bool(gone) is (room < len(spare))
        names = ("cart", "home", "huge", "mail")
        assert [limited["recsys_series_dropped", frozenset({("recommender", one)})] for one in names] == [
            0
        ] * 4
        without = [limited["recsys_series_without_room", frozenset({("recommender", one)})] for one in names]
        assert sum(without) == len(gone)


def has_objective(snapshot, key) -> bool:
    """Whether a bound belongs to a metric with an objective, which is always exported."""
    labels = dict(key[1])
    return any(
        one.result.threshold is not None and key[0].startswith(f"recsys_{one.result.metric}_")
        for state in snapshot.recommenders
        if state.name == labels.get("recommender")
        for one in state.series
    )


def test_the_exporter_knows_what_its_last_scrape_left_out(hostile):
    limit = int(find(scrape(hostile), "recsys_series")) - 150
    exporter = Exporter(lambda: hostile, version="1", url="u", series_limit=limit, export=["*"])
    assert exporter.left_out("huge") is None, "nothing was scraped yet"
    exporter.scrape()
    gone = exporter.left_out("huge")
    assert gone is not None
    assert set(gone.families) <= {f"recsys_slice_coverage_{part}" for part in PARTS}
    assert exporter.left_out("cart") is None
    assert exporter.left_out("no such recommender") is None


def test_no_limit_leaves_out_what_the_condition_of_an_alert_reads():
    rules = [
        rule
        for path in (ROOT / "rules/alerts").glob("*.yaml")
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
        for rule in group["rules"]
    ]
    read = {name for rule in rules for name in re.findall(r"recsys_[a-z0-9_]+", rule["expr"])}
    assert len(read) > 30
    assert read <= REQUIRED
