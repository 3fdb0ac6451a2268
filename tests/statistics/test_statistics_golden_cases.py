"""Distances and AUCs of other libraries: each is reproduced here, or listed with the reason why not.

The records live beside the checkout; where they do not, this file is skipped.
"""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from monitor.statistics.auc import auc_sums
from monitor.statistics.distances import (
    bin_counts,
    hellinger,
    jensen_shannon,
    kolmogorov_smirnov,
    l_infinity,
    psi,
    quantile_edges,
    wasserstein,
)

PERMUTATION = "a p from random permutations; total_variation gives its statistic"
PARTIAL = "a partial AUC of the first k false positives; the monitor offers the whole AUC"
OF_SAMPLES = "a metric of rows, not a statistic of sums: it belongs to the metrics of labelled samples"

NOT_HERE = {
    "evidently.tvd.[16, 16, 16, 16, 16, 8]": PERMUTATION,
    "evidently.tvd.[10, 10, 24, 24, 10, 10]": PERMUTATION,
    "evidently.tvd.[0, 0, 0, 0, 0, 88]": PERMUTATION,
    "rectools.partial_auc@3.ignore": PARTIAL,
    "rectools.partial_auc@3.exclude": PARTIAL,
    "recbole.gauc.case0": OF_SAMPLES,
    "recbole.logloss.case0": OF_SAMPLES,
    "recbole.logloss.case1": OF_SAMPLES,
}


def of_quantile_bins(reference, current, params):
    edges = quantile_edges(reference, params["bins"])
    return psi(bin_counts(reference, edges), bin_counts(current, edges), floor=params["eps"])


def by_category(distance, reference, current):
    """The distance of counts by category, over the categories of both."""
    one, other = Counter(reference), Counter(current)
    keys = sorted(one | other)
    return distance([one[key] for key in keys], [other[key] for key in keys])


def drawn(case):
    """The samples of a recipe, with the generator that it names."""
    recipe = case["recipe"]
    if "choice" in recipe:
        random = np.random.RandomState(1)
        return random.choice(np.linspace(0, 2, 6), 10_000), random.choice(np.linspace(0, 2, 3), 1_000)
    if "seed(42)" in recipe:
        random = np.random.RandomState(42)
        return random.normal(0, 1, 10_000), random.normal(1, 1, 10_000)
    random = np.random.RandomState(1)
    return random.normal(0, 1, 10_000), random.normal(1, 1, 1_000)


def constants(case):
    made = {"zeros(100)": np.zeros(100), "ones(100)": np.ones(100)}
    return made[case["reference"]], made[case["current"]]


def smirnov(case, params):
    found = kolmogorov_smirnov(case["x"], case["y"])
    return {"statistic": found.statistic, "p_value": found.p}


def auc(case, params):
    sums = auc_sums(case["score"], case["label"])
    return None if sums is None else sums.auc


def categories(distance):
    return lambda case, params: by_category(distance, case["reference_counts"], case["current_counts"])


def labels(case, params):
    return by_category(l_infinity, case["reference"], case["current"])


def jensen_shannon_of_shares(case, params):
    return jensen_shannon(case["p"], case["q"])


REPRODUCED = {
    "feature_engine.psi.A": lambda case, params: of_quantile_bins(case["reference"], case["current"], params),
    "feature_engine.psi.B": lambda case, params: of_quantile_bins(case["reference"], case["current"], params),
    "nannyml.js.cat": categories(jensen_shannon),
    "nannyml.hellinger.cat": categories(hellinger),
    "nannyml.linf.new_category": labels,
    "nannyml.linf.no_change": labels,
    "nannyml.linf.total_change": labels,
    "nannyml.js.quasi_continuous": lambda case, params: by_category(
        jensen_shannon, *(list(sample.round(9)) for sample in drawn(case))
    ),
    "nannyml.wasserstein.mean_shift": lambda case, params: wasserstein(*drawn(case)),
    "deepchecks.ks.no_drift": lambda case, params: kolmogorov_smirnov(*constants(case)).statistic,
    "deepchecks.ks.max_drift": lambda case, params: kolmogorov_smirnov(*constants(case)).statistic,
    "deepchecks.ks.normal_shift": lambda case, params: kolmogorov_smirnov(*drawn(case)).statistic,
    "scipy.ks_2samp.2v3.minus": smirnov,
    "scipy.ks_2samp.2v4.plus": smirnov,
    "scipy.ks_2samp.repeated.1": smirnov,
    "scipy.ks_2samp.100v100": smirnov,
    "scipy.ks_2samp.100v110": smirnov,
    "scipy.js.doc1": jensen_shannon_of_shares,
    "scipy.js.doc3": jensen_shannon_of_shares,  # base e there; 0 is 0 in any base
    "rec.auc": auc,
    "recbole.auc.case0": auc,
    "recbole.auc.case1": auc,
    "sklearn.roc_auc.[0, 1][0, 1]": auc,
    "sklearn.roc_auc.[0, 1][1, 0]": auc,
    "sklearn.roc_auc.[1, 0][1, 1]": auc,
    "sklearn.roc_auc.[1, 0][1, 0]": auc,
    "sklearn.roc_auc.undefined.[0, 0]": auc,
    "sklearn.roc_auc.undefined.[1, 1]": auc,
}


@pytest.fixture(scope="module")
def records(shared):
    files = ("drift.json", "auc.json")
    return {r["id"]: r for f in files for r in json.loads((shared / "golden" / f).read_text())["records"]}


def test_every_published_case_is_reproduced_or_has_a_reason_not_to(records):
    assert not REPRODUCED.keys() & NOT_HERE.keys()
    assert records.keys() == REPRODUCED.keys() | NOT_HERE.keys()


@pytest.mark.parametrize("case", REPRODUCED)
def test_a_published_case_is_reproduced(records, case):
    record = records[case]
    found = REPRODUCED[case](record["inputs"], record["params"])
    if record["expected"] is None:
        assert found is None
    else:
        assert found == pytest.approx(record["expected"], abs=max(record["abs_tol"], 1e-9))
