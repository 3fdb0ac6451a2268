"""What a team can set about the metrics of one recommender."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from monitor.core.columns import CATEGORY, TAGS
from monitor.core.settings import Duration, Settings
from monitor.settings.rating import RatingSettings


class EventSettings(Settings):
    """What one event of the feedback says about the item it is on."""

    grade: float = Field(
        1.0, ge=0, le=100, description="its relevance; 0: the item was judged, and found not relevant"
    )
    length: str | None = Field(
        None, description="a catalog column of the item's whole length, in the unit of the event's value"
    )
    complete: float = Field(
        0.9, gt=0, le=1, description="from this share of the length on the item counts as completed"
    )


class MetricSettings(Settings):
    """The parameters of the metrics; every default is the definition in docs/metrics/README.md."""

    valid_list_length: Annotated[int, Field(ge=1)] = Field(
        1, description="a list counts as valid from this many items on (coverage)"
    )
    score_range: tuple[float, float] | None = Field(
        None, description="the lowest and the highest score that is right, both included (score_health)"
    )
    history: Duration = Field(
        timedelta(days=7), description="how far back shown items are remembered (novelty and its kin)"
    )
    min_propensity: float = Field(
        0.01, gt=0, le=1, description="propensities below this are counted (low_propensity)"
    )
    similarity: Literal["category", "vector"] | None = Field(
        None,
        description="how alike two items are (intra_list_diversity, serendipity); unless set: by vector "
        "where the catalog has the column, else by category",
    )
    popularity: Literal["exposures", "actions"] = Field(
        "exposures", description="what an item's popularity is counted in (average_popularity)"
    )
    novelty: tuple[str, ...] = Field(
        (CATEGORY, TAGS), description="catalog columns of which novelty is measured, beside item and user"
    )
    action_events: tuple[str, ...] | None = Field(
        None,
        description="the feedback events that count as a user's own action (matthew_effect, serendipity); "
        "unless set: every event",
    )
    events: dict[Annotated[str, Field(min_length=1, max_length=60)], EventSettings] = Field(
        {"click": EventSettings()},
        min_length=1,
        max_length=20,
        description="the feedback events that are judged, each with what it says; others are counted only",
    )
    attribution: Duration = Field(
        timedelta(minutes=30), description="an action counts for a list shown at most this long before it"
    )
    max_unattributed: float | None = Field(
        0.7,
        gt=0,
        lt=1,
        description="the largest share of actions that may join no list; `unattributed` is violated "
        "where its whole interval is larger; `null`: never",
    )
    k: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field(
        (5, 10),
        min_length=1,
        max_length=20,
        description="at which places of a list the metrics of lists are taken; many give the curve over k",
    )
    beta: float = Field(
        1.0, gt=0, le=100, description="how many times as much recall weighs as precision (f_score); 1: F1"
    )
    gain: Literal["exponential", "linear"] = Field(
        "exponential", description="what an item of relevance rel is worth: 2^rel - 1, or rel (ndcg)"
    )
    unrated: Literal["as_negative", "ignore", "liked_only"] = Field(
        "as_negative",
        description="exposures that nobody acted on, in the metrics of lists: `as_negative`, a miss that "
        "takes its place; `ignore`, they leave the list and the rest moves up; `liked_only`, what was "
        "acted on with a grade of 0 leaves too",
    )
    seed_item: str | None = Field(
        None,
        description="a column of exposures with the item on whose page the list was shown "
        "(item_to_item_recall)",
    )
    clip: float = Field(
        1e-15,
        ge=1e-15,
        lt=0.5,
        description="a score counts as a probability of at least this and at most 1 - this (log_loss, "
        "calibration)",
    )
    rating: RatingSettings | None = Field(
        None,
        description="which event is a rating that the scores predict (mae, rmse, nmae, nrmse, distortion)",
    )
    trim: float = Field(
        0.01,
        gt=0,
        le=0.5,
        description="this share of the users who acted, those with most actions, is left out "
        "(trimmed_action_rate)",
    )
    disable: tuple[str, ...] = Field((), description="names of metrics that are not measured")

    @field_validator("k")
    @classmethod
    def _each_k_once(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value):
            raise ValueError(f"each k once, got {list(value)}")
        return value

    @model_validator(mode="after")
    def _a_rating_is_an_event(self) -> MetricSettings:
        if self.rating is not None and self.rating.event not in self.events:
            raise ValueError(
                f"rating.event: {self.rating.event!r} is none of `events` ({', '.join(self.events)})"
            )
        return self

    @field_validator("novelty")
    @classmethod
    def _is_beside_what_is_always_measured(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        taken = [one for one in value if one in ("item", "user")]
        if taken:
            raise ValueError(f"novelty by {' and by '.join(taken)} is measured anyway; rename the column")
        return value

    @field_validator("score_range")
    @classmethod
    def _a_range_runs_upwards(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None and not (all(map(math.isfinite, value)) and value[0] < value[1]):
            raise ValueError(f"two finite numbers, the lower one first, got {list(value)}")
        return value

    @field_validator("history", "attribution")
    @classmethod
    def _lasts_a_while(cls, value: timedelta) -> timedelta:
        if value <= timedelta(0):
            raise ValueError("must be longer than 0")
        return value
