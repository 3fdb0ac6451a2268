"""The daemon's own counters: added up in memory, written to the history after each run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product

from monitor.expectations.suites import LoadedRule
from monitor.history.errors import Fault, StoreError
from monitor.history.snapshot import CounterKey
from monitor.history.store import Store

RUNS = "recsys_scheduler_runs_total"
STORE_ERRORS = "recsys_store_errors_total"
OF_RULES = ("recsys_rule_violations_total", "recsys_rule_judged_total")
OUTCOMES = ("ok", "failed", "missed", "overrun")


class Tally:
    """Counts from any thread and never waits; what is not written yet is shown all the same."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        # Known at 0 from the start: Prometheus does not see the rise of a counter that was not there.
        self._waiting: Counter[CounterKey] = Counter(
            {_key(STORE_ERRORS, fault=fault.value): 0 for fault in Fault if fault is not Fault.NEWER_SCHEMA}
        )

    def declare(self, recommender: str, rules: Iterable[LoadedRule]) -> None:
        """Make the counters of a recommender known at 0 as well."""
        with self._lock:
            for outcome in OUTCOMES:
                self._waiting[_key(RUNS, recommender=recommender, outcome=outcome)] += 0
            for rule, name in product(rules, OF_RULES):
                self._waiting[_key(name, recommender=recommender, rule=rule.name, kind=rule.kind)] += 0

    def ran(self, recommender: str, outcome: str) -> None:
        """Count one scheduled run."""
        self._add(_key(RUNS, recommender=recommender, outcome=outcome))

    def store_failed(self, error: StoreError) -> None:
        """Count an error of the history store."""
        self._add(_key(STORE_ERRORS, fault=error.fault.value))

    def over(self, written: Mapping[CounterKey, float]) -> dict[CounterKey, float]:
        """The counters as written, plus those still waiting."""
        with self._lock:
            return dict(written) | {key: written.get(key, 0) + by for key, by in self._waiting.items()}

    def write(self) -> None:
        """Write what has been counted since; for the worker thread. What cannot be written waits."""
        with self._lock:
            waiting = {one: by for one, by in self._waiting.items() if by}
        for (name, labels), by in waiting.items():
            try:
                self._store.bump(name, dict(labels), by)
            except StoreError:
                return
            with self._lock:
                self._waiting[name, labels] -= by

    def _add(self, key: CounterKey) -> None:
        with self._lock:
            self._waiting[key] += 1


def _key(name: str, **labels: str) -> CounterKey:
    return name, tuple(sorted(labels.items()))
