"""The families of the process itself, as the library and the kernel give them."""

from __future__ import annotations

import os
import resource
import time

import pytest
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from monitor.service.prometheus.process import PROCESS
from tests.service import pictures
from tests.service.prometheus.scrapes import find, samples, scrape


def test_the_table_is_what_the_library_says() -> None:
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    library = {
        sample.name: (metric.documentation, metric.type, set(sample.labels))
        for metric in registry.collect()
        for sample in metric.samples
    }
    assert {family.name: (family.help, family.kind, set(family.labels)) for family in PROCESS} == library


def test_a_scrape_says_how_much_memory_and_cpu_time_this_process_uses() -> None:
    text = scrape(pictures.full())
    used = resource.getrusage(resource.RUSAGE_SELF)
    assert find(text, "process_cpu_seconds_total") == pytest.approx(used.ru_utime + used.ru_stime, abs=1)
    assert 0 < find(text, "process_resident_memory_bytes") <= used.ru_maxrss * 1024 * 1.01
    assert find(text, "process_open_fds") == pytest.approx(len(os.listdir("/proc/self/fd")), abs=3)
    assert find(text, "process_max_fds") == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert 0 < time.time() - find(text, "process_start_time_seconds") < 24 * 3600
    (python,) = [dict(labels) for name, labels in samples(text) if name == "python_info"]
    assert python["implementation"] == "CPython"


def test_an_open_file_is_counted_by_the_next_scrape() -> None:
    from monitor.service.prometheus.exporter import Exporter

    exporter = Exporter(pictures.full, version="1", url="u")

    def open_files() -> float:
        return find(exporter.scrape()[0].decode(), "process_open_fds")

    before = open_files()
    with open(__file__, encoding="utf-8"), open(__file__, encoding="utf-8"):
        assert open_files() == before + 2


def test_the_limit_of_series_never_drops_the_families_of_the_process() -> None:
    names = {name for name, _ in samples(scrape(pictures.full(), series_limit=1))}
    assert {family.name for family in PROCESS} <= names
