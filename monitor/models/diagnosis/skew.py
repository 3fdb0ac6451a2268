"""Serving skew with pairs of requests: features logged online against features joined offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.models.diagnosis.case import NAMED, Case, Claim, called, finding_of, number, shown
from monitor.models.diagnosis.columns import Column
from monitor.models.diagnosis.repair import with_offline
from monitor.models.diagnosis.sample import Pairs
from monitor.models.diagnosis.strong import telling_alone
from monitor.statistics.counts import Floats

CAUSE = "serving_skew"
KINDS = ("missing", "default", "stale", "different")
_EVERY = 0.9
"""A feature that differs on this share of the pairs is plain evidence, whatever its share of the gap."""
_SINGLES = 40
"""Features whose effect is measured one by one, those that differ most."""
_MOSTLY = 0.8
"""Share of the wrong values that must be of one kind to name the kind."""


class Skew(NamedTuple):
    """How a feature differs between online and offline."""

    rate: float
    """Share of the pairs on which it differs."""
    kind: str
    """One of `KINDS`: the kind of most wrong values."""
    wrong: NDArray[np.bool_]


def serving_skew(case: Case, owned: frozenset[str]) -> Claim:
    """Features that differ between a request as served and as joined offline.

    Share: the gain of AUC online if the offline values replace them.
    """
    if case.pairs is None or len(case.pairs.online) == 0:
        return Claim()
    skews = {}
    for name, column in case.columns.items():
        if name in owned or not {"online", "offline"} <= column.sides.keys():
            continue
        found = skew_of(column, case.pairs, case.settings.tolerance)
        if found.rate > case.settings.mismatch:
            skews[name] = found
    if not skews:
        return Claim()
    widest = sorted(skews, key=lambda name: (-skews[name].rate, name))[:_SINGLES]
    single = {name: with_offline(case, (name,))[0] for name in widest}
    guilty = tuple(sorted(skews, key=lambda name: (-single.get(name, 0.0), name)))
    won, error = with_offline(case, guilty)
    estimate = case.estimate(won, error, "online")
    plain = [name for name in guilty if skews[name].rate >= _EVERY]
    if estimate is None and not plain:
        return Claim(frozenset(guilty))
    if estimate is None:
        guilty = tuple(plain)
    how = "; ".join(
        f"{shown([name])} {skews[name].kind} on {skews[name].rate:.1%} of the requests" for name in guilty[:3]
    )
    cost = (
        f"With the offline values online AUC is {won:.3f} higher, {estimate.text}."
        if estimate
        else f"{number(guilty, 'Its', 'Their')} share of the gap is unknown: the offline values change AUC "
        f"by {won:.3f} (error {error:.3f}), too little or too uncertain for a share."
    )
    finding = finding_of(
        CAUSE,
        estimate,
        guilty,
        f"Served values differ from the offline ones: {how}. {cost}",
        _ADVICE[skews[guilty[0]].kind]
        + _of_the_future(case, [name for name in guilty[:3] if skews[name].kind == "different"]),
        [
            *(
                {
                    "feature": name,
                    "mismatch": skews[name].rate,
                    "kind": skews[name].kind,
                    "auc_won": single.get(name),
                }
                for name in guilty[:NAMED]
            ),
            *_rows(case, case.pairs, guilty, skews),
        ],
    )
    return Claim(frozenset(skews), won, finding, plain=True)


def _of_the_future(case: Case, guilty: Sequence[str]) -> str:
    """Advice about a feature with so high an AUC alone that its offline value may come from the future."""
    for name in guilty:
        found = telling_alone(case, name)
        if found is not None and found >= case.settings.single_auc:
            return (
                f" Alone {shown([name])} has AUC {found:.3f} in the better split: make sure that its "
                "offline value was known at the moment of the request."
            )
    return ""


_ADVICE = {
    "missing": "Find why the feature does not arrive online: a failed lookup, a timeout, another key.",
    "default": "Find why the default is served: a failed lookup, a timeout, another key.",
    "stale": "Refresh the feature online as often as it is offline, or train on values as old as those.",
    "different": "Make one piece of code compute the feature online and offline; compare units and zones.",
}


def skew_of(column: Column, pairs: Pairs, tolerance: float) -> Skew:
    """On how many pairs the feature differs, and how.

    A wrong value is missing online only, a default (nearly all wrong values are one value), stale (its own
    time is older, or the same entity had this value offline at an earlier time), or different.
    """
    wrong = column.differs(tolerance)
    count = int(wrong.sum())
    if count == 0:
        return Skew(0.0, "different", wrong)
    values = column.sides["online"][wrong]
    missing = np.isnan(values)
    most = np.unique(values[~missing], return_counts=True)[1].max(initial=0)
    stale = _stale(column, pairs, wrong)
    rates = {
        "missing": float(missing.mean()),
        "stale": float(stale[wrong].mean()),
        "default": float(most / count),
    }
    kind = next((one for one in ("missing", "default", "stale") if rates[one] >= _MOSTLY), "different")
    return Skew(float(wrong.mean()), kind, wrong)


def _stale(column: Column, pairs: Pairs, wrong: NDArray[np.bool_]) -> NDArray[np.bool_]:
    own, joined = pairs.online.feature_times.get(column.name), pairs.offline_times.get(column.name)
    if own is not None and joined is not None:
        return np.asarray(wrong & (np.asarray(own) < np.asarray(joined)))
    times = pairs.online.times
    found = np.zeros(len(wrong), np.bool_)
    if times is not None:
        for entity in pairs.online.entities.values():
            known = np.array([one is not None for one in entity], np.bool_)
            online, offline = column.sides["online"][known], column.sides["offline"][known]
            # Rows without a user are not the rows of one user, who would have had nearly every value before.
            found[known] |= _had_before(entity[known], online, offline, times[known])
    return found & wrong


def _had_before(entity: NDArray[Any], online: Floats, offline: Floats, times: Floats) -> NDArray[np.bool_]:
    """Rows whose online value the same entity had offline, on a row of an earlier time."""
    level = {one: at for at, one in enumerate(set(entity.tolist()))}
    who = np.fromiter(map(level.__getitem__, entity.tolist()), np.int64, len(entity))
    values, at = np.unique(np.concatenate([online, offline]), return_inverse=True)
    served, joined = (who * len(values) + half for half in np.split(at, 2))
    keys, key_at = np.unique(np.concatenate([served, joined]), return_inverse=True)
    first = np.full(len(keys), np.inf)
    np.minimum.at(first, key_at[len(online) :], np.where(np.isnan(times), np.inf, times))
    return np.asarray(first[key_at[: len(online)]] < times)


def _rows(
    case: Case, pairs: Pairs, guilty: tuple[str, ...], skews: Mapping[str, Skew]
) -> list[dict[str, Any]]:
    rows = []
    for name in guilty[:3]:
        column = case.columns[name]
        rows += [
            {
                "id": called(pairs.online, at),
                "feature": name,
                "online": column.plain(column.sides["online"][at]),
                "offline": column.plain(column.sides["offline"][at]),
            }
            for at in np.flatnonzero(skews[name].wrong)[:5].tolist()
        ]
    return rows
