"""A fleet of recommenders with a real history: written through the store, read back as a snapshot."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from monitor.catalogue import ALL_SPECS
from monitor.core.results import Kind, Result, ResultKind, Status, Window
from monitor.history.read_snapshot import read_snapshot
from monitor.history.record import CheckRun
from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from tests.service.made import metric, rule

HOUR = timedelta(hours=1)
NOW = datetime(2026, 3, 9, 14, 7, tzinfo=UTC)
LAST = Window(NOW.replace(hour=13, minute=0), NOW.replace(hour=14, minute=0))
WINDOWS = 24
SCENES = ("home", "cart", "search", "detail", "feed", "push", "mail", "other")
RULES = (
    "blacklist", "duplicate_item", "list_length", "score_is_finite", "position_gap", "item_off_shelf",
    "capped_category", "future_timestamp", "few_unknown", "too_short", "score_order", "empty_list",
)  # fmt: skip


def names(count: int) -> list[str]:
    return [f"{SCENES[number % len(SCENES)]}-recommender-{number:03}" for number in range(count)]


def write(store: Store, count: int, violated: int) -> None:
    """The last hours of so many recommenders; every `violated`-th has a violated rule in the last two."""
    for number, name in enumerate(names(count)):
        for age in reversed(range(WINDOWS)):
            window = Window(LAST.start - age * HOUR, LAST.end - age * HOUR)
            broken = number % violated == 0 and age < 2
            # The older windows hold only what is drawn of them: the others would cost the test minutes.
            whole = age < 2
            store.record_window(
                name,
                window,
                [
                    CheckRun(check="exposure", results=list(_measured(number, age, whole))),
                    CheckRun(check="health", results=list(_health(number, age, whole))),
                    *([CheckRun(check="rules", results=list(_rules(broken)))] if whole else []),
                ],
                fingerprint=str(age),
                rows=10_000,
                evaluated_at=window.end + timedelta(minutes=5),
            )


def snapshot(store: Store, count: int) -> Snapshot:
    return read_snapshot(store, names(count), NOW)


def _measured(number: int, age: int, whole: bool) -> Iterator[Result]:
    requests = 900 + 300 * math.sin(age / 4 + number)
    yield metric("volume", "requests", value=round(requests), samples=round(requests))
    if not whole:
        return
    for spec in ALL_SPECS.values():
        if spec.kind is ResultKind.METRIC and spec.name != "volume":
            for by in spec.by or ("",):
                value = 0.3 + number / 1000
                yield metric(spec.name, by, value=value, lower=value - 0.02, upper=value + 0.02, samples=9000)
    for scene in SCENES:
        place = {"dimension": "scene", "value": scene}
        yield metric("coverage", "pv", value=0.99, lower=0.98, upper=1.0, samples=1200, labels=place)


def _health(number: int, age: int, whole: bool) -> Iterator[Result]:
    yield metric("health_score", value=0.9 + 0.1 * math.sin(age + number), samples=4)
    if whole:
        yield metric("health_part", labels={"part": "lists"}, value=0.8, detail="coverage is 0.98")


def _rules(broken: bool) -> Iterator[Result]:
    for place, name in enumerate(RULES):
        bad = 37 if broken and place < 3 else 0
        yield rule(
            name,
            Kind.HARD,
            Status.VIOLATED if bad else Status.OK,
            value=bad / 10_000,
            samples=10_000,
            violations=bad,
            detail=f"{bad} of 10,000 violate the rule ({bad / 10_000:.3g})" if bad else "",
            evidence=tuple(
                {"request_id": f"r{row}", "item_id": f"sku-{row % 4}", "scene": "home", "model": "rank-v7"}
                for row in range(20 if bad else 0)
            ),
        )
