"""Score shift: scores keep their order within each slice, but the slices have shifted against each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.models.diagnosis.area import Ranking, change
from monitor.models.diagnosis.case import EVIDENCE, Case, Claim, Finding, shown
from monitor.models.diagnosis.columns import equals, read_column
from monitor.statistics.counts import Floats
from monitor.statistics.distances import bin_counts, psi, quantile_edges

CAUSE = "score_shift"
_MOST = 50
"""The most values of a slice that are compared, the most frequent first."""


class _Shift(NamedTuple):
    name: str
    won: float
    error: float
    evidence: list[dict[str, Any]]


def score_shift(case: Case) -> Claim:
    """The slice whose shift of scores costs `worse` most.

    Share: the gain of AUC in `worse` if the scores of each value of the slice are mapped, in their order,
    onto the scores of this value in `better`. A shift that all values share changes no AUC.
    """
    shifts = [
        _shift(case, name, values, case.worse.slices[name])
        for name, values in case.better.slices.items()
        if name in case.worse.slices
    ]
    if not shifts:
        return Claim()
    best = min(shifts, key=lambda one: (-one.won, one.name))
    share = case.share(best.won, best.error)
    if share is None:
        return Claim()
    finding = Finding(
        CAUSE,
        min(share, 1.0),
        (best.name,),
        f"The scores of the values of {shown([best.name])} have moved against each other. Mapped onto those"
        f" of the better split, value by value, AUC is {best.won:.3f} higher, {min(share, 1.0):.0%} of the "
        f"gap of {case.gap:.3f}.",
        "Look for another model, scale or calibration behind some of these values; calibrate all in the "
        "same way.",
        tuple(best.evidence)[:EVIDENCE],
    )
    return Claim(frozenset(), best.won, finding)


def _shift(case: Case, name: str, better_values: NDArray[Any], worse_values: NDArray[Any]) -> _Shift:
    column = read_column(name, {"better": better_values, "worse": worse_values})
    ranks = _common_ranks(case.better.scores, case.worse.scores)
    mapped = ranks[1].copy()
    values, counts = np.unique(column.sides["worse"], return_counts=True)
    evidence = []
    for value in values[np.argsort(-counts, kind="stable")][:_MOST]:
        rows = [equals(column.sides[side], float(value)) for side in ("better", "worse")]
        if min(int(one.sum()) for one in rows) < case.settings.least_rows:
            continue
        before, after = ranks[0][rows[0]], ranks[1][rows[1]]
        mapped[rows[1]] = mapped_onto(after, before)
        evidence.append(
            {
                "slice": name,
                "value": column.plain(float(value)),
                "rows": int(rows[1].sum()),
                "psi": _psi(before, after),
                "rank_better": float(before.mean()),
                "rank_worse": float(after.mean()),
                "auc_better": _auc(before, case.better.labels[rows[0]]),
                "auc_worse": _auc(after, case.worse.labels[rows[1]]),
            }
        )
    have, could = (Ranking(one, case.worse.labels).area() for one in (ranks[1], mapped))
    owners = case.owners.get("worse")
    won, error = change(could, have, owners) if have and could else (0.0, 0.0)
    return _Shift(name, won, error, evidence)


def _common_ranks(better: Floats, worse: Floats) -> tuple[Floats, Floats]:
    """The scores of both sides as mid-ranks among all, from 0 to 1: finite even if scores are infinite."""
    _, at, sizes = np.unique(np.concatenate([better, worse]), return_inverse=True, return_counts=True)
    ranks = ((np.cumsum(sizes) - sizes / 2) / max(len(at), 1))[at]
    return ranks[: len(better)], ranks[len(better) :]


def mapped_onto(values: Floats, reference: Floats) -> Floats:
    """The values mapped onto the distribution of the reference; order and ties stay.

    >>> mapped_onto(np.array([5.0, 7, 9]), np.array([1.0, 2, 3])).tolist()
    [1.0, 2.0, 3.0]
    """
    _, at, sizes = np.unique(values, return_inverse=True, return_counts=True)
    places = (np.cumsum(sizes) - sizes / 2) / len(values)
    quantiles = (np.arange(len(reference)) + 0.5) / len(reference)
    return np.asarray(np.interp(places, quantiles, np.sort(reference))[at])


def _psi(before: Floats, after: Floats) -> float | None:
    edges = quantile_edges(before)
    return psi(bin_counts(before, edges), bin_counts(after, edges))


def _auc(scores: Floats, labels: Floats) -> float | None:
    found = Ranking(scores, labels).area()
    return found and found.auc
