"""The one table that declares every metric of exposure health, in the order in which they are shown."""

from __future__ import annotations

from monitor.metrics.category_entropy import CATEGORY_ENTROPY, UNKNOWN_CATEGORY, CategoryEntropy
from monitor.metrics.concentration import (
    GINI,
    GINI_EXPOSED,
    MATTHEW_EFFECT,
    POPULARITY_SHARE,
    Concentration,
    Gini,
    MatthewEffect,
)
from monitor.metrics.coverage import COVERAGE, FAILURE, UNKNOWN_ITEMS, ItemCoverage, ListCoverage
from monitor.metrics.diversity import INTRA_LIST_DIVERSITY, IntraListDiversity
from monitor.metrics.family import Family, MetricSpec
from monitor.metrics.importance import EFFECTIVE_SAMPLE_SIZE, IMPORTANCE_WEIGHT, LOW_PROPENSITY, Importance
from monitor.metrics.novelty import AVERAGE_POPULARITY, NOVELTY, SELF_INFORMATION, Novelty, Popularity
from monitor.metrics.personalization import PERSONALIZATION, Personalization
from monitor.metrics.score_health import SCORE_HEALTH, ScoreHealth
from monitor.metrics.serendipity import SERENDIPITY, Serendipity
from monitor.metrics.update_rate import UPDATE_RATE, DayRate, RefreshRate

FAMILIES: tuple[Family, ...] = (
    ListCoverage(),
    ItemCoverage(),
    RefreshRate(),
    DayRate(),
    Gini(),
    Concentration(),
    MatthewEffect(),
    CategoryEntropy(),
    IntraListDiversity(),
    Personalization(),
    Novelty(),
    Popularity(),
    Serendipity(),
    ScoreHealth(),
    Importance(),
)

SPECS: dict[str, MetricSpec] = {
    spec.name: spec
    for spec in (
        COVERAGE,
        UNKNOWN_ITEMS,
        FAILURE,
        UPDATE_RATE,
        GINI,
        GINI_EXPOSED,
        MATTHEW_EFFECT,
        CATEGORY_ENTROPY,
        UNKNOWN_CATEGORY,
        INTRA_LIST_DIVERSITY,
        PERSONALIZATION,
        NOVELTY,
        SELF_INFORMATION,
        AVERAGE_POPULARITY,
        SERENDIPITY,
        POPULARITY_SHARE,
        SCORE_HEALTH,
        IMPORTANCE_WEIGHT,
        EFFECTIVE_SAMPLE_SIZE,
        LOW_PROPENSITY,
    )
}
