"""The specs of everything that the monitor reports as a number, in the order in which they are shown."""

from __future__ import annotations

from functools import cache
from typing import Final

from monitor.anomalies.specs import BAND_SPECS, OF_SERIES
from monitor.experiments.specs import EXPERIMENT_SPECS
from monitor.forecast.specs import FORECAST_SPECS
from monitor.health.specs import HEALTH_SPECS
from monitor.metrics.catalogue import SPECS
from monitor.metrics.exported import RECOMMENDER, ExportedFamily, metric_families
from monitor.metrics.family import MetricSpec
from monitor.models.feature_specs import FEATURE_SPECS
from monitor.models.specs import MODEL_SPECS
from monitor.platform.specs import PLATFORM_SPECS

ALL_SPECS: dict[str, MetricSpec] = (
    SPECS
    | EXPERIMENT_SPECS
    | MODEL_SPECS
    | FEATURE_SPECS
    | HEALTH_SPECS
    | BAND_SPECS
    | PLATFORM_SPECS
    | FORECAST_SPECS
)

DETECTABLE: Final = ExportedFamily(
    "recsys_detectable_change_ratio",
    "Smallest relative change of a metric, up or down, that takes it out of its band. Not by slice.",
    (RECOMMENDER, *OF_SERIES),
    "ratio",
)


@cache
def optional_families() -> dict[str, ExportedFamily]:
    """The families of /metrics that `server.export` chooses from, by name. All others are always exported."""
    return {family.name: family for family in (DETECTABLE, *metric_families(ALL_SPECS.values()))}
