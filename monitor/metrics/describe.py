"""The reference page of the metrics, written from the catalogue: docs/metrics/README.md.

`python -m monitor.metrics.describe > docs/metrics/README.md` renews it; a test holds the two equal.
"""

from __future__ import annotations

import sys

from monitor.metrics.catalogue import SPECS
from monitor.metrics.family import MetricSpec
from monitor.metrics.settings import MetricSettings

_INTRODUCTION = """\
# Metrics of exposure health

This page is written from the catalogue in `monitor/metrics/catalogue.py`; change it there and run
`python -m monitor.metrics.describe > docs/metrics/README.md`.

A *request* is one call of the recommender; it shows a list of l items, and l may be 0. An *exposure* is one
item of a list. I is the catalog, ln the natural logarithm. Every number is computed in float64 and given to
12 digits.

Every result carries its value, the number of samples it rests on, a 95 % interval where the table names one,
the version of its definition, and a state:

| state | means |
|---|---|
| `ok` | there is a value |
| `no_data` | there was nothing to measure; never shown as 0 |
| `undefined` | there was data, but the formula has no value on it (a denominator of 0, one category only) |
| `error` | the query failed; the other metrics go on |

A metric whose log or column is not configured is not measured at all and gives no result. Rows without a user
id (null, or NaN in a column of numbers) count in what is measured by request or by item, and in nothing that
is measured by user; how many requests that leaves out is in the detail of the metrics by user. A row without
a request id belongs to no list. Results of a slice carry the labels `dimension` and `value`, and equal the
metric on the rows of that slice alone.

A setting that changes what is measured is part of the definition, as in `1;valid_list_length=3`: values of
two definitions are never one series.
"""


def page() -> str:
    """The whole page as Markdown."""
    parts = [
        _INTRODUCTION,
        "## All metrics\n",
        _overview(),
        *(_section(spec) for spec in SPECS.values()),
        _settings(),
    ]
    return "\n".join(parts)


def _overview() -> str:
    lines = ["| metric | by | unit | interval | what it says |", "|---|---|---|---|---|"]
    for spec in SPECS.values():
        by = ", ".join(f"`{value}`" for value in spec.by)
        cells = (f"[{spec.name}](#{spec.name})", by, spec.unit, spec.interval or "-", _cell(spec.help))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _section(spec: MetricSpec) -> str:
    by = ", ".join(f"`{value}`" for value in spec.by)
    rows = {
        "formula": spec.formula,
        "by": f"{by}; {spec.by_help}" if spec.by_help else by,
        "further labels": ", ".join(f"`{label}`" for label in spec.labels),
        "unit": spec.unit,
        "interval": spec.interval or "none",
        "samples": spec.samples,
        "answers": spec.answers,
        "where it misleads": spec.misleads,
        "needs": ", ".join(spec.requires),
        "`no_data`": spec.no_data,
        "`undefined`": spec.undefined or "never",
        "settings": ", ".join(f"`{name}`" for name in spec.parameters),
        "definition": spec.version,
    }
    lines = [f"## {spec.name}\n", f"{spec.help}\n", "| | |", "|---|---|"]
    lines += [f"| {name} | {_cell(text)} |" for name, text in rows.items() if text]
    return "\n".join(lines) + "\n"


def _settings() -> str:
    lines = [
        "## Settings\n",
        "Under `metrics:` of a recommender.\n",
        "| setting | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in MetricSettings.model_fields.items():
        lines.append(f"| `{name}` | {_default(field.default)} | {_cell(field.description or '')} |")
    return "\n".join(lines) + "\n"


def _default(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    days = getattr(value, "days", None)
    return f"`{days}d`" if days is not None else f"`{value}`"


def _cell(text: str) -> str:
    """The text as one cell of a table.

    >>> _cell("|A| is\\na size")
    '\\\\|A\\\\| is a size'
    """
    return text.replace("\n", " ").replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
