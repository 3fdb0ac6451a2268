"""The text of families: Prometheus' own form, and OpenMetrics. Only their headers differ."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from monitor.metrics.exported import ExportedFamily
from monitor.service.prometheus.states import Labels

END = "# EOF\n"
"""The last line of OpenMetrics."""


@lru_cache(maxsize=4096)
def header(family: ExportedFamily, *, openmetrics: bool) -> str:
    """The lines of help and kind.

    >>> print(header(ExportedFamily("x_total", 'An "x".', kind="counter"), openmetrics=True), end="")
    # HELP x An \\"x\\".
    # TYPE x counter
    """
    text = family.help.replace("\\", r"\\").replace("\n", r"\n")
    name, kind = family.name, family.kind
    if openmetrics:
        name = name.removesuffix("_total" if kind == "counter" else "_info" if kind == "info" else "")
        text = text.replace('"', r"\"")
    elif kind == "info":
        kind = "gauge"
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def lines(family: ExportedFamily, series: Mapping[Labels, float]) -> str:
    """A line for each series. A value is never NaN or infinite, so Python writes it as Go reads it.

    >>> lines(ExportedFamily("x", "An x.", ("a", "b")), {("1", 'say "hi"'): 2.0})
    'x{a="1",b="say \\\\"hi\\\\""} 2.0\\n'
    """
    names = ",".join(f'{name}="%s"' for name in family.labels)
    form = f"{family.name}{{{names}}} %r\n" if names else f"{family.name} %r\n"
    return "".join([form % (*map(_escape, labels), value) for labels, value in series.items()])


@lru_cache(maxsize=65_536)
def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
