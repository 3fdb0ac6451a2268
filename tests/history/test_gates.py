"""Runs of gates stay in the history as they were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from monitor.history.gates import GateRun
from monitor.history.store import Store

AT = datetime(2026, 11, 1, 10, tzinfo=UTC)


def run(name: str, hours: int, **content: object) -> GateRun:
    return GateRun(name, AT + timedelta(hours=hours), "failed", content)


def test_runs_are_kept_in_the_order_of_time_and_never_replaced(url: str) -> None:
    override = {"override": {"name": "kim\0 \ud800", "reason": "O'Neill; DROP TABLE gate_runs; \u202e"}}
    runs = [run("shop", 0), run("shop", 0, again=True), run("cart", 1), run("shop", 2, **override)]
    with Store.open(url) as store:
        for one in reversed(runs):
            store.record_gate(one)
    with Store.open(url) as store:
        found = store.gate_runs()
        assert sorted(found[:2], key=lambda one: len(one.content)) == runs[:2]
        assert found[2:] == runs[2:]
        assert store.gate_runs(recommenders=["cart"]) == [runs[2]]
        span = {"start": AT + timedelta(hours=1), "end": AT + timedelta(hours=2)}
        assert store.gate_runs(**span) == [runs[2]]
        assert store.gate_runs(recommenders=[]) == []
