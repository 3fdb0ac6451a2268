"""Features that alone tell the label too well, and only in the better split."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.diagnosis.area import Ranking
from monitor.diagnosis.case import Case
from monitor.diagnosis.population import furthest, moved_axes, raked
from monitor.statistics.counts import Floats

_SHRUNK = 10.0
_TELLING = 0.55
"""A feature that alone has this AUC in `better` tells something that can be lost."""
_WORSE_THAN_OTHERS = 0.6
"""Of what the other features have kept: one that has kept more has lost it with all of them."""


class Alone(NamedTuple):
    """What one feature tells alone."""

    before: float
    """Its AUC in `better`."""
    mixed: float
    """Its AUC in `better` at the mix of `worse`."""
    after: float
    """Its AUC in `worse`."""

    @property
    def kept(self) -> float:
        return (self.after - 0.5) / max(self.mixed - 0.5, 1e-9)


def too_strong(case: Case) -> dict[str, tuple[float, float]]:
    """Features that alone have a high AUC in `better` and have lost it in `worse`: their AUC in both.

    Others lose theirs for other reasons, and are left out: those whose spread or whose rows have changed
    (they have lost it in `better` too, at the mix of `worse`), and those that have lost no more than the
    features beside them, as where users have changed their minds. With none beside them that cannot be told.
    """
    every = {name: found for name in case.columns if (found := _alone(case, name, None)) is not None}
    telling = {name: one for name, one in every.items() if one.before >= _TELLING}
    bounds = case.settings
    suspects = {
        name: one
        for name, one in telling.items()
        if one.before >= bounds.single_auc > one.after
        and one.mixed - one.after > bounds.single_drop
        and not _is_older_copy(case, name)
    }
    others = [one.kept for name, one in telling.items() if name not in suspects]
    if not suspects or not others:
        return {}
    axes = furthest(moved_axes(case, frozenset(suspects)))
    weights = raked([(axis.codes, axis.target) for axis in axes]) if axes else None
    guilty = {}
    for name, one in suspects.items():
        mixed = one if weights is None else _alone(case, name, weights) or one
        lost = min(one.mixed, mixed.mixed) - one.after
        kept = max(one.kept, mixed.kept)
        if lost > bounds.single_drop and kept < _WORSE_THAN_OTHERS * float(np.median(others)):
            guilty[name] = (one.before, one.after)
    return guilty


def _alone(case: Case, name: str, weights: Floats | None) -> Alone | None:
    """A value is scored by the label rate of its bin in `better`; None where there is too little to go by.

    Bins that `worse` has much more of are left out: they are a default, not a feature that knows less.

    Args:
        case: the gap.
        name: the feature.
        weights: one a row of `better`, for what else has moved; None for 1 each.
    """
    if not case.columns[name].varies("worse"):
        return None
    rows, positives, worse_rows, worse_positives = case.rates(name, weights)
    rate = (positives + _SHRUNK * positives.sum() / rows.sum()) / (rows + _SHRUNK)
    share, worse_share = rows / rows.sum(), worse_rows / worse_rows.sum()
    same = (rows > 0) & ~((worse_share - share > case.settings.spike) & (worse_share > 2 * share))
    if worse_rows[same].sum() < case.settings.least_rows:
        return None
    mix = np.where(same, worse_rows / np.where(rows > 0, rows, 1.0), 0.0)
    before = _table_auc(rate, rows, positives)
    mixed = _table_auc(rate, rows * mix, positives * mix)
    after = _table_auc(rate, worse_rows * same, worse_positives * same)
    return None if before is None or mixed is None or after is None else Alone(before, mixed, after)


def _table_auc(rate: Floats, rows: Floats, positives: Floats) -> float | None:
    labels = np.repeat([1, 0], len(rate))
    # Sums of weights may differ by rounding where all of a bin are positives.
    found = Ranking(np.tile(rate, 2), labels).area(
        np.concatenate([positives, np.maximum(rows - positives, 0)])
    )
    return found and found.auc


def _is_older_copy(case: Case, name: str) -> bool:
    """Whether the pairs' own times say that the offline value was known, and the online one is older."""
    if case.pairs is None or case.pairs.online.times is None:
        return False
    offline, online = case.pairs.offline_times.get(name), case.pairs.online.feature_times.get(name)
    if offline is None or online is None:
        return False
    known = np.asarray(offline) <= case.pairs.online.times
    return float(np.mean(known)) > 1 - case.settings.future and bool(np.any(np.asarray(online) < offline))
