"""The settings of an experiment: its arms and their shares, when it began, and what to compare."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from monitor.core.columns import ARM
from monitor.core.settings import Name, Settings
from monitor.core.text import VALUE_LENGTH, quoted
from monitor.settings.moments import UtcMoment

ArmMetric = Literal["action_rate", "conversion", "actions_per_user", "value_per_user"]
ARM_METRICS: tuple[ArmMetric, ...] = get_args(ArmMetric)

_Arm = Annotated[str, Field(min_length=1, max_length=60)]
_Column = Annotated[str, Field(min_length=1, max_length=100)]


class BucketSettings(Settings):
    """The hash buckets into which users are sorted before an arm is chosen."""

    column: _Column = Field(description="the column of exposures that holds the user's bucket")
    count: int = Field(ge=2, le=10_000, description="how many buckets there are; an empty one counts too")


class ExperimentSettings(Settings):
    """One experiment: users split into arms, named by a column of the exposures."""

    name: Name
    column: _Column = Field(
        ARM, description="the column of exposures that holds the arm; null: not in the experiment"
    )
    split: dict[_Arm, Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]] = Field(
        min_length=2, max_length=20, description="each arm and its intended share, in any unit"
    )
    control: str | None = Field(None, description="the arm that others are compared with; default: the first")
    start: UtcMoment | None = Field(
        None,
        description="users count from the first window that begins at this time or later; default: the "
        "first window in the log or in the history",
    )
    buckets: BucketSettings | None = None
    alpha: float = Field(
        0.001, gt=0, lt=0.5, description="the split is broken where its anytime-valid p is below this"
    )
    metrics: tuple[ArmMetric, ...] = Field(
        ARM_METRICS, description="the metrics that are measured for each arm"
    )

    @model_validator(mode="after")
    def _control_is_an_arm(self) -> ExperimentSettings:
        if self.control is not None and self.control not in self.split:
            arms = ", ".join(map(repr, self.split))
            control = quoted(self.control, VALUE_LENGTH)
            raise ValueError(f"the control {control} is not an arm of the split; the arms are {arms}")
        return self

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(self.split)

    @property
    def weights(self) -> tuple[float, ...]:
        return tuple(self.split.values())

    @property
    def baseline(self) -> str:
        """The arm that the others are compared with."""
        return self.control or self.arms[0]

    def begins(self, length: timedelta) -> datetime | None:
        """The start of the first window of this length that counts, None where the log decides."""
        if self.start is None:
            return None
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return epoch - ((epoch - self.start) // length) * length
