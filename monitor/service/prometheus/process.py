"""The families of the process itself: memory, CPU time, open files, and the interpreter.

`prometheus_client` measures them. The memory and the files are known on Linux only.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from monitor.metrics.exported import ExportedFamily

_GENERATION: Final = ("generation",)

PROCESS: Final = (
    ExportedFamily("process_virtual_memory_bytes", "Virtual memory size in bytes.", (), "bytes"),
    ExportedFamily("process_resident_memory_bytes", "Resident memory size in bytes.", (), "bytes"),
    ExportedFamily(
        "process_start_time_seconds", "Start time of the process since unix epoch in seconds.", (), "seconds"
    ),
    ExportedFamily(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        (),
        "seconds",
        "counter",
    ),
    ExportedFamily("process_open_fds", "Number of open file descriptors.", ()),
    ExportedFamily("process_max_fds", "Maximum number of open file descriptors.", ()),
    ExportedFamily(
        "python_info",
        "Python platform information",
        ("version", "implementation", "major", "minor", "patchlevel"),
    ),
    ExportedFamily(
        "python_gc_objects_collected_total", "Objects collected during gc", _GENERATION, kind="counter"
    ),
    ExportedFamily(
        "python_gc_objects_uncollectable_total",
        "Uncollectable objects found during GC",
        _GENERATION,
        kind="counter",
    ),
    ExportedFamily(
        "python_gc_collections_total",
        "Number of times this generation was collected",
        _GENERATION,
        kind="counter",
    ),
)


class Process:
    """Measures the process anew at each scrape.

    >>> values = Process().values()
    >>> set(values) <= {family.name for family in PROCESS}
    True
    >>> values["python_gc_collections_total"][("0",)] >= 0
    True
    """

    def __init__(self) -> None:
        # A registry of its own: nothing that a library adds to the global one is exported.
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)

    def values(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Family name -> label values -> value."""
        families = {family.name: family for family in PROCESS}
        values: dict[str, dict[tuple[str, ...], float]] = {}
        for metric in self._registry.collect():
            for sample in metric.samples:
                labels = tuple(sample.labels[name] for name in families[sample.name].labels)
                values.setdefault(sample.name, {})[labels] = float(sample.value)
        return values
