"""STL of statsmodels as a forecast of hourly requests; runs in the environment of the peers.

Reads the counts of the hours from standard input. Prints the expected logarithm and the spread of each.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from statsmodels.tsa.seasonal import STL  # type: ignore[import-not-found]

DAY, WEEK = 24, 168
PAST = 4 * WEEK


def main() -> None:
    counts = np.array(json.load(sys.stdin), dtype=float)
    logs = np.log1p(counts)
    known = np.flatnonzero(np.isfinite(logs))
    logs = np.interp(np.arange(len(logs)), known, logs[known])
    expected, spread = np.full((2, len(logs)), np.nan)
    for first in range(PAST, len(logs), DAY):  # once a day, from what came before
        found = STL(logs[first - PAST : first], period=WEEK, robust=True).fit()
        ahead = min(DAY, len(logs) - first)
        expected[first : first + ahead] = found.trend[-1] + found.seasonal[-WEEK:][:ahead]
        spread[first : first + ahead] = 1.4826 * np.median(np.abs(found.resid))
    json.dump({"expected": _plain(expected), "spread": _plain(spread)}, sys.stdout)


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(one) else float(one) for one in values]


if __name__ == "__main__":
    main()
