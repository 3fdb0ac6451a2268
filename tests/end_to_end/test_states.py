"""A state that does not hold has no series: a real Prometheus and the alerts see at once that it ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from monitor.core.results import Kind, Result, Status
from monitor.history.snapshot import RecommenderState, Snapshot
from tests.end_to_end.servers import Prometheus, exported
from tests.processes import ROOT, wait_for
from tests.service.made import NOW, metric, rule, series
from tests.service.pictured_models import gap

NAMES = ("RecsysObjectiveViolated", "RecsysNoData", "RecsysRuleError", "RecsysAucGap")
EXPRESSIONS: dict[str, str] = {
    one["alert"]: one["expr"]
    for path in (ROOT / "rules" / "alerts").glob("*.yaml")
    for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
    for one in group["rules"]
    if one["alert"] in NAMES
}
WELL: tuple[Result, ...] = (
    metric("coverage", "pv", value=0.99, threshold=0.9, bound="min"),
    rule("blacklist", Kind.HARD, value=0.0, samples=10, violations=0),
    rule("length", Kind.SOFT, value=0.0, samples=10, violations=0),
    gap("test_online", "v1", value=0.001),
)


def changed(**status: Status) -> tuple[Result, ...]:
    """The results, with another status of some metrics or rules."""
    named = ((one.labels.get("rule", one.metric), one) for one in WELL)
    return tuple(replace(one, status=status.get(name, one.status)) for name, one in named)


FAULTS = {
    "RecsysObjectiveViolated": changed(coverage=Status.VIOLATED),
    "RecsysNoData": changed(blacklist=Status.NO_DATA, length=Status.NO_DATA),
    "RecsysRuleError": changed(length=Status.ERROR),
    "RecsysAucGap": changed(auc_gap=Status.VIOLATED),
}


class Shown:
    """What the monitor exports; a test changes it."""

    def __init__(self) -> None:
        self.results = WELL

    def __call__(self) -> Snapshot:
        shown = tuple(series(one, check="exposure") for one in self.results)
        return Snapshot(NOW, (RecommenderState("shop", series=shown),))


@pytest.fixture(scope="module")
def shown() -> Shown:
    return Shown()


@pytest.fixture(scope="module")
def prometheus(shown: Shown, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with exported(tmp_path_factory.mktemp("states"), shown) as server:
        wait_for("a scrape", lambda: server.ask("recsys_rule_status"))
        yield server


def states(server: Prometheus) -> list[dict[str, Any]]:
    return server.data('{__name__=~"recsys_.+_status"}')


@pytest.mark.parametrize("name", NAMES)
def test_an_alert_on_a_state_begins_and_ends_with_it(name: str, shown: Shown, prometheus: Prometheus) -> None:
    expression = EXPRESSIONS[name]
    assert prometheus.ask(expression) == []
    before = len(states(prometheus))
    shown.results = FAULTS[name]
    wait_for("the trouble", lambda: prometheus.ask(expression))
    shown.results = WELL
    # Without the mark of a stale series it would last for five minutes.
    wait_for("its end", lambda: not prometheus.ask(expression), 60)
    assert len(states(prometheus)) == before
    assert {one["metric"]["status"] for one in states(prometheus)} == {"ok"}


def test_one_rule_of_two_without_data_is_no_window_without_data(shown: Shown, prometheus: Prometheus) -> None:
    shown.results = changed(length=Status.NO_DATA)
    wait_for("the state", lambda: prometheus.ask('recsys_rule_status{status="no_data"}'))
    assert prometheus.ask(EXPRESSIONS["RecsysNoData"]) == []
    shown.results = WELL
    wait_for("its end", lambda: not prometheus.ask('recsys_rule_status{status="no_data"}'))
