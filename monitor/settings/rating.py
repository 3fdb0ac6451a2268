"""The settings of the ratings that the scores predict."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from monitor.core.settings import Range, Settings

Distance = Annotated[float, Field(allow_inf_nan=False)]
Distances = Annotated[dict[int, Distance], Field(min_length=1, max_length=20)]


class RatingSettings(Settings):
    """Which event is a rating, its scale, and which exposures are compared with it."""

    event: str = Field(
        description="the event whose value is the rating; one of `events`. Its grade is 0, unless every "
        "rating means that the user liked the item"
    )
    range: Range = Field(
        (1.0, 5.0), description="the lowest and the highest rating; ratings outside are left out and counted"
    )
    rounded: bool = Field(
        False, description="whether scores are rounded to whole ratings first, halves upwards (3.5 is 4)"
    )
    unrated: Literal["ignore", "as_negative", "liked_only"] = Field(
        "ignore",
        description="`ignore`: only rated exposures count; `as_negative`: an exposure without a rating "
        "counts as rated lowest; `liked_only`: only exposures rated at least `liked` count",
    )
    liked: float | None = Field(None, description="the lowest rating of a liked item (liked_only)")
    distortion: dict[int, Distances] | None = Field(
        None,
        min_length=1,
        max_length=20,
        description="the cost of a wrong prediction: predicted -> actual -> distance, for whole ratings "
        "(distortion)",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> RatingSettings:
        lowest, highest = self.range
        if (self.unrated == "liked_only") != (self.liked is not None):
            raise ValueError("liked: is needed with `unrated: liked_only`, and allowed only with it")
        if self.liked is not None and not lowest <= self.liked <= highest:
            raise ValueError(f"liked: must lie in the range {list(self.range)}, got {self.liked:g}")
        return self
