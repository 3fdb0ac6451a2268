"""Serving skew without pairs: features that are served with each other's values."""

from __future__ import annotations

import math

import numpy as np

from monitor.models.diagnosis.case import Case, Claim, finding_of, shown
from monitor.models.diagnosis.columns import Column
from monitor.models.diagnosis.skew import CAUSE

_MOVED = 0.1
"""The least distance of a swapped feature from its own distribution in `better`."""
_MOST = 40
"""The most features that are compared with each other, the most distant first."""
_CHANCE = 2.0
"""Two samples of one distribution are almost never further apart than this times sqrt(1/n + 1/m)."""


def swapped(case: Case, owned: frozenset[str]) -> Claim:
    """Features that have in `worse` the distribution that another feature has in `better`, in a cycle.

    Only features without pairs are compared. Share: the gain of AUC in `worse` if the values are swapped
    back.
    """
    columns = {
        name: one
        for name, one in case.columns.items()
        if name not in owned
        and "worse" in one.sides
        and not {"online", "offline"} <= one.sides.keys()
        and one.varies("worse")
        and one.varies("better")
    }
    away = {name: _distance(one, one) for name, one in columns.items()}
    tolerance = _CHANCE * math.sqrt(1 / max(len(case.better), 1) + 1 / max(len(case.worse), 1))
    moved = sorted(
        (name for name, far in away.items() if far > max(_MOVED, 2 * tolerance)),
        key=lambda name: (-away[name], name),
    )[:_MOST]
    right = _right_values(columns, moved, away, tolerance)
    if not right:
        return Claim()
    values = {name: columns[other].translated("worse", columns[name]) for name, other in right.items()}
    lost, error = case.lost("worse", [case.scoring.changed("worse", values)], [1.0])
    estimate = case.estimate(-lost, error, "worse")
    guilty = tuple(sorted(right, key=lambda name: (-away[name], name)))
    pairs = "; ".join(f"the values of {shown([name])} are in {shown([right[name]])}" for name in guilty[:3])
    cost = (
        f"With the values put back, the AUC of the worse split is {-lost:.3f} higher, {estimate.text}."
        if estimate
        else "Their share of the gap is unknown."
    )
    finding = finding_of(
        CAUSE,
        estimate,
        guilty,
        f"Features are swapped: {pairs}. {cost}",
        "Compare the order and the names of the features in the service with those of the training.",
        [
            {
                "feature": name,
                "has_values_of": next((to for to, own in right.items() if own == name), None),
                "own_values_in": right[name],
                "distance_from_own": away[name],
                "distance_swapped": _distance(columns[right[name]], columns[name]),
            }
            for name in guilty
        ],
    )
    return Claim(frozenset(guilty), -lost, finding, plain=True)


def _right_values(
    columns: dict[str, Column], moved: list[str], away: dict[str, float], tolerance: float
) -> dict[str, str]:
    """Feature -> the feature that has its values in `worse`; only whole cycles of features."""
    source = {}
    for name in moved:
        others = [
            (_distance(columns[other], columns[name]), other)
            for other in moved
            if other != name and (columns[other].levels is None) == (columns[name].levels is None)
        ]
        if others:
            nearest, other = min(others)
            if nearest <= tolerance and nearest < away[name] / 3:
                source[name] = other
    found: dict[str, str] = {}
    for name, first in source.items():
        cycle, at = [name], first
        while at in source and at not in cycle:
            cycle.append(at)
            at = source[at]
        if at == name:
            found |= {one: source[one] for one in cycle}
    return found


def _distance(one: Column, other: Column) -> float:
    """The distance of one column in `worse` from another in `better`; missing counts as a value.

    Kolmogorov-Smirnov for numbers, total variation for texts.
    """
    values = one.translated("worse", other)
    reference = other.sides["better"]
    gone, gone_there = np.isnan(values), np.isnan(reference)
    missing = abs(float(gone.mean()) - float(gone_there.mean()))
    values, reference = values[~gone], reference[~gone_there]
    if not values.size or not reference.size:
        return 1.0
    points, at = np.unique(np.concatenate([values, reference]), return_inverse=True)
    served, trained = at[: len(values)], at[len(values) :]
    difference = np.bincount(served, minlength=len(points)) / len(served)
    difference -= np.bincount(trained, minlength=len(points)) / len(trained)
    if one.levels is not None:
        return max(missing, float(np.abs(difference).sum()) / 2)
    return max(missing, float(np.abs(np.cumsum(difference)).max()))
