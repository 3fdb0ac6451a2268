"""Which families a scrape holds by default, and what `server.export` adds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml

from grafana.generate import dashboards, flat
from monitor.catalogue import ALL_SPECS, optional_families
from monitor.core.results import ResultKind, Status
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.metrics.exported import metric_family_name
from monitor.service.prometheus.chosen import chosen_families, spare_families
from tests.end_to_end.panel_queries import filled
from tests.processes import ROOT
from tests.promql import families_in
from tests.service import pictures
from tests.service.prometheus.scrapes import samples, scrape


def read_by_alerts() -> set[str]:
    rules = [
        rule
        for path in (ROOT / "rules" / "alerts").glob("*.yaml")
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
        for rule in group["rules"]
    ]
    return {name for rule in rules for name in families_in(rule["expr"])}


def drawn_by_dashboards() -> set[str]:
    boards = [json.loads(text) for text in dashboards().values()]
    expressions = [
        filled(target["expr"])
        for board in boards
        for panel in flat(board["panels"])
        for target in panel.get("targets", ())
        if 'dimension="rollup"' not in target["expr"]  # these are exported in any case
    ]
    variables = [
        filled(one["query"].removeprefix("label_values(").rpartition(",")[0])
        for board in boards
        for one in board["templating"]["list"]
        if one["type"] == "query"
    ]
    return {name for one in (*expressions, *variables) for name in families_in(one)}


def bounds_of_windows() -> set[str]:
    return {
        metric_family_name(spec, part, sliced=sliced)
        for spec in ALL_SPECS.values()
        if spec.kind is ResultKind.METRIC
        for part in ("lower", "upper")
        for sliced in (False, True)
    }


def test_every_family_that_an_alert_reads_is_exported() -> None:
    optional = set(optional_families()) & read_by_alerts()
    assert len(optional) > 5
    assert optional <= chosen_families()


def test_every_family_that_a_dashboard_draws_is_exported_but_for_the_bounds_of_windows() -> None:
    drawn = drawn_by_dashboards() & set(optional_families())
    left_out = drawn - chosen_families()
    assert left_out == (drawn & bounds_of_windows()) - read_by_alerts()
    assert len(drawn - left_out) > 100
    assert left_out == spare_families()


def test_nothing_else_is_exported() -> None:
    assert chosen_families() <= drawn_by_dashboards() | named_by_alerts()


def named_by_alerts() -> set[str]:
    """The families in the texts of alerts, which ask Prometheus for numbers."""
    texts = [path.read_text("utf-8") for path in (ROOT / "rules" / "alerts").glob("*.yaml")]
    return {name for name in optional_families() if any(name in text for text in texts)}


def test_a_pattern_adds_the_families_that_it_matches() -> None:
    added = chosen_families(["recsys_slice_novelty_*", "recsys_ndcg_samples"]) - chosen_families()
    assert added == {"recsys_ndcg_samples"} | {f"recsys_slice_novelty_{part}" for part in PARTS}
    assert chosen_families(["*"]) == set(optional_families())


NUMBERS = {"value": 0.5, "lower": 0.4, "upper": 0.6, "samples": 7}
PLACE = {"dimension": "scene", "value": "home"}
PARTS = ("ratio", "lower_ratio", "upper_ratio", "samples")


def names(*results, **settings) -> set[str]:
    state = RecommenderState("shop", series=tuple(map(pictures.series, results)))
    text = scrape(Snapshot(pictures.NOW, (state,)), **{"export": (), **settings})
    return {name for name, labels in samples(text) if ("recommender", "shop") in labels}


def test_a_metric_without_an_objective_has_its_value_and_of_slices_only_what_boards_draw() -> None:
    gini, novelty = pictures.metric("gini", **NUMBERS), pictures.metric("novelty", "item", **NUMBERS)
    of_slice = [replace(one, labels=dict(one.labels) | PLACE) for one in (gini, novelty)]
    coverage = pictures.metric("coverage", "pv", labels=PLACE, **NUMBERS)
    found = names(gini, novelty, *of_slice, coverage)
    values = {name for name in found if name in optional_families()}
    bounded = ("novelty", "slice_coverage")
    bounds = {f"recsys_{name}_{part}_ratio" for name in bounded for part in ("lower", "upper")}
    assert values == {"recsys_gini", "recsys_novelty_ratio", "recsys_slice_coverage_ratio"} | bounds


def test_a_metric_of_days_is_exported_though_boards_do_not_draw_it_by_slice() -> None:
    gini = pictures.metric("gini", **NUMBERS)
    of_slice, of_days = (
        replace(gini, labels=dict(gini.labels) | place)
        for place in (PLACE, {"dimension": "rollup", "value": "1d"})
    )
    assert "recsys_slice_gini" not in names(gini, of_slice)
    assert "recsys_slice_gini" in names(gini, of_days)


@pytest.mark.parametrize("status", [Status.OK, Status.VIOLATED])
def test_a_metric_with_an_objective_has_its_bounds_and_its_samples(status: Status) -> None:
    judged = pictures.metric("novelty", "item", status=status, threshold=0.1, bound="min", **NUMBERS)
    other = pictures.metric("novelty", "user", **NUMBERS)
    sliced = replace(judged, labels=dict(judged.labels) | PLACE)
    found = names(judged, other, sliced)
    for place in ("", "slice_"):
        assert {f"recsys_{place}novelty_{part}" for part in PARTS} <= found
    state = RecommenderState("shop", series=tuple(map(pictures.series, (judged, other))))
    text = scrape(Snapshot(pictures.NOW, (state,)), export=())
    assert [dict(one)["by"] for name, one in samples(text) if name == "recsys_novelty_samples"] == ["item"]
