"""The real logs beside the checkout: what is known of them must come out."""

from __future__ import annotations

import pyarrow.csv as csv
import pytest

from monitor.core.results import Status
from tests.metrics.worlds import World, by_name, results_of


def read(path):
    return [
        {**row, "ts": row["ts"] and row["ts"].replace(tzinfo=None)} if "ts" in row else row
        for row in csv.read_csv(path).to_pylist()
    ]


@pytest.fixture(scope="module")
def shop(shared):
    """(policy, scene) -> results by name: the exposures of one policy, with the catalog of the scene."""
    exposures = read(shared / "data" / "obd" / "exposures.csv.gz")
    items = read(shared / "data" / "obd" / "catalog.csv.gz")
    found = {}
    for policy in ("random", "bts"):
        for scene in ("men", "women"):
            rows = [
                {**row, "propensity": row["score"]}
                for row in exposures
                if (row["policy"], row["scene"]) == (policy, scene)
            ]
            own = [row for row in items if row["item_id"].startswith(scene)]
            world = World(rows, own, columns=("propensity", "score"))
            found[policy, scene] = by_name(results_of(world))
    return found


@pytest.mark.parametrize("scene", ["men", "women"])
def test_the_gini_of_the_shop_rises_from_its_random_to_its_learned_policy(shop, scene):
    assert shop["random", scene]["gini", ""].value < 0.1
    assert 0.55 < shop["bts", scene]["gini", ""].value < 0.75


def test_the_learned_policy_leaves_10000_exposures_worth_two(shop):
    size = shop["bts", "women"]["effective_sample_size", ""]
    assert size.samples == 10_000
    assert 1 < size.value < 4
    assert shop["random", "women"]["effective_sample_size", ""].value == pytest.approx(10_000)
    assert shop["bts", "women"]["importance_weight", "max"].value > 1e5
    assert (
        shop["bts", "women"]["low_propensity", ""].value > shop["random", "women"]["low_propensity", ""].value
    )


def test_requests_of_one_item_have_no_intra_list_diversity(shop):
    assert shop["random", "men"]["intra_list_diversity", ""].status is Status.NO_DATA


def test_a_news_site_without_catalog_or_scores_gives_the_metrics_that_it_can(shared):
    rows = read(shared / "data" / "ebnerd" / "exposures.csv.gz")
    rows = [{**row, **{c: str(row[c]) for c in ("request_id", "user_id", "item_id")}} for row in rows]
    found = by_name(results_of(World(rows, columns=("score",))))
    assert found["coverage", "pv"].value == 1.0
    assert found["coverage", "pv"].samples == len({row["request_id"] for row in rows})
    assert found["personalization", ""].samples == len({row["user_id"] for row in rows})
    assert found["score_health", "null"].value == 1.0
    assert found["score_health", "nan"].status is Status.NO_DATA
    assert ("gini", "") not in found
