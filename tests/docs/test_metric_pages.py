"""The pages of the metrics are those that the catalogue gives, and their example is worked by hand here."""

from __future__ import annotations

from math import log2

import pytest

from monitor.catalogue import ALL_SPECS
from monitor.core.results import Status
from monitor.docs import example_log as example
from monitor.docs import metric_pages as describe
from monitor.metrics.catalogue import SPECS
from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "metrics"


def test_the_committed_pages_are_up_to_date():
    committed = {path.name: path.read_text("utf-8") for path in FOLDER.iterdir()}
    assert committed == describe.pages(), "run: python -m monitor.docs.metric_pages docs/metrics"


def test_every_metric_has_a_page_that_the_index_links_to():
    index = describe.index()
    for name in ALL_SPECS:
        assert f"[{name}]({name}.md)" in index
        assert f"{name}.md" in describe.pages()


def test_the_page_of_a_removed_metric_is_deleted(tmp_path):
    (tmp_path / "gone.md").write_text("old", "utf-8")
    describe.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == describe.pages().keys()


def test_every_interval_of_the_example_holds_its_value_and_stays_in_range():
    found = [one for one in example.results() if one.lower is not None and one.value is not None]
    assert len(found) > 40
    for one in found:
        low, high = ALL_SPECS[one.metric].bounds
        assert low <= one.lower <= one.value <= one.upper <= high, one


@pytest.mark.parametrize(
    ("metric", "labels", "value"),
    [
        ("coverage", {"by": "pv"}, 5 / 6),  # of six requests one returned nothing
        ("coverage", {"by": "item"}, 4 / 5),  # f is never shown
        ("failure", {"by": "uv"}, 1 / 4),
        ("unknown_category", {}, 1 / 14),  # e
        ("novelty", {"by": "item"}, 8 / 12),  # anna a and b, ben c, dora a are known
        ("novelty", {"by": "user"}, 1.0),
        ("reciprocal_rank", {"k": "3"}, ((1 / 2 + 1 / 2) / 2 + 1 / 3 + 1 + 0) / 4),
        # anna: b second of a, b, c; d second of b, d. ben: d third of three. dora: a first, f not shown.
        ("ndcg", {"k": "3"}, (1 / log2(3) + 1 / log2(4) + 1 / (1 + 1 / log2(3)) + 0) / 4),
        ("completion", {"event": "play"}, 1 / 2),  # of 10 seconds 9, of 100 seconds 20
        ("average_popularity", {}, (2 * 4 * 0 + 4 * 3 + 3 * 1 + 3 * 1) / 14),
    ],
)
def test_the_example_agrees_with_values_worked_by_hand(metric, labels, value):
    (found,) = [one for one in example.results() if one.metric == metric and one.labels == labels]
    assert found.status is Status.OK
    assert found.value == pytest.approx(value)


def test_nothing_on_the_example_is_an_error():
    assert {one.status for one in example.results()} <= {Status.OK, Status.UNDEFINED, Status.NO_DATA}


def test_every_metric_of_a_family_has_a_number_on_the_example():
    measured = {one.metric for one in example.results() if one.value is not None}
    assert SPECS.keys() - measured == set()
