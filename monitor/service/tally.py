"""The daemon's own counters: added up in memory, written to the history after each run."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Final

from monitor.history.counters import OF_RULES, SCHEDULED, STORE_ERRORS, TURN_ENDS, TurnEnd, key
from monitor.history.errors import Fault, StoreError
from monitor.history.snapshot import CounterKey
from monitor.history.store import Store
from monitor.rules.suites import LoadedRule

log = logging.getLogger(__name__)

WAITING_FILE: Final = "counters-waiting.json"


class Tally:
    """Counts from any thread and never waits; what is not written yet is shown all the same.

    What is shown is a sum of three parts, and each count is in exactly one of them: the counters as they were
    last read, what was written since that reading, and what waits to be written. `shown` can thus be asked
    for any number of times, and never falls. `read` and `write` must not run at the same time.

    With `state`, a file in that folder holds what waits, so that a kill while the history is down loses
    nothing: a counter that came back lower would look to Prometheus as if all of it had been counted again.
    """

    def __init__(self, store: Store, state: Path | None = None) -> None:
        self._store = store
        self._file = None if state is None else state / WAITING_FILE
        self._lock = threading.Lock()
        self._read: Mapping[CounterKey, float] = {}
        self._written: Counter[CounterKey] = Counter()  # since `_read` was read
        # Known at 0 from the start: Prometheus does not see the rise of a counter that was not there.
        self._waiting: Counter[CounterKey] = Counter(
            {
                key(STORE_ERRORS, {"fault": fault.value}): 0
                for fault in Fault
                if fault is not Fault.NEWER_SCHEMA
            }
        )
        self._waiting.update(self._saved())

    def declare(self, recommender: str, rules: Iterable[LoadedRule]) -> None:
        """Make the counters of a recommender known at 0 as well."""
        with self._lock:
            for outcome in TURN_ENDS:
                self._waiting[key(SCHEDULED, {"recommender": recommender, "outcome": outcome})] += 0
            for rule, name in product(rules, OF_RULES):
                self._waiting[
                    key(name, {"recommender": recommender, "rule": rule.name, "kind": rule.kind})
                ] += 0

    def ran(self, recommender: str, outcome: TurnEnd) -> None:
        """Count one scheduled run."""
        self._add(key(SCHEDULED, {"recommender": recommender, "outcome": outcome}))

    def store_failed(self, error: StoreError) -> None:
        """Count an error of the history store."""
        self._add(key(STORE_ERRORS, {"fault": error.fault.value}))

    def read(self, counters: Mapping[CounterKey, float]) -> None:
        """Take over the counters as the history has them now: what was written is among them."""
        with self._lock:
            self._read = counters
            self._written.clear()

    def shown(self) -> dict[CounterKey, float]:
        """Every counter, as read and with all that was counted since."""
        with self._lock:
            keys = dict.fromkeys([*self._read, *self._written, *self._waiting])
            return {key: self._read.get(key, 0) + self._written[key] + self._waiting[key] for key in keys}

    def write(self) -> None:
        """Write what waits, in one transaction. Raises StoreError, and then all of it waits on."""
        with self._lock:
            waiting = {one: by for one, by in self._waiting.items() if by}
        if not waiting:
            return
        self._store.bump_all(waiting)
        with self._lock:
            self._waiting.subtract(waiting)
            self._written.update(waiting)
            self._save()

    def _add(self, key: CounterKey) -> None:
        with self._lock:
            self._waiting[key] += 1
            self._save()

    def _save(self) -> None:
        """Keep what waits in the file. Not flushed to the disk: it outlives the process, not the machine."""
        if self._file is None:
            return
        waiting = [[name, dict(labels), by] for (name, labels), by in self._waiting.items() if by]
        part = self._file.with_name(f".{self._file.name}.part")
        try:
            if not waiting:
                self._file.unlink(missing_ok=True)
                return
            with open(part, "w", encoding="utf-8", opener=_private) as stream:
                json.dump(waiting, stream)
            part.replace(self._file)
        except OSError as exc:
            log.warning(
                "%s cannot be written; a kill of the process would now lose counts: %s", self._file, exc
            )

    def _saved(self) -> dict[CounterKey, float]:
        """What an earlier process left in the file."""
        if self._file is None:
            return {}
        try:
            content = json.loads(self._file.read_text("utf-8"))
            return {key(str(name), labels): int(by) for name, labels, by in content if by > 0}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as exc:
            log.warning("%s cannot be read, its counts are lost: %s", self._file, exc)
            return {}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
