"""The one table that declares every metric, in the order in which they are shown.

Those that need feedback are measured later than the others: when the actions have come in.
"""

from __future__ import annotations

from monitor.metrics.action_rates import ActionRates
from monitor.metrics.action_values import ActionValue, Completion
from monitor.metrics.action_volume import ActionVolume
from monitor.metrics.attribution_health import AttributionHealth
from monitor.metrics.auc import Auc
from monitor.metrics.band_specs import BAND_SPECS
from monitor.metrics.busy_users import BusyUsers
from monitor.metrics.calibration import Calibration
from monitor.metrics.category_entropy import CategoryEntropy
from monitor.metrics.concentration import (
    Concentration,
    Gini,
    MatthewEffect,
)
from monitor.metrics.coverage import ItemCoverage, ListCoverage
from monitor.metrics.diversity import IntraListDiversity
from monitor.metrics.experiment_specs import EXPERIMENT_SPECS
from monitor.metrics.family import Family, MetricSpec
from monitor.metrics.feature_specs import FEATURE_SPECS
from monitor.metrics.health_specs import HEALTH_SPECS
from monitor.metrics.importance import Importance
from monitor.metrics.item_to_item import ItemToItem
from monitor.metrics.model_specs import MODEL_SPECS
from monitor.metrics.novelty import Novelty, Popularity
from monitor.metrics.personalization import Personalization
from monitor.metrics.ranking import Ranking
from monitor.metrics.rating import Rating
from monitor.metrics.score_health import ScoreHealth
from monitor.metrics.serendipity import Serendipity
from monitor.metrics.update_rate import DayRate, RefreshRate
from monitor.metrics.user_auc import UserAuc
from monitor.metrics.volume import CatalogSize, Volume

FAMILIES: tuple[Family, ...] = (
    Volume(),
    CatalogSize(),
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
    ActionVolume(),
    AttributionHealth(),
    Ranking(),
    ItemToItem(),
    Auc(),
    UserAuc(),
    Calibration(),
    Rating(),
    ActionRates(),
    BusyUsers(),
    ActionValue(),
    Completion(),
)

FEEDBACK_FAMILIES = tuple(family for family in FAMILIES if "feedback" in family.needs)
EXPOSURE_FAMILIES = tuple(family for family in FAMILIES if family not in FEEDBACK_FAMILIES)

SPECS: dict[str, MetricSpec] = {spec.name: spec for family in FAMILIES for spec, _ in family.outputs}
# What is told of experiments, of models, of health and of the past is of no family.
ALL_SPECS: dict[str, MetricSpec] = (
    SPECS | EXPERIMENT_SPECS | MODEL_SPECS | FEATURE_SPECS | HEALTH_SPECS | BAND_SPECS
)
