"""AUC and log loss of other libraries: each is reproduced, or listed with the reason why not."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from monitor.core.results import Status
from tests.metrics.scores.scored import scored
from tests.metrics.worlds import by_name, results_of

NOT_OURS = {
    "rectools.partial_auc@3.ignore": "the area over the first k false positives of a list: how much there is "
    "depends on k and on the length of the list. A whole list has user_auc, one cut at k has ndcg.",
    "rectools.partial_auc@3.exclude": "the same, with users left out whose list is shorter than k needs",
}


def metric_of(name, rows, by=""):
    result = by_name(results_of(scored(rows), only=(name,)))[name, by]
    if result.status is Status.UNDEFINED:
        return None
    assert result.status is Status.OK
    return result.value


def rows_of_one_user(case):
    return [("u", score, label) for score, label in zip(case["score"], case["label"], strict=True)]


def auc(case):
    return metric_of("auc", rows_of_one_user(case))


def log_loss(case):
    return metric_of("log_loss", rows_of_one_user(case))


def weighted_by_positives(case):
    """Lists whose positives stand at ranks of the sum that is given; rank 1 is the highest score."""
    rows = []
    shapes = zip(case["pos_rank_sum"], case["user_len"], case["pos_len"], strict=True)
    for user, (rank_sum, length, positives) in enumerate(shapes):
        ranks = next(r for r in combinations(range(1, length + 1), positives) if sum(r) == rank_sum)
        rows += [(f"u{user}", -float(rank), int(rank in ranks)) for rank in range(1, length + 1)]
    return metric_of("user_auc", rows, "positives")


REPRODUCED = {
    "rec.auc": auc,
    "recbole.auc.case0": auc,
    "recbole.auc.case1": auc,
    "recbole.logloss.case0": log_loss,
    "recbole.logloss.case1": log_loss,
    "recbole.gauc.case0": weighted_by_positives,
    "sklearn.roc_auc.[0, 1][0, 1]": auc,
    "sklearn.roc_auc.[0, 1][1, 0]": auc,
    "sklearn.roc_auc.[1, 0][1, 1]": auc,
    "sklearn.roc_auc.[1, 0][1, 0]": auc,
    "sklearn.roc_auc.undefined.[0, 0]": auc,
    "sklearn.roc_auc.undefined.[1, 1]": auc,
}


@pytest.fixture(scope="module")
def records(shared):
    return {r["id"]: r for r in json.loads((shared / "golden" / "auc.json").read_text())["records"]}


def test_every_published_case_is_reproduced_or_has_a_reason_not_to(records):
    assert not REPRODUCED.keys() & NOT_OURS.keys()
    assert records.keys() == REPRODUCED.keys() | NOT_OURS.keys()


@pytest.mark.parametrize("case", REPRODUCED)
def test_a_published_case_is_reproduced(records, case):
    record = records[case]
    wanted = record["expected"]
    if wanted is not None:
        wanted = pytest.approx(wanted, abs=max(record["abs_tol"], 1e-9))
    assert REPRODUCED[case](record["inputs"]) == wanted
