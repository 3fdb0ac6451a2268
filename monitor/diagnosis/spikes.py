"""Serving skew without pairs: one value, or none, has taken over part of the worse split."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from monitor.diagnosis.case import EVIDENCE, NAMED, Case, Claim, Finding, one_sided, shown
from monitor.diagnosis.columns import Column
from monitor.diagnosis.skew import CAUSE
from monitor.statistics.counts import Floats
from monitor.statistics.distances import psi

_NEW = 0.1
"""A value is new where `better` has it at less than this part of its rate in `worse`."""
_PATTERNS = 16


class Spike(NamedTuple):
    """A value that part of the rows has got in the place of their own."""

    value: float
    before: float
    after: float

    @property
    def rate(self) -> float:
        """The share of the other rows that it has taken: after = before + rate (1 - before)."""
        return (self.after - self.before) / (1 - self.before)


def spikes(case: Case, owned: frozenset[str]) -> Claim:
    """Features of which one value, or missing, has become frequent in a way that only a default does.

    Share: what `better` loses when its rows get these values at the same rates, together where they come
    together in `worse`. The mean over all ways of choosing the rows, so nothing is drawn.
    """
    paired = {name for name, one in case.columns.items() if {"online", "offline"} <= one.sides.keys()}
    found = {
        name: spike
        for name, column in case.columns.items()
        if name not in owned | paired and (spike := spike_of(case, column)) is not None
    }
    if not found:
        return Claim()
    single = {name: _broken(case, {name: spike})[0] for name, spike in found.items()}
    guilty = tuple(sorted(found, key=lambda name: (-single[name], name)))
    won, error = _broken(case, {name: found[name] for name in guilty[:NAMED]})
    share = case.share(won, error)
    if share is None:
        return Claim(frozenset(guilty))
    columns = case.columns
    told = "; ".join(
        f"{shown([name])} is {columns[name].plain(found[name].value)!r} on {found[name].after:.1%} of the "
        f"rows and was on {found[name].before:.1%}"
        for name in guilty[:3]
    )
    finding = Finding(
        CAUSE,
        min(share, 1.0),
        guilty[:NAMED],
        f"A default or a failed lookup: {told}. Broken so, the better split loses {won:.3f}, "
        f"{min(share, 1.0):.0%} of the gap of {case.gap:.3f} ({case.scoring.how}).",
        "Find why it is served: a failed lookup, a timeout, another key. Join the same requests offline.",
        tuple(
            {
                "feature": name,
                "value": columns[name].plain(found[name].value),
                "better": found[name].before,
                "worse": found[name].after,
                "auc_lost": single[name],
                "psi": psi(case.rates(name)[0], case.rates(name)[2]),
            }
            for name in guilty[:EVIDENCE]
        ),
    )
    return Claim(frozenset(guilty), won, finding)


def spike_of(case: Case, column: Column) -> Spike | None:
    """The value that `worse` has too often, NaN for missing; None where there is none.

    Missing: twice as often and more. A value: as good as new. One that was frequent before as well counts
    where the other values keep their shares, and its rows act like rows of all values: in a shift of the
    population they act as the rows of that value always did.
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
    if most.before <= _NEW * most.after or _is_mixture(case, column, most):
        return most
    return None


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


def _broken(case: Case, found: dict[str, Spike]) -> tuple[float, float]:
    """What `better` loses under the patterns of spikes that `worse` has, each at its share."""
    names, rows = list(found), len(case.better)
    at = np.stack([_is(case.columns[name].sides["worse"], found[name].value) for name in names], axis=1)
    patterns, counts = np.unique(at, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_PATTERNS]
    versions, shares = [case.scoring.base("better")], [0.0]
    for pattern, count in zip(patterns[order], counts[order], strict=True):
        struck = [name for name, one in zip(names, pattern, strict=True) if one]
        if struck:
            # Part of the rows has the value by nature; those are not broken.
            new = float(np.mean([found[name].rate / found[name].after for name in struck]))
            values: dict[str, Floats] = {name: np.full(rows, found[name].value) for name in struck}
            versions.append(case.scoring.changed("better", values))
            shares.append(min(1.0, new) * float(count) / len(case.worse))
    shares[0] = max(0.0, 1 - sum(shares))
    return case.lost("better", versions, shares)


def _is(values: Floats, value: float) -> np.typing.NDArray[np.bool_]:
    return np.asarray(np.isnan(values) if math.isnan(value) else values == value)
