"""Serving skew without pairs: one value, or missing, has replaced others in part of the worse split."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from monitor.models.diagnosis.case import EVIDENCE, NAMED, Case, Claim, finding_of, one_sided, shown
from monitor.models.diagnosis.columns import Column, equals
from monitor.models.diagnosis.repair import Struck, from_donors
from monitor.models.diagnosis.skew import CAUSE
from monitor.statistics.counts import Floats
from monitor.statistics.distances import psi

_NEW = 0.1
"""A value is new if its rate in `better` is below this part of its rate in `worse`."""
_PATTERNS = 16
_FEW = 30
"""Rows of `better` with a value that suffice to describe such rows."""
_PARTS = 6
"""Parts of the score's range in which labels are compared."""


class Spike(NamedTuple):
    """A value that has replaced the values of part of the rows."""

    value: float
    before: float
    after: float

    @property
    def rate(self) -> float:
        """The share of other rows whose value it replaced: after = before + rate (1 - before)."""
        return (self.after - self.before) / (1 - self.before)


def spikes(case: Case, owned: frozenset[str]) -> Claim:
    """Features with a value, or missing, that has become as frequent as only a default does.

    Share: the gain of AUC in `worse` if the features become as informative on these rows as in `better`.
    """
    paired = {name for name, one in case.columns.items() if {"online", "offline"} <= one.sides.keys()}
    found = {
        name: spike
        for name, column in case.columns.items()
        if name not in owned | paired and (spike := spike_of(case, column)) is not None
    }
    if not found:
        return Claim()
    single = {name: _repaired(case, {name: spike})[0] for name, spike in found.items()}
    guilty = tuple(sorted(found, key=lambda name: (-single[name], name)))
    won, error = _repaired(case, {name: found[name] for name in guilty[:NAMED]})
    estimate = case.estimate(won, error, "better")
    if estimate is None:
        return Claim(frozenset(guilty))
    columns = case.columns
    how = "; ".join(
        f"{shown([name])} is {columns[name].plain(found[name].value)!r} on {found[name].after:.1%} of the "
        f"rows and was on {found[name].before:.1%}"
        for name in guilty[:3]
    )
    finding = finding_of(
        CAUSE,
        estimate,
        guilty,
        f"A default or a failed lookup: {how}. A repair raises the AUC of the worse split by {won:.3f}, "
        f"{estimate.text}.",
        "Find why it is served: a failed lookup, a timeout, another key. Join the same requests offline.",
        [
            {
                "feature": name,
                "value": columns[name].plain(found[name].value),
                "better": found[name].before,
                "worse": found[name].after,
                "auc_lost": single[name],
                "psi": psi(case.rates(name)[0], case.rates(name)[2]),
            }
            for name in guilty[: EVIDENCE - 1]
        ],
    )
    return Claim(frozenset(guilty), won, finding, plain=True)


def spike_of(case: Case, column: Column) -> Spike | None:
    """The value that `worse` has too often, NaN for missing; None if there is none.

    Missing counts if it is at least twice as frequent. A value counts if it is nearly new. A value that was
    frequent before counts if the other values keep their shares and its rows behave like all rows: after a
    shift of the population they would behave like earlier rows with this value.
    """
    better, worse = column.sides["better"], column.sides.get("worse")
    if worse is None or not column.varies("worse") or not column.varies("better"):
        return None
    missing = Spike(math.nan, float(np.isnan(better).mean()), float(np.isnan(worse).mean()))
    if _grown(case, missing) and missing.before <= missing.after / 2:
        return missing
    values, counts = np.unique(worse[~np.isnan(worse)], return_counts=True)
    value = float(values[counts.argmax()])
    most = Spike(value, float((better == value).mean()), float((worse == value).mean()))
    if not _grown(case, most):
        return None
    if int((better == value).sum()) >= _FEW:
        known = _acts_like_all(case, column, most)
        if known is not None:
            return most if known else None
    if most.before <= _NEW * most.after or _is_mixture(case, column, most):
        return most
    return None


def _acts_like_all(case: Case, column: Column, spike: Spike) -> bool | None:
    """Whether the rows of `worse` with the value resemble all rows of `better`, or its rows with the value.

    A default affects any row. So the other features, and the labels given the score with a usual value, are
    distributed as in all rows of `better`. After a shift of the population they are distributed as in the
    rows of `better` with the value. None if the two distributions do not differ.
    """
    had = case.columns[column.name].sides["better"] == spike.value
    has = case.columns[column.name].sides["worse"] == spike.value
    usual = _usual(column.sides["better"], spike.value)
    parts = {
        side: case.scoring.changed(side, {column.name: np.full(len(case.sample(side)), usual)})
        for side in ("better", "worse")
    }
    edges = np.unique(np.quantile(parts["better"], np.arange(1, _PARTS) / _PARTS))
    tables = [
        [
            (np.searchsorted(edges, parts[side], side="right") * 2 + case.sample(side).labels).astype(
                np.int64
            )
            for side in ("better", "worse")
        ]
    ]
    tables += [
        [case.binned.codes(side, name).astype(np.int64) for side in ("better", "worse")]
        for name in case.columns
        if name != column.name and "worse" in case.columns[name].sides
    ]
    from_all = sum(_apart(one[has], other) for other, one in tables)
    from_own = sum(_apart(one[has], other[had]) for other, one in tables)
    return None if from_all == from_own else bool(from_all < from_own)


def _usual(values: Floats, but: float) -> float:
    """The most frequent other value, or the middle one where none is frequent; NaN if others are missing."""
    others = values[~np.isnan(values) & (values != but)]
    if not others.size:
        return math.nan
    found, counts = np.unique(others, return_counts=True)
    return float(found[counts.argmax()]) if counts.max() > 0.05 * len(values) else float(np.median(others))


def _apart(one: np.typing.NDArray[np.int64], other: np.typing.NDArray[np.int64]) -> float:
    """The distance of two samples of bins above chance; 0 if it may be chance.

    The chi-square statistic of homogeneity less its mean and three standard deviations.
    """
    size = int(max(one.max(initial=0), other.max(initial=0))) + 1
    first, second = (np.bincount(part, minlength=size).astype(np.float64) for part in (one, other))
    both = first + second
    filled = both > 0
    n, m = max(len(one), 1), max(len(other), 1)
    square = n * m * float(np.sum((first / n - second / m)[filled] ** 2 / both[filled]))
    free = int(np.count_nonzero(filled)) - 1
    return max(0.0, square - free - 3 * math.sqrt(2 * free)) * (1 / n + 1 / m)


def _grown(case: Case, spike: Spike) -> bool:
    if spike.before >= 1:
        return False
    spread = spike.before * (1 - spike.before) / len(case.better) + spike.after * (1 - spike.after) / len(
        case.worse
    )
    return spike.rate - one_sided(case.settings.confidence) * math.sqrt(spread) > case.settings.spike


def _is_mixture(case: Case, column: Column, spike: Spike) -> bool:
    better, worse = column.sides["better"], column.sides["worse"]
    rows, _, worse_rows, _ = case.rates(column.name)
    at = int(case.bins[column.name].codes(np.array([spike.value]))[0])
    others = np.delete(rows, at), np.delete(worse_rows, at)
    filled = int(np.count_nonzero(others[0]))
    moved = psi(*others)
    chance = filled * (1 / max(others[0].sum(), 1) + 1 / max(others[1].sum(), 1))
    if filled < 3 or moved is None or moved > 0.01 + 2 * chance:
        return False
    own, rest = case.better.labels[better == spike.value], case.better.labels[better != spike.value]
    acted = case.worse.labels[worse == spike.value]
    if min(len(own), len(rest), len(acted)) < case.settings.least_rows:
        return False
    kept = spike.before / spike.after
    mixed = kept * own.mean() + (1 - kept) * rest.mean()
    error = math.sqrt(own.var() / len(own) + acted.var() / len(acted))
    apart = abs(own.mean() - mixed) > one_sided(case.settings.confidence) * error
    return bool(apart and abs(acted.mean() - mixed) < abs(acted.mean() - own.mean()))


def _repaired(case: Case, found: dict[str, Spike]) -> tuple[float, float]:
    """The gain of AUC in `worse` without the spikes; rows with the same spikes are repaired together."""
    names = list(found)
    at = np.stack([equals(case.columns[name].sides["worse"], found[name].value) for name in names], axis=1)
    patterns, which, counts = np.unique(at, axis=0, return_inverse=True, return_counts=True)
    struck = []
    for place in np.argsort(-counts, kind="stable")[:_PATTERNS].tolist():
        values = {name: found[name].value for name, one in zip(names, patterns[place], strict=True) if one}
        if values:
            struck.append(Struck(values, np.asarray(which.reshape(-1) == place)))
    # Some rows have the value correctly; they are not repaired.
    fault = float(np.mean([min(1.0, one.rate / one.after) for one in found.values()]))
    return from_donors(case, struck, fault)
