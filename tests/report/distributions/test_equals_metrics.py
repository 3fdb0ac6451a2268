"""Where a figure and a metric say the same thing, the numbers are the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from monitor.cli.one_off import one_off
from monitor.config.load import load_checked
from monitor.core.results import Result, Window
from monitor.report import numbers
from monitor.report.distributions.desk import Drawn
from monitor.report.distributions.figure import Figure
from tests.report.distributions import drawn_shop
from tests.report.distributions.drawn_shop import HOSTILE, LAST, WRITTEN

Results = Mapping[tuple[str, frozenset[tuple[str, str]]], Result]


def judged(path: Path, window: Window = LAST) -> Results:
    """The results of the window as `check` and the daemon give them."""
    config, checked = load_checked(path)
    with one_off(config, checked[0], "salt") as job:
        job.look(WRITTEN)
        found = [result for evaluation in job.judge([window], WRITTEN) for result in evaluation.results]
    return {(one.metric, frozenset(one.labels.items())): one for one in found}


def of(results: Results, metric: str, **labels: str) -> Result:
    return results[metric, frozenset(labels.items())]


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    slices = {"by": ["position"], "budget": 50, "metrics": ["action_rate"]}
    return judged(drawn_shop.write(folder / "judged", slices=slices))


@pytest.fixture(scope="module")
def results_of_models(folder: Path) -> Results:
    return judged(drawn_shop.write(folder / "judged_models", with_samples=True))


def figure(drawn: Drawn, name: str) -> Figure:
    found = drawn.figure(name)
    assert found is not None
    assert found.why == ""
    assert found.table is not None
    return found


def test_the_curve_of_items_has_the_gini_and_the_shares_of_the_metrics(shown: Drawn, results: Results):
    items = figure(shown, "items")
    facts = dict(items.facts)
    gini = of(results, "gini").value
    assert facts["Gini over the catalog"] == numbers.number(gini)
    assert facts["Gini over the items shown"] == numbers.number(of(results, "gini_exposed").value)
    for by, name in (
        ("top_1_percent", "top 1 % of items"),
        ("top_10_percent", "top 10 % of items"),
        ("top_item", "top item"),
    ):
        assert facts[f"Exposures of the {name}"] == numbers.share(
            of(results, "popularity_share", by=by).value
        )
    covered = of(results, "coverage", by="item")
    assert facts["Catalog that was shown"] == numbers.share(covered.value)
    never = covered.samples - round(covered.value * covered.samples)
    assert facts["Catalog items never shown"] == str(never)
    unknown = round(of(results, "coverage_unknown_items").value)
    assert items.notes == (f"Items shown that the catalog does not hold: {unknown}.",)
    x, y = np.array(items.table.rows).T
    size = covered.samples
    assert (1 - 2 * np.trapezoid(y, x)) * size / (size - 1) == pytest.approx(gini)


def test_the_lengths_have_the_mean_and_the_failures_of_the_metrics(shown: Drawn, results: Results):
    lengths = figure(shown, "list-lengths")
    shortest, longest, requests, share = np.array(lengths.table.rows).T
    assert (shortest == longest).all()
    mean, failure = of(results, "list_length"), of(results, "failure", by="pv")
    assert (shortest * requests).sum() / requests.sum() == pytest.approx(mean.value)
    assert requests.sum() == mean.samples
    assert share[shortest == 0].sum() == pytest.approx(failure.value)
    assert failure.value > 0
    assert dict(lengths.facts) == {
        "Mean length": numbers.number(mean.value),
        "Empty lists": numbers.share(failure.value),
    }


def test_the_rates_by_position_are_those_of_the_slices(shown: Drawn, results: Results):
    rows = figure(shown, "positions").table.rows
    assert {row[0] for row in rows} == {"click", "buy"}
    for event, position, rate, lower, upper, exposures in rows:
        labels = {"by": "exposure", "event": event, "dimension": "position", "value": position}
        metric = of(results, "action_rate", **labels)
        assert (rate, lower, upper, exposures) == (
            metric.value, metric.lower, metric.upper, metric.samples
        )  # fmt: skip
    assert any(row[2] > 0 for row in rows)


def test_the_last_step_of_the_categories_has_the_unknown_share_of_the_metric(shown: Drawn, results: Results):
    rows = figure(shown, "categories").table.rows
    last = [row for row in rows if row[0] == LAST.start.isoformat()]
    unknown = of(results, "unknown_category")
    (share,) = [row[3] for row in last if row[1] == "no known category"]
    assert share == pytest.approx(unknown.value)
    assert unknown.value > 0
    assert sum(row[2] for row in last) == pytest.approx(unknown.samples)


def test_calibration_and_auc_of_the_exposures_are_the_metrics(shown: Drawn, results: Results):
    calibration = of(results, "calibration").value
    assert dict(figure(shown, "calibration").facts) == {
        "The exposures: predicted / observed": numbers.number(calibration)
    }
    rows = figure(shown, "calibration").table.rows
    predicted, observed = (sum(row[at] * row[6] for row in rows) for at in (2, 3))
    assert predicted / observed == pytest.approx(calibration)
    auc = of(results, "auc")
    assert dict(figure(shown, "roc").facts) == {"The exposures: AUC": numbers.number(auc.value)}
    x, y = (np.array([0.0, *(row[at] for row in figure(shown, "roc").table.rows)]) for at in (3, 4))
    assert np.trapezoid(y, x) == pytest.approx(auc.value, abs=0.002)  # neighbouring cut-offs share a point
    assert figure(shown, "roc").rests_on == f"{auc.samples} exposures"


def test_the_numbers_of_the_models_are_those_of_their_check(of_models: Drawn, results_of_models: Results):
    for model, words in ((f"m1{HOSTILE}", "m1="), ("m2", "m2")):
        for split in ("train", "test", "online"):
            for metric, name, fact in (
                ("auc", "roc", "AUC"),
                ("calibration", "calibration", "predicted / observed"),
            ):
                facts = figure(of_models, name).facts
                (text,) = [
                    value
                    for key, value in facts
                    if key.startswith(words) and key.endswith(f", {split}: {fact}")
                ]
                result = of(results_of_models, metric, split=split, model=model)
                assert text == numbers.number(result.value)


def test_features_differ_on_the_share_of_pairs_of_the_metric(of_models: Drawn, results_of_models: Results):
    features = figure(of_models, "features")
    worst, *rest = features.facts
    model = f"m1{HOSTILE}"
    skew = of(results_of_models, "feature_skew", model=model, feature=f"age{HOSTILE}")
    assert worst == (worst[0], numbers.share(skew.value))
    assert worst[0].startswith("age=")
    assert skew.value > 0.2
    assert {value for _, value in rest} == {numbers.share(0.0)}
    assert features.rests_on == f"{skew.samples} pairs"
