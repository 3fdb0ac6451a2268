"""Cases published by other libraries: each is reproduced here, or listed with the reason why it is not ours.

The records live beside the checkout; where they do not, this file is skipped.
"""

from __future__ import annotations

import json
import math

import pytest

from monitor.settings.metrics import MetricSettings
from tests.metrics.worlds import START, World, by_name, results_of

RANK_SCORE_OF_POPULARITY = (
    "a serendipity of another kind: the rank's score less that of popularity, by relevance"
)
CO_OCCURRENCE = "similarity from co-occurrence in training data, which an exposure log does not hold"
TWO_MODELS = "the overlap of two models' lists for one user; an exposure log holds one"
HAMMING = "the Hamming distance of features; ours is the cosine of vectors, or sameness of category"

NOT_OURS = {
    "rec.distributional_coverage": "entropy in bits of item counts, not divided by its maximum",
    "rec.user_diversity.cooc": CO_OCCURRENCE,
    "rec.diversity.cooc": CO_OCCURRENCE,
    "rec.serendipity.cooc": CO_OCCURRENCE,
    "rec.serendipity.feat": "the mean, not the largest, similarity to the history, of every item shown",
    "rectools.serendipity@1": RANK_SCORE_OF_POPULARITY,
    "rectools.serendipity@2": RANK_SCORE_OF_POPULARITY,
    "rectools.ild@1": HAMMING,
    "rectools.ild@2": HAMMING,
    "rectools.ild@3": HAMMING,
    "rectools.catalog_coverage@2.norm=False": "a bare count; ours is the share (norm=True, reproduced)",
    "recbole.shannon_entropy_mean": "the entropy divided by the number of items, a slip: its maximum is ln n",
    "rectools.sufficient_reco.deep=True": "the share of k slots filled; coverage counts full lists",
    "rectools.unrepeated_reco.deep=False": "duplicates in a list are a rule, not a metric",
    "rectools.intersection@2.ref2": TWO_MODELS,
    "rectools.intersection@3.ref6": TWO_MODELS,
}


def rows(shown):
    """Exposures of (user, item) pairs, one request a user."""
    return [
        {"request_id": f"r{user}", "user_id": str(user), "ts": START, "item_id": str(item)}
        for user, item in shown
    ]


def top(ranked, k):
    return [(user, item) for user, item, rank in ranked if rank <= k]


def matrix(lists):
    return [(user, item) for user, items in enumerate(lists) for item in items]


def items_of(ids):
    return [{"item_id": str(item), "category": None} for item in ids]


def values(world, metric, **settings):
    results = by_name(results_of(world, MetricSettings(**settings), only=(metric,)))
    return {by: r.value for (_, by), r in results.items()}


def each_user(shown, metric, **logs):
    """The metric on the rows of each user alone."""
    users = dict.fromkeys(str(user) for user, _ in shown)
    found = {}
    for user in users:
        own = World(rows([p for p in shown if str(p[0]) == user]), columns=(), **logs)
        found[user] = next(iter(values(own, metric).values()))
    return found


def catalog_coverage_of_train(case):
    train = {row["item_id"] for row in case["train"]}
    shown = [(row["user_id"], row["item_id"]) for row in case["reco"]]
    return values(World(rows(shown), items_of(train), columns=()), "coverage")["item"]


def diversity_by_features(case, params):
    catalog = [{"item_id": i, "vector": [float(x) for x in v]} for i, v in case["item_features"].items()]
    shown = [(row["user_id"], row["item_id"]) for row in case["reco"]]
    world = World(rows(shown), catalog, columns=(), catalog_columns=("vector",))
    return values(world, "intra_list_diversity")[""]


def average_popularity_share(case, params):
    total = len(case["interactions"])
    history = [(str(u), str(i), 1) for u, i in case["interactions"]]
    found = each_user(top(case["reco_user_item_rank"], params["k"]), "average_popularity", history=history)
    return {user: value / total for user, value in found.items()}


def inverse_user_frequency(case, params):
    history = [(u, i, 1) for u, i in case["interactions"]]
    return each_user(top(case["reco_user_item_rank"], params["k"]), "self_information", history=history)


def coverage_at(case, params):
    world = World(rows(top(case["reco_user_item_rank"], params["k"])), items_of(case["catalog"]), columns=())
    return values(world, "coverage")["item"]


def recbole_coverage(case, params):
    world = World(rows(matrix(case["item_matrix"])), items_of(range(case["num_items"])), columns=())
    return values(world, "coverage")["item"]


def recbole_gini(case, params):
    n = case["num_items"]
    world = World(rows(matrix(case["item_matrix"])), items_of(range(n)), columns=())
    return values(world, "gini")[""] * (n - 1) / n  # theirs is divided by n where ours is by n - 1


def recbole_popularity(case, params):
    counts = [("somebody", item, n) for item, n in case["item_count"].items() if n]
    return [
        [
            values(
                World(rows([(0, i) for i in items[:k]]), history=counts, columns=()), "average_popularity"
            )[""]
            for k in params["k"]
        ]
        for items in case["item_matrix"]
    ]


def replay_lists(case, k):
    """The best k of each user, as pairs."""
    best = []
    for user in dict.fromkeys(row[0] for row in case["reco"]):
        own = sorted((row for row in case["reco"] if row[0] == user), key=lambda row: -row[2])
        best += [(user, row[1]) for row in own[:k]]
    return best


def replay_novelty(case, params):
    history = [(str(u), str(i), 1) for u, i in case["train"]]
    by_user = [each_user(replay_lists(case, k), "novelty", history=history) for k in params["k"]]
    return [sum(of_k.values()) / len(of_k) for of_k in by_user]


def replay_surprisal(case, params):
    history = [(str(u), str(i), 1) for u, i in case["train"]]
    most = math.log2(len({user for user, _ in case["train"]}))
    found = []
    for k in params["k"]:
        best = replay_lists(case, k)
        of_users = each_user(best, "self_information", history=history)
        # Theirs is divided by the most it can be, and by k where a list is shorter.
        filled = {user: sum(str(u) == user for u, _ in best) / k for user in of_users}
        found.append(sum(bits * filled[user] / most for user, bits in of_users.items()) / len(of_users))
    return found


def of_interactions(case):
    """A history in which every interaction is a user of its own: theirs counts interactions, not users."""
    return [(f"interaction {n}", str(row["item_id"]), 1) for n, row in enumerate(case["train"])]


def novelty_of_items(case, params):
    shown = [(item, item) for item in case["item_features"]]
    return each_user(shown, "self_information", history=of_interactions(case))


def novelty_of_list(case, params):
    shown = [(row["user_id"], row["item_id"]) for row in case["reco"]]
    return values(World(rows(shown), history=of_interactions(case), columns=()), "self_information")[""]


def recmetrics_novelty(case, params):
    users = [f"u{number}" for number in range(case["n_users"])]
    history = [(user, item, 1) for item, n in case["popularity"].items() for user in users[:n]]
    history += [(user, "another item", 1) for user in users]  # so that every user is in the history
    world = World(rows(matrix(case["predicted"])), history=history, columns=())
    return values(world, "self_information")[""]


def personalization_of_lists(case, params):
    lists = case["predicted"] if "predicted" in case else case["lists"].values()
    return values(World(rows(matrix(lists)), columns=()), "personalization")[""]


def evidently_popularity(case, params):
    shown = top(case["reco_user_item_rank"], params["k"])
    train = [(str(u), str(i), 1) for u, i in case["train"]]
    known = {item for _, item, _ in train}
    of_known = [(user, item) for user, item in shown if str(item) in known]
    by_user = each_user(of_known, "average_popularity", history=train)
    return {
        "arp": sum(by_user.values()) / len(by_user),
        "coverage": values(World(rows(shown), items_of(known), columns=()), "coverage")["item"],
        "gini": values(World(rows(shown), columns=()), "gini_exposed")[""],
    }


def sufficient(case, params):
    shown = top(case["reco_user_item_rank"], params["k"])
    # User 3 has nothing within k: a request that returned nothing.
    missing = {row[0] for row in case["reco_user_item_rank"]} - {user for user, _ in shown}
    found = {}
    for user in sorted({u for u, _ in shown} | missing):
        own = [p for p in shown if p[0] == user] or [(user, None)]
        exposures = [
            {**r, "item_id": None if i is None else r["item_id"]}
            for r, (_, i) in zip(rows(own), own, strict=True)
        ]
        world = World(exposures, columns=())
        found[str(user)] = values(world, "coverage", valid_list_length=params["k"])["pv"]
    return found


REPRODUCED = {
    "rec.catalog_coverage": lambda case, params: catalog_coverage_of_train(case),
    "rec.item_novelty": novelty_of_items,
    "rec.novelty": novelty_of_list,
    "rec.diversity.feat": diversity_by_features,
    "rectools.arp@1.norm=True": average_popularity_share,
    "rectools.miuf@1": inverse_user_frequency,
    "rectools.miuf@2": inverse_user_frequency,
    "rectools.catalog_coverage@2.norm=True": coverage_at,
    "recbole.item_coverage": recbole_coverage,
    "recbole.gini": recbole_gini,
    "recbole.avg_popularity@1..3": recbole_popularity,
    "replay.novelty@3,5": replay_novelty,
    "replay.surprisal@3,5.gt": replay_surprisal,
    "recmetrics.novelty": recmetrics_novelty,
    "recmetrics.personalization": personalization_of_lists,
    "evidently.popularity_bias": evidently_popularity,
    "evidently.personalization": personalization_of_lists,
    "rectools.sufficient_reco.deep=False": sufficient,
}


@pytest.fixture(scope="module")
def records(shared):
    files = ("beyond_accuracy.json", "data_quality.json")
    return {r["id"]: r for f in files for r in json.loads((shared / "golden" / f).read_text())["records"]}


def test_every_published_case_is_reproduced_or_has_a_reason_not_to(records):
    assert not REPRODUCED.keys() & NOT_OURS.keys()
    assert records.keys() == REPRODUCED.keys() | NOT_OURS.keys()


@pytest.mark.parametrize("case", REPRODUCED)
def test_a_published_case_is_reproduced(records, case):
    record = records[case]
    found = REPRODUCED[case](record["inputs"], record["params"])
    assert_close(found, record["expected"], max(record["abs_tol"], 1e-9))


def assert_close(found, wanted, tolerance):
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            assert_close(found[key], wanted[key], tolerance)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, tolerance)
    else:
        assert math.isclose(found, wanted, abs_tol=tolerance), (found, wanted)
