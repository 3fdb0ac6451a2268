"""The settings of the health score: its parts, and which values of a metric are worth 0 and 1."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from monitor.core.settings import Settings


class HealthPart(Settings):
    """A metric in the score: worth 0 at `zero` and 1 at `one`, linear in between, constant beyond."""

    metric: str = Field(description="a metric of docs/metrics")
    labels: dict[str, str] = Field(default_factory=dict, description="which series, for example {by: pv}")
    name: Annotated[str, Field(min_length=1, max_length=80)] | None = Field(
        None, description="the name of the part; default: the metric and its labels"
    )
    weight: float = Field(1.0, gt=0, le=1e6, description="the weight relative to the other parts")
    zero: float = Field(allow_inf_nan=False, description="the value that is worth 0")
    one: float = Field(allow_inf_nan=False, description="the value that is worth 1")

    @property
    def title(self) -> str:
        """The part's unique name.

        >>> HealthPart(metric="recall", labels={"k": "10", "by": "macro"}, zero=0, one=0.3).title
        'recall by=macro k=10'
        """
        return self.name or " ".join([self.metric, *(f"{k}={v}" for k, v in sorted(self.labels.items()))])

    @model_validator(mode="after")
    def _goes_from_bad_to_good(self) -> Self:
        if self.zero == self.one:
            raise ValueError(
                "zero and one are the same value; `zero` is the value at which the metric is bad"
            )
        return self


class HealthSettings(Settings):
    """One number for a recommender: the weighted mean of the worth of its parts."""

    parts: tuple[HealthPart, ...] = Field(min_length=1, max_length=50)
    min_weight: float = Field(
        0.5,
        gt=0,
        le=1,
        description="there is no score if parts with less than this share of the weight have a value",
    )
