"""The settings of the models: where their samples come from, and which gaps of the AUC are allowed."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from monitor.core.columns import ITEM_ID, REQUEST_ID
from monitor.core.settings import PositiveDuration, Settings


class DiagnosisSettings(Settings):
    """How certain and how large a cause must be before it is named."""

    least_gap: float = Field(
        0.01, ge=0, lt=1, description="no causes are searched for a gap whose interval reaches below this"
    )
    least_share: float = Field(
        0.15, gt=0, le=1, description="a cause with a smaller share of the gap is not named"
    )
    confidence: float = Field(
        0.99, gt=0.5, lt=1, description="a cause is named if its share is above 0 with this confidence"
    )
    single_auc: float = Field(
        0.75,
        gt=0.5,
        le=1,
        description="a feature that alone reaches this AUC, but not in service, knows the future",
    )
    single_drop: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="the smallest loss of its own AUC in service that such a feature must have",
    )
    future: float = Field(
        0.01,
        gt=0,
        lt=1,
        description="the allowed share of rows whose feature is newer than the event, as clocks differ",
    )
    older: float = Field(
        0.01,
        gt=0,
        lt=1,
        description="the allowed share of test rows that are older than the newest training row",
    )
    mismatch: float = Field(
        0.01,
        gt=0,
        lt=1,
        description="the allowed share of paired rows on which a feature differs from its offline value",
    )
    tolerance: float = Field(
        1e-6, ge=0, lt=1, description="numbers that differ by at most this share count as equal"
    )
    spike: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="a value, or its absence, counts as a default if its share of the rows grows by at "
        "least this",
    )
    bins: int = Field(24, ge=2, le=100, description="the most bins into which a feature is divided")
    least_rows: int = Field(
        100, ge=2, description="the fewest rows with which a part of a split is judged by itself"
    )


Column = Annotated[str, Field(min_length=1)]


class GapSettings(Settings):
    """How much AUC may be lost from one split to the next. A gap is violated if its whole interval is
    larger.
    """

    train_test: float = Field(
        0.05, gt=0, lt=1, description="train minus test; a larger gap looks like overfitting"
    )
    test_online: float = Field(
        0.02, gt=0, lt=1, description="test minus online; a larger gap means that the test promised too much"
    )


class ModelSettings(Settings):
    """How the models are judged by the log of samples; see docs/models.md."""

    online: Literal["samples", "exposures"] = Field(
        "samples",
        description="where online rows come from: the samples of the split `online`, or the exposures, "
        "labelled by their feedback once `metrics.attribution` has passed",
    )
    over: PositiveDuration = Field(
        timedelta(days=1), description="how far back from the window's end online rows are judged"
    )
    gaps: GapSettings = GapSettings()
    newest: int = Field(
        3,
        ge=1,
        le=20,
        description="how many models are judged: first those with the most online rows, then the latest "
        "trained",
    )
    by: tuple[Column, ...] = Field(
        (), description="columns of the samples by which a split's metrics are sliced, such as scene"
    )
    budget: int = Field(
        20,
        ge=1,
        le=200,
        description="how many features are shown, those that differ most, and how many values of a slice, "
        "those with the most rows",
    )
    features: tuple[Column, ...] | None = Field(
        None, description="columns of the samples; default: every column without another role"
    )
    feature_times: dict[Column, Column] = Field(
        default_factory=dict, description="feature: the column with the time of its value"
    )
    pair_by: tuple[Column, ...] = Field(
        (REQUEST_ID, ITEM_ID),
        min_length=1,
        description="the columns that pair an online and an offline row of the same request and model; a "
        "column that the log lacks is left out",
    )


class DiagnosedModels(ModelSettings):
    """How the models are judged on the log of samples, and how their gaps are explained; see
    docs/models.md.
    """

    scorer: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] | None = Field(
        None,
        description="module:function, the model's own scoring: it takes a pandas frame of the features and "
        "returns one number a row. The diagnosis rescores rows with it; without it, the diagnosis learns a "
        "model of the scores",
    )
    diagnosis: DiagnosisSettings = DiagnosisSettings()
