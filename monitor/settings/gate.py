"""The settings of a gate: what must hold before a candidate goes live."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, model_validator

from monitor.core.settings import Name, Settings

_KINDS: Final = ("rules", "metric", "survey", "forecast")
_OF_METRIC: Final = ("labels", "margin", "min", "max", "experiment", "arm")


class Condition(Settings):
    """One condition of a gate: on rules, on a metric, survey or forecast of the candidate, or on an arm of an
    experiment.
    """

    name: Name
    owner: str = Field(min_length=1, max_length=100, description="the team that decides on an override")
    reason: str = Field(min_length=1, max_length=500, description="why it must hold; the report shows it")
    rules: Literal["hard", "all"] | None = Field(
        None, description="no hard rule, or no rule at all, is violated in the span"
    )
    metric: str | None = Field(None, description="the metric that must not be worse, or must keep a bound")
    labels: dict[str, str] = Field(default_factory=dict, description="which series, for example {k: '10'}")
    survey: str | None = Field(
        None, description="the question of logs.survey whose mean answer must not be worse, or keep a bound"
    )
    forecast: str | None = Field(
        None,
        description="a target of the forecast of `against`; the whole interval that is predicted for the "
        "candidate keeps `min` or `max`",
    )
    margin: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="the candidate may be worse than `against` by this part of its value, 0.02 for 2 %; the "
        "whole interval of the difference must be better than that",
    )
    min: float | None = Field(
        None,
        allow_inf_nan=False,
        description="the whole interval of the candidate's value is at least this",
    )
    max: float | None = Field(
        None,
        allow_inf_nan=False,
        description="the whole interval of the candidate's value is at most this",
    )
    experiment: str | None = Field(
        None,
        description="compare an arm of this experiment with its control, in place of the candidate with "
        "`against`; it is one of the experiments of `against`",
    )
    arm: str | None = Field(None, description="the arm; default: the only one beside the control")

    @model_validator(mode="after")
    def _is_one_condition(self) -> Condition:
        given = [name for name in _KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a condition has exactly one of {', '.join(_KINDS)}")
        if self.rules is not None:
            for name in _OF_METRIC:
                if name in self.model_fields_set:
                    raise ValueError(f"{name} belongs to a condition on a metric, not on rules")
            return self
        if self.metric is None and self.labels:
            raise ValueError(f"labels belong to a condition on a metric, not on a {given[0]}")
        if self.forecast is not None and (self.margin is not None or self.experiment is not None):
            raise ValueError("a condition on a forecast has min or max, and no margin or experiment")
        if sum(one is not None for one in (self.margin, self.min, self.max)) != 1:
            raise ValueError(f"a condition on a {given[0]} has exactly one of margin, min and max")
        if self.experiment is not None and self.margin is None:
            raise ValueError("an experiment compares two arms, so it needs a margin")
        if self.arm is not None and self.experiment is None:
            raise ValueError("arm names an arm of an experiment; name the experiment too")
        return self


class GateSettings(Settings):
    """What must hold before this recommender goes live, see docs/gate.md."""

    against: str | None = Field(
        None,
        description="the recommender in production, that the candidate is compared with: a name, or a side "
        "such as shop:model=m6",
    )
    conditions: tuple[Condition, ...] = Field(min_length=1, max_length=200, description="all of them hold")
