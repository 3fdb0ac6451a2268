"""Every query about the past of a recommender, asked of a real Prometheus that scraped the real exporter.

A daemon has bands only after a day of windows; here the picture that it exports is made by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from monitor.core.results import Status
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.metrics.catalogue import SPECS
from tests.end_to_end.panel_queries import queries
from tests.end_to_end.servers import Prometheus, exported
from tests.processes import wait_for
from tests.service.made import NOW, metric, series
from tests.service.pictured_bands import NAME, feeds, learning

QUERIES = list(queries("bands"))


def compared() -> RecommenderState:
    """A recommender in which every metric has a band, one needs more past, and one cause is found."""
    state = feeds()
    bands = [
        series(
            metric("expected", value=0.5, lower=0.4, upper=0.6, samples=112,
                   labels={"metric": name, "by": "", "of": ""}),
            recommender=NAME, check="bands",
        )
        for name in SPECS
    ]  # fmt: skip
    gone = metric("anomaly_severity", labels={"cause": "lists_empty"}, value=0.4)
    young = learning(metric("gini", value=0.65))
    further = (*bands, *young, series(gone, recommender=NAME, check="bands"))
    return replace(state, series=(*state.series, *further))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("bands")
    with exported(folder, Snapshot(NOW, (compared(),))) as server:
        wait_for("the bands to be scraped", lambda: server.ask("recsys_expected"))
        yield server


@pytest.mark.parametrize("expression", QUERIES)
def test_a_panel_of_the_past_has_data(expression: str, prometheus: Prometheus) -> None:
    prometheus.data(expression)


def test_the_panel_shows_the_worst_verdict_of_a_cause(prometheus: Prometheus) -> None:
    (timeline,) = {
        str(one.values[0])
        for one in QUERIES
        if "recsys_anomaly_status" in str(one.values[0]) and "6 *" in str(one.values[0])
    }
    told = {one["metric"]["cause"]: one["value"][1] for one in prometheus.data(timeline)}
    assert told.pop("lists_empty") == "6"
    assert set(told.values()) == {"1"}
    assert len(told) == sum(
        one.result.metric == "anomaly" and one.standing is Status.OK for one in compared().series
    )


def test_the_series_farthest_out_are_shown_with_their_direction(prometheus: Prometheus) -> None:
    above, below = (
        next(one.values[0] for one in QUERIES if f"{word}(10, recsys_deviation" in one.values[0])
        for word in ("topk", "bottomk")
    )
    assert {float(one["value"][1]) for one in prometheus.data(str(above))} == {55.1, 0.8}
    assert {float(one["value"][1]) for one in prometheus.data(str(below))} == {-55.1, -0.02}
