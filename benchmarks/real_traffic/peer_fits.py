"""Forecasts of hourly requests by STL or MSTL; runs in the environment of the peers.

`python peer_fits.py STL` or `MSTL` reads the counts of the hours from standard input, and prints the expected
logarithm and the spread of each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np

DAY, WEEK = 24, 168
PAST = 4 * WEEK
ONE_SD = 68.27  # percent of a normal within one standard deviation

Fit = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray | float]]
"""Past logarithms and how many hours to look ahead -> what is expected of these, and the spread."""


def stl(past: np.ndarray, ahead: int) -> tuple[np.ndarray, float]:
    """The last trend and season of statsmodels' STL, with the MAD of what is left."""
    from statsmodels.tsa.seasonal import STL  # type: ignore[import-not-found]

    found = STL(past, period=WEEK, robust=True).fit()
    spread = 1.4826 * np.median(np.abs(found.resid))
    return found.trend[-1] + found.seasonal[-WEEK:][:ahead], float(spread)


def mstl(past: np.ndarray, ahead: int) -> tuple[np.ndarray, np.ndarray]:
    """The forecast of statsforecast's MSTL, with half of its interval that holds one standard deviation."""
    from statsforecast.models import MSTL, AutoETS  # type: ignore[import-not-found]

    model = MSTL(season_length=[DAY, WEEK], trend_forecaster=AutoETS(model="ZZN"))
    found = model.forecast(past, h=ahead, level=[ONE_SD])
    return found["mean"], (found[f"hi-{ONE_SD}"] - found[f"lo-{ONE_SD}"]) / 2


FITS: dict[str, Fit] = {"STL": stl, "MSTL": mstl}


def main() -> None:
    fit = FITS[sys.argv[1]]
    logs = np.log1p(np.array(json.load(sys.stdin), dtype=float))
    known = np.flatnonzero(np.isfinite(logs))
    logs = np.interp(np.arange(len(logs)), known, logs[known])
    expected, spread = np.full((2, len(logs)), np.nan)
    for first in range(PAST, len(logs), DAY):  # once a day, from what came before
        span = slice(first, first + min(DAY, len(logs) - first))
        expected[span], spread[span] = fit(logs[first - PAST : first], span.stop - first)
    json.dump({"expected": _plain(expected), "spread": _plain(spread)}, sys.stdout)


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(one) else float(one) for one in values]


if __name__ == "__main__":
    main()
