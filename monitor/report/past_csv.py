"""Stored results as CSV, for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Final

from monitor.core.json_value import iso
from monitor.history.browse import StoredRow
from monitor.report.bands import key_of
from monitor.report.csv_text import harmless
from monitor.report.trend import gather

COLUMNS: Final = (
    "window_start",
    "window_end",
    "check",
    "metric",
    "labels",
    "status",
    "value",
    "lower",
    "upper",
    "samples",
    "violations",
    "threshold",
    "expected",
    "expected_lower",
    "expected_upper",
    "out_of_band",
    "detail",
)


def past_csv(found: Iterable[StoredRow]) -> str:
    """A row for each result. The results of bands are columns of the series that they belong to."""
    stored = list(found)
    series = gather(stored)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for one in stored:
        result = one.result
        if result.kind.is_of_the_past:
            continue
        own = series[key_of(result)]
        band = own.expected.get(one.window)
        writer.writerow(
            [
                iso(one.window.start),
                iso(one.window.end),
                harmless(one.check),
                harmless(result.metric),
                harmless(json.dumps(dict(sorted(result.labels.items())), ensure_ascii=False)),
                result.status.value,
                result.value,
                result.lower,
                result.upper,
                result.samples,
                result.violations,
                result.threshold,
                *((None,) * 3 if band is None else (band.value, band.lower, band.upper)),
                "" if band is None else str(one.window in own.broken).lower(),
                harmless(result.detail),
            ]
        )
    return out.getvalue()
