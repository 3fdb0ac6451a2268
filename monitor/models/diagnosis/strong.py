"""Features that alone predict the label too well, and only in the better split."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.models.diagnosis.area import Ranking
from monitor.models.diagnosis.case import Case
from monitor.models.diagnosis.columns import Column, read_column
from monitor.models.diagnosis.population import furthest, moved_axes, raked
from monitor.statistics.counts import Floats

_SHRUNK = 10.0
_TELLING = 0.55
"""A feature with this AUC alone in `better` has something to lose."""
_SHARED = 0.25
"""The least overlap of every feature's distributions for the splits to be comparable."""
_WORSE_THAN_OTHERS = 0.6
"""A suspect must keep less than this times what the other features keep of their AUC."""


class Alone(NamedTuple):
    """The AUC of one feature alone."""

    before: float
    """In `better`."""
    mixed: float
    """In `better`, weighted to the mix of `worse`."""
    after: float
    """In `worse`."""

    @property
    def kept(self) -> float:
        return (self.after - 0.5) / max(self.mixed - 0.5, 1e-9)


def too_strong(case: Case, owned: frozenset[str]) -> dict[str, tuple[float, float]]:
    """Features that alone have a high AUC in `better`, but not in `worse`: their AUC in both.

    Features that lost their AUC for other reasons are left out: their spread or their rows have changed (then
    they lose it in `better` too, at the mix of `worse`), they lost no more than the other features (users
    behave differently), or pairs show that they are served wrong. Nothing is found if there is no other
    feature to compare with, or if the rows have moved to values that `better` hardly has.
    """
    every = {
        name: found
        for name in case.columns
        if name not in owned and (found := _alone(case, name, None)) is not None
    }
    telling = {name: one for name, one in every.items() if one.before >= _TELLING}
    bounds = case.settings
    suspects = {
        name: one
        for name, one in telling.items()
        if one.before >= bounds.single_auc > one.after
        and one.mixed - one.after > bounds.single_drop
        and not _is_older_copy(case, name)
        and not _is_served_wrong(case, name)
    }
    others = [one.kept for name, one in telling.items() if name not in suspects]
    if not suspects or not others or _rows_have_moved(case, owned):
        return {}
    axes = furthest(moved_axes(case, owned | frozenset(suspects), "better"))
    weights = raked([(axis.codes, axis.target) for axis in axes]) if axes else None
    guilty = {}
    for name, one in suspects.items():
        mixed = one if weights is None else _alone(case, name, weights) or one
        lost = min(one.mixed, mixed.mixed) - one.after
        kept = max(one.kept, mixed.kept)
        if lost > bounds.single_drop and kept < _WORSE_THAN_OTHERS * float(np.median(others)):
            guilty[name] = (one.before, one.after)
    return guilty


def telling_alone(case: Case, name: str) -> float | None:
    """The AUC in `better` of the label rates by bin of this feature; None if it cannot be computed."""
    return _crossed_auc(case, name, np.ones(len(case.better)), None)


def _rows_have_moved(case: Case, owned: frozenset[str]) -> bool:
    """Whether some feature has moved to new values, so that no row of `worse` resembles one of `better`.

    A feature that also moved between training and test, such as a date, does not count. A value of most rows
    is a default, and does not count either.
    """
    for name, column in case.columns.items():
        if name in owned or not column.varies("worse"):
            continue
        values, counts = np.unique(column.sides["worse"], return_counts=True)
        if not values.size or counts.max() > len(case.worse) / 2:
            continue
        rows, _, worse_rows, _ = case.rates(name)
        if _overlap(rows, worse_rows) < _SHARED and not _always_moves(case, column):
            return True
    return False


def _overlap(one: Floats, other: Floats) -> float:
    """The overlap of two distributions, from 0 to 1."""
    return float(np.minimum(one / max(one.sum(), 1), other / max(other.sum(), 1)).sum())


def _always_moves(case: Case, column: Column) -> bool:
    if case.train is None or column.name not in case.train.features:
        return False
    sides = {"train": case.train.features[column.name], "test": column.original(column.sides["better"])}
    both = read_column(column.name, sides)
    edges = np.unique(np.nanquantile(np.concatenate(list(both.sides.values())), np.arange(1, 24) / 24))
    codes = [np.searchsorted(edges, both.sides[side]) for side in sides]
    return _overlap(*(np.bincount(one, minlength=len(edges) + 1).astype(np.float64) for one in codes)) < 0.5


def _alone(case: Case, name: str, weights: Floats | None) -> Alone | None:
    """The AUC of a feature if each value is scored by the label rate of its bin in `better`; None if rows are
    few.

    Bins that are much more frequent in `worse` are left out: they hold a default. A row of `better` is scored
    by the rates of the other half of the rows, so that a few labels do not look predictive.

    Args:
        case: the gap.
        name: the feature.
        weights: of the rows of `better`, to match other changes; None for 1 each.
    """
    if not case.columns[name].varies("worse"):
        return None
    rows, positives, worse_rows, worse_positives = case.rates(name, weights)
    share, worse_share = rows / rows.sum(), worse_rows / worse_rows.sum()
    same = (rows > 0) & ~((worse_share - share > case.settings.spike) & (worse_share > 2 * share))
    if worse_rows[same].sum() < case.settings.least_rows:
        return None
    mix = np.where(same, worse_rows / np.where(rows > 0, rows, 1.0), 0.0)
    own = np.ones(len(case.better)) if weights is None else weights
    before = _crossed_auc(case, name, own, None)
    mixed = _crossed_auc(case, name, own, mix)
    after = _table_auc(_rate(rows, positives), worse_rows * same, worse_positives * same)
    return None if before is None or mixed is None or after is None else Alone(before, mixed, after)


def _rate(rows: Floats, positives: Floats) -> Floats:
    return np.asarray((positives + _SHRUNK * positives.sum() / max(rows.sum(), 1.0)) / (rows + _SHRUNK))


def _crossed_auc(case: Case, name: str, weights: Floats, mix: Floats | None) -> float | None:
    """The mean AUC of two halves, each scored by the rates of the other; `mix` has weights of the bins."""
    codes, size = case.binned.codes("better", name), case.bins[name].size
    # Halves by the order of the scores, so that the order of the rows in the log does not matter.
    half = np.empty(len(codes), np.int64)
    half[np.argsort(case.better.scores, kind="stable")] = np.arange(len(codes)) % 2
    tables = []
    for one in (0, 1):
        own = weights * (half == one)
        tables.append(
            tuple(
                np.bincount(codes, one_row, size).astype(np.float64)
                for one_row in (own, own * case.better.labels)
            )
        )
    found = []
    weigh = np.ones(size) if mix is None else mix
    for (rows, positives), (its_rows, its_positives) in (tables, tables[::-1]):
        found.append(_table_auc(_rate(its_rows, its_positives), rows * weigh, positives * weigh))
    known = [one for one in found if one is not None]
    return sum(known) / len(known) if known else None


def _is_served_wrong(case: Case, name: str) -> bool:
    """Whether pairs show that the served values differ from the offline values."""
    column = case.columns[name]
    if not {"online", "offline"} <= column.sides.keys():
        return False
    wrong = column.differs(case.settings.tolerance)
    return bool(wrong.size and wrong.mean() > case.settings.mismatch)


def _table_auc(rate: Floats, rows: Floats, positives: Floats) -> float | None:
    labels = np.repeat([1, 0], len(rate))
    # Sums of weights may differ by rounding if all rows of a bin are positive.
    found = Ranking(np.tile(rate, 2), labels).area(
        np.concatenate([positives, np.maximum(rows - positives, 0)])
    )
    return found and found.auc


def _is_older_copy(case: Case, name: str) -> bool:
    """Whether the times of the pairs show that the offline value was known and the online value is older."""
    if case.pairs is None or case.pairs.online.times is None:
        return False
    offline, online = case.pairs.offline_times.get(name), case.pairs.online.feature_times.get(name)
    if offline is None or online is None:
        return False
    known = np.asarray(offline) <= case.pairs.online.times
    return float(np.mean(known)) > 1 - case.settings.future and bool(np.any(np.asarray(online) < offline))
