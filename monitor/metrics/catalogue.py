"""The families of metrics, in the order in which they are shown. `monitor.catalogue` adds all other specs.

Families that need feedback are measured later than the others: when the actions have come in.
"""

from __future__ import annotations

from typing import Final

from monitor.metrics.exposure.answers import Answers, EverShown, Latency
from monitor.metrics.exposure.category_entropy import CategoryEntropy
from monitor.metrics.exposure.concentration import Concentration, Gini, MatthewEffect
from monitor.metrics.exposure.coverage import ItemCoverage, ListCoverage
from monitor.metrics.exposure.diversity import IntraListDiversity
from monitor.metrics.exposure.importance import Importance
from monitor.metrics.exposure.novelty import Novelty, Popularity
from monitor.metrics.exposure.personalization import Personalization
from monitor.metrics.exposure.score_health import ScoreHealth
from monitor.metrics.exposure.update_rate import DayRate, RefreshRate
from monitor.metrics.exposure.volume import CatalogSize, Volume
from monitor.metrics.family import AddsUp, Family, MetricSpec
from monitor.metrics.feedback.action_rates import ActionRates
from monitor.metrics.feedback.action_values import ActionValue, Completion
from monitor.metrics.feedback.action_volume import ActionVolume
from monitor.metrics.feedback.attribution_health import AttributionHealth
from monitor.metrics.feedback.busy_users import BusyUsers
from monitor.metrics.feedback.item_to_item import ItemToItem
from monitor.metrics.feedback.ranking import Ranking
from monitor.metrics.feedback.serendipity import Serendipity
from monitor.metrics.scores.auc import Auc
from monitor.metrics.scores.calibration import Calibration
from monitor.metrics.scores.rating import Rating
from monitor.metrics.scores.user_auc import UserAuc

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
    Latency(),
    Answers(),
    EverShown(),
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

EXPOSURE_CHECK: Final = "exposure"
"""The name of the check that measures the families of exposures."""
FEEDBACK_CHECK: Final = "feedback"

FEEDBACK_FAMILIES = tuple(family for family in FAMILIES if "feedback" in family.needs)
EXPOSURE_FAMILIES = tuple(family for family in FAMILIES if family not in FEEDBACK_FAMILIES)

SPECS: dict[str, MetricSpec] = {spec.name: spec for family in FAMILIES for spec, _ in family.outputs}


def adds_up(metric: str, by: str = "") -> AddsUp | None:
    """How a metric of several windows follows from what each keeps; None if it needs the rows of the log.

    >>> adds_up("coverage", "uv") is not None, adds_up("user_auc") is not None
    (True, False)
    """
    for family in FAMILIES:
        for spec, values in family.outputs:
            if spec.name == metric and by in (values or ("",)):
                found = family.adds_up
                return None if found is None or (metric, by) in found.without else found
    return None
