"""MSTL of statsforecast with its own intervals; runs in the environment of the peers.

Reads the counts of the hours from standard input. Prints the expected logarithm and the spread of each: half
of the interval that holds 68.27 %.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from statsforecast.models import MSTL, AutoETS  # type: ignore[import-not-found]

DAY, WEEK = 24, 168
PAST = 4 * WEEK
ONE_SD = 68.27


def main() -> None:
    counts = np.array(json.load(sys.stdin), dtype=float)
    logs = np.log1p(counts)
    known = np.flatnonzero(np.isfinite(logs))
    logs = np.interp(np.arange(len(logs)), known, logs[known])
    expected, spread = np.full((2, len(logs)), np.nan)
    for first in range(PAST, len(logs), DAY):  # once a day, from what came before
        model = MSTL(season_length=[DAY, WEEK], trend_forecaster=AutoETS(model="ZZN"))
        ahead = min(DAY, len(logs) - first)
        found = model.forecast(logs[first - PAST : first], h=ahead, level=[ONE_SD])
        expected[first : first + ahead] = found["mean"]
        spread[first : first + ahead] = (found[f"hi-{ONE_SD}"] - found[f"lo-{ONE_SD}"]) / 2
    json.dump({"expected": _plain(expected), "spread": _plain(spread)}, sys.stdout)


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(one) else float(one) for one in values]


if __name__ == "__main__":
    main()
