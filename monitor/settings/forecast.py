"""The settings of the forecast: which business metric is predicted from which offline metrics."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, model_validator

from monitor.core.settings import Name, Settings

IncidentKind = Literal["anomaly", "drift", "rule", "log"]
INCIDENTS: Final[tuple[IncidentKind, ...]] = ("anomaly", "drift", "rule", "log")


class SeriesSettings(Settings):
    """One series: a metric and its labels."""

    metric: str = Field(description="a metric of docs/metrics")
    labels: dict[str, str] = Field(
        default_factory=dict,
        description="which series, as {by: exposure, event: click} or {k: '10'}; "
        "{split: test} of a metric of the samples",
    )


class TargetSettings(SeriesSettings):
    """A business metric that is predicted."""

    name: Name
    used: tuple[SeriesSettings, ...] = Field(
        (),
        max_length=20,
        description="the offline metrics that you use to predict it; an alert fires if one no longer does",
    )


class ForecastSettings(Settings):
    """How business metrics are predicted from offline metrics; see docs/forecast.md."""

    targets: tuple[TargetSettings, ...] = Field(min_length=1, max_length=20)
    offline: tuple[SeriesSettings, ...] = Field(
        (),
        max_length=200,
        description="the offline metrics that are tried; default: those of the test samples, and those that "
        "judge lists and scores of exposures by feedback",
    )
    days: int = Field(84, ge=14, le=730, description="how many days back the past reaches")
    recent: int = Field(28, ge=7, le=365, description="the days in which a relation must still hold")
    min_days: int = Field(
        21, ge=14, le=365, description="with fewer days that can be used there is no forecast"
    )
    confidence: float = Field(
        0.9, ge=0.5, le=0.98, description="how often the interval of a forecast should contain the truth"
    )
    truth_days: int = Field(
        7,
        ge=1,
        le=60,
        description="a forecast is judged by the mean of the candidate's first days, so many of them; 7 is "
        "a whole week",
    )
    incidents: tuple[IncidentKind, ...] = Field(
        INCIDENTS,
        description="what makes a day an incident, which is left out: an anomaly, a drift, a violated hard "
        "rule, or a log that is not ok",
    )

    @model_validator(mode="after")
    def _leaves_days_before(self) -> ForecastSettings:
        if self.recent >= self.days:
            raise ValueError("recent must be shorter than days, or nothing comes before it")
        if self.min_days > self.days:
            raise ValueError("min_days must not be above days")
        return self
