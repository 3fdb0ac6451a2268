"""A scrape of a snapshot, and what is in it."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families as classic_families

from monitor.history.snapshot import Snapshot
from monitor.service.prometheus.exporter import Exporter


def scrape(snapshot: Snapshot, accept: str = "", **settings) -> str:
    """Of every family, unless `export` is given, at the time of the snapshot, unless a clock is."""
    given = {"export": ["*"], "clock": lambda: snapshot.taken_at, **settings}
    exporter = Exporter(lambda: snapshot, version="0.1.0", url="http://monitor.test", **given)
    return exporter.scrape(accept)[0].decode()


def samples(text: str) -> dict[tuple[str, frozenset], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in classic_families(text)
        for sample in family.samples
    }


def find(text: str, name: str, **labels: str) -> float | None:
    return samples(text).get((name, frozenset(labels.items())))


def without_process(found: dict[tuple[str, frozenset], float]) -> dict[tuple[str, frozenset], float]:
    """The samples that depend on the snapshot alone: those of the process differ in each scrape."""
    return {key: value for key, value in found.items() if key[0].startswith("recsys_")}
