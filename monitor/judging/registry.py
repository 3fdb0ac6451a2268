"""The one list of checks. To add a check: its file, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from monitor.anomalies.band_check import BandCheck
from monitor.anomalies.drift_check import DriftCheck
from monitor.core.columns import EXPOSURES, FEEDBACK, SAMPLES
from monitor.experiments.arms_check import ArmsCheck
from monitor.experiments.split_check import SplitCheck
from monitor.forecast.check import ForecastCheck
from monitor.health.score import HealthCheck
from monitor.judging.log_check import LogCheck
from monitor.judging.metrics_check import ExposureMetrics, FeedbackMetrics
from monitor.logs.windows import PARTS, Part
from monitor.models.check import ModelsCheck
from monitor.platform.platform_check import PlatformCheck
from monitor.rollups.check import RollupCheck
from monitor.rules.check import RuleCheck
from monitor.window.check import HISTORY, Check, Recommender

CHECKS: Final[tuple[type[Check[Any]], ...]] = (
    LogCheck,
    RuleCheck,
    ExposureMetrics,
    SplitCheck,
    FeedbackMetrics,
    ArmsCheck,
    ModelsCheck,
    BandCheck,
    DriftCheck,
    PlatformCheck,
    RollupCheck,
    ForecastCheck,
    HealthCheck,
)
"""In the order in which they run. A check of the history is named after the check that it follows."""

CHECKS_OF: Final[Mapping[Part, tuple[str, ...]]] = {
    part: tuple(one.name for one in CHECKS if one.part == part) for part in PARTS
}
MARKERS: Final[Mapping[Part, str]] = {
    EXPOSURES: LogCheck.name,
    FEEDBACK: FeedbackMetrics.name,
    SAMPLES: ModelsCheck.name,
}
"""The check whose stored run marks each part of a window as judged."""


def checks_of(recommender: Recommender) -> tuple[Check[Any], ...]:
    """Every check that the config of the recommender asks for."""
    return tuple(check for kind in CHECKS for check in kind.of(recommender))


def of_history(checks: tuple[Check[Any], ...]) -> tuple[Check[Any], ...]:
    """The checks that read only the history."""
    return tuple(one for one in checks if one.part == HISTORY)
