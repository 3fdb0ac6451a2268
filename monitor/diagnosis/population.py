"""Population shift: the worse split holds other rows, and the model was never better on those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from monitor.diagnosis.area import Ranking, change
from monitor.diagnosis.case import EVIDENCE, NAMED, Case, Claim, Finding, shown
from monitor.diagnosis.columns import Bins, Codes, Column, part, read_column
from monitor.statistics.counts import Floats
from monitor.statistics.distances import psi

CAUSE = "population_shift"
_LEAST_PSI = 0.01
_LARGEST_WEIGHT = 50.0
_COVERED = 0.9
"""Share of `worse` that has to lie where `better` has rows."""
_ENOUGH = 0.8
"""Of the gap: a single column that explains so much is not joined by others."""
_JOINT = 12
_SWEEPS = 30
_SETTLED = 1e-3


class Axis(NamedTuple):
    """A column along which the mix of the rows has moved."""

    name: str
    psi: float
    codes: Codes
    """Of `better`."""
    target: Floats
    """By bin: its share in `worse`."""
    levels: tuple[str, ...]
    """What bins are called, where they have names."""


def population_shift(case: Case, owned: frozenset[str]) -> Claim:
    """Columns whose other mix in `worse` explains the gap: slices, and features that no other cause owns.

    Share: what `better` loses when its rows are weighed to the mix of `worse`, by the column that explains
    most, or by raking on all that have moved where that explains more.
    """
    axes = moved_axes(case, owned)
    ranking = Ranking(case.better.scores, case.better.labels)
    before = ranking.area()
    if not axes or before is None:
        return Claim()

    def won(chosen: list[Axis]) -> tuple[float, float]:
        weights = raked([(one.codes, one.target) for one in chosen])
        effective = float(weights.sum() ** 2 / (weights @ weights))
        after = ranking.area(weights)
        if after is None or effective < case.settings.least_rows:
            return 0.0, 0.0
        return change(before, after)

    single = {one.name: won([one]) for one in axes}
    axes.sort(key=lambda one: (-single[one.name][0], one.name))
    chosen, (best, error) = axes[:1], single[axes[0].name]
    if len(axes) > 1 and best < _ENOUGH * case.gap:
        several = furthest(axes)
        together, its_error = won(several)
        if (
            case.share(together, its_error) is not None
            and together > best + case.settings.least_share * case.gap
        ):
            best, error = together, its_error
            chosen = [one for one in axes if one in several]
    share = case.share(best, error)
    if share is None:
        return Claim()
    names = [one.name for one in chosen]
    finding = Finding(
        CAUSE,
        min(share, 1.0),
        tuple(names[:NAMED]),
        f"The mix of rows by {shown(names)} is another. Weighed to that of the worse split, the better one "
        f"has AUC {case.auc - best:.3f} in place of {case.auc:.3f}: {min(share, 1.0):.0%} of the gap of "
        f"{case.gap:.3f}.",
        "Test on the mix that is served, and train on more of the rows that have become frequent.",
        tuple(_evidence(case, chosen, single))[:EVIDENCE],
    )
    return Claim(frozenset(), best, finding)


def moved_axes(case: Case, owned: frozenset[str]) -> list[Axis]:
    """The slices and the features not owned by a cause whose mix has moved by more than chance."""
    return [*_slices(case), *_features(case, owned)]


def furthest(axes: list[Axis]) -> list[Axis]:
    """Those that have moved furthest, few enough to be raked on together."""
    return sorted(axes, key=lambda one: (-one.psi, one.name))[:_JOINT]


def _features(case: Case, owned: frozenset[str]) -> list[Axis]:
    found = []
    for name, column in case.columns.items():
        if name in owned or "worse" not in column.sides:
            continue
        rows, _, worse_rows, _ = case.rates(name)
        axis = _axis(name, case.surrogate.codes("better", name), rows, worse_rows, ())
        found += [axis] if axis else []
    return found


def _slices(case: Case) -> list[Axis]:
    found = []
    for name, values in case.better.slices.items():
        # A feature by the same name says the same, and may belong to another cause.
        if name not in case.worse.slices or name in case.columns:
            continue
        column = read_column(name, {"better": values, "worse": case.worse.slices[name]})
        bins = part(column, case.settings.bins)
        codes, other = (bins.codes(column.sides[side]) for side in ("better", "worse"))
        counts = [np.bincount(one, minlength=bins.size).astype(np.float64) for one in (codes, other)]
        axis = _axis(name, codes, counts[0], counts[1], _levels(column, bins))
        found += [axis] if axis else []
    return found


def _levels(column: Column, bins: Bins) -> tuple[str, ...]:
    """What the bins of a text are called; the rare levels share the last one."""
    if bins.places is None or column.levels is None:
        return ()
    names = dict(zip(bins.places.tolist(), column.levels, strict=False))
    names |= {0: "(missing)", bins.size - 1: "(others)"}
    return tuple(names.get(at, "") for at in range(bins.size))


def _axis(name: str, codes: Codes, rows: Floats, worse_rows: Floats, levels: tuple[str, ...]) -> Axis | None:
    """The column as an axis, None where its mix has not moved, or has moved to where `better` has no rows."""
    moved = psi(rows, worse_rows)
    filled = int(np.count_nonzero(rows + worse_rows))
    chance = (filled - 1) * (1 / max(rows.sum(), 1) + 1 / max(worse_rows.sum(), 1))
    if moved is None or moved < _LEAST_PSI + 3 * chance:
        return None
    shared = np.where(rows > 0, worse_rows, 0.0)
    if shared.sum() < _COVERED * worse_rows.sum():
        return None
    return Axis(name, moved, codes, shared / shared.sum(), levels)


def raked(margins: list[tuple[Codes, Floats]]) -> Floats:
    """Weights, one a row, of mean about 1, under which every column has its target shares.

    Iterative proportional fitting: column by column the weights of a bin are scaled to its target, until they
    settle. It gives the weights closest to equal ones (by relative entropy) that have the margins; of
    bins that a target has and the rows have not, the share is lost. No weight passes 50.

    >>> raked([(np.array([1, 1, 1, 2], np.uint16), np.array([0, 0.5, 0.5]))]).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]

    Source: Deming and Stephan, On a least squares adjustment of a sampled frequency table, Annals of
    Mathematical Statistics 11 (1940).
    """
    rows = len(margins[0][0])
    weights = np.ones(rows)
    for _ in range(_SWEEPS if len(margins) > 1 else 1):
        moved = 0.0
        for codes, target in margins:
            has = np.bincount(codes, weights, len(target)) / rows
            factor = np.where(has > 0, target / np.where(has > 0, has, 1.0), 0.0)
            moved = max(moved, float(np.abs(target - has).sum()))
            weights = np.minimum(weights * factor[codes], _LARGEST_WEIGHT)
        if moved < _SETTLED:
            break
    return weights


def _evidence(
    case: Case, chosen: list[Axis], single: Mapping[str, tuple[float, float]]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"column": one.name, "psi": one.psi, "auc_lost": single[one.name][0]} for one in chosen[:NAMED]
    ]
    for one in chosen[:NAMED]:
        share = np.bincount(one.codes, minlength=len(one.target)) / len(case.better)
        order = np.argsort(-np.abs(one.target - share), kind="stable")[:5] if one.levels else ()
        rows += [
            {
                "column": one.name,
                "value": one.levels[at][:60],
                "better": float(share[at]),
                "worse": float(one.target[at]),
            }
            for at in order
        ]
    return rows
