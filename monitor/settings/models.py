"""What a team can set about its models: where their samples come from, and which gap of the AUC matters."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, field_validator

from monitor.core.columns import ITEM_ID, REQUEST_ID
from monitor.core.settings import Duration, Settings


class DiagnosisSettings(Settings):
    """How sure and how large a cause has to be before it is named."""

    least_gap: float = Field(
        0.01, ge=0, lt=1, description="a gap whose interval reaches below this has no causes looked for"
    )
    least_share: float = Field(
        0.15, gt=0, le=1, description="a cause of a smaller share of the gap is not named"
    )
    confidence: float = Field(
        0.99, gt=0.5, lt=1, description="a cause is named where its share is above 0 with this confidence"
    )
    single_auc: float = Field(
        0.75,
        gt=0.5,
        le=1,
        description="a feature that alone has this AUC, and not in service, knows the future",
    )
    single_drop: float = Field(
        0.05, gt=0, lt=1, description="how much of its own AUC such a feature has lost at the least"
    )
    future: float = Field(
        0.01,
        gt=0,
        lt=1,
        description="share of rows whose feature may be younger than the event, as clocks differ",
    )
    older: float = Field(
        0.01, gt=0, lt=1, description="share of test rows that may be older than the newest row of training"
    )
    mismatch: float = Field(
        0.01,
        gt=0,
        lt=1,
        description="share of paired rows on which a feature may differ from the one joined offline",
    )
    tolerance: float = Field(
        1e-6, ge=0, lt=1, description="numbers that differ by at most this share are the same value"
    )
    spike: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="share of rows that one value, or none, takes over before it is a default",
    )
    bins: int = Field(24, ge=2, le=100, description="into how many bins a feature is parted, at most")
    least_rows: int = Field(
        100, ge=2, description="rows that a part of a split must have to be judged by itself"
    )


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


class DiagnosedModels(ModelSettings):
    """How the models are judged by the log of samples, and their gaps explained; see docs/models.md."""

    scorer: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] | None = Field(
        None,
        description="module:function, the model's own scoring: it gets a pandas frame of the features and "
        "gives one number a row. With it the diagnosis rescores; without it, it learns the scores' shape",
    )
    diagnosis: DiagnosisSettings = DiagnosisSettings()
