"""What a team can set about its models: where their samples come from, and which gap of the AUC matters."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, field_validator

from monitor.core.columns import ITEM_ID, REQUEST_ID
from monitor.core.settings import Duration, Settings

Column = Annotated[str, Field(min_length=1)]


class GapSettings(Settings):
    """How much AUC may be lost from one split to the next; more, with confidence, is a violation."""

    train_test: float = Field(0.05, gt=0, lt=1, description="train less test: more looks like overfitting")
    test_online: float = Field(0.02, gt=0, lt=1, description="test less online: the test promised too much")


class ModelSettings(Settings):
    """How the models are judged by the log of samples; see docs/models.md."""

    online: Literal["samples", "exposures"] = Field(
        "samples",
        description="where online rows come from: the samples of the split `online`, or the exposures, "
        "labelled by the feedback that belongs to them once `metrics.attribution` is over",
    )
    over: Duration = Field(
        timedelta(days=1), description="the online rows of this long before the window's end are judged"
    )
    gaps: GapSettings = GapSettings()
    newest: int = Field(
        3,
        ge=1,
        le=20,
        description="so many models are judged: first those with most online rows, then the latest trained",
    )
    by: tuple[Column, ...] = Field(
        (), description="columns of the samples by which the metrics of a split are repeated, such as scene"
    )
    budget: int = Field(
        20,
        ge=1,
        le=200,
        description="the features that differ most, and the values of a slice with most rows",
    )
    features: tuple[Column, ...] | None = Field(
        None, description="columns of the samples; unless given: every one that nothing else here names"
    )
    feature_times: dict[Column, Column] = Field(
        default_factory=dict, description="feature: the column with the time that its value is of"
    )
    pair_by: tuple[Column, ...] = Field(
        (REQUEST_ID, ITEM_ID),
        min_length=1,
        description="what makes an online row and an offline one of a model the same request's; a column "
        "that the log does not have is left out",
    )

    @field_validator("over")
    @classmethod
    def _lasts_a_while(cls, value: timedelta) -> timedelta:
        if value <= timedelta(0):
            raise ValueError("must be longer than 0")
        return value
