"""What is asked for one recommender: its logs, when to look, which rules, metrics, slices and objectives."""

from __future__ import annotations

from pydantic import Field, model_validator

from monitor.expectations.settings import RuleSettings
from monitor.logs.settings import LogsSettings, TimeSettings
from monitor.metrics.experiment_settings import ExperimentSettings
from monitor.metrics.settings import MetricSettings
from monitor.settings import Duration, Name, Settings


class SliceSettings(Settings):
    """By which columns of the exposures the metrics are repeated, and how many values each may show."""

    by: tuple[str, ...] = Field((), description="columns of the exposures, such as scene, model or arm")
    budget: int = Field(10, ge=1, le=200, description="the values with most rows; the rest is `other`")


class Objective(Settings):
    """A bound on a metric. It is violated only where the whole interval lies beyond the bound."""

    metric: str
    labels: dict[str, str] = Field(default_factory=dict, description="which series, for example {by: pv}")
    min: float | None = Field(None, allow_inf_nan=False)
    max: float | None = Field(None, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_one_bound(self) -> Objective:
        if (self.min is None) == (self.max is None):
            raise ValueError("an objective has exactly one of min and max; write two objectives for a band")
        return self


class EvidenceSettings(Settings):
    """How much of a violation is kept."""

    rows: int = Field(20, ge=1, le=1000)
    hash_users: bool = True


class RecommenderSettings(TimeSettings):
    """One recommender."""

    name: Name
    logs: LogsSettings
    every: Duration = Field("1m", description="how often the logs are looked at")  # type: ignore[assignment]
    deadline: Duration = Field("5m", description="a check that takes longer is interrupted")  # type: ignore[assignment]
    rules: tuple[RuleSettings, ...] = ()
    metrics: MetricSettings = MetricSettings()
    slices: SliceSettings = SliceSettings()
    objectives: tuple[Objective, ...] = ()
    experiments: tuple[ExperimentSettings, ...] = Field((), max_length=20)
    evidence: EvidenceSettings = EvidenceSettings()
