"""Compares each feature and the scores in service with those of train and test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import ibis
import ibis.expr.types as ir

from monitor.core.columns import MODEL, ONLINE, SCORE, SPLIT, TEST, TRAIN
from monitor.core.results import Result
from monitor.metrics.plans import ASK_ONCE, Ask, Build, Records
from monitor.models.feature_profile import (
    Comparison,
    FeatureProfile,
    bins_of,
    compare,
    profiles,
    with_values,
)
from monitor.models.feature_skew import Pairing, Skew, measure_skew, rows_of
from monitor.models.feature_specs import distance_results, score_results, skew_results
from monitor.models.samples import SampleTables
from monitor.models.sampling import features_of
from monitor.models.specs import Pair
from monitor.models.split_results import SIDES
from monitor.settings.recommender import RecommenderSettings


@dataclass(slots=True)
class ProfileCache:
    """Profiles of the features and scores of train and test, by model, until their files change."""

    features: dict[str, tuple[FeatureProfile, ...]] = field(default_factory=dict)
    scores: dict[tuple[str, str, str], FeatureProfile] = field(default_factory=dict)  # over the bins of


def features_in_service(
    model: str,
    rows: SampleTables,
    kept: ProfileCache,
    settings: RecommenderSettings,
    ask: Ask = ASK_ONCE,
) -> Iterator[Result]:
    """The distance of each feature from train, and its skew against the offline join.

    `ask` runs the queries of the online rows; those of train and test are asked once.
    """
    if rows.online is None:
        return
    online = rows.online.filter(rows.online[MODEL] == model)
    metrics, models = settings.metrics, settings.models
    known = _profiled(model, rows, kept, settings)
    ask = _named(ask, model)
    if known:
        served = _with(online, [one.feature for one in known])
        yield from distance_results(_compared(known, served, models.budget, ask), metrics, models, model)
    elif rows.reference is not None:
        yield from distance_results([], metrics, models, model)
    yield from skew_results(_skew(online, rows.offline_of(model), settings, ask), metrics, models, model)


def _named(ask: Ask, prefix: str) -> Ask:
    """The same, with a prefix to the name of each query."""

    def answer(name: str, build: Build) -> Records:
        return ask(f"{prefix}: {name}", build)

    return answer


def _compared(known: Sequence[FeatureProfile], online: ir.Table, most: int, ask: Ask) -> list[Comparison]:
    """Each feature compared with its reference; the farthest, which are shown, with their values."""
    plain = profiles(online, [one.bins for one in known], described=False, ask=ask)
    found = {one.feature: compare(one, other) for one, other in zip(known, plain, strict=True)}
    far = sorted(found.values(), key=lambda one: -(one.jensen_shannon or 0.0))[:most]
    found |= {one.feature: replace(one, current=with_values(online, one.current, ask)) for one in far}
    return list(found.values())


def _profiled(
    model: str, rows: SampleTables, kept: ProfileCache, settings: RecommenderSettings
) -> tuple[FeatureProfile, ...]:
    if model not in kept.features:
        found: tuple[FeatureProfile, ...] = ()
        if rows.reference is not None:
            own = _of(rows.reference, model, TRAIN)
            if not int(own.count().to_pyarrow().as_py()):
                own = _of(rows.reference, model, TEST)
            if names := features_of((own,), settings.models):
                found = profiles(own, bins_of(own, names))
        kept.features[model] = found  # only now: a failure is one in each window, and not for once
    return kept.features[model]


def scores_of_pairs(
    model: str,
    pairs: Iterable[Pair],
    rows: SampleTables,
    kept: ProfileCache,
    settings: RecommenderSettings,
    ask: Ask = ASK_ONCE,
) -> Iterator[Result]:
    """The distance of the scores between splits, for pairs with rows on both sides; `ask` as above."""
    for pair in pairs:
        better, worse = SIDES[pair]
        base = _scores(model, better, better, rows, kept, ask)
        found = None if base is None else _scores(model, worse, better, rows, kept, ask)
        if base is not None and found is not None:
            yield from score_results(compare(base, found), settings.metrics, settings.models, pair, model)


def _scores(
    model: str, split: str, bins_from: str, rows: SampleTables, kept: ProfileCache, ask: Ask
) -> FeatureProfile | None:
    """The profile of a split's scores over the bins of the split `bins_from`."""
    key = (model, split, bins_from)
    if key in kept.scores:
        return kept.scores[key]
    table = rows.online if split == ONLINE else rows.reference
    if table is None:
        return None
    own = _of(table, model, split)
    base = kept.scores.get((model, bins_from, bins_from))
    (bins,) = (base.bins,) if base is not None else bins_of(own, [SCORE])
    of_scores = _named(ask, f"scores of {model}, bins of {bins_from}") if split == ONLINE else ASK_ONCE
    (found,) = profiles(own, [bins], described=False, ask=of_scores)
    if split != ONLINE:
        kept.scores[key] = found
    return found


def _of(table: ir.Table, model: str, split: str) -> ir.Table:
    return table.filter(table[MODEL] == model, table[SPLIT] == split)


def _with(rows: ir.Table, names: Sequence[str]) -> ir.Table:
    """The rows with all of these columns; a missing column becomes null."""
    return rows.mutate(**{name: ibis.null("float64") for name in names if name not in rows.columns})


def _skew(online: ir.Table, offline: ir.Table | None, settings: RecommenderSettings, ask: Ask) -> Skew:
    models = settings.models
    if offline is None:
        return Skew(Pairing((), rows_of(ask, "online rows", online), 0), ())
    names = features_of((offline,), models)
    served = _with(online, names)
    times = {
        name: at
        for name, at in models.feature_times.items()
        if at in served.columns and at in offline.columns
    }
    return measure_skew(
        served, offline, names, models.pair_by, tolerance=models.diagnosis.tolerance, times=times, ask=ask
    )
