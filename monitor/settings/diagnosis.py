"""The bounds of the diagnosis: what counts as a cause, and what is too little to be named."""

from __future__ import annotations

from pydantic import Field

from monitor.core.settings import Settings


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
