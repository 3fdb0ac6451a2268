"""The daemon's own counters: counted in memory, written to the history after each run."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Final

from monitor.history.counters import OF_RULES, SCHEDULED, STORE_ERRORS, TURN_ENDS, TurnEnd, key
from monitor.history.errors import Fault, StoreError
from monitor.history.snapshot import CounterKey
from monitor.history.store import Store
from monitor.rules.rule import LoadedRule

log = logging.getLogger(__name__)

WAITING_FILE: Final = "counters-waiting.json"


class Tally:
    """Counts from any thread without waiting. Counts are shown before they are written.

    The shown value is the sum of three parts: the counters as last read, the counts written since then, and
    the counts that wait to be written. Each count is in exactly one part, so the sum never falls. `read` and
    `write` must not run at the same time.

    With `state`, a file in that folder keeps the waiting counts, so that a kill while the history is down
    loses none. A counter that came back lower would look to Prometheus like a reset, and be counted again.
    """

    def __init__(self, store: Store, state: Path | None = None) -> None:
        self._store = store
        self._file = None if state is None else state / WAITING_FILE
        self._lock = threading.Lock()
        self._read: dict[str, dict[CounterKey, float]] = {}  # by recommender, the others under ""
        self._written: Counter[CounterKey] = Counter()  # since `_read` was read
        # All start at 0: `increase()` misses the first event of a counter that did not exist.
        self._declared: dict[CounterKey, float] = {
            key(STORE_ERRORS, {"fault": fault.value}): 0.0
            for fault in Fault
            if fault not in (Fault.NEWER_SCHEMA, Fault.NOT_HELD)
        }
        self._waiting: Counter[CounterKey] = Counter(self._saved())

    def declare(self, recommender: str, rules: Iterable[LoadedRule]) -> None:
        """Start the counters of a recommender at 0."""
        with self._lock:
            for outcome in TURN_ENDS:
                self._declared[key(SCHEDULED, {"recommender": recommender, "outcome": outcome})] = 0.0
            for rule, name in product(rules, OF_RULES):
                labels = {"recommender": recommender, "rule": rule.name, "kind": rule.kind}
                self._declared[key(name, labels)] = 0.0

    def ran(self, recommender: str, outcome: TurnEnd) -> None:
        """Count one scheduled run."""
        self._add(key(SCHEDULED, {"recommender": recommender, "outcome": outcome}))

    def store_failed(self, error: StoreError) -> None:
        """Count an error of the history store."""
        self._add(key(STORE_ERRORS, {"fault": error.fault.value}))

    def read(self, counters: Mapping[CounterKey, float], of: Collection[str] | None = None) -> None:
        """Take over the counters of the history, which contain everything written so far.

        With `of` they are those of these recommenders alone.
        """
        with self._lock:
            if of is None:
                self._read.clear()
                self._written.clear()
            else:
                self._read |= {one: {} for one in of}
                for name in [name for name in self._written if _owner(name) in of]:
                    del self._written[name]
            for name, value in counters.items():
                self._read.setdefault(_owner(name), {})[name] = value

    def shown(self) -> dict[CounterKey, float]:
        """Every counter with all its counts, written or not."""
        with self._lock:
            found = dict(self._declared)
            for read in self._read.values():
                found |= read
            for counts in (self._written, self._waiting):
                for name, count in counts.items():
                    found[name] = found.get(name, 0) + count
            return found

    def write(self) -> None:
        """Write the waiting counts in one transaction. After a StoreError they all keep waiting."""
        with self._lock:
            waiting = {key: count for key, count in self._waiting.items() if count}
        if not waiting:
            return
        self._store.bump_all(waiting)
        with self._lock:
            self._waiting.subtract(waiting)
            self._waiting = +self._waiting  # without those that are 0 now
            self._written.update(waiting)
            self._save()

    def _add(self, key: CounterKey) -> None:
        with self._lock:
            self._waiting[key] += 1
            self._save()

    def _save(self) -> None:
        """Save the waiting counts. Without fsync: they survive the process, but not the machine."""
        if self._file is None:
            return
        waiting = [[name, dict(labels), count] for (name, labels), count in self._waiting.items() if count]
        part = self._file.with_name(f".{self._file.name}.part")
        try:
            if not waiting:
                self._file.unlink(missing_ok=True)
                return
            with open(part, "w", encoding="utf-8", opener=_open_private) as stream:
                json.dump(waiting, stream)
            part.replace(self._file)
        except OSError as exc:
            log.warning(
                "%s cannot be written; a kill of the process would now lose counts: %s", self._file, exc
            )

    def _saved(self) -> dict[CounterKey, float]:
        """The waiting counts of an earlier process."""
        if self._file is None:
            return {}
        try:
            content = json.loads(self._file.read_text("utf-8"))
            return {key(str(name), labels): int(count) for name, labels, count in content if count > 0}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as exc:
            log.warning("%s cannot be read, its counts are lost: %s", self._file, exc)
            return {}


def _owner(name: CounterKey) -> str:
    """The recommender of a counter; empty if it has none."""
    return next((text for label, text in name[1] if label == "recommender"), "")


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
