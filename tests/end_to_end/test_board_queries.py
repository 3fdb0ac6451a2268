"""The annotations and variables of the boards, asked of a real Prometheus that scraped the real exporter."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from monitor.history.snapshot import MaintenanceState
from tests.end_to_end.panel_queries import filled
from tests.end_to_end.servers import Prometheus, exported
from tests.grafana.test_dashboards import BOARDS
from tests.processes import get, wait_for
from tests.service import pictures
from tests.service.made import metric, series

ANNOTATIONS = {
    one["name"]: one["expr"]
    for board in BOARDS.values()
    for one in board["annotations"]["list"]
    if "expr" in one
}
VARIABLES = {
    one["name"]: one["query"]
    for board in BOARDS.values()
    for one in board["templating"]["list"]
    if one["type"] == "query"
}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A shop in maintenance, with slices, an experiment, changes of every kind, and a violated rule."""
    full = pictures.full()
    held = MaintenanceState(pictures.NOW + timedelta(hours=1))
    home = metric("volume", "requests", value=9.0, labels={"dimension": "scene", "value": "home"})
    split = metric("experiment_split_p_value", "anytime", value=0.5, labels={"experiment": "order"})
    states = tuple(
        replace(state, maintenance=held, series=(*state.series, series(home), series(split)))
        if state.name == "shop"
        else state
        for state in full.recommenders
    )
    with exported(tmp_path_factory.mktemp("boards"), replace(full, recommenders=states)) as server:
        wait_for("a scrape", lambda: server.ask("recsys_build_info"))
        yield server


@pytest.mark.parametrize("name", sorted(ANNOTATIONS))
def test_an_annotation_finds_what_it_draws(name: str, prometheus: Prometheus) -> None:
    expression = filled(ANNOTATIONS[name])
    found = prometheus.data(expression)
    assert all(float(one["value"][1]) > 0 for one in found), "Grafana draws no 0"


def test_a_change_is_drawn_at_its_time_in_milliseconds(prometheus: Prometheus) -> None:
    (changed,) = prometheus.data(filled(ANNOTATIONS["New model"]))
    assert float(changed["value"][1]) == 1000 * (pictures.NOW - timedelta(hours=3)).timestamp()
    assert changed["metric"] == {"recommender": "shop"}


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_a_variable_finds_its_values(name: str, prometheus: Prometheus) -> None:
    (up,) = prometheus.data('up{job="recsys-monitor"}')
    expected = {
        "job": {"recsys-monitor"},
        "instance": {up["metric"]["instance"]},
        "monitor": {f"http://{up['metric']['instance']}"},
        "recommender": {"news", "shop", "video"},
        "dimension": {"scene"},
        "experiment": {"order"},
        "slice": {"home"},
    }
    ((matched, label),) = re.findall(r"^label_values\((.+), (\w+)\)$", VARIABLES[name])
    found = set(_values(prometheus, label, filled(matched)))
    assert found == expected[name]


def _values(prometheus: Prometheus, label: str, matched: str) -> list[Any]:
    query = urllib.parse.urlencode({"match[]": matched})
    status, body = get(f"{prometheus.url}/api/v1/label/{label}/values?{query}")
    assert status == 200, body
    found: list[Any] = json.loads(body)["data"]
    return found
