"""Population shift: the worse split has a different mix of rows, on which the model was never better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from monitor.core.numbers import number
from monitor.core.text import VALUE_LENGTH
from monitor.models.diagnosis.area import Ranking, change
from monitor.models.diagnosis.case import EVIDENCE, NAMED, Case, Claim, Finding, one_sided, shown
from monitor.models.diagnosis.columns import Bins, Codes, Column, part, read_column
from monitor.statistics.counts import Floats
from monitor.statistics.distances import psi

CAUSE = "population_shift"
_LEAST_PSI = 0.01
_LARGEST_WEIGHT = 50.0
_COVERED = 0.9
"""Share of the other side that must fall into bins in which the weighted side has rows."""
_ENOUGH = 0.8
"""Share of the gap: if a single column explains this much, no others are added."""
_JOINT = 12
_SWEEPS = 30
_SETTLED = 1e-3
_REPEATED = 5
"""The least rows of a text value on average; with fewer the texts are names."""


class Axis(NamedTuple):
    """A column whose mix of values has changed."""

    name: str
    psi: float
    codes: Codes
    """The bins of the rows of the weighted side."""
    target: Floats
    """By bin: its share on the other side."""
    shares: tuple[Floats, Floats]
    """By bin: its share in `better` and in `worse`."""
    levels: tuple[str, ...]
    """The names of the bins, if they have names."""


def population_shift(case: Case, owned: frozenset[str]) -> Claim:
    """Columns whose different mix in `worse` explains the gap: slices, and features that no other cause owns.

    Share: the gain of AUC in `worse` if its rows are weighted to the mix of `better`, by the column that
    explains most, or by raking on all columns that changed if that explains more. Values that `better` never
    had are plain evidence, and named even if the share is unknown.
    """
    unseen = never_seen(case, owned)
    axes = moved_axes(case, owned, "worse")
    ranking = Ranking(case.worse.scores, case.worse.labels)
    before = ranking.area()
    if not axes or before is None:
        return _of_unseen(case, unseen)

    def won(chosen: list[Axis]) -> tuple[float, float]:
        weights = raked([(one.codes, one.target) for one in chosen])
        effective = float(weights.sum() ** 2 / max(weights @ weights, 1e-300))
        after = ranking.area(weights)
        if after is None or effective < case.settings.least_rows:
            return 0.0, 0.0
        lost, error = change(before, after, case.owners.get("worse"))
        return -lost, error

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
    estimate = case.estimate(best, error)
    if estimate is None:
        return _of_unseen(case, unseen)
    names = [one.name for one in chosen]
    finding = Finding(
        CAUSE,
        estimate.share,
        tuple(names[:NAMED]),
        f"The mix of rows by {shown(names)} differs. Weighted to the mix of the better split, the worse "
        f"split has AUC {before.auc + best:.3f} instead of {before.auc:.3f}: {estimate.text}."
        + (f" {_said(unseen)}" if unseen else ""),
        "Test on the mix that is served, and train on more of the rows that became frequent.",
        (*_evidence(chosen, single), *_rows_of(unseen))[:EVIDENCE],
    )
    return Claim(frozenset(), best, finding, plain=True)


class Unseen(NamedTuple):
    """Values of a column of `worse` that `better` and the training never had."""

    name: str
    rate: float
    """Share of the rows of `worse`."""
    said: str
    examples: tuple[Any, ...]


def never_seen(case: Case, owned: frozenset[str]) -> list[Unseen]:
    """The columns with new texts or a new range on more than `spike` of the rows, the most rows first."""
    found = []
    columns = {name: column for name, column in case.columns.items() if name not in owned}
    for name, column in {**columns, **case.slices}.items():
        if "worse" not in column.sides:
            continue
        known, values = column.sides["better"], column.sides["worse"]
        if case.train is not None and name in case.train.features:
            trained = read_column(name, {"train": case.train.features[name]})
            known = np.concatenate([known, trained.translated("train", column)])
        infinite, known = known[np.isinf(known)], known[np.isfinite(known)]
        if not known.size:
            continue
        if column.levels is None:
            room = 0.01 * (known.max() - known.min())
            new = (values < known.min() - room) | (values > known.max() + room)
            new &= ~np.isin(values, infinite)  # such as the logarithm of 0, which training had too
            said = f"outside {number(float(known.min()))} to {number(float(known.max()))}"
        else:
            seen = np.unique(known)
            # A name that differs in every row is new in every split.
            if len(seen) > len(known) / _REPEATED:
                continue
            new = ~np.isnan(values) & ~np.isin(values, seen)
            said = "a new value"
        rate = float(new.mean()) if new.size else 0.0
        spread = math.sqrt(rate * (1 - rate) / max(len(values), 1))
        if rate - one_sided(case.settings.confidence) * spread > case.settings.spike:
            levels, counts = np.unique(values[new], return_counts=True)
            top = levels[np.argsort(-counts, kind="stable")][:3]
            found.append(Unseen(name, rate, said, tuple(column.plain(float(one)) for one in top)))
    return sorted(found, key=lambda one: (-one.rate, one.name))


def _said(unseen: list[Unseen]) -> str:
    parts = "; ".join(
        f"{shown([one.name])} is {one.said} on {one.rate:.1%} of the rows" for one in unseen[:3]
    )
    return f"Never seen before: {parts}."


def _rows_of(unseen: list[Unseen]) -> list[dict[str, Any]]:
    return [
        {"column": one.name, "never_seen": one.rate, "examples": ", ".join(map(str, one.examples))}
        for one in unseen[:5]
    ]


def _of_unseen(case: Case, unseen: list[Unseen]) -> Claim:
    if not unseen:
        return Claim()
    finding = Finding(
        CAUSE,
        None,
        tuple(one.name for one in unseen[:NAMED]),
        f"{_said(unseen)} The better split has no such rows and cannot show how good the model is on them, "
        f"so the share of the gap of {case.gap:.3f} is unknown.",
        "If these rows are real, train and test on rows like them. If not, compare units, encodings and keys "
        "of these columns between service and training.",
        tuple(_rows_of(unseen)),
    )
    return Claim(frozenset(), 0.0, finding, plain=True)


def moved_axes(case: Case, owned: frozenset[str], side: str) -> list[Axis]:
    """The slices, and the features that no cause owns, whose mix has changed by more than chance.

    Args:
        case: the gap.
        owned: features that belong to other causes.
        side: the side whose rows are weighted to the mix of the other.
    """
    axes = []
    for name, column in case.slices.items():
        bins = part(column, case.settings.bins)
        codes = {one: bins.codes(column.sides[one]) for one in ("better", "worse")}
        axes.append(_axis(name, codes, side, bins.size, _levels(column, bins)))
    for name, column in case.columns.items():
        if name not in owned and "worse" in column.sides:
            codes = {one: case.binned.codes(one, name) for one in ("better", "worse")}
            axes.append(_axis(name, codes, side, case.bins[name].size, _levels(column, case.bins[name])))
    return [axis for axis in axes if axis is not None]


def furthest(axes: list[Axis]) -> list[Axis]:
    """The axes that have moved most, few enough to rake on together."""
    return sorted(axes, key=lambda axis: (-axis.psi, axis.name))[:_JOINT]


def _levels(column: Column, bins: Bins) -> tuple[str, ...]:
    """The names of the bins of a text; rare texts share the last bin."""
    if bins.places is None or column.levels is None:
        return ()
    names = dict(zip(bins.places.tolist(), column.levels, strict=False))
    names |= {0: "(missing)", bins.size - 1: "(others)"}
    return tuple(names.get(at, "") for at in range(bins.size))


def _axis(
    name: str, codes: Mapping[str, Codes], side: str, size: int, levels: tuple[str, ...]
) -> Axis | None:
    """The column as an axis; None if its mix has not changed, or if the side lacks rows to weight."""
    rows = {one: np.bincount(codes[one], minlength=size).astype(np.float64) for one in codes}
    moved = psi(rows["better"], rows["worse"])
    filled = int(np.count_nonzero(rows["better"] + rows["worse"]))
    chance = (filled - 1) * sum(1 / max(one.sum(), 1) for one in rows.values())
    if moved is None or moved < _LEAST_PSI + 3 * chance:
        return None
    other = rows["worse" if side == "better" else "better"]
    shared = np.where(rows[side] > 0, other, 0.0)
    if shared.sum() < _COVERED * other.sum():
        return None
    shares = rows["better"] / rows["better"].sum(), rows["worse"] / rows["worse"].sum()
    return Axis(name, moved, codes[side], shared / shared.sum(), shares, levels)


def raked(margins: list[tuple[Codes, Floats]]) -> Floats:
    """Weights of the rows, of mean about 1, under which every column has its target shares.

    Iterative proportional fitting: column by column, the weights of each bin are scaled to its target, until
    they converge. Of all weights with these margins they are the closest to equal ones (by relative entropy).
    The share of a bin without rows is lost. No weight exceeds 50.

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


def _evidence(chosen: list[Axis], single: Mapping[str, tuple[float, float]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"column": one.name, "psi": one.psi, "auc_lost": single[one.name][0]} for one in chosen[:NAMED]
    ]
    for one in chosen[:NAMED]:
        before, after = one.shares
        order = np.argsort(-np.abs(after - before), kind="stable")[:5] if one.levels else ()
        rows += [
            {
                "column": one.name,
                "value": one.levels[at][:VALUE_LENGTH],
                "better": float(before[at]),
                "worse": float(after[at]),
            }
            for at in order
        ]
    return rows
